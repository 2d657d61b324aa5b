//! Marks in the stream of instructions: an operation that does nothing, with a number in it that an
//! emulator can see when it translates the program. It is the same instruction whether or not
//! anything looks, so nothing that is measured depends on that.

/// The clock of a phase, before it is read. The numbers are those of `mark.h` of the executor
/// `sim`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    WorkBegins = 0x5046_0001,
    WorkEnds = 0x5046_0002,
    SyncBegins = 0x5046_0003,
    SyncEnds = 0x5046_0004,
}

/// On x86_64 one instruction; nothing elsewhere.
#[inline(always)]
pub fn mark(mark: Mark) {
    match mark {
        Mark::WorkBegins => no_operation::<{ Mark::WorkBegins as i32 }>(),
        Mark::WorkEnds => no_operation::<{ Mark::WorkEnds as i32 }>(),
        Mark::SyncBegins => no_operation::<{ Mark::SyncBegins as i32 }>(),
        Mark::SyncEnds => no_operation::<{ Mark::SyncEnds as i32 }>(),
    }
}

/// `nopl NUMBER(%rax)`, in the form with four bytes of displacement.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn no_operation<const NUMBER: i32>() {
    // SAFETY: the instruction reads and writes nothing. The compiler is to take it for one that may
    // touch memory, so that what is before it stays before it.
    unsafe { std::arch::asm!(".byte 0x0f, 0x1f, 0x80", ".long {}", const NUMBER, options(nostack, preserves_flags)) }
}

#[cfg(not(target_arch = "x86_64"))]
fn no_operation<const NUMBER: i32>() {}
