//! Guesses what a file is for from the ending of its name.

use crate::profile::Kind;

/// The kind by a name without its folder. A name without ending is a program if it may be executed.
pub(crate) fn kind(name: &[u8], executable: bool) -> Kind {
    let mut letters = [0; LONGEST];
    match ending(name) {
        Some(ending) if ending.len() <= LONGEST => {
            letters[..ending.len()].copy_from_slice(ending);
            letters.make_ascii_lowercase();
            known(&letters[..ending.len()])
        }
        Some(_) => Kind::Other,
        None if executable => Kind::Object,
        None => without_ending(name),
    }
}

/// No meaningful ending is longer.
const LONGEST: usize = 10;

/// Behind the last dot, looking through numbers and marks of copies: `libc.so.6`, `notes.txt~`,
/// `log.1`.
fn ending(name: &[u8]) -> Option<&[u8]> {
    let mut rest = name.strip_suffix(b"~").unwrap_or(name);
    loop {
        let dot = rest.iter().rposition(|byte| *byte == b'.').filter(|dot| *dot > 0)?;
        let ending = &rest[dot + 1..];
        if !ending.iter().all(u8::is_ascii_digit) && !matches!(ending, b"bak" | b"old" | b"orig" | b"in") {
            return Some(ending);
        }
        rest = &rest[..dot];
    }
}

fn without_ending(name: &[u8]) -> Kind {
    match name {
        b"Makefile" | b"Kconfig" | b"Kbuild" | b"Dockerfile" | b"Makefile.am" | b"configure" => Kind::Source,
        b"README" | b"LICENSE" | b"COPYING" | b"ChangeLog" | b"AUTHORS" | b"NEWS" | b"INSTALL" => Kind::Document,
        b"syslog" | b"messages" | b"log" => Kind::Data,
        _ => Kind::Other,
    }
}

#[rustfmt::skip] // a table
fn known(ending: &[u8]) -> Kind {
    match ending {
        b"c" | b"h" | b"cc" | b"cpp" | b"cxx" | b"hpp" | b"hh" | b"hxx" | b"rs" | b"go" | b"py" | b"pyi" | b"java"
        | b"kt" | b"scala" | b"js" | b"mjs" | b"cjs" | b"jsx" | b"ts" | b"tsx" | b"rb" | b"pl" | b"pm" | b"php"
        | b"sh" | b"bash" | b"zsh" | b"fish" | b"s" | b"asm" | b"inc" | b"m" | b"mm" | b"swift" | b"cs" | b"fs"
        | b"hs" | b"ml" | b"mli" | b"lua" | b"r" | b"jl" | b"el" | b"lisp" | b"clj" | b"ex" | b"exs" | b"erl"
        | b"f" | b"f90" | b"sql" | b"vim" | b"tcl" | b"cmake" | b"mk" | b"am" | b"ac" | b"m4" | b"awk" | b"css"
        | b"scss" | b"less" | b"vue" | b"svelte" | b"dts" | b"dtsi" | b"proto" | b"idl" | b"y" | b"l" | b"zig"
        | b"nix" | b"gradle" | b"diff" | b"patch" | b"ld" | b"map" | b"d" => Kind::Source,
        b"html" | b"htm" | b"xhtml" | b"md" | b"rst" | b"txt" | b"tex" | b"adoc" | b"org" | b"xml" | b"xsl"
        | b"xsd" | b"svg" | b"po" | b"pot" | b"rtf" | b"texi" | b"man" | b"bib" | b"ps" | b"eps" => Kind::Document,
        b"json" | b"jsonl" | b"ndjson" | b"csv" | b"tsv" | b"yaml" | b"yml" | b"toml" | b"ini" | b"conf" | b"cfg"
        | b"log" | b"lock" | b"properties" | b"list" | b"plist" | b"geojson" | b"dat" | b"desktop" | b"service"
        | b"sum" | b"md5sums" | b"eml" | b"ics" | b"vcf" | b"ipynb" => Kind::Data,
        b"o" | b"a" | b"so" | b"ko" | b"obj" | b"lib" | b"dll" | b"exe" | b"dylib" | b"rlib" | b"rmeta" | b"pyc"
        | b"pyo" | b"class" | b"wasm" | b"elc" | b"mo" | b"bin" | b"elf" | b"debug" | b"pdb" | b"hi" | b"beam"
        | b"sys" | b"efi" | b"fw" | b"pch" | b"gch" | b"cmi" | b"cmx" | b"cmo" => Kind::Object,
        b"jpg" | b"jpeg" | b"png" | b"gif" | b"webp" | b"bmp" | b"tif" | b"tiff" | b"ico" | b"heic" | b"avif"
        | b"raw" | b"cr2" | b"nef" | b"arw" | b"dng" | b"psd" | b"xcf" | b"ppm" | b"pgm" | b"xpm" | b"tga"
        | b"ttf" | b"otf" | b"woff" | b"woff2" | b"pfb" => Kind::Image,
        b"mp3" | b"mp4" | b"m4a" | b"m4v" | b"mkv" | b"avi" | b"mov" | b"wav" | b"flac" | b"ogg" | b"oga" | b"ogv"
        | b"opus" | b"webm" | b"aac" | b"wma" | b"wmv" | b"mpg" | b"mpeg" | b"flv" | b"3gp" | b"aiff" | b"mid"
            => Kind::Media,
        b"gz" | b"tgz" | b"bz2" | b"xz" | b"txz" | b"zst" | b"lz4" | b"lzma" | b"lz" | b"br" | b"z" | b"zip"
        | b"7z" | b"rar" | b"jar" | b"war" | b"apk" | b"deb" | b"rpm" | b"whl" | b"egg" | b"gem" | b"crate"
        | b"nupkg" | b"snap" | b"cab" | b"dmg" | b"docx" | b"xlsx" | b"pptx" | b"odt" | b"ods" | b"odp" | b"epub"
        | b"pdf" | b"pack" | b"squashfs" | b"tar" | b"cpio" => Kind::Archive,
        b"db" | b"sqlite" | b"sqlite3" | b"mdb" | b"ldb" | b"sst" | b"ibd" | b"frm" | b"myd" | b"myi" | b"mbox"
        | b"pst" | b"qcow2" | b"vmdk" | b"vdi" | b"vhd" | b"vhdx" | b"img" | b"iso" | b"parquet" | b"orc"
        | b"hdf5" | b"h5" | b"npy" | b"npz" | b"pkl" | b"pt" | b"safetensors" | b"gguf" | b"arrow" | b"feather"
        | b"idx" | b"wal" | b"kdbx" => Kind::Store,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_tell() {
        let cases: [(&[u8], bool, Kind); 15] = [
            (b"main.c", false, Kind::Source),
            (b"MAIN.C", false, Kind::Source),
            (b"libc.so.6", true, Kind::Object),
            (b"a.tar.gz", false, Kind::Archive),
            (b"log.1", false, Kind::Other),
            (b"kern.log.1", false, Kind::Data),
            (b"notes.txt~", false, Kind::Document),
            (b".profile", false, Kind::Other),
            (b"ls", true, Kind::Object),
            (b"ls", false, Kind::Other),
            (b"Makefile", false, Kind::Source),
            (b"x.an-ending-that-is-far-too-long", true, Kind::Other),
            (b"\xff.jpg", false, Kind::Image),
            (b".", false, Kind::Other),
            (b"x.", false, Kind::Other),
        ];
        for (name, executable, wanted) in cases {
            assert_eq!(kind(name, executable), wanted, "{}", String::from_utf8_lossy(name));
        }
    }
}
