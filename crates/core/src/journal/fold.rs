//! Records -> what is known: cells with their samples, and the steps that have not been undone.

use super::leftovers::Leftovers;
use super::lines::{Line, Lines};
use super::weight::{Budget, KeptCounts};
use super::*;
use crate::plan::{MOST_ROUNDS, OtherProcessors, Stop, Target};
use anyhow::{Context, Result};
use pickfs_system::sys::file::open_regular;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader, Seek};
use std::path::Path;

/// All that a journal says. Phase and metric names are kept once and counted, so that a million
/// samples fit in 16 bytes each.
#[derive(Debug, Default)]
pub struct Folded {
    pub run: Option<Run>,
    pub cells: Vec<FoldedCell>,
    /// Provenance of the whole run.
    pub host: BTreeMap<String, String>,
    hardware: Hardware,
    /// Time spent on the run as a whole, outside cells.
    pub ledger: Ledger,
    /// Doubts about the whole run.
    pub flags: Vec<Flag>,
    /// By target and work: what was tried before the first round and cannot be done.
    pub unfit: BTreeMap<(String, String), Outcome>,
    /// Oldest first.
    pub looks: Vec<Look>,
    /// Of cells that check the verdict on another processor, how many times as fast it is, by id.
    speeds: BTreeMap<String, OtherProcessors>,
    /// Steps not undone, oldest first.
    pub leftovers: Leftovers,
    /// Lines that are no records we know: a torn last line, damage, or a newer pickfs.
    pub unreadable: u64,
    /// Numbers of the first lines among them that may have been steps: with such a line it is not
    /// known which steps remain to be undone. A torn last line is none, as a step is taken only
    /// when its line is whole.
    pub lost_steps: Vec<u64>,
    by_id: HashMap<String, usize>,
    /// By round, up to the most that a plan can have.
    looks_after: HashMap<u32, u32>,
    /// By target and work, how many cells are skipped.
    skipped: HashMap<(String, String), u32>,
    names: Vec<String>,
    by_name: HashMap<String, u32>,
}

/// What has no `run` record: the wrong file was named, or its run died before its first line.
#[derive(Debug)]
pub struct NoJournal;

impl std::fmt::Display for NoJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("this is no journal of pickfs: it has no `run` record")
    }
}

impl std::error::Error for NoJournal {}

#[derive(Debug, Default)]
pub struct FoldedCell {
    pub id: String,
    pub round: u32,
    pub target: String,
    pub work: String,
    /// `None`: begun, never ended.
    pub outcome: Option<Outcome>,
    pub provenance: Provenance,
    pub ledger: Ledger,
    pub flags: Vec<Flag>,
    pub histograms: Vec<Histogram>,
    pub courses: Vec<DeviceCourse>,
    samples: Vec<Series>,
}

/// One sample, names interned.
#[derive(Clone, Copy, Debug)]
pub struct Series {
    pub phase: u32,
    pub metric: u32,
    pub value: f64,
}

/// Opens a journal to be read: a regular file, or what the user has opened for us, such as
/// `/dev/stdin`.
pub fn open_file(path: &Path) -> Result<File> {
    let is_handed_in = path == Path::new("/dev/stdin") || path.parent() == Some(Path::new("/dev/fd"));
    let opened = if is_handed_in { File::open(path) } else { open_regular(path, false) };
    opened.with_context(|| format!("cannot open the journal {}", path.display()))
}

/// Folds a file; see [`fold`].
pub fn fold_file(path: &Path) -> Result<Folded> {
    fold(BufReader::with_capacity(1 << 20, open_file(path)?))
}

/// Folds an open file from its start.
pub fn fold_from(mut file: &File) -> Result<Folded> {
    file.rewind().context("cannot read the journal")?;
    fold(BufReader::with_capacity(1 << 20, file))
}

/// After one round: a run looks once, and a few more do no harm.
const MOST_LOOKS: u32 = 4;

/// Number of lost lines whose numbers are kept: this many show what is wrong.
const MOST_LOST: usize = 10;

/// Reads records until the end. Lines that do not parse are counted, not fatal: a torn line is a
/// crash, and a record kind of a newer pickfs is none of ours. So are those for which a journal of
/// its length has no more memory.
pub fn fold(lines: impl BufRead) -> Result<Folded> {
    fold_within(lines, Budget::default())
}

pub(super) fn fold_within(lines: impl BufRead, mut budget: Budget) -> Result<Folded> {
    let mut folded = Folded::default();
    let mut lines = Lines::new(lines);
    while let Some(line) = lines.next().context("cannot read the journal")? {
        budget.read(line.text());
        match line.record().filter(|record| budget.take(line.text(), record, &folded.kept())) {
            Some(record) => folded.note(record),
            None => folded.unreadable(&line),
        }
    }
    folded.replace_reference();
    folded.refuse_mismatched();
    folded.refuse_impossible_looks();
    Ok(folded)
}

impl Folded {
    /// The run that it is the journal of.
    pub fn begun(&self) -> Result<&Run, NoJournal> {
        self.run.as_ref().ok_or(NoJournal)
    }

    /// After which rounds looks were made, as long as they ascend.
    pub fn rounds_of_looks(&self) -> Vec<u32> {
        let mut rounds: Vec<u32> = Vec::new();
        for look in &self.looks {
            if rounds.last().is_none_or(|last| *last < look.round) {
                rounds.push(look.round);
            }
        }
        rounds
    }

    /// Adds what one more record says. A journal that is read to its end is folded by [`fold`].
    pub fn take(&mut self, record: Record) {
        let may_replace = matches!(&record, Record::End(_) | Record::Unfit(_));
        self.note(record);
        if may_replace {
            self.replace_reference();
        }
    }

    /// Takes the same time for each record, however many there were before.
    fn note(&mut self, record: Record) {
        match record {
            Record::Run(run) => self.run = Some(*run),
            Record::Step(step) => self.leftovers.add(step),
            Record::Undone(done) => self.leftovers.remove(&done),
            Record::Begin(begin) => self.begin(begin),
            Record::Provenance(found) if of_the_run(&found.cell) => {
                self.host.extend(found.facts);
                self.hardware.extend(found.hardware);
            }
            Record::Provenance(found) => {
                let cell = self.cell(&found.cell.clone());
                cell.provenance.add(found);
            }
            Record::Sample(sample) => self.sample(sample),
            Record::Histogram(histogram) => self.cell(&histogram.cell.clone()).histograms.push(histogram),
            Record::DeviceCourse(course) => self.cell(&course.cell.clone()).courses.push(course),
            Record::Flag(flag) if of_the_run(&flag.cell) => self.flags.push(flag),
            Record::Flag(flag) => self.cell(&flag.cell.clone()).flags.push(flag),
            Record::Ledger(ledger) if of_the_run(&ledger.cell) => self.ledger.add(&ledger),
            Record::Ledger(ledger) => self.cell(&ledger.cell.clone()).ledger.add(&ledger),
            Record::End(end) => self.set_outcome(&end.cell, Some(end.outcome)),
            Record::Look(look) => self.look(look),
            Record::Unfit(unfit) => drop(self.unfit.insert((unfit.target, unfit.work), unfit.outcome)),
            Record::Aim(stop) => self.aim(stop),
            Record::Speed(speed) => drop(self.speeds.insert(speed.cell, speed.processors)),
            Record::Chain(_) => {}
        }
    }

    fn kept(&self) -> KeptCounts {
        KeptCounts { cells: self.cells.len(), names: self.names.len(), steps: self.leftovers.len() }
    }

    fn unreadable(&mut self, line: &Line) {
        self.unreadable += 1;
        if line.may_be_a_step() && self.lost_steps.len() < MOST_LOST {
            self.lost_steps.push(line.number);
        }
    }

    fn begin(&mut self, begin: Begin) {
        self.set_outcome(&begin.cell, None);
        let cell = self.cell(&begin.cell);
        *cell = FoldedCell {
            id: begin.cell,
            round: begin.round,
            target: begin.target,
            work: begin.work,
            ..Default::default()
        };
    }

    /// A run looks once after a round: what repeats itself is not kept.
    fn look(&mut self, look: Look) {
        let made = self.looks_after.entry(look.round.min(MOST_ROUNDS + 1)).or_default();
        *made += 1;
        if *made <= MOST_LOOKS && look.round <= MOST_ROUNDS { self.looks.push(look) } else { self.unreadable += 1 }
    }

    fn set_outcome(&mut self, id: &str, outcome: Option<Outcome>) {
        let is_skipped = matches!(outcome, Some(Outcome::Skipped(_)));
        let cell = self.cell(id);
        let was_skipped = matches!(std::mem::replace(&mut cell.outcome, outcome), Some(Outcome::Skipped(_)));
        if is_skipped != was_skipped {
            let of = (cell.target.clone(), cell.work.clone());
            let count = self.skipped.entry(of).or_default();
            *count = if is_skipped { *count + 1 } else { *count - 1 };
        }
    }

    /// The work is not done on the target again: it was tried in vain before the first round, or
    /// skipped, for what the machine lacks.
    pub fn is_left_out(&self, target: &Target, work: &str) -> bool {
        let of_reference = || self.run.as_ref().map(|run| run.plan.reference.as_str()).filter(|_| target.duplicate);
        let names = [Some(target.name.as_str()), of_reference()];
        let is_out = |name: &str| {
            let of = (name.to_string(), work.to_string());
            self.unfit.contains_key(&of) || self.skipped.get(&of).is_some_and(|count| *count > 0)
        };
        names.into_iter().flatten().any(is_out)
    }

    /// Where nothing can be done on the reference, the comparisons and the noise floor need
    /// another.
    fn replace_reference(&mut self) {
        let Some(mut run) = self.run.take() else { return };
        let works: Vec<String> = run.plan.works.iter().map(|work| work.name.clone()).collect();
        run.plan.replace_reference(|target| works.iter().all(|work| self.is_left_out(target, work)));
        self.run = Some(run);
    }

    /// A run that goes on has not come to its end at its last look.
    fn aim(&mut self, stop: Stop) {
        if let Some(run) = &mut self.run {
            run.plan.stop = stop;
        }
        if let Some(look) = self.looks.last_mut().filter(|look| look.end.is_some_and(StopReason::is_final)) {
            look.end = None;
        }
    }

    fn sample(&mut self, sample: Sample) {
        let series =
            Series { phase: self.intern(&sample.phase), metric: self.intern(&sample.metric), value: sample.value };
        self.cell(&sample.cell).samples.push(series);
    }

    fn cell(&mut self, id: &str) -> &mut FoldedCell {
        let at = match self.by_id.get(id) {
            Some(&at) => at,
            None => {
                self.by_id.insert(id.to_string(), self.cells.len());
                self.cells.push(FoldedCell { id: id.to_string(), ..Default::default() });
                self.cells.len() - 1
            }
        };
        &mut self.cells[at]
    }

    fn intern(&mut self, name: &str) -> u32 {
        if let Some(&known) = self.by_name.get(name) {
            return known;
        }
        self.names.push(name.to_string());
        self.by_name.insert(name.to_string(), self.names.len() as u32 - 1);
        self.names.len() as u32 - 1
    }

    /// A cell whose stack was not what the plan asked for has no samples.
    fn refuse_mismatched(&mut self) {
        for cell in self.cells.iter_mut().filter(|c| !c.provenance.mismatches.is_empty()) {
            cell.samples.clear();
            let why = format!("not what the plan asked for: {}", cell.provenance.mismatches.join("; "));
            cell.outcome = Some(Outcome::Failed(why));
        }
    }

    /// A look after a round that the plan cannot have is none of its run.
    fn refuse_impossible_looks(&mut self) {
        let most = self.run.as_ref().map_or(0, |run| run.plan.stop.most_rounds());
        let all = self.looks.len();
        self.looks.retain(|look| (1..=most).contains(&look.round));
        self.unreadable += (all - self.looks.len()) as u64;
    }

    /// How the cell's processors differ from the plan's: not at all, but for cells that are there
    /// to check the verdict.
    pub fn processors(&self, cell: &FoldedCell) -> OtherProcessors {
        self.speeds.get(&cell.id).copied().unwrap_or(OtherProcessors::NONE)
    }

    pub fn name(&self, interned: u32) -> &str {
        &self.names[interned as usize]
    }

    /// The number under which [`Folded::series`] knows a phase or metric; `None` if no sample names
    /// it.
    pub fn interned(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    /// A cell's samples in their stored form, for readers of whole journals, who must not look
    /// names up per sample.
    pub fn series<'a>(&self, cell: &'a FoldedCell) -> &'a [Series] {
        &cell.samples
    }

    /// That of the whole run.
    pub fn hardware(&self) -> Cow<'_, Hardware> {
        self.hardware.or_in_words(&self.host)
    }

    /// A cell is done: without one a report has nothing but what was left out.
    pub fn has_results(&self) -> bool {
        self.cells.iter().any(|cell| cell.outcome == Some(Outcome::Done))
    }

    pub fn find_cell(&self, id: &str) -> Option<&FoldedCell> {
        self.by_id.get(id).map(|&at| &self.cells[at])
    }

    pub fn samples<'a>(&'a self, cell: &'a FoldedCell) -> impl Iterator<Item = (&'a str, &'a str, f64)> {
        cell.samples.iter().map(|s| (self.name(s.phase), self.name(s.metric), s.value))
    }
}

/// What no cell owns: writers leave the cell empty or name the scope of the run's own steps.
fn of_the_run(cell: &str) -> bool {
    cell.is_empty() || cell == "run"
}

impl Provenance {
    /// That of a machine which is the cell's alone.
    pub fn hardware(&self) -> Cow<'_, Hardware> {
        self.hardware.or_in_words(&self.facts)
    }

    /// Adds what was found out later: a workload reports its programs while it runs.
    fn add(&mut self, later: Provenance) {
        self.cell = later.cell;
        self.facts.extend(later.facts);
        self.mismatches.extend(later.mismatches);
        self.weakened.extend(later.weakened);
        self.largest.extend(later.largest);
        self.hardware.extend(later.hardware);
    }
}

impl Ledger {
    pub fn add(&mut self, other: &Ledger) {
        self.setup_ns = self.setup_ns.saturating_add(other.setup_ns);
        self.ageing_ns = self.ageing_ns.saturating_add(other.ageing_ns);
        self.settle_ns = self.settle_ns.saturating_add(other.settle_ns);
        self.phases_ns = self.phases_ns.saturating_add(other.phases_ns);
        self.checks_ns = self.checks_ns.saturating_add(other.checks_ns);
        self.teardown_ns = self.teardown_ns.saturating_add(other.teardown_ns);
    }

    pub fn total_ns(&self) -> u64 {
        let parts = [self.setup_ns, self.ageing_ns, self.settle_ns, self.phases_ns, self.checks_ns, self.teardown_ns];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(lines: &str) -> Folded {
        fold(lines.as_bytes()).unwrap()
    }

    const BEGIN: &str = r#"{"begin":{"cell":"c","round":2,"target":"ext4","work":"tree"}}"#;
    const SAMPLE: &str = r#"{"sample":{"cell":"c","phase":"write","metric":"time_ns","value":12}}"#;
    const END: &str = r#"{"end":{"cell":"c","outcome":"done"}}"#;

    #[test]
    fn a_cell_cut_off_and_begun_again_counts_once() {
        let again = SAMPLE.replace("12", "15");
        let folded = folded(&[BEGIN, SAMPLE, BEGIN, &again, END].join("\n"));
        assert_eq!(folded.cells.len(), 1);
        assert_eq!(folded.samples(&folded.cells[0]).collect::<Vec<_>>(), [("write", "time_ns", 15.0)]);
        assert_eq!(folded.cells[0].outcome, Some(Outcome::Done));
    }

    #[test]
    fn a_begin_without_an_end_is_not_run() {
        assert_eq!(folded(&[BEGIN, SAMPLE].join("\n")).cells[0].outcome, None);
    }

    #[test]
    fn samples_of_a_stack_that_was_not_the_planned_one_are_refused() {
        let found = r#"{"provenance":{"cell":"c","mismatches":["asked compress=zstd:99, found zstd:15"]}}"#;
        let folded = folded(&[BEGIN, found, SAMPLE, END].join("\n"));
        assert_eq!(folded.samples(&folded.cells[0]).count(), 0);
        assert!(matches!(&folded.cells[0].outcome, Some(Outcome::Failed(why)) if why.contains("zstd:99")));
    }

    #[test]
    fn steps_not_undone_are_left_over() {
        let step = |n| format!(r#"{{"step":{{"scope":"run","number":{n},"says":"s","undo":{{"unmount":"/x"}}}}}}"#);
        let undone = r#"{"undone":{"scope":"run","number":2}}"#;
        let folded = folded(&[&step(1), &step(2), undone].join("\n"));
        assert_eq!(folded.leftovers.iter().map(|s| s.number).collect::<Vec<_>>(), [1]);
    }

    /// A scope that is taken up again counts from the start.
    #[test]
    fn what_is_undone_is_undone_under_its_number_each_time() {
        let step = |n, says: &str| {
            format!(r#"{{"step":{{"scope":"run","number":{n},"says":"{says}","undo":{{"unmount":"/x"}}}}}}"#)
        };
        let undone = |n| format!(r#"{{"undone":{{"scope":"run","number":{n}}}}}"#);
        let nothing_to_undo = r#"{"step":{"scope":"run","number":9,"says":"s"}}"#.to_string();
        let lines = [step(1, "a"), step(2, "b"), step(1, "c"), undone(1), undone(7), step(1, "d"), nothing_to_undo];
        let left: Vec<String> = folded(&lines.join("\n")).leftovers.iter().map(|step| step.says.clone()).collect();
        assert_eq!(left, ["b", "d"]);
    }

    #[test]
    fn lines_that_may_have_been_steps_are_named() {
        let unknown = r#"{"step":{"scope":"run","number":1,"says":"s","undo":{"shell":["id"]}}}"#;
        let weather = r#"{"weather":{"rain":true}}"#;
        let found = folded(&[BEGIN, unknown, weather, "damage", END, r#"{"step":{"sco"#].join("\n"));
        assert_eq!((found.unreadable, found.lost_steps), (4, vec![2, 4]));
        let found = folded(&"damage\n".repeat(1000));
        assert_eq!((found.unreadable, found.lost_steps.len()), (1000, MOST_LOST));
    }

    /// After each record and at the end, however often cells began again.
    #[test]
    fn a_skipped_cell_that_is_done_after_all_leaves_nothing_out() {
        let skipped = END.replace("\"done\"", r#"{"skipped":["no tool"]}"#);
        let other = |line: &str| line.replace("\"c\"", "\"d\"");
        let target = Target { name: "ext4".into(), ..Target::default() };
        let is_out = |lines: &[&str]| folded(&lines.join("\n")).is_left_out(&target, "tree");
        assert!(!is_out(&[BEGIN, END]));
        assert!(is_out(&[BEGIN, &skipped]));
        assert!(is_out(&[BEGIN, &skipped, &skipped]));
        assert!(!is_out(&[BEGIN, &skipped, BEGIN]));
        assert!(!is_out(&[BEGIN, &skipped, END]));
        assert!(is_out(&[BEGIN, &skipped, &other(BEGIN), &other(&skipped), END]));
        assert!(!is_out(&[BEGIN, &skipped, &other(BEGIN), &other(&skipped), END, &other(END)]));
    }

    #[test]
    fn the_run_is_no_cell() {
        let folded = folded(r#"{"ledger":{"cell":"run","setup_ns":7}}"#);
        assert_eq!((folded.cells.len(), folded.ledger.setup_ns), (0, 7));
    }

    #[test]
    fn no_ledger_is_too_large_to_add() {
        let line = format!(r#"{{"ledger":{{"cell":"run","setup_ns":{0},"checks_ns":{0}}}}}"#, u64::MAX);
        let folded = folded(&[line.clone(), line].join("\n"));
        assert_eq!(folded.ledger.total_ns(), u64::MAX);
    }

    /// The last comes from before a plan that fixes twelve rounds.
    #[test]
    fn looks_after_rounds_that_a_plan_cannot_have_are_none() {
        let look = |round: u32| format!(r#"{{"look":{{"round":{round},"leaving":[{{"target":"a"}}]}}}}"#);
        let rounds = |plan: &str| {
            let run = format!(r#"{{"run":{{"plan":{plan}}}}}"#);
            let folded = folded(&[look(20), run, look(0), look(12), look(41), look(u32::MAX)].join("\n"));
            let found: Vec<u32> = folded.looks.iter().map(|look| look.round).collect();
            (found, folded.unreadable)
        };
        assert_eq!(rounds("{}"), (vec![20, 12], 3));
        assert_eq!(rounds(r#"{"stop":{"rounds":12}}"#), (vec![12], 4));
    }

    #[test]
    fn a_look_that_is_repeated_without_end_is_not_kept() {
        let lines = r#"{"look":{"round":3,"leaving":[]}}"#.to_string() + "\n";
        let found = folded(&("{\"run\":{}}\n".to_string() + &lines.repeat(1000)));
        assert_eq!((found.looks.len(), found.unreadable), (MOST_LOOKS as usize, 996));
    }

    #[test]
    fn torn_lines_and_unknown_records_are_no_errors() {
        let folded = folded(&[BEGIN, r#"{"weather":{"rain":true}}"#, r#"{"end":{"cell":"c","outc"#].join("\n"));
        assert_eq!((folded.cells.len(), folded.unreadable), (1, 2));
    }
}
