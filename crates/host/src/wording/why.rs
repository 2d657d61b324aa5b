//! Why two targets take different times, in a sentence and a table.

use super::text::{listed, percent, signed_decimal};
use crate::analysis::Model;
use crate::analysis::owners::{Cause, Difference, FASTER, Kept, Outcome, Pair, Part, Proof, Removal, Spent, State};
use pickfs_system::units::show_duration;

/// "Why btrfs takes 58 % longer than ext4 (write): 41 % is processor time in checksums and
/// compression, 12 % waits for metadata reads (2.1 times as many), 5 % other." What works against
/// the difference has a minus. A difference below the threshold, or within noise, has no causes.
pub fn sentence(found: &Difference, target: &str, reference: &str, threshold: f64) -> String {
    if found.share.abs() < threshold {
        return format!(
            "{}: {target} and {reference} differ by {}, which is below the {} that matter: no cause is named.",
            found.phase,
            percent(found.share.abs()),
            percent(threshold)
        );
    }
    let way = if found.share > 0.0 { "longer" } else { "less" };
    if let Some([low, high]) = found.noise {
        let share = percent(found.share.abs());
        let [low, high] = [low, high].map(|bound| signed_decimal(bound * 100.0, 1));
        return format!(
            "{}: {target} takes {share} {way} than {reference}, but {low} to {high} % over all rounds of the run (95 %), which \
             do not show it: no cause is named.",
            found.phase
        );
    }
    let towards = found.share.signum();
    let named: Vec<&Cause> = found.named().collect();
    let (busy, idle): (Vec<&Cause>, Vec<&Cause>) = named.iter().partition(|cause| cause.state == State::Busy);
    let digits = if found.share.abs() < 0.0995 { 1e3 } else { 1e2 };
    let rounded = |share: f64| (share * towards * digits).round() / digits;
    let of_parts = |cause| parts_named(cause, found.reference_ns, |share| percent(rounded(share)));
    let mut pieces: Vec<(f64, String)> =
        idle.iter().map(|cause| (cause.share, waits(cause, &of_parts(cause)))).collect();
    let (towards_it, against_it): (Vec<&Cause>, Vec<&Cause>) =
        busy.iter().partition(|cause| cause.share * towards > 0.0);
    for busy in [towards_it, against_it].iter().filter(|busy| !busy.is_empty()) {
        let (of_one, of_both): (Vec<&Cause>, Vec<&Cause>) = busy.iter().partition(|cause| is_of_one(cause));
        let owners: Vec<String> = of_one.iter().chain(&of_both).map(|cause| cause.owner.clone()).collect();
        let share = busy.iter().map(|cause| cause.share).sum();
        pieces.push((share, format!("is processor time in {}", listed(&owners))));
    }
    // What works against the difference last.
    pieces.sort_by(|one, other| (other.0 * towards).total_cmp(&(one.0 * towards)));
    let other = rounded(found.share) - pieces.iter().map(|(share, _)| rounded(*share)).sum::<f64>();
    let mut words: Vec<String> =
        pieces.iter().map(|(share, what)| format!("{} {what}", percent(rounded(*share)))).collect();
    words.push(format!("{} other", percent((other * digits).round() / digits + 0.0)));
    let longer = percent(rounded(found.share));
    format!("Why {target} takes {longer} {way} than {reference} ({}): {}.", found.phase, words.join(", "))
}

/// One of both spends next to nothing on it. Then it is what they differ in, and what is more of
/// what both do, such as memory management, comes with it.
fn is_of_one(cause: &Cause) -> bool {
    let (one, other) = (cause.target.ns, cause.reference.ns);
    one.min(other) < 0.1 * one.max(other)
}

/// What two targets took in a phase, or in all of a work, and what that is made of.
pub(crate) struct Ledger<'a> {
    pub(crate) title: String,
    /// Above the columns: what the rows are of, and those of their cells.
    pub(crate) heads: [&'a str; 5],
    pub(crate) rows: Vec<[String; 5]>,
    pub(crate) proofs: Vec<String>,
}

/// What stands above ledgers.
pub(crate) const LEDGERS: &str = "The time of each phase by what it was spent on, in a simulation of round 1. Share: by how much the \
                                  target takes longer, in percent of the reference's time. Shares and times of all rows sum to \
                                  those of the last one; indented rows are parts of the one above.";

impl Model {
    /// One for each phase and pair of targets that `pickfs why` has explained; `indent` stands
    /// before the names of parts.
    pub(crate) fn ledgers(&self, indent: &str) -> Vec<Ledger<'_>> {
        self.why.iter().flat_map(|kept| kept.pairs.iter().map(|pair| Ledger::of(kept, pair, indent))).collect()
    }

    /// A sentence for each pair of targets that `pickfs why` has explained.
    pub(crate) fn explanations(&self) -> Vec<String> {
        let Some(kept) = &self.why else { return Vec::new() };
        let on = kept.simulated_on.as_ref().map_or(String::new(), |disk| format!("Simulated on {disk}: "));
        let said = |pair: &Pair| sentence(&pair.difference, &pair.target, &pair.reference, kept.threshold);
        let doubt = |found: &Difference| {
            let unproved = found.named().filter(|cause| found.proof_of(cause).is_none());
            let unproved: Vec<String> = unproved.map(label).collect();
            match unproved[..] {
                _ if !kept.is_proved => " The causes are not proved.".to_string(),
                [] => String::new(),
                _ => format!(" Not proved: {}.", listed(&unproved)),
            }
        };
        kept.whole().map(|pair| format!("{on}{}{}", said(pair), doubt(&pair.difference))).collect()
    }
}

impl<'a> Ledger<'a> {
    fn of(kept: &Kept, Pair { work, target, reference, difference }: &'a Pair, indent: &str) -> Ledger<'a> {
        let on = kept.simulated_on.as_ref().map_or(String::new(), |disk| format!(", simulated on {disk}"));
        let is_explained = kept.is_proved && difference.has_causes(kept.threshold);
        Ledger {
            title: format!("{work}, {}: {target} against {reference}{on}", difference.phase),
            heads: [&difference.phase, "share", target, reference, ""],
            rows: ledger(difference, indent),
            proofs: if is_explained { proofs(difference) } else { Vec::new() },
        }
    }
}

/// Once, where some do not agree.
pub const NO_EXPLANATION: &str = "Where they do not agree, the simulation explains nothing of what was measured.";

/// How a difference that was measured stands to the one that is explained.
pub fn agreement(
    found: &Difference,
    target: &str,
    reference: &str,
    (measured, model): (f64, &str),
    agrees: bool,
) -> String {
    let shown = |share: f64| match share {
        0.0.. => format!("{} longer", percent(share)),
        _ => format!("{} less", percent(-share)),
    };
    let (here, there) = (shown(measured), shown(found.share));
    let end = match agrees {
        true => "They agree, within a factor of two",
        false => "They do not agree",
    };
    format!(
        "{}: measured, {target} takes {here} than {reference}; simulated on the model `{model}`, {there}. {end}.",
        found.phase
    )
}

/// What samples of this machine say of a difference that was simulated, too; how much of both times
/// they give no owner.
pub fn estimate(
    here: &Difference,
    simulated: &Difference,
    [target, reference]: [&str; 2],
    unowned: [f64; 2],
    threshold: f64,
) -> String {
    let [one, other] = unowned.map(percent);
    let said = sentence(here, target, reference, threshold);
    let mut all = format!("{said} No owner: {one} of {target}'s time, {other} of {reference}'s.");
    let named = [here, simulated].map(|found| found.causes.first().filter(|_| found.has_causes(threshold)));
    if let [Some(mine), Some(its)] = named.map(|cause| cause.map(label)) {
        let same = if mine == its { "the same in the simulation".into() } else { format!("{its} in the simulation") };
        all.push_str(&format!(" Largest part: {mine}; {same}."));
    }
    all
}

/// "waits for metadata reads (2.1 times as many; 8 % seek, 4 % turn)".
fn waits(cause: &Cause, parts: &str) -> String {
    let (now, before) = (cause.target.requests as f64, cause.reference.requests as f64);
    let ratio = now / before;
    let more = match ratio {
        _ if now == 0.0 && before == 0.0 => String::new(),
        _ if before == 0.0 => format!("{now:.0} of them, against none"),
        _ if now == 0.0 => format!("none, against {before:.0}"),
        ratio if (0.95..1.05).contains(&ratio) => "as many".into(),
        ratio => format!("{ratio:.1} times as many"),
    };
    let about: Vec<&str> = [&more, parts].into_iter().filter(|words| !words.is_empty()).collect();
    match about.is_empty() {
        true => format!("waits for {}", cause.owner),
        false => format!("waits for {} ({})", cause.owner, about.join("; ")),
    }
}

/// Parts of a wait that are named make at least this part of its difference.
const NAMED: f64 = 0.2;

/// "8 % seek, 4 % turn": the large parts of a cause, whose shares are of the reference's time as
/// that of the cause.
pub(crate) fn parts_named(cause: &Cause, whole: f64, shown: impl Fn(f64) -> String) -> String {
    let large = parts(cause, whole).into_iter().filter(|(_, share, _)| share.abs() >= NAMED * cause.share.abs());
    let large = large.filter(|(name, share, _)| *name != OTHER_PARTS && share.abs() >= SHOWN);
    large.map(|(name, share, _)| format!("{} {name}", shown(share))).collect::<Vec<_>>().join(", ")
}

/// What is done to take a cause away.
pub fn removed(removal: &Removal) -> String {
    match removal {
        Removal::Requests(what) => format!("no time for {what}"),
        Removal::Layers => "no layers below the file system".into(),
        Removal::Switch(owner) => format!("{owner} switched off"),
        Removal::Compression => "compression takes next to no time".into(),
        Removal::Processor => format!("a processor {FASTER} times as fast"),
    }
}

/// A line for each cause that was taken away, and for each that nothing takes away: "no time for
/// metadata reads: predicted −9.1 %, simulated −8.7 %: confirmed".
pub fn proofs(found: &Difference) -> Vec<String> {
    let line = |proof: &Proof| {
        let outcome = match proof.outcome {
            Outcome::Confirmed => "confirmed",
            Outcome::Interacts => "causes interact",
            Outcome::Refuted => "not confirmed, so it is not named",
        };
        let [predicted, simulated] = [proof.predicted_share, proof.simulated_share].map(|share| signed(-share));
        format!("{}: predicted {predicted}, simulated {simulated}: {outcome}", removed(&proof.removal))
    };
    let unproved = found.large().filter(|cause| found.proof_of(cause).is_none());
    let unproved = unproved.map(|cause| format!("{}: nothing takes it away, so it is not proved", label(cause)));
    found.proofs.iter().map(line).chain(unproved).collect()
}

/// What a table calls an owner's time.
pub(crate) fn label(cause: &Cause) -> String {
    match cause.state {
        State::Busy => cause.owner.clone(),
        State::Idle => format!("waiting for {}", cause.owner),
    }
}

/// Rows that are shown each by itself make at least this share of the reference's time, or of a
/// difference in it.
const SHOWN: f64 = 0.005;

/// A row an owner, the largest difference first, below it parts of its wait for the disk, ending in
/// a sum that is that of the rows. Name, share, the target's time, the reference's, and the
/// requests of both.
fn ledger(found: &Difference, indent: &str) -> Vec<[String; 5]> {
    let row = |name: &str, share: f64, times: [f64; 2], requests: String| {
        let [one, other] = times.map(show_duration);
        [name.into(), signed(share), one, other, requests]
    };
    let whole = |name: &str, share: f64, times: [f64; 2]| row(name, share, times, String::new());
    let requests = |cause: &Cause| match (cause.target.requests, cause.reference.requests) {
        (0, 0) => String::new(),
        (one, other) => format!("{one}, {other} requests"),
    };
    let of_owner = |cause: &Cause| {
        let times = [cause.target.ns, cause.reference.ns];
        let all = row(&label(cause), cause.share, times, requests(cause));
        let part = |(name, share, times): (&str, f64, [f64; 2])| whole(&format!("{indent}{name}"), share, times);
        std::iter::once(all).chain(parts(cause, found.reference_ns).into_iter().map(part)).collect::<Vec<_>>()
    };
    let is_shown = |cause: &&Cause| {
        cause.share.abs() >= SHOWN || cause.target.ns.max(cause.reference.ns) >= SHOWN * found.reference_ns
    };
    let (shown, small): (Vec<&Cause>, Vec<&Cause>) = found.causes.iter().partition(is_shown);
    let mut rows: Vec<[String; 5]> = shown.iter().flat_map(|cause| of_owner(cause)).collect();
    let sum = |of: fn(&Cause) -> f64| small.iter().map(|cause| of(cause)).sum::<f64>();
    if !small.is_empty() {
        let times = [sum(|cause| cause.target.ns), sum(|cause| cause.reference.ns)];
        rows.push(whole(&format!("{} smaller ones", small.len()), sum(|cause| cause.share), times));
    }
    rows.push(whole("not accounted for", found.rest_share, [found.target_rest_ns, found.reference_rest_ns]));
    rows.push(whole("all", found.share, [found.target_ns, found.reference_ns]));
    rows
}

/// A ledger as lines of text.
pub fn table(found: &Difference, target: &str, reference: &str) -> Vec<String> {
    let line = |[name, share, one, other, requests]: [String; 5]| {
        format!("{name:<51}{share:>9}{one:>11}{other:>11}  {requests}").trim_end().to_string()
    };
    let head = [found.phase.clone(), "share".into(), cut(target), cut(reference), String::new()];
    std::iter::once(head).chain(ledger(found, "  ")).map(line).collect()
}

const OTHER_PARTS: &str = "other parts";

/// Parts that take less than this share of the reference's time are one row.
const SHOWN_PART: f64 = 0.01;

/// Parts of a cause's time, the largest difference first: name, share of the reference's time, and
/// both times. None where there is nothing to divide, or each of them is small.
fn parts(cause: &Cause, whole: f64) -> Vec<(&'static str, f64, [f64; 2])> {
    let of = |spent: &Spent, part: Part| spent.parts_ns.get(&part).copied().unwrap_or_default();
    let times = Part::ALL.map(|part| (part.word(), [&cause.target, &cause.reference].map(|spent| of(spent, part))));
    let share = |[one, other]: [f64; 2]| (one - other) / whole;
    let is_small = |(_, times): &(&str, [f64; 2])| times[0].max(times[1]) < SHOWN_PART * whole;
    let (small, mut large): (Vec<_>, Vec<_>) =
        times.into_iter().filter(|(_, [one, other])| one + other > 0.0).partition(is_small);
    large.sort_by(|one, other| share(other.1).abs().total_cmp(&share(one.1).abs()));
    let sum = [0, 1].map(|at| small.iter().map(|(_, times)| times[at]).sum::<f64>());
    match small[..] {
        _ if large.is_empty() || small.is_empty() => {}
        [one] => large.push(one),
        _ => large.push((OTHER_PARTS, sum)),
    }
    large.into_iter().map(|(name, times)| (name, share(times), times)).collect()
}

fn cut(name: &str) -> String {
    name.chars().take(10).collect()
}

pub(crate) fn signed(share: f64) -> String {
    format!("{} %", signed_decimal(share * 100.0, 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::owners::{Breakdown, Spent, between};

    /// Nanoseconds, and requests.
    type Row = (State, &'static str, f64, u64);

    fn breakdown(time_ns: f64, owners: &[Row]) -> Breakdown {
        let spent = |ns: f64, requests: u64| Spent { ns, requests, ..Spent::default() };
        let owners: std::collections::BTreeMap<_, _> = owners
            .iter()
            .map(|(state, owner, ns, requests)| ((*state, owner.to_string()), spent(*ns, *requests)))
            .collect();
        let known: f64 = owners.values().map(|spent| spent.ns).sum();
        Breakdown { phase: "write".into(), time_ns, owners, rest_ns: time_ns - known, ..Breakdown::default() }
    }

    #[test]
    fn a_sentence_has_numbers_that_sum() {
        use State::{Busy, Idle};
        let reference = breakdown(100.0, &[(Busy, "VFS", 60.0, 0), (Idle, "metadata reads", 40.0, 10)]);
        let rows: &[(f64, &[Row], &str)] = &[
            (
                158.0,
                &[
                    (Busy, "checksums", 25.0, 0),
                    (Busy, "compression", 16.0, 0),
                    (Busy, "VFS", 64.0, 0),
                    (Idle, "metadata reads", 52.0, 21),
                ],
                "Why btrfs takes 58 % longer than ext4 (write): 41 % is processor time in checksums and compression, 12 % waits for \
                 metadata reads (2.1 times as many), 5 % other.",
            ),
            (
                60.0,
                &[(Busy, "VFS", 60.0, 0)],
                "Why btrfs takes 40 % less than ext4 (write): 40 % waits for metadata reads (none, against 10), 0 % other.",
            ),
            (
                101.0,
                &[(Busy, "VFS", 61.0, 0), (Idle, "metadata reads", 40.0, 10)],
                "write: btrfs and ext4 differ by 1 %, which is below the 3 % that matter: no cause is named.",
            ),
            (
                120.0,
                &[(Busy, "VFS", 50.0, 0), (Busy, "checksums", 70.0, 0)],
                "Why btrfs takes 20 % longer than ext4 (write): 70 % is processor time in checksums, −10 % is processor time in VFS, \
                 −40 % waits for metadata reads (none, against 10), 0 % other.",
            ),
            (
                130.0,
                &[(Busy, "VFS", 80.0, 0), (Busy, "quotas", 10.0, 0), (Idle, "metadata reads", 40.0, 10)],
                "Why btrfs takes 30 % longer than ext4 (write): 30 % is processor time in quotas and VFS, 0 % other.",
            ),
            (
                150.0,
                &[(Busy, "VFS", 60.0, 0), (Idle, "metadata reads", 40.0, 10), (Idle, "flushes", 50.0, 7)],
                "Why btrfs takes 50 % longer than ext4 (write): 50 % waits for flushes (7 of them, against none), 0 % other.",
            ),
        ];
        for (time, owners, wanted) in rows {
            let found = between(&breakdown(*time, owners), &reference).expect("a difference");
            assert_eq!(sentence(&found, "btrfs", "ext4", 0.03), *wanted);
        }
    }

    #[test]
    fn what_the_rounds_do_not_show_has_no_cause() {
        let reference = breakdown(100.0, &[(State::Busy, "VFS", 100.0, 0)]);
        let found = between(&breakdown(105.0, &[(State::Busy, "VFS", 105.0, 0)]), &reference).expect("a difference");
        let noisy = Difference { noise: Some([-0.012, 0.063]), ..found.clone() };
        assert_eq!([&found, &noisy].map(|found| found.has_causes(0.03)), [true, false]);
        assert_eq!(
            sentence(&noisy, "btrfs", "ext4", 0.03),
            "write: btrfs takes 5 % longer than ext4, but −1.2 to +6.3 % over all rounds of the run (95 %), which do not show \
             it: no cause is named."
        );
    }

    #[test]
    fn a_simulation_that_does_not_agree_explains_nothing() {
        let reference = breakdown(100.0, &[(State::Busy, "VFS", 100.0, 0)]);
        let found = between(&breakdown(80.0, &[(State::Busy, "VFS", 80.0, 0)]), &reference).expect("a difference");
        for (measured, agrees, wanted) in [
            (
                -0.25,
                true,
                "write: measured, btrfs takes 25 % less than ext4; simulated on the model `nvme`, 20 % less. They agree, within a factor of two.",
            ),
            (
                0.25,
                false,
                "write: measured, btrfs takes 25 % longer than ext4; simulated on the model `nvme`, 20 % less. They do not agree.",
            ),
        ] {
            assert_eq!(agreement(&found, "btrfs", "ext4", (measured, "nvme"), agrees), wanted);
        }
    }

    #[test]
    fn a_table_ends_in_the_rest_and_the_sum() {
        let reference = breakdown(1e6, &[(State::Busy, "VFS", 9.9e5, 0), (State::Busy, "timers", 1e3, 0)]);
        let target = breakdown(2e6, &[(State::Busy, "VFS", 1.0e6, 0), (State::Idle, "reads", 9.5e5, 3)]);
        let lines = table(&between(&target, &reference).expect("a difference"), "btrfs", "ext4");
        let words = |line: &str| line.split_whitespace().map(String::from).collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = lines.iter().map(|line| words(line)).collect();
        assert_eq!(
            lines,
            [
                "write share btrfs ext4",
                "waiting for reads +95.0 % 950 µs 0.00 µs 3, 0 requests",
                "VFS +1.0 % 1.00 ms 990 µs",
                "1 smaller ones −0.1 % 0.00 µs 1.00 µs",
                "not accounted for +4.1 % 50.0 µs 9.00 µs",
                "all +100.0 % 2.00 ms 1.00 ms"
            ]
        );
    }

    /// A sentence names the large parts. A table has a row for each, below that of the requests,
    /// and one for all small parts.
    #[test]
    fn waits_have_the_parts_of_the_disk() {
        let waits = |requests: u64, parts: &[(Part, f64)]| {
            let ns = parts.iter().map(|(_, ns)| ns).sum();
            let spent = Spent { ns, requests, parts_ns: parts.iter().copied().collect(), ..Spent::default() };
            let owners = [((State::Idle, "metadata reads".to_string()), spent)].into();
            Breakdown { phase: "write".into(), time_ns: ns, owners, ..Breakdown::default() }
        };
        use Part::{Controller, Die, Link, Queue, Seek, Turn};
        let reference = waits(10, &[(Seek, 6e5), (Turn, 3.92e5), (Controller, 4e3), (Link, 4e3)]);
        let target = waits(20, &[(Seek, 1.2e6), (Turn, 2.9e5), (Controller, 1e3), (Queue, 9e3), (Die, 5e5)]);
        let found = between(&target, &reference).expect("a difference");
        assert_eq!(
            sentence(&found, "btrfs", "ext4", 0.03),
            "Why btrfs takes 100 % longer than ext4 (write): 100 % waits for metadata reads (2.0 times as many; 60 % seek, \
             50 % die), 0 % other."
        );
        let back = between(&reference, &target).expect("a difference");
        assert_eq!(
            sentence(&back, "ext4", "btrfs", 0.03),
            "Why ext4 takes 50 % less than btrfs (write): 50 % waits for metadata reads (0.5 times as many; 30 % seek, 25 % \
             die), 0 % other."
        );
        let words = |line: &String| line.split_whitespace().map(String::from).collect::<Vec<_>>().join(" ");
        assert_eq!(
            table(&found, "btrfs", "ext4").iter().map(words).collect::<Vec<_>>()[1..7],
            [
                "waiting for metadata reads +100.0 % 2.00 ms 1.00 ms 20, 10 requests",
                "seek +60.0 % 1.20 ms 600 µs",
                "die +50.0 % 500 µs 0.00 µs",
                "turn −10.2 % 290 µs 392 µs",
                "other parts +0.2 % 10.0 µs 8.00 µs",
                "not accounted for 0.0 % 0.00 µs 0.00 µs"
            ]
        );
    }

    #[test]
    fn each_proof_has_what_was_predicted_and_what_came() {
        use State::{Busy, Idle};
        let reference = breakdown(100.0, &[(Busy, "VFS", 100.0, 0)]);
        let rows = [(Busy, "VFS", 100.0, 0), (Idle, "metadata reads", 30.0, 7), (Idle, "a timer", 20.0, 0)];
        let mut found = between(&breakdown(150.0, &rows), &reference).expect("a difference");
        let proof = |words: &str, predicted_share: f64, simulated_share: f64, outcome: Outcome| Proof {
            removal: Removal::Requests(words.into()),
            predicted_share,
            simulated_share,
            outcome,
        };
        found.proofs = vec![proof("metadata reads", 0.3, 0.01, Outcome::Refuted)];
        let wanted = [
            "no time for metadata reads: predicted −30.0 %, simulated −1.0 %: not confirmed, so it is not named",
            "waiting for a timer: nothing takes it away, so it is not proved",
        ];
        assert_eq!(proofs(&found), wanted);
        let sentence = sentence(&found, "btrfs", "ext4", 0.03);
        assert_eq!(sentence, "Why btrfs takes 50 % longer than ext4 (write): 20 % waits for a timer, 30 % other.");
    }
}
