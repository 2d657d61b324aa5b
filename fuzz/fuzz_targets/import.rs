//! Any text as every foreign format: read, or refused, and what was read is shown by every format.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pickfs::import::{ALL, File, Wanted, records};
use pickfs::journal::fold;
use pickfs::{analysis, render};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    for importer in ALL {
        let file = File { label: "fuzz", name: "fuzz", text: &text };
        let Ok(records) = records(&[file], Wanted { from: Some(importer.name()), rounds: false }) else { continue };
        let lines: Vec<String> = records.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
        let folded = fold(lines.join("\n").as_bytes()).unwrap();
        let Ok(model) = analysis::model(&folded) else { continue };
        for format in render::ALL {
            format.write(render::Document::Run(&model), &Default::default(), &mut std::io::sink()).unwrap();
        }
    }
});
