//! Whether quotas are on, and count what is there.

use crate::stage::Stage;
use anyhow::{Result, ensure};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use walkdir::WalkDir;

/// Bytes, and files and folders.
type Taken = [u64; 2];

/// Fails unless the kernel counts at least what root's files are seen to take; inodes without a
/// name may come to it.
pub(super) fn verify(stage: &mut Stage) -> Result<()> {
    let counted = stage.counted_of_root()?;
    let counted = [counted.bytes, counted.inodes];
    let at = stage.mount_point();
    let seen = stage.check("adding up what files take", || seen(&at))?;
    stage.fact(
        "quota of root",
        &format!("{} bytes in {} inodes; seen: {} in {}", counted[0], counted[1], seen[0], seen[1]),
    );
    ensure!(covers(counted, seen), "quotas count {counted:?} (bytes, inodes) of root's, and there are {seen:?}");
    Ok(())
}

fn covers(counted: Taken, seen: Taken) -> bool {
    counted.iter().zip(seen).all(|(counted, seen)| *counted >= seen)
}

fn seen(root: &Path) -> Result<Taken> {
    WalkDir::new(root).same_file_system(true).into_iter().try_fold([0, 0], |[bytes, inodes], entry| {
        let found = entry?.metadata()?;
        Ok(if found.uid() == 0 { [bytes + found.blocks() * 512, inodes + 1] } else { [bytes, inodes] })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_counted_is_found() {
        for (counted, seen, right) in
            [([9, 3], [9, 3], true), ([9, 5], [8, 3], true), ([8, 3], [9, 3], false), ([9, 2], [9, 3], false)]
        {
            assert_eq!(covers(counted, seen), right, "{counted:?} of {seen:?}");
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), vec![1; 5000]).unwrap();
        let [bytes, inodes] = seen(folder.path()).unwrap();
        let own = rustix::process::geteuid().is_root();
        assert_eq!((bytes >= 5000, inodes), if own { (true, 2) } else { (false, 0) });
    }
}
