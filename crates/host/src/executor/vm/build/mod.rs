//! Guests: made once without root from Debian's packages, kept in a cache, and found again by their
//! recipes.

mod cache;
mod compile;
mod driver;
mod guest;
mod initramfs;
mod kernel;
mod modules;
mod recipe;
mod root;
mod stoppable;
mod watched;

pub use cache::{Guest, all, find_or_build, folder, remove};
pub use compile::enter;
pub(crate) use driver::{Driver, plugin_of};
pub(crate) use initramfs::Initramfs;
pub use recipe::{RELEASES, Recipe};

/// Next to the guests: modules that were compiled for them.
const COMPILED: &str = "compiled";
/// The ending of a folder that is being filled.
const PARTIAL: &str = "partial";
