//! Traces that come with pickfs: recordings of programs that many people run.

/// A trace with its name.
pub struct ShippedTrace {
    pub name: &'static str,
    pub about: &'static str,
    pub bytes: &'static [u8],
}

macro_rules! shipped {
    ($($name:literal: $about:literal;)*) => {
        &[$(ShippedTrace { name: $name, about: $about, bytes: include_bytes!(concat!("shipped/", $name, ".pktrace")) }),*]
    };
}

/// Sorted by name. `make traces` records them anew.
pub const ALL: &[ShippedTrace] = shipped! {
    "apt-install": "apt-get install of four small packages in a minimal Debian, fetched before";
    "cargo-build": "cargo build of a small program with four libraries, from their sources";
    "container-unpack": "umoci unpack of a container image of two layers: files of seven Debian packages";
    "git-clone": "git clone of a small repository from its folder, with the files checked out";
    "maildir": "procmail delivers 500 messages into a maildir; notmuch indexes it twice";
    "npm-install": "npm ci of 71 packages from its cache";
    "pgbench": "a PostgreSQL server under pgbench: four clients, 2,000 transactions";
    "photo-import": "60 photographs from a card: copied, renamed by date with exiv2, a small picture of each";
    "sqlite-inserts": "sqlite3 with a write-ahead log: 300 transactions of a row, and queries between them";
    "tar-extract": "tar x of the kernel's header files, as installed for C programs";
};

/// The trace of that name.
pub fn find(name: &str) -> Option<&'static ShippedTrace> {
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
