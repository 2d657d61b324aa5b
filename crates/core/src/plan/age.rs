//! `age` and `fill`: what happens on a fresh file system before the work, and how much of it.
//!
//! All of it is reckoned from the size of the image or device, never from what a file system says
//! of itself, so that every target of a size gets the same.

use super::complaint::quoted;
use super::table::Field;
use super::{Settings, Target, disks};
use pickfs_system::units::parse_share;
use serde::{Deserialize, Serialize};

/// What makes a file system old. In plans and journals it is the text that a user types.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Age {
    /// Files made and deleted until this many times the filled bytes were written.
    Churn(f64),
    /// Number of pulls into a clone of a git repository.
    Git(u32),
}

/// Churning happens with so much filled, and leaves so much, unless `fill` says otherwise.
const CHURN_LEVEL: f64 = 0.8;
const CHURN_LEAVES: f64 = 0.4;
const MOST_FILL: f64 = 0.95;
const MOST_CHURN: f64 = 1000.0;
const MOST_PULLS: u32 = 100_000;
/// About what the made-up repository is, and what a pull brings, on a file system.
const REPOSITORY_BYTES: u64 = 12 << 20;
const PULL_BYTES: u64 = 640 << 10;
/// Slower than this an ager is taken to hang: a disk that makes a hundred of its files a second is
/// three times as fast, and pulls take a tenth.
const SLOWEST_BYTES_PER_SECOND: u64 = 4 << 20;
const SLOWEST_PULL_NS: u64 = 2_000_000_000;
/// What a device is taken to hold, whose size no plan says.
const UNKNOWN_CAPACITY: u64 = 256 << 30;

/// What `age` and `fill` come to, as shares of the capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ageing {
    /// Filled first, and then never more.
    pub level: f64,
    /// Times the filled bytes that are written on top.
    pub churn: f64,
    /// What remains when the work begins.
    pub leaves: f64,
    pub pulls: u32,
}

impl Ageing {
    /// `None` for a file system that stays fresh.
    pub fn of(target: &Target) -> Option<Ageing> {
        let fill = target.fill.filter(|fill| *fill > 0.0);
        let all = |level: f64| Ageing { level, leaves: level, ..Ageing::default() };
        match (target.age, fill) {
            (None, None) => None,
            (None, Some(fill)) => Some(all(fill)),
            (Some(Age::Churn(churn)), Some(fill)) => Some(Ageing { churn, ..all(fill) }),
            (Some(Age::Churn(churn)), None) => Some(Ageing { churn, leaves: CHURN_LEAVES, ..all(CHURN_LEVEL) }),
            (Some(Age::Git(pulls)), fill) => Some(Ageing { pulls, ..all(fill.unwrap_or(0.0)) }),
        }
    }

    pub fn level_bytes(&self, capacity: u64) -> u64 {
        share_of(capacity, self.level)
    }

    pub fn leaves_bytes(&self, capacity: u64) -> u64 {
        share_of(capacity, self.leaves)
    }

    pub fn churn_bytes(&self, capacity: u64) -> u64 {
        share_of(self.level_bytes(capacity), self.churn)
    }

    /// About what is written in all.
    pub fn written_bytes(&self, capacity: u64) -> u64 {
        self.level_bytes(capacity) + self.churn_bytes(capacity) + self.repository_bytes()
    }

    /// About what then lies on the file system.
    pub fn kept_bytes(&self, capacity: u64) -> u64 {
        self.leaves_bytes(capacity) + self.repository_bytes()
    }

    fn repository_bytes(&self) -> u64 {
        if self.pulls == 0 { 0 } else { REPOSITORY_BYTES + PULL_BYTES * u64::from(self.pulls) }
    }

    /// How much longer a cell may take: ageing is no part of the work that the plan's limit is for.
    fn allowance_ns(&self, capacity: u64) -> u64 {
        let seconds = self.written_bytes(capacity) / SLOWEST_BYTES_PER_SECOND;
        seconds.saturating_mul(1_000_000_000).saturating_add(SLOWEST_PULL_NS * u64::from(self.pulls))
    }
}

fn share_of(whole: u64, share: f64) -> u64 {
    (whole as f64 * share).round() as u64
}

/// The setting of a backing for its size.
pub const SIZE: &str = "size";

/// The size that a plan gives a backing; a device has its own.
pub fn capacity(backing: &Settings) -> Option<u64> {
    backing.number(SIZE)
}

/// The most that data can take on all disks of a target.
fn all_disks(target: &Target) -> u64 {
    let backing = &target.backing.settings;
    capacity(backing).unwrap_or(UNKNOWN_CAPACITY).saturating_mul(disks(backing))
}

/// What a cell's limit grows by for a target's ageing.
pub fn allowance_ns(target: &Target) -> u64 {
    let capacity = all_disks(target);
    Ageing::of(target).map_or(0, |ageing| ageing.allowance_ns(capacity))
}

/// About how many seconds a target's ageing takes on a fast disk: 2 GiB churned five times take
/// half a minute.
pub fn seconds_of_ageing(target: &Target) -> u64 {
    const BYTES_PER_SECOND: u64 = 300 << 20;
    const PULLS_PER_SECOND: u64 = 5;
    let capacity = all_disks(target);
    let seconds =
        |ageing: Ageing| ageing.written_bytes(capacity) / BYTES_PER_SECOND + u64::from(ageing.pulls) / PULLS_PER_SECOND;
    Ageing::of(target).map_or(0, seconds)
}

/// The room of a backing that remains for the work, where its size is known.
pub(crate) fn room(target: &Target) -> Option<u64> {
    let size = capacity(&target.backing.settings)?;
    Some(size.saturating_sub(Ageing::of(target).map_or(0, |ageing| ageing.kept_bytes(size))))
}

/// What age and fill add to a target's name.
pub(super) fn words(age: Option<Age>, fill: Option<f64>) -> Vec<String> {
    let full = fill.filter(|fill| *fill > 0.0).map(|fill| format!("{}% full", percent(fill)));
    age.map(String::from).into_iter().chain(full).collect()
}

/// 80 from 0.8, 12.5 from 0.125.
fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

impl From<Age> for String {
    fn from(age: Age) -> String {
        match age {
            Age::Churn(times) => format!("churn {times}x"),
            Age::Git(pulls) => format!("git {pulls}"),
        }
    }
}

impl TryFrom<String> for Age {
    type Error = String;

    fn try_from(text: String) -> Result<Age, String> {
        parse(&text).ok_or_else(|| format!("`{text}` is no age"))
    }
}

fn parse(text: &str) -> Option<Age> {
    let (recipe, amount) = text.trim().split_once(' ')?;
    let amount = amount.trim();
    match recipe {
        "churn" => {
            let times: f64 = amount.strip_suffix('x')?.trim().parse().ok()?;
            (times > 0.0 && times <= MOST_CHURN).then_some(Age::Churn(times))
        }
        "git" => amount.parse().ok().filter(|pulls| (1..=MOST_PULLS).contains(pulls)).map(Age::Git),
        _ => None,
    }
}

/// An `age`, of a target or in the matrix; "none" is a file system that stays fresh.
pub(super) fn age(field: &Field) -> Option<Age> {
    let text = field.text()?;
    if text.trim() == "none" {
        return None;
    }
    parse(text).or_else(|| {
        let remedy = format!(
            "write \"churn 5x\" (files made and deleted, five times what is filled; up to {MOST_CHURN}x), \"git 100\" (a \
             hundred pulls; up to {MOST_PULLS}) or \"none\""
        );
        field.refuse(&format!("cannot be {}", quoted(text)), remedy)
    })
}

/// A `fill`, as a share; 0 is a file system that stays empty.
pub(super) fn fill(field: &Field) -> Option<f64> {
    const REMEDY: &str = "write a share of the size of the image or device, such as \"40%\", up to \"95%\"";
    let Some(text) = field.value.as_str() else {
        return field.refuse("must be a share in quotes", REMEDY);
    };
    match parse_share(text).ok() {
        Some(share) if share <= MOST_FILL => Some(share).filter(|share| *share > 0.0),
        Some(_) => field.refuse(&format!("is {}, which leaves no room", quoted(text)), REMEDY),
        None => field.refuse(&format!("cannot be {}", quoted(text)), REMEDY),
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{Hostile, complained, read, with};
    use super::*;

    #[test]
    fn ages_are_read_and_written_alike() {
        for (text, age) in [
            ("churn 5x", Some(Age::Churn(5.0))),
            ("churn  0.5x", Some(Age::Churn(0.5))),
            ("git 100", Some(Age::Git(100))),
            ("churn 0x", None),
            ("churn -1x", None),
            ("churn NaNx", None),
            ("churn infx", None),
            ("churn 5", None),
            ("git 0", None),
            ("git 1.5", None),
            ("git 100x", None),
            ("mail 2x", None),
            ("git", None),
        ] {
            assert_eq!(parse(text), age, "{text}");
            assert_eq!(age.and_then(|age| parse(&String::from(age))), age, "{text}");
        }
    }

    #[test]
    fn what_is_asked_for_comes_to_bytes() {
        let of = |age: Option<Age>, fill: Option<f64>| Ageing::of(&Target { age, fill, ..Target::default() });
        let bytes = |found: Option<Ageing>| {
            found.map(|a| (a.level_bytes(1000), a.churn_bytes(1000), a.leaves_bytes(1000), a.pulls))
        };
        let churn = Some(Age::Churn(5.0));
        assert_eq!(bytes(of(None, None)), None);
        assert_eq!(bytes(of(None, Some(0.9))), Some((900, 0, 900, 0)));
        assert_eq!(bytes(of(churn, None)), Some((800, 4000, 400, 0)));
        assert_eq!(bytes(of(churn, Some(0.3))), Some((300, 1500, 300, 0)));
        assert_eq!(bytes(of(Some(Age::Git(7)), None)), Some((0, 0, 0, 7)));
        assert_eq!(bytes(of(Some(Age::Git(7)), Some(0.5))), Some((500, 0, 500, 7)));
    }

    #[test]
    fn a_cell_may_take_longer_by_what_ageing_may_take() {
        let mut target = Target { fill: Some(0.5), ..Target::default() };
        target.backing.settings.0.insert("size".into(), (200u64 << 20).into());
        assert_eq!((allowance_ns(&target), room(&target)), (25_000_000_000, Some(100 << 20)));
        target.age = Some(Age::Churn(2.0));
        assert_eq!(allowance_ns(&target), 75_000_000_000);
        target.backing.settings.0.insert("disks".into(), 3.into());
        assert_eq!((allowance_ns(&target), room(&target)), (225_000_000_000, Some(100 << 20)));
        assert_eq!(allowance_ns(&Target::default()), 0);
    }

    #[test]
    fn targets_are_named_by_age_and_fill() {
        let text = "[[target]]\nfs = 'ext4'\nage = 'churn 5x'\n[[target]]\nfs = 'xfs'\nfill = '12.5%'\nage = 'none'\n\
                    [[target]]\nfs = 'xfs'\nfill = '0%'";
        let plan = read(&with("BW", text)).unwrap();
        let names: Vec<&str> = plan.targets.iter().map(|target| target.name.as_str()).collect();
        assert_eq!(names, ["ext4 churn 5x", "xfs 12.5% full", "xfs", "ext4 churn 5x (again)"]);
        assert_eq!((plan.targets[1].fill, plan.targets[2].fill), (Some(0.125), None));
    }

    #[test]
    fn age_and_fill_are_factors_of_a_matrix() {
        let plan = read(&with("BTW", "[matrix]\nfill = ['0%', '80%']\nage = ['', 'git 10']")).unwrap();
        let names: Vec<&str> = plan.targets.iter().map(|target| target.name.as_str()).collect();
        assert_eq!(names[..4], ["ext4", "ext4 80% full", "ext4 git 10", "ext4 git 10 80% full"]);
        assert_eq!((plan.targets[3].age, plan.targets[3].fill), (Some(Age::Git(10)), Some(0.8)));
    }

    #[rustfmt::skip]
    const HOSTILE: &[Hostile] = &[
        ("BW", "[[target]]\nfs = 'ext4'\nage = 'old'\nfill = '40 %'", &[(3, "write \"churn 5x\"")]),
        ("BW", "[[target]]\nfs = 'ext4'\nage = 5\nfill = 0.4", &[(3, "must be text"), (4, "share in quotes")]),
        ("BW", "[[target]]\nfs = 'ext4'\nage = 'churn 5'\nfill = '96%'", &[(3, "cannot be `churn 5`"), (4, "no room")]),
        ("BW", "[[target]]\nfs = 'ext4'\nfill = 'half'\nages = 'git 1'", &[(3, "cannot be `half`"), (4, "did you mean `age`?")]),
        ("BW", "[[target]]\nfs = 'ext4'\nfill = '40GiB'", &[(3, "up to \"95%\"")]),
        ("W", "[[target]]\nbacking.directory = '/a'\nage = 'git 1'\nfill = '5%'", &[(3, "brings its own"), (4, "brings its own")]),
        ("BTW", "[matrix]\nfill = ['0%', '120%', 'x']\nage = ['git 1', 'git 1', 'fsck']",
            &[(2, "no room"), (2, "cannot be `x`"), (3, "`git 1` twice"), (3, "cannot be `fsck`")]),
        ("W", "[backing]\ndirectory = '/a'\n[matrix]\nfill = ['5%']", &[(4, "no file system is made")]),
        ("BW", "[matrix]\nage = ['git 1']\n[[target]]\nfs = 'xfs'\nage = 'git 2'", &[(2, "sets `age` itself")]),
    ];

    #[test]
    fn wrong_ages_get_all_their_complaints() {
        complained(HOSTILE);
    }
}
