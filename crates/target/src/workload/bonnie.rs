//! The real bonnie++, its tests as parts of one phase. What it calls +++++, a test too short for its clock, has no value
//! here either. A target without it would have no whole job, and be out of the verdict for being fast: so the cell fails
//! and says what to give, unless the plan wants the rest.

use super::settings::{Count, Size, choice, settings};
use super::{Description, MEAN_OF_PHASES, Workload, text};
use crate::stack::{Argv, argv};
use crate::stage::phase::*;
use crate::stage::{Part, Program, Stage, Timed};
use anyhow::{Context, Result, bail, ensure};
use pickfs_core::journal::FlagKind;
use pickfs_core::plan::{Objection, Settings};
use std::borrow::Cow;
use std::path::Path;

pub(crate) struct Bonnie;

settings! {
    Sizes {
        size: Size = "1GiB", "size of the large file, in whole MiB; bonnie++ advises twice the memory";
        characters: Size = "4MiB", "how much is written and read by the character, in whole MiB";
        files: Count = "131072",
            "files to create, stat and delete, in whole 1024s; what takes under half a second has no value";
        file_size["file-size"]: Size, "of each of them; empty by default";
        directories: Count = "1", "that they are spread over";
        seeks: Count = "8192", "random seeks in the large file";
        seekers: Count = "5", "processes that seek";
        missing: Missing = "fail", "what a test without a value is: a failure, or left out, and then only phases compare";
    }
}

choice! { Missing { Fail = "fail", LeaveOut = "leave-out" } }

const DESCRIPTION: Description = Description {
    name: "bonnie",
    about: "the real bonnie++, test by test",
    settings: Sizes::ROWS,
    main_setting: "size",
    judged: MEAN_OF_PHASES,
    programs: &[("bonnie++", "bonnie++")],
    seconds: 40,
    ..Description::EMPTY
};

/// How the rate of a test becomes a time.
#[derive(Clone, Copy)]
enum Amount {
    /// KiB a second, of so much of the large file.
    Large,
    Characters,
    Seeks,
    Files,
}

/// A test: its part, where its rate stands (and its CPU behind that), and where its latency does.
struct Test {
    part: &'static str,
    about: &'static str,
    rate: usize,
    latency: usize,
    amount: Amount,
}

const fn test(part: &'static str, about: &'static str, rate: usize, latency: usize, amount: Amount) -> Test {
    Test { part, about, rate, latency, amount }
}

/// Fields as counted in bon_csv2html(1), from 0.
const TESTS: &[Test] = &[
    test("putc", "a write of one character at a time", 9, 38, Amount::Characters),
    test("write", "the large file written in blocks", 11, 39, Amount::Large),
    test("rewrite", "each block read, changed and written back", 13, 40, Amount::Large),
    test("getc", "a read of one character at a time", 15, 41, Amount::Characters),
    test("read", "the large file read in blocks", 17, 42, Amount::Large),
    test("seeks", "random blocks read, every tenth written back", 19, 43, Amount::Seeks),
    test("sequential-create", "files made with names in order", 26, 44, Amount::Files),
    test("sequential-stat", "stat of them as their directories list them", 28, 45, Amount::Files),
    test("sequential-delete", "deleted as their directories list them", 30, 46, Amount::Files),
    test("random-create", "files made with names in no order", 32, 47, Amount::Files),
    test("random-stat", "stat of them in another order", 34, 48, Amount::Files),
    test("random-delete", "deleted in that order", 36, 49, Amount::Files),
];

impl Workload for Bonnie {
    fn description(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn phases(&self, _settings: &Settings) -> Vec<Phase> {
        let whole = Phase::new("bonnie++", "all tests, one after the other", Fresh, Declared, Parts);
        let part = |test: &Test| match (test.amount, Phase::part(Cow::Borrowed(test.part), test.about)) {
            // A processor's work more than a file system's.
            (Amount::Characters, part) => part.only_shown(),
            (_, part) => part,
        };
        let parts = TESTS.iter().map(part);
        std::iter::once(whole).chain(parts).collect()
    }

    fn versions(&self, _settings: &Settings) -> Vec<(&'static str, Argv)> {
        // It has no such option, but says it with its usage.
        vec![("bonnie++", argv(["bonnie++", "-h"]))]
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let sizes = Sizes::of(settings);
        let units = [
            ("size", sizes.size, 1 << 20, "MiB"),
            ("characters", sizes.characters, 1 << 20, "MiB"),
            ("files", sizes.files, 1024, "1024s"),
        ];
        let wrong = units.into_iter().filter(|(_, number, unit, _)| number % unit != 0);
        let told = wrong.map(|(name, _, _, unit)| {
            let message = format!("bonnie++ counts `{name}` in whole {unit}");
            Objection::new(name, message, &format!("give a multiple of one {}", unit.trim_end_matches('s')))
        });
        told.collect()
    }

    fn bytes(&self, settings: &Settings) -> Option<u64> {
        let sizes = Sizes::of(settings);
        Some(sizes.size.max(sizes.files * sizes.file_size.unwrap_or(0).max(1)))
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let sizes = Sizes::of(settings);
        let program = program(&stage.root(), &sizes);
        let run = |p: &mut Timed| p.output(&program);
        let results = stage.phase_then("bonnie++", run, |p, printed| {
            let results = Results::read(&printed.text(p)?)?;
            if let Some(why) = results.doubt(sizes.missing)? {
                p.doubt(FlagKind::NoValue, why);
            }
            results.parts(&sizes).into_iter().for_each(|part| p.part(part));
            Ok(results)
        })?;
        stage.fact("bonnie++", &results.version());
        Ok(())
    }
}

fn program(folder: &Path, sizes: &Sizes) -> Program {
    let Sizes { size, characters, files, directories, seeks, seekers, .. } = sizes;
    let file_size = sizes.file_size.unwrap_or(0);
    let large = format!("{}:8k:{seeks}:{seekers}", size >> 20);
    let many = format!("{}:{file_size}:{file_size}:{directories}", files >> 10);
    let characters = format!("-f{}", characters >> 20);
    let folder = text(folder);
    // No memory said means no complaint about files that fit in it; the seed makes all targets seek alike.
    let words = ["-d", &folder, "-s", &large, &characters, "-n", &many, "-r", "0", "-z", "1", "-m", "pickfs", "-q"];
    let own = ["-u", "root"];
    let own: &[&str] = if rustix::process::geteuid().is_root() { &own } else { &[] };
    Program::new([&["bonnie++"], &words[..], own].concat())
}

/// The line of results.
struct Results(Vec<String>);

/// Fields of format 1.98, with the two numbers of a test apart.
const FIELDS: usize = 50;
/// Before which there were no latencies, and fewer columns.
const OLDEST: f64 = 1.98;

impl Results {
    fn read(printed: &str) -> Result<Results> {
        let mut lines = printed.lines().map(str::trim).filter(|line| line.contains(',') && !line.starts_with('#'));
        let line = lines.next_back().context("bonnie++ printed no line of results")?;
        let fields: Vec<String> = line.split(',').map(String::from).collect();
        let format: f64 = fields[0].parse().with_context(|| format!("no format in bonnie++'s line `{line}`"))?;
        if format < OLDEST || fields.len() != FIELDS {
            let count = fields.len();
            bail!(
                "bonnie++ gave {count} fields in format {format}, not {FIELDS} in 1.98: install bonnie++ 1.98 or newer"
            );
        }
        Ok(Results(fields))
    }

    fn version(&self) -> String {
        format!("{}, format {}", self.0[1], self.0[0])
    }

    fn number(&self, field: usize) -> Option<f64> {
        self.0[field].parse().ok().filter(|number: &f64| number.is_finite())
    }

    fn parts(&self, sizes: &Sizes) -> Vec<Part> {
        TESTS.iter().filter_map(|test| self.part(test, sizes)).collect()
    }

    fn part(&self, test: &Test, sizes: &Sizes) -> Option<Part> {
        let rate = self.number(test.rate).filter(|rate| *rate > 0.0)?;
        let part = Part::new(test.part, test.amount.of(sizes) / rate * 1e9);
        let part = match test.amount {
            Amount::Large | Amount::Characters => part.say("bytes_per_second", rate * 1024.0),
            Amount::Seeks | Amount::Files => part.say("operations_per_second", rate),
        };
        let latency = nanoseconds(&self.0[test.latency]);
        let part = latency.into_iter().fold(part, |part, ns| part.say("latency_max_ns", ns));
        let share = self.number(test.rate + 1).map(|percent| percent / 100.0);
        Some(share.into_iter().fold(part, |part, share| part.say("cpu_share", share)))
    }

    /// Tests that were done and have no rate.
    fn without_value(&self) -> Vec<&'static Test> {
        TESTS.iter().filter(|test| self.0[test.rate].starts_with('+')).collect()
    }

    /// What is missing, where the plan wants the rest without it.
    fn doubt(&self, rule: Missing) -> Result<Option<String>> {
        let missing = self.without_value();
        let names: Vec<&str> = missing.iter().map(|test| test.part).collect();
        let said = format!("bonnie++ says +++++ of {}: less than half a second is too short for it", names.join(", "));
        let mut more: Vec<String> = missing.iter().map(|test| format!("`{}`", test.amount.setting())).collect();
        more.sort();
        more.dedup();
        let more = more.join(" and ");
        let leave_out = rule == Missing::LeaveOut;
        ensure!(missing.is_empty() || leave_out, "{said}; give more {more}, or missing = \"leave-out\"");
        ensure!(missing.len() < TESTS.len(), "{said}; no test is left to report, give more {more}");
        Ok((!missing.is_empty()).then_some(said))
    }
}

impl Amount {
    /// The setting of which there must be more for a test to take longer.
    fn setting(self) -> &'static str {
        match self {
            Amount::Large => "size",
            Amount::Characters => "characters",
            Amount::Seeks => "seeks",
            Amount::Files => "files",
        }
    }

    /// In what the rate counts.
    fn of(self, sizes: &Sizes) -> f64 {
        match self {
            Amount::Large => sizes.size as f64 / 1024.0,
            Amount::Characters => sizes.characters as f64 / 1024.0,
            Amount::Seeks => sizes.seeks as f64,
            Amount::Files => sizes.files as f64,
        }
    }
}

/// From "283ms", "8105us", "2s".
fn nanoseconds(latency: &str) -> Option<f64> {
    let end = latency.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let unit = match &latency[end..] {
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    Some(latency[..end].parse::<f64>().ok()? * unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_system::need::Need;

    /// As bonnie++ 2.00a of Debian 12 printed it for -s 64:8k -n 16:0:0:1 on ext4.
    const SHORT: &str = include_str!("../../../../fixtures/bonnie-2.00a-short.csv");
    /// The same with enough to do for most tests.
    const LONG: &str = include_str!("../../../../fixtures/bonnie-2.00a-long.csv");

    fn settings(list: &[(&str, u64)]) -> Settings {
        Settings(list.iter().map(|(name, value)| (name.to_string(), (*value).into())).collect())
    }

    fn sizes(list: &[(&str, u64)]) -> Sizes {
        Sizes::of(&settings(list))
    }

    #[test]
    fn what_was_too_short_has_no_value_and_is_named() {
        let results = Results::read(SHORT).unwrap();
        let given = sizes(&[("size", 64 << 20), ("characters", 3 << 20), ("files", 16384), ("seeks", 8192)]);
        let shown = format!("{:?}", results.parts(&given));
        let told: Vec<&str> =
            TESTS.iter().map(|t| t.part).filter(|part| shown.contains(&format!("\"{part}\""))).collect();
        assert_eq!(told, ["putc", "getc", "sequential-create"]);
        assert_eq!(results.without_value().len(), 9);
        assert_eq!(results.version(), "2.00a, format 1.98");
        // 1417 K/s of 3 MiB, 33 % of a processor, 283 ms at most.
        let putc = format!("{:?}", results.part(&TESTS[0], &given).unwrap());
        for value in [3072.0 / 1417.0 * 1e9, 1417.0 * 1024.0, 0.33, 283e6] {
            assert!(putc.contains(&format!("{value:?}")), "{value:?} is not in {putc}");
        }
    }

    #[test]
    fn a_test_without_a_value_fails_the_cell_unless_the_plan_wants_the_rest() {
        let (all, rest) = (Missing::Fail, Missing::LeaveOut);
        let long = Results::read(LONG).unwrap();
        assert_eq!([all, rest].map(|given| long.doubt(given).unwrap()), [None, None]);
        let short = Results::read(SHORT).unwrap();
        let refused = short.doubt(all).unwrap_err().to_string();
        for part in ["sequential-stat", "write", "more `files` and `seeks` and `size`,", "missing = \"leave-out\""] {
            assert!(refused.contains(part), "{part} is not in: {refused}");
        }
        assert!(!refused.contains("putc") && !refused.contains("`characters`"), "{refused}");
        let told = short.doubt(rest).unwrap().unwrap();
        assert!(told.contains("sequential-stat") && !told.contains("give"), "{told}");
        let fields = (0..FIELDS).map(|at| if TESTS.iter().any(|test| test.rate == at) { "+++++" } else { "" });
        let none = Results(fields.map(String::from).collect());
        assert!(none.doubt(rest).unwrap_err().to_string().contains("no test is left"));
    }

    #[test]
    fn a_line_of_another_format_is_refused() {
        let said = |line: &str| Results::read(line).err().map(|error| format!("{error:#}")).unwrap_or_default();
        assert!(said("").contains("no line of results"));
        assert!(said("1.98,2.00a,name").contains("gave 3 fields"));
        assert!(said(&SHORT.replacen("1.98", "1.97", 1)).contains("install bonnie++ 1.98"));
        assert!(said("name,64M,1417,33").contains("no format"));
        assert!(said(&format!("# a comment, as it may be\n{SHORT}")).is_empty());
    }

    #[test]
    fn units_of_latencies() {
        assert_eq!(
            ["12us", "118ms", "2s", "", "+++++", "3"].map(nanoseconds),
            [Some(12e3), Some(118e6), Some(2e9), None, None, None]
        );
    }

    #[test]
    fn every_test_is_a_part_with_fields_of_its_own() {
        let results = Results::read(LONG).unwrap();
        let given = sizes(&[("size", 512 << 20), ("characters", 3 << 20), ("files", 131072), ("seeks", 8192)]);
        let parts = results.parts(&given).len();
        assert_eq!(parts + results.without_value().len(), TESTS.len());
        assert_eq!(parts, TESTS.len());
        let mut fields: Vec<usize> = TESTS.iter().flat_map(|t| [t.rate, t.rate + 1, t.latency]).collect();
        fields.sort();
        fields.dedup();
        assert_eq!(fields.len(), 3 * TESTS.len());
        assert_eq!(fields.last(), Some(&(FIELDS - 1)));
    }

    #[test]
    fn without_the_program_the_package_is_named() {
        let Need::Program { name, package } = Bonnie.needs(&Settings::default())[0].clone() else {
            panic!("another need")
        };
        assert_eq!((name, package), ("bonnie++", "bonnie++"));
        let missing = Need::Program { name: "bonnie++-that-is-not-there", package }.check().unwrap_err().to_string();
        assert!(missing.contains("apt-get install bonnie++"), "{missing}");
    }

    #[test]
    fn sizes_that_bonnie_would_round_are_refused() {
        let objections = |size, files| Bonnie.objections(&settings(&[("size", size), ("files", files)])).len();
        assert_eq!([objections(1 << 20, 1024), objections((1 << 20) + 1, 1024), objections(1, 1)], [0, 1, 2]);
    }
}
