//! `[matrix]`: every target with every value, and the names of what comes out.

use super::Target;
use super::age;
use super::complaint::{Complaints, quoted};
use super::machine::{in_matrix, on_machines};
use super::read::Reader;
use super::table::{Field, Table};
use super::target::{Placed, check_option};

/// In this order the values come in a product's name, which is the order in a name that is made from a target.
const KEYS: [&str; 5] = ["mkfs", "mount", "scheduler", "age", "fill"];

/// More targets than anybody could run; a product that large is a slip.
const MOST_TARGETS: usize = 1000;

/// Every target x every value of each key.
pub(super) fn products(targets: Vec<Placed>, plan: &Table, reader: &mut Reader) -> Vec<Placed> {
    let Some(field) = plan.field("matrix") else { return targets };
    let Some(table) = field.table("[matrix]", &mut reader.complaints) else { return targets };
    let of_machine = in_matrix(reader.executor().settings);
    let names = of_machine.iter().map(|setting| setting.name);
    table.only(&KEYS.into_iter().chain(names).collect::<Vec<_>>(), &mut reader.complaints);
    let mut targets = targets;
    for field in KEYS.iter().filter_map(|key| table.field(key)) {
        let values = values(&field, &mut reader.complaints);
        check_fit(&field, &targets, &mut reader.complaints);
        targets = product(targets, &field, &values, &mut reader.complaints);
    }
    for setting in of_machine {
        if let Some(field) = table.field(setting.name) {
            targets = on_machines(targets, &field, setting, reader);
        }
    }
    targets
}

/// The different values of a key; "" stands for nothing added, so it cannot be a scheduler.
fn values<'a>(field: &Field<'a>, complaints: &mut Complaints) -> Vec<&'a str> {
    let mut values = Vec::new();
    for element in field.elements(complaints).unwrap_or_default() {
        let nothing = field.key != "scheduler" && element.value.as_str() == Some("");
        let Some(value) = (if nothing { Some("") } else { element.text(complaints) }) else { continue };
        if values.contains(&value) {
            let message = format!("{} has {} twice", field.shown(), quoted(value));
            complaints.add(&element.span, message, "leave one of the two out");
        } else if is_right(value, &element, complaints) {
            values.push(value);
        }
    }
    values
}

fn is_right(value: &str, element: &Field, complaints: &mut Complaints) -> bool {
    let before = complaints.len();
    match element.key {
        _ if value.is_empty() => true,
        "age" => age::age(element, complaints).is_some() || complaints.len() == before,
        "fill" => age::fill(element, complaints).is_some() || complaints.len() == before,
        _ => check_option(value, element, complaints),
    }
}

/// Has the target said itself what the matrix says again?
fn has_own(target: &Target, key: &str) -> bool {
    match key {
        "scheduler" => target.scheduler.is_some(),
        "age" => target.age.is_some(),
        "fill" => target.fill.is_some(),
        _ => false,
    }
}

fn check_fit(field: &Field, targets: &[Placed], complaints: &mut Complaints) {
    if let Some(placed) = targets.iter().find(|placed| has_own(&placed.target, field.key)) {
        let message = format!("the target {} has {} of its own", quoted(&placed.target.name), field.shown());
        complaints.add(&field.key_span, message, "take it out of the target, or out of [matrix]");
    }
    let unmade = |target: &Target| field.key != "scheduler" && target.fs.is_none();
    if let Some(placed) = targets.iter().find(|placed| unmade(&placed.target)) {
        let name = quoted(&placed.target.name);
        let message = format!("{} cannot apply to {name}, where no file system is made", field.shown());
        let remedy = format!("leave {} out of [matrix], and give it to the targets that can use it", field.shown());
        complaints.add(&field.key_span, message, remedy);
    }
}

fn product(targets: Vec<Placed>, field: &Field, values: &[&str], complaints: &mut Complaints) -> Vec<Placed> {
    let count = targets.len().saturating_mul(values.len());
    if count > MOST_TARGETS {
        let message = format!("this makes {count} targets");
        complaints.add(&field.key_span, message, format!("use fewer values: {MOST_TARGETS} targets are the limit"));
        return targets;
    }
    if values.is_empty() {
        return targets;
    }
    targets.iter().flat_map(|placed| values.iter().map(|value| with(placed, field.key, value))).collect()
}

fn with(placed: &Placed, key: &str, value: &str) -> Placed {
    let mut placed = placed.clone();
    if value.is_empty() {
        return placed; // nothing is added
    }
    let target = &mut placed.target;
    let mut added = vec![value.to_string()];
    match key {
        "mkfs" => target.mkfs.push(value.into()),
        "mount" => target.mount.push(value.into()),
        "age" => {
            target.age = value.to_string().try_into().ok();
            added = age::words(target.age, None);
        }
        "fill" => {
            target.fill = crate::units::parse_share(value).ok().filter(|share| *share > 0.0);
            added = age::words(None, target.fill);
        }
        _ => target.scheduler = Some(value.into()),
    }
    target.name = std::iter::once(target.name.clone()).chain(added).collect::<Vec<_>>().join(" ");
    placed
}
