//! Any text as a journal: folded, judged, shown by every format, and compared with itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pickfs::journal::fold;
use pickfs::wording::between_runs;
use pickfs::{analysis, render};

fuzz_target!(|data: &[u8]| {
    let folded = fold(data).unwrap();
    let Ok(model) = analysis::model(&folded) else { return };
    for format in render::ALL {
        format.write(render::Document::Run(&model), &Default::default(), &mut std::io::sink()).unwrap();
    }
    let Some(run) = &folded.run else { return };
    assert!(
        between_runs::differences((run, &folded), (run, &folded)).is_empty()
            || run.plan.targets.is_empty()
            || run.plan.works.is_empty()
    );
    between_runs::comparison((run, &folded), (run, &folded), 0.05);
});
