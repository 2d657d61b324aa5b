//! This machine: a child process of this very program.

use super::Executor;
use anyhow::{Context, Result};
use std::ffi::OsString;

pub struct Local;

impl Executor for Local {
    fn name(&self) -> &'static str {
        "local"
    }

    fn about(&self) -> &'static str {
        "this machine, as the user who started pickfs"
    }

    fn command(&self) -> Result<Vec<OsString>> {
        let own = std::env::current_exe().context("cannot find this program's own file")?;
        Ok(vec![own.into(), "agent".into()])
    }
}
