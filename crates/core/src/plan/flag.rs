//! A flag of the command line, as a row says it.

use super::SettingKind;

/// A flag of the command line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flag {
    pub(super) name: &'static str,
    pub(super) takes: Takes,
    /// What help calls the value.
    pub(super) value: &'static str,
    pub(super) help: &'static str,
    pub(super) excludes: &'static [&'static str],
    pub(super) needs: &'static [&'static str],
    /// For a run that is resumed, too.
    pub(super) may_change: bool,
    /// The keys that it gives, with points in its path; empty for a flag in the row of its key.
    pub(super) keys: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    Text,
    Number,
    /// Several, with commas between them.
    Texts,
    Path,
    /// Several, each behind its own flag.
    Paths,
    /// What looks like a path is one.
    NameOrPath,
    NamesOrPaths,
}

/// A flag in the row of a key, which has the rest; without `help`, what is said of the key is said
/// of the flag.
pub(super) const fn given(value: &'static str, help: &'static str) -> Flag {
    Flag { name: "", takes: Takes::Text, value, help, excludes: &[], needs: &[], may_change: false, keys: &[] }
}

impl Takes {
    pub(super) fn of(kind: SettingKind) -> Takes {
        match kind {
            SettingKind::Count | SettingKind::Within(..) | SettingKind::Number => Takes::Number,
            SettingKind::Texts => Takes::Texts,
            _ => Takes::Text,
        }
    }

    pub(super) fn is_path(self, value: &str) -> bool {
        match self {
            Takes::Path | Takes::Paths => true,
            Takes::NameOrPath | Takes::NamesOrPaths => looks_like_path(value),
            _ => false,
        }
    }
}

/// A name has no slash, and none of the endings of our files; what has several lines is the text of
/// a recipe.
pub(super) fn looks_like_path(text: &str) -> bool {
    let is_file = || [".toml", ".pktrace"].iter().any(|ending| text.ends_with(ending));
    !text.contains('\n') && (text.contains('/') || is_file())
}
