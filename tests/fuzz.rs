//! The entries of the fuzzers on seeds that are damaged at random: without coverage as a guide, but on any compiler. A few of
//! each always; with PICKFS_FUZZ_SECONDS as long as that says (`make fuzz`).

#[path = "../fuzz/entry.rs"]
mod entry;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::path::Path;
use std::time::{Duration, Instant};

const FEW: u64 = 40;

/// Files of these folders, and texts that the entry understands.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (folders, texts): (&[&str], &[&str]) = match name {
        "devices" => (&[], &[DEVICE]),
        "import" => (&["tests/fixtures/import", "fuzz/seeds/import"], &[]),
        "job" => {
            (&[], &["[global]\nrw=randread\nsize=1m\nioengine=psync\n[a]\nstonewall\n[b]\ninclude=x\ndirectory = /\n"])
        }
        "journal" => (&["tests/fixtures/journals"], &[]),
        "plan" => (&["examples"], &[]),
        _ => (&["tests/fixtures/journals"], PROTOCOL),
    };
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap().flatten());
    let files = files.filter(|entry| entry.metadata().is_ok_and(|found| found.is_file() && found.len() < 200_000));
    let mut found: Vec<Vec<u8>> = files.map(|entry| std::fs::read(entry.path()).unwrap()).collect();
    found.sort();
    found.into_iter().chain(texts.iter().map(|text| text.as_bytes().to_vec())).collect()
}

const DEVICE: &str = "{\"blockdevices\":[{\"name\":\"sdz\",\"path\":\"/dev/sdz\",\"kname\":\"sdz\",\"type\":\"disk\",\
    \"size\":1073741824,\"mountpoints\":[null],\"fstype\":null,\"serial\":\"S1\",\"wwn\":null,\"ro\":false,\"children\":[\
    {\"name\":\"sdz1\",\"path\":\"/dev/sdz1\",\"kname\":\"sdz1\",\"type\":\"part\",\"size\":1,\"mountpoints\":[\"/a\"],\
    \"fstype\":\"ext4\",\"serial\":null,\"wwn\":null,\"ro\":false}]}]}\0{\"blockdevices\":[{\"name\":\"sdz\",\
    \"path\":\"/dev/sdz\",\"kname\":\"sdz\",\"type\":\"disk\",\"size\":1,\"mountpoints\":[],\"ro\":false}]}\0\
    {\"signatures\":[{\"device\":\"sdz1\",\"type\":\"ext4\"}]}\0Filename Type\n/dev/sdz2 partition 1 0 -2\n";

const PROTOCOL: &[&str] = &[
    "{\"tell\":{\"end\":{\"cell\":\"c\",\"outcome\":{\"skipped\":[\"no mkfs\"]},\"at\":\"\"}}}\n\"written\"\n\"forget_cache\"\n",
    "{\"run\":\"r\",\"job\":{\"undo\":[{\"scope\":\"run\",\"number\":1,\"says\":\"x\",\"undo\":{\"unmount\":\"/run/pickfs-r\"}}]}}\n",
    "{\"run\":\"r\",\"job\":{\"check\":[{\"backing\":{\"device\":{\"path\":\"/dev/sdz\"}}}]},\"answers\":[\"boot\"]}\n",
    "{\"boot\":{\"module\":\"fs-ext4\",\"mount\":[\"mount\"],\"mount_point\":\"/m\",\"folder\":\"r\",\"ready\":\"u\",\"limit_ns\":1}}\n",
];

/// Bytes are turned, cut out, doubled, put in from other seeds; or a number becomes another.
fn damaged(seeds: &[Vec<u8>], random: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    let mut below = |most: usize| (random.next_u64() % most.max(1) as u64) as usize;
    let mut data = seeds[below(seeds.len())].clone();
    for _ in 0..=below(6) {
        let (at, length) = (below(data.len()), below(64));
        let end = (at + length).min(data.len());
        match below(6) {
            0 if at < data.len() => data[at] ^= 1 << below(8),
            1 => drop(data.drain(at.min(end)..end)),
            2 => {
                let piece = data[at.min(end)..end].to_vec();
                data.splice(at..at, piece);
            }
            3 => {
                let other = &seeds[below(seeds.len())];
                let from = below(other.len());
                data.splice(at..at, other[from..(from + length).min(other.len())].iter().copied());
            }
            4 => {
                let odd: &[&str] =
                    &["-1", "1e999", "18446744073709551616", "null", "\"\"", "[]", "{}", "NaN", "\0", "\n", "=", "é"];
                data.splice(at..at, odd[below(odd.len())].bytes());
            }
            _ => data.truncate(end),
        }
    }
    data
}

#[test]
fn nothing_that_is_read_brings_a_reader_down() {
    let seconds = std::env::var("PICKFS_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    for (name, entry) in entry::ALL {
        let (seeds, begun) = (seeds(name), Instant::now());
        assert!(!seeds.is_empty(), "{name}");
        seeds.iter().for_each(|seed| entry(seed));
        let goes_on = |number: u64| match seconds {
            Some(seconds) => begun.elapsed() < Duration::from_secs(seconds),
            None => number < FEW,
        };
        let mut number = 0;
        while goes_on(number) {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(number);
            let data = damaged(&seeds, &mut random);
            if let Err(panic) = std::panic::catch_unwind(|| entry(&data)) {
                let kept = std::env::temp_dir().join(format!("pickfs-{name}-{number}"));
                std::fs::write(&kept, &data).unwrap();
                eprintln!("{name}, number {number}: see {}", kept.display());
                std::panic::resume_unwind(panic);
            }
            number += 1;
        }
        println!("{name}: {number} inputs from {} seeds", seeds.len());
    }
}
