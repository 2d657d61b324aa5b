//! `queue = { nr_requests = 64, write_cache = "write through" }`: settings of the block queue under
//! the file system; and `sysctl = { vfs_cache_pressure = 50 }`: those of the kernel's memory.

use super::Settings;
use super::complaint::{listed, nearest, quoted};
use super::table::{Field, Reader, Table};

/// Files that change how requests are made of the same work, and can be read back; sorted.
pub const NAMES: [&str; 8] = [
    "max_sectors_kb", "nomerges", "nr_requests", "read_ahead_kb", "rotational", "rq_affinity", "wbt_lat_usec",
    "write_cache",
];
/// Those below /proc/sys/vm that a target can have for itself; sorted.
pub const SYSCTLS: [&str; 6] = [
    "dirty_background_bytes",
    "dirty_bytes",
    "dirty_expire_centisecs",
    "dirty_writeback_centisecs",
    "swappiness",
    "vfs_cache_pressure",
];
pub(super) const WRITE_CACHE: &str = "write_cache";
const CACHES: [&str; 2] = ["write back", "write through"];

/// Of Linux since 5.0, whose others are gone, and what does their work now.
const SCHEDULERS: [&str; 4] = ["bfq", "kyber", "mq-deadline", "none"];
const FORMER_SCHEDULERS: [(&str, &str); 3] = [("cfq", "bfq"), ("deadline", "mq-deadline"), ("noop", "none")];

pub(super) fn scheduler<'n>(name: &'n str, field: &Field) -> Option<&'n str> {
    if SCHEDULERS.contains(&name) {
        return Some(name);
    }
    let successor = FORMER_SCHEDULERS.iter().find(|(former, _)| *former == name).map(|(_, successor)| *successor);
    let remedy = match successor.or_else(|| nearest(name, SCHEDULERS)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use {}", listed(SCHEDULERS)),
    };
    field.complaints.refuse(&field.place, format!("Linux has no I/O scheduler {}", quoted(name)), remedy)
}

/// Every setting as the text that is written to its file.
pub(super) fn queue(table: &Table, reader: &Reader) -> Settings {
    files("queue", &NAMES, "; `scheduler` is a separate key", table, reader)
}

/// The same of the kernel's memory.
pub(super) fn sysctl(table: &Table, reader: &Reader) -> Settings {
    files("sysctl", &SYSCTLS, "; `[host]` has what is the same for all targets", table, reader)
}

fn files(key: &str, names: &[&str], others: &str, table: &Table, reader: &Reader) -> Settings {
    let Some(field) = table.field(key) else { return Settings::default() };
    let table = field.table(key);
    let fields = table.iter().flat_map(|table| table.fields());
    let name = |field: &Field| {
        if names.contains(&field.key) {
            return Some(field.key.to_string());
        }
        let remedy = match nearest(field.key, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("leave it out, or use {}{others}", listed(names.iter().copied())),
        };
        let message = format!("`{key}` has no setting {}", quoted(field.key));
        reader.complaints.refuse(&field.key_place, message, remedy)
    };
    Settings(fields.filter_map(|field| Some((name(&field)?, value(&field)?.into()))).collect())
}

fn value(field: &Field) -> Option<String> {
    match field.key {
        WRITE_CACHE => super::value::choice(field, &CACHES).map(String::from),
        _ => field.count().map(|number| number.to_string()),
    }
}

/// "nr_requests=64", as a target's name shows them.
pub(super) fn words(queue: &Settings) -> Vec<String> {
    queue.0.iter().map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::example::{complained, read, with};
    use super::*;

    #[test]
    fn settings_of_the_queue_are_text_and_in_the_name() {
        let text = "duplicate = false\n[[target]]\nfs = 'ext4'\nscheduler = 'bfq'\n\
                    queue = { write_cache = 'write through', nr_requests = 64 }";
        let plan = read(&with("BW", text)).unwrap();
        assert_eq!(plan.targets[0].name, "ext4 bfq nr_requests=64 write_cache=write through");
        assert_eq!(serde_json::to_value(&plan.targets[0].queue).unwrap()["nr_requests"], "64");
        assert!(NAMES.windows(2).all(|pair| pair[0] < pair[1]) && NAMES.contains(&WRITE_CACHE));
        let without = read(&with("BTW", "")).unwrap();
        assert!(serde_json::to_value(&without.targets[0]).unwrap().get("queue").is_none());
    }

    #[test]
    fn settings_of_the_kernel_are_text_and_in_the_name() {
        let text =
            "duplicate = false\n[[target]]\nfs = 'ext4'\nsysctl = { vfs_cache_pressure = 50, dirty_bytes = 1048576 }";
        let plan = read(&with("BW", text)).unwrap();
        assert_eq!(plan.targets[0].name, "ext4 dirty_bytes=1048576 vfs_cache_pressure=50");
        assert_eq!(serde_json::to_value(&plan.targets[0].sysctl).unwrap()["dirty_bytes"], "1048576");
        assert!(SYSCTLS.windows(2).all(|pair| pair[0] < pair[1]));
        let without = read(&with("BTW", "")).unwrap();
        assert!(serde_json::to_value(&without.targets[0]).unwrap().get("sysctl").is_none());
    }

    #[rustfmt::skip]
    #[test]
    fn what_cannot_be_set_is_refused() {
        complained(&[
            ("BW", "[[target]]\nfs = 'ext4'\nqueue = { nr_request = 64 }", &[(3, "did you mean `nr_requests`?")]),
            ("BW", "[[target]]\nfs = 'ext4'\nqueue = { discard = 1 }", &[(3, "has no setting")]),
            ("BW", "[[target]]\nfs = 'ext4'\nqueue = { write_cache = 'off' }", &[(3, "write through")]),
            ("BW", "[[target]]\nfs = 'ext4'\nqueue = { nr_requests = 'many' }", &[(3, "whole number")]),
            ("BW", "[[target]]\nfs = 'ext4'\nqueue = 64", &[(3, "must be")]),
            ("BW", "[[target]]\nfs = 'ext4'\nscheduler = 'cfq'", &[(3, "did you mean `bfq`?")]),
            ("BW", "[[target]]\nfs = 'ext4'\nscheduler = 'a'", &[(3, "use `bfq`")]),
            ("BTW", "[matrix]\nscheduler = ['noop', 'mq-deadlin', 'none']", &[(2, "`none`"), (2, "`mq-deadline`")]),
            ("BW", "[[target]]\nfs = 'ext4'\nsysctl = { dirty_byte = 64 }", &[(3, "did you mean `dirty_bytes`?")]),
            ("BW", "[[target]]\nfs = 'ext4'\nsysctl = { drop_caches = 3 }", &[(3, "has no setting")]),
            ("BW", "[[target]]\nfs = 'ext4'\nsysctl = { swappiness = 'much' }", &[(3, "whole number")]),
            ("W", "[[target]]\nbacking.directory = '/a'\nsysctl = { swappiness = 1 }", &[(3, "brings its own file system")]),
            ("W", "[[target]]\nbacking.directory = '/a'\nqueue = { nr_requests = 64 }", &[(3, "brings its own file system")]),
        ]);
    }
}
