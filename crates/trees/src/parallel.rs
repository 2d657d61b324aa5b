//! The same work for many things by all processors, with results in the order of the things.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Each thread makes its own state and takes one thing after another.
pub(crate) fn map<T: Sync, S, R: Send>(
    threads: usize,
    things: &[T],
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(things.len()));
    let run = || {
        let mut state = state();
        while let Some((index, thing)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, things.get(i)?)))
        {
            let result = work(&mut state, thing);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        }
    };
    std::thread::scope(|scope| (0..threads.max(1)).for_each(|_| drop(scope.spawn(run))));
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order() {
        let things: Vec<u64> = (0..1000).collect();
        for threads in [0, 1, 3] {
            let squares = map(threads, &things, || (), |(), thing| thing * thing);
            assert!(squares.iter().enumerate().all(|(index, square)| *square == (index * index) as u64));
        }
        assert!(map(4, &[] as &[u64], || (), |(), thing| *thing).is_empty());
    }
}
