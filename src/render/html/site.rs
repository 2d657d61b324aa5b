//! A store as static pages: a table of disks and works, a page for each of both, and one for each target. They work from a
//! folder without a server, hold no script, and lead from each figure to its report, its journal and the command that
//! measures it again.

use super::head;
use super::markup::text;
use crate::wording::ranking::{self, Choice, LEGEND};
use maud::{DOCTYPE, Markup, html};
use std::collections::BTreeMap;

const STYLE: &str = include_str!("site.css");

/// One work of one run.
#[derive(Clone, Debug)]
pub struct SiteRun {
    pub hash: String,
    /// RFC 3339.
    pub started: String,
    pub machine: String,
    pub kernel: String,
    pub choice: Choice,
}

/// Paths below the site's folder, and what is on them; the newest run first in `runs`. Reports and journals are the caller's:
/// `run/HASH.html` and `journals/HASH.jsonl`.
pub fn site(title: &str, runs: &[SiteRun]) -> Vec<(String, String)> {
    let mut by_place: BTreeMap<(&str, &str), Vec<&SiteRun>> = BTreeMap::new();
    let mut by_target: BTreeMap<&str, Vec<(&SiteRun, usize)>> = BTreeMap::new();
    for run in runs {
        by_place.entry((&run.choice.disk, &run.choice.work)).or_default().push(run);
        for (at, place) in run.choice.places.iter().enumerate() {
            place.names.iter().for_each(|name| by_target.entry(name).or_default().push((run, at)));
        }
    }
    let mut pages = vec![("index.html".to_string(), front(title, &by_place, &by_target))];
    pages.extend(by_place.iter().map(|((disk, work), runs)| (place_path(disk, work), place(disk, work, runs))));
    pages.extend(by_target.iter().map(|(name, places)| (target_path(name), target(name, places))));
    pages
}

/// Names of a journal are no names of files.
fn place_path(disk: &str, work: &str) -> String {
    format!("on/{:016x}.html", xxhash_rust::xxh3::xxh3_64(format!("{disk}\n{work}").as_bytes()))
}

fn target_path(name: &str) -> String {
    format!("target/{:016x}.html", xxhash_rust::xxh3::xxh3_64(name.as_bytes()))
}

type ByPlace<'a> = BTreeMap<(&'a str, &'a str), Vec<&'a SiteRun>>;
type ByTarget<'a> = BTreeMap<&'a str, Vec<(&'a SiteRun, usize)>>;

fn front(title: &str, by_place: &ByPlace, by_target: &ByTarget) -> String {
    let disks: Vec<&str> = {
        let mut disks: Vec<&str> = by_place.keys().map(|(disk, _)| *disk).collect();
        disks.dedup();
        disks
    };
    let body = html! {
        h1 { (text(title)) }
        @if by_place.is_empty() { p { "No run in this store has a verdict yet." } }
        @for disk in disks {
            section {
                h2 { (text(disk)) }
                table {
                    thead { tr { @for head in ["work", "best", "2nd", "3rd", "worst", "runs"] { th scope="col" { (head) } } } }
                    tbody {
                        @for ((_, work), runs) in by_place.range((disk, "")..).take_while(|((other, _), _)| *other == disk) {
                            tr {
                                th scope="row" { a href=(place_path(disk, work)) { (text(work)) } }
                                @for cell in &ranking::cells(&newest(runs).choice)[2..] { td { (text(cell)) } }
                                td { (agreement(runs)) }
                            }
                        }
                    }
                }
            }
        }
        p.legend { (text(LEGEND)) }
        @if !by_target.is_empty() {
            h2 { "By target" }
            ul.targets { @for name in by_target.keys() { li { a href=(target_path(name)) { (text(name)) } } } }
        }
    };
    page(title, "", body)
}

/// The newest that has a verdict, if any has one; of at least one run.
fn newest<'a>(runs: &[&'a SiteRun]) -> &'a SiteRun {
    runs.iter().find(|run| !run.choice.places.is_empty()).unwrap_or(&runs[0])
}

/// "3 of 4 alike": of those with a verdict, how many name the best that the newest names.
fn agreement(runs: &[&SiteRun]) -> String {
    let best = |run: &SiteRun| run.choice.places.first().and_then(|place| place.names.first().cloned());
    let all: Vec<String> = runs.iter().filter_map(|run| best(run)).collect();
    match all.as_slice() {
        [] | [_] => runs.len().to_string(),
        [newest, ..] => format!("{} of {} alike", all.iter().filter(|name| *name == newest).count(), all.len()),
    }
}

fn place(disk: &str, work: &str, runs: &[&SiteRun]) -> String {
    let body = html! {
        h1 { (text(work)) " on " (text(disk)) }
        @for run in runs {
            section {
                h2 { (text(&minute(run))) }
                p.answer { (text(&run.choice.verdict)) }
                @if !run.choice.places.is_empty() {
                    ol { @for place in &run.choice.places { li {
                        @for (at, name) in place.names.iter().enumerate() {
                            @if at > 0 { (if place.tie { " = " } else { " or " }) }
                            a href={ "../" (target_path(name)) } { (text(name)) }
                        }
                        " " (text(&place.against))
                    } } }
                }
                (source(run))
            }
        }
        p.legend { (text(LEGEND)) }
    };
    page(&format!("{work} on {disk}"), "../", body)
}

fn target(name: &str, places: &[(&SiteRun, usize)]) -> String {
    let body = html! {
        h1 { (text(name)) }
        table {
            thead { tr { @for head in ["disk", "work", "place", "time", "measured"] { th scope="col" { (head) } } } }
            tbody {
                @for (run, at) in places {
                    @let place = &run.choice.places[*at];
                    tr {
                        td { (text(&run.choice.disk)) }
                        th scope="row" {
                            a href={ "../" (place_path(&run.choice.disk, &run.choice.work)) } { (text(&run.choice.work)) }
                        }
                        td { (at + 1) " of " (run.choice.places.len()) @if place.names.len() > 1 { ", shared" } }
                        td { (text(if *at == 0 { "best" } else { &place.against })) }
                        td { a href={ "../run/" (run.hash) ".html" } { (text(&minute(run))) } }
                    }
                }
            }
        }
        p.legend { (text(LEGEND)) }
    };
    page(name, "../", body)
}

/// Where its figures come from.
fn source(run: &SiteRun) -> Markup {
    let journal = format!("journals/{}.jsonl", run.hash);
    html! {
        dl {
            dt { "Machine" } dd { (text(&machine(run))) }
            dt { "Evidence" } dd {
                a href={ "../run/" (run.hash) ".html" } { "report" } ", "
                a href={ "../" (journal) } { "journal" }
            }
            dt { "Measure again" } dd { code { "pickfs run --again " (journal) } }
        }
    }
}

/// One without a name is called by its hardware, kernel included.
fn machine(run: &SiteRun) -> String {
    let is_named = !run.kernel.is_empty() && !run.machine.contains(&run.kernel);
    if is_named { format!("{}, kernel {}", run.machine, run.kernel) } else { run.machine.clone() }
}

fn minute(run: &SiteRun) -> String {
    run.started.get(..16).unwrap_or_default().replace('T', " ")
}

fn page(title: &str, up: &str, body: Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(title, STYLE, ""))
            body {
                @if !up.is_empty() { nav aria-label="Site" { a href={ (up) "index.html" } { "All disks and works" } } }
                main { (body) }
            }
        }
    };
    page.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wording::ranking::Place;

    fn run(disk: &str, work: &str, best: &str, hash: &str) -> SiteRun {
        let place = |name: &str, against: &str| Place { names: vec![name.into()], tie: false, against: against.into() };
        let places = vec![place(best, ""), place("jfs", "×1.50 (1.40–1.60)")];
        let choice =
            Choice { disk: disk.into(), work: work.into(), places, verdict: "Pick it.".into(), ..Choice::default() };
        let (started, machine, kernel) = ("2026-01-02T03:04:05Z".into(), "rack-1".into(), "6.1".into());
        SiteRun { hash: hash.into(), started, machine, kernel, choice }
    }

    /// Every link within the site leads somewhere, and nothing of a journal is markup.
    #[test]
    fn links_lead_somewhere_and_names_are_text() {
        let evil = "<script>alert(1)</script>";
        let runs =
            [run("nvme", "tree", "xfs", "aa"), run("nvme", "tree", "ext4", "bb"), run("hdd", evil, "../../x", "cc")];
        let pages: BTreeMap<String, String> = site("Our disks", &runs).into_iter().collect();
        assert_eq!(pages.len(), 1 + 2 + 4, "{:?}", pages.keys());
        for (path, text) in &pages {
            assert!(!text.contains("<script") && path.chars().all(|c| c.is_ascii_alphanumeric() || "/.".contains(c)));
            let up = path.contains('/');
            for link in text.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
                let inside = if up { link.strip_prefix("../").unwrap() } else { link };
                let others = inside.starts_with("run/") || inside.starts_with("journals/");
                assert!(others || pages.contains_key(inside), "{path}: {link}");
            }
        }
        assert!(pages["index.html"].contains("1 of 2 alike"));
        assert!(pages.values().any(|page| page.contains("pickfs run --again journals/aa.jsonl")));
        assert!(site("Empty", &[])[0].1.contains("No run in this store"));
    }
}
