//! One file system as `--fs` names it.

use super::Catalogue;
use super::complaint::{Complaints, Place, Problem, nearest, quoted};
use super::written::{list, table, text};
use toml::Table;

/// One element of `--fs`.
pub(super) struct FsSpec {
    fs: String,
    variant: Option<String>,
    mount: Vec<String>,
}

impl FsSpec {
    /// `btrfs:zstd:1+noatime`, or as reports name it: `btrfs zstd:1 noatime`.
    pub(crate) fn parse(text: &str, catalogue: &Catalogue, complaints: &Complaints) -> Option<FsSpec> {
        let (name, options) =
            text.trim().split_once([':', ' ']).map_or((text, None), |(name, options)| (name, Some(options.trim())));
        let place = Place::default().below("target", None);
        let spec = FsSpec { fs: name.trim().into(), variant: None, mount: Vec::new() };
        if spec.fs.is_empty() {
            let problem = Problem::Of(format!("has an element without a name: {}", quoted(text)));
            return complaints.refuse(&place, problem, "write names with commas between them: --fs ext4,xfs");
        }
        let Some(options) = options else { return Some(spec) };
        let driver = catalogue.filesystems.iter().find(|entry| entry.name == spec.fs);
        let variants = driver.map(|entry| entry.variants.as_slice()).unwrap_or_default();
        // What looks like options of mkfs is kept whole, to be refused whole.
        let ends: &[char] = if options.starts_with('-') { &['+'] } else { &['+', ' '] };
        let words: Vec<&str> = options.split(ends).map(str::trim).collect();
        let (variant, mount) = match words.split_first() {
            Some((first, rest)) if variants.contains(first) => (Some(first.to_string()), rest),
            _ => (None, words.as_slice()),
        };
        // A colon before any `=` is how variants are written, `zstd:9`, and no mount option is; nor
        // is what such a variant begins with.
        let is_variant = |option: &str| {
            !levels_of(option, variants).is_empty() || option.split('=').next().is_some_and(|key| key.contains(':'))
        };
        let problem = match mount.iter().find(|option| option.is_empty() || is_variant(option)) {
            None => {
                let mount = mount.iter().map(|option| option.to_string()).collect();
                return Some(FsSpec { variant, mount, ..spec });
            }
            Some(&"") => Problem::Of(format!("has an empty option in {}", quoted(text))),
            Some(wrong) => {
                format!("{} in {} is neither a variant nor a mount option", quoted(wrong), quoted(text)).into()
            }
        };
        complaints.refuse(&place, problem, variant_remedy(options, variants))
    }

    /// As a target is named by default.
    pub(crate) fn name(&self) -> String {
        let words: Vec<&str> = [&self.fs].into_iter().chain(&self.variant).chain(&self.mount).map(|w| &**w).collect();
        words.join(" ")
    }

    pub(crate) fn target(&self) -> Table {
        let variant = text(self.variant.as_deref());
        table([("fs", text(Some(&self.fs))), ("variant", variant), ("mount", list(&self.mount))])
    }
}

/// Of `zstd` and of `zstd:9`: `zstd:1` and `zstd:3`.
fn levels_of<'a>(word: &str, variants: &[&'a str]) -> Vec<&'a str> {
    let before_colon = |text: &str| text.split(':').next().unwrap_or_default().to_string();
    let has_level = |variant: &&&str| variant.contains(':') && before_colon(variant) == before_colon(word);
    variants.iter().filter(has_level).copied().collect()
}

fn variant_remedy(options: &str, variants: &[&'static str]) -> String {
    let example = "write mount options with `+` between them: btrfs:zstd:1+noatime";
    if options.split(['+', ' ']).skip(1).any(|word| variants.contains(&word)) {
        return "write the variant before the mount options: btrfs:zstd:1+noatime".into();
    }
    let levels: Vec<String> = levels_of(options, variants).into_iter().map(quoted).collect();
    match nearest(options, variants.iter().copied()) {
        _ if !levels.is_empty() => format!("did you mean {}?", levels.join(" or ")),
        Some(near) => format!("did you mean `{near}`?"),
        None if variants.is_empty() => example.into(),
        None => format!("use a variant ({}), or {example}", variants.join(", ")),
    }
}
