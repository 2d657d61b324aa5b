//! Directories as a profile has them: at each level the same number of subdirectories and files in
//! each as often.

use crate::profile::{Directories, Level, Profile};
use crate::tree::sizes;
use pickfs_system::random::Random;

/// A directory to be, and how many files go into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Folder {
    /// Its place among all folders; the root is its own.
    pub parent: usize,
    pub subdirectories: u64,
    pub files: u64,
}

/// Folders for this many files: the root first, parents before children, level by level.
pub(crate) fn folders(profile: &Profile, files: u64, random: &mut Random) -> Vec<Folder> {
    let levels = levels(profile);
    let (counts, files) = scaled(&levels, profile.files().max(1), files);
    let mut all = Vec::new();
    let mut parents = vec![0];
    for (place, level) in levels.iter().enumerate() {
        let below = counts.get(place + 1).copied().unwrap_or(0);
        let numbers = numbers(level, counts[place] as usize, below, files[place], random);
        let first = all.len();
        all.extend(parents.iter().zip(numbers).map(|(parent, (subdirectories, files))| Folder {
            parent: *parent,
            subdirectories,
            files,
        }));
        let children = |place: usize| std::iter::repeat_n(place, all[place].subdirectories as usize);
        parents = (first..all.len()).flat_map(children).collect();
    }
    all
}

/// How many directories and how many files each level has.
fn scaled(levels: &[Level], of: u64, files: u64) -> (Vec<u64>, Vec<u64>) {
    let directories = |level: &Level| level.files.iter().map(|(_, count)| count).sum::<u64>();
    let fewer = |count: u64| ((u128::from(count) * u128::from(files) + u128::from(of) / 2) / u128::from(of)) as u64;
    let counts = levels.iter().enumerate().map(|(place, level)| match place {
        0 => 1,
        _ => fewer(directories(level)).max(1),
    });
    let counts = counts.collect();
    let mut all: Vec<u64> =
        levels.iter().map(|level| level.files.iter().map(|(files, count)| files * count).sum()).collect();
    sizes::scale(&mut all, files);
    (counts, all)
}

/// Numbers of subdirectories and files for each of `count` directories.
fn numbers(level: &Level, count: usize, below: u64, files: u64, random: &mut Random) -> Vec<(u64, u64)> {
    let subdirectories = spread(&level.subdirectories, count, below, random);
    let mut files = spread(&level.files, count, files, random);
    fill_empty(&subdirectories, &mut files);
    subdirectories.into_iter().zip(files).collect()
}

/// As often as in the histogram, with that sum, in random order.
fn spread(histogram: &[(u64, u64)], count: usize, sum: u64, random: &mut Random) -> Vec<u64> {
    let all: u64 = histogram.iter().map(|(_, directories)| directories).sum();
    let mut numbers: Vec<u64> = (0..count as u64)
        .map(|place| at(histogram, (u128::from(2 * place + 1) * u128::from(all) / (2 * count as u128)) as u64))
        .collect();
    sizes::scale(&mut numbers, sum);
    random.shuffle(&mut numbers);
    numbers
}

/// The number of the directory at this place, where they are ordered by it.
fn at(histogram: &[(u64, u64)], place: u64) -> u64 {
    let mut before = 0;
    let found = histogram.iter().find(|(_, directories)| {
        before += directories;
        place < before
    });
    found.map_or(0, |(number, _)| *number)
}

/// Few directories are empty: what has nothing at all changes files with what has both.
fn fill_empty(subdirectories: &[u64], files: &mut [u64]) {
    let both: Vec<usize> = (0..files.len()).filter(|place| files[*place] > 0 && subdirectories[*place] > 0).collect();
    let none: Vec<usize> = (0..files.len()).filter(|place| files[*place] == 0 && subdirectories[*place] == 0).collect();
    both.into_iter().zip(none).for_each(|(a, b)| files.swap(a, b));
}

/// Those of the profile, those of its model, or the root alone.
fn levels(profile: &Profile) -> Vec<Level> {
    match &profile.directories {
        Some(model) => modelled(model, profile.files()),
        None if profile.levels.is_empty() => vec![Level { subdirectories: vec![(0, 1)], files: vec![(1, 1)] }],
        None => profile.levels.clone(),
    }
}

/// Directories below ones that have some already; files by depth.
fn modelled(model: &Directories, files: u64) -> Vec<Level> {
    let mut random = Random::new(model.count, model.deepest);
    let mut folders = vec![(0u64, 0u64)]; // depth, subdirectories
    let mut tokens = vec![0usize; 2];
    while (folders.len() as u64) < model.count {
        let parent = tokens[random.index(tokens.len())];
        let depth = folders[parent].0 + 1;
        if depth <= model.deepest {
            folders[parent].1 += 1;
            tokens.extend([parent, folders.len(), folders.len()]);
            folders.push((depth, 0));
        }
    }
    let deepest = folders.iter().map(|(depth, _)| *depth).max().unwrap_or(0);
    let files = poisson(model.files, deepest, files);
    let of = |depth: u64| folders.iter().filter(move |folder| folder.0 == depth).map(|folder| folder.1);
    (0..=deepest).map(|depth| level(of(depth).collect(), files[depth as usize], &mut random)).collect()
}

fn level(subdirectories: Vec<u64>, files: u64, random: &mut Random) -> Level {
    let chances: Vec<(u64, u64)> = (0..256).map(by_polynomial).collect();
    let files = spread(&chances, subdirectories.len(), files, random);
    Level { subdirectories: histogram(subdirectories), files: histogram(files) }
}

/// A number of files and its weight, 10⁶/(files + 2.36)²; see [`Directories`].
fn by_polynomial(files: u64) -> (u64, u64) {
    let distance = 100 * files + 236;
    (files, 10_000_000_000 / (distance * distance))
}

fn histogram(mut numbers: Vec<u64>) -> Vec<(u64, u64)> {
    numbers.sort_unstable();
    let mut found: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match found.last_mut().filter(|(last, _)| *last == number) {
            Some((_, count)) => *count += 1,
            None => found.push((number, 1)),
        }
    }
    found
}

/// Files in directories at each depth: at depth d lie those whose own depth is d + 1.
fn poisson(mean: f64, deepest: u64, files: u64) -> Vec<u64> {
    let mut weight = 1e9;
    let weights = (0..=deepest).map(|depth| {
        weight *= mean / (depth + 1) as f64;
        weight as u64
    });
    let mut weights: Vec<u64> = weights.collect();
    sizes::scale(&mut weights, files);
    weights
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Class;

    fn profile(levels: Vec<Level>, files: u64) -> Profile {
        Profile { levels, classes: vec![Class { files, ..Class::default() }], ..Profile::default() }
    }

    fn three_levels() -> Profile {
        let level = |subdirectories: &[(u64, u64)], files: &[(u64, u64)]| Level {
            subdirectories: subdirectories.into(),
            files: files.into(),
        };
        let root = level(&[(10, 1)], &[(3, 1)]);
        let second = level(&[(0, 6), (2, 2), (8, 2)], &[(0, 2), (1, 4), (9, 4)]);
        let third = level(&[(0, 20)], &[(1, 10), (5, 10)]);
        profile(vec![root, second, third], 103)
    }

    /// Histograms by level, from the folders.
    fn levels(folders: &[Folder]) -> Vec<Level> {
        let mut depths = vec![0usize; folders.len()];
        for (place, folder) in folders.iter().enumerate().skip(1) {
            depths[place] = depths[folder.parent] + 1;
        }
        let deepest = depths.iter().max().copied().unwrap_or(0);
        let of = |depth: usize, number: fn(&Folder) -> u64| {
            histogram(
                folders.iter().zip(&depths).filter(|(_, at)| **at == depth).map(|(folder, _)| number(folder)).collect(),
            )
        };
        let level = |depth| Level { subdirectories: of(depth, |f| f.subdirectories), files: of(depth, |f| f.files) };
        (0..=deepest).map(level).collect()
    }

    #[test]
    fn at_full_size_every_level_is_as_the_profile_says() {
        let profile = three_levels();
        let found = folders(&profile, 103, &mut Random::new(1, 0));
        assert_eq!(levels(&found), profile.levels);
        assert!(found.iter().all(|folder| folder.files + folder.subdirectories > 0), "{found:?}");
    }

    #[test]
    fn smaller_and_larger_trees_have_all_files_and_levels() {
        for files in [0, 1, 10, 50, 1000] {
            let found = folders(&three_levels(), files, &mut Random::new(1, 0));
            assert_eq!(found.iter().map(|folder| folder.files).sum::<u64>(), files);
            assert_eq!(found.iter().map(|folder| folder.subdirectories).sum::<u64>() + 1, found.len() as u64);
            assert_eq!(levels(&found).len(), 3);
            assert!(found.len() as u64 >= 30 * files / 103, "{files}: {}", found.len());
        }
        assert_eq!(folders(&Profile::default(), 7, &mut Random::new(1, 0)).len(), 1);
    }

    #[test]
    fn the_model_puts_files_at_poissons_depths() {
        let model = Directories { count: 2000, deepest: 14, files: 6.49 };
        let levels = modelled(&model, 20_000);
        let files = |level: &Level| level.files.iter().map(|(files, count)| files * count).sum::<u64>();
        assert_eq!(levels.iter().map(files).sum::<u64>(), 20_000);
        let depths = levels.iter().zip(1..).map(|(level, depth)| files(level) * depth).sum::<u64>();
        assert!((6.2..6.6).contains(&(depths as f64 / 20_000.0)), "{depths}");
        assert_eq!(
            levels.iter().map(|level| level.files.iter().map(|(_, count)| count).sum::<u64>()).sum::<u64>(),
            2000
        );
    }
}
