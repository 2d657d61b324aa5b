//! Zones of a host-managed disk, held against rules that are written down another way, and its
//! times against those of a disk without zones.

use super::*;
use pickfs_system::sys::disk_model::{Zone, ZoneCommand};

const MIB: u64 = 2048;
const SECTORS: u64 = 512 * MIB;

fn table_of_zones() -> Words {
    find("smr-host-managed").expect("it").zoned(0, 0, SECTORS).expect("words")
}

/// What a zone is after a command, or nothing where it must be refused.
fn after(zone: Zone, size: u64, command: ZoneCommand, offset: u64, sectors: u64) -> Option<Zone> {
    const EMPTY: Zone = Zone { pointer: 0, data: 0, condition: 1 };
    let end = offset + sectors;
    let whole = |condition| (offset == 0).then_some(Zone { condition, ..zone });
    match (command, zone.condition) {
        (ZoneCommand::ResetAll, 0) => Some(zone),
        (ZoneCommand::ResetAll, _) => Some(EMPTY),
        (ZoneCommand::Write, 0) => Some(zone),
        (_, 0) | (ZoneCommand::Write | ZoneCommand::Append, 14) => None,
        (ZoneCommand::Append, _) if offset != 0 => None,
        (ZoneCommand::Append, condition) => {
            let to = zone.pointer as u64;
            after(Zone { condition, ..zone }, size, ZoneCommand::Write, to, sectors)
        }
        (ZoneCommand::Write, _) if offset != zone.pointer as u64 || end > size || (offset | sectors) % 8 != 0 => None,
        (ZoneCommand::Write, condition) => {
            let condition = if end == size { 14 } else { condition.clamp(2, 4) };
            let condition = if condition == 4 { 2 } else { condition };
            Some(Zone { pointer: end as u32, data: end as u32, condition })
        }
        (ZoneCommand::Reset, _) => whole(1).map(|_| EMPTY),
        (ZoneCommand::Finish, _) => whole(14).map(|zone| Zone { pointer: size as u32, ..zone }),
        (ZoneCommand::Open, condition) => whole(if condition == 14 { 14 } else { 3 }),
        (ZoneCommand::Close, condition @ 2..=3) => whole(if zone.pointer > 0 { 4 } else { condition.min(1) }),
        (ZoneCommand::Close, condition) => whole(condition),
    }
}

pub(super) fn rules(make: Make) -> Result<(), String> {
    use ZoneCommand::*;
    let words = table_of_zones();
    let (size, zones) = (words[at("ZBC_SECTORS")], words[at("ZBC_ZONES")]);
    let (mut disk, mut random) = (make(&words), Random(12));
    let mut refused = 0;
    for turn in 0..20_000 {
        // Few zones, so that they become full.
        let number = if random.below(8) == 0 { random.below(zones) } else { random.below(6) };
        let before = disk.zone(number as usize);
        let all = [Append, Reset, Open, Close, Finish, Append, Append];
        let command = match random.below(400) {
            0 => ResetAll,
            drawn => all.get(drawn as usize % 12).copied().unwrap_or(Write),
        };
        let moves = matches!(command, Write | Append);
        let sectors = if moves { 8 * (1 + random.below(size / 64)) } else { 0 };
        let sectors = if random.below(30) == 0 { sectors / 3 } else { sectors };
        let sectors = if moves && random.below(10) == 0 { size - before.pointer as u64 } else { sectors };
        let near = if command == Write { before.pointer as u64 } else { 0 };
        let offset = if random.below(6) == 0 { random.below(size) } else { near.min(size - 1) };
        let conventional = number < words[at("ZBC_CONVENTIONAL")];
        let sectors = if conventional { sectors.min(size - offset) } else { sectors };
        let wanted = after(before, size, command, offset, sectors);
        let found = disk.zone_command(command, number * size + offset, sectors);
        refused += u32::from(found.is_none());
        let what = format!("turn {turn}: {command:?} of {sectors} at {offset} of zone {number}, {before:?}");
        holds!(found.is_some() == wanted.is_some(), "{what}: refused {}", found.is_none());
        let place = if command == Append { before.pointer as u64 } else { offset };
        holds!(found.is_none_or(|found| found == number * size + place), "{what}: at {found:?}");
        let now = disk.zone(number as usize);
        holds!(now == wanted.unwrap_or(before), "{what}: {now:?}");
        let (first, asked) = (random.below(size - 8), 8);
        let held = if conventional { asked } else { (now.data as u64).saturating_sub(first).min(asked) };
        let readable = disk.readable(number * size + first, asked);
        holds!(readable == held, "{what}: {readable} of {asked} sectors at {first} hold data, not {held}");
        if command == ResetAll {
            let dirty = (0..zones).filter(|zone| disk.zone(*zone as usize).pointer > 0).count();
            holds!(dirty == 0, "{what}: {dirty} zones are not empty");
        }
    }
    holds!((500..15_000).contains(&refused), "{refused} commands were refused");
    Ok(())
}

/// Zones say what is refused, and cost no time.
pub(super) fn times(make: Make) -> Result<(), String> {
    let zoned = table_of_zones();
    let mut plain = zoned;
    plain[at("ZBC_ZONES")] = 0;
    let took = |words: &Words| {
        let mut clock = Clock::new(make(words));
        clock.closed(4, 2_000, chunks(Operation::Write, 0, u64::MAX)).took_ns
    };
    let (with, without) = (took(&zoned), took(&plain));
    holds!(with == without, "2,000 writes take {with} ns with zones, and {without} without");
    Ok(())
}
