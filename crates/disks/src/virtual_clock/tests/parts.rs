//! The parts of requests' times: they sum to the time, and are what the model has done.

use super::*;
use crate::models::ALL;
use pickfs_system::sys::disk_model::{PARTS, Part};

pub(super) fn sum(parts: &[u64; PARTS], asked: &Asked, time: u64) -> Result<(), String> {
    let sum = parts.iter().fold(0u64, |sum, part| sum.wrapping_add(*part));
    holds!(sum == time, "the parts {parts:?} of {asked:?} sum to {sum}, and it took {time}");
    holds!(parts.iter().all(|part| *part <= time), "the parts {parts:?} of {asked:?}, which took {time}");
    Ok(())
}

#[test]
fn parts_of_random_requests_sum_to_their_times_on_each_model() {
    for name in ALL.iter().map(|entry| entry.name) {
        let disk = find(name).expect("a disk");
        for words in [disk.words(0, 0).expect("words"), with_less(name, disk.words(0, 0).expect("words"))] {
            for seed in 0..2 {
                Play::new(&ours, &words, seed).play(3000).unwrap_or_else(|why| panic!("{name}, seed {seed}: {why}"));
            }
        }
    }
}

/// One request to a disk that rests, and its time.
fn alone(clock: &mut Clock, asked: Asked) -> [u64; PARTS] {
    // Longer than any disk writes its cache, or cleans a band.
    clock.now += 200_000_000_000;
    clock.disk.wake(clock.now);
    let time = clock.closed(1, 1, || asked).times[0];
    let parts = clock.disk.parts(0);
    sum(&parts, &asked, time).expect("a sum");
    parts
}

/// The rest would be in the queue, too.
#[test]
fn a_request_to_a_disk_that_rests_waits_for_no_other() {
    for name in ALL.iter().map(|entry| entry.name) {
        let words = table(name);
        let (mut clock, mut random) = (Clock::new(ours(&words)), Random(5));
        let pages = words[at("SECTORS")] / PAGE;
        for number in 0..400 {
            let operation =
                [Operation::Read, Operation::Write, Operation::Flush, Operation::Trim][random.below(4) as usize];
            let pieces = 1 + random.below(200);
            let place = (random.below(pages - pieces) * PAGE, pieces * PAGE);
            let (first, sectors) = if operation == Operation::Flush { (0, 0) } else { place };
            let forced = operation == Operation::Write && number % 3 == 0;
            let found = alone(&mut clock, Asked { operation, forced, first, sectors });
            assert_eq!(found[Part::Queue as usize], 0, "{name} {number}: {operation:?} {forced} {found:?}");
            assert_eq!(found[Part::Controller as usize] > 0, name != "none", "{name} {number}: {found:?}");
        }
    }
}

#[test]
fn the_parts_of_a_read_are_those_of_its_kind_of_disk() {
    let read = |first| asked(Operation::Read, first, PAGE);
    let words = table("hdd-7200");
    let mut clock = Clock::new(ours(&words));
    alone(&mut clock, read(0));
    let far = words[at("SECTORS")] / 2 / PAGE * PAGE;
    let found = alone(&mut clock, read(far));
    let seek = clock.disk.seek_ns(cylinder(&words, far) - cylinder(&words, PAGE));
    let of = |part: Part| found[part as usize];
    assert!((seek..seek + words[at("HEAD_SWITCH_NS")] + 1).contains(&of(Part::Seek)), "{found:?} {seek}");
    assert!(of(Part::Turn) < words[at("TURN_NS")], "{found:?}");
    assert!(of(Part::Transfer) > 0 && of(Part::Link) == 0 && of(Part::Die) == 0, "{found:?}");
    let again = alone(&mut clock, read(far));
    assert_eq!(again[Part::Seek as usize..=Part::Transfer as usize], [0; 3], "out of the disk's cache");
    assert!(again[Part::Link as usize] > 0);

    let words = table("nvme");
    let found = alone(&mut Clock::new(ours(&words)), read(0));
    let of = |part: Part| found[part as usize];
    assert_eq!(of(Part::Die), words[at("READ_NS")]);
    assert_eq!(of(Part::Transfer), PAGE * words[at("CHANNEL_PS")] / 1000);
    assert_eq!(of(Part::Link), words[at("FRAMES_NS")] + PAGE * words[at("LINK_PS")] / 1000);
    let found = alone(&mut Clock::new(ours(&words)), asked(Operation::Read, 0, CHUNK));
    assert_eq!(found[Part::Queue as usize], 0, "its pages do not wait for others");
}

/// Flushes have what they wrote, and two reads of one place wait for each other.
#[test]
fn who_waits_for_what_has_its_parts() {
    let mut clock = Clock::new(ours(&table("hdd-7200")));
    clock.closed(1, 40, chunks(Operation::Write, 0, 1 << 20));
    clock.closed(1, 1, || asked(Operation::Flush, 0, 0));
    let found = clock.disk.parts(0);
    let of = |part: Part| found[part as usize];
    assert!(of(Part::Transfer) > of(Part::Turn) && of(Part::Turn) > 0 && of(Part::Flush) > 0, "{found:?}");

    let mut clock = Clock::new(ours(&table("hdd-7200")));
    clock.closed(2, 2, || asked(Operation::Read, 1 << 20, PAGE));
    let queues = [0, 1].map(|tag| clock.disk.parts(tag)[Part::Queue as usize]);
    assert!(queues.contains(&0) && queues.iter().any(|queue| *queue > 0), "{queues:?}");
}

/// A drive that is full copies before it programs, and one that is not has room. 32 writes come at
/// once, so most of their time is the queue.
#[test]
fn garbage_collection_is_a_part_of_its_own() {
    let divided = |filled: f64| {
        let words = find("sata-ssd").expect("a disk").used(0, 1 << 20, filled).expect("words");
        let (mut clock, mut random) = (Clock::new(ours(&words)), Random(3));
        let mut sums = [0; PARTS];
        for _ in 0..1000 {
            clock.closed(32, 32, || asked(Operation::Write, random.below((1 << 20) / PAGE) * PAGE, PAGE));
            for tag in 0..32 {
                sums.iter_mut().zip(clock.disk.parts(tag)).for_each(|(sum, part)| *sum += part);
            }
        }
        [Part::Collection, Part::Die].map(|part| sums[part as usize])
    };
    let [fresh, [collection, die]] = [0.0, 1.0].map(divided);
    assert!(fresh == [0, 0] && collection > die && die > 0, "{fresh:?} {collection} {die}");
}
