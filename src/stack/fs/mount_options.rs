//! Mount options: what is asked for, and what the kernel shows of it.

use super::{Argv, FsSpec, MountOptions, argv};

pub(super) fn command(kind: &str, options: &[String], spec: &FsSpec) -> Argv {
    let mut words = argv(["mount", "-t", kind]);
    if !options.is_empty() {
        words.extend(["-o".to_string(), options.join(",")]);
    }
    words.extend([spec.device(), spec.mount_point()]);
    words
}

/// The spec's mount options, after a word against discards, unless the spec itself says something about them.
pub(super) fn with_discard(no_discard: Option<&str>, spec: &FsSpec) -> Vec<String> {
    let own = spec.mount.iter().any(|option| option.starts_with("discard") || option == "nodiscard");
    let quiet = no_discard.filter(|_| !spec.discard && !own);
    quiet.into_iter().map(String::from).chain(spec.mount.iter().cloned()).collect()
}

/// An option that the kernel shows with another value was not taken as asked. One that it does not show at all is
/// mostly its default, and no contradiction.
pub(super) fn mismatches(asked: &[String], shown: &MountOptions) -> Vec<String> {
    let contradicts = |option: &&String| {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match shown.get(name) {
            Some(Some(shown)) if !value.is_empty() => shown != value && !shown.starts_with(&format!("{value}:")),
            _ => negated(name, shown),
        }
    };
    let sentence = |option: &String| {
        let name = option.split('=').next().unwrap_or(option);
        let shown = shown.get(name).map_or("nothing of it".to_string(), |value| spelled(name, value.as_deref()));
        format!("asked for mount option {option}, the kernel shows {shown}")
    };
    asked.iter().filter(contradicts).map(sentence).collect()
}

/// `noatime` asked and `relatime` or `atime` shown, `nobarrier` asked and `barrier` shown.
fn negated(name: &str, shown: &MountOptions) -> bool {
    let opposite = name.strip_prefix("no").map_or(format!("no{name}"), String::from);
    shown.contains_key(&opposite) || (name == "noatime" && shown.contains_key("relatime"))
}

/// As in a list of options.
pub fn spelled(name: &str, value: Option<&str>) -> String {
    value.map_or(name.to_string(), |value| format!("{name}={value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was asked, what is shown, and whether that is wrong.
    type Case = (&'static str, &'static [(&'static str, Option<&'static str>)], bool);

    #[test]
    fn an_option_shown_with_another_value_is_a_mismatch() {
        let shown =
            |pairs: &[(&str, Option<&str>)]| pairs.iter().map(|(n, v)| (n.to_string(), v.map(String::from))).collect();
        let cases: [Case; 8] = [
            ("compress=zstd:99", &[("compress", Some("zstd:15"))], true),
            ("compress=zstd:1", &[("compress", Some("zstd:1"))], false),
            ("compress=zstd", &[("compress", Some("zstd:3"))], false),
            ("compress=zstd:1", &[("compress", Some("zstd:15"))], true),
            ("noatime", &[("noatime", None), ("rw", None)], false),
            ("noatime", &[("relatime", None)], true),
            ("data=ordered", &[("rw", None)], false),
            ("nobarrier", &[("barrier", None)], true),
        ];
        for (asked, found, wrong) in cases {
            assert_eq!(!mismatches(&[asked.to_string()], &shown(found)).is_empty(), wrong, "{asked} {found:?}");
        }
    }
}
