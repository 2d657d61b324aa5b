//! A journal without what identifies people and machines, and without secrets: paths, addresses,
//! UUIDs, serial numbers, labels, names, passwords. Figures, file systems and models of hardware
//! stay: they are what is shared. Facts are kept by a list of names ([`facts`]); words of all other
//! text are replaced by their looks ([`kinds`]). Steps are left out: they are for undoing, on one
//! machine.

mod facts;
mod kinds;

use super::chain::linked_again;
use super::{Record, record::Provenance};
use kinds::Kind;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Paths of every Linux, and of runs.
const COMMON: [&str; 12] = [
    "/dev/shm/pickfs-", "/dev/mapper/pickfs", "/dev/pickfs", "/run/pickfs-", "/proc/", "/sys/", "/usr/", "/bin/",
    "/sbin/", "/lib/", "/lib64/", "/path-",
];
/// Below the common ones, and yet a name that a user has given.
const OWN: [&str; 1] = ["/usr/local/"];
/// Devices that are named by the kernel, not by users or serial numbers.
const DEVICES: [&str; 22] = [
    "dm-", "fd", "full", "hd", "kvm", "loop", "md", "mmcblk", "nbd", "null", "nvme", "pmem", "ram", "random", "sd",
    "sr", "std", "urandom", "vd", "xvd", "zero", "zram",
];
/// Where homes of users are, as the path is written.
const HOMES: &str = concat!("/", "home/");
/// Names that every machine has.
const USUAL: [&str; 14] = [
    "root", "nobody", "localhost", "localdomain", "local", "lan", "home", "internal", "debian", "ubuntu", "fedora",
    "user", "linux", "(none)",
];
/// Shorter names stand everywhere.
const SHORTEST: usize = 3;
/// Values that are shorter are replaced in their place alone: elsewhere such a word may be
/// anything.
const SHORTEST_VALUE: usize = 6;
/// Fields of records that pickfs makes itself: times, numbers and codes, and a digest that names
/// the program of a simulation.
const VERBATIM: [&str; 8] = ["at", "started", "encoded", "metric", "id", "pickfs", "combine", "simulated by"];
/// Variables whose values are kept.
const HARMLESS: [&str; 3] = ["LANG", "LANGUAGE", "TZ"];

/// What was replaced, so that the same is the same everywhere.
#[derive(Default)]
pub struct Anonymous {
    replaced: BTreeMap<(Kind, String), String>,
    /// Words that are replaced wherever they stand, in small letters, with what stands for them.
    known: Vec<(String, String)>,
    left_out: BTreeSet<String>,
}

impl Anonymous {
    /// `names` are those of the machine, its user, and the user's home.
    pub fn new(names: impl IntoIterator<Item = String>) -> Anonymous {
        let names: BTreeSet<String> = names.into_iter().map(|name| name.to_ascii_lowercase()).collect();
        let mut names: Vec<String> = names.into_iter().filter(|name| is_name(name)).collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        let mut anonymous = Anonymous::default();
        names.iter().for_each(|name| anonymous.name(name));
        anonymous
    }

    /// All lines of a journal, without left-out and torn ones. It is read twice, as a line may name
    /// what stands in an earlier one.
    pub fn lines(&mut self, journal: &str) -> Vec<String> {
        journal.lines().for_each(|line| drop(self.line(line)));
        let is_link = |line: &str| matches!(serde_json::from_str(line), Ok(Record::Chain(_)));
        linked_again(
            journal.lines().filter_map(|line| if is_link(line) { Some(None) } else { self.line(line).map(Some) }),
        )
    }

    fn line(&mut self, line: &str) -> Option<String> {
        let mut record: Record = serde_json::from_str(line).ok()?;
        match &mut record {
            Record::Step(_) | Record::Undone(_) | Record::Chain(_) => return None,
            Record::Provenance(provenance) => self.keep_facts(provenance),
            _ => {}
        }
        let mut value = serde_json::to_value(&record).ok()?;
        self.value("", &mut value);
        Some(value.to_string())
    }

    fn keep_facts(&mut self, provenance: &mut Provenance) {
        let known = |name: &str| facts::may_be_shared(name);
        self.left_out.extend(provenance.facts.keys().filter(|name| !known(name)).cloned());
        provenance.facts.retain(|name, _| known(name));
    }

    /// Facts that were left out, by name.
    pub fn left_out(&self) -> impl Iterator<Item = &str> {
        self.left_out.iter().map(String::as_str)
    }

    /// How much of what was replaced, as the noun and the number; ids of cells do not count.
    pub fn counts(&self) -> Vec<(&'static str, usize)> {
        let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
        self.replaced.keys().for_each(|(kind, _)| *counts.entry(*kind).or_default() += 1);
        counts.into_iter().filter(|(kind, _)| *kind != Kind::Cell).map(|(kind, count)| (kind.noun(), count)).collect()
    }

    /// What must not be in it any more and is.
    pub fn left(&self, text: &str) -> Vec<&str> {
        const BY_WORD: [Kind; 3] = [Kind::Name, Kind::Secret, Kind::Label];
        // What stands for itself was replaced before.
        let is_new =
            |(kind, old): &(Kind, String), new: &String| !BY_WORD.contains(kind) && old.len() > SHORTEST && old != new;
        let old = self.replaced.iter().filter(|(old, new)| is_new(old, new)).map(|(old, _)| old);
        // The end of an element of the page is no path.
        let has = |old: &str| text.match_indices(old).any(|(at, _)| !text[..at].ends_with('<'));
        let lower = text.to_ascii_lowercase();
        let known = self.known.iter().filter(|(word, _)| find_word(&lower, word, 0).is_some());
        let old = old.map(|(_, old)| old.as_str()).filter(|old| has(old));
        old.chain(known.map(|(word, _)| word.as_str())).collect()
    }

    /// Parts of replaced paths that also stand elsewhere: titles and names of targets are the
    /// user's own words.
    pub fn doubts<'a>(&'a self, text: &str) -> Vec<&'a str> {
        let paths = self.replaced.keys().filter(|(kind, _)| *kind == Kind::Path);
        let parts = paths.flat_map(|(_, path)| path.split('/')).filter(|part| part.len() > SHORTEST);
        let mut found: Vec<&str> = parts.filter(|part| find_word(text, part, 0).is_some()).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// A value of that name.
    fn value(&mut self, name: &str, value: &mut Value) {
        match value {
            _ if VERBATIM.contains(&name) => {}
            Value::String(id) if name == "cell" && id.len() == 16 => *id = self.replace(Kind::Cell, id),
            Value::String(text) if name == "environment" => *text = self.variable(text),
            Value::String(text) => {
                *text = match kinds::of_value(name) {
                    Some(kind) => self.replace(kind, text),
                    None => self.text(text),
                }
            }
            Value::Array(list) if name == "environment" => list.iter_mut().for_each(|value| self.value(name, value)),
            Value::Array(list) => self.words(list),
            Value::Object(map) => map.iter_mut().for_each(|(name, value)| self.value(name, value)),
            _ => {}
        }
    }

    /// An option may have its value in the next word.
    fn words(&mut self, list: &mut [Value]) {
        let mut before = String::new();
        for value in list {
            let this = value.as_str().unwrap_or_default().to_string();
            let takes_value = before.starts_with('-') && !before.contains('=') && !this.starts_with('-');
            let option = if takes_value { before.as_str() } else { "" };
            self.value(option, value);
            before = this;
        }
    }

    /// `NAME=value`
    fn variable(&mut self, text: &str) -> String {
        let Some((name, value)) = text.split_once('=') else { return self.text(text) };
        let is_harmless = HARMLESS.contains(&name) || name.starts_with("LC_");
        let value = if is_harmless { self.text(value) } else { self.replace(Kind::Secret, value) };
        format!("{}={value}", self.text(name))
    }

    fn text(&mut self, text: &str) -> String {
        for home in text.split(HOMES).skip(1) {
            let user =
                home.split(|c| c == '/' || is_delimiter(c)).next().filter(|user| is_name(&user.to_ascii_lowercase()));
            user.into_iter().for_each(|user| self.name(user));
        }
        // A whole path may have blanks in it.
        if text.starts_with('/') && !text.contains(" /") && is_telling(text) {
            return self.path(text);
        }
        let text = without_private_keys(text);
        let text = self.without_values(&text);
        let text = self.without_words(&text);
        let mut known: Vec<_> = self.replaced.iter().filter(|((kind, _), _)| *kind == Kind::Path).collect();
        known.sort_by_key(|((_, old), _)| std::cmp::Reverse(old.len()));
        let text = known.into_iter().fold(text, |text, ((_, old), new)| without_word(&text, &text, old, new));
        let text = self.without_paths(&text);
        let text = self.without_uuids(&text);
        self.without_known(&text)
    }

    fn without_known(&self, text: &str) -> String {
        let without =
            |text: String, (word, new): &(String, String)| without_word(&text, &text.to_ascii_lowercase(), word, new);
        self.known.iter().fold(text.to_string(), without)
    }

    /// What stands for it; itself where it stands for something already.
    fn replace(&mut self, kind: Kind, old: &str) -> String {
        let key = (kind, if kind == Kind::Name { old.to_ascii_lowercase() } else { old.to_string() });
        if let Some(new) = self.replaced.get(&key) {
            return new.clone();
        }
        if old.is_empty() || self.replaced.values().any(|new| new == old) {
            return old.to_string();
        }
        if kind == Kind::Name && !is_name(&old.to_ascii_lowercase()) {
            return self.text(old);
        }
        let new = kind.replacement(self.replaced.keys().filter(|(other, _)| *other == kind).count() + 1);
        self.replaced.insert(key, new.clone());
        if matches!(kind, Kind::Secret | Kind::Label | Kind::Name) && old.len() >= SHORTEST_VALUE {
            self.know(old, &new);
        }
        new
    }

    /// Replaces the name of a machine or a person.
    fn name(&mut self, name: &str) {
        let new = self.replace(Kind::Name, name);
        self.know(name, &new);
    }

    /// Longer ones first, as a short one may be a part of them.
    fn know(&mut self, word: &str, new: &str) {
        let known = (word.to_ascii_lowercase(), new.to_string());
        if !self.known.contains(&known) {
            self.known.push(known);
            self.known.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
        }
    }

    fn path(&mut self, path: &str) -> String {
        let whole = path.trim_end_matches('/');
        let mut above = whole.rmatch_indices('/').map(|(at, _)| &whole[..at]).filter(|above| !above.is_empty());
        let known = above.find_map(|above| Some((above, self.replaced.get(&(Kind::Path, above.to_string()))?.clone())));
        // What lies in a known folder stays there.
        if let Some((folder, new)) = known {
            return new + &self.without_known(&whole[folder.len()..]);
        }
        self.replace(Kind::Path, whole)
    }

    /// Paths that begin like words do.
    fn without_paths(&mut self, text: &str) -> String {
        let (mut made, mut rest) = (String::new(), text);
        while let Some(at) = rest.find('/') {
            let (before, after) = rest.split_at(at);
            made.push_str(before);
            let end = after.find(is_delimiter).unwrap_or(after.len());
            let end = after[..end].find(':').unwrap_or(end);
            let (path, behind) = after.split_at(end);
            let begins = !made.chars().last().is_some_and(|c: char| c.is_alphanumeric() || "-_.~*%)}/".contains(c));
            if begins && is_telling(path) {
                made.push_str(&self.path(path))
            } else {
                made.push_str(path)
            }
            rest = behind;
        }
        made + rest
    }

    fn without_uuids(&mut self, text: &str) -> String {
        let (mut made, mut rest) = (String::new(), text);
        while let Some(at) = find_uuid(rest) {
            let (before, after) = rest.split_at(at);
            let (uuid, behind) = after.split_at(36);
            made.push_str(before);
            made.push_str(&self.replace(Kind::Uuid, uuid));
            rest = behind;
        }
        made + rest
    }

    /// Words that are known by their looks.
    fn without_words(&mut self, text: &str) -> String {
        let mut made = String::new();
        for piece in text.split_inclusive(is_delimiter) {
            let word = piece.trim_end_matches(|c| is_delimiter(c) || ".:!?".contains(c));
            let domains = self.known.iter().filter(|(name, _)| name.contains('.'));
            let lower = word.to_ascii_lowercase();
            let is_in_domain = domains.clone().any(|(name, _)| lower.ends_with(&format!(".{name}")));
            match if is_in_domain { Some(Kind::Name) } else { kinds::of_word(word) } {
                Some(Kind::Path) => made.push_str(&self.path(word)),
                Some(kind) => made.push_str(&self.replace(kind, word)),
                None => made.push_str(word),
            }
            made.push_str(&piece[word.len()..]);
        }
        made
    }

    /// Values of options, variables and settings, by their names.
    fn without_values(&mut self, text: &str) -> String {
        let (mut made, mut rest) = (String::new(), text);
        while !rest.is_empty() {
            let start = rest.find(|c| !is_delimiter(c)).unwrap_or(rest.len());
            made.push_str(&rest[..start]);
            rest = &rest[start..];
            let (word, behind) = rest.split_at(rest.find(is_delimiter).unwrap_or(rest.len()));
            let (gap, value) = value_of(word, behind);
            let kind = kinds::of_value(word.trim_end_matches(':')).filter(|_| !value.is_empty());
            made.push_str(&match kind {
                Some(kind) => format!("{word}{gap}{}", self.replace(kind, value)),
                None => self.without_glued(word),
            });
            rest = if kind.is_some() { &behind[gap.len() + value.len()..] } else { behind };
        }
        made
    }

    /// `-pSECRET`, and `-uNAME` of a name that is known.
    fn without_glued(&mut self, word: &str) -> String {
        if let Some(secret) = kinds::glued_secret(word) {
            return format!("-p{}", self.replace(Kind::Secret, secret));
        }
        let name = word.strip_prefix("-u").or(word.strip_prefix("-h")).map(str::to_ascii_lowercase);
        let new = name.and_then(|name| self.known.iter().find(|(known, _)| *known == name));
        new.map_or(word.to_string(), |(_, new)| format!("{}{new}", &word[..2]))
    }
}

/// Between a key and its value, and the value; the latter is empty where none follows.
fn value_of<'a>(key: &str, behind: &'a str) -> (&'a str, &'a str) {
    let gap = &behind[..behind.len() - behind.trim_start_matches([' ', '"', '\'', '=', ':']).len()];
    let value = &behind[gap.len()..];
    let is_assigned = key.ends_with(':') || gap.contains(['=', ':']);
    let is_option = (key.starts_with('-') || key.eq_ignore_ascii_case("bearer")) && !value.starts_with('-');
    let quote = gap.chars().last().filter(|c| "\"'".contains(*c));
    let ends = |c: char| quote.map_or(c.is_whitespace() || "\"'".contains(c), |quote| c == quote);
    if is_assigned || is_option && !gap.is_empty() {
        (gap, &value[..value.find(ends).unwrap_or(value.len())])
    } else {
        (gap, "")
    }
}

/// What ends a word.
fn is_delimiter(c: char) -> bool {
    c.is_whitespace() || "\"'`,;()[]{}|<>=&".contains(c)
}

/// In small letters.
fn is_name(name: &str) -> bool {
    name.len() >= SHORTEST && !USUAL.contains(&name)
}

/// Blocks of PEM; to the end where one has none.
fn without_private_keys(text: &str) -> String {
    let Some(start) = text.find("-----BEGIN ").filter(|_| text.contains("PRIVATE KEY")) else {
        return text.to_string();
    };
    let end = text[start..].find("-----END ").map(|end| start + end + "-----END ".len());
    let end = end.and_then(|end| Some(end + text[end..].find("-----")? + "-----".len())).unwrap_or(text.len());
    format!("{}secret-0{}", &text[..start], without_private_keys(&text[end..]))
}

/// A path that names more than a place that every Linux has.
fn is_telling(path: &str) -> bool {
    let is_common = path.len() < 2 || COMMON.iter().any(|common| path.starts_with(common));
    let device = path.strip_prefix("/dev/").filter(|name| !name.contains('/'));
    let is_device = device.is_some_and(|name| DEVICES.iter().any(|known| name.starts_with(known)));
    !(is_common || is_device) || OWN.iter().any(|own| path.starts_with(own))
}

fn find_uuid(text: &str) -> Option<usize> {
    let is_uuid = |piece: &str| kinds::is_uuid(piece);
    (0..text.len()).find(|at| text.get(*at..at + 36).is_some_and(is_uuid))
}

/// The word by itself, and no part of another.
fn find_word(text: &str, word: &str, from: usize) -> Option<usize> {
    let is_inside = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text[from..]
        .match_indices(word)
        .map(|(at, _)| from + at)
        .find(|at| !is_inside(text[..*at].chars().last()) && !is_inside(text[at + word.len()..].chars().next()))
}

/// `looked_at` is the text, or the same in small letters.
fn without_word(text: &str, looked_at: &str, word: &str, new: &str) -> String {
    let (mut made, mut from) = (String::new(), 0);
    while let Some(at) = find_word(looked_at, word, from) {
        made.push_str(&text[from..at]);
        made.push_str(new);
        from = at + word.len();
    }
    made + &text[from..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(anonymous: &mut Anonymous, text: &str) -> String {
        let line = json!({ "flag": { "flag": "x", "why": text } }).to_string();
        let found: Value = serde_json::from_str(&anonymous.lines(&line)[0]).expect("JSON");
        found["flag"]["why"].as_str().unwrap().to_string()
    }

    #[test]
    fn what_identifies_is_replaced_and_the_rest_stays() {
        let rows = [
            ("/srv/ann/src", "/path-1"),
            ("losetup --find /srv/ann/src/disk-1.img", "losetup --find /path-1/disk-1.img"),
            ("/srv/ann/src/more", "/path-1/more"),
            ("a folder /srv/a b", "a folder /path-2 b"),
            ("/srv/with blanks/x", "/path-3"),
            ("it is \"/srv/with blanks/x\"", "it is \"/path-3\""),
            ("mount -t ext4 /dev/loop0 /run/pickfs-1/target", "mount -t ext4 /dev/loop0 /run/pickfs-1/target"),
            ("/dev/disk/by-id/ata-Disk_S3Z9", "/path-4"),
            ("dir=/opt/x,rw", "dir=/path-5,rw"),
            ("sectors 512/4096 B, and/or, 1.60 GiB/s", "sectors 512/4096 B, and/or, 1.60 GiB/s"),
            ("UUID: 0b9e9c0d-9cb2-41c1-8da6-946b7f861bd9", "UUID: 00000000-0000-0000-0000-000000000001"),
            ("again 0b9e9c0d-9cb2-41c1-8da6-946b7f861bd9.", "again 00000000-0000-0000-0000-000000000001."),
            ("ann on whale-7, not anna", "name-2 on name-1, not anna"),
            ("ANN_x on WHALE-7", "name-2_x on name-1"),
            ("größer als /π/χ", "größer als /path-6"),
            ("subvol=/,rw", "subvol=/,rw"),
            ("/dev/whale-vg/home and /dev/mapper/home", "/path-7 and /path-8"),
            ("/dev/nvme0n1p2, /dev/pickfsab/lv", "/dev/nvme0n1p2, /dev/pickfsab/lv"),
            (">/opt/y /lib-x/y", ">/path-9 /path-10"),
            ("{dir}/a/b", "{dir}/a/b"),
        ];
        let mut anonymous = Anonymous::new(["ann", "whale-7", "root", "me"].map(String::from));
        for (old, wanted) in rows {
            assert_eq!(text(&mut anonymous, old), wanted, "{old}");
            assert_eq!(anonymous.left(wanted), [""; 0], "{wanted}");
        }
        assert_eq!(anonymous.counts(), [("path", 10), ("UUID", 1), ("name", 2)]);
        assert_eq!(anonymous.left("see /opt/x of ann"), ["/opt/x", "ann"]);
        assert_eq!(anonymous.doubts("blanks with a title, srv"), ["with blanks"; 0]);
        assert_eq!(anonymous.doubts("by-id of ata-Disk_S3Z9"), ["ata-Disk_S3Z9", "by-id"]);
    }

    #[test]
    fn secrets_addresses_and_labels_are_replaced() {
        let rows = [
            ("mysqldump -pS3cretPw -uann --host=db7", "mysqldump -psecret-1 -uname-1 --host=name-2"),
            ("--password hunter22 --quiet", "--password secret-2 --quiet"),
            ("{\"token\": \"a b c\", \"x\": 1}", "{\"token\": \"secret-3\", \"x\": 1}"),
            ("hunter22 again", "secret-2 again"),
            ("mkfs.ext4 -L anns-disk -q", "mkfs.ext4 -L label-1 -q"),
            ("ext4 -L anns-disk", "ext4 -L label-1"),
            ("curl https://x.example/y from 10.0.0.7.", "curl address-1 from address-2."),
            ("127.0.0.1 and ::1 and 0.0.0.0", "127.0.0.1 and ::1 and 0.0.0.0"),
            (concat!("of bob: /", "home/bob/x, bob"), "of name-3: /path-1, name-3"),
            ("db7.corp.example is in corp.example", "name-5 is in name-4"),
            ("a -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- b", "a secret-0 b"),
            ("AKIAVERYSECRET", "secret-4"),
            ("find . -print", "find . -print"),
            ("-p", "-p"),
            ("--password", "--password"),
        ];
        let mut anonymous = Anonymous::new(["ann".to_string()]);
        for (old, wanted) in rows {
            if old.starts_with("db7.") {
                anonymous.name("corp.example");
            }
            assert_eq!(text(&mut anonymous, old), wanted, "{old}");
            assert_eq!(anonymous.left(wanted), [""; 0], "{wanted}");
        }
    }

    #[test]
    fn commands_keep_their_options_and_the_environment_its_names() {
        let settings = json!({
            "command": ["psql", "--password", "pw", "-L", "my label", "--token=abc", "{dir}/x", "sh -c 'PASS=\"a b\" x'"],
            "environment": ["LANG=C.UTF-8", "LC_ALL=C", "DB=postgres", "EMPTY="],
        });
        let mut anonymous = Anonymous::default();
        let mut found = settings;
        anonymous.value("settings", &mut found);
        let command = ["psql", "--password", "secret-1", "-L", "label-1", "--token=secret-2", "{dir}/x"];
        let command: Vec<&str> = command.into_iter().chain(["sh -c 'PASS=\"secret-3\" x'"]).collect();
        assert_eq!(found["command"], json!(command));
        assert_eq!(found["environment"], json!(["LANG=C.UTF-8", "LC_ALL=C", "DB=secret-4", "EMPTY="]));
    }

    #[test]
    fn models_of_disks_stay_and_paths_of_backings_do_not() {
        let disk = json!({ "device": "sda", "model": "ST4000NM0035" });
        let hardware = json!({ "backings": [{ "backing": "device /dev/disk/by-id/ata-S3Z9", "device": disk }] });
        let line = json!({ "provenance": { "hardware": hardware } }).to_string();
        let found: Value = serde_json::from_str(&Anonymous::default().lines(&line)[0]).expect("JSON");
        let backing = &found["provenance"]["hardware"]["backings"][0];
        assert_eq!((&backing["backing"], &backing["device"]), (&json!("device /path-1"), &disk));
    }

    #[test]
    fn facts_are_kept_by_name_and_other_records_by_kind() {
        let program = format!("QEMU 7.2, pickfs {}", "01ab".repeat(16));
        let facts = json!({
            "kernel": "6.1", "image disk below": "sda, ST4000NM0035", "host name": "w (01ab)", "serial": "S3", "simulated by": program
        });
        let lines = [
            json!({ "provenance": { "cell": "00aa00bb00cc00dd", "facts": facts, "more": "x" } }).to_string(),
            json!({ "sample": { "cell": "00aa00bb00cc00dd", "phase": "p", "metric": "time_ns", "value": 1 } })
                .to_string(),
            json!({ "news": { "password": "x" } }).to_string(),
            "{\"step\":{\"scope\":\"run\",\"number\":1,\"says\":\"x\"}}".to_string(),
            "{\"undone\":{\"scope\":\"run\",\"number\":1}}".to_string(),
            "{\"end\":{\"cell\":\"a".to_string(),
            String::new(),
        ];
        let mut anonymous = Anonymous::default();
        let found: Vec<Value> =
            anonymous.lines(&lines.join("\n")).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(
            found[0]["provenance"]["facts"],
            json!({ "kernel": "6.1", "image disk below": "sda, ST4000NM0035", "simulated by": program })
        );
        assert_eq!(found[0]["provenance"]["cell"], found[1]["sample"]["cell"]);
        assert_eq!(found[1]["sample"]["cell"], "0000000000000001");
        assert_eq!(anonymous.left_out().collect::<Vec<_>>(), ["host name", "serial"]);
    }
}
