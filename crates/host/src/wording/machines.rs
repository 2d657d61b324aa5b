//! One plan on several machines, in words: what `pickfs choices --between machines` prints.

use super::text::{counted, listed, percent, percent_up};
use crate::analysis::{
    self, AcrossMachines, AcrossRow, AcrossVerdict, ChangeOnMachines, ChangesOnMachines, FEWEST_MACHINES, Model,
    value_of,
};

/// A work on all machines, ready to be printed.
#[derive(Debug)]
pub struct MachinesReport {
    pub work: String,
    /// One or a few sentences.
    pub verdict: String,
    /// Each machine by its number in `rows`.
    pub machines: Vec<String>,
    /// Heads of the columns.
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
    pub notes: Vec<String>,
    /// What the columns mean.
    pub legend: &'static str,
}

/// What a machine is called: the name that its run wrote down, else its hardware.
pub fn machine_name(model: &Model) -> String {
    let name = value_of(&model.host, "host name").map(String::from);
    let hardware = || Some(model.machine()).filter(|machine| !machine.is_empty());
    name.or_else(hardware).unwrap_or_else(|| "a machine without a name".to_string())
}

/// Runs of one plan, in the order given.
pub fn between_machines(models: &[Model]) -> Vec<MachinesReport> {
    let named: Vec<(String, &Model)> = models.iter().map(|model| (machine_name(model), model)).collect();
    analysis::between_machines(&named).iter().map(report).collect()
}

/// A table with a column for each of more machines is wider than a screen.
const MOST_COLUMNS: usize = 6;

fn report(found: &AcrossMachines) -> MachinesReport {
    let (verdict, notes) = (verdict(found), notes(found));
    let table = table(&found.work, &found.machines, format!("vs {}", found.reference), found.rows.iter());
    MachinesReport { verdict, notes, legend: LEGEND, ..table }
}

/// Without what is said of it.
fn table<'a>(
    work: &str,
    machines: &[String],
    head: String,
    rows: impl Iterator<Item = &'a AcrossRow>,
) -> MachinesReport {
    let wide = if machines.len() > MOST_COLUMNS { 0 } else { machines.len() };
    let numbers = (1..=wide).map(|number| format!("[{number}]"));
    MachinesReport {
        work: work.to_string(),
        verdict: String::new(),
        machines: machines.iter().zip(1..).map(|(name, number)| format!("[{number}] {name}")).collect(),
        columns: [head, "all machines".into(), "between".into()].into_iter().chain(numbers).collect(),
        rows: rows.map(|row| cells(row, wide)).collect(),
        notes: Vec::new(),
        legend: "",
    }
}

/// Later runs over earlier ones: a report for each work.
pub fn changes_on_machines(found: &ChangesOnMachines) -> Vec<MachinesReport> {
    let mut works: Vec<&str> = Vec::new();
    for work in found.rows.iter().map(|row| &row.work).chain(found.left_out.iter().map(|(_, work)| work)) {
        if !works.contains(&work.as_str()) {
            works.push(work);
        }
    }
    works.into_iter().map(|work| changes_report(found, work)).collect()
}

fn changes_report(found: &ChangesOnMachines, work: &str) -> MachinesReport {
    let rows: Vec<&ChangeOnMachines> = found.rows.iter().filter(|row| row.work == work).collect();
    let left_out: Vec<String> =
        found.left_out.iter().filter(|(_, of)| of == work).map(|(target, _)| target.clone()).collect();
    let note =
        (!left_out.is_empty()).then(|| format!("Left out, as some machine has no interval: {}.", listed(&left_out)));
    let (verdict, notes) = (changes_verdict(found, &rows), note.into_iter().collect());
    let table = table(work, &found.machines, "later vs earlier".into(), rows.iter().map(|row| &row.row));
    MachinesReport { verdict, notes, legend: CHANGES_LEGEND, ..table }
}

/// What is worst comes first.
fn changes_verdict(found: &ChangesOnMachines, rows: &[&ChangeOnMachines]) -> String {
    if !found.doubted.is_empty() {
        let doubted = listed(&found.doubted);
        return format!(
            "Inconclusive: what was measured shows nothing on {doubted}; `pickfs compare` of its runs says why."
        );
    }
    let slower: Vec<String> = rows
        .iter()
        .filter(|row| row.is_regression)
        .map(|row| format!("{} ({})", row.row.target, signed(row.row.over_all.mean)))
        .collect();
    let beyond = percent(found.threshold);
    if !slower.is_empty() {
        return format!(
            "Slower by clearly more than {beyond} on average over machines like these: {}.",
            listed(&slower)
        );
    }
    let differs: Vec<String> =
        rows.iter().filter_map(|row| Some(differs(&row.row.target, row.differs.as_ref()?))).collect();
    if !differs.is_empty() {
        return format!("Differs between machines: {}.", differs.join("; "));
    }
    if found.machines.len() < FEWEST_MACHINES {
        let machines = counted(found.machines.len(), "machine");
        return format!("Inconclusive: {machines} cannot show how much machines differ, which takes three.");
    }
    let most = rows.iter().map(|row| row.at_most).collect::<Option<Vec<f64>>>();
    match most.and_then(|all| all.into_iter().reduce(f64::max)) {
        None => "Inconclusive: no target has enough rounds on all machines.".to_string(),
        Some(most) if most <= 0.0 => {
            "No target is slower than before on average over machines like these (95 %).".to_string()
        }
        Some(most) if most <= found.threshold => {
            format!("At most {} slower than before on average over machines like these (95 %).", percent_up(most))
        }
        Some(most) => format!(
            "Inconclusive: at most {} slower than before on average (95 %), and up to {beyond} is accepted. More machines or \
             rounds would narrow it.",
            percent_up(most)
        ),
    }
}

fn differs(target: &str, (slower, faster): &(Vec<usize>, Vec<usize>)) -> String {
    let names = |places: &[usize]| listed(&places.iter().map(|at| format!("[{}]", at + 1)).collect::<Vec<_>>());
    format!("{target} is slower than before on {}, and faster on {}", names(slower), names(faster))
}

/// A row's cells, with the values of the first `machines` machines.
fn cells(row: &AcrossRow, machines: usize) -> Vec<String> {
    let over_all = match row.over_all.interval {
        Some((low, high)) => format!("{} ({} to {})", signed(row.over_all.mean), signed(low), signed(high)),
        None => signed(row.over_all.mean),
    };
    let between = format!("±{}", percent(row.over_all.tau.exp_m1()));
    let each =
        row.each.iter().take(machines).map(|(effect, half)| format!("{} ±{}", signed(*effect), percent(half.exp_m1())));
    [row.target.clone(), over_all, between].into_iter().chain(each).collect()
}

/// "+10 %" of the natural logarithm of a ratio.
pub(crate) fn signed(log: f64) -> String {
    let share = log.exp_m1();
    let shown = percent(share);
    if share > 0.0 && shown != "0 %" { format!("+{shown}") } else { shown }
}

fn verdict(found: &AcrossMachines) -> String {
    let machines = counted(found.machines.len(), "machine");
    let names = |places: &[usize]| listed(&places.iter().map(|at| format!("[{}]", at + 1)).collect::<Vec<_>>());
    match &found.verdict {
        AcrossVerdict::Pick { target, at_most } if *at_most <= 0.0 => {
            format!("Pick {target}: the fastest on average over machines like these {} (95 %).", found.machines.len())
        }
        AcrossVerdict::Pick { target, at_most } => format!(
            "Pick {target}: on average over machines like these {} at most {} slower than the best (95 %).",
            found.machines.len(),
            percent_up(*at_most)
        ),
        AcrossVerdict::Differs { target, other, faster_on, slower_on } => format!(
            "Differs between machines, so no pick: {other} is faster than {target} on {}, and slower on {}. Choose for each \
             machine.",
            names(faster_on),
            names(slower_on)
        ),
        AcrossVerdict::Unresolved { target, at_most } => format!(
            "No pick over {machines}. Best on average: {target}, which is at most {} slower than the best (95 %). More machines \
             would narrow it.",
            percent_up(*at_most)
        ),
        AcrossVerdict::TooFewMachines { target } => format!(
            "No pick: {machines} cannot show how much machines differ, which takes three. Best on average so far: {target}."
        ),
        AcrossVerdict::Nothing => {
            format!("No verdict: fewer than two targets have enough rounds on each of {machines}.")
        }
    }
}

fn notes(found: &AcrossMachines) -> Vec<String> {
    let unequal: Vec<String> = found
        .rows
        .iter()
        .filter(|row| row.over_all.p_equal.is_some_and(|p| p < 0.05))
        .map(|row| format!("{} (I² {})", row.target, percent(row.over_all.i_squared)))
        .collect();
    let heterogeneity = (!unequal.is_empty()).then(|| {
        let names = listed(&unequal);
        format!("Machines differ by more than their noise in: {names}. I² is the share of the scatter that is between machines.")
    });
    let left_out = (!found.left_out.is_empty()).then(|| {
        format!("Left out, as some machine has no interval or does not rank it: {}.", listed(&found.left_out))
    });
    heterogeneity.into_iter().chain(left_out).collect()
}

/// The same of later runs over earlier ones.
const CHANGES_LEGEND: &str = "time of the later run relative to earlier ones of the same machine; all machines: mean and 95 % \
                              interval for machines like these (from three machines on); between: standard deviation between \
                              machines; ±: 95 % interval of one machine";

/// What the columns mean.
const LEGEND: &str = "time relative to the reference; all machines: mean and 95 % interval for machines like these (from \
                          three machines on); between: standard deviation between machines; ±: 95 % interval of one machine";
