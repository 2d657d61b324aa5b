//! Readers of the data of plug-ins: what is read lasts as long as the program.

pub(crate) use pickfs_core::plan::leaked as list;
use serde::{Deserialize, Deserializer};

/// Programs by the name of the fact that they print. [`super::fs::FsSpec`] says what stands for a
/// cell's device and the like.
pub(crate) type Programs = &'static [(&'static str, &'static [&'static str])];

/// Commands.
pub(crate) fn commands<'de: 'static, D: Deserializer<'de>>(
    data: D,
) -> Result<&'static [&'static [&'static str]], D::Error> {
    let commands: Vec<Vec<&'static str>> = Vec::deserialize(data)?;
    Ok(commands.into_iter().map(|words| &*words.leak()).collect::<Vec<_>>().leak())
}

/// Commands with names.
pub(crate) fn programs<'de: 'static, D: Deserializer<'de>>(data: D) -> Result<Programs, D::Error> {
    let programs: Vec<(&'static str, Vec<&'static str>)> = Vec::deserialize(data)?;
    Ok(programs.into_iter().map(|(name, words)| (name, &*words.leak())).collect::<Vec<_>>().leak())
}
