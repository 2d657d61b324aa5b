//! The disk models in C (`crates/system/src/sys/disk_model/model.c`) behind functions that are safe
//! to call.

use serde::{Deserialize, Serialize};
use std::ffi::{c_int, c_uint, c_void};

/// The models' source, a name and a text each.
pub const SOURCES: [(&str, &str); 6] = [
    ("model.c", include_str!("disk_model/model.c")),
    ("model.h", include_str!("disk_model/model.h")),
    ("ftl.c", include_str!("disk_model/ftl.c")),
    ("ftl.h", include_str!("disk_model/ftl.h")),
    ("zbc.c", include_str!("disk_model/zbc.c")),
    ("zbc.h", include_str!("disk_model/zbc.h")),
];

/// Integers that a model is made of.
pub const WORDS: usize = 448;
/// Requests at a time.
pub(crate) const TAGS: usize = 256;
const NEVER: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Read,
    Write,
    Flush,
    Trim,
}

/// In the order of `enum sim_count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    Seeks,
    ReadHits,
    Destaged,
    Flushes,
    Programs,
    Erases,
    /// Units of a card that were copied, or bands of a shingled disk that were written anew.
    Merges,
    /// Sectors in the write cache now.
    Cached,
    /// When the arm began what it does; 0 if it rests.
    ArmFrom,
    ArmUntil,
    /// Landings that were not kept.
    Missed,
    /// For flash with a map: units of 4 KiB that hold data.
    Valid,
    /// Places of units that the host's writes took, padding included.
    Written,
    /// Units that garbage collection copied.
    Copied,
    /// Blocks that garbage collection erased, each of all dies.
    Collected,
}

/// Makes [`Part`] of the parts of model.h, each with its comment.
macro_rules! parts {
    ($($(#[$about:meta])* $name:ident,)*) => {
        /// What the time of a request is made of: `enum sim_part` of model.h, in its order.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Part {
            $($(#[$about])* $name,)*
        }

        impl Part {
            pub const ALL: [Part; [$(stringify!($name)),*].len()] = [$(Part::$name),*];
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/parts.rs"));

impl Part {
    pub fn word(self) -> &'static str {
        match self {
            Part::Queue => "queue",
            Part::Rate => "rate limit",
            Part::Controller => "controller",
            Part::Seek => "seek",
            Part::Turn => "turn",
            Part::Transfer => "transfer",
            Part::Die => "die",
            Part::Collection => "collection",
            Part::Link => "link",
            Part::Flush => "flush",
        }
    }
}

/// Number of parts.
pub const PARTS: usize = Part::ALL.len();

/// Sectors that are on the medium from a moment on; as `struct sim_landing`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Landing {
    /// The first sector on the device; `u64::MAX`: the next ones in the order in which they were
    /// written.
    pub first: u64,
    pub sectors: u64,
    /// What was in the cache by then.
    pub begun: u64,
    pub when: u64,
}

/// What a request asks for; sectors have 512 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    pub operation: Operation,
    /// Force unit access: done when it is on the medium.
    pub forced: bool,
    pub first: u64,
    pub sectors: u64,
}

/// The functions of model.h and zbc.h, each with its name in C and its type there.
macro_rules! functions {
    ($($field:ident = $name:ident($($argument:ty),*) -> $result:ty;)*) => {
        unsafe extern "C" {
            $(fn $name($(_: $argument),*) -> $result;)*
        }

        #[derive(Clone, Copy)]
        struct Functions {
            $($field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        const OURS: Functions = Functions { $($field: $name,)* };

        /// Those of a library, by the addresses of their names.
        fn of_library(address: impl Fn(&str) -> *mut c_void) -> Functions {
            // SAFETY: what a library made of the same headers calls so has this type.
            Functions { $($field: unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> $result>(address(stringify!($name)))
            },)* }
        }
    };
}

functions! {
    bytes = sim_bytes(*const u64) -> u64;
    start = sim_start(*mut c_void, *const u64) -> c_int;
    submit = sim_submit(*mut c_void, c_uint, c_int, c_int, u64, u64, u64) -> ();
    next = sim_next(*mut c_void) -> u64;
    wake = sim_wake(*mut c_void, u64) -> ();
    done = sim_done(*mut c_void, *mut c_uint, *mut u64) -> c_int;
    parts = sim_parts(*const c_void, c_uint) -> *const u64;
    landed = sim_landed(*mut c_void, *mut Landing) -> c_int;
    count = sim_count(*const c_void, c_int) -> u64;
    seek_ns = sim_seek_ns(*const c_void, u64) -> u64;
    broken = sim_broken(*const c_void) -> c_int;
    zbc = sim_zbc(*mut c_void) -> *mut Zones;
    zone_command = zbc_do(*mut Zones, c_int, *mut u64, u64) -> c_int;
    readable = zbc_readable(*const Zones, u64, u64) -> u64;
}

/// As `struct zbc`.
#[repr(C)]
struct Zones {
    size: u64,
    zones: c_uint,
    conventional: c_uint,
    zone: *const Zone,
}

/// As `struct zbc_zone`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    pub pointer: c_uint,
    pub data: c_uint,
    pub condition: c_uint,
}

/// In the order of `enum zbc_command`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneCommand {
    Write,
    Append,
    Reset,
    ResetAll,
    Open,
    Close,
    Finish,
}

/// A modelled disk on a clock that its caller owns. Times are nanoseconds.
pub struct DiskModel {
    memory: Vec<u64>,
    functions: Functions,
    used: [bool; TAGS],
    now: u64,
}

impl DiskModel {
    /// The number of the parameter that is out of range, if one is.
    pub fn start(words: &[u64; WORDS]) -> Result<DiskModel, usize> {
        DiskModel::of(OURS, words)
    }

    fn of(functions: Functions, words: &[u64; WORDS]) -> Result<DiskModel, usize> {
        // SAFETY: the table has all its words.
        let bytes = unsafe { (functions.bytes)(words.as_ptr()) };
        let mut disk =
            DiskModel { memory: vec![0; bytes.div_ceil(8) as usize], functions, used: [false; TAGS], now: 0 };
        // SAFETY: the memory is as large as was asked for, zeroed, aligned to 8, and the table has
        // all its words.
        match unsafe { (functions.start)(disk.at(), words.as_ptr()) } {
            0 => Ok(disk),
            wrong => Err(wrong as usize - 1),
        }
    }

    fn at(&mut self) -> *mut c_void {
        self.memory.as_mut_ptr().cast()
    }

    /// # Panics
    /// If the tag is in use, or time goes back.
    pub fn submit(&mut self, tag: usize, asked: &Asked, now: u64) {
        assert!(!self.used[tag] && now >= self.now, "tag {tag} is in use, or {now} is before {}", self.now);
        (self.used[tag], self.now) = (true, now);
        let (operation, forced) = (asked.operation as c_int, c_int::from(asked.forced));
        // SAFETY: the disk was started, and the tag is free and below TAGS, so its queue has room.
        unsafe { (self.functions.submit)(self.at(), tag as c_uint, operation, forced, asked.first, asked.sectors, now) }
    }

    /// When something happens next.
    pub fn next_event(&mut self) -> Option<u64> {
        // SAFETY: the disk was started.
        Some(unsafe { (self.functions.next)(self.at()) }).filter(|at| *at != NEVER)
    }

    /// # Panics
    /// If time goes back.
    pub fn wake(&mut self, now: u64) {
        assert!(now >= self.now, "{now} is before {}", self.now);
        self.now = now;
        // SAFETY: the disk was started.
        unsafe { (self.functions.wake)(self.at(), now) }
    }

    /// Tag and time of a request that is done by now.
    pub fn done(&mut self) -> Option<(usize, u64)> {
        let (mut tag, mut when) = (0, 0);
        // SAFETY: the disk was started, and both places can be written to.
        let found = unsafe { (self.functions.done)(self.at(), &raw mut tag, &raw mut when) };
        let tag = tag as usize;
        (found == 1).then(|| {
            self.used[tag] = false;
            (tag, when)
        })
    }

    /// Nanoseconds of each [`Part`] of the request that had this tag last and is done; they sum to
    /// its time.
    ///
    /// # Panics
    /// If the tag is in use.
    pub fn parts(&self, tag: usize) -> [u64; PARTS] {
        assert!(!self.used[tag], "tag {tag} is in use");
        // SAFETY: the disk was started, the tag is below TAGS, and each request has its parts.
        unsafe { *(self.functions.parts)(self.memory.as_ptr().cast(), tag as c_uint).cast::<[u64; PARTS]>() }
    }

    /// What came to the medium, also what is known to come.
    pub fn landed(&mut self) -> Option<Landing> {
        let mut landing = Landing::default();
        // SAFETY: the disk was started, and the place has the layout of `struct sim_landing`.
        let found = unsafe { (self.functions.landed)(self.at(), &raw mut landing) };
        (found == 1).then_some(landing)
    }

    pub fn count(&self, which: Count) -> u64 {
        // SAFETY: the disk was started, and the counts are those of model.h.
        unsafe { (self.functions.count)(self.memory.as_ptr().cast(), which as c_int) }
    }

    /// Time that a hard disk's arm needs to cross this many cylinders.
    pub fn seek_ns(&self, cylinders: u64) -> u64 {
        // SAFETY: the disk was started.
        unsafe { (self.functions.seek_ns)(self.memory.as_ptr().cast(), cylinders) }
    }
}

impl DiskModel {
    /// The number of a rule that the tables of flash break (`ftl_broken` in ftl.c).
    pub fn broken(&self) -> Option<c_int> {
        // SAFETY: the disk was started.
        Some(unsafe { (self.functions.broken)(self.memory.as_ptr().cast()) }).filter(|rule| *rule != 0)
    }

    fn zones(&mut self) -> *mut Zones {
        // SAFETY: the disk was started.
        let zones = unsafe { (self.functions.zbc)(self.at()) };
        assert!(!zones.is_null(), "the disk has no zones");
        zones
    }

    /// Where the command begins, if the disk does not refuse it.
    pub fn zone_command(&mut self, command: ZoneCommand, first: u64, sectors: u64) -> Option<u64> {
        let (zones, mut first) = (self.zones(), first);
        // SAFETY: the zones are those of the disk, and the place can be written to.
        let refused = unsafe { (self.functions.zone_command)(zones, command as c_int, &raw mut first, sectors) };
        (refused == 0).then_some(first)
    }

    /// How many of `sectors` sectors from `first` on hold data.
    pub fn readable(&mut self, first: u64, sectors: u64) -> u64 {
        let zones = self.zones();
        // SAFETY: the zones are those of the disk.
        unsafe { (self.functions.readable)(zones, first, sectors) }
    }

    pub fn zone(&mut self, number: usize) -> Zone {
        let zones = self.zones();
        // SAFETY: the disk's table has `zones` zones, and the number is checked against that.
        unsafe {
            assert!(number < (*zones).zones as usize, "zone {number}");
            *(*zones).zone.add(number)
        }
    }

    /// One of a library that was compiled from a changed model. It stays loaded.
    pub fn of_library(path: &std::path::Path, words: &[u64; WORDS]) -> Result<DiskModel, usize> {
        use std::os::unix::ffi::OsStrExt;
        let name = std::ffi::CString::new(path.as_os_str().as_bytes()).expect("a path");
        // SAFETY: the name ends with a zero, and the library has no constructors.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!library.is_null(), "cannot load {}", path.display());
        let address = |name: &str| {
            let found = std::ffi::CString::new(name).expect("a name");
            // SAFETY: the library is loaded, and the name ends with a zero.
            let found = unsafe { libc::dlsym(library, found.as_ptr()) };
            assert!(!found.is_null(), "{name} is missing");
            found
        };
        DiskModel::of(of_library(address), words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_without_delay_answers_at_once_and_a_wrong_table_is_refused() {
        let mut words = [0; WORDS];
        words[1] = 8;
        assert_eq!(DiskModel::start(&words).err(), Some(3), "no depth");
        words[3] = 32;
        let mut disk = DiskModel::start(&words).expect("a disk");
        let asked = Asked { operation: Operation::Read, forced: false, first: 0, sectors: 8 };
        disk.submit(7, &asked, 5);
        assert_eq!(disk.next_event(), Some(5));
        disk.wake(5);
        assert_eq!((disk.done(), disk.done(), disk.next_event()), (Some((7, 5)), None, None));
    }
}
