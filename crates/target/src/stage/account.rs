//! Where a cell's time goes: at each moment to one part, so that the parts sum to the whole and
//! nothing lies between them.

use pickfs_core::journal::Ledger;
use std::time::Instant;

/// What time is spent on, as [`Ledger`] has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spent {
    SetUp,
    Ageing,
    Settling,
    Phases,
    Checks,
    Teardown,
}

/// A cell's ledger while the cell is done.
pub(crate) struct Account {
    ledger: Ledger,
    part: Spent,
    since: Instant,
}

impl Account {
    /// It begins with the set-up.
    pub(crate) fn open(cell: &str) -> Account {
        let ledger = Ledger { cell: cell.into(), ..Ledger::default() };
        Account { ledger, part: Spent::SetUp, since: Instant::now() }
    }

    pub(crate) fn cell(&self) -> &str {
        &self.ledger.cell
    }

    /// From now on time goes to this part; to which it went so far.
    pub(crate) fn enter(&mut self, part: Spent) -> Spent {
        self.enter_at(part, Instant::now())
    }

    fn enter_at(&mut self, part: Spent, now: Instant) -> Spent {
        *self.part_ns() += now.duration_since(self.since).as_nanos() as u64;
        self.since = now;
        std::mem::replace(&mut self.part, part)
    }

    fn part_ns(&mut self) -> &mut u64 {
        match self.part {
            Spent::SetUp => &mut self.ledger.setup_ns,
            Spent::Ageing => &mut self.ledger.ageing_ns,
            Spent::Settling => &mut self.ledger.settle_ns,
            Spent::Phases => &mut self.ledger.phases_ns,
            Spent::Checks => &mut self.ledger.checks_ns,
            Spent::Teardown => &mut self.ledger.teardown_ns,
        }
    }

    /// All of it, until now.
    pub(crate) fn close(mut self) -> Ledger {
        self.enter(self.part);
        self.ledger
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn parts_sum_to_the_whole_whatever_comes_after_what() {
        let mut account = Account::open("c");
        let begun = account.since;
        let parts = [Spent::Settling, Spent::Phases, Spent::Checks, Spent::Phases, Spent::Ageing, Spent::Teardown];
        for (number, part) in parts.into_iter().enumerate() {
            let before = account.part;
            assert_eq!(account.enter_at(part, begun + Duration::from_nanos(1 << (number + 1))), before);
        }
        account.enter_at(Spent::Teardown, begun + Duration::from_nanos(1000));
        let ledger = account.ledger;
        assert_eq!(ledger.total_ns(), 1000, "{ledger:?}");
        let found = [ledger.setup_ns, ledger.settle_ns, ledger.phases_ns, ledger.checks_ns, ledger.ageing_ns];
        assert_eq!(found, [2, 2, 4 + 16, 8, 32]);
        assert_eq!(ledger.cell, "c");
    }
}
