//! Numbers from what programs print.

use crate::stage::Latencies;
use anyhow::{Context, Result, ensure};
use pickfs_core::plan::recipe::{Amount, Figure, FigureSource, LatenciesOf, Values};
use pickfs_system::process::last_words;
use pickfs_system::units::{parse_duration, parse_size};
use std::cmp::Ordering;

/// Of an output only its end is searched: the time of a search grows with both it and the
/// expression.
const SEARCHED: usize = 1 << 20;

/// What a figure came to.
#[derive(Debug, PartialEq)]
pub(super) struct Number {
    pub number: f64,
    /// In what it is not what the recipe expects.
    pub wrong: Option<String>,
}

/// None where it is optional and not there.
pub(super) fn value(figure: &Figure, printed: &str, values: &Values) -> Result<Option<Number>> {
    let name = if figure.name.is_empty() { "a check" } else { figure.name };
    let Some(number) = sought(figure, name, printed, values)? else {
        ensure!(figure.is_optional, "{name} is made of a figure that is not there");
        return Ok(None);
    };
    ensure!(number.is_finite() && number >= 0.0, "{name} would be {number}");
    let expected = |amount: &Option<Amount>| amount.as_ref().map(|amount| amount.exact(values).unwrap_or(f64::NAN));
    let few = expected(&figure.at_least).filter(|least| number.partial_cmp(least).is_none_or(Ordering::is_lt));
    let other = expected(&figure.equals).filter(|wanted| number != *wanted);
    let few = few.map(|least| format!("{name} is {number}, and must be at least {least}"));
    let wrong = few.or(other.map(|wanted| format!("{name} is {number}, and must be {wanted}")));
    Ok(Some(Number { number, wrong }))
}

fn sought(figure: &Figure, name: &str, printed: &str, values: &Values) -> Result<Option<f64>> {
    let number = match &figure.source {
        FigureSource::Amount(amount) => amount.exact(values),
        FigureSource::Counted(pattern) => Some(pattern.find_iter(end_of(printed)).count() as f64),
        FigureSource::Found { pattern, .. } => {
            let last = pattern.captures_iter(end_of(printed)).last().and_then(|found| found.get(1));
            let number = |text: &str| parsed(text).with_context(|| format!("`{text}`, found for {name}, is no number"));
            let shown = || format!("`{pattern}` of {name} fits nothing in: {}", last_words(printed.as_bytes()));
            match (last, figure.is_optional) {
                (Some(found), false) => Some(number(found.as_str())?),
                (None, false) => return Err(anyhow::Error::msg(shown())),
                // Such as `+++++` of a program that has no value.
                (found, true) => found.and_then(|found| parsed(found.as_str())),
            }
        }
    };
    let of = match &figure.of {
        Some(amount) => amount.exact(values),
        None => return Ok(number.map(|number| number * figure.times)),
    };
    Ok(number.zip(of).map(|(number, of)| of / number * figure.times))
}

/// All that were found, each as often as it came.
pub(super) fn latencies(of: &LatenciesOf, printed: &str, values: &Values) -> Result<Latencies> {
    let mut all = Latencies::new();
    let most = of.at_most.as_ref().and_then(|amount| amount.exact(values)).unwrap_or(f64::INFINITY);
    for found in of.pattern.captures_iter(printed) {
        let number = |group: usize| found.get(group).and_then(|text| text.as_str().parse::<f64>().ok());
        let value = number(1).with_context(|| format!("`{}` is no latency", &found[0]))?;
        all.record_many((value.min(most) * of.times) as u64, number(2).unwrap_or(1.0) as u64);
    }
    if let Some(count) = of.count.as_ref().and_then(|amount| amount.exact(values)) {
        ensure!(all.count() as f64 == count, "{} has {} values for {count} operations", of.name, all.count());
    }
    Ok(all)
}

/// A bare number, or one with a unit: nanoseconds of "12ms", bytes of "3MiB".
fn parsed(text: &str) -> Option<f64> {
    text.parse().ok().or_else(|| parse_duration(text).or_else(|_| parse_size(text)).ok().map(|number| number as f64))
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
    use pickfs_core::plan::recipe::read_once;

    #[test]
    fn numbers_are_found_reckoned_with_and_checked() {
        let long = "rate: 9\n".repeat(1 << 18);
        let rows: [(&str, &str, Result<f64, &str>); 13] = [
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
            ("count = '^a,'", "a,1\na,2\nb,3\na", Ok(2.0)),
            ("value = 4, equals = 4", "", Ok(4.0)),
            ("value = 4, equals = 5", "", Err("is 4, and must be 5")),
        ];
        for (figure, printed, wanted) in rows {
            let text = format!(
                "name = 'a'\nabout = 'b'\n[[phase]]\nname = 'p'\nabout = 'b'\nstarts = 'warm'\nrun = 'true'\n\
                 metric = [{{ {figure} }}]\n"
            );
            let recipe = read_once(&text, "a.toml").unwrap();
            let values = recipe.values(&Settings::default(), []);
            let found = value(&recipe.phases[0].metrics[0], printed, &values);
            let found = found.and_then(|found| {
                let Number { number, wrong } = found.context("left out")?;
                wrong.map_or(Ok(number), |wrong| Err(anyhow::Error::msg(wrong)))
            });
            match (found, wanted) {
                (Ok(number), Ok(wanted)) => assert_eq!(number, wanted, "{figure}"),
                (Err(error), Err(says)) => assert!(format!("{error:#}").contains(says), "{figure}: {error:#}"),
                (found, _) => panic!("{figure}: {found:?}"),
            }
        }
    }
}
