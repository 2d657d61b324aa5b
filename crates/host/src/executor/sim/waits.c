// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What the processor waits for. Its idle time belongs to the request whose end wakes it, by what kind of request that is; where
 * none has ended when a task runs again, to a timer. It is counted always, so that cells are the same whether or not anything asks.
 * The parameter `waits` shows all since the start, a line each: kind, requests, bytes, nanoseconds that they took, idle nanoseconds,
 * and how often the processor was woken. Kinds are as blktrace has them: R, W, F or D, then F (FUA), A (read-ahead), S (sync), M (metadata).
 */
#include <linux/irqflags.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include "mark.h"
#include "waits.h"

struct wait {
	u64 requests, bytes, took, idle, wakes;
};

/* Operation and flags; the last one is of timers. */
enum { HAS_META = 1, HAS_SYNC = 2, HAS_AHEAD = 4, HAS_FUA = 8, KINDS = 64, TIMERS = KINDS };

static struct wait waits[KINDS + 1];
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
}

static void wakes_up(void)
{
	if (!sleeps)
		return;
	MARK(MARK_SLEEPS, 0);
	idle += ktime_get_ns() - since;
	wakes++;
	sleeps = 0;
}

/* Interrupts are off. */
static void idle_changes(void *unused, unsigned int state, unsigned int cpu)
{
	if (state == (unsigned int)-1) {
		wakes_up();
		return;
	}
	/* A task has run since, and no request had ended before it did. */
	if (current->nvcsw + current->nivcsw != switches)
		belongs(&waits[TIMERS]);
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

void waits_ended(struct request *rq, u64 took)
{
	struct wait *wait = &waits[waits_kind(rq)];

	wait->requests++;
	wait->bytes += blk_rq_bytes(rq);
	wait->took += took;
	/* Where a task runs, something else has woken the processor for it. */
	belongs(is_idle_task(current) ? wait : &waits[TIMERS]);
}

static int show(char *text, const struct kernel_param *parameter)
{
	unsigned long flags;
	int i, length = 0;

	local_irq_save(flags);
	/* Who asks runs. */
	belongs(&waits[TIMERS]);
	for (i = 0; i <= KINDS; i++) {
		struct wait *w = &waits[i];

		if (!w->requests && !w->wakes)
			continue;
		if (i == TIMERS)
			length += scnprintf(text + length, PAGE_SIZE - length, "timer");
		else
			length += scnprintf(text + length, PAGE_SIZE - length, "%c%s%s%s%s", operations[i >> 4], i & HAS_FUA ? "F" : "",
					    i & HAS_AHEAD ? "A" : "", i & HAS_SYNC ? "S" : "", i & HAS_META ? "M" : "");
		length += scnprintf(text + length, PAGE_SIZE - length, " %llu %llu %llu %llu %llu\n", w->requests, w->bytes, w->took,
				    w->idle, w->wakes);
	}
	local_irq_restore(flags);
	return length;
}

static const struct kernel_param_ops operations_of_waits = { .get = show };
module_param_cb(waits, &operations_of_waits, NULL, 0400);

#ifdef CONFIG_TRACEPOINTS
static void see(struct tracepoint *point, void *unused)
{
	if (!strcmp(point->name, "cpu_idle"))
		tracepoint_probe_register(point, idle_changes, NULL);
	else if (!strcmp(point->name, "local_timer_entry"))
		tracepoint_probe_register(point, timer_comes, NULL);
}

/* A kernel without them shows no idle time. */
void waits_begin(void)
{
	for_each_kernel_tracepoint(see, NULL);
}
#else
void waits_begin(void)
{
}
#endif
