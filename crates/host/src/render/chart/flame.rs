//! Instructions of a target by owner and function: a flame graph of the explanation of `pickfs
//! why`.

use super::painter::{Font, Painter};
use super::series::Chart;
use super::shapes;
use crate::analysis::Model;
use crate::analysis::owners::Flame;
use crate::wording::text::escaped;

const WIDTH: f64 = 1000.0;
const ROW: f64 = 24.0;
/// A narrower box has no name in it.
const NAMED: f64 = 40.0;

/// Of each target of a work that was explained.
pub(crate) fn flames(model: &Model) -> Vec<Chart> {
    model.why.iter().flat_map(|kept| &kept.flames).map(flame).collect()
}

fn flame(of: &Flame) -> Chart {
    let mut plot = Painter::new(WIDTH, 3.0 * ROW + 8.0);
    let whole = of.owners.iter().map(|(_, functions)| sum(functions)).sum::<u64>().max(1) as f64;
    let mut draw = |from: f64, instructions: u64, row: f64, hue: usize, name: &str| {
        let (x, width) = (from / whole * WIDTH, instructions as f64 / whole * WIDTH);
        let share = instructions as f64 / whole * 100.0;
        plot.put(format_args!(
            "<g class=\"box h{hue}\" fill-opacity=\"0.3\"><title>{}: {share:.1} %</title>",
            escaped(name)
        ));
        plot.rectangle((x, 4.0 + row * ROW), ((width - 0.5).max(0.2), ROW - 1.0), "");
        plot.put(format_args!("</g>"));
        if width > NAMED {
            plot.text_cut((x + 3.0, 20.0 + row * ROW), &Font::new(11.0, "ink"), width - 14.0, name);
        }
    };
    draw(0.0, whole as u64, 2.0, 5, &of.target);
    let mut at = 0.0;
    for (place, (owner, functions)) in of.owners.iter().enumerate() {
        let hue = place % 5;
        draw(at, sum(functions), 1.0, hue, owner);
        for (function, instructions) in functions {
            draw(at, *instructions, 0.0, hue, function);
            at += *instructions as f64;
        }
    }
    let Flame { work, target, .. } = of;
    Chart {
        name: shapes::file_name(&["flame", work, target]),
        title: format!("Instructions of {target} ({work})"),
        about:
            "Functions, above the owner that they work for; as wide as their share of all instructions in the phases."
                .into(),
        phase: String::new(),
        plot,
        places: Vec::new(),
    }
}

fn sum(functions: &[(String, u64)]) -> u64 {
    functions.iter().map(|(_, instructions)| instructions).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::owners::{Breakdown, Kept, OfFunction};

    #[test]
    fn boxes_are_as_wide_as_their_shares_and_lie_on_their_owners() {
        let rows = [("VFS", "read", 600), ("VFS", "write", 150), ("<b>", "crc32c", 249), ("<b>", "tiny", 1)];
        let functions = rows.map(|(owner, function, instructions)| {
            ((owner.to_string(), function.to_string()), OfFunction { instructions, ns: 0.0 })
        });
        let all = Breakdown { functions: functions.into(), ..Breakdown::default() };
        let flame = Flame::of("tree", "ext4", &all);
        let shown: Vec<(&str, u64)> = flame.owners.iter().map(|(owner, of)| (owner.as_str(), sum(of))).collect();
        assert_eq!(shown, [("VFS", 750), ("<b>", 250)], "the largest first");
        assert_eq!(flame.owners[1].1, [("crc32c".to_string(), 249), ("smaller ones".to_string(), 1)]);
        let kept = Kept { flames: vec![flame], ..Kept::default() };
        let charts = flames(&Model { why: Some(kept), ..Model::default() });
        let [chart] = &charts[..] else { panic!("{} charts", charts.len()) };
        let body = &chart.plot.body;
        assert_eq!(body.matches("<rect").count(), 1 + 2 + 4);
        assert!(body.contains("&lt;b&gt;: 25.0 %") && !body.contains("<b>"), "{body}");
        // The second owner's functions begin where it does: at 75 % of 1000.
        assert_eq!(body.matches("<rect x=\"750.0\"").count(), 2, "{body}");
        assert!(body.contains("width=\"599.5\""), "60 % of 1000, less the gap: {body}");
    }
}
