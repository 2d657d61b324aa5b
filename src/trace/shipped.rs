//! Traces that come with pickfs: recordings of programs that many people run.

/// A trace with its name.
pub struct Shipped {
    pub name: &'static str,
    pub about: &'static str,
    pub bytes: &'static [u8],
}

/// Sorted by name.
pub const ALL: &[Shipped] = &[
    Shipped {
        name: "git-clone",
        about: "git clone of a small repository from its folder, with the files checked out",
        bytes: include_bytes!("shipped/git-clone.pktrace"),
    },
    Shipped {
        name: "sqlite-inserts",
        about: "sqlite3 with a write-ahead log: 300 transactions of a row, and queries between them",
        bytes: include_bytes!("shipped/sqlite-inserts.pktrace"),
    },
    Shipped {
        name: "tar-extract",
        about: "tar x of the kernel's header files, as installed for C programs",
        bytes: include_bytes!("shipped/tar-extract.pktrace"),
    },
];

/// The trace of that name.
pub fn find(name: &str) -> Option<&'static Shipped> {
    ALL.iter().find(|shipped| shipped.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_trace_can_be_read() {
        assert!(ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
        for shipped in ALL {
            let trace = crate::trace::read(shipped.bytes).expect(shipped.name);
            assert!(trace.stats().calls() > 500 && trace.header.exit == 0, "{}", shipped.name);
        }
    }
}
