//! Traces that come with pickfs: recordings of programs that many people run.

/// A trace with its name.
pub struct Shipped {
    pub name: &'static str,
    pub about: &'static str,
    pub bytes: &'static [u8],
}

/// Sorted by name. `make traces` records them anew.
pub const ALL: &[Shipped] = &[
    Shipped {
        name: "apt-install",
        about: "apt-get install of four small packages in a minimal Debian, fetched before",
        bytes: include_bytes!("shipped/apt-install.pktrace"),
    },
    Shipped {
        name: "cargo-build",
        about: "cargo build of a small program with four libraries, from their sources",
        bytes: include_bytes!("shipped/cargo-build.pktrace"),
    },
    Shipped {
        name: "container-unpack",
        about: "umoci unpack of a container image of two layers: files of seven Debian packages",
        bytes: include_bytes!("shipped/container-unpack.pktrace"),
    },
    Shipped {
        name: "git-clone",
        about: "git clone of a small repository from its folder, with the files checked out",
        bytes: include_bytes!("shipped/git-clone.pktrace"),
    },
    Shipped {
        name: "maildir",
        about: "procmail delivers 500 messages into a maildir; notmuch indexes it twice",
        bytes: include_bytes!("shipped/maildir.pktrace"),
    },
    Shipped {
        name: "npm-install",
        about: "npm ci of 71 packages from its cache",
        bytes: include_bytes!("shipped/npm-install.pktrace"),
    },
    Shipped {
        name: "pgbench",
        about: "a PostgreSQL server under pgbench: four clients, 2,000 transactions",
        bytes: include_bytes!("shipped/pgbench.pktrace"),
    },
    Shipped {
        name: "photo-import",
        about: "60 photographs from a card: copied, renamed by date with exiv2, a small picture of each",
        bytes: include_bytes!("shipped/photo-import.pktrace"),
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
            let trace = crate::read(shipped.bytes).expect(shipped.name);
            assert!(trace.stats().calls() > 500 && trace.header.exit == 0, "{}", shipped.name);
        }
    }
}
