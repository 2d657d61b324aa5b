//! Names and paths as numbers. A path is a chain of names below one of the folders that were
//! watched; there is no way to write `..` or a place outside.

use foldhash::HashMap;

/// The number of a name is an index; what is kept is its length, rounded down to a multiple of
/// four.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Names(pub Vec<u16>);

/// No file system takes longer names; what was longer is kept as this, and the replay is refused
/// it, like the program was.
pub(crate) const LONGEST_NAME: u16 = 260;

impl Names {
    pub(crate) fn length_class(name: &[u8]) -> u16 {
        (name.len().min(LONGEST_NAME.into()) / 4 * 4) as u16
    }

    /// The name in a replay: its number in base 36, with zeros before it up to its length.
    pub fn text(&self, number: u32) -> String {
        let mut digits = Vec::new();
        let mut rest = number;
        while digits.is_empty() || rest > 0 {
            digits.push(char::from_digit(rest % 36, 36).unwrap_or('0'));
            rest /= 36;
        }
        let length = usize::from(self.0.get(number as usize).copied().unwrap_or(0));
        digits.resize(digits.len().max(length), '0');
        digits.iter().rev().collect()
    }
}

/// A folder's entry: the path of the folder and a name. A folder that was watched has no folder
/// above it (0), and its number instead of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PathNode {
    pub above: u32,
    pub name: u32,
}

/// All paths; the first is number 1. What is above comes before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Paths {
    pub names: Names,
    pub nodes: Vec<PathNode>,
    /// How deep each lies below the folder in which all are, and how long it is.
    measures: Vec<(u32, u32)>,
}

/// Longer paths are refused, as the kernel does (PATH_MAX).
const LONGEST_PATH: u32 = 4095;

impl Paths {
    /// None yet, to be made of these names.
    pub(crate) fn of(names: Names) -> Paths {
        Paths { names, ..Paths::default() }
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds a path; why it cannot be.
    pub(crate) fn push(&mut self, node: PathNode) -> Result<(), &'static str> {
        let (depth, length) = match node.above {
            0 => (1, 4),
            above => {
                let measure = self.measures.get(above as usize - 1).ok_or("a path below one that comes later")?;
                let length = self.names.0.get(node.name as usize).ok_or("a name that is not there")?;
                (measure.0 + 1, measure.1 + 8 + u32::from(*length))
            }
        };
        if length > LONGEST_PATH + u32::from(LONGEST_NAME) {
            return Err("a path that is too long");
        }
        self.nodes.push(node);
        self.measures.push((depth, length));
        Ok(())
    }

    pub fn node(&self, path: u32) -> PathNode {
        self.nodes[path as usize - 1]
    }

    /// From the path itself up to its folder that was watched; nothing of path 0, which is the
    /// folder in which all are.
    pub(crate) fn line(&self, path: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(path).filter(|path| *path != 0), |path| {
            Some(self.node(*path).above).filter(|above| *above != 0)
        })
    }

    /// What it is called in a replay, from the folder in which all are.
    pub fn text(&self, path: u32) -> String {
        let mut parts: Vec<String> = self.line(path).map(|path| self.part(path)).collect();
        parts.reverse();
        parts.join("/")
    }

    fn part(&self, path: u32) -> String {
        let node = self.node(path);
        if node.above == 0 { format!("top{}", node.name) } else { self.names.text(node.name) }
    }
}

/// Gives numbers to names and paths in the order of their first use.
#[derive(Debug, Default)]
pub struct Numbering {
    pub paths: Paths,
    known_names: HashMap<Vec<u8>, u32>,
    known_paths: HashMap<PathNode, u32>,
}

impl Numbering {
    pub fn root(&mut self, number: u32) -> u32 {
        self.number(PathNode { above: 0, name: number }).unwrap_or(0)
    }

    pub(crate) fn name(&mut self, name: &[u8]) -> u32 {
        if let Some(number) = self.known_names.get(name) {
            return *number;
        }
        let number = self.paths.names.0.len() as u32;
        self.paths.names.0.push(Names::length_class(name));
        self.known_names.insert(name.to_vec(), number);
        number
    }

    /// A name in a folder; none where no such path can be.
    pub fn below(&mut self, above: u32, name: &[u8]) -> Option<u32> {
        let name = self.name(name);
        self.number(PathNode { above, name })
    }

    /// As [`Numbering::below`], of a name whose length means nothing.
    pub(crate) fn stand_in(&mut self, above: u32, name: &[u8]) -> Option<u32> {
        let number = self.name(name);
        *self.paths.names.0.get_mut(number as usize)? = 0;
        self.below(above, name)
    }

    /// What has a number already.
    pub(crate) fn known_below(&self, above: u32, name: &[u8]) -> Option<u32> {
        let name = *self.known_names.get(name)?;
        self.known_paths.get(&PathNode { above, name }).copied()
    }

    /// The number of a path whose name is known.
    pub(crate) fn at(&mut self, node: PathNode) -> Option<u32> {
        self.number(node)
    }

    fn number(&mut self, node: PathNode) -> Option<u32> {
        if let Some(number) = self.known_paths.get(&node) {
            return Some(*number);
        }
        self.paths.push(node).ok()?;
        let number = self.paths.len() as u32;
        self.known_paths.insert(node, number);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbers_of_nearly_the_same_length_and_no_two_are_alike() {
        let mut numbering = Numbering::default();
        let given = ["a", "Makefile", "ab", "a_rather_long_name.c", &"x".repeat(255), &"y".repeat(300)];
        let numbers: Vec<u32> = given.iter().map(|name| numbering.name(name.as_bytes())).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
        assert_eq!(numbering.name(b"Makefile"), 1);
        let texts: Vec<String> = numbers.iter().map(|number| numbering.paths.names.text(*number)).collect();
        assert_eq!(texts[..3], ["0", "00000001", "2"]);
        assert_eq!((texts[3].len(), texts[4].len(), texts[5].len()), (20, 252, 260));
        assert_eq!(texts.iter().collect::<std::collections::BTreeSet<_>>().len(), texts.len());
        assert_eq!(Names(vec![0; 1300]).text(1296), "100");
    }

    #[test]
    fn a_path_is_a_chain_of_names() {
        let mut numbering = Numbering::default();
        let root = numbering.root(0);
        let folder = numbering.below(root, b"folder").unwrap();
        let file = numbering.below(folder, b"file").unwrap();
        assert_eq!(numbering.below(folder, b"file"), Some(file));
        assert_eq!(numbering.paths.text(file), "top0/0000/0001");
        assert_eq!(numbering.paths.line(file).collect::<Vec<_>>(), [file, folder, root]);
        assert!(numbering.paths.clone().push(PathNode { above: 9, name: 0 }).is_err());
        assert!(numbering.paths.push(PathNode { above: 1, name: 9 }).is_err());
    }
}
