//! The models, held against what must hold of any disk and against closed forms; and the same with
//! errors planted in `model.c`, each of which must be found.

use super::super::parameters::Words;
use super::*;
use crate::models::find;
use pickfs_system::sys::disk_model::{Count, Landing};

/// Makes a model of a table: ours, or one of a changed source.
type Make<'a> = &'a dyn Fn(&Words) -> DiskModel;

fn ours(words: &Words) -> DiskModel {
    DiskModel::start(words).expect("a model")
}

fn table(name: &str) -> Words {
    find(name).expect("a disk").words(0, 0).expect("words")
}

macro_rules! holds {
    ($what:expr, $($words:tt)+) => {
        let holds: bool = $what;
        if !holds {
            return Err(format!($($words)+));
        }
    };
}

mod flash;
mod parts;
mod planted;
mod zones;

#[derive(Clone, Copy)]
struct Sent {
    asked: Asked,
    at: u64,
    order: u64,
}

/// Requests at random, and what must hold of each.
struct Play {
    clock: Clock,
    words: Words,
    random: Random,
    sent: Vec<Option<Sent>>,
    order: u64,
    last_when: u64,
    arm_until: u64,
    near: u64,
    /// The order of a FLUSH behind which nothing is sent until it is done.
    alone: Option<u64>,
    /// For flash with a map.
    held: Vec<bool>,
}

impl Play {
    fn new(make: Make, words: &Words, seed: u64) -> Play {
        let depth = words[at("DEPTH")] as usize;
        Play {
            clock: Clock::new(make(words)),
            words: *words,
            random: Random(seed),
            sent: vec![None; depth],
            order: 0,
            last_when: 0,
            arm_until: 0,
            near: 0,
            alone: None,
            held: flash::held(words),
        }
    }

    fn request(&mut self) -> Asked {
        let size = self.random.below(9);
        let sectors = 8 * (1 + self.random.below(1 << size));
        let most = self.words[at("SECTORS")] - sectors;
        let first = if self.random.below(2) == 0 { self.near.min(most) } else { self.random.below(most / 8) * 8 };
        self.near = first + sectors;
        let (operation, forced) = match self.random.below(100) {
            ..50 => (Operation::Read, false),
            50..86 => (Operation::Write, false),
            86..92 => (Operation::Write, true),
            92..97 => (Operation::Flush, false),
            _ => (Operation::Trim, false),
        };
        Asked { operation, forced, first, sectors }
    }

    fn send(&mut self, tag: usize) {
        let asked = self.request();
        self.order += 1;
        if asked.operation == Operation::Flush && self.random.below(2) == 0 {
            self.alone = Some(self.order);
        }
        if !self.held.is_empty() {
            flash::note(&mut self.held, &asked);
        }
        self.sent[tag] = Some(Sent { asked, at: self.clock.now, order: self.order });
        self.clock.disk.submit(tag, &asked, self.clock.now);
    }

    fn arm(&mut self) -> Result<(), String> {
        let (from, until) = (self.clock.disk.count(Count::ArmFrom), self.clock.disk.count(Count::ArmUntil));
        if until != 0 && until != self.arm_until {
            holds!(from >= self.arm_until, "the arm begins at {from} and is busy until {}", self.arm_until);
            holds!(until >= from, "the arm ends at {until}, before it began at {from}");
            self.arm_until = until;
        }
        Ok(())
    }

    fn answered(&mut self, tag: usize, when: u64) -> Result<(), String> {
        let Some(sent) = self.sent[tag].take() else { return Err(format!("{tag} was answered, and not asked")) };
        let earliest = sent.at + self.words[at("COMMAND_NS")];
        holds!(when >= earliest, "{:?} of {} was answered at {when}, before {earliest}", sent.asked, sent.at);
        holds!(when >= self.last_when && when <= self.clock.now, "answers at {} and then {when}", self.last_when);
        self.last_when = when;
        parts::sum(&self.clock.disk.parts(tag), &sent.asked, when - sent.at)?;
        let flushes = self.sent.iter().flatten().filter(|other| other.asked.operation == Operation::Flush);
        let overtaken = flushes.filter(|flush| flush.order < sent.order).count();
        let may_overtake = self.words[at("QUEUED_FLUSH")] == 1;
        holds!(may_overtake || overtaken == 0, "{:?} overtook a FLUSH", sent.asked);
        if self.alone == Some(sent.order) {
            let cached = self.clock.disk.count(Count::Cached);
            let safe = self.words[at("PROTECTED")] == 1;
            holds!(safe || cached == 0, "a FLUSH was answered with {cached} sectors in the cache");
            if !self.held.is_empty() {
                flash::is_sound(&self.clock.disk, &self.held)?;
            }
            self.alone = None;
        }
        Ok(())
    }

    fn play(&mut self, requests: usize) -> Result<(), String> {
        let mut answered = 0;
        while answered < requests {
            let free = self.sent.iter().position(Option::is_none).filter(|_| self.alone.is_none());
            let waits = free.is_none() || self.random.below(3) == 0;
            if let (Some(tag), false) = (free, waits) {
                self.clock.now += match self.random.below(16) {
                    0 => self.random.below(60_000_000),
                    1..4 => self.random.below(200_000),
                    _ => 0,
                };
                self.send(tag);
            } else if let Some(next) = self.clock.disk.next_event() {
                // A timer may be late.
                let late = if self.random.below(4) == 0 { self.random.below(50_000) } else { 0 };
                self.clock.now = self.clock.now.max(next + late);
                self.clock.disk.wake(self.clock.now);
            } else {
                let waiting = self.sent.iter().flatten().count();
                holds!(waiting == 0, "{waiting} requests wait, and nothing will happen");
            }
            self.arm()?;
            while let Some((tag, when)) = self.clock.disk.done() {
                self.answered(tag, when)?;
                answered += 1;
            }
        }
        Ok(())
    }
}

fn invariants(make: Make, requests: usize) -> Result<(), String> {
    let protected = Disk { parameters: with("nvme", "power_loss_protection", 1.0), ..find("nvme").expect("it") };
    let kinds = ["hdd-7200", "sata-ssd", "nvme", "smr-5900", "sd-card", "cloud-volume", "smr-host-managed"];
    // A log that is full before the play is over, and credits that are used up.
    let tables =
        kinds.map(|name| with_less(name, table(name))).into_iter().chain([protected.words(0, 0).expect("words")]);
    let tables = tables.chain(flash::for_play());
    for (number, words) in tables.enumerate() {
        for seed in 0..4 {
            Play::new(make, &words, seed)
                .play(requests / 16)
                .map_err(|why| format!("disk {number}, seed {seed}: {why}"))?;
        }
    }
    Ok(())
}

fn with_less(name: &str, mut words: Words) -> Words {
    match name {
        "smr-5900" => words[at("LOG_SECTORS")] = 1 << 14,
        "cloud-volume" => words[at("CREDITS")] = 1000,
        _ => {}
    }
    words
}

fn with(disk: &str, name: &str, value: f64) -> toml::map::Map<String, toml::Value> {
    let mut parameters = find(disk).expect("a disk").parameters;
    parameters[name]["is"] = toml::Value::Float(value);
    parameters
}

/// The cylinder of a sector, found another way than the model does.
fn cylinder(words: &Words, sector: u64) -> u64 {
    let zones = words[at("ZONES")] as usize;
    let rows = (0..zones).map(|zone| &words[last_zone(words) - 3 * zone..][..3]);
    let row = rows.into_iter().find(|row| row[0] <= sector).expect("the first begins at 0");
    row[1] + (sector - row[0]) / (row[2] * words[at("HEADS")])
}

/// One random read at a time: command, seek, half a turn, transfer.
fn one_at_a_time(make: Make) -> Result<(), String> {
    const DRAWS: usize = 100_000;
    let words = table("hdd-7200");
    let (mut random, mut places) = (Random(11), Vec::new());
    let pages = words[at("SECTORS")] / PAGE;
    let read = || {
        places.push(random.below(pages) * PAGE);
        asked(Operation::Read, places[places.len() - 1], PAGE)
    };
    let mut clock = Clock::new(make(&words));
    let took = clock.closed(1, DRAWS, read).times.iter().sum::<u64>() as f64 / DRAWS as f64;
    let cylinders: Vec<u64> = places.iter().map(|place| cylinder(&words, *place)).collect();
    // From the published form of the curve, not from the model's table.
    let (stroke, turn) = (cylinder(&words, words[at("SECTORS")] - 1) as f64, words[at("TURN_NS")] as f64);
    let seek = |pair: &[u64]| {
        let share = pair[0].abs_diff(pair[1]) as f64 / stroke;
        if share <= 0.333 { 800e3 + 13300e3 * share.sqrt() } else { 4728e3 + 11272e3 * share }
    };
    let seeks = cylinders.windows(2).map(seek).sum::<f64>() / (DRAWS - 1) as f64;
    let wanted = words[at("COMMAND_NS")] as f64 + seeks + turn / 2.0 + turn * PAGE as f64 / 2700.0;
    holds!((took / wanted - 1.0).abs() < 0.01, "a random read takes {took:.0} ns, and should {wanted:.0}");
    Ok(())
}

fn queueing(make: Make) -> Result<(), String> {
    let words = table("hdd-7200");
    let rate = |depth: usize| {
        let mut random = Random(5);
        let pages = words[at("SECTORS")] / PAGE;
        let mut clock = Clock::new(make(&words));
        clock.closed(depth, 20_000, || asked(Operation::Read, random.below(pages) * PAGE, PAGE)).took_ns as f64
    };
    let gain = rate(1) / rate(32);
    holds!((2.2..2.6).contains(&gain), "32 at a time are {gain:.2} times as fast as one");
    Ok(())
}

/// Bytes of a cylinder in its turns and skews, on one zone.
fn sequential(make: Make) -> Result<(), String> {
    let words = table("hdd-7200");
    let (turn, heads) = (words[at("TURN_NS")] as f64, words[at("HEADS")] as f64);
    let skews = (heads - 1.0) * words[at("HEAD_SKEW_NS")] as f64 + words[at("CYLINDER_SKEW_NS")] as f64;
    let wanted = 3600.0 * heads * 512.0 / (turn * heads + skews);
    let done = Clock::new(make(&words)).closed(1, 2000, chunks(Operation::Read, 0, u64::MAX));
    let found = 2000.0 * CHUNK as f64 * 512.0 / done.took_ns as f64;
    holds!((found / wanted - 1.0).abs() < 0.002, "{found:.4} bytes/ns in sequence, not {wanted:.4}");
    Ok(())
}

/// One request at the far edge is not kept waiting by many near ones.
fn starvation(make: Make) -> Result<(), String> {
    let words = table("hdd-7200");
    let (mut clock, mut random) = (Clock::new(make(&words)), Random(3));
    let far = words[at("SECTORS")] - PAGE;
    let mut sent = 0;
    let mut slowest = 0;
    for _ in 0..3 {
        let near = || {
            sent += 1;
            asked(Operation::Read, if sent % 2000 == 40 { far } else { random.below(2_000_000) * PAGE }, PAGE)
        };
        slowest = slowest.max(*clock.closed(32, 2000, near).times.iter().max().expect("some"));
    }
    let limit = words[at("AGE_LIMIT_NS")] + 200_000_000;
    holds!(slowest < limit, "a request has waited {slowest} ns");
    Ok(())
}

fn published(make: Make) -> Result<(), String> {
    let model = make(&table("hp-97560"));
    for distance in 1..1962_u64 {
        let d = distance as f64;
        let wanted = if distance <= 383 { 3.24 + 0.400 * d.sqrt() } else { 8.00 + 0.008 * d };
        let found = model.seek_ns(distance) as f64 / 1e6;
        holds!((found / wanted - 1.0).abs() < 0.001, "{distance} cylinders: {found} ms, not {wanted}");
    }
    Ok(())
}

/// Writes for long are as fast as the dies program.
fn programs(make: Make) -> Result<(), String> {
    let mut slow = Disk { parameters: with("nvme", "program_us", 3000.0), ..find("nvme").expect("it") };
    slow.parameters["slc_gib"]["is"] = toml::Value::Integer(0);
    slow.parameters["erase_programs"]["is"] = toml::Value::Integer(0);
    let words = slow.words(0, 0).expect("words");
    let mut write = chunks(Operation::Write, 0, u64::MAX);
    let mut clock = Clock::new(make(&words));
    clock.closed(8, 500, &mut write);
    let done = clock.closed(8, 4000, &mut write);
    let found = 4000.0 * CHUNK as f64 * 512.0 / done.took_ns as f64;
    // 64 KiB each, of 32 dies, in 3 ms and the time on the channel.
    let wanted = 32.0 * 65536.0 / (3e6 + 65536.0 / 1.2);
    holds!((found / wanted - 1.0).abs() < 0.03, "{found:.4} bytes/ns are written, not {wanted:.4}");
    Ok(())
}

/// Random writes of 4 KiB, and nanoseconds of one on average.
fn written(clock: &mut Clock, depth: usize, count: usize, words: &Words, random: &mut Random) -> f64 {
    let pages = words[at("SECTORS")] / PAGE;
    let done = clock.closed(depth, count, || asked(Operation::Write, random.below(pages) * PAGE, PAGE));
    done.took_ns as f64 / count as f64
}

/// At the peak's rate as long as there are credits, then at the base's.
fn credits(make: Make) -> Result<(), String> {
    let mut words = table("cloud-volume");
    words[at("CREDITS")] = 10_000;
    let (base, peak) = (1e9 / words[at("BASE_NS")] as f64, 1e9 / words[at("PEAK_NS")] as f64);
    let mut clock = Clock::new(make(&words));
    let took = written(&mut clock, 32, 20_000, &words, &mut Random(7)) * 20_000.0 / 1e9;
    let burst = 10_000.0 / (peak - base);
    let wanted = burst + (20_000.0 - burst * peak) / base;
    holds!((took / wanted - 1.0).abs() < 0.02, "20,000 operations take {took:.2} s, and should {wanted:.2}");
    // An hour brings some back.
    clock.now += 100_000_000_000;
    let each = written(&mut clock, 32, 5_000, &words, &mut Random(8));
    holds!((each * peak / 1e9 - 1.0).abs() < 0.05, "after a pause an operation takes {each:.0} ns");
    Ok(())
}

/// What is not written in order has a unit copied, and often the rest of another.
fn units(make: Make) -> Result<(), String> {
    let words = table("sd-card");
    let mut clock = Clock::new(make(&words));
    let mut next = 0;
    let in_order = clock.closed(1, 4096, || {
        next += PAGE;
        asked(Operation::Write, next - PAGE, PAGE)
    });
    let in_order = in_order.took_ns as f64 / 4096.0;
    let each = written(&mut clock, 1, 500, &words, &mut Random(4));
    let programs = words[at("UNIT_SECTORS")] / (words[at("PAGE_SECTORS")] * words[at("PROGRAM_PAGES")]);
    let copy = (programs * (words[at("READ_NS")] + words[at("PROGRAM_NS")]) + words[at("ERASE_NS")]) as f64;
    holds!(in_order < 2e6, "a write in order takes {in_order:.0} ns");
    holds!((1.2..1.8).contains(&(each / copy)), "a random write takes {each:.0} ns, and a copy {copy:.0}");
    Ok(())
}

/// Writes are as quick as the log takes them until it is full, and then as slow as bands are
/// written; idle time empties it.
fn bands(make: Make) -> Result<(), String> {
    let mut words = table("smr-5900");
    words[at("LOG_SECTORS")] = 1 << 16;
    let (mut clock, mut random) = (Clock::new(make(&words)), Random(6));
    let into_log = written(&mut clock, 8, 2_000, &words, &mut random);
    written(&mut clock, 8, 10_000, &words, &mut random);
    let full = written(&mut clock, 8, 200, &words, &mut random);
    holds!(into_log < 20e6, "a write into the log takes {into_log:.0} ns");
    // 30 MiB are read and written at 100 to 190 MB/s.
    holds!((300e6..1e9).contains(&full), "with a full log a write takes {full:.0} ns");
    let merged = clock.disk.count(Count::Merges);
    clock.now += 40_000_000_000_000;
    clock.disk.wake(clock.now);
    holds!(clock.disk.count(Count::Merges) > merged + 1000, "idle time writes no bands");
    holds!(clock.disk.next_event().is_none(), "bands are left after hours");
    Ok(())
}

fn all(make: Make, requests: usize) -> Result<(), String> {
    invariants(make, requests)?;
    credits(make)?;
    units(make)?;
    bands(make)?;
    flash::modes(make)?;
    flash::greedy(make)?;
    flash::in_order(make)?;
    flash::trimmed(make)?;
    flash::reads(make)?;
    flash::among_writes(make)?;
    flash::shared(make)?;
    flash::edges(make)?;
    landings(make)?;
    ahead(make)?;
    rests(make)?;
    zones::rules(make)?;
    zones::times(make)?;
    one_at_a_time(make)?;
    queueing(make)?;
    sequential(make)?;
    starvation(make)?;
    programs(make)?;
    published(make)
}

#[test]
fn a_million_random_requests_break_no_rule() {
    invariants(&ours, 1_000_000).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
#[ignore = "long: make test-all"]
fn a_hundred_million_random_requests_break_no_rule() {
    invariants(&ours, 100_000_000).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn a_random_read_costs_command_seek_half_a_turn_and_transfer() {
    one_at_a_time(&ours).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn command_queueing_gains_as_much_as_on_real_disks() {
    queueing(&ours).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn reading_in_sequence_misses_no_turn() {
    sequential(&ours).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn no_request_starves() {
    starvation(&ours).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn dies_limit_what_is_written_for_long() {
    programs(&ours).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn a_cloud_volume_has_credits_and_no_more() {
    credits(&ours).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn a_card_copies_units_where_writes_are_not_in_order() {
    units(&ours).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn a_shingled_disk_is_slow_when_its_log_is_full() {
    bands(&ours).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn zones_are_written_in_order_alone() {
    zones::rules(&ours).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn zones_cost_no_time() {
    zones::times(&ours).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn a_flush_of_a_hard_disk_costs_by_what_is_cached() {
    let found = speeds_of(&find("hdd-7200").expect("it")).expect("figures");
    let ms = found.flushes.map(|(_, ns)| ns / 1e6);
    assert!(ms[0] < 1.0 && ms[1] > 2.0 && ms[2] > 3.0 * ms[1] && ms[3] > 5.0 * ms[2], "{ms:?}");
}

#[test]
fn a_disk_without_tracks_is_refused() {
    for (track, refused) in [(0, Some(at("ZONES"))), (1 << 21, Some(at("ZONES"))), (1, None)] {
        let mut words = table("hdd-7200");
        let zone = last_zone(&words);
        words[zone + 2] = track;
        assert_eq!(DiskModel::start(&words).err(), refused, "{track}");
    }
}

/// What a power cut spares is on the medium: by the end of a FLUSH that is each sector that was
/// written, once. Where flash maps units, a write of a part of one is made whole.
fn landings(make: Make) -> Result<(), String> {
    let disks = [("hdd-7200", 4096), ("nvme", 0), ("sata-ssd", 0)]
        .map(|(name, start)| (find(name).expect("a disk").words(start, 0).expect("words"), PAGE));
    for (number, (words, most)) in disks.into_iter().chain(flash::for_play().map(|words| (words, 3 * PAGE))).enumerate()
    {
        let mut clock = Clock::new(make(&words));
        let mut random = Random(9);
        for turn in 0..40 {
            let (count, mut written) = (1 + random.below(60) as usize, Vec::new());
            clock.closed(4, count, || {
                let sectors = if most == PAGE { PAGE } else { 1 + random.below(most) };
                let first = random.below((1 << 18) / PAGE) * PAGE + if most == PAGE { 0 } else { random.below(PAGE) };
                written.push((first, sectors));
                Asked { forced: random.below(9) == 0, ..asked(Operation::Write, first, sectors) }
            });
            clock.closed(1, 1, || asked(Operation::Flush, 0, 0));
            let landed: Vec<Landing> = std::iter::from_fn(|| clock.disk.landed()).collect();
            let late = landed.iter().filter(|landing| landing.when > clock.now || landing.begun > landing.when).count();
            holds!(late == 0, "disk {number}, turn {turn}: {late} landings after the FLUSH, or before they began");
            if words[at("ROTATIONAL")] == 1 {
                let inside = |first: u64, to: &Landing| (to.first..to.first + to.sectors).contains(&first);
                let missing = written.iter().find(|(first, _)| !landed.iter().any(|landing| inside(*first, landing)));
                holds!(missing.is_none(), "disk {number}, turn {turn}: {missing:?} is not among {landed:?}");
            } else {
                holds!(landed.iter().all(|landing| landing.first == u64::MAX), "flash programs in order");
                let [found, wanted] = [
                    landed.iter().map(|landing| landing.sectors).sum::<u64>(),
                    written.iter().map(|write| write.1).sum(),
                ];
                holds!(found == wanted, "disk {number}, turn {turn}: {found} sectors landed of {wanted}");
            }
        }
        holds!(clock.disk.count(Count::Missed) == 0, "landings were not kept");
    }
    Ok(())
}

#[test]
fn all_that_was_written_has_landed_when_a_flush_ends() {
    landings(&ours).unwrap_or_else(|why| panic!("{why}"));
}

/// A read across the end of what is read ahead ends when its last sector passes below the head, so
/// long or whole turns later after the read before.
fn ahead(make: Make) -> Result<(), String> {
    let words = table("hdd-7200");
    let [turn, command] = ["TURN_NS", "COMMAND_NS"].map(|name| words[at(name)]);
    let limit = PAGE + words[at("AHEAD_SECTORS")];
    // All is on the first track.
    let passes = |until: u64| until * turn / 3600 - PAGE * turn / 3600;
    let stops = passes(limit) - command;
    for wait in [0, 1_000_000, passes(limit - 4) - command, stops - 1, stops, stops + 1, stops + turn, 1_000_000_000] {
        let mut clock = Clock::new(make(&words));
        clock.closed(1, 1, || asked(Operation::Read, 0, PAGE));
        let since = clock.now;
        clock.now += wait;
        clock.closed(1, 1, || asked(Operation::Read, limit - PAGE, 2 * PAGE));
        let (took, own) = (clock.now - since, passes(limit + PAGE));
        holds!(
            took >= own && (took - own) % turn == 0 && took <= wait + command + 2 * turn,
            "{wait} ns after a read what comes {own} ns behind it is answered after {took} ns"
        );
    }
    Ok(())
}

#[test]
fn what_has_not_passed_below_the_head_is_not_answered() {
    ahead(&ours).unwrap_or_else(|why| panic!("{why}"));
}

/// What is cached is written when nothing has been at work for so long: behind a read that took
/// longer than that, too.
fn rests(make: Make) -> Result<(), String> {
    let words = table("hdd-7200");
    let idle = words[at("IDLE_NS")];
    let mut clock = Clock::new(make(&words));
    clock.closed(1, 1, || asked(Operation::Write, 1 << 20, PAGE));
    let since = clock.now;
    clock.closed(1, 1, || asked(Operation::Read, 0, 8 * CHUNK));
    holds!(clock.now - since > idle, "the read took {} ns only", clock.now - since);
    let next = clock.disk.next_event();
    holds!(next == Some(clock.now + idle), "idle from {} on, the cache is written at {next:?}", clock.now);
    Ok(())
}

#[test]
fn a_disk_is_idle_from_the_end_of_its_last_command_on() {
    rests(&ours).unwrap_or_else(|why| panic!("{why}"));
}
