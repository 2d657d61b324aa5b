//! Every key of a recipe, table by table: what the check allows, and what docs/recipes.md says of it.

use crate::plan::complaint::quoted;
use crate::plan::keys::NO_KEY;
use crate::plan::table::{Field, Table};
use crate::plan::{Key, KeyTable};

const fn key(name: &'static str, example: &'static str, about: &'static str) -> Key {
    Key { name, example, about, ..NO_KEY }
}

/// In the order of a recipe.
pub const TABLES: &[&KeyTable] = &[
    &KeyTable { head: "", about: "The whole recipe, above the first line that begins with `[`", keys: &TOP },
    &KeyTable { head: "[setting.NAME]", about: "A setting that a plan may give; as many as wanted", keys: &SETTING },
    &KeyTable { head: "[[file]]", about: "A file that is there before the first phase", keys: &FILE },
    &KeyTable { head: "[server]", about: "A program that runs beside the phases", keys: &SERVER },
    &KeyTable { head: "[[phase]]", about: "A timed part of the work; they are played in their order", keys: &PHASE },
    &KeyTable { head: "[[phase.metric]]", about: "A number read from what the phase printed", keys: &METRIC },
    &KeyTable { head: "[[phase.part]]", about: "A part that the program itself has timed", keys: &PART },
    &KeyTable { head: "[phase.part.time]", about: "How long a part took, in nanoseconds", keys: &TIME },
];

pub(super) const TOP: [Key; 14] = [
    key("name", "\"redis\"", "what the work is called, unless the plan names it"),
    key("about", "\"Redis under its own benchmark\"", "one sentence for reports"),
    key("main", "\"requests\"", "the setting that is named first in lists"),
    key("judged", "\"mean\"", "`sum` of the times of its phases, or their geometric `mean`; sum unless given"),
    key("seconds", "30", "about how long a cell takes with the defaults, for budgets; longer with more `bytes`"),
    key("bytes", "\"keys * 400\"", "what it puts on the file system at its fullest"),
    key("needs", "{ redis-server = \"redis-server\" }", "programs, each with the Debian package that brings it"),
    key("versions", "[[\"redis-server\", \"--version\"]]", "commands that print versions, for reports"),
    key("environment", "[\"LANG=C.UTF-8\"]", "variables of all its programs; TMPDIR is in memory unless given"),
    key(
        "words",
        "{ socket = [\"-s\", \"{memory}/socket\"] }",
        "lists of words; `{socket}` in a command stands for all of one",
    ),
    key("setting", "{ keys = { kind = \"count\", about = \"how many\" } }", "see [setting.NAME]"),
    key("file", "[{ path = \"a\", size = \"1MiB\" }]", "see [[file]]"),
    key("server", "{ run = \"redis-server\", ready = \"redis-cli ping\" }", "see [server]"),
    key("phase", "[{ name = \"set\" }]", "see [[phase]]"),
];

pub(super) const SETTING: [Key; 7] = [
    key(
        "kind",
        "\"count\"",
        "`choice`, `count`, `counts`, `duration`, `flag`, `number`, `path`, `size`, `text` or `texts`",
    ),
    key(
        "default",
        "100000",
        "what holds where the plan gives nothing; without one, words with the setting are left out",
    ),
    key("about", "\"requests of each phase\"", "one line for help"),
    key("choices", "[\"a\", \"b\"]", "what a `choice` may be"),
    key("at_least", "1", "the least that a plan may give"),
    key("at_most", "1000", "the most that a plan may give"),
    key("step", "\"1MiB\"", "only its multiples may be given"),
];

pub(super) const FILE: [Key; 3] = [
    key("path", "\"www/page.html\"", "where it is, below the target's folder"),
    key("text", "\"port {port}\"", "its content, with settings in it"),
    key("size", "\"size\"", "its bytes instead, which compress as what people keep does"),
];

pub(super) const SERVER: [Key; 3] = [
    key("run", "[\"redis-server\", \"--dir\", \"{dir}\"]", "the command that stays in the foreground"),
    key("ready", "[\"redis-cli\", \"ping\"]", "a command that succeeds once the server answers"),
    key("stop", "\"INT\"", "the signal that ends it: INT, QUIT or TERM; TERM unless given"),
];

pub(super) const PHASE: [Key; 13] = [
    key("name", "\"set\"", "what it is called; with `each`, such as \"clients-{clients}\""),
    key("about", "\"write values\"", "one line for reports"),
    key("each", "\"clients\"", "a setting of the kind `counts`: there is a phase for each number"),
    key(
        "starts",
        "\"cold\"",
        "`fresh`, as the file system was made; `warm`, as it was left; or `cold`, with nothing cached",
    ),
    key(
        "until",
        "\"returned\"",
        "`durable`, `returned` (it only reads, and can be repeated), or `parts`; durable unless given",
    ),
    key("judged", "false", "whether the work is judged by it; true unless given"),
    key(
        "reads",
        "\"all\"",
        "what a cold phase must read: `all` content, `names`, or an amount of bytes; else anything",
    ),
    key("before", "[\"mkdir\", \"{dir}/a\"]", "a command that is run before, untimed; or a list of commands"),
    key("run", "[\"cp\", \"{dir}/a\", \"{dir}/b\"]", "the command that is timed, or a list of commands"),
    key(
        "flush",
        "[\"redis-cli\", \"save\"]",
        "a command within its time that makes a server write; or a list of commands",
    ),
    key(
        "then",
        "[\"test\", \"-s\", \"{dir}/b\"]",
        "a command that is run after, untimed: where it fails, the cell does",
    ),
    key("metric", "[{ name = \"sets_per_second\", find = '([0-9.]+) sets' }]", "see [[phase.metric]]"),
    key("part", "[{ name = \"write\" }]", "see [[phase.part]]"),
];

pub(super) const METRIC: [Key; 7] = [
    key(
        "name",
        "\"requests_per_second\"",
        "its end is its unit; `time_ns` is what the phase is judged by; none for a check",
    ),
    key(
        "find",
        "'SET: ([0-9.]+) requests'",
        "a regular expression with the number in parentheses; the last match counts",
    ),
    key("value", "\"keys\"", "an amount instead"),
    key("of", "\"keys\"", "an amount that is divided by what was found, as `keys` by a rate for a time"),
    key("times", "1e9", "what the number is multiplied by, such as 1e9 for seconds"),
    key("at_least", "\"keys\"", "an amount; a smaller number fails the cell"),
    key("equals", "\"keys\"", "an amount; another number fails the cell"),
];

pub(super) const PART: [Key; 5] = [
    key("name", "\"read\"", "what it is called"),
    key("about", "\"blocks read\"", "one line for reports"),
    key("judged", "false", "whether the work is judged by it; true unless given"),
    key("time", "{ find = 'read took ([0-9.]+) s', times = 1e9 }", "see [phase.part.time]"),
    key("metric", "[{ name = \"reads_per_second\", find = '([0-9.]+) reads' }]", "see [[phase.metric]]"),
];

pub(super) const TIME: [Key; 4] = [METRIC[1], METRIC[2], METRIC[3], METRIC[4]];

/// Complains of keys that the table of a recipe does not have.
pub(super) fn only(table: &Table, keys: &[Key]) {
    let names = |keys: &[Key]| keys.iter().map(|key| key.name).collect::<Vec<_>>();
    table.only_below("recipe", &names(&TOP), &names(keys));
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
    TABLES.iter().flat_map(|table| table.keys).find(|key| key.name == name).map_or("\"...\"", |key| key.example)
}
