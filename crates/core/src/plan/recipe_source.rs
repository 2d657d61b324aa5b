//! `workload = "./mine.toml"`: the recipe that a plan names. Its text becomes part of the plan.

use super::Entry;
use super::complaint::{Complaint, Complaints, Place, quoted};
use super::flag::looks_like_path;
use super::recipe::{self, RECIPE, Recipe};
use super::table::{Field, Reader, Table};
use super::value::path;
use rustix::fs::OFlags;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use toml::de::DeTable;

/// More is refused before it is read.
const LONGEST: u64 = 1 << 20;

/// The recipe, and the workload that plays it as a plan needs to know it; `Some(None)` where the
/// field has the name of a workload.
pub(super) fn read(field: &Field, reader: &Reader) -> Option<Option<(&'static Recipe, Entry)>> {
    let named = field.value.as_str().unwrap_or_default();
    let (text, file) = match named {
        _ if named.contains('\n') => (named.to_string(), format!("recipe of {}", field.key)),
        _ if looks_like_path(named) => (text_of(field, reader.folder)?, named.to_string()),
        _ => return Some(None),
    };
    let recipe = match recipe::read_once(&text, &file) {
        Ok(recipe) => recipe,
        Err(complaints) => {
            reader.complaints.of_file(complaints);
            return None;
        }
    };
    let Some(entry) = reader.catalogue.workloads.iter().find(|entry| entry.name == RECIPE) else {
        return field.refuse("is a recipe, which this program cannot play", "name a workload");
    };
    let settings = recipe::rows(recipe, &text);
    Some(Some((recipe, Entry { settings, main_setting: recipe.main, ..entry.clone() })))
}

fn text_of(field: &Field, folder: &Path) -> Option<String> {
    let place = path(field, folder)?;
    let unreadable = |why: String| {
        let remedy =
            "name a file in the plan's folder: workload = \"./mine.toml\"; docs/recipes.md describes its content";
        field.refuse(&format!("names a recipe that pickfs cannot read, {}: {why}", quoted(&place)), remedy)
    };
    let mut bytes = Vec::new();
    // A pipe or a device could be waited for and read for ever.
    let opened = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(&place);
    let opened = opened.and_then(|file| Ok((file.metadata()?.is_file(), file)));
    match opened.and_then(|(is_file, file)| if is_file { file.take(LONGEST).read_to_end(&mut bytes) } else { Ok(0) }) {
        Err(error) => unreadable(error.to_string()),
        Ok(_) if bytes.is_empty() => unreadable("it is no file with text in it".into()),
        Ok(_) => match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\n') => unreadable("it has one line".into()),
            Ok(text) => Some(text),
            Err(_) => unreadable("it is not text in UTF-8".into()),
        },
    }
}

/// The text of a plan with those of its recipes in it, for a machine that has no such files.
pub fn inlined(text: &str, folder: &Path) -> Result<String, Vec<Complaint>> {
    let (mut whole, complaints) = (text.to_string(), Complaints::default());
    each_file(text, &complaints, |field| {
        if let (Some(recipe), Some(span)) = (text_of(field, folder), field.place.span.clone()) {
            whole.replace_range(span, &toml::Value::from(recipe).to_string());
        }
    });
    let complaints = complaints.finish();
    if complaints.is_empty() { Ok(whole) } else { Err(complaints) }
}

/// The files of the recipes that the text of a plan names.
pub fn recipe_files(text: &str, folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    each_file(text, &Complaints::default(), |field| files.extend(path(field, folder).map(PathBuf::from)));
    files
}

/// The last comes first, so that places before it stay what they are.
fn each_file(text: &str, complaints: &Complaints, mut found: impl FnMut(&Field)) {
    let Ok(document) = DeTable::parse(text) else { return };
    let table = Table::new("the plan", Place::default(), document.get_ref(), complaints);
    let works = table.field("work").filter(|field| field.value.is_array()).and_then(|field| field.elements());
    for work in works.unwrap_or_default().iter().rev().filter(|work| work.value.is_table()) {
        let field = work.table("[[work]]").and_then(|work| work.field("workload"));
        if let Some(field) = field.filter(|field| field.value.as_str().is_some_and(looks_like_path)) {
            found(&field);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::complaint::Voice;
    use crate::plan::example::{catalogue, with};
    use crate::plan::{Entry, Plan, from_toml};

    const RECIPE_TEXT: &str = "name = 'mine'\nabout = \"it's\"\nsetting = { keys = { kind = 'count', default = 3, at_least = 2, \
        about = 'x' } }\n[[phase]]\nname = 'p'\nabout = 'x'\nstarts = 'warm'\nrun = 'true'\n";

    fn read_in(folder: &Path, text: &str) -> Result<Plan, Vec<Complaint>> {
        let mut catalogue = catalogue();
        let entry = Entry { name: RECIPE, settings: &[], ..catalogue.workloads[0].clone() };
        catalogue.workloads.push(entry);
        from_toml(text, "a.toml", folder, &catalogue)
    }

    #[test]
    fn the_text_of_a_recipe_is_part_of_the_plan_wherever_its_file_is() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mine.toml"), RECIPE_TEXT).unwrap();
        let text = with(
            "BT",
            "[[work]]\nname = 'a'\nworkload = \"./mine.toml\"\nkeys = 5\n[[work]]\nworkload = 'tree'\n[[work]]\nworkload = 'mine.toml'",
        );
        let near = read_in(folder.path(), &text).unwrap();
        assert_eq!(near.works.iter().map(|work| work.name.as_str()).collect::<Vec<_>>(), ["a", "tree", "mine"]);
        assert_eq!(near.works[0].workload.name, RECIPE);
        assert_eq!(near.works[0].workload.settings.text(RECIPE), Some(RECIPE_TEXT));
        let keys = |at: usize| near.works[at].workload.settings.number("keys");
        assert_eq!((keys(0), keys(2)), (Some(5), Some(3)));
        assert_eq!(
            recipe_files(&text, folder.path()),
            [folder.path().join("mine.toml"), folder.path().join("./mine.toml")]
        );
        // A machine without the file reads the same.
        let sent = inlined(&text, folder.path()).unwrap();
        assert_eq!(read_in(Path::new("/nowhere"), &sent).unwrap(), near);
        assert!(read_in(Path::new("/nowhere"), &text).unwrap_err()[0].message(Voice::File).contains("cannot read"));
        assert!(inlined(&text, Path::new("/nowhere")).is_err());
    }

    #[test]
    fn complaints_of_a_recipe_are_of_its_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("bad.toml"), "name = 'x'\nabout = 3\n").unwrap();
        let text = with("BT", "sed = 1\n[[work]]\nworkload = './bad.toml'");
        let complaints = read_in(folder.path(), &text).unwrap_err();
        let places: Vec<&str> =
            complaints.iter().map(|one| one.source.as_ref().map_or("plan", |source| source.file.as_str())).collect();
        assert_eq!(places, ["plan", "./bad.toml", "./bad.toml"]);
        let shown = crate::plan::render(&text, "a.toml", &complaints, false);
        assert!(shown.contains("--> a.toml:3:1") && shown.contains("--> ./bad.toml:2:9"), "{shown}");
    }
}
