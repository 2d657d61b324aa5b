//! `pickfs agent` (hidden): the target side.

use std::process::ExitCode;

pub fn main() -> ExitCode {
    crate::agent::main()
}
