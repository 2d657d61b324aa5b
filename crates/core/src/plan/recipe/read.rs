//! A recipe from its TOML text.

use super::keys::{only, required};
use super::rows::{rules, settings};
use super::scope::{Scope, expression, words_of};
use super::{
    Content, Doubt, Figure, FigureSource, LatenciesOf, MadeFile, PartOf, PhaseOf, Range, Reads, Recipe, ServerOf,
    Starts, StopSignal, Until, Word, leaked,
};
use crate::metric::{self, ReportTable};
use crate::plan::complaint::{Complaint, Complaints, Place, listed, quoted};
use crate::plan::table::{Field, Table, end_of, syntax};
use crate::plan::value::choice;
use crate::plan::{Setting, SettingKind};
use std::collections::{BTreeMap, HashSet};
use std::path::{Component, Path};
use toml::de::DeTable;

/// More is no recipe.
const LONGEST: usize = 64 << 10;

pub(super) fn recipe(text: &str) -> Result<Recipe, Vec<Complaint>> {
    let complaints = Complaints::default();
    if text.len() > LONGEST {
        complaints.add(
            &Place::default(),
            format!("the recipe has {} bytes", text.len()),
            "64 KiB are the most: make it smaller",
        );
        return Err(complaints.finish());
    }
    let document = DeTable::parse(text).map_err(|error| vec![syntax(&error, text)])?;
    let table = Table::new("the recipe", end_of(text), document.get_ref(), &complaints);
    let recipe = whole(&table);
    let complaints = complaints.finish();
    if complaints.is_empty() { Ok(recipe) } else { Err(complaints) }
}

fn whole(table: &Table) -> Recipe {
    only(table, "");
    let (settings, ranges): (Vec<Setting>, Vec<Range>) = settings(table).into_iter().unzip();
    let scope = Scope { settings: &settings, lists: Vec::new(), each: None, figures: Vec::new() };
    let words = lists(table, &scope);
    let scope = Scope { lists: words.keys().copied().collect(), ..scope };
    let main = table.field("main").and_then(|field| scope.setting(&field)).map_or("", |row| row.name);
    let server = table.field("server").and_then(|field| server(&field.table("[server]")?, &scope));
    let phases = phases(table, &scope);
    let recipe = Recipe {
        name: required(table, "name").and_then(|field| plain_name(&field)).unwrap_or_default(),
        about: required(table, "about").and_then(|field| field.text()).unwrap_or_default().into(),
        main,
        is_mean: table.field("judged").and_then(|field| choice(&field, &["sum", "mean"])) == Some("mean"),
        per: table.field("per").and_then(|field| field.text()).map(leaked),
        under: table.field("under").and_then(|field| field.text()).map(leaked),
        rules: rules(table, &scope),
        seconds: table.field("seconds").and_then(|field| scope.amount(&field)),
        bytes: table.field("bytes").and_then(|field| scope.amount(&field)),
        needs: needs(table),
        versions: versions(table),
        environment: table.field("environment").map(|field| environment(&field, &scope)).unwrap_or_default(),
        files: table.field("file").map(|field| files(&field, &scope)).unwrap_or_default(),
        words,
        server,
        phases,
        settings: Vec::new(),
        ranges,
    };
    Recipe { settings, ..recipe }
}

/// A name that is fit for a journal and a file.
fn plain_name(field: &Field) -> Option<String> {
    let text = field.text()?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
    if text.len() <= 60 && !text.starts_with(['.', '-']) && text.chars().all(fits) {
        return Some(text.into());
    }
    field.refuse("is no plain name", "take letters, digits, `.`, `_`, `+` and `-` alone, 60 of them at most")
}

/// Programs with their packages.
fn needs(table: &Table) -> Vec<(&'static str, &'static str)> {
    let Some(table) = table.field("needs").and_then(|field| field.table("[needs]")) else { return Vec::new() };
    let one = |field: Field| {
        let package = field.text()?;
        let fits = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
        if field.key.is_empty() || !field.key.chars().all(fits) || field.key.starts_with('-') {
            return field.refuse("is no name of a program", "name a program without its folder, such as curl");
        }
        if !package.chars().all(fits) || package.starts_with('-') {
            return field.refuse("is no name of a package", "write it like this: curl = \"curl\"");
        }
        Some((leaked(field.key), leaked(package)))
    };
    table.fields().filter_map(one).collect()
}

/// Unchanged: versions depend on no setting.
fn versions(table: &Table) -> Vec<Vec<String>> {
    let elements = table.field("versions").and_then(|field| field.elements()).unwrap_or_default();
    elements.iter().filter_map(words_of).collect()
}

/// No list stands in another.
fn lists(table: &Table, scope: &Scope) -> BTreeMap<&'static str, Vec<Word>> {
    let Some(table) = table.field("words").and_then(|field| field.table("[words]")) else { return BTreeMap::new() };
    let one = |field: Field| {
        if scope.knows(field.key) {
            let message = format!("the name {} is taken", quoted(field.key));
            return table.complaints.refuse(&field.key_place, message, "call the list something else");
        }
        let words = words_of(&field)?;
        Some((leaked(field.key), words.iter().filter_map(|text| scope.word(&field, text)).collect()))
    };
    table.fields().filter_map(one).collect()
}

fn environment(field: &Field, scope: &Scope) -> Vec<Word> {
    let one = |(text, field): (&str, Field)| match text.find('=') {
        Some(at) if at > 0 => scope.word(&field, text),
        _ => field
            .refuse(&format!("has {}, which is no variable with a value", quoted(text)), "write it like \"LANG=C\""),
    };
    field.texts().unwrap_or_default().into_iter().filter_map(one).collect()
}

fn files(field: &Field, scope: &Scope) -> Vec<MadeFile> {
    let tables = field.tables("[[file]]");
    let mut seen = HashSet::new();
    let one = |table: &Table| {
        only(table, "[[file]]");
        let place = required(table, "path")?;
        let path = inner_path(&place)?;
        if !seen.insert(path.clone()) {
            return place.refuse("is the name of another file too", "give each file its own name");
        }
        let content = match (table.field("text"), table.field("size")) {
            (Some(field), None) => Content::Text(scope.word(&field, field.value.as_str().or_else(|| field.text())?)?),
            (None, Some(field)) => Content::Bytes(scope.amount(&field)?),
            _ => {
                let remedy = "give either `text` or `size`, such as size = \"64MiB\"";
                return table.complaints.refuse(&table.place, "a file needs its content", remedy);
            }
        };
        Some(MadeFile { path, content })
    };
    tables.iter().filter_map(one).collect()
}

/// A path that stays below the target's folder.
fn inner_path(field: &Field) -> Option<String> {
    let text = field.text()?;
    if Path::new(text).components().all(|part: Component| matches!(part, Component::Normal(_))) && text.len() <= 200 {
        return Some(text.into());
    }
    field.refuse("leads out of the target's folder", "give a path below it, such as \"www/page.html\"")
}

fn server(table: &Table, scope: &Scope) -> Option<ServerOf> {
    only(table, "[server]");
    let [run, ready] = ["run", "ready"].map(|key| required(table, key).and_then(|field| scope.command(&field)));
    let stop = table.field("stop").and_then(|field| choice(&field, &["INT", "QUIT", "TERM"]));
    let stop = match stop {
        Some("INT") => StopSignal::Int,
        Some("QUIT") => StopSignal::Quit,
        _ => StopSignal::Term,
    };
    let folders = table.field("folders").and_then(|field| field.texts()).unwrap_or_default();
    Some(ServerOf {
        run: run?,
        ready: ready?,
        stop,
        account: table.field("account").and_then(|field| plain_name(&field)).map(|name| leaked(&name)),
        folders: folders.iter().filter_map(|(text, field)| folder(field, text, scope)).collect(),
        facts: table.field("facts").and_then(|field| scope.command(&field)),
        segment: table.field("segment").and_then(|field| scope.word(&field, field.text()?)),
    })
}

fn folder(field: &Field, text: &str, scope: &Scope) -> Option<Word> {
    let is_inside =
        |folder: &str| text.strip_prefix(folder).is_some_and(|path| !path.is_empty() && !path.contains(".."));
    if !["{dir}/", "{memory}/"].into_iter().any(is_inside) {
        return field
            .refuse("leads out of the cell's folders", "give a path like \"{dir}/data\" or \"{memory}/socket\"");
    }
    scope.word(field, text)
}

fn phases(table: &Table, scope: &Scope) -> Vec<PhaseOf> {
    let Some(field) = table.field("phase") else {
        let remedy = "add [[phase]] with `name`, `about` and `run` below it";
        table.complaints.add(&table.place, "the recipe has no phase", remedy);
        return Vec::new();
    };
    let mut seen = HashSet::new();
    let mut unique = |name: &str, span: &Place| {
        if !seen.insert(name.to_string()) {
            let message = format!("a second phase or part is named {}", quoted(name));
            table.complaints.add(span, message, "give each its own name");
        }
    };
    field.tables("[[phase]]").iter().filter_map(|table| phase(table, scope, &mut unique)).collect()
}

fn phase(table: &Table, scope: &Scope, unique: &mut dyn FnMut(&str, &Place)) -> Option<PhaseOf> {
    only(table, "[[phase]]");
    let each = table.field("each").and_then(|field| {
        let row = scope.setting(&field)?;
        let is_list = matches!(row.kind, SettingKind::Counts);
        if is_list {
            Some(row.name)
        } else {
            field.refuse("is no setting of the kind `counts`", "name one, or leave it out")
        }
    });
    let scope = &mut Scope { each, lists: scope.lists.clone(), settings: scope.settings, figures: Vec::new() };
    let until = table.field("until").and_then(|field| choice(&field, &["durable", "returned", "parts"]));
    let until = match until {
        Some("returned") => Until::Returned,
        Some("parts") => Until::Parts,
        _ => Until::Durable,
    };
    let parts = table.field("part").map(|field| field.tables("[[phase.part]]")).unwrap_or_default();
    let parts: Vec<PartOf> = parts.iter().filter_map(|part| part_of(part, scope, unique)).collect();
    let has_parts = table.field("part").is_some();
    let metrics = metrics(table, false, scope);
    let commands = |key: &str| table.field(key).map(|field| scope.commands(&field)).unwrap_or_default();
    let run = required(table, "run").map(|field| scope.commands(&field)).unwrap_or_default();
    if has_parts != (until == Until::Parts) {
        let remedy =
            "write until = \"parts\" and [[phase.part]] together: then the parts have times, and the phase has none";
        table.complaints.add(&table.place, "parts and `until` do not go together", remedy);
    }
    Some(PhaseOf {
        name: phase_name(table, scope, unique)?,
        each,
        about: leaked(required(table, "about")?.text()?),
        starts: starts(table)?,
        until,
        reads: reads(table, scope),
        is_judged: table.field("judged").and_then(|field| field.flag()).unwrap_or(true),
        is_served: table.field("served").and_then(|field| field.flag()).unwrap_or(true),
        before: commands("before"),
        run,
        flush: commands("flush"),
        then: commands("then"),
        metrics,
        latencies: latencies(table, scope),
        facts: table.field("facts").and_then(|field| scope.command(&field)),
        parts,
        no_value: table.field("no_value").and_then(|field| {
            let scope = Scope { settings: scope.settings, lists: vec!["parts"], each: None, figures: Vec::new() };
            scope.word(&field, field.text()?)
        }),
        may_miss: table.field("may_miss").and_then(|field| scope.setting(&field)).map(|row| row.name),
    })
}

fn starts(table: &Table) -> Option<Starts> {
    let Some(field) = required(table, "starts") else { return Some(Starts::Warm) };
    Some(match choice(&field, &["fresh", "warm", "cold"])? {
        "fresh" => Starts::Fresh,
        "warm" => Starts::Warm,
        _ => Starts::Cold,
    })
}

/// Its name; where there is a phase for each number, that stands in it.
fn phase_name(table: &Table, scope: &Scope, unique: &mut dyn FnMut(&str, &Place)) -> Option<Word> {
    let field = required(table, "name")?;
    let text = field.text()?;
    let Some(each) = scope.each else {
        let name = plain_name(&field)?;
        unique(&name, &field.place);
        return scope.word(&field, &name);
    };
    let number = format!("{{{each}}}");
    let Some((before, after)) = text.split_once(&number) else {
        return field.refuse("is the same for each", format!("put the number into it, such as \"{each}-{number}\""));
    };
    let name = toml::de::DeValue::String(format!("{before}1{after}").into());
    plain_name(&Field { value: &name, ..field.clone() })?;
    unique(text, &field.place);
    scope.word(&field, text)
}

/// As a command's work: what a program reads is not known, unless the recipe says it.
fn reads(table: &Table, scope: &Scope) -> Reads {
    let Some(field) = table.field("reads") else { return Reads::Anything };
    match field.value.as_str() {
        Some("all") => Reads::AllData,
        Some("names") => Reads::Metadata,
        _ => scope.amount(&field).map_or(Reads::Anything, Reads::AtLeast),
    }
}

fn part_of(table: &Table, scope: &mut Scope, unique: &mut dyn FnMut(&str, &Place)) -> Option<PartOf> {
    only(table, "[[phase.part]]");
    let place = required(table, "name")?;
    let name = plain_name(&place)?;
    unique(&name, &place.place);
    Some(PartOf {
        name,
        about: leaked(required(table, "about")?.text()?),
        is_judged: table.field("judged").and_then(|field| field.flag()).unwrap_or(true),
        more: table.field("more").and_then(|field| scope.setting(&field)).map(|row| row.name),
        time: required(table, "time").and_then(|field| figure(&field.table("`time`")?, "time_ns", scope))?,
        metrics: metrics(table, true, scope),
    })
}

fn metrics(table: &Table, of_part: bool, scope: &mut Scope) -> Vec<Figure> {
    let Some(field) = table.field("metric") else { return Vec::new() };
    let mut seen = HashSet::new();
    scope.figures.clear();
    let one = |table: &Table| {
        only(table, "[[phase.metric]]");
        let (field, is_inner) = (table.field("name").or_else(|| table.field("as")), table.field("name").is_none());
        let name =
            field.as_ref().and_then(|field| if is_inner { plain_name(field) } else { metric_name(field, of_part) });
        let is_again = |_: &&Field| name.as_ref().is_some_and(|name| !seen.insert(name.clone()));
        if let Some(field) = field.as_ref().filter(is_again) {
            field.refuse::<()>("is measured twice in this phase", "give each metric its own name");
        }
        if let Some(field) = field.filter(|_| scope.settings.iter().any(|row| Some(row.name) == name.as_deref())) {
            field.refuse::<()>("is the name of a setting too", "call it something else");
        }
        let figure = Figure { is_inner, ..figure(table, &name.unwrap_or_default(), scope)? };
        scope.figures.push(figure.name);
        Some(figure)
    };
    field.tables("[[phase.metric]]").iter().filter_map(one).collect()
}

fn latencies(table: &Table, scope: &Scope) -> Vec<LatenciesOf> {
    let Some(field) = table.field("latency") else { return Vec::new() };
    let one = |table: &Table| {
        only(table, "[[phase.latency]]");
        let amount = |key: &str| table.field(key).and_then(|field| scope.amount(&field));
        Some(LatenciesOf {
            name: table.field("name").and_then(|field| plain_name(&field)).map_or("latency", |name| leaked(&name)),
            pattern: required(table, "find").and_then(|field| expression(&field, 1..=2))?,
            ask: table.field("ask").and_then(|field| scope.command(&field)),
            times: times(table),
            at_most: amount("at_most"),
            count: amount("count"),
        })
    };
    field.tables("[[phase.latency]]").iter().filter_map(one).collect()
}

/// Endings that say the unit of a metric.
const UNITS: [&str; 7] = ["_per_second", "_ns", "_bytes", "_share", "_count", "_operations", "_transactions"];

/// A name that ends in its unit and that pickfs does not measure itself; of a part it measures
/// nothing.
fn metric_name(field: &Field, of_part: bool) -> Option<String> {
    let text = field.text()?;
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let has_unit = UNITS.iter().any(|unit| text.ends_with(unit)) || text.starts_with("work_");
    if ["time_ns", "units_count"].contains(&text) {
        return Some(text.into());
    }
    if text.len() > 60 || !text.starts_with(|c: char| c.is_ascii_lowercase()) || !text.chars().all(fits) || !has_unit {
        let remedy = format!("end it with its unit, one of {}: such as requests_per_second", listed(UNITS));
        return field.refuse("is no name of a metric", remedy);
    }
    let is_ours = |row: &metric::Metric| !matches!(row.shown, ReportTable::Workload | ReportTable::Latency);
    let is_counted = ["work_bytes", "work_files", "work_bytes_per_second"].contains(&text);
    if is_counted || !of_part && metric::find(text).is_some_and(is_ours) && !text.starts_with("work_") {
        return field.refuse("is measured by pickfs itself", "call it something else, such as server_write_bytes");
    }
    Some(text.into())
}

fn figure(table: &Table, name: &str, scope: &Scope) -> Option<Figure> {
    if table.label == "`time`" {
        only(table, "[phase.part.time]");
    }
    let amount = |key: &str| table.field(key).and_then(|field| scope.amount(&field));
    let ask = table.field("ask").and_then(|field| scope.command(&field));
    let source = match (table.field("find"), table.field("value"), table.field("count")) {
        (Some(field), None, None) => FigureSource::Found { pattern: expression(&field, 1..=1)?, ask },
        (None, Some(field), None) => FigureSource::Amount(scope.amount(&field)?),
        (None, None, Some(field)) => FigureSource::Counted(expression(&field, 0..=0)?),
        _ => {
            let remedy = "give one of `find`, an expression for the number in the output, `value` and `count`";
            return table.complaints.refuse(&table.place, format!("{} needs its number", table.label), remedy);
        }
    };
    Some(Figure {
        name: leaked(name),
        is_inner: false,
        source,
        of: amount("of"),
        times: times(table),
        at_least: amount("at_least"),
        equals: amount("equals"),
        is_optional: table.field("optional").and_then(|field| field.flag()).unwrap_or(false),
        doubt: table.field("doubt").and_then(|field| doubt(&field, scope)),
    })
}

fn times(table: &Table) -> f64 {
    table.field("times").and_then(|field| field.number()).unwrap_or(1.0)
}

fn doubt(field: &Field, scope: &Scope) -> Option<(Doubt, Word)> {
    let table = field.table("`doubt`")?;
    let flags = [("clients-wait", Doubt::ClientsWait), ("no-value", Doubt::NoValue)];
    table.only(&flags.map(|(name, _)| name));
    match flags.iter().find_map(|(name, flag)| Some((table.field(name)?, *flag))) {
        Some((field, flag)) => Some((flag, scope.word(&field, field.text()?)?)),
        None => field.refuse("has no flag", "write it like { no-value = \"the reason\" }"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::complaint::Voice;
    use crate::plan::render;

    /// What stands above the first table, what stands below it, and for each complaint its line and
    /// text.
    type Row = (&'static str, &'static str, &'static [(usize, &'static str)]);

    const NAMED: &str = "name = 'a'\nabout = 'b'\n";
    const PHASE: &str = "[[phase]]\nname = 'p'\nabout = 'b'\nstarts = 'warm'\nrun = ['true']\n";

    /// Lines 1 and 2 name the recipe, the phase has five lines.
    #[rustfmt::skip]
    const BAD: &[Row] = &[
        ("names = 1", "", &[(3, "did you mean `name`?")]),
        ("bytes = 'keys'", "", &[(3, "names `keys`, which is no setting")]),
        ("bytes = '1 +'\nseconds = 'a b'", "", &[(3, "is no amount"), (4, "neither a number nor the name of a setting")]),
        ("main = 'keys'", "", &[(3, "`keys`, which is no setting")]),
        ("judged = 'best'", "", &[(3, "use one of `sum` and `mean`")]),
        ("needs = { 'a/b' = 'c', d = '-x' }", "", &[(3, "no name of a program"), (3, "no name of a package")]),
        ("environment = ['=a', 'B={no}']", "", &[(3, "no variable with a value"), (3, "names `no`")]),
        ("versions = ['a', 3]", "", &[(3, "must be a list")]),
        ("setting = { dir = { kind = 'count', about = 'x' } }", "", &[(3, "the name `dir` is taken")]),
        ("setting = { repeats = { kind = 'flag', about = 'x' } }", "", &[(3, "the name `repeats` is taken")]),
        ("setting = { '1' = { kind = 'flag', about = 'x' } }", "", &[(3, "no name of a setting")]),
        ("setting = { a = { kind = 'words', about = 'x' } }", "", &[(3, "use one of `choice`")]),
        ("setting = { a = { kind = 'count', default = 'x', about = 'x' } }", "", &[(3, "not of its kind")]),
        ("setting = { a = { kind = 'count', default = 3, at_least = 4, about = 'x' } }", "", &[(3, "`a` is 3")]),
        ("setting = { a = { kind = 'text', at_most = 4, about = 'x' } }", "", &[(3, "settings of whole numbers")]),
        ("setting = { a = { kind = 'choice', about = 'x' } }", "", &[(3, "has no `choices`")]),
        ("words = { a = ['x'] }\nversions = [['v']]\nenvironment = ['B={a}{a}']", "", &[(5, "two lists in one word")]),
        ("words = { dir = ['x'], a = ['{a}'] }", "", &[(3, "the name `dir` is taken"), (3, "names `a`")]),
        ("", "[[file]]\npath = '../a'\ntext = 'x'", &[(9, "leads out of the target's folder")]),
        ("", "[[file]]\npath = '/etc/passwd'\nsize = 1", &[(9, "leads out of the target's folder")]),
        ("", "[[file]]\npath = 'a'\n[[file]]\npath = 'a'\ntext = 'x'", &[(8, "needs its content"), (11, "another file too")]),
        ("", "[server]\nrun = ['a']\nstop = 'KILL'", &[(8, "has no `ready`"), (10, "`INT`, `QUIT` and `TERM`")]),
        ("", "[server]\nrun = ['{dir}']\nready = [' ']", &[(9, "begins with a setting"), (10, "begins with no program")]),
        ("", "bytes = 3", &[(8, "`bytes` belongs to the whole recipe")]),
        ("", "starts = 'hot'", &[(8, "duplicate key")]),
        ("", "until = 'parts'", &[(3, "parts and `until`")]),
        ("", "part = [{ name = 'x', about = 'b', time = { find = '(.)' } }]", &[(3, "parts and `until`")]),
        ("", "each = 'keys'", &[(8, "no setting")]),
        ("", "reads = 'some thing'", &[(8, "no amount")]),
        ("", "before = ['a', '{']\nthen = [['b'], 'c {x}']", &[(8, "without its `}`"), (9, "names `x`")]),
        ("", "[[phase]]\nname = 'p'\nabout = 'b'\nstarts = 'warm'\nrun = 'a'", &[(9, "a second phase or part")]),
        ("", "[[phase]]\nname = '../p'\nabout = 'b'\nstarts = 'warm'\nrun = 'a \"'", &[(9, "no plain name"), (12, "split into words")]),
        ("", "[[phase]]", &[(8, "no `run`"), (8, "no `name`")]),
        ("", "metric = [{ name = 'x', find = '(.)' }]", &[(8, "end it with its unit")]),
        ("", "metric = [{ name = 'device_write_bytes', find = '(.)' }]", &[(8, "measured by pickfs itself")]),
        ("", "metric = [{ name = 'work_files', value = 1 }]", &[(8, "measured by pickfs itself")]),
        ("", "metric = [{ name = 'a_ns', value = 1 }, { name = 'a_ns', value = 1 }]", &[(8, "measured twice")]),
        ("", "metric = [{ name = 'a_ns' }, { find = 'a(b' }, { find = 'a' }, { find = '(a)(b)' }]",
            &[(8, "needs its number"), (8, "no expression"), (8, "0 pairs of parentheses"), (8, "2 pairs")]),
        ("[setting.a]\nkind = 'texts'\nabout = 'b'\nrefuse = [{ why = 'w', remedy = 'r' }]\nunless = 'c'\notherwise = 'd'\nweakens = '('",
            "", &[(6, "not name what"), (7, "`c`, which is no setting"), (8, "names `d`"), (9, "no expression")]),
        ("", "metric = [{ value = 'a' }, { as = 'a', value = 1 }, { as = 'c d', value = 'a' }]", &[(8, "names `a`"), (8, "no plain name")]),
        ("", "metric = [{ value = 1, count = 'a' }, { value = 1, doubt = {} }, { value = 1, doubt = { a = 'b' } }]",
            &[(8, "needs its number"), (8, "has no flag"), (8, "has no flag"), (8, "no key `a`")]),
        ("[setting.a]\nkind = 'count'\nabout = 'b'", "metric = [{ as = 'a', value = 1 }]", &[(11, "name of a setting too")]),
        ("", "latency = [{ find = 'a' }, { find = '(a)(b)', at_most = 'c' }]", &[(8, "0 pairs"), (8, "names `c`")]),
        ("", "[server]\nrun = ['a']\nready = ['b']\nfolders = ['/etc/x', '{dir}/../y']", &[(11, "leads out"), (11, "leads out")]),
        ("", "metric = [{ find = '((((a{100}){100}){100}){100})' }]", &[(8, "no expression")]),
        ("", "metric = [{ find = '(?:\\w{1000})(a)' }]", &[(8, "size limit")]),
    ];

    #[test]
    fn bad_recipes_get_all_their_complaints() {
        let mut wrong = Vec::new();
        for (top, below, expected) in BAD {
            let top = if top.is_empty() { String::new() } else { format!("{top}\n") };
            let text = format!("{NAMED}{top}{PHASE}{below}\n");
            let complaints = recipe(&text).err().unwrap_or_default();
            let is_so = |(complaint, (line, says)): (&Complaint, &(usize, &str))| {
                let all = format!("{} / {}", complaint.message(Voice::File), complaint.remedy);
                let at = complaint.place.span.clone().map(|span| text[..span.start].matches('\n').count() + 1);
                at == Some(*line) && all.contains(says) && !complaint.remedy.to_string().is_empty()
            };
            if complaints.len() != expected.len() || !complaints.iter().zip(*expected).all(is_so) {
                wrong.push(format!("{expected:?}\n{}", render(&text, "a.toml", &complaints, false)));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(recipe(&format!("{NAMED}{PHASE}")).is_ok());
        assert_eq!(recipe("").unwrap_err().len(), 3, "no name, nothing about it, no phase");
        assert!(recipe(&"#".repeat(LONGEST + 1)).unwrap_err()[0].message(Voice::File).contains("bytes"));
    }

    #[test]
    fn a_recipe_cut_off_or_changed_anywhere_never_panics() {
        let text = include_str!("../../../../../examples/recipes/redis.toml");
        assert!(recipe(text).is_ok());
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)).step_by(7) {
            let _ = recipe(&text[..end]);
        }
        for (at, line) in text.lines().enumerate().filter(|(_, line)| line.contains(" = ")) {
            let key = line.split(" = ").next().unwrap_or_default();
            for value in ["''", "0", "-1", "1e300", "true", "[]", "[[]]", "[{}]", "{}", "'{a'", "99999999999999999999"]
            {
                let replaced = format!("{key} = {value}");
                let lines = text.lines().enumerate().map(|(place, old)| if place == at { &*replaced } else { old });
                let _ = recipe(&lines.collect::<Vec<_>>().join("\n"));
            }
        }
    }
}
