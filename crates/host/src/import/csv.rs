//! A plain table of whatever was measured: `round,target,phase,value,unit`, a value a line. The
//! rounds are the user's word.

use super::phoronix::conversion;
use super::{Contents, Figures, Importer, Measure, positive};
use anyhow::{Result, ensure};

pub(crate) struct Csv;

const HEAD: &str = "round,target,phase,value,unit";
const WORK: &str = "csv";
/// Most lines to name of the unreadable ones.
const MOST_LINES: usize = 5;

impl Importer for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn about(&self) -> &'static str {
        "a table `round,target,phase,value,unit`"
    }

    fn recognises(&self, text: &str) -> bool {
        text.trim_start_matches('\u{feff}').lines().next().is_some_and(|line| line.trim() == HEAD)
    }

    fn read(&self, text: &str) -> Result<Contents> {
        ensure!(self.recognises(text), "its first line is not `{HEAD}`");
        let (mut figures, mut wrong) = (Figures::default(), Vec::new());
        for (number, line) in (2..).zip(text.lines().skip(1)).filter(|(_, line)| !line.trim().is_empty()) {
            match measures(line) {
                Ok((found, is_rate)) => {
                    found.into_iter().for_each(|measure| figures.add(measure));
                    if is_rate {
                        figures.time_of("one GiB, or of a thousand of what a rate counts");
                    }
                }
                Err(why) => wrong.push(format!("line {number} {why}")),
            }
        }
        let more = wrong.len().saturating_sub(MOST_LINES);
        wrong.truncate(MOST_LINES);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        ensure!(wrong.is_empty(), "{}{more}", wrong.join("; "));
        Ok(Contents::Figures(figures))
    }
}

/// With whether the value is a rate.
fn measures(line: &str) -> Result<(Vec<Measure>, bool), String> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [round, target, phase, value, unit] = fields[..] else {
        return Err(format!("has {} fields and not 5; names with commas are not read", fields.len()));
    };
    let round = round.parse().ok().filter(|round| (1..=1000).contains(round));
    let round = round.ok_or("has no round from 1 to 1000")?;
    let value = positive(value).ok_or("has no value above 0")?;
    let convert = conversion(unit, "HIB").ok_or_else(|| {
        format!("has the unit {unit:?}; write s, ms, us, ns, MB/s, MiB/s, GiB/s, IOPS or any rate as N/s")
    })?;
    if target.is_empty() || phase.is_empty() {
        return Err("names no target or no phase".to_string());
    }
    let found = convert(value);
    let is_rate = found.len() > 1;
    let measure = |(metric, value): (&str, f64)| Measure {
        target: Some(target.to_string()),
        work: WORK.to_string(),
        phase: phase.to_string(),
        metric: metric.to_string(),
        round: Some(round),
        value,
    };
    Ok((found.into_iter().map(measure).collect(), is_rate))
}
