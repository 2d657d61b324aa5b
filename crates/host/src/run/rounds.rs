//! Round after round until it is enough: the order of cells, the looks, and what a resumed run
//! leaves out.

use super::{Finish, Limits, Progress};
use crate::analysis::look;
use anyhow::Result;
use pickfs_core::journal::*;
use pickfs_core::plan::{Cell, OtherProcessors, Plan, Target, at_other_speeds as at_other_speeds_of, orders};

/// Does cells: by agents in earnest, with made-up results in a rehearsal.
pub(super) trait Doer {
    /// `None`: stopped on request, the cell counts as not run.
    fn cell(&mut self, cell: &Cell, progress: &mut dyn Progress) -> Result<Option<Outcome>>;
    /// These cells come next, in this order; some may have been named before.
    fn expect(&mut self, _cells: &[Cell]) {}
    /// All that is known so far.
    fn folded(&self) -> &Folded;
    fn note(&mut self, record: Record) -> Result<()>;
    /// How long the session may take; `None` in a rehearsal.
    fn limits(&self) -> Option<&Limits> {
        None
    }
    /// The plan's budget of time for this session is used up.
    fn budget_used(&self, plan: &Plan) -> bool {
        self.limits().is_some_and(|limits| limits.are_used(plan))
    }
    /// RFC 3339; empty in a rehearsal.
    fn now(&self) -> String {
        self.limits().map(|_| jiff::Timestamp::now().to_string()).unwrap_or_default()
    }
    /// Whether the session goes on where its run could end.
    fn may_continue(&self) -> bool {
        self.limits().is_some_and(Limits::go_on)
    }
    /// The plan with the changes so far.
    fn plan(&self) -> Plan {
        self.folded().run.as_ref().map(|run| run.plan.clone()).unwrap_or_default()
    }
}

/// All that the plan asks for.
pub(super) fn to_the_end(doer: &mut impl Doer, progress: &mut dyn Progress) -> Result<Finish> {
    let Some(end) = measure(doer, progress)? else { return Ok(Finish::Stopped) };
    if end.is_final() && !at_other_speeds(doer, progress)? {
        return Ok(Finish::Stopped);
    }
    Ok(Finish::Enough(end))
}

/// Why the rounds came to their end; `None`: stopped on request.
pub(super) fn measure(doer: &mut impl Doer, progress: &mut dyn Progress) -> Result<Option<StopReason>> {
    // A session does something before its budget can end it.
    let mut has_begun = false;
    for round in 1.. {
        // What a round finds out can give the plan another reference.
        let plan = &doer.plan();
        let cells: Vec<Cell> = left(plan, doer.folded(), round);
        has_begun |= !cells.is_empty();
        doer.expect(&coming(plan, doer.folded()));
        for cell in &cells {
            progress.cell(cell);
            let Some(outcome) = doer.cell(cell, progress)? else { return Ok(None) };
            progress.cell_ended(cell, &outcome, doer.folded());
        }
        if !cells.is_empty() {
            progress.round_ended(doer.folded());
        }
        let budget_used = has_begun && doer.budget_used(plan);
        let end = look_if_due(plan, doer, round, budget_used, progress)?;
        if end.is_some() && (round >= plan.stop.most_rounds() || !doer.may_continue()) {
            return Ok(end);
        }
    }
    unreachable!("the last round has a look that ends the run")
}

/// Checks the verdict on other processors, where the plan has that done. False: stopped on request.
fn at_other_speeds(doer: &mut impl Doer, progress: &mut dyn Progress) -> Result<bool> {
    let cells = unchecked(&doer.plan(), doer.folded());
    doer.expect(&cells.iter().map(|(_, cell)| cell.clone()).collect::<Vec<_>>());
    for (processors, cell) in &cells {
        doer.note(Record::Speed(Speed { cell: cell.id.clone(), processors: *processors }))?;
        progress.cell(cell);
        let Some(outcome) = doer.cell(cell, progress)? else { return Ok(false) };
        progress.cell_ended(cell, &outcome, doer.folded());
    }
    Ok(true)
}

/// Cells that check the verdict and have not ended.
pub(super) fn unchecked(plan: &Plan, folded: &Folded) -> Vec<(OtherProcessors, Cell)> {
    let cells = if plan.other_speeds { at_other_speeds_of(plan) } else { Vec::new() };
    cells.into_iter().filter(|(_, cell)| is_to_be_run(folded, cell)).collect()
}

/// Why a run is over for good: its verdict was checked, too.
pub fn checked_end(plan: &Plan, folded: &Folded) -> Option<StopReason> {
    let end = folded.looks.last().and_then(|look| look.end);
    end.filter(|end| end.is_final() && unchecked(plan, folded).is_empty())
}

/// The cells of each round, of targets that have not left before it.
pub fn cells_of_rounds<'a>(plan: &'a Plan, folded: &'a Folded) -> impl Iterator<Item = Vec<Cell>> + 'a {
    orders(plan, move |target, round| !has_left(plan, folded, target, round))
}

/// The cells of a round that are still to be run: none that has ended, and none that cannot be
/// done.
fn left(plan: &Plan, folded: &Folded, round: u32) -> Vec<Cell> {
    let cells = cells_of_rounds(plan, folded).nth(round as usize - 1).unwrap_or_default();
    cells.into_iter().filter(|cell| is_to_be_run(folded, cell)).collect()
}

fn is_to_be_run(folded: &Folded, cell: &Cell) -> bool {
    !has_ended(folded, cell) && !folded.is_left_out(&cell.target, &cell.work.name)
}

fn has_ended(folded: &Folded, cell: &Cell) -> bool {
    folded.find_cell(&cell.id).is_some_and(|seen| seen.outcome.is_some())
}

/// The cells that are to be run up to the next interim analysis, in their order. If the plan has a
/// number of rounds, all cells of all rounds, and then the cells that check the verdict.
pub(super) fn coming(plan: &Plan, folded: &Folded) -> Vec<Cell> {
    let rounds = cells_of_rounds(plan, folded).take(next_look(plan, folded) as usize).flatten();
    let rounds = rounds.filter(|cell| is_to_be_run(folded, cell));
    let checks = if plan.stop.rounds.is_some() { unchecked(plan, folded) } else { Vec::new() };
    rounds.chain(checks.into_iter().map(|(_, cell)| cell)).collect()
}

/// The same up to the last round, by round, if no further target leaves.
pub(super) fn open_rounds(plan: &Plan, folded: &Folded) -> Vec<Vec<Cell>> {
    let rounds = cells_of_rounds(plan, folded).take(plan.stop.most_rounds() as usize);
    let open = rounds.map(|cells| cells.into_iter().filter(|cell| is_to_be_run(folded, cell)).collect());
    open.filter(|cells: &Vec<Cell>| !cells.is_empty()).collect()
}

/// The round of the next interim analysis; of the last one where the run is over.
fn next_look(plan: &Plan, folded: &Folded) -> u32 {
    let looked = folded.looks.last().map_or(0, |look| look.round);
    let is_over = folded.looks.last().and_then(|look| look.end).is_some_and(StopReason::is_final);
    match plan.stop.rounds {
        _ if is_over => looked,
        Some(rounds) => rounds,
        None => plan.looks.next(looked).unwrap_or(plan.stop.most_rounds()),
    }
}

/// The reference's copy leaves with it.
fn has_left(plan: &Plan, folded: &Folded, target: &Target, round: u32) -> bool {
    let name = if target.duplicate { &plan.reference } else { &target.name };
    let before = folded.looks.iter().filter(|look| look.round < round);
    before.flat_map(|look| &look.leaving).any(|leaving| leaving.target == *name)
}

/// Cells of the rounds up to the next look, and how many of them have ended.
pub(super) fn up_to_next_look(plan: &Plan, folded: &Folded) -> (usize, usize) {
    let cells = cells_of_rounds(plan, folded).take(next_look(plan, folded) as usize).flatten();
    let (ended, open): (Vec<Cell>, Vec<Cell>) = cells.partition(|cell| has_ended(folded, cell));
    let left = open.iter().filter(|cell| is_to_be_run(folded, cell)).count();
    let planned = ended.len() + left;
    let checks = if plan.other_speeds { at_other_speeds_of(plan).len() } else { 0 };
    (planned + checks, planned + checks - left - unchecked(plan, folded).len())
}

fn look_if_due(
    plan: &Plan,
    doer: &mut impl Doer,
    round: u32,
    budget_used: bool,
    progress: &mut dyn Progress,
) -> Result<Option<StopReason>> {
    let most = plan.stop.most_rounds();
    if let Some(made) = doer.folded().looks.iter().rev().find(|look| look.round == round) {
        // A run that had no budget or no hope left and is resumed gets the next interim analysis,
        // if one can follow.
        let end = made.end.filter(|end| end.is_final());
        return Ok(end.or((round >= most).then_some(StopReason::Rounds)));
    }
    let is_due = (plan.stop.rounds.is_none() && plan.looks.is_due(round)) || budget_used;
    // An interim analysis shows what is known after its round; once later ones are measured, that
    // has passed.
    if round < most && (!is_due || is_past(doer.folded(), round, most)) {
        return Ok(None);
    }
    let found = Look { at: doer.now(), ..look(plan, doer.folded(), round, budget_used) };
    doer.note(Record::Look(found.clone()))?;
    let (planned, _) = up_to_next_look(plan, doer.folded());
    progress.interim_analysis(&found, planned, doer.folded());
    Ok(found.end)
}

fn is_past(folded: &Folded, round: u32, most: u32) -> bool {
    folded.cells.iter().any(|cell| cell.round > round && cell.round <= most && cell.outcome.is_some())
}

#[cfg(test)]
mod tests {
    use super::super::progress::Silent;
    use super::*;
    use pickfs_core::plan::{Stop, Work, order};
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// Milliseconds of a cell and the width of their noise, by target; 0 fails. The duplicate `A`
    /// is as `a`.
    type Times = &'static [(&'static str, f64, f64)];

    /// One session after the other over what is known so far.
    struct Sessions {
        folded: Folded,
        times: Times,
        /// Cells that a session does before it is stopped, and cells that its budget is enough for.
        stop_after: usize,
        budget: usize,
        /// Goes on until the budget ends it, also where there is a decision.
        more: bool,
        /// Cells that ended in this session, and the names of all that ever ended.
        done: usize,
        ended: Vec<String>,
        /// How many cells were named at a time.
        expected: Vec<usize>,
    }

    impl Sessions {
        fn new(times: Times) -> Sessions {
            let (stop_after, budget) = (usize::MAX, usize::MAX);
            let (folded, ended, expected) = (Folded::default(), Vec::new(), Vec::new());
            Sessions { folded, times, stop_after, budget, more: false, done: 0, ended, expected }
        }

        fn go(&mut self, plan: &Plan) -> Option<StopReason> {
            self.done = 0;
            self.folded.run.get_or_insert_with(|| Run { plan: plan.clone(), ..Run::default() });
            measure(self, &mut Silent).expect("nothing can fail here")
        }

        fn time(&self, cell: &Cell) -> Option<f64> {
            let name = cell.target.name.to_lowercase();
            let (_, ms, width) = self.times.iter().find(|(of, ..)| *of == name).expect("a target of the table");
            (*ms > 0.0).then_some(ms * 1e6 * (width * noise(cell)).exp())
        }
    }

    impl Doer for Sessions {
        fn cell(&mut self, cell: &Cell, _: &mut dyn Progress) -> Result<Option<Outcome>> {
            let (id, target, work) = (cell.id.clone(), cell.target.name.clone(), cell.work.name.clone());
            let begin = Begin { cell: id.clone(), round: cell.round, target, work, at: String::new() };
            self.folded.take(Record::Begin(begin));
            if self.done == self.stop_after {
                return Ok(None);
            }
            self.done += 1;
            self.ended.push(format!("{}{}", cell.target.name, cell.round));
            let outcome = match self.time(cell) {
                None => Outcome::Failed("no space left".into()),
                Some(value) => {
                    let (cell, phase, metric) = (id.clone(), "read".into(), "time_ns".into());
                    self.folded.take(Record::Sample(Sample { cell, phase, metric, value }));
                    Outcome::Done
                }
            };
            self.folded.take(Record::End(End { cell: id, outcome: outcome.clone(), at: String::new() }));
            Ok(Some(outcome))
        }

        fn expect(&mut self, cells: &[Cell]) {
            self.expected.push(cells.len());
        }

        fn folded(&self) -> &Folded {
            &self.folded
        }

        fn note(&mut self, record: Record) -> Result<()> {
            self.folded.take(record);
            Ok(())
        }

        fn budget_used(&self, _plan: &Plan) -> bool {
            self.done >= self.budget
        }

        fn may_continue(&self) -> bool {
            self.more && self.done < self.budget
        }
    }

    /// From -1 to 1; the same for the same cell, whenever it is done.
    fn noise(cell: &Cell) -> f64 {
        let number = u64::from_str_radix(&cell.id, 16).expect("an id of 16 digits");
        Xoshiro256PlusPlus::seed_from_u64(number).next_u64() as f64 / u64::MAX as f64 * 2.0 - 1.0
    }

    /// The reference `a`, perhaps its duplicate `A`, and the others.
    fn plan(names: &str, stop: Stop) -> Plan {
        let target = |name: char| Target { name: name.into(), duplicate: name == 'A', ..Target::default() };
        let targets = names.chars().map(target).collect();
        let works = vec![Work { name: "read".into(), ..Work::default() }];
        Plan { seed: 4, reference: "a".into(), targets, works, stop, ..Plan::default() }
    }

    /// "8 -c; 11 decided | a11 A8 b11 c8": looks at which one leaves or the run ends, then each
    /// target's last round.
    fn story(plan: &Plan, folded: &Folded) -> String {
        let look = |look: &Look| {
            let leaving: String = look.leaving.iter().map(|leaving| format!(" -{}", leaving.target)).collect();
            let end = look.end.map(|end| format!(" {end:?}").to_lowercase()).unwrap_or_default();
            format!("{}{leaving}{end}", look.round)
        };
        let last = |target: &Target| {
            let ended = folded.cells.iter().filter(|cell| cell.target == target.name && cell.outcome.is_some());
            format!("{}{}", target.name, ended.map(|cell| cell.round).max().unwrap_or(0))
        };
        let any = folded.looks.iter().filter(|look| look.end.is_some() || !look.leaving.is_empty());
        let looks: Vec<String> = any.map(look).collect();
        let cells: Vec<String> = plan.targets.iter().map(last).collect();
        format!("{} | {}", looks.join("; "), cells.join(" "))
    }

    const FREE: Stop = Stop { rounds: None, precision: None, race: true, budget_ns: None, cell_ns: 1, threshold: 0.03 };

    const CLOSE: Times = &[("a", 100.0, 0.04), ("b", 100.0, 0.04), ("c", 160.0, 0.05)];
    const SLOW_REFERENCE: Times = &[("a", 160.0, 0.04), ("b", 102.0, 0.04), ("c", 100.0, 0.04), ("d", 130.0, 0.04)];
    const ONE_FAILS: Times = &[("a", 100.0, 0.04), ("b", 100.0, 0.04), ("c", 0.0, 0.0)];
    const TWO_FAIL: Times = &[("a", 100.0, 0.04), ("b", 0.0, 0.0), ("c", 0.0, 0.0)];
    const NOISY: Times = &[("a", 100.0, 0.5), ("b", 101.0, 0.5), ("c", 990.0, 0.5)];
    const KEEP_ALL: Stop = Stop { race: false, ..FREE };
    const PRECISE: Stop = Stop { precision: Some(0.03), ..FREE };

    /// Targets, their times, when to stop, and the whole story of one session.
    const STORIES: &[(&str, Times, Stop, &str)] = &[
        // A beaten target leaves at the first look, the others go on to a tie.
        ("aAbc", CLOSE, FREE, "3 -c; 8 decided | a8 A8 b8 c3"),
        ("aAbc", CLOSE, KEEP_ALL, "8 decided | a8 A8 b8 c8"),
        // The reference and its duplicate are beaten at the first look and leave like any other.
        ("aAbcd", SLOW_REFERENCE, FREE, "3 -a -d; 12 decided | a3 A3 b12 c12 d3"),
        ("aAbc", ONE_FAILS, FREE, "3 -c; 8 decided | a8 A8 b8 c3"),
        ("aAbc", ONE_FAILS, KEEP_ALL, "8 decided | a8 A8 b8 c8"),
        ("aAbc", TWO_FAIL, FREE, "3 -b -c; 8 nothing | a8 A8 b3 c3"),
        ("a", CLOSE, FREE, "8 nothing | a8"),
        ("aAbc", NOISY, FREE, "3 -c; 40 rounds | a40 A8 b40 c3"),
        ("aAbc", CLOSE, PRECISE, "22 precise | a22 A8 b22 c22"),
        ("aAbc", NOISY, Stop { rounds: Some(5), ..FREE }, "5 rounds | a5 A5 b5 c5"),
    ];

    /// Looks where they are due and no cell twice, none after its target has left and no other
    /// missing, whatever the sessions were.
    #[track_caller]
    fn assert_sound(plan: &Plan, sessions: &Sessions) {
        let rounds: Vec<u32> = sessions.folded.looks.iter().map(|look| look.round).collect();
        assert!(rounds.is_sorted_by(|a, b| a < b), "{rounds:?}");
        let last = *rounds.last().expect("a look ends every session");
        let mut due = plan.looks.rounds().filter(|look| plan.stop.rounds.is_none() && *look <= last);
        assert!(due.all(|look| rounds.contains(&look)), "{rounds:?}");
        let left_at = |name: &str| {
            let leaves = |look: &&Look| look.leaving.iter().any(|leaving| leaving.target == name);
            sessions.folded.looks.iter().find(leaves).map_or(last, |look| look.round)
        };
        let left_at = |name: &str| if name == "A" { left_at("a").min(8) } else { left_at(name) };
        let cells_of = |name: &String| (1..=left_at(name)).map(|round| format!("{name}{round}")).collect::<Vec<_>>();
        let mut wanted: Vec<String> = plan.targets.iter().flat_map(|target| cells_of(&target.name)).collect();
        let mut ended = sessions.ended.clone();
        wanted.sort();
        ended.sort();
        assert_eq!(ended, wanted);
    }

    /// So that machines that cannot disturb each other need not wait for one another at the end of
    /// each round.
    #[test]
    fn all_that_is_certain_to_come_is_named() {
        let fixed = Stop { rounds: Some(2), ..FREE };
        for (stop, other_speeds, wanted) in [(fixed, false, [4, 2]), (fixed, true, [8, 6]), (FREE, true, [6, 4])] {
            let mut sessions = Sessions::new(NOISY);
            sessions.go(&Plan { other_speeds, ..plan("ab", stop) });
            assert_eq!(sessions.expected[..2], wanted, "{stop:?}");
        }
    }

    #[test]
    fn looks_send_targets_away_and_end_runs() {
        for (names, times, stop, wanted) in STORIES {
            let plan = plan(names, *stop);
            let mut sessions = Sessions::new(times);
            let end = sessions.go(&plan);
            assert_eq!(story(&plan, &sessions.folded), *wanted);
            assert_eq!(end, sessions.folded.looks.last().and_then(|look| look.end), "{wanted}");
            assert_sound(&plan, &sessions);
        }
    }

    /// Wherever a run is cut: the same looks, each once, and the same cells, each once.
    #[test]
    fn a_run_that_is_cut_and_taken_up_is_the_run_that_was_not() {
        for (names, times, stop, wanted) in STORIES {
            let plan = plan(names, *stop);
            let mut whole = Sessions::new(times);
            let end = whole.go(&plan);
            // Long runs are cut at every seventh cell: that is each place of a round in turn.
            for cut in (0..whole.ended.len()).step_by(if whole.ended.len() > 30 { 7 } else { 1 }) {
                let mut sessions = Sessions { stop_after: cut, ..Sessions::new(times) };
                assert_eq!(sessions.go(&plan), None, "{wanted} cut after {cut}");
                sessions.stop_after = usize::MAX;
                assert_eq!(sessions.go(&plan), end, "{wanted} cut after {cut}");
                assert_eq!(sessions.folded.looks, whole.folded.looks, "{wanted} cut after {cut}");
                assert_eq!(sessions.ended, whole.ended, "{wanted} cut after {cut}");
            }
        }
    }

    #[test]
    fn what_has_ended_is_not_open() {
        let plan = plan("aAbc", Stop { rounds: Some(10), ..FREE });
        let mut sessions = Sessions { stop_after: 30, ..Sessions::new(CLOSE) };
        sessions.go(&plan);
        let open = open_rounds(&plan, &sessions.folded);
        assert_eq!(open.iter().map(Vec::len).collect::<Vec<_>>(), [2, 3, 3], "the copy has eight rounds");
    }

    /// However often it is cut.
    #[test]
    fn a_run_that_is_cut_after_every_cell_is_the_run_that_was_not() {
        let plan = plan("aAbc", FREE);
        let (mut whole, mut cut) = (Sessions::new(CLOSE), Sessions { stop_after: 1, ..Sessions::new(CLOSE) });
        let end = whole.go(&plan);
        let found = (0..whole.ended.len()).find_map(|_| cut.go(&plan));
        assert_eq!((found, &cut.folded.looks, &cut.ended), (end, &whole.folded.looks, &whole.ended));
    }

    #[test]
    fn a_run_that_has_ended_for_good_measures_nothing_more() {
        for (names, times, stop, wanted) in STORIES {
            let plan = plan(names, *stop);
            let mut sessions = Sessions::new(times);
            let end = sessions.go(&plan);
            if end.is_some_and(StopReason::is_final) {
                assert_eq!((sessions.go(&plan), sessions.done), (end, 0), "{wanted}");
                let all = sessions.ended.len();
                assert_eq!(
                    (up_to_next_look(&plan, &sessions.folded), story(&plan, &sessions.folded).as_str()),
                    ((all, all), *wanted)
                );
            }
        }
    }

    #[test]
    fn a_session_that_is_to_go_on_does_so_beyond_a_decision_and_not_beyond_the_last_round() {
        let plan = plan("aAbc", FREE);
        let mut sessions = Sessions::new(CLOSE);
        assert_eq!(sessions.go(&plan), Some(StopReason::Decided));
        let decided = sessions.ended.len();
        (sessions.more, sessions.budget) = (true, 4);
        sessions.go(&plan);
        assert!(sessions.ended.len() > decided, "{:?}", sessions.ended);
        sessions.budget = usize::MAX;
        assert!(sessions.go(&plan).is_some());
        assert_eq!(sessions.folded.looks.last().map(|look| look.round), Some(40));
        assert_sound(&plan, &sessions);
    }

    /// Each cell once, also where a session is cut; and none without the plan's word.
    #[test]
    fn a_verdict_is_checked_on_other_processors_once() {
        let mut plan = plan("ab", Stop { rounds: Some(5), ..FREE });
        let mut sessions = Sessions::new(CLOSE);
        assert_eq!(sessions.go(&plan), Some(StopReason::Rounds));
        assert!(at_other_speeds(&mut sessions, &mut Silent).expect("done") && sessions.done == 10);
        plan.other_speeds = true;
        if let Some(run) = &mut sessions.folded.run {
            run.plan.other_speeds = true;
        }
        assert_eq!(up_to_next_look(&plan, &sessions.folded), (14, 10));
        (sessions.done, sessions.stop_after) = (0, 3);
        assert!(!at_other_speeds(&mut sessions, &mut Silent).expect("cut"));
        (sessions.done, sessions.stop_after) = (0, usize::MAX);
        assert!(at_other_speeds(&mut sessions, &mut Silent).expect("done"));
        assert_eq!((sessions.done, unchecked(&plan, &sessions.folded).len()), (1, 0));
        assert_eq!(up_to_next_look(&plan, &sessions.folded), (14, 14));
        let speeds: Vec<f64> =
            sessions.folded.cells.iter().map(|cell| sessions.folded.processors(cell).times).collect();
        assert_eq!([0.5, 1.0, 2.0].map(|times| speeds.iter().filter(|speed| **speed == times).count()), [2, 10, 2]);
    }

    #[test]
    fn what_is_left_out_has_no_cells_and_the_reference_falls_to_another() {
        let plan = plan("aAbc", FREE);
        let mut sessions = Sessions::new(CLOSE);
        sessions.folded.take(Record::Run(Box::new(Run { plan: plan.clone(), ..Run::default() })));
        let (target, work, outcome) = ("a".into(), "read".into(), Outcome::Failed("cannot mount".into()));
        sessions.folded.take(Record::Unfit(Unfit { target, work, outcome }));
        let found = &found_plan(&sessions).clone();
        assert_eq!((found.reference.as_str(), found.targets[1].name.as_str()), ("b", "b (again)"));
        assert_eq!(left(found, &sessions.folded, 1).len(), 3);
        assert_eq!(up_to_next_look(found, &sessions.folded), (9, 0));
        // One that is skipped, for what a guest lacks, is not asked again.
        let cell = order(found, 1).into_iter().find(|cell| cell.target.name == "c").expect("its cell");
        let begin = Begin::of(&cell, String::new());
        sessions.folded.take(Record::Begin(begin));
        let outcome = Outcome::Skipped(vec!["no mkfs".into()]);
        sessions.folded.take(Record::End(End { cell: cell.id, outcome, at: String::new() }));
        assert_eq!(left(found_plan(&sessions), &sessions.folded, 2).len(), 2);
    }

    fn found_plan(sessions: &Sessions) -> &Plan {
        &sessions.folded.run.as_ref().expect("a run").plan
    }

    /// A session ends with the round in which its budget is used up, if nothing else ends it
    /// before.
    #[test]
    fn with_a_budget_each_session_goes_on_where_the_last_one_ended() {
        for (names, times, stop, wanted) in STORIES {
            let plan = plan(names, *stop);
            for budget in [1, 5, 9, 13, 30] {
                let mut sessions = Sessions { budget, ..Sessions::new(times) };
                loop {
                    let end = sessions.go(&plan);
                    assert_sound(&plan, &sessions);
                    assert!(sessions.done > 0 && sessions.done < budget + names.len(), "{wanted} with {budget}");
                    assert!(end != Some(StopReason::Budget) || sessions.done >= budget, "{wanted} with {budget}");
                    if end.is_none_or(StopReason::is_final) {
                        break;
                    }
                }
                let (whole, found) =
                    (wanted.contains("nothing"), sessions.folded.looks.last().and_then(|look| look.end));
                assert_eq!(found == Some(StopReason::Nothing), whole, "{wanted} with {budget}");
            }
        }
    }

    /// Five rounds and a part of the sixth, or six, then sessions that have no time at all: each
    /// ends one more round.
    #[test]
    fn a_budget_that_is_used_up_at_once_makes_no_look_of_the_past() {
        let plan = plan("aAbc", KEEP_ALL);
        for (cells, rounds) in [(21, [6, 7]), (24, [7, 8])] {
            let mut sessions = Sessions { stop_after: cells, ..Sessions::new(NOISY) };
            assert_eq!(sessions.go(&plan), None);
            (sessions.stop_after, sessions.budget) = (usize::MAX, 0);
            for wanted in rounds {
                assert_eq!(sessions.go(&plan), Some(StopReason::Budget));
                assert_eq!(sessions.folded.looks.last().map(|look| look.round), Some(wanted));
                assert_sound(&plan, &sessions);
            }
        }
    }

    /// A journal that says so is damaged, or not of a run.
    #[test]
    fn a_last_look_that_ends_nothing_is_the_last_all_the_same() {
        let plan = plan("aAbc", Stop { rounds: Some(5), ..FREE });
        let mut sessions = Sessions::new(CLOSE);
        sessions.folded.take(Record::Look(Look { round: 5, ..Look::default() }));
        assert_eq!((sessions.go(&plan), sessions.done), (Some(StopReason::Rounds), 20));
    }

    /// A hole in round 3 is filled, and the budget ends the session with the next round that has no
    /// look.
    #[test]
    fn a_hole_in_an_old_round_makes_no_look_of_the_past() {
        let plan = plan("aAbc", KEEP_ALL);
        let mut sessions = Sessions { stop_after: 28, ..Sessions::new(NOISY) };
        assert_eq!(sessions.go(&plan), None);
        let hole = order(&plan, 3).remove(0);
        let (cell, target, work) = (hole.id, hole.target.name, hole.work.name);
        sessions.folded.take(Record::Begin(Begin { cell, round: 3, target, work, at: String::new() }));
        (sessions.stop_after, sessions.budget) = (usize::MAX, 1);
        assert_eq!((sessions.go(&plan), sessions.done), (Some(StopReason::Budget), 5));
        assert_eq!(sessions.folded.looks.iter().map(|look| look.round).collect::<Vec<_>>(), [3, 4, 5, 6, 7, 8]);
    }
}
