//! Threads that are started before a clock runs, and then do work that borrows, as often as asked.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread::JoinHandle;

/// The calling thread and the started ones. A pool of one is the calling thread alone: a new thread
/// takes the scheduler tens of milliseconds to find a good place for, in which an operation at a
/// time takes twice as long.
pub struct ThreadPool {
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
}

struct Shared {
    begin: Barrier,
    end: Barrier,
    work: Mutex<Option<Work>>,
}

/// What thread `number` does. Its lifetime is erased; [`ThreadPool::run`] says why that is sound.
#[derive(Clone, Copy)]
struct Work(*const (dyn Fn(usize) + Sync));

// SAFETY: it points to what is `Sync`, and is followed only while `run` holds the borrow.
unsafe impl Send for Work {}

impl ThreadPool {
    /// A pool of `threads` threads, including the calling one; 0 counts as 1.
    pub fn new(threads: usize) -> io::Result<ThreadPool> {
        let threads = threads.max(1);
        let [begin, end] = [(); 2].map(|()| Barrier::new(threads));
        let mut pool =
            ThreadPool { shared: Arc::new(Shared { begin, end, work: Mutex::default() }), helpers: Vec::new() };
        for number in 1..threads {
            let shared = pool.shared.clone();
            match std::thread::Builder::new().spawn(move || wait_for_work(&shared, number)) {
                Ok(thread) => pool.helpers.push(thread),
                // The started threads wait at the barrier forever: there are too few for it to
                // open.
                Err(error) => {
                    pool.helpers.clear();
                    return Err(error);
                }
            }
        }
        Ok(pool)
    }

    pub fn threads(&self) -> usize {
        self.helpers.len() + 1
    }

    /// Gives each thread one of the items, from the first on, and waits for all; what became of
    /// them, in order. The error is a panic's.
    pub fn each<T: Send, R: Send>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        work: impl Fn(T) -> R + Sync,
    ) -> Result<Vec<R>, Box<dyn Any + Send>> {
        type Slot<T, R> = Mutex<(Option<T>, Option<std::thread::Result<R>>)>;
        let slots: Vec<Slot<T, R>> = items.into_iter().map(|item| Mutex::new((Some(item), None))).collect();
        assert!(slots.len() <= self.threads(), "{} items for {} threads", slots.len(), self.threads());
        self.run(&|number| {
            // Each is locked by one thread, which does not panic meanwhile.
            let Some(Ok(mut slot)) = slots.get(number).map(Mutex::lock) else { return };
            let item = slot.0.take();
            slot.1 = item.map(|item| catch_unwind(AssertUnwindSafe(|| work(item))));
        });
        slots.into_iter().filter_map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner).1).collect()
    }

    /// `work` does not panic.
    fn run(&mut self, work: &(dyn Fn(usize) + Sync)) {
        if self.helpers.is_empty() {
            return work(0);
        }
        // SAFETY: only the lifetime changes. The threads follow the pointer between the two
        // barriers alone, and this function returns when all have come to the second one.
        let erased = unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), *const (dyn Fn(usize) + Sync)>(work) };
        self.shared.set(Some(Work(erased)));
        self.shared.begin.wait();
        work(0);
        self.shared.end.wait();
    }
}

impl Shared {
    fn set(&self, work: Option<Work>) {
        *self.work.lock().unwrap_or_else(PoisonError::into_inner) = work;
    }
}

fn wait_for_work(shared: &Shared, number: usize) {
    loop {
        shared.begin.wait();
        let work = *shared.work.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Work(work)) = work else { return };
        // SAFETY: it is between the barriers; see `run`.
        unsafe { (*work)(number) };
        shared.end.wait();
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        if self.helpers.is_empty() {
            return;
        }
        self.shared.set(None);
        self.shared.begin.wait();
        self.helpers.drain(..).for_each(|thread| drop(thread.join()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::thread::ThreadId;

    fn threads_of(pool: &mut ThreadPool, items: usize) -> Vec<ThreadId> {
        let all = Barrier::new(items);
        let work = |_| {
            all.wait(); // only all at once pass here
            std::thread::current().id()
        };
        pool.each(0..items, work).unwrap()
    }

    #[test]
    fn the_same_threads_do_every_piece_of_work_at_once() {
        for threads in [1, 2, 5] {
            let mut pool = ThreadPool::new(threads).unwrap();
            let first = threads_of(&mut pool, threads);
            assert_eq!(first.iter().map(|id| format!("{id:?}")).collect::<BTreeSet<_>>().len(), threads);
            assert_eq!(first[0], std::thread::current().id());
            assert_eq!(threads_of(&mut pool, threads), first);
        }
        assert_eq!(ThreadPool::new(0).unwrap().threads(), 1);
    }

    #[test]
    fn work_borrows_and_gives_back_in_order() {
        let mut pool = ThreadPool::new(4).unwrap();
        let mut numbers = [1, 2, 3];
        for _ in 0..100 {
            let found = pool.each(&mut numbers, |number| {
                *number += 1;
                *number
            });
            assert_eq!(found.unwrap().len(), 3);
        }
        assert_eq!(numbers, [101, 102, 103]);
        assert_eq!(pool.each([7, 8], |number| number).unwrap(), [7, 8]);
    }

    #[test]
    fn a_panic_is_an_error_and_the_pool_works_on() {
        let mut pool = ThreadPool::new(3).unwrap();
        for at in 0..3 {
            assert!(pool.each(0..3, |number| assert!(number != at, "as it shall")).is_err());
            assert_eq!(pool.each(0..3, |number| number).unwrap(), [0, 1, 2]);
        }
    }
}
