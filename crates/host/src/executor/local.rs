//! This machine: a child process of this very program.

use super::{Contact, ContactOutcome, Executor, Machine, agent_here};
use anyhow::Result;
use pickfs_core::plan::Plan;
use pickfs_core::protocol::Request;

pub(crate) struct Local;

impl Executor for Local {
    fn name(&self) -> &'static str {
        "local"
    }

    fn about(&self) -> &'static str {
        "this machine, as the user who started pickfs"
    }

    fn machine(&self, _plan: &Plan) -> Box<dyn Machine> {
        Box::new(ThisMachine)
    }
}

struct ThisMachine;

impl Machine for ThisMachine {
    fn reach(&mut self, request: Request) -> Result<ContactOutcome> {
        Ok(ContactOutcome::Agent(Box::new(Contact::lasting(agent_here(&request.run)?, request))))
    }
}
