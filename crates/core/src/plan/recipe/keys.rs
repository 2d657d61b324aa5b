//! Every key of a recipe, table by table: what the check allows, and what docs/recipes.md says of
//! it. `keys.toml` has them.

use crate::plan::complaint::quoted;
use crate::plan::keys::NO_KEY;
use crate::plan::table::{Field, Table};
use crate::plan::{Key, KeyTable};
use serde::Deserialize;
use std::sync::LazyLock;

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
struct File {
    table: Vec<Rows>,
}

#[derive(Deserialize)]
struct Rows {
    head: &'static str,
    about: &'static str,
    /// Name, example and words of each.
    keys: Vec<[&'static str; 3]>,
}

/// In the order of a recipe.
pub fn tables() -> &'static [&'static KeyTable] {
    static TABLES: LazyLock<Vec<&KeyTable>> = LazyLock::new(|| {
        let file: File = toml::from_str(include_str!("keys.toml")).expect("a test reads them");
        let key = |[name, example, about]: [&'static str; 3]| Key { name, example, about, ..NO_KEY };
        let table = |Rows { head, about, keys }: Rows| -> &KeyTable {
            Box::leak(Box::new(KeyTable { head, about, keys: keys.into_iter().map(key).collect::<Vec<_>>().leak() }))
        };
        file.table.into_iter().map(table).collect()
    });
    &TABLES
}

/// Complains of keys that the table of a recipe with this head does not have.
pub(super) fn only(table: &Table, head: &str) {
    let names = |head| {
        let keys = tables().iter().filter(|table| table.head == head).flat_map(|table| table.keys);
        keys.map(|key| key.name).collect::<Vec<_>>()
    };
    table.only_below("recipe", &names(""), &names(head));
}

/// The field, or a complaint that there is none, with an example.
pub(super) fn required<'a>(table: &Table<'a>, key: &str) -> Option<Field<'a>> {
    table.field(key).or_else(|| {
        let example = example(key);
        table.complaints.refuse(
            &table.place,
            format!("{} has no {}", table.label, quoted(key)),
            format!("add a line such as `{key} = {example}`"),
        )
    })
}

/// A value of the key as it stands in a recipe.
fn example(name: &str) -> &'static str {
    tables().iter().flat_map(|table| table.keys).find(|key| key.name == name).map_or("\"...\"", |key| key.example)
}
