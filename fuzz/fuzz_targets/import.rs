//! Any text as any foreign format: read, or refused, and what was read is shown by every format. The first byte chooses
//! the importer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pickfs::import::{ALL, File, Wanted, records};
use pickfs::journal::fold;
use pickfs::report;

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    let from = Some(ALL[usize::from(*first) % ALL.len()].name());
    let file = File { label: "fuzz", name: "fuzz", text: &text };
    let Ok(records) = records(&[file], Wanted { from, rounds: false }) else { return };
    let lines: Vec<String> = records.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
    let folded = fold(lines.join("\n").as_bytes()).unwrap();
    let Ok(model) = report::model(&folded) else { return };
    for format in report::ALL {
        format.write(&model, &mut std::io::sink()).unwrap();
    }
});
