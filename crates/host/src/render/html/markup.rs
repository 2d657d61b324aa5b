//! Text in markup. All that comes from a journal passes through [`text`] or through maud's own
//! escapes: nothing of it may be read as markup, script or style.

use crate::wording::text::escaped;
use maud::{Markup, PreEscaped, html};
use std::fmt::Write;

/// Escaped, and a number stays with its per cent.
pub(crate) fn text(text: &str) -> Markup {
    PreEscaped(escaped(text).replace(" %", "\u{a0}%"))
}

/// Lines as a list; nothing where there are none.
pub(crate) fn list(class: Option<&str>, lines: &[String]) -> Markup {
    html! {
        @if !lines.is_empty() {
            ul class=[class] { @for line in lines { li { (text(line)) } } }
        }
    }
}

/// A paragraph in small print; nothing where there is no text.
pub(crate) fn note(words: &str) -> Markup {
    html! { @if !words.is_empty() { p.note { (text(words)) } } }
}

/// Nothing where there is no text.
pub(crate) fn small(words: &str) -> Markup {
    html! { @if !words.is_empty() { small { (text(words)) } } }
}

/// JSON for a script element of a data type: the parser of HTML looks for `</script` and `<!--` in
/// it, and old JavaScript ends lines at U+2028 and U+2029.
pub(crate) fn json_in_script(value: &serde_json::Value) -> Markup {
    let mut safe = String::new();
    for c in value.to_string().chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                write!(safe, "\\u{:04x}", u32::from(c)).expect("a string takes all")
            }
            c => safe.push(c),
        }
    }
    PreEscaped(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_markup() {
        assert_eq!(
            escaped("<a href='x' b=\"y\">&`\u{1b}[2J"),
            "&lt;a href=&#39;x&#39; b=&quot;y&quot;&gt;&amp;&#96; [2J"
        );
        let lists =
            html! { p title=(text("\"><b>")) { (text("a<b")) } (list(None, &["</ul>".to_string()])) (note("")) };
        assert_eq!(lists.0, "<p title=\"&quot;&gt;&lt;b&gt;\">a&lt;b</p><ul><li>&lt;/ul&gt;</li></ul>");
    }

    #[test]
    fn json_ends_no_script() {
        let value = serde_json::json!({ "</script><!--": "\u{2028}&\"" });
        let safe = json_in_script(&value).0;
        assert!(!safe.contains(['<', '>', '&', '\u{2028}']), "{safe}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
    }
}
