//! Shapes and text as SVG. Every text that comes from elsewhere is escaped here.

use crate::wording::text::escaped;
use std::fmt::Write;

/// A font's average width per character, as a share of its size; a little too wide on purpose.
const CHARACTER: f64 = 0.56;

#[derive(Default)]
pub struct Drawing {
    body: String,
}

impl Drawing {
    pub fn text(&mut self, x: f64, y: f64, size: f64, colour: &str, more: &str, text: &str) {
        if !text.is_empty() {
            let text = escaped(text);
            self.put(format_args!(
                r#"<text x="{x:.1}" y="{y:.1}" font-size="{size}" fill="{colour}" {more}>{text}</text>"#
            ));
        }
    }

    /// Text that may have been cut, with all of it for who points at it.
    pub fn text_with_title(&mut self, x: f64, y: f64, size: f64, colour: &str, text: &str, whole: &str) {
        if !text.is_empty() {
            let (text, whole) = (escaped(text), escaped(whole));
            let open = format_args!(r#"<text x="{x:.1}" y="{y:.1}" font-size="{size}" fill="{colour}">"#).to_string();
            self.put(format_args!("{open}<title>{whole}</title>{text}</text>"));
        }
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.put(format_args!(
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{colour}" stroke-width="{width}"/>"#
        ));
    }

    pub fn rectangle(&mut self, x: f64, y: f64, width: f64, height: f64, colour: &str) {
        self.put(format_args!(
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{colour}"/>"#
        ));
    }

    pub fn whisker(&mut self, from: f64, to: f64, y: f64, colour: &str) {
        self.line((from, y), (to, y), colour, 2.0);
        self.line((from, y - 4.0), (from, y + 4.0), colour, 2.0);
        self.line((to, y - 4.0), (to, y + 4.0), colour, 2.0);
    }

    pub fn dot(&mut self, x: f64, y: f64, colour: &str, hollow: bool) {
        let fill = if hollow { "#ffffff" } else { colour };
        self.put(format_args!(
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="4.6" fill="{fill}" stroke="{colour}" stroke-width="2"/>"#
        ));
    }

    pub fn diamond(&mut self, x: f64, y: f64, colour: &str, hollow: bool) {
        let fill = if hollow { "#ffffff" } else { colour };
        let path =
            format!("M{:.1} {y:.1} L{x:.1} {:.1} L{:.1} {y:.1} L{x:.1} {:.1} Z", x - 6.0, y - 6.0, x + 6.0, y + 6.0);
        self.put(format_args!(r#"<path d="{path}" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>"#));
    }

    pub fn finish(self, width: f64, height: f64, title: &str) -> String {
        let (title, body) = (escaped(title), self.body);
        format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" role="img" font-family="system-ui, 'Segoe UI', 'Helvetica Neue', 'DejaVu Sans', sans-serif" style="font-variant-numeric: tabular-nums">
<title>{title}</title>
<rect width="100%" height="100%" fill="#ffffff"/>
{body}</svg>
"##
        )
    }

    fn put(&mut self, shape: std::fmt::Arguments) {
        writeln!(self.body, "{shape}").expect("a string takes all");
    }
}

fn fitting(room: f64, size: f64) -> usize {
    (room / (size * CHARACTER)).max(4.0) as usize
}

/// As much as fits, with an ellipsis.
pub fn cut(text: &str, room: f64, size: f64) -> String {
    let most = fitting(room, size);
    if text.chars().count() <= most {
        text.to_string()
    } else {
        text.chars().take(most - 1).collect::<String>() + "…"
    }
}

/// As much as fits of both ends: names often differ at their end.
pub fn cut_middle(text: &str, room: f64, size: f64) -> String {
    let (most, length) = (fitting(room, size), text.chars().count());
    if length <= most {
        return text.to_string();
    }
    let end = (most - 1) / 2;
    let begin: String = text.chars().take(most - 1 - end).collect();
    begin + "…" + &text.chars().skip(length - end).collect::<String>()
}

/// Broken at blanks into lines that fit.
pub fn wrap(text: &str, room: f64, size: f64) -> Vec<String> {
    let most = fitting(room, size);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > most {
            lines.push(cut(word, room, size));
        } else {
            *line += if line.is_empty() { "" } else { " " };
            *line += word;
        }
    }
    lines
}
