//! What is on a disk when its power is cut: from a recording of all that it was given, for any
//! moment and for several kinds of disks. Each image is put on a disk by writing only where it
//! differs from what the disk holds.
//!
//! It must not know what wrote to the disk, nor how that is judged. Files and devices are read and
//! written at places; there is no clock here, and the same seed gives the same images.

mod image;
mod medium;
mod moments;
mod recording;
mod witness;

pub use image::{Image, Loses, Survivors};
pub use medium::Medium;
pub use moments::{Moment, Span, moments};
pub use recording::{Mode, Recording, Write};
pub use witness::{Agreement, Witness};

/// Bytes of a sector; all places and lengths of a recording are in these.
pub const SECTOR: u64 = 512;
/// The time of what never happened.
pub const NEVER: u64 = u64::MAX;
