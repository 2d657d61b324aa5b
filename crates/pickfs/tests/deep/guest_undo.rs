//! Stacks of device mapper and md, and layers above with their servers, are taken down after any
//! crash: inside a guest, whole runs are killed at seeded moments, and what they had built is undone
//! as a host undoes it.

use crate::common::{Lab, failed, no_guests, not_run};
use pickfs_core::journal::Outcome;
use rand_core::{Rng, SeedableRng};

const SEED: u64 = 15;

/// Layers of a target, from below upwards, and on how many disks.
type Stack = (&'static str, u32);

const STACKS: &[Stack] = &[
    ("layers = [{ md = { level = 'raid1' } }, 'luks', 'lvm']", 2),
    ("layers = ['delay']", 1),
    ("layers = ['integrity']", 1),
    ("layers = ['luks']", 1),
    ("layers = [{ lvm = { stripes = 2 } }]", 2),
    ("layers = ['lvmcache']", 2),
    ("layers = ['lvmthin']", 1),
    ("layers = ['writecache']", 2),
    ("layers = [{ bcache = { mode = 'writeback', bucket = '64KiB' } }]", 2),
    ("layers = [{ md = { level = 'raid0' } }]", 2),
    ("layers = ['luks', { md = { level = 'raid1' } }]", 2),
];

const SHARES: &[Stack] = &[
    ("above = ['9p']", 1),
    ("above = ['nfs']", 1),
    ("above = ['smb']", 1),
    ("above = ['sshfs']", 1),
    ("above = ['bindfs', 'gocryptfs']", 1),
    ("above = [{ nfs = { delay = '1ms' } }]", 1),
    ("above = [{ sshfs = { delay = '1ms' } }]", 1),
];

/// In the guest, where pickfs lies in `/pickfs`. Each argument is one kill: stack, victim, the
/// share of the run's steps after which it comes and the milliseconds from there, and whether the
/// undoing is killed as well.
const BEGIN: &str = r#"
[ -z "$PICKFS_RUN" ] || exec env -u PICKFS_RUN -u PICKFS_CELL sh "$0" "$@"
export XDG_STATE_HOME=/tmp/state
mkdir -p /tmp/there && cd /tmp
modprobe -a loop dm_mod md_mod
fail() { echo "$*" >&2; echo "$*" > /dev/console; cat out >&2; exit 1; }
state() {
    cut -d ' ' -f 1,2,3 /proc/mounts
    grep '^md' /proc/mdstat
    losetup --list --noheadings --output NAME,BACK-FILE
    dmsetup ls
    vgs --noheadings --options vg_name
    ls -d /sys/fs/bcache/*-*
    ls -d /run/pickfs-* /dev/shm/pickfs-* /dev/md/* /dev/mapper/* /tmp/there/* 2> /dev/null
    grep . /proc/sys/vm/dirty_*
    grep -lz '^PICKFS_RUN=' /proc/[0-9]*/environ
    tc qdisc show dev lo
    exportfs -s
    ps -e -o stat=,pid=,comm= | sed -n '/^[^Z]/s/^[^ ]* *//p' | grep -E 'bindfs|diod|gocryptfs|mountd|nfsd|smbd|ssh'
    ps -e -o stat=,mntns=,netns=,pidns= | sed -n '/^[^Z]/s/^[^ ]* *//p' | sort -u
} 2> /dev/null
# What is killed with its namespace ends a little later than what is waited for.
is_as_before() {
    for _ in $(seq 50); do
        [ "$(state)" = "$before" ] && return
        sleep 0.1
    done
    return 1
}
new() { state | grep -vxF -e "$before" | tr '\n' ';'; }
steps() { taken=$(grep -c '^{"step"' journal.jsonl 2> /dev/null); echo "${taken:-0}"; }
start() {
    rm -f journal.jsonl
    /pickfs/start run "stack$1.toml" --journal journal.jsonl > out 2>&1 &
    host=$!
}
ip link set lo up
fresh=$(state)
count=0
while [ -e "${0%/*}/stack$count.toml" ]; do
    cp "${0%/*}/stack$count.toml" .
    start $count
    wait $host || fail "stack $count cannot be built"
    eval "total$count=$(steps)"
    count=$((count + 1))
done
before=$(state)
"#;

/// What cryptsetup leaves if it is killed between its two requests to the kernel: a mapping without
/// a table.
const TORN: &str = r#"
mkdir bin
cat > bin/cryptsetup <<'END'
#!/bin/sh
[ "$1" = open ] || exec env PATH="${PATH#*:}" cryptsetup "$@"
for name; do :; done
dmsetup create --notable "$name" && touch /tmp/torn
kill -9 $PPID
END
chmod +x bin/cryptsetup
PATH=/tmp/bin:$PATH start 0
wait $host
[ -e torn ] || fail "cryptsetup was not killed"
/pickfs/start clean > out 2>&1 || fail "a mapping without a table: clean failed"
is_as_before || fail "a mapping without a table: left $(new)"
"#;

/// Shares that nothing killed leave nothing either.
const WHOLE: &str = r#"
before=$fresh
is_as_before || fail "runs that ended left: $(new)"
"#;

const KILLS: &str = r#"
cut=0
for kill in "$@"; do
    IFS=, read -r stack victim share ms again <<END
$kill
END
    eval "total=\$total$stack"
    after=$((1 + total * share / 1000))
    start "$stack"
    while kill -0 $host 2> /dev/null && [ "$(steps)" -lt $after ]; do sleep 0.02; done
    sleep "0.$ms"
    agents=$(pgrep -P $host)
    kill -0 $host 2> /dev/null && [ -n "$agents" ] && cut=$((cut + 1))
    case $victim in
        host) kill -9 $host ;;
        agent) kill -9 $agents ;;
        both) kill -9 $host $agents ;;
    esac 2> /dev/null
    wait $host
    if [ "$again" = 1 ]; then
        /pickfs/start clean > out 2>&1 &
        host=$!
        sleep "1.$ms"
        kill -9 $(pgrep -P $host) $host 2> /dev/null
        wait $host
    fi
    /pickfs/start clean > out 2>&1 || fail "$kill, after $after of $total steps: clean failed"
    is_as_before || fail "$kill, after $after of $total steps, left: $(new)"
done
[ $((cut * 2)) -ge $# ] || fail "only $cut of $# kills came while an agent was at work"
echo "$cut of $# kills came while an agent was at work" > /dev/console
"#;

fn nested((target, disks): &Stack) -> String {
    let image = format!("dir = '/tmp/there', size = '48MiB', disks = {disks}, direct = false");
    format!(
        "duplicate = false\nbacking = {{ image = {{ {image} }} }}\n\
         [[target]]\nfs = 'ext4'\n{target}\n[[work]]\nworkload = 'meta.ok'\n[stop]\nrounds = 1\n"
    )
}

/// A folder with a kernel and a root that has the programs of all stacks.
fn furnish(lab: &Lab, stacks: &[Stack]) {
    let target = |(number, (target, disks)): (usize, &Stack)| {
        let backing = format!("backing = {{ image = {{ dir = '.', size = '48MiB', disks = {disks} }} }}");
        format!("[[target]]\nname = 't{number}'\nfs = 'ext4'\n{target}\n{backing}\n")
    };
    let targets: String = stacks.iter().enumerate().map(target).collect();
    let rest =
        "[[work]]\nworkload = 'meta.ok'\n[[work]]\nworkload = 'command'\ncommand = ['modprobe']\npackage = 'kmod'\n";
    let folder = lab.guest_of(&format!("executor = 'vm'\nduplicate = false\n{targets}{rest}"));
    std::fs::create_dir(lab.path("own")).expect("a folder");
    for entry in std::fs::read_dir(folder).expect("the guest").flatten() {
        std::os::unix::fs::symlink(entry.path(), lab.path("own").join(entry.file_name())).expect("a link");
    }
}

/// `script` is what the guest runs before the first kill, once each stack was built.
fn hold(stacks: &[Stack], kills: usize, script: &str) {
    if not_run(no_guests()) {
        return;
    }
    let lab = Lab::new();
    furnish(&lab, stacks);
    let plans = lab.path("plans");
    std::fs::create_dir(&plans).expect("a folder");
    for (number, stack) in stacks.iter().enumerate() {
        std::fs::write(plans.join(format!("stack{number}.toml")), nested(stack)).expect("a plan");
    }
    std::fs::write(plans.join("kill.sh"), [BEGIN, script, KILLS].concat()).expect("the script");
    let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(SEED);
    let mut one = |number: usize| {
        let (share, ms) = (random.next_u64() % 1000, random.next_u64() % 400);
        let victim = ["host", "agent", "both"][number % 3];
        format!("'{},{victim},{share},{ms:03},{}'", number % stacks.len(), usize::from(number % 4 == 3))
    };
    let arguments: Vec<String> = (0..kills).map(&mut one).collect();
    let said = lab.run_plan(&format!(
        "executor = 'vm'\nturn = 'shared'\nduplicate = false\nmachine = {{ kernel = './own', memory = '2GiB' }}\n\
         backing = {{ memory = '16MiB' }}\ntarget = [{{ fs = 'ext4' }}]\n\
         [[work]]\nworkload = 'command'\nsource = '{}'\nwrites = false\nstart = 'warm'\n\
         command = ['sh', '{{source}}/kill.sh', {}]\n[stop]\nrounds = 1\ncell = '3h'\n",
        plans.display(),
        arguments.join(", ")
    ));
    assert_ne!(said.code, Some(2), "{}", said.err);
    let folded = lab.folded();
    // A clock that lags spoils the times of a cell that was done otherwise, and none is looked at
    // here.
    let is_done = folded.cells[0].outcome == Some(Outcome::Done);
    assert!(
        is_done || failed(&folded.cells[0]).starts_with("the guest's clock counted"),
        "{:?}",
        folded.cells[0].outcome
    );
    println!("{kills} kills over {} stacks left nothing", stacks.len());
    lab.assert_nothing_left();
}

#[test]
fn a_stack_of_md_luks_and_lvm_is_taken_down_after_a_crash() {
    hold(&STACKS[..1], 2, TORN);
}

#[test]
#[ignore = "kills two dozen runs in a guest; `make test-vm`"]
fn every_layer_is_taken_down_after_a_crash() {
    hold(STACKS, 24, TORN);
}

/// An agent that outlives its host has undone all that is undone again.
#[test]
#[ignore = "kills ten runs in a guest; `make test-vm`"]
fn a_folder_shared_by_nfs_is_taken_down_after_a_crash() {
    hold(&SHARES[1..2], 10, WHOLE);
}

#[test]
#[ignore = "kills thirty runs in a guest; `make test-vm`"]
fn shares_and_encrypted_folders_are_taken_down_after_a_crash() {
    let kills = std::env::var("PICKFS_KILLS").ok().and_then(|text| text.parse().ok());
    hold(SHARES, kills.unwrap_or(30), WHOLE);
}
