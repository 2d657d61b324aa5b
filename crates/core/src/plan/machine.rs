//! `machine` and `layers`: what does the work, and what lies between the backing and the file
//! system.

use super::complaint::Place;
use super::table::{Field, Reader, Table, choose, choose_key};
use super::value::settings;
use super::{Chosen, Entry, Plan, Settings, Turn};

/// The executor of a plan that names none.
pub(super) const LOCAL: &str = "local";

/// The executor's settings of a target's machine: the target's own before the plan's, then the
/// defaults.
pub(super) fn machine(plan: &Table, target: Option<&Table>, reader: &Reader) -> Settings {
    let own = target.map(|table| given(table)).unwrap_or_default();
    let shared: Vec<Field> = given(plan).into_iter().filter(|f| own.iter().all(|o| o.key != f.key)).collect();
    let place = own.first().or(shared.first()).map_or(&plan.place, |field| &field.place).clone();
    let fields: Vec<Field> = own.into_iter().chain(shared).collect();
    let executor = reader.executor();
    settings(executor, &fields, &[], &place, reader)
}

/// A guest has its own settings; two runs on the machine itself would measure each other and put
/// back each other's settings.
pub(super) fn check_turn(table: &Table, plan: &Plan) {
    if let Some(field) = table.field("turn").filter(|_| plan.turn == Some(Turn::Shared) && plan.executor == LOCAL) {
        let why = "cannot be `shared` with the executor `local`, whose runs change settings of this machine";
        field.refuse::<()>(why, "leave it out, or have the cells done in guests: executor = \"vm\"");
    }
}

/// The entries of `machine`; none where there is none.
fn given<'a>(table: &Table<'a>) -> Vec<Field<'a>> {
    let Some(field) = table.field("machine") else { return Vec::new() };
    let table = field.table("machine");
    table.map(|table| table.fields().collect()).unwrap_or_default()
}

/// In the text of a target, its own settings of the machine: key and value as its name shows them.
pub(super) fn own_words(target: &Table) -> Vec<(String, String)> {
    let Some(entries) = target.field("machine").and_then(|field| field.value.as_table()) else { return Vec::new() };
    let shown = |field: Field| Some((field.key.to_string(), shown(&field)?));
    Table::new("machine", Place::default(), entries, target.complaints).fields().filter_map(shown).collect()
}

pub(super) fn shown(field: &Field) -> Option<String> {
    let number = || field.value.as_integer().map(|number| number.as_str().to_string());
    let float = || field.value.as_float().map(|float| float.as_str().to_string());
    field.value.as_str().map(String::from).or_else(number).or_else(float)
}

/// `layers = ["luks", { md = { level = "raid1" } }]`, the lowest first; and the number of devices
/// above them all when `devices` lie below, where that can be known.
pub(super) fn layers(table: &Table, devices: Option<usize>, reader: &Reader) -> (Vec<Chosen>, Option<usize>) {
    let Some(field) = table.field("layers") else { return (Vec::new(), devices) };
    let (mut chosen, mut devices) = (Vec::new(), devices);
    for element in field.elements().unwrap_or_default() {
        let before = reader.complaints.len();
        let found = layer(&element, LAYERS, &reader.catalogue.layers, reader);
        devices = devices.filter(|_| reader.complaints.len() == before);
        devices = found.as_ref().zip(devices).and_then(|(layer, there)| devices_above(layer, there, &element, reader));
        chosen.extend(found);
    }
    (chosen, devices)
}

fn devices_above(layer: &Chosen, there: usize, element: &Field, reader: &Reader) -> Option<usize> {
    let catalogue = reader.catalogue;
    let entry = catalogue.layers.iter().find(|entry| entry.name == layer.name)?;
    let remedy =
        "give the backing more `disks`, such as `image = { size = \"4GiB\", disks = 4 }`, or take another layer";
    let counted = (entry.above)(entry.name, &layer.settings, there);
    counted.map_err(|why| reader.complaints.add(&element.place, why, remedy)).ok()
}

/// `above = ["gocryptfs"]`, the lowest first.
pub(super) fn above(table: &Table, reader: &Reader) -> Vec<Chosen> {
    let elements = table.field("above").and_then(|field| field.elements()).unwrap_or_default();
    elements.iter().filter_map(|element| layer(element, ABOVE, &reader.catalogue.above, reader)).collect()
}

const LAYERS: (&str, &str) = ("layer", "pickfs list layers");
const ABOVE: (&str, &str) = ("layer above", "pickfs list above");

fn layer(element: &Field, listing: (&str, &str), entries: &[Entry], reader: &Reader) -> Option<Chosen> {
    if element.value.is_str() {
        let entry = choose(element, listing, entries, |entry| entry.name)?;
        return Some(Chosen { name: entry.name.into(), settings: settings(entry, &[], &[], &element.place, reader) });
    }
    let example = "write a name, or one name with its settings, such as `{ md = { level = \"raid1\" } }`";
    let table = element
        .value
        .as_table()
        .map(|entries| Table::new("a layer", element.place.clone(), entries, element.complaints));
    let fields: Vec<Field> = table.iter().flat_map(Table::fields).collect();
    let [value] = &fields[..] else { return element.refuse("is not one layer", example) };
    let entry = choose_key(value, listing, entries, |entry| entry.name)?;
    let inner = value.table(entry.name)?;
    let given: Vec<Field> = inner.fields().collect();
    Some(Chosen { name: entry.name.into(), settings: settings(entry, &given, &[], &value.place, reader) })
}

#[cfg(test)]
mod tests {
    use super::super::example::{Hostile, complained, read, with};
    use serde_json::json;

    #[test]
    fn a_target_tells_its_machine_before_the_plan_does() {
        let plan = with(
            "BW",
            "executor = 'vm'\nmachine = { memory = '2GiB', kernel = 'sid' }\n\
             [[target]]\nfs = 'ext4'\nmachine = { kernel = 'trixie' }\n[[target]]\nfs = 'xfs'\n",
        );
        let plan = read(&plan).unwrap();
        let value = |index: usize, key: &str| plan.targets[index].machine.0.get(key).cloned();
        assert_eq!([value(0, "kernel"), value(1, "kernel")], [Some(json!("trixie")), Some(json!("sid"))]);
        assert_eq!([value(0, "memory"), value(1, "processors")], [Some(json!(2u64 << 30)), None]);
        let names: Vec<&str> = plan.targets.iter().map(|target| target.name.as_str()).collect();
        assert_eq!(names[..2], ["ext4 trixie", "xfs"]);
    }

    #[test]
    fn here_nothing_is_told_and_old_cells_keep_their_ids() {
        let plan = read(&with("BTW", "")).unwrap();
        assert!(plan.targets[0].machine.is_empty() && plan.targets[0].layers.is_empty());
        let text = serde_json::to_string(&plan.targets[0]).unwrap();
        assert!(!text.contains("machine") && !text.contains("layers"), "{text}");
    }

    #[test]
    fn every_target_has_each_kernel_of_a_matrix() {
        let plan = read(&with("BTW", "executor = 'vm'\n[matrix]\nkernel = ['bullseye', 'sid']\n")).unwrap();
        let names: Vec<&str> = plan.targets.iter().map(|target| target.name.as_str()).collect();
        assert_eq!(names[..2], ["ext4 bullseye", "ext4 sid"]);
        assert_eq!(plan.targets[1].machine.text("kernel"), Some("sid"));
    }

    #[test]
    fn layers_are_named_with_or_without_settings() {
        let plan = with(
            "W",
            "backing = { image = { dir = '/m', disks = 2 } }\n[[target]]\nfs = 'ext4'\n\
             layers = ['luks', { md = { level = 'raid0' } }, 'luks']\n[[target]]\nfs = 'ext4'\nlayers = ['md']",
        );
        let plan = read(&plan).unwrap();
        let names: Vec<&str> = plan.targets.iter().map(|target| target.name.as_str()).collect();
        assert_eq!(names[..2], ["ext4 on luks on md raid0 on luks", "ext4 on md raid1"]);
        let levels: Vec<_> = plan.targets[0].layers.iter().map(|layer| layer.settings.text("level")).collect();
        assert_eq!(levels, [None, Some("raid0"), None]);
    }

    #[rustfmt::skip]
    const HOSTILE: &[Hostile] = &[
        ("BTW", "machine = { kernel = 'sid' }", &[(1, "`kernel` is for the executor `vm`: add `executor = \"vm\"` at the top")]),
        ("BTW", "executor = 'vm'\nmachine = { kernal = 'sid', memory = 'much' }", &[(2, "did you mean `kernel`"), (2, "`memory`")]),
        ("BTW", "executor = 'vm'\nmachine = 'fast'", &[(2, "`machine`")]),
        ("BTW", "[matrix]\nkernel = ['sid']", &[(2, "no key `kernel`")]),
        ("BTW", "executor = 'vm'\n[matrix]\nmemory = ['lots']", &[(3, "`memory`")]),
        ("BW", "executor = 'vm'\ntarget = [{ fs = 'xfs', machine = { kernel = 'sid' } }]\n[matrix]\nkernel = ['sid']",
            &[(4, "sets `kernel` itself")]),
        ("BW", "target = [{ fs = 'xfs', layers = ['lux', 3, { luks = {}, md = {} }, { md = { level = 'x' } }] }]",
            &[(1, "use one of `luks` and `md`"), (1, "one layer"), (1, "one layer"), (1, "`level`")]),
    ];

    #[test]
    fn what_cannot_be_told_is_complained_of() {
        complained(HOSTILE);
    }

    /// One target on an image with `$disks` disks.
    macro_rules! plan {
        ($disks:literal, $target:literal) => {
            concat!("backing = { image = { dir = '/m', disks = ", $disks, " } }\n[[target]]\n", $target)
        };
    }

    #[test]
    fn layers_and_file_systems_get_as_many_devices_as_they_need() {
        complained(&[
            ("W", plan!(1, "fs = 'ext4'\nlayers = ['luks', 'md']"), &[(4, "md needs 2 devices, and 1 lie below it")]),
            ("W", plan!(3, "fs = 'ext4'\nlayers = ['md', 'md']"), &[(4, "md needs 2 devices, and 1 lie below it")]),
            ("W", plan!(3, "fs = 'ext4'"), &[(3, "ext4 uses one device, but 3 are below it")]),
            ("W", plan!(3, "fs = 'xfs'\nlayers = ['luks']"), &[(3, "xfs uses one device, but 3 are below it")]),
            (
                "W",
                plan!(1, "fs = 'btrfs'\nvariant = 'raid1'"),
                &[(4, "btrfs raid1 needs 2 devices, but 1 are below it")],
            ),
            (
                "W",
                plan!(3, "fs = 'btrfs'\nvariant = 'raid1'\nlayers = ['md']"),
                &[(4, "btrfs raid1 needs 2 devices, but 1 are below it")],
            ),
        ]);
        for right in [
            plan!(3, "fs = 'ext4'\nlayers = ['luks', 'md']"),
            plan!(2, "fs = 'btrfs'\nvariant = 'raid1'\nlayers = ['luks']"),
        ] {
            let plan = read(&with("W", right));
            assert!(plan.is_ok(), "{right}: {plan:?}");
        }
    }
}
