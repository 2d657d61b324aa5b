//! Whether a block device may be erased, decided from what other programs said about it. Pure: text
//! in, reasons out.
//!
//! The texts are those of `lsblk -J -b -o
//! NAME,PATH,KNAME,MAJ:MIN,TYPE,SIZE,MOUNTPOINTS,FSTYPE,SERIAL,WWN,MODEL,RO,PARTTYPENAME DEVICE`,
//! the same with `-s`, `wipefs --json --no-act` on all of [`paths`], and what is known of
//! [`Users`]. wipefs reads the device itself; lsblk's FSTYPE comes from udev and is empty where no
//! udev runs. What cannot be read is a reason to refuse.
//!
//! The second device of a mounted btrfs or of a pool shows no mount here, only its signature, and
//! so does a mount in another namespace; the kernel refuses to open such a device with `O_EXCL`.
//! Loop devices and programs such as QEMU claim nothing: they are looked for by the number of the
//! device.

use serde_json::Value;

/// `major:minor`, whatever name leads to it.
pub(crate) type Number = (u32, u32);

/// Users of a device, or of a device that it is part of, as far as lsblk does not show them.
#[derive(Debug, Default)]
pub struct Users {
    /// `/proc/swaps`.
    pub swaps: String,
    /// By the device, loop devices on it.
    pub loops: Vec<(Number, String)>,
    /// By the device, programs that have it open for writing.
    pub writers: Vec<(Number, String)>,
    /// Devices that cannot be claimed, because the kernel or a program has claimed them.
    pub claimed: Vec<String>,
}

/// Every reason not to erase the device, each with what to do; none, and it may be erased.
/// `allowed_signatures` is what the user said may be lost, as wipefs names it.
pub fn refusals(
    lsblk_json: &str,
    parents_json: &str,
    wipefs_json: &str,
    users: &Users,
    allowed_signatures: &[String],
) -> Vec<String> {
    let (Some(below), Some(above), Some(found)) = (tree(lsblk_json), tree(parents_json), signatures(wipefs_json))
    else {
        return vec![UNREADABLE.to_string()];
    };
    let Some(device) = below.first() else { return vec![UNREADABLE.to_string()] };
    let nodes: Vec<&Node> = below.iter().chain(above.iter().filter(|node| node.path != device.path)).collect();
    let written = nodes.iter().filter_map(|node| Some((node.path.clone(), node.signature.clone()?)));
    let mut reasons = own_reasons(device);
    reasons.extend(nodes.iter().flat_map(|node| uses(node, &users.swaps)));
    reasons.extend(below.iter().skip(1).filter(|node| node.kind != "part").map(|node| held(device, node)));
    reasons.extend(unclaimed_uses(&nodes, users));
    // Its user is mostly named by now.
    reasons.extend(users.claimed.iter().filter(|_| reasons.is_empty()).map(|path| claimed(path)).collect::<Vec<_>>());
    reasons.extend(written.chain(found).filter(|(_, s)| !allowed_signatures.contains(s)).map(|(p, s)| unnamed(&p, &s)));
    unique(reasons)
}

/// What the user must type back: the serial number, else the WWN, else the path. A partition's
/// serial number is its disk's, so it gets its number too, as under `/dev/disk/by-id`.
pub fn identity(lsblk_json: &str) -> String {
    let Some(device) = tree(lsblk_json).and_then(|nodes| nodes.into_iter().next()) else { return String::new() };
    let Some(name) = device.serial.or(device.wwn) else { return device.path };
    let digits = device.kernel_name.len() - device.kernel_name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    match device.kind.as_str() {
        "part" => format!("{name}-part{}", &device.kernel_name[device.kernel_name.len() - digits..]),
        _ => name,
    }
}

/// The device, its partitions and its holders: what wipefs must read.
pub fn paths(lsblk_json: &str) -> Vec<String> {
    unique(tree(lsblk_json).unwrap_or_default().into_iter().map(|node| node.path).collect())
}

/// The numbers of the device, its partitions and holders, and of what it is a part of.
pub(crate) fn numbers(lsblk_json: &str, parents_json: &str) -> Vec<Number> {
    let nodes = [lsblk_json, parents_json].into_iter().filter_map(tree).flatten();
    let mut numbers: Vec<Number> = nodes.map(|node| node.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

const UNREADABLE: &str = "lsblk or wipefs could not read the device: name a disk or a partition that is there, best one under \
                          /dev/disk/by-id, and see what `wipefs --no-act` prints for it";

/// One row of lsblk.
struct Node {
    path: String,
    kernel_name: String,
    number: Number,
    kind: String,
    size: Option<u64>,
    read_only: bool,
    mounts: Vec<String>,
    signature: Option<String>,
    serial: Option<String>,
    wwn: Option<String>,
}

/// All rows, the device first. A device given by one name is one tree, so more roots are no answer.
fn tree(lsblk_json: &str) -> Option<Vec<Node>> {
    let answer: Value = serde_json::from_str(lsblk_json).ok()?;
    let [root] = answer.get("blockdevices")?.as_array()?.as_slice() else { return None };
    let mut nodes = Vec::new();
    gather(root, &mut nodes)?;
    Some(nodes)
}

fn gather(row: &Value, nodes: &mut Vec<Node>) -> Option<()> {
    nodes.push(node(row)?);
    let children = row.get("children").and_then(Value::as_array);
    children.into_iter().flatten().try_for_each(|child| gather(child, nodes))
}

/// A row without path, number, type, mounts or read-only flag cannot be trusted to be none of
/// these.
fn node(row: &Value) -> Option<Node> {
    let text = |name| row.get(name).and_then(Value::as_str).map(str::trim).filter(|t| !t.is_empty()).map(String::from);
    let mounts = row.get("mountpoints")?.as_array()?;
    Some(Node {
        path: text("path")?,
        kernel_name: text("kname")?,
        number: number(&text("maj:min")?)?,
        kind: text("type")?,
        size: row.get("size").and_then(Value::as_u64),
        read_only: row.get("ro")?.as_bool()?,
        mounts: mounts.iter().filter_map(Value::as_str).map(String::from).collect(),
        signature: text("fstype"),
        serial: text("serial"),
        wwn: text("wwn"),
    })
}

fn number(text: &str) -> Option<Number> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Device and type of each signature.
fn signatures(wipefs_json: &str) -> Option<Vec<(String, String)>> {
    let answer: Value = serde_json::from_str(wipefs_json).ok()?;
    let row = |row: &Value| Some((format!("/dev/{}", row.get("device")?.as_str()?), row.get("type")?.as_str()?.into()));
    answer.get("signatures")?.as_array()?.iter().map(row).collect()
}

fn own_reasons(device: &Node) -> Vec<String> {
    let path = &device.path;
    let read_only =
        device.read_only.then(|| format!("{path} is read-only: `blockdev --setrw {path}`, or take another"));
    let empty = (device.size.unwrap_or(0) == 0).then(|| format!("{path} has no medium: put one in, or take another"));
    read_only.into_iter().chain(empty).collect()
}

fn uses(node: &Node, swaps: &str) -> Vec<String> {
    let path = &node.path;
    let (swapped, mounted): (Vec<&String>, Vec<&String>) = node.mounts.iter().partition(|m| *m == "[SWAP]");
    let kernel_path = format!("/dev/{}", node.kernel_name);
    let listed = swaps.lines().filter_map(|l| l.split_whitespace().next()).any(|s| s == path || s == kernel_path);
    let mounts = mounted.iter().map(|at| format!("{path} is mounted at {at}: `umount {at}`, if it may be lost"));
    let swap =
        (listed || !swapped.is_empty()).then(|| format!("{path} is swapped on: `swapoff {path}`, if it may be lost"));
    mounts.chain(swap).collect()
}

fn held(device: &Node, holder: &Node) -> String {
    let how = match holder.kind.as_str() {
        "lvm" => "`vgchange -an` its group".to_string(),
        "crypt" => format!("`cryptsetup close {}`", holder.path),
        kind if kind.starts_with("raid") => format!("`mdadm --stop {}`", holder.path),
        _ => "take that down first".to_string(),
    };
    format!("{} is held by {} ({}): {how}, if it may be lost", device.path, holder.path, holder.kind)
}

/// Loop devices and programs, which claim nothing of the kernel.
fn unclaimed_uses(nodes: &[&Node], users: &Users) -> Vec<String> {
    let path = |number: &Number| {
        let node = nodes.iter().find(|node| node.number == *number);
        node.map_or_else(|| format!("device {}:{} below it", number.0, number.1), |node| node.path.clone())
    };
    let loops = users.loops.iter().map(|(below, held)| {
        format!("{} is held by {held} (loop): `losetup --detach {held}`, if it may be lost", path(below))
    });
    let writers = users.writers.iter().map(|(device, program)| {
        format!("{} is open for writing by {program}: end that program first, if it may be lost", path(device))
    });
    loops.chain(writers).collect()
}

fn claimed(path: &str) -> String {
    format!("{path} is in use: free it first (`lsblk {path}`; it may be a part of a pool, or mounted in a container)")
}

fn unnamed(path: &str, signature: &str) -> String {
    format!("{path} carries {signature}: look what is on it; if it may be lost, set `signatures = [\"{signature}\"]`")
}

fn unique(mut texts: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    texts.retain(|text| seen.insert(text.clone()));
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// As lsblk of util-linux 2.38 printed it for a loop device with ext2 on it, mounted, on a
    /// machine without udev.
    const MOUNTED_LOOP: &str = r#"{
   "blockdevices": [
      {
         "name": "loop0",
         "path": "/dev/loop0",
         "kname": "loop0",
         "maj:min": "7:0",
         "type": "loop",
         "size": 67108864,
         "mountpoints": [
             "/tmp/m"
         ],
         "fstype": null,
         "serial": null,
         "wwn": null,
         "model": null,
         "ro": false,
         "parttypename": null
      }
   ]
}"#;

    /// As wipefs printed it for that device with a DOS partition table put into the boot sector.
    const EXT2_AND_DOS: &str = r#"{
   "signatures": [
      {
         "device": "loop0",
         "offset": "0x438",
         "type": "ext2",
         "uuid": "5332853b-5292-4195-ae04-f0fb2a653781",
         "label": "root"
      },{
         "device": "loop0",
         "offset": "0x1fe",
         "type": "dos",
         "uuid": null,
         "label": null
      }
   ]
}"#;

    /// As wipefs printed it for a blank device.
    const BLANK: &str = "{\n   \"signatures\": [\n\n   ]\n}\n";

    const SWAPS: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";

    /// One row as lsblk would give it.
    fn row(name: &str, kind: &str, changes: Value) -> Value {
        let mut row = json!({"name": name, "path": format!("/dev/{name}"), "kname": name, "maj:min": "8:16",
            "type": kind, "size": 1 << 30, "mountpoints": [null], "fstype": null, "serial": null, "wwn": null, "model": null,
            "ro": false, "parttypename": null});
        row.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        row
    }

    fn lsblk(row: Value) -> String {
        json!({"blockdevices": [row]}).to_string()
    }

    /// Refusals of a tree whose top is `row`, without parents, signatures or swap.
    fn asked(row: Value, allowed: &[&str]) -> String {
        let allowed: Vec<String> = allowed.iter().map(|s| s.to_string()).collect();
        let mut alone = row.clone();
        alone.as_object_mut().unwrap().remove("children");
        refusals(&lsblk(row), &lsblk(alone), BLANK, &Users::default(), &allowed).join("\n")
    }

    #[test]
    fn a_blank_device_may_be_erased() {
        assert_eq!(asked(row("sdz", "disk", json!({"serial": "S1"})), &[]), "");
        assert_eq!(asked(row("sdz", "disk", json!({"children": [row("sdz1", "part", json!({}))]})), &[]), "");
    }

    #[test]
    fn mounts_and_swap_refuse_wherever_they_are() {
        let mounted = "/dev/sdz1 is mounted at /data: `umount /data`, if it may be lost";
        let part = row("sdz1", "part", json!({"mountpoints": [null, "/data"]}));
        assert_eq!(asked(row("sdz", "disk", json!({"children": [part.clone()]})), &[]), mounted);
        assert_eq!(asked(part, &["ext4"]), mounted);
        let swap = row("sdz2", "part", json!({"mountpoints": ["[SWAP]"]}));
        let swapped = "/dev/sdz2 is swapped on: `swapoff /dev/sdz2`, if it may be lost";
        assert_eq!(asked(row("sdz", "disk", json!({"children": [swap]})), &["swap"]), swapped);
    }

    #[test]
    fn swap_that_only_the_kernel_lists_refuses() {
        let swaps = format!("{SWAPS}/dev/dm-3                               partition\t65532\t\t0\t\t-2\n");
        let device = lsblk(row("dm-3", "lvm", json!({"path": "/dev/mapper/a-swap"})));
        let said = refusals(&device, &device, BLANK, &Users { swaps, ..Users::default() }, &[]);
        assert_eq!(said, ["/dev/mapper/a-swap is swapped on: `swapoff /dev/mapper/a-swap`, if it may be lost"]);
    }

    #[test]
    fn signatures_refuse_until_each_is_named() {
        let allow = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|s| s.to_string()).collect();
            refusals(
                &lsblk(row("loop0", "loop", json!({}))),
                &lsblk(row("loop0", "loop", json!({}))),
                EXT2_AND_DOS,
                &Users::default(),
                &names,
            )
        };
        let [ext2, dos] = ["ext2", "dos"].map(|name| unnamed("/dev/loop0", name));
        assert_eq!(allow(&[]), [ext2.clone(), dos.clone()]);
        assert_eq!(allow(&["ext2"]), [dos]);
        assert_eq!(allow(&["dos"]), [ext2]);
        assert!(allow(&["dos", "ext2"]).is_empty());
    }

    #[test]
    fn a_signature_on_a_partition_or_a_parent_refuses() {
        let part = row("sdz1", "part", json!({"fstype": "crypto_LUKS"}));
        let disk = row("sdz", "disk", json!({"children": [part]}));
        assert_eq!(asked(disk.clone(), &["gpt"]), unnamed("/dev/sdz1", "crypto_LUKS"));
        assert_eq!(asked(disk, &["gpt", "crypto_LUKS"]), "");
        let volume = |more| lsblk(row("dm-0", "lvm", more));
        let parents = volume(json!({"children": [row("sdz", "disk", json!({"fstype": "LVM2_member"}))]}));
        let said = refusals(&volume(json!({})), &parents, BLANK, &Users::default(), &[]);
        assert_eq!(said, [unnamed("/dev/sdz", "LVM2_member")]);
    }

    #[test]
    fn what_is_held_stays_even_when_its_signature_is_named() {
        for (kind, signature, how) in [
            ("lvm", "LVM2_member", "`vgchange -an` its group"),
            ("crypt", "crypto_LUKS", "`cryptsetup close /dev/h`"),
            ("raid1", "linux_raid_member", "`mdadm --stop /dev/h`"),
            ("mpath", "mpath_member", "take that down first"),
        ] {
            let disk = row("sdz", "disk", json!({"fstype": signature, "children": [row("h", kind, json!({}))]}));
            let held = format!("/dev/sdz is held by /dev/h ({kind}): {how}, if it may be lost");
            assert_eq!(asked(disk.clone(), &[signature]), held);
            assert_eq!(asked(disk, &[]), format!("{held}\n{}", unnamed("/dev/sdz", signature)));
        }
    }

    /// Loop devices and programs are none of lsblk's rows.
    #[test]
    fn what_claims_nothing_is_found_by_the_number() {
        let part = row("sdz1", "part", json!({"maj:min": "8:17"}));
        let (disk, parents) =
            (lsblk(row("sdz", "disk", json!({"children": [part]}))), lsblk(row("sdz", "disk", json!({}))));
        assert_eq!(numbers(&disk, &parents), [(8, 16), (8, 17)]);
        let said = |users: Users| refusals(&disk, &parents, BLANK, &users, &[]).join("\n");
        let loops = vec![((8, 17), "/dev/loop3".to_string())];
        let held = "/dev/sdz1 is held by /dev/loop3 (loop): `losetup --detach /dev/loop3`, if it may be lost";
        assert_eq!(said(Users { loops, ..Users::default() }), held);
        let writers = vec![((8, 16), "qemu (7)".to_string()), ((7, 1), "dd (8)".to_string())];
        let written = "/dev/sdz is open for writing by qemu (7): end that program first, if it may be lost\n\
                       device 7:1 below it is open for writing by dd (8): end that program first, if it may be lost";
        let claimed = vec!["/dev/sdz".to_string()];
        assert_eq!(said(Users { writers, claimed: claimed.clone(), ..Users::default() }), written);
        assert!(said(Users { claimed, ..Users::default() }).starts_with("/dev/sdz is in use: free it first"));
    }

    #[test]
    fn a_device_that_cannot_be_written_refuses() {
        let locked = asked(row("sdz", "disk", json!({"ro": true})), &[]);
        assert_eq!(locked, "/dev/sdz is read-only: `blockdev --setrw /dev/sdz`, or take another");
        let empty = asked(row("zram0", "disk", json!({"size": 0})), &[]);
        assert_eq!(empty, "/dev/zram0 has no medium: put one in, or take another");
    }

    #[test]
    fn what_cannot_be_read_refuses() {
        let good = lsblk(row("sdz", "disk", json!({})));
        let none = "{\n   \"blockdevices\": [\n\n   ]\n}\n";
        let old = r#"{"blockdevices": [{"name": "sdz", "path": "/dev/sdz", "mountpoint": "/", "ro": "0"}]}"#;
        for (below, above, wipefs) in [
            (none, good.as_str(), BLANK),
            (good.as_str(), "", BLANK),
            (good.as_str(), good.as_str(), ""),
            (good.as_str(), good.as_str(), r#"{"signatures": [{"offset": "0x0"}]}"#),
            (old, old, BLANK),
        ] {
            assert_eq!(refusals(below, above, wipefs, &Users::default(), &[]), [UNREADABLE]);
        }
    }

    #[test]
    fn the_device_of_a_real_machine_is_seen_as_mounted() {
        let said =
            refusals(MOUNTED_LOOP, MOUNTED_LOOP, EXT2_AND_DOS, &Users::default(), &["ext2".into(), "dos".into()]);
        assert_eq!(said, ["/dev/loop0 is mounted at /tmp/m: `umount /tmp/m`, if it may be lost"]);
    }

    #[test]
    fn the_user_types_back_what_no_other_device_has() {
        for (changes, kind, name, typed) in [
            (json!({"serial": " S1 ", "wwn": "0x5"}), "disk", "sdz", "S1"),
            (json!({"wwn": "0x5"}), "disk", "sdz", "0x5"),
            (json!({}), "disk", "sdz", "/dev/sdz"),
            (json!({"serial": "S1"}), "part", "nvme0n1p12", "S1-part12"),
            (json!({}), "part", "sdz2", "/dev/sdz2"),
        ] {
            assert_eq!(identity(&lsblk(row(name, kind, changes))), typed);
        }
        assert_eq!(identity(MOUNTED_LOOP), "/dev/loop0");
    }

    #[test]
    fn partitions_and_holders_are_read_for_signatures_too() {
        let part = row("sdz1", "part", json!({"children": [row("h", "lvm", json!({}))]}));
        assert_eq!(paths(&lsblk(row("sdz", "disk", json!({"children": [part]})))), ["/dev/sdz", "/dev/sdz1", "/dev/h"]);
    }
}
