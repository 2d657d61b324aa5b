//! Text that others wrote, fit for a screen: plans and journals may have been written to steer a
//! terminal or a log. It must not know whose text it is.
//!
//! Must not know: `process`.

/// A control character, or one that turns or hides text.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

/// Text on one line: what steers a terminal is shown as an escape, and nothing is left out.
pub fn visible(text: &str) -> String {
    let escape = |c: char| if steers(c) { c.escape_default().to_string() } else { c.to_string() };
    without_log_commands(&text.chars().map(escape).collect::<String>())
}

/// No line of another program or machine is longer in ours, in characters.
const LONGEST_LINE: usize = 2000;

/// A line of another program or machine, as [`visible`] has it; a long one is cut.
pub fn visible_line(line: &str) -> String {
    let shown = visible(&line.trim().chars().take(LONGEST_LINE).collect::<String>());
    if line.trim().chars().nth(LONGEST_LINE).is_some() { shown + "…" } else { shown }
}

/// Several lines, each as [`visible`] has it.
pub fn visible_lines(text: &str) -> String {
    text.split('\n').map(visible).collect::<Vec<_>>().join("\n")
}

/// JSON that says the same, where what steers a terminal stands as an escape. All of it but the
/// breaks of lines lies inside of strings.
pub fn visible_json(json: &str) -> String {
    let mut units = [0; 2];
    let mut escape = |c: char| {
        if steers(c) && c != '\n' {
            c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect()
        } else {
            c.to_string()
        }
    };
    let shown: String = json.chars().map(&mut escape).collect();
    shown.replace("##[", "#\\u0023[")
}

/// Runners of GitHub obey words such as `::stop-commands::` at the start of a line, and `##[group]`
/// anywhere, those of Azure `##vso[task.setvariable]`. A blank between makes them text.
pub fn without_log_commands(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let (before, rest) = (made.chars().last(), &text[at..]);
        let begins = before.is_none_or(char::is_whitespace);
        let is_command = begins && rest.starts_with("::") && rest[2..].starts_with(|c: char| c.is_ascii_alphabetic());
        if is_command || rest.starts_with("##[") || rest.starts_with("##vso[") {
            made.extend([c, ' '])
        } else {
            made.push(c)
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_or_a_log_is_shown() {
        let rows = [
            ("a b é", "a b é"),
            ("a\u{1b}[2J\u{9b}31m", "a\\u{1b}[2J\\u{9b}31m"),
            ("a\nb\tc\r", "a\\nb\\tc\\r"),
            ("\u{202e}evil\u{2066}\u{61c}", "\\u{202e}evil\\u{2066}\\u{61c}"),
            ("::set-output name=a::b", ": :set-output name=a::b"),
            ("see ::add-mask::x", "see : :add-mask::x"),
            ("at ::1, std::path, a::b", "at ::1, std::path, a::b"),
            ("x##[error]y", "x# #[error]y"),
            ("a ##vso[task]c ## d", "a # #vso[task]c ## d"),
            ("Grüße: 5 % [::1]", "Grüße: 5 % [::1]"),
        ];
        for (text, wanted) in rows {
            assert_eq!(visible(text), wanted, "{text:?}");
        }
        assert_eq!(visible_lines("a\u{7}\n::debug::b"), "a\\u{7}\n: :debug::b");
    }

    #[test]
    fn a_long_line_is_cut() {
        assert_eq!(visible_line(&"x".repeat(1 << 20)).chars().count(), LONGEST_LINE + 1);
        assert_eq!(visible_line(" ::debug::a\n"), ": :debug::a");
    }

    #[test]
    fn json_says_the_same() {
        let value = serde_json::json!({ "a\u{202e}": ["\u{1b}\u{9b}\u{7f}\u{e0041}", "é\n", "::x ##[error]"] });
        let shown = visible_json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(!shown.chars().any(|c| steers(c) && c != '\n') && !shown.contains("##["), "{shown:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
