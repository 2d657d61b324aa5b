//! A store as pages, in real Chromium: nothing on the console, no request, no complaint of
//! axe-core, readable on a phone and in the dark, without a server.

use crate::common::{Lab, no_browser, node, not_run, run};
use crate::made::Made;
use pickfs_core::journal::{Provenance, Record};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const KERNELS: [(&str, f64); 4] =
    [("5.10.0-46-amd64", 1.0), ("6.1.0-56-amd64", 1.01), ("6.12.117+deb13-amd64", 1.5), ("7.2.13-amd64", 1.5)];

/// A run on each kernel, by which `xfs` and a name that would be markup become slower with 6.12.
fn kernels(lab: &Lab) {
    std::fs::create_dir_all(lab.path("runs")).unwrap();
    for (at, (kernel, factor)) in KERNELS.into_iter().enumerate() {
        let path = lab.path(&format!("runs/{at}.jsonl"));
        let mut made = Made::new(&["ext4", "xfs", "<b>\"jfs"], &[1.2, 0.9 * factor, 1.6 * factor], 10, at as u64 + 1);
        (made.kernel, made.plan.executor) = (kernel, "local".into());
        let facts = [("host name".to_string(), "rack-1".to_string())].into();
        made.records.insert(0, Record::Provenance(Provenance { facts, ..Provenance::default() }));
        made.write(&path);
        let text = std::fs::read_to_string(&path).unwrap().replace("\"id\":\"made\"", &format!("\"id\":\"made{at}\""));
        // The newest kernel ran first: series are not in the order of days.
        std::fs::write(path, text.replace("2026-01-31", &format!("2026-02-{:02}", 9 - at))).unwrap();
    }
}

/// Pages of each kind, the first of each.
fn kinds(folder: &Path) -> Vec<String> {
    let first = |kind: &str| {
        let files = std::fs::read_dir(folder.join(kind)).unwrap().map(|entry| entry.unwrap().file_name());
        format!("{kind}/{}", files.map(|name| name.into_string().unwrap()).min().unwrap())
    };
    vec!["index.html".into(), first("on"), first("target")]
}

fn look(folder: &Path, pictures: &Path) -> BTreeMap<String, Vec<String>> {
    std::fs::create_dir_all(pictures).unwrap();
    let words = [vec![folder.to_path_buf(), pictures.to_path_buf()], kinds(folder).iter().map(PathBuf::from).collect()];
    serde_json::from_str(&node("site.mjs", &words.concat())).expect("what was found")
}

fn read(folder: &Path, kind: &str) -> String {
    let files = std::fs::read_dir(folder.join(kind)).unwrap().map(|entry| entry.unwrap().path());
    files.map(|file| std::fs::read_to_string(file).unwrap()).collect()
}

#[test]
fn a_site_is_as_it_should_be_in_chromium() {
    if not_run(no_browser()) {
        return;
    }
    let lab = Lab::new();
    kernels(&lab);
    lab.run(&["push", "store", "runs"]).code(0);
    lab.run(&["site", "store", "www"]).code(0);
    let (all, disclosures) = (read(&lab.path("www"), "on"), read(&lab.path("www"), "run"));
    assert!(all.contains("-disclosure.html") && disclosures.contains("<h2>Grade</h2>"), "{all}");
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("site");
    for (what, complaints) in look(&lab.path("www"), &pictures) {
        assert!(complaints.is_empty(), "{what}: {complaints:#?}");
    }
    println!("pictures in {}", pictures.display());
}

/// In the order of the kernels, marked where they changed, with the way to each run.
#[test]
fn times_over_kernels_are_on_the_pages() {
    let lab = Lab::new();
    kernels(&lab);
    lab.run(&["push", "store", "runs"]).code(0);
    lab.run(&["site", "store", "www"]).code(0);
    let front = std::fs::read_to_string(lab.path("www/index.html")).unwrap();
    let changes: Vec<&str> = front.split("▲").skip(1).map(|rest| rest.split("</li>").next().unwrap()).collect();
    assert_eq!(changes.len(), 2, "{changes:?}");
    assert!(
        changes.iter().all(|change| change.contains(" from 6.12.117 on") && !change.contains("ext4")),
        "{changes:?}"
    );
    assert!(changes.iter().any(|change| change.contains("xfs, tree")) && front.contains("+49\u{a0}%"), "{changes:?}");
    let pages = read(&lab.path("www"), "on");
    let series = pages.split("Over time").nth(1).expect("a series");
    let places: Vec<usize> = KERNELS.iter().map(|(kernel, _)| series.find(kernel).expect("a kernel")).collect();
    assert!(places.is_sorted(), "{places:?}");
    let links = series.split("href=\"#r-").skip(1).filter_map(|rest| rest.split('"').next());
    assert!(links.into_iter().all(|hash| pages.contains(&format!("id=\"r-{hash}\""))));
    assert!(!pages.contains("<b>"));
}

/// For docs/page: the site of the atlas that comes with pickfs, to be looked at.
#[test]
#[ignore = "makes the pictures of the documentation"]
fn screenshots() {
    if not_run(no_browser()) {
        return;
    }
    let lab = Lab::new();
    std::fs::create_dir(lab.path("runs")).unwrap();
    let atlas = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("atlas");
    run(&["cp", "-r", &atlas.display().to_string(), &lab.path("atlas").display().to_string()]);
    for file in std::fs::read_dir(lab.path("atlas")).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_some_and(|end| end == "xz") {
            run(&["xz", "--decompress", &file.display().to_string()]);
        }
    }
    lab.run(&["push", "store", "atlas"]).code(0);
    lab.run(&["site", "store", "www", "--title", "Which file system? The atlas of simulated disks"]).code(0);
    let made = lab.path("pictures");
    for (what, complaints) in look(&lab.path("www"), &made) {
        assert!(complaints.is_empty(), "{what}: {complaints:#?}");
    }
    let folder = std::env::var_os("PICKFS_SCREENSHOTS")
        .map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
    for name in ["site-1-laptop-light.png", "site-2-laptop-dark.png", "site-2-phone-light.png"] {
        std::fs::copy(made.join(name), folder.join(name)).unwrap();
    }
    println!("pictures in {}", folder.display());
}
