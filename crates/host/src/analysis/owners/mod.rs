//! Where the time of a phase in a simulation went: instructions by the code that executed them, and
//! idle time by what ended it. One processor and a counted clock make it exact, so a remainder is
//! an error, and is shown.

mod difference;
mod kept;
mod profile;
mod proof;
mod samples;
mod table;
mod waits;

pub use difference::{Cause, Difference, agrees, between};
pub use kept::{Flame, Kept, Pair};
pub use profile::Pace;
pub use proof::{FASTER, FREE, Outcome, Proof, Removal};
pub use samples::{Sampling, name_waits, sampled, unowned};
pub use table::is_owner;

use anyhow::{Context, Result, ensure};
use pickfs_core::protocol::PhaseClock;
pub use pickfs_system::sys::disk_model::Part;
use profile::{Executed, Stretch, Symbols};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name of all phases of a work as one.
pub const ALL: &str = "all phases";

/// What the processor did in some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Busy,
    /// It waited.
    Idle,
}

/// The time that one owner took, in nanoseconds of the simulated clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    pub ns: f64,
    pub instructions: u64,
    /// Requests that ended, and their bytes; also where nothing waited for them.
    pub requests: u64,
    pub bytes: u64,
    /// From when each came to its end, added up.
    pub requests_ns: u64,
    /// What the time is made of, by what the disk did for the requests: their sum is the time. None
    /// where no request took any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts_ns: BTreeMap<Part, f64>,
}

impl Spent {
    fn add(&mut self, other: &Spent) {
        self.ns += other.ns;
        self.instructions += other.instructions;
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.requests_ns += other.requests_ns;
        for (part, ns) in &other.parts_ns {
            *self.parts_ns.entry(*part).or_default() += ns;
        }
    }

    /// Of idle time: a frame for each part of the requests, where it has some.
    fn stacks(&self, owner: &str) -> String {
        let parts = self.parts_ns.iter().map(|(part, ns)| stack(&format!("waiting for {owner};{}", part.word()), *ns));
        match self.parts_ns.is_empty() {
            false => parts.collect(),
            true => stack(&format!("waiting for {owner}"), self.ns),
        }
    }

    fn divide(&mut self, times: f64) {
        self.ns /= times;
        let counts = [&mut self.instructions, &mut self.requests, &mut self.bytes, &mut self.requests_ns];
        counts.into_iter().for_each(|count| *count = divided(*count, times));
        self.parts_ns.values_mut().for_each(|ns| *ns /= times);
    }
}

fn stack(frames: &str, ns: f64) -> String {
    if ns < 0.5 { String::new() } else { format!("{frames} {ns:.0}\n") }
}

fn divided(count: u64, times: f64) -> u64 {
    (count as f64 / times).round() as u64
}

/// What the processor executed of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OfFunction {
    pub instructions: u64,
    pub ns: f64,
}

/// The time of a phase by its owners.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Breakdown {
    pub phase: String,
    /// As its clock has shown it.
    pub time_ns: f64,
    #[serde(serialize_with = "as_list")]
    pub owners: BTreeMap<(State, String), Spent>,
    /// What is in no owner's time.
    pub rest_ns: f64,
    /// By owner and function.
    #[serde(skip)]
    pub functions: BTreeMap<(String, String), OfFunction>,
}

fn as_list<S: serde::Serializer>(owners: &BTreeMap<(State, String), Spent>, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Row<'a> {
        state: State,
        owner: &'a str,
        #[serde(flatten)]
        spent: &'a Spent,
    }
    to.collect_seq(owners.iter().map(|((state, owner), spent)| Row { state: *state, owner, spent }))
}

const UNCOUNTED: &str = "part of the sync that takes as long without work";

/// Each phase of a cell, in the order in which they came first. A phase that was repeated has the
/// mean of its times.
pub fn breakdowns(profile: &str, clocks: &[PhaseClock], symbols: &str, pace: Pace) -> Result<Vec<Breakdown>> {
    let symbols = Symbols::parse(symbols)?;
    let executed = profile::parse(profile, &symbols, pace)?;
    let one = |(number, clock): (usize, &PhaseClock)| {
        let of = |stretch| executed.get(&(number, stretch));
        breakdown(clock, of).with_context(|| format!("the clock of {}", clock.phase))
    };
    clocks.iter().enumerate().map(one).collect::<Result<Vec<_>>>().map(means)
}

/// Phases of one name as one with the mean of their times, in the order in which they came first.
pub fn means(all: Vec<Breakdown>) -> Vec<Breakdown> {
    let mut found: Vec<(Breakdown, f64)> = Vec::new();
    for one in all {
        match found.iter_mut().find(|(of, _)| of.phase == one.phase) {
            Some((sum, times)) => {
                sum.add(&one);
                *times += 1.0;
            }
            None => found.push((one, 1.0)),
        }
    }
    found.into_iter().map(|(sum, times)| sum.divided(times)).collect()
}

fn breakdown<'e, 't: 'e>(
    clock: &PhaseClock,
    executed: impl Fn(Stretch) -> Option<&'e Executed<'t>>,
) -> Result<Breakdown> {
    let mut found = Breakdown { phase: clock.phase.clone(), time_ns: clock.returned_ns as f64, ..Breakdown::default() };
    let [before, between, after] = &clock.waits;
    // There are some from when the file system was made.
    ensure!(
        !after.is_empty(),
        "the disk's driver shows no waits: it is not that of this version (`pickfs disk driver`)"
    );
    found.add_stretch(executed(Stretch::Work).context("it was not counted")?, &waits::between(before, between)?);
    if clock.until_durable {
        found.time_ns += clock.sync_ns as f64;
        found.add_stretch(
            executed(Stretch::Sync).context("its sync was not counted")?,
            &waits::between(between, after)?,
        );
        if clock.uncounted_ns > 0 {
            found.spent(State::Busy, UNCOUNTED).ns = -(clock.uncounted_ns as f64);
        }
    }
    found.rest_ns = found.time_ns - found.owners.values().map(|spent| spent.ns).sum::<f64>();
    Ok(found)
}

impl Breakdown {
    fn spent(&mut self, state: State, owner: &str) -> &mut Spent {
        self.owners.entry((state, owner.to_string())).or_default()
    }

    fn add_stretch(&mut self, executed: &Executed, waits: &waits::Waits) {
        for ((owner, function), (instructions, ns)) in &executed.functions {
            let spent = self.spent(State::Busy, owner);
            spent.ns += ns;
            spent.instructions += instructions;
            let of = self.functions.entry((owner.to_string(), function.to_string())).or_default();
            of.instructions += instructions;
            of.ns += ns;
        }
        // The driver sees that the processor sleeps a few instructions after it does, and the same
        // at the end: alike for each sleep.
        let wakes: u64 = waits.values().map(|wait| wait.wakes).sum();
        let overlap = executed.asleep_ns / wakes.max(1) as f64;
        for (kind, wait) in waits {
            let ns = wait.idle_ns as f64 - overlap * wait.wakes as f64;
            let parts_ns = wait.shares().into_iter().map(|(part, share)| (part, share * ns)).collect();
            let waits::Wait { requests, bytes, took_ns: requests_ns, .. } = *wait;
            let one = Spent { ns, instructions: 0, requests, bytes, requests_ns, parts_ns };
            self.spent(State::Idle, &waits::words(kind)).add(&one);
        }
    }

    /// Of another phase, or of the same once more.
    fn add(&mut self, other: &Breakdown) {
        self.time_ns += other.time_ns;
        self.rest_ns += other.rest_ns;
        for ((state, owner), spent) in &other.owners {
            self.spent(*state, owner).add(spent);
        }
        for (function, of) in &other.functions {
            let sum = self.functions.entry(function.clone()).or_default();
            sum.instructions += of.instructions;
            sum.ns += of.ns;
        }
    }

    fn divided(mut self, times: f64) -> Breakdown {
        if times > 1.0 {
            self.time_ns /= times;
            self.rest_ns /= times;
            self.owners.values_mut().for_each(|spent| spent.divide(times));
            for of in self.functions.values_mut() {
                *of = OfFunction { instructions: divided(of.instructions, times), ns: of.ns / times };
            }
        }
        self
    }

    /// One phase, or several as one; none where one of them is not there.
    pub fn of(phases: &[Breakdown], names: &[&str]) -> Option<Breakdown> {
        let find = |name: &&str| phases.iter().find(|phase| phase.phase == *name);
        let found = names.iter().map(find).collect::<Option<Vec<_>>>()?;
        Some(if let [one] = found[..] { one.clone() } else { Breakdown::sum(found) })
    }

    /// All phases of a work as one.
    pub fn sum<'p>(phases: impl IntoIterator<Item = &'p Breakdown>) -> Breakdown {
        let mut sum = Breakdown { phase: ALL.into(), ..Breakdown::default() };
        phases.into_iter().for_each(|phase| sum.add(phase));
        sum
    }

    /// Lines of "owner;function ns", "waiting for requests;part ns" and "waiting for a timer ns",
    /// as programs that draw flame graphs read them. What is less than a nanosecond has none.
    pub fn stacks(&self) -> String {
        let busy = self.functions.iter().map(|((owner, function), of)| stack(&format!("{owner};{function}"), of.ns));
        let idle = self.owners.iter().filter(|((state, _), _)| *state == State::Idle);
        busy.chain(idle.map(|((_, owner), spent)| spent.stacks(owner))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "ffffffff81000000 T filemap_read\nffffffffc0001000 t ext4_find_entry\t[ext4]\n";
    const PACE: Pace = Pace { dilation: 2.0, compression: 3.0, user_mode: 4.0 };

    fn clock(phase: &str, until_durable: bool, times: [u64; 3], waits: [&str; 3]) -> PhaseClock {
        let [returned_ns, sync_ns, uncounted_ns] = times;
        let (phase, waits) = (phase.to_string(), waits.map(String::from));
        PhaseClock { phase, until_durable, returned_ns, sync_ns, uncounted_ns, waits, begun_at_ns: None }
    }

    /// 400 instructions of work, of which 20 were asleep, and 100 of the sync.
    const PROFILE: &str =
        "clock 1 1 0 1 0 20\nffffffff81000000 300\n5555 100\nclock 1 2 0 1 0 0\nffffffffc0001000 100\n";
    const WAITS: [&str; 3] = [
        "R 1 4096 50 50 1\n",
        "R 3 8192 90 80 2 3:12 4:18\ntimer 0 0 0 40 1\n",
        "R 3 8192 90 80 2 3:12 4:18\nW 1 512 30 30 1\ntimer 0 0 0 40 1\n",
    ];

    #[test]
    fn parts_of_a_phase_sum_to_its_time() {
        for (until_durable, times, owners, rest) in [
            // 200 ns of instructions, and 70 of idle time, of which 10 are in both.
            (false, [262, 999, 0], 4, 2.0),
            (true, [260, 80, 5], 7, 5.0 - 0.0),
        ] {
            let clocks = [clock("write", until_durable, times, WAITS)];
            let found = breakdowns(&format!("{PROFILE}end\n"), &clocks, SYMBOLS, PACE).expect("found");
            let [write] = &found[..] else { panic!("{found:?}") };
            let sum: f64 = write.owners.values().map(|spent| spent.ns).sum();
            assert!((sum + write.rest_ns - write.time_ns).abs() < 1e-9, "{write:?}");
            assert_eq!((write.owners.len(), write.rest_ns), (owners, rest), "{write:?}");
            let reads = &write.owners[&(State::Idle, "reads".into())];
            assert_eq!((reads.ns, reads.requests, reads.bytes, reads.requests_ns), (25.0, 2, 4096, 40));
            // 12 and 18 of 30 nanoseconds, less the overlap.
            assert_eq!(reads.parts_ns, [(Part::Seek, 10.0), (Part::Turn, 15.0)].into());
            assert_eq!(write.owners[&(State::Busy, table::PROGRAM.into())].ns, 50.0);
        }
    }

    #[test]
    fn a_repeated_phase_has_the_mean_of_its_times_and_phases_can_be_added() {
        let again = PROFILE.replace("clock 1", "clock 2").replace(" 300", " 500");
        let clocks = [clock("read", false, [260, 0, 0], WAITS), clock("read", false, [360, 0, 0], WAITS)];
        let found = breakdowns(&format!("{PROFILE}{again}end\n"), &clocks, SYMBOLS, PACE).expect("found");
        let [read] = &found[..] else { panic!("{found:?}") };
        assert_eq!((read.time_ns, read.rest_ns), (310.0, 0.0));
        let sum = Breakdown::sum([read, read]);
        assert_eq!((sum.time_ns, sum.owners.len()), (620.0, read.owners.len()));
        let stacks = "page cache and VFS;filemap_read 400\nthe program;user space 100\nwaiting for a timer 70\nwaiting for reads;seek 20\nwaiting for reads;turn 30\n";
        assert_eq!(sum.stacks(), stacks);
        // A clock that was not counted is no phase without instructions.
        let three = [&clocks[..], &clocks[..1]].concat();
        let error = breakdowns(&format!("{PROFILE}{again}end\n"), &three, SYMBOLS, PACE).expect_err("it lacks one");
        assert!(format!("{error:#}").contains("the clock of read: it was not counted"), "{error:#}");
    }
}
