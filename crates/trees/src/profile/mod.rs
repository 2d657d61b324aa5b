//! What a tree is like: its shape, sizes and how its content compresses, without a name or a byte
//! of it.
//!
//! Scanned from a tree or written by hand, kept as TOML that is small enough to paste into an
//! issue, and what trees are generated from.

pub mod builtin;
pub(crate) mod kinds;

use crate::codec::Ratios;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// The form of the file; a later form gets another number.
pub(crate) const SCHEMA: u32 = 1;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub schema: u32,
    /// One sentence: what it was made from, or how.
    pub about: String,
    #[serde(default)]
    pub names: Names,
    /// Instead of levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directories: Option<Directories>,
    /// The root alone, then its subdirectories, then theirs.
    #[serde(default, rename = "level")]
    pub levels: Vec<Level>,
    #[serde(default, rename = "class")]
    pub classes: Vec<Class>,
}

/// Names and what shares them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Names {
    /// Quantiles of the bytes in a name, from the shortest to the longest, equally far apart.
    #[serde(default)]
    pub lengths: Vec<u32>,
    #[serde(default)]
    pub symlinks: u64,
    /// The mean number of bytes in a symbolic link.
    #[serde(default)]
    pub symlink_bytes: u64,
    /// Further names of files that were counted already.
    #[serde(default)]
    pub hard_links: u64,
}

/// The directories at one distance from the root; the last of 64 levels has all deeper ones too. A
/// pair is a number of entries and the number of directories that have it, ascending: exact up to
/// 16 entries, above that with the right sum. Directories that could not be read count as empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    pub subdirectories: Vec<(u64, u64)>,
    /// Regular files, each once.
    pub files: Vec<(u64, u64)>,
}

/// Directories by a model, for profiles that are written by hand: one after the other goes below
/// one that is there already, the likelier the more it has (subdirectories + 2), and files lie at
/// depths by Poisson's law, in directories that have f of them with a chance of 1/(f + 2.36)^2
/// (Agrawal, Arpaci-Dusseau and Arpaci-Dusseau, Impressions, 2009).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Directories {
    pub count: u64,
    /// Directories between the root and the deepest.
    pub deepest: u64,
    /// The mean depth of files, those in the root having 1.
    pub files: f64,
}

/// Files of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    pub kind: Kind,
    /// Regular files, each once.
    pub files: u64,
    /// The sum of their sizes.
    pub bytes: u64,
    /// Quantiles of the sizes in bytes, from the smallest to the largest, equally far apart: all
    /// sizes where there are few files, and otherwise with sizes between them spread evenly in
    /// their logarithm. A size that comes twice or more in a row is exact, and many files have it.
    #[serde(default)]
    pub sizes: Vec<u64>,
    /// Instead of the quantiles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lognormal: Option<Lognormal>,
    /// The largest sizes, which hold much of the bytes: falling, exact.
    #[serde(default)]
    pub largest: Vec<u64>,
    /// Share of the files that may be executed.
    #[serde(default)]
    pub executable: f64,
    /// Share of the files that repeat another: of n that hold the same, n - 1 do. Empty files are
    /// not counted.
    #[serde(default)]
    pub duplicates: f64,
    /// Share of the files that have holes, and what share of their bytes is in holes.
    #[serde(default)]
    pub sparse: f64,
    #[serde(default)]
    pub holes: f64,
    #[serde(default, rename = "content")]
    pub contents: Vec<Contents>,
}

/// Sizes whose logarithms are normal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lognormal {
    /// Bytes.
    pub median: f64,
    /// Standard deviation of the natural logarithm.
    pub deviation: f64,
}

/// How content compresses: one group of files of like sizes and like compressibility.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Contents {
    /// Sizes of the files in this group, in bytes, up to and with the second.
    pub sizes: (u64, u64),
    /// Share of the bytes of all files of these sizes that is like this.
    pub share: f64,
    /// Instead of ratios.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub like: Option<Stuff>,
    #[serde(skip_serializing_if = "Ratios::is_unsaid")]
    pub ratios: Ratios,
}

impl Default for Contents {
    /// All files, and what follows from their kind.
    fn default() -> Contents {
        Contents { sizes: (0, i64::MAX as u64), share: 1.0, like: None, ratios: Ratios::default() }
    }
}

/// What content may be called in place of ratios.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stuff {
    /// Programs as people write them.
    Source,
    /// Text of natural languages, and markup.
    Prose,
    /// JSON, CSV.
    Records,
    Log,
    /// Machine code.
    Object,
    /// What is compressed already.
    Media,
}

impl Stuff {
    fn name(self) -> &'static str {
        match self {
            Stuff::Source => "source",
            Stuff::Prose => "prose",
            Stuff::Records => "records",
            Stuff::Log => "log",
            Stuff::Object => "object",
            Stuff::Media => "media",
        }
    }
}

/// Kinds of files, by what they are for. They decide the endings of names and nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Programs as people write them.
    Source,
    /// Prose and markup: HTML, Markdown, manuals, XML.
    Document,
    /// JSON, CSV, YAML, logs.
    Data,
    /// Programs as machines run them: objects, libraries, executables.
    Object,
    Image,
    /// Sound and film.
    Media,
    /// What is compressed already: archives and packages.
    Archive,
    /// Databases, mailboxes, disk images.
    Store,
    #[default]
    Other,
}

impl Profile {
    /// Reads a profile; a complaint shows the line.
    pub fn parse(text: &str) -> Result<Profile> {
        let profile: Profile =
            toml::from_str(text).context("this is no profile of a tree; `pickfs scan DIR` makes one")?;
        ensure!(
            profile.schema == SCHEMA,
            "the profile has schema {}, and this pickfs knows {SCHEMA} only; scan the tree again",
            profile.schema
        );
        Ok(profile)
    }

    /// Lists on one line each, and one line for each group of content: short, and to be read by
    /// people.
    pub fn to_toml(&self) -> Result<String> {
        let tables = self.levels.iter().map(|level| table("level", level));
        let tables = tables.chain(self.classes.iter().map(Class::to_toml)).collect::<Result<String>>()?;
        let about = toml::Value::from(self.about.as_str());
        let names = toml::to_string(&self.names)?;
        let directories = self.directories.as_ref().map_or(Ok(String::new()), |model| inline("directories", model))?;
        Ok(format!("schema = {}\nabout = {about}\n{directories}\n[names]\n{names}{tables}", self.schema))
    }

    /// Regular files, each once.
    pub fn files(&self) -> u64 {
        self.classes.iter().map(|class| class.files).fold(0, u64::saturating_add)
    }

    /// The sum of their sizes.
    pub fn bytes(&self) -> u64 {
        self.classes.iter().map(|class| class.bytes).fold(0, u64::saturating_add)
    }
}

impl Class {
    fn to_toml(&self) -> Result<String> {
        let plain = Class { contents: Vec::new(), lognormal: None, ..self.clone() };
        let lognormal = self.lognormal.as_ref().map_or(Ok(String::new()), |sizes| inline("lognormal", sizes))?;
        let rows = self.contents.iter().map(Contents::to_toml).collect::<String>();
        let content = if rows.is_empty() { rows } else { format!("content = [\n{rows}]\n") };
        Ok(table("class", &plain)?.replace("content = []\n", "") + &lognormal + &content)
    }
}

impl Contents {
    fn to_toml(&self) -> String {
        let Contents { sizes: (from, to), share, like, ratios: Ratios { lzo, lz4, zlib, zstd1, zstd3 } } = self;
        let content = match like {
            Some(stuff) => format!("like = {}", toml::Value::from(stuff.name())),
            None => format!(
                "ratios = {{ lzo = {lzo:?}, lz4 = {lz4:?}, zlib = {zlib:?}, zstd1 = {zstd1:?}, zstd3 = {zstd3:?} }}"
            ),
        };
        format!("  {{ sizes = [{from}, {to}], share = {share:?}, {content} }},\n")
    }
}

/// A table on one line, which may stand before others.
fn inline(name: &str, table: &impl Serialize) -> Result<String> {
    let fields = toml::to_string(table)?;
    Ok(format!("{name} = {{ {} }}\n", fields.trim_end().replace('\n', ", ")))
}

fn table(name: &str, table: &impl Serialize) -> Result<String> {
    Ok(format!("\n[[{name}]]\n{}", toml::to_string(table)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> Profile {
        let ratios = Ratios { lzo: 1.0, lz4: 1e-7, zlib: 0.123, zstd1: 0.5, zstd3: 0.25 };
        let row = Contents { sizes: (0, 1 << 50), share: 1.0, like: None, ratios };
        let called = Contents { like: Some(Stuff::Records), ratios: Ratios::default(), ..row.clone() };
        let lognormal = Some(Lognormal { median: 4096.0, deviation: 1.5 });
        let class = Class { kind: Kind::Other, files: 3, bytes: 1 << 60, sizes: vec![0, 7], ..Class::default() };
        let level = Level { subdirectories: vec![(0, 4), (1, 2)], files: vec![] };
        Profile {
            schema: SCHEMA,
            about: "a \"quoted\"\nlevel = []\nclass = []\n".into(),
            names: Names { lengths: vec![1, 9], ..Names::default() },
            directories: Some(Directories { count: 7, deepest: 3, files: 2.5 }),
            levels: vec![level.clone(), level],
            classes: vec![Class { contents: vec![row, called], executable: 0.5, lognormal, ..class.clone() }, class],
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for profile in [profile(), Profile { schema: SCHEMA, ..Profile::default() }] {
            let text = profile.to_toml().unwrap();
            assert_eq!(Profile::parse(&text).unwrap(), profile, "{text}");
        }
        assert!(profile().to_toml().unwrap().contains("subdirectories = [[0, 4], [1, 2]]\n"));
    }

    #[test]
    fn what_is_no_profile_is_refused_with_a_remedy() {
        for (text, wanted) in
            [("", "pickfs scan DIR"), ("schema = 1\nabout = \"\"\nnames = { lengths = [], x = 1 }", "x")]
        {
            let said = format!("{:#}", Profile::parse(text).unwrap_err());
            assert!(said.contains(wanted), "{said}");
        }
        let text = Profile { schema: 99, ..Profile::default() }.to_toml().unwrap();
        assert!(Profile::parse(&text).unwrap_err().to_string().contains("99"));
    }
}
