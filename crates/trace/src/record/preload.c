/*
 * Loaded by the dynamic linker into each program that is recorded. It takes the place of the C library's commonest calls on files,
 * does them itself, and writes each into memory that the recorder shares. The kernel's filter stops a program at every call on files
 * but those made from one page, and only this library calls from there. So what it does costs no stop, and what it does not do is
 * still seen. The idea is that of Riker (Curtsinger and Barowy, USENIX ATC 2022) and of rr (O'Callahan et al., USENIX ATC 2017).
 *
 * It needs no other library, so that it can be loaded beside any C library. crates/trace/src/record/preload.rs reads what it writes, and
 * crates/system/src/sys/rings.rs has the same layout of the memory. For x86-64 alone.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

/* The page lies here; no compiler, linker or sanitizer puts anything there. */
#define PAGE 0x70010000ul
#define PAGE_BYTES 4096ul
#define RINGS 192
#define RING_BYTES (256ul << 10)
#define DESCRIPTORS 1024
#define LONGEST_PATH 4096
/* So much of what is written says how well it can be compressed; less than the smallest says nothing. */
#define SAMPLE (16ul << 10)
#define SMALLEST_SAMPLE 512
/* Descriptors that no process has: to close one stops the thread, and fails. */
#define HELLO -1000000
#define FLUSH -999999
#define PROBE -999998
#define LOADED -999997
/* Stops between two looks at what a stop costs. */
#define SELDOM 64
/* Nanoseconds between two calls after which the CPU clock is read; and since it was read last, at the end of a call. */
#define LONG_GAP 20000
#define LONG_SINCE 100000

/* What the recorder says of a descriptor in `known`. */
#define KNOWN_FOLDER 1
#define NEEDS_NO_SAMPLE 2

struct shared {
	uint64_t order;  /* calls that have ended */
	uint32_t next;   /* where to look for a free ring */
	uint32_t epochs; /* processes that wrote */
	uint32_t moved;  /* a folder was renamed: only the kernel knows where relative paths lead */
};

/* One thread writes it, the recorder reads it. */
struct ring {
	uint32_t claimed;  /* by a thread, until the recorder frees it */
	uint32_t accepted; /* by the recorder, which knows whose it is */
	uint32_t off;      /* something else runs in this thread's memory, as after vfork */
	uint32_t stopped;  /* the thread was stopped since its last record */
	uint64_t head; /* bytes written, ever */
	uint64_t tail; /* bytes read, ever */
	uint8_t known[DESCRIPTORS];
	uint8_t rest[PAGE_BYTES - 32 - DESCRIPTORS];
	uint8_t bytes[RING_BYTES];
};

/* Two texts and a sample come behind it. It never goes around the ring's end. */
struct record {
	uint32_t size;   /* of all, a multiple of 8 */
	uint32_t number; /* of the system call, or SKIP */
	uint64_t order;  /* of its end among all ends */
	uint64_t began;  /* calls that had ended when it began */
	int64_t result;
	uint64_t arguments[6];
	uint64_t idle_from; /* when the thread last went from here, CLOCK_MONOTONIC */
	uint64_t entered;   /* when it came here */
	uint64_t begin;     /* of the call itself */
	uint64_t end;
	uint64_t cpu_entered; /* CPU time of the thread when it came here, or 0 */
	uint64_t cpu_end;
	uint64_t text_at[2]; /* addresses in the program, and lengths */
	uint32_t text[2];
	uint64_t sample;
};

#define SKIP 0xffffffffu
#define LARGEST (sizeof(struct record) + 2 * LONGEST_PATH + SAMPLE + 8)

/* Zeroed by the kernel in a child that has a copy of the memory (MADV_WIPEONFORK), however it was started. */
struct process {
	uint32_t epoch;
	uint32_t pid;
};

struct thread {
	struct ring *ring;
	uint32_t epoch;
	int busy; /* in here already: a signal came, and its handler calls */
	unsigned stops;
	uint64_t last_end;
	uint64_t last_asked;
};

/* The recorder writes the path of the shared memory over it. */
static const volatile char memory_path[64] = "PICKFS-SHARED-MEMORY";

static struct shared *shared;
static struct process *process;
static __thread struct thread self;

extern int *__errno_location(void);
extern int clock_gettime(clockid_t, struct timespec *);
extern int pthread_setcanceltype(int, int *) __attribute__((weak));
extern char __libc_single_threaded __attribute__((weak));
extern void __chk_fail(void) __attribute__((weak, noreturn));
extern void *malloc(size_t);
extern void free(void *);

/* From the program's own memory, where the filter stops calls on files. */
static long stopping(long number, const long *with)
{
	register long fourth __asm__("r10") = with[3];
	register long fifth __asm__("r8") = with[4];
	register long sixth __asm__("r9") = with[5];
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(with[0]), "S"(with[1]), "d"(with[2]), "r"(fourth), "r"(fifth), "r"(sixth)
			 : "rcx", "r11", "memory");
	return result;
}

/* From the page. */
static long passing(long number, const long *with)
{
	register long fourth __asm__("r10") = with[3];
	register long fifth __asm__("r8") = with[4];
	register long sixth __asm__("r9") = with[5];
	long result;

	__asm__ volatile("call *%[page]"
			 : "=a"(result)
			 : "a"(number), "D"(with[0]), "S"(with[1]), "d"(with[2]), "r"(fourth), "r"(fifth), "r"(sixth),
			   [page] "r"(PAGE)
			 : "rcx", "r11", "memory");
	return result;
}

#define WITH(...) ((const long[6]){__VA_ARGS__})

static int failed(long result)
{
	return (unsigned long)result >= -4095ul;
}

/* endbr64; syscall; ret */
static const uint8_t code[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x05, 0xc3};

/* Where anything fails, all calls stop as without this library. */
__attribute__((constructor)) static void begin(void)
{
	const long own = MAP_PRIVATE | MAP_ANONYMOUS, access = PROT_READ | PROT_WRITE;
	volatile uint8_t *page = (volatile uint8_t *)PAGE;
	char path[sizeof memory_path];
	long at, file, wiped;
	unsigned i;

	at = stopping(SYS_mmap, WITH(PAGE, PAGE_BYTES, access, own | MAP_FIXED_NOREPLACE, -1, 0));
	if (at != (long)PAGE)
		return;
	for (i = 0; i < sizeof code; i++)
		page[i] = code[i];
	for (i = 0; i < sizeof path; i++)
		path[i] = memory_path[i];
	if (failed(stopping(SYS_mprotect, WITH(PAGE, PAGE_BYTES, PROT_READ | PROT_EXEC))))
		return;
	file = passing(SYS_openat, WITH(AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC));
	if (failed(file))
		return;
	at = passing(SYS_mmap, WITH(0, PAGE_BYTES + RINGS * sizeof(struct ring), access, MAP_SHARED, file, 0));
	passing(SYS_close, WITH(file));
	wiped = passing(SYS_mmap, WITH(0, PAGE_BYTES, access, own, -1, 0));
	if (failed(at) || failed(wiped) || failed(passing(SYS_madvise, WITH(wiped, PAGE_BYTES, MADV_WIPEONFORK))))
		return;
	process = (struct process *)wiped;
	shared = (struct shared *)at;
	stopping(SYS_close, WITH(LOADED));
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static uint64_t cpu_time(void)
{
	struct timespec time = {0, 0};

	passing(SYS_clock_gettime, WITH(CLOCK_THREAD_CPUTIME_ID, (long)&time));
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/* Stops for nothing: between two of them the recorder sees what a stop costs the program. */
static void probe(void)
{
	stopping(SYS_close, WITH(PROBE));
	stopping(SYS_close, WITH(PROBE));
}

/* A ring for this thread, or none. The recorder learns from a stop whose it is, as the thread's number here may be one of another
 * namespace; it does not accept a child that uses its parent's memory. */
static struct ring *claim(void)
{
	struct ring *rings = (struct ring *)((char *)shared + PAGE_BYTES);
	uint32_t from = __atomic_fetch_add(&shared->next, 1, __ATOMIC_RELAXED);
	uint32_t i, nobody;

	for (i = from; i != from + RINGS; i++) {
		struct ring *ring = &rings[i % RINGS];

		nobody = 0;
		if (!__atomic_compare_exchange_n(&ring->claimed, &nobody, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		stopping(SYS_close, WITH(HELLO - (long)(i % RINGS)));
		if (__atomic_load_n(&ring->accepted, __ATOMIC_ACQUIRE)) {
			probe();
			return ring;
		}
		__atomic_store_n(&ring->claimed, 0, __ATOMIC_RELEASE);
		return NULL;
	}
	return NULL;
}

static int is_ready(struct thread *me)
{
	if (!shared || me->busy)
		return 0;
	if (!process->epoch) {
		process->pid = passing(SYS_getpid, WITH(0));
		process->epoch = __atomic_add_fetch(&shared->epochs, 1, __ATOMIC_RELAXED);
	}
	if (me->epoch != process->epoch) {
		*me = (struct thread){.epoch = process->epoch};
	}
	if (!me->ring)
		me->ring = claim();
	return me->ring && !__atomic_load_n(&me->ring->off, __ATOMIC_ACQUIRE);
}

/* Where the next record goes, with room for the largest. */
static struct record *room(struct ring *ring)
{
	uint64_t left = RING_BYTES - ring->head % RING_BYTES;

	if (left < LARGEST)
		left += LARGEST;
	else
		left = LARGEST;
	if (ring->head + left - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) > RING_BYTES)
		stopping(SYS_close, WITH(FLUSH));
	if (left > LARGEST) {
		struct record *skip = (struct record *)(ring->bytes + ring->head % RING_BYTES);

		skip->size = left - LARGEST;
		skip->number = SKIP;
		__atomic_store_n(&ring->head, ring->head + skip->size, __ATOMIC_RELEASE);
	}
	return (struct record *)(ring->bytes + ring->head % RING_BYTES);
}

/* The kernel copies, so that a wrong address is an error and no crash. */
static long copy(void *to, const void *from, size_t bytes)
{
	struct iovec local = {to, bytes}, remote = {(void *)from, bytes};

	return passing(SYS_process_vm_readv, WITH(process->pid, (long)&local, 1, (long)&remote, 1, 0));
}

/* Up to its NUL; its length, or -1. */
static long copy_text(char *to, const char *from)
{
	unsigned long length = 0, end, piece;
	long got;

	while (length < LONGEST_PATH) {
		piece = PAGE_BYTES - (unsigned long)(from + length) % PAGE_BYTES;
		if (piece > 256 && !length)
			piece = 256;
		if (piece > LONGEST_PATH - length)
			piece = LONGEST_PATH - length;
		got = copy(to + length, from + length, piece);
		if (failed(got) || !got)
			return -1;
		for (end = length + got; length < end; length++)
			if (!to[length])
				return length;
	}
	return -1;
}

/* What `..` means depends on links, which may be others when the recorder reads this. */
static int goes_up(const char *path)
{
	const char *at;

	for (at = path; *at; at++)
		if (at[0] == '.' && at[1] == '.' && (at[2] == '/' || !at[2]) && (at == path || at[-1] == '/'))
			return 1;
	return 0;
}

/* The recorder must ask the kernel where the path leads, so the call must stop. */
static int must_stop(const struct ring *ring, int folder, const char *path)
{
	if (goes_up(path))
		return 1;
	if (!path[0] || path[0] == '/')
		return 0;
	if (__atomic_load_n(&shared->moved, __ATOMIC_ACQUIRE))
		return 1;
	return folder != AT_FDCWD && !(folder >= 0 && folder < DESCRIPTORS && ring->known[folder] & KNOWN_FOLDER);
}

/* What was opened lies in a folder that is known, whatever links there are. */
static int is_below(const struct ring *ring, const long *with, const char *path)
{
	int folder = with[0];

	if (!(with[2] & O_NOFOLLOW) || folder < 0 || folder >= DESCRIPTORS || !(ring->known[folder] & KNOWN_FOLDER))
		return 0;
	while (*path && *path != '/')
		path++;
	return !*path;
}

static long sample(const struct ring *ring, void *to, const long *with, long result)
{
	unsigned long bytes = (unsigned long)with[2] < SAMPLE ? (unsigned long)with[2] : SAMPLE;
	const uint64_t *from = (const uint64_t *)with[1];
	long got;

	if (bytes < SMALLEST_SAMPLE || (with[0] >= 0 && with[0] < DESCRIPTORS && ring->known[with[0]] & NEEDS_NO_SAMPLE))
		return 0;
	if (result == with[2]) {
		/* The kernel has read it all. */
		__builtin_memcpy(to, from, bytes);
		return bytes;
	}
	got = copy(to, from, bytes);
	return failed(got) ? 0 : got;
}

/* The call itself. A thread that waits in it can be cancelled, as in the C library. */
static long done(long number, const long *with)
{
	int before;
	long result;

	if (!&__libc_single_threaded || __libc_single_threaded || !pthread_setcanceltype)
		return passing(number, with);
	pthread_setcanceltype(1 /* PTHREAD_CANCEL_ASYNCHRONOUS */, &before);
	result = passing(number, with);
	pthread_setcanceltype(before, &before);
	return result;
}

static void publish(struct ring *ring, struct record *record)
{
	record->order = __atomic_add_fetch(&shared->order, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&ring->head, ring->head + record->size, __ATOMIC_RELEASE);
}

/* What the thread did until it came here was its own. */
static void with_times(struct thread *me, struct record *record, uint64_t entered)
{
	record->idle_from = me->last_end;
	record->entered = entered;
	record->cpu_entered = record->cpu_end = 0;
	if (entered - me->last_end > LONG_GAP || me->ring->stopped) {
		if (me->ring->stopped && ++me->stops % SELDOM == 0)
			probe();
		me->ring->stopped = 0;
		record->cpu_entered = cpu_time();
		me->last_asked = entered;
	}
}

/* Does a call and writes it down. `path` starts from `folder`; `second` is another text. */
static long recorded(long number, int folder, const char *path, const char *second, const long *with)
{
	struct thread *me = &self;
	struct record *record;
	struct ring *ring;
	const char *texts[2] = {path, second};
	char *behind;
	uint64_t entered = now();
	long result, length;
	int i;

	ring = me->ring;
	if (!is_ready(me))
		return stopping(number, with);
	me->busy = 1;
	if (ring != me->ring)
		entered = now(); /* it stopped to get this one */
	ring = me->ring;
	record = room(ring);
	with_times(me, record, entered);
	behind = (char *)(record + 1);
	for (i = 0; i < 2; i++) {
		length = texts[i] ? copy_text(behind, texts[i]) : 0;
		if (length < 0 || (texts[i] && (i ? goes_up(behind) : must_stop(ring, folder, behind)))) {
			me->busy = 0;
			return stopping(number, with);
		}
		record->text[i] = length;
		record->text_at[i] = (uint64_t)texts[i];
		behind += length;
	}
	record->number = number;
	record->began = __atomic_load_n(&shared->order, __ATOMIC_SEQ_CST);
	for (i = 0; i < 6; i++)
		record->arguments[i] = with[i];
	record->begin = path || second ? now() : entered;
	record->sample = 0;
	record->size = (behind - (char *)record + 7) & ~7ul;
	if (number == SYS_close) {
		/* It cannot fail, and its descriptor may be given to another thread at once. */
		record->result = 0;
		record->end = record->begin;
		if (with[0] >= 0 && with[0] < DESCRIPTORS)
			ring->known[with[0]] = 0;
		publish(ring, record);
		result = done(number, with);
		me->busy = 0;
		me->last_end = now();
		return result;
	}
	result = done(number, with);
	record->result = result;
	record->end = now();
	if (record->end - me->last_asked > LONG_SINCE) {
		record->cpu_end = cpu_time();
		me->last_asked = record->end;
	}
	if (number == SYS_write || number == SYS_pwrite64) {
		record->sample = sample(ring, behind, with, result);
		record->size = (behind + record->sample - (char *)record + 7) & ~7ul;
	}
	if ((number == SYS_openat || number == SYS_creat) && result >= 0 && result < DESCRIPTORS)
		ring->known[result] = number == SYS_openat && is_below(ring, with, (char *)(record + 1)) ? KNOWN_FOLDER : 0;
	/* A duplicate of a known folder. */
	if (number == SYS_fcntl && with[1] != F_SETFD && result >= 0 && result < DESCRIPTORS)
		ring->known[result] = with[0] < DESCRIPTORS ? ring->known[with[0]] & KNOWN_FOLDER : 0;
	publish(ring, record);
	me->busy = 0;
	/* To be written down takes less than to ask for the time. */
	me->last_end = record->sample ? now() : record->end;
	return result;
}

static long returned(long result)
{
	if (!failed(result))
		return result;
	*__errno_location() = -result;
	return -1;
}

#define EXPORT __attribute__((visibility("default")))
#define ON_FILE(number, ...) returned(recorded(number, 0, NULL, NULL, WITH(__VA_ARGS__)))
#define ON_PATH(number, folder, path, ...) returned(recorded(number, folder, path, NULL, WITH(__VA_ARGS__)))
#define SAME(name, as) EXPORT __typeof__(as) name __attribute__((alias(#as)))

static long opened(int folder, const char *path, int flags, va_list rest)
{
	int mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, int) : 0;

	return ON_PATH(SYS_openat, folder, path, folder, (long)path, flags, mode);
}

EXPORT int open(const char *path, int flags, ...)
{
	va_list rest;
	long result;

	va_start(rest, flags);
	result = opened(AT_FDCWD, path, flags, rest);
	va_end(rest);
	return result;
}

EXPORT int openat(int folder, const char *path, int flags, ...)
{
	va_list rest;
	long result;

	va_start(rest, flags);
	result = opened(folder, path, flags, rest);
	va_end(rest);
	return result;
}

EXPORT int __open_2(const char *path, int flags)
{
	return ON_PATH(SYS_openat, AT_FDCWD, path, AT_FDCWD, (long)path, flags);
}

EXPORT int __openat_2(int folder, const char *path, int flags)
{
	return ON_PATH(SYS_openat, folder, path, folder, (long)path, flags);
}

EXPORT int creat(const char *path, unsigned mode)
{
	return ON_PATH(SYS_creat, AT_FDCWD, path, (long)path, mode);
}

EXPORT int close(int file)
{
	return ON_FILE(SYS_close, file);
}

EXPORT long read(int file, void *to, size_t bytes)
{
	return ON_FILE(SYS_read, file, (long)to, bytes);
}

EXPORT long pread(int file, void *to, size_t bytes, long offset)
{
	return ON_FILE(SYS_pread64, file, (long)to, bytes, offset);
}

EXPORT long __read_chk(int file, void *to, size_t bytes, size_t room)
{
	if (bytes > room)
		__chk_fail();
	return read(file, to, bytes);
}

EXPORT long __pread_chk(int file, void *to, size_t bytes, long offset, size_t room)
{
	if (bytes > room)
		__chk_fail();
	return pread(file, to, bytes, offset);
}

EXPORT long write(int file, const void *from, size_t bytes)
{
	return ON_FILE(SYS_write, file, (long)from, bytes);
}

EXPORT long pwrite(int file, const void *from, size_t bytes, long offset)
{
	return ON_FILE(SYS_pwrite64, file, (long)from, bytes, offset);
}

EXPORT long lseek(int file, long offset, int from)
{
	return ON_FILE(SYS_lseek, file, offset, from);
}

EXPORT int ftruncate(int file, long bytes)
{
	return ON_FILE(SYS_ftruncate, file, bytes);
}

EXPORT int fallocate(int file, int mode, long offset, long bytes)
{
	return ON_FILE(SYS_fallocate, file, mode, offset, bytes);
}

/* It returns the error itself. */
EXPORT int posix_fadvise(int file, long offset, long bytes, int advice)
{
	return -recorded(SYS_fadvise64, 0, NULL, NULL, WITH(file, offset, bytes, advice));
}

/* Offsets stand in the program's memory, where the recorder looks during a stop. */
EXPORT long copy_file_range(int from, long *from_offset, int to, long *to_offset, size_t bytes, unsigned flags)
{
	const long with[6] = {from, (long)from_offset, to, (long)to_offset, bytes, flags};

	if (from_offset || to_offset)
		return returned(stopping(SYS_copy_file_range, with));
	return returned(recorded(SYS_copy_file_range, 0, NULL, NULL, with));
}

EXPORT int ioctl(int file, unsigned long request, ...)
{
	va_list rest;
	long with;

	va_start(rest, request);
	with = va_arg(rest, long);
	va_end(rest);
	if (request == FICLONE)
		return ON_FILE(SYS_ioctl, file, request, with);
	return returned(stopping(SYS_ioctl, WITH(file, request, with)));
}

EXPORT int fcntl(int file, int request, ...)
{
	struct f_owner_ex owner;
	va_list rest;
	long with, result;

	va_start(rest, request);
	with = va_arg(rest, long);
	va_end(rest);
	switch (request) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
	case F_SETFD:
		return ON_FILE(SYS_fcntl, file, request, with);
	case F_GETOWN:
		/* A group of processes is a negative number, which would look like an error: fcntl(2). */
		result = stopping(SYS_fcntl, WITH(file, F_GETOWN_EX, (long)&owner));
		if (failed(result))
			return returned(result);
		return owner.type == F_OWNER_PGRP ? -owner.pid : owner.pid;
	case F_SETLKW:
	case F_OFD_SETLKW:
		return returned(done(SYS_fcntl, WITH(file, request, with)));
	default:
		return returned(stopping(SYS_fcntl, WITH(file, request, with)));
	}
}

EXPORT int fsync(int file)
{
	return ON_FILE(SYS_fsync, file);
}

EXPORT int fdatasync(int file)
{
	return ON_FILE(SYS_fdatasync, file);
}

EXPORT int stat(const char *path, void *to)
{
	return ON_PATH(SYS_newfstatat, AT_FDCWD, path, AT_FDCWD, (long)path, (long)to, 0);
}

EXPORT int lstat(const char *path, void *to)
{
	return ON_PATH(SYS_newfstatat, AT_FDCWD, path, AT_FDCWD, (long)path, (long)to, AT_SYMLINK_NOFOLLOW);
}

EXPORT int fstat(int file, void *to)
{
	return ON_FILE(SYS_fstat, file, (long)to);
}

EXPORT int fstatat(int folder, const char *path, void *to, int flags)
{
	return ON_PATH(SYS_newfstatat, folder, path, folder, (long)path, (long)to, flags);
}

/* As programs call them that were linked before glibc 2.33; 1 is the layout of this architecture. */
EXPORT int __xstat(int layout, const char *path, void *to)
{
	return layout == 1 ? stat(path, to) : (int)returned(-EINVAL);
}

EXPORT int __lxstat(int layout, const char *path, void *to)
{
	return layout == 1 ? lstat(path, to) : (int)returned(-EINVAL);
}

EXPORT int __fxstat(int layout, int file, void *to)
{
	return layout == 1 ? fstat(file, to) : (int)returned(-EINVAL);
}

EXPORT int __fxstatat(int layout, int folder, const char *path, void *to, int flags)
{
	return layout == 1 ? fstatat(folder, path, to, flags) : (int)returned(-EINVAL);
}

EXPORT int statx(int folder, const char *path, int flags, unsigned mask, void *to)
{
	return ON_PATH(SYS_statx, folder, path, folder, (long)path, flags, mask, (long)to);
}

EXPORT int access(const char *path, int mode)
{
	return ON_PATH(SYS_access, AT_FDCWD, path, (long)path, mode);
}

EXPORT long readlink(const char *path, char *to, size_t bytes)
{
	return ON_PATH(SYS_readlink, AT_FDCWD, path, (long)path, (long)to, bytes);
}

EXPORT long readlinkat(int folder, const char *path, char *to, size_t bytes)
{
	return ON_PATH(SYS_readlinkat, folder, path, folder, (long)path, (long)to, bytes);
}

EXPORT int mkdir(const char *path, unsigned mode)
{
	return ON_PATH(SYS_mkdir, AT_FDCWD, path, (long)path, mode);
}

EXPORT int mkdirat(int folder, const char *path, unsigned mode)
{
	return ON_PATH(SYS_mkdirat, folder, path, folder, (long)path, mode);
}

EXPORT int rmdir(const char *path)
{
	return ON_PATH(SYS_rmdir, AT_FDCWD, path, (long)path);
}

EXPORT int unlink(const char *path)
{
	return ON_PATH(SYS_unlink, AT_FDCWD, path, (long)path);
}

EXPORT int unlinkat(int folder, const char *path, int flags)
{
	return ON_PATH(SYS_unlinkat, folder, path, folder, (long)path, flags);
}

EXPORT int symlink(const char *to, const char *path)
{
	return returned(recorded(SYS_symlink, AT_FDCWD, path, to, WITH((long)to, (long)path)));
}

EXPORT int symlinkat(const char *to, int folder, const char *path)
{
	return returned(recorded(SYS_symlinkat, folder, path, to, WITH((long)to, folder, (long)path)));
}

EXPORT int chmod(const char *path, unsigned mode)
{
	return ON_PATH(SYS_chmod, AT_FDCWD, path, (long)path, mode);
}

EXPORT int fchmod(int file, unsigned mode)
{
	return ON_FILE(SYS_fchmod, file, mode);
}

EXPORT int chown(const char *path, unsigned user, unsigned group)
{
	return ON_PATH(SYS_chown, AT_FDCWD, path, (long)path, user, group);
}

EXPORT int lchown(const char *path, unsigned user, unsigned group)
{
	return ON_PATH(SYS_lchown, AT_FDCWD, path, (long)path, user, group);
}

EXPORT int fchown(int file, unsigned user, unsigned group)
{
	return ON_FILE(SYS_fchown, file, user, group);
}

EXPORT int fchownat(int folder, const char *path, unsigned user, unsigned group, int flags)
{
	return ON_PATH(SYS_fchownat, folder, path, folder, (long)path, user, group, flags);
}

#define ON_NAMED(number, path, name, ...) returned(recorded(number, AT_FDCWD, path, name, WITH(__VA_ARGS__)))

EXPORT long getxattr(const char *path, const char *name, void *to, size_t bytes)
{
	return ON_NAMED(SYS_getxattr, path, name, (long)path, (long)name, (long)to, bytes);
}

EXPORT long lgetxattr(const char *path, const char *name, void *to, size_t bytes)
{
	return ON_NAMED(SYS_lgetxattr, path, name, (long)path, (long)name, (long)to, bytes);
}

EXPORT long fgetxattr(int file, const char *name, void *to, size_t bytes)
{
	return ON_NAMED(SYS_fgetxattr, NULL, name, file, (long)name, (long)to, bytes);
}

EXPORT int setxattr(const char *path, const char *name, const void *from, size_t bytes, int flags)
{
	return ON_NAMED(SYS_setxattr, path, name, (long)path, (long)name, (long)from, bytes, flags);
}

EXPORT int lsetxattr(const char *path, const char *name, const void *from, size_t bytes, int flags)
{
	return ON_NAMED(SYS_lsetxattr, path, name, (long)path, (long)name, (long)from, bytes, flags);
}

EXPORT int fsetxattr(int file, const char *name, const void *from, size_t bytes, int flags)
{
	return ON_NAMED(SYS_fsetxattr, NULL, name, file, (long)name, (long)from, bytes, flags);
}

EXPORT int removexattr(const char *path, const char *name)
{
	return ON_NAMED(SYS_removexattr, path, name, (long)path, (long)name);
}

EXPORT int lremovexattr(const char *path, const char *name)
{
	return ON_NAMED(SYS_lremovexattr, path, name, (long)path, (long)name);
}

EXPORT int fremovexattr(int file, const char *name)
{
	return ON_NAMED(SYS_fremovexattr, NULL, name, file, (long)name);
}

EXPORT long listxattr(const char *path, char *to, size_t bytes)
{
	return ON_PATH(SYS_listxattr, AT_FDCWD, path, (long)path, (long)to, bytes);
}

EXPORT long llistxattr(const char *path, char *to, size_t bytes)
{
	return ON_PATH(SYS_llistxattr, AT_FDCWD, path, (long)path, (long)to, bytes);
}

EXPORT long flistxattr(int file, char *to, size_t bytes)
{
	return ON_FILE(SYS_flistxattr, file, (long)to, bytes);
}

EXPORT int futimens(int file, const struct timespec *times)
{
	return ON_FILE(SYS_utimensat, file, 0, (long)times, 0);
}

EXPORT int utimensat(int folder, const char *path, const struct timespec *times, int flags)
{
	return path ? ON_PATH(SYS_utimensat, folder, path, folder, (long)path, (long)times, flags) : returned(-EINVAL);
}

/* The C library reads folders by calls of its own, which would stop. So this is what its functions do (glibc 2.36). A folder that is
 * opened here is read and closed here: the C library has all of them, and uses others inside itself. */
struct folder {
	int file;
	int locked;
	int too_long; /* a name was, for readdir_r */
	size_t room, filled, next;
	long position; /* behind the entry that was read last */
	char bytes[];
};

/* As the kernel writes it, and as programs see it: linux/dirent.h. */
struct entry {
	uint64_t inode;
	int64_t behind;
	uint16_t size;
	uint8_t type;
	char name[];
};

#define LEAST_ROOM (32ul << 10)
#define MOST_ROOM (1ul << 20)
/* Of the C library's struct dirent, whose names have at most 255 bytes. */
#define LARGEST_ENTRY 280

static struct folder *folder_of(int file, size_t room)
{
	struct folder *folder;

	if (room < LEAST_ROOM)
		room = LEAST_ROOM;
	if (room > MOST_ROOM)
		room = MOST_ROOM;
	folder = malloc(sizeof *folder + room);
	if (folder)
		*folder = (struct folder){.file = file, .room = room};
	return folder;
}

EXPORT struct folder *opendir(const char *path)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_DIRECTORY | O_CLOEXEC;
	struct folder *folder = NULL;
	struct stat about;
	int before, file = ON_PATH(SYS_openat, AT_FDCWD, path, AT_FDCWD, (long)path, flags, 0);

	if (file < 0)
		return NULL;
	if (!ON_FILE(SYS_fstat, file, (long)&about))
		folder = folder_of(file, about.st_blksize);
	if (!folder) {
		before = *__errno_location();
		close(file);
		*__errno_location() = before;
	}
	return folder;
}

EXPORT struct folder *fdopendir(int file)
{
	struct stat about;
	long flags;

	if (ON_FILE(SYS_fstat, file, (long)&about))
		return NULL;
	flags = (about.st_mode & S_IFMT) == S_IFDIR ? stopping(SYS_fcntl, WITH(file, F_GETFL)) : -ENOTDIR;
	if (!failed(flags) && (flags & O_ACCMODE) == O_WRONLY)
		flags = -EINVAL;
	if (returned(flags) < 0)
		return NULL;
	/* As glibc does it. */
	ON_FILE(SYS_fcntl, file, F_SETFD, FD_CLOEXEC);
	return folder_of(file, about.st_blksize);
}

static void lock(struct folder *folder)
{
	while (__atomic_exchange_n(&folder->locked, 1, __ATOMIC_ACQUIRE))
		passing(SYS_sched_yield, WITH(0));
}

static void unlock(struct folder *folder)
{
	__atomic_store_n(&folder->locked, 0, __ATOMIC_RELEASE);
}

/* The next entry that is in use, or none: then with what getdents64(2) returned. */
static struct entry *next(struct folder *folder, long *result)
{
	struct entry *entry;

	do {
		if (folder->next >= folder->filled) {
			*result = recorded(SYS_getdents64, 0, NULL, NULL,
					   WITH(folder->file, (long)folder->bytes, folder->room));
			/* A folder that was removed has no entries. */
			if (*result == -ENOENT)
				*result = 0;
			if (*result <= 0)
				return NULL;
			folder->filled = *result;
			folder->next = 0;
		}
		entry = (struct entry *)(folder->bytes + folder->next);
		folder->next += entry->size;
		folder->position = entry->behind;
	} while (!entry->inode);
	return entry;
}

EXPORT struct entry *readdir(struct folder *folder)
{
	struct entry *entry;
	long result = 0;

	lock(folder);
	entry = next(folder, &result);
	unlock(folder);
	if (!entry)
		returned(result);
	return entry;
}

EXPORT int readdir_r(struct folder *folder, struct entry *to, struct entry **found)
{
	struct entry *entry;
	long result = 0;

	lock(folder);
	while ((entry = next(folder, &result)) && entry->size > LARGEST_ENTRY)
		folder->too_long = 1;
	if (entry)
		__builtin_memcpy(to, entry, entry->size);
	else if (!result && folder->too_long)
		result = -ENAMETOOLONG;
	unlock(folder);
	*found = entry ? to : NULL;
	return entry ? 0 : -result;
}

EXPORT int closedir(struct folder *folder)
{
	int file;

	if (!folder)
		return returned(-EINVAL);
	file = folder->file;
	free(folder);
	return close(file);
}

EXPORT int dirfd(struct folder *folder)
{
	return folder->file;
}

EXPORT long telldir(struct folder *folder)
{
	return folder->position;
}

EXPORT void seekdir(struct folder *folder, long position)
{
	lock(folder);
	lseek(folder->file, position, SEEK_SET);
	folder->filled = folder->next = 0;
	folder->position = position;
	unlock(folder);
}

EXPORT void rewinddir(struct folder *folder)
{
	seekdir(folder, 0);
	folder->too_long = 0;
}

SAME(open64, open);
SAME(openat64, openat);
SAME(__open64_2, __open_2);
SAME(__openat64_2, __openat_2);
SAME(creat64, creat);
SAME(pread64, pread);
SAME(__pread64_chk, __pread_chk);
SAME(pwrite64, pwrite);
SAME(lseek64, lseek);
SAME(ftruncate64, ftruncate);
SAME(fallocate64, fallocate);
SAME(fcntl64, fcntl);
SAME(readdir64, readdir);
SAME(readdir64_r, readdir_r);
SAME(posix_fadvise64, posix_fadvise);
SAME(stat64, stat);
SAME(lstat64, lstat);
SAME(fstat64, fstat);
SAME(fstatat64, fstatat);
SAME(__xstat64, __xstat);
SAME(__lxstat64, __lxstat);
SAME(__fxstat64, __fxstat);
SAME(__fxstatat64, __fxstatat);
