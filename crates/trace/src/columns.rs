//! Numbers in columns, each compressed for itself, and the reader that trusts none of them.

use anyhow::{Result, anyhow, bail, ensure};
use zstd_safe::{CCtx, CParameter};

/// What every trace begins with.
pub(crate) const MAGIC: &[u8; 8] = b"pktrace\n";

/// Columns of operations, one for each field of an operation.
pub(crate) const COLUMNS: usize = 12;

/// Numbers of the sections, in the order in which they come.
pub(crate) struct Sections;

impl Sections {
    pub(crate) const LENGTHS: u8 = 1;
    pub(crate) const ABOVE: u8 = 2;
    pub(crate) const NAMES: u8 = 3;
    pub(crate) const TREE_PATHS: u8 = 4;
    pub(crate) const TREE_KINDS: u8 = 5;
    pub(crate) const TREE_VALUES: u8 = 6;
    pub(crate) const FIRST_OF_OPS: u8 = 16;
    pub(crate) const END: u8 = 255;
}

/// Level 9 takes a twentieth of the time that recording adds to tar, for a file 6 % smaller.
const LEVEL: i32 = 3;

/// What a varint of 64 bits takes at most.
const LONGEST: u64 = 10;

/// Numbers of one kind, on their way into a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Column {
    bytes: Vec<u8>,
    count: u64,
}

impl Column {
    pub(crate) fn push(&mut self, value: u64) {
        let mut rest = value;
        while rest >= 0x80 {
            self.bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
        self.count += 1;
    }

    pub(crate) fn push_signed(&mut self, value: i64) {
        self.push(((value << 1) ^ (value >> 63)) as u64);
    }

    /// Its number, how many values it has, its length now and compressed, and the compressed bytes.
    pub(crate) fn write(&self, id: u8, out: &mut Vec<u8>) -> Result<()> {
        let mut packed = vec![0; zstd_safe::compress_bound(self.bytes.len())];
        let mut context = CCtx::create();
        let set = |context: &mut CCtx, parameter| context.set_parameter(parameter).map_err(problem).map(drop);
        set(&mut context, CParameter::CompressionLevel(LEVEL))?;
        set(&mut context, CParameter::ChecksumFlag(true))?;
        let length = context.compress2(&mut packed[..], &self.bytes).map_err(problem)?;
        packed.truncate(length);
        let mut head = Column::default();
        [self.count, self.bytes.len() as u64, packed.len() as u64].into_iter().for_each(|number| head.push(number));
        out.push(id);
        out.extend_from_slice(&head.bytes);
        out.extend_from_slice(&packed);
        Ok(())
    }
}

fn problem(code: usize) -> anyhow::Error {
    anyhow!("zstd: {}", zstd_safe::get_error_name(code))
}

/// A position in bytes of unknown origin.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], at: usize) -> Cursor<'a> {
        Cursor { bytes, at }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(crate) fn take(&mut self, length: u64) -> Result<&'a [u8]> {
        let left = (self.bytes.len() - self.at) as u64;
        ensure!(length <= left, "it ends at byte {}, {} bytes too early", self.bytes.len(), length - left);
        let taken = &self.bytes[self.at..self.at + length as usize];
        self.at += length as usize;
        Ok(taken)
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn varint(&mut self) -> Result<u64> {
        let (begun, mut value) = (self.at, 0u64);
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            ensure!(shift < 63 || bits <= 1, "a number at byte {begun} is too large");
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        bail!("a number at byte {begun} is too long")
    }

    /// The next column, unpacked; it must be the one of that number.
    pub(crate) fn column(&mut self, id: u8, most: u64) -> Result<Unpacked> {
        let begun = self.at;
        let found = self.byte()?;
        ensure!(found == id, "byte {begun} should begin section {id}, and begins {found}");
        let (count, length, packed) = (self.varint()?, self.varint()?, self.varint()?);
        ensure!(count <= most, "section {id} at byte {begun} has {count} numbers; {most} is the most");
        ensure!(length >= count && length <= count * LONGEST, "section {id} at byte {begun} has an impossible length");
        let packed = self.take(packed)?;
        // Nothing is set aside for what a few bytes promise: zstd packs at most about 30,000 to
        // one.
        ensure!(length <= 64 << 10 || length / 32_768 <= packed.len() as u64, "section {id} at byte {begun} is a bomb");
        let mut bytes = vec![0; length as usize];
        let unpacked = zstd_safe::decompress(&mut bytes[..], packed)
            .map_err(|code| anyhow!("section {id} at byte {begun} is damaged: {}", zstd_safe::get_error_name(code)))?;
        ensure!(unpacked as u64 == length, "section {id} at byte {begun} has another length than its header gives");
        Ok(Unpacked { id, begun, bytes, at: 0, left: count })
    }
}

/// A column's numbers, one after the other.
pub(crate) struct Unpacked {
    id: u8,
    /// Where it began in the file.
    begun: usize,
    bytes: Vec<u8>,
    at: usize,
    left: u64,
}

impl Unpacked {
    pub(crate) fn count(&self) -> u64 {
        self.left
    }

    pub(crate) fn next(&mut self) -> Result<u64> {
        let mut cursor = Cursor::new(&self.bytes, self.at);
        let value = cursor.varint().map_err(|error| anyhow!("section {} at byte {}: {error}", self.id, self.begun))?;
        self.at = cursor.at();
        self.left = self.left.saturating_sub(1);
        Ok(value)
    }

    pub(crate) fn next_signed(&mut self) -> Result<i64> {
        let value = self.next()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A number below a bound, such as an index.
    pub(crate) fn next_below(&mut self, bound: u64, what: &str) -> Result<u32> {
        let value = self.next()?;
        ensure!(value < bound, "section {} at byte {}: {what} {value} is not below {bound}", self.id, self.begun);
        u32::try_from(value).map_err(|_| anyhow!("section {} at byte {}: {what} is too large", self.id, self.begun))
    }

    /// Nothing may be left.
    pub(crate) fn end(self) -> Result<()> {
        let left = self.bytes.len() - self.at;
        ensure!(left == 0, "section {} at byte {} has {left} bytes too many", self.id, self.begun);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_damage_is_seen() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        let mut column = Column::default();
        numbers.iter().for_each(|number| column.push(*number));
        [0, -1, 1, i64::MIN, i64::MAX].iter().for_each(|number| column.push_signed(*number));
        let mut bytes = Vec::new();
        column.write(7, &mut bytes).unwrap();
        let mut back = Cursor::new(&bytes, 0).column(7, 100).unwrap();
        assert_eq!(numbers.map(|_| back.next().unwrap()), numbers);
        assert_eq!([(); 5].map(|()| back.next_signed().unwrap()), [0, -1, 1, i64::MIN, i64::MAX]);
        back.end().unwrap();
        assert!(Cursor::new(&bytes, 0).column(8, 100).is_err() && Cursor::new(&bytes, 0).column(7, 5).is_err());
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            let read = Cursor::new(&damaged, 0).column(7, 100);
            let same = read.is_ok_and(|read| read.bytes == column.bytes && read.left == column.count);
            assert!(!same || at > 4, "{at}"); // a bit of zstd's own head may mean nothing
            assert!(Cursor::new(&bytes[..at], 0).column(7, 100).is_err());
        }
    }
}
