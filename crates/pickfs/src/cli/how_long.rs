//! About how long a plan takes: by earlier runs of this machine, or else by what its workloads say
//! of themselves, which a budget is made of in any case.

use pickfs_core::plan::{Plan, Stop, Work, seconds_of_ageing};
use pickfs_host::executor;
use pickfs_host::run::Pace;
use pickfs_stats::FIRST_LOOK;
use pickfs_system::units::show_duration;
use pickfs_target::workload;

/// What a run without an aim takes at least: rounds enough for a bound say more than a few with
/// more files.
const LEAST_BUDGET: u64 = 180;
/// Seconds of a cell with next to no work: a file system made, mounted, checked and taken down.
const SHORTEST_CELL: u64 = 2;
/// Rounds that it has time for: with fewer a bound says little.
const ROUNDS: u64 = 8;

/// Where an expected time is from.
enum Expected {
    Unknown,
    /// What the workloads say, in seconds of a round.
    Described(f64),
    Measured(Pace),
}

/// The budget of a run that was given none.
pub(crate) fn minutes_of_budget(plan: &Plan) -> u64 {
    (seconds_of_round(plan).0 * ROUNDS).max(LEAST_BUDGET).div_ceil(60)
}

/// "a round takes about 12.0 min on a fast disk; no new round after 96.0 min".
pub(crate) fn in_words(plan: &Plan) -> String {
    words(plan, &expected(plan, Pace::known(plan)))
}

fn expected(plan: &Plan, here: Option<Pace>) -> Expected {
    match (here, seconds_of_round(plan)) {
        (Some(pace), _) => Expected::Measured(pace),
        (None, (seconds, true)) => Expected::Described(seconds as f64),
        (None, _) => Expected::Unknown,
    }
}

fn words(plan: &Plan, expected: &Expected) -> String {
    let Stop { rounds, budget_ns, .. } = plan.stop;
    let (round, around, by) = match expected {
        Expected::Unknown => (None, 0.0, ""),
        Expected::Described(seconds) => (Some(*seconds), 0.0, "on a fast disk"),
        Expected::Measured(pace) => (Some(pace.round), pace.around, "as measured here before"),
    };
    let shown = |seconds: f64| format!("about {} {by}", show_duration(seconds * 1e9));
    let shown_round = match (round, rounds) {
        (None, _) => "not known before the first round".into(),
        (Some(round), Some(1)) => shown(around + round),
        (Some(round), Some(rounds)) => {
            format!("{}, for {rounds} rounds", shown(around + round * f64::from(rounds)))
        }
        (Some(round), None) => format!("a round takes {}", shown(round)),
    };
    let looks = match (rounds, budget_ns) {
        (None, None) => format!(", and there are {FIRST_LOOK} to {}", plan.stop.most_rounds()),
        _ => String::new(),
    };
    format!("{shown_round}{looks}; {}", last(plan, expected))
}

/// When the last round begins, and about when it ends.
fn last(plan: &Plan, expected: &Expected) -> String {
    let Some(budget_ns) = plan.stop.budget_ns else { return "no budget".into() };
    let (budget, most) = (budget_ns as f64, f64::from(plan.stop.most_rounds()));
    let ends = match expected {
        Expected::Measured(Pace { round, around }) => {
            let latest = around + (budget / 1e9 + round).min(most * round);
            format!(", so it takes about {} at most", show_duration(latest * 1e9))
        }
        _ => String::new(),
    };
    format!("no new round after {}{ends}", show_duration(budget))
}

/// The same, where it says anything.
pub(crate) fn before_run(plan: &Plan) -> Option<String> {
    let expected = expected(plan, Pace::known(plan));
    let says = plan.stop.budget_ns.is_some() || !matches!(expected, Expected::Unknown);
    says.then(|| format!("time: {}", words(plan, &expected)))
}

/// About, and whether all of it is known.
fn seconds_of_round(plan: &Plan) -> (u64, bool) {
    let machine = executor::find(executor::ALL, &plan.executor);
    // A simulation takes the time of the processor that it has.
    let is_real = machine.is_none_or(|machine| !machine.simulates());
    let besides = machine.map_or(0, |machine| machine.seconds());
    // Once a work: it may have to look at each file of the user's data.
    let own =
        |work: &Work| workload::find(&work.workload.name).map_or(0, |found| found.seconds(&work.workload.settings));
    let besides: u64 = plan.targets.iter().map(|target| seconds_of_ageing(target) + besides).sum();
    let cells = plan.targets.len() as u64;
    plan.works
        .iter()
        .map(own)
        .fold((0, is_real), |(sum, known), own| (sum + cells * own.max(SHORTEST_CELL) + besides, known && own > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::catalogue::catalogue;
    use pickfs_core::plan::from_toml;
    use std::path::Path;

    const TARGETS: &str = "[backing]\nmemory = { size = '4GiB' }\n[[target]]\nfs = 'ext4'\n[[target]]\nfs = 'xfs'\n";

    fn plan(text: &str) -> Plan {
        from_toml(&[TARGETS, text].concat(), "", Path::new("/"), &catalogue()).unwrap()
    }

    fn budget(plan: &Plan) -> String {
        format!("{}min", minutes_of_budget(plan))
    }

    /// Three cells a round: two targets, and the first one again.
    #[test]
    fn budgets_are_sized_by_the_work() {
        for (work, budget_of) in [
            ("workload = 'tree'\nscale = 0.25", "3min"),
            ("workload = 'tree'\nscale = 20", "96min"),
            ("workload = 'pgbench'", "96min"),
            ("workload = 'pgbench'\nclients = [10]\ntime = '30s'", "60min"),
            ("workload = 'stream'", "44min"),
            ("workload = 'respond'", "132min"),
            ("workload = 'command'\ncommand = ['true']", "3min"),
            ("workload = 'trace'\ntrace = 'git-clone'", "3min"),
        ] {
            assert_eq!(budget(&plan(&format!("[[work]]\n{work}"))), budget_of, "{work}");
        }
        let aged = plan("[matrix]\nage = ['none', 'churn 5x']\n[[work]]\nworkload = 'tree'\nscale = 0.25");
        assert!(budget(&aged) != "3min", "{}", budget(&aged));
    }

    #[test]
    fn all_workloads_say_how_long_they_take_but_those_that_cannot_know() {
        let silent = workload::for_users().filter(|workload| workload.description().seconds == 0);
        let silent: Vec<&str> = silent.map(|workload| workload.name()).collect();
        assert_eq!(silent, ["command", "fio", "ledger", "recipe", "trace", "transactions"]);
    }

    fn said(plan: &Plan, here: Option<Pace>) -> String {
        words(plan, &expected(plan, here))
    }

    #[test]
    fn what_ran_here_before_is_better_known() {
        let work = "[[work]]\nworkload = 'command'\ncommand = ['true']\n[stop]\n";
        for (stop, words) in [
            ("rounds = 10", "about 2.2 min as measured here before, for 10 rounds; no budget"),
            (
                "budget = '3min'",
                "a round takes about 12.0 s as measured here before; no new round after 3.0 min, so it takes about 3.4 min at most",
            ),
            (
                "budget = '1h'",
                "a round takes about 12.0 s as measured here before; no new round after 60.0 min, so it takes about 8.2 min at most",
            ),
        ] {
            let here = Pace { round: 12.0, around: 10.0 };
            assert_eq!(said(&plan(&format!("{work}{stop}")), Some(here)), words);
        }
    }

    #[test]
    fn time_is_said_before_the_run() {
        let work = "[[work]]\nworkload = 'pgbench'\n[stop]\n";
        for (stop, words) in [
            ("budget = '2h'", "a round takes about 12.0 min on a fast disk; no new round after 2.0 h"),
            ("precision = '2%'", "a round takes about 12.0 min on a fast disk, and there are 3 to 40; no budget"),
            ("rounds = 10", "about 2.0 h on a fast disk, for 10 rounds; no budget"),
            ("rounds = 1", "about 12.0 min on a fast disk; no budget"),
        ] {
            assert_eq!(said(&plan(&format!("{work}{stop}")), None), words);
        }
        let unknown = "[[work]]\nworkload = 'command'\ncommand = ['true']\n[stop]\nbudget = '1h'";
        assert_eq!(said(&plan(unknown), None), "not known before the first round; no new round after 60.0 min");
    }
}
