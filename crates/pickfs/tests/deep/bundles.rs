//! Honest runs break no rule: packed by `pickfs share` and audited, of whatever kind, on however
//! busy a machine.

use crate::audit::no_python;
use crate::common::{Lab, no_guests, not_run};
use pickfs_system::need::{Need, missing};
use std::path::PathBuf;

/// Words of `pickfs run`; each is a bundle.
const NATIVE: &[&str] = &[
    "--fs ext4,ext2 --rounds 1",
    "--fs ext4,xfs:noatime --rounds 2 --seed 42",
    "--fs btrfs,btrfs:zstd:1,ext4 --rounds 3 --like mail",
    "--fs zfs,nilfs2,ext4 --rounds 2",
    "--fs ext4,xfs --budget 20s",
    "--fs ext4,btrfs --precision 50% --workload walk --budget 30s",
    "--fs ext4,ext4:nobarrier --rounds 3 --workload walk",
    "--fs ext4,btrfs --rounds 2 --require snapshots --workload walk",
    "--fs ext4,btrfs --rounds 2 --fill 20%",
    "--fs ext4,xfs --rounds 6 --workload check",
];
const SIMULATED: &str = "--sim nvme --fs ext4,xfs,btrfs --rounds 1 --like site --scale 0.001 --size 512MiB";

/// Packs a journal and audits it; what is broken.
fn broken(lab: &Lab, journal: &str) -> Option<String> {
    let bundle = format!("{journal}.tar.gz");
    lab.run(&["share", journal, "-o", &bundle]).code(0);
    let said = lab.run(&["audit", &bundle]);
    println!("{journal}: {}", said.out.lines().next().unwrap_or(&said.err));
    let is_whole = said.out.starts_with("By the rules") || said.out.starts_with("Open");
    (!is_whole).then(|| format!("{journal}: {}{}", said.out, said.err))
}

/// `PICKFS_JOURNALS` names a folder with more.
#[test]
#[ignore = "ten runs here and one in a guest: make test-all"]
fn honest_runs_break_no_rule() {
    if not_run(no_python()) {
        return;
    }
    let lab = Lab::new();
    let mut made: Vec<String> = Vec::new();
    let mut run = |words: &str, small: &[&str]| {
        let journal = format!("run{}.jsonl", made.len());
        let words: Vec<&str> = words.split(' ').chain(small.iter().copied()).collect();
        lab.run(&[&["run", "--journal", &journal], &words[..]].concat()).code(0);
        made.push(journal);
    };
    if !not_run(missing(&[Need::Root]).first().map(ToString::to_string)) {
        let sizes = |words: &str| if words.contains("--like") { &[][..] } else { &["--like", "site"][..] };
        let small = ["--memory", "--size", "512M", "--scale", "0.002"];
        NATIVE.iter().for_each(|words| run(words, &[&small[..], sizes(words)].concat()));
    }
    if !not_run(no_guests()) {
        run(SIMULATED, &[]);
    }
    let more = std::env::var_os("PICKFS_JOURNALS").map(PathBuf::from);
    for entry in more.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap()) {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        std::fs::copy(&path, lab.path(&name)).unwrap();
        made.push(name);
    }
    let found: Vec<String> = made.iter().filter_map(|journal| broken(&lab, journal)).collect();
    println!("{} bundles, {} with a breach", made.len(), found.len());
    assert!(!made.is_empty() && found.is_empty(), "{}", found.join("\n"));
}
