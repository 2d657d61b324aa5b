//! Steps that were taken and not taken back. However many there are, one more and one less take no
//! longer.

use super::{Scope, StepTaken, Undone};
use std::collections::{BTreeMap, HashMap};

/// Oldest first.
#[derive(Debug, Default)]
pub struct Leftovers {
    steps: BTreeMap<u64, StepTaken>,
    /// By scope and number. A scope that was taken up again counts from the start, so that several
    /// may have the same.
    places: HashMap<(Scope, u32), Vec<u64>>,
    taken: u64,
}

impl Leftovers {
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &StepTaken> {
        self.steps.values()
    }

    pub fn len(&self) -> usize {
        self.steps.len()
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(super) fn add(&mut self, step: StepTaken) {
        if step.undo.is_some() {
            self.taken += 1;
            self.places.entry((step.scope.clone(), step.number)).or_default().push(self.taken);
            self.steps.insert(self.taken, step);
        }
    }

    pub(super) fn remove(&mut self, undone: &Undone) {
        for place in self.places.remove(&(undone.scope.clone(), undone.number)).unwrap_or_default() {
            self.steps.remove(&place);
        }
    }
}
