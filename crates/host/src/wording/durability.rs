//! What is said of power cuts.

use super::text::{capital, counted, listed, percent_up};
use crate::analysis::{Durability, Loss, LossKind, Model, WorkReport};
use pickfs_system::units::show_duration;

/// Which targets broke a promise, and where; empty where none did. It stands before every answer.
pub(crate) fn guilt(work: &WorkReport, model: &Model) -> String {
    let works = if work.is_overall { model.works.iter().collect() } else { vec![work] };
    let several = works.len() > 1;
    let of_work = |work: &&WorkReport| {
        let broken = work.durability.iter().filter(|found| found.broken > 0);
        let (place, name) = (if several { " in " } else { "" }, if several { work.name.as_str() } else { "" });
        let said = |found: &Durability| {
            let (target, broken, of) = (&model.targets[found.target].name, found.broken, promised(found));
            format!("{target}{place}{name} ({broken} of {})", counted(of as usize, "cut"))
        };
        broken.map(said).collect::<Vec<_>>()
    };
    let guilty: Vec<String> = works.iter().flat_map(of_work).collect();
    if guilty.is_empty() { String::new() } else { format!("PROMISES BROKEN: {}. ", listed(&guilty)) }
}

/// Cuts at which a promise could have been broken.
fn promised(found: &Durability) -> u64 {
    if has_transactions(found) { found.cuts } else { found.promise_cuts }
}

/// What is said of the only target with results, where power was cut; none where it was not.
pub(crate) fn alone(work: &WorkReport, target: usize, model: &Model) -> Option<String> {
    let of = |work: &WorkReport| work.durability.iter().find(|found| found.target == target).cloned();
    let name = &model.targets[target].name;
    let sentence = if work.is_overall {
        let each: Vec<Durability> = model.works.iter().map(of).collect::<Option<_>>()?;
        let kept = each.iter().filter(|result| result.broken == 0).count();
        format!("{name} kept what it promised in {kept} of {}.", counted(each.len(), "work"))
    } else {
        match of(work)? {
            // The broken promises stand above.
            result if result.broken > 0 => format!("{name} lost at most {}.", losses(&result)),
            result => short(&result, model),
        }
    };
    Some(format!("{sentence} There is no other result to compare with."))
}

/// Targets that broke a promise first.
pub(crate) fn guilty_first(found: &[Durability]) -> Vec<&Durability> {
    let mut found: Vec<&Durability> = found.iter().collect();
    found.sort_by_key(|found| found.broken == 0);
    found
}

/// One for each target: what was lost, whether promises were kept, how long the file system took to
/// recover.
pub(crate) fn sentence(found: &Durability, model: &Model) -> String {
    let name = &model.targets[found.target].name;
    let lost = match (has_transactions(found), found.lost_transactions) {
        (true, 0) => "no transaction".to_string(),
        (true, most) => format!("at most {}, {most} of them at one cut,", losses(found)),
        (false, _) => format!("at most {} that nothing synced,", losses(found)),
    };
    let damaged = match found.damaged {
        0 => String::new(),
        damaged => format!(" Files that nothing synced were empty or torn after {damaged} cuts."),
    };
    let broken = found.first_broken.as_ref().map(|broken| format!(" Broken promises {broken}.")).unwrap_or_default();
    format!(
        "{name} lost {lost} in {} power cuts. {} Mounted again in {} (longest {}).{damaged}{broken}",
        found.cuts,
        capital(&promises(found)),
        show_duration(found.recovery.0),
        show_duration(found.recovery.1),
    )
}

/// "5.10 s of contents (median 2.60 s)".
fn losses(found: &Durability) -> String {
    let of = |of: LossKind| match of {
        LossKind::Names => "folders, links and removals",
        LossKind::Contents => "contents",
        LossKind::Transactions => "transactions",
    };
    let shown = |loss: &Loss| format!("{} of {} (median {})", time(loss.worst), of(loss.of), time(loss.median));
    found.losses.iter().map(shown).collect::<Vec<_>>().join(" and ")
}

fn time(ns: f64) -> String {
    if ns == 0.0 { "0 s".into() } else { show_duration(ns) }
}

fn has_transactions(found: &Durability) -> bool {
    found.losses.iter().any(|loss| loss.of == LossKind::Transactions)
}

/// The same on a line or two.
pub(crate) fn short(found: &Durability, model: &Model) -> String {
    let name = &model.targets[found.target].name;
    let promises = promises(found);
    let worst = found.losses.iter().copied().max_by(|a, b| a.worst.total_cmp(&b.worst));
    let Some(Loss { median, worst, .. }) = worst else { return format!("{name}: {promises}") };
    let (most, median, cuts) = (time(worst), time(median), found.cuts);
    match (has_transactions(found), found.lost_transactions) {
        (true, 0) => format!("{name}: {promises}"),
        (true, lost) => format!(
            "{name}: at most {most} of transactions lost, {lost} at one cut (median {median}, {cuts} cuts); {promises}"
        ),
        (false, _) => {
            format!("{name}: at most {most} of unsynced work lost (median {median}, {cuts} cuts); {promises}")
        }
    }
}

fn promises(found: &Durability) -> String {
    let Durability { promise_cuts: of, broken, may_break, unmountable, fsck_errors, .. } = found;
    if has_transactions(found) {
        return promises_of_transactions(found);
    }
    match (of, broken, unmountable) {
        (0, ..) => "nothing was synced, so nothing was promised.".into(),
        (_, 0, _) => {
            let checked = if fsck_errors.is_some() { " and fsck found no error" } else { "" };
            let bound = percent_up(*may_break);
            format!("what was synced survived all {of} cuts{checked} (95 %: lost in fewer than {bound}).")
        }
        (_, _, 0) if fsck_errors.unwrap_or_default() == 0 => {
            format!("PROMISES BROKEN: what was synced was lost in {broken} of {of} cuts.")
        }
        _ => {
            format!("PROMISES BROKEN in {broken} of {of} cuts; {}.", shown(&of_file_systems(found)))
        }
    }
}

/// What befell the file system itself, and after how many cuts.
fn of_file_systems(found: &Durability) -> [(&'static str, u64); 2] {
    let errors = found.fsck_errors.unwrap_or_default();
    [("the file system could not be mounted", found.unmountable), ("fsck found errors", errors)]
}

/// "fsck found errors after 3".
fn shown(rows: &[(&str, u64)]) -> String {
    let rows = rows.iter().filter(|(_, cuts)| *cuts > 0).map(|(what, cuts)| format!("{what} after {cuts}"));
    rows.collect::<Vec<_>>().join(", ")
}

fn promises_of_transactions(found: &Durability) -> String {
    let Durability { cuts, broken, may_break, lost_transactions, inconsistent, .. } = found;
    let of_file_systems = of_file_systems(found);
    let bound = percent_up(*may_break);
    match (broken, lost_transactions) {
        (0, 0) => format!(
            "all transactions were there, and whole, after {cuts} cuts (95 %: not so after fewer than {bound})."
        ),
        (0, _) => format!("nothing was damaged after {cuts} cuts (95 %: damaged after fewer than {bound})."),
        _ => {
            let others: u64 = inconsistent + of_file_systems.iter().map(|(_, cuts)| cuts).sum::<u64>();
            let of_programs = [
                ("acknowledged transactions were gone", broken.saturating_sub(others)),
                ("the program's check failed", *inconsistent),
            ];
            format!("PROMISES BROKEN in {broken} of {cuts} cuts: {}.", shown(&[of_programs, of_file_systems].concat()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::TargetInfo;

    fn said(change: impl Fn(&mut Durability)) -> String {
        let mut found = found();
        change(&mut found);
        let target = TargetInfo { name: "ext4".into(), ..TargetInfo::default() };
        sentence(&found, &Model { targets: vec![target], ..Model::default() })
    }

    fn found() -> Durability {
        Durability {
            target: 0,
            losses: vec![
                Loss { of: LossKind::Names, median: 2.6e9, worst: 5.1e9 },
                Loss { of: LossKind::Contents, median: 17e9, worst: 34e9 },
            ],
            lost_transactions: 0,
            cuts: 400,
            promise_cuts: 400,
            broken: 0,
            may_break: 0.00746,
            unmountable: 0,
            damaged: 0,
            fsck_errors: None,
            inconsistent: 0,
            recovery: (1.2e7, 3e7),
            rounds: 1,
            first_broken: None,
        }
    }

    /// A model of works, each with the number of power cuts that broke a promise, by target.
    fn cut(works: &[(&str, &[u64])]) -> Model {
        let broken = |(target, broken): (usize, &u64)| {
            let losses = vec![Loss { of: LossKind::Transactions, median: 0.0, worst: 5.11e7 }];
            Durability { target, losses, broken: *broken, lost_transactions: *broken, cuts: 30, ..found() }
        };
        let work = |(name, all): &(&str, &[u64])| {
            let durability = all.iter().enumerate().map(broken).collect();
            WorkReport { name: name.to_string(), durability, ..WorkReport::default() }
        };
        let target = |name: &str| TargetInfo { name: name.into(), ..TargetInfo::default() };
        let targets = ["ext4", "xfs noflush", "btrfs nobarrier"].map(target).into();
        Model { targets, works: works.iter().map(work).collect(), ..Model::default() }
    }

    #[test]
    fn the_guilty_are_named_first_and_the_innocent_are_not_told_like_them() {
        let model = cut(&[("ledger", &[0, 27, 24])]);
        assert_eq!(
            guilt(&model.works[0], &model),
            "PROMISES BROKEN: xfs noflush (27 of 30 cuts) and btrfs nobarrier (24 of 30 cuts). "
        );
        let order: Vec<usize> = guilty_first(&model.works[0].durability).iter().map(|found| found.target).collect();
        assert_eq!(order, [1, 2, 0]);

        let model = cut(&[("after fsync", &[0]), ("before fsync", &[30])]);
        let overall = WorkReport { is_overall: true, ..WorkReport::default() };
        assert_eq!(guilt(&overall, &model), "PROMISES BROKEN: ext4 in before fsync (30 of 30 cuts). ");
        assert!(alone(&overall, 0, &model).unwrap().starts_with("ext4 kept what it promised in 1 of 2 works."));
        let [kept, broken] =
            [0, 1].map(|work| (guilt(&model.works[work], &model), alone(&model.works[work], 0, &model).unwrap()));
        assert!(kept.0.is_empty() && kept.1.starts_with("ext4: all transactions were there, and whole, after 30 cuts"));
        assert!(
            broken.0.starts_with("PROMISES BROKEN: ext4 (30 of 30 cuts)")
                && broken.1.starts_with("ext4 lost at most 51.1 ms of transactions")
        );
        assert_eq!(alone(&WorkReport::default(), 0, &model), None);
    }

    #[test]
    fn the_loss_and_the_promises_are_said() {
        let kept = said(|_| ());
        let loss = "ext4 lost at most 5.10 s of folders, links and removals (median 2.60 s) and 34.0 s of contents";
        assert!(kept.starts_with(loss), "{kept}");
        assert!(kept.contains("What was synced survived all 400 cuts (95 %: lost in fewer than 0.8 %)."), "{kept}");
        let broken = said(|found| found.broken = 3);
        assert!(broken.contains("PROMISES BROKEN: what was synced was lost in 3 of 400 cuts."), "{broken}");
        let broken = said(|found| (found.broken, found.unmountable) = (3, 1));
        let unmountable = "PROMISES BROKEN in 3 of 400 cuts; the file system could not be mounted after 1.";
        assert!(broken.contains(unmountable), "{broken}");
        let damaged = said(|found| (found.broken, found.fsck_errors) = (3, Some(2)));
        assert!(damaged.contains("PROMISES BROKEN in 3 of 400 cuts; fsck found errors after 2."), "{damaged}");
        let checked = said(|found| found.fsck_errors = Some(0));
        assert!(checked.contains("survived all 400 cuts and fsck found no error (95 %: lost"), "{checked}");
        let why =
            "by what the disk lost: all 3; first (all): the file system cannot be mounted (kernel log: bad superblock)";
        let broken = said(|found| (found.broken, found.first_broken) = (3, Some(why.into())));
        assert!(broken.ends_with(&format!("(longest 30.0 ms). Broken promises {why}.")), "{broken}");
        assert!(said(|found| found.promise_cuts = 0).contains("Nothing was synced"));
        assert!(said(|found| found.damaged = 2).ends_with("empty or torn after 2 cuts."));
    }

    #[test]
    fn transactions_have_words_of_their_own() {
        let transactions = |worst: f64, lost: u64, broken: u64| {
            said(|found| {
                found.losses = vec![Loss { of: LossKind::Transactions, median: 0.0, worst }];
                (found.lost_transactions, found.broken) = (lost, broken);
            })
        };
        let kept = transactions(0.0, 0, 0);
        assert!(kept.starts_with("ext4 lost no transaction in 400 power cuts. All transactions were there"), "{kept}");
        let lost = transactions(2e9, 41, 0);
        let loss = "ext4 lost at most 2.00 s of transactions (median 0 s), 41 of them at one cut, in 400 power cuts.";
        assert!(lost.starts_with(loss) && lost.contains("Nothing was damaged after 400 cuts"), "{lost}");
        let broken = said(|found| {
            found.losses = vec![Loss { of: LossKind::Transactions, median: 0.0, worst: 2e9 }];
            (found.broken, found.inconsistent, found.unmountable, found.lost_transactions) = (7, 2, 1, 41);
        });
        let parts = "PROMISES BROKEN in 7 of 400 cuts: acknowledged transactions were gone after 4, the program's check failed \
                     after 2, the file system could not be mounted after 1.";
        assert!(broken.contains(parts), "{broken}");
        assert!(transactions(2e9, 41, 7).contains("cuts: acknowledged transactions were gone after 7. Mounted"));
    }
}
