//! What the cuts come to: how old the oldest change was that was lost, which promises were broken,
//! what was damaged. Pure.

use super::Sync;
use super::schedule::{Kind, Schedule, Step};
use super::survey::Survey;
use crate::stage::{Cut, Outcomes, Recovered, Stamp};
use crate::workload::power::{Tally, at_a_cut, fsck_found};
use anyhow::{Result, ensure};
use pickfs_system::units::show_duration;

/// What is known of each step.
#[derive(Clone, Copy, Debug)]
struct Change {
    kind: Kind,
    sync: Sync,
    number: u64,
    begun: u64,
    returned: u64,
    /// From when on it must survive, where it must at all.
    promised: Option<u64>,
    /// From when on another change may have taken its place.
    replaced: Option<u64>,
    /// Its loss is measured.
    is_measured: bool,
}

/// All that was found.
pub(crate) struct CutResults<'a> {
    changes: Vec<Option<Change>>,
    outcomes: &'a Outcomes<Survey>,
}

/// The result of all cuts.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Verdicts {
    /// For each even cut in nanoseconds, the worst of what the disk may have lost.
    pub names: Vec<u64>,
    pub contents: Vec<u64>,
    pub(in crate::workload::power) tally: Tally,
}

/// The result of one cut.
#[derive(Debug, Default, PartialEq)]
struct OfCut {
    /// Nanoseconds by which the oldest lost change had returned before the cut: of names, and of
    /// contents.
    lost_ns: [u64; 2],
    broken: Option<String>,
    damaged: bool,
    promised: bool,
}

impl<'a> CutResults<'a> {
    /// An error where a change is there that had not begun: then the cut was none.
    pub(crate) fn new(schedule: &Schedule, stamps: &[Stamp], outcomes: &'a Outcomes<Survey>) -> Result<CutResults<'a>> {
        let replaced = schedule.replaced_by();
        let change = |(step, what): (usize, &Step)| {
            let Step::Change { stream, number } = *what else { return None };
            let stream = &schedule.streams[stream];
            Some(Change {
                kind: stream.kind,
                sync: stream.sync,
                number,
                begun: stamps[step].begun,
                returned: stamps[step].returned,
                promised: schedule.promised(step).map(|step| stamps[step].returned),
                replaced: replaced[step].map(|step| stamps[step].begun),
                is_measured: schedule.parts[0].steps.contains(&step),
            })
        };
        let changes = schedule.steps.iter().enumerate().map(change).collect();
        let found = CutResults { changes, outcomes };
        found.check_nothing_is_of_the_future().map(|()| found)
    }

    fn check_nothing_is_of_the_future(&self) -> Result<()> {
        for cut in &self.outcomes.cuts {
            let Some(survey) = &self.outcomes.images[cut.image].found else { continue };
            for (change, there) in self.changes.iter().zip(&survey.there) {
                let Some(change) = change else { continue };
                // A file that is gone before it was removed is lost, and reported as that.
                let is_early = *there && change.begun > cut.moment.at && change.kind != Kind::Unlink;
                ensure!(!is_early, "{} is there before it was begun", change.shown());
            }
        }
        Ok(())
    }

    pub(crate) fn verdicts(&self) -> Verdicts {
        let outcomes = self.outcomes;
        let mut verdicts = Verdicts { tally: Tally::of(outcomes), ..Verdicts::default() };
        for cuts in outcomes.cuts.chunk_by(|a, b| a.moment == b.moment) {
            let mut worst = [0, 0];
            for cut in cuts {
                let of_cut = self.of_cut(cut, &outcomes.images[cut.image]);
                worst = [0, 1].map(|class| of_cut.lost_ns[class].max(worst[class]));
                verdicts.tally.promise_cuts += usize::from(of_cut.promised || of_cut.broken.is_some());
                verdicts.tally.unmountable += usize::from(outcomes.images[cut.image].found.is_none());
                verdicts.tally.damaged += usize::from(of_cut.damaged);
                verdicts.tally.broken.extend(of_cut.broken.map(|why| (cut.loses, why)));
            }
            if cuts[0].moment.evenly && cuts[0].moment.span == 0 {
                verdicts.names.push(worst[0]);
                verdicts.contents.push(worst[1]);
            }
        }
        verdicts
    }

    fn of_cut(&self, cut: &Cut, image: &Recovered<Survey>) -> OfCut {
        let at = cut.moment.at;
        let mut found = OfCut::default();
        if let Err(why) = &image.mounted {
            found.break_promise(format!("the file system cannot be mounted ({why})"), at);
        }
        if let Some(gone) = image.found.as_ref().and_then(|survey| survey.gone.first()) {
            found.break_promise(format!("what was durable before is gone: {gone}"), at);
        }
        for (step, change) in self.changes.iter().enumerate() {
            let there = image.found.as_ref().is_some_and(|survey| survey.there[step]);
            if let Some(change) = change.filter(|change| change.counts(at)) {
                found.take_change(&change, there, at);
            }
        }
        for step in image.found.iter().flat_map(|survey| &survey.damaged) {
            if let Some(change) = self.changes[*step].filter(|change| change.counts(at)) {
                found.take_damage(&change, at);
            }
        }
        if let Some(wrong) = &image.wrong {
            found.break_promise(fsck_found(wrong), at);
        }
        found
    }
}

impl OfCut {
    fn break_promise(&mut self, why: String, at: u64) {
        self.broken.get_or_insert_with(|| at_a_cut(&why, at));
    }

    fn take_change(&mut self, change: &Change, there: bool, at: u64) {
        if change.kind == Kind::Unlink && change.begun > at && there {
            self.break_promise(format!("{} is gone and was not removed", change.shown()), at);
        }
        if change.returned > at {
            return;
        }
        let promised = change.promised.filter(|promised| *promised <= at);
        self.promised |= promised.is_some();
        if there {
            return;
        }
        if change.is_measured {
            let class = usize::from(!change.kind.is_name());
            self.lost_ns[class] = self.lost_ns[class].max(at - change.returned);
        }
        if let Some(promised) = promised {
            let ago = show_duration((at - promised) as f64);
            self.break_promise(format!("{} had been durable for {ago} and is lost", change.shown()), at);
        }
    }

    fn take_damage(&mut self, change: &Change, at: u64) {
        // The file was synced before it got its name, or before the change had returned.
        let synced = matches!(change.sync, Sync::File | Sync::Folder);
        let renamed = change.kind == Kind::Replace && change.begun <= at;
        let is_first = change.kind.places().is_some_and(|places| change.number < places);
        if synced && (renamed || change.returned <= at) {
            self.break_promise(format!("{} is damaged though its file was synced", change.shown()), at);
        } else if change.begun <= at {
            self.damaged = true;
        } else if is_first {
            self.break_promise(format!("what was durable before {} is damaged", change.shown()), at);
        }
    }
}

impl Change {
    /// No later change may have taken its place.
    fn counts(&self, at: u64) -> bool {
        self.replaced.is_none_or(|begun| begun > at)
    }

    fn shown(&self) -> String {
        format!("{} {} ({})", self.kind.word(), self.number, self.sync.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_disks::cuts::Moment;
    use std::time::Duration;

    const SECOND: u64 = 1_000_000_000;

    /// A change a second, which takes a tenth.
    fn stamps(schedule: &Schedule) -> Vec<Stamp> {
        let stamp = |step: u64| Stamp { begun: step * SECOND, returned: step * SECOND + SECOND / 10 };
        (0..schedule.steps.len() as u64).map(stamp).collect()
    }

    /// A cut at a moment that leaves what the change makes of a survey where all is there that had
    /// begun.
    fn cut_at(schedule: &Schedule, at: u64, change: impl Fn(&mut Survey)) -> Outcomes<Survey> {
        let there = stamps(schedule).iter().map(|stamp| stamp.begun <= at).collect();
        let mut survey = Survey { there, ..Survey::default() };
        change(&mut survey);
        let moment = Moment { at, span: 0, evenly: true };
        let image = Recovered { mounted: Ok(Duration::from_millis(3)), found: Some(survey), wrong: None };
        Outcomes { cuts: vec![Cut { moment, loses: 0, image: 0 }], images: vec![image], are_checked: true }
    }

    fn judged(schedule: &Schedule, outcomes: &Outcomes<Survey>) -> Result<Verdicts> {
        CutResults::new(schedule, &stamps(schedule), outcomes).map(|found| found.verdicts())
    }

    fn find(schedule: &Schedule, kind: Kind, number: u64) -> usize {
        let is = |step: &Step| matches!(*step, Step::Change { stream, number: n } if schedule.streams[stream].kind == kind && n == number);
        schedule.steps.iter().position(is).expect("a step")
    }

    #[test]
    fn a_loss_is_as_old_as_the_oldest_lost_change() {
        let schedule = Schedule::new([(Sync::Never, 70)], 10, 1);
        let at = 50 * SECOND;
        let all = judged(&schedule, &cut_at(&schedule, at, |_| ())).expect("judged");
        assert_eq!((all.names, all.contents, all.tally.broken.len(), all.tally.damaged), (vec![0], vec![0], 0, 0));
        // All of the last ten seconds: of seven kinds one each in as many seconds.
        let lost = cut_at(&schedule, at, |survey| survey.there[40..].fill(false));
        let found = judged(&schedule, &lost).expect("judged");
        let oldest = |is_name: bool| {
            let lost = |step: &usize| {
                let Step::Change { stream, number } = schedule.steps[*step] else { return false };
                let kind = schedule.streams[stream].kind;
                // What was replaced by the cut is not looked for.
                let is_later =
                    |later: &Step| *later == Step::Change { stream, number: number + kind.places().unwrap_or(1000) };
                let later = schedule.steps.iter().position(is_later);
                kind.is_name() == is_name && later.is_none_or(|later| later as u64 * SECOND > at)
            };
            at - (40..50).find(lost).expect("one is lost") as u64 * SECOND - SECOND / 10
        };
        assert_eq!((found.names, found.contents), (vec![oldest(true)], vec![oldest(false)]));
        assert!(found.tally.broken.is_empty(), "nothing was promised: {:?}", found.tally.broken);
    }

    #[test]
    fn a_promise_holds_from_the_return_on_and_not_before() {
        let schedule = Schedule::new([(Sync::Folder, 70)], 10, 1);
        let step = find(&schedule, Kind::Mkdir, 4);
        let returned = step as u64 * SECOND + SECOND / 10;
        for (at, broken) in [(returned - 1, 0), (returned, 1), (returned + 30 * SECOND, 1)] {
            let outcomes = cut_at(&schedule, at.min(69 * SECOND), |survey| survey.there[step] = false);
            let found = judged(&schedule, &outcomes).expect("judged");
            assert_eq!((found.tally.broken.len(), found.tally.promise_cuts), (broken, 1), "{:?}", found.tally.broken);
        }
    }

    #[test]
    fn what_is_being_replaced_may_be_old_new_or_torn() {
        let schedule = Schedule::new([(Sync::Data, 70)], 10, 1);
        let (old, new) = (find(&schedule, Kind::Overwrite, 3), find(&schedule, Kind::Overwrite, 19));
        let torn = |survey: &mut Survey| {
            (survey.there[old], survey.there[new]) = (false, false);
            survey.damaged = vec![old, new];
        };
        for (at, broken) in
            [(new as u64 * SECOND - 1, 1), (new as u64 * SECOND, 0), (new as u64 * SECOND + SECOND / 10, 1)]
        {
            let found = judged(&schedule, &cut_at(&schedule, at, torn)).expect("judged");
            assert_eq!(found.tally.broken.len(), broken, "{at}: {:?}", found.tally.broken);
        }
    }

    #[test]
    fn content_whose_file_was_synced_is_whole_under_its_new_name() {
        for (sync, broken, damaged) in [(Sync::File, 1, 0), (Sync::Never, 0, 1)] {
            let schedule = Schedule::new([(sync, 70)], 10, 1);
            let step = find(&schedule, Kind::Replace, 6);
            let emptied = |survey: &mut Survey| {
                survey.there[step] = false;
                survey.damaged = vec![step];
            };
            let found = judged(&schedule, &cut_at(&schedule, step as u64 * SECOND, emptied)).expect("judged");
            assert_eq!(
                (found.tally.broken.len(), found.tally.damaged),
                (broken, damaged),
                "{sync:?}: {:?}",
                found.tally.broken
            );
        }
    }

    #[test]
    fn a_file_system_that_is_not_mounted_has_lost_all() {
        let schedule = Schedule::new([(Sync::Never, 70)], 10, 1);
        let mut outcomes = cut_at(&schedule, 60 * SECOND, |_| ());
        outcomes.images[0] = Recovered { mounted: Err("bad superblock".into()), found: None, wrong: None };
        let found = judged(&schedule, &outcomes).expect("judged");
        assert_eq!((found.tally.unmountable, found.tally.broken.len(), found.tally.mounts_ns.len()), (1, 1, 0));
        assert!(found.names[0] > 50 * SECOND && found.tally.broken[0].1.contains("bad superblock"), "{found:?}");
    }

    #[test]
    fn a_file_system_that_its_checker_finds_damaged_has_broken_a_promise() {
        let schedule = Schedule::new([(Sync::Never, 70)], 10, 1);
        let mut outcomes = cut_at(&schedule, 60 * SECOND, |_| ());
        outcomes.images[0].wrong = Some("Block bitmap differences: -8481".into());
        let found = judged(&schedule, &outcomes).expect("judged").tally;
        assert_eq!((found.fsck_errors, found.broken.len(), found.promise_cuts), (Some(1), 1, 1));
        assert!(found.broken[0].1.contains("fsck finds errors (Block bitmap"), "{found:?}");
        outcomes.are_checked = false;
        outcomes.images[0].wrong = None;
        assert_eq!(judged(&schedule, &outcomes).expect("judged").tally.fsck_errors, None);
    }

    #[test]
    fn what_was_there_before_is_promised_and_the_future_is_an_error() {
        let schedule = Schedule::new([(Sync::Never, 70)], 10, 1);
        let at = 30 * SECOND;
        let gone = cut_at(&schedule, at, |survey| survey.gone = vec!["1-link-never: not found".into()]);
        assert_eq!(judged(&schedule, &gone).expect("judged").tally.broken.len(), 1);
        let unlinked = find(&schedule, Kind::Unlink, 8);
        let early = cut_at(&schedule, at, |survey| survey.there[unlinked] = true);
        assert!(judged(&schedule, &early).expect("judged").tally.broken[0].1.contains("was not removed"));
        let made = find(&schedule, Kind::Mkdir, 8);
        let early = cut_at(&schedule, at, |survey| survey.there[made] = true);
        assert!(judged(&schedule, &early).is_err());
        let damaged = find(&schedule, Kind::Overwrite, 7);
        let before = cut_at(&schedule, at, |survey| survey.damaged = vec![damaged]);
        assert_eq!(judged(&schedule, &before).expect("judged").tally.broken.len(), usize::from(damaged > 30));
    }
}
