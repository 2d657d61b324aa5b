//! Round after round until it is enough: the order of cells, the looks, and what a resumed run leaves out.

use super::Progress;
use crate::decide::look;
use crate::journal::*;
use crate::plan::{Plan, order};
use crate::stats::LOOKS;
use anyhow::Result;

/// Does cells: by agents in earnest, with made-up results in a rehearsal.
pub(super) trait Doer {
    /// `None`: stopped on request, the cell counts as not run.
    fn cell(&mut self, cell: &Cell) -> Result<Option<Outcome>>;
    /// All that is known so far.
    fn folded(&self) -> &Folded;
    fn note(&mut self, record: Record) -> Result<()>;
    /// The plan's budget of time for this session is used up.
    fn budget_used(&self, plan: &Plan) -> bool;
    /// RFC 3339.
    fn now(&self) -> String;
}

/// Why the rounds came to their end; `None`: stopped on request.
pub(super) fn measure(plan: &Plan, doer: &mut impl Doer, progress: &mut dyn Progress) -> Result<Option<Enough>> {
    for round in 1.. {
        let cells: Vec<Cell> = left(plan, doer.folded(), round);
        for cell in &cells {
            progress.cell(cell);
            let Some(outcome) = doer.cell(cell)? else { return Ok(None) };
            progress.cell_ended(cell, &outcome);
        }
        if let Some(end) = look_if_due(plan, doer, round, progress)? {
            return Ok(Some(end));
        }
    }
    unreachable!("the last round has a look that ends the run")
}

/// The cells of a round that are to be run: without those that have ended, nor those of targets that have left.
fn left(plan: &Plan, folded: &Folded, round: u32) -> Vec<Cell> {
    let ended = |cell: &Cell| folded.find_cell(&cell.id).is_some_and(|seen| seen.outcome.is_some());
    let wanted = |cell: &Cell| !has_left(folded, &cell.target.name, round) && !ended(cell);
    order(plan, round).into_iter().filter(wanted).collect()
}

fn has_left(folded: &Folded, target: &str, round: u32) -> bool {
    let before = folded.looks.iter().filter(|look| look.round < round);
    before.flat_map(|look| &look.leaving).any(|leaving| leaving.target == target)
}

/// Cells of the rounds up to the next look, and how many of them have ended.
pub(super) fn up_to_next_look(plan: &Plan, folded: &Folded) -> (usize, usize) {
    let looked = folded.looks.last().map_or(0, |look| look.round);
    let is_over = folded.looks.last().and_then(|look| look.end).is_some_and(Enough::is_final);
    let last = match plan.stop.rounds {
        _ if is_over => looked,
        Some(rounds) => rounds,
        None => LOOKS.into_iter().find(|round| *round > looked).unwrap_or(plan.stop.most_rounds()),
    };
    let asked = |cell: &&Cell| !has_left(folded, &cell.target.name, cell.round);
    let planned: usize = (1..=last).map(|round| order(plan, round).iter().filter(asked).count()).sum();
    (planned, planned - (1..=last).map(|round| left(plan, folded, round).len()).sum::<usize>())
}

fn look_if_due(plan: &Plan, doer: &mut impl Doer, round: u32, progress: &mut dyn Progress) -> Result<Option<Enough>> {
    if let Some(made) = doer.folded().looks.iter().rev().find(|look| look.round == round) {
        // Whoever takes up a run that had no budget left, or no hope, wants the next look.
        return Ok(made.end.filter(|end| end.is_final()));
    }
    let budget_used = doer.budget_used(plan);
    let is_due = plan.stop.rounds.is_none() && LOOKS.contains(&round);
    if !is_due && !budget_used && round < plan.stop.most_rounds() {
        return Ok(None);
    }
    let found = Look { at: doer.now(), ..look(plan, doer.folded(), round, budget_used) };
    doer.note(Record::Look(found.clone()))?;
    let (planned, _) = up_to_next_look(plan, doer.folded());
    progress.looked(&found, planned);
    Ok(found.end)
}
