// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Compression has a speed of its own. It waits for memory less than any other work of a kernel, so a real processor does more
 * of its instructions in a nanosecond. Where an instruction is as long as any other it takes too long, and targets that compress
 * look slow. So the kernel's clocks go slower while one of the functions below runs: writing "THOUSANDTHS" to the parameter
 * `compression` says how many times slower.
 */
#include <linux/clocksource.h>
#include <linux/irqflags.h>
#include <linux/kprobes.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/sched/clock.h>
#include <linux/version.h>
#include <asm/msr.h>
#include <asm/tsc.h>
#include "mark.h"

/* Before 5.13 no function of the kernel's puts another scheduler's clock into its patched code. Kernels without KVM lack the notifiers. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 13, 0) && defined(CONFIG_PREEMPT_NOTIFIERS) && defined(CONFIG_KRETPROBES)

/* None calls another of them. Of those that a kernel lacks, nothing runs; modules bring some when they come. */
static const char *const functions[] = {
	"LZ4_compress_HC", "LZ4_compress_default", "LZ4_decompress_safe", "LZ4_decompress_safe_partial",
	"lz4_compress_zfs", "lz4_decompress_zfs", "lzo1x_1_compress", "lzo1x_decompress_safe",
	"lzorle1x_1_compress", "xz_dec_run", "zfs_ZSTD_compress2", "zfs_ZSTD_decompressDCtx", "zlib_deflate",
	"zlib_inflate", "zstd_compress_cctx", "zstd_compress_stream", "zstd_decompress_dctx",
	"zstd_decompress_stream", "zstd_end_stream", "zstd_flush_stream",
};

/* More calls than this at a time, by tasks that wait for the processor within, would go at the usual speed. */
#define CALLS 64

struct call {
	struct preempt_notifier notifier;
	int counts;
};

static struct kretprobe probes[ARRAY_SIZE(functions)];

#ifndef SEVERAL
/* Of a tick within, the part that no clock sees, times 2^32. */
static u32 unseen_part;
/* All that no clock has seen, and since when the running task is within. */
static u64 unseen, since;
static int is_within;

/* There is one processor, so where interrupts wait nothing else runs. */
static u64 ticks(void)
{
	unsigned long flags;
	u64 now;

	local_irq_save(flags);
	now = rdtsc_ordered();
	if (is_within)
		now -= mul_u64_u32_shr(now - since, unseen_part, 32);
	now -= unseen;
	local_irq_restore(flags);
	return now;
}

static void go_in(void)
{
	unsigned long flags;

	local_irq_save(flags);
	MARK(MARK_COMPRESSES, 1);
	since = rdtsc_ordered();
	is_within = 1;
	local_irq_restore(flags);
}

static void go_out(void)
{
	unsigned long flags;

	local_irq_save(flags);
	MARK(MARK_COMPRESSES, 0);
	unseen += mul_u64_u32_shr(rdtsc_ordered() - since, unseen_part, 32);
	is_within = 0;
	local_irq_restore(flags);
}

static int set_pace(unsigned int thousandths)
{
	unseen_part = U32_MAX - div_u64((u64)U32_MAX * 1000, thousandths);
	return 0;
}

#define scheduler_ticks ticks
#define share() 0
#endif

/* Kernels that may take the processor from a task within: what runs meanwhile is no compression. */
static void goes_on(struct preempt_notifier *notifier, int cpu)
{
	go_in();
}

static void waits(struct preempt_notifier *notifier, struct task_struct *next)
{
	go_out();
}

static struct preempt_ops switches = { .sched_in = goes_on, .sched_out = waits };

static int begins(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct call *call = (struct call *)instance->data;

	/* An interrupt's own would have no task to follow. */
	call->counts = !is_within && in_task();
	if (!call->counts)
		return 0;
	preempt_notifier_init(&call->notifier, &switches);
	preempt_notifier_register(&call->notifier);
	go_in();
	return 0;
}

static int ends(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct call *call = (struct call *)instance->data;

	if (!call->counts)
		return 0;
	go_out();
	preempt_notifier_unregister(&call->notifier);
	return 0;
}

static void watch_functions(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(functions); i++) {
		struct kretprobe *probe = &probes[i];

		if (probe->handler)
			continue;
		probe->kp.symbol_name = functions[i];
		probe->entry_handler = begins;
		probe->handler = ends;
		probe->data_size = sizeof(struct call);
		probe->maxactive = CALLS;
		/* One that is not there is asked for again with the next module. */
		if (register_kretprobe(probe))
			memset(probe, 0, sizeof(*probe));
	}
}

static int module_comes(struct notifier_block *block, unsigned long state, void *module)
{
	if (state == MODULE_STATE_COMING)
		watch_functions();
	return NOTIFY_DONE;
}

static struct notifier_block modules = { .notifier_call = module_comes };

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

/* No module may have the function that sets the scheduler's clock, so its place is taken from a probe. */
static int set_scheduler_clock(void)
{
	struct kprobe place = { .symbol_name = "paravirt_set_sched_clock" };
	void (*set)(u64 (*clock)(void));
	unsigned long flags;
	int error = register_kprobe(&place);

	if (error)
		return error;
	set = (void *)place.addr;
	unregister_kprobe(&place);
	local_irq_save(flags);
	scheduler_began = sched_clock() - mul_u64_u32_shr(scheduler_ticks(), source.mult, source.shift);
	local_irq_restore(flags);
	set(scheduler_clock);
	return 0;
}

static int start(unsigned int thousandths)
{
	int error;

	if (source.mult || thousandths < 1000)
		return -EINVAL;
	error = set_pace(thousandths);
	if (error)
		return error;
	preempt_notifier_inc();
	error = clocksource_register_khz(&source, tsc_khz);
	if (!error)
		error = set_scheduler_clock();
	if (!error)
		error = register_module_notifier(&modules);
	if (!error)
		watch_functions();
	if (!error)
		error = share();
	return error;
}

#else

/* Never begun. */
static struct { u32 mult, shift; } source __maybe_unused;

static int start(unsigned int thousandths)
{
	return -EOPNOTSUPP;
}

#endif

#ifndef SEVERAL
static int set_compression(const char *text, const struct kernel_param *parameter)
{
	unsigned int thousandths;
	int error = kstrtouint(text, 10, &thousandths);

	return error || thousandths == 1000 ? error : start(thousandths);
}

static const struct kernel_param_ops compression_operations = { .set = set_compression };
module_param_cb(compression, &compression_operations, NULL, 0200);
#endif
