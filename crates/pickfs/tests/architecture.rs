//! House rules that neither rustc nor clippy can hold: which crate may depend on which, that
//! imports within a crate make no circle, that headers are true, and that what is listed is
//! complete and sorted. `[workspace.lints]` in Cargo.toml and clippy.toml hold the others, and a
//! crate cannot name another that its manifest does not.
//!
//! The rules are tables at the top. Source is read as tokens (`proc-macro2`), so comments and
//! strings cannot be mistaken for code and what stands inside macros is seen. The planted
//! violations at the foot show that each rule can fail.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Formatter};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

// ---------------------------------------------------------------- the rules

/// Each crate and those of ours that it may depend on, but for its tests. A row a crate, sorted.
/// Host and target never know each other; what both need is below them.
const CRATES: &[(&str, &str)] = &[
    ("core", "stats system"),
    ("disks", "system"),
    ("host", "core disks stats system"),
    ("pickfs", "core disks host stats system target trace trees"),
    ("stats", ""),
    ("system", ""),
    ("target", "core disks stats system trace trees"),
    ("test-support", ""),
    ("trace", "system"),
    ("trees", "system"),
];

/// Crates with their own lints; all others have those of the workspace.
const OWN_LINTS: &[&str] = &["pickfs", "system"];

/// Lines of a function from `fn` to its closing brace; clippy's `too_many_lines` holds the longest.
const MEDIAN_FUNCTION: usize = 10;
const NINE_IN_TEN_FUNCTIONS: usize = 40;

const LONGEST_FILE: usize = 600;
/// Prose is read slowly in lines as long as rustfmt lets those of code be.
const LONGEST_COMMENT: usize = 100;

/// Databases that a workload plays with; file systems and layers are in their own lists.
const DATABASES: &[&str] = &["duckdb", "mariadb", "pgbench", "postgres", "sqlite", "sysbench"];

/// Where the name of a file system, a layer or a database stands outside its own file, and why it
/// may.
const NAMED_ELSEWHERE: &[(&str, &str)] = &[
    ("core/src/journal/anonymous/", "how names of devices begin"),
    ("core/src/plan/args.rs", "what is compared where a user names nothing"),
    ("host/src/analysis/owners/table.rs", "functions of the kernel, by what they work for"),
    ("host/src/executor/vm/", "what a guest is started from, and its own folders in memory"),
    ("host/src/wording/advice", "what a user types to change a file system that is there; the host knows no driver"),
    ("pickfs/src/cli/purpose.rs", "a purpose is called by the database that it is about"),
    ("pickfs/src/cli/sim.rs", "what the host's processor is measured with"),
    ("target/src/agent/other_disk.rs", "the disk that brings a tree into a guest, which is not measured"),
    ("target/src/probe/compression.rs", "a probe reads what the driver of one file system shows, and of no other"),
    ("target/src/stack/above/network.rs", "a setting of shares has the word that netem has"),
    ("target/src/stack/backing/memory.rs", "a backing that is a tmpfs"),
    ("target/src/stack/safety.rs", "what lsblk calls a device that another program has made"),
    ("target/src/workload/recipe/mod.rs", "a recipe of ours is called by its file"),
    ("target/src/workload/trees/vm_image.rs", "the file systems that a virtual machine may have inside"),
    ("trace/src/shipped.rs", "a recording is named by the program that was recorded"),
    ("trees/src/profile/kinds.rs", "how names of files end"),
];

// ---------------------------------------------------------------- the rules as tests

#[test]
fn crates_depend_only_on_what_they_may() {
    let manifests = files(&["crates"], &["toml"]).into_iter().filter(|(path, _)| path.ends_with("/Cargo.toml"));
    let found: Vec<(String, String)> =
        manifests.map(|(path, text)| (path.split('/').nth(1).unwrap_or_default().to_string(), text)).collect();
    pass(wrong_manifests(CRATES, &found));
}

#[test]
fn no_circles() {
    pass(CODE.circles());
}

#[test]
fn headers_are_true() {
    pass(CODE.false_headers());
}

#[test]
fn every_file_is_compiled() {
    pass(CODE.orphans());
}

/// rustc says nothing of a file that no list of modules names.
#[test]
fn every_test_is_compiled() {
    let tests = root().join("crates/pickfs/tests");
    let mut offences = Vec::new();
    for (folder, list) in [("", "main.rs"), ("deep", "deep/mod.rs")] {
        let declared = std::fs::read_to_string(tests.join(list)).expect("the list of modules");
        for entry in std::fs::read_dir(tests.join(folder)).expect("the folder of tests") {
            let name = entry.expect("an entry").file_name().into_string().expect("a plain name");
            let Some(module) = name.strip_suffix(".rs").filter(|module| !["main", "mod"].contains(module)) else {
                continue;
            };
            if !declared.lines().any(|line| line.trim_start_matches("pub(crate) ") == format!("mod {module};")) {
                let remedy = "add its `mod` line";
                offences.push(offence(
                    &format!("crates/pickfs/tests/{list}"),
                    1,
                    format!("{name} is not in it"),
                    remedy,
                ));
            }
        }
    }
    pass(offences);
}

#[test]
fn functions_are_short() {
    pass(CODE.long_functions());
}

#[test]
fn files_are_short() {
    pass(CODE.long_files());
}

#[test]
fn comments_are_narrow() {
    pass(CODE.long_comments());
}

#[test]
fn no_shell_between_us_and_a_program() {
    pass(CODE.shells());
}

/// The oldest compiler that Cargo.toml names does not know them; `make oldest-rust` finds the same,
/// in minutes.
#[test]
fn no_chains_of_let() {
    pass(CODE.let_chains());
}

/// What is special of a plug-in is a field or a function of it, so that the next one is one file.
#[test]
fn plugins_are_named_in_their_own_files_alone() {
    let filesystems = pickfs_target::stack::fs::ALL.iter().map(|fs| fs.name);
    let layers = pickfs_target::stack::layer::ALL.iter().map(|layer| layer.name);
    let names: Vec<&str> = filesystems.chain(layers).chain(DATABASES.iter().copied()).collect();
    pass(CODE.foreign_names(&names, NAMED_ELSEWHERE));
}

#[test]
fn no_path_of_one_machine() {
    pass(published().iter().flat_map(local_paths).collect());
}

#[test]
fn paths_in_documents_exist() {
    let documents = published().into_iter().filter(|(path, _)| path.ends_with(".md") && path != "CHANGELOG.md");
    pass(documents.flat_map(|document| dead_paths(&document, |path| root().join(path).exists())).collect());
}

/// `cargo install --path` wants the folder of a program, which the root of the workspace is not.
#[test]
fn what_is_installed_from_a_folder_is_a_program() {
    for file in ["README.md", "packaging/action.yml"] {
        let text = std::fs::read_to_string(root().join(file)).expect("it is there");
        let folders: Vec<&str> =
            text.split("--path ").skip(1).filter_map(|rest| rest.split_whitespace().next()).collect();
        assert!(!folders.is_empty(), "{file} installs nothing");
        for folder in folders {
            let folder = folder.trim_matches('"').trim_start_matches("$GITHUB_ACTION_PATH/../");
            let manifest = std::fs::read_to_string(root().join(folder).join("Cargo.toml"));
            assert!(manifest.is_ok_and(|text| text.contains("[package]")), "{file}: {folder} has no program");
        }
    }
}

#[test]
fn plugins_are_sorted_and_described() {
    /// Names and descriptions of a list of plug-ins, through the public interface.
    macro_rules! entries {
        ($($list:path),* $(,)?) => {
            [$((stringify!($list), $list.iter().map(|plugin| (plugin.name(), plugin.about())).collect::<Vec<_>>())),*]
        };
    }
    /// The same of plug-ins that are data.
    macro_rules! rows {
        ($($list:path),* $(,)?) => {
            [$((stringify!($list), $list.iter().map(|plugin| (plugin.name, plugin.about)).collect::<Vec<_>>())),*]
        };
    }
    let rows = rows![
        pickfs_target::probe::ALL,
        pickfs_target::stack::backing::ALL,
        pickfs_target::stack::fs::ALL,
        pickfs_target::stack::layer::ALL,
    ];
    let lists = entries![pickfs_host::executor::ALL, pickfs_host::import::ALL, pickfs_target::workload::ALL,];
    pass(lists.iter().chain(&rows).flat_map(|(list, entries)| bad_entries(list, entries)).collect());
}

// ---------------------------------------------------------------- what a failure looks like

/// A rule that is broken in one place, and what to do about it.
#[derive(Debug, PartialEq)]
struct Offence {
    path: String,
    line: usize,
    what: String,
    remedy: String,
}

impl Display for Offence {
    fn fmt(&self, out: &mut Formatter) -> std::fmt::Result {
        write!(out, "{}:{}: {}\n    to do: {}", self.path, self.line, self.what, self.remedy)
    }
}

fn offence(path: &str, line: usize, what: impl Into<String>, remedy: impl Into<String>) -> Offence {
    Offence { path: path.to_string(), line, what: what.into(), remedy: remedy.into() }
}

fn pass(offences: Vec<Offence>) {
    let shown: Vec<String> = offences.iter().map(Offence::to_string).collect();
    assert!(shown.is_empty(), "\n\n{} broken house rule(s):\n\n{}\n", shown.len(), shown.join("\n\n"));
}

// ---------------------------------------------------------------- source as modules, imports and
// functions

/// Names from a crate on, such as `core`, `journal`, `record`, `Cell`.
type Names = Vec<String>;

/// A file below `src` of a crate, read.
#[derive(Default)]
struct Source {
    path: String,
    text: String,
    /// Its place: `["target", "stack", "fs", "ext4"]`, and the crate alone for `lib.rs` and
    /// `main.rs`.
    module: Names,
    /// Modules that it declares in other files.
    declares: Vec<Names>,
    imports: Vec<Import>,
    /// What `use` makes known: a name in a module, what it stands for, and whether everybody may
    /// use it.
    aliases: Vec<(Names, Names, bool)>,
    /// The first line and the number of lines of each function.
    functions: Vec<(usize, usize)>,
    /// Strings outside of tests, each with its line; `None` where a statement ends.
    strings: Vec<Option<(usize, String)>>,
    /// Lines of `let` in conditions that have more than one part.
    let_chains: Vec<usize>,
}

/// A path that begins with `crate`, `super` or `self`, from its crate on.
#[derive(Clone)]
struct Import {
    line: usize,
    path: Names,
    /// In a module or item of tests.
    test: bool,
}

impl Source {
    fn new(path: &str, text: &str) -> Source {
        let inside = path.trim_start_matches("crates/").trim_end_matches(".rs").trim_end_matches("/mod");
        let (name, inside) = inside.split_once("/src/").unwrap_or_else(|| panic!("{path} is in no crate"));
        let inside = if ["lib", "main"].contains(&inside) { "" } else { inside };
        let module = [vec![name.to_string()], names(inside, "/")].concat();
        let mut source = Source { path: path.into(), text: text.into(), module: module.clone(), ..Source::default() };
        let tokens: TokenStream = text.parse().unwrap_or_else(|error| panic!("{path}: {error}"));
        source.walk(tokens, &module, false);
        source
    }

    /// Reads the tokens of one module, block or macro.
    fn walk(&mut self, tokens: TokenStream, module: &[String], in_tests: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        // An attribute `#[cfg(test)]` holds up to the end of the item that it stands before.
        let mut test = in_tests;
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            match token {
                TokenTree::Punct(mark) if mark.as_char() == '#' => {
                    let attribute = tokens.get(at + 1).map(TokenTree::to_string).unwrap_or_default();
                    test |= attribute.replace(' ', "") == "[cfg(test)]";
                    at += if attribute == "!" { 2 } else { 1 };
                }
                TokenTree::Punct(mark) if mark.as_char() == ';' => {
                    test = in_tests;
                    self.strings.push(None);
                }
                TokenTree::Literal(literal) if !test => {
                    let text = literal.to_string();
                    let text = text.trim_start_matches(['r', 'b', '#']).trim_matches(['"', '#']);
                    self.strings.push(Some((literal.span().start().line, text.to_string())));
                }
                TokenTree::Group(group) => {
                    let name = module_name(&tokens, at).map(|name| [module, &[name]].concat());
                    self.walk(group.stream(), name.as_deref().unwrap_or(module), test);
                    if group.delimiter() == Delimiter::Brace {
                        test = in_tests;
                    }
                }
                TokenTree::Ident(word) if word == "mod" && is(&tokens, at + 2, ";") => {
                    self.declares.push([module, &[tokens[at + 1].to_string()]].concat());
                }
                TokenTree::Ident(word) if word == "let" && is_chained(&tokens, at) => {
                    self.let_chains.push(word.span().start().line);
                }
                TokenTree::Ident(word) if word == "fn" => self.functions.extend(function(&tokens[at..])),
                TokenTree::Ident(word) if word == "use" => {
                    let (mut found, public) = (Vec::new(), is_public(&tokens, at));
                    tree(&tokens, at + 1, module.to_vec(), &mut found);
                    let known = |(_, path, name)| ([module, &[name]].concat(), path, public);
                    self.aliases.extend(found.into_iter().map(known));
                }
                TokenTree::Ident(word) if begins_path(&tokens, at) => {
                    let (mut found, line) = (Vec::new(), word.span().start().line);
                    tree(&tokens, at, module.to_vec(), &mut found);
                    self.imports.extend(found.into_iter().map(|(deep, path, _)| Import {
                        line: deep.max(line),
                        path,
                        test,
                    }));
                }
                _ => {}
            }
            at += 1;
        }
    }
}

fn names(text: &str, between: &str) -> Names {
    text.split(between).filter(|name| !name.is_empty()).map(str::to_string).collect()
}

fn is(tokens: &[TokenTree], at: usize, text: &str) -> bool {
    tokens.get(at).is_some_and(|token| token.to_string() == text)
}

/// The item at `at` follows `pub` or `pub(...)`.
fn is_public(tokens: &[TokenTree], at: usize) -> bool {
    (at >= 1 && is(tokens, at - 1, "pub")) || (at >= 2 && is(tokens, at - 2, "pub"))
}

/// The `let` at `at` is one of several conditions between `&&`.
fn is_chained(tokens: &[TokenTree], at: usize) -> bool {
    let is_and = |at: usize| is(tokens, at, "&") && is(tokens, at + 1, "&");
    let is_body = |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
    let is_condition = at >= 1 && ["if", "while"].iter().any(|word| is(tokens, at - 1, word));
    let end = tokens[at..].iter().position(is_body).map_or(tokens.len(), |body| at + body);
    let follows = |at: usize| !matches!(tokens[at - 1], TokenTree::Punct(_)) && is_and(at);
    at >= 2 && is_and(at - 2) || is_condition && (at + 1..end).any(follows)
}

/// `tests` where `tokens[at]` is the body of `mod tests { ... }`.
fn module_name(tokens: &[TokenTree], at: usize) -> Option<String> {
    (at >= 2 && is(tokens, at - 2, "mod")).then(|| tokens[at - 1].to_string())
}

/// The word at `at` is `crate`, `super` or `self`, before `::` and not behind it.
fn begins_path(tokens: &[TokenTree], at: usize) -> bool {
    let root = ["crate", "super", "self"].iter().any(|root| is(tokens, at, root));
    root && is(tokens, at + 1, ":") && is(tokens, at + 2, ":") && (at == 0 || !is(tokens, at - 1, ":"))
}

/// Every path of a `use` tree or of one path: line, names from its crate on, and the name it is
/// known by. `base` is the module where it stands.
fn tree(tokens: &[TokenTree], mut at: usize, mut base: Names, found: &mut Vec<(usize, Names, String)>) {
    while let Some(TokenTree::Ident(word)) = tokens.get(at) {
        match word.to_string().as_str() {
            "crate" => base.truncate(1),
            "super" => drop(base.pop()),
            "self" => {}
            name => base.push(name.to_string()),
        }
        if !(is(tokens, at + 1, ":") && is(tokens, at + 2, ":")) {
            let known_as = if is(tokens, at + 1, "as") { tokens.get(at + 2).map(TokenTree::to_string) } else { None };
            let name = known_as.or(base.last().cloned()).unwrap_or_default();
            return found.push((word.span().start().line, base, name));
        }
        at += 3;
    }
    match tokens.get(at) {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => branches(group, &base, found),
        Some(token) => found.push((token.span().start().line, base, "*".to_string())),
        None => {}
    }
}

fn branches(group: &Group, base: &Names, found: &mut Vec<(usize, Names, String)>) {
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    for branch in tokens.split(|token| token.to_string() == ",") {
        tree(branch, 0, base.clone(), found);
    }
}

/// First line and number of lines of the function that `tokens` begin with, unless it is a
/// declaration or a type.
fn function(tokens: &[TokenTree]) -> Option<(usize, usize)> {
    let TokenTree::Ident(_) = tokens.get(1)? else { return None };
    let body = tokens.iter().find_map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(Some(group)),
        TokenTree::Punct(mark) if mark.as_char() == ';' => Some(None),
        _ => None,
    })??;
    let first = tokens[0].span().start().line;
    Some((first, body.span_close().end().line - first + 1))
}

static CODE: LazyLock<Code> = LazyLock::new(Code::read);

/// All of `crates`, but for tests and benchmarks.
struct Code {
    sources: Vec<Source>,
    /// Every module that has a file, and every folder of such.
    modules: BTreeSet<Names>,
    aliases: BTreeMap<Names, (Names, bool)>,
}

impl Code {
    fn read() -> Code {
        let mut files = files(&["crates"], &["rs"]);
        files.retain(|(path, _)| path.contains("/src/"));
        assert!(!files.is_empty(), "no source found: is this still the root of the workspace?");
        Code::of(files.iter().map(|(path, text)| Source::new(path, text)).collect())
    }

    fn of(sources: Vec<Source>) -> Code {
        let modules: BTreeSet<Names> = sources.iter().map(|source| source.module.clone()).collect();
        let aliases = sources.iter().flat_map(|source| source.aliases.clone());
        let aliases = aliases.map(|(name, path, public)| (name, (path, public))).collect();
        Code { sources, modules, aliases }
    }

    /// Follows `use` to where an item is defined: public ones, and those of the modules that `from`
    /// lies in.
    fn resolved(&self, from: &[String], path: &Names) -> Names {
        let mut path = path.clone();
        for _ in 0..8 {
            let seen = |n: usize| {
                let (target, public) = self.aliases.get(&path[..n]).filter(|_| !self.modules.contains(&path[..n]))?;
                (*public || from.starts_with(&path[..n - 1])).then_some((n, target))
            };
            let Some((n, target)) = (1..=path.len()).find_map(seen) else { break };
            path = [target, &path[n..]].concat();
        }
        path
    }

    /// Imports as written, with their file.
    fn imports(&self) -> impl Iterator<Item = (&Source, &Import)> {
        self.sources.iter().flat_map(|source| source.imports.iter().map(move |import| (source, import)))
    }

    /// Edges between the modules of each folder, with one import for each edge.
    fn graphs(&self) -> BTreeMap<Names, BTreeMap<(String, String), Offence>> {
        let mut graphs: BTreeMap<Names, BTreeMap<(String, String), Offence>> = BTreeMap::new();
        for (source, import) in self.imports().filter(|(_, import)| !import.test) {
            let to = self.resolved(&source.module, &import.path);
            let common = source.module.iter().zip(&to).take_while(|(a, b)| a == b).count();
            let (Some(from), Some(target)) = (source.module.get(common), to.get(common)) else { continue };
            if self.modules.contains(&to[..=common]) {
                let what = format!("`{}` imports `{}`, which closes a circle", source.module.join("::"), to.join("::"));
                let edge = offence(&source.path, import.line, what, "move what both need below them, or hand it in");
                let graph = graphs.entry(to[..common].to_vec()).or_default();
                graph.entry((from.clone(), target.clone())).or_insert(edge);
            }
        }
        graphs
    }

    /// Imports that close a circle of modules in a folder.
    fn circles(&self) -> Vec<Offence> {
        let circular = |edges: BTreeMap<(String, String), Offence>| {
            let reaches = reach(edges.keys());
            let is_circular = move |(from, to): &(String, String)| reaches.contains(&(to.clone(), from.clone()));
            edges.into_iter().filter(move |(edge, _)| is_circular(edge)).map(|(_, import)| import)
        };
        self.graphs().into_values().flat_map(circular).collect()
    }

    /// What a module's header says that it must not know is a module next to it, and is not
    /// imported by it. Other crates need no such word.
    fn false_headers(&self) -> Vec<Offence> {
        let mut offences = Vec::new();
        for source in &self.sources {
            let header = header(&source.text);
            if header.is_empty() {
                let remedy = "say in a sentence what the file is for";
                offences.push(offence(&source.path, 1, "no `//!` on the first line", remedy));
            }
            let Some((_, folder)) = source.module.split_last() else { continue };
            for unknown in must_not_know(&header) {
                let unknown = [folder, &names(&unknown, "::")].concat();
                if !self.modules.contains(&unknown) {
                    let what = format!("`{}` is no module beside this one", unknown.join("::"));
                    offences.push(offence(&source.path, 1, what, "name modules of the same folder"));
                }
                let within =
                    self.imports().filter(|(at, import)| at.module.starts_with(&source.module) && !import.test);
                for (at, import) in within.filter(|(_, import)| import.path.starts_with(&unknown)) {
                    let what = format!("imports `{}`, which {} must not know", import.path.join("::"), source.path);
                    offences.push(offence(&at.path, import.line, what, "hand it in, or mend the head"));
                }
            }
        }
        offences
    }

    fn orphans(&self) -> Vec<Offence> {
        let declared: BTreeSet<&Names> = self.sources.iter().flat_map(|source| &source.declares).collect();
        let orphans = self.sources.iter().filter(|s| s.module.len() > 1 && !declared.contains(&s.module));
        let remedy = "add its `mod` line (and its line in the folder's list), or delete the file";
        orphans.map(|s| offence(&s.path, 1, "no module names this file, so it is never compiled", remedy)).collect()
    }

    fn long_functions(&self) -> Vec<Offence> {
        let mut lengths: Vec<usize> = self.sources.iter().flat_map(|s| &s.functions).map(|(_, lines)| *lines).collect();
        lengths.sort();
        let rank = |share: f64| lengths.get((share * lengths.len() as f64) as usize).copied().unwrap_or(0);
        let rules = [("half", rank(0.5), MEDIAN_FUNCTION), ("nine in ten", rank(0.9), NINE_IN_TEN_FUNCTIONS)];
        let broken = rules.into_iter().filter(|(_, lines, limit)| lines > limit);
        broken
            .map(|(share, lines, limit)| {
                let what = format!("{share} of the functions reach {lines} lines; {limit} is the limit");
                offence("crates", 1, what, "take the longest new ones apart")
            })
            .collect()
    }

    fn long_files(&self) -> Vec<Offence> {
        let lines = |source: &Source| source.text.lines().count();
        let long = self.sources.iter().filter(|source| lines(source) > LONGEST_FILE);
        let what = |source| format!("{} lines; {LONGEST_FILE} is the limit", lines(source));
        long.map(|source| offence(&source.path, 1, what(source), "split it by what it is about")).collect()
    }

    fn long_comments(&self) -> Vec<Offence> {
        let mut offences = Vec::new();
        for source in &self.sources {
            for (at, line) in source.text.lines().enumerate() {
                let columns = line.chars().count();
                if columns > LONGEST_COMMENT && line.trim_start().starts_with("//") {
                    let what = format!("a comment of {columns} columns; {LONGEST_COMMENT} is the limit");
                    offences.push(offence(&source.path, at + 1, what, "break the line"));
                }
            }
        }
        offences
    }

    /// A shell and `-c` in one statement, as separate strings or in one. Tests may.
    fn let_chains(&self) -> Vec<Offence> {
        let remedy = "filter the value first, or nest the conditions: Rust 1.85 compiles no chain of `let`";
        let all = self.sources.iter().flat_map(|source| source.let_chains.iter().map(move |line| (source, line)));
        all.map(|(source, line)| offence(&source.path, *line, "a chain of `let`", remedy)).collect()
    }

    fn shells(&self) -> Vec<Offence> {
        let mut offences = Vec::new();
        for source in &self.sources {
            for statement in source.strings.split(Option::is_none) {
                let strings: Vec<&(usize, String)> = statement.iter().flatten().collect();
                let shell = |at: usize| {
                    let program = strings[at].1.rsplit('/').next().unwrap_or_default();
                    let alone = ["sh", "bash", "dash", "zsh"].contains(&program)
                        && strings.iter().skip(at + 1).take(3).any(|(_, text)| text == "-c");
                    alone || ["sh -c ", "bash -c "].iter().any(|start| program.starts_with(start))
                };
                let remedy = "hand the program and its arguments over as a list; pipes and loops belong in Rust";
                let found = (0..strings.len()).filter(|at| shell(*at));
                offences.extend(found.map(|at| offence(&source.path, strings[at].0, "a shell with -c", remedy)));
            }
        }
        offences
    }

    /// Strings that are the name of a plug-in and stand neither in its own file nor in that of one
    /// of its kin, but for excused places; and excuses that nothing needs.
    fn foreign_names(&self, names: &[&str], excused: &[(&str, &str)]) -> Vec<Offence> {
        let is_own = |source: &Source| {
            let file = source.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs").replace('_', "-");
            let of_tests = ["tests", "example"].contains(&&*file) || source.path.contains("/tests/");
            of_tests || source.path.contains("test-support") || names.contains(&&*file)
        };
        let excuse = |path: &str| excused.iter().position(|(place, _)| path.starts_with(&format!("crates/{place}")));
        let (mut offences, mut used) = (Vec::new(), BTreeSet::new());
        for source in self.sources.iter().filter(|source| !is_own(source)) {
            for (line, text) in source.strings.iter().flatten().filter(|(_, text)| names.contains(&&**text)) {
                let remedy = "make it a field or a function of the plug-in, or excuse it in NAMED_ELSEWHERE";
                match excuse(&source.path) {
                    Some(row) => drop(used.insert(row)),
                    None => offences.push(offence(&source.path, *line, format!("names `{text}`"), remedy)),
                }
            }
        }
        let idle = excused.iter().enumerate().filter(|(row, _)| !used.contains(row));
        offences.extend(idle.map(|(_, (place, _))| offence(place, 1, "names no plug-in", "delete its excuse")));
        offences
    }
}

/// Crates that depend on others than they may, or that no row names, and manifests without the
/// lints of the workspace.
fn wrong_manifests(crates: &[(&str, &str)], manifests: &[(String, String)]) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (name, text) in manifests {
        let path = format!("crates/{name}/Cargo.toml");
        let Some((_, allowed)) = crates.iter().find(|row| row.0 == name) else {
            let remedy = "give it a row in CRATES of crates/pickfs/tests/architecture.rs, and one in ARCHITECTURE.md";
            offences.push(offence(&path, 1, format!("`{name}` is a new crate"), remedy));
            continue;
        };
        let section = text.split("\n[").find_map(|section| section.strip_prefix("dependencies]")).unwrap_or_default();
        let ours: Vec<&str> =
            section.lines().filter_map(|line| line.strip_prefix("pickfs-")?.split(['.', ' ']).next()).collect();
        if ours.join(" ") != *allowed {
            let remedy = "move the code, or hand the value in; what a crate needs no longer leaves its row";
            offences.push(offence(&path, 1, format!("depends on {ours:?}, and CRATES says `{allowed}`"), remedy));
        }
        if !OWN_LINTS.contains(&name.as_str()) && !text.contains("\n[lints]\nworkspace = true\n") {
            offences.push(offence(
                &path,
                1,
                "has not the lints of the workspace",
                "write `[lints]`, `workspace = true`",
            ));
        }
    }
    offences
}

/// Every pair of which the second can be reached from the first (Warshall's algorithm).
fn reach<'a>(edges: impl Iterator<Item = &'a (String, String)>) -> BTreeSet<(String, String)> {
    let mut pairs: BTreeSet<(String, String)> = edges.cloned().collect();
    let nodes: BTreeSet<String> = pairs.iter().flat_map(|(a, b)| [a.clone(), b.clone()]).collect();
    for middle in &nodes {
        let into: Vec<String> = pairs.iter().filter(|(_, b)| b == middle).map(|(a, _)| a.clone()).collect();
        let out: Vec<String> = pairs.iter().filter(|(a, _)| a == middle).map(|(_, b)| b.clone()).collect();
        pairs.extend(into.iter().flat_map(|a| out.iter().map(move |b| (a.clone(), b.clone()))));
    }
    pairs
}

/// The `//!` lines as one line.
fn header(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
    lines.join(" ")
}

/// Names in backticks between "Must not know:" and the end of that sentence.
fn must_not_know(header: &str) -> Vec<String> {
    let Some((_, rest)) = header.split_once("Must not know: ") else { return Vec::new() };
    let sentence = rest.split(". ").next().unwrap_or_default();
    sentence.split('`').skip(1).step_by(2).map(str::to_string).collect()
}

/// Complaints about a list of names and descriptions.
fn bad_entries(list: &str, entries: &[(&str, &str)]) -> Vec<Offence> {
    let unsorted = entries.windows(2).filter(|pair| pair[0].0 >= pair[1].0).map(|pair| {
        let what = format!("`{}` must not follow `{}`", pair[1].0, pair[0].0);
        offence(list, 1, what, "sort by name, each once")
    });
    let silent = entries.iter().filter(|(_, about)| about.trim().is_empty() || about.ends_with('.'));
    let silent = silent.map(|(name, _)| offence(list, 1, format!("`{name}` has no about"), "one phrase, no full stop"));
    unsorted.chain(silent).collect()
}

/// Folders of users that no file may name.
const LOCAL: &[&str] = &["/work", "/root", "/home"];

fn local_paths((path, text): &(String, String)) -> Vec<Offence> {
    let before = |c: char| c.is_alphanumeric() || "_-./~}*".contains(c);
    let after = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    let found = LOCAL.iter().flat_map(|local| text.match_indices(local));
    let found =
        found.filter(|(at, local)| !text[..*at].ends_with(before) && !text[at + local.len()..].starts_with(after));
    let remedy = "take the path from the user, the environment or a temporary folder";
    found
        .map(|(at, local)| {
            let line = text[..at].matches('\n').count() + 1;
            offence(path, line, format!("`{local}` is a path of one machine"), remedy)
        })
        .collect()
}

/// Files of ours that a document names in backticks and that are not there; `yours` stands for a
/// reader's own.
fn dead_paths((path, text): &(String, String), exists: impl Fn(&str) -> bool) -> Vec<Offence> {
    let ours = |word: &&str| {
        let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
        plain
            && ["crates/", "docs/", "fixtures/", "src/", "tests/", "benches/"]
                .iter()
                .any(|folder| word.starts_with(folder))
    };
    let mut offences = Vec::new();
    for (at, line) in text.lines().enumerate() {
        for word in line.split('`').skip(1).step_by(2).flat_map(str::split_whitespace).filter(ours) {
            if !word.contains("yours") && !exists(word) {
                offences.push(offence(path, at + 1, format!("`{word}` is not there"), "name the file as it is now"));
            }
        }
    }
    offences
}

// ---------------------------------------------------------------- files

/// Every text that users get, but for this file, which must name what it refuses.
fn published() -> Vec<(String, String)> {
    let kinds = ["rs", "toml", "md", "json", "html", "css"];
    let mut found = files(&["crates", "examples", "docs", "fixtures"], &kinds);
    found.extend(["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md"].map(|name| text(name.into())));
    found.retain(|(path, _)| path != "crates/pickfs/tests/architecture.rs");
    found
}

/// Paths from the root of the workspace, and texts, of all files of some kinds below some folders.
fn files(folders: &[&str], kinds: &[&str]) -> Vec<(String, String)> {
    let entries = folders.iter().flat_map(|folder| walkdir::WalkDir::new(root().join(folder)).sort_by_file_name());
    let entries = entries.filter_map(|entry| Some(entry.ok()?.into_path()));
    entries.filter(|path| path.extension().is_some_and(|kind| kinds.iter().any(|k| kind == *k))).map(text).collect()
}

fn text(path: PathBuf) -> (String, String) {
    let path = path.strip_prefix(root()).unwrap_or(&path).to_path_buf();
    let text =
        std::fs::read_to_string(root().join(&path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    (path.display().to_string(), text)
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

// ---------------------------------------------------------------- the rules can fail

/// Files of a crate `x`.
fn planted(files: &[(&str, &str)]) -> Code {
    Code::of(files.iter().map(|(path, text)| Source::new(&format!("crates/x/src/{path}"), text)).collect())
}

fn lines(offences: Vec<Offence>) -> Vec<(String, usize)> {
    offences.into_iter().map(|offence| (offence.path, offence.line)).collect()
}

#[test]
fn tables_are_sorted() {
    assert!(CRATES.is_sorted_by_key(|row| row.0));
    assert!(CRATES.iter().all(|row| CODE.modules.contains(&vec![row.0.to_string()])), "a row without a crate");
}

#[test]
fn every_way_to_import_is_seen() {
    let cases: &[(&str, &str, &[&str])] = &[
        ("near/mod.rs", "use crate::low::Item;", &["low::Item"]),
        (
            "near/mod.rs",
            "use crate::{low, there::{self, A as B, deep::*}};",
            &["low", "there", "there::A", "there::deep"],
        ),
        ("near/mod.rs", "fn f() { x(crate::low::call(1)) }", &["low::call"]),
        ("near/mod.rs", "fn f() { format!(\"{}\", crate::low::N) }", &["low::N"]),
        ("near/mod.rs", "// use crate::low;\nconst A: &str = \"crate::low\";", &[]),
        ("main.rs", "fn main() { crate::over::main(); y::over::main() }", &["over::main"]),
        ("near/mod.rs", "use super::low::x;", &["low::x"]),
        ("near/a.rs", "use super::B; use super::super::low;", &["near::B", "low"]),
        ("near/a.rs", "mod tests { use super::super::B; use super::C; }", &["near::B", "near::a::C"]),
        ("near.rs", "mod tests { use super::*; }", &["near"]),
        ("near/mod.rs", "use crate::low::Map::<u8>::new;", &["low::Map"]),
    ];
    for (path, text, wanted) in cases {
        let source = Source::new(&format!("crates/x/src/{path}"), text);
        let found: Vec<String> = source.imports.iter().map(|import| import.path[1..].join("::")).collect();
        assert_eq!(found, *wanted, "{path}: {text}");
    }
}

#[test]
fn crates_that_know_too_much_are_refused() {
    let rows = &[("high", "low"), ("low", "")];
    let found = |name: &str, text: &str| wrong_manifests(rows, &[(name.into(), text.into())]).len();
    let manifest = |lines: &str| {
        format!("[package]\n\n[dependencies]\n{lines}[dev-dependencies]\npickfs-a = 1\n\n[lints]\nworkspace = true\n")
    };
    assert_eq!(found("high", &manifest("libc = 1\npickfs-low.workspace = true\n\n")), 0);
    assert_eq!(found("high", &manifest("\n")), 1);
    assert_eq!(found("low", &manifest("\n")), 0);
    assert_eq!(found("low", &manifest("pickfs-high = { path = \"\" }\n\n")), 1);
    assert_eq!(found("attic", &manifest("\n")), 1);
    assert_eq!(found("low", "[dependencies]\n"), 1);
}

#[test]
fn circles_are_refused() {
    let found = |files: &[(&str, &str)]| lines(planted(files).circles()).len();
    let (a, b) = (("a/mod.rs", "use crate::b::X;"), ("b.rs", "use crate::c::X;"));
    assert_eq!(found(&[a, b, ("c.rs", "use crate::a::X;")]), 3);
    assert_eq!(found(&[a, b, ("c.rs", "#[cfg(test)] mod tests { use crate::a::X; } fn f() {}")]), 0);
    assert_eq!(found(&[a, b, ("c.rs", "#[cfg(test)] mod tests {} use crate::a::X;")]), 3);
    // Modules of a room: through the room's `pub use`, too. What stands in mod.rs itself is below
    // all of them.
    let room = ("a/mod.rs", "pub mod x; pub mod y; pub use y::{Thing, Other as Alias}; pub struct Low;");
    let x = |text| ("a/x.rs", text);
    let y = ("a/y.rs", "use super::{Low, x::X};");
    assert_eq!(found(&[room, x("use super::Low;"), y]), 0);
    for text in ["use super::y::Y;", "use super::Thing;", "use crate::a::Alias;", "use super::{Low, Thing};"] {
        assert_eq!(found(&[room, x(text), y]), 2, "{text}");
    }
}

#[test]
fn false_headers_are_refused() {
    let found = |head: &str, text: &str| {
        let near = format!("{head}\nuse crate::{text};");
        let others = ["low.rs", "over.rs", "there/mod.rs", "there/x.rs"].map(|path| (path, "//! It."));
        lines(planted(&[&others[..], &[("near/mod.rs", &near)]].concat()).false_headers())
    };
    let at = |line: usize| vec![("crates/x/src/near/mod.rs".to_string(), line)];
    assert_eq!(found("//! Near. Must not know: `low`, `there`. `over` it may.", "over::x"), []);
    assert_eq!(found("//! Near. Must not know: `low`,\n//! `there`.", "there::x"), at(3));
    assert_eq!(found("//! Near. Must not know: `there::x`.", "there::x::y"), at(2));
    assert_eq!(found("//! Near. Must not know: `there::x`.", "there::y"), []);
    assert_eq!(found("//! Near. Must not know: `attic`.", "low::x"), at(1));
    assert_eq!(found("//! Near.", "low::x"), []);
    assert_eq!(lines(planted(&[("near/deep.rs", "use x;")]).false_headers()).len(), 1);
}

#[test]
fn files_that_are_not_compiled_are_found() {
    let root = ("lib.rs", "pub mod a;");
    let a = ("a/mod.rs", "// mod lost;\nmod b;\npub mod c;");
    let files = [root, a, ("a/b.rs", ""), ("a/c/mod.rs", ""), ("a/lost.rs", ""), ("a/c/lost.rs", "")];
    assert_eq!(
        lines(planted(&files).orphans()),
        ["a/lost.rs", "a/c/lost.rs"].map(|path| (format!("crates/x/src/{path}"), 1))
    );
}

#[test]
fn functions_are_measured_and_their_ranks_held() {
    let text = "trait A {\n    fn declared(&self, x: [u8; 4]) -> u8;\n    fn one(&self) -> u8 { 1 }\n}\n\
                fn three(x: fn(u8) -> u8) {\n    let text = \"}\";\n}\nstruct B { f: fn(u8) }";
    assert_eq!(Source::new("crates/x/src/a.rs", text).functions, [(3, 1), (5, 3)]);
    let function = |lines: usize| format!("fn f() {{\n{}}}\n", "    x();\n".repeat(lines - 2));
    let refused = |lengths: &[usize]| {
        let text: String = lengths.iter().map(|lines| function(*lines)).collect();
        planted(&[("a.rs", &text)]).long_functions().len()
    };
    assert_eq!(refused(&[5, 6, 7, 8, 9, 10, 10, 10, 10, 40]), 0);
    assert_eq!(refused(&[5, 6, 7, 8, 9, 11, 11, 11, 11, 40]), 1);
    assert_eq!(refused(&[5, 6, 7, 8, 9, 10, 10, 10, 10, 41]), 1);
}

#[test]
fn long_files_are_refused() {
    let file = |lines: usize| planted(&[("a.rs", &"\n".repeat(lines))]).long_files().len();
    assert_eq!([file(LONGEST_FILE), file(LONGEST_FILE + 1)], [0, 1]);
}

#[test]
fn wide_comments_are_refused() {
    let comment = |columns: usize| planted(&[("a.rs", &format!("    // {}\n", "x".repeat(columns - 7)))]);
    let wide = |columns| comment(columns).long_comments().len();
    assert_eq!([wide(LONGEST_COMMENT), wide(LONGEST_COMMENT + 1)], [0, 1]);
}

#[test]
fn chains_of_let_are_refused() {
    let cases: &[(&str, &[usize])] = &[
        ("fn f() {\nif let Some(x) = y && x > 0 { a && b } }", &[2]),
        ("fn f() { if a && b\n&& let Some(x) = y { } }", &[2]),
        ("fn f() {\nwhile let Some(x) = y() && x { } }", &[2]),
        ("fn f() { if let Some(x) = y.filter(|x| a && b) { a && b } }", &[]),
        ("fn f() { let x = a && b; let Some(y) = &&z else { return a && b }; if let Some(c) = &&d { } }", &[]),
    ];
    for (text, wanted) in cases {
        let found: Vec<usize> = planted(&[("a.rs", text)]).let_chains().iter().map(|offence| offence.line).collect();
        assert_eq!(found, *wanted, "{text}");
    }
}

#[test]
fn shells_are_refused() {
    let cases: &[(&str, &[usize])] = &[
        ("fn f() {\nCommand::new(\"sh\").arg(\"-c\") }", &[2]),
        ("const A: &[&str] = &[\"/bin/bash\", \"-e\", \"-c\", LINE];", &[1]),
        ("const A: &str = \"sh -c true\";", &[1]),
        ("fn f() { [\"sh\"]; [\"gcc\", \"-c\"]; } // \"sh\", \"-c\"", &[]),
        ("fn f() { flash(\"-c\"); [\"dash.rs\", \"-c\"]; }", &[]),
        ("#[cfg(test)] mod tests { const A: &str = \"sh -c true\"; }", &[]),
    ];
    for (text, wanted) in cases {
        let found: Vec<usize> = planted(&[("a.rs", text)]).shells().iter().map(|offence| offence.line).collect();
        assert_eq!(found, *wanted, "{text}");
    }
}

#[test]
fn names_of_plugins_in_files_of_others_are_refused() {
    let own = ("stack/zip_fs.rs", "const A: &str = \"zip-fs\";");
    let excuse = [("x/src/far/", "a reason")];
    for (text, excuse, wanted) in [
        ("fn f() {\nlet a = fs == \"zip-fs\"; }", &[][..], 1),
        ("fn f() { match fs { \"zip-fs\" => 1, _ => 2 } }", &excuse, 0),
        ("fn f() { g(\"no zip-fs here\"); } // \"zip-fs\"", &[], 0),
        ("fn f() {}", &excuse, 1),
        ("#[cfg(test)] mod tests { const A: &str = \"zip-fs\"; }", &[], 0),
    ] {
        let found = planted(&[own, ("far/a.rs", text)]).foreign_names(&["zip-fs"], excuse);
        assert_eq!(found.len(), wanted, "{text}");
    }
}

#[test]
fn paths_of_one_machine_are_refused() {
    let found = |text: &str| local_paths(&("README.md".into(), text.into())).len();
    assert_eq!(found("\ncd /home/me && ls /work"), 2);
    assert_eq!(found("\"/root/x\" \"/root\""), 2);
    assert_eq!(found("src/workload /workload a/work/b /rooted {dir}/root $HOME ~/home"), 0);
}

#[test]
fn dead_paths_are_refused() {
    let found = |text: &str| dead_paths(&("README.md".into(), text.into()), |path| path == "src/a.rs").len();
    assert_eq!(found("`src/a.rs`, `cp src/a.rs src/yours.rs`, src/b.rs, `~/src/b`"), 0);
    assert_eq!(found("`src/b.rs`\n`cp src/c.rs x`"), 2);
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
