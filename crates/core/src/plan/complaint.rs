//! What is wrong with a plan: where, what, and what to do next; gathered, so that one reading shows
//! all of it. A complaint has its key and its problem as data. It is worded here, once for a file
//! and once for flags.

use super::{Objection, PlanFlags};
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use pickfs_system::visible::{steers, visible};
use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use toml::Value;

/// Where something is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Bytes of the plan's text; `None` for what is not in it.
    pub span: Option<Range<usize>>,
    /// The tables that lead to the key, and the key; empty for the plan as a whole.
    pub path: Vec<String>,
}

impl Place {
    pub(super) fn below(&self, key: &str, span: Option<Range<usize>>) -> Place {
        Place { span, path: self.path.iter().cloned().chain([key.to_string()]).collect() }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Complaint {
    pub place: Place,
    pub problem: Problem,
    /// What to do next.
    pub remedy: Remedy,
    /// It would be unsafe, not only wrong.
    pub refusal: bool,
    /// What it is about, where that is not the plan.
    pub source: Option<Arc<Source>>,
}

/// A file that a plan names and that is checked with it.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    pub text: String,
    /// In messages.
    pub file: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The value is none that the key takes, and why: "`3` has no unit".
    Mistyped { wanted: ValueForm, why: String },
    /// The plug-in has no setting of this name.
    NoSetting { plugin: &'static str, setting: String },
    /// Said of the key, whose name comes before it.
    Of(String),
    /// A whole sentence.
    Says(String),
}

/// What a key takes, with an example in TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueForm {
    pub what: &'static str,
    /// Without its quotes it would be of another type.
    pub in_quotes: bool,
    pub example: &'static str,
}

/// What to do about a problem.
#[derive(Clone, Debug, PartialEq)]
pub enum Remedy {
    /// Alike in a file and as flags.
    Do(String),
    /// Shows how a key is written: "name one: job = "my.fio"".
    Write { before: String, path: Vec<String>, value: Value },
}

impl Remedy {
    /// With the path of the key, and a value in TOML.
    pub fn write(before: &str, path: &[impl AsRef<str>], value: &str) -> Remedy {
        let value = value.parse().unwrap_or_else(|_| Value::from(value));
        Remedy::Write { before: before.into(), path: path.iter().map(|key| key.as_ref().into()).collect(), value }
    }

    fn worded(&self, voice: Voice) -> String {
        match self {
            Remedy::Do(text) => text.clone(),
            Remedy::Write { before, path, value } => format!("{before}: {}", voice.example(path, value)),
        }
    }
}

impl<T: Into<String>> From<T> for Remedy {
    fn from(text: T) -> Remedy {
        Remedy::Do(text.into())
    }
}

/// As in a file.
impl fmt::Display for Remedy {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(&self.worded(Voice::File))
    }
}

impl<T: Into<String>> From<T> for Problem {
    fn from(text: T) -> Problem {
        Problem::Says(text.into())
    }
}

/// How a complaint calls keys.
#[derive(Clone, Copy, Debug)]
pub enum Voice<'f> {
    /// As they stand in a plan file.
    File,
    /// As the flags that gave them.
    Flags(&'f PlanFlags),
}

impl Voice<'_> {
    /// The flag that gave the key or what it is in.
    fn giver(self, path: &[String]) -> Option<String> {
        match self {
            Voice::File => None,
            Voice::Flags(flags) => flags.giver(path),
        }
    }

    /// A key with its value.
    fn example(self, path: &[String], value: &Value) -> String {
        let key = path.last().map(String::as_str).unwrap_or_default();
        let is_bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        let key = if is_bare { key.to_string() } else { Value::from(key).to_string() };
        let Voice::Flags(flags) = self else { return format!("{key} = {value}") };
        match flags.flag_of(path).filter(|_| !value.is_array() && !value.is_table()) {
            Some(flag) => format!("{flag} {}", value.as_str().map_or_else(|| value.to_string(), String::from)),
            None => format!("{key} = {value} in a plan (`pickfs init` writes one)"),
        }
    }
}

impl Complaint {
    /// No flag gives the keys of another file.
    fn voice<'f>(&self, voice: Voice<'f>) -> Voice<'f> {
        if self.source.is_some() { Voice::File } else { voice }
    }

    /// What is wrong.
    pub fn message(&self, voice: Voice) -> String {
        let voice = self.voice(voice);
        let (path, flag) = (&self.place.path, voice.giver(&self.place.path));
        let text = match (&self.problem, &flag) {
            (Problem::Says(text), None) => return text.clone(),
            (Problem::Says(text), Some(flag)) => return format!("{flag}: {text}"),
            (Problem::NoSetting { plugin, setting }, None) => {
                return format!("`{plugin}` has no setting {}", quoted(setting));
            }
            (Problem::NoSetting { plugin, .. }, Some(flag)) => {
                return format!("{flag}: the workload `{plugin}` has no such setting");
            }
            (Problem::Of(text), _) => text.clone(),
            (Problem::Mistyped { wanted, why }, None) if wanted.in_quotes => {
                format!("must be {} in quotes, but {why}", wanted.what)
            }
            (Problem::Mistyped { wanted, why }, _) => format!("must be {}, but {why}", wanted.what),
        };
        let name = flag.unwrap_or_else(|| quoted(path.last().map(String::as_str).unwrap_or_default()));
        format!("{name} {text}")
    }

    /// What to do about it.
    pub fn help(&self, voice: Voice) -> String {
        let voice = self.voice(voice);
        match (&self.problem, voice.giver(&self.place.path)) {
            (Problem::NoSetting { .. }, Some(flag)) => {
                format!("leave {flag} out; `pickfs list workloads` shows which workload has which settings")
            }
            _ => self.remedy.worded(voice),
        }
    }
}

/// All that is wrong so far; shared by all that read, so that reading goes on behind a mistake.
#[derive(Default)]
pub(super) struct Complaints(RefCell<Vec<Complaint>>);

impl Complaints {
    pub(crate) fn add(&self, place: &Place, problem: impl Into<Problem>, remedy: impl Into<Remedy>) {
        let (problem, remedy) = (problem.into(), remedy.into());
        self.0.borrow_mut().push(Complaint { place: place.clone(), problem, remedy, refusal: false, source: None });
    }

    /// What is wrong with a file that the plan names.
    pub(crate) fn of_file(&self, complaints: Vec<Complaint>) {
        self.0.borrow_mut().extend(complaints);
    }

    /// What the machine has against a setting, and where the setting is.
    pub(crate) fn object(&self, place: &Place, objection: Objection) {
        let Objection { message, remedy, refusal, .. } = objection;
        let problem = Problem::Says(message);
        self.0.borrow_mut().push(Complaint { place: place.clone(), problem, remedy, refusal, source: None });
    }

    /// Adds a complaint where a value was wanted: there is none then.
    pub(crate) fn refuse<T>(&self, place: &Place, problem: impl Into<Problem>, remedy: impl Into<Remedy>) -> Option<T> {
        self.add(place, problem, remedy);
        None
    }

    /// In the order of the text, each once: a product of targets can meet the same mistake many
    /// times.
    pub(crate) fn finish(self) -> Vec<Complaint> {
        let mut all = self.0.into_inner();
        let span = |complaint: &Complaint| complaint.place.span.clone();
        let start = |complaint: &Complaint| span(complaint).map_or(usize::MAX, |span| span.start);
        all.sort_by_key(|complaint| (complaint.source.is_some(), start(complaint)));
        let same = |next: &Complaint, kept: &Complaint| span(next) == span(kept) && next.source == kept.source;
        all.dedup_by(|next, kept| span(next).is_some() && same(next, kept) && next.remedy == kept.remedy);
        all
    }

    pub(crate) fn len(&self) -> usize {
        self.0.borrow().len()
    }
}

/// All complaints about the text of a file for people, in the compiler's look: place, line, caret,
/// help.
pub fn render(text: &str, file: &str, complaints: &[Complaint], colour: bool) -> String {
    rendered(&sanitize(text), &visible(file), complaints, Voice::File, colour)
}

/// The same about flags.
pub fn render_flags(flags: &PlanFlags, complaints: &[Complaint], colour: bool) -> String {
    rendered("", "command line", complaints, Voice::Flags(flags), colour)
}

fn rendered(text: &str, file: &str, complaints: &[Complaint], voice: Voice, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let shown = complaints.iter().map(|complaint| {
        let (file, text) = match &complaint.source {
            Some(source) => (visible(&source.file), sanitize(&source.text)),
            None => (visible(file), sanitize(text)),
        };
        renderer.render(&[group(&text, &file, complaint, voice)]) + "\n"
    });
    shown.collect::<Vec<_>>().join("\n")
}

/// A plan's text of the same length, as places in it are bytes. The renderer itself shows the
/// control characters of ASCII.
fn sanitize(text: &str) -> String {
    let blank = |c: char| match c.len_utf8() {
        _ if !steers(c) || c.is_ascii() => c.to_string(),
        2 => "\u{b7}".into(),
        3 => "\u{fffd}".into(),
        _ => "\u{b7}\u{b7}".into(),
    };
    text.chars().map(blank).collect()
}

fn group<'a>(text: &'a str, file: &'a str, complaint: &Complaint, voice: Voice) -> Group<'a> {
    let title = Level::ERROR.primary_title(complaint.message(voice));
    let help = Level::HELP.message(complaint.help(voice));
    // The text that flags make is no user's.
    match &complaint.place.span {
        Some(span) if matches!(complaint.voice(voice), Voice::File) => {
            let caret = AnnotationKind::Primary.span(first_line(text, span));
            title.element(Snippet::source(text).path(file).annotation(caret)).element(help)
        }
        _ if file.is_empty() => title.element(help),
        _ => title.element(Origin::path(file)).element(help),
    }
}

/// The span's part on its first line, between whole characters: a caret under a page of text is no
/// help.
fn first_line(text: &str, span: &Range<usize>) -> Range<usize> {
    let start = boundary(text, span.start);
    let end = boundary(text, span.end.max(start));
    let line = text[start..end].find(['\n', '\r']).unwrap_or(end - start);
    start..start + line
}

fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// What a user wrote, between backticks, fit for a terminal: control characters escaped, not too
/// long.
pub(super) fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut shown: String = text.chars().take(LONGEST).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("`{}`", visible(&shown))
}

/// "`a`, `b` and `c`".
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names: Vec<String> = names.into_iter().map(quoted).collect();
    let last = names.pop().unwrap_or_default();
    if names.is_empty() { last } else { format!("{} and {last}", names.join(", ")) }
}

/// The candidate that `word` was probably meant to be.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LONGEST: usize = 100;
    if word.len() > LONGEST {
        return None;
    }
    let allowed = (word.chars().count() / 3).max(1);
    let near = candidates.into_iter().filter(|candidate| candidate.len() <= LONGEST);
    // The first letter is seldom a slip. Of ext2, ext3 and ext4 the last one is nearest to ext5.
    let first = |text: &str| text.chars().next().map(|letter| letter.to_ascii_lowercase());
    let apart = |name: &str| word.chars().zip(name.chars()).map(|(a, b)| (a as u32).abs_diff(b as u32)).sum::<u32>();
    // A letter left out, added, replaced, or two swapped, is one slip.
    let distance = |name: &str| strsim::osa_distance(&word.to_lowercase(), &name.to_lowercase());
    let rank = |name: &'a str| ((distance(name), first(name) != first(word), apart(name)), name);
    let ranked = near.map(rank).filter(|((distance, ..), _)| *distance <= allowed);
    ranked.min_by_key(|(rank, _)| *rank).map(|(_, name)| name)
}

/// The known name that a letter more, less, or other makes of the word, where the word itself is
/// not known.
pub(super) fn one_slip_from<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    if known.contains(&word) {
        return None;
    }
    nearest(word, known.iter().copied()).filter(|near| strsim::osa_distance(word, near) == 1)
}

/// Of names with what they are about, the nearest, or else the first that is about the word.
pub fn meant<'n>(word: &str, known: impl Iterator<Item = (&'n str, &'n str)> + Clone) -> Option<&'n str> {
    const SHORTEST: usize = 4;
    let is_about = |about: &str| word.len() >= SHORTEST && about.to_lowercase().contains(&word.to_lowercase());
    let by_topic = || known.clone().find(|(_, about)| is_about(about)).map(|(name, _)| name);
    nearest(word, known.clone().map(|(name, _)| name)).or_else(by_topic)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(span: Option<Range<usize>>, message: &str, remedy: &str) -> Complaint {
        let place = Place { span, path: Vec::new() };
        Complaint { place, problem: message.into(), remedy: remedy.into(), refusal: false, source: None }
    }

    #[test]
    fn the_nearest_name_is_near() {
        let names = ["ext4", "xfs", "btrfs", "bcachefs"];
        let rows = [("ext5", Some("ext4")), ("XFS", Some("xfs")), ("btrs", Some("btrfs")), ("zfs", Some("xfs"))];
        let rows = rows.into_iter().chain([("xsf", Some("xfs")), ("btfs", Some("btrfs")), ("brtfs", Some("btrfs"))]);
        for (word, wanted) in rows.chain([("", None), ("reiserfs", None), ("bcachfs", Some("bcachefs"))]) {
            assert_eq!(nearest(word, names), wanted, "{word}");
        }
        assert_eq!(nearest("btfs", ["ntfs", "btrfs"]), Some("btrfs"), "the first letter is right");
        assert_eq!(nearest("ext5", ["ext2", "ext3", "ext4"]), Some("ext4"), "the nearest number");
        assert_eq!(nearest(&"x".repeat(5000), names), None);
    }

    #[test]
    fn a_name_may_be_looked_for_by_what_it_is_about() {
        let known = [("pgbench", "PostgreSQL under pgbench"), ("tree", "daily work on a tree of files")];
        for (word, wanted) in [
            ("postgres", Some("pgbench")),
            ("tre", Some("tree")),
            ("daily", Some("tree")),
            ("on", None),
            ("mail", None),
        ] {
            assert_eq!(meant(word, known.into_iter()), wanted, "{word}");
        }
    }

    #[test]
    fn it_looks_like_the_compilers() {
        let complaint = complaint(Some(14..20), "no `ext5`", "try `ext4`");
        let shown = render("seed = 1\nfs = \"ext5\"\n", "a.toml", &[complaint.clone(), complaint], false);
        let one =
            "error: no `ext5`\n --> a.toml:2:6\n  |\n2 | fs = \"ext5\"\n  |      ^^^^^^\n  |\n  = help: try `ext4`\n";
        assert_eq!(shown, format!("{one}\n{one}"));
    }

    #[test]
    fn a_caret_stays_on_its_first_line() {
        let complaint = complaint(Some(0..9), "m", "r");
        let shown = render("abc\r\ndef\nghi", "a.toml", &[complaint], false);
        assert!(shown.contains("1 | abc\n  | ^^^\n") && !shown.contains("def"), "{shown}");
    }

    #[test]
    fn any_span_and_any_text_can_be_shown() {
        for text in ["", "é", "a\nb", "\u{1b}[31m\r\n\0x", "日本\n\n"] {
            for (start, end) in (0..9).flat_map(|a| (0..9).map(move |b| (a, b))).chain([(0, usize::MAX)]) {
                let complaint = complaint(Some(start..end), "m", "r");
                let shown = render(text, "f\u{1b}", &[complaint], false);
                assert!(!shown.contains('\u{1b}') && shown.contains("help: r"), "{shown:?}");
            }
        }
    }

    #[test]
    fn without_a_place_there_is_the_file_alone() {
        let complaint = complaint(None, "m", "r");
        assert_eq!(
            render("", "a.toml", std::slice::from_ref(&complaint), false),
            "error: m\n --> a.toml\n  = help: r\n"
        );
        assert_eq!(render("", "", std::slice::from_ref(&complaint), false), "error: m\n  |\n  = help: r\n");
        assert!(render("", "", &[complaint], true).contains("\u{1b}["));
    }

    #[test]
    fn what_a_user_wrote_cannot_write_to_the_terminal() {
        assert_eq!(quoted("a\u{1b}b\n"), "`a\\u{1b}b\\n`");
        assert_eq!(quoted(&"x".repeat(100)).chars().count(), 63);
        assert_eq!(listed(["a", "b", "c"]), "`a`, `b` and `c`");
    }
}
