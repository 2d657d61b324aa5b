//! Instructions by function: what a plugin of QEMU's has counted by address (`profile.c` of the
//! executor `sim`), with the symbols of the guest's kernel.

use super::table::{OTHER, PROGRAM, SERVES, owner};
use anyhow::{Context, Result, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Addresses above are the kernel's.
const KERNEL: u64 = 1 << 47;

/// The kernel's functions by address, and what programs are called by their number.
pub(crate) struct Symbols<'t> {
    functions: Vec<(u64, &'t str, &'t str)>,
    programs: BTreeMap<u64, Program>,
}

/// The owners of what a program does.
struct Program {
    /// In user space.
    alone: String,
    /// Of one that serves files: all that it does.
    with_calls: String,
}

impl<'t> Symbols<'t> {
    /// Of lines like those of /proc/kallsyms, "ffffffffc0a01000 t ext4_find_entry\t[ext4]", and of
    /// /proc/modules, "ext4 983040 1 - Live 0xffffffffc0a00000", and of the driver's, "program 7
    /// tar". What a module had only while it was loaded may have made room for another one.
    pub(crate) fn parse(text: &'t str) -> Result<Symbols<'t>> {
        let modules: BTreeMap<&str, Range<u64>> = text.lines().filter_map(module).collect();
        let mut all = Vec::new();
        for line in text.lines().filter(|line| module(line).is_none() && program(line).is_none()) {
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else { continue };
            if !["t", "T", "w", "W"].contains(&kind) {
                continue;
            }
            let address = u64::from_str_radix(address, 16).with_context(|| format!("`{line}` is no symbol"))?;
            let module = words.next().and_then(|word| word.strip_prefix('[')?.strip_suffix(']')).unwrap_or_default();
            if modules.get(module).is_none_or(|range| range.contains(&address)) {
                all.push((address, name, module));
            }
        }
        all.sort_unstable();
        ensure!(
            all.iter().any(|(address, ..)| *address >= KERNEL),
            "the guest's kernel has shown no addresses of its symbols"
        );
        Ok(Symbols { functions: all, programs: text.lines().filter_map(program).collect() })
    }

    /// Name and module of the function at an address.
    pub(crate) fn find(&self, address: u64) -> Option<(&'t str, &'t str)> {
        let behind = self.functions.partition_point(|(begin, ..)| *begin <= address);
        let (_, name, module) = self.functions.get(behind.checked_sub(1)?)?;
        Some((name, module))
    }

    /// From one symbol to another; empty where the kernel has not both.
    pub(crate) fn between(&self, begin: &str, end: &str) -> Range<u64> {
        let address = |of: &str| self.functions.iter().find(|(_, name, _)| *name == of).map_or(0, |found| found.0);
        address(begin)..address(end)
    }

    /// Addresses of the functions that take requests for files out of the kernel.
    fn of_servers(&self) -> Vec<Range<u64>> {
        let pairs = self.functions.iter().zip(self.functions.iter().skip(1));
        pairs.filter(|((_, name, _), _)| SERVES.contains(name)).map(|(one, next)| one.0..next.0).collect()
    }
}

/// Number and owners, of a line of the driver's. Names may have spaces.
fn program(line: &str) -> Option<(u64, Program)> {
    let (number, name) = line.strip_prefix("program ")?.split_once(' ')?;
    let alone = format!("{PROGRAM} {name}");
    Some((number.parse().ok()?, Program { with_calls: format!("{alone} and its system calls"), alone }))
}

/// Name and addresses, of a line of /proc/modules.
fn module(line: &str) -> Option<(&str, Range<u64>)> {
    let [name, bytes, _, _, _, address, ..] = line.split_ascii_whitespace().collect::<Vec<_>>()[..] else {
        return None;
    };
    let begin = u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?;
    Some((name, begin..begin + bytes.parse::<u64>().ok()?))
}

/// How many instructions a nanosecond of the guest's clock has.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub dilation: f64,
    /// How many times more it has while the kernel compresses.
    pub compression: f64,
    /// How many times more while a program executes its own instructions.
    pub user_mode: f64,
}

/// Which stretch of a phase: while the work went on, or while it was synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stretch {
    Work,
    Sync,
}

/// By function, and its owner: instructions, and nanoseconds of the guest's clock.
pub(crate) type Functions<'t> = BTreeMap<(&'t str, &'t str), (u64, f64)>;

/// What the processor did in a stretch.
#[derive(Debug, Default)]
pub(crate) struct Executed<'t> {
    pub functions: Functions<'t>,
    /// Nanoseconds that are counted above and were, for the disk's driver, part of its sleep.
    pub asleep_ns: f64,
}

/// What `profile.c` has written, by the number of a clock from 0, and its stretch.
pub(crate) fn parse<'t>(
    profile: &str,
    symbols: &'t Symbols<'t>,
    pace: Pace,
) -> Result<BTreeMap<(usize, Stretch), Executed<'t>>> {
    let mut all: BTreeMap<(usize, Stretch), Executed> = BTreeMap::new();
    let servers = servers(profile, symbols);
    let (mut current, mut owners) = (None, Owners::new());
    for line in profile.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let wrong = || format!("`{line}` is no line of a profile");
        let number = |word: &str| word.parse::<u64>().with_context(wrong);
        match words[..] {
            ["clock", clock, stretch, paced, processors, program, asleep] => {
                let clock = number(clock)?.checked_sub(1).with_context(wrong)? as usize;
                let stretch = if number(stretch)? == 1 { Stretch::Work } else { Stretch::Sync };
                // The numbers of mark.h.
                let times = match number(paced)? {
                    1 => pace.compression,
                    2 => pace.user_mode,
                    _ => 1.0,
                };
                let rate = pace.dilation * times * number(processors)?.max(1) as f64;
                let executed = all.entry((clock, stretch)).or_default();
                executed.asleep_ns += number(asleep)? as f64 / rate;
                let program = number(program)?;
                current = Some((executed, rate, symbols.programs.get(&program), servers.contains(&program)));
            }
            ["end"] => return Ok(all),
            [address, count] => {
                let (executed, rate, program, serves) = current.as_mut().with_context(wrong)?;
                let address = u64::from_str_radix(address, 16).with_context(wrong)?;
                let count = number(count)?;
                let (mut owner, function) = named(address, symbols, &mut owners);
                if let Some(program) = program {
                    owner = match owner {
                        _ if *serves => &program.with_calls,
                        PROGRAM => &program.alone,
                        _ => owner,
                    };
                }
                let of = executed.functions.entry((owner, function)).or_default();
                *of = (of.0 + count, of.1 + count as f64 / *rate);
            }
            _ => bail!(wrong()),
        }
    }
    bail!("the profile has no end: QEMU was ended before it could write it")
}

/// Numbers of the programs that take requests for files out of the kernel, as FUSE has them: what
/// they do there, too, is theirs.
fn servers(profile: &str, symbols: &Symbols) -> BTreeSet<u64> {
    let functions = symbols.of_servers();
    let (mut program, mut found) = (None::<u64>, BTreeSet::new());
    for line in profile.lines().filter(|_| !functions.is_empty()) {
        let mut words = line.split(' ');
        let first = words.next().unwrap_or_default();
        if first == "clock" {
            program = words.nth(4).and_then(|number| number.parse().ok());
        } else if u64::from_str_radix(first, 16).is_ok_and(|at| functions.iter().any(|range| range.contains(&at))) {
            found.extend(program);
        }
    }
    found
}

/// By name and module: a function has hundreds of addresses, and the table hundreds of patterns.
pub(crate) type Owners<'t> = BTreeMap<(&'t str, &'t str), &'static str>;

pub(crate) fn named<'t>(address: u64, symbols: &Symbols<'t>, owners: &mut Owners<'t>) -> (&'static str, &'t str) {
    match address {
        0 => (OTHER, "blocks that are not counted by address"),
        1..KERNEL => (PROGRAM, "user space"),
        _ => symbols.find(address).map_or((OTHER, "unknown"), |(name, module)| {
            (*owners.entry((name, module)).or_insert_with(|| owner(name, module)), name)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "ffffffff81000000 T _stext\nffffffff81000100 t filemap_read\nffffffff81000200 D a_datum\n\
                           ffffffffc0001000 t ext4_find_entry\t[ext4]\nffffffffc0002000 t zstd_flush_stream\t[zstd_compress]\n\
                           ffffffffc0001800 t btrfs_init_cachep\t[btrfs]\next4 4096 1 - Live 0xffffffffc0001000\n\
                           btrfs 8192 0 - Live 0xffffffffc0100000 (E)\nprogram 5 a b\nprogram 6 bindfs\n\
                           ffffffffc0003000 t fuse_dev_do_read\t[fuse]\nffffffffc0003100 t fuse_lookup\t[fuse]\n";

    #[test]
    fn instructions_weigh_by_the_pace_at_which_they_ran() {
        let symbols = Symbols::parse(SYMBOLS).expect("symbols");
        let profile = "clock 1 1 0 1 0 20\nffffffff81000150 200\nffffffff81000250 50\nffffffffc0001fff 100\n\
                       clock 1 1 2 1 0 0\n5555000 160\nclock 1 1 1 1 0 0\nffffffffc0002004 600\nclock 1 2 0 4 0 0\nffffffff81000100 80\nclock 3 1 0 1 0 0\n0 7\nend\n";
        let pace = Pace { dilation: 2.0, compression: 3.0, user_mode: 4.0 };
        let found = parse(profile, &symbols, pace).expect("a profile");
        assert_eq!(found.keys().collect::<Vec<_>>(), [&(0, Stretch::Work), &(0, Stretch::Sync), &(2, Stretch::Work)]);
        let work = &found[&(0, Stretch::Work)];
        assert_eq!(work.asleep_ns, 10.0);
        let of =
            |name: &str| work.functions.iter().find(|((_, function), _)| *function == name).map(|(_, value)| *value);
        // What lies behind a datum is still of the function before it.
        assert_eq!(of("filemap_read"), Some((250, 125.0)));
        assert_eq!(of("ext4_find_entry"), Some((100, 50.0)));
        assert_eq!(of("user space"), Some((160, 20.0)));
        assert_eq!(of("zstd_flush_stream"), Some((600, 100.0)));
        let sync = &found[&(0, Stretch::Sync)].functions;
        assert_eq!(sync.values().collect::<Vec<_>>(), [&(80, 10.0)]);
        assert_eq!(found[&(2, Stretch::Work)].functions.keys().next().map(|(owner, _)| *owner), Some(OTHER));
    }

    /// A program is itself where it runs in user space; one that serves files is, too, where the
    /// kernel works for it.
    #[test]
    fn programs_have_their_names_and_servers_what_the_kernel_does_for_them() {
        let symbols = Symbols::parse(SYMBOLS).expect("symbols");
        let profile = "clock 1 1 0 1 5 0\n5555000 40\nffffffff81000150 200\nffffffffc0003100 8\nclock 1 1 0 1 6 0\n5555000 30\n\
                       ffffffff81000150 70\nclock 2 1 0 1 6 0\nffffffffc0003010 3\nclock 2 1 0 1 9 0\n5555000 2\nend\n";
        let found =
            parse(profile, &symbols, Pace { dilation: 1.0, compression: 1.0, user_mode: 1.0 }).expect("a profile");
        let owners = |clock: usize| {
            let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
            for ((owner, _), (count, _)) in &found[&(clock, Stretch::Work)].functions {
                *sums.entry(owner).or_default() += count;
            }
            sums
        };
        let server = "the program bindfs and its system calls";
        assert_eq!(owners(0), [("page cache and VFS", 200), (OTHER, 8), ("the program a b", 40), (server, 100)].into());
        assert_eq!(owners(1), [(server, 3), (PROGRAM, 2)].into(), "one without a name");
    }

    #[test]
    fn half_a_profile_is_none() {
        let symbols = Symbols::parse(SYMBOLS).expect("symbols");
        let pace = Pace { dilation: 1.0, compression: 1.0, user_mode: 1.0 };
        for (text, says) in [
            ("clock 1 1 0 1 0 0\nffffffff81000100 1\n", "QEMU was ended before it could write it"),
            ("ffffffff81000100 1\nend\n", "is no line of a profile"),
            ("clock 1 1 0 1 0 0\nx y z\nend\n", "`x y z` is no line of a profile"),
            ("clock 0 1 0 1 0 0\nend\n", "is no line of a profile"),
        ] {
            let error = format!("{:#}", parse(text, &symbols, pace).expect_err("wrong"));
            assert!(error.contains(says), "{error}");
        }
        // As users without rights see it.
        assert!(Symbols::parse("0000000000000000 T _stext\n").is_err());
    }
}
