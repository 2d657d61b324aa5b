//! What people read is written in the words of the field: no text for users, and no comment, holds
//! a phrase that this project has ruled out. The test reads strings and comments of the source,
//! help and manual pages as the program prints them, lists, documents and examples.

use crate::common::Lab;
use proc_macro2::{TokenStream, TokenTree};
use std::path::{Path, PathBuf};

/// Pronouns of people for things, foreign turns of phrase, and words of speech for shown, reported
/// or distinguished.
const RULED_OUT: &[&str] = &[
    "all the same", "bearable", "beside", "directory as it is", "folder as it is", "hang on", "hangs on",
    "it says what", "leaves the race", "left the race", "nobody", "of one's own", "of our own", "so many", "somebody",
    "stay as they are", "stays as it is", "tells", "those that", "those who", "told", "unless said",
    "what is left of it", "what is left to", "whoever", "would tell",
];

/// In lower case, with a blank around each. Left out are code (`nobody` is a user of Linux systems)
/// and names of values.
fn words(text: &str) -> String {
    let outside = text.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let outside = outside.split('{').map(|part| part.split_once('}').map_or(part, |(_, rest)| rest));
    let outside = outside.collect::<Vec<_>>().join(" ");
    let letters = outside.chars().map(|c| if c.is_alphanumeric() || c == '\'' || c == '-' { c } else { ' ' });
    let words: Vec<String> = letters.collect::<String>().split_whitespace().map(str::to_lowercase).collect();
    format!(" {} ", words.join(" "))
}

fn found(text: &str) -> Vec<&'static str> {
    let words = words(text);
    RULED_OUT.iter().copied().filter(|phrase| words.contains(&format!(" {phrase} "))).collect()
}

/// A negative percentage with the hyphen of a keyboard: people read "−7 %", with the sign that
/// tables have.
fn keyboard_minus(text: &str) -> Option<&str> {
    let is_negative = |at: usize| {
        let is_sign = text[..at].chars().next_back().is_none_or(|before| " (|\n".contains(before));
        let rest = text[at + 1..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        is_sign && rest.len() < text.len() - at - 1 && rest.starts_with(" %")
    };
    text.match_indices('-').find(|(at, _)| is_negative(*at)).map(|(at, _)| &text[at..])
}

/// Paragraph by paragraph, so that a phrase may go over the end of a line.
fn check(place: &str, text: &str, wrong: &mut Vec<String>) {
    if let Some(minus) = keyboard_minus(text) {
        wrong.push(format!("{place}: a minus is \"−\": {}", minus.chars().take(20).collect::<String>()));
    }
    for paragraph in text.split("\n\n") {
        for phrase in found(paragraph) {
            let line = paragraph.lines().find(|line| !found(line).is_empty()).unwrap_or(paragraph);
            wrong.push(format!("{place}: \"{phrase}\" in: {}", line.trim()));
        }
    }
}

#[test]
fn sources_documents_and_examples_avoid_what_is_ruled_out() {
    let mut wrong = Vec::new();
    let mut strings = 0;
    for path in files("crates", "rs") {
        for text in sentences(&read(&path)) {
            strings += 1;
            check(&path.display().to_string(), &text, &mut wrong);
        }
    }
    assert!(strings > 1000, "only {strings} strings found: is this still the source?");
    let documents = [("docs", "md"), ("examples", "toml"), ("examples", "fio"), ("crates", "txt"), ("crates", "toml")];
    let documents = documents.map(|(folder, kind)| files(folder, kind));
    let others = ["README.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"].map(PathBuf::from);
    for path in documents.concat().into_iter().chain(others) {
        check(&path.display().to_string(), &read(&path), &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn comments_avoid_what_is_ruled_out() {
    let mut wrong = Vec::new();
    let mut blocks = 0;
    for path in all_files("crates", "rs") {
        for text in comments(&read(&path)) {
            blocks += 1;
            check(&path.display().to_string(), &text, &mut wrong);
        }
    }
    assert!(blocks > 5000, "only {blocks} comments found: is this still the source?");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn help_manual_pages_and_lists_avoid_what_is_ruled_out() {
    let lab = Lab::new();
    let verbs = [
        "run", "plan", "report", "list", "doctor", "clean", "scan", "guest", "compare", "choices", "import", "push",
        "ask", "query", "site", "record", "trace", "disk", "share", "why",
    ];
    let mut all: Vec<Vec<&str>> = vec![vec!["help"], vec!["help", "--man"], vec!["list"]];
    all.extend(verbs.iter().flat_map(|verb| [vec!["help", verb], vec!["help", verb, "--man"]]));
    all.extend(["cold", "exit-codes", "journals", "plans", "safety", "verdicts"].map(|topic| vec!["help", topic]));
    let mut wrong = Vec::new();
    for words in all {
        let out = lab.run(&words).code(0).out;
        assert!(!out.trim().is_empty(), "{words:?} prints nothing");
        check(&format!("pickfs {}", words.join(" ")), &out, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn phrases_are_found_across_lines_and_outside_of_code() {
    assert_eq!(found("as Many as\n  so\nmany, it"), ["so many"]);
    assert_eq!(found("run as `nobody`, which foretold"), Vec::<&str>::new());
    assert_eq!(found("Nobody was told."), ["nobody", "told"]);
    assert_eq!(found("It lies beside\nthose that stay."), ["beside", "those that"]);
    assert_eq!(keyboard_minus("it is 2-3 %, −4 % or -- "), None);
    assert_eq!(keyboard_minus("predicted -3.9 %"), Some("-3.9 %"));
}

#[test]
fn comments_are_read_in_blocks() {
    let planted = [
        ("//! Nobody is\n//!\n//! here.\n\nuse std::fs;\n", "nobody"),
        ("/// Up to so\n/// many bytes.\nfn read() {}\n", "so many"),
        ("fn read() {\n    // It is told once.\n}\n", "told"),
    ];
    for (source, phrase) in planted {
        let all: Vec<&str> = comments(source).iter().flat_map(|text| found(text)).collect();
        assert_eq!(all, [phrase], "{source}");
    }
    let clean = "/// Up to so\nfn many() {}\n\n/// As `nobody`.\nconst TOLD: &str = \"told\";\n";
    assert_eq!(comments(clean), ["Up to so", "As `nobody`."]);
}

/// docs/what-ran.md has a row for each file system, layer and workload, and none twice.
#[test]
fn every_plug_in_has_a_row_of_its_last_run() {
    let page = read(Path::new("docs/what-ran.md"));
    let rows = |heading: &str| {
        let part = page.split("\n## ").find(|part| part.starts_with(heading)).expect("its part of the page");
        let names = part.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|(name, _)| name);
        names.map(String::from).collect::<Vec<_>>()
    };
    let filesystems = pickfs_target::stack::fs::ALL.iter().map(|fs| fs.name).collect::<Vec<_>>();
    let layers = pickfs_target::stack::layer::ALL.iter().map(|layer| layer.name).collect::<Vec<_>>();
    let workloads = pickfs_target::workload::for_users().map(|workload| workload.name()).collect::<Vec<_>>();
    for (heading, names) in [("File systems", filesystems), ("Layers", layers), ("Workloads", workloads)] {
        assert_eq!(rows(heading), names, "{heading}");
    }
}

/// Every string of more than one word outside of tests and of comments, for review:
/// `cargo test --test end-to-end words:: -- --ignored --nocapture`.
#[test]
#[ignore = "prints the catalogue of messages for review"]
fn print_every_message() {
    for path in files("crates", "rs") {
        for text in sentences(&read(&path)) {
            println!("{}: {}", path.display(), words(&text).trim());
        }
    }
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Files of a kind below a folder, without those of tests.
fn files(folder: &str, kind: &str) -> Vec<PathBuf> {
    let is_test = |path: &Path| path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("tests"));
    all_files(folder, kind).into_iter().filter(|path| !is_test(path)).collect()
}

fn all_files(folder: &str, kind: &str) -> Vec<PathBuf> {
    let all = walkdir::WalkDir::new(root().join(folder)).sort_by_file_name().into_iter();
    let paths = all.map(|entry| entry.unwrap().path().strip_prefix(root()).unwrap().to_path_buf());
    paths.filter(|path| path.extension().is_some_and(|found| found == kind)).collect()
}

/// Doc comments and others that have their own lines; each block of lines is one text.
fn comments(source: &str) -> Vec<String> {
    let content = |line: &str| {
        let text = line.trim_start().strip_prefix("//")?;
        Some(text.trim_start_matches(['/', '!']).trim().to_string())
    };
    let lines: Vec<Option<String>> = source.lines().map(content).collect();
    let blocks = lines.split(Option::is_none).filter(|block| !block.is_empty());
    blocks.map(|block| block.iter().flatten().cloned().collect::<Vec<_>>().join("\n")).collect()
}

/// String literals with blanks in them; those of items under `#[cfg(test)]` and of attributes are
/// left out.
fn sentences(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    collect(source.parse().unwrap(), &mut found);
    found
}

fn collect(tokens: TokenStream, found: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let (mut at, mut test) = (0, false);
    while let Some(token) = tokens.get(at) {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                test |= tokens.get(at + 1).is_some_and(|next| next.to_string().replace(' ', "") == "[cfg(test)]");
                // Past the attribute, as comments are attributes too; `#!` has one token more.
                at += if tokens.get(at + 1).is_some_and(|next| next.to_string() == "!") { 2 } else { 1 };
            }
            TokenTree::Punct(mark) if mark.as_char() == ';' => test = false,
            TokenTree::Literal(literal) if !test => {
                let text = literal.to_string().replace("\\n", " ").replace('\\', " ");
                if text.contains(' ') {
                    found.push(text);
                }
            }
            TokenTree::Group(group) => {
                if !test {
                    collect(group.stream(), found);
                }
                test &= group.delimiter() != proc_macro2::Delimiter::Brace;
            }
            _ => {}
        }
        at += 1;
    }
}
