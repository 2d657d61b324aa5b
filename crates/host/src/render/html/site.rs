//! A store as static pages: a table of disks and works, a page for each of both with its ranking
//! and its times over kernels or days, and one for each target. They work from a folder without a
//! server, hold no script, and lead from each figure to its report, its journal and the command
//! that measures it again.

use super::markup::text;
use super::{head, site_trend};
use crate::wording::ranking::{self, LEGEND};
use crate::wording::trends::{METHOD, StoredRun, Trend, trends};
use maud::{DOCTYPE, Markup, html};
use pickfs_system::units::show_duration;
use std::collections::BTreeMap;

const STYLE: &str = include_str!("site.css");

/// Paths below the site's folder, and what is on them; the newest run first in `runs`. Reports and
/// journals are the caller's: `run/HASH.html` and `journals/HASH.jsonl`.
pub fn site(title: &str, runs: &[StoredRun]) -> Vec<(String, String)> {
    let mut by_place: ByPlace = BTreeMap::new();
    let mut by_target: ByTarget = BTreeMap::new();
    for run in runs {
        by_place.entry((&run.choice.disk, &run.choice.work)).or_default().push(run);
        for (at, place) in run.choice.places.iter().enumerate() {
            place.names.iter().for_each(|name| by_target.entry(name).or_default().push((run, at)));
        }
    }
    let all = trends(runs);
    let mut pages = vec![("index.html".to_string(), front(title, &by_place, &by_target, &all))];
    pages.extend(by_place.iter().map(|((disk, work), runs)| {
        let trends: Vec<&Trend> = all.iter().filter(|trend| (trend.disk, trend.work) == (*disk, *work)).collect();
        (place_path(disk, work), place(disk, work, runs, &trends))
    }));
    pages.extend(by_target.iter().map(|(name, places)| {
        let trends: Vec<&Trend> = all.iter().filter(|trend| trend.target == *name).collect();
        (target_path(name), target(name, places, &trends))
    }));
    pages
}

/// Names of a journal are no names of files.
fn place_path(disk: &str, work: &str) -> String {
    format!("on/{:016x}.html", xxhash_rust::xxh3::xxh3_64(format!("{disk}\n{work}").as_bytes()))
}

fn target_path(name: &str) -> String {
    format!("target/{:016x}.html", xxhash_rust::xxh3::xxh3_64(name.as_bytes()))
}

/// What is known of a run, on the page of its disk and work.
fn source_path(disk: &str, work: &str, hash: &str) -> String {
    format!("../{}#r-{hash}", place_path(disk, work))
}

type ByPlace<'a> = BTreeMap<(&'a str, &'a str), Vec<&'a StoredRun>>;
type ByTarget<'a> = BTreeMap<&'a str, Vec<(&'a StoredRun, usize)>>;

fn front(title: &str, by_place: &ByPlace, by_target: &ByTarget, trends: &[Trend]) -> String {
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
                (table(disk, &["work", "best", "2nd", "3rd", "worst", "runs"], html! {
                    @for ((_, work), runs) in by_place.range((disk, "")..).take_while(|((other, _), _)| *other == disk) {
                        tr {
                            th scope="row" { a href=(place_path(disk, work)) { (text(work)) } }
                            @for (head, cell) in ["best", "2nd", "3rd", "worst"].iter().zip(&ranking::cells(&newest(runs).choice)[2..]) {
                                td data-head=(head) { (text(cell)) }
                            }
                            td data-head="runs" { (agreement(runs)) }
                        }
                    }
                }))
            }
        }
        p.legend { (text(LEGEND)) }
        (changed(trends))
        @if !by_target.is_empty() {
            h2 { "By target" }
            ul.targets { @for name in by_target.keys() { li { a href=(target_path(name)) { (text(name)) } } } }
        }
    };
    page(title, "", body)
}

/// On the first page.
const MOST_CHANGES: usize = 12;

/// The largest changes of all series.
fn changed(trends: &[Trend]) -> Markup {
    let mut changes: Vec<_> =
        trends.iter().flat_map(|trend| trend.changes.iter().map(move |change| (trend, change))).collect();
    changes.sort_by(|(_, a), (_, b)| b.size.abs().total_cmp(&a.size.abs()));
    html! {
        @if !trends.is_empty() {
            h2 { "What changed" }
            @if changes.is_empty() { p { "No series of times shows a change." } }
            ul.changes {
                @for (trend, change) in changes.iter().take(MOST_CHANGES) {
                    li.slower[change.is_slower] {
                        (if change.is_slower { "▲ " } else { "▼ " })
                        a href={ (place_path(trend.disk, trend.work)) "#over" } { (text(trend.target)) ", " (text(trend.work)) }
                        " on " (text(trend.disk)) ": " (text(&change.words))
                    }
                }
            }
            @if changes.len() > MOST_CHANGES { p { "and " (changes.len() - MOST_CHANGES) " smaller ones, on the pages of works" } }
        }
    }
}

/// The newest that has a verdict, if any has one; of at least one run.
fn newest<'a>(runs: &[&'a StoredRun]) -> &'a StoredRun {
    runs.iter().find(|run| !run.choice.places.is_empty()).unwrap_or(&runs[0])
}

/// "3 of 4 alike": of those with a verdict, how many name the best that the newest names.
fn agreement(runs: &[&StoredRun]) -> String {
    let best = |run: &StoredRun| run.choice.places.first().and_then(|place| place.names.first().cloned());
    let all: Vec<String> = runs.iter().filter_map(|run| best(run)).collect();
    match all.as_slice() {
        [] | [_] => runs.len().to_string(),
        [newest, ..] => format!("{} of {} alike", all.iter().filter(|name| *name == newest).count(), all.len()),
    }
}

fn place(disk: &str, work: &str, runs: &[&StoredRun], trends: &[&Trend]) -> String {
    let to_source = |_: &Trend, hash: &str| format!("#r-{hash}");
    let body = html! {
        h1 { (text(work)) " on " (text(disk)) }
        @for (at, run) in runs.iter().enumerate() {
            @if at == 1 { (over_time(trends, &|trend| text(trend.target), &to_source)) h2 { "Other runs" } }
            section id={ "r-" (run.hash) } {
                h2 { (text(&minute(run))) }
                p.answer { (text(&run.choice.verdict)) }
                @if !run.choice.places.is_empty() { (places(run)) }
                (source(run))
            }
        }
        p.legend { (text(LEGEND)) }
    };
    page(&format!("{work} on {disk}"), "../", body)
}

/// Targets in their order, each with its time as a bar.
fn places(run: &StoredRun) -> Markup {
    let choice = &run.choice;
    let label = format!("Ranking of {}, {}", minute(run), run.hash.get(..8).unwrap_or_default());
    let level = |name: &str| choice.levels.iter().find(|level| level.target == name).map(|level| level.ns);
    let longest = choice.levels.iter().map(|level| level.ns).fold(0.0, f64::max);
    table(
        &label,
        &["place", "target", "time", "", "against the best"],
        html! {
            @for (number, place) in choice.places.iter().enumerate() {
                @for (at, name) in place.names.iter().enumerate() {
                    tr {
                        td data-head="place" { (number + 1) @if place.names.len() > 1 { (if place.tie { " =" } else { " ?" }) } }
                        th scope="row" { a href={ "../" (target_path(name)) } { (text(name)) } }
                        td data-head="time" { @if let Some(ns) = level(name) { (text(&show_duration(ns))) } }
                        td.bar { @if let Some(ns) = level(name) { (bar(ns / longest)) } }
                        td data-head="against the best" { @if at == 0 { (text(if number == 0 { "best" } else { &place.against })) } }
                    }
                }
            }
        },
    )
}

fn bar(share: f64) -> Markup {
    html! { svg width="140" height="12" aria-hidden="true" { rect width={ (format!("{:.1}", share * 140.0)) } height="12" rx="2" {} } }
}

fn target(name: &str, places: &[(&StoredRun, usize)], trends: &[&Trend]) -> String {
    let to_source = |trend: &Trend, hash: &str| source_path(trend.disk, trend.work, hash);
    let body = html! {
        h1 { (text(name)) }
        (table(name, &["disk", "work", "kernel", "place", "time", "measured"], html! {
            @for (run, at) in places {
                @let place = &run.choice.places[*at];
                tr {
                    td data-head="disk" { (text(&run.choice.disk)) }
                    th scope="row" {
                        a href={ "../" (place_path(&run.choice.disk, &run.choice.work)) } { (text(&run.choice.work)) }
                    }
                    td data-head="kernel" { (text(&run.kernel)) }
                    td data-head="place" { (at + 1) " of " (run.choice.places.len()) @if place.names.len() > 1 { ", shared" } }
                    td data-head="time" { (text(if *at == 0 { "best" } else { &place.against })) }
                    td data-head="measured" {
                        a href=(source_path(&run.choice.disk, &run.choice.work, &run.hash)) { (text(&minute(run))) }
                    }
                }
            }
        }))
        p.legend { (text(LEGEND)) }
        (over_time(trends, &|trend| html! { (text(trend.work)) " on " (text(trend.disk)) }, &to_source))
    };
    page(name, "../", body)
}

fn over_time(
    trends: &[&Trend],
    heading: &dyn Fn(&Trend) -> Markup,
    to_source: &dyn Fn(&Trend, &str) -> String,
) -> Markup {
    html! {
        @if !trends.is_empty() {
            h2 #over { "Over time" }
            @for trend in trends { (site_trend::trend(trend, heading(trend), to_source)) }
            p.legend { (text(METHOD)) }
        }
    }
}

/// Wide ones are scrolled, by keyboard too.
pub(super) fn table(label: &str, heads: &[&str], rows: Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(text(label)) {
            table.stacked {
                thead { tr { @for head in heads {
                    @if head.is_empty() { td {} } @else { th scope="col" { (head) } }
                } } }
                tbody { (rows) }
            }
        }
    }
}

/// Where its figures come from.
fn source(run: &StoredRun) -> Markup {
    let journal = format!("journals/{}.jsonl", run.hash);
    html! {
        dl {
            dt { "Machine" } dd { (text(&machine(run))) }
            dt { "Evidence" } dd {
                a href={ "../run/" (run.hash) ".html" } { "report" } ", "
                a href={ "../" (journal) } { "journal" }
            }
            dt { "Grade" } dd {
                a href={ "../run/" (run.hash) "-disclosure.html" } { (text(&run.grade)) }
            }
            dt { "Measure again" } dd {
                code { "pickfs run --trust --again " (journal) } ", once you have read the commands of its plan"
            }
        }
    }
}

/// One without a name is called by its hardware, kernel included.
fn machine(run: &StoredRun) -> String {
    let is_named = !run.kernel.is_empty() && !run.machine.contains(&run.kernel);
    if is_named { format!("{}, kernel {}", run.machine, run.kernel) } else { run.machine.clone() }
}

fn minute(run: &StoredRun) -> String {
    run.started.get(..16).unwrap_or_default().replace('T', " ")
}

pub(super) fn page(title: &str, up: &str, body: Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(title, "", STYLE, "img-src data:; "))
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
    use crate::wording::ranking::{Choice, Place};

    fn run(disk: &str, work: &str, best: &str, hash: &str) -> StoredRun {
        let place = |name: &str, against: &str| Place { names: vec![name.into()], tie: false, against: against.into() };
        let places = vec![place(best, ""), place("jfs", "×1.50 (1.40–1.60)")];
        let choice =
            Choice { disk: disk.into(), work: work.into(), places, verdict: "Pick it.".into(), ..Choice::default() };
        let (started, machine, kernel) = ("2026-01-02T03:04:05Z".into(), "rack-1".into(), "6.1".into());
        StoredRun { hash: hash.into(), started, machine, kernel, grade: "Open".into(), choice }
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
            let links = text.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
            for link in links.filter(|link| !link.starts_with('#') && !link.starts_with("data:image/svg+xml,")) {
                let inside = if up { link.strip_prefix("../").unwrap() } else { link };
                let inside = inside.split('#').next().unwrap();
                let others = inside.starts_with("run/") || inside.starts_with("journals/");
                assert!(others || pages.contains_key(inside), "{path}: {link}");
            }
        }
        assert!(pages["index.html"].contains("1 of 2 alike"));
        assert!(pages.values().any(|page| page.contains("pickfs run --trust --again journals/aa.jsonl")));
        assert!(site("Empty", &[])[0].1.contains("No run in this store"));
    }
}
