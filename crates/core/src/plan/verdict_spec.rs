//! What the one verdict is made of: repeats, weights and counts of works, and `[verdict]`.

use super::complaint::{listed, nearest, quoted};
use super::keys::VERDICT;
use super::table::{Field, Reader, Table, choose, not_found};
use super::{AMOUNTS, Amounts, HOLDS, Limit, Settings, VerdictSpec, VerdictTerm, Work};
use crate::metric;
use pickfs_system::units::Unit;
use std::collections::{BTreeMap, HashSet};

const SHARES: [&str; 2] = ["weight", "count"];

/// What a work asks of the verdict.
pub(super) struct WorkShares<'a> {
    work: String,
    /// Of its workload; `None` where no workload is known.
    phases: Option<Vec<String>>,
    shares: Vec<Share<'a>>,
}

/// A `weight` or a `count`.
struct Share<'a> {
    field: Field<'a>,
    /// By phase, or of the whole work; `None` where it is wrong.
    amounts: Option<Vec<(Option<&'a str>, f64)>>,
}

pub(super) fn asked<'a>(table: &Table<'a>, work: Option<&Work>, reader: &Reader) -> WorkShares<'a> {
    let named = table.field("workload").and_then(|field| field.value.as_str());
    // A recipe is played by another workload than the field names.
    let named = work.map(|work| work.workload.name.as_str()).or(named);
    let entry = reader.catalogue.workloads.iter().find(|entry| Some(entry.name) == named);
    let none = Settings::default();
    let settings = work.map_or(&none, |work| &work.workload.settings);
    let phases = entry.map(|entry| (entry.phases)(entry.name, settings));
    let work = work.map(|work| work.name.clone()).unwrap_or_default();
    let fields = table.fields().filter(|field| SHARES.contains(&field.key));
    let shares = fields.map(|field| Share { amounts: amounts(&field, &phases), field }).collect();
    WorkShares { work, phases, shares }
}

fn amounts<'a>(field: &Field<'a>, phases: &Option<Vec<String>>) -> Option<Vec<(Option<&'a str>, f64)>> {
    if !field.value.is_table() {
        return Some(vec![(None, amount(field)?)]);
    }
    let table = field.table("[work]")?;
    let before = field.complaints.len();
    let mut amounts = Vec::new();
    for field in table.fields() {
        check_phase(&field, field.key, phases.as_deref());
        amounts.extend(amount(&field).map(|amount| (Some(field.key), amount)));
    }
    if amounts.is_empty() && table.complaints.len() == before {
        return field.refuse("is empty", "write a number, or phases with numbers, or leave the key out");
    }
    (table.complaints.len() == before).then_some(amounts)
}

fn amount(field: &Field) -> Option<f64> {
    let amount = field.number()?;
    if amount == 0.0 || AMOUNTS.contains(&amount) {
        return Some(amount);
    }
    let remedy = "write a number from 0.000001 to 1000000000000, or 0 to leave it out of the verdict";
    field.refuse("is out of range", remedy)
}

/// Complains where no work has such a phase; nothing can be said where the phases are not known.
fn check_phase(field: &Field, phase: &str, phases: Option<&[String]>) {
    if phases.is_some_and(|phases| !phases.iter().any(|known| known == phase)) {
        let remedy = not_found(phase, phases.unwrap_or_default().iter().map(String::as_str), "pickfs list workloads");
        field.complaints.add(&field.key_place, format!("there is no phase {}", quoted(phase)), remedy);
    }
}

pub(super) fn verdict_spec(plan: &Table, asked: &[WorkShares], reader: &Reader) -> VerdictSpec {
    let (amounts, parts) = parts(asked);
    let spec = VerdictSpec { amounts, parts, ..VerdictSpec::default() };
    let Some(field) = plan.field("verdict") else { return spec };
    let Some(table) = field.table("[verdict]") else { return spec };
    table.only(&VERDICT.names());
    let require = require(&table, reader);
    VerdictSpec { require, holds: holds(&table), limits: limits(&table, asked), ..spec }
}

/// Whether they are counts, and every work or phase that is not left out; nothing where no work
/// says anything.
fn parts(asked: &[WorkShares]) -> (Amounts, Vec<VerdictTerm>) {
    let shares = || asked.iter().flat_map(|asked| &asked.shares);
    let Some(first) = shares().next() else { return Default::default() };
    for other in shares().filter(|share| share.field.key != first.field.key) {
        let message = format!("{} here, but {} before", other.field.shown(), first.field.shown());
        let remedy = "use one of the two in the whole plan: `weight` is how much a work matters, `count` is how often \
                      it is done";
        other.field.complaints.add(&other.field.key_place, message, remedy);
    }
    let parts: Vec<VerdictTerm> = asked.iter().flat_map(parts_of).collect();
    if parts.is_empty() && shares().all(|share| share.amounts.is_some()) {
        let message = format!("every {} is 0", first.field.shown());
        first.field.complaints.add(&first.field.place, message, "give one work or phase at least something above 0");
    }
    (if first.field.key == "count" { Amounts::Counts } else { Amounts::Weights }, parts)
}

/// A work that says nothing is done once, or matters as one.
fn parts_of(asked: &WorkShares) -> Vec<VerdictTerm> {
    let part =
        |phase: Option<&str>, amount| VerdictTerm { work: asked.work.clone(), phase: phase.map(String::from), amount };
    let Some(share) = asked.shares.first() else { return vec![part(None, 1.0)] };
    let amounts = share.amounts.iter().flatten().filter(|(_, amount)| *amount > 0.0);
    amounts.map(|(phase, amount)| part(*phase, *amount)).collect()
}

fn require(verdict: &Table, reader: &Reader) -> Vec<String> {
    let Some(field) = verdict.field("require") else { return Vec::new() };
    let features = &reader.catalogue.features;
    let mut seen = HashSet::new();
    for (text, field) in field.texts().unwrap_or_default() {
        let listing = ("feature", "pickfs list features");
        let known = choose(&field, listing, features, |name| name);
        if known.is_some() && !seen.insert(text) {
            field.refuse::<()>(&format!("has {} twice", quoted(text)), TWICE);
        }
    }
    let wanted = features.iter().filter(|name| seen.contains(**name));
    wanted.map(|name| name.to_string()).collect()
}

/// `holds = { file = "20TiB" }`.
fn holds(verdict: &Table) -> BTreeMap<String, u64> {
    let Some(field) = verdict.field("holds") else { return BTreeMap::new() };
    let Some(table) = field.table("[verdict.holds]") else { return BTreeMap::new() };
    table.only(&HOLDS);
    let known = table.fields().filter(|field| HOLDS.contains(&field.key));
    known.filter_map(|field| Some((field.key.to_string(), field.size()?))).collect()
}

const TWICE: &str = "leave one of the two out";

fn limits(verdict: &Table, asked: &[WorkShares]) -> Vec<Limit> {
    let Some(field) = verdict.field("limit") else { return Vec::new() };
    let Some(table) = field.table("[verdict.limit]") else { return Vec::new() };
    // Where a workload is not known, any phase may be its.
    let phases = asked.iter().map(|asked| asked.phases.clone()).collect::<Option<Vec<_>>>().map(|all| all.concat());
    let mut limits: Vec<Limit> = Vec::new();
    for field in table.fields() {
        let Some(limit) = limit(&field, phases.as_deref()) else { continue };
        if limits.iter().any(|other| (&other.phase, &other.metric) == (&limit.phase, &limit.metric)) {
            field.complaints.add(&field.key_place, format!("a second limit for {}", quoted(&limit.metric)), TWICE);
        }
        limits.push(limit);
    }
    limits
}

/// `space = "10GiB"`, or `"write/device_write_bytes" = "4GiB"`.
fn limit(field: &Field, phases: Option<&[String]>) -> Option<Limit> {
    let (phase, name) = match field.key.split_once('/') {
        Some((phase, name)) => (Some(phase), name),
        None => (None, field.key),
    };
    if let Some(phase) = phase {
        check_phase(field, phase, phases);
    }
    let metric = metric(field, name)?;
    let at_most = at_most(field, metric)?;
    Some(Limit { phase: phase.map(String::from), metric: metric.into(), at_most })
}

/// A name as the journal has it. Which of them a run is going to have is not known here, so only
/// its shape is checked.
fn metric<'n>(field: &Field, name: &'n str) -> Option<&'n str> {
    if let Some(metric) = metric::by_alias(name) {
        return Some(metric);
    }
    let letters = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let inside = name.trim_matches('_');
    if letters && inside == name && inside.contains('_') {
        return Some(name);
    }
    let aliases = || metric::aliases().map(|metric| metric.alias);
    let remedy = match nearest(name, aliases()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use {}, or a name from the journal, such as `device_write_bytes`", listed(aliases())),
    };
    field.complaints.refuse(&field.key_place, format!("there is no metric {}", quoted(name)), remedy)
}

/// In the unit at the end of the metric's name.
fn at_most(field: &Field, metric: &str) -> Option<f64> {
    let value = match Unit::of_metric(metric) {
        Unit::Nanoseconds => field.duration()? as f64,
        Unit::Bytes | Unit::BytesPerSecond => field.size()? as f64,
        Unit::Share => field.share()?,
        Unit::Count | Unit::PerSecond if field.value.is_str() => {
            let what = "is a bare count, as its name ends in no unit";
            let remedy = "write a number; names of sizes end in `_bytes`, names of times in `_ns`";
            return field.refuse(what, remedy);
        }
        Unit::Count | Unit::PerSecond => field.number()?,
    };
    if value > 0.0 { Some(value) } else { field.refuse("must be more than 0", "give the largest acceptable value") }
}

#[cfg(test)]
mod tests {
    use super::super::example::{Hostile, complained, read, with};
    use super::super::{Plan, Repeats};
    use super::*;

    /// Two works, each with its own lines, and text after them.
    fn two(first: &str, second: &str, rest: &str) -> Plan {
        let text = format!(
            "[[work]]\nworkload = \"tree\"\n{first}\n[[work]]\nname = \"small\"\nworkload = \"tree\"\n{second}\n{rest}"
        );
        let whole = with("BT", &text);
        read(&whole).unwrap_or_else(|complaints| panic!("{whole}\n{complaints:?}"))
    }

    /// "tree:3 small/write:1".
    fn shown(plan: &Plan) -> String {
        let part = |part: &VerdictTerm| {
            let phase = part.phase.as_ref().map(|phase| format!("/{phase}")).unwrap_or_default();
            format!("{}{phase}:{}", part.work, part.amount)
        };
        plan.verdict.parts.iter().map(part).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn shares_make_parts() {
        for (first, second, costs, expected) in [
            ("", "", false, ""),
            ("count = 300", "", true, "tree:300 small:1"),
            ("", "weight = 0.5", false, "tree:1 small:0.5"),
            ("weight = 2", "weight = 0", false, "tree:2"),
            ("weight = 2", "weight = 0.0", false, "tree:2"),
            ("count = 0x10", "count = 1_0.5", true, "tree:16 small:10.5"),
            ("count = { write = 1, tar-read = 20 }", "count = 3", true, "tree/write:1 tree/tar-read:20 small:3"),
            ("count = { tar-read = 20, write = 0 }", "", true, "tree/tar-read:20 small:1"),
            (
                "[work.weight]\nremove = 1e-6\nwrite = 1e12",
                "",
                false,
                "tree/remove:0.000001 tree/write:1000000000000 small:1",
            ),
        ] {
            let plan = two(first, second, "");
            assert_eq!((plan.verdict.has_counts(), shown(&plan).as_str()), (costs, expected), "{first} {second}");
        }
    }

    #[test]
    fn repeats_are_once_unless_said() {
        let plan = two("repeats = 3", "", "");
        assert_eq!([plan.works[0].repeats, plan.works[1].repeats], [Repeats(3), Repeats(1)]);
        assert_eq!(two("repeats = 100", "repeats = 1", "").works[0].repeats, Repeats(100));
        let settings = &plan.works[0].workload.settings.0;
        assert!(!settings.contains_key("repeats") && settings.contains_key("files"), "{settings:?}");
    }

    #[test]
    fn a_verdict_has_requirements_and_limits() {
        let rest = "[verdict]\nrequire = [\"snapshots\", \"checksums\"]\n[verdict.limit]\nspace = \"10GiB\"\n\
            cpu = \"30s\"\nlatency_p99_ns = \"20ms\"\n\"write/device_write_bytes\" = 4096\ndevice_flushes = 12.5\n\
            \"tar-read/time\" = \"2s\"\npeak_write_bytes_per_second = \"1MiB\"\n\"remove/p99\" = \"1ms\"";
        let verdict = two("", "", rest).verdict;
        assert_eq!(verdict.require, ["checksums", "snapshots"]);
        let holds = two("", "", "[verdict]\nholds = { file = '20TiB', name = 300, volume = '1.5PiB' }").verdict.holds;
        let expected = [("file", 20 << 40), ("name", 300), ("volume", 3 << 49)];
        assert_eq!(holds, expected.map(|(what, bytes)| (what.to_string(), bytes)).into());
        let shown = |limit: &Limit| format!("{:?} {} {}", limit.phase.as_deref(), limit.metric, limit.at_most);
        let expected = [
            "None space_grown_bytes 10737418240",
            "None cpu_net_ns 30000000000",
            "None latency_p99_ns 20000000",
            "Some(\"write\") device_write_bytes 4096",
            "None device_flushes 12.5",
            "Some(\"tar-read\") time_ns 2000000000",
            "None peak_write_bytes_per_second 1048576",
            "Some(\"remove\") latency_p99_ns 1000000",
        ];
        assert_eq!(verdict.limits.iter().map(shown).collect::<Vec<_>>(), expected);
        assert_eq!(two("", "", "").verdict, VerdictSpec::default());
        assert_eq!(two("", "", "[verdict]").verdict, VerdictSpec::default());
    }

    #[rustfmt::skip]
    const HOSTILE: &[Hostile] = &[
        // Repeats.
        ("BT", "[[work]]\nworkload = 'tree'\nrepeats = 0", &[(3, "write a whole number from 1 to 100")]),
        ("BT", "[[work]]\nworkload = 'tree'\nrepeats = 101", &[(3, "is 101, which is out of range")]),
        ("BT", "[[work]]\nworkload = 'tree'\nrepeats = 2.5", &[(3, "must be a whole number")]),
        ("BT", "[[work]]\nworkload = 'tree'\nrepeat = 2\nwieght = 1", &[(3, "did you mean `repeats`?"), (4, "did you mean `weight`?")]),
        ("BT", "[[work]]\nworkload = 'meta.ok'\ncout = 2", &[(3, "did you mean `count`?")]),
        ("BTW", "repeats = 2", &[(1, "the plan has no key `repeats`")]),
        // Shares.
        ("BT", "[[work]]\nworkload = 'tree'\nweight = -1", &[(3, "`weight` is negative")]),
        ("BT", "[[work]]\nworkload = 'tree'\nweight = -0.5", &[(3, "`weight` is negative")]),
        ("BT", "[[work]]\nworkload = 'tree'\nweight = nan", &[(3, "no finite number")]),
        ("BT", "[[work]]\nworkload = 'tree'\nweight = -inf", &[(3, "no finite number")]),
        ("BT", "[[work]]\nworkload = 'tree'\ncount = 1e999", &[(3, "no finite number")]),
        ("BT", "[[work]]\nworkload = 'tree'\ncount = 1e13", &[(3, "is out of range")]),
        ("BT", "[[work]]\nworkload = 'tree'\ncount = 1e-7", &[(3, "is out of range")]),
        ("BT", "[[work]]\nworkload = 'tree'\ncount = '3'", &[(3, "must be a number, but it is the text")]),
        ("BT", "[[work]]\nworkload = 'tree'\ncount = [1, 2]", &[(3, "must be a number, but it is a list")]),
        ("BT", "[[work]]\nworkload = 'tree'\ncount = {}", &[(3, "`count` is empty")]),
        ("BT", "[[work]]\nworkload = 'tree'\ncount = 0", &[(3, "every `count` is 0")]),
        ("BT", "[[work]]\nworkload = 'tree'\nweight = { write = 0, remove = 0.0 }", &[(3, "every `weight` is 0")]),
        ("BT", "[[work]]\nworkload = 'tree'\ncount.wrte = 1\ncount.remove = true\ncount.tar-read = -1",
            &[(3, "did you mean `write`?"), (4, "must be a number"), (5, "is negative")]),
        ("BT", "[[work]]\nworkload = 'tree'\ncount = { read = 1 }", &[(3, "there is no phase `read`")]),
        ("BT", "[[work]]\nworkload = 'tree'\ncount = { 'wr\tite' = 1, \"a\\u0007\" = 1 }", &[(3, "`wr\\tite`"), (3, "`a\\u{7}`")]),
        ("BT", "[[work]]\nworkload = 'tree'\nweight = 1\ncount = 1", &[(4, "`count` here, but `weight` before")]),
        ("BT", "[[work]]\nworkload = 'tree'\ncount = 1\n[[work]]\nworkload = 'meta.ok'\nweight = 1",
            &[(6, "`weight` here, but `count` before")]),
        // Also where the rest of the work is wrong.
        ("BT", "[[work]]\nworkload = 'treee'\ncount = { any = 1 }\nrepeats = 'x'\n[[work]]\nworkload = 'tree'\nweight = 1",
            &[(2, "did you mean `tree`?"), (4, "must be a whole number"), (7, "`weight` here, but `count` before")]),
        // Requirements.
        ("BTW", "verdict = 3", &[(1, "must be a table")]),
        ("BTW", "[verdict]\nrequires = ['checksums']", &[(2, "did you mean `require`?")]),
        ("BTW", "[verdict]\nholds = { fil = 3, name = 0, volume = 'big' }", &[(2, "did you mean `file`?"), (2, "out of range"), (2, "`volume` must be a size")]),
        ("BTW", "[verdict]\nholds = '3TiB'", &[(2, "must be a table, but it is the text")]),
        ("BTW", "[verdict]\nrequire = 'checksums'", &[(2, "must be a list, but it is the text")]),
        ("BTW", "[verdict]\nrequire = []", &[(2, "is an empty list")]),
        ("BTW", "[verdict]\nrequire = ['snapshot', 'flying']", &[(2, "did you mean `snapshots`?"), (2, "pickfs list features")]),
        ("BTW", "[verdict]\nrequire = ['checksums', 3, '', 'checksums']", &[(2, "must be text"), (2, "is empty"), (2, "`checksums` twice")]),
        // Limits.
        ("BTW", "[verdict]\nlimit = '3GiB'", &[(2, "must be a table")]),
        ("BTW", "[verdict.limit]\nspace = 'much'\ncpu = 30\ntime = '0s'", &[(2, "a size"), (3, "a duration"), (4, "a duration")]),
        ("BTW", "[verdict.limit]\nspace = 0\ndevice_flushes = 0\nspace_files = -1\nspace_entries = inf",
            &[(2, "out of range"), (3, "more than 0"), (4, "is negative"), (5, "no finite number")]),
        ("BTW", "[verdict.limit]\nspaces = '1GiB'\nbandwidth = 3", &[(2, "did you mean `space`?"), (3, "use `cpu`, `loss`, `p99`, `space` and `time`, or a name")]),
        ("BTW", "[verdict.limit]\nlatency_p99 = '20ms'", &[(2, "ends in no unit")]),
        ("BTW", "[verdict.limit]\n'' = 1\n' ' = 1\n\"a\\u0007_ns\" = '1s'\n_ns = '1s'\nTime_ns = '1s'",
            &[(2, "no metric ``"), (3, "no metric ` `"), (4, "no metric `a\\u{7}_ns`"), (5, "no metric `_ns`"), (6, "no metric `Time_ns`")]),
        ("BTW", "[verdict.limit]\n'writ/time' = '1s'\n'/time' = '1s'\n'write/' = 1\n'a/b/time' = '1s'",
            &[(2, "did you mean `write`?"), (3, "no phase ``"), (4, "no metric ``"), (5, "no phase `a`"), (5, "no metric `b/time`")]),
        ("BTW", "[verdict.limit]\n'write/space' = 'x'", &[(2, "\"write/space\" = \"20GiB\"")]),
        ("BTW", "[verdict.limit]\nspace = '1GiB'\nspace_grown_bytes = '2GiB'", &[(3, "a second limit for `space_grown_bytes`")]),
    ];

    #[test]
    fn hostile_verdicts_get_all_their_complaints() {
        complained(HOSTILE);
    }
}
