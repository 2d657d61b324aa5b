//! The one painter of charts, as SVG: text, lines and the shapes of targets and findings. Colours
//! and shapes are classes and symbols, which the page and pictures that stand alone define alike.
//! Every text is escaped here.

use super::scale::Scale;
use super::shapes;
use crate::wording::text::{escaped, lines};
use std::fmt::Write;

/// A font's average width per character, as a share of its size; a little too wide on purpose.
const CHARACTER: f64 = 0.56;

/// Hues; shapes and dashes go by eights, so that two targets that share a hue do not share the
/// shape.
pub(crate) const HUES: usize = 7;
pub(crate) const SHAPES: usize = 8;

/// How a text looks.
#[derive(Clone, Copy)]
pub(crate) struct Font {
    /// In pixels.
    pub size: f64,
    /// A class of [`shapes::STYLE_ALONE`].
    pub class: &'static str,
    pub anchor: &'static str,
}

impl Font {
    pub(crate) const fn new(size: f64, class: &'static str) -> Font {
        Font { size, class, anchor: "start" }
    }

    pub(crate) const fn centred(size: f64) -> Font {
        Font { size, class: "", anchor: "middle" }
    }
}

/// A picture as it grows, or the inside of one.
pub(crate) struct Painter {
    pub width: f64,
    pub height: f64,
    pub body: String,
}

/// Room around a plot for labels.
pub(crate) const LEFT: f64 = 62.0;
pub(crate) const RIGHT: f64 = 14.0;
pub(crate) const TOP: f64 = 12.0;
pub(crate) const BOTTOM: f64 = 40.0;

impl Painter {
    pub(crate) fn new(width: f64, height: f64) -> Painter {
        Painter { width, height, body: String::new() }
    }

    pub(crate) fn put(&mut self, shape: std::fmt::Arguments) {
        self.body.write_fmt(shape).expect("a string takes all");
    }

    pub(crate) fn text(&mut self, (x, y): (f64, f64), font: &Font, text: &str) {
        if !text.is_empty() {
            let Font { size, class, anchor } = font;
            let text = escaped(text);
            self.put(format_args!(
                "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" class=\"{class}\" text-anchor=\"{anchor}\">{text}</text>\n"
            ));
        }
    }

    /// As much of a text as fits, with all of it as a tooltip.
    pub(crate) fn text_cut(&mut self, at: (f64, f64), font: &Font, room: f64, text: &str) {
        self.titled(at, font, &cut(text, room, font.size), text);
    }

    /// As much as fits of both ends: names often differ at their end.
    pub(crate) fn text_cut_in_the_middle(&mut self, at: (f64, f64), font: &Font, room: f64, text: &str) {
        self.titled(at, font, &cut_middle(text, room, font.size), text);
    }

    fn titled(&mut self, at: (f64, f64), font: &Font, shown: &str, whole: &str) {
        if shown == whole {
            return self.text(at, font, whole);
        }
        self.put(format_args!("<g><title>{}</title>", escaped(whole)));
        self.text(at, font, shown);
        self.put(format_args!("</g>\n"));
    }

    /// Lines of a paragraph, `leading` apart; where the next one would be.
    pub(crate) fn paragraph(&mut self, (x, y): (f64, f64), font: &Font, leading: f64, lines: &[String]) -> f64 {
        let below = (0..).map(|line| y + leading * f64::from(line));
        lines.iter().zip(below).for_each(|(line, y)| self.text((x, y), font, line));
        y + leading * lines.len() as f64
    }

    pub(crate) fn rectangle(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), class: &str) {
        self.put(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" class=\"{class}\"/>"
        ));
    }

    pub(crate) fn upright(&mut self, x: f64, (top, bottom): (f64, f64), class: &str) {
        self.put(format_args!("<path class=\"{class}\" d=\"M{x:.1} {top}V{bottom}\"/>"));
    }

    /// A finding's symbol, on a line from one end of an interval to the other.
    pub(crate) fn finding(&mut self, finding: &str, (from, at, to): (f64, f64, f64), y: f64) {
        self.put(format_args!(
            "<g class=\"f f-{finding}\"><path d=\"M{from:.1} {y:.1}H{to:.1}\"/><use href=\"#f-{finding}\" x=\"{at:.1}\" \
             y=\"{y:.1}\"/></g>\n"
        ));
    }

    /// Lines across at labelled values, and the name of the axis below.
    pub(crate) fn x_axis(&mut self, scale: &Scale, ticks: &[(f64, String)], name: &str) {
        let (top, bottom) = (TOP, self.height - BOTTOM);
        for (value, label) in ticks {
            let x = scale.at(*value);
            self.upright(x, (top, bottom), "g");
            self.put(format_args!(
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 15.0,
                escaped(label)
            ));
        }
        let middle = (LEFT + self.width - RIGHT) / 2.0;
        self.put(format_args!(
            "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n",
            self.height - 6.0,
            escaped(name)
        ));
    }

    /// Lines along at labelled values.
    pub(crate) fn y_axis(&mut self, scale: &Scale, ticks: &[(f64, String)]) {
        let right = self.width - RIGHT;
        for (value, label) in ticks {
            let y = scale.at(*value);
            self.put(format_args!("<path class=\"g\" d=\"M{LEFT} {y:.1}H{right:.1}\"/>"));
            self.put(format_args!(
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                y + 3.5,
                escaped(label)
            ));
        }
        self.put(format_args!("\n"));
    }

    /// Opens the shapes of a target, `place` being its place among the shown ones.
    pub(crate) fn open_series(&mut self, target: usize, place: usize) {
        self.put(format_args!("<g class=\"{}\" data-t=\"{target}\">", series_class(place)));
    }

    pub(crate) fn close_series(&mut self) {
        self.put(format_args!("</g>\n"));
    }

    pub(crate) fn line(&mut self, points: &[(f64, f64)], class: &str) {
        if points.len() > 1 {
            let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
            self.put(format_args!("<path class=\"{class}\" d=\"M{}\"/>", path.join("L")));
        }
    }

    /// A marker with a value as its tooltip.
    pub(crate) fn marker_of(&mut self, (x, y): (f64, f64), place: usize, value: &str) {
        self.put(format_args!(
            "<use href=\"#k{}\" x=\"{x:.1}\" y=\"{y:.1}\"><title>{}</title></use>",
            place % SHAPES,
            escaped(value)
        ));
    }

    pub(crate) fn marker(&mut self, (x, y): (f64, f64), place: usize) {
        self.put(format_args!("<use href=\"#k{}\" x=\"{x:.1}\" y=\"{y:.1}\"/>", place % SHAPES));
    }

    /// A separate picture, with all that the page would give it: colours and shapes. `top` is where
    /// it begins.
    pub(crate) fn alone(self, top: f64, title: &str, about: &str) -> String {
        let Painter { width, height, body } = self;
        let (title, about) = (escaped(title), escaped(about));
        let about = if about.is_empty() { String::new() } else { format!("<desc>{about}</desc>") };
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 {top} \
             {width:.0} {height:.0}\" class=\"chart\" role=\"img\"><title>{title}</title>{about}<style>{}</style><defs>{}{}\
             </defs><rect y=\"{top}\" width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{body}</svg>\n",
            shapes::STYLE_ALONE,
            shapes::KEYS,
            shapes::FINDINGS
        )
    }
}

/// Hue and dash of the target at that place.
pub(crate) fn series_class(place: usize) -> String {
    format!("s h{} d{}", place % HUES, place % SHAPES)
}

fn fitting(room: f64, size: f64) -> usize {
    (room / (size * CHARACTER)).max(4.0) as usize
}

/// As much as fits, with an ellipsis.
pub(crate) fn cut(text: &str, room: f64, size: f64) -> String {
    let most = fitting(room, size);
    if text.chars().count() <= most {
        text.to_string()
    } else {
        text.chars().take(most - 1).collect::<String>() + "…"
    }
}

/// As much as fits of both ends: names often differ at their end.
pub(crate) fn cut_middle(text: &str, room: f64, size: f64) -> String {
    let (most, length) = (fitting(room, size), text.chars().count());
    if length <= most {
        return text.to_string();
    }
    let end = (most - 1) / 2;
    let begin: String = text.chars().take(most - 1 - end).collect();
    begin + "…" + &text.chars().skip(length - end).collect::<String>()
}

/// Broken at blanks into lines that fit.
pub(crate) fn wrap(text: &str, room: f64, size: f64) -> Vec<String> {
    lines(text, fitting(room, size)).iter().map(|line| cut(line, room, size)).collect()
}
