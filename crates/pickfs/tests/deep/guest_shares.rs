//! Shared folders in real guests, whose kernel has a server of NFS and a client of each:
//! `make test-vm`.

use crate::common::{Lab, failed, no_guests, not_run};
use pickfs_core::journal::{FlagKind, FoldedCell, Outcome};

const PLAN: &str = "executor = 'vm'\nturn = 'shared'\nduplicate = false\nreference = 'ext4 + nfs'\nbacking = { memory = '160MiB' }\n\
                    target = [{ fs = 'ext4', above = ['nfs'] }, { fs = 'exfat', above = ['nfs'] },\n\
                    { fs = 'ext4', above = [{ nfs = { export = 'async', delay = '1ms' } }] },\n\
                    { fs = 'btrfs', above = ['9p'] }, { fs = 'btrfs', above = ['smb'] },\n\
                    { fs = 'ext4', above = [{ smb = { export = 'async', encryption = 'sealed' } }] }, { fs = 'ext4', above = [{ sshfs = { delay = '1ms' } }] }]\n\
                    work = [{ workload = 'tree', like = 'site', scale = 0.01 }]\nstop = { rounds = 1 }\n";

/// The third cannot be exported, so that its server has started in vain.
#[test]
#[ignore = "boots a guest for each of seven targets; `make test-vm`"]
fn a_folder_shared_by_nfs_is_read_cold_and_an_asynchronous_export_is_weakened() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(PLAN);
    let folded = lab.folded();
    let cell = |name: &str| folded.cells.iter().find(|cell| cell.target == name).expect("its cell");
    for (name, export, waits, network) in
        [("ext4 + nfs", "(sync,", "yes", false), ("ext4 + nfs 1ms async", "(async,", "no", true)]
    {
        let cell = cell(name);
        is_done_and_cold(cell);
        let fact = |name: &str| cell.provenance.facts.get(name).map(String::as_str).unwrap_or_default();
        assert!(fact("above: nfs").contains(" nfs4 ") && fact("above: nfs").contains("vers=4.2"), "{name}");
        assert!(fact("exports").contains(export), "{name}: {}", fact("exports"));
        assert_eq!(fact("network").contains("netem"), network, "{name}: {}", fact("network"));
        assert_eq!(fact("tried: fsync waits for the disk"), waits, "{name}");
        assert_eq!(cell.provenance.weakened.is_empty(), waits == "yes", "{name}");
    }
    for (name, waits) in
        [("btrfs + 9p", "yes"), ("btrfs + smb", "yes"), ("ext4 + smb sealed async", "no"), ("ext4 + sshfs 1ms", "yes")]
    {
        is_done_and_cold(cell(name));
        assert_eq!(cell(name).provenance.facts["tried: fsync waits for the disk"], waits, "{name}");
        assert_eq!(cell(name).provenance.weakened.is_empty(), waits == "yes", "{name}");
    }
    let refused = failed(cell("exfat + nfs"));
    assert!(refused.contains("share the folder of nfs"), "{refused}");
    lab.assert_nothing_left();
}

fn is_done_and_cold(cell: &FoldedCell) {
    assert_eq!(cell.outcome, Some(Outcome::Done), "{}", cell.target);
    assert!(cell.flags.iter().all(|flag| flag.flag != FlagKind::NotCold.name()), "{}: {:?}", cell.target, cell.flags);
}

/// Where all this takes less than a second, the kernel's server of NFS holds its file system
/// longer; sshd keeps no mark.
#[test]
#[ignore = "simulates three cells; `make test-vm`"]
fn shares_are_read_cold_on_simulated_disks() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    lab.run_plan(
        "executor = 'sim'\nreference = 'ext4 + nfs'\nbacking = { memory = '64MiB' }\n\
         target = [{ fs = 'ext4', above = ['nfs'] }, { fs = 'ext4', above = [{ nfs = { delay = '1ms' } }] },\n\
         { fs = 'ext4', above = [{ sshfs = { delay = '1ms' } }] }]\n\
         work = [{ workload = 'walk', like = 'site', files = 100, bytes = '1MiB' }]\nstop = { rounds = 1 }\n",
    );
    lab.folded().cells.iter().for_each(is_done_and_cold);
    lab.assert_nothing_left();
}
