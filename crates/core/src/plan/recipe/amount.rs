//! Amounts that depend on settings, such as `keys * value / 8`, and words with settings in them,
//! such as `--num={keys}`.

use crate::plan::Settings;
use pickfs_system::units::{parse_duration, parse_size};
use serde_json::Value;
use std::collections::BTreeMap;
use std::str::FromStr;

/// A sum of products of whole numbers and settings; what is divided is rounded up.
#[derive(Clone, Debug, PartialEq)]
pub struct Amount(Vec<Vec<Factor>>);

#[derive(Clone, Debug, PartialEq)]
struct Factor {
    divides: bool,
    operand: Operand,
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Number(u64),
    Setting(String),
    /// The smallest, or the largest, of some.
    Min(Vec<Amount>),
    Max(Vec<Amount>),
    /// How many elements a list has.
    Count(String),
}

impl Operand {
    fn names(&self) -> Vec<&str> {
        match self {
            Operand::Number(_) => Vec::new(),
            Operand::Setting(name) | Operand::Count(name) => vec![name],
            Operand::Min(all) | Operand::Max(all) => all.iter().flat_map(Amount::all_names).collect(),
        }
    }

    fn number<N: FromStr + PartialOrd>(&self, values: &Values) -> Option<N> {
        let numbers = |all: &[Amount]| all.iter().map(|one| one.value(values)).collect::<Vec<_>>();
        match self {
            Operand::Number(number) => number.to_string().parse().ok(),
            Operand::Setting(name) => values.number(name),
            Operand::Min(all) => numbers(all).into_iter().min()?.to_string().parse().ok(),
            Operand::Max(all) => numbers(all).into_iter().max()?.to_string().parse().ok(),
            Operand::Count(list) => values.texts(list).len().to_string().parse().ok(),
        }
    }
}

/// What the names in words and amounts stand for.
#[derive(Clone, Debug)]
pub struct Values {
    pub settings: Settings,
    /// Such as `dir`; these go before settings.
    pub named: BTreeMap<&'static str, String>,
    /// Lists of words that the recipe has given a name.
    pub lists: BTreeMap<&'static str, Vec<Word>>,
}

impl Values {
    /// One text, one for each element of a list, or none where a setting is not given.
    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        if let Some(list) = self.lists.get(name) {
            return list.iter().flat_map(|word| word.filled(self)).collect();
        }
        match (self.named.get(name), self.settings.0.get(name)) {
            (Some(text), _) => vec![text.clone()],
            (None, Some(Value::Array(list))) => list.iter().map(shown).collect(),
            (None, one) => one.map(shown).into_iter().collect(),
        }
    }

    /// Bytes, nanoseconds or a count; of a list the largest.
    fn number<N: FromStr + PartialOrd>(&self, name: &str) -> Option<N> {
        let texts = self.texts(name);
        let numbers = texts.iter().filter_map(|text| text.parse().ok());
        numbers.reduce(|most, number| if number > most { number } else { most })
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}

impl Amount {
    pub(super) fn parse(text: &str) -> Result<Amount, String> {
        outside(text, '+').into_iter().map(product).collect::<Result<_, _>>().map(Amount)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all_names().into_iter()
    }

    fn all_names(&self) -> Vec<&str> {
        self.0.iter().flatten().flat_map(|factor| factor.operand.names()).collect()
    }

    /// Without rounding, for figures; none where a setting or a figure in it is not there.
    pub fn exact(&self, values: &Values) -> Option<f64> {
        let product = |factors: &Vec<Factor>| {
            factors.iter().try_fold(1.0, |all: f64, factor| {
                let number: f64 = factor.operand.number(values)?;
                Some(if factor.divides { all / number } else { all * number })
            })
        };
        self.0.iter().map(product).sum()
    }

    /// A setting that is not given counts as 0, and dividing by 0 gives 0.
    pub fn value(&self, values: &Values) -> u64 {
        let number = |factor: &Factor| factor.operand.number(values).unwrap_or(0u64);
        let product = |product: &Vec<Factor>| {
            product.iter().fold(1u64, |all, factor| match (factor.divides, number(factor)) {
                (false, number) => all.saturating_mul(number),
                (true, 0) => 0,
                (true, number) => all.div_ceil(number),
            })
        };
        self.0.iter().map(product).fold(0, u64::saturating_add)
    }
}

fn product(text: &str) -> Result<Vec<Factor>, String> {
    let mut factors = Vec::new();
    for product in outside(text, '*') {
        for (place, operand) in outside(product, '/').into_iter().enumerate() {
            let divides = place > 0;
            // `a / b * c` is read from left to right, as all of it is one product.
            factors.push(Factor { divides, operand: parse_operand(operand.trim())? });
        }
    }
    Ok(factors)
}

fn parse_operand(text: &str) -> Result<Operand, String> {
    let Some((function, inside)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) else {
        return parse_plain(text);
    };
    if inside.contains('(') {
        return Err(format!("`{text}` has parentheses in parentheses"));
    }
    let amounts = || outside(inside, ',').into_iter().map(Amount::parse).collect::<Result<Vec<_>, _>>();
    match (function, parse_plain(inside)) {
        ("min", _) => amounts().map(Operand::Min),
        ("max", _) => amounts().map(Operand::Max),
        ("count", Ok(Operand::Setting(list))) => Ok(Operand::Count(list)),
        _ => Err(format!("`{text}` is neither like `min(a, b)` and `max(a, b)` nor like `count(list)`")),
    }
}

/// Split where the separator is not in parentheses.
fn outside(text: &str, separator: char) -> Vec<&str> {
    let mut depth = 0_usize;
    let is_separator = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == separator && depth == 0
    };
    text.split(is_separator).collect()
}

fn parse_plain(text: &str) -> Result<Operand, String> {
    let is_name = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    match text.chars().next() {
        Some(first) if first.is_ascii_digit() => {
            let number = text.parse().or_else(|_| parse_size(text)).or_else(|_| parse_duration(text));
            number.map(Operand::Number).map_err(|_| format!("`{text}` is no whole number, size or duration"))
        }
        Some(first) if first.is_ascii_alphabetic() && is_name(text) => Ok(Operand::Setting(text.into())),
        _ => Err(format!("`{text}` is neither a number nor the name of a setting")),
    }
}

/// A word of a command.
#[derive(Clone, Debug, PartialEq)]
pub struct Word(Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Name(String),
    Amount(Amount),
}

impl Word {
    /// `{name}` and `{amount}` are settings, `{{` and `}}` are braces.
    pub(super) fn parse(text: &str) -> Result<Word, String> {
        let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                plain.push_str(brace);
                rest = after;
            } else if brace == "}" {
                return Err("has a `}` that closes nothing; a brace itself is written as `}}`".into());
            } else {
                let (inside, after) =
                    rest.split_once('}').ok_or("has a `{` without its `}`; a brace itself is `{{`")?;
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                pieces.push(piece(inside.trim())?);
                rest = after;
            }
        }
        plain.push_str(rest);
        pieces.push(Piece::Text(plain));
        Ok(Word(pieces))
    }

    /// Itself, where there is nothing to be filled in.
    pub fn plain(&self) -> &str {
        if let [Piece::Text(text)] = self.0.as_slice() { text } else { "" }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|piece| match piece {
            Piece::Name(name) => vec![name.as_str()],
            Piece::Amount(amount) => amount.names().collect(),
            Piece::Text(_) => Vec::new(),
        })
    }

    /// Names that are reckoned with, and so must be numbers.
    pub(super) fn numbers(&self) -> impl Iterator<Item = &str> {
        let amounts = self.0.iter().filter_map(|piece| if let Piece::Amount(all) = piece { Some(all) } else { None });
        amounts.flat_map(Amount::names)
    }

    /// The word for each element of the lists in it, and none where a setting in it is not given.
    pub fn filled(&self, values: &Values) -> Vec<String> {
        let texts = |piece: &Piece| match piece {
            Piece::Text(text) => vec![text.clone()],
            Piece::Name(name) => values.texts(name),
            Piece::Amount(amount) if amount.names().all(|name| !values.texts(name).is_empty()) => {
                vec![amount.value(values).to_string()]
            }
            Piece::Amount(_) => Vec::new(),
        };
        self.0.iter().fold(vec![String::new()], |words, piece| {
            let texts = texts(piece);
            words.iter().flat_map(|word| texts.iter().map(move |text| format!("{word}{text}"))).collect()
        })
    }
}

fn piece(inside: &str) -> Result<Piece, String> {
    let amount = Amount::parse(inside)?;
    let name = match amount.0.as_slice() {
        [product] => match product.as_slice() {
            [Factor { operand: Operand::Setting(name), .. }] => Some(name.clone()),
            _ => None,
        },
        _ => None,
    };
    Ok(name.map_or(Piece::Amount(amount), Piece::Name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn amounts_and_words_are_filled_with_settings() {
        let settings = json!({"keys": 1000, "value": 7, "time": 3_000_000_000_u64, "with": ["a", "b"], "none": []});
        let settings: Settings = serde_json::from_value(settings).unwrap();
        let all = ["a", "{dir}", "{missing}"].map(|text| Word::parse(text).unwrap()).into();
        let values = Values { settings, named: [("dir", "/d".to_string())].into(), lists: [("all", all)].into() };
        let amounts = [
            ("keys", 1000),
            ("3", 3),
            ("keys * value / 8", 875),
            ("keys/3", 334),
            ("2MiB + keys*2 + 1", (2 << 20) + 2001),
            ("time / 1s", 3),
            ("keys / missing", 0),
            ("18446744073709551615 * keys", u64::MAX),
            ("2 + min(keys, value * 2, 9 + 1) * 10", 102),
            ("max(missing, keys / 2, value)", 500),
            ("time / 1s * count(with)", 6),
            ("count(none) + count(missing)", 0),
        ];
        for (text, wanted) in amounts {
            assert_eq!(Amount::parse(text).map(|amount| amount.value(&values)), Ok(wanted), "{text}");
        }
        let exact = |text: &str| Amount::parse(text).unwrap().exact(&values);
        assert_eq!([exact("keys / 3"), exact("keys / missing")], [Some(1000.0 / 3.0), None]);
        let words: [(&str, &[&str]); 9] = [
            ("-{all}", &["-a", "-/d"]),
            ("-n{keys/2}", &["-n500"]),
            ("{dir}/x", &["/d/x"]),
            ("--{with}", &["--a", "--b"]),
            ("{none}", &[]),
            ("{missing}", &[]),
            ("-n{keys + missing}", &[]),
            ("%{{code}}", &["%{code}"]),
            ("", &[""]),
        ];
        for (text, wanted) in words {
            assert_eq!(
                Word::parse(text).map(|word| word.filled(&values)),
                Ok(wanted.iter().map(|w| w.to_string()).collect())
            );
        }
        for wrong in [
            "", "a b", "1 parsec", "a ** b", "-1", "a-", "(a)", "../x", "min(a b)", "min()", "count(3)", "x(a)",
            "min(min(a, b), c)", "a)", "min(a",
        ] {
            assert!(Amount::parse(wrong).is_err() || wrong == "a-", "{wrong}");
        }
        assert!(["{", "a}", "{a", "{a b}", "{}"].iter().all(|wrong| Word::parse(wrong).is_err()));
    }
}
