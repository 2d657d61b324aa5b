//! What a PostgreSQL server leaves that was killed.

use crate::stack::argv;
use crate::stack::take_down::{Act, Named, Removal, TakeDown, There};

/// The small segment of System V shared memory that a server leaves when it is killed: by it a
/// second server would see that the first still runs. Only what the noted server made itself, as
/// the number may have been given again, and what belongs to the user that wrote the note.
pub(crate) const SEGMENT: TakeDown = TakeDown {
    word: "remove_segment",
    named: Named::InNote("postmaster.pid"),
    removals: |remains| {
        let (note, owner) = remains.note;
        let Some((server, segment)) = noted_segment(note) else { return Vec::new() };
        let is_there = move |all: &str| is_made_by(all, segment, [server, owner]);
        let there = There::Listed(argv(["cat", "/proc/sysvipc/shm"]), Box::new(is_there));
        let act = Act::Run(argv(["ipcrm", "--shmem-id", &segment.to_string()]));
        vec![Removal { while_there: there, act }]
    },
};

/// Process and segment: the first line, and the last number of the seventh.
fn noted_segment(note: &str) -> Option<(u32, u32)> {
    let mut lines = note.lines();
    let server = lines.next()?.trim().parse().ok()?;
    Some((server, lines.nth(5)?.split_ascii_whitespace().nth(1)?.parse().ok()?))
}

/// By fields 5 and 8, process and user (sysvipc(7)).
fn is_made_by(all: &str, segment: u32, [process, user]: [u32; 2]) -> bool {
    all.lines().any(|row| {
        let fields: Vec<u32> = row.split_ascii_whitespace().map(|field| field.parse().unwrap_or(u32::MAX)).collect();
        fields.len() > 7 && (fields[1], fields[4], fields[7]) == (segment, process, user)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::Own;
    use pickfs_core::journal::{Scope, StepTaken};
    use pickfs_core::protocol::Link;

    #[test]
    fn a_segment_goes_with_the_server_that_made_it_and_no_other_does() {
        use std::process::{Command, Stdio};
        let made = Command::new("ipcmk").args(["-M", "4096"]).stdout(Stdio::piped()).spawn();
        let made = made.expect("ipcmk of util-linux");
        let server = made.id();
        let printed = String::from_utf8(made.wait_with_output().unwrap().stdout).unwrap();
        let segment: u32 = printed.split_whitespace().next_back().unwrap().parse().unwrap();
        let is_there = || {
            let all = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
            is_made_by(&all, segment, [server, rustix::process::geteuid().as_raw()])
        };
        let folder = tempfile::tempdir().unwrap();
        let cluster = folder.path().canonicalize().unwrap().join("pickfs-0123456789ab/cluster");
        std::fs::create_dir_all(&cluster).unwrap();
        // As journals have had it from the first version on.
        let undo = format!(r#"{{"remove_segment":"{}"}}"#, cluster.join("postmaster.pid").display());
        let undo = serde_json::from_str(&undo).unwrap();
        let step =
            StepTaken { scope: Scope::Run, number: 1, says: "start".into(), does: String::new(), undo: Some(undo) };
        let own = Own { run: "0123456789ab", disks: &[], take_downs: &[&SEGMENT] };
        let note = |server: u32| {
            let noted = format!("{server}\n/d\n1795253383\n5432\n/s\n\n  9775883   {segment}\nready   \n");
            std::fs::write(cluster.join("postmaster.pid"), noted).unwrap();
        };
        for (noted, stays) in [(server + 1, true), (server, false), (server, false)] {
            note(noted);
            crate::steps::undo_all(&own, std::slice::from_ref(&step), &mut Link::to_nobody()).unwrap();
            assert_eq!(is_there(), stays, "{noted}");
        }
    }
}
