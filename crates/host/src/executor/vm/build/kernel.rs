//! What a packed kernel holds: its release, and the kernel itself, which an emulated processor
//! would take half a minute to unpack at every boot. Offsets are those of Linux,
//! Documentation/arch/x86/boot.rst.

use super::modules;
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;

/// Next to `vmlinuz`; may be missing.
pub(crate) const UNPACKED: &str = "vmlinux";

const SECTOR: usize = 512;
/// Sectors of the code before the kernel proper, but for the first.
const SETUP_SECTORS: usize = 0x1f1;
const MAGIC: usize = 0x202;
/// Where the release stands, counted from the second sector.
const RELEASE: usize = 0x20e;
const PAYLOAD_OFFSET: usize = 0x248;
const PAYLOAD_LENGTH: usize = 0x24c;

/// The note that says where QEMU may enter a kernel that is not packed (XEN_ELFNOTE_PHYS32_ENTRY),
/// with its descriptor's size of 4 or 8 bytes.
const ENTRY_NOTES: [&[u8]; 2] = [b"\x04\0\0\0\x04\0\0\0\x12\0\0\0Xen\0", b"\x04\0\0\0\x08\0\0\0\x12\0\0\0Xen\0"];

/// The release of a packed kernel, such as `6.1.0-35-amd64`.
pub(crate) fn release(kernel: &Path) -> Option<String> {
    let bytes = std::fs::read(kernel).ok()?;
    let offset = number(&bytes, RELEASE, 2).filter(|offset| *offset > 0 && is_packed(&bytes))?;
    let text = bytes.get(SECTOR + offset..)?;
    let word = text.split(|byte| *byte == b' ' || *byte == 0).next().filter(|word| word.len() < 128)?;
    Some(String::from_utf8_lossy(word).into_owned()).filter(|word| !word.is_empty())
}

/// Writes the unpacked kernel next to the packed one.
pub(crate) fn unpack(folder: &Path) -> Result<()> {
    let packed = std::fs::read(folder.join("vmlinuz")).context("cannot read vmlinuz")?;
    let payload = payload(&packed).context("vmlinuz is no kernel for x86")?;
    let ending = match payload {
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "xz",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "zst",
        _ => bail!("it is packed in another way than xz and zstd"),
    };
    let file = folder.join(format!("payload.{ending}"));
    std::fs::write(&file, payload)?;
    let unpacked = modules::content(&file);
    std::fs::remove_file(&file)?;
    let unpacked = unpacked?;
    ensure!(can_be_entered(&unpacked), "it cannot be started unpacked (CONFIG_PVH)");
    Ok(std::fs::write(folder.join(UNPACKED), unpacked)?)
}

fn can_be_entered(kernel: &[u8]) -> bool {
    kernel.windows(16).any(|window| ENTRY_NOTES.contains(&window))
}

/// Without the four bytes of its size behind it.
fn payload(packed: &[u8]) -> Option<&[u8]> {
    let sectors = match *packed.get(SETUP_SECTORS)? {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let start = (sectors + 1) * SECTOR + number(packed, PAYLOAD_OFFSET, 4)?;
    let length = number(packed, PAYLOAD_LENGTH, 4)?.checked_sub(4)?;
    packed.get(start..start.checked_add(length)?).filter(|_| is_packed(packed))
}

fn is_packed(bytes: &[u8]) -> bool {
    bytes.get(MAGIC..MAGIC + 4) == Some(b"HdrS")
}

/// Little endian.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + length)?;
    Some(bytes.iter().rev().fold(0, |sum, byte| (sum << 8) | usize::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with one sector of setup, a release, and a payload.
    fn packed(payload: &[u8]) -> Vec<u8> {
        let mut kernel = vec![0_u8; 0x400];
        kernel[SETUP_SECTORS] = 1;
        kernel[MAGIC..MAGIC + 4].copy_from_slice(b"HdrS");
        kernel[RELEASE..RELEASE + 2].copy_from_slice(&0x100_u16.to_le_bytes());
        kernel[0x300..0x30f].copy_from_slice(b"6.9.0-rc1 (me@)");
        kernel[PAYLOAD_OFFSET..PAYLOAD_OFFSET + 4].copy_from_slice(&0x20_u32.to_le_bytes());
        kernel[PAYLOAD_LENGTH..PAYLOAD_LENGTH + 4].copy_from_slice(&(payload.len() as u32 + 4).to_le_bytes());
        [&kernel[..], &[0; 0x20][..], payload, &[0; 4][..]].concat()
    }

    fn folder_with(kernel: &[u8]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("vmlinuz"), kernel).expect("written");
        folder
    }

    #[test]
    fn a_kernel_says_its_release_itself() {
        let release = |kernel: &[u8]| release(&folder_with(kernel).path().join("vmlinuz"));
        assert_eq!(release(&packed(b"")).as_deref(), Some("6.9.0-rc1"));
        assert_eq!((release(b"short"), release(&[0; 0x400])), (None, None));
    }

    #[test]
    fn a_kernel_is_unpacked_if_it_can_be_entered() {
        let xz = |content: &[u8]| {
            let folder = folder_with(content);
            let said = std::process::Command::new("xz").arg("-c").arg(folder.path().join("vmlinuz")).output();
            said.expect("xz, which guests need").stdout
        };
        let enterable = [&b"\x7fELF"[..], ENTRY_NOTES[1]].concat();
        let rows = [(packed(&xz(&enterable)), true), (packed(&xz(b"no note")), false), (packed(b"what"), false)];
        for (kernel, unpacks) in rows.into_iter().chain([(b"short".to_vec(), false)]) {
            let folder = folder_with(&kernel);
            assert_eq!(unpack(folder.path()).is_ok(), unpacks);
            let written = std::fs::read(folder.path().join(UNPACKED)).ok();
            assert_eq!(written, unpacks.then(|| enterable.clone()));
        }
    }
}
