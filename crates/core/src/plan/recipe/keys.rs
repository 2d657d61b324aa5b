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
    &KeyTable { head: "[[setting.NAME.refuse]]", about: "Texts that the setting may not have", keys: &REFUSE },
    &KeyTable { head: "[[file]]", about: "A file that is there before the first phase", keys: &FILE },
    &KeyTable { head: "[server]", about: "A program that runs beside the phases", keys: &SERVER },
    &KeyTable { head: "[[phase]]", about: "A timed part of the work; they are played in their order", keys: &PHASE },
    &KeyTable { head: "[[phase.metric]]", about: "A number read from what the phase printed", keys: &METRIC },
    &KeyTable {
        head: "[[phase.latency]]",
        about: "Latencies of an operation, read from what is printed",
        keys: &LATENCY,
    },
    &KeyTable { head: "[[phase.part]]", about: "A part that the program itself has timed", keys: &PART },
    &KeyTable { head: "[phase.part.time]", about: "How long a part took, in nanoseconds", keys: &TIME },
];

#[rustfmt::skip]
pub(super) const TOP: [Key; 16] = [
    key("name", "\"redis\"", "what the work is called, unless the plan names it"),
    key("about", "\"Redis under its own benchmark\"", "one sentence for reports"),
    key("main", "\"requests\"", "the setting that is named first in lists"),
    key("judged", "\"mean\"", "`sum` of the times of its phases, or their geometric `mean`; sum unless given"),
    key("per", "\"1000 transactions\"", "what a `mean` is the time of, where each phase does a number of them"),
    key("seconds", "30", "about how long a cell takes with the defaults, for budgets; longer with more `bytes`"),
    key("bytes", "\"keys * 400\"", "what it puts on the file system at its fullest"),
    key("needs", "{ redis-server = \"redis-server\" }", "programs, each with the Debian package that brings it"),
    key("under", "\"/usr/lib/postgresql\"",
        "a folder with one for each version, in whose `bin` programs are looked for first"),
    key("versions", "[[\"redis-server\", \"--version\"]]", "commands that print versions, for reports"),
    key("environment", "[\"LANG=C.UTF-8\"]", "variables of all its programs; TMPDIR is in memory unless given"),
    key("words", "{ socket = [\"-s\", \"{memory}/socket\"] }",
        "lists of words; `{socket}` in a command stands for all of one"),
    key("setting", "{ keys = { kind = \"count\", about = \"how many\" } }", "see [setting.NAME]"),
    key("file", "[{ path = \"a\", size = \"1MiB\" }]", "see [[file]]"),
    key("server", "{ run = \"redis-server\", ready = \"redis-cli ping\" }", "see [server]"),
    key("phase", "[{ name = \"set\" }]", "see [[phase]]"),
];

#[rustfmt::skip]
pub(super) const SETTING: [Key; 11] = [
    key("kind", "\"count\"",
        "`choice`, `count`, `counts`, `duration`, `flag`, `number`, `path`, `size`, `text` or `texts`"),
    key("default", "100000",
        "what holds where the plan gives nothing; without one, words with the setting are left out"),
    key("about", "\"requests of each phase\"", "one line for help"),
    key("choices", "[\"a\", \"b\"]", "what a `choice` may be"),
    key("at_least", "1", "the least that a plan may give"),
    key("at_most", "1000", "the most that a plan may give"),
    key("step", "\"1MiB\"", "only its multiples may be given"),
    key("otherwise", "\"processors\"", "an amount: what it is where it is not given; instead of a default"),
    key("unless", "\"transactions\"", "another setting: where that one is given, this one is not"),
    key("refuse", "[{ find = '^fsync=off', why = \"makes nothing durable\", remedy = \"leave it out\" }]",
        "see [[setting.NAME.refuse]]"),
    key("weakens", "'^synchronous_commit=off'",
        "an expression for texts that promise less than the default; reports show them"),
];

#[rustfmt::skip]
pub(super) const REFUSE: [Key; 4] = [
    key("find", "'^fsync=off'", "an expression for those that are refused"),
    key("unless", "'='", "an expression for all that are not, instead"),
    key("why", "\"is no setting of the server\"", "what is wrong, behind the text"),
    key("remedy", "\"write it as name=value\"", "what to do"),
];

#[rustfmt::skip]
pub(super) const FILE: [Key; 3] = [
    key("path", "\"www/page.html\"", "where it is, below the target's folder"),
    key("text", "\"port {port}\"", "its content, with settings in it"),
    key("size", "\"size\"", "its bytes instead, which compress as what people keep does"),
];

#[rustfmt::skip]
pub(super) const SERVER: [Key; 7] = [
    key("run", "[\"redis-server\", \"--dir\", \"{dir}\"]", "the command that stays in the foreground"),
    key("ready", "[\"redis-cli\", \"ping\"]", "a command that succeeds once the server answers"),
    key("stop", "\"INT\"", "the signal that ends it: INT, QUIT or TERM; TERM unless given"),
    key("account", "\"mysql\"",
        "the user that all programs run as where pickfs is root; `nobody` where there is none of that name"),
    key("folders", "[\"{dir}/data\", \"{memory}/socket\"]", "folders that are made for that user, closed to others"),
    key("facts", "[\"psql\", \"-c\", \"SHOW ALL\"]",
        "a command that prints its settings, for reports: in each line a name, a tab or `|`, and a value"),
    key("segment", "\"{dir}/data/postmaster.pid\"",
        "where PostgreSQL notes a segment of shared memory, which is removed if it is killed"),
];

#[rustfmt::skip]
pub(super) const PHASE: [Key; 18] = [
    key("name", "\"set\"", "what it is called; with `each`, such as \"clients-{clients}\""),
    key("about", "\"write values\"", "one line for reports"),
    key("each", "\"clients\"", "a setting of the kind `counts`: there is a phase for each number"),
    key("starts", "\"cold\"",
        "`fresh`, as the file system was made; `warm`, as it was left; or `cold`, with nothing cached"),
    key("until", "\"returned\"",
        "`durable`, `returned` (it only reads, and can be repeated), or `parts`; durable unless given"),
    key("judged", "false", "whether the work is judged by it; true unless given"),
    key("reads", "\"all\"",
        "what a cold phase must read: `all` content, `names`, or an amount of bytes; else anything"),
    key("served", "false", "whether the server runs; true unless given"),
    key("before", "[\"mkdir\", \"{dir}/a\"]", "a command that is run before, untimed; or a list of commands"),
    key("run", "[\"cp\", \"{dir}/a\", \"{dir}/b\"]", "the command that is timed, or a list of commands"),
    key("flush", "[\"redis-cli\", \"save\"]",
        "a command within its time that makes a server write; or a list of commands"),
    key("then", "[\"test\", \"-s\", \"{dir}/b\"]",
        "a command that is run after, untimed: where it fails, the cell does"),
    key("metric", "[{ name = \"sets_per_second\", find = '([0-9.]+) sets' }]", "see [[phase.metric]]"),
    key("latency", "[{ find = 'took ([0-9]+)' }]", "see [[phase.latency]]"),
    key("facts", "[\"cat\", \"{memory}/facts\"]",
        "a command, run after it, that prints what is to be kept for reports: in each line a name, a tab or `|`, and \
        a value"),
    key("part", "[{ name = \"write\" }]", "see [[phase.part]]"),
    key("no_value", "\"it is too short for {parts}\"", "why parts may have no time, by their names"),
    key("may_miss", "\"missing\"",
        "the setting that leaves such parts out where it is \"leave-out\"; otherwise the cell fails"),
];

#[rustfmt::skip]
pub(super) const METRIC: [Key; 12] = [
    key("name", "\"requests_per_second\"",
        "its end is its unit; `time_ns` is what the phase is judged by, and `units_count` what all is divided by; \
        none for a check"),
    key("as", "\"most\"",
        "a name instead that is not shown: amounts of the metrics behind it can use it, as they can use names"),
    key("find", "'SET: ([0-9.]+) requests'",
        "a regular expression with the number in parentheses; the last match counts"),
    key("ask", "[\"psql\", \"-c\", \"SELECT ...\"]", "a command, run after the phase, that prints what is searched"),
    key("value", "\"keys\"", "an amount instead"),
    key("count", "'^found '", "an expression instead: how often it fits"),
    key("of", "\"keys\"", "an amount that is divided by the number, as `keys` by a rate for a time"),
    key("times", "1e9", "what the number is multiplied by, such as 1e9 for seconds"),
    key("at_least", "\"keys\"", "an amount; a smaller number fails the cell"),
    key("equals", "\"keys\"", "an amount; another number fails the cell"),
    key("optional", "true", "it is left out where nothing fits, or where a number that it is made of is left out"),
    key("doubt", "{ clients-wait = \"{clients} clients wait\" }",
        "a flag, `clients-wait` or `no-value`, and its reason, instead of the failure"),
];

#[rustfmt::skip]
pub(super) const LATENCY: [Key; 6] = [
    key("name", "\"read\"", "of the operation; `latency` unless given"),
    key("find", "'^([0-9]+) ([0-9]+)$'",
        "an expression with the latency in parentheses, and how often it came if not once"),
    METRIC[3],
    key("times", "1e6", "what makes nanoseconds of it"),
    key("at_most", "\"most\"", "an amount, before it is multiplied; larger ones are taken for it"),
    key("count", "\"work_transactions\"", "an amount: how many there must be"),
];

#[rustfmt::skip]
pub(super) const PART: [Key; 6] = [
    key("name", "\"read\"", "what it is called"),
    key("about", "\"blocks read\"", "one line for reports"),
    key("judged", "false", "whether the work is judged by it; true unless given"),
    key("more", "\"files\"", "the setting of which there must be more where it has no time"),
    key("time", "{ find = 'read took ([0-9.]+) s', times = 1e9 }", "see [phase.part.time]"),
    key("metric", "[{ name = \"reads_per_second\", find = '([0-9.]+) reads' }]", "see [[phase.metric]]"),
];

pub(super) const TIME: [Key; 6] = [METRIC[2], METRIC[3], METRIC[4], METRIC[6], METRIC[7], METRIC[10]];

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
