//! The lines of a journal, read one after the other in a bounded amount of memory.

use super::Record;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::io::{BufRead, Read, Result};

/// Of one line, in bytes, which as a record may take twenty times as many. The longest that we
/// know, a histogram, has 100 KB; stores take lines up to this length too.
pub const LONGEST_LINE: u64 = 4 << 20;

/// How many bytes are whole lines: a crash tears the last one.
pub fn whole_lines(text: &[u8]) -> usize {
    text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

pub(crate) struct Lines<R> {
    source: R,
    text: Vec<u8>,
    number: u64,
}

/// One that is too long has only its start.
pub(crate) struct Line<'a> {
    /// From 1.
    pub number: u64,
    text: &'a [u8],
    is_whole: bool,
    is_too_long: bool,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(source: R) -> Lines<R> {
        Lines { source, text: Vec::new(), number: 0 }
    }

    pub(crate) fn next(&mut self) -> Result<Option<Line<'_>>> {
        self.text.clear();
        if self.text.capacity() > KEPT {
            self.text.shrink_to(KEPT);
        }
        let read = self.source.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut self.text)? as u64;
        self.number += 1;
        let mut is_whole = self.text.ends_with(b"\n");
        let is_too_long = read == LONGEST_LINE && !is_whole;
        if is_too_long {
            is_whole = self.skip_rest()?;
        }
        let line = Line { number: self.number, text: &self.text, is_whole, is_too_long };
        Ok((read > 0).then_some(line))
    }

    /// True if the line has an end.
    fn skip_rest(&mut self) -> Result<bool> {
        loop {
            let found = self.source.fill_buf()?;
            let (end, length) = (found.iter().position(|byte| *byte == b'\n'), found.len());
            self.source.consume(end.map_or(length, |end| end + 1));
            if end.is_some() || length == 0 {
                return Ok(end.is_some());
            }
        }
    }
}

/// Memory that is kept for a line, after a long one.
const KEPT: usize = 1 << 20;

impl Line<'_> {
    pub(crate) fn text(&self) -> &[u8] {
        self.text
    }

    pub(crate) fn record(&self) -> Option<Record> {
        if self.is_too_long { None } else { serde_json::from_slice(self.text).ok() }
    }

    /// Of a line that is no record. A whole object of another kind is none: a newer pickfs may have
    /// more of them.
    pub(crate) fn may_be_a_step(&self) -> bool {
        let keys = serde_json::from_slice::<BTreeMap<String, IgnoredAny>>(self.text);
        let is_of_another_kind = !self.is_too_long && keys.is_ok_and(|keys| !keys.contains_key("step"));
        self.is_whole && !self.text.trim_ascii().is_empty() && !is_of_another_kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether it is a record, and whether it may have been a step.
    fn lines(text: &[u8]) -> Vec<(bool, bool)> {
        let mut lines = Lines::new(text);
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            assert_eq!(line.number, found.len() as u64 + 1);
            found.push((line.record().is_some(), line.may_be_a_step()));
        }
        found
    }

    #[test]
    fn what_may_have_been_a_step_is_told_from_what_cannot() {
        let unknown = r#"{"step":{"scope":"run","number":1,"says":"s","undo":{"shell":["id"]}}}"#;
        for (text, may_be) in [
            (unknown, true),
            ("{\"step\":{\"sco\0\0\0", true),
            ("not JSON at all", true),
            ("[]", true),
            (" ", false),
            (r#"{"undone":{"scope":"run","number":1}}{"step":{}}"#, true),
            (r#"{"weather":{"rain":true}}"#, false),
            (r#"{"sample":{"cell":7}}"#, false),
        ] {
            assert_eq!(lines(format!("{text}\n").as_bytes()), [(false, may_be)], "{text}");
            assert_eq!(lines(text.as_bytes()), [(false, false)], "torn: {text}");
        }
    }

    /// It is passed over, not read into memory; what follows is a line again.
    #[test]
    fn a_line_may_be_too_long() {
        let look = br#"{"look":{"round":1,"leaving":[]}}"#;
        let long = |more: u64| vec![b' '; (LONGEST_LINE - look.len() as u64 - 1 + more) as usize];
        for (more, is_record) in [(0, true), (1, false)] {
            let text = [&look[..], &long(more), b"\n", look, b"\n"].concat();
            assert_eq!(lines(&text), [(is_record, !is_record), (true, false)]);
        }
        let mut endless = Lines::new(std::io::BufReader::new(std::io::repeat(b'x').take(LONGEST_LINE * 5)));
        assert!(!endless.next().unwrap().unwrap().may_be_a_step());
        assert!(endless.text.capacity() as u64 <= 2 * LONGEST_LINE, "{}", endless.text.capacity());
        assert!(endless.next().unwrap().is_none());
    }
}
