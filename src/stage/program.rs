//! A program to run: its words, and where they differ from the usual, its folder, environment and user.

use crate::process::{Mark, command};
use crate::stack::{Argv, argv};
use anyhow::Result;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

#[derive(Clone, Debug, Default)]
pub struct Program {
    pub(super) argv: Argv,
    folder: Option<PathBuf>,
    environment: Vec<(String, String)>,
    /// User and group.
    user: Option<(u32, u32)>,
    /// Exit codes that are no failure; 0 alone where there is none.
    accepted: Vec<i32>,
}

impl Program {
    pub fn new<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> Program {
        Program { argv: argv(words), ..Program::default() }
    }

    /// The folder that it starts in; pickfs's own unless said.
    pub fn in_folder(mut self, folder: impl Into<PathBuf>) -> Program {
        self.folder = Some(folder.into());
        self
    }

    pub fn with(mut self, name: &str, value: impl Into<String>) -> Program {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// As another user and group, without any other groups; only root may.
    pub fn as_user(mut self, user: u32, group: u32) -> Program {
        self.user = Some((user, group));
        self
    }

    /// It may end with these exit codes, inside a phase.
    pub fn may_end_with(mut self, codes: impl IntoIterator<Item = i32>) -> Program {
        self.accepted = codes.into_iter().collect();
        self
    }

    pub(super) fn accepts(&self, status: ExitStatus) -> bool {
        let listed = |code: i32| self.accepted.contains(&code);
        if self.accepted.is_empty() { status.success() } else { status.code().is_some_and(listed) }
    }

    /// As a shell would show it, without quotes.
    pub fn shown(&self) -> String {
        self.argv.join(" ")
    }

    pub(super) fn command(&self, marks: &[Mark]) -> Result<Command> {
        use std::os::unix::process::CommandExt;
        let mut command = command(&self.argv, marks)?;
        self.folder.iter().for_each(|folder| {
            command.current_dir(folder);
        });
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        Ok(command)
    }
}
