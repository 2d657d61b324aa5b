//! What machines do to times apart from memoryless noise, and races on it as a reader follows them:
//! bounds after every look.

use super::noise::{Noise, Side};
use super::plan;
use pickfs_core::plan::{Cell, Stop, orders};
use pickfs_stats::{Comparisons, LAST_LOOK, Regret, Schedule, tick};
use std::cell::RefCell;

/// Amounts are logarithms.
#[derive(Clone, Copy)]
pub enum Habit {
    Alike(Side),
    /// A target's own autocorrelation, in rounds; 3 % of noise.
    Own(f64),
    /// All cells drift together, 2 % from round to round.
    Drift,
    /// The first cell of each round is slow.
    FirstCell,
    /// The last target has ten times the noise of the others.
    LoudLast,
    /// Every seventh cell takes twice as long.
    Seventh,
    /// Garbage that each target collects once in this many rounds.
    Saw(f64),
    /// A clock of 10 ms under times of 100 ms with so much noise.
    Ticks(f64),
    /// One target is slow in every other round.
    Parity,
    /// From the first cell of a round to its last.
    Along,
    /// One target slows down whatever comes next.
    SlowsNext,
}

pub const HABITS: [(&str, Habit); 20] = [
    ("normal 2 %", Habit::Alike(Side::Normal(0.02))),
    ("normal 5 %", Habit::Alike(Side::Normal(0.05))),
    ("normal 10 %", Habit::Alike(Side::Normal(0.10))),
    ("lognormal 30 %", Habit::Alike(Side::Normal(0.30))),
    ("t2 2 %", Habit::Alike(Side::T2(0.02))),
    ("10 % outliers x3", Habit::Alike(Side::Modes { sd: 0.03, share: 0.1, by: 1.0986 })),
    ("bimodal 15 %", Habit::Alike(Side::Modes { sd: 0.01, share: 0.2, by: 0.15 })),
    ("own AR(1) 0.3", Habit::Own(0.3)),
    ("own AR(1) 0.6", Habit::Own(0.6)),
    ("common drift 2 % a round", Habit::Drift),
    ("first cell of a round +15 %", Habit::FirstCell),
    ("last target 10 times noisier", Habit::LoudLast),
    ("every 7th cell x2", Habit::Seventh),
    ("sawtooth 10 %, 8 rounds", Habit::Saw(8.0)),
    ("sawtooth 10 %, 30 rounds", Habit::Saw(30.0)),
    ("10 ms ticks of 100 ms, 2 %", Habit::Ticks(0.02)),
    ("10 ms ticks of 100 ms, 5 %", Habit::Ticks(0.05)),
    ("one target +-7.5 % by parity", Habit::Parity),
    ("+10 % along the round", Habit::Along),
    ("one target slows the next 20 %", Habit::SlowsNext),
];

impl Habit {
    /// About the standard deviation of a cell: what true differences are counted in.
    pub fn effect(self) -> f64 {
        match self {
            Habit::Alike(Side::Normal(sd) | Side::T2(sd)) | Habit::Ticks(sd) => sd,
            Habit::Alike(_) | Habit::Own(_) | Habit::Seventh => 0.03,
            Habit::LoudLast => 0.01,
            Habit::Drift => 0.02,
            Habit::Saw(_) => 0.035,
            Habit::FirstCell | Habit::Parity | Habit::Along | Habit::SlowsNext => 0.05,
        }
    }
}

/// True logarithms of time: all equal, the best ahead by 0.5 and by 1.2 effects, a ladder. The
/// first is the best.
pub fn truths(targets: usize, effect: f64) -> Vec<Vec<f64>> {
    let ahead = |by: f64| (0..targets).map(|at| if at == 0 { 0.0 } else { by * effect }).collect::<Vec<f64>>();
    let ladder = (0..targets).map(|at| 0.5 * effect * at as f64).collect();
    [ahead(0.0), ahead(0.5), ahead(1.2)].into_iter().chain((targets > 2).then_some(ladder)).collect()
}

/// A machine with a habit, and what it knows of the targets; the copy of the reference comes last.
struct Machine {
    habit: Habit,
    noise: Noise,
    own: Vec<f64>,
    phase: Vec<f64>,
    odd: usize,
    drift: f64,
    cells: usize,
    last: Option<usize>,
}

impl Machine {
    fn new(habit: Habit, targets: usize, mut noise: Noise) -> Machine {
        let own = (0..=targets).map(|_| noise.normal()).collect();
        let phase = (0..=targets).map(|_| noise.uniform()).collect();
        let odd = (noise.uniform() * targets as f64).ceil() as usize - 1;
        Machine { habit, noise, own, phase, odd, drift: 0.0, cells: 0, last: None }
    }

    fn next_round(&mut self) {
        self.drift += 0.02 * self.noise.normal();
        if let Habit::Own(kept) = self.habit {
            self.own.iter_mut().for_each(|own| *own = kept * *own + (1.0 - kept * kept).sqrt() * self.noise.normal());
        }
    }

    /// What a cell takes more than its target does in truth. `place` counts from 0 to 1 within the
    /// round; a copy is not the target that it is one of.
    fn cell(&mut self, (at, target): (usize, usize), round: u32, place: f64) -> f64 {
        let follows = self.last.replace(target) == Some(self.odd);
        self.cells += 1;
        let normal = self.noise.normal();
        let where_so = |holds: bool, by: f64| if holds { by } else { 0.0 };
        match self.habit {
            Habit::Alike(side) => side.draw(&mut self.noise),
            Habit::Own(_) => 0.03 * self.own[at],
            Habit::Drift => self.drift + 0.02 * normal,
            Habit::FirstCell => 0.05 * normal + where_so(place == 0.0, 0.15f64.ln_1p()),
            Habit::LoudLast => (if target + 2 == self.own.len() { 0.1 } else { 0.01 }) * normal,
            Habit::Seventh => 0.03 * normal + where_so(self.cells % 7 == 0, 2f64.ln()),
            Habit::Saw(rounds) => 0.02 * normal + 0.1 * ((f64::from(round) / rounds + self.phase[at]).fract() - 0.5),
            Habit::Ticks(sd) => sd * normal,
            Habit::Parity => 0.05 * normal + where_so(target == self.odd, 0.075 * (f64::from(round % 2) * 2.0 - 1.0)),
            Habit::Along => 0.05 * normal + 0.1 * place,
            Habit::SlowsNext => 0.05 * normal + where_so(follows, 0.2f64.ln_1p()),
        }
    }
}

/// What a reader was shown that was false.
#[derive(Default)]
pub struct Followed {
    /// Any bound of any target after any look, until the run ended.
    pub any: bool,
    /// The same of a run that nothing ends before round 40.
    pub any_to_40: bool,
    /// Any bound when the run had ended.
    pub at_end: bool,
    /// The bound of the pick then.
    pub pick: bool,
    pub is_decided: bool,
    /// What looks had shown before was forgotten, until the run ended: rounds depended on one
    /// another.
    pub forgot: bool,
    pub rounds: u32,
}

/// The relative difference that matters.
const GOAL: f64 = 0.03;

/// Follows one run of targets with these logarithms of time.
pub fn follow(habit: Habit, truth: &[f64], seed: u64) -> Followed {
    let (count, mut noise) = (truth.len(), Noise::new(seed));
    let reference = (noise.uniform() * count as f64).ceil() as usize - 1;
    let names: Vec<String> = (0..count).map(|at| ((reference + at) % count).to_string()).collect();
    let plan = plan(&names, true, Stop::default(), seed);
    let target =
        |cell: &Cell| if cell.target.duplicate { reference } else { cell.target.name.parse().expect("numbers") };
    let gone = RefCell::new(vec![false; count]);
    let mut rounds = orders(&plan, |one, _| {
        !gone.borrow()[if one.duplicate { reference } else { one.name.parse::<usize>().expect("numbers") }]
    });
    let schedule = Schedule::EachRound;
    let looks = schedule.spent(&schedule.rounds().collect::<Vec<u32>>());
    let (mut machine, mut found) = (Machine::new(habit, count, noise), Regret::of(count));
    let (mut logs, mut followed) = (vec![Vec::new(); count + 1], Followed::default());
    for round in 1..=LAST_LOOK {
        let cells = rounds.next().expect("rounds have no end");
        logs.iter_mut().for_each(|row| row.push(f64::NAN));
        for (place, cell) in cells.iter().enumerate() {
            let at = if cell.target.duplicate { count } else { target(cell) };
            let log = truth[target(cell)] + machine.cell((at, target(cell)), round, place as f64 / cells.len() as f64);
            logs[at][round as usize - 1] = if let Habit::Ticks(_) = habit { ticked(log) } else { log };
        }
        machine.next_round();
        let Some(look) = looks.iter().find(|look| look.rounds == round) else { continue };
        let of = Comparisons {
            logs: &logs,
            candidates: count,
            comparisons: count - 1,
            twins: Some((reference, count)),
            lacking: &[],
            tick: tick_of(habit, &logs[..count]),
        };
        found.look(&of, look);
        followed.take(&found, truth, reference, round);
        *gone.borrow_mut() = found.eliminated.iter().map(Option::is_some).collect();
    }
    followed
}

/// A time of 0.1 s and more, in whole hundredths.
fn ticked(log: f64) -> f64 {
    ((10.0 * log.exp()).round() * 1e7).ln()
}

fn tick_of(habit: Habit, logs: &[Vec<f64>]) -> f64 {
    let times = |row: &Vec<f64>| row.iter().filter(|log| log.is_finite()).map(|log| log.exp().round()).collect();
    if let Habit::Ticks(_) = habit { tick(&logs.iter().map(times).collect::<Vec<Vec<f64>>>()) } else { 0.0 }
}

impl Followed {
    fn take(&mut self, found: &Regret, truth: &[f64], reference: usize, round: u32) {
        let is_false = |at: usize, bound: f64| truth[at] > bound + 1e-12;
        let any = (1..truth.len()).any(|at| is_false(at, found.above[at][0]));
        self.any_to_40 |= any;
        if self.is_decided {
            return;
        }
        let is_good = |at: &usize| found.regret[*at] <= GOAL.ln_1p();
        let pick = Some(reference).filter(|at| is_good(at)).unwrap_or(found.members()[0]);
        (self.at_end, self.pick, self.rounds) = (any, is_false(pick, found.regret[pick]), round);
        self.any |= any;
        self.forgot |= found.dependent;
        self.is_decided = is_good(&pick);
    }
}
