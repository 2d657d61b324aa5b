//! What of a disk is a table: flushes by their shares, zones, and the seek curve.

use super::{Disk, FLUSH, FLUSH_AT, MOST_FLUSHES, MOST_SEEKS, MOST_ZONES, SEEK_AT, Words, ZONE_AT, at};
use anyhow::{Context, Result, bail, ensure};

/// Where the file gives a distribution of flushes; false where it gives a number.
pub(super) fn flushes(disk: &Disk, words: &mut Words) -> Result<bool> {
    let given = disk.parameters.get(FLUSH).map(|_| disk.sourced(FLUSH)).transpose()?;
    let Some(given) = given.filter(|given| given.is.is_array()) else { return Ok(false) };
    let shape = || format!("`{FLUSH}` must be a number, or pairs of percent and microseconds that rise from 0 to 100");
    let pairs: Vec<[f64; 2]> = given.is.try_into().with_context(shape)?;
    ensure!((2..=MOST_FLUSHES).contains(&pairs.len()), "`{FLUSH}` has 2 to {MOST_FLUSHES} pairs");
    for (at, [percent, us]) in pairs.iter().enumerate() {
        ensure!((0.0..=100.0).contains(percent) && (0.0..=4e6).contains(us), shape());
        let pair = FLUSH_AT + 2 * at;
        words[pair..pair + 2].copy_from_slice(&[(percent * 1e4).round() as u64, (us * 1e3).round() as u64]);
    }
    words[at("FLUSHES")] = pairs.len() as u64;
    Ok(true)
}

/// Zones have the same number of cylinders each, and tracks that shorten evenly from the outer edge
/// to the inner one.
pub(super) fn of_arm(disk: &Disk, words: &mut Words) -> Result<()> {
    let (heads, sectors) = (words[at("HEADS")], words[at("SECTORS")]);
    let (zones, outer, inner) = (disk.number("zones")?, disk.number("outer_sectors")?, disk.number("inner_sectors")?);
    ensure!((1.0..=MOST_ZONES as f64).contains(&zones), "`zones` must be from 1 to {MOST_ZONES}");
    ensure!(
        heads > 0 && outer >= inner && inner >= 1.0,
        "a disk needs `heads`, and outer tracks as long as inner ones"
    );
    let zones = zones as u64;
    let track = |zone: u64| (outer - (outer - inner) * zone as f64 / (zones.max(2) - 1) as f64).round() as u64;
    let per_cylinder: u64 = (0..zones).map(|zone| track(zone) * heads).sum();
    let cylinders = sectors.div_ceil(per_cylinder);
    let mut first = 0;
    for zone in 0..zones {
        let row = ZONE_AT + 3 * zone as usize;
        words[row..row + 3].copy_from_slice(&[first, zone * cylinders, track(zone)]);
        first += cylinders * heads * track(zone);
    }
    words[at("ZONES")] = zones;
    seeks(disk, cylinders * zones, words)
}

/// As a root of the distance up to a boundary, then as a line (Ruemmler and Wilkes 1994), at
/// distances that grow evenly in their logarithm; the model interpolates between them.
fn seeks(disk: &Disk, cylinders: u64, words: &mut Words) -> Result<()> {
    let unit = match disk.sourced("seek_unit")?.is.as_str() {
        Some("stroke") => (cylinders - 1).max(1) as f64,
        Some("cylinders") => 1.0,
        _ => bail!("`seek_unit` must be \"stroke\" or \"cylinders\""),
    };
    let (short, root) = (disk.number("seek_short_us")?, disk.number("seek_root_us")?);
    let (boundary, line) = (disk.number("seek_boundary")?, disk.number("seek_line_us")?);
    let slope = disk.number("seek_slope_us")?;
    let us =
        |distance: f64| if distance <= boundary { short + root * distance.sqrt() } else { line + slope * distance };
    let most = (cylinders - 1).max(1) as f64;
    let edge = (boundary * unit).floor().clamp(1.0, most);
    let grown = (0..MOST_SEEKS - 2).map(|step| most.powf(step as f64 / (MOST_SEEKS - 3) as f64).round());
    // The curve may bend or step at its boundary, so both sides of it are in the table.
    let mut distances: Vec<u64> = grown.chain([edge, (edge + 1.0).min(most)]).map(|distance| distance as u64).collect();
    distances.sort_unstable();
    distances.dedup();
    let mut before = 0;
    for (index, distance) in distances.iter().enumerate() {
        let ns = (us(*distance as f64 / unit) * 1e3).round() as u64;
        ensure!(ns >= before, "the seek curve falls at {distance} cylinders");
        before = ns;
        words[SEEK_AT + 2 * index..SEEK_AT + 2 * index + 2].copy_from_slice(&[*distance, ns]);
    }
    words[at("SEEKS")] = distances.len() as u64;
    Ok(())
}
