//! Where the time of a phase on this machine went, estimated: at fixed times perf(1) has looked at
//! what each processor executes, and whenever one has changed to another task (the executor
//! `sampled`). A look stands for the time since the one before on that processor. What several of
//! ours do at once shares the time; while none works and a processor idles, the time belongs to
//! what the last of ours went to sleep in.

use super::profile::{Owners, Symbols, named};
use super::table::{LOOP, MODULES, OTHER, PROGRAM};
use super::waits::slept;
use super::{Breakdown, State, UNCOUNTED, means};
use anyhow::{Context, Result, ensure};
use pickfs_core::protocol::PhaseClock;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// How a machine was looked at.
#[derive(Clone, Copy)]
pub struct Sampling {
    /// The process that started the agent.
    pub host: u32,
    /// How many this machine has.
    pub processors: u32,
    /// From one look at a processor to the next.
    pub period_ns: u64,
}

/// The kernel's own threads descend from it.
const KTHREADD: u32 = 2;
/// A processor was idle, and none of ours had gone to sleep before.
const UNSEEN: &str = "what samples do not show";
const TAKEN: &str = "a processor, which other programs had";
/// perf(1) looks when a timer interrupts. What runs without interrupts is seen where it permits
/// them again, so such a look belongs to the caller.
const PERMIT_INTERRUPTS: [&str; 2] = ["_unlock_irqrestore", "_unlock_irq"];
/// What a loop device does with its file, which is no work of the file system on the device.
const OF_LOOP_DEVICES: [&str; 2] = ["loop_process_work", "loop_queue_work"];
/// The frame below which a kernel thread's own function is: it waits there for work.
const KTHREAD: &str = "kthread";

/// A line of perf-script(1) with what follows it.
enum Event<'t> {
    /// Child and parent.
    Fork([u32; 2]),
    /// What a processor executes, or what it has left for another task.
    Look(Look<'t>),
}

struct Look<'t> {
    program: &'t str,
    process: u32,
    processor: u32,
    at_ns: u64,
    has_left: bool,
    /// Addresses in the kernel, the innermost first; none in user space.
    calls: Vec<u64>,
}

/// Of "  tar  77/77  [001] 12.000250000:  cpu-clock/period=250000/: ". A program's name may have
/// spaces.
fn event(text: &str) -> Option<Event<'_>> {
    if let Some((_, of)) = text.split_once(": PERF_RECORD_FORK(") {
        let pid = |part: &str| part.trim_start_matches('(').split(':').next()?.parse().ok();
        let (child, parent) = of.split_once("):")?;
        return Some(Event::Fork([pid(child)?, pid(parent)?]));
    }
    let (rest, event) = text.trim_end().strip_suffix(':')?.rsplit_once(char::is_whitespace)?;
    let (rest, time) = rest.trim_end().strip_suffix(':')?.rsplit_once(char::is_whitespace)?;
    let (rest, processor) = rest.trim_end().strip_suffix(']')?.rsplit_once('[')?;
    let (program, process) = rest.trim_end().rsplit_once(char::is_whitespace)?;
    let (seconds, ns) = time.split_once('.').filter(|(_, ns)| ns.len() == 9)?;
    Some(Event::Look(Look {
        program: program.trim(),
        process: process.split('/').next()?.parse().ok()?,
        processor: processor.parse().ok()?,
        at_ns: seconds.parse::<u64>().ok()? * 1_000_000_000 + ns.parse::<u64>().ok()?,
        has_left: event.starts_with("context-switches"),
        calls: Vec::new(),
    }))
}

fn events(samples: &str) -> Vec<Event<'_>> {
    let mut all = Vec::new();
    for line in samples.lines() {
        let call = line.strip_prefix('\t').and_then(|word| u64::from_str_radix(word.trim(), 16).ok());
        match (call, all.last_mut()) {
            (Some(address), Some(Event::Look(look))) => look.calls.push(address),
            _ => all.extend(event(line)),
        }
    }
    all
}

/// What a processor did.
#[derive(Clone, Debug, PartialEq)]
enum Did<'t> {
    /// For the cell: owner and function.
    Ours(String, &'t str),
    Others,
    Nothing,
}

/// What a look says.
struct Seen<'t> {
    processor: u32,
    at_ns: u64,
    what: What<'t>,
}

enum What<'t> {
    /// For the time since the look before, in nanoseconds.
    Did(u64, Did<'t>),
    /// One of ours went to sleep: what it waits for.
    Slept(String),
}

/// Processes that descend from one, without itself.
fn descendants(of: u32, parents: &BTreeMap<u32, u32>) -> BTreeSet<u32> {
    let descends = |child: &u32| {
        let mut at = *child;
        // As deep as there are processes, at most: numbers come again.
        for _ in 0..parents.len() {
            match parents.get(&at) {
                Some(parent) if *parent == of => return true,
                Some(parent) => at = *parent,
                None => return false,
            }
        }
        false
    };
    parents.keys().copied().filter(descends).collect()
}

fn seen<'t>(samples: &'t str, symbols: &Symbols<'t>, sampling: Sampling) -> Vec<Seen<'t>> {
    let (mut parents, mut looks) = (BTreeMap::new(), Vec::new());
    for event in events(samples) {
        match event {
            // Threads are born like processes.
            Event::Fork([child, parent]) if child != parent => drop(parents.insert(child, parent)),
            Event::Fork(_) => {}
            Event::Look(look) => looks.push(look),
        }
    }
    let [mine, kernel] = [sampling.host, KTHREADD].map(|of| descendants(of, &parents));
    looks.sort_by_key(|look| (look.processor, look.at_ns));
    let asleep = symbols.between("__sched_text_start", "__sched_text_end");
    let (mut owners, mut last) = (Owners::new(), (u32::MAX, 0));
    let mut all = Vec::new();
    for look in looks {
        let Look { processor, at_ns, .. } = look;
        let is_ours = kernel.contains(&look.process) || (mine.contains(&look.process) && look.program != "perf");
        if look.has_left {
            let waits = is_ours.then(|| waits(&look, symbols, &asleep)).flatten();
            all.extend(waits.map(|what| Seen { processor, at_ns, what: What::Slept(what) }));
            continue;
        }
        let did = match look.process {
            0 => Did::Nothing,
            _ if is_ours => executes(&look, symbols, &mut owners),
            _ => Did::Others,
        };
        let since = if last.0 == processor { at_ns - last.1 } else { sampling.period_ns };
        // An idle processor is not looked at, so a later look is of what has come after that.
        let ns = if since < 2 * sampling.period_ns { since } else { sampling.period_ns };
        last = (processor, at_ns);
        all.push(Seen { processor, at_ns, what: What::Did(ns, did) });
    }
    all
}

fn executes<'t>(look: &Look<'t>, symbols: &Symbols<'t>, owners: &mut Owners<'t>) -> Did<'t> {
    let name = |address: &u64| symbols.find(*address).map_or("", |(name, _)| name);
    let is_late = |address: &&u64| PERMIT_INTERRUPTS.iter().any(|suffix| name(address).ends_with(suffix));
    let is_below = look.calls.iter().any(|address| OF_LOOP_DEVICES.contains(&name(address)));
    let address = look.calls.iter().find(|address| !is_late(address)).or(look.calls.first());
    let Some(address) = address else { return Did::Ours(format!("{PROGRAM} {}", look.program), "user space") };
    let (owner, function) = named(*address, symbols, owners);
    Did::Ours(if is_below { LOOP } else { owner }.into(), function)
}

/// None for a thread of the kernel that waits for work.
fn waits(look: &Look, symbols: &Symbols, asleep: &Range<u64>) -> Option<String> {
    let is_sleep = |address: &&u64| asleep.contains(*address);
    let names = |address: &u64| symbols.find(*address).map(|(name, _)| name);
    let sleep: Vec<&str> = look.calls.iter().take_while(is_sleep).filter_map(names).collect();
    let mut callers = look.calls.iter().skip_while(is_sleep).filter_map(|address| symbols.find(*address));
    let (function, module) = callers.next()?;
    let waits_for_work = callers.next().is_some_and(|(name, _)| name == KTHREAD);
    if waits_for_work { None } else { slept(&sleep, function, module) }
}

/// Each phase of a cell, as [`super::breakdowns`] has those of a simulation.
pub fn sampled(samples: &str, clocks: &[PhaseClock], symbols: &str, sampling: Sampling) -> Result<Vec<Breakdown>> {
    let symbols = with_modules(symbols);
    let symbols = Symbols::parse(&symbols)?;
    let seen = seen(samples, &symbols, sampling);
    let one = |clock: &PhaseClock| {
        of_clock(clock, &seen, sampling.processors).with_context(|| format!("the clock of {}", clock.phase))
    };
    clocks.iter().map(one).collect::<Result<Vec<_>>>().map(means)
}

fn of_clock(clock: &PhaseClock, seen: &[Seen], processors: u32) -> Result<Breakdown> {
    let mut found = Breakdown { phase: clock.phase.clone(), time_ns: clock.returned_ns as f64, ..Breakdown::default() };
    let [work, sync] = clock.begun_at_ns.context("it does not say when it began")?;
    add(&mut found, work..work + clock.returned_ns, seen, processors);
    if clock.until_durable {
        found.time_ns += clock.sync_ns as f64;
        add(&mut found, sync..sync + clock.sync_ns + clock.uncounted_ns, seen, processors);
    }
    ensure!(!found.functions.is_empty(), "perf has seen nothing of it");
    if clock.until_durable && clock.uncounted_ns > 0 {
        found.spent(State::Busy, UNCOUNTED).ns = -(clock.uncounted_ns as f64);
    }
    found.rest_ns = found.time_ns - found.owners.values().map(|spent| spent.ns).sum::<f64>();
    Ok(found)
}

/// What changes at a moment; what ends comes before what begins.
#[derive(Clone, Copy)]
enum Change<'s> {
    End(u32),
    Sleep(&'s str),
    Begin(u32, &'s Did<'s>),
}

/// What all processors did in a time, moment by moment.
fn add(found: &mut Breakdown, time: Range<u64>, seen: &[Seen], processors: u32) {
    let mut changes: Vec<(u64, Change)> = Vec::new();
    for one in seen {
        match &one.what {
            What::Slept(what) if one.at_ns < time.end => changes.push((one.at_ns, Change::Sleep(what))),
            What::Slept(_) => {}
            What::Did(ns, did) => {
                let (from, until) = ((one.at_ns - ns).max(time.start), one.at_ns.min(time.end));
                if from < until {
                    changes.extend([(from, Change::Begin(one.processor, did)), (until, Change::End(one.processor))]);
                }
            }
        }
    }
    let order = |change: &Change| match change {
        Change::End(_) => 0,
        Change::Sleep(_) => 1,
        Change::Begin(..) => 2,
    };
    changes.sort_by_key(|(at, change)| (*at, order(change)));
    let (mut now, mut asleep, mut at) = (BTreeMap::new(), UNSEEN, time.start);
    for (next, change) in changes {
        moment(found, &now, asleep, (next.saturating_sub(at)) as f64, processors);
        at = at.max(next);
        match change {
            Change::End(processor) => drop(now.remove(&processor)),
            Change::Sleep(what) => asleep = what,
            Change::Begin(processor, did) => drop(now.insert(processor, did)),
        }
    }
    moment(found, &now, asleep, (time.end - at) as f64, processors);
}

fn moment(found: &mut Breakdown, now: &BTreeMap<u32, &Did>, asleep: &str, ns: f64, processors: u32) {
    let of_ours = |did: &&Did| match did {
        Did::Ours(owner, function) => Some((owner.clone(), function.to_string())),
        _ => None,
    };
    let ours: Vec<(String, String)> = now.values().filter_map(of_ours).collect();
    for (owner, function) in &ours {
        let share = ns / ours.len() as f64;
        found.spent(State::Busy, owner).ns += share;
        found.functions.entry((owner.clone(), function.clone())).or_default().ns += share;
    }
    if ours.is_empty() && ns > 0.0 {
        let others = now.values().filter(|did| ***did == Did::Others).count();
        let is_taken = others >= processors as usize;
        found.spent(State::Idle, if is_taken { TAKEN } else { asleep }).ns += ns;
    }
}

/// Divides the idle time of a phase whose sleeps were not seen as that of the same phase elsewhere.
pub fn name_waits(phase: &mut Breakdown, other: &Breakdown) {
    let is_wait = |of: &(State, String)| of.0 == State::Idle && of.1 != TAKEN;
    let waits: Vec<_> = other.owners.iter().filter(|(of, _)| is_wait(of)).collect();
    let whole: f64 = waits.iter().map(|(_, spent)| spent.ns).sum();
    if whole == 0.0 {
        return;
    }
    let Some(idle) = phase.owners.remove(&(State::Idle, UNSEEN.into())) else { return };
    for ((state, owner), spent) in waits {
        phase.spent(*state, owner).ns += idle.ns * spent.ns / whole;
    }
}

/// The share of a phase's time that has no owner.
pub fn unowned(phase: &Breakdown) -> f64 {
    let of = |state, owner: &str| phase.owners.get(&(state, owner.to_string())).map_or(0.0, |spent| spent.ns);
    (of(State::Idle, UNSEEN) + of(State::Busy, OTHER) + phase.rest_ns.abs()) / phase.time_ns.max(1.0)
}

/// Functions of one module that the kernel has built in lie together.
const APART: u64 = 32 << 10;

/// Symbols with the modules that this kernel has built in: a function between two of a module, not
/// far from both, is of that module, too.
fn with_modules(symbols: &str) -> String {
    let module_of = |name: &str| {
        let name = name.trim_start_matches('_');
        MODULES.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, module)| *module)
    };
    let mut built_in: Vec<(u64, &str, &str)> = Vec::new();
    let mut text = String::new();
    for line in symbols.lines() {
        match line.split_ascii_whitespace().collect::<Vec<_>>()[..] {
            [address, kind, name] if u64::from_str_radix(address, 16).is_ok() => {
                built_in.push((u64::from_str_radix(address, 16).unwrap_or_default(), kind, name));
            }
            _ => text.push_str(&format!("{line}\n")),
        }
    }
    built_in.sort_unstable();
    let modules: Vec<Option<&str>> = built_in.iter().map(|(_, _, name)| module_of(name)).collect();
    let nearest = |order: &mut dyn Iterator<Item = usize>| {
        let (mut last, mut found) = (None, vec![None; built_in.len()]);
        for at in order {
            let (address, ..) = built_in[at];
            last = modules[at].map(|module| (module, address)).or(last);
            found[at] = last.filter(|(_, of)| address.abs_diff(*of) <= APART).map(|(module, _)| module);
        }
        found
    };
    let (before, after) = (nearest(&mut (0..built_in.len())), nearest(&mut (0..built_in.len()).rev()));
    for (at, (address, kind, name)) in built_in.iter().enumerate() {
        let module = before[at].filter(|module| after[at] == Some(*module));
        let module = module.map_or(String::new(), |module| format!("\t[{module}]"));
        text.push_str(&format!("{address:x} {kind} {name}{module}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "ffffffff81000000 T filemap_read\nffffffff81000100 T _raw_spin_unlock_irqrestore\n\
                           ffffffff81000200 T kthread\nffffffff81000300 t worker_thread\nffffffff81000400 t loop_process_work\n\
                           ffffffff81700000 t ext4_find_entry\nffffffff81700100 t search_nothing\nffffffff81700200 T ext4_lookup\n\
                           ffffffff81800000 T __sched_text_start\nffffffff81800010 T schedule\nffffffff81800100 T io_schedule\n\
                           ffffffff81800200 T schedule_timeout\nffffffff81800300 T preempt_schedule_common\n\
                           ffffffff81800400 T __sched_text_end\nffffffff81900000 t strange\nffffffffc0001000 t fuse_lookup\t[fuse]\n";
    const FORKS: &str = "  swapper     0/0     [000]     0.000000000: PERF_RECORD_FORK(2:2):(0:0)\n\
                         kthreadd     0/0     [000]     0.000000000: PERF_RECORD_FORK(9:9):(2:2)\n\
                         pickfs 50/50 [000] 1.000000000: PERF_RECORD_FORK(60:60):(50:50)\n\
                         pickfs 60/60 [000] 1.000000000: PERF_RECORD_FORK(61:61):(60:60)\n\
                         pickfs 60/60 [000] 1.000000000: PERF_RECORD_FORK(60:62):(60:60)\n\
                         sh 1/1 [000] 1.000000000: PERF_RECORD_FORK(70:70):(1:1)\n";
    const SAMPLING: Sampling = Sampling { host: 50, processors: 2, period_ns: 100_000 };
    const READ: u64 = 0xffffffff81000010;
    const UNLOCK: u64 = 0xffffffff81000110;
    const IN_THREAD: u64 = 0xffffffff81000210;
    const WORKER: u64 = 0xffffffff81000310;
    const LOOP_WORK: u64 = 0xffffffff81000410;
    const EXT4: u64 = 0xffffffff81700110;
    const SCHEDULE: u64 = 0xffffffff81800020;
    const IO_SCHEDULE: u64 = 0xffffffff81800110;
    const TIMEOUT: u64 = 0xffffffff81800210;
    const PREEMPT: u64 = 0xffffffff81800310;

    fn clock(returned_ns: u64) -> PhaseClock {
        let begun_at_ns = Some([2_000_000_000, 3_000_000_000]);
        PhaseClock { phase: "write".into(), returned_ns, begun_at_ns, ..PhaseClock::default() }
    }

    fn sample(event: &str, program: &str, [process, processor, us]: [u32; 3], calls: &[u64]) -> String {
        let calls: String = calls.iter().map(|address| format!("\t{address:x}\n")).collect();
        format!(" {program}  {process}/{process} [{processor:03}]  2.{us:06}000:   {event}/period=1/: \n{calls}\n")
    }

    fn look(program: &str, at: [u32; 3], calls: &[u64]) -> String {
        sample("cpu-clock", program, at, calls)
    }

    fn leaves(program: &str, at: [u32; 3], calls: &[u64]) -> String {
        sample("context-switches", program, at, calls)
    }

    fn owners(samples: &[String], sampling: Sampling) -> (Breakdown, BTreeMap<String, f64>) {
        let text = format!("{FORKS}{}", samples.concat());
        let mut found = sampled(&text, &[clock(500_000)], SYMBOLS, sampling).expect("samples");
        let one = found.remove(0);
        let ns = one.owners.iter().map(|((_, owner), spent)| (owner.clone(), spent.ns)).collect();
        (one, ns)
    }

    #[test]
    fn each_moment_has_one_owner_or_is_shared() {
        let looks = [
            // The agent's program alone, then at the same time as a thread of the kernel.
            look("a b", [61, 0, 100], &[]),
            look("a b", [61, 0, 200], &[UNLOCK, READ]),
            look("kworker/0:1", [9, 1, 100], &[EXT4]),
            look("perf", [61, 1, 200], &[]),
            // Others have both processors; then one; then none has any.
            look("stranger", [70, 0, 300], &[]),
            look("sh", [70, 1, 300], &[]),
            look("stranger", [70, 0, 400], &[]),
        ];
        let (write, ns) = owners(&looks, SAMPLING);
        let wanted = [
            ("the program a b", 50_000.0),
            ("the file system, other", 50_000.0),
            ("page cache and VFS", 100_000.0),
            (TAKEN, 100_000.0),
            (UNSEEN, 200_000.0),
        ];
        assert_eq!(ns, wanted.map(|(owner, ns)| (owner.to_string(), ns)).into());
        assert_eq!((write.time_ns, write.rest_ns), (500_000.0, 0.0));
        assert_eq!(unowned(&write), 0.4);
        // Without an agent of this host all are others, and the kernel's threads work.
        let (_, of_another) = owners(&looks, Sampling { host: 51, ..SAMPLING });
        assert_eq!(of_another["the file system, other"], 100_000.0);
    }

    #[test]
    fn what_runs_below_a_loop_device_is_its_own() {
        let (_, ns) = owners(&[look("kworker", [9, 0, 100], &[READ, LOOP_WORK, WORKER, IN_THREAD])], SAMPLING);
        assert_eq!(ns[LOOP], 100_000.0);
    }

    /// Each line: what leaves a processor, in which calls, and what has the idle time after it.
    #[test]
    fn idle_time_belongs_to_what_the_last_of_ours_sleeps_in() {
        for (program, process, calls, wanted) in [
            ("a b", 61, &[IO_SCHEDULE, READ][..], "the disk in page cache and VFS (filemap_read)"),
            ("a b", 61, &[TIMEOUT, EXT4], "a timer in the file system, other (search_nothing)"),
            ("a b", 61, &[SCHEDULE, READ], "another task in page cache and VFS (filemap_read)"),
            ("a b", 61, &[PREEMPT, READ], UNSEEN),
            ("kworker", 9, &[SCHEDULE, WORKER, IN_THREAD], UNSEEN),
            ("stranger", 70, &[IO_SCHEDULE, READ], UNSEEN),
        ] {
            let samples = [look("a b", [61, 0, 100], &[]), leaves(program, [process, 0, 110], calls)];
            let (_, ns) = owners(&samples, SAMPLING);
            let after = ns
                .iter()
                .filter(|(owner, _)| !owner.starts_with(PROGRAM))
                .max_by(|one, other| one.1.total_cmp(other.1));
            assert_eq!(after.map(|(owner, _)| owner.as_str()), Some(wanted), "{program} {calls:x?}");
        }
    }

    #[test]
    fn other_rounds_name_the_waits() {
        let (mut seen, _) = owners(&[look("a b", [61, 0, 100], &[])], SAMPLING);
        let samples = [look("a b", [61, 0, 100], &[]), leaves("a b", [61, 0, 110], &[IO_SCHEDULE, READ])];
        let (other, _) = owners(&samples, SAMPLING);
        name_waits(&mut seen, &Breakdown::default());
        assert_eq!(seen.owners[&(State::Idle, UNSEEN.into())].ns, 400_000.0);
        name_waits(&mut seen, &other);
        let disk = (State::Idle, "the disk in page cache and VFS (filemap_read)".to_string());
        assert_eq!(seen.owners[&disk].ns + seen.owners[&(State::Idle, UNSEEN.into())].ns, 400_000.0);
        assert!(seen.owners[&disk].ns > 380_000.0, "{seen:?}");
    }

    #[test]
    fn a_phase_that_is_timed_until_all_is_durable_has_its_sync() {
        let at = |us: u32| look("kworker", [9, 0, us], &[READ]);
        let looks: Vec<String> = (0..11).map(|number| at(number * 100)).collect();
        let text = format!("{FORKS}{}", looks.concat());
        let begun_at_ns = Some([2_000_001_000, 2_000_501_000]);
        let clock =
            PhaseClock { until_durable: true, sync_ns: 300_000, uncounted_ns: 200_000, begun_at_ns, ..clock(400_000) };
        let found = sampled(&text, std::slice::from_ref(&clock), SYMBOLS, SAMPLING).expect("samples");
        assert_eq!((found[0].time_ns, found[0].rest_ns), (700_000.0, 0.0));
        assert_eq!(found[0].owners[&(State::Busy, UNCOUNTED.into())].ns, -200_000.0);
        for (clock, says) in [
            (PhaseClock { begun_at_ns: None, ..clock.clone() }, "it does not say when it began"),
            (PhaseClock { begun_at_ns: Some([5_000_000_000; 2]), ..clock }, "perf has seen nothing of it"),
        ] {
            let error = format!("{:#}", sampled(&text, &[clock], SYMBOLS, SAMPLING).expect_err("nothing"));
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn what_the_kernel_has_built_in_is_of_the_module_around_it() {
        let found = with_modules(SYMBOLS);
        let module = |name: &str| found.lines().find(|line| line.contains(name)).map(|line| line.contains("[ext4]"));
        let names = ["ext4_find_entry", "search_nothing", "ext4_lookup", "strange", "filemap_read", "fuse_lookup"];
        assert_eq!(names.map(module), [true, true, true, false, false, false].map(Some), "{found}");
    }
}
