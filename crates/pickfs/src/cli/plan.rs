//! `pickfs plan`: what a run would do, without doing it.

use super::{Outcome, Verb, catalogue, confirm, forecast, forewarn, how_long, plan_source, programs};
use pickfs_core::plan::{
    self, Ageing, Cell, Limit, Plan, PlanArgs, Stop, Target, VerdictSpec, VerdictTerm, Work, capacity, disks, expand,
};
use pickfs_host::executor;
use pickfs_host::wording::text::counted;
use pickfs_stats::{FIRST_LOOK, LAST_LOOK};
use pickfs_system::need;
use pickfs_system::sys::block;
use pickfs_system::units::{Unit, show_bytes};
use pickfs_system::visible::{visible, visible_json, visible_lines};
use pickfs_target::stack::backing::Elsewhere;
use pickfs_target::stack::recipe::{self, Recipe};
use pickfs_target::stack::{Place, Step, backing, fs};
use pickfs_target::workload;
use procfs::Current;
use std::fmt::Write;
use std::path::PathBuf;

/// Show what a run would do: cells, order, what is destroyed, how long
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    plan: PlanArgs,
    /// Print the plan file that the options stand for, and nothing else
    #[arg(long, conflicts_with = "plan")]
    toml: bool,
    /// Forecast rounds and hours from the journal of an earlier run of such targets and works
    #[arg(long, value_name = "JOURNAL", conflicts_with_all = ["toml", "json", "schema"])]
    pilot: Option<PathBuf>,
    /// As JSON, for programs: the checked plan, with defaults filled in
    #[arg(long, conflicts_with = "toml")]
    json: bool,
    /// Print the JSON schema of plan files, for editors (taplo, VS Code)
    #[arg(long, conflicts_with_all = ["toml", "json"])]
    schema: bool,
}

impl Verb for Arguments {
    const EXAMPLES: &[[&str; 2]] = &[
        ["pickfs plan --fs ext4,btrfs:zstd:1", "every step of a run, without doing it"],
        ["pickfs plan PLAN.toml --pilot RUN.jsonl", "how long a run would take, from an earlier one"],
    ];
    const ONLY_PRINTS: bool = true;

    fn run(&self) -> Outcome {
        if self.schema {
            println!("{}", serde_json::to_string_pretty(&plan::schema(&catalogue::catalogue()))?);
            return Ok(0);
        }
        if self.toml {
            print!("{}", plan_source::from_flags(&self.plan)?.1);
            return Ok(0);
        }
        let disks = self.plan.flags.texts("sim");
        if disks.len() > 1 && !self.json && self.pilot.is_none() {
            for (at, disk) in disks.iter().enumerate() {
                let mut plan = self.plan.clone();
                plan.flags.set("sim", [disk]);
                print!("{}run {} of {}, on {disk}: ", if at > 0 { "\n" } else { "" }, at + 1, disks.len());
                Arguments { plan, toml: false, pilot: None, json: false, schema: false }.run()?;
            }
            return Ok(0);
        }
        let plan = plan_source::read(&self.plan)?;
        if self.json {
            let cells = expand(&plan);
            let limit_ns: u64 = cells.iter().map(|cell| cell.limit_ns).fold(0, u64::saturating_add);
            let all = serde_json::json!({ "plan": plan, "most_cells": cells.len(), "most_ns": limit_ns });
            println!("{}", visible_json(&serde_json::to_string_pretty(&all)?));
            return Ok(0);
        }
        let pilot = self.pilot.as_deref().map(|journal| forecast::describe(&plan, journal)).transpose()?;
        let raced = plan.targets.iter().filter(|target| !target.duplicate).count();
        let text = describe(&plan, &pilot.unwrap_or_else(|| forecast::without_pilot(raced)));
        print!("{}", visible_lines(&text));
        Ok(0)
    }
}

/// The dry run, in words.
fn describe(plan: &Plan, forecast: &str) -> String {
    let cells = expand(plan);
    let chosen = [programs::describe(plan), programs::describe_reads(plan)].concat();
    let gap = if chosen.is_empty() { "" } else { "\n" };
    let title = visible(&plan.title);
    let mut text = format!("{title}\n\n{chosen}{gap}{}{forecast}\n", describe_rounds(plan, &cells));
    describe_executor(plan, &mut text);
    describe_run(plan, &mut text);
    describe_targets(plan, &cells, &mut text);
    describe_works(plan, &mut text);
    text.push_str(&describe_verdict(&plan.verdict));
    describe_destruction(plan, &mut text);
    let _ = writeln!(text, "order:");
    let shown = plan.stop.rounds.unwrap_or(FIRST_LOOK) as usize;
    for round in cells.chunk_by(|one, next| one.round == next.round).take(shown) {
        let names: Vec<String> =
            round.iter().map(|cell| visible(&format!("{} / {}", cell.target.name, cell.work.name))).collect();
        let _ = writeln!(text, "  round {}: {}", round[0].round, names.join(", "));
    }
    text
}

/// How many rounds, what ends them, and what bounds their time.
fn describe_rounds(plan: &Plan, cells: &[Cell]) -> String {
    let stop = &plan.stop;
    let (copies, targets): (Vec<&Target>, Vec<&Target>) = plan.targets.iter().partition(|target| target.duplicate);
    let (targets, works) = (counted(targets.len(), "target"), counted(plan.works.len(), "work"));
    let most = if stop.rounds.is_none() { "at most " } else { "" };
    let rounds = stop.most_rounds();
    let copied = plan.looks.copied_rounds().map_or(rounds, |copied| copied.min(rounds)) as usize;
    let twice = copies.first().map(|_| format!(", {} twice in {}", plan.reference, counted(copied, "round")));
    let mut text = format!(
        "{most}{}: {targets} x {works} x {}{}, seed {}\n",
        counted(cells.len(), "cell"),
        counted(rounds as usize, "round"),
        twice.unwrap_or_default(),
        plan.seed
    );
    let _ = writeln!(text, "rounds: {}", what_ends(stop));
    let _ = writeln!(text, "time: {}", how_long::in_words(plan));
    for warning in forewarn::warnings(plan) {
        let _ = writeln!(text, "note: {warning}");
    }
    text
}

fn what_ends(stop: &Stop) -> String {
    let percent = |share: f64| format!("{} %", (share * 1000.0).round() / 10.0);
    let threshold = percent(stop.threshold);
    if let Some(rounds) = stop.rounds {
        return format!("{rounds}, then the results are judged (differences within ±{threshold} do not matter)");
    }
    let until = match stop.precision {
        Some(precision) => format!("every comparison is known to ±{}", percent(precision)),
        None => format!("the pick is at most {threshold} slower than the best (95 %)"),
    };
    let leave = if stop.race { "; a target that is shown to be slower than another is eliminated" } else { "" };
    format!("interim analyses after each round from {FIRST_LOOK} to {LAST_LOOK}, until {until}{leave}")
}

/// Nothing where the work is done here.
fn describe_executor(plan: &Plan, text: &mut String) {
    let Some(executor) = executor::find(executor::ALL, &plan.executor).filter(|found| found.brings_its_own()) else {
        return;
    };
    let _ = writeln!(text, "executor {}: {}", executor.name(), executor.about());
    for missing in need::missing(&executor.needs()) {
        let _ = writeln!(text, "  cannot be used: {missing}");
    }
    let mut kernels: Vec<&str> = plan.targets.iter().filter_map(|target| target.machine.text("kernel")).collect();
    kernels.sort_unstable();
    kernels.dedup();
    let rest = if executor.simulates() {
        "the disk is simulated, all is done in the guest"
    } else {
        "images are made here, all else in the guest"
    };
    let _ = writeln!(text, "  kernels and programs of {}; {rest}", kernels.join(", "));
}

fn describe_targets(plan: &Plan, cells: &[Cell], text: &mut String) {
    let place = place_of_agent(plan);
    let seed_of_first_cell =
        |target: &Target| cells.iter().find(|cell| cell.target == *target).map_or(0, |cell| cell.seed);
    for target in &plan.targets {
        let kind = if target.duplicate { " (hidden duplicate, for the noise floor)" } else { "" };
        let _ = writeln!(text, "target {}{kind}", visible(&target.name));
        describe_steps(plan, target, &place, seed_of_first_cell(target), text);
        describe_ageing(target, text);
        let needs = pickfs_target::agent::needs_of_target(target);
        // What this machine lacks is no reason to skip a target where another machine does it.
        for missing in need::missing(&needs).into_iter().filter(|_| !executor::brings_its_own(&plan.executor)) {
            let _ = writeln!(text, "  will be skipped: {missing}");
        }
        describe_boots(plan, target, text);
    }
}

/// Works that boot a machine from the target, which it may be unable to carry.
fn describe_boots(plan: &Plan, target: &Target, text: &mut String) {
    let boots = |work: &&Work| workload::find(&work.workload.name).is_some_and(|workload| workload.description().boots);
    for work in plan.works.iter().filter(boots) {
        for why in pickfs_target::stage::boot_objections(target, executor::brings_its_own(&plan.executor)) {
            let _ = writeln!(text, "  work {} will be skipped: {why}", work.name);
        }
    }
}

/// In a guest the agent is root.
fn place_of_agent(plan: &Plan) -> Place {
    Place::of_agent("RUN", executor::brings_its_own(&plan.executor) || rustix::process::geteuid().is_root())
}

/// Once, before the first cell; and what a guest does of it, by its own memory.
fn describe_run(plan: &Plan, text: &mut String) {
    let (place, here) = (place_of_agent(plan), !executor::brings_its_own(&plan.executor));
    let memory = procfs::Meminfo::current().ok().map(|memory| memory.mem_total);
    let memory = memory.filter(|_| rustix::process::geteuid().is_root());
    let mut steps =
        if here { recipe::of_run(&place, &plan.host, memory) } else { vec![recipe::folder_in_memory(&place)] };
    for target in plan.targets.iter().filter(|target| here || is_brought(plan, target)) {
        for step in backing_steps(target, &place) {
            if !steps.contains(&step) {
                steps.push(step);
            }
        }
    }
    let _ = writeln!(text, "before the first cell");
    write_steps(&steps, text);
    if !here {
        let _ = writeln!(text, "in each guest, before its cell");
        write_steps(&recipe::of_machine_to_be(&place, &plan.host), text);
    }
}

/// A simulated disk is made with its cell.
fn is_brought(plan: &Plan, target: &Target) -> bool {
    let backing = backing::find(&target.backing.name);
    !executor::simulates(&plan.executor)
        && backing.is_some_and(|backing| matches!(backing.elsewhere, Elsewhere::Disks(_)))
}

/// What a backing does once.
fn backing_steps(target: &Target, place: &Place) -> Vec<Step> {
    backing::find(&target.backing.name)
        .map_or_else(Vec::new, |backing| (backing.prepare)(&target.backing.settings, place))
}

fn write_steps(steps: &[Step], text: &mut String) {
    for step in steps {
        let _ = writeln!(text, "  {}", visible(&format!("{}: {}", step.says, step.action)));
    }
}

/// Images and devices of this machine are disks of a guest, under other names. So is any backing
/// that is simulated.
fn as_its_agent_sees_it(plan: &Plan, target: &Target, place: &Place) -> Target {
    let executor = executor::find(executor::ALL, &plan.executor);
    let names = |disks| executor.map_or_else(Vec::new, |found| found.disk_names(disks));
    if executor::simulates(&plan.executor) {
        pickfs_target::agent::on_disks(target, &names(pickfs_core::plan::disks(&target.backing.settings) as usize))
    } else {
        pickfs_target::agent::on_machine(target, place, names)
    }
}

/// What each cell of the target begins with, as the agent takes it: with the seed of the first
/// round, and with `DEVICE` for what gets its name when it is there.
fn describe_steps(plan: &Plan, target: &Target, place: &Place, seed: u64, text: &mut String) {
    let target = &as_its_agent_sees_it(plan, target, place);
    if executor::brings_its_own(&plan.executor) {
        write_steps(&backing_steps(target, place), text);
    }
    let recipe = match Recipe::new(target, place, "pickfsCELL", seed) {
        Ok(recipe) => recipe,
        Err(why) => {
            let _ = writeln!(text, "  cannot be built: {why}");
            return;
        }
    };
    let slots = recipe.slots();
    match recipe.steps() {
        Ok(steps) => write_steps(&steps, text),
        Err(why) => {
            let _ = writeln!(text, "  cannot be built: {why}");
        }
    }
    if let (Some(driver), [device, more @ ..]) = (recipe.driver, &slots[..]) {
        let mount_point = place.mount_point();
        let spec = fs::FsSpec { more_devices: more, ..fs::FsSpec::new(driver, target, device, &mount_point) };
        for feature in forewarn::lacking(driver, &spec, &plan.verdict.require) {
            let _ = writeln!(text, "  will not be in the verdict: {} has no {feature} like this", driver.name);
        }
    }
}

/// Nothing for a target that stays fresh.
fn describe_ageing(target: &Target, text: &mut String) {
    let Some(ageing) = Ageing::of(target) else { return };
    let path = target.backing.settings.path("path");
    let size = capacity(&target.backing.settings).or_else(|| block::size_of_device(&path?).ok());
    let driver = target.fs.as_deref().and_then(fs::find).filter(|_| target.layers.is_empty());
    let disks = disks(&target.backing.settings) as usize;
    let for_data = |size| driver.map_or(size, |fs| fs.data_bytes(target.variant.as_deref(), &vec![size; disks]));
    let size = size.map(for_data);
    let amount = |share: f64, bytes: fn(&Ageing, u64) -> u64| match size {
        Some(size) => show_bytes(bytes(&ageing, size) as f64),
        None => format!("{:.0} % of the device", share * 100.0),
    };
    let mut line = |words: String| text.push_str(&format!("  {words}\n"));
    if ageing.level > 0.0 {
        line(format!("fill it: {} in files", amount(ageing.level, Ageing::level_bytes)));
    }
    if ageing.churn > 0.0 {
        let churned = amount(ageing.level * ageing.churn, Ageing::churn_bytes);
        line(format!("churn it: {churned} more in files made, as much deleted"));
        line(format!("leave {} in files", amount(ageing.leaves, Ageing::leaves_bytes)));
    }
    if ageing.pulls > 0 {
        line(format!("clone a repository, and pull {} times", ageing.pulls));
    }
    if let Some(size) = size {
        let [written, kept] =
            [ageing.written_bytes(size), ageing.kept_bytes(size)].map(|bytes| show_bytes(bytes as f64));
        line(format!("so ageing writes about {written} in each cell, and {kept} are there when the work begins"));
    }
}

fn describe_works(plan: &Plan, text: &mut String) {
    for work in &plan.works {
        let _ = writeln!(text, "\nwork {} ({})", visible(&work.name), work.workload.name);
        let (workload, settings) = (workload::find(&work.workload.name), &work.workload.settings);
        let folders = workload.map(|workload| workload.folders(settings, &place_of_agent(plan))).unwrap_or_default();
        let make = |path| Step::folder("make a folder for the work", path);
        write_steps(&folders.into_iter().map(make).collect::<Vec<_>>(), text);
        let phases = workload.map(|workload| workload.phases(settings)).unwrap_or_default();
        for phase in phases {
            let _ = writeln!(text, "  phase {}: {}", visible(&phase.name), phase.about);
        }
        if work.repeats.0 > 1 {
            let _ = writeln!(text, "  phases that only read are done {} times in each cell", work.repeats.0);
        }
    }
}

/// Nothing where the plan has no `[verdict]`.
fn describe_verdict(verdict: &VerdictSpec) -> String {
    let parts = verdict.parts.iter().map(|part| described_part(part, verdict.has_counts()));
    let mut lines: Vec<String> = parts.collect();
    if !lines.is_empty() {
        let rule = if verdict.has_counts() { "their times add up" } else { "each by its weight" };
        lines.insert(0, format!("one verdict over all, {rule}; what is not named here is left out"));
    }
    if !verdict.require.is_empty() {
        lines.push(format!("only of targets that have {}", verdict.require.join(", ")));
    }
    let holds = verdict
        .holds
        .iter()
        .map(|(what, bytes)| format!("only of targets that take a {what} of {}", show_bytes(*bytes as f64)));
    lines.extend(holds);
    lines.extend(verdict.limits.iter().map(described_limit));
    let lines: Vec<String> = lines.into_iter().map(|line| format!("  {line}\n")).collect();
    if lines.is_empty() { String::new() } else { format!("\nverdict\n{}", lines.concat()) }
}

fn described_part(part: &VerdictTerm, costs: bool) -> String {
    let phase = part.phase.as_ref().map(|phase| format!(" phase {phase}")).unwrap_or_default();
    let what = format!("work {}{phase}", part.work);
    if costs {
        format!("{what}: done {} {}", part.amount, if part.amount == 1.0 { "time" } else { "times" })
    } else {
        format!("{what}: weight {}", part.amount)
    }
}

fn described_limit(limit: &Limit) -> String {
    let phase = limit.phase.as_ref().map(|phase| format!(" of phase {phase}")).unwrap_or_default();
    let most = Unit::of_metric(&limit.metric).show(limit.at_most);
    format!("only of targets whose {}{phase} is at most {most}", limit.metric)
}

fn describe_destruction(plan: &Plan, text: &mut String) {
    let devices = confirm::devices(plan);
    if devices.is_empty() {
        let _ = writeln!(text, "\nnothing is erased: only files and folders of the run's own are made, and removed\n");
    }
    for device in devices {
        let _ = writeln!(text, "\nWILL BE ERASED: {}\n", device.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::plan::{Chosen, Repeats, Target, Work};

    fn plan(verdict: VerdictSpec) -> Plan {
        let chosen = Chosen { name: "meta.ok".into(), ..Chosen::default() };
        let work = Work { name: "mail".into(), workload: chosen, repeats: Repeats(3), ..Work::default() };
        let targets = vec![Target { name: "ext4".into(), ..Target::default() }];
        Plan { targets, works: vec![work], verdict, ..Plan::default() }
    }

    fn part(phase: Option<&str>, amount: f64) -> VerdictTerm {
        VerdictTerm { work: "mail".into(), phase: phase.map(String::from), amount }
    }

    #[test]
    fn the_verdict_is_described() {
        let limit = |phase: Option<&str>, metric: &str, at_most| Limit {
            phase: phase.map(String::from),
            metric: metric.into(),
            at_most,
        };
        let text = describe(
            &plan(VerdictSpec {
                holds: [("file".to_string(), 20 << 40)].into(),
                amounts: pickfs_core::plan::Amounts::Counts,
                parts: vec![part(Some("read"), 20.0), part(None, 1.0)],
                require: vec!["checksums".into(), "snapshots".into()],
                limits: vec![limit(None, "space_grown_bytes", 1e9), limit(Some("read"), "time_ns", 2e9)],
            }),
            "",
        );
        let expected = "\nverdict\n  one verdict over all, their times add up; what is not named here is left out\n  \
            work mail phase read: done 20 times\n  work mail: done 1 time\n  \
            only of targets that have checksums, snapshots\n  \
            only of targets that take a file of 20.0 TiB\n  \
            only of targets whose space_grown_bytes is at most 954 MiB\n  \
            only of targets whose time_ns of phase read is at most 2.00 s\n\n";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains(" cells: 1 target x 1 work x "), "{text}");
        assert!(text.contains("  phases that only read are done 3 times in each cell\n"), "{text}");
    }

    #[test]
    fn cells_are_counted_without_the_second_copy() {
        let target = |name: &str| Target { name: name.into(), ..Target::default() };
        let one = Plan { reference: "ext4".into(), ..plan(VerdictSpec::default()) };
        let of = |targets: Vec<Target>, rounds| {
            let copied = Plan { targets, stop: Stop { rounds, ..Stop::default() }, ..one.clone() };
            describe_rounds(&copied, &expand(&copied)).lines().next().unwrap_or_default().to_string()
        };
        let [ext4, xfs] = ["ext4", "xfs"].map(target);
        let all = || vec![ext4.clone(), xfs.clone(), ext4.again()];
        for (found, wanted) in [
            (of(vec![ext4.clone()], Some(1)), "1 cell: 1 target x 1 work x 1 round, seed 0"),
            (of(all(), Some(1)), "3 cells: 2 targets x 1 work x 1 round, ext4 twice in 1 round, seed 0"),
            (of(all(), Some(10)), "28 cells: 2 targets x 1 work x 10 rounds, ext4 twice in 8 rounds, seed 0"),
            (of(all(), None), "at most 88 cells: 2 targets x 1 work x 40 rounds, ext4 twice in 8 rounds, seed 0"),
        ] {
            assert_eq!(found, wanted);
        }
    }

    #[test]
    fn layers_are_told_from_the_lowest() {
        let chosen = |name: &str, settings: serde_json::Value| Chosen {
            name: name.into(),
            settings: pickfs_core::plan::Settings(settings.as_object().unwrap().clone().into_iter().collect()),
        };
        let mut plan = plan(VerdictSpec::default());
        plan.targets[0].fs = Some("xfs".into());
        plan.targets[0].backing = chosen("image", serde_json::json!({"disks": 3, "size": 1 << 30}));
        plan.targets[0].layers = vec![
            chosen("delay", serde_json::json!({"read": "8ms", "write": "8ms", "devices": 2})),
            chosen("md", serde_json::json!({"level": "raid1", "chunk": 524288, "devices": 2})),
            chosen("lvmcache", serde_json::json!({"mode": "writethrough", "size": 1 << 29})),
        ];
        let text = describe(&plan, "");
        let places: Vec<Option<usize>> =
            ["DEVICE2, ", "mdadm --create", "lvconvert", "mkfs.xfs"].map(|word| text.find(word)).to_vec();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}\n{text}");
        assert!(text.contains("vgcreate") && text.contains("DEVICE3"), "{text}");
        assert!(!text.contains("mkfs.xfs -f -q -K DEVICE\n"), "{text}");
    }

    #[test]
    fn targets_that_cannot_be_in_the_verdict_are_told() {
        let mut plan =
            plan(VerdictSpec { require: vec!["checksums".into(), "encryption".into()], ..VerdictSpec::default() });
        let target = |fs: &str, variant: Option<&str>| Target {
            fs: Some(fs.into()),
            variant: variant.map(String::from),
            backing: Chosen { name: "memory".into(), ..Chosen::default() },
            ..Target::default()
        };
        let mut note = |fs: &str, variant: Option<&str>| {
            plan.targets = vec![target(fs, variant)];
            describe(&plan, "")
                .lines()
                .filter(|line| line.contains("not be in the verdict"))
                .collect::<Vec<_>>()
                .join("\n")
        };
        assert_eq!(note("ext4", None), "  will not be in the verdict: ext4 has no checksums like this");
        assert_eq!(note("btrfs", Some("lzo")), "  will not be in the verdict: btrfs has no encryption like this");
        assert!(note("btrfs", Some("nocow")).contains("btrfs has no checksums like this"));
        assert_eq!(note("zfs", None), "");
    }

    #[test]
    fn weights_are_told_as_weights_and_nothing_as_nothing() {
        let text = describe(&plan(VerdictSpec { parts: vec![part(None, 2.0)], ..VerdictSpec::default() }), "");
        assert!(text.contains("each by its weight") && text.contains("  work mail: weight 2\n"), "{text}");
        let mut once = plan(VerdictSpec::default());
        once.works[0].repeats = Repeats(1);
        let text = describe(&once, "");
        assert!(!text.contains("verdict") && !text.contains("in each cell"), "{text}");
    }
}
