//! What targets and findings look like, and small words for pictures.

/// Symbols k0 to k7: a target's shape, distinct without its hue.
pub(crate) const KEYS: &str = concat!(
    "<g id=\"k0\"><circle r=\"3.6\"/></g>",
    "<g id=\"k1\"><path d=\"M-3.4-3.4H3.4V3.4H-3.4Z\"/></g>",
    "<g id=\"k2\"><path d=\"M0-4.4L4.2 3.2H-4.2Z\"/></g>",
    "<g id=\"k3\"><path d=\"M0-4.8L4.8 0L0 4.8L-4.8 0Z\"/></g>",
    "<g id=\"k4\"><path d=\"M0 4.4L4.2-3.2H-4.2Z\"/></g>",
    "<g id=\"k5\"><path d=\"M-1.4-4.4H1.4V-1.4H4.4V1.4H1.4V4.4H-1.4V1.4H-4.4V-1.4H-1.4Z\"/></g>",
    "<g id=\"k6\"><path d=\"M-3-4.6L0-1.6L3-4.6L4.6-3L1.6 0L4.6 3L3 4.6L0 1.6L-3 4.6L-4.6 3L-1.6 0L-4.6-3Z\"/></g>",
    "<g id=\"k7\"><path d=\"M-4.6-1.8H4.6V1.8H-4.6Z\"/></g>",
);

/// Symbols of findings: triangles point to where the interval lies; filled is sure.
pub(crate) const FINDINGS: &str = concat!(
    "<g id=\"f-less\"><path d=\"M-6.5 0L4.5-6V6Z\"/></g>",
    "<g id=\"f-more\"><path d=\"M6.5 0L-4.5-6V6Z\"/></g>",
    "<g id=\"f-maybe-less\"><path class=\"hollow\" d=\"M-6 0L4-5.4V5.4Z\"/></g>",
    "<g id=\"f-maybe-more\"><path class=\"hollow\" d=\"M6 0L-4-5.4V5.4Z\"/></g>",
    "<g id=\"f-tie\"><path d=\"M-4.5-4.5H4.5V4.5H-4.5Z\"/></g>",
    "<g id=\"f-open\"><circle class=\"hollow\" r=\"4.6\"/></g>",
    "<g id=\"f-few\"><path class=\"hollow\" d=\"M-5-5L5 5M-5 5L5-5\"/></g>",
    "<g id=\"f-reference\"><path d=\"M0-6.5L6.5 0L0 6.5L-6.5 0Z\"/></g>",
);

/// Findings with their symbols, in words.
pub(crate) const MEANINGS: [(&str, &str); 8] = [
    ("less", "clearly less"),
    ("more", "clearly more"),
    ("maybe-less", "probably less, may be negligible (~)"),
    ("maybe-more", "probably more, may be negligible (~)"),
    ("tie", "a tie (=)"),
    ("open", "cannot be distinguished (?)"),
    ("few", "too few rounds"),
    ("reference", "the reference"),
];

/// The page's rules for charts, in light colours, for a picture that has no page.
pub(crate) const STYLE_ALONE: &str = concat!(
    ".chart{font:11px system-ui,'Segoe UI','DejaVu Sans',sans-serif}text{fill:#57606a}",
    ".name{fill:#16191d;font-size:14px;font-weight:600}.g{stroke:#dfe4e8;fill:none}.one{stroke:#7b8591;fill:none}",
    ".l{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}.thin{stroke-width:1.2}",
    ".ring{fill:none;stroke:currentColor;stroke-width:1.5}.s use{fill:currentColor}",
    ".h0{color:#0072b2}.h1{color:#c44f00}.h2{color:#008a64}.h3{color:#b0568a}.h4{color:#9a6b00}.h5{color:#16191d}",
    ".h6{color:#2a8cc4}.d1 .l{stroke-dasharray:7 3}.d2 .l{stroke-dasharray:2 3}.d3 .l{stroke-dasharray:9 3 2 3}",
    ".d4 .l{stroke-dasharray:4 4}.d5 .l{stroke-dasharray:12 4}.d6 .l{stroke-dasharray:1 4}.d7 .l{stroke-dasharray:7 3 2 3 2 3}",
    ".s .solid{stroke-dasharray:none}.ink{fill:#16191d}.bold{font-weight:600}.care{fill:#b84500}.band{fill:#e9edf1}",
    ".f{color:#57606a;fill:currentColor;stroke:currentColor;stroke-width:2.2;stroke-linecap:round}.f use{stroke-width:1.8}",
    ".box{fill:currentColor}.f-tie{color:#57606a}",
    ".f-less,.f-maybe-less{color:#0067a5}.f-more,.f-maybe-more{color:#b84500}.hollow,.paper{fill:#fff}",
);

/// "rounds-tree-tar-read": of what is no letter or digit nothing is left, so that no name leaves
/// its folder.
pub(crate) fn file_name(words: &[&str]) -> String {
    const LONGEST: usize = 80;
    let mut name = String::new();
    for c in words.join("-").to_lowercase().chars() {
        match c {
            c if c.is_ascii_alphanumeric() => name.push(c),
            _ if !name.is_empty() && !name.ends_with('-') => name.push('-'),
            _ => {}
        }
    }
    name.truncate(LONGEST);
    name.trim_end_matches('-').to_string()
}

/// Without values that lie too near to the one before; one stays in any case.
pub(crate) fn apart(values: Vec<f64>, at: impl Fn(f64) -> f64, room: f64) -> Vec<f64> {
    let one = values.iter().position(|value| *value == 1.0);
    let (below, above) = values.split_at(one.unwrap_or(0));
    let mut kept: Vec<f64> = Vec::new();
    for value in above {
        if kept.last().is_none_or(|last| (at(*value) - at(*last)).abs() >= room) {
            kept.push(*value);
        }
    }
    for value in below.iter().rev() {
        if kept.first().is_none_or(|first| (at(*first) - at(*value)).abs() >= room) {
            kept.insert(0, *value);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::chart::axis::ratio_label;

    #[test]
    fn names_of_files_stay_in_their_folder() {
        assert_eq!(file_name(&["rounds", "../../etc", "Tar read\0/x"]), "rounds-etc-tar-read-x");
        assert_eq!(file_name(&["äöü"]), "");
        assert_eq!(file_name(&["a", &"b".repeat(1000)]).len(), 80);
    }

    #[test]
    fn ticks_keep_their_distance_and_one() {
        let kept = apart(vec![0.9, 0.99, 1.0, 1.01, 1.2, 1.25], |ratio| ratio * 100.0, 10.0);
        assert_eq!(kept, [0.9, 1.0, 1.2]);
        assert_eq!(apart(vec![], |ratio| ratio, 1.0), Vec::<f64>::new());
        assert_eq!([0.05, 1.0, 1.25, 12.0].map(ratio_label), ["×0.05", "×1", "×1.25", "×12"]);
    }
}
