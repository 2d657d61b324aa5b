//! What a replay writes: bytes that compress as those of the recording did.

use pickfs_system::random::Random;
use pickfs_system::sys::file::AlignedBuffer;
use pickfs_trace::{CLASSES, Kind, Op, Trace};
use pickfs_trees::content::Content;
use pickfs_trees::profile::Stuff;

/// What each class of a trace is made of, from what no compressor shrinks to what shrinks most.
const STUFF: [Stuff; CLASSES as usize] = [Stuff::Media, Stuff::Object, Stuff::Source, Stuff::Log];

/// Bytes of each class, to cut from.
pub(crate) struct Bytes(Vec<AlignedBuffer>);

/// Writes of whole sectors begin at an address that suits O_DIRECT, too.
const SECTOR: usize = 512;

/// At least this many, so that what is cut twice in a row is seldom the same.
const LEAST: u64 = 2 << 20;
/// Longer writes are made of parts.
const MOST: u64 = 32 << 20;

/// Others that write, such as copy_file_range(2), bring their own; their lengths may be beyond all
/// files.
fn takes_bytes(kind: Kind) -> bool {
    matches!(kind, Kind::Write | Kind::WriteAt | Kind::MapWrite)
}

/// What was not written then is not written now.
pub(crate) fn to_write(op: &Op) -> u64 {
    if op.failed() { op.length } else { op.length.min(op.result as u64) }
}

impl Bytes {
    pub(crate) fn new(trace: &Trace, seed: u64) -> Bytes {
        let longest = trace.ops.iter().filter(|op| takes_bytes(op.kind)).map(to_write).max();
        let bytes = longest.unwrap_or(0).saturating_mul(2).clamp(LEAST, MOST) as usize;
        let mut content = Content::new();
        let made = |(number, stuff): (u64, Stuff)| {
            let mut aligned = AlignedBuffer::new(bytes);
            aligned.copy_from_slice(content.like(stuff, &mut Random::new(seed, number), bytes));
            aligned
        };
        Bytes((1..).zip(STUFF).map(made).collect())
    }

    /// The bytes for a write of this number: up to `length`, always the same, whatever came before
    /// it.
    pub(crate) fn piece(&self, class: u8, number: u32, length: u64) -> &[u8] {
        let bytes = &self.0[usize::from(class % CLASSES)];
        let length = length.min(bytes.len() as u64 / 2) as usize;
        let mixed = u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        // Spread over all places where a piece can begin, without a division.
        let at = ((u128::from(mixed) * (bytes.len() - length) as u128) >> 64) as usize;
        let at = if length % SECTOR == 0 { at - at % AlignedBuffer::ALIGNMENT } else { at };
        &bytes[at..at + length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pickfs_trace::Header;

    #[test]
    fn writes_of_whole_sectors_suit_direct_writes() {
        let trace = Trace { header: Header::default(), paths: Default::default(), tree: Vec::new(), ops: Vec::new() };
        let bytes = Bytes::new(&trace, 1);
        let address = |number, length| bytes.piece(1, number, length).as_ptr() as usize % AlignedBuffer::ALIGNMENT;
        assert!((1..50).all(|number| address(number, 4096) == 0 && address(number, 512) == 0));
        assert!((1..50).any(|number| address(number, 4097) != 0));
        assert!((1..50).any(|number| bytes.piece(1, number, 4096) != bytes.piece(1, 50, 4096)));
    }

    /// cp asks copy_file_range(2) for all there may ever be.
    #[test]
    fn only_writes_decide_how_many_bytes_there_are() {
        let bytes = |ops: Vec<Op>| {
            let trace = Trace { header: Header::default(), paths: Default::default(), tree: Vec::new(), ops };
            Bytes::new(&trace, 1).0[0].len() as u64
        };
        let op = |kind, length, result| Op { length, result, ..Op::new(kind) };
        assert_eq!(bytes(vec![op(Kind::CopyRange, 1 << 62, 4096), op(Kind::Read, 8 << 20, 0)]), LEAST);
        assert_eq!(bytes(vec![op(Kind::Write, 1 << 62, 4096)]), LEAST);
        assert_eq!(bytes(vec![op(Kind::WriteAt, 3 << 20, 3 << 20)]), 6 << 20);
    }
}
