//! Text into markup. All that comes from a journal passes here: nothing of it may be read as markup, script or style.

use crate::wording::text::escaped;
use std::fmt::Write;

/// A page, or a piece of one, as it grows.
#[derive(Default)]
pub struct Markup(pub String);

impl Markup {
    /// Markup of our own: never what comes from elsewhere.
    pub fn raw(&mut self, markup: &str) -> &mut Markup {
        self.0.push_str(markup);
        self
    }

    pub fn text(&mut self, text: &str) -> &mut Markup {
        self.0.push_str(&unbroken(text));
        self
    }

    pub fn put(&mut self, shape: std::fmt::Arguments) -> &mut Markup {
        self.0.write_fmt(shape).expect("a string takes all");
        self
    }

    /// `<name>text</name>`; nothing where there is no text. `open` may have attributes.
    pub fn element(&mut self, open: &str, text: &str) -> &mut Markup {
        if text.is_empty() {
            return self;
        }
        let name = open.split(' ').next().unwrap_or(open);
        self.put(format_args!("<{open}>{}</{name}>", unbroken(text)))
    }

    pub fn list(&mut self, open: &str, lines: &[String]) -> &mut Markup {
        if lines.is_empty() {
            return self;
        }
        self.put(format_args!("<{open}>"));
        lines.iter().for_each(|line| {
            self.element("li", line);
        });
        let name = open.split(' ').next().unwrap_or(open);
        self.put(format_args!("</{name}>\n"))
    }
}

/// Escaped, and a number stays with its per cent.
fn unbroken(text: &str) -> String {
    escaped(text).replace(" %", "\u{a0}%")
}

/// JSON for a script element of a data type: the parser of HTML looks for `</script` and `<!--` in it, and old
/// JavaScript ends lines at U+2028 and U+2029.
pub fn json_in_script(value: &serde_json::Value) -> String {
    let mut safe = String::new();
    for c in value.to_string().chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                write!(safe, "\\u{:04x}", u32::from(c)).expect("a string takes all")
            }
            c => safe.push(c),
        }
    }
    safe
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
        let mut page = Markup::default();
        page.element("p class=x", "a<b").list("ul", &["</ul>".to_string()]).element("p", "");
        assert_eq!(page.0, "<p class=x>a&lt;b</p><ul><li>&lt;/ul&gt;</li></ul>\n");
    }

    #[test]
    fn json_ends_no_script() {
        let value = serde_json::json!({ "</script><!--": "\u{2028}&\"" });
        let safe = json_in_script(&value);
        assert!(!safe.contains(['<', '>', '&', '\u{2028}']), "{safe}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
    }
}
