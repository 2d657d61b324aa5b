// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Several processors that never wait for each other. R tasks that take turns on one processor that is min(R, N) times as fast get
 * on as fast as on N processors with perfect balance (processor sharing). So this machine keeps its one processor, and the kernel's clock goes slower by
 * the number of tasks that could run, at most N. The scheduler's clock does not: it counts what all processors did. Writing
 * "N THOUSANDTHS" to the parameter `processors` begins it; the second is that of the parameter `compression`.
 */
#define SEVERAL

#include <linux/clockchips.h>
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/irqflags.h>
#include <linux/kprobes.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/reboot.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/version.h>
#include <asm/msr.h>
#include "mark.h"

/* driver.c has it. */
struct clock_event_device *find_timer(void);

#define MOST MARK_MOST
/* The processor's timer divides by this. */
#define TICKS_OF_A_COUNT 16

static unsigned int processors, thousandths_within;
/* How many of the processors work now, at least one, and whether the running task compresses. */
static unsigned int working = 1;
static int is_within;
/* Of a tick, the part that the kernel's clock does not see, times 2^32: without and within, by working processors. */
static u32 unseen_part[2][MOST + 1];
/* All that the clocks of the kernel and of the scheduler have not seen, and since when the present parts hold. */
static u64 unseen, unseen_by_scheduler, since;
/* The timer, its own function, and the tick of the kernel's clock at which it is to end. */
static struct clock_event_device *timer;
static int (*set_count)(unsigned long count, struct clock_event_device *timer);
static u64 due;
static unsigned int (*count_runnable)(void);

static u64 ticks(void)
{
	unsigned long flags;
	u64 now;

	local_irq_save(flags);
	now = rdtsc_ordered();
	now -= mul_u64_u32_shr(now - since, unseen_part[is_within][working], 32) + unseen;
	local_irq_restore(flags);
	return now;
}

static u64 scheduler_ticks(void)
{
	unsigned long flags;
	u64 now;

	local_irq_save(flags);
	now = rdtsc_ordered();
	now -= mul_u64_u32_shr(now - since, unseen_part[is_within][1], 32) + unseen_by_scheduler;
	local_irq_restore(flags);
	return now;
}

/* The timer goes by the processor's ticks, of which one of the kernel's clock is several now. */
static int arm(u64 left)
{
	u64 count = left * working * (is_within ? thousandths_within : 1000);

	count = div_u64(count, 1000 * TICKS_OF_A_COUNT);
	return set_count(clamp_t(u64, count, 1, U32_MAX), timer);
}

static int set_next_event(unsigned long count, struct clock_event_device *device)
{
	due = ticks() + (u64)count * TICKS_OF_A_COUNT;
	return arm((u64)count * TICKS_OF_A_COUNT);
}

static notrace void mark(unsigned int now_working, int now_within)
{
	if (now_within)
		MARK(MARK_COMPRESSES, 1);
	else
		MARK(MARK_COMPRESSES, 0);
	MARK_VARIABLE(MARK_PROCESSORS, now_working);
}

/* Interrupts wait. A timer that was set for the old pace would end too late or too early. */
static notrace void change_pace(unsigned int now_working, int now_within)
{
	u64 now;
	s64 left;

	mark(now_working, now_within);
	now = rdtsc_ordered();
	unseen += mul_u64_u32_shr(now - since, unseen_part[is_within][working], 32);
	unseen_by_scheduler += mul_u64_u32_shr(now - since, unseen_part[is_within][1], 32);
	since = now;
	working = now_working;
	is_within = now_within;
	left = due - (now - unseen);
	if (left > 0 && timer && clockevent_state_oneshot(timer))
		arm(left);
}

static void go_in(void)
{
	unsigned long flags;

	local_irq_save(flags);
	change_pace(working, 1);
	local_irq_restore(flags);
}

static void go_out(void)
{
	unsigned long flags;

	local_irq_save(flags);
	change_pace(working, 0);
	local_irq_restore(flags);
}

/*
 * Since Linux 6.6 a task that wakes may have to wait, as it had more than its share before. If the running task goes on, the kernel
 * forgets its own wish to end that turn (`hrtick_start_fair` asks for it, then `__schedule` clears what was asked for), and the other
 * would wait for the next tick while it counts as one that works. So the kernel chooses anew after each turn while tasks share.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
#define TURN_NS 100000

static struct hrtimer turn;

static enum hrtimer_restart turn_ends(struct hrtimer *timer)
{
	if (working == 1)
		return HRTIMER_NORESTART;
	set_tsk_need_resched(current);
	set_preempt_need_resched();
	hrtimer_forward_now(timer, ns_to_ktime(TURN_NS));
	return HRTIMER_RESTART;
}

static void make_turns(void)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(&turn, turn_ends, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
#else
	hrtimer_init(&turn, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	turn.function = turn_ends;
#endif
}

static notrace void take_turns(void)
{
	if (working > 1 && !hrtimer_is_queued(&turn))
		hrtimer_start(&turn, ns_to_ktime(TURN_NS), HRTIMER_MODE_REL_PINNED_HARD);
}
#else
#define make_turns()
#define take_turns()
#endif

static notrace void recount(void *data)
{
	unsigned int runnable = clamp_t(unsigned int, count_runnable(), 1, processors);
	unsigned long flags;

	if (runnable == working)
		return;
	local_irq_save(flags);
	change_pace(runnable, is_within);
	take_turns();
	local_irq_restore(flags);
}

static int points_found;

static void find_point(struct tracepoint *point, void *data)
{
	static const char *const names[] = { "sched_switch", "sched_wakeup", "sched_wakeup_new" };

	if (match_string(names, ARRAY_SIZE(names), point->name) >= 0 && !tracepoint_probe_register(point, recount, NULL))
		points_found++;
}

/* The kernel sizes its pools of workers by this number. Only what stops all processors would wait for those that are not there. */
static int stop_begins(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	atomic_set(&__num_online_cpus, 1);
	return 0;
}

static int stop_ends(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	atomic_set(&__num_online_cpus, processors);
	return 0;
}

static struct kretprobe stops = {
	.kp.symbol_name = "stop_machine_cpuslocked",
	.entry_handler = stop_begins,
	.handler = stop_ends,
};

static int machine_ends(struct notifier_block *block, unsigned long event, void *data)
{
	atomic_set(&__num_online_cpus, 1);
	return NOTIFY_DONE;
}

static struct notifier_block end = { .notifier_call = machine_ends };

static int set_pace(unsigned int thousandths)
{
	int i;

	thousandths_within = thousandths;
	for (i = 1; i <= processors; i++) {
		unseen_part[0][i] = i == 1 ? 0 : U32_MAX - U32_MAX / i;
		unseen_part[1][i] = U32_MAX - div_u64((u64)U32_MAX * 1000, thousandths * i);
	}
	if (thousandths == 1000)
		unseen_part[1][1] = 0;
	since = rdtsc_ordered();
	return 0;
}

static int share(void)
{
	struct kprobe place = { .symbol_name = "nr_running" };
	unsigned long flags;
	int error = register_kprobe(&place);

	if (error)
		return error;
	count_runnable = (void *)place.addr;
	unregister_kprobe(&place);
	timer = find_timer();
	if (!timer)
		return -ENODEV;
	local_irq_save(flags);
	set_count = timer->set_next_event;
	timer->set_next_event = set_next_event;
	local_irq_restore(flags);
	make_turns();
	for_each_kernel_tracepoint(find_point, NULL);
	if (points_found != 3)
		return -ENOENT;
	error = register_kretprobe(&stops);
	if (!error)
		error = register_reboot_notifier(&end);
	if (!error)
		atomic_set(&__num_online_cpus, processors);
	return error;
}

#include "compression.c"

static int set_processors(const char *text, const struct kernel_param *parameter)
{
	unsigned int thousandths;

	if (sscanf(text, "%u %u", &processors, &thousandths) != 2 || processors < 1 || processors > MOST)
		return -EINVAL;
	return start(thousandths);
}

static int get_processors(char *buffer, const struct kernel_param *parameter)
{
	return sprintf(buffer, "%u\n", max(processors, 1U));
}

/* Nanoseconds that processors have worked beside the one that the kernel counts as busy. */
static int get_beside(char *buffer, const struct kernel_param *parameter)
{
	unsigned long flags;
	u64 beside;

	local_irq_save(flags);
	beside = scheduler_ticks() - ticks();
	local_irq_restore(flags);
	return sprintf(buffer, "%llu\n", mul_u64_u32_shr(beside, source.mult, source.shift));
}

static const struct kernel_param_ops processors_operations = { .set = set_processors, .get = get_processors };
static const struct kernel_param_ops beside_operations = { .get = get_beside };
module_param_cb(processors, &processors_operations, NULL, 0600);
module_param_cb(beside_ns, &beside_operations, NULL, 0400);
