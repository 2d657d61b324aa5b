//! What makes a difference, part by part: from the time of the reference to that of the target.

use super::painter::{BOTTOM, Font, Painter, RIGHT, TOP};
use super::scale::{Kind, Scale};
use super::series::{Chart, labelled};
use super::shapes;
use crate::analysis::Model;
use crate::analysis::owners::{Cause, Pair};
use crate::wording::text::escaped;
use crate::wording::why;
use pickfs_system::units::Unit;

const WIDTH: f64 = 640.0;
const ROW: f64 = 22.0;
/// Room for the names of parts.
const NAMES: f64 = 250.0;
/// Room for percentages behind the bars.
const SHARES: f64 = 60.0;
/// All others are one bar.
const MOST: usize = 8;
/// Parts below this share of the reference's time are among the others.
const LEAST: f64 = 0.005;

/// A bar from one time to another, and what stands behind it.
struct Bar {
    name: String,
    from: f64,
    to: f64,
    share: String,
    class: &'static str,
    /// What the disk did for it.
    parts: String,
}

/// Of each pair, all phases together or the one that there is.
pub(crate) fn waterfalls(model: &Model) -> Vec<Chart> {
    model.why.iter().flat_map(|kept| kept.whole()).map(waterfall).collect()
}

fn waterfall(pair: &Pair) -> Chart {
    let bars = bars(pair);
    let mut plot = Painter::new(WIDTH, TOP + ROW * bars.len() as f64 + BOTTOM);
    let ends = bars.iter().flat_map(|bar| [bar.from, bar.to]);
    let x = Scale::over(Kind::Linear, ends, NAMES, WIDTH - RIGHT - SHARES);
    plot.x_axis(&x, &labelled(&x, 4, Unit::Nanoseconds), "");
    for (bar, row) in bars.iter().zip(0..) {
        let y = TOP + ROW * f64::from(row);
        let (from, to) = (x.at(bar.from.min(bar.to)), x.at(bar.from.max(bar.to)));
        plot.text_cut((2.0, y + 15.0), &Font::new(11.0, ""), NAMES - 8.0, &bar.name);
        plot.put(format_args!("<g class=\"box {}\">", bar.class));
        if !bar.parts.is_empty() {
            plot.put(format_args!("<title>{}</title>", escaped(&bar.parts)));
        }
        plot.rectangle((from, y + 5.0), ((to - from).max(0.5), ROW - 9.0), "");
        plot.put(format_args!("</g>"));
        plot.text((to + 6.0, y + 15.0), &Font::new(11.0, ""), &bar.share);
    }
    let Pair { work, target, reference, difference } = pair;
    Chart {
        name: shapes::file_name(&["why", work, target, reference]),
        title: format!("{target} against {reference} ({work}, {})", difference.phase),
        about: format!("Parts of the difference, the largest first, in percent of {reference}'s time."),
        phase: String::new(),
        plot,
        places: Vec::new(),
    }
}

fn bars(pair: &Pair) -> Vec<Bar> {
    let found = &pair.difference;
    let whole = |name: &str, ns: f64| {
        let (share, parts) = (String::new(), String::new());
        Bar { name: name.into(), from: 0.0, to: ns, share, class: "f-tie", parts }
    };
    let mut bars = vec![whole(&pair.reference, found.reference_ns)];
    let large: Vec<&Cause> = found.causes.iter().filter(|cause| cause.share.abs() >= LEAST).take(MOST).collect();
    let other = found.share - large.iter().map(|cause| cause.share).sum::<f64>();
    let of_cause =
        |cause: &&Cause| (why::label(cause), cause.share, why::parts_named(cause, found.reference_ns, why::signed));
    let parts = large.iter().map(of_cause).chain([("other".to_string(), other, String::new())]);
    let mut at = found.reference_ns;
    for (name, share, parts) in parts {
        let to = at + share * found.reference_ns;
        let class = if share > 0.0 { "f-more" } else { "f-less" };
        bars.push(Bar { name, from: at, to, share: why::signed(share), class, parts });
        at = to;
    }
    bars.push(whole(&pair.target, found.target_ns));
    bars
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::owners::{Breakdown, Kept, Spent, State, between};

    #[test]
    fn bars_lead_from_the_reference_to_the_target() {
        let breakdown = |owners: &[(&str, f64)]| {
            let spent = |ns: f64| Spent { ns, ..Spent::default() };
            let owners = owners.iter().map(|(owner, ns)| ((State::Busy, owner.to_string()), spent(*ns)));
            Breakdown {
                time_ns: owners.clone().map(|(_, spent)| spent.ns).sum(),
                owners: owners.collect(),
                ..Breakdown::default()
            }
        };
        let target = breakdown(&[("VFS", 60.0), ("checksums", 90.0)]);
        let difference = between(&target, &breakdown(&[("VFS", 100.0)])).expect("a difference");
        let pair = Pair { work: "tree".into(), target: "<b>".into(), reference: "ext4".into(), difference };
        let found = bars(&pair);
        let shown: Vec<(&str, f64, f64, &str)> =
            found.iter().map(|bar| (bar.name.as_str(), bar.from, bar.to, bar.share.as_str())).collect();
        assert_eq!(
            shown,
            [
                ("ext4", 0.0, 100.0, ""),
                ("checksums", 100.0, 190.0, "+90.0 %"),
                ("VFS", 190.0, 150.0, "−40.0 %"),
                ("other", 150.0, 150.0, "0.0 %"),
                ("<b>", 0.0, 150.0, "")
            ]
        );
        let kept = Kept { threshold: 0.03, pairs: vec![pair], ..Kept::default() };
        let charts = waterfalls(&Model { why: Some(kept), ..Model::default() });
        let [chart] = &charts[..] else { panic!("{} charts", charts.len()) };
        assert!(chart.plot.body.contains("&lt;b&gt;") && !chart.plot.body.contains("<b>"), "{}", chart.plot.body);
        assert_eq!(chart.plot.body.matches("<rect").count(), 5);
    }
}
