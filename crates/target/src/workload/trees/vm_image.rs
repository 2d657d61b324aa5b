//! A disk of a virtual machine: an image on the file system under test, with a file system inside
//! that is installed to, written to at random, read cold and discarded, and a clone of the image.
//!
//! The phases inside are durable through both file systems, and cold at both.

use super::blocks::BLOCK;
use super::{Dataset, Staged, text};
use crate::stack::fs::{self, Filesystem};
use crate::stack::{Argv, argv, backing};
use crate::stage::{AfterPhase, DiskImage, Latencies, OpenDisk, Program, Stage, Timed};
use crate::workload::room::Room;
use crate::workload::settings::{Count, Size, choice, settings};
use crate::workload::{Description, Workload, described, programs};
use anyhow::{Context, Result, ensure};
use pickfs_core::journal::FlagKind;
use pickfs_core::plan::{Objection, Settings};
use pickfs_system::need::Need;
use pickfs_system::random::Random;
use pickfs_system::units::show_bytes;
use pickfs_trees::Modes;
use std::cell::{Cell, OnceCell};
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

pub(crate) struct VmImage;

choice! { Format { Sparse = "raw-sparse", Allocated = "raw-prealloc", Qcow2 = "qcow2" } }
choice! { Inner { Ext4 = "ext4", Xfs = "xfs", Btrfs = "btrfs" } }
choice! { Cache { Direct = "direct", WriteBack = "writeback" } }
choice! { Served { Loop = "loop", Qemu = "qemu" } }

settings! {
    Disk {
        format: Format = "raw-sparse", "format of the image";
        cluster: Size, "bytes of a cluster of qcow2, a power of two from 512 to 2MiB; 64KiB by default";
        size: Size = "1GiB", "bytes of the disk inside";
        inner: Inner = "ext4", "the file system inside";
        cache: Cache = "direct",
            "`direct` passes by the page cache of the file system under test, as QEMU's cache=none; `writeback` uses it";
        served: Served, "`loop`: by the kernel, a raw image; `qemu`: by QEMU's block layer. The first that can is the default";
        database: Size = "256MiB", "bytes of the file inside that is written to at random";
        writes: Count<1> = "2000", "blocks of 4 KiB that each phase writes into it";
        fsync: Count<1> = "1", "writes between two calls of fdatasync";
    }
}

/// The share of a disk that its own file system may take.
const OF_INNER: f64 = 0.2;
/// The share of what is inside that a cold read must have brought from the disk inside.
const SEEN: f64 = 0.9;
/// With less than this, a file system is full.
const ROOM: u64 = 1 << 20;

impl Workload for VmImage {
    fn description(&self) -> &'static Description {
        described!("vm_image.toml", [Disk::ROWS, Dataset::ROWS], Dataset::of)
    }

    fn needs(&self, settings: &Settings) -> Vec<Need> {
        let disk = Disk::of(settings);
        let own = [("cp", "coreutils"), ("fstrim", "util-linux"), ("tar", "tar"), ("umount", "mount")];
        let mut needs = [backing::LOOP.to_vec(), disk.inner().needs(), programs(&own)].concat();
        if disk.is_served_by_qemu() {
            needs.extend(programs(&[("qemu-storage-daemon", "qemu-system-common")]));
            needs
                .push(Need::File { path: "/dev/fuse", hint: "`modprobe fuse`; in a container, let it have /dev/fuse" });
        }
        if disk.format == Format::Qcow2 {
            needs.extend(programs(&[("qemu-img", "qemu-utils")]));
        }
        needs
    }

    fn versions(&self, settings: &Settings) -> Vec<(&'static str, Argv)> {
        let server = "qemu-storage-daemon";
        Disk::of(settings).is_served_by_qemu().then(|| (server, argv([server, "--version"]))).into_iter().collect()
    }

    fn objections(&self, settings: &Settings) -> Vec<Objection> {
        let dataset = Dataset::of(settings);
        let own = Disk::of(settings).objections(dataset.bytes().unwrap_or_default());
        dataset.objections().into_iter().chain(own).collect()
    }

    fn run(&self, stage: &mut Stage, settings: &Settings) -> Result<()> {
        let disk = Disk::of(settings);
        let source = Dataset::of(settings).staged(stage.place())?;
        let played = play(stage, &disk, &source);
        // The kernel says of a disk that cannot grow only that its writes failed.
        let left = Room::at(&stage.root()).map_or(u64::MAX, |room| room.unused);
        played.map_err(|error| {
            if left < ROOM {
                error.context(format!(
                "the file system under test is full, with {} free; give the backing more room, or the disk less `size`",
                show_bytes(left as f64)
            ))
            } else {
                error
            }
        })
    }
}

fn play(stage: &mut Stage, disk: &Disk, source: &Staged) -> Result<()> {
    let image = disk.image(stage.root().join("image"));
    let mut database = Database::new(disk);
    let content = source.bytes + disk.database;
    stage.phase_then("create", |p| disk.create(p, &image.file), |p, ()| say_allocated(p, &image))?;
    let open = stage.open_disk(&image)?;
    write_inside(stage, "install", &open, content, |p| {
        open.make().iter().try_for_each(|words| p.command(words))?;
        p.command(["cp", "-a", &text(&source.folder), &text(&tree(&open))])?;
        p.own(|| database.lay_out(&open.root))
    })?;
    write_inside(stage, "write", &open, disk.written(), |p| database.write(p, &open.root, disk))?;
    stage.close_disk(open)?;
    for _ in stage.repeats() {
        read(stage, &image, content, disk.database)?;
    }
    let open = stage.open_mounted(&image)?;
    stage.check("reading back what is inside", || {
        source.verify(&tree(&open), Modes::Kept)?;
        database.verify(&open.root)
    })?;
    discard(stage, &open)?;
    stage.close_disk(open)?;
    let clone = DiskImage { file: image.file.with_extension("clone"), ..image.clone() };
    let mut cloned = database.clone();
    let words = ["cp", "--reflink=auto", "--sparse=auto", &text(&image.file), &text(&clone.file)];
    let (at, before) = (stage.root(), Room::at(&stage.root())?.unused);
    let copied = |p: &mut AfterPhase, ()| {
        let taken = before.saturating_sub(Room::at(&at)?.unused);
        p.reads_at_least_stored(read_by_copy(taken, allocated(&clone)?).min(disk.database));
        say_allocated(p, &clone)
    };
    stage.phase_then("clone", |p| p.command(words), copied)?;
    for (phase, image, database) in [("write-clone", &clone, &mut cloned), ("write-held", &image, &mut database)] {
        let open = stage.open_mounted(image)?;
        write_inside(stage, phase, &open, disk.written(), |p| database.write(p, &open.root, disk))?;
        stage.close_disk(open)?;
    }
    // Each again, once both were written to.
    for (image, database) in [(&clone, &cloned), (&image, &database)] {
        let open = stage.open_mounted(image)?;
        stage.check("reading back the database", || database.verify(&open.root))?;
        stage.close_disk(open)?;
        if disk.format == Format::Qcow2 {
            stage.run(&Program::new(["qemu-img", "check", "-q", "-f", "qcow2", &text(&image.file)]))?;
        }
    }
    Ok(())
}

fn tree(disk: &OpenDisk) -> PathBuf {
    disk.root.join("tree")
}

/// A phase that writes `bytes` inside, and what that came to at both levels.
fn write_inside(
    stage: &mut Stage,
    phase: &str,
    disk: &OpenDisk,
    bytes: u64,
    work: impl FnOnce(&mut Timed) -> Result<()>,
) -> Result<()> {
    let before = Cell::new(None);
    let ready = |_: &mut Stage| {
        before.set(disk.written());
        Ok(())
    };
    let durable = |p: &mut Timed| {
        p.handled(bytes, 0);
        work(p)?;
        p.own(|| disk.sync())
    };
    stage.phase_once(phase, ready, durable, |p, ()| {
        if let Some((before, now)) = before.get().zip(disk.written()) {
            p.say("inner_write_bytes", (now[0] - before[0]) as f64);
            p.say("write_amplification", (now[1] - before[1]) as f64 / bytes as f64);
        }
        say_allocated(p, &disk.image)
    })
}

/// Opened and mounted when the caches are cold, untimed. `least` bytes cannot be compressed.
fn read(stage: &mut Stage, image: &DiskImage, content: u64, least: u64) -> Result<()> {
    let open = OnceCell::new();
    let ready = |stage: &mut Stage| {
        let disk = stage.open_mounted(image)?;
        let _ = open.set(disk);
        Ok(())
    };
    stage.phase_once(
        "read",
        ready,
        |p| {
            let disk: &OpenDisk = open.get().context("the disk is not open")?;
            let before = disk.read_inside().unwrap_or_default();
            p.handled(content, 0);
            p.reads_at_least_stored(least);
            let given = p.discarded(["tar", "-c", "-C", &text(&disk.root), "."])?;
            ensure!(given >= content, "tar gave {given} bytes of at least {content}");
            let seen = disk.read_inside().unwrap_or_default() - before;
            p.say("inner_read_bytes", seen as f64);
            if (seen as f64) < SEEN * content as f64 {
                p.doubt(FlagKind::NotCold, format!("the disk inside gave {seen} bytes of at least {content}"));
            }
            Ok(())
        },
        |_, ()| Ok(()),
    )?;
    open.into_inner().map_or(Ok(()), |disk| stage.close_disk(disk))
}

/// Removes the tree, untimed, and gives its room back to the file system under test.
fn discard(stage: &mut Stage, disk: &OpenDisk) -> Result<()> {
    stage.lay_out("removing the tree inside", |_| {
        std::fs::remove_dir_all(tree(disk))?;
        disk.sync()
    })?;
    let (at, allocated) = (stage.root(), allocated(&disk.image)?);
    let before = Room::at(&at)?.unused;
    stage.phase_then(
        "discard",
        |p| {
            p.command(["fstrim", &text(&disk.root)])
                .context("it takes a file system under test that can punch holes into files")?;
            p.own(|| disk.sync())
        },
        |p, ()| {
            p.say("image_before_bytes", allocated as f64);
            p.say("freed_bytes", Room::at(&at)?.unused as f64 - before as f64);
            say_allocated(p, &disk.image)
        },
    )
}

fn say_allocated(p: &mut AfterPhase, image: &DiskImage) -> Result<()> {
    p.say("image_bytes", allocated(image)? as f64);
    Ok(())
}

/// Bytes that a copy must have read which has taken this much new room: half of it, as metadata is
/// part of it too; of several copies of each block less than they take. One that shares its blocks
/// takes little, and may read nothing.
fn read_by_copy(taken: u64, allocated: u64) -> u64 {
    if taken < allocated / 2 { 0 } else { taken / 2 }
}

/// Bytes, as `du` counts them: stat(2) has blocks of 512.
fn allocated(image: &DiskImage) -> Result<u64> {
    Ok(image.file.metadata()?.blocks() * 512)
}

impl Disk {
    /// Of a cluster in QEMU (docs/interop/qcow2.txt there).
    const CLUSTERS: std::ops::RangeInclusive<u64> = 512..=2 << 20;

    fn inner(&self) -> &'static Filesystem {
        fs::find(self.inner.word()).expect("each of them is one of ours, which a test holds")
    }

    fn is_served_by_qemu(&self) -> bool {
        self.format == Format::Qcow2 || self.served == Some(Served::Qemu)
    }

    fn image(&self, file: PathBuf) -> DiskImage {
        let format = if self.format == Format::Qcow2 { "qcow2" } else { "raw" };
        let direct = self.cache == Cache::Direct;
        DiskImage { file, inner: self.inner(), direct, format: self.is_served_by_qemu().then_some(format) }
    }

    /// Bytes that a phase writes into the database.
    fn written(&self) -> u64 {
        self.writes * BLOCK as u64
    }

    fn create(&self, p: &mut Timed, file: &Path) -> Result<()> {
        if self.format == Format::Qcow2 {
            let cluster = format!("cluster_size={}", self.cluster.unwrap_or(64 << 10));
            let (file, size) = (text(file), self.size.to_string());
            return p.command(["qemu-img", "create", "-q", "-f", "qcow2", "-o", &cluster, &file, &size]);
        }
        p.own(|| {
            let made = File::create_new(file)?;
            if self.format == Format::Allocated {
                let all = rustix::fs::fallocate(&made, rustix::fs::FallocateFlags::empty(), 0, self.size);
                all.context("there is no room for the image, or the file system allocates none (fallocate)")?;
            }
            Ok(made.set_len(self.size)?)
        })
    }

    fn objections(&self, tree: u64) -> Vec<Objection> {
        let (mut found, show) = (Vec::new(), |bytes: u64| show_bytes(bytes as f64));
        let (content, least) = (tree + self.database, self.inner().limits.least);
        if content as f64 > self.size as f64 * (1.0 - OF_INNER) || self.size < least {
            let (size, content) = (show(self.size), show(content));
            let message = format!("a disk of {size} is too small for {} with {content}", self.inner.word());
            found.push(Objection::new("size", message, "give a larger `size`, or a smaller tree or `database`"));
        }
        if self.database < BLOCK as u64 {
            found.push(Objection::new("database", "it holds no block of 4 KiB".into(), "give more, such as 256MiB"));
        }
        match self.cluster {
            Some(_) if self.format != Format::Qcow2 => {
                let message = format!("`{}` has no clusters", self.format.word());
                found.push(Objection::new("cluster", message, "leave it out, or take format = \"qcow2\""));
            }
            Some(bytes) if !bytes.is_power_of_two() || !Disk::CLUSTERS.contains(&bytes) => {
                let message = format!("{bytes} bytes are no cluster of qcow2");
                found.push(Objection::new("cluster", message, "give a power of two from 512 to 2MiB, such as 64KiB"));
            }
            _ => {}
        }
        if self.format == Format::Qcow2 && self.served == Some(Served::Loop) {
            let message = "the kernel knows no qcow2".to_string();
            found.push(Objection::new("served", message, "leave it out, or take served = \"qemu\""));
        }
        found
    }
}

/// A file of blocks, each of which holds what was written to it last, and nothing that can be
/// compressed.
#[derive(Clone)]
struct Database {
    /// How often each was written.
    generations: Vec<u64>,
}

impl Database {
    fn new(disk: &Disk) -> Database {
        Database { generations: vec![0; disk.database as usize / BLOCK] }
    }

    fn content(&self, block: usize) -> [u8; BLOCK] {
        let mut content = [0; BLOCK];
        Random::new(block as u64, self.generations[block]).fill(&mut content);
        content
    }

    fn lay_out(&self, folder: &Path) -> Result<()> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create_new(folder.join("database"))?);
        (0..self.generations.len()).try_for_each(|block| file.write_all(&self.content(block)))?;
        Ok(file.into_inner()?.sync_data()?)
    }

    /// Durable at both after each `fsync` of them, as a database commits.
    fn write(&mut self, p: &mut Timed, folder: &Path, disk: &Disk) -> Result<()> {
        let (limits, mut latencies) = (p.limits(), Latencies::new());
        // Others than in the phase before, and the same in a clone as in what it is one of.
        let mut random = Random::new(1, self.generations.iter().sum());
        p.own(|| {
            let file = OpenOptions::new().write(true).open(folder.join("database"))?;
            latencies.start();
            for number in 1..=disk.writes {
                limits()?;
                let block = random.index(self.generations.len());
                self.generations[block] += 1;
                file.write_all_at(&self.content(block), (block * BLOCK) as u64)?;
                if number % disk.fsync == 0 || number == disk.writes {
                    file.sync_data()?;
                    latencies.lap();
                }
            }
            Ok(())
        })
        .context("writing into the database")?;
        p.latencies("latency", latencies);
        Ok(())
    }

    fn verify(&self, folder: &Path) -> Result<()> {
        let mut file = std::io::BufReader::with_capacity(1 << 20, File::open(folder.join("database"))?);
        let mut found = [0; BLOCK];
        for block in 0..self.generations.len() {
            file.read_exact(&mut found)?;
            ensure!(found == self.content(block), "block {block} of the database is not what was written to it last");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn settings(pairs: Value) -> Settings {
        Settings(pairs.as_object().unwrap().clone().into_iter().collect())
    }

    #[test]
    fn what_no_disk_can_be_is_refused() {
        let small = |more: Value| {
            let mut pairs = json!({"files": 10, "bytes": 1 << 20, "size": 64 << 20, "database": 1 << 20});
            pairs.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            settings(pairs)
        };
        let rows: [(Value, &[&str]); 9] = [
            (json!({}), &[]),
            (json!({"inner": "xfs"}), &["size"]),
            (json!({"database": 60 << 20}), &["size"]),
            (json!({"database": 4095}), &["database"]),
            (json!({"cluster": 65536}), &["cluster"]),
            (json!({"format": "qcow2", "cluster": 65536}), &[]),
            (json!({"format": "qcow2", "cluster": 65537}), &["cluster"]),
            (json!({"format": "qcow2", "served": "loop"}), &["served"]),
            (json!({"format": "raw-prealloc", "served": "qemu"}), &[]),
        ];
        for (given, wanted) in rows {
            let found: Vec<_> = VmImage.objections(&small(given.clone())).iter().map(|one| one.setting).collect();
            assert_eq!(found, wanted, "{given}");
        }
        assert_eq!(VmImage.objections(&Settings::default()).len(), 0);
    }

    #[test]
    fn each_file_system_inside_is_one_of_ours_and_what_serves_is_needed() {
        for inner in Inner::WORDS {
            let disk = Disk::of(&settings(json!({"inner": inner})));
            assert_eq!(disk.inner().name, *inner);
        }
        let needs = |pairs: Value| {
            let names = VmImage.needs(&settings(pairs)).into_iter();
            let program = |need| if let Need::Program { name, .. } = need { Some(name) } else { None };
            names.filter_map(program).filter(|name| name.starts_with("qemu")).collect::<Vec<_>>()
        };
        assert_eq!(needs(json!({})), [""; 0]);
        assert_eq!(needs(json!({"served": "qemu"})), ["qemu-storage-daemon"]);
        assert_eq!(needs(json!({"format": "qcow2"})), ["qemu-storage-daemon", "qemu-img"]);
    }

    #[test]
    fn a_copy_that_shares_no_blocks_has_read_them() {
        assert_eq!(
            [(0, 100), (49, 100), (100, 100), (104, 100)].map(|(took, of)| read_by_copy(took, of)),
            [0, 0, 50, 52]
        );
    }

    #[test]
    fn a_block_that_was_lost_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let mut database = Database::new(&Disk::of(&settings(json!({"database": 10 * BLOCK}))));
        database.lay_out(folder.path()).unwrap();
        database.verify(folder.path()).unwrap();
        database.generations[7] += 1;
        assert!(database.verify(folder.path()).unwrap_err().to_string().starts_with("block 7 "));
    }
}
