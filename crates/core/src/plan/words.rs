//! Words of a plan for mkfs and mount. Both run as root and past all that guards a disk, so no word
//! may lead to a device, a file or a program but the target's own.
//!
//! They are started in a folder of the run that holds no file. A word without a slash names nothing
//! there, whatever links are made meanwhile, so its text is enough to judge it.

use super::Target;
use super::complaint::quoted;
use super::setting::leaked;
use serde::Deserialize;

/// What a driver says of the words of its mkfs.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub struct MkfsOptions {
    /// The word after one of them is a folder that is read.
    #[serde(deserialize_with = "leaked")]
    pub folders: &'static [&'static str],
    /// Options that run programs.
    #[serde(deserialize_with = "leaked")]
    pub programs: &'static [&'static str],
}

/// Names in front of `=` whose value is a device. An option's letter may be glued to them.
const DEVICES: [&str; 4] = ["dev", "device", "journal_path", "loop"];

/// What is wrong with a word for mkfs that comes after another one.
pub(crate) fn wrong_for_mkfs(before: Option<&str>, word: &str, known: MkfsOptions) -> Option<String> {
    let is_option = |word: &str| word.starts_with('-');
    if before.is_some_and(|before| known.folders.contains(&before)) && word.starts_with('/') {
        return None;
    }
    let name = quoted(word);
    if word.bytes().all(|byte| byte == b'-') {
        return Some(format!("{name} ends the options, and what follows names a device"));
    }
    if known.programs.contains(&word) {
        return Some(format!("the option {name} runs programs"));
    }
    if !is_option(word) && !before.is_some_and(is_option) {
        return Some(format!("{name} is neither an option nor the value of one, so mkfs takes it for a device"));
    }
    wrong_for_mount(word)
}

/// What is wrong with a mount option; of mkfs, with the text of a single word.
pub(crate) fn wrong_for_mount(word: &str) -> Option<String> {
    let named = |text: &str| DEVICES.iter().any(|name| text.ends_with(name));
    let before_values = || word.match_indices('=').map(|(at, _)| &word[..at]);
    let name = quoted(word);
    if before_values().any(named) {
        return Some(format!("the option {name} names a device"));
    }
    // UUID=, LABEL=, PARTUUID= and all others by which libblkid finds a device.
    if before_values().any(|text| text.ends_with(|c: char| c.is_ascii_uppercase())) {
        return Some(format!("the option {name} names a device by what is on it"));
    }
    word.contains('/').then(|| format!("the option {name} names a path"))
}

impl Target {
    /// Everything that is wrong with its words.
    pub fn wrong_words(&self, known: MkfsOptions) -> Vec<String> {
        let before = [None].into_iter().chain(self.mkfs.iter().map(|word| Some(word.as_str())));
        let mkfs = before.zip(&self.mkfs).filter_map(|(before, word)| wrong_for_mkfs(before, word, known));
        mkfs.chain(self.mount.iter().filter_map(|word| wrong_for_mount(word))).collect()
    }

    /// Folders that its mkfs reads.
    pub fn folders_of_mkfs(&self, known: MkfsOptions) -> impl Iterator<Item = &str> {
        let pairs = self.mkfs.windows(2).filter(move |pair| known.folders.contains(&pair[0].as_str()));
        pairs.map(|pair| pair[1].as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::complained;
    use super::*;

    const KNOWN: MkfsOptions = MkfsOptions { folders: &["-d", "--rootdir"], programs: &["-pf"] };

    /// Words for mkfs, and what is said of the first that is wrong.
    const MKFS: &[(&str, &str)] = &[
        ("-m 0 -O ^has_journal", ""),
        ("-E stride=4,stripe_width=8 -q", ""),
        ("-o ashift=12 --compression=zstd:3 -n64k", ""),
        ("-d /srv/tree", ""),
        ("--rootdir /srv/tree -L x", ""),
        ("/tmp/link", "neither"),
        ("link", "neither"),
        ("./link", "neither"),
        ("-q link link", "neither"),
        ("--", "ends the options"),
        ("-", "ends the options"),
        ("-q /tmp/link", "a path"),
        ("-b ../link", "a path"),
        ("-d ./link", "a path"),
        ("-d/etc/shadow", "a path"),
        ("--rootdir=/etc", "a path"),
        ("-L /srv/tree", "a path"),
        ("-c options=/etc/x", "a path"),
        ("-J device=link", "names a device"),
        ("-Jdevice=link", "names a device"),
        ("-J size=4,device=link", "names a device"),
        ("-J device=UUID=0-1", "names a device"),
        ("-j UUID=0-1", "by what is on it"),
        ("-jLABEL=x", "by what is on it"),
        ("-j PARTUUID=x", "by what is on it"),
        ("-l logdev=link,size=64m", "names a device"),
        ("-r rtdev=link", "names a device"),
        ("-d name=/dev/sda", "a path"),
        ("-pf list", "runs programs"),
    ];

    /// Mount options alike.
    const MOUNT: &[(&str, &str)] = &[
        ("noatime", ""),
        ("compress=zstd:1", ""),
        ("nodev", ""),
        ("devices=off", ""),
        ("device=link", "names a device"),
        ("logdev=link", "names a device"),
        ("rtdev=link", "names a device"),
        ("jdev=link", "names a device"),
        ("journal_path=link", "names a device"),
        ("journal_dev=0x801", "names a device"),
        ("loop=loop3", "names a device"),
        ("noatime,device=link", "names a device"),
        ("mountpoint=/etc", "a path"),
        ("X-mount.subdir=../etc", "a path"),
    ];

    #[rustfmt::skip]
    #[test]
    fn each_wrong_word_is_shown_in_its_place() {
        complained(&[
            ("BW", "[[target]]\nfs = 'ext4'\nmkfs = ['-d', '/a', 'b', '-d/c']", &[(3, "`b` is neither"), (3, "`-d/c` names a path")]),
            ("BW", "[[target]]\nfs = 'ext4'\nmkfs = ['-d']\n[matrix]\nmkfs = ['/a', '']\nmount = ['device=a']", &[(6, "names a device")]),
            ("BW", "[[target]]\nfs = 'xfs'\n[[target]]\nfs = 'ext4'\n[matrix]\nmkfs = ['b']", &[(6, "is neither")]),
            ("BW", "[[target]]\nfs = 'xfs'\nmkfs = ['-m 0']\nmount = ['-m 0']", &[(3, "mkfs = [\"-m\", \"0\"]"), (4, "mkfs = [\"-m\", \"0\"]")]),
            ("BW", "[[target]]\nfs = 'xfs'\nmount = ['noatme', 'uquot=1', 'ro noatime']\n[matrix]\nmount = ['relatme']", &[(3, "did you mean `noatime`"), (3, "`uquota=1`"), (3, "has a space"), (5, "`relatime`")]),
            ("BW", "[[target]]\nfs = 'ext4'\n[[target]]\nfs = 'xfs'\nmount = ['newoption', 'noatme']", &[(5, "`noatme`")]),
        ]);
    }

    #[test]
    fn no_word_leads_to_a_device_or_a_file() {
        let target = |mkfs: &str, mount: &str| {
            let words = |text: &str| text.split_whitespace().map(String::from).collect();
            Target { mkfs: words(mkfs), mount: words(mount), ..Target::default() }
        };
        let mkfs = MKFS.iter().map(|(words, says)| (target(words, ""), *says));
        for (target, says) in mkfs.chain(MOUNT.iter().map(|(words, says)| (target("", words), *says))) {
            let wrong = target.wrong_words(KNOWN);
            let is_as_told = if says.is_empty() { wrong.is_empty() } else { wrong.concat().contains(says) };
            assert!(is_as_told, "{:?} {:?}: {wrong:?}", target.mkfs, target.mount);
        }
        assert!(target("-d /srv", "").folders_of_mkfs(KNOWN).eq(["/srv"]));
        assert_eq!(target("-d /srv", "").wrong_words(MkfsOptions::default()).len(), 1);
    }
}
