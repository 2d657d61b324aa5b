//! Verdicts of shipped journals and of five hundred random ones, computed a second time.

use crate::audit::{compared, hold, no_python};
use crate::common::not_run;
use std::path::Path;
use std::process::Command;

#[test]
fn the_recomputation_has_every_verdict_of_many_random_journals() {
    if !not_run(no_python()) {
        hold(12..512);
    }
}

#[test]
fn the_recomputation_has_every_verdict_of_shipped_journals() {
    if not_run(no_python()) {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["atlas", "fixtures/journals"].map(|folder| std::fs::read_dir(root.join(folder)).unwrap());
    let paths = folders.into_iter().flatten().map(|entry| entry.unwrap().path());
    let paths: Vec<_> = paths.filter(|path| path.to_string_lossy().contains(".jsonl")).collect();
    assert!(paths.len() >= 21, "{paths:?}");
    let mut with_several = 0;
    for path in paths {
        let journal = if path.extension().is_some_and(|kind| kind == "xz") {
            Command::new("xz").arg("-dc").arg(&path).output().unwrap().stdout
        } else {
            std::fs::read(&path).unwrap()
        };
        assert_eq!(compared(&journal, false), [""; 0], "{}", path.display());
        // The same with several processors, whose workers' time counts for nothing, and checked by
        // their number.
        let text = String::from_utf8(journal).expect("text");
        if text.contains("\"machine\":{") && !text.contains("\"processors\":") {
            let several = text.replace("\"machine\":{", "\"machine\":{\"processors\":8,");
            let several = several.replace("\"times\":2.0", "\"times\":1.0,\"processors\":16");
            assert_eq!(compared(several.as_bytes(), false), [""; 0], "{} with 8 processors", path.display());
            with_several += 1;
        }
    }
    assert!(with_several >= 3, "of {with_several} journals");
}
