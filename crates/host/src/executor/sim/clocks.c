// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The kernel's clocks go slower than the processor counts: by how much faster than the rest of the kernel a real processor executes
 * compression (compression.c) and programs (their own instructions wait for memory less than a kernel's), and by the
 * number of processors that work (processors.c). The scheduler's clock leaves out the last: it counts what all processors did.
 * Writing "N COMPRESSION PROGRAMS" to the parameter `pace`, the last two in thousandths, begins it.
 */
#include <linux/clockchips.h>
#include <linux/clocksource.h>
#include <linux/context_tracking.h>
#include <linux/irqflags.h>
#include <linux/jump_label.h>
#include <linux/kprobes.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/version.h>
#include <asm/irq_regs.h>
#include <asm/msr.h>
#include <asm/ptrace.h>
#include <asm/tsc.h>
#include "mark.h"

/* Before 5.13 no function of the kernel's puts another scheduler's clock into its patched code. Kernels without KVM lack the notifiers. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 13, 0) && defined(CONFIG_PREEMPT_NOTIFIERS) && defined(CONFIG_KRETPROBES)

/* simdisk.c has it. */
struct clock_event_device *find_timer(void);

#define MOST MARK_MOST
/* The processor's timer divides by this. */
#define TICKS_OF_A_COUNT 16

/* How many processors there are, and how many of them work now, at least one. */
static unsigned int processors, working = 1;
static int pace = KERNEL;
static unsigned int thousandths[PACES] = { 1000, 1000, 1000 };
/* Of a tick, the part that the kernel's clock does not see, times 2^32, by pace and working processors. */
static u32 unseen_part[PACES][MOST + 1];
/* All that the clocks of the kernel and of the scheduler have not seen, and since when the present parts hold. */
static u64 unseen, unseen_by_scheduler, since;
/* The timer, its own function, and the tick of the kernel's clock at which it is to end. */
static struct clock_event_device *timer;
static int (*set_count)(unsigned long count, struct clock_event_device *timer);
static u64 due;
/* The processor's ticks for a thousand of the kernel's clock for which the timer is set. */
static u32 set_rate = 1000;

/* There is one processor, so where interrupts wait nothing else runs. */
static u64 ticks(void)
{
	unsigned long flags;
	u64 now;

	local_irq_save(flags);
	now = rdtsc_ordered();
	now -= mul_u64_u32_shr(now - since, unseen_part[pace][working], 32) + unseen;
	local_irq_restore(flags);
	return now;
}

static u64 scheduler_ticks(void)
{
	unsigned long flags;
	u64 now;

	local_irq_save(flags);
	now = rdtsc_ordered();
	now -= mul_u64_u32_shr(now - since, unseen_part[pace][1], 32) + unseen_by_scheduler;
	local_irq_restore(flags);
	return now;
}

/* The timer goes by the processor's ticks, of which one of the kernel's clock is several now. */
static int arm(u64 left, u32 rate)
{
	u64 count = div_u64(left * rate, 1000 * TICKS_OF_A_COUNT);

	set_rate = rate;
	return set_count(clamp_t(u64, count, 1, U32_MAX), timer);
}

/* A timer that an interrupt of a program sets is set for that program's pace, as it goes on. */
static int set_next_event(unsigned long count, struct clock_event_device *device)
{
	struct pt_regs *interrupted = get_irq_regs();
	int goes_on = interrupted && user_mode(interrupted) ? PROGRAM : pace;

	due = ticks() + (u64)count * TICKS_OF_A_COUNT;
	return arm((u64)count * TICKS_OF_A_COUNT, working * thousandths[goes_on]);
}

/*
 * Interrupts wait. A timer that was set for another pace would end too late or too early. Where a program goes on it stays, as most
 * are back in the kernel before it ends: if it ends, it is too early, and its interrupt sets it for the program.
 */
static notrace void change_pace(unsigned int now_working, int now_pace)
{
	u64 now;
	s64 left;
	u32 rate = now_working * thousandths[now_pace];

	if (now_working == working && now_pace == pace && rate == set_rate)
		return;
	if (now_working != working)
		MARK_VARIABLE(MARK_PROCESSORS, now_working);
	if (now_pace == KERNEL)
		MARK(MARK_PACE, KERNEL);
	else if (now_pace == PROGRAM)
		MARK(MARK_PACE, PROGRAM);
	else
		MARK(MARK_PACE, COMPRESSION);
	now = rdtsc_ordered();
	unseen += mul_u64_u32_shr(now - since, unseen_part[pace][working], 32);
	unseen_by_scheduler += mul_u64_u32_shr(now - since, unseen_part[pace][1], 32);
	since = now;
	working = now_working;
	pace = now_pace;
	if (now_pace == PROGRAM || rate == set_rate)
		return;
	left = due - (now - unseen);
	if (left > 0 && clockevent_state_oneshot(timer))
		arm(left, rate);
}

static notrace void set_pace(int now)
{
	unsigned long flags;

	local_irq_save(flags);
	change_pace(working, now);
	local_irq_restore(flags);
}

static u64 read_ticks(struct clocksource *source)
{
	return ticks();
}

/* Preferred to the processor's own. Programs ask the kernel for the time: none of their own could know what is unseen. */
static struct clocksource source = {
	.name = "simulated",
	.rating = 500,
	.read = read_ticks,
	.mask = CLOCKSOURCE_MASK(64),
	.flags = CLOCK_SOURCE_IS_CONTINUOUS | CLOCK_SOURCE_VALID_FOR_HRES,
};

static u64 scheduler_began;

static notrace u64 scheduler_clock(void)
{
	return scheduler_began + mul_u64_u32_shr(scheduler_ticks(), source.mult, source.shift);
}

/* No module may have functions and data that the kernel does not export: their places come from its table of symbols. */
static unsigned long (*find_symbol)(const char *name);

static int find_symbols(void)
{
	struct kprobe place = { .symbol_name = "kallsyms_lookup_name" };
	int error = register_kprobe(&place);

	if (error)
		return error;
	find_symbol = (void *)place.addr;
	unregister_kprobe(&place);
	return 0;
}

static int set_scheduler_clock(void)
{
	void (*set)(u64 (*clock)(void)) = (void *)find_symbol("paravirt_set_sched_clock");
	unsigned long flags;

	if (!set)
		return -ENOENT;
	local_irq_save(flags);
	scheduler_began = sched_clock() - mul_u64_u32_shr(scheduler_ticks(), source.mult, source.shift);
	local_irq_restore(flags);
	set(scheduler_clock);
	return 0;
}

struct wanted {
	const char *name;
	void *probe;
	int error;
};

static void probe_if_wanted(struct tracepoint *point, void *given)
{
	struct wanted *wanted = given;

	if (!strcmp(point->name, wanted->name))
		wanted->error = tracepoint_probe_register(point, wanted->probe, NULL);
}

static int probe_point(const char *name, void *probe)
{
	struct wanted wanted = { name, probe, -ENOENT };

	for_each_kernel_tracepoint(probe_if_wanted, &wanted);
	return wanted.error;
}

#include "compression.c"
#include "processors.c"

#if defined(CONFIG_CONTEXT_TRACKING_USER) || (LINUX_VERSION_CODE < KERNEL_VERSION(6, 0, 0) && defined(CONFIG_CONTEXT_TRACKING))
static notrace void program_begins(void *data, int unused)
{
	change_pace(working, PROGRAM);
}

static notrace void program_ends(void *data, int unused)
{
	change_pace(working, KERNEL);
}

/* As if the key were true. Since Linux 6.10 the kernel's own function may no longer change it: it is read only after the boot. */
static int patch_branches(struct static_key *key)
{
	void (*patch)(struct jump_entry *entry, enum jump_label_type type) = (void *)find_symbol("arch_jump_label_transform");
	struct jump_entry *entry = (void *)find_symbol("__start___jump_table");
	struct jump_entry *stop = (void *)find_symbol("__stop___jump_table");

	if (!patch || !entry || !stop)
		return -ENOENT;
	for (; entry < stop; entry++)
		if (jump_entry_key(entry) == key && !jump_entry_is_init(entry))
			patch(entry, jump_entry_is_branch(entry) ? JUMP_LABEL_NOP : JUMP_LABEL_JMP);
	return 0;
}

/* Where the kernel leaves for programs and comes back it can tell, as it does on processors without a tick (`nohz_full=`). */
static int watch_programs(void)
{
	int error = patch_branches(&context_tracking_key.key);

	if (!error)
		error = probe_point("user_enter", program_begins);
	if (!error)
		error = probe_point("user_exit", program_ends);
	if (error)
		return error;
	local_irq_disable();
	current->vtime.starttime = sched_clock();
	current->vtime.state = VTIME_SYS;
	this_cpu_write(context_tracking.active, true);
	local_irq_enable();
	return 0;
}
#else
static int watch_programs(void)
{
	return -EOPNOTSUPP;
}
#endif

static int begin(void)
{
	unsigned long flags;
	int error, i, kind;

	timer = find_timer();
	if (!timer)
		return -ENODEV;
	for (kind = 0; kind < PACES; kind++)
		for (i = 1; i <= processors; i++)
			unseen_part[kind][i] = thousandths[kind] * i == 1000
				? 0 : U32_MAX - div_u64((u64)U32_MAX * 1000, thousandths[kind] * i);
	since = rdtsc_ordered();
	error = find_symbols();
	if (!error)
		error = clocksource_register_khz(&source, tsc_khz);
	if (!error)
		error = set_scheduler_clock();
	if (error)
		return error;
	local_irq_save(flags);
	set_count = timer->set_next_event;
	timer->set_next_event = set_next_event;
	local_irq_restore(flags);
	if (thousandths[COMPRESSION] > 1000)
		error = watch_compression();
	if (!error && processors > 1)
		error = share();
	if (!error && thousandths[PROGRAM] > 1000)
		error = watch_programs();
	return error;
}

/* Nanoseconds that processors have worked beside the one that the kernel counts as busy. */
static u64 beside_ns(void)
{
	unsigned long flags;
	u64 beside;

	local_irq_save(flags);
	beside = scheduler_ticks() - ticks();
	local_irq_restore(flags);
	return mul_u64_u32_shr(beside, source.mult, source.shift);
}

static int set(const char *text, const struct kernel_param *parameter)
{
	if (source.mult ||
	    sscanf(text, "%u %u %u", &processors, &thousandths[COMPRESSION], &thousandths[PROGRAM]) != 3 ||
	    processors < 1 || processors > MOST || thousandths[COMPRESSION] < 1000 || thousandths[PROGRAM] < 1000)
		return -EINVAL;
	return begin();
}

#else

static unsigned int processors, thousandths[PACES] = { 1000, 1000, 1000 };

static u64 beside_ns(void)
{
	return 0;
}

static int set(const char *text, const struct kernel_param *parameter)
{
	return -EOPNOTSUPP;
}

#endif

static int get(char *buffer, const struct kernel_param *parameter)
{
	return sprintf(buffer, "%u %u %u\n", max(processors, 1U), thousandths[COMPRESSION], thousandths[PROGRAM]);
}

static int get_beside(char *buffer, const struct kernel_param *parameter)
{
	return sprintf(buffer, "%llu\n", beside_ns());
}

static const struct kernel_param_ops pace_operations = { .set = set, .get = get };
static const struct kernel_param_ops beside_operations = { .get = get_beside };
module_param_cb(pace, &pace_operations, NULL, 0600);
module_param_cb(beside_ns, &beside_operations, NULL, 0400);
