//! The score card: published tables next to simulations of the same work, as a page of Markdown.

use crate::analysis::{Costs, Miss, Score, score};
use pickfs_system::visible::visible;

/// A published table and what became of it.
pub struct Scored {
    pub title: String,
    pub source: String,
    pub licence: String,
    /// What the table compares and why it is here; may be empty.
    pub note: String,
    /// Drives, kernels and scale: published, and what stands for them.
    pub simulated: Vec<String>,
    pub columns: Vec<Column>,
    pub figures: Vec<Costs>,
    /// What was not simulated, with the reasons.
    pub left_out: Vec<String>,
    /// In the order of the misses of all figures; `None`: not known.
    pub reasons: Vec<Option<String>>,
}

/// The words of a column.
pub struct Column {
    pub name: String,
    pub about: String,
    pub unit: String,
    /// A figure that is better high has its reciprocal as its cost.
    pub is_rate: bool,
}

/// `made` says by which command, when and by which version.
pub fn page(made: &str, tables: &[Scored]) -> String {
    let scores: Vec<Score> = tables.iter().map(|table| score(&table.figures)).collect();
    let all = Score::sum(scores.iter());
    let mut rows: Vec<[String; 5]> =
        tables.iter().zip(&scores).map(|(table, score)| standing(&table.title, score)).collect();
    if rows.len() > 1 {
        rows.push(standing("all", &all));
    }
    let mut text = format!("# Score card of the simulations\n\n{made}\n\n{ABOUT}\n\n{}", standings("table", &rows));
    tables.iter().zip(&scores).for_each(|(table, score)| text.push_str(&of_table(table, score)));
    text
}

const ABOUT: &str = "Published measurements of real drives, next to simulations of the same work. Pairs of rows of a table count \
                     where they differ by more than 10 % as published. The error of a pair is |ln(simulated ratio / \
                     published ratio)|: 0.1 is about 10 %, 0.69 a factor of two. No parameter of a model was chosen by a figure of a file system.";

fn standing(name: &str, score: &Score) -> [String; 5] {
    let error = |error: Option<f64>| error.map_or("–".to_string(), |error| format!("{error:.2}"));
    [
        cell(name),
        score.apart.to_string(),
        score.in_order().to_string(),
        error(score.median_error()),
        error(score.worst_error()),
    ]
}

fn standings(what: &str, rows: &[[String; 5]]) -> String {
    table([what, "pairs", "in the published order", "median error", "worst error"], rows)
}

fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let line = |cells: &[&str]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(&head) + &line(&["---"; N]);
    rows.iter().for_each(|row| text.push_str(&line(&row.each_ref().map(String::as_str))));
    text
}

/// Text of a table's author, in a cell of a table.
fn cell(text: &str) -> String {
    visible(text).replace('|', "\\|")
}

fn of_table(scored: &Scored, all: &Score) -> String {
    let mut text = format!(
        "\n## {}\n\nSource: {} ({}).",
        visible(&scored.title),
        visible(&scored.source),
        visible(&scored.licence)
    );
    let note = Some(&scored.note).filter(|note| !note.is_empty());
    note.into_iter().for_each(|note| text.push_str(&format!(" {}", visible(note))));
    let lines = |lines: &[String]| lines.iter().map(|line| format!("* {}\n", visible(line))).collect::<String>();
    text.push_str(&format!("\n\n{}", lines(&scored.simulated)));
    let of = |column: &Column| -> Vec<Costs> {
        scored.figures.iter().filter(|figure| figure.column == column.name).cloned().collect()
    };
    if scored.columns.len() > 1 {
        let rows = scored.columns.iter().map(|column| standing(&column.about, &score(&of(column)))).collect::<Vec<_>>();
        text.push_str(&format!("\n{}", standings("column", &rows)));
    }
    scored.columns.iter().for_each(|column| text.push_str(&of_column(column, &of(column))));
    let misses: Vec<[String; 5]> =
        all.misses.iter().zip(&scored.reasons).map(|(miss, reason)| missed(miss, reason.as_deref())).collect();
    if !misses.is_empty() {
        let head = ["column", "pair", "published", "simulated", "why"];
        text.push_str(&format!(
            "\nNot in the published order, as costs of the first over the second:\n\n{}",
            table(head, &misses)
        ));
    }
    if !scored.left_out.is_empty() {
        text.push_str(&format!("\nNot simulated:\n\n{}", lines(&scored.left_out)));
    }
    text
}

/// From the best to the worst, as published.
fn of_column(column: &Column, figures: &[Costs]) -> String {
    let mut sorted: Vec<&Costs> = figures.iter().collect();
    sorted.sort_by(|one, other| one.published.total_cmp(&other.published));
    let least = |of: fn(&Costs) -> f64| figures.iter().map(of).reduce(f64::min).unwrap_or(1.0);
    let (published, simulated) = (least(|figure| figure.published), least(|figure| figure.simulated));
    let row = |figure: &&Costs| {
        let given = if column.is_rate { 1.0 / figure.published } else { figure.published };
        [
            cell(&figure.row),
            format!("{} {}", pickfs_disks::significant(given, 6), cell(&column.unit)),
            format!("{:.2}", figure.published / published),
            format!("{:.2}", figure.simulated / simulated),
        ]
    };
    let rows: Vec<[String; 4]> = sorted.iter().map(row).collect();
    let head = ["", "published", "published cost over the least", "simulated cost over the least"];
    format!("\n{}:\n\n{}", visible(&column.about), table(head, &rows))
}

fn missed(miss: &Miss, reason: Option<&str>) -> [String; 5] {
    let [one, other] = &miss.rows;
    let pair = format!("{}, {}", cell(one), cell(other));
    let times = |ratio: f64| format!("{ratio:.2}");
    [cell(&miss.column), pair, times(miss.published), times(miss.simulated), cell(reason.unwrap_or("not known"))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_every_pair_and_every_reason() {
        let figure = |row: &str, published: f64, simulated: f64| Costs {
            column: "zip".into(),
            row: row.into(),
            published,
            simulated,
        };
        let scored = |figures: Vec<Costs>, reasons: Vec<Option<String>>| Scored {
            title: "A | B".into(),
            source: "somebody".into(),
            licence: "CC BY 4.0".into(),
            note: String::new(),
            simulated: vec!["WD Red: hdd-5400".into()],
            columns: vec![Column { name: "zip".into(), about: "zip -r".into(), unit: "s".into(), is_rate: false }],
            figures,
            left_out: vec!["hfsplus: no such file system".into()],
            reasons,
        };
        let figures = vec![figure("ext4", 210.9, 42.0), figure("xfs", 6.69, 2.0), figure("jfs", 241.84, 21.0)];
        let one = scored(figures, vec![Some("one | seek".into())]);
        let text = page("Made today.", &[one]);
        for line in [
            "Made today.",
            "| A \\| B | 3 | 2 | 0.83 | 1.24 |",
            "| ext4 | 210.9 s | 31.52 | 21.00 |",
            "| zip | ext4, jfs | 0.87 | 2.00 | one \\| seek |",
            "* hfsplus: no such file system",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        let unknown = scored(vec![figure("a", 1.0, 1.0), figure("b", 2.0, 1.0)], vec![None]);
        let text = page("", &[unknown, scored(Vec::new(), Vec::new())]);
        assert!(text.contains("| zip | a, b | 0.50 | 1.00 | not known |"), "{text}");
        assert!(text.contains("| all | 1 | 0 | 0.69 | 0.69 |"), "{text}");
    }
}
