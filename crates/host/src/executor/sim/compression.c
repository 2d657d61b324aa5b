// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Compression has a pace of its own. It waits for memory less than any other work of a kernel, so a real processor does more
 * of its instructions in a nanosecond. Where an instruction is as long as any other it takes too long, and targets that compress
 * look slow. A part of clocks.c.
 */
#include <linux/preempt.h>

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

/* Kernels that may take the processor from a task within: what runs meanwhile is no compression. */
static void goes_on(struct preempt_notifier *notifier, int cpu)
{
	set_pace(COMPRESSION);
}

static void waits(struct preempt_notifier *notifier, struct task_struct *next)
{
	set_pace(KERNEL);
}

static struct preempt_ops switches = { .sched_in = goes_on, .sched_out = waits };

static int begins(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct call *call = (struct call *)instance->data;

	/* An interrupt's own would have no task to follow. */
	call->counts = pace == KERNEL && in_task();
	if (!call->counts)
		return 0;
	preempt_notifier_init(&call->notifier, &switches);
	preempt_notifier_register(&call->notifier);
	set_pace(COMPRESSION);
	return 0;
}

static int ends(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct call *call = (struct call *)instance->data;

	if (!call->counts)
		return 0;
	set_pace(KERNEL);
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

static int watch_compression(void)
{
	int error;

	preempt_notifier_inc();
	error = register_module_notifier(&modules);
	if (!error)
		watch_functions();
	return error;
}
