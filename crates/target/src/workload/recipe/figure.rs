//! Numbers from what programs print.

use anyhow::{Context, Result, ensure};
use pickfs_core::plan::recipe::{Figure, FigureSource, Values};
use pickfs_system::process::last_words;
use pickfs_system::units::{parse_duration, parse_size};

/// Of an output only its end is searched: the time of a search grows with both it and the expression.
const SEARCHED: usize = 1 << 20;

/// The figure's number, which what is expected of it is true of.
pub(super) fn value(figure: &Figure, printed: &str, values: &Values) -> Result<f64> {
    let name = if figure.name.is_empty() { "a check" } else { &figure.name };
    let number = match &figure.source {
        FigureSource::Amount(amount) => amount.value(values) as f64,
        FigureSource::Found { pattern, amount } => {
            let last = pattern.captures_iter(end_of(printed)).last().and_then(|found| found.get(1));
            let shown = || format!("`{pattern}` of {name} fits nothing in: {}", last_words(printed.as_bytes()));
            let text = last.with_context(shown)?.as_str();
            let found = parsed(text).with_context(|| format!("`{text}`, found for {name}, is no number"))?;
            amount.as_ref().map_or(found, |amount| amount.value(values) as f64 / found)
        }
    } * figure.times;
    ensure!(number.is_finite() && number >= 0.0, "{name} would be {number}");
    if let Some(least) = figure.at_least.as_ref().map(|amount| amount.value(values) as f64) {
        ensure!(number >= least, "{name} is {number}, and must be at least {least}");
    }
    if let Some(wanted) = figure.equals.as_ref().map(|amount| amount.value(values) as f64) {
        ensure!(number == wanted, "{name} is {number}, and must be {wanted}");
    }
    Ok(number)
}

/// A bare number, or one with a unit: nanoseconds of "12ms", bytes of "3MiB".
fn parsed(text: &str) -> Option<f64> {
    let with_unit = || parse_duration(text).or_else(|_| parse_size(text)).ok().map(|number| number as f64);
    text.parse().ok().or_else(with_unit)
}

fn end_of(printed: &str) -> &str {
    let from = printed.len().saturating_sub(SEARCHED);
    let from = (from..printed.len()).find(|at| printed.is_char_boundary(*at)).unwrap_or(printed.len());
    &printed[from..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_core::plan::Settings;
    use pickfs_core::plan::recipe::kept;

    #[test]
    fn numbers_are_found_reckoned_with_and_checked() {
        let long = "rate: 9\n".repeat(1 << 18);
        let rows: [(&str, &str, Result<f64, &str>); 12] = [
            ("find = 'rate: (.*)'", "rate: 1\nrate: 2.5\n", Ok(2.5)),
            ("find = '^rate: (.*)$', times = 1e3", "x rate: 1\nrate: 2\nx rate: 3", Ok(2000.0)),
            ("find = 'rate: (.*)', of = 10", "rate: 4", Ok(2.5)),
            ("find = 'rate: (.*)', of = 10", "rate: 0", Err("would be inf")),
            ("find = 'took (.*)'", "took 12ms", Ok(12e6)),
            ("find = 'took (.*)'", "took 3MiB", Ok((3 << 20) as f64)),
            ("find = 'took (.*)'", "took long", Err("is no number")),
            ("find = 'took (.*)'", "took -1", Err("would be -1")),
            ("find = 'took (.*)'", "gave", Err("fits nothing in: gave")),
            ("find = 'rate: (.*)', at_least = 10", &long, Err("is 9, and must be at least 10")),
            ("value = 4, equals = 4", "", Ok(4.0)),
            ("value = 4, equals = 5", "", Err("is 4, and must be 5")),
        ];
        for (figure, printed, wanted) in rows {
            let text = format!(
                "name = 'a'\nabout = 'b'\n[[phase]]\nname = 'p'\nabout = 'b'\nstarts = 'warm'\nrun = 'true'\n\
                 metric = [{{ {figure} }}]\n"
            );
            let recipe = kept(&text, "a.toml").unwrap();
            let values = recipe.values(&Settings::default(), []);
            match (value(&recipe.phases[0].metrics[0], printed, &values), wanted) {
                (Ok(number), Ok(wanted)) => assert_eq!(number, wanted, "{figure}"),
                (Err(error), Err(says)) => assert!(format!("{error:#}").contains(says), "{figure}: {error:#}"),
                (found, _) => panic!("{figure}: {found:?}"),
            }
        }
    }
}
