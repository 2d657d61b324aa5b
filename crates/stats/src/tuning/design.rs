//! Screening designs of two levels, and what they say of each factor.

/// Orders of a Hadamard matrix by Paley's construction: one more than a prime that leaves 3 when
/// divided by 4.
const ORDERS: [usize; 10] = [4, 8, 12, 20, 24, 32, 44, 48, 60, 68];
/// Factors that one design takes.
pub const MOST_FACTORS: usize = ORDERS[ORDERS.len() - 1];

/// Which factors are high, by row: a design of Plackett and Burman (1946) with its mirror image
/// (Box and Wilson 1951), so that main effects are clear of the effects of pairs. The first row has
/// all low. Rows that few factors leave alike come once.
pub fn fold_over(factors: usize) -> Vec<Vec<bool>> {
    let order = ORDERS.into_iter().find(|order| *order >= factors).unwrap_or(MOST_FACTORS);
    let row = |row: usize, flip: bool| (0..factors.min(order)).map(move |column| is_high(order, row, column) != flip);
    let all = [true, false].into_iter().flat_map(|flip| (0..order).map(move |at| (at, flip)));
    let mut rows: Vec<Vec<bool>> = Vec::new();
    for row in all.map(|(at, flip)| row(at, flip).collect()) {
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    rows
}

/// Paley (1933): the identity and a skew matrix of which squares leave which rest.
fn is_high(order: usize, row: usize, column: usize) -> bool {
    let prime = order - 1;
    match (row, column) {
        (0, _) => true,
        (_, 0) => false,
        _ if row == column => true,
        _ => {
            let rest = (prime + row - column) % prime;
            (1..prime).any(|root| root * root % prime == rest)
        }
    }
}

/// By factor and row, what a row's value counts for in the effect of that factor, high less low, by
/// least squares. `None` where the rows cannot tell the factors apart.
pub(super) fn weights(rows: &[&Vec<bool>]) -> Option<Vec<Vec<f64>>> {
    let factors = rows.first()?.len();
    let terms: Vec<Vec<f64>> = rows
        .iter()
        .map(|row| std::iter::once(1.0).chain(row.iter().map(|high| if *high { 0.5 } else { -0.5 })).collect())
        .collect();
    let product = |a: usize, b: usize| terms.iter().map(|row| row[a] * row[b]).sum::<f64>();
    let normal: Vec<Vec<f64>> = (0..=factors).map(|a| (0..=factors).map(|b| product(a, b)).collect()).collect();
    let right: Vec<Vec<f64>> = (0..=factors).map(|term| terms.iter().map(|row| row[term]).collect()).collect();
    Some(solved(normal, right)?.split_off(1))
}

/// The rows of X with AX = B, by elimination; `None` of a singular A.
pub(super) fn solved(mut a: Vec<Vec<f64>>, mut b: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let less = |row: &mut Vec<f64>, by: f64, other: &[f64]| {
        row.iter_mut().zip(other).for_each(|(value, other)| *value -= by * other);
    };
    for at in 0..a.len() {
        let pivot = (at..a.len()).max_by(|x, y| a[*x][at].abs().total_cmp(&a[*y][at].abs()))?;
        a.swap(at, pivot);
        b.swap(at, pivot);
        let scale = a[at][at];
        if scale.abs() < 1e-9 {
            return None;
        }
        [&mut a[at], &mut b[at]].into_iter().flatten().for_each(|value| *value /= scale);
        let (of_a, of_b) = (a[at].clone(), b[at].clone());
        for other in (0..a.len()).filter(|other| *other != at) {
            let by = a[other][at];
            less(&mut a[other], by, &of_a);
            less(&mut b[other], by, &of_b);
        }
    }
    Some(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(high: bool) -> i32 {
        if high { 1 } else { -1 }
    }

    /// Each column is balanced, and orthogonal to each other and to each product of two: resolution
    /// IV.
    #[test]
    fn main_effects_are_clear_of_pairs() {
        for order in ORDERS {
            let rows = fold_over(order);
            assert_eq!(rows.len(), 2 * order);
            assert!(rows[0].iter().all(|high| !high) && rows.contains(&vec![true; order]), "{order}");
            let sum = |columns: &[usize]| {
                rows.iter().map(|row| columns.iter().map(|at| sign(row[*at])).product::<i32>()).sum::<i32>()
            };
            // All triples of a large design are many.
            let some = order.min(12);
            for (a, b, c) in (0..some).flat_map(|a| (0..some).flat_map(move |b| (0..some).map(move |c| (a, b, c)))) {
                assert!(
                    sum(&[a]) == 0 && (a == b || sum(&[a, b]) == 0) && sum(&[a, b, c]) == 0,
                    "{order}: {a} {b} {c}"
                );
            }
        }
    }

    #[test]
    fn few_factors_take_few_rows() {
        let sizes = [0, 1, 2, 3, 4, 5, 8, 12, 13, 68].map(|factors| fold_over(factors).len());
        assert_eq!(sizes, [1, 2, 4, 8, 8, 16, 16, 24, 40, 136]);
    }

    /// Also with rows that are missing, unless these are too many.
    #[test]
    fn effects_of_an_additive_truth_are_found() {
        let (effects, rows) = ([-0.3, 0.1, 0.0, 0.02, 0.0], fold_over(5));
        let value =
            |row: &Vec<bool>| row.iter().zip(effects).map(|(high, by)| if *high { by } else { 0.0 }).sum::<f64>();
        for missing in [0, 1, 5] {
            let rows: Vec<&Vec<bool>> = rows[missing..].iter().collect();
            let found = weights(&rows).expect("enough rows");
            let found = found.iter().map(|by| by.iter().zip(&rows).map(|(by, row)| by * value(row)).sum::<f64>());
            assert!(found.zip(effects).all(|(found, truth)| (found - truth).abs() < 1e-9), "{missing}");
        }
        assert!(weights(&rows[..4].iter().collect::<Vec<_>>()).is_none() && weights(&[]).is_none());
    }
}
