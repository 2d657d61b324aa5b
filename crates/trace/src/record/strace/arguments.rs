//! Arguments of a call as a log prints them, turned back into the numbers that the call had. Texts
//! and structures get addresses, at which they are found again.

use super::line::{number, place, split, unquoted};
use super::symbols::{Named, flags};
use anyhow::{Context, Result};
use pickfs_system::sys::ptrace::Call;

/// A call, and what its addresses lead to.
pub(crate) struct Rebuilt {
    pub call: Call,
    /// By address: number of the argument, from 1 on.
    memory: Vec<Vec<u8>>,
    /// Where the open files lie that the arguments name, by descriptor.
    pub places: Vec<(i32, Vec<u8>)>,
}

/// Addresses are so far apart.
const STEP: u64 = 1 << 32;

/// None of a call that is about nothing which is recorded.
pub(crate) fn rebuilt(named: &Named, text: &str) -> Result<Option<Rebuilt>> {
    let (name, number, significant) = *named;
    let words = split(text);
    let mut found =
        Rebuilt { call: Call { number, arguments: [0; 6] }, memory: vec![Vec::new(); 7], places: Vec::new() };
    if matches!(name, "clone" | "clone3" | "fork" | "vfork") {
        found.call.arguments = started(name, text)?;
        found.memory[1] = found.call.arguments[5].to_le_bytes().to_vec();
        return Ok(Some(found));
    }
    if name == "ioctl" {
        return Ok(found.clones(&words));
    }
    for (at, word) in words.iter().take(6).enumerate() {
        found.call.arguments[at] = if significant.contains(&at) {
            flags(word).with_context(|| format!("{name}: flags {word:?} are not known"))?
        } else {
            found.value(at, word)
        };
    }
    let is_other = match name {
        "fcntl" => !matches!(words.get(1), Some(&("F_DUPFD" | "F_DUPFD_CLOEXEC" | "F_SETFD"))),
        "mmap" => words.get(4).is_none_or(|word| word.starts_with('-')),
        _ => false,
    };
    if name == "fcntl" {
        found.call.arguments[1] = words.get(1).and_then(|word| flags(word)).unwrap_or(0);
        found.call.arguments[2] = words.get(2).and_then(|word| flags(word)).unwrap_or(0);
    }
    Ok((!is_other).then_some(found))
}

/// Flags stand behind `flags=`; clone3's are read from memory.
fn started(name: &str, text: &str) -> Result<[u64; 6]> {
    if !name.starts_with("clone") {
        return Ok([0; 6]);
    }
    let word = text.split_once("flags=").map(|(_, rest)| rest.split([',', '}', ' ']).next().unwrap_or_default());
    let word = word.with_context(|| format!("{name} without flags"))?;
    let value = flags(word).with_context(|| format!("{name}: flags {word:?} are not known"))?;
    Ok(if name == "clone3" { [STEP, 0, 0, 0, 0, value] } else { [value, 0, 0, 0, 0, value] })
}

impl Rebuilt {
    fn value(&mut self, at: usize, word: &str) -> u64 {
        let address = (at as u64 + 1) * STEP;
        if let Some(text) = unquoted(word) {
            self.memory[at + 1] = [text, vec![0]].concat();
            return address;
        }
        if let Some(descriptor) = self.descriptor(word) {
            return descriptor as u64;
        }
        match word.as_bytes().first() {
            Some(b'[' | b'{') => {
                self.memory[at + 1] = structure(word);
                address
            }
            _ => word.split(' ').next().and_then(number).unwrap_or(0),
        }
    }

    /// `3</somewhere>`, or `AT_FDCWD`.
    fn descriptor(&mut self, word: &str) -> Option<i32> {
        let bare = word.split('<').next().unwrap_or_default();
        let descriptor = if bare == "AT_FDCWD" { libc::AT_FDCWD } else { bare.parse().ok()? };
        self.places.extend(place(word).map(|place| (descriptor, place)));
        Some(descriptor)
    }

    /// ioctl(2) of a clone.
    fn clones(mut self, words: &[&str]) -> Option<Rebuilt> {
        const WHOLE: u64 = 0x4004_9409;
        const PART: u64 = 0x4020_940d;
        let [file, request, other] = *words else { return None };
        let is_part = request.ends_with("FICLONERANGE");
        if !is_part && !request.ends_with("FICLONE") {
            return None;
        }
        let file = self.value(0, file);
        let other = self.value(2, other);
        self.call.arguments = [file, if is_part { PART } else { WHOLE }, other, 0, 0, 0];
        Some(self)
    }

    /// None where nothing was printed.
    pub(crate) fn text(&self, address: u64) -> Option<Vec<u8>> {
        let bytes = self.memory.get((address / STEP) as usize).filter(|bytes| !bytes.is_empty())?;
        Some(bytes[..bytes.iter().position(|byte| *byte == 0)?].to_vec())
    }

    /// Vectors that were not printed have no length.
    pub(crate) fn memory(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        let bytes = self.memory.get((address / STEP) as usize).filter(|bytes| !bytes.is_empty())?;
        (length <= 16 * 1024).then(|| bytes.iter().copied().chain(std::iter::repeat(0)).take(length).collect())
    }
}

/// `[{iov_base=..., iov_len=5}]`, `[4096]`, `{flags=O_RDONLY}` and `{src_fd=3, src_offset=0, ...}`
/// as in memory.
fn structure(word: &str) -> Vec<u8> {
    let inside = word.trim_start_matches(['[', '{']);
    let field = |text: &str, name: &str| {
        let value = text.split_once(name)?.1;
        let value = value.split([',', '}', ']', ' ', '<']).next()?;
        flags(value)
    };
    if inside.starts_with("iov_base=") {
        let lengths = split(word.trim_start_matches('[')).into_iter().filter_map(|one| field(one, "iov_len="));
        return lengths.flat_map(|length| [0u64, length].map(u64::to_le_bytes).concat()).collect();
    }
    if inside.starts_with("src_fd=") {
        let names = ["src_fd=", "src_offset=", "src_length=", "dest_offset="];
        return names.iter().flat_map(|name| field(word, name).unwrap_or(0).to_le_bytes()).collect();
    }
    let first = if inside.starts_with("flags=") { field(word, "flags=") } else { field(&format!("={inside}"), "=") };
    first.unwrap_or(0).to_le_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::super::symbols::call;
    use super::*;

    fn of(name: &str, text: &str) -> Rebuilt {
        rebuilt(call(name).unwrap(), text).unwrap().unwrap()
    }

    #[test]
    fn arguments_are_numbers_and_addresses_again() {
        let open = of("openat", r#"AT_FDCWD</w>, "\x61\x62", O_WRONLY|O_CREAT, 0644"#);
        assert_eq!(open.call.arguments[0] as i32, libc::AT_FDCWD);
        assert_eq!((open.text(open.call.arguments[1]), open.call.arguments[2]), (Some(b"ab".into()), 0o101));
        assert_eq!(open.places, [(libc::AT_FDCWD, b"/w".to_vec())]);
        let write = of("writev", r#"3</w/a>, [{iov_base="a", iov_len=1}, {iov_base="b,"..., iov_len=70}], 2"#);
        let vectors = write.memory(write.call.arguments[1], 32).unwrap();
        assert_eq!((vectors[8], vectors[24], write.call.arguments[2]), (1, 70, 2));
        let copy = of("copy_file_range", "3</a>, [4096] => [8192], 4</b>, NULL, 100, 0");
        assert_eq!(copy.memory(copy.call.arguments[1], 8), Some(4096u64.to_le_bytes().into()));
        assert_eq!((copy.call.arguments[3], copy.call.arguments[4]), (0, 100));
        let part = of(
            "ioctl",
            "4</a>, BTRFS_IOC_CLONE_RANGE or FICLONERANGE, {src_fd=3</b>, src_offset=5, src_length=6, dest_offset=7}",
        );
        assert_eq!(part.memory(part.call.arguments[2], 32).unwrap()[..9], [3, 0, 0, 0, 0, 0, 0, 0, 5]);
        let how = of("openat2", r#"3</w>, "a", {flags=O_RDWR|O_CREAT, mode=0600, resolve=0}, 24"#);
        assert_eq!(how.memory(how.call.arguments[2], 8), Some(0o102u64.to_le_bytes().into()));
    }

    #[test]
    fn threads_are_started_with_their_flags() {
        let flags = (libc::CLONE_VM | libc::CLONE_THREAD) as u64;
        let clone = of("clone", "child_stack=0x7f, flags=CLONE_VM|CLONE_THREAD|SIGCHLD, child_tidptr=0x5");
        assert_eq!(clone.call.arguments[0], flags);
        let clone3 = of("clone3", "{flags=CLONE_VM|CLONE_THREAD, exit_signal=0} => {parent_tid=[5]}, 88");
        assert_eq!(clone3.memory(clone3.call.arguments[0], 8), Some(flags.to_le_bytes().into()));
    }

    #[test]
    fn what_is_not_recorded_is_passed_over_and_unknown_flags_are_refused() {
        let other = |name, text| rebuilt(call(name).unwrap(), text).unwrap().is_none();
        assert!(other("fcntl", "3</a>, F_GETFL") && other("ioctl", "1</a>, TCGETS, 0x7ff"));
        assert!(other("mmap", "NULL, 8192, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0"));
        assert!(rebuilt(call("openat").unwrap(), r#"3</a>, "b", O_WHAT"#).is_err());
        assert!(rebuilt(call("clone").unwrap(), "child_stack=NULL").is_err());
    }
}
