//! Charts: forest plots, and charts with two axes. One painter for the page, for the picture of a
//! report and for pictures that stand alone.

pub(crate) mod axis;
pub(crate) mod effects;
pub(crate) mod flame;
pub(crate) mod forest;
pub(crate) mod painter;
pub(crate) mod scale;
pub(crate) mod series;
pub(crate) mod shapes;
pub(crate) mod waterfall;

use crate::analysis::{Model, Panel, WorkReport};

/// Panels in the order of the page: of each work first its times, then its other panels.
pub(crate) fn panels(work: &WorkReport) -> impl Iterator<Item = &Panel> {
    work.phases.iter().chain(work.beside.iter().flat_map(|table| &table.panels))
}

/// What all charts of a report share.
pub(crate) struct Sheet<'a> {
    pub model: &'a Model,
    /// Targets but the reference's copy.
    pub shown: Vec<usize>,
}

impl<'a> Sheet<'a> {
    pub(crate) fn of(model: &'a Model) -> Sheet<'a> {
        let shown = (0..model.targets.len()).filter(|at| !model.targets[*at].duplicate).collect();
        Sheet { model, shown }
    }

    /// Among the shown targets: decides hue and shape.
    pub(crate) fn place(&self, target: usize) -> usize {
        self.shown.iter().position(|shown| *shown == target).unwrap_or(0)
    }

    pub(crate) fn name_at(&self, place: usize) -> &str {
        self.shown.get(place).map_or("", |target| &self.model.targets[*target].name)
    }
}
