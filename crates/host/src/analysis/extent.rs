//! How much there is to judge: journals come from strangers, and pairs grow with the square of the
//! targets.

use pickfs_core::journal::Folded;
use pickfs_core::plan::Plan;
use std::collections::{HashMap, HashSet};

/// Pairs of targets in all phases of all works; 100 targets with 400 phases have as many. Seconds
/// of judging.
const MOST_PAIRS: usize = 2_000_000;

/// What no run has, of a journal that is damaged or meant to take all the memory and time that
/// there is.
pub fn implausible(folded: &Folded, plan: &Plan) -> Option<String> {
    plan.bad_statistics_setting().or_else(|| excess(folded, plan))
}

fn excess(folded: &Folded, plan: &Plan) -> Option<String> {
    let mut targets: HashSet<&str> = plan.targets.iter().map(|target| target.name.as_str()).collect();
    let mut works: HashMap<&str, usize> = plan.works.iter().map(|work| (work.name.as_str(), 0)).collect();
    let mut phases = HashSet::new();
    for cell in folded.cells.iter().filter(|cell| !cell.target.is_empty()) {
        targets.insert(&cell.target);
        let number = works.len();
        let work = *works.entry(&cell.work).or_insert(number);
        phases.extend(folded.series(cell).iter().map(|sample| (work, sample.phase)));
    }
    let series = phases.len() + works.len();
    let pairs = targets.len().saturating_mul(targets.len()).saturating_mul(series) / 2;
    let words = || format!("{} targets, {} works and {} phases", targets.len(), works.len(), phases.len());
    (pairs > MOST_PAIRS).then(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::model;
    use pickfs_core::journal::fold;

    /// One round of all targets and works; each cell has that number of phases.
    fn journal([targets, works, phases]: [usize; 3]) -> Folded {
        let mut lines = vec![r#"{"run":{"plan":{"works":[{"name":"w0"}],"targets":[{"name":"t0"}]}}}"#.to_string()];
        for (target, work) in (0..targets).flat_map(|target| (0..works).map(move |work| (target, work))) {
            let cell = format!("{target}.{work}");
            lines.push(format!(r#"{{"begin":{{"cell":"{cell}","round":1,"target":"t{target}","work":"w{work}"}}}}"#));
            lines.extend((0..phases).map(|phase| {
                format!(r#"{{"sample":{{"cell":"{cell}","phase":"p{phase}","metric":"time_ns","value":1}}}}"#)
            }));
            lines.push(format!(r#"{{"end":{{"cell":"{cell}","outcome":"done"}}}}"#));
        }
        fold(lines.join("\n").as_bytes()).unwrap()
    }

    #[test]
    fn a_journal_with_more_pairs_than_any_run_is_refused() {
        for (extent, is_judged) in [
            ([1, 1, 1], true),
            ([10, 2, 20], true),
            ([1, 1, 5000], true),
            ([1900, 1, 0], true),
            ([2100, 1, 0], false),
            ([200, 2, 50], false),
            ([200, 1, 100], false),
        ] {
            let folded = journal(extent);
            assert_eq!(excess(&folded, &folded.run.as_ref().unwrap().plan).is_none(), is_judged, "{extent:?}");
        }
        let error = model(&journal([2100, 1, 1])).err().unwrap().to_string();
        assert!(error.contains("2100 targets, 1 works and 1 phases"), "{error}");
    }
}
