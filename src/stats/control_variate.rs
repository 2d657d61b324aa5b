//! A control variate: a quantity that is measured beside each value and moves with its noise takes that noise out
//! (Lavenberg & Welch 1981). Here it is how slow the processor was while a time was taken.
//!
//! value(target, round) = target + round + slope x covariate + rest. The slope is that of least squares, one for all
//! targets, after the means of targets and of rounds are taken out: what rounds share cancels in their differences
//! anyway. It is used only where it predicts rounds that it was not fitted to (predicted residual sum of squares, Allen
//! 1974), and where there are values enough that the slope's own error is small.

/// The share of the variance that must be explained.
const LEAST_EXPLAINED: f64 = 0.2;
/// Fewest degrees of freedom: the error of the slope adds less than a tenth to the variance then.
const FEWEST_FREE: usize = 12;
/// Values missing, means of targets and of rounds are found by turns; so many are enough for four digits.
const TURNS: usize = 20;

/// What a covariate does to values of the same shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControlVariate {
    /// Change of the value for a change of the covariate by 1.
    pub slope: f64,
    /// Share of the variance within rounds that it predicts, 0 to 1.
    pub explained: f64,
}

/// From logarithms by target and round, NaN where there is none; `None` where it would not help, and where a value has no
/// covariate.
pub fn control_variate(values: &[Vec<f64>], covariates: &[Vec<f64>]) -> Option<ControlVariate> {
    let cells = cells(values, covariates);
    if cells.len() < values.iter().flatten().filter(|value| value.is_finite()).count() {
        return None;
    }
    let rounds = cells.iter().map(|cell| cell.round + 1).max()?;
    let is_used = |used: &dyn Fn(&Cell) -> bool| cells.iter().any(used);
    let used_rounds = (0..rounds).filter(|round| is_used(&|cell| cell.round == *round)).count();
    let used_targets = (0..values.len()).filter(|target| is_used(&|cell| cell.target == *target)).count();
    if cells.len() < used_rounds + used_targets + FEWEST_FREE {
        return None;
    }
    let values = without_means(&cells, |cell| cell.value);
    let covariates = without_means(&cells, |cell| cell.covariate);
    let products = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let (squares, shared) = (products(&covariates, &covariates), products(&covariates, &values));
    let slope = shared / squares;
    let without = |round: usize| {
        let of_round = || (0..cells.len()).filter(|at| cells[*at].round == round);
        let squares = squares - of_round().map(|at| covariates[at].powi(2)).sum::<f64>();
        let shared = shared - of_round().map(|at| covariates[at] * values[at]).sum::<f64>();
        of_round().map(|at| (values[at] - shared / squares * covariates[at]).powi(2)).sum::<f64>()
    };
    let explained = 1.0 - (0..rounds).map(without).sum::<f64>() / products(&values, &values);
    // NaN where all covariates are alike.
    (explained >= LEAST_EXPLAINED && slope.is_finite()).then_some(ControlVariate { slope, explained })
}

/// What the values would be with the covariate at its mean; a value without one becomes NaN.
pub fn adjusted(values: &[Vec<f64>], covariates: &[Vec<f64>], by: ControlVariate) -> Vec<Vec<f64>> {
    let cells = cells(values, covariates);
    let mean = cells.iter().map(|cell| cell.covariate).sum::<f64>() / cells.len().max(1) as f64;
    let mut made: Vec<Vec<f64>> = values.iter().map(|row| vec![f64::NAN; row.len()]).collect();
    for cell in cells {
        made[cell.target][cell.round] = cell.value - by.slope * (cell.covariate - mean);
    }
    made
}

/// One value that has a covariate.
struct Cell {
    target: usize,
    round: usize,
    value: f64,
    covariate: f64,
}

fn cells(values: &[Vec<f64>], covariates: &[Vec<f64>]) -> Vec<Cell> {
    let of_target = |(target, (values, covariates)): (usize, (&Vec<f64>, &Vec<f64>))| {
        let both = values.iter().zip(covariates).enumerate();
        let cell = |(round, (value, covariate)): (usize, (&f64, &f64))| Cell {
            target,
            round,
            value: *value,
            covariate: *covariate,
        };
        both.map(cell).filter(|cell| cell.value.is_finite() && cell.covariate.is_finite()).collect::<Vec<_>>()
    };
    values.iter().zip(covariates).enumerate().flat_map(of_target).collect()
}

/// A quantity of the cells less the means of its target and its round.
fn without_means(cells: &[Cell], of: impl Fn(&Cell) -> f64) -> Vec<f64> {
    let mut rest: Vec<f64> = cells.iter().map(of).collect();
    for _ in 0..TURNS {
        take_off_means(&mut rest, cells, |cell| cell.target);
        take_off_means(&mut rest, cells, |cell| cell.round);
    }
    rest
}

fn take_off_means(rest: &mut [f64], cells: &[Cell], group: impl Fn(&Cell) -> usize) {
    let groups = cells.iter().map(|cell| group(cell) + 1).max().unwrap_or(0);
    let mut sums = vec![(0.0, 0u32); groups];
    for (value, cell) in rest.iter().zip(cells) {
        let (sum, count) = &mut sums[group(cell)];
        (*sum, *count) = (*sum + value, *count + 1);
    }
    for (value, cell) in rest.iter_mut().zip(cells) {
        let (sum, count) = sums[group(cell)];
        *value -= sum / f64::from(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::noise::Noise;

    /// Targets with levels of their own, rounds that drift, and so much of the noise that the covariate explains.
    fn made(targets: usize, rounds: usize, slope: f64, sd: f64, seed: u64) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
        let mut noise = Noise::new(seed);
        let mut cell = |target: usize, round: usize| {
            let covariate = 0.1 * noise.normal() + 0.02 * round as f64;
            (0.3 * target as f64 + 0.05 * round as f64 + slope * covariate + sd * noise.normal(), covariate)
        };
        let rows: Vec<Vec<(f64, f64)>> =
            (0..targets).map(|target| (0..rounds).map(|round| cell(target, round)).collect()).collect();
        let part = |of: fn(&(f64, f64)) -> f64| rows.iter().map(|row| row.iter().map(of).collect()).collect();
        (part(|cell| cell.0), part(|cell| cell.1))
    }

    #[test]
    fn a_slope_without_noise_is_found_exactly_whatever_is_missing() {
        let (mut values, covariates) = made(4, 9, 0.8, 0.0, 1);
        values[3].truncate(5);
        values[1][2] = f64::NAN;
        let found = control_variate(&values, &covariates).expect("all is explained");
        assert!((found.slope - 0.8).abs() < 1e-6 && found.explained > 0.999_999, "{found:?}");
        let adjusted = adjusted(&values, &covariates, found);
        let apart = |round: usize| adjusted[2][round] - adjusted[0][round];
        assert!((0..9).all(|round| (apart(round) - 0.6).abs() < 1e-6), "the levels stay");
        assert!(adjusted[1][2].is_nan() && adjusted[3].len() == 5);
    }

    #[test]
    fn what_explains_nothing_is_not_used() {
        let used = (0..200).filter(|seed| {
            let (values, covariates) = made(5, 6, 0.0, 0.05, 100 + seed);
            control_variate(&values, &covariates).is_some()
        });
        assert!(used.count() <= 6, "an unrelated covariate is taken");
        let (values, covariates) = made(5, 6, 1.0, 0.05, 7);
        assert!(control_variate(&values, &covariates).is_some_and(|found| found.explained > 0.5));
    }

    /// Too few values, no covariates, and covariates that are all alike.
    #[test]
    fn too_little_gives_none() {
        let (values, covariates) = made(2, 8, 1.0, 0.0, 3);
        assert_eq!(control_variate(&values, &covariates), None);
        let (values, covariates) = made(5, 6, 1.0, 0.0, 3);
        assert_eq!(control_variate(&values, &[]), None);
        let mut partly = covariates.clone();
        partly[4].pop();
        assert_eq!(control_variate(&values, &partly), None);
        let alike: Vec<Vec<f64>> = covariates.iter().map(|row| vec![1.0; row.len()]).collect();
        assert_eq!(control_variate(&values, &alike), None);
        assert_eq!(control_variate(&[], &[]), None);
    }
}
