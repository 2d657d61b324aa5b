// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What the processor waits for. Its idle time belongs to the request whose end wakes it, by what kind of request that is; where
 * none has ended when a task runs again, to a timer, by the function that slept. A thread of the kernel or of the agent's ends no wait where a request was
 * under way when it was woken, nor where it neither begins one nor wakes a program. It is counted always, so that cells are the same whether or not anything asks.
 * /proc/simdisk_waits shows all since the start, a line each: kind, requests, bytes, nanoseconds that they took, idle nanoseconds,
 * how often the processor was woken, and the idle nanoseconds of each part of the model's that is not 0, such as 3:120 for a seek. (A parameter of the
 * module would be cut after a page; what is longer here is made anew with more room, and read in pieces.) Kinds are as blktrace has them: R, W, F or D, then F (FUA), A (read-ahead), S (sync), M (metadata);
 * or timer:FUNCTION:MODULE, or timer alone where that is unknown.
 */
#include <linux/irqflags.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/timer.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>
#include <asm/unwind.h>
#include "mark.h"
#include "waits.h"

struct wait {
	u64 requests, bytes, took, idle, wakes, parts[SIM_PARTS];
};

/* Operation and flags; the last one is of timers. */
enum { HAS_META = 1, HAS_SYNC = 2, HAS_AHEAD = 4, HAS_FUA = 8, KINDS = 64, TIMERS = KINDS };

static struct wait waits[KINDS + 1];

/* A place in the kernel at which something slept until a timer. */
struct sleeper {
	unsigned long place;
	struct wait wait;
};

#define SLEEPERS 24
static struct sleeper sleepers[SLEEPERS];
/* Of the idle time that belongs to nothing yet, and of the timer that ended last in it; 0 where there is none. */
static unsigned long woken, ended;
/* Whether the processor was woken for a task of user space; whether anything has begun a request or woken such a task since. */
static int by_program, acted;
/* The task that asked last, and its process: the agent, whose other threads watch over it. */
static pid_t asker, askers;
/* Requests that are under way, and that were when the processor was woken. */
static unsigned int under_way, were_under_way;
static int (*is_of_scheduler)(unsigned long place);
/* The function of a timer that wakes a task which sleeps, so that timer says nothing. */
static unsigned long wakes_sleeper;
static const char operations[] = "RWFD";

/* Idle time that belongs to nothing yet, the wakes in it, and since when the processor sleeps. */
static u64 idle, wakes, since;
static int sleeps;
/* How often the idle task had given the processor to others when it slept last. */
static unsigned long switches;

static void belongs(struct wait *wait)
{
	wait->idle += idle;
	wait->wakes += wakes;
	idle = wakes = 0;
	woken = ended = by_program = acted = 0;
}

/* As much of `all` as the part is of the whole, which is not 0. */
static u64 share_of(u64 all, u64 part, u64 whole)
{
	u64 share;

	asm("mulq %2\n\tdivq %3" : "=a"(share) : "0"(all), "rm"(part), "rm"(whole) : "rdx", "cc");
	return share;
}

/*
 * Idle time of a request is of its parts as its whole time is. The processor may have slept only while some of them came, but which
 * those were is not known: a FLUSH writes many places, each with its seek and turn, and the processor may sleep several times. A part
 * that took less would have ended the wait earlier by as much, wherever in the request it comes.
 */
static void divide(struct wait *wait, u64 took, const sim_word *parts)
{
	u64 until = 0, given = 0, all;
	int i;

	for (i = 0; took && idle && i < SIM_PARTS; i++) {
		if (!parts[i])
			continue;
		until += parts[i];
		all = share_of(idle, until, took);
		wait->parts[i] += all - given;
		given = all;
	}
}

/* No request has ended. */
static void belongs_to_sleeper(void)
{
	int i;

	for (i = 0; woken && i < SLEEPERS; i++) {
		if (!sleepers[i].place)
			sleepers[i].place = woken;
		if (sleepers[i].place == woken) {
			belongs(&sleepers[i].wait);
			return;
		}
	}
	belongs(&waits[TIMERS]);
}

#ifdef CONFIG_TRACEPOINTS
/* In which function a task sleeps, as /proc/PID/wchan has it. */
static unsigned long place_of(struct task_struct *task)
{
	struct unwind_state state;
	unsigned long place = 0;

	for (unwind_start(&state, task, NULL, NULL); !unwind_done(&state); unwind_next_frame(&state)) {
		place = unwind_get_return_address(&state);
		if (place && !is_of_scheduler(place))
			return place;
	}
	return 0;
}

static void timer_ends(void *unused, struct timer_list *timer)
{
	unsigned long function = (unsigned long)timer->function;

	if (timer->function == delayed_work_timer_fn)
		function = (unsigned long)container_of(timer, struct delayed_work, timer)->work.func;
	/* A probe may lie behind the mark of a place that is jumped to. */
	ended = function == wakes_sleeper || function + 4 == wakes_sleeper ? 0 : function + 1;
}

static int is_of_program(const struct task_struct *task)
{
	return !(task->flags & PF_KTHREAD) && (task->tgid != askers || task->pid == asker);
}

/* A worker without work sleeps nowhere, and works for its timer. */
static void task_wakes(void *unused, struct task_struct *task)
{
	acted |= is_of_program(task);
	if (!is_idle_task(current) || !idle)
		return;
	by_program |= is_of_program(task);
	if (!woken && is_of_scheduler)
		woken = ended && task->flags & PF_WQ_WORKER ? ended : place_of(task);
}

static unsigned long address_of(const char *symbol)
{
	struct kprobe probe = { .symbol_name = symbol };

	if (register_kprobe(&probe))
		return 0;
	unregister_kprobe(&probe);
	return (unsigned long)probe.addr;
}
#endif

static void wakes_up(void)
{
	if (!sleeps)
		return;
	MARK(MARK_SLEEPS, 0);
	idle += ktime_get_ns() - since;
	wakes++;
	sleeps = 0;
	were_under_way = under_way;
}

static int wait_goes_on(void)
{
	return !by_program && (were_under_way || !acted);
}

/* Interrupts are off. */
static void idle_changes(void *unused, unsigned int state, unsigned int cpu)
{
	if (state == (unsigned int)-1) {
		wakes_up();
		return;
	}
	/* A task has run since, and no request had ended before it did. */
	if (current->nvcsw + current->nivcsw != switches) {
		if (wait_goes_on())
			woken = ended = acted = 0;
		else
			belongs_to_sleeper();
	}
	switches = current->nvcsw + current->nivcsw;
	sleeps = 1;
	MARK(MARK_SLEEPS, 1);
	since = ktime_get_ns();
}

/* The handlers of interrupts come before the idle task knows that it was woken. */
static void timer_comes(void *unused, int vector)
{
	wakes_up();
}

int waits_kind(struct request *rq)
{
	int operation, flags = 0;

	switch (req_op(rq)) {
	case REQ_OP_READ:
		operation = 0;
		break;
	case REQ_OP_WRITE:
	case REQ_OP_ZONE_APPEND:
		operation = 1;
		break;
	case REQ_OP_FLUSH:
		return 2 << 4;
	default:
		return 3 << 4;
	}
	if (rq->cmd_flags & REQ_META)
		flags |= HAS_META;
	if (rq->cmd_flags & REQ_SYNC)
		flags |= HAS_SYNC;
	if (rq->cmd_flags & REQ_RAHEAD)
		flags |= HAS_AHEAD;
	if (rq->cmd_flags & REQ_FUA)
		flags |= HAS_FUA;
	/* Reads are always synchronous, and say so or not. */
	return operation << 4 | (operation ? flags : flags & ~HAS_SYNC);
}

void waits_began(void)
{
	under_way++;
	acted = 1;
}

void waits_ended(struct request *rq, u64 took, const sim_word *parts, int is_target)
{
	struct wait *wait = &waits[waits_kind(rq)];

	/* Others take time that the target waits for, and are no requests of its own. */
	if (is_target) {
		wait->requests++;
		wait->bytes += blk_rq_bytes(rq);
		wait->took += took;
	}
	under_way--;
	/* Where a task runs, something else has woken the processor for it. */
	if (is_idle_task(current) || wait_goes_on()) {
		divide(wait, took, parts);
		belongs(wait);
	} else {
		belongs_to_sleeper();
	}
}

static void show_wait(struct seq_file *text, const char *name, const struct wait *w)
{
	int i;

	seq_printf(text, "%s %llu %llu %llu %llu %llu", name, w->requests, w->bytes, w->took, w->idle, w->wakes);
	for (i = 0; i < SIM_PARTS; i++)
		if (w->parts[i])
			seq_printf(text, " %d:%llu", i, w->parts[i]);
	seq_putc(text, '\n');
}

/* "timer:FUNCTION:MODULE". */
static void show_sleeper(struct seq_file *text, const struct sleeper *sleeper)
{
	char symbol[KSYM_SYMBOL_LEN] = "", name[KSYM_SYMBOL_LEN + 8], *module;

	/* A call may be the last instruction of its function. */
	sprint_symbol_no_offset(symbol, sleeper->place - 1);
	module = strstr(symbol, " [");
	if (module)
		*strchrnul(module, ']') = 0;
	if (module)
		*module = 0;
	scnprintf(name, sizeof(name), "timer:%s:%s", symbol, module ? module + 2 : "");
	show_wait(text, name, &sleeper->wait);
}

static int show(struct seq_file *text, void *unused)
{
	unsigned long flags;
	int i;

	local_irq_save(flags);
	/* Who asks runs. */
	belongs_to_sleeper();
	asker = current->pid;
	askers = current->tgid;
	for (i = 0; i <= KINDS; i++) {
		char name[] = { operations[i >> 4], 0, 0, 0, 0, 0 };

		if (!waits[i].requests && !waits[i].wakes)
			continue;
		scnprintf(name + 1, sizeof(name) - 1, "%s%s%s%s", i & HAS_FUA ? "F" : "", i & HAS_AHEAD ? "A" : "",
			  i & HAS_SYNC ? "S" : "", i & HAS_META ? "M" : "");
		show_wait(text, i == TIMERS ? "timer" : name, &waits[i]);
	}
	for (i = 0; i < SLEEPERS && sleepers[i].place; i++)
		show_sleeper(text, &sleepers[i]);
	local_irq_restore(flags);
	return 0;
}

#ifdef CONFIG_TRACEPOINTS
static void see(struct tracepoint *point, void *unused)
{
	if (!strcmp(point->name, "cpu_idle"))
		tracepoint_probe_register(point, idle_changes, NULL);
	else if (!strcmp(point->name, "local_timer_entry"))
		tracepoint_probe_register(point, timer_comes, NULL);
	else if (!strcmp(point->name, "timer_expire_entry"))
		tracepoint_probe_register(point, timer_ends, NULL);
	else if (!strcmp(point->name, "sched_waking"))
		tracepoint_probe_register(point, task_wakes, NULL);
}

/* A kernel without them shows no idle time. */
void waits_begin(void)
{
	is_of_scheduler = (void *)address_of("in_sched_functions");
	wakes_sleeper = address_of("process_timeout");
	for_each_kernel_tracepoint(see, NULL);
	proc_create_single("simdisk_waits", 0400, NULL, show);
}
#else
void waits_begin(void)
{
	proc_create_single("simdisk_waits", 0400, NULL, show);
}
#endif
