//! What identifies people, machines and secrets in text, word by word: a table of recognisers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a word is, and so what stands in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Path,
    Uuid,
    Name,
    Secret,
    Address,
    Serial,
    Label,
    Cell,
}

impl Kind {
    /// How it is counted for the user.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Kind::Path => "path",
            Kind::Uuid => "UUID",
            Kind::Name => "name",
            Kind::Secret => "secret",
            Kind::Address => "address",
            Kind::Serial => "serial number",
            Kind::Label => "label",
            Kind::Cell => "cell id",
        }
    }

    /// The `number`th, as it stands in what is shared.
    pub(crate) fn replacement(self, number: usize) -> String {
        match self {
            Kind::Path => format!("/path-{number}"),
            Kind::Uuid => format!("00000000-0000-0000-0000-{number:012}"),
            Kind::Cell => format!("{number:016x}"),
            Kind::Serial => format!("serial-{number}"),
            other => format!("{}-{number}", other.noun()),
        }
    }
}

/// Groups of a UUID, in hexadecimal digits.
const UUID: [usize; 5] = [8, 4, 4, 4, 12];
/// How replacements of UUIDs begin.
const NO_UUID: &str = "00000000-0000-";

/// What a word is, and how it is known.
type Row = (Kind, fn(&str) -> bool);

/// The first that knows a word counts.
const WORDS: &[Row] = &[
    (Kind::Address, |word| word.contains("://")),
    (Kind::Address, has_user),
    (Kind::Address, is_remote_source),
    (Kind::Address, is_mac),
    (Kind::Address, is_ip),
    (Kind::Serial, is_serial),
    (Kind::Uuid, is_uuid),
    (Kind::Path, is_relative_path),
    (Kind::Secret, |word| word.split('.').any(is_random)),
];

/// What a word is by its looks.
pub(crate) fn of_word(word: &str) -> Option<Kind> {
    WORDS.iter().find(|(_, is)| is(word)).map(|(kind, _)| *kind)
}

/// Parts of a key whose value is a secret, wherever they stand in it.
const SECRET: [&str; 7] = ["password", "passwd", "passphrase", "secret", "token", "credential", "apikey"];
/// Last parts of a key, and what its value is.
const ENDS: &[(&str, Kind)] = &[
    ("auth", Kind::Secret),
    ("authorization", Kind::Secret),
    ("bearer", Kind::Secret),
    ("credentials", Kind::Secret),
    ("host", Kind::Name),
    ("hostname", Kind::Name),
    ("key", Kind::Secret),
    ("label", Kind::Label),
    ("pass", Kind::Secret),
    ("pw", Kind::Secret),
    ("pwd", Kind::Secret),
    ("serial", Kind::Serial),
    ("user", Kind::Name),
    ("username", Kind::Name),
    ("wwn", Kind::Serial),
];

/// What the value of an option, a variable or a setting is, by its name.
pub(crate) fn of_value(key: &str) -> Option<Kind> {
    if matches!(key, "-L" | "-u") {
        return Some(if key == "-L" { Kind::Label } else { Kind::Name });
    }
    let lower = key.to_ascii_lowercase();
    let last = lower.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let is_secret = SECRET.iter().any(|part| lower.contains(part));
    let named = ENDS.iter().find(|(end, _)| *end == last).map(|(_, kind)| *kind);
    if is_secret { Some(Kind::Secret) } else { named }
}

/// `-pSECRET`, as clients of databases take it; options of find, cp and compilers also begin so.
pub(crate) fn glued_secret(word: &str) -> Option<&str> {
    const OTHERS: [&str; 10] =
        ["path", "pedantic", "perm", "pipe", "print", "print0", "printf", "prune", "pthread", "preserve"];
    let glued = word.strip_prefix("-p").filter(|glued| glued.len() > 2)?;
    let is_other = OTHERS.contains(&&word[1..]) || glued.bytes().all(|byte| byte.is_ascii_digit());
    (!is_other).then_some(glued)
}

fn has_user(word: &str) -> bool {
    word.split_once('@').is_some_and(|(user, place)| !user.is_empty() && !place.is_empty())
}

/// `HOST:/export/of/nfs`, which rsync and scp take too.
fn is_remote_source(word: &str) -> bool {
    let is_host = |host: &str| !host.is_empty() && host.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
    word.split_once(":/").is_some_and(|(host, _)| is_host(host))
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// True for groups of letters or digits, of these lengths, with `between` between them.
fn has_groups(word: &str, between: char, lengths: &[usize]) -> bool {
    let is_plain = |group: &str| group.bytes().all(|byte| byte.is_ascii_alphanumeric());
    word.split(between).map(str::len).eq(lengths.iter().copied()) && word.split(between).all(is_plain)
}

fn is_mac(word: &str) -> bool {
    let is_all_hex = |between: char| word.split(between).all(is_hex);
    [':', '-'].into_iter().any(|between| has_groups(word, between, &[2; 6]) && is_all_hex(between))
}

/// With a port, a prefix or a zone too. Addresses that every machine has identify none.
fn is_ip(word: &str) -> bool {
    let bare = word.split(['/', '%']).next().unwrap_or(word);
    let in_brackets = bare.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(inside, _)| inside);
    let without_port = bare.rsplit_once(':').map(|(host, _)| host).unwrap_or(bare);
    let v4 = bare.parse::<Ipv4Addr>().or_else(|_| without_port.parse()).map(IpAddr::V4).ok();
    let v6 = in_brackets.unwrap_or(bare).parse::<Ipv6Addr>().map(IpAddr::V6).ok();
    v4.or(v6).is_some_and(|address| !address.is_loopback() && !address.is_unspecified())
}

/// World-wide names, and names that udev makes of serial numbers.
fn is_serial(word: &str) -> bool {
    const BEGINNINGS: [&str; 9] = ["ata-", "eui.", "naa.", "nvme-", "nvme.", "scsi-", "t10.", "usb-", "wwn-"];
    let is_long = word.len() == 18 && word.strip_prefix("0x").is_some_and(is_hex);
    is_long || word.len() > 10 && BEGINNINGS.iter().any(|beginning| word.starts_with(beginning))
}

/// The UUID of a file system, of FAT, of partitions of MBR, of md or of LVM; not one that stands
/// for another.
pub(crate) fn is_uuid(word: &str) -> bool {
    let is_upper_hex =
        word.bytes().any(|byte| byte.is_ascii_uppercase()) && !word.bytes().any(|b| b.is_ascii_lowercase());
    let is_all_hex = word.split(['-', ':']).all(is_hex);
    has_groups(word, '-', &UUID) && is_all_hex && !word.starts_with(NO_UUID)
        || has_groups(word, '-', &[4, 4]) && is_all_hex && is_upper_hex
        || has_groups(word, '-', &[8, 2]) && is_all_hex
        || has_groups(word, ':', &[8; 4]) && is_all_hex
        || has_groups(word, '-', &[6, 4, 4, 4, 4, 4, 6])
}

/// A path of a home, or from the working folder upwards; or a path inside an address.
fn is_relative_path(word: &str) -> bool {
    let is_of_home =
        word.strip_prefix('~').is_some_and(|rest| rest.starts_with(|c: char| c == '/' || c.is_alphabetic()));
    is_of_home || word.starts_with("../") || word.to_ascii_lowercase().contains("%2f")
}

/// A key or a digest: long, of one piece, and changing between letters and digits or between large
/// and small ones.
fn is_random(word: &str) -> bool {
    let is_code = |byte: u8| byte.is_ascii_alphanumeric() || b"+/_-".contains(&byte);
    let is_key_id = ["AKIA", "ASIA"].iter().any(|start| word.starts_with(start))
        && word.len() >= 12
        && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    if is_key_id || word.len() >= 32 && is_hex(word) {
        return true;
    }
    let class = |byte: &u8| match byte {
        b'0'..=b'9' => 1,
        b'a'..=b'z' => 2,
        b'A'..=b'Z' => 3,
        _ => 0,
    };
    let classes: Vec<u8> = word.as_bytes().iter().map(class).collect();
    let has = |wanted: u8| classes.contains(&wanted);
    let changes = classes.windows(2).filter(|pair| pair[0] != pair[1] && !pair.contains(&0)).count();
    let is_mixed = has(1) && (has(2) && has(3) && word.len() >= 24 || word.len() >= 32);
    is_mixed && word.bytes().all(is_code) && changes * 4 >= word.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of each kind, with blanks between.
    const WORDS: &[(Option<Kind>, &str)] = &[
        (
            Some(Kind::Address),
            "ann.miller@corp.example ann@10.0.0.1:/x https://x.example/y mysql://ann:pw@db/x \
            fileserver:/export/ann 52:54:00:ab:cd:ef 52-54-00-AB-CD-EF 10.20.30.40 10.20.30.40:3306 \
            10.20.30.0/24 fe80::5054:ff:feab:cdef fe80::1%eth0 [2001:db8::1]:80",
        ),
        (Some(Kind::Serial), "naa.5000c500a1b2c3d4 0x5000c500a1b2c3d4 ata-Samsung_SSD_S3Z9 nvme.1234-5678"),
        (
            Some(Kind::Uuid),
            "ABCD-1234 12345678-01 1a2b3c4d:5e6f7a8b:9c0d1e2f:3a4b5c6d \
            abcdef-GHIJ-klmn-OPQR-stuv-WXYZ-012345",
        ),
        (Some(Kind::Path), "../ann/x ~ann/x ~/x %2Fhome%2Fann"),
        (
            Some(Kind::Secret),
            "AKIAVERYSECRET wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY \
            ghp_16C7e42F292c6912E7710c838347Ae178B4a \
            eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxIn0 d41d8cd98f00b204e9800998ecf8427e",
        ),
        (
            None,
            "127.0.0.1 0.0.0.0:80 ::1 7:0 12:34:56 2026-11-25T20:49:12Z Samsung_SSD_970_EVO_Plus_1TB \
            ST4000NM0035-1V4107 6.1.0-13-cloud-amd64 discard,lazy_itable_init=0 12380752958686531826 @0 \
            ~10 1024-4096 /run/pickfs-0d6ad1883765/memory-16777216/disk-16777216 metadata-checksums \
            path-1 secret-1 address-1 00000000-0000-0000-0000-000000000001",
        ),
    ];

    #[test]
    fn words_are_known_by_their_looks() {
        for (wanted, words) in WORDS {
            for word in words.split_whitespace() {
                assert_eq!(of_word(word), *wanted, "{word}");
            }
        }
    }

    #[test]
    fn values_are_known_by_their_keys() {
        for key in
            ["--password", "PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "api-key", "MYSQL_PWD", "Authorization", "rootPasswd"]
        {
            assert_eq!(of_value(key), Some(Kind::Secret), "{key}");
        }
        assert_eq!(
            [of_value("--host"), of_value("-L"), of_value("ID_SERIAL")].map(Option::unwrap),
            [Kind::Name, Kind::Label, Kind::Serial]
        );
        for key in ["--keys", "monkey", "key_buffer_size", "compass", "-p", "hostname_of", "bytes"] {
            assert_eq!(of_value(key), None, "{key}");
        }
        assert_eq!(
            ["-pS3cretPw", "-print", "-pr", "-p3306", "--path"].map(glued_secret),
            [Some("S3cretPw"), None, None, None, None]
        );
    }
}
