//! `[backing]` and `[[target]]`: what is compared, and where its bytes live.

use super::age;
use super::complaint::{Complaints, Place, Remedy, one_slip_from, quoted};
use super::keys::TARGET;
use super::machine;
use super::queue;
use super::setting::disks;
use super::table::{Field, Reader, Table, choose, choose_key};
use super::value::settings;
use super::words::{wrong_for_mkfs, wrong_for_mount};
use super::{Chosen, Entry, FilesystemEntry, Settings, Target};
use pickfs_system::units::show_bytes;

/// What the key `overlay` stands for.
pub(super) const OVERLAYFS: &str = "overlayfs";

/// A target and its place in the text, for what is only wrong in company, such as its name.
#[derive(Clone)]
pub(super) struct PlacedTarget {
    pub target: Target,
    pub place: Place,
    /// What the target says of its machine itself, as its name shows it.
    pub own_machine: Vec<(String, String)>,
}

/// A checked backing with what later checks need to know of it.
#[derive(Clone)]
struct Backing<'c> {
    chosen: Chosen,
    entry: &'c Entry,
    /// Where its size is said, else where it is itself.
    size_place: Place,
    place: Place,
}

/// All targets in the order of the plan, without products and without the duplicate.
pub(super) fn targets(plan: &Table, reader: &Reader) -> Vec<PlacedTarget> {
    let end = &plan.place;
    let field = plan.field("backing");
    let shared = field.as_ref().and_then(|field| backings(field, reader));
    if let Some(field) = plan.field("target") {
        let tables = field.tables("[[target]]");
        let shared = shared.and_then(|shared| only_one(shared, reader.complaints));
        return tables.iter().map(|table| target(table, plan, field_or(&shared, plan), reader)).collect();
    }
    match shared {
        Some(shared) => {
            let machine = machine::machine(plan, None, reader);
            shared.into_iter().filter_map(|backing| existing(backing, &machine, end, reader)).collect()
        }
        None if field.is_some() => Vec::new(),
        None => {
            let remedy = "say what to compare: add [[target]] with `fs = \"ext4\"` below it, and a [backing]";
            reader.complaints.add(end, "the plan has no targets", remedy);
            Vec::new()
        }
    }
}

/// The plan's backing, or that it is missing, or wrong; a wrong one has been reported already.
enum Shared<'s, 'c> {
    Is(&'s Backing<'c>),
    Missing,
    Wrong,
}

fn field_or<'s, 'c>(shared: &'s Option<Backing<'c>>, plan: &Table) -> Shared<'s, 'c> {
    match shared {
        Some(backing) => Shared::Is(backing),
        None if plan.field("backing").is_some() => Shared::Wrong,
        None => Shared::Missing,
    }
}

fn only_one<'c>(mut shared: Vec<Backing<'c>>, complaints: &Complaints) -> Option<Backing<'c>> {
    if shared.len() == 1 {
        return shared.pop();
    }
    let place = shared.first().map(|backing| backing.place.clone()).unwrap_or_default();
    let remedy = "give one path here, or give each [[target]] its own `backing`";
    complaints.refuse(&place, "several paths cannot be the backing of each [[target]]", remedy)
}

/// An existing directory as a target.
fn existing(backing: Backing, machine: &Settings, end: &Place, reader: &Reader) -> Option<PlacedTarget> {
    if backing.entry.makes_filesystem {
        let message = format!("the plan has no targets, and `{}` needs a file system on it", backing.entry.name);
        return reader.complaints.refuse(end, message, "add [[target]] with `fs = \"ext4\"` below it");
    }
    let (backing_of, machine) = (backing.chosen.clone(), machine.clone());
    let mut target = Target { backing: backing_of, machine, ..Target::default() };
    target.name = made_name(&target, &[], Some(&backing));
    Some(PlacedTarget { target, place: backing.place, own_machine: Vec::new() })
}

/// The backing, or one for each path of a list.
fn backings<'c>(field: &Field, reader: &Reader<'c>) -> Option<Vec<Backing<'c>>> {
    let (entry, value) = kind_of_backing(field, reader)?;
    if value.value.is_array() && !entry.makes_filesystem && !entry.main_setting.is_empty() {
        return directories(entry, &value, reader);
    }
    Some(vec![backing(entry, &value, reader)])
}

/// The single key of a backing's table, with what stands behind it.
fn kind_of_backing<'a, 'c>(field: &Field<'a>, reader: &Reader<'c>) -> Option<(&'c Entry, Field<'a>)> {
    let catalogue = reader.catalogue;
    let example = "name one backing with its settings, such as `image = { dir = \"/mnt\", size = \"20GiB\" }`";
    let table = field.table("[backing]")?;
    let mut fields = table.fields();
    let Some(value) = fields.next() else { return field.refuse("is empty", example) };
    if let Some(second) = fields.next() {
        let remedy = "keep one here, and give a target that lives elsewhere its own `backing`";
        reader.complaints.add(&second.key_place, format!("a second backing {}", second.shown()), remedy);
    }
    let listing = ("backing", "pickfs list backings");
    let entry = choose_key(&value, listing, &catalogue.backings, |entry| entry.name)?;
    Some((entry, value))
}

fn backing<'c>(entry: &'c Entry, field: &Field, reader: &Reader<'c>) -> Backing<'c> {
    let given: Vec<Field> = match field.value.as_table() {
        Some(entries) => Table::new("", field.place.clone(), entries, field.complaints).fields().collect(),
        None => {
            let place = field.place.below(entry.main_setting, field.place.span.clone());
            vec![Field { key: entry.main_setting, place, ..field.clone() }]
        }
    };
    let settings = settings(entry, &given, &[], &field.place, reader);
    if !entry.makes_filesystem && given.iter().all(|field| field.key != entry.main_setting) {
        let message = format!("`{}` needs {}", entry.name, quoted(entry.main_setting));
        reader.complaints.add(&field.place, message, Remedy::write("write it like this", &[entry.name], "\"/mnt\""));
    }
    let size = given.iter().find(|field| field.key == "size").unwrap_or(field);
    let chosen = Chosen { name: entry.name.into(), settings };
    Backing { chosen, entry, size_place: size.place.clone(), place: field.place.clone() }
}

fn directories<'c>(entry: &'c Entry, list: &Field, reader: &Reader<'c>) -> Option<Vec<Backing<'c>>> {
    let elements = list.elements()?;
    let before = reader.complaints.len();
    let all: Vec<Backing> = elements.iter().map(|field| backing(entry, field, reader)).collect();
    // One wrong path must not turn the others into a complaint about how many there are.
    (reader.complaints.len() == before).then_some(all)
}

fn target(table: &Table, plan: &Table, shared: Shared, reader: &Reader) -> PlacedTarget {
    refuse_discard(table);
    table.only(&[TARGET.names(), vec!["discard"]].concat());
    let own = table.field("backing").map(|field| {
        let (entry, value) = kind_of_backing(&field, reader)?;
        Some(backing(entry, &value, reader))
    });
    let (backing, missing) = match (&own, shared) {
        (Some(own), _) => (own.as_ref(), false),
        (None, Shared::Is(shared)) => (Some(shared), false),
        (None, Shared::Wrong) => (None, false),
        (None, Shared::Missing) => (None, true),
    };
    if missing {
        let remedy = "add [backing] to the plan, with a line such as `image = { dir = \"/mnt\", size = \"20GiB\" }`";
        reader.complaints.add(&table.place, "this target has no backing, and the plan has none for all", remedy);
    }
    let driver = filesystem(table, reader);
    check_fit(table, backing, driver);
    let mut target = described(table, driver);
    target.above = machine::above(table, reader);
    check_above(table, &target, reader);
    target.backing = backing.map(|backing| backing.chosen.clone()).unwrap_or_default();
    let below = backing.map(|backing| disks(&backing.chosen.settings) as usize);
    let (layers, devices) = machine::layers(table, below, reader);
    target.layers = layers;
    if let Some((driver, devices)) = driver.zip(devices) {
        check_devices(table, driver, devices);
    }
    target.queue = queue::queue(table, reader);
    target.sysctl = queue::sysctl(table, reader);
    target.machine = machine::machine(plan, Some(table), reader);
    let own_machine = machine::own_words(table);
    let name = table.field("name").map(|field| field.text().map(String::from));
    target.name = name.flatten().unwrap_or_else(|| made_name(&target, &own_machine, backing));
    PlacedTarget { target, place: table.field("name").map_or(table.place.clone(), |field| field.place), own_machine }
}

/// What a target says of itself, as far as it can be read: a name is made of it even if some of it
/// is wrong.
fn described(table: &Table, driver: Option<&FilesystemEntry>) -> Target {
    let as_text = |key: &str| table.field(key).and_then(|field| field.value.as_str().map(String::from));
    if let Some(field) = table.field("variant") {
        check_variant(&field, driver);
    }
    let nodatacow = table.field("nodatacow").is_some_and(|field| nodatacow(&field, driver));
    let overlay = table.field("overlay").and_then(|field| field.flag()).unwrap_or_default();
    let scheduler = table.field("scheduler");
    let scheduler = scheduler.and_then(|field| queue::scheduler(field.text()?, &field).map(String::from));
    let mkfs = table.field("mkfs").map(|field| options(&field, driver)).unwrap_or_default();
    let mount = table.field("mount").map(|field| options(&field, driver)).unwrap_or_default();
    let age = table.field("age").and_then(|field| age::age(&field));
    let fill = table.field("fill").and_then(|field| age::fill(&field));
    let (fs, variant) = (as_text("fs"), as_text("variant"));
    Target { fs, variant, mkfs, mount, nodatacow, overlay, scheduler, age, fill, ..Target::default() }
}

fn refuse_discard(table: &Table) {
    if let Some(field) = table.field("discard") {
        let message = "a single target cannot have its own `discard`: a drive that has discarded its unused blocks \
                       is faster for every target that comes after";
        let remedy = "move `discard` to the top of the plan, where it holds for all targets";
        field.complaints.add(&field.key_place, message, remedy);
    }
}

fn filesystem<'c>(table: &Table, reader: &Reader<'c>) -> Option<&'c FilesystemEntry> {
    let catalogue = reader.catalogue;
    let listing = ("file system", "pickfs list fs");
    choose(&table.field("fs")?, listing, &catalogue.filesystems, |entry| entry.name)
}

fn check_variant(field: &Field, driver: Option<&FilesystemEntry>) {
    let (Some(text), Some(driver)) = (field.text(), driver) else { return };
    if driver.variants.contains(&text) {
        return;
    }
    let remedy = match driver.variants.as_slice() {
        [] => format!("leave `variant` out: {} has none; options go into `mount` and `mkfs`", driver.name),
        variants => format!("use one of {}", super::complaint::listed(variants.iter().copied())),
    };
    field.complaints.add(&field.place, format!("{} has no variant {}", driver.name, quoted(text)), remedy);
}

fn nodatacow(field: &Field, driver: Option<&FilesystemEntry>) -> bool {
    let asked = field.flag().unwrap_or_default();
    if let Some(driver) = driver.filter(|driver| asked && !driver.takes_nodatacow) {
        let message = format!("{} has no copy on write of data that could be switched off", driver.name);
        field.complaints.add(&field.key_place, message, "leave `nodatacow` out, or give it to a target with btrfs");
    }
    asked
}

/// Each layer above must go with what lies below it.
fn check_above(table: &Table, target: &Target, reader: &Reader) {
    let (Some(fs), Some(cannot)) = (&target.fs, reader.catalogue.cannot_lie) else { return };
    let layers = target.layers_above();
    let below = std::iter::once(fs).chain(layers.iter().map(|chosen| &chosen.name));
    let place = ["above", "overlay"].iter().find_map(|key| table.field(key)).map(|field| field.key_place);
    if let Some(why) = reader.catalogue.clash.and_then(|clash| clash(&layers)) {
        let remedy = "leave the settings of the network out, or give each of these layers its own target";
        reader.complaints.add(&place.clone().unwrap_or_default(), why, remedy);
    }
    for (on, layer) in below.zip(&layers) {
        if let Some(why) = cannot(&layer.name, on) {
            let message = format!("{} cannot lie on {on}: {why}", layer.name);
            let remedy = "leave it out, or give it to a target with ext4, xfs or btrfs";
            reader.complaints.add(&place.clone().unwrap_or_default(), message, remedy);
        }
    }
}

/// Options of mount or mkfs, one an element.
fn options(field: &Field, driver: Option<&FilesystemEntry>) -> Vec<String> {
    let mut right: Vec<String> = Vec::new();
    for (text, element) in field.texts().unwrap_or_default() {
        check_option(right.last().map(String::as_str), text, &element, driver);
        right.push(text.into());
    }
    right
}

/// Of an option that comes after another one.
pub(super) fn check_option(
    before: Option<&str>,
    text: &str,
    element: &Field,
    driver: Option<&FilesystemEntry>,
) -> bool {
    if element.key == "mount" && text.contains(',') {
        let parts: Vec<String> = text.split(',').map(|part| format!("\"{part}\"")).collect();
        let remedy = format!("write one option an element: {}", parts.join(", "));
        element.complaints.add(&element.place, format!("{} is more than one mount option", quoted(text)), remedy);
        return false;
    }
    let slip = if element.key == "mount" { slip_in_mount(text, driver) } else { several_words(before, text) };
    if let Some((message, remedy)) = slip {
        element.complaints.add(&element.place, message, remedy);
        return false;
    }
    let wrong = match element.key {
        "mount" => wrong_for_mount(text),
        _ => wrong_for_mkfs(before, text, driver.map(|driver| driver.mkfs_options).unwrap_or_default()),
    };
    let remedy =
        "take it out: only the backing of a plan may name a device, because there it is checked for being in use";
    wrong.map(|wrong| element.complaints.add(&element.place, wrong, remedy)).is_none()
}

/// What mount would refuse, minutes later.
fn slip_in_mount(text: &str, driver: Option<&FilesystemEntry>) -> Option<(String, Remedy)> {
    if text.starts_with('-') {
        let remedy = Remedy::write("options of mkfs go there", &["target", "mkfs"], &list_of_words(text));
        return Some((format!("the option {} begins with a dash", quoted(text)), remedy));
    }
    if text.contains(char::is_whitespace) {
        return Some((format!("the option {} has a space in it", quoted(text)), "write one option an element".into()));
    }
    let driver = driver.filter(|driver| !driver.mount_options.is_empty())?;
    let name = text.split('=').next().unwrap_or_default();
    // A name that is not known may be of a newer kernel; one that differs from a known one in a
    // letter is a slip.
    let near = one_slip_from(name, driver.mount_options)?;
    let message = format!("{} has no mount option {}", driver.name, quoted(name));
    Some((message, format!("did you mean `{}`?", text.replacen(name, near, 1)).into()))
}

/// `-m 0` as a list in TOML.
fn list_of_words(text: &str) -> String {
    toml::Value::from(text.split_whitespace().collect::<Vec<_>>()).to_string()
}

/// A word for mkfs that was meant to be two.
fn several_words(before: Option<&str>, text: &str) -> Option<(String, Remedy)> {
    let is_option = text.starts_with('-') && text.contains(' ') && !before.is_some_and(|word| word.starts_with('-'));
    let message = || format!("mkfs would get {} as one word", quoted(text));
    let remedy = || Remedy::write("write them one by one", &["target", "mkfs"], &list_of_words(text));
    is_option.then(|| (message(), remedy()))
}

/// A file system and its backing must go together.
fn check_fit(table: &Table, backing: Option<&Backing>, driver: Option<&FilesystemEntry>) {
    let Some(backing) = backing else { return };
    match table.field("fs") {
        None if backing.entry.makes_filesystem => {
            let message = format!("this target has no `fs`, and `{}` needs one on it", backing.entry.name);
            table.complaints.add(
                &table.place,
                message,
                "add a line such as `fs = \"ext4\"`; `pickfs list fs` shows them all",
            );
        }
        _ if !backing.entry.makes_filesystem => refuse_making(table, backing),
        _ => driver.into_iter().for_each(|driver| check_size(backing, driver, table.complaints)),
    }
}

fn refuse_making(table: &Table, backing: &Backing) {
    for field in
        ["fs", "variant", "mkfs", "mount", "nodatacow", "overlay", "above", "age", "fill", "layers", "queue", "sysctl"]
            .iter()
            .filter_map(|key| table.field(key))
    {
        let name = backing.entry.name;
        let message = format!("{} cannot be chosen on `{name}`, which brings its own file system", field.shown());
        field.complaints.add(&field.key_place, message, "leave it out, or give the target another `backing`");
    }
}

fn check_size(backing: &Backing, driver: &FilesystemEntry, complaints: &Complaints) {
    let Some(size) = backing.chosen.settings.number("size").filter(|size| *size < driver.minimum_size) else { return };
    let [size, minimum] = [size, driver.minimum_size].map(|bytes| show_bytes(bytes as f64));
    let message = format!("{} needs at least {minimum}, but the size is {size}", driver.name);
    complaints.add(
        &backing.size_place,
        message,
        format!("make the size {minimum} or more, or leave {} out", driver.name),
    );
}

/// As many as a file system can be made of.
fn check_devices(table: &Table, driver: &FilesystemEntry, devices: usize) {
    let variant = table.field("variant").and_then(|field| field.value.as_str());
    if let Some(objection) = (driver.devices)(driver.name, variant, devices) {
        let place = table.field(objection.setting).map(|field| field.place).unwrap_or_default();
        table.complaints.object(&place, objection);
    }
}

/// Each target must fit what its machine is made of.
pub(super) fn check_machines(placed: &[PlacedTarget], reader: &Reader) {
    let Some(unfit) = reader.catalogue.unfit else { return };
    for PlacedTarget { target, place, .. } in placed {
        let objection = unfit(reader.executor, target);
        objection.into_iter().for_each(|objection| reader.complaints.object(place, objection));
    }
}

/// "btrfs zstd:1 noatime": what distinguishes the target; a directory is its own name.
fn made_name(target: &Target, machine: &[(String, String)], backing: Option<&Backing>) -> String {
    let place = || backing.and_then(|backing| backing.chosen.settings.text(backing.entry.main_setting));
    let first = target.fs.clone().or_else(|| place().map(String::from)).unwrap_or_else(|| target.backing.name.clone());
    let machine = machine.iter().map(|(_, value)| value.clone());
    std::iter::once(first).chain(target.options()).chain(machine).collect::<Vec<_>>().join(" ")
}

impl Target {
    /// What is chosen for its file system and what lies below, a word or a few each, in the order
    /// of made names.
    fn options(&self) -> Vec<String> {
        let made = self.variant.iter().chain(&self.mkfs).chain(&self.mount).cloned();
        let in_place = self.nodatacow.then(|| "nodatacow".to_string());
        let overlay = self.overlay.then(|| "overlay".to_string());
        let above = self.above.iter().map(|layer| format!("+ {}", layer_words(layer)));
        let layers = self.layers.iter().map(|layer| format!("on {}", layer_words(layer)));
        let queue = self.scheduler.iter().cloned().chain(queue::words(&self.queue)).chain(queue::words(&self.sysctl));
        made.chain(in_place)
            .chain(overlay)
            .chain(above)
            .chain(layers)
            .chain(queue)
            .chain(age::words(self.age, self.fill))
            .collect()
    }

    /// What lies between the file system and the work, the lowest first.
    pub fn layers_above(&self) -> Vec<Chosen> {
        let overlay = self.overlay.then(|| Chosen { name: OVERLAYFS.into(), ..Chosen::default() });
        overlay.into_iter().chain(self.above.iter().cloned()).collect()
    }

    /// All that can differ between targets of one file system, a word or a few each.
    pub fn factors(&self) -> Vec<String> {
        let shown = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), String::from);
        let machine = self.machine.0.iter().map(|(name, value)| format!("{name} {}", shown(value)));
        let place = self.backing.settings.0.iter().map(|(name, value)| format!("{name} {}", shown(value)));
        let backing = [self.backing.name.clone()].into_iter().filter(|name| !name.is_empty());
        self.options().into_iter().chain(machine).chain(backing).chain(place).collect()
    }
}

/// A layer and what its settings choose, if that is a word: "md raid1".
fn layer_words(layer: &Chosen) -> String {
    let words = layer.settings.0.values().filter_map(|value| value.as_str());
    std::iter::once(layer.name.as_str()).chain(words).collect::<Vec<_>>().join(" ")
}
