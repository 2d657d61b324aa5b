// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Several processors that never wait for each other. R tasks that take turns on one processor that is min(R, N) times as fast get
 * on as fast as on N processors with perfect balance (processor sharing). So this machine keeps its one processor, and the kernel's
 * clock goes slower by the number of tasks that could run, at most N. A part of clocks.c.
 */
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/reboot.h>
#include <linux/sched.h>

static unsigned int (*count_runnable)(void);

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

	local_irq_save(flags);
	change_pace(runnable, pace);
	take_turns();
	local_irq_restore(flags);
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

static int share(void)
{
	int error;

	count_runnable = (void *)find_symbol("nr_running");
	if (!count_runnable)
		return -ENOENT;
	make_turns();
	error = probe_point("sched_switch", recount);
	if (!error)
		error = probe_point("sched_wakeup", recount);
	if (!error)
		error = probe_point("sched_wakeup_new", recount);
	if (!error)
		error = register_kretprobe(&stops);
	if (!error)
		error = register_reboot_notifier(&end);
	if (!error)
		atomic_set(&__num_online_cpus, processors);
	return error;
}
