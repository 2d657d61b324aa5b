//! How near simulations come to what others have measured: pairs of rows of a published table,
//! column by column.

use super::fidelity::Ratio;
use pickfs_stats::median;

/// A figure of a table, in two accounts, as costs: less is better.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    pub column: String,
    pub row: String,
    pub published: f64,
    pub simulated: f64,
}

/// Two rows that are in another order simulated, or in none.
#[derive(Clone, Debug, PartialEq)]
pub struct Miss {
    pub column: String,
    pub rows: [String; 2],
    /// Cost of the first row over that of the second.
    pub published: f64,
    pub simulated: f64,
}

/// Pairs of rows that differ by more than 10 % as published.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Score {
    pub apart: usize,
    pub misses: Vec<Miss>,
    /// |ln(simulated ratio / published ratio)| of each of them.
    errors: Vec<f64>,
}

impl Score {
    pub fn in_order(&self) -> usize {
        self.apart - self.misses.len()
    }

    /// Of |ln|; `None` where no pair differs by enough.
    pub fn median_error(&self) -> Option<f64> {
        median(&self.errors)
    }

    pub fn worst_error(&self) -> Option<f64> {
        self.errors.iter().copied().reduce(f64::max)
    }

    /// Of several tables, each pair once.
    pub fn sum<'s>(scores: impl Iterator<Item = &'s Score>) -> Score {
        let mut all = Score::default();
        for score in scores {
            all.apart += score.apart;
            all.misses.extend(score.misses.iter().cloned());
            all.errors.extend(&score.errors);
        }
        all
    }
}

/// Over all pairs of rows in each column. Figures that are not positive have no ratio and must not
/// be given.
pub fn score(figures: &[Costs]) -> Score {
    let mut found = Score::default();
    for (at, one) in figures.iter().enumerate() {
        for other in figures[at + 1..].iter().filter(|other| other.column == one.column) {
            let ratio = Ratio::of([one.published, one.simulated], [other.published, other.simulated]);
            if !ratio.is_apart() {
                continue;
            }
            found.apart += 1;
            found.errors.push(ratio.error());
            if !ratio.is_in_order() {
                found.misses.push(Miss {
                    column: one.column.clone(),
                    rows: [one.row.clone(), other.row.clone()],
                    published: one.published / other.published,
                    simulated: one.simulated / other.simulated,
                });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(column: &str, row: &str, published: f64, simulated: f64) -> Costs {
        Costs { column: column.into(), row: row.into(), published, simulated }
    }

    #[test]
    fn pairs_are_scored_where_they_are_apart() {
        let figures = [
            figure("read", "a", 100.0, 10.0),
            figure("read", "b", 105.0, 9.0), // as near to a as not to count
            figure("read", "c", 200.0, 20.0),
            figure("write", "a", 10.0, 5.0),
            figure("write", "b", 20.0, 5.0), // in no order
            figure("write", "c", 40.0, 2.5), // in the other order
        ];
        let found = score(&figures);
        assert_eq!((found.apart, found.in_order()), (5, 2));
        let missed: Vec<[&str; 2]> = found.misses.iter().map(|miss| [&*miss.rows[0], &*miss.rows[1]]).collect();
        assert_eq!(missed, [["a", "b"], ["a", "c"], ["b", "c"]]);
        assert_eq!((found.misses[1].published, found.misses[1].simulated), (0.25, 2.0));
        assert!((found.worst_error().expect("pairs") - 8.0_f64.ln()).abs() < 1e-12, "{found:?}");
        // c against a: none; b: 105/200 against 9/20; three of `write`: ln 2, ln 8, ln 4.
        assert!((found.median_error().expect("pairs") - 2.0_f64.ln()).abs() < 1e-12, "{found:?}");
        let both = Score::sum([&found, &found].into_iter());
        assert_eq!((both.apart, both.in_order(), both.median_error()), (10, 4, found.median_error()));
        assert_eq!((score(&figures[..2]).apart, score(&[]).median_error()), (0, None));
    }

    /// A tree on a simulated NVMe drive, milliseconds with eight processors and with one
    /// (docs/sim.md): compression costs time on one alone.
    #[test]
    fn one_processor_scores_worse_than_eight() {
        const WRITE: [(&str, f64, f64); 4] =
            [("ext4", 133.0, 138.0), ("btrfs", 236.0, 244.0), ("lzo", 230.0, 313.0), ("zstd:1", 239.0, 377.0)];
        const COPY: [(&str, f64, f64); 4] =
            [("ext4", 167.0, 167.0), ("btrfs", 155.0, 160.0), ("lzo", 142.0, 186.0), ("zstd:1", 153.0, 212.0)];
        let of = |seen: fn(&(&str, f64, f64)) -> f64| {
            let columns = [("write", WRITE), ("copy", COPY)];
            let all = columns
                .iter()
                .flat_map(|(column, rows)| rows.iter().map(|row| figure(column, row.0, row.1, seen(row))));
            score(&all.collect::<Vec<_>>())
        };
        let (right, planted) = (of(|row| row.1), of(|row| row.2));
        assert_eq!((right.apart, right.in_order(), right.worst_error()), (4, 4, Some(0.0)));
        assert_eq!((planted.apart, planted.in_order()), (4, 3), "{planted:?}");
        assert!(planted.median_error() > Some(0.2), "{planted:?}");
    }
}
