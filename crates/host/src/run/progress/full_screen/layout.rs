//! The lines of the screen: nothing is read here, so that a test sees what a user sees.

use super::super::cut;
use super::View;
use crate::analysis::MUCH_CPU;
use crate::wording::axis::Axis;
use crate::wording::standings::{Standings, StandingsRow};
use crate::wording::text::{left, right};
use pickfs_system::units::show_bytes;
use textwrap::core::display_width;

const KEYS: &str = "q end after this cell   p pause   o page   ? keys";
const ALL_KEYS: [&str; 5] = [
    "q       end after the cell that is under way, then the report",
    "p       wait before the next cell, until p is pressed again; a budget of time goes on",
    "o       write the page of what is known so far, before the next cell",
    "?       hide these lines",
    "Ctrl-C  stop after this step",
];
const NARROWEST_AXIS: usize = 16;
const WIDEST_AXIS: usize = 60;

/// At most `height` lines, none wider than `width`.
pub(super) fn layout(view: &View, width: usize, height: usize) -> Vec<String> {
    let mut lines = vec![bold(&fit(&head(view), width)), fit(&pace(view), width), rule("", width)];
    let foot = foot(view, width);
    let machine = machine(view);
    // A rule, the cell, its phases, a rule, the machine, a rule; at least three messages.
    let rows = height.saturating_sub(lines.len() + foot.len() + machine.len() + 3 + 3 + 3).max(3);
    lines.extend(table(view, width, rows));
    lines.push(rule("this cell", width));
    lines.push(fit(&cell(view), width));
    lines.push(fit(&phases(view), width));
    lines.push(rule("this machine", width));
    lines
        .extend(machine.iter().map(|(line, matters)| if *matters { red(&fit(line, width)) } else { fit(line, width) }));
    lines.push(rule("messages", width));
    let room = height.saturating_sub(lines.len() + foot.len());
    let messages = &view.messages[view.messages.len().saturating_sub(room)..];
    lines.extend(messages.iter().map(|line| fit(line, width)));
    lines.resize(height.saturating_sub(foot.len()).max(lines.len()), String::new());
    lines.truncate(height.saturating_sub(foot.len()));
    lines.extend(foot);
    lines
}

fn head(view: &View) -> String {
    let elapsed = view.elapsed.as_secs();
    format!("pickfs  {}:{:02}:{:02}  {}", elapsed / 3600, elapsed / 60 % 60, elapsed % 60, view.title)
}

/// Where the run is, and how long it may take.
fn pace(view: &View) -> String {
    let round = match view.round {
        0 => "before the first round".to_string(),
        round => format!("round {round} of at most {}", view.most_rounds),
    };
    let (ended, planned, left) = (view.clock.ended, view.clock.planned, view.clock.left());
    format!("{round}; {ended} of {planned} cells up to the next interim analysis, {left}")
}

fn table(view: &View, width: usize, most: usize) -> Vec<String> {
    let Some(standings) = &view.standings else {
        return vec![String::new(), "Figures come with the end of the first round.".into(), String::new()];
    };
    let Standings { heading, rows, note } = standings;
    let shown = &rows[..rows.len().min(most.saturating_sub(3))];
    let [title, columns @ ..] = heading;
    let columns = [&[String::new()], &columns[..]].concat();
    let widest = |column: usize| {
        let cells = shown.iter().map(|row| &row.cells[column]).chain([&columns[column]]);
        cells.map(|cell| display_width(cell)).max().unwrap_or(0)
    };
    let widths: [usize; 5] = std::array::from_fn(widest);
    let text = widths.iter().sum::<usize>() + "rounds".len() + 2 * 6;
    let axis = width.saturating_sub(text).min(WIDEST_AXIS);
    let axis = (axis >= NARROWEST_AXIS).then(|| Axis::new(shown.iter().map(|row| row.ratio), axis));
    let line = |cells: &[String], rounds: &str, drawn: &str| {
        let [time, difference, interval] = [1, 2, 3].map(|column| right(&cells[column], widths[column]));
        let name = left(&cells[0], widths[0]);
        format!("{name}  {rounds:>6}  {time}  {difference}  {interval}  {drawn}  {}", cells[4])
    };
    let scale = axis.as_ref().map(Axis::scale).unwrap_or_default();
    let row = |row: &StandingsRow| {
        let drawn = axis.as_ref().map(|axis| axis.drawn(row.ratio)).unwrap_or_default();
        let line = fit(&line(&row.cells, &row.rounds.to_string(), &drawn), width);
        if row.is_eliminated { faint(&line) } else { line }
    };
    let hidden = rows.len() - shown.len();
    let more = (hidden > 0).then(|| format!("… and {hidden} slower"));
    let heading = [bold(&fit(title, width)), fit(&line(&columns, "rounds", &scale), width)];
    heading.into_iter().chain(shown.iter().map(row)).chain(more).chain([fit(note, width)]).collect()
}

fn cell(view: &View) -> String {
    let doing = match (view.is_paused, view.phase.as_str(), view.doing.as_str()) {
        (true, "", _) => "paused: p goes on",
        (_, "", doing) => doing,
        (_, phase, _) => return format!("{}   measuring {phase}; the screen stands still meanwhile", view.cell),
    };
    format!("{}   {doing}", view.cell).trim_start().to_string()
}

fn phases(view: &View) -> String {
    view.phases.join("   ")
}

/// What is seen of it, and whether it disturbs the run.
fn machine(view: &View) -> Vec<(String, bool)> {
    let devices = view.devices.iter().map(|device| {
        let rate = |bytes: f64| format!("{}/s", show_bytes(bytes));
        format!("{}: {} read, {} written", device.name, rate(device.read), rate(device.written))
    });
    let devices: Vec<String> = devices.collect();
    let disks = if devices.is_empty() { "no disk is busy".to_string() } else { devices.join("   ") };
    let processors = view.processor.as_ref().map(|found| {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let (work, kernel, others) = (percent(found.work), percent(found.kernel), percent(found.others));
        let line =
            format!("of one processor in the last cell: the work {work}, the kernel {kernel}, other programs {others}");
        (line, found.others > MUCH_CPU)
    });
    std::iter::once((disks, false)).chain(processors).collect()
}

fn foot(view: &View, width: usize) -> Vec<String> {
    let state = match (view.is_ending, view.is_paused) {
        (true, _) => "   ENDING AFTER THIS CELL",
        (_, true) => "   PAUSED BEFORE THE NEXT CELL",
        _ => "",
    };
    let keys = if view.shows_keys { &ALL_KEYS[..] } else { &[KEYS] };
    keys.iter().map(|line| fit(&format!("{line}{state}"), width)).collect()
}

fn rule(title: &str, width: usize) -> String {
    let title = if title.is_empty() { String::new() } else { format!("─ {title} ") };
    let line = "─".repeat(width.saturating_sub(display_width(&title)));
    faint(&format!("{title}{line}"))
}

fn bold(text: &str) -> String {
    format!("\x1b[1m{text}\x1b[0m")
}

fn faint(text: &str) -> String {
    format!("\x1b[2m{text}\x1b[0m")
}

fn red(text: &str) -> String {
    format!("\x1b[31m{text}\x1b[0m")
}

/// To what fits a line; in full columns, as a wider line would wrap.
fn fit(line: &str, width: usize) -> String {
    let line = line.trim_end();
    if display_width(line) <= width { line.into() } else { cut(line, width) }
}

#[cfg(test)]
mod tests {
    use super::super::{DeviceRate, Eta, ProcessorShares};
    use super::*;
    use std::time::Duration;

    fn row(cells: [&str; 5], ratio: [f64; 3], is_eliminated: bool) -> StandingsRow {
        StandingsRow { cells: cells.map(String::from), ratio, rounds: 4, is_eliminated }
    }

    fn view() -> View {
        let rows = vec![
            row(["xfs", "1.15 s", "−7 %", "−12 to −1 %", "faster"], [0.88, 0.93, 0.99], false),
            row(["ext4", "1.24 s", "", "", "reference"], [1.0, 1.0, 1.0], false),
            row(["btrfs", "2.00 s", "+61 %", "+40 to +90 %", "eliminated after 3 rounds"], [1.4, 1.61, 1.9], true),
        ];
        let heading = ["After 4 rounds: whole job", "time", "vs ext4", "95 % interval", ""].map(String::from);
        View {
            title: "tree: ext4, xfs, btrfs".into(),
            elapsed: Duration::from_secs(3725),
            clock: Eta::new(15, 12),
            round: 5,
            most_rounds: 40,
            standings: Some(Standings { heading, rows, note: "Noise floor ±3 %.".into() }),
            cell: "round 5  xfs  tree".into(),
            phases: vec!["write 320 ms".into(), "walk 12.0 ms".into()],
            doing: "making the file system".into(),
            devices: vec![DeviceRate { name: "sda".into(), read: 1e6, written: 0.0 }],
            processor: Some(ProcessorShares { work: 0.9, kernel: 0.31, others: 0.02 }),
            messages: (1..=40).map(|at| format!("message {at}")).collect(),
            ..View::default()
        }
    }

    /// Without the words that make letters bold or faint.
    fn plain(lines: &[String]) -> Vec<String> {
        let words = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m"];
        lines.iter().map(|line| words.iter().fold(line.clone(), |line, word| line.replace(word, ""))).collect()
    }

    #[test]
    fn all_is_on_the_smallest_screen() {
        let shown = plain(&layout(&view(), 100, 30));
        let wanted = "\
pickfs  1:02:05  tree: ext4, xfs, btrfs
round 5 of at most 40; 12 of 15 cells up to the next interim analysis, time left unknown
────────────────────────────────────────────────────────────────────────────────────────────────────
After 4 rounds: whole job
       rounds    time  vs ext4  95 % interval      ┊                +90 %
xfs         4  1.15 s     −7 %    −12 to −1 %  ├─●─┤                       faster
ext4        4  1.24 s                              ●                       reference
btrfs       4  2.00 s    +61 %   +40 to +90 %      ┊          ├────●────┤  eliminated after 3 rounds
Noise floor ±3 %.
─ this cell ────────────────────────────────────────────────────────────────────────────────────────
round 5  xfs  tree   making the file system
write 320 ms   walk 12.0 ms
─ this machine ─────────────────────────────────────────────────────────────────────────────────────
sda: 977 KiB/s read, 0 B/s written
of one processor in the last cell: the work 90 %, the kernel 31 %, other programs 2 %
─ messages ─────────────────────────────────────────────────────────────────────────────────────────
message 28";
        assert_eq!(shown[..17].join("\n"), wanted);
        assert_eq!(shown[28..], ["message 40", "q end after this cell   p pause   o page   ? keys"]);
    }

    #[test]
    fn a_wide_screen_has_an_axis_and_no_screen_is_overrun() {
        let wide = plain(&layout(&view(), 140, 30));
        assert!(wide[5].contains("├─") && wide[6].contains('●') && wide[4].contains("−12 %"), "{wide:?}");
        for (width, height) in [(100, 30), (60, 14), (20, 6), (160, 50)] {
            for view in [view(), View { shows_keys: true, is_paused: true, ..View::default() }] {
                let shown = plain(&layout(&view, width, height));
                assert!(shown.len() <= height.max(6), "{width} {height}: {shown:#?}");
                assert!(shown.iter().all(|line| display_width(line) <= width), "{width} {height}: {shown:#?}");
            }
        }
    }

    #[test]
    fn other_programs_are_red_once_they_make_a_run_unreliable() {
        let machine = |others| {
            let processor = Some(ProcessorShares { work: 0.9, kernel: 0.3, others });
            layout(&View { processor, ..view() }, 100, 30).into_iter().any(|line| line.starts_with("\x1b[31m"))
        };
        assert_eq!([0.4, 0.6].map(machine), [false, true]);
    }

    #[test]
    fn what_was_asked_for_is_seen() {
        let asked = View { is_paused: true, is_ending: true, phase: "write".into(), ..view() };
        let shown = plain(&layout(&asked, 100, 30)).join("\n");
        assert!(shown.contains("ENDING AFTER THIS CELL") && shown.contains("measuring write; the screen stands still"));
        let paused = plain(&layout(&View { is_paused: true, ..view() }, 100, 30)).join("\n");
        assert!(paused.contains("PAUSED") && paused.contains("paused: p goes on"));
    }
}
