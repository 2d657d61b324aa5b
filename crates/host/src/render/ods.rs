//! An OpenDocument spreadsheet: summary, chart data, and all samples. Text is typed as text, so
//! that no cell is a formula.
//!
//! Three sheets of plain cells need one XML file in a zip archive; a crate that models all of
//! OpenDocument costs more to build than the rest of the reports together. The archive has no times
//! in it: the same journal gives the same bytes.

use super::tables::{self, Value};
use super::{Format, Options};
use crate::analysis::Model;
use quick_xml::escape::escape;
use std::io::{self, Cursor, Write};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

const MIME: &str = "application/vnd.oasis.opendocument.spreadsheet";

/// The most rows that spreadsheets have (2^20), without the header.
const MOST_ROWS: usize = (1 << 20) - 1;

const MANIFEST: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0" manifest:version="1.2">
<manifest:file-entry manifest:full-path="/" manifest:media-type="application/vnd.oasis.opendocument.spreadsheet"/>
<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/>
</manifest:manifest>
"#;

const HEAD: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" office:version="1.2"><office:body><office:spreadsheet>
"#;

const FOOT: &str = "</office:spreadsheet></office:body></office:document-content>\n";

pub(crate) const ODS: Format = Format {
    name: "ods",
    about: "spreadsheet for LibreOffice and others: summary, chart data, samples",
    is_binary: true,
    run: Some(write),
    ..Format::NONE
};

fn write(model: &Model, _: &Options, out: &mut dyn Write) -> io::Result<()> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().last_modified_time(DateTime::default());
    let stored = options.compression_method(CompressionMethod::Stored);
    // The type of the file must come first and uncompressed, for programs that look at the first
    // bytes alone.
    zip.start_file("mimetype", stored)?;
    zip.write_all(MIME.as_bytes())?;
    let packed = options.compression_method(CompressionMethod::Deflated);
    zip.start_file("META-INF/manifest.xml", packed)?;
    zip.write_all(MANIFEST.as_bytes())?;
    zip.start_file("content.xml", packed)?;
    // Cells come in small pieces, and the packer likes large ones.
    let mut content = io::BufWriter::with_capacity(1 << 16, &mut zip);
    sheets(model, &mut content)?;
    content.flush()?;
    drop(content);
    out.write_all(zip.finish()?.get_ref())
}

fn sheets(model: &Model, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(HEAD.as_bytes())?;
    sheet("Summary", &tables::summary_header(), tables::summary(model), out)?;
    sheet("Chart data", tables::CHART, tables::chart(model), out)?;
    let mut why = tables::why(model).peekable();
    if why.peek().is_some() {
        sheet("Why", tables::WHY, why, out)?;
    }
    let mut rows = tables::samples(model).peekable();
    for number in 1.. {
        let name = if number == 1 { "Samples".to_string() } else { format!("Samples {number}") };
        sheet(&name, tables::SAMPLES, rows.by_ref().take(MOST_ROWS), out)?;
        if rows.peek().is_none() {
            break;
        }
    }
    out.write_all(FOOT.as_bytes())
}

fn sheet<'a>(
    name: &str,
    header: &[&'a str],
    rows: impl Iterator<Item = Vec<Value<'a>>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "<table:table table:name=\"{name}\">")?;
    row(header.iter().map(|text| Value::from(*text)), out)?;
    for values in rows {
        row(values.into_iter(), out)?;
    }
    writeln!(out, "</table:table>")
}

fn row<'a>(values: impl Iterator<Item = Value<'a>>, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "<table:table-row>")?;
    for value in values {
        match value {
            Value::Text(text) => write!(
                out,
                "<table:table-cell office:value-type=\"string\"><text:p>{}</text:p></table:table-cell>",
                escape(&*text)
            )?,
            Value::Number(number) => write!(
                out,
                "<table:table-cell office:value-type=\"float\" office:value=\"{number}\"><text:p>{number}</text:p>\
                 </table:table-cell>"
            )?,
            Value::Nothing => write!(out, "<table:table-cell/>")?,
        }
    }
    writeln!(out, "</table:table-row>")
}
