//! Host-managed disks: what can lie on zones that must be written in order.

use super::{fs, layer};
use pickfs_core::plan::{Objection, Target};

const REMEDY: &str = "take `variant = \"zoned\"` of btrfs, f2fs or xfs (xfs in a guest of sid), put `layers = [\"dm-zoned\"]` \
                      below it in a guest of trixie or sid, or take another disk";

/// What stands against a target on disks that are host-managed or not, in their order. Without
/// disks nothing is known of them, and nothing stands against it.
pub fn objection(target: &Target, host_managed: Vec<bool>) -> Option<Objection> {
    let mut devices = host_managed;
    if devices.is_empty() {
        return None;
    }
    for chosen in &target.layers {
        let layer = layer::find(&chosen.name)?;
        let taken = layer::taken(&chosen.settings, devices.len()).min(devices.len());
        let below: Vec<bool> = devices.drain(..taken).collect();
        if below.contains(&!layer.takes_zones) {
            return Some(wrong_layer(layer));
        }
        devices.splice(0..0, vec![false; if layer.joins { 1 } else { taken }]);
    }
    let driver = fs::find(target.fs.as_deref()?)?;
    let is_zoned = driver.variant(target.variant.as_deref()).is_some_and(|variant| variant.zoned.is_some());
    let message = || format!("{} writes anywhere, but the zones of this disk must be written in order", driver.name);
    (devices.contains(&true) && !is_zoned).then(|| Objection::new("fs", message(), REMEDY))
}

fn wrong_layer(layer: &layer::Layer) -> Objection {
    if layer.takes_zones {
        let message = format!("{} needs a disk that is host-managed", layer.name);
        return Objection::new("layers", message, "take `disk = \"smr-host-managed\"`, or leave the layer out");
    }
    let message = format!("{} writes anywhere, but the zones of this disk must be written in order", layer.name);
    Objection::new("layers", message, "put `dm-zoned` before it in `layers`, or take another disk")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::plan::Chosen;
    use std::path::Path;

    #[test]
    fn what_was_made_for_zones_is_read_back() {
        let profiles = "Data, single: total=1\nMetadata, single: total=1\n";
        let of_btrfs = "incompat_flags 0x1\n\t\t( SKINNY |\n\t\t  ZONED )";
        let realtime = "realtime =internal extsz=4096\n         =  zoned=1      start=106496 reserved=0\n";
        for (name, fact, zoned) in [
            ("btrfs", "btrfs super block", of_btrfs),
            ("f2fs", "dump.f2fs", "Info: superblock features = 2 :  blkzoned\n"),
            ("xfs", "xfs_info", realtime),
        ] {
            for (variant, shown, wrong) in [("zoned", zoned, 0), ("zoned", "", 1), ("none", "", 0)] {
                let target = Target { variant: Some(variant.into()), ..Target::default() };
                let driver = fs::find(name).expect("a driver");
                let spec = fs::FsSpec::new(driver, &target, Path::new("/dev/DEV"), Path::new("/m"));
                let facts = [("btrfs profiles", profiles), (fact, shown)];
                let facts = facts.map(|(name, text)| (name.to_string(), text.to_string())).into();
                assert_eq!(
                    driver.mismatches(&spec, &fs::MountOptions::new(), &facts).len(),
                    wrong,
                    "{name} {variant} {shown}"
                );
            }
        }
    }

    #[test]
    fn zones_are_written_by_what_can_write_them() {
        for (fs, variant, layers, disks, wanted) in [
            ("ext4", None, "", vec![], None),
            ("ext4", None, "", vec![false], None),
            ("ext4", None, "", vec![true], Some("ext4 writes anywhere")),
            ("btrfs", None, "", vec![true], Some("btrfs writes anywhere")),
            ("btrfs", Some("zoned"), "", vec![true], None),
            ("btrfs", Some("zoned"), "", vec![true, false], None),
            ("btrfs", Some("zoned"), "", vec![false], None),
            ("f2fs", Some("zoned"), "", vec![true], None),
            ("ext4", None, "dm-zoned", vec![true], None),
            ("ext4", None, "dm-zoned luks", vec![true], None),
            ("ext4", None, "luks dm-zoned", vec![true], Some("luks writes anywhere")),
            ("ext4", None, "dm-zoned", vec![false], Some("dm-zoned needs a disk that is host-managed")),
            ("ext4", None, "dm-zoned", vec![], None),
            ("ext4", None, "md", vec![false, true], Some("md writes anywhere")),
            ("ext4", None, "dm-zoned md", vec![true, true], None),
        ] {
            let layers = layers.split_whitespace().map(|name| Chosen { name: name.into(), ..Chosen::default() });
            let target = Target {
                fs: Some(fs.into()),
                variant: variant.map(String::from),
                layers: layers.collect(),
                ..Target::default()
            };
            let found = objection(&target, disks.clone()).map(|objection| objection.message);
            let fits = wanted.map_or(found.is_none(), |wanted| found.as_ref().is_some_and(|f| f.starts_with(wanted)));
            assert!(fits, "{target:?} on {disks:?}: {found:?}");
        }
    }
}
