//! Comma-separated values as RFC 4180 has them, `.` in numbers whatever the locale: one row a
//! sample, or one a summary.

use super::tables::{self, Value};
use super::{Format, Options};
use crate::analysis::Model;
use crate::wording::tuning::{Row, Tuned, word};
use pickfs_system::visible::visible;
use std::io::{self, Write};

pub(crate) const CSV: Format = Format {
    name: "csv",
    about: "comma-separated values, one row a sample",
    run: Some(samples),
    tunings: Some(effects),
    ..Format::NONE
};

fn samples(model: &Model, _: &Options, out: &mut dyn Write) -> io::Result<()> {
    write(tables::SAMPLES, tables::samples(model), out)
}

pub(crate) const CSV_SUMMARY: Format = Format {
    name: "csv-summary",
    about: "comma-separated values, one row for every target and quantity",
    run: Some(summary),
    ..Format::NONE
};

fn summary(model: &Model, _: &Options, out: &mut dyn Write) -> io::Result<()> {
    write(&tables::summary_header(), tables::summary(model), out)
}

fn effects(tunings: &[Tuned], _: &Options, out: &mut dyn Write) -> io::Result<()> {
    let heads =
        ["file system", "work", "place", "option", "value", "ratio", "low", "high", "rounds", "finding", "alone"];
    let row = |tuned: &'_ Tuned, row: &'_ Row| {
        let Row { option, value, effect, finding, .. } = row;
        let names = [&tuned.fs, &tuned.work, &tuned.place, option, value].map(|name| name.clone().into());
        let numbers = [Some(effect.ratio), effect.low, effect.high].map(Into::into);
        let alone = if row.is_crossed { "" } else { "alone" };
        names.into_iter().chain(numbers).chain([effect.rounds.into(), word(*finding).into(), alone.into()]).collect()
    };
    write(&heads, tunings.iter().flat_map(|tuned| tuned.effects.iter().map(move |one| row(tuned, one))), out)
}

fn write<'a>(header: &[&str], rows: impl Iterator<Item = Vec<Value<'a>>>, out: &mut dyn Write) -> io::Result<()> {
    let mut csv = ::csv::WriterBuilder::new().terminator(::csv::Terminator::CRLF).from_writer(out);
    csv.write_record(header)?;
    for row in rows {
        csv.write_record(row.iter().map(shown))?;
    }
    csv.flush()
}

fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => csv_text(text),
        Value::Number(number) => number.to_string(),
        Value::Nothing => String::new(),
    }
}

/// A spreadsheet takes what begins like this for a formula (OWASP, "CSV Injection"); with a quote
/// before it, for text. Numbers stay numbers. What steers a terminal is shown as an escape.
pub fn csv_text(text: &str) -> String {
    const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
    let is_number = text.parse::<f64>().is_ok() && !text.chars().any(|c| c.is_ascii_alphabetic() && !"eE".contains(c));
    let text = visible(text);
    if text.trim_start().starts_with(FORMULA) && !is_number { format!("'{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_spreadsheet_would_run_is_text() {
        let rows = [
            ("=1+1", "'=1+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            (" =1", "' =1"),
            ("\t=1", "\\t=1"),
            ("-1+1", "'-1+1"),
            ("-inf", "'-inf"),
            ("-1.5e3", "-1.5e3"),
            ("ext4", "ext4"),
            ("－1", "'－1"),
            ("a\u{1b}\u{9b}\u{202e}\n", "a\\u{1b}\\u{9b}\\u{202e}\\n"),
        ];
        for (text, wanted) in rows {
            assert_eq!(csv_text(text), wanted);
        }
        let mut out = Vec::new();
        let row = vec![Value::from("a,\"b\""), Value::from(-1.5), Value::from(f64::NAN)];
        write(&["x", "y", "z"], [row].into_iter(), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "x,y,z\r\n\"a,\"\"b\"\"\",-1.5,\r\n");
    }
}
