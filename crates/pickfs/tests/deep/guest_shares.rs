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

/// exFAT cannot be exported, so that its server has started in vain.
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

/// A share with the port of its server.
const PORTS: &[(&str, u16)] =
    &[("'9p'", 564), ("'nfs'", 2049), ("'smb'", 445), ("{ sshfs = { delay = '1ms' } }", 2222)];

/// In the guest, where pickfs lies in `/pickfs`. Another server has the port first. Each
/// argument is a number of [`PORTS`] and its port.
const SCRIPT: &str = r#"
[ -z "$PICKFS_RUN" ] || exec env -u PICKFS_RUN -u PICKFS_CELL sh "$0" "$@"
export XDG_STATE_HOME=/tmp/state
mkdir -p /tmp/there /tmp/taken && cd /tmp
modprobe loop
ip link set lo up
wrong=
fail() { wrong="$wrong$*; "; }
state() {
    cut -d ' ' -f 1,2,3 /proc/mounts
    losetup --list --noheadings --output NAME,BACK-FILE
    ls -d /run/pickfs-* /dev/shm/pickfs-* /tmp/there/*
    tc qdisc show dev lo | cut -d ' ' -f 2
    exportfs -s
    ps -e -o stat=,pid=,comm= | sed -n '/^[^Z]/s/^[^ ]* *//p' | grep -E 'diod|mountd|nfsd|smbd|sshd'
    grep -lz '^PICKFS_RUN=' /proc/[0-9]*/environ
} 2> /dev/null
for row in "$@"; do
    IFS=, read -r number port <<END
$row
END
    diod -c /dev/null -n -l "127.0.0.1:$port" -e /tmp/taken || fail "$port cannot be taken"
    before=$(state)
    rm -f journal.jsonl
    /pickfs/start run "${0%/*}/share$number.toml" --journal journal.jsonl > out 2>&1
    said=$(grep '^{"end"' journal.jsonl)
    case $said in
        *'"failed"'*'Address already in use'*) ;;
        *) fail "share $number, whose port is taken: $said" ;;
    esac
    after=$(state)
    [ "$after" = "$before" ] || fail "share $number left: $(echo "$after" | grep -vxF -e "$before" | tr '\n' ';')"
done
pkill -x diod
[ -z "$wrong" ] || { echo "$wrong" >&2; exit 1; }
"#;

#[test]
#[ignore = "four runs in a guest; `make test-vm`"]
fn a_port_that_is_taken_is_a_failed_cell_and_nothing_is_left() {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    let targets: String = PORTS.iter().map(|(above, ..)| format!("{{ fs = 'ext4', above = [{above}] }}, ")).collect();
    let folder = lab.guest_of(&format!(
        "executor = 'vm'\nduplicate = false\nbacking = {{ memory = '48MiB' }}\ntarget = [{targets}]\n[[work]]\nworkload = 'meta.ok'\n"
    ));
    std::os::unix::fs::symlink(folder, lab.path("own")).expect("a link");
    let plans = lab.path("plans");
    std::fs::create_dir(&plans).expect("a folder");
    for (number, (above, ..)) in PORTS.iter().enumerate() {
        let backing = "backing = { image = { dir = '/tmp/there', size = '48MiB', direct = false } }";
        let target = format!("target = [{{ fs = 'ext4', above = [{above}] }}]");
        let plan =
            format!("duplicate = false\n{backing}\n{target}\n[[work]]\nworkload = 'meta.ok'\n[stop]\nrounds = 1\n");
        std::fs::write(plans.join(format!("share{number}.toml")), plan).expect("a plan");
    }
    std::fs::write(plans.join("taken.sh"), SCRIPT).expect("the script");
    let row = |(number, (_, port)): (usize, &(&str, u16))| format!("'{number},{port}'");
    let rows: Vec<String> = PORTS.iter().enumerate().map(row).collect();
    let said = lab.run_plan(&format!(
        "executor = 'vm'\nturn = 'shared'\nduplicate = false\nmachine = {{ kernel = './own', memory = '2GiB' }}\n\
         backing = {{ memory = '16MiB' }}\ntarget = [{{ fs = 'ext4' }}]\n\
         [[work]]\nworkload = 'command'\nsource = '{}'\nwrites = false\nstart = 'warm'\n\
         command = ['sh', '{{source}}/taken.sh', {}]\n[stop]\nrounds = 1\ncell = '1h'\n",
        plans.display(),
        rows.join(", ")
    ));
    assert_ne!(said.code, Some(2), "{}", said.err);
    let cell = &lab.folded().cells[0];
    // A clock that lags spoils times, and none is looked at here.
    let is_done = cell.outcome == Some(Outcome::Done);
    assert!(is_done || failed(cell).starts_with("the guest's clock counted"), "{:?}", cell.outcome);
    lab.assert_nothing_left();
}
