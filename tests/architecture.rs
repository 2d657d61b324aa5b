//! House rules, held by tests: who may import whom, where `unsafe` and child processes live, how long functions may be.
//!
//! The rules are tables at the top; the scanners below them read source as text, with comments and strings blanked
//! where those must not count. The scanners' own tests stand at the foot, so that each rule is proven able to fail.

use std::collections::BTreeSet;
use std::fmt::{Display, Formatter};
use std::path::{Path, PathBuf};

// ---------------------------------------------------------------- the rules

/// Each room, and the rooms it may import; `room::Item` allows that item alone. `ANY` is everything.
const ROOMS: &[(&str, &[&str])] = &[
    (
        "agent",
        &[
            "data", "journal", "need", "plan", "probe", "process", "protocol", "stack", "stage", "steps", "sys",
            "units", "workload",
        ],
    ),
    ("analysis", &["journal", "plan", "stats", "units", "wording"]),
    ("cli", &[ANY]),
    ("data", &["sys", "units"]),
    ("executor", &["agent", "journal", "need", "plan", "protocol", "stack", "sys", "units", "workload"]),
    ("import", &["journal", "plan"]),
    ("journal", &["plan", "units"]),
    ("need", &[]),
    ("plan", &["stats::LOOKS", "units"]),
    ("predict", &["data"]),
    ("probe", &["sys", "units"]),
    ("process", &["need", "sys", "units"]),
    ("protocol", &["journal", "plan", "process"]),
    ("render", &["analysis", "journal", "plan", "stats", "units", "wording"]),
    ("run", &["analysis", "executor", "journal", "plan", "protocol", "stats::LOOKS", "sys", "units"]),
    ("stack", &["journal", "need", "plan", "process::Argv", "process::argv", "units"]),
    ("stage", &["journal", "need", "plan", "probe", "process", "protocol", "stack", "stats", "steps", "sys", "units"]),
    ("stats", &[]),
    ("steps", &["journal", "process", "protocol", "stack", "sys"]),
    ("sys", &[]),
    ("units", &[]),
    ("wording", &["analysis", "journal", "plan", "stats", "units"]),
    (
        "workload",
        &["data", "need", "plan", "probe::device", "process", "stack", "stage", "sys::file", "sys::uring", "units"],
    ),
];

const ANY: &str = "*";

/// The two sides of a cell, and the rooms that each must never see.
const SIDES: &[Side] = &[
    Side {
        name: "host side",
        rooms: &["analysis", "render", "run", "wording"],
        never: &["agent", "data", "probe", "stack", "stage", "workload"],
        remedy: "the host knows plug-ins by name only: put the name in the plan or a record in the journal, and let \
                 the agent act on it",
    },
    Side {
        name: "target side",
        rooms: &["agent", "data", "probe", "stack", "stage", "workload"],
        never: &["analysis", "cli", "executor", "render", "run", "wording"],
        remedy: "the agent answers with records alone: write what the host needs as a record of the journal",
    },
];

struct Side {
    name: &'static str,
    rooms: &'static [&'static str],
    never: &'static [&'static str],
    remedy: &'static str,
}

/// Rooms that may start a program. All others describe it as an argv.
const MAY_SPAWN: &[&str] = &["agent", "cli", "executor", "need", "process", "run", "stage", "steps"];

/// Rooms that give the same answer at any hour.
const TIMELESS: &[&str] = &["analysis", "import", "plan", "render", "stats", "wording"];

/// Folders with one file a plug-in.
const PLUGIN_FOLDERS: &[&str] = &[
    "src/executor",
    "src/import",
    "src/probe",
    "src/stack/backing",
    "src/stack/fs",
    "src/stack/layer",
    "src/workload",
];

/// Lines of a function, from `fn` to its closing brace.
const MEDIAN_FUNCTION: usize = 10;
const NINE_IN_TEN_FUNCTIONS: usize = 40;
const LONGEST_FUNCTION: usize = 100;

const LONGEST_FILE: usize = 600;

/// Files that may be longer: only tables of data that would not read better in parts. Never code.
const LONG_FILES: &[&str] = &[];

// ---------------------------------------------------------------- the rules as tests

#[test]
fn rooms_import_only_what_they_may() {
    pass(each(&sources(), forbidden_imports));
}

#[test]
fn host_and_target_do_not_know_each_other() {
    pass(each(&sources(), imports_across_sides));
}

#[test]
fn unsafe_and_ioctl_live_in_sys() {
    pass(each(&sources(), unsafe_outside_sys));
}

#[test]
fn every_file_says_what_it_is_for() {
    pass(each(&sources(), missing_headers));
}

#[test]
fn every_plugin_file_is_named_in_its_folder() {
    pass(unnamed_modules(&sources()));
}

#[test]
fn functions_are_short() {
    pass(long_functions(&sources()));
}

#[test]
fn files_are_short() {
    pass(each(&sources(), |source| long_files(source, LONG_FILES)));
}

#[test]
fn no_shell_stands_between_us_and_a_program() {
    pass(each(&sources(), shells));
}

#[test]
fn only_some_rooms_start_programs() {
    pass(each(&sources(), spawns));
}

#[test]
fn no_path_of_somebodys_machine() {
    pass(each(&tracked(), local_paths));
}

#[test]
fn some_rooms_read_no_clock() {
    pass(each(&sources(), clocks));
}

#[test]
fn plugins_are_sorted_unique_and_described() {
    /// Names and descriptions of a list of plug-ins, through the public interface.
    macro_rules! entries {
        ($list:expr) => {
            $list.iter().map(|plugin| (plugin.name(), plugin.about())).collect::<Vec<_>>()
        };
    }
    let lists = [
        ("executor::ALL", entries!(pickfs::executor::ALL)),
        ("import::ALL", entries!(pickfs::import::ALL)),
        ("probe::ALL", entries!(pickfs::probe::ALL)),
        ("stack::backing::ALL", entries!(pickfs::stack::backing::ALL)),
        ("stack::fs::ALL", entries!(pickfs::stack::fs::ALL)),
        ("stack::layer::ALL", entries!(pickfs::stack::layer::ALL)),
        ("workload::ALL", entries!(pickfs::workload::ALL)),
    ];
    let complaints: Vec<String> = lists.iter().flat_map(|(list, entries)| bad_entries(list, entries)).collect();
    assert!(complaints.is_empty(), "\n\n{}\n", complaints.join("\n"));
}

// ---------------------------------------------------------------- what a failure looks like

/// A file, its path relative to the crate, and its text.
struct Source {
    path: String,
    text: String,
}

/// A rule broken at one place.
#[derive(Debug, PartialEq)]
struct Offence {
    path: String,
    line: usize,
    what: String,
    remedy: String,
}

impl Offence {
    /// At the byte `at` of the source.
    fn at(source: &Source, at: usize, what: impl Into<String>, remedy: impl Into<String>) -> Offence {
        let line = source.text[..at].matches('\n').count() + 1;
        Offence { path: source.path.clone(), line, what: what.into(), remedy: remedy.into() }
    }
}

impl Display for Offence {
    fn fmt(&self, out: &mut Formatter) -> std::fmt::Result {
        write!(out, "{}:{}: {}\n    to do: {}", self.path, self.line, self.what, self.remedy)
    }
}

fn pass(offences: Vec<Offence>) {
    let said: Vec<String> = offences.iter().map(Offence::to_string).collect();
    assert!(said.is_empty(), "\n\n{} broken house rule(s):\n\n{}\n", said.len(), said.join("\n\n"));
}

fn each(sources: &[Source], rule: impl Fn(&Source) -> Vec<Offence>) -> Vec<Offence> {
    sources.iter().flat_map(rule).collect()
}

// ---------------------------------------------------------------- reading files

/// Every Rust file under `src`.
fn sources() -> Vec<Source> {
    let found = files_of(&["src"], &["rs"]);
    assert!(!found.is_empty(), "no source found: is this still the root of the crate?");
    found
}

/// Every text that is handed on, but for this file, which must name what it refuses.
fn tracked() -> Vec<Source> {
    let kinds = ["rs", "toml", "md", "yml", "yaml", "json", "html", "css"];
    let mut found = files_of(&["src", "tests", "benches", "examples", "docs", ".github"], &kinds);
    found.extend(files_in(Path::new(env!("CARGO_MANIFEST_DIR"))).into_iter().filter(|f| is_kind(f, &["md"])).map(read));
    found.retain(|source| source.path != "tests/architecture.rs");
    found
}

fn files_of(folders: &[&str], kinds: &[&str]) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<PathBuf> = folders.iter().flat_map(|folder| tree(&root.join(folder))).collect();
    files.retain(|file| is_kind(file, kinds));
    files.sort();
    files.into_iter().map(read).collect()
}

fn is_kind(file: &Path, kinds: &[&str]) -> bool {
    file.extension().is_some_and(|kind| kinds.iter().any(|k| kind == *k))
}

fn tree(folder: &Path) -> Vec<PathBuf> {
    let below = entries_of(folder).into_iter().filter(|path| path.is_dir()).flat_map(|path| tree(&path));
    files_in(folder).into_iter().chain(below).collect()
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    entries_of(folder).into_iter().filter(|path| path.is_file()).collect()
}

/// Nothing where there is no such folder.
fn entries_of(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

fn read(file: PathBuf) -> Source {
    let path = file.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap_or(&file).display().to_string();
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{path}: {error}"));
    Source { path, text }
}

/// `stats` of `src/stats/mod.rs`, `need` of `src/need.rs`; none for the two roots, which only map and start.
fn room(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("src/")?;
    let name = inside.split('/').next()?.trim_end_matches(".rs");
    (!matches!(inside, "lib.rs" | "main.rs")).then_some(name)
}

fn in_room(source: &Source, rooms: &[&str]) -> bool {
    room(&source.path).is_some_and(|room| rooms.contains(&room))
}

// ---------------------------------------------------------------- Rust, as far as the rules need it

#[derive(Clone, Copy, PartialEq)]
enum Token {
    Code,
    Comment,
    Text,
}

/// The same text, byte for byte in place, with comments as blanks.
fn without_comments(text: &str) -> String {
    blanked(text, &[Token::Comment])
}

/// The same text with comments and the contents of strings as blanks.
fn code_only(text: &str) -> String {
    blanked(text, &[Token::Comment, Token::Text])
}

fn blanked(text: &str, unwanted: &[Token]) -> String {
    let mut rest = text;
    let mut result = String::with_capacity(text.len());
    while !rest.is_empty() {
        let (token, length) = next_token(rest, result.chars().next_back());
        let (head, tail) = rest.split_at(length);
        if unwanted.contains(&token) {
            result.extend(head.bytes().map(blank))
        } else {
            result.push_str(head)
        }
        rest = tail;
    }
    result
}

fn blank(byte: u8) -> char {
    if byte == b'\n' { '\n' } else { ' ' }
}

/// What the text begins with, and how many bytes of it.
fn next_token(rest: &str, before: Option<char>) -> (Token, usize) {
    let after_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if rest.starts_with("//") {
        (Token::Comment, rest.find('\n').unwrap_or(rest.len()))
    } else if rest.starts_with("/*") {
        (Token::Comment, block_comment(rest))
    } else if rest.starts_with('"') {
        (Token::Text, string(rest))
    } else if let Some(length) = raw_string(rest).filter(|_| !after_word) {
        (Token::Text, length)
    } else if let Some(length) = character(rest) {
        (Token::Text, length)
    } else {
        (Token::Code, rest.chars().next().map_or(0, char::len_utf8))
    }
}

/// They nest.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while let Some(c) = rest[at..].chars().next() {
        match &rest[at..] {
            tail if tail.starts_with("/*") => (depth, at) = (depth + 1, at + 2),
            tail if tail.starts_with("*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += c.len_utf8(),
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if c == '"' && !escaped {
            return at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    rest.len()
}

/// `r"..."`, `r#"..."#`, and so on.
fn raw_string(rest: &str) -> Option<usize> {
    let after_r = rest.strip_prefix('r')?;
    let hashes = after_r.len() - after_r.trim_start_matches('#').len();
    let body = after_r[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(body.find(&end).map_or(rest.len(), |at| 2 + hashes + at + end.len()))
}

/// `'x'` or `'\n'`, not a lifetime.
fn character(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix('\'')?;
    if let Some(escape) = body.strip_prefix('\\') {
        let end = escape.char_indices().skip(1).find(|(_, c)| *c == '\'')?;
        return Some(end.0 + 3);
    }
    let length = body.chars().next()?.len_utf8();
    body[length..].starts_with('\'').then_some(length + 2)
}

/// Where `word` stands, not as a part of a longer word.
fn words(code: &str, word: &str) -> Vec<usize> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let whole = |at: &usize| !code[..*at].ends_with(part) && !code[at + word.len()..].starts_with(part);
    code.match_indices(word).map(|(at, _)| at).filter(whole).collect()
}

// ---------------------------------------------------------------- imports

/// A path from the root of the crate, such as `journal::Cell`, and where it stands.
type Import = (usize, String);

/// Everything that a file names of other rooms (and its own): by `crate::`, by the crate's name, or by climbing out.
fn imports(source: &Source) -> Vec<Import> {
    let code = code_only(&source.text);
    let named = ["crate", "pickfs"].into_iter().flat_map(|root| words(&code, root));
    let absolute = named.flat_map(|at| paths_at(&code, at)).filter_map(|(at, path)| {
        let inside = path.split_once("::")?.1.to_string();
        Some((at, inside))
    });
    let climbing = climbs(&code, depth(&source.path));
    absolute.chain(climbing).collect()
}

/// The path that starts at `at`, or all of them where it branches into `{...}`.
fn paths_at(code: &str, at: usize) -> Vec<Import> {
    let mut found = Vec::new();
    branch(code, at, "", &mut found);
    found
}

/// Reads one path of a `use` tree and gives the place behind it.
fn branch(code: &str, start: usize, prefix: &str, found: &mut Vec<Import>) -> usize {
    let first = skip_blanks(code, start);
    if code[first..].starts_with('{') {
        return branches(code, first + 1, prefix, found);
    }
    let length = code[first..].find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '*')).unwrap_or(0);
    let path = format!("{prefix}{}", &code[first..first + length]);
    let next = skip_blanks(code, first + length);
    if code[next..].starts_with("::") {
        return branch(code, next + 2, &format!("{path}::"), found);
    }
    found.push((first, path));
    next
}

fn branches(code: &str, start: usize, prefix: &str, found: &mut Vec<Import>) -> usize {
    let mut at = start;
    loop {
        at = skip_blanks(code, at);
        match code[at..].chars().next() {
            None | Some(';') => return at,
            Some('}') => return at + 1,
            Some(c) if c.is_alphanumeric() || c == '_' || c == '{' || c == '*' => at = branch(code, at, prefix, found),
            Some(c) => at += c.len_utf8(),
        }
    }
}

fn skip_blanks(code: &str, at: usize) -> usize {
    code.len() - code[at..].trim_start().len()
}

/// How many `super` lead from a file to the root of the crate.
fn depth(path: &str) -> usize {
    let steps = path.trim_start_matches("src/").trim_end_matches(".rs").trim_end_matches("/mod");
    steps.split('/').count()
}

/// Paths such as `super::super::journal::Cell` that reach the root. Tests stand in a module of their own, one deeper.
fn climbs(code: &str, depth: usize) -> Vec<Import> {
    let tests = code.find("mod tests").unwrap_or(code.len());
    let from_root = |(at, path): Import| {
        let steps = path.matches("super::").count();
        let needed = if at > tests { depth + 1 } else { depth };
        let inside = path.trim_start_matches("super::").to_string();
        (steps >= needed && path.starts_with("super::")).then_some((at, inside))
    };
    let starts = words(code, "super").into_iter().filter(|at| !code[..*at].ends_with("::"));
    starts.flat_map(|at| paths_at(code, at)).filter_map(from_root).collect()
}

fn forbidden_imports(source: &Source) -> Vec<Offence> {
    let Some(room) = room(&source.path) else { return Vec::new() };
    let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
        let remedy = "decide what it may import, and add it to ROOMS in tests/architecture.rs and to ARCHITECTURE.md";
        return vec![Offence::at(source, 0, format!("`{room}` is a new room"), remedy)];
    };
    let offence = |(at, path): Import| {
        let what = format!("`{room}` must not import `{path}`");
        Offence::at(source, at, what, format!("it may import {}; move the code, or hand the value in", listed(allowed)))
    };
    imports(source).into_iter().filter(|(_, path)| !may_import(room, allowed, path)).map(offence).collect()
}

fn listed(allowed: &[&str]) -> String {
    if allowed.is_empty() { "nothing of ours".to_string() } else { format!("only {}", allowed.join(", ")) }
}

/// What is no room at all (a macro or function at the root) is left to the compiler.
fn may_import(room: &str, allowed: &[&str], path: &str) -> bool {
    let to = path.split("::").next().unwrap_or_default();
    let known = ROOMS.iter().any(|(name, _)| *name == to);
    let fits = |rule: &str| rule == ANY || rule == to || path == rule || path.starts_with(&format!("{rule}::"));
    to == room || !known || allowed.iter().any(|rule| fits(rule))
}

fn imports_across_sides(source: &Source) -> Vec<Offence> {
    let Some(side) = SIDES.iter().find(|side| in_room(source, side.rooms)) else { return Vec::new() };
    let crosses = |(_, path): &Import| side.never.contains(&path.split("::").next().unwrap_or_default());
    let offence = |(at, path): Import| {
        Offence::at(source, at, format!("the {} must never import `{path}`", side.name), side.remedy)
    };
    imports(source).into_iter().filter(crosses).map(offence).collect()
}

// ---------------------------------------------------------------- the other rules

fn unsafe_outside_sys(source: &Source) -> Vec<Offence> {
    if in_room(source, &["sys"]) {
        return Vec::new();
    }
    let code = code_only(&source.text);
    let calls = words(&code, "ioctl").into_iter().filter(|at| code[at + 5..].starts_with(['(', ':']));
    let found = words(&code, "unsafe").into_iter().map(|at| (at, "unsafe")).chain(calls.map(|at| (at, "ioctl")));
    let remedy = "write a safe function in src/sys with the reason why it is sound, and call that";
    found.map(|(at, what)| Offence::at(source, at, format!("`{what}` outside src/sys"), remedy)).collect()
}

fn missing_headers(source: &Source) -> Vec<Offence> {
    if !source.text.starts_with("//!") {
        return vec![Offence::at(source, 0, "no `//!` on the first line", "say in a sentence what the file is for")];
    }
    let folder = source.path.strip_suffix("/mod.rs").unwrap_or_default();
    let is_room = folder.matches('/').count() == 1 || PLUGIN_FOLDERS.contains(&folder);
    if !is_room || header(&source.text).contains("must not know") {
        return Vec::new();
    }
    let what = "the head does not say what the room must not know";
    vec![Offence::at(source, 0, what, "add to the `//!` lines: \"This room must not know ...\"")]
}

/// The `//!` lines as one line.
fn header(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
    lines.join(" ")
}

fn unnamed_modules(sources: &[Source]) -> Vec<Offence> {
    PLUGIN_FOLDERS.iter().flat_map(|folder| unnamed_in(sources, folder)).collect()
}

fn unnamed_in(sources: &[Source], folder: &str) -> Vec<Offence> {
    let list = format!("{folder}/mod.rs");
    let Some(named_in) = sources.iter().find(|source| source.path == list) else { return Vec::new() };
    let code = code_only(&named_in.text);
    let inside = |source: &&Source| module_in(&source.path, folder).is_some_and(|module| !names(&code, module));
    let remedy = format!("add its `mod` line (and its line in `ALL`) to {list}, or delete the file");
    let offence =
        |source| Offence::at(source, 0, "no module names this file, so it is never compiled", remedy.as_str());
    sources.iter().filter(inside).map(offence).collect()
}

/// `ext4` for `src/stack/fs/ext4.rs` or `src/stack/fs/ext4/mod.rs`.
fn module_in<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    let name = path.strip_prefix(folder)?.strip_prefix('/')?;
    let module = name.strip_suffix("/mod.rs").or_else(|| name.strip_suffix(".rs"))?;
    (module != "mod" && !module.contains('/')).then_some(module)
}

fn names(code: &str, module: &str) -> bool {
    words(code, module).iter().any(|at| code[..*at].ends_with("mod ") && code[at + module.len()..].starts_with(';'))
}

fn long_functions(sources: &[Source]) -> Vec<Offence> {
    let mut lengths = Vec::new();
    let mut offences = Vec::new();
    for source in sources {
        for (at, lines) in functions(&code_only(&source.text)) {
            lengths.push(lines);
            if lines > LONGEST_FUNCTION {
                offences.push(Offence::at(source, at, format!("a function of {lines} lines"), "take it apart"));
            }
        }
    }
    offences.extend(long_on_the_whole(&mut lengths));
    offences
}

fn long_on_the_whole(lengths: &mut [usize]) -> Vec<Offence> {
    lengths.sort();
    let rank = |share: f64| lengths.get((share * lengths.len() as f64) as usize).copied().unwrap_or(0);
    let rules = [("half", rank(0.5), MEDIAN_FUNCTION), ("nine in ten", rank(0.9), NINE_IN_TEN_FUNCTIONS)];
    let offence = |(share, lines, limit): (&str, usize, usize)| Offence {
        path: "src".to_string(),
        line: 1,
        what: format!("{share} of the functions reach {lines} lines; {limit} is the limit"),
        remedy: "take the longest new ones apart".to_string(),
    };
    rules.into_iter().filter(|(_, lines, limit)| lines > limit).map(offence).collect()
}

/// Where each function with a body starts, and its lines from `fn` to the closing brace.
fn functions(code: &str) -> Vec<(usize, usize)> {
    let measured = |at: usize| {
        let open = at + body(&code[at..])?;
        let close = open + closing_brace(&code[open..])?;
        Some((at, code[at..close].matches('\n').count() + 1))
    };
    let is_item = |at: &usize| code[at + 2..].trim_start().starts_with(|c: char| c.is_alphabetic() || c == '_');
    words(code, "fn").into_iter().filter(is_item).filter_map(measured).collect()
}

/// The opening brace; none for a declaration that ends in `;` outside of `[u8; 4]` and the like.
fn body(code: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '{' if depth == 0 => return Some(at),
            ';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

fn closing_brace(code: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

fn long_files(source: &Source, excused: &[&str]) -> Vec<Offence> {
    let lines = source.text.lines().count();
    if lines <= LONGEST_FILE || excused.contains(&source.path.as_str()) {
        return Vec::new();
    }
    let what = format!("{lines} lines; {LONGEST_FILE} is the limit");
    vec![Offence::at(source, 0, what, "split it by what it is about; LONG_FILES is for tables of data alone")]
}

/// Where a file's own tests begin: they may start what the room itself may not.
fn tests_begin(text: &str) -> usize {
    text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len())
}

const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh"];

/// A shell with `-c` as separate words (`"sh", "-c"`) or in one string (`"sh -c ..."`).
fn shells(source: &Source) -> Vec<Offence> {
    let code = without_comments(&source.text);
    let remedy = "hand the program and its arguments over as a list; pipes and loops belong in Rust";
    let found = SHELLS.iter().flat_map(|shell| words(&code, shell)).filter(|at| runs_shell(&code, *at));
    let found = found.filter(|at| *at < tests_begin(&source.text));
    found.map(|at| Offence::at(source, at, "a shell with -c", remedy)).collect()
}

fn runs_shell(code: &str, at: usize) -> bool {
    let word_and_rest = code[at..].trim_start_matches(char::is_alphabetic);
    let statement = word_and_rest.split(';').next().unwrap_or_default();
    let near: String = statement.chars().take(80).collect();
    let quoted = near.starts_with('"') && code[..at].ends_with(['"', '/']);
    (quoted && near.contains("\"-c\"")) || near.starts_with(" -c ")
}

fn spawns(source: &Source) -> Vec<Offence> {
    if room(&source.path).is_none() || in_room(source, MAY_SPAWN) {
        return Vec::new();
    }
    let code = code_only(&source.text);
    let found = ["Command::new", "process::Command"].into_iter().flat_map(|call| words(&code, call));
    let found = found.filter(|at| *at < tests_begin(&source.text));
    let remedy = format!("describe an argv and let {} run it", MAY_SPAWN.join(" or "));
    found.map(|at| Offence::at(source, at, "this room starts no programs", remedy.as_str())).collect()
}

const LOCAL: &[&str] = &["/work", "/root", "/home"];

fn local_paths(source: &Source) -> Vec<Offence> {
    let remedy = "take the path from the user, the environment or a temporary folder";
    let inside_a_path = |c: char| c.is_alphanumeric() || "_-./~}*".contains(c);
    let continues = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    let is_local = |(at, path): &(usize, &str)| {
        !source.text[..*at].ends_with(inside_a_path) && !source.text[at + path.len()..].starts_with(continues)
    };
    let found = LOCAL.iter().flat_map(|path| source.text.match_indices(path)).filter(is_local);
    found.map(|(at, path)| Offence::at(source, at, format!("`{path}` is of one machine"), remedy)).collect()
}

const CLOCKS: &[&str] = &["Instant", "SystemTime", "Zoned::now", "Timestamp::now"];

fn clocks(source: &Source) -> Vec<Offence> {
    if !in_room(source, TIMELESS) {
        return Vec::new();
    }
    let code = code_only(&source.text);
    let found = CLOCKS.iter().flat_map(|clock| words(&code, clock).into_iter().map(move |at| (at, clock)));
    let remedy = "hand the time in, or read it from a record";
    found.map(|(at, clock)| Offence::at(source, at, format!("`{clock}` in a room without clocks"), remedy)).collect()
}

/// Complaints about a list of names and descriptions.
fn bad_entries(list: &str, entries: &[(&str, &str)]) -> Vec<String> {
    let unsorted = entries.windows(2).filter(|pair| pair[0].0 >= pair[1].0);
    let order = unsorted
        .map(|pair| format!("{list}: `{}` must not follow `{}`: sort by name, once each", pair[1].0, pair[0].0));
    let silent = entries.iter().filter(|(_, about)| about.trim().is_empty() || about.ends_with('.'));
    let about = silent.map(|(name, _)| format!("{list}: `{name}` needs an about(): one phrase, no full stop"));
    order.chain(about).collect()
}

// ---------------------------------------------------------------- the rules can fail

fn source(path: &str, text: &str) -> Source {
    Source { path: path.to_string(), text: text.to_string() }
}

fn lines(offences: &[Offence]) -> Vec<usize> {
    offences.iter().map(|offence| offence.line).collect()
}

#[test]
fn rooms_are_sorted_and_the_sides_follow_from_their_table() {
    let names: Vec<&str> = ROOMS.iter().map(|(name, _)| *name).collect();
    assert!(names.is_sorted(), "sort ROOMS by name");
    for side in SIDES {
        for (name, allowed) in ROOMS.iter().filter(|(name, _)| side.rooms.contains(name)) {
            let crossing: Vec<_> = allowed.iter().filter(|to| side.never.contains(to)).collect();
            assert!(crossing.is_empty(), "ROOMS lets `{name}` of the {} import {crossing:?}", side.name);
        }
    }
}

#[test]
fn comments_and_strings_are_blanked_in_place() {
    let cases = [
        ("a // b\nc", "a     \nc"),
        ("a /* b /* c */ d */ e", "a                   e"),
        ("a(/* b */)", "a(       )"),
        ("/**/x", "    x"),
        (r#"a("b // \" c") d"#, "a(           ) d"),
        (r##"r#"a " b"# c"##, "           c"),
        ("bar\"x\" r", "bar    r"),
        ("'\"' 'a' <'a> '\\'' '{'", "        <'a>         "),
        ("b'\\n' x", "b     x"),
    ];
    for (text, wanted) in cases {
        assert_eq!(code_only(text), wanted, "{text}");
    }
    assert_eq!(without_comments("a(\"//\") // b"), "a(\"//\")     ");
    assert_eq!(code_only("é /* é */ x").len(), "é /* é */ x".len());
}

#[test]
fn every_way_to_import_is_seen() {
    let cases: [(&str, &str, &[&str]); 11] = [
        ("src/plan/mod.rs", "use crate::journal::Cell;", &["journal::Cell"]),
        (
            "src/plan/mod.rs",
            "use crate::{need, journal::{self, Cell}, stack::fs::Wish};",
            &["need", "journal::self", "journal::Cell", "stack::fs::Wish"],
        ),
        ("src/plan/mod.rs", "use crate::{\n    need::Need,\n    sys::*,\n};", &["need::Need", "sys::*"]),
        ("src/plan/mod.rs", "let a = crate::sys::drop_caches(x);", &["sys::drop_caches"]),
        ("src/plan/mod.rs", "// use crate::sys;\nlet a = \"crate::sys\";", &[]),
        ("src/main.rs", "pickfs::cli::main()", &["cli::main"]),
        ("src/plan/mod.rs", "use super::sys::x;", &["sys::x"]),
        ("src/plan/read.rs", "use super::Plan; use super::super::sys;", &["sys"]),
        ("src/plan/read.rs", "mod tests { use super::super::Plan; use super::super::super::sys; }", &["sys"]),
        ("src/stack/fs/ext4.rs", "use super::super::super::sys::x;", &["sys::x"]),
        ("src/need.rs", "mod tests { use super::*; }", &[]),
    ];
    for (path, text, wanted) in cases {
        let got: Vec<String> = imports(&source(path, text)).into_iter().map(|(_, path)| path).collect();
        assert_eq!(got, wanted, "{path}: {text}");
    }
}

#[test]
fn imports_out_of_bounds_are_refused() {
    let cases = [
        ("src/stats/mod.rs", "\nuse crate::units;", vec![2]),
        ("src/stats/mod.rs", "use crate::stats::median;", vec![]),
        ("src/plan/mod.rs", "use crate::stats::LOOKS;", vec![]),
        ("src/plan/mod.rs", "use crate::stats::{LOOKS, median};", vec![1]),
        ("src/plan/mod.rs", "use crate::stats::LOOKSOUT;", vec![1]),
        ("src/cli/run.rs", "use crate::{agent, report};", vec![]),
        ("src/lib.rs", "use crate::sys;", vec![]),
        ("src/attic/mod.rs", "use crate::units;", vec![1]),
        ("src/sys/mod.rs", "crate::some_macro!()", vec![]),
    ];
    for (path, text, wanted) in cases {
        assert_eq!(lines(&forbidden_imports(&source(path, text))), wanted, "{path}: {text}");
    }
}

#[test]
fn the_sides_are_held_apart_in_words() {
    let offences = imports_across_sides(&source("src/run/order.rs", "\n\nuse crate::stack::fs;"));
    let said = offences.first().map(Offence::to_string).unwrap_or_default();
    assert!(
        said.starts_with("src/run/order.rs:3: the host side must never import `stack::fs`\n    to do: the host"),
        "{said}"
    );
    assert_eq!(lines(&imports_across_sides(&source("src/probe/cpu.rs", "use crate::report;"))), [1]);
    assert!(imports_across_sides(&source("src/cli/run.rs", "use crate::stack;")).is_empty());
}

/// A rule, a path, a text, and the lines that it must refuse.
type Case = (fn(&Source) -> Vec<Offence>, &'static str, &'static str, &'static [usize]);

const CASES: &[Case] = &[
    (unsafe_outside_sys, "src/agent/mod.rs", "a\nunsafe { libc::ioctl(1) }", &[2, 2]),
    (unsafe_outside_sys, "src/agent/mod.rs", "// unsafe\n\"unsafe\"; unsafe_code; my_ioctl(1)", &[]),
    (unsafe_outside_sys, "src/agent/mod.rs", "rustix::ioctl::ioctl(1)", &[1, 1]),
    (unsafe_outside_sys, "src/sys/mod.rs", "unsafe { libc::ioctl(1) }", &[]),
    (missing_headers, "src/run/order.rs", "use x;", &[1]),
    (missing_headers, "src/run/order.rs", "//! Order.", &[]),
    (missing_headers, "src/run/mod.rs", "//! Order.\n// must not know", &[1]),
    (missing_headers, "src/run/mod.rs", "//! Order. It must\n//! not know x.", &[]),
    (missing_headers, "src/stack/fs/mod.rs", "//! Drivers.", &[1]),
    (missing_headers, "src/report/html/mod.rs", "//! Pages.", &[]),
    (shells, "src/agent/mod.rs", "\nCommand::new(\"sh\").arg(\"-c\")", &[2]),
    (shells, "src/agent/mod.rs", "[\"/bin/bash\", \"-e\", \"-c\", line]", &[1]),
    (shells, "src/agent/mod.rs", "\"sh -c true\"", &[1]),
    (shells, "src/agent/mod.rs", "[\"sh\"]; [\"gcc\", \"-c\"] // \"sh\", \"-c\"", &[]),
    (shells, "src/agent/mod.rs", "flash(\"-c\"); [\"dash.rs\", \"-c\"]", &[]),
    (spawns, "src/stack/mod.rs", "\n\nCommand::new(x)", &[3]),
    (spawns, "src/stats/mod.rs", "use std::process::Command;", &[1]),
    (spawns, "src/agent/mod.rs", "Command::new(x)", &[]),
    (spawns, "src/stack/mod.rs", "// Command::new(x)\nMyCommand::new(x)", &[]),
    (local_paths, "README.md", "\ncd /home/me && ls /work", &[2, 2]),
    (local_paths, "src/a.rs", "\"/root/x\" \"/root\"", &[1, 1]),
    (local_paths, "src/a.rs", "src/workload /workload a/work/b /rooted {dir}/root $HOME ~/home", &[]),
    (clocks, "src/stats/a.rs", "\nlet t = Instant::now();", &[2]),
    (clocks, "src/report/a.rs", "use std::time::SystemTime; Zoned::now(); jiff::Timestamp::now()", &[1, 1, 1]),
    (clocks, "src/agent/a.rs", "Instant::now()", &[]),
    (clocks, "src/plan/a.rs", "// Instant\nlet instantly = Timestamp::from(x);", &[]),
];

#[test]
fn each_rule_refuses_what_it_should_and_nothing_else() {
    for (rule, path, text, wanted) in CASES {
        let mut got = lines(&rule(&source(path, text)));
        got.sort();
        assert_eq!(got, *wanted, "{path}: {text}");
    }
}

#[test]
fn modules_that_nobody_names_are_found() {
    let list = source("src/probe/mod.rs", "//! x\n// mod cpu;\nmod disk;\npub mod space;");
    let files = ["cpu.rs", "disk.rs", "space/mod.rs", "space/deep.rs", "old/mod.rs"];
    let files = files.map(|file| source(&format!("src/probe/{file}"), "//! x"));
    let all: Vec<Source> = [list].into_iter().chain(files).collect();
    let found: BTreeSet<String> = unnamed_modules(&all).into_iter().map(|offence| offence.path).collect();
    assert_eq!(Vec::from_iter(found), ["src/probe/cpu.rs", "src/probe/old/mod.rs"]);
}

#[test]
fn functions_are_measured_to_their_closing_brace() {
    let text = "trait A {\n    fn declared(&self, x: [u8; 4]) -> u8;\n    fn one(&self) -> u8 { 1 }\n}\n\
                fn three(x: fn(u8) -> u8) {\n    let text = \"}\";\n}\nstruct B { f: fn(u8) }";
    let code = code_only(text);
    let found: Vec<(&str, usize)> =
        functions(&code).into_iter().map(|(at, lines)| (&code[at..at + 6], lines)).collect();
    assert_eq!(found, [("fn one", 1), ("fn thr", 3)]);
}

#[test]
fn long_functions_are_refused_alone_and_on_the_whole() {
    let function = |lines: usize| format!("fn f() {{\n{}}}\n", "    x();\n".repeat(lines - 2));
    let refused = |lengths: &[usize]| {
        let text: String = lengths.iter().map(|lines| function(*lines)).collect();
        long_functions(&[source("src/a.rs", &text)]).len()
    };
    let cases: [(&[usize], usize); 5] = [
        (&[5, 6, 7, 8, 9, 10, 10, 10, 10, 40], 0),
        (&[5, 6, 7, 8, 9, 11, 11, 11, 11, 40], 1),
        (&[5, 6, 7, 8, 9, 10, 10, 10, 10, 41], 1),
        (&[5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 101], 1),
        (&[], 0),
    ];
    for (lengths, wanted) in cases {
        assert_eq!(refused(lengths), wanted, "{lengths:?}");
    }
}

#[test]
fn long_files_are_refused_unless_excused() {
    let long = source("src/a.rs", &"x\n".repeat(LONGEST_FILE + 1));
    let fitting = source("src/a.rs", &"x\n".repeat(LONGEST_FILE));
    assert_eq!([long_files(&long, &[]).len(), long_files(&fitting, &[]).len()], [1, 0]);
    assert!(long_files(&long, &["src/a.rs"]).is_empty());
}

#[test]
fn lists_out_of_order_or_without_words_are_refused() {
    let cases: [(&[(&str, &str)], usize); 6] = [
        (&[], 0),
        (&[("a", "first"), ("b", "second")], 0),
        (&[("b", "second"), ("a", "first")], 1),
        (&[("a", "first"), ("a", "again")], 1),
        (&[("a", " ")], 1),
        (&[("a", "first.")], 1),
    ];
    for (entries, wanted) in cases {
        assert_eq!(bad_entries("x::ALL", entries).len(), wanted, "{entries:?}");
    }
}
