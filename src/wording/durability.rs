//! What is said of power cuts.

use super::text::capital;
use crate::analysis::{Durability, Loss, Model};
use crate::units::show_duration;

/// One for each target: what was lost, whether promises were kept, how long the file system took to recover.
pub fn sentence(found: &Durability, model: &Model) -> String {
    let name = &model.targets[found.target].name;
    let (names, contents) = (&found.names, &found.contents);
    let median = |loss: &Loss| format!("(median {})", show_duration(loss.median));
    let damaged = match found.damaged {
        0 => String::new(),
        damaged => format!(" Files that nothing synced were empty or torn after {damaged} cuts."),
    };
    format!(
        "{name} lost at most {} of folders, links and removals {} and {} of contents {} that nothing synced, in {} power \
         cuts. {} Mounted again in {} (longest {}).{damaged}",
        show_duration(names.worst),
        median(names),
        show_duration(contents.worst),
        median(contents),
        found.cuts,
        capital(&promises(found)),
        show_duration(found.recovery.0),
        show_duration(found.recovery.1),
    )
}

/// The same on a line or two.
pub fn short(found: &Durability, model: &Model) -> String {
    let name = &model.targets[found.target].name;
    let worst = if found.names.worst > found.contents.worst { &found.names } else { &found.contents };
    let (most, median) = (show_duration(worst.worst), show_duration(worst.median));
    format!("{name}: at most {most} of unsynced work lost (median {median}, {} cuts); {}", found.cuts, promises(found))
}

fn promises(found: &Durability) -> String {
    let Durability { promise_cuts: of, broken, may_break, unmountable, .. } = found;
    match (of, broken, unmountable) {
        (0, ..) => "nothing was synced, so nothing was promised.".into(),
        (_, 0, _) => {
            format!("what was synced survived all {of} cuts (95 %: lost in fewer than {}).", percent(*may_break))
        }
        (_, _, 0) => format!("PROMISES BROKEN: what was synced was lost in {broken} of {of} cuts."),
        _ => format!(
            "PROMISES BROKEN in {broken} of {of} cuts; after {unmountable} the file system could not be mounted."
        ),
    }
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 10.0 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::TargetInfo;

    fn said(change: impl Fn(&mut Durability)) -> String {
        let mut found = Durability {
            target: 0,
            names: Loss { median: 2.6e9, worst: 5.1e9 },
            contents: Loss { median: 17e9, worst: 34e9 },
            cuts: 400,
            promise_cuts: 400,
            broken: 0,
            may_break: 0.00746,
            unmountable: 0,
            damaged: 0,
            recovery: (1.2e7, 3e7),
            rounds: 1,
        };
        change(&mut found);
        let target = TargetInfo { name: "ext4".into(), ..TargetInfo::default() };
        sentence(&found, &Model { targets: vec![target], ..Model::default() })
    }

    #[test]
    fn the_loss_and_the_promises_are_said() {
        let kept = said(|_| ());
        let loss = "ext4 lost at most 5.10 s of folders, links and removals (median 2.60 s) and 34.0 s of contents";
        assert!(kept.starts_with(loss), "{kept}");
        assert!(kept.contains("What was synced survived all 400 cuts (95 %: lost in fewer than 0.7 %)."), "{kept}");
        let broken = said(|found| found.broken = 3);
        assert!(broken.contains("PROMISES BROKEN: what was synced was lost in 3 of 400 cuts."), "{broken}");
        let broken = said(|found| (found.broken, found.unmountable) = (3, 1));
        assert!(broken.contains("PROMISES BROKEN in 3 of 400 cuts; after 1 the file system"), "{broken}");
        assert!(said(|found| found.promise_cuts = 0).contains("Nothing was synced"));
        assert!(said(|found| found.damaged = 2).ends_with("empty or torn after 2 cuts."));
    }
}
