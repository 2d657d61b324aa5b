//! Which plan is meant: a file, or the flags that stand for one. Shared by `run`, `plan` and `guest
//! build`.

use super::programs::Source;
use super::{Exit, REFUSED, USAGE, catalogue::catalogue, how_long, programs};
use anyhow::{Context, Result};
use pickfs_core::plan::recipe::RECIPE;
use pickfs_core::plan::{self, Catalogue, Chosen, Complaint, Plan, PlanArgs, PlanFlags, Settings, Work};
use pickfs_host::executor::{self, Executor};
use pickfs_host::run::{is_for_programs, tell};
use pickfs_system::need;
use pickfs_system::sys::devices;
use pickfs_system::sys::process::trusts;
use pickfs_trees::{Shape, profile::builtin};
use std::fs::{File, Metadata};
use std::io::{IsTerminal, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub(crate) const NS_OF_MINUTE: u64 = 60_000_000_000;
/// Of a simulated run: rounds differ by their seeds alone, so few are enough for a bound, in
/// minutes.
const SIMULATED_ROUNDS: &str = "3";
/// Of the generated tree: 50 MiB.
const USUAL_SCALE: &str = "0.25";

/// The checked plan of a file or of flags, or an error that shows all complaints.
pub(crate) fn read(arguments: &PlanArgs) -> Result<Plan> {
    read_with_source(arguments).map(|(plan, _)| plan)
}

/// The same, and whose plan it is.
pub(crate) fn read_with_source(arguments: &PlanArgs) -> Result<(Plan, Source)> {
    match &arguments.plan {
        Some(path) => from_file(path, arguments.executor.clone()),
        None => from_flags(arguments).and_then(|(plan, text)| {
            let source = with_recipes(Source::Own, &plan, &text, Path::new("/"))?;
            Ok((plan, source))
        }),
    }
}

/// Whose a plan is with its recipes: another user's where one of them may be. A file that has
/// changed since it was read may be.
fn with_recipes(of_plan: Source, plan: &Plan, text: &str, folder: &Path) -> Result<Source> {
    if let Source::Foreign(_) = of_plan {
        return Ok(of_plan);
    }
    for path in plan::recipe_files(text, folder) {
        let (recipe, source) = text_of(&path)?;
        if let Source::Foreign(_) = source {
            return Ok(source);
        }
        if !plan.works.iter().any(|work| work.workload.settings.text(RECIPE) == Some(&recipe)) {
            return Ok(Source::Foreign(format!("{} has changed while it was read", path.display())));
        }
    }
    Ok(of_plan)
}

fn from_file(path: &Path, executor: Option<String>) -> Result<(Plan, Source)> {
    let (text, source) = text_of(path)?;
    let (file, folder) = (path.display().to_string(), folder_of(path)?);
    let plan = plan::from_toml(&text, &file, &folder, &Catalogue { executor, ..catalogue() });
    let plan = plan.map_err(|complaints| wrong_text(&text, &file, &complaints))?;
    let source = with_recipes(source, &plan, &text, &folder)?;
    Ok((plan, source))
}

fn text_of(path: &Path) -> Result<(String, Source)> {
    let remedy = "name a plan file (`pickfs init` writes one), or the targets as options (`pickfs help run`)";
    let unreadable = |error| Exit::usage(format!("cannot read the plan {}: {error}; {remedy}", path.display()));
    let mut bytes = Vec::new();
    let mut opened = File::open(path).map_err(unreadable)?;
    opened.read_to_end(&mut bytes).map_err(unreadable)?;
    let source = source(path, &opened.metadata().map_err(unreadable)?);
    let no_text = || Exit::usage(format!("{} is not text in UTF-8, so it is no plan; {remedy}", path.display()));
    Ok((String::from_utf8(bytes).ok().ok_or_else(no_text)?, source))
}

/// Where the file that was read comes from, whatever its name leads to later. What is piped to us
/// has no owner to check.
fn source(path: &Path, file: &Metadata) -> Source {
    let (shown, owner) = (path.display(), file.uid());
    match () {
        () if !file.is_file() => Source::Foreign(format!("{shown} is no file")),
        () if owner != 0 && !trusts(owner) => Source::Foreign(format!("{shown} belongs to user {owner}")),
        () if file.mode() & 0o022 != 0 => {
            Source::Foreign(format!("others may write to {shown} (`chmod go-w` ends that)"))
        }
        () => Source::Own,
    }
}

/// What a plan file that another machine will check says of its works and its executor, and whose
/// it is; nothing of what is no plan, which that machine refuses.
pub(crate) fn unchecked(path: &Path) -> Result<(Plan, Source)> {
    let (text, source) = text_of(path)?;
    let plan = works_of(&inlined(&text, path)?);
    let source = with_recipes(source, &plan, &text, &folder_of(path)?)?;
    Ok((plan, source))
}

/// The plan of a file, with the texts of its recipes in it.
pub(crate) fn inlined(text: &str, file: &Path) -> Result<String> {
    let shown = file.display().to_string();
    plan::inlined(text, &folder_of(file)?).map_err(|complaints| wrong_text(text, &shown, &complaints))
}

fn folder_of(file: &Path) -> Result<PathBuf> {
    Ok(std::path::absolute(file)?.parent().unwrap_or(Path::new("/")).to_path_buf())
}

/// The work of flags that another machine will check, as [`unchecked`] has those of a plan file.
pub(crate) fn unchecked_flags(flags: &PlanFlags) -> Result<Plan> {
    let Some(workload) = flags.text("workload") else { return Ok(Plan::default()) };
    let text = format!("[[work]]\nworkload = {}\n", toml::Value::from(workload));
    Ok(works_of(&inlined(&text, Path::new("command line"))?))
}

/// The workload of flags, which is the text of a recipe where they name its file.
pub(crate) fn workload_of(flags: &PlanFlags) -> Result<Option<String>> {
    let works = unchecked_flags(flags)?.works;
    Ok(works.first().map(|work: &Work| work.workload.settings.text(RECIPE).unwrap_or(&work.workload.name).to_string()))
}

fn works_of(text: &str) -> Plan {
    let table: toml::Table = toml::from_str(text).unwrap_or_default();
    let word = |table: &toml::Table, key: &str| table.get(key).and_then(|value| value.as_str()).map(String::from);
    let work = |table: &toml::Table| {
        let name = word(table, "workload").unwrap_or_default();
        let settings = table.iter().filter_map(|(key, value)| Some((key.clone(), serde_json::to_value(value).ok()?)));
        let (mut settings, is_recipe) = (Settings(settings.collect()), name.contains('\n'));
        settings.0.extend(is_recipe.then(|| (RECIPE.to_string(), name.clone().into())));
        let name = if is_recipe { RECIPE.to_string() } else { name };
        let workload = Chosen { name: name.clone(), settings };
        Work { name: word(table, "name").unwrap_or(name), workload, ..Work::default() }
    };
    let works = table.get("work").and_then(|works| works.as_array()).into_iter().flatten();
    let works = works.filter_map(|work| work.as_table()).map(work).collect();
    Plan { works, executor: word(&table, "executor").unwrap_or_default(), ..Plan::default() }
}

/// The checked plan of the flags, and the text of a plan file with the same content.
pub(crate) fn from_flags(arguments: &PlanArgs) -> Result<(Plan, String)> {
    let mut arguments = arguments.clone();
    let root = rustix::process::geteuid().is_root();
    if !root && chooses_no_machine(&arguments) {
        without_root(&mut arguments);
    }
    made(arguments, root)
}

/// The checked plan as root would get it.
pub(crate) fn checked(arguments: PlanArgs) -> Result<Plan> {
    made(arguments, true).map(|(plan, _)| plan)
}

fn made(mut arguments: PlanArgs, root: bool) -> Result<(Plan, String)> {
    let folder = std::env::current_dir().context("there is no current directory")?;
    if arguments.flags.texts("sim").len() > 1 {
        return Err(Exit::usage("--sim takes one disk here; `pickfs run` takes several, and does a run for each"));
    }
    complete(&mut arguments);
    // A guest has its own root.
    let makes_filesystems = root || arguments.executor.as_deref().is_some_and(executor::brings_its_own);
    let catalogue = catalogue();
    let plan = arguments.plan(&folder, makes_filesystems, &catalogue);
    let (mut plan, text) = plan.map_err(|complaints| wrong_flags(&arguments.flags, &complaints))?;
    let flags = &mut arguments.flags;
    if plan.stop.rounds.is_some() || plan.stop.precision.is_some() || plan.stop.budget_ns.is_some() {
        return Ok((plan, text));
    }
    // Not checked anew: a check may look at each file of the user's data.
    let minutes = how_long::minutes_of_budget(&plan);
    plan.stop.budget_ns = Some(minutes * NS_OF_MINUTE);
    flags.set("budget", [format!("{minutes}min")]);
    let text = arguments.text(&folder, makes_filesystems, &catalogue);
    Ok((plan, text.map_err(|complaints| wrong_flags(&arguments.flags, &complaints))?))
}

/// Gives what depends on the machine and on what else was asked for.
fn complete(arguments: &mut PlanArgs) {
    let flags = &mut arguments.flags;
    let is_simulated = flags.has("sim");
    if is_simulated {
        arguments.executor = Some(executor::sim::NAME.to_string());
        let disks: Vec<String> = flags.texts("sim").iter().map(|disk| pickfs_disks::whole_name(disk)).collect();
        flags.set("sim", disks);
        flags.set("memory", [""; 0]);
    }
    let size = plan::image_size(bytes(flags), free_bytes(flags)).filter(|_| !flags.has("size"));
    size.into_iter().for_each(|size| flags.set("size", [size]));
    let is_first_look = is_first_look(flags);
    if is_simulated && !has_aim(flags) && !flags.has("budget") {
        // The host's time must not decide how many rounds are simulated.
        flags.set("rounds", [SIMULATED_ROUNDS]);
    }
    // Other workloads than the usual one need not know a scale.
    let may_be_small = is_first_look || is_simulated && !names_data(flags);
    let is_usual = arguments.base.is_empty() && !["workload", "job", "trace"].iter().any(|flag| flags.has(flag));
    if may_be_small && is_usual && !flags.has("scale") {
        flags.set("scale", [USUAL_SCALE]);
    }
}

/// What makes file systems without root, where this machine can run it; says so. Guests that are
/// emulated take a minute a cell and share the host's noise: a simulation takes no longer and has
/// none.
fn without_root(arguments: &mut PlanArgs) {
    let first = match has_guests() {
        true => "",
        false => "the first time a guest is made of about 200 MB of Debian's packages, which takes minutes; ",
    };
    let instead = format!("{first}--on DIR measures one of your directories instead");
    let is_there = |executor: &dyn Executor| need::missing(&executor.needs()).is_empty();
    if executor::vm::is_emulated() && is_there(&executor::sim::SIM) {
        let disk = model_like(Path::new("."));
        tell(&format!("not root, and no KVM: simulating on {disk} (--sim names another disk); {instead}"));
        arguments.flags.set("sim", [disk]);
    } else if is_there(&executor::vm::Vm) {
        tell(&format!("not root: every cell gets its own virtual machine; {instead}"));
        arguments.executor = Some(executor::vm::NAME.into());
    }
}

fn has_guests() -> bool {
    executor::vm::all().is_ok_and(|guests| !guests.is_empty())
}

fn chooses_no_machine(arguments: &PlanArgs) -> bool {
    arguments.executor.is_none() && !["on", "sim"].iter().any(|flag| arguments.flags.has(flag))
}

/// False where a guest would be made of packages that the user has not asked for, and does not
/// agree to now.
pub(crate) fn may_fetch(arguments: &PlanArgs, plan: &Plan, yes: bool) -> Result<bool> {
    let is_asked_for = arguments.plan.is_some() || !chooses_no_machine(arguments);
    if yes || is_asked_for || !executor::brings_its_own(&plan.executor) || has_guests() {
        return Ok(true);
    }
    let may_ask = std::io::stdin().is_terminal() && !is_for_programs();
    if may_ask && programs::asked("Fetch the packages and go on?")? {
        return Ok(true);
    }
    tell("refused: nothing was fetched and nothing was touched; --yes agrees to fetch about 200 MB");
    Ok(false)
}

/// The model of the kind of disk that a file lies on.
pub(crate) fn model_like(file: &Path) -> &'static str {
    let disk = devices::disk_of_file(file);
    let rotates = disk.and_then(|disk| devices::content(devices::queue_file(disk, "rotational")?));
    pickfs_disks::like(&disk_name(file).unwrap_or_default(), rotates.as_deref() == Some("1"))
}

/// As in /dev, of the whole disk that a file lies on, below what encrypts or divides it; none of a
/// file in memory or on another machine.
fn disk_name(file: &Path) -> Option<String> {
    let below = |disk: &PathBuf| {
        let own = std::fs::read_dir(disk.join("slaves")).ok()?.flatten().next()?.path().canonicalize().ok()?;
        if own.join("partition").exists() { own.parent().map(Path::to_path_buf) } else { Some(own) }
    };
    let disk = devices::disk_of_file(file).and_then(devices::whole_disk)?;
    let lowest = std::iter::successors(Some(disk), below).last()?;
    Some(lowest.file_name()?.to_string_lossy().into_owned())
}

/// The name of the disk that a file lies on, and the model of its kind; no model where that cannot
/// be known: virtual disks call themselves turning, whatever lies below them.
pub(crate) fn kind_of_disk(file: &Path) -> (Option<String>, Option<&'static str>) {
    let name = disk_name(file);
    let is_real = |name: &String| !["vd", "xvd", "loop", "ram", "zram"].iter().any(|virt| name.starts_with(virt));
    let model = name.as_ref().filter(|name| is_real(name)).map(|_| model_like(file));
    (name, model)
}

fn refused(complaints: &[Complaint], text: String) -> anyhow::Error {
    let code = if complaints.iter().any(|complaint| complaint.refusal) { REFUSED } else { USAGE };
    Exit { code, text }.into()
}

/// An error that shows all complaints about the text of a plan.
fn wrong_text(text: &str, file: &str, complaints: &[Complaint]) -> anyhow::Error {
    refused(complaints, plan::render(text, file, complaints, std::io::stderr().is_terminal()))
}

/// An error that shows all complaints about flags.
pub(crate) fn wrong_flags(flags: &PlanFlags, complaints: &[Complaint]) -> anyhow::Error {
    refused(complaints, plan::render_flags(flags, complaints, std::io::stderr().is_terminal()))
}

/// A first run on a machine should end while its user waits. With named data or an aim it gets the
/// time that it takes.
fn is_first_look(flags: &PlanFlags) -> bool {
    !names_data(flags) && !has_aim(flags)
}

/// What ends the run without a budget.
fn has_aim(flags: &PlanFlags) -> bool {
    flags.has("rounds") || flags.has("precision")
}

fn names_data(flags: &PlanFlags) -> bool {
    ["source", "like", "scale"].into_iter().any(|flag| flags.has(flag))
}

/// Bytes of the source, or of the tree that is generated if one is asked for. The plan's check
/// reports what is wrong with either.
fn bytes(flags: &PlanFlags) -> Option<u64> {
    if let Some(source) = flags.text("source").map(Path::new) {
        return Some(pickfs_trees::apparent_bytes(source));
    }
    if !names_data(flags) {
        return None;
    }
    let like = builtin::profile(flags.text("like").unwrap_or(builtin::USUAL)).ok()?;
    let scale = flags.text("scale").map_or(Some(1.0), |scale| scale.parse().ok())?;
    Some(Shape::scaled(&like, scale).bytes)
}

/// Free bytes where the image will be; of several folders the least. A folder that cannot be read
/// counts as full.
fn free_bytes(flags: &PlanFlags) -> Option<u64> {
    let folders = match (flags.has("memory"), !flags.has("on")) {
        (true, _) => vec![PathBuf::from("/dev/shm")],
        (false, true) => vec![std::env::current_dir().ok()?],
        (false, false) => flags.texts("on").iter().map(PathBuf::from).collect(),
    };
    let free = |folder: &PathBuf| rustix::fs::statvfs(folder).ok().map(|found| found.f_bavail * found.f_frsize);
    folders.iter().map(free).min().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The budget is added to both, and the plan is not read again.
    #[test]
    fn a_plan_from_flags_is_what_its_text_says() {
        let mut flags = PlanFlags::default();
        flags.set("memory", [""; 0]);
        flags.set("workload", ["pgbench"]);
        let (plan, text) = made(PlanArgs { flags, ..PlanArgs::default() }, true).unwrap();
        assert!(text.contains("budget = \"") && plan.stop.budget_ns.is_some(), "{text}");
        let folder = std::env::current_dir().unwrap();
        assert_eq!(plan::from_toml(&text, "", &folder, &catalogue()).unwrap(), plan);
    }

    #[test]
    fn a_scale_is_given_to_the_usual_work_alone() {
        for (flag, value, is_scaled) in
            [("fs", "ext4", true), ("workload", "pgbench", false), ("trace", "git-clone", false)]
        {
            let mut flags = PlanFlags::default();
            flags.set("memory", [""; 0]);
            flags.set(flag, [value]);
            let (_, text) = made(PlanArgs { flags, ..PlanArgs::default() }, false).unwrap();
            assert_eq!(text.contains("scale = "), is_scaled, "{flag}: {text}");
        }
    }
}
