//! The parameters of flash, from what a round has measured: those with which the model gives the
//! same.

use super::super::parameters::{Disk, FLUSH, MOST_FLUSHES, at};
use super::super::virtual_clock::{Clock, Loop, PAGE, Random, asked};
use super::figures::{NEAR, Parameter, Round, distribution, median, parameter};
use anyhow::Result;
use pickfs_system::sys::disk_model::{DiskModel, Operation};

const DIES: [f64; 8] = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];
/// Reads that a candidate answers.
const TRIED: usize = 2000;
const HALVINGS: usize = 20;

pub(crate) fn parameters(round: &Round, base: &Disk) -> Result<Vec<Parameter>> {
    let link = round.deep / 1e6;
    let fastest = base.number("channels")? * base.number("channel_mb_s")?;
    // Channels that would hold up the link are faster than assumed.
    let channel = base.number("channel_mb_s")? * (link / fastest).max(1.0);
    let base = base.with("link_mb_s", link)?.with("channel_mb_s", channel)?;
    let mut found = vec![parameter("link_mb_s", link)];
    if channel > base.number("channel_mb_s")? {
        found.push(parameter("channel_mb_s", channel));
    }
    let Some((_, alone)) = round.random.iter().find(|(depth, _)| *depth == 1) else { return Ok(found) };
    let read = where_it_gives(0.0, alone.mean_ns / 1e3, alone.mean_ns, |us| {
        Ok(random_reads(&base.with("read_us", us)?, 1)?.mean_ns)
    })?;
    // A drive that is faster than the command that is assumed.
    let fitting = if read > 0.0 { base.with("read_us", read)? } else { base.with("command_us", 0.0)? };
    found.push(parameter("read_us", read));
    let best = DIES.iter().map(|dies| many(round, &fitting, *dies)).collect::<Result<Vec<_>>>()?;
    if let Some((_, dies, frames)) = best.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)) {
        found.extend([parameter("dies", dies), parameter("link_frames_us", frames)]);
    }
    found.extend(writes(round, &found, &base)?);
    Ok(found)
}

/// For a number of dies: the error of the model in squared logarithms, that number, and the time of
/// frames that fits best.
fn many(round: &Round, base: &Disk, dies: f64) -> Result<(f64, f64, f64)> {
    let base = base.with("dies", dies)?.with("link_frames_us", 0.0)?;
    let Some((deepest, measured)) = round.random.iter().max_by_key(|(depth, _)| *depth) else {
        return Ok((0.0, dies, 0.0));
    };
    let each_ns = 1e9 / measured.requests_a_second;
    let frames = where_it_gives(0.0, each_ns / 1e3, each_ns, |us| {
        Ok(1e9 / random_reads(&base.with("link_frames_us", us)?, *deepest)?.requests_a_second)
    })?;
    let candidate = base.with("link_frames_us", frames)?;
    let mut off = 0.0;
    for (depth, found) in round.random.iter().filter(|(depth, _)| *depth > 1) {
        off += (random_reads(&candidate, *depth)?.requests_a_second / found.requests_a_second).ln().powi(2);
    }
    Ok((off, dies, frames))
}

/// The argument between both at which a rising function has this value, by halving; the nearer end
/// where there is none.
fn where_it_gives(low: f64, high: f64, value: f64, of: impl Fn(f64) -> Result<f64>) -> Result<f64> {
    let (mut low, mut high) = (low, high);
    if of(low)? >= value {
        return Ok(low);
    }
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if of(middle)? < value { low = middle } else { high = middle }
    }
    Ok((low + high) / 2.0)
}

fn clock(disk: &Disk) -> Result<Clock> {
    let model = DiskModel::start(&disk.words(0, 0)?);
    Ok(Clock::new(model.map_err(|_| anyhow::anyhow!("the fitted model is out of range"))?))
}

fn random_reads(disk: &Disk, depth: usize) -> Result<Loop> {
    let mut random = Random(4);
    let pages = disk.words(0, 0)?[at("SECTORS")] / PAGE;
    Ok(clock(disk)?.closed(depth, TRIED, || asked(Operation::Read, random.below(pages) * PAGE, PAGE)).shown())
}

/// A rate that falls to less than this share of the first has left the SLC cache.
const CLIFF: f64 = 0.8;
/// Nanoseconds by which a flush with something to write takes longer, at least.
const LONGER: f64 = 50_000.0;

fn writes(round: &Round, found: &[Parameter], base: &Disk) -> Result<Vec<Parameter>> {
    let Some(writes) = &round.writes else { return Ok(Vec::new()) };
    let mut disk = base.clone();
    for parameter in found {
        disk = disk.with(parameter.name, parameter.value)?;
    }
    let mut more = programs(round, &writes.sustained, &disk)?;
    for parameter in &more {
        disk = disk.with(parameter.name, parameter.value)?;
    }
    let flushes = [0, 1, 256].map(|unsaved| writes.flushes_after(unsaved));
    let [Some(empty), Some(one), Some(full)] = flushes else { return Ok(more) };
    // With capacitors a flush has nothing to wait for. Of flushes with modes the shortest are
    // alike.
    let protected = f64::from(u8::from(full[0] - empty[0] < LONGER));
    disk = disk.with("power_loss_protection", protected)?;
    more.extend([parameter("power_loss_protection", protected), flush_times(&one, &disk)?]);
    Ok(more)
}

/// A number where all flushes take as long, else a distribution; both less what the model takes for
/// the write.
fn flush_times(sorted: &[f64], disk: &Disk) -> Result<Parameter> {
    let write = flush_after_one(&disk.with(FLUSH, 0.0)?)?;
    let us = |ns: f64| ((ns - write) / 1e3).max(0.0);
    let pairs = distribution(sorted, MOST_FLUSHES);
    let is_number = pairs.len() == 2 && pairs[1][1] < (1.0 + NEAR) * pairs[0][1];
    let pairs = pairs.into_iter().filter(|_| !is_number).map(|[percent, ns]| [percent, us(ns)]).collect();
    Ok(Parameter { pairs, ..parameter(FLUSH, us(median(sorted.to_vec()))) })
}

/// Nanoseconds of a flush after one write.
fn flush_after_one(disk: &Disk) -> Result<f64> {
    let mut clock = clock(disk)?;
    clock.closed(1, 1, || asked(Operation::Write, 0, PAGE));
    Ok(clock.closed(1, 1, || asked(Operation::Flush, 0, 0)).times[0] as f64)
}

/// From writes in sequence: before and behind the end of the SLC cache.
fn programs(round: &Round, sustained: &[(u64, f64)], disk: &Disk) -> Result<Vec<Parameter>> {
    let bytes = disk.number("dies")? * disk.number("program_pages")? * disk.number("page_kib")? * 1024.0;
    // The buffer takes the very first.
    let Some((_, first)) = sustained.get(sustained.len() / 20) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    // As fast as the link: how fast programs are does not show.
    if *first < 0.9 * round.deep {
        found.push(parameter("slc_program_us", bytes / first * 1e6));
    }
    if let Some((gone, _)) = sustained.iter().find(|(_, rate)| *rate < CLIFF * first) {
        let rest = sustained.iter().filter(|(before, _)| before > gone).map(|(_, rate)| *rate).collect();
        found.push(parameter("slc_gib", *gone as f64 / f64::from(1 << 30)));
        found.push(parameter("program_us", bytes / median(rest) * 1e6));
    }
    Ok(found)
}
