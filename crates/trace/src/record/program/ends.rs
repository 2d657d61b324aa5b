//! Programs and threads that end: what becomes of their files and mappings.

use super::Program;
use crate::record::stop_cost::StopCost;
use crate::record::threads::Thread;
use crate::{Kind, Op};

impl Program<'_> {
    /// Another program runs in the process: of its threads one is left, with the number of the
    /// process.
    pub(crate) fn executed(&mut self, tid: i32, former: i32) {
        if self.begun.is_none() {
            // The end of what started this program itself may be seen, too.
            if self.calibration.is_empty() {
                return;
            }
            self.begin();
            self.stop_cost = self.stop_cost.take().map(|_| StopCost::new(self.calibration.clone()));
            let thread = self.thread(tid);
            thread.look_at_clock();
            (thread.pending, thread.think_ns) = (None, 0);
            return;
        }
        let renamed = if former != tid { self.threads.remove(&former) } else { None };
        if let Some(thread) = renamed {
            self.threads.insert(tid, Thread { cpu: self.world.clock(tid), ..thread });
        }
        let gone: Vec<i32> = self.threads_of(tid).into_iter().filter(|other| *other != tid).collect();
        gone.iter().for_each(|other| drop(self.threads.remove(other)));
        let files = self.thread(tid).files.clone();
        let closed = match std::rc::Rc::strong_count(&files) {
            // It had them alone: this is the second.
            2 => files.borrow_mut().executed(&mut self.objects),
            _ => Vec::new(),
        };
        let own = self.thread(tid);
        (own.maps, own.pending) = (Default::default(), None);
        self.write_all(tid, closed);
    }

    fn threads_of(&self, tid: i32) -> Vec<i32> {
        let Some(process) = self.threads.get(&tid).map(|thread| thread.process) else { return Vec::new() };
        self.threads.iter().filter(|(_, thread)| thread.process == process).map(|(tid, _)| *tid).collect()
    }

    /// Its memory is there for the last time.
    pub(crate) fn ending(&mut self, tid: i32) {
        let cost = self.stop_ns();
        self.thread(tid).think(cost);
        self.give_up_memory(tid);
    }

    pub(super) fn give_up_memory(&mut self, tid: i32) {
        if std::rc::Rc::strong_count(&self.thread(tid).maps) == 1 {
            self.unmap(tid, 0, u64::MAX);
        }
    }

    pub fn ended(&mut self, tid: i32) {
        let Some(thread) = self.threads.get(&tid) else { return };
        let (process, number) = (thread.process, thread.number);
        if self.begun.is_none() {
            return drop(self.threads.remove(&tid));
        }
        self.lives.push(thread.life());
        let files = thread.files.clone();
        // The thread's own, and this one.
        let closed = match std::rc::Rc::strong_count(&files) {
            2 => files.borrow_mut().ended(&mut self.objects),
            _ => Vec::new(),
        };
        self.write_all(tid, closed);
        let began = self.writer.ops as u32;
        self.write(tid, Op { began, ..Op::new(Kind::End) });
        self.threads.remove(&tid);
        self.ended.entry(process).or_default().push(number);
    }
}
