//! `[matrix]`: every target with every value, and the names of what comes out.

use super::age;
use super::complaint::{Problem, quoted};
use super::keys::MATRIX;
use super::machine::shown;
use super::queue;
use super::table::{Field, Reader, Table};
use super::target::{PlacedTarget, check_option};
use super::value::checked;
use super::{Setting, SettingKind, Settings, Target};

/// More targets than anybody could run; a product that large is a slip.
const MOST_TARGETS: usize = 1000;

/// Every target x every value of each key.
pub(super) fn products(targets: Vec<PlacedTarget>, plan: &Table, reader: &Reader) -> Vec<PlacedTarget> {
    let Some(field) = plan.field("matrix") else { return targets };
    let Some(table) = field.table("[matrix]") else { return targets };
    let of_machine = in_matrix(reader.executor().settings);
    let names = of_machine.iter().map(|setting| setting.name);
    table.only(&MATRIX.names().into_iter().chain(names).collect::<Vec<_>>());
    let mut targets = targets;
    for field in MATRIX.keys.iter().filter_map(|key| table.field(key.name)) {
        let values = values(&field, &targets, reader);
        check_fit(&field, &targets);
        targets = product(targets, &field, &values, |placed, value| with(placed, field.key, value));
    }
    for setting in of_machine {
        if let Some(field) = table.field(setting.name) {
            targets = on_machines(targets, &field, setting, reader);
        }
    }
    targets
}

/// The different values of a key; "" stands for nothing added, so it cannot be a scheduler.
fn values<'a>(field: &Field<'a>, targets: &[PlacedTarget], reader: &Reader) -> Vec<&'a str> {
    let mut values = Vec::new();
    for element in field.elements().unwrap_or_default() {
        let nothing = field.key != "scheduler" && element.value.as_str() == Some("");
        let Some(value) = (if nothing { Some("") } else { element.text() }) else { continue };
        if values.contains(&value) {
            element.refuse::<()>(&format!("has {} twice", quoted(value)), "leave one of the two out");
        } else if is_right(value, &element, targets, reader) {
            values.push(value);
        }
    }
    values
}

fn is_right(value: &str, element: &Field, targets: &[PlacedTarget], reader: &Reader) -> bool {
    let before = element.complaints.len();
    match element.key {
        _ if value.is_empty() => true,
        "scheduler" => queue::scheduler(value, element).is_some(),
        "age" => age::age(element).is_some() || element.complaints.len() == before,
        "fill" => age::fill(element).is_some() || element.complaints.len() == before,
        _ => targets.iter().all(|placed| suits(value, element, &placed.target, reader)),
    }
}

/// It comes after the target's own words for mkfs.
fn suits(value: &str, element: &Field, target: &Target, reader: &Reader) -> bool {
    let known = |name: &String| reader.catalogue.filesystems.iter().find(|entry| entry.name == *name);
    let driver = target.fs.as_ref().and_then(known);
    check_option(target.mkfs.last().map(String::as_str), value, element, driver)
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

fn check_fit(field: &Field, targets: &[PlacedTarget]) {
    if let Some(placed) = targets.iter().find(|placed| has_own(&placed.target, field.key)) {
        let message = format!("the target {} sets {} itself", quoted(&placed.target.name), field.shown());
        field.complaints.add(&field.key_place, message, "take it out of the target, or out of [matrix]");
    }
    let unmade = |target: &Target| field.key != "scheduler" && target.fs.is_none();
    if let Some(placed) = targets.iter().find(|placed| unmade(&placed.target)) {
        let name = quoted(&placed.target.name);
        let problem = Problem::Of(format!("cannot apply to {name}, where no file system is made"));
        let remedy = "leave it out of [matrix], and give it to the targets that can use it";
        field.complaints.add(&field.key_place, problem, remedy);
    }
}

fn product<T>(
    targets: Vec<PlacedTarget>,
    field: &Field,
    values: &[T],
    with: impl Fn(&PlacedTarget, &T) -> PlacedTarget,
) -> Vec<PlacedTarget> {
    let count = targets.len().saturating_mul(values.len());
    if count > MOST_TARGETS {
        let remedy = format!("use fewer values: {MOST_TARGETS} targets are the limit");
        field.complaints.add(&field.key_place, format!("this makes {count} targets"), remedy);
    }
    if count == 0 || count > MOST_TARGETS {
        return targets;
    }
    targets.iter().flat_map(|placed| values.iter().map(|value| with(placed, value))).collect()
}

fn with(placed: &PlacedTarget, key: &str, value: &str) -> PlacedTarget {
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
            target.fill = pickfs_system::units::parse_share(value).ok().filter(|share| *share > 0.0);
            added = age::words(None, target.fill);
        }
        _ => target.scheduler = Some(value.into()),
    }
    target.name = std::iter::once(target.name.clone()).chain(added).collect::<Vec<_>>().join(" ");
    placed
}

/// The executor's settings that a matrix may have, which are written as text.
fn in_matrix(settings: &'static [Setting]) -> Vec<&'static Setting> {
    use SettingKind::{Count, Counts, Flag, Within};
    settings.iter().filter(|setting| !matches!(setting.kind, Count | Within(..) | Counts | Flag)).collect()
}

/// Checked, and nothing stands against it.
fn suited(element: &Field, setting: &Setting, reader: &Reader) -> Option<serde_json::Value> {
    let value = checked(element, setting.kind, reader)?;
    let executor = reader.executor();
    let alone = Settings([(setting.name.to_string(), value.clone())].into());
    let objections = (executor.objections)(executor.name, &alone);
    let object = |objection| reader.complaints.object(&element.place, objection);
    objections.into_iter().filter(|objection| objection.setting == setting.name).for_each(object);
    Some(value)
}

/// Every target with each value of one of the executor's settings.
fn on_machines(targets: Vec<PlacedTarget>, field: &Field, setting: &Setting, reader: &Reader) -> Vec<PlacedTarget> {
    if let Some(placed) = targets.iter().find(|placed| placed.own_machine.iter().any(|(key, _)| key == setting.name)) {
        let message = format!("the target `{}` sets {} itself", placed.target.name, field.shown());
        reader.complaints.add(&field.key_place, message, "take it out of the target, or out of [matrix]");
    }
    let elements = field.elements().unwrap_or_default();
    let value = |element: &Field| Some((shown(element)?, suited(element, setting, reader)?));
    let values: Vec<_> = elements.iter().filter_map(value).collect();
    product(targets, field, &values, |placed, (shown, value)| {
        let mut placed = placed.clone();
        placed.target.machine.0.insert(setting.name.into(), value.clone());
        placed.target.name = format!("{} {shown}", placed.target.name);
        placed
    })
}
