//! Tables as Apache Parquet, which pandas, DuckDB and Spark read: one row group, plain and not compressed, every value there.
//!
//! The format: parquet-format 2.10, `src/main/thrift/parquet.thrift`; its metadata are in Thrift's compact protocol.

use anyhow::{Result, ensure};

/// A column of a table.
#[derive(Debug)]
pub enum Values {
    Numbers(Vec<i64>),
    Texts(Vec<String>),
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Values::Numbers(numbers) => numbers.len(),
            Values::Texts(texts) => texts.len(),
        }
    }

    /// INT64 or BYTE_ARRAY of `Type`.
    fn kind(&self) -> i64 {
        match self {
            Values::Numbers(_) => 2,
            Values::Texts(_) => 6,
        }
    }

    /// In the encoding PLAIN.
    fn bytes(&self) -> Vec<u8> {
        match self {
            Values::Numbers(numbers) => numbers.iter().flat_map(|number| number.to_le_bytes()).collect(),
            Values::Texts(texts) => texts
                .iter()
                .flat_map(|text| [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat())
                .collect(),
        }
    }
}

const MAGIC: &[u8] = b"PAR1";
/// `Encoding`: values as they are; levels, of which there are none.
const PLAIN: i64 = 0;
const RLE: i64 = 3;
/// A page says its bytes in 32 bits with a sign.
const MOST_BYTES: usize = i32::MAX as usize;

/// The bytes of a file; all columns have as many values.
pub fn parquet(columns: &[(&str, Values)]) -> Result<Vec<u8>> {
    let rows = columns.first().map_or(0, |(_, values)| values.len());
    ensure!(columns.iter().all(|(_, values)| values.len() == rows), "columns of different lengths");
    let (mut file, mut chunks) = (MAGIC.to_vec(), Vec::new());
    for (name, values) in columns {
        let (begin, bytes) = (file.len(), values.bytes());
        ensure!(bytes.len() <= MOST_BYTES, "the column {name} has {} bytes, more than a page can have", bytes.len());
        file.extend(page_header(rows, bytes.len()));
        file.extend(bytes);
        chunks.push(chunk(name, values, begin, file.len() - begin));
    }
    let bytes = file.len() - MAGIC.len();
    let group = Struct::new().list(1, STRUCT, &chunks).long(2, bytes).long(3, rows).end();
    let about = Struct::new()
        .number(1, 1)
        .list(2, STRUCT, &schema(columns))
        .long(3, rows)
        .list(4, STRUCT, &[group])
        .text(6, "pickfs")
        .end();
    file.extend(&about);
    file.extend((about.len() as u32).to_le_bytes());
    file.extend(MAGIC);
    Ok(file)
}

/// `PageHeader` of a `DATA_PAGE`.
fn page_header(rows: usize, bytes: usize) -> Vec<u8> {
    let data = Struct::new().number(1, rows as i64).number(2, PLAIN).number(3, RLE).number(4, RLE).end();
    Struct::new().number(1, 0).number(2, bytes as i64).number(3, bytes as i64).inner(5, &data).end()
}

/// `ColumnChunk`, whose one page begins the chunk.
fn chunk(name: &str, values: &Values, begin: usize, bytes: usize) -> Vec<u8> {
    let about = Struct::new()
        .number(1, values.kind())
        .list(2, NUMBER, &[zigzag(PLAIN), zigzag(RLE)])
        .list(3, TEXT, &[counted(name)])
        .number(4, 0)
        .long(5, values.len())
        .long(6, bytes)
        .long(7, bytes)
        .long(9, begin)
        .end();
    Struct::new().long(2, begin).inner(3, &about).end()
}

/// `SchemaElement` of the table and of its columns, all of them REQUIRED.
fn schema(columns: &[(&str, Values)]) -> Vec<Vec<u8>> {
    let table = Struct::new().text(4, "schema").number(5, columns.len() as i64).end();
    let column = |(name, values): &(&str, Values)| {
        let element = Struct::new().number(1, values.kind()).number(3, 0).text(4, name);
        // The `ConvertedType` UTF8.
        if matches!(values, Values::Texts(_)) { element.number(6, 0).end() } else { element.end() }
    };
    std::iter::once(table).chain(columns.iter().map(column)).collect()
}

// Types of Thrift's compact protocol.
const NUMBER: u8 = 5;
const LONG: u8 = 6;
const TEXT: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A struct of Thrift's compact protocol; its fields come in ascending order.
struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

impl Struct {
    fn new() -> Struct {
        Struct { bytes: Vec::new(), last: 0 }
    }

    fn field(mut self, id: u8, kind: u8, value: &[u8]) -> Struct {
        self.bytes.push((id - self.last) << 4 | kind);
        self.bytes.extend(value);
        self.last = id;
        self
    }

    fn number(self, id: u8, value: i64) -> Struct {
        self.field(id, NUMBER, &zigzag(value))
    }

    fn long(self, id: u8, value: usize) -> Struct {
        self.field(id, LONG, &zigzag(value as i64))
    }

    fn text(self, id: u8, value: &str) -> Struct {
        self.field(id, TEXT, &counted(value))
    }

    fn inner(self, id: u8, value: &[u8]) -> Struct {
        self.field(id, STRUCT, value)
    }

    fn list(self, id: u8, kind: u8, values: &[Vec<u8>]) -> Struct {
        let mut head = match values.len() {
            few @ 0..15 => vec![(few as u8) << 4 | kind],
            many => [&[0xf0 | kind][..], &varint(many as u64)].concat(),
        };
        head.extend(values.concat());
        self.field(id, LIST, &head)
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn counted(text: &str) -> Vec<u8> {
    [&varint(text.len() as u64)[..], text.as_bytes()].concat()
}

fn zigzag(value: i64) -> Vec<u8> {
    varint((value << 1 ^ value >> 63) as u64)
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_thrift_writes_them() {
        for (value, bytes) in [(0, &[0][..]), (-1, &[1]), (1, &[2]), (150, &[0xac, 0x02]), (-65, &[0x81, 0x01])] {
            assert_eq!(zigzag(value), bytes, "{value}");
        }
        let many: Vec<Vec<u8>> = (0..20).map(|_| vec![1]).collect();
        assert_eq!(Struct::new().list(3, NUMBER, &many).end()[..4], [0x39, 0xf5, 20, 1]);
    }

    /// Read back by pyarrow as {'a': [1, -2], 'b': ['', 'ä\n']}; the same bytes since.
    #[test]
    fn a_file_is_the_one_that_another_reader_has_read() {
        let columns = [("a", Values::Numbers(vec![1, -2])), ("b", Values::Texts(vec!["".into(), "ä\n".into()]))];
        let file = parquet(&columns).unwrap();
        let shown: String = file.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(shown, WRITTEN);
        assert!(parquet(&[("a", Values::Numbers(vec![1])), ("b", Values::Texts(Vec::new()))]).is_err());
    }

    const WRITTEN: &str = "504152311500152015202c150415001506150600000100000000000000feffffffffffffff1500151615162c150415001506\
        150600000000000003000000c3a40a1502193c4806736368656d611504001504250018016100150c25001801622500001604\
        191c192c26081c15041925000619180161150016041642164226080000264a1c150c19250006191801621500160416381638\
        264a0000167a16040028067069636b6673006700000050415231";
}
