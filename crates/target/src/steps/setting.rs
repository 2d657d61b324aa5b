//! Settings of the kernel that are files.

use super::image;
use super::own::Own;
use crate::stack::recipe::is_setting_of_runs;
use anyhow::{Context, Result, bail};
use pickfs_core::journal::Knob;
use pickfs_system::sys::devices::{self, device_number};
use std::io::ErrorKind;
use std::path::Path;

pub(crate) fn set(path: &Path, value: &str) -> Result<()> {
    std::fs::write(path, value).with_context(|| format!("cannot write `{value}` to {}", path.display()))
}

/// What is in force. A choice shows all its values, the chosen one in brackets: "none [mq-deadline]
/// kyber".
pub(crate) fn in_force(path: &Path) -> std::io::Result<String> {
    let shown = std::fs::read_to_string(path)?;
    Ok(match (shown.find('['), shown.find(']')) {
        (Some(open), Some(close)) if open < close => shown[open + 1..close].to_string(),
        _ => shown.trim().to_string(),
    })
}

/// Writes the value from before back, unless it is in force, as where nothing may be written and so
/// nothing was changed; or another process has changed it since, which is reported on stderr.
pub(crate) fn restore(path: &Path, value: &str, set_to: Option<&Knob>, own: &Own) -> Result<()> {
    let shown = path.display();
    match in_force(path) {
        Ok(now) if now == value => return Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => drop(found.with_context(|| format!("cannot read {shown}"))?),
    }
    let other = |knob: &&Knob| in_force(&knob.path).is_ok_and(|now| now != knob.value);
    if let Some(Knob { path: changed, value: left }) = set_to.filter(other) {
        let changed = changed.display();
        eprintln!(
            "{shown} is not set back to {value}: {changed} is not {left} any more, so another program or user has set it since"
        );
        return Ok(());
    }
    if path.starts_with("/proc") || is_of_run(path, own)? { set(path, value) } else { Ok(()) }
}

/// Whether a queue is that of a device of the run. False where it went with the run: its number may
/// be another's by now.
fn is_of_run(path: &Path, own: &Own) -> Result<bool> {
    let real = path.canonicalize().with_context(|| format!("cannot find {}", path.display()))?;
    let (Some(device), Some(name)) = (real.ancestors().nth(2), real.file_name().and_then(|name| name.to_str())) else {
        bail!("refused to set {}", path.display());
    };
    let queue = |disk| devices::queue_file(device_number(disk)?, name)?.canonicalize().ok();
    if own.disks.iter().any(|disk| queue(disk).is_some_and(|queue| queue == real)) {
        return Ok(true);
    }
    if let Some(attached) = devices::attached(device) {
        return Ok(own.is_image(&attached.file) && image::is_attached(&attached)?);
    }
    if device.starts_with("/sys/devices/virtual") && is_setting_of_runs(&real) {
        return Ok(false);
    }
    bail!(
        "refused to set {}: its disk is none that the plan of this run names; look, and set it by hand",
        path.display()
    )
}
