//! The profiles that come with pickfs, and those in files.

use crate::profile::Profile;
use anyhow::{Context, Result, bail};
use std::path::Path;

/// A profile by its name.
pub struct Builtin {
    pub name: &'static str,
    text: &'static str,
}

macro_rules! builtin {
    ($($name:literal),*) => { &[$(Builtin { name: $name, text: include_str!(concat!("builtin/", $name, ".toml")) }),*] };
}

/// Every profile, sorted by name.
pub const ALL: &[Builtin] = builtin![
    "boost-build", "developer", "ffmpeg-build", "home", "impressions", "mail", "photos", "site", "source-tree"
];

/// What a tree is like unless a plan says.
pub const USUAL: &str = "developer";

impl Builtin {
    pub fn profile(&self) -> Profile {
        Profile::parse(self.text).unwrap_or_else(|error| panic!("the profile {} came broken: {error:#}", self.name))
    }
}

pub(crate) fn usual() -> Profile {
    find(USUAL).map(Builtin::profile).unwrap_or_default()
}

fn find(name: &str) -> Option<&'static Builtin> {
    ALL.iter().find(|builtin| builtin.name == name)
}

/// The builtin profile of that name, or the one in that file.
pub fn profile(like: &str) -> Result<Profile> {
    if let Some(builtin) = find(like) {
        return Ok(builtin.profile());
    }
    let path = Path::new(like);
    if !path.is_file() {
        bail!("`{like}` is neither a profile that comes with pickfs nor a file");
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {like}"))?;
    Profile::parse(&text).with_context(|| format!("in {like}"))
}

/// The names of all.
pub fn names() -> String {
    ALL.iter().map(|builtin| builtin.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Shape, TreeLayout, digest, generate_like};

    /// XXH3 of each tree of about two hundred files, seed 1: the same on every machine and, within
    /// one version, for good.
    const GOLDEN: &[(&str, &str)] = &[
        ("boost-build", "2c007f80f4c5d11236ded81e364c64a7"),
        ("developer", "fbcd9b0fddb45289ac7f0bd4738a33e5"),
        ("ffmpeg-build", "c838b787fbb790f0e5b8b29d30017d73"),
        ("home", "8aa593d3a317956be5c0c2b610ed77b1"),
        ("impressions", "138e2089e958daa9d8bb0fa233184da3"),
        ("mail", "d2e2da64a49b80ecf6f29950dffccdb7"),
        ("photos", "64e5bcd96f12b298bc1a3ea79787b014"),
        ("site", "6931070720deea1e4518e26d583d80ac"),
        ("source-tree", "288a8a571710755086e3d5a7d7746b2a"),
    ];

    #[test]
    fn each_profile_makes_the_tree_that_it_made_before() {
        let made = ALL.iter().map(|builtin| {
            let (folder, profile) = (tempfile::tempdir().unwrap(), builtin.profile());
            let bytes = (4 << 20).min(profile.bytes() / profile.files() * 200);
            generate_like(folder.path(), &profile, &Shape { files: 200, bytes }, 1).unwrap();
            let found = digest(folder.path()).unwrap();
            assert_eq!(found.files, 200 + profile.names.hard_links * 200 / profile.files());
            (builtin.name, found.hash)
        });
        let made: Vec<(&str, String)> = made.collect();
        assert!(made.iter().map(|(name, hash)| (*name, hash.as_str())).eq(GOLDEN.iter().copied()), "{made:#?}");
    }

    /// What the sentence of a profile says is what it makes, also at other scales.
    #[test]
    fn profiles_are_sound_and_scale() {
        for builtin in ALL {
            let profile = builtin.profile();
            for scale in [1.0, 0.1, 0.003] {
                let shape = Shape::scaled(&profile, scale);
                let outline = TreeLayout::new(&profile, &shape, 7).unwrap();
                let (files, bytes) = outline.files().fold((0, 0), |(n, sum), file| (n + 1, sum + file.bytes));
                assert_eq!((files, bytes), (shape.files, shape.bytes), "{} at {scale}", builtin.name);
                let largest = outline.files().map(|file| file.bytes).max().unwrap();
                assert!(largest <= bytes / 2 || files < 100, "{} at {scale}: {largest} of {bytes}", builtin.name);
            }
            assert!(!profile.about.is_empty() && !profile.about.ends_with('.'), "{}", builtin.name);
            assert_eq!(Profile::parse(&profile.to_toml().unwrap()).unwrap(), profile, "{}", builtin.name);
        }
        assert!(ALL.is_sorted_by_key(|builtin| builtin.name));
    }

    #[test]
    fn a_profile_is_named_or_lies_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mine.toml");
        std::fs::write(&file, usual().to_toml().unwrap()).unwrap();
        assert_eq!(profile(file.to_str().unwrap()).unwrap(), usual());
        assert!(profile("develper").unwrap_err().to_string().contains("neither"));
        std::fs::write(&file, "schema = 7").unwrap();
        assert!(profile(file.to_str().unwrap()).is_err());
    }
}
