// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Which program runs, for profile.c: a mark each time the processor goes to another task, with the number of the name of its process.
 * Threads of the kernel have the number 0, as have names that come when all numbers are in use. It is marked always, so that cells are
 * the same whether or not anything asks. The parameter `programs` shows the names, a line "program NUMBER NAME" each.
 */
#include <linux/ctype.h>
#include <linux/irqflags.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include "mark.h"
#include "waits.h"

/* Bytes behind the end of a name may differ: then it has two numbers. */
struct name {
	u64 words[TASK_COMM_LEN / 8];
};

static struct name names[MARK_MOST];

static int show(char *text, const struct kernel_param *parameter)
{
	int i, length = 0;

	for (i = 0; i < MARK_MOST; i++) {
		char shown[sizeof(names[i]) + 1] = "", *at;

		if (!names[i].words[0])
			continue;
		memcpy(shown, &names[i], sizeof(names[i]));
		for (at = shown; *at; at++)
			*at = isprint(*at) ? *at : '?';
		length += scnprintf(text + length, PAGE_SIZE - length, "program %d %s\n", i + 1, shown);
	}
	return length;
}

static const struct kernel_param_ops operations = { .get = show };
module_param_cb(programs, &operations, NULL, 0400);

#ifdef CONFIG_TRACEPOINTS
/* Its place in the table, which is found by a hash (Fibonacci hashing; Knuth, The Art of Computer Programming 3, 6.4). */
static unsigned int number_of(const struct task_struct *task)
{
	struct name name;
	unsigned int i, at;

	if (task->flags & PF_KTHREAD)
		return 0;
	memcpy(&name, task->group_leader->comm, sizeof(name));
	at = (name.words[0] ^ name.words[1]) * 0x9E3779B97F4A7C15ULL >> 58;
	for (i = 0; i < MARK_MOST; i++, at = (at + 1) % MARK_MOST) {
		if (!names[at].words[0])
			names[at] = name;
		if (names[at].words[0] == name.words[0] && names[at].words[1] == name.words[1])
			return at + 1;
	}
	return 0;
}

static void goes_to(void *unused, bool preempts, struct task_struct *before, struct task_struct *task)
{
	MARK_VARIABLE(MARK_PROGRAM, number_of(task));
}

static void has_new_name(void *unused, struct task_struct *task)
{
	unsigned long flags;

	local_irq_save(flags);
	MARK_VARIABLE(MARK_PROGRAM, number_of(task));
	local_irq_restore(flags);
}

static void see(struct tracepoint *point, void *unused)
{
	if (!strcmp(point->name, "sched_switch"))
		tracepoint_probe_register(point, goes_to, NULL);
	else if (!strcmp(point->name, "sched_process_exec"))
		tracepoint_probe_register(point, has_new_name, NULL);
}

/* A kernel without them names no program. */
void programs_begin(void)
{
	for_each_kernel_tracepoint(see, NULL);
}
#else
void programs_begin(void)
{
}
#endif
