//! How near a simulation comes to this machine, in words and tables.

use super::text::percent;
use crate::analysis::{Agreement, Counterpart};
use pickfs_system::units::show_duration;

/// A line for each phase and target: time here, simulated, and how many times slower.
pub fn table(figures: &[Counterpart]) -> Vec<String> {
    let head = format!("{:<12}{:<16}{:>10}{:>12}{:>8}", "phase", "target", "here", "simulated", "times");
    let line = |figure: &Counterpart| {
        let [here, there] = [figure.here, figure.simulated].map(show_duration);
        format!("{:<12}{:<16}{here:>10}{there:>12}{:>8.2}", figure.phase, figure.target, figure.dilation())
    };
    std::iter::once(head).chain(figures.iter().map(line)).collect()
}

/// How ratios between targets agree, and how they do from one half of the rounds here to the other.
pub fn agreement(what: &str, found: &Agreement, noise: &Agreement) -> String {
    format!(
        "{what}: {} of {} pairs that differ by more than 10 % here are in the same order simulated; ratios are off by {} \
         (median) and {} (most), and between two halves of the rounds here by {} and {}",
        found.in_order,
        found.apart,
        percent(found.median_error),
        percent(found.worst_error),
        percent(noise.median_error),
        percent(noise.worst_error)
    )
}

/// The ratios of two targets.
pub fn of_two(one: &str, other: &str, found: &Agreement) -> String {
    format!(
        "  {one} against {other}: off by {} (median) and {} (most)",
        percent(found.median_error),
        percent(found.worst_error)
    )
}

pub fn class(name: &str, [from, middle, to]: [f64; 3]) -> String {
    format!("{name:<12} {middle:.2} times slower than here ({from:.2} to {to:.2})")
}

pub fn dilation(found: f64) -> String {
    format!("dilation {found}: the number of instructions that make a nanosecond of this machine")
}
