//! A journal without what tells who measured where: paths, UUIDs, names of the machine and its user. Figures, file systems and hardware
//! stay, as they are what is shared. Steps are left out: they are for undoing, on one machine.

use serde_json::Value;
use std::collections::BTreeMap;

/// Paths of every Linux, and of runs.
const COMMON: [&str; 10] =
    ["/dev/shm/pickfs-", "/run/pickfs-", "/dev/", "/proc/", "/sys/", "/usr/", "/bin/", "/sbin/", "/lib", "/path-"];
/// Below the common ones, and yet a serial number or a name that a user has given.
const TELLING: [&str; 3] = ["/dev/disk/", "/dev/mapper/", "/usr/local/"];
/// Names that every machine has.
const USUAL: [&str; 8] = ["root", "nobody", "localhost", "debian", "ubuntu", "fedora", "user", "linux"];
/// Shorter ones stand everywhere.
const SHORTEST: usize = 3;
/// Groups of a UUID, in hexadecimal digits.
const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];

/// What was replaced, so that the same is the same everywhere.
#[derive(Default)]
pub struct Anonymous {
    names: Vec<String>,
    paths: BTreeMap<String, String>,
    uuids: BTreeMap<String, String>,
}

impl Anonymous {
    /// `names` are those of the machine, its user, and the user's home.
    pub fn new(names: impl IntoIterator<Item = String>) -> Anonymous {
        let is_telling = |name: &String| name.len() >= SHORTEST && !USUAL.contains(&name.as_str());
        let mut names: Vec<String> = names.into_iter().filter(is_telling).collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        names.dedup();
        Anonymous { names, ..Anonymous::default() }
    }

    /// A line of a journal; none for what is left out, and for a line that is torn.
    pub fn line(&mut self, line: &str) -> Option<String> {
        let mut record: Value = serde_json::from_str(line).ok()?;
        let is_step = ["step", "undone"].iter().any(|kind| record.get(kind).is_some());
        (!is_step).then(|| {
            self.value(&mut record);
            record.to_string()
        })
    }

    /// Paths, UUIDs and names that were replaced.
    pub fn counts(&self) -> [usize; 3] {
        [self.paths.len(), self.uuids.len(), self.names.len()]
    }

    /// What must not be in it any more and is.
    pub fn left<'a>(&'a self, text: &str) -> Vec<&'a str> {
        let replaced = self.paths.keys().chain(self.uuids.keys()).filter(|old| text.contains(old.as_str()));
        let names = self.names.iter().filter(|name| find_word(text, name, 0).is_some());
        replaced.chain(names).map(String::as_str).collect()
    }

    /// Parts of replaced paths that also stand elsewhere: titles and names of targets are the user's own words.
    pub fn doubts<'a>(&'a self, text: &str) -> Vec<&'a str> {
        let parts = self.paths.keys().flat_map(|path| path.split('/')).filter(|part| part.len() > SHORTEST);
        let mut found: Vec<&str> = parts.filter(|part| find_word(text, part, 0).is_some()).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    fn value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(list) => list.iter_mut().for_each(|value| self.value(value)),
            Value::Object(map) => map.values_mut().for_each(|value| self.value(value)),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) -> String {
        let mut known: Vec<(&String, &String)> = self.paths.iter().collect();
        known.sort_by_key(|(old, _)| std::cmp::Reverse(old.len()));
        let text = known.into_iter().fold(text.to_string(), |text, (old, new)| text.replace(old, new));
        // A whole one may have blanks in it.
        let is_path = text.starts_with('/') && !text.contains(" /") && is_telling(&text);
        let text = if is_path { self.path(&text) } else { text };
        let text = self.without_paths(&text);
        let text = self.without_uuids(&text);
        self.names
            .iter()
            .enumerate()
            .fold(text, |text, (at, name)| without_word(&text, name, &format!("name-{}", at + 1)))
    }

    fn path(&mut self, path: &str) -> String {
        let next = format!("/path-{}", self.paths.len() + 1);
        self.paths.entry(path.trim_end_matches('/').to_string()).or_insert(next).clone()
    }

    /// Those that begin like words do.
    fn without_paths(&mut self, text: &str) -> String {
        let (mut made, mut rest) = (String::new(), text);
        while let Some(at) = rest.find('/') {
            let (before, after) = rest.split_at(at);
            made.push_str(before);
            let end = after.find(|c: char| c.is_whitespace() || "\"'`,;:()[]{}|=".contains(c)).unwrap_or(after.len());
            let (path, behind) = after.split_at(end);
            let begins = made.chars().last().is_none_or(|c| c.is_whitespace() || "\"'`,;:([{|=".contains(c));
            match begins && is_telling(path) {
                true => made.push_str(&self.path(path)),
                false => made.push_str(path),
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
            let next = format!("00000000-0000-0000-0000-{:012}", self.uuids.len() + 1);
            made.push_str(before);
            made.push_str(self.uuids.entry(uuid.to_string()).or_insert(next));
            rest = behind;
        }
        made + rest
    }
}

/// A path that names more than a place that every Linux has.
fn is_telling(path: &str) -> bool {
    let is_common = path.len() < 2 || COMMON.iter().any(|common| path.starts_with(common));
    !is_common || TELLING.iter().any(|telling| path.starts_with(telling))
}

fn find_uuid(text: &str) -> Option<usize> {
    let is_uuid = |piece: &str| {
        let groups: Vec<&str> = piece.split('-').collect();
        let is_hex = |group: &&str| group.bytes().all(|byte| byte.is_ascii_hexdigit());
        groups.iter().map(|group| group.len()).eq(GROUPS)
            && groups.iter().all(is_hex)
            && !piece.starts_with("00000000-0000-")
    };
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

fn without_word(text: &str, word: &str, new: &str) -> String {
    let (mut made, mut from) = (String::new(), 0);
    while let Some(at) = find_word(text, word, from) {
        made.push_str(&text[from..at]);
        made.push_str(new);
        from = at + word.len();
    }
    made + &text[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_is_replaced_and_the_rest_stays() {
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
            ("größer als /π/χ", "größer als /path-6"),
            ("subvol=/,rw", "subvol=/,rw"),
        ];
        let mut anonymous = Anonymous::new(["ann", "whale-7", "root", "me"].map(String::from));
        for (text, wanted) in rows {
            let record = serde_json::json!({ "flag": { "why": text } }).to_string();
            let line = anonymous.line(&record).expect("it stays");
            let found: Value = serde_json::from_str(&line).expect("JSON");
            assert_eq!(found["flag"]["why"], wanted, "{text}");
            assert_eq!(anonymous.left(wanted), [""; 0], "{wanted}");
        }
        assert_eq!(anonymous.counts(), [6, 1, 2]);
        assert_eq!(anonymous.left("see /opt/x of ann"), ["/opt/x", "ann"]);
        assert_eq!(anonymous.doubts("blanks with a title, srv"), ["with blanks"; 0]);
        assert_eq!(anonymous.doubts("by-id of ata-Disk_S3Z9"), ["ata-Disk_S3Z9", "by-id"]);
    }

    #[test]
    fn steps_and_torn_lines_are_left_out() {
        let mut anonymous = Anonymous::new([]);
        for line in ["{\"step\":{\"does\":\"x\"}}", "{\"undone\":{\"number\":1}}", "{\"end\":{\"cell\":\"a", ""] {
            assert_eq!(anonymous.line(line), None, "{line}");
        }
    }
}
