//! seccomp(2): a filter for the caller and all that it will start, by which the kernel stops them
//! at the calls that a tracer wants to see, and at no others.
//!
//! Not the `seccompiler` crate: its filters have one action for all calls, and kill programs of
//! another architecture.

use std::io;

/// What a filter does.
pub struct Filter<'a> {
    /// Calls that stop.
    pub stops: &'a [i64],
    /// Calls that stop where the low half of an argument is one of these: call, number of the
    /// argument, values.
    pub stops_with: &'a [(i64, usize, &'a [u32])],
    /// Calls that stop unless an argument has a bit: call, number of the argument, bit.
    pub stops_without: &'a [(i64, usize, u32)],
    /// Calls that fail with ENOSYS, as on a kernel that does not have them.
    pub refuses: &'a [i64],
    /// Calls whose instruction ends at this address are let through.
    pub passes: Option<u64>,
}

#[cfg(target_arch = "x86_64")]
pub(super) const ARCHITECTURE: u32 = 0xC000_003E; // AUDIT_ARCH_X86_64
#[cfg(target_arch = "aarch64")]
pub(super) const ARCHITECTURE: u32 = 0xC000_00B7; // AUDIT_ARCH_AARCH64
#[cfg(target_arch = "riscv64")]
pub(super) const ARCHITECTURE: u32 = 0xC000_00F3; // AUDIT_ARCH_RISCV64

/// Offsets in `struct seccomp_data` (linux/seccomp.h).
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const INSTRUCTION: u32 = 8;
const ARGUMENTS: u32 = 16;

/// From now on, for ever. Without privileges it also takes away that programs become others by
/// their setuid bit.
pub fn install(filter: &Filter) -> io::Result<()> {
    let program = filter.program();
    if load(&program).is_ok() {
        return Ok(());
    }
    // SAFETY: the call reads its numbers alone.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    load(&program)
}

fn load(program: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    let mode = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: it reads the program, which lives through the call and whose length is right.
    match unsafe { libc::syscall(libc::SYS_seccomp, mode, 0, &raw const program) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Filter<'_> {
    fn program(&self) -> Vec<libc::sock_filter> {
        let mut code = vec![load_word(ARCH), skip_unless(ARCHITECTURE, 1), skip(1), end(libc::SECCOMP_RET_ALLOW)];
        // `skip_unless` leaps over the skip where the architecture is another.
        if let Some(address) = self.passes {
            let (low, high) = (address as u32, (address >> 32) as u32);
            code.extend([
                load_word(INSTRUCTION),
                skip_unless(low, 3),
                load_word(INSTRUCTION + 4),
                skip_unless(high, 1),
            ]);
            code.push(end(libc::SECCOMP_RET_ALLOW));
        }
        code.push(load_word(NUMBER));
        for call in self.refuses {
            code.extend([skip_unless(*call as u32, 1), end(libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32)]);
        }
        for call in self.stops {
            code.extend([skip_unless(*call as u32, 1), end(libc::SECCOMP_RET_TRACE)]);
        }
        for (call, argument, values) in self.stops_with {
            code.extend([skip_unless(*call as u32, 2 + 2 * values.len() as u8), load_argument(*argument)]);
            code.extend(values.iter().flat_map(|value| [skip_unless(*value, 1), end(libc::SECCOMP_RET_TRACE)]));
            code.push(end(libc::SECCOMP_RET_ALLOW));
        }
        for (call, argument, bit) in self.stops_without {
            let test = [load_argument(*argument), skip_with(*bit, 1), end(libc::SECCOMP_RET_TRACE)];
            code.push(skip_unless(*call as u32, 4));
            code.extend(test.into_iter().chain([end(libc::SECCOMP_RET_ALLOW)]));
        }
        code.push(end(libc::SECCOMP_RET_ALLOW));
        code
    }
}

fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

fn load_word(offset: u32) -> libc::sock_filter {
    statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset)
}

/// Its low half: all these architectures are little-endian.
fn load_argument(number: usize) -> libc::sock_filter {
    load_word(ARGUMENTS + 8 * number as u32)
}

fn skip_unless(value: u32, instructions: u8) -> libc::sock_filter {
    let test = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    libc::sock_filter { code: test as u16, jt: 0, jf: instructions, k: value }
}

fn skip_with(bit: u32, instructions: u8) -> libc::sock_filter {
    let test = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
    libc::sock_filter { code: test as u16, jt: instructions, jf: 0, k: bit }
}

fn skip(instructions: u32) -> libc::sock_filter {
    statement(libc::BPF_JMP | libc::BPF_JA, instructions)
}

fn end(action: u32) -> libc::sock_filter {
    statement(libc::BPF_RET | libc::BPF_K, action)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel would do: the action for a call of this architecture.
    fn action(filter: &Filter, arch: u32, number: i64, arguments: [u64; 6], instruction: u64) -> u32 {
        let (program, mut at, mut held) = (filter.program(), 0, 0);
        let words: Vec<u32> = [number as u32, arch, instruction as u32, (instruction >> 32) as u32]
            .into_iter()
            .chain(arguments.iter().flat_map(|argument| [*argument as u32, (*argument >> 32) as u32]))
            .collect();
        loop {
            let step = program[at];
            let (kind, leaps) = (u32::from(step.code), |yes| usize::from(if yes { step.jt } else { step.jf }));
            at += 1;
            match kind & 7 {
                libc::BPF_LD => held = words[step.k as usize / 4],
                libc::BPF_RET => return step.k,
                _ if kind & 0xf0 == libc::BPF_JA => at += step.k as usize,
                _ if kind & 0xf0 == libc::BPF_JSET => at += leaps(held & step.k != 0),
                _ => at += leaps(held == step.k),
            }
        }
    }

    #[test]
    fn calls_stop_as_the_filter_says() {
        let filter = Filter {
            stops: &[1, 7],
            stops_with: &[(72, 1, &[0, 1030])],
            stops_without: &[(9, 3, 0x20)],
            refuses: &[425],
            passes: Some(0x1_7001_0006),
        };
        let (allow, stop) = (libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_TRACE);
        let refuse = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
        let rows = [
            (1, [0; 6], stop),
            (7, [0; 6], stop),
            (2, [0; 6], allow),
            (425, [0; 6], refuse),
            (72, [3, 1030, 0, 0, 0, 0], stop),
            (72, [3, 0, 0, 0, 0, 0], stop),
            (72, [3, 1, 0, 0, 0, 0], allow),
            (9, [0, 0, 0, 0x22, 0, 0], allow),
            (9, [0, 0, 0, 0x02, 0, 0], stop),
        ];
        for (number, arguments, wanted) in rows {
            for (instruction, wanted) in
                [(0, wanted), (0x7001_0006, wanted), (0x1_0000_0006, wanted), (0x1_7001_0006, allow)]
            {
                let found = action(&filter, ARCHITECTURE, number, arguments, instruction);
                assert_eq!(found, wanted, "{number} {arguments:?} {instruction:x}");
            }
            assert_eq!(action(&filter, 0x4000_0003, number, arguments, 0), allow, "{number}");
        }
    }
}
