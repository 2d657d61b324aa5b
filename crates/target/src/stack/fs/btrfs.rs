//! btrfs, with the compressions, metadata profiles and copy-on-write switches that people compare.

use super::*;

pub(super) fn with_code(data: Filesystem) -> Filesystem {
    Filesystem {
        making: Making { in_place: Some(in_place), ..data.making },
        mounting: Mounting { command: mount, ..data.mounting },
        features: Features {
            compresses: |shown| shown.keys().any(|option| option.starts_with("compress")),
            depending: &[(CHECKSUMS, By::Code(has_checksums)), (COMPRESSION, By::Code(has_checksums))],
            ..data.features
        },
        mismatches: profile_mismatches,
        ..data
    }
}

const NOCOW: &str = "nocow";

/// New files take "no copy on write" from their directory, so the empty root is the place to set it
/// (btrfs(5), FILE ATTRIBUTES).
fn in_place(spec: &FsSpec) -> Option<Argv> {
    let asked = spec.nodatacow || spec.variant == Some(NOCOW);
    asked.then(|| argv(["chattr", "+C", &spec.mount_point()]))
}

/// Devices are named one by one: what scans devices for their file systems may not have come to
/// them yet, or not be there.
fn mount(driver: &Filesystem, spec: &FsSpec) -> Argv {
    command(driver, spec, spec.more_devices.iter().map(|device| format!("device={}", device.display())))
}

/// Without copy on write, or without checksums of data, nothing is compressed either (btrfs(5),
/// MOUNT OPTIONS).
fn has_checksums(state: &FsState) -> bool {
    let in_place = state.nodatacow || state.variant == Some(NOCOW);
    !in_place && !state.mounted_with(&["nodatacow", "nodatasum"])
}

/// What a variant says of profiles must be what the kernel shows.
fn profile_mismatches(spec: &FsSpec, facts: &Facts) -> Vec<String> {
    let shown = facts.get("btrfs profiles").map(String::as_str).unwrap_or_default();
    let variant = find("btrfs").and_then(|driver| driver.variant(spec.variant));
    let pairs = variant.map(|variant| variant.mkfs).unwrap_or_default().chunks_exact(2);
    let contradicts = |pair: &[&str]| {
        let (what, shown) = match pair[0] {
            "-m" => ("Metadata", profile(shown, "Metadata")),
            "-d" => ("Data", profile(shown, "Data")),
            _ => return None,
        };
        let (asked, shown) = (pair[1], shown.unwrap_or("nothing"));
        (!shown.eq_ignore_ascii_case(asked)).then(|| format!("asked for {what} {asked}, the kernel shows {shown}"))
    };
    pairs.filter_map(contradicts).collect()
}

/// `Metadata, RAID1: total=...` of `btrfs filesystem df`.
fn profile<'a>(shown: &'a str, what: &str) -> Option<&'a str> {
    let line = shown.lines().find_map(|line| line.trim().strip_prefix(what)?.strip_prefix(", "))?;
    line.split_once(':').map(|(profile, _)| profile)
}
