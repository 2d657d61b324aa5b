//! What a power cut takes of a program's transactions, by a command of the user's own: it prints a
//! line whenever it takes something for durable, and after each cut another command prints the
//! lines that it finds, or fails where what is there is damaged. Databases, version control and
//! package managers are instances of it: examples/transactions.toml.

use super::{Power, RECOVERY, Tally, at_a_cut, fsck_found, report_loss};
use crate::stack::Argv;
use crate::stage::{Cut, Outcomes, PowerCuts, Program, Recovered, Stage};
use crate::workload::settings::{Flag, Items, Texts, Words, settings};
use crate::workload::{Description, Workload, described, text};
use anyhow::{Result, ensure};
use pickfs_core::plan::{Objection, Settings};
use pickfs_disks::cuts::Span;
use pickfs_system::need::Need;
use pickfs_system::units::show_duration;
use std::collections::HashSet;
use std::path::Path;

pub(crate) struct Transactions;

settings! {
    Order {
        command: Words, "prints a line for each transaction that it takes for durable, and ends; `{dir}` is the target's folder";
        check: Words, "run after each cut: prints the line of each transaction that is there, and fails where something is damaged";
        prepare: Words, "a command that is run before, and is durable when the first transaction begins";
        promised: Flag = "true", "a printed line is a promise; without, its loss is measured and breaks nothing";
        programs: Texts = "[]", "what the commands call, each as PROGRAM or PROGRAM=PACKAGE";
        cuts: Items = "100", "at random moments, and a quarter as many just before and after flushes";
    }
}

const TRANSACTIONS: &str = "transactions";

impl Workload for Transactions {
    fn description(&self) -> &'static Description {
        described!("transactions.toml", [Order::ROWS, Power::ROWS])
    }

    fn recording(&self, settings: &Settings) -> Option<u64> {
        Some(Power::of(settings).recording())
    }

    fn needs(&self, settings: &Settings) -> Vec<Need> {
        let need = |word: &String| {
            let (name, package) = word.split_once('=').unwrap_or((word, word));
            Need::Named { name: name.into(), package: Some(package.into()) }
        };
        Order::of(settings).programs.iter().map(need).collect()
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let order = Order::of(settings);
        let mut found = Power::of(settings).objections();
        for (setting, words, remedy) in [
            ("command", &order.command, "give one that prints a line for each transaction"),
            ("check", &order.check, "give one that prints the lines that it finds after a cut"),
        ] {
            if words.as_ref().is_none_or(Vec::is_empty) {
                found.push(Objection::new(setting, format!("there is no {setting} to run"), remedy));
            }
        }
        if order.cuts < 8 {
            found.push(Objection::new("cuts", "is too few for a distribution".into(), "give at least 8"));
        }
        found
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let (order, power, root) = (Order::of(settings), Power::of(settings), stage.root());
        let program = |words: &Option<Argv>| program(words.as_deref().unwrap_or_default(), &root);
        if order.prepare.as_ref().is_some_and(|words| !words.is_empty()) {
            stage.lay_out("preparing", |stage| stage.run(&program(&order.prepare)).map(drop))?;
        }
        let acknowledged = stage.lines_as_they_come(&program(&order.command))?;
        let check = program(&order.check);
        let seen = look(stage, &check)?;
        check_without_cut(&acknowledged, &seen)?;
        let (from, until) = (acknowledged[0].0, acknowledged[acknowledged.len() - 1].0);
        let span = Span { from, until, evenly: order.cuts, at_flushes: order.cuts / 4 };
        let (losses, lies_ns, seed) = (power.losses(stage)?, power.lies_ns(), stage.seed());
        let cuts = PowerCuts { spans: vec![span], losses, lies_ns, fsck: power.fsck, seed };
        let outcomes = stage.cut_power(&cuts, |stage, _| look(stage, &check))?;
        let found = verdicts(&acknowledged, &outcomes, order.promised);
        let least = (until - from) / acknowledged.len() as u64;
        report_loss(stage, TRANSACTIONS, &found.losses, least)?;
        stage.say(TRANSACTIONS, "lost_transactions", found.most_lost as f64);
        stage.say(RECOVERY, "inconsistent_cuts", found.inconsistent as f64);
        found.tally.report(stage, &power.losses);
        Ok(())
    }
}

fn program(words: &[String], dir: &Path) -> Program {
    Program::new(words.iter().map(|word| word.replace("{dir}", &text(dir)))).in_folder(dir)
}

/// What the check found.
#[derive(Clone, Debug, Default)]
struct CheckResult {
    lines: HashSet<String>,
    /// Why it failed.
    wrong: Option<String>,
}

fn look(stage: &mut Stage, check: &Program) -> Result<CheckResult> {
    let limits = stage.limits();
    match stage.run(check) {
        Ok(printed) => Ok(CheckResult { lines: printed.lines().map(String::from).collect(), wrong: None }),
        // Its failure is a finding, unless it was ended.
        Err(error) => limits().map(|()| CheckResult { lines: HashSet::new(), wrong: Some(format!("{error:#}")) }),
    }
}

/// A check that finds less than all where nothing was cut would invent losses.
fn check_without_cut(acknowledged: &[(u64, String)], seen: &CheckResult) -> Result<()> {
    if let Some(why) = &seen.wrong {
        anyhow::bail!("the check fails although no power was cut: {why}");
    }
    ensure!(
        acknowledged.len() > 1,
        "the command printed {} lines: it must print one for each transaction",
        acknowledged.len()
    );
    let mut known = HashSet::new();
    let twice = acknowledged.iter().find(|(_, line)| !known.insert(line));
    ensure!(
        twice.is_none(),
        "the command printed `{}` twice: give each transaction its own line",
        twice.map_or("", |(_, line)| line)
    );
    let missing = acknowledged.iter().find(|(_, line)| !seen.lines.contains(line));
    ensure!(
        missing.is_none(),
        "the check does not find `{}` although no power was cut",
        missing.map_or("", |(_, line)| line)
    );
    Ok(())
}

#[derive(Debug, Default, PartialEq)]
struct Verdicts {
    /// For each cut at a random moment in nanoseconds, the worst of what the disk may have lost.
    losses: Vec<u64>,
    /// Transactions that one cut took, at most.
    most_lost: usize,
    /// Cuts after which the check failed.
    inconsistent: usize,
    tally: Tally,
}

fn verdicts(acknowledged: &[(u64, String)], outcomes: &Outcomes<CheckResult>, promised: bool) -> Verdicts {
    let mut verdicts = Verdicts { tally: Tally::of(outcomes), ..Verdicts::default() };
    for cuts in outcomes.cuts.chunk_by(|a, b| a.moment == b.moment) {
        let mut worst = 0;
        for cut in cuts {
            worst = worst.max(verdicts.take(acknowledged, cut, &outcomes.images[cut.image], promised));
        }
        if cuts[0].moment.evenly {
            verdicts.losses.push(worst);
        }
    }
    verdicts
}

impl Verdicts {
    /// How long before the cut the oldest transaction had been acknowledged that is lost.
    fn take(
        &mut self,
        acknowledged: &[(u64, String)],
        cut: &Cut,
        image: &Recovered<CheckResult>,
        promised: bool,
    ) -> u64 {
        let at = cut.moment.at;
        let is_lost = |line: &String| image.found.as_ref().is_none_or(|seen| !seen.lines.contains(line));
        let lost: Vec<&(u64, String)> =
            acknowledged.iter().filter(|(when, line)| *when <= at && is_lost(line)).collect();
        let age = lost.first().map_or(0, |(when, _)| at - when);
        self.most_lost = self.most_lost.max(lost.len());
        let wrong = image.found.as_ref().and_then(|seen| seen.wrong.as_ref());
        // What befell the file system explains what its programs see.
        let wrong = wrong.filter(|_| image.wrong.is_none());
        self.tally.unmountable += usize::from(image.mounted.is_err());
        self.inconsistent += usize::from(wrong.is_some());
        // That what is found is whole is promised at every cut.
        self.tally.promise_cuts += 1;
        let broken = match (&image.mounted, wrong, lost.first()) {
            (Err(why), ..) => Some(format!("the file system cannot be mounted ({why})")),
            _ if image.wrong.is_some() => image.wrong.as_deref().map(fsck_found),
            (_, Some(why), _) => Some(format!("the check failed ({why})")),
            (.., Some((_, line))) if promised => {
                let ago = show_duration(age as f64);
                Some(format!(
                    "{} transactions are lost, the oldest, `{line}`, {ago} after it was acknowledged",
                    lost.len()
                ))
            }
            _ => None,
        };
        self.tally.broken.extend(broken.map(|why| (cut.loses, at_a_cut(&why, at))));
        age
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_disks::cuts::Moment;
    use serde_json::json;
    use std::time::Duration;

    fn acknowledged() -> Vec<(u64, String)> {
        (1..=9).map(|number| (number * 10, number.to_string())).collect()
    }

    fn seen(lines: &[u64]) -> CheckResult {
        CheckResult { lines: lines.iter().map(u64::to_string).collect(), wrong: None }
    }

    fn at_55(found: Result<CheckResult, &str>, promised: bool) -> Verdicts {
        let mounted = found.as_ref().map(|_| Duration::from_millis(1)).map_err(|why| why.to_string());
        let moment = Moment { at: 55, span: 0, evenly: true };
        let image = Recovered { mounted, found: found.ok(), wrong: None };
        let outcomes =
            Outcomes { cuts: vec![Cut { moment, loses: 0, image: 0 }], images: vec![image], are_checked: true };
        verdicts(&acknowledged(), &outcomes, promised)
    }

    #[test]
    fn what_was_acknowledged_before_the_cut_and_is_gone_is_lost() {
        let damaged = || CheckResult { wrong: Some("malformed".into()), ..seen(&[1, 2, 3, 4, 5]) };
        for (found, promised, loss, lost, broken, says) in [
            (Ok(seen(&[1, 2, 3, 4, 5])), true, 0, 0, 0, ""),
            (Ok(seen(&[1, 2, 3, 4, 5, 6])), true, 0, 0, 0, ""),
            (Ok(seen(&[1, 2, 3])), true, 15, 2, 1, "2 transactions are lost, the oldest, `4`,"),
            (Ok(seen(&[1, 2, 3])), false, 15, 2, 0, ""),
            (Ok(seen(&[1, 3, 4, 5])), true, 35, 1, 1, "`2`"),
            (Ok(damaged()), false, 0, 0, 1, "malformed"),
            (Err("no superblock"), false, 45, 5, 1, "no superblock"),
        ] {
            let shown = format!("{found:?} {promised}");
            let verdicts = at_55(found, promised);
            assert_eq!(
                (&verdicts.losses[..], verdicts.most_lost, verdicts.tally.broken.len()),
                (&[loss][..], lost, broken),
                "{shown}"
            );
            assert!(verdicts.tally.broken.iter().all(|(_, why)| why.contains(says)), "{verdicts:?}");
        }
    }

    #[test]
    fn a_check_that_would_invent_losses_is_refused() {
        let all: Vec<u64> = (1..=9).collect();
        let twice = [acknowledged(), acknowledged()].concat();
        let failed = CheckResult { wrong: Some("exit 1".into()), ..seen(&all) };
        for (acknowledged, seen, says) in [
            (acknowledged(), seen(&all), ""),
            (acknowledged(), seen(&all[1..]), "does not find `1`"),
            (acknowledged(), failed, "exit 1"),
            (twice, seen(&all), "`1` twice"),
            (acknowledged()[..1].to_vec(), seen(&all), "printed 1 lines"),
        ] {
            let said = check_without_cut(&acknowledged, &seen).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(said.contains(says) && said.is_empty() == says.is_empty(), "{said}: {says}");
        }
    }

    #[test]
    fn what_cannot_be_cut_is_refused_and_packages_have_their_names() {
        let settings = |given: serde_json::Value| Settings(given.as_object().unwrap().clone().into_iter().collect());
        for (given, wanted) in [
            (json!({"command": ["a"], "check": ["b"]}), vec![]),
            (json!({"command": ["a"]}), vec!["check"]),
            (json!({"check": ["b"], "losses": []}), vec!["losses", "command"]),
            (json!({"command": ["a"], "check": ["b"], "cuts": 3}), vec!["cuts"]),
            (json!({"command": ["a"], "check": ["b"], "torn": 700}), vec!["torn"]),
            (json!({"command": ["a"], "check": ["b"], "torn": 1024}), vec![]),
        ] {
            let found = Transactions.objections(&settings(given.clone()));
            assert_eq!(found.iter().map(|objection| objection.setting).collect::<Vec<_>>(), wanted, "{given}");
        }
        let named = |name: &str, package: &str| Need::Named { name: name.into(), package: Some(package.into()) };
        let needs = Transactions.needs(&settings(json!({"programs": ["git", "psql=postgresql"]})));
        assert_eq!(needs, [named("git", "git"), named("psql", "postgresql")]);
    }
}
