//! A line of strace's log: which thread, when, what it called and what came of it.

use anyhow::{Context, Result, bail, ensure};

/// One line, taken apart.
#[derive(Debug, PartialEq)]
pub(crate) struct Line<'a> {
    /// 0 where the log has one thread and no numbers.
    pub tid: i32,
    /// Since 1970.
    pub at_ns: u64,
    pub what: LineKind<'a>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum LineKind<'a> {
    Call(Called<'a>),
    /// Another thread's line comes before its end: what was printed so far.
    Begun {
        name: &'a str,
        arguments: &'a str,
    },
    /// The rest of it.
    Resumed {
        name: &'a str,
        rest: &'a str,
        end: End<'a>,
    },
    Ended {
        code: i32,
    },
    /// Its process runs another program now, which this thread called.
    Superseded {
        by: i32,
    },
    /// A signal, or a stop.
    Other,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Called<'a> {
    pub name: &'a str,
    pub arguments: &'a str,
    pub end: End<'a>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct End<'a> {
    /// None where it did not return.
    pub result: Option<Outcome<'a>>,
    pub took_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Outcome<'a> {
    Value(i64),
    /// By name, such as ENOENT.
    Error(&'a str),
}

const UNFINISHED: &str = "<unfinished ...>";

impl<'a> Line<'a> {
    pub(crate) fn of(text: &'a str) -> Result<Line<'a>> {
        let (tid, rest) = thread(text.trim_end())?;
        let (time, rest) = rest.split_once(' ').context("the line is cut off")?;
        let at_ns = seconds(time).context("the line has no time of day in seconds; log with -ttt")?;
        Ok(Line { tid, at_ns, what: what(rest.trim_start())? })
    }
}

fn thread(text: &str) -> Result<(i32, &str)> {
    if let Some(rest) = text.strip_prefix("[pid") {
        let (number, rest) = rest.split_once(']').context("`[pid` without its end")?;
        return Ok((positive(number.trim())?, rest.trim_start()));
    }
    match text.split_once(' ') {
        Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            Ok((positive(number)?, rest.trim_start()))
        }
        _ => Ok((0, text)),
    }
}

fn positive(number: &str) -> Result<i32> {
    number.parse().ok().filter(|number| *number > 0).with_context(|| format!("no thread has the number {number:?}"))
}

/// In nanoseconds; none for anything but digits with a point between them.
fn seconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 9 {
        return None;
    }
    let part = part.parse::<u64>().ok()? * 10u64.pow(9 - part.len() as u32);
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part)
}

fn what(text: &str) -> Result<LineKind<'_>> {
    if let Some(rest) = text.strip_prefix("+++ ") {
        return ending(rest);
    }
    if text.starts_with("--- ") || text.starts_with("strace: ") {
        return Ok(LineKind::Other);
    }
    if let Some(rest) = text.strip_prefix("<... ") {
        let (name, rest) = rest.split_once(" resumed>").context("`<...` without `resumed>`")?;
        let (rest, end) = split_end(rest)?;
        return Ok(LineKind::Resumed { name, rest, end });
    }
    let (name, rest) = text.split_once('(').context("it is no call, no signal and no end of a process")?;
    ensure!(!name.is_empty() && name.bytes().all(is_of_name), "it is no call, no signal and no end of a process");
    if let Some(arguments) = rest.strip_suffix(UNFINISHED) {
        return Ok(LineKind::Begun { name, arguments });
    }
    let (arguments, end) = split_end(rest)?;
    // The last call of a thread that ends in it.
    let arguments = arguments.trim_end().strip_suffix(UNFINISHED).unwrap_or(arguments);
    Ok(LineKind::Call(Called { name, arguments, end }))
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn ending(text: &str) -> Result<LineKind<'_>> {
    let number = |text: &str| text.split(' ').next().and_then(|word| word.parse().ok());
    if let Some(code) = text.strip_prefix("exited with ").and_then(number) {
        return Ok(LineKind::Ended { code });
    }
    if let Some(by) = text.strip_prefix("superseded by execve in pid ").and_then(number) {
        return Ok(LineKind::Superseded { by });
    }
    if text.starts_with("killed by ") { Ok(LineKind::Ended { code: -1 }) } else { bail!("an end that is not known") }
}

/// Arguments up to the bracket that closes them, and what stands behind it.
fn split_end(text: &str) -> Result<(&str, End<'_>)> {
    let close = closing(text).context("the call has no end; the line is cut off")?;
    let rest =
        text[close + 1..].trim_start().strip_prefix("= ").context("the call has no result; the line is cut off")?;
    if rest.trim_end() == "?" || rest.starts_with("? <unavailable>") {
        return Ok((&text[..close], End { result: None, took_ns: 0 }));
    }
    let took = rest.rsplit_once('<').and_then(|(_, took)| seconds(took.strip_suffix('>')?));
    let took_ns = took.context("the call has no duration; log with -T")?;
    Ok((&text[..close], End { result: outcome(rest)?, took_ns }))
}

fn outcome(text: &str) -> Result<Option<Outcome<'_>>> {
    let mut words = text.split(' ');
    let first = words.next().unwrap_or_default();
    let value = first.split('<').next().unwrap_or_default();
    match (value, words.next()) {
        // It is made again, or was given up as a signal came.
        ("?", _) => Ok(Some(Outcome::Error("EINTR"))),
        ("-1", Some(error)) if error.starts_with('E') => Ok(Some(Outcome::Error(error))),
        _ => Ok(Some(Outcome::Value(number(value).with_context(|| format!("{value:?} is no result"))? as i64))),
    }
}

/// Decimal, hexadecimal or octal, as strace writes numbers; negative ones in two's complement.
pub(crate) fn number(text: &str) -> Option<u64> {
    let is_plain = |digits: &str| !digits.is_empty() && !digits.starts_with('+');
    if let Some(digits) = text.strip_prefix("0x").filter(|digits| is_plain(digits)) {
        return u64::from_str_radix(digits, 16).ok();
    }
    if let Some(digits) = text.strip_prefix('0').filter(|digits| is_plain(digits)) {
        return u64::from_str_radix(digits, 8).ok();
    }
    if text.starts_with('-') {
        text.parse::<i64>().ok().map(|number| number as u64)
    } else {
        Some(text).filter(|text| is_plain(text))?.parse().ok()
    }
}

/// What the reader of arguments is inside of.
#[derive(Default)]
struct Inside {
    text: bool,
    escaped: bool,
    brackets: Vec<u8>,
    before: u8,
}

impl Inside {
    /// True where the byte stands outside of everything.
    fn step(&mut self, byte: u8) -> bool {
        let before = std::mem::replace(&mut self.before, byte);
        if self.text {
            self.text = byte != b'"' || self.escaped;
            self.escaped = byte == b'\\' && !self.escaped;
            return false;
        }
        let is_top = self.brackets.is_empty();
        match byte {
            b'"' => self.text = true,
            b'(' | b'[' | b'{' => self.brackets.push(byte),
            // Behind a number: where the open file lies.
            b'<' if before.is_ascii_alphanumeric() || self.brackets.contains(&b'<') => self.brackets.push(byte),
            b'>' if before != b'-' && self.brackets.last() == Some(&b'<') => drop(self.brackets.pop()),
            b')' | b']' | b'}' if !is_top => drop(self.brackets.pop()),
            _ => return is_top,
        }
        false
    }
}

fn closing(text: &str) -> Option<usize> {
    let mut inside = Inside::default();
    text.bytes().position(|byte| inside.step(byte) && byte == b')')
}

/// Arguments, one after the other.
pub(crate) fn split(text: &str) -> Vec<&str> {
    let (mut inside, mut from, mut found) = (Inside::default(), 0, Vec::new());
    for (at, byte) in text.bytes().enumerate() {
        if inside.step(byte) && byte == b',' {
            found.push(text[from..at].trim());
            from = at + 1;
        }
    }
    let last = text[from..].trim();
    if !last.is_empty() {
        found.push(last);
    }
    found
}

/// The bytes of a text between quotation marks, whether with \x or as in C; none where it is no
/// text.
pub(crate) fn unquoted(text: &str) -> Option<Vec<u8>> {
    let end = text.strip_prefix('"')?.rfind('"')?;
    Some(unescaped(&text[1..=end]))
}

pub(crate) fn unescaped(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let Some((kind, after)) = rest.split_first() else { break };
        rest = after;
        let simple = match kind {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'v' => 11,
            b'f' => 12,
            b'x' | b'0'..=b'7' => {
                let (radix, digits, from) = if *kind == b'x' {
                    (16, 2, after)
                } else {
                    (8, 3, &text.as_bytes()[text.len() - after.len() - 1..])
                };
                let length = from.iter().take(digits).take_while(|byte| (**byte as char).is_digit(radix)).count();
                rest = &from[length..];
                from[..length]
                    .iter()
                    .fold(0u32, |value, byte| value * radix + (*byte as char).to_digit(radix).unwrap_or(0))
                    as u8
            }
            other => *other,
        };
        bytes.push(simple);
    }
    bytes
}

/// Where an open file lies, of `3<...>` or `AT_FDCWD<...>`; none for pipes, sockets and files
/// without a name.
pub(crate) fn place(argument: &str) -> Option<Vec<u8>> {
    let inside = argument.split_once('<')?.1.strip_suffix('>')?;
    // Devices: their numbers come behind the name.
    let name = inside.split('<').next().unwrap_or_default();
    let name = name.strip_suffix("(deleted)").unwrap_or(name);
    Some(unescaped(name)).filter(|place| place.first() == Some(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(text: &str) -> (i32, String, Vec<String>, Option<Outcome<'_>>, u64) {
        let line = Line::of(text).unwrap();
        let LineKind::Call(called) = line.what else { panic!("{text}") };
        let arguments = split(called.arguments).into_iter().map(str::to_string).collect();
        (line.tid, called.name.to_string(), arguments, called.end.result, called.end.took_ns)
    }

    #[test]
    fn calls_are_taken_apart() {
        let (tid, name, arguments, result, took) = call(
            r#"12 17.508152 openat(AT_FDCWD<\x2f\x74>, "\x2f\x29\x2c", O_RDONLY|O_CLOEXEC) = 3<\x2f\x74> <0.000005>"#,
        );
        assert_eq!((tid, name.as_str(), result, took), (12, "openat", Some(Outcome::Value(3)), 5000));
        assert_eq!(
            (arguments.len(), place(&arguments[0]), unquoted(&arguments[1])),
            (3, Some(b"/t".into()), Some(b"/),".into()))
        );
        let (_, _, arguments, result, _) = call(
            "1.5 newfstatat(3<TCP:[1.2.3.4:5->6.7.8.9:1]>, \"a\\\"),\", {st_mode=S_IFCHR|0666, st_rdev=makedev(0x1, 0x3), ...}, 0) = -1 ENOENT (No such) <0.000004>",
        );
        assert_eq!((arguments.len(), result), (4, Some(Outcome::Error("ENOENT"))));
        let (_, _, arguments, ..) = call("7 1.5 write(1</dev/null<char 1:3>>, \"x\"..., 4) = 4 <0.1>");
        assert_eq!((arguments.len(), place(&arguments[0])), (3, Some(b"/dev/null".into())));
        assert_eq!(call("[pid  9] 1.0 exit_group(0) = ?").3, None);
    }

    #[test]
    fn all_kinds_of_lines_are_known() {
        let what = |text: &'static str| Line::of(text).unwrap().what;
        assert_eq!(what("1 1.0 read(3<a>,  <unfinished ...>"), LineKind::Begun { name: "read", arguments: "3<a>,  " });
        assert!(matches!(
            what("1 1.0 <... read resumed>\"\\x61\", 9) = 1 <0.1>"),
            LineKind::Resumed { name: "read", .. }
        ));
        assert_eq!(what("1 1.0 +++ exited with 7 +++"), LineKind::Ended { code: 7 });
        assert_eq!(what("1 1.0 +++ killed by SIGKILL (core dumped) +++"), LineKind::Ended { code: -1 });
        assert_eq!(what("1 1.0 +++ superseded by execve in pid 5 +++"), LineKind::Superseded { by: 5 });
        assert_eq!(what("1 1.0 --- SIGCHLD {si_signo=SIGCHLD} ---"), LineKind::Other);
    }

    #[test]
    fn damaged_lines_are_refused() {
        for (text, says) in [
            ("", "cut off"),
            ("12 read(3, \"\", 0) = 0 <0.1>", "-ttt"),
            ("12 1.0 read(3, \"\", 0) = 0", "-T"),
            ("12 1.0 read(3, \"", "no end"),
            ("12 1.0 read(3)", "no result"),
            ("12 1.0 read(3) = x <0.1>", "no result"),
            ("0 1.0 read(3) = 0 <0.1>", "no thread"),
            ("99999999999 1.0 read(3) = 0 <0.1>", "no thread"),
            ("12 99999999999999999999.0 read(3) = 0 <0.1>", "-ttt"),
            ("12 1.0 hello", "no call"),
            ("12 1.0 +++ what +++", "not known"),
        ] {
            let error = format!("{:#}", Line::of(text).expect_err(text));
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn numbers_and_texts_are_those_that_strace_means() {
        let rows = [
            ("10", Some(10)),
            ("0x10", Some(16)),
            ("0644", Some(0o644)),
            ("-1", Some(u64::MAX)),
            ("0", Some(0)),
            ("+1", None),
            ("0x+1", None),
            ("", None),
        ];
        rows.into_iter().for_each(|(text, wanted)| assert_eq!(number(text), wanted, "{text}"));
        assert_eq!(unescaped(r"a\x41\n\101\1z\\"), b"aA\nA\x01z\\");
        assert_eq!(unescaped(r"\"), b"");
        assert_eq!(unquoted(r#""\x61"..."#), Some(b"a".into()));
    }
}
