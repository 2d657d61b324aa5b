//! Readers of drivers' data: sizes, and names of mount options.

use pickfs_system::units::parse_size;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Linux's VFS takes no larger file of any file system: include/linux/fs.h, MAX_LFS_FILESIZE.
const VFS_FILE: u64 = i64::MAX as u64;

#[derive(Deserialize)]
#[serde(untagged)]
enum Size {
    Bytes(u64),
    Text(String),
}

/// Such as `"2MiB"`; `"vfs"` is what Linux allows at most, `"uncounted"` more than can be counted.
pub(super) fn size<'de, D: Deserializer<'de>>(data: D) -> Result<u64, D::Error> {
    match Size::deserialize(data)? {
        Size::Bytes(bytes) => Ok(bytes),
        Size::Text(text) if text == "vfs" => Ok(VFS_FILE),
        Size::Text(text) if text == "uncounted" => Ok(u64::MAX),
        Size::Text(text) => parse_size(&text).map_err(D::Error::custom),
    }
}

pub(super) fn some_size<'de, D: Deserializer<'de>>(data: D) -> Result<Option<u64>, D::Error> {
    size(data).map(Some)
}

/// The mount options that every file system takes, then those of a row of `mount_names.toml`.
pub(super) fn mount_names<'de, D: Deserializer<'de>>(data: D) -> Result<&'static [&'static str], D::Error> {
    static NAMES: LazyLock<BTreeMap<&str, Vec<&str>>> =
        LazyLock::new(|| toml::from_str(include_str!("mount_names.toml")).expect("a test reads them"));
    let name = String::deserialize(data)?;
    let own = NAMES.get(name.as_str()).ok_or_else(|| D::Error::custom(format!("no names of {name}")))?;
    Ok(NAMES["common"].iter().chain(own).copied().collect::<Vec<_>>().leak())
}

#[cfg(test)]
mod tests {
    use crate::stack::fs;

    /// Variants and our own defaults are no slips.
    #[test]
    fn what_drivers_mount_with_is_known() {
        for driver in fs::ALL.iter().filter(|driver| !driver.mounting.options.is_empty()) {
            let options = driver.variants.iter().flat_map(|variant| variant.mount).chain(&driver.mounting.no_discard);
            for option in options {
                let name = option.split('=').next().unwrap_or_default();
                assert!(driver.mounting.options.contains(&name), "{}: {option}", driver.name);
            }
        }
        assert!(fs::find("xfs").is_some_and(|xfs| xfs.mounting.options.contains(&"noatime")));
    }
}
