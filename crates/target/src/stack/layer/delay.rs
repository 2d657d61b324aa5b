//! dm-delay: every request waits a while before it reaches the device, as on a slow disk.

use super::*;

pub(super) fn with_code(data: Layer) -> Layer {
    Layer { objections, steps, fact: |below| table("dmsetup table", below), mismatches, ..data }
}

/// What dm-delay counts in.
const MILLISECOND: u64 = 1_000_000;

fn objections(settings: &Settings) -> Vec<Objection> {
    let broken = |name: &&str| settings.number(name).unwrap_or_default() % MILLISECOND != 0;
    let objection = |name| {
        let message = format!("the kernel delays by whole milliseconds, and `{name}` is none");
        Objection::new(name, message, "give a whole number of milliseconds, such as \"4ms\"")
    };
    ["read", "write"].into_iter().filter(broken).map(objection).collect()
}

/// Waits of writes hold for flushes too, unless a third device is named.
fn steps(settings: &Settings, below: &Below) -> Vec<Step> {
    let [read, write] = &waits(settings);
    below.each(|device, name| {
        vec![map(format!("delay {device}"), device, name, &["delay", device, "0", read, device, "0", write])]
    })
}

fn mismatches(settings: &Settings, shown: &str) -> Vec<Option<String>> {
    let [read, write] = waits(settings);
    match shown.split_whitespace().collect::<Vec<_>>()[..] {
        [_, _, "delay", _, _, shown_read, _, _, shown_write] if shown_read == read && shown_write == write => vec![],
        _ => vec![Some(format!("asked for a delay of {read} and {write} ms, the kernel shows {shown}"))],
    }
}

fn waits(settings: &Settings) -> [String; 2] {
    ["read", "write"].map(|name| (settings.number(name).unwrap_or_default() / MILLISECOND).to_string())
}

#[cfg(test)]
mod tests {
    use super::super::example::{mismatches, printed, sentences, settings};
    use super::*;
    use serde_json::json;

    #[test]
    fn each_device_is_delayed() {
        assert_eq!(
            sentences("delay", json!({"read": 4_000_000, "write": 9_000_000}), 2),
            [
                "map /dev/D0 as pickfsC: delay /dev/D0 0 4 /dev/D0 0 9; back: remove mapping pickfsC",
                "map /dev/D1 as pickfsCd1: delay /dev/D1 0 4 /dev/D1 0 9; back: remove mapping pickfsCd1",
            ]
        );
    }

    #[test]
    fn the_kernels_table_is_held_against_the_plan() {
        let table = printed("dmsetup-table-delay");
        let table = table.as_str();
        for (read, write, printed, wrong) in [
            (2_000_000, 3_000_000, table, 0),
            (2_000_000, 4_000_000, table, 1),
            (5_000_000, 3_000_000, table, 1),
            (2_000_000, 3_000_000, "", 1),
        ] {
            assert_eq!(mismatches("delay", json!({"read": read, "write": write}), printed).len(), wrong, "{printed}");
        }
    }

    #[test]
    fn what_the_kernel_cannot_wait_is_refused() {
        let objections = |read: u64| objections(&settings(json!({"read": read, "write": 0}))).len();
        assert_eq!([objections(5_000_000), objections(500_000), objections(0)], [0, 1, 0]);
    }
}
