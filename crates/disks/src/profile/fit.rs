//! A model's file from what was measured, with ranges and with what was not.

use super::super::parameters::{Disk, Kind, significant};
use super::figures::{Round, pooled};
use super::{flash, hard_disk};
use anyhow::{Context, Result};
use std::fmt::Write as _;

/// A model with its file.
#[derive(Clone, Debug)]
pub struct FittedModel {
    pub disk: Disk,
    pub toml: String,
    /// Names of parameters, in the order of the file.
    pub measured: Vec<&'static str>,
    pub assumed: Vec<String>,
}

/// About the disk, for the model's file.
pub struct About<'a> {
    /// One line: maker and product.
    pub name: &'a str,
    /// A day, for the sources.
    pub date: &'a str,
    pub sectors: u64,
    pub depth: usize,
}

/// The model of its kind with every parameter that was measured. Ranges are those of the rounds,
/// each fitted by itself.
pub fn fitted(rounds: &[Round], base: &Disk, base_name: &str, about: &About) -> Result<FittedModel> {
    let base = base.with("capacity_gb", about.sectors as f64 * 512.0 / 1e9)?;
    let base = base.with("depth", about.depth as f64)?;
    let of = |round: &Round| match base.kind {
        Kind::HardDisk => hard_disk::parameters(round, &base),
        _ => flash::parameters(round, &base),
    };
    let found = of(&pooled(rounds))?;
    let each = rounds.iter().map(of).collect::<Result<Vec<_>>>()?;
    let mut disk = base.clone();
    for parameter in &found {
        disk = disk.with(parameter.name, parameter.value)?;
        if !parameter.pairs.is_empty() {
            disk = disk.with_pairs(parameter.name, &parameter.pairs)?;
        }
    }
    let mut text = format!("about = {}\n", quoted(about.name));
    writeln!(text, "kind = \"{}\"\n\n[parameters]", if base.kind == Kind::HardDisk { "hard-disk" } else { "flash" })?;
    let mut assumed = Vec::new();
    for name in disk.parameters.keys() {
        let sourced = disk.sourced(name)?;
        let source = match found.iter().find(|parameter| parameter.name == name) {
            Some(of_all) => {
                let all = each.iter().flatten().filter(|parameter| parameter.name == name).map(|one| one.value);
                let (low, high) =
                    all.fold((f64::INFINITY, 0.0_f64), |range, value| (range.0.min(value), range.1.max(value)));
                let is_one = of_all.pairs.is_empty();
                format!(
                    "measured on {}; {} by themselves: {} to {}{}",
                    about.date,
                    if is_one { "rounds" } else { "medians of rounds" },
                    significant(low, 4),
                    significant(high, 4),
                    if is_one { "" } else { "; assumed: they do not depend on each other" }
                )
            }
            None if name == "capacity_gb" || name == "depth" => "as the system reports it".to_string(),
            None => {
                assumed.push(name.clone());
                format!("not measured, as in {base_name}: {}", sourced.source)
            }
        };
        let is = sourced.is.as_str().map_or_else(|| sourced.is.to_string(), quoted);
        writeln!(text, "{name} = {{ is = {is}, source = {} }}", quoted(&source))?;
    }
    let disk = Disk::parse(&text).context("what was measured makes no model")?;
    Ok(FittedModel { disk, toml: text, measured: found.iter().map(|parameter| parameter.name).collect(), assumed })
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}
