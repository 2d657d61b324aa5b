//! One operation of a trace, and a row for each kind: its name, its class, and which of its numbers
//! mean something.

/// What an operation works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Nothing,
    /// An open file.
    Object,
    Path,
    /// An open file where it names one, else a path.
    Either,
    /// A path, which may be missing.
    MaybePath,
    /// Another thread.
    Thread,
}

/// Operations whose times are shown together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    Open,
    Close,
    Read,
    Write,
    Sync,
    /// Asks, and changes nothing.
    Stat,
    List,
    /// Makes, renames and removes names.
    Name,
    /// Changes attributes and lengths.
    Change,
    /// Bytes that the program read or wrote through its memory.
    Map,
    /// No call on files.
    Thread,
}

impl Class {
    pub const NAMES: [&'static str; 11] =
        ["open", "close", "read", "write", "sync", "stat", "list", "name", "change", "map", "thread"];

    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

macro_rules! kinds {
    ($($kind:ident $name:literal $class:ident $target:ident $other:ident;)*) => {
        /// What an operation does. In a file it stands as its number, so that rows are only added
        /// at the end.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind { $($kind,)* }

        impl Kind {
            pub const ALL: &'static [Kind] = &[$(Kind::$kind,)*];
            const ROWS: &'static [(&'static str, Class, Target, Target)] =
                &[$(($name, Class::$class, Target::$target, Target::$other),)*];
        }
    };
}

kinds! {
    Open "open" Open Path Nothing;
    Close "close" Close Object Nothing;
    Read "read" Read Object Nothing;
    Write "write" Write Object Nothing;
    ReadAt "pread" Read Object Nothing;
    WriteAt "pwrite" Write Object Nothing;
    Seek "lseek" Stat Object Nothing;
    List "getdents" List Object Nothing;
    Stat "stat" Stat Either Nothing;
    Access "access" Stat Path Nothing;
    ReadLink "readlink" Stat Path Nothing;
    MakeDir "mkdir" Name Path Nothing;
    RemoveDir "rmdir" Name Path Nothing;
    Unlink "unlink" Name Path Nothing;
    Rename "rename" Name Path Path;
    Link "link" Name Path Path;
    SymLink "symlink" Name Path MaybePath;
    MakeNode "mknod" Name Path Nothing;
    Chmod "chmod" Change Either Nothing;
    Chown "chown" Change Either Nothing;
    Times "utimens" Change Either Nothing;
    Truncate "truncate" Change Either Nothing;
    Allocate "fallocate" Change Object Nothing;
    Sync "fsync" Sync Object Nothing;
    SyncRange "sync_file_range" Sync Object Nothing;
    SyncAll "sync" Sync Nothing Nothing;
    Advise "fadvise" Stat Object Nothing;
    CopyRange "copy_file_range" Write Object Object;
    Clone "ficlone" Write Object Object;
    GetAttribute "getxattr" Stat Either Nothing;
    SetAttribute "setxattr" Change Either Nothing;
    ListAttributes "listxattr" Stat Either Nothing;
    RemoveAttribute "removexattr" Change Either Nothing;
    StatFs "statfs" Stat Either Nothing;
    MapRead "mmap-read" Map Object Nothing;
    MapWrite "mmap-write" Map Object Nothing;
    Spawn "spawn" Thread Nothing Thread;
    Join "join" Thread Nothing Thread;
    LinkObject "link-open" Name Object Path;
    End "end" Thread Nothing Nothing;
}

impl Kind {
    pub fn name(self) -> &'static str {
        Self::ROWS[self as usize].0
    }

    pub fn class(self) -> Class {
        Self::ROWS[self as usize].1
    }

    pub(crate) fn target(self) -> Target {
        Self::ROWS[self as usize].2
    }

    /// What [`Op::other`] is.
    pub fn other(self) -> Target {
        Self::ROWS[self as usize].3
    }

    /// Its result is a number of bytes, as many as asked for where all goes well.
    pub fn moves_bytes(self) -> bool {
        use Kind::*;
        matches!(self, Read | Write | ReadAt | WriteAt | CopyRange | MapRead | MapWrite)
    }
}

/// No file and no offset is larger: 8 EiB is the kernel's own limit.
pub(super) const LARGEST: u64 = i64::MAX as u64;

/// MAX_ERRNO of the kernel's include/linux/err.h: no call returns less than its negative.
pub const MOST_ERRNO: i64 = 4095;

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    pub kind: Kind,
    pub thread: u32,
    /// Number of operations that had ended when it began: it saw their effects.
    pub began: u32,
    /// An open file, from 1 on in the order of opening; 0 is none. For `Open`, the one that it
    /// makes.
    pub object: u32,
    /// From 1 on; 0 is none.
    pub path: u32,
    /// A second path, object or thread.
    pub other: u32,
    pub offset: u64,
    pub length: u64,
    /// What the kind makes of it: open(2)'s flags, a mode, a class of content, [`attribute`]'s
    /// number.
    pub flags: u64,
    /// Minus an error's number, or what the call returned where that means something.
    pub result: i64,
    /// CPU time of its thread since its last operation, without what the stops cost.
    pub think_ns: u64,
    /// As recorded, with what the stops cost.
    pub took_ns: u64,
}

impl Op {
    pub fn new(kind: Kind) -> Op {
        Op {
            kind,
            thread: 0,
            began: 0,
            object: 0,
            path: 0,
            other: 0,
            offset: 0,
            length: 0,
            flags: 0,
            result: 0,
            think_ns: 0,
            took_ns: 0,
        }
    }

    /// The kernel does nothing for a call for which this is false. It checks by itself where a seek
    /// goes.
    pub(crate) fn is_within_a_file(&self) -> bool {
        self.kind == Kind::Seek || self.offset <= LARGEST && self.length <= LARGEST
    }

    pub fn failed(&self) -> bool {
        self.result < 0
    }

    /// Where an operation begins that goes on where this one ended.
    pub(crate) fn end(&self) -> u64 {
        self.offset.wrapping_add(self.length)
    }

    /// The result where it does all that it is asked for.
    pub(crate) fn usual_result(&self) -> i64 {
        if self.kind.moves_bytes() { self.length.min(i64::MAX as u64) as i64 } else { 0 }
    }

    /// It makes an open file.
    pub fn opens(&self) -> bool {
        self.kind == Kind::Open && !self.failed()
    }
}

/// In the flags of a [`Kind::CopyRange`] without a place to write at: by sendfile(2), which reads
/// and writes all bytes where copy_file_range(2) may share blocks.
pub const SENDFILE: u64 = 4;

/// Names of extended attributes are numbers too: those of the system that programs ask for, then
/// the user's.
pub mod attribute {
    /// Attributes of the system, in the format's order: only added to at the end.
    pub(crate) const KNOWN: [&str; 4] =
        ["security.capability", "security.selinux", "system.posix_acl_access", "system.posix_acl_default"];

    /// The number of a name of which all but the known ones are numbered by `number`.
    pub(crate) fn code(name: &[u8], number: impl FnOnce() -> u32) -> u64 {
        let known = KNOWN.iter().position(|known| known.as_bytes() == name);
        known.map_or_else(|| KNOWN.len() as u64 + u64::from(number()), |known| known as u64)
    }

    /// What it is called in a replay.
    pub fn name(code: u64) -> String {
        match KNOWN.get(code as usize) {
            Some(known) => (*known).to_string(),
            None => format!("user.{}", code - KNOWN.len() as u64),
        }
    }
}
