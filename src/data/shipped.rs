//! The profiles that come with pickfs, and those in files.

use super::profile::Profile;
use anyhow::{Context, Result, bail};
use std::path::Path;

/// A profile by its name.
pub struct Shipped {
    pub name: &'static str,
    text: &'static str,
}

macro_rules! shipped {
    ($($name:literal),*) => { &[$(Shipped { name: $name, text: include_str!(concat!("profiles/", $name, ".toml")) }),*] };
}

/// Every profile, sorted by name.
pub const ALL: &[Shipped] =
    shipped!["boost-build", "developer", "ffmpeg-build", "home", "impressions", "mail", "photos", "site", "source-tree"];

/// What a tree is like unless a plan says.
pub const USUAL: &str = "developer";

impl Shipped {
    pub fn profile(&self) -> Profile {
        Profile::parse(self.text).unwrap_or_else(|error| panic!("the profile {} came broken: {error:#}", self.name))
    }
}

pub fn usual() -> Profile {
    find(USUAL).map(Shipped::profile).unwrap_or_default()
}

fn find(name: &str) -> Option<&'static Shipped> {
    ALL.iter().find(|shipped| shipped.name == name)
}

/// The shipped profile of that name, or the one in that file.
pub fn profile(like: &str) -> Result<Profile> {
    if let Some(shipped) = find(like) {
        return Ok(shipped.profile());
    }
    let path = Path::new(like);
    if !path.is_file() {
        bail!("`{like}` is neither a profile that comes with pickfs nor a file");
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {like}"))?;
    Profile::parse(&text).with_context(|| format!("in {like}"))
}

/// The names of all, for who named none of them.
pub fn names() -> String {
    ALL.iter().map(|shipped| shipped.name).collect::<Vec<_>>().join(", ")
}
