//! Sentences, and numbers inside them. A ratio above one is more: "more time", never "slower by";
//! "12 % less time" is always against the whole of the reference.

pub use crate::analysis::plain::plain;
pub(crate) use crate::analysis::plain::{sanitize_json, steers};
use pickfs_stats::Estimate;
use textwrap::core::display_width;

/// Ratios closer than this are printed as one: times are whole nanoseconds.
const SAME: f64 = 1e-6;

/// A paragraph, broken at blanks; later lines are indented like the first and a little more.
pub fn wrapped(indent: &str, text: &str, width: usize) -> String {
    let later = if indent.is_empty() { String::new() } else { format!("{indent}  ") };
    let options = at_blanks(width).initial_indent(indent).subsequent_indent(&later);
    textwrap::fill(&with_units(text), options).replace(NO_BREAK, " ")
}

/// The text with blanks behind it, up to this many columns.
pub(crate) fn left(text: &str, width: usize) -> String {
    format!("{text}{}", blanks(text, width))
}

/// The text with blanks before it, up to this many columns.
pub(crate) fn right(text: &str, width: usize) -> String {
    format!("{}{text}", blanks(text, width))
}

fn blanks(text: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(display_width(text)))
}

/// A paragraph as lines of at most that many columns, where its words allow it.
pub fn lines(text: &str, width: usize) -> Vec<String> {
    let text = with_units(text);
    textwrap::wrap(&text, at_blanks(width)).into_iter().map(|line| line.replace(NO_BREAK, " ")).collect()
}

const NO_BREAK: char = '\u{a0}';

/// No line ends between a number and its unit.
fn with_units(text: &str) -> String {
    const UNITS: [&str; 12] = ["%", "s", "ms", "µs", "ns", "min", "h", "B", "KiB", "MiB", "GiB", "TiB"];
    let mut bound = String::with_capacity(text.len());
    for (at, word) in text.split(' ').enumerate() {
        let is_unit = UNITS.contains(&word.trim_end_matches(['.', ',', ';', ':', ')']));
        let blank = if is_unit && bound.ends_with(|c: char| c.is_ascii_digit()) { NO_BREAK } else { ' ' };
        bound.extend((at > 0).then_some(blank));
        bound.push_str(word);
    }
    bound
}

fn at_blanks(width: usize) -> textwrap::Options<'static> {
    textwrap::Options::new(width)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .break_words(false)
}

/// For the content of elements and for quoted attributes alike, of HTML and of SVG.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '`' => safe.push_str("&#96;"),
            c if steers(c) => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

/// "1 round", "4 rounds".
pub fn counted(count: usize, noun: &str) -> String {
    let plural = if noun.ends_with('s') { "es" } else { "s" };
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}{plural}") }
}

/// "ext4, xfs and btrfs".
pub(crate) fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

/// "12 %", "3.4 %", "3 %" from a share of one.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", percent_digits(share, share.abs() < 0.0995))
}

/// As [`percent`], rounded up: of a bound, which must not be shown below what it is.
pub fn percent_up(share: f64) -> String {
    let steps = if share.abs() < 0.0995 { 1e3 } else { 1e2 };
    // A millionth of a step is the error of arithmetic, and no more of it.
    percent((share * steps - 1e-6).ceil() / steps)
}

fn percent_digits(share: f64, one_decimal: bool) -> String {
    let text = decimal(share * 100.0, usize::from(one_decimal));
    text.strip_suffix(".0").map(String::from).unwrap_or(text)
}

/// "12.3", "−3", "0": with the minus sign of print, which nought does not have.
fn decimal(value: f64, decimals: usize) -> String {
    let digits = format!("{:.decimals$}", value.abs());
    let is_nought = digits.trim_matches(['0', '.']).is_empty();
    if value < 0.0 && !is_nought { format!("−{digits}") } else { digits }
}

/// The same with the plus of a difference: "+12", "−3", "0".
pub(crate) fn signed_decimal(value: f64, decimals: usize) -> String {
    let digits = decimal(value, decimals);
    let is_more = value > 0.0 && !digits.trim_matches(['0', '.']).is_empty();
    if is_more { format!("+{digits}") } else { digits }
}

/// "8–16 %", "2.0–3.4 %": as many decimals on both sides.
fn percent_range(from: f64, to: f64, one_decimal: bool) -> String {
    let decimals = usize::from(one_decimal);
    let (low, high) = (decimal(from * 100.0, decimals), decimal(to * 100.0, decimals));
    match (low.strip_suffix(".0"), high.strip_suffix(".0")) {
        (Some(low), Some(high)) => format!("{low}–{high} %"),
        _ => format!("{low}–{high} %"),
    }
}

/// "0.88 (0.84–0.92)".
pub(crate) fn ratio(estimate: &Estimate) -> String {
    let value = estimate.ratio;
    let Some((low, high)) = estimate.interval else { return ratio_digits(value, 2) };
    if high - low < SAME {
        return format!("{} (±0)", ratio_digits(value, 2));
    }
    let decimals = if high - low < 0.02 { 3 } else { 2 };
    let digits = |value| ratio_digits(value, decimals);
    format!("{} ({}–{})", digits(value), digits(low), digits(high))
}

fn ratio_digits(value: f64, decimals: usize) -> String {
    match value {
        v if v >= 99.5 => format!("{v:.0}"),
        v if v >= 9.95 => format!("{v:.1}"),
        v if v < 0.01 => format!("{v:.4}"),
        v => format!("{v:.decimals$}"),
    }
}

/// "±1.2 %": how far an interval reaches to each side.
pub(crate) fn half_width(estimate: &Estimate) -> String {
    estimate.half_width().map_or("unknown".to_string(), |width| format!("±{}", percent(width.exp_m1())))
}

/// A difference in words: amount ("12 % less", "2.1 times the"), and the interval in the same terms
/// ("8–16 %", "1.9–2.3").
pub(crate) fn difference(estimate: &Estimate) -> (String, String) {
    let value = estimate.ratio;
    let (low, high) = estimate.interval.unwrap_or((value, value));
    if at_least_twice(value) {
        let decimals = if value < 9.95 { 1 } else { 0 };
        let range = if high - low < SAME { "±0".to_string() } else { format!("{low:.decimals$}–{high:.decimals$}") };
        return (format!("{value:.decimals$} times the"), range);
    }
    let (amount, from, to, word) = if value >= 1.0 {
        (value - 1.0, low - 1.0, high - 1.0, "more")
    } else {
        (1.0 - value, 1.0 - high, 1.0 - low, "less")
    };
    // A bound that is not nought must not be printed as if it were.
    let tiny = from.abs() > SAME && from.abs() < 0.005;
    let fine = to.abs() < 0.0995 || tiny || (to - from < 0.01 && to - from > SAME);
    let shown = format!("{} % {word}", percent_digits(amount, fine || amount < 0.0095));
    let range = if to - from < SAME { "±0".to_string() } else { percent_range(from, to, fine) };
    (shown, range)
}

/// From here on a percentage is harder to read than a factor.
pub(crate) fn at_least_twice(ratio: f64) -> bool {
    ratio >= 1.995
}

/// "1.19–1.24 s": the unit once, if it is the same.
pub(crate) fn range(low: &str, high: &str) -> String {
    match (low.rsplit_once(' '), high.rsplit_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number}–{high}"),
        _ => format!("{low}–{high}"),
    }
}

pub(crate) fn more_rounds(count: u32) -> String {
    format!("{} more round{}", about(count), if count == 1 { "" } else { "s" })
}

/// No forecast is good to more than two digits.
pub(crate) fn about(count: u32) -> u32 {
    let unit = 10u32.pow(count.max(1).ilog10().saturating_sub(1));
    count.div_ceil(unit).saturating_mul(unit)
}

pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().collect::<String>() + chars.as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_never_shown_below_what_it_is() {
        let shown = [0.03, 0.0301, 0.0994, 0.1001, 0.1204, 2.991].map(percent_up);
        assert_eq!(shown, ["3 %", "3.1 %", "10 %", "11 %", "13 %", "300 %"]);
    }

    #[test]
    fn no_line_ends_between_a_number_and_its_unit() {
        assert_eq!(lines("at most 130 % slower (95 %).", 12), ["at most", "130 % slower", "(95 %)."]);
        assert_eq!(lines("takes 2.34 s, or 12 more", 8), ["takes", "2.34 s,", "or 12", "more"]);
        assert_eq!(wrapped("  ", "about 4.46 MiB", 12), "  about\n    4.46 MiB");
        assert_eq!(lines(" a  b", 80), [" a  b"], "other blanks stay");
    }
}
