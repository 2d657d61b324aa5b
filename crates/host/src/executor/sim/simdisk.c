// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Disks whose data lie in files of the host (regions of memory) and whose answers come when model.c says so, by the guest's
 * own clock. Nothing is asked of the host. Writing "ADDRESS BYTES" to the parameter `attach` makes a disk of the region there.
 */
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/clockchips.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/io.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/version.h>
#include <linux/vmalloc.h>
#include <asm/msr.h>
#include <asm/tsc.h>
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 18, 0)
#include <linux/genhd.h>
#endif
#include "model.h"
#include "waits.h"
#include "zbc.h"

#define SINCE(a, b) (LINUX_VERSION_CODE >= KERNEL_VERSION(a, b, 0))
#define MAGIC 0x314d495346434950ULL
#define READ_ONLY 1

/* The first page of a region; the same as region.rs writes. */
struct header {
	u64 magic, flags, sectors, data;
	char serial[32];
	/* A bit for each kind of request that takes no time. */
	u64 at_once;
	u64 reserved[55];
	u64 words[SIM_WORDS];
};

/* Where a disk is recorded: this page, then one entry behind the other; the same as recording.rs reads. A recording is a
 * disk too, so that whoever reads it can write this page. */
struct record {
	u64 magic, bytes, used, lost, mode, command_ns, link_ps, forgets;
};

enum { IDLE, WITH_DATA, WITHOUT_DATA };

#define RECORD_MAGIC 0x3143455246434950ULL
/* An operation of its own, beside those of the model. */
#define LANDED 4

/* Of what has landed, `done` is when, and `submitted` when it was begun. */
struct entry {
	u64 operation, first, sectors, forced, submitted, done, data, reserved;
};

struct simdisk {
	struct header *header;
	/* Not the guest's root, nor a disk that is only read from: TARGET_DISK of names.rs begins its serial. */
	int is_target;
	char *data;
	struct record *record;
	u64 record_bytes;
	struct entry *entries[SIM_TAGS];
	void *model;
	struct gendisk *disk;
	struct blk_mq_tag_set tags;
	struct request *requests[SIM_TAGS];
	/* When each came. */
	u64 begun[SIM_TAGS];
	struct hrtimer timer;
	spinlock_t lock;
};

static int major;
static int minors;

/* Room for an entry with so much data behind it; none where nothing is recorded. */
static struct entry *note(struct simdisk *d, int operation, u64 data)
{
	struct record *r = d->record;
	struct entry *entry;

	if (!r || r->mode == IDLE || (r->mode == WITHOUT_DATA && operation != SIM_WRITE))
		return NULL;
	if (r->mode == WITHOUT_DATA)
		data = 0;
	/* Whoever reads the recording can write any numbers here. */
	if (r->bytes > d->record_bytes || r->used > r->bytes || r->used % 8 || sizeof(*entry) + data > r->bytes - r->used) {
		r->lost++;
		return NULL;
	}
	entry = (struct entry *)((char *)r + r->used);
	memset(entry, 0, sizeof(*entry));
	entry->operation = operation;
	entry->data = data;
	r->used += sizeof(*entry) + data;
	return entry;
}

static void note_landings(struct simdisk *d)
{
	struct sim_landing landing;
	struct entry *entry;

	while (d->record && sim_landed(d->model, &landing)) {
		entry = note(d, LANDED, 0);
		if (!entry)
			continue;
		entry->first = landing.first;
		entry->sectors = landing.sectors;
		entry->submitted = landing.begun;
		entry->done = landing.when;
	}
}

/* The request that has this tag, which is free from now on. */
static struct request *taken(struct simdisk *d, unsigned int tag, u64 when)
{
	struct request *rq = d->requests[tag];

	if (d->entries[tag])
		d->entries[tag]->done = when;
	d->entries[tag] = NULL;
	d->requests[tag] = NULL;
	waits_ended(rq, when - d->begun[tag], sim_parts(d->model, tag), d->is_target);
	return rq;
}

static enum hrtimer_restart wake(struct hrtimer *timer)
{
	struct simdisk *d = container_of(timer, struct simdisk, timer);
	struct request *done[SIM_TAGS / 4];
	unsigned int count = 0, i, tag;
	sim_word when;
	unsigned long flags;
	u64 now;

	do {
		spin_lock_irqsave(&d->lock, flags);
		now = ktime_get_ns();
		sim_wake(d->model, now);
		note_landings(d);
		for (count = 0; count < ARRAY_SIZE(done) && sim_done(d->model, &tag, &when); count++)
			done[count] = taken(d, tag, when);
		when = sim_next(d->model);
		spin_unlock_irqrestore(&d->lock, flags);
		for (i = 0; i < count; i++)
			blk_mq_complete_request(done[i]);
	} while (when <= now);
	if (when == SIM_NEVER)
		return HRTIMER_NORESTART;
	hrtimer_set_expires(timer, ns_to_ktime(when));
	return HRTIMER_RESTART;
}

/* Of a read, bytes behind those that hold data are zeros. */
static void move_data(struct simdisk *d, struct request *rq, u64 readable)
{
	char *at = d->data + (blk_rq_pos(rq) << 9);
	struct req_iterator iter;
	struct bio_vec piece;

	rq_for_each_segment(piece, rq, iter) {
		char *memory = (char *)page_address(piece.bv_page) + piece.bv_offset;
		u64 held = min_t(u64, readable, piece.bv_len);

		if (rq_data_dir(rq) == WRITE) {
			memcpy(at, memory, piece.bv_len);
		} else {
			memcpy(memory, at, held);
			memset(memory + held, 0, piece.bv_len - held);
		}
		readable -= held;
		at += piece.bv_len;
	}
}

static struct entry *note_request(struct simdisk *d, struct request *rq, int operation, int forced)
{
	struct entry *entry = NULL;

	if (operation == SIM_FLUSH)
		entry = note(d, operation, 0);
	else if (operation == SIM_WRITE)
		entry = note(d, operation, blk_rq_bytes(rq));
	if (!entry)
		return NULL;
	entry->first = blk_rq_pos(rq);
	entry->sectors = blk_rq_sectors(rq);
	entry->forced = forced;
	if (entry->data)
		memcpy(entry + 1, d->data + (entry->first << 9), entry->data);
	return entry;
}

/* The model's operation, and the command of zones; -1 where there is none. What changes a zone alone takes as long as TRIM. */
static int operation_of(struct request *rq, int *command)
{
	*command = -1;
	switch (req_op(rq)) {
	case REQ_OP_READ:
		return SIM_READ;
	case REQ_OP_WRITE:
		*command = ZBC_WRITE;
		return SIM_WRITE;
	case REQ_OP_ZONE_APPEND:
		*command = ZBC_APPEND;
		return SIM_WRITE;
	case REQ_OP_FLUSH:
		return SIM_FLUSH;
	case REQ_OP_DISCARD:
		return SIM_TRIM;
	case REQ_OP_ZONE_RESET:
		*command = ZBC_RESET;
		return SIM_TRIM;
	case REQ_OP_ZONE_RESET_ALL:
		*command = ZBC_RESET_ALL;
		return SIM_TRIM;
	case REQ_OP_ZONE_OPEN:
		*command = ZBC_OPEN;
		return SIM_TRIM;
	case REQ_OP_ZONE_CLOSE:
		*command = ZBC_CLOSE;
		return SIM_TRIM;
	case REQ_OP_ZONE_FINISH:
		*command = ZBC_FINISH;
		return SIM_TRIM;
	default:
		return -1;
	}
}

/* Whether the zones refuse a request; bytes of a read that hold data. An append learns where it goes. */
static int ask_zones(struct simdisk *d, struct request *rq, int command, u64 *readable)
{
	struct zbc *zbc = sim_zbc(d->model);
	sim_word first = blk_rq_pos(rq);
	unsigned long flags;
	int refused = 0;

	*readable = U64_MAX;
	if (!zbc)
		return command > ZBC_WRITE;
	spin_lock_irqsave(&d->lock, flags);
	if (command >= 0)
		refused = zbc_do(zbc, command, &first, blk_rq_sectors(rq));
	else if (req_op(rq) == REQ_OP_READ)
		*readable = zbc_readable(zbc, first, blk_rq_sectors(rq)) << 9;
	spin_unlock_irqrestore(&d->lock, flags);
	if (command == ZBC_APPEND)
		rq->__sector = first;
	return refused;
}

static blk_status_t queue(struct blk_mq_hw_ctx *context, const struct blk_mq_queue_data *given)
{
	struct simdisk *d = context->queue->queuedata;
	struct request *rq = given->rq;
	int command, operation = operation_of(rq, &command), forced = (rq->cmd_flags & REQ_FUA) != 0;
	struct entry *entry;
	unsigned long flags;
	sim_word when;
	unsigned int tag;
	u64 now, readable;

	if (operation < 0)
		return BLK_STS_NOTSUPP;
	if (operation == SIM_WRITE && (d->header->flags & READ_ONLY))
		return BLK_STS_IOERR;
	if (ask_zones(d, rq, command, &readable))
		return BLK_STS_IOERR;
	blk_mq_start_request(rq);
	if (operation == SIM_READ || operation == SIM_WRITE)
		move_data(d, rq, readable);
	spin_lock_irqsave(&d->lock, flags);
	entry = note_request(d, rq, operation, forced);
	now = ktime_get_ns();
	if (entry)
		entry->submitted = now;
	d->entries[rq->tag] = entry;
	d->requests[rq->tag] = rq;
	d->begun[rq->tag] = now;
	waits_began();
	if (d->header->at_once >> waits_kind(rq) & 1) {
		rq = taken(d, rq->tag, now);
	} else {
		sim_submit(d->model, rq->tag, operation, forced, blk_rq_pos(rq), blk_rq_sectors(rq), now);
		note_landings(d);
		rq = NULL;
		/* Of a disk without delay it is done now; what else is done is left to the timer. */
		if (d->header->words[SIM_KIND] == 0 && sim_done(d->model, &tag, &when))
			rq = taken(d, tag, when);
	}
	when = sim_next(d->model);
	if (when != SIM_NEVER && (!hrtimer_is_queued(&d->timer) || ktime_to_ns(hrtimer_get_expires(&d->timer)) > when))
		hrtimer_start(&d->timer, ns_to_ktime(when), HRTIMER_MODE_ABS_HARD);
	spin_unlock_irqrestore(&d->lock, flags);
	if (rq)
		blk_mq_end_request(rq, BLK_STS_OK);
	return BLK_STS_OK;
}

static void complete_request(struct request *rq)
{
	blk_mq_end_request(rq, BLK_STS_OK);
}

static const struct blk_mq_ops operations = {
	.queue_rq = queue,
	.complete = complete_request,
};

#ifdef CONFIG_BLK_DEV_ZONED
static void describe(struct simdisk *d, unsigned int number, struct blk_zone *described)
{
	struct zbc *zbc = sim_zbc(d->model);
	struct zbc_zone zone;
	unsigned long flags;

	spin_lock_irqsave(&d->lock, flags);
	zone = zbc->zone[number];
	spin_unlock_irqrestore(&d->lock, flags);
	memset(described, 0, sizeof(*described));
	described->start = number * zbc->size;
	described->len = described->capacity = zbc->size;
	described->cond = zone.condition;
	described->type = zone.condition == ZBC_CONVENTIONAL ? BLK_ZONE_TYPE_CONVENTIONAL : BLK_ZONE_TYPE_SEQWRITE_REQ;
	described->wp = zone.condition == ZBC_CONVENTIONAL ? (sector_t)-1 : described->start + zone.pointer;
}

#if SINCE(6, 19)
static int report_zones(struct gendisk *disk, sector_t sector, unsigned int count, struct blk_report_zones_args *asked)
#else
static int report_zones(struct gendisk *disk, sector_t sector, unsigned int count, report_zones_cb tell, void *asked)
#endif
{
	struct simdisk *d = disk->private_data;
	struct zbc *zbc = sim_zbc(d->model);
	unsigned int first, i;
	struct blk_zone zone;
	int error;

	if (!zbc)
		return -EOPNOTSUPP;
	first = sector / zbc->size;
	for (i = 0; i < count && first + i < zbc->zones; i++) {
		describe(d, first + i, &zone);
#if SINCE(6, 19)
		error = disk_report_zone(disk, &zone, i, asked);
#else
		error = tell(&zone, i, asked);
#endif
		if (error)
			return error;
	}
	return i;
}

/* By itself, before 6.10, only mq-deadline keeps the order of writes to a zone; since then the block layer does. */
static int make_zones(struct gendisk *disk, const struct zbc *zbc)
{
#if !SINCE(6, 9)
	struct request_queue *q = disk->queue;

#if SINCE(6, 8)
	disk_set_zoned(disk);
#elif SINCE(6, 0)
	disk_set_zoned(disk, BLK_ZONED_HM);
#else
	blk_queue_set_zoned(disk, BLK_ZONED_HM);
#endif
	blk_queue_flag_set(QUEUE_FLAG_ZONE_RESETALL, q);
	blk_queue_required_elevator_features(q, ELEVATOR_F_ZBD_SEQ_WRITE);
	blk_queue_chunk_sectors(q, zbc->size);
	blk_queue_max_zone_append_sectors(q, zbc->size);
#if SINCE(5, 12)
	blk_queue_zone_write_granularity(q, ZBC_PHYSICAL_SECTORS << 9);
#endif
#endif
#if SINCE(6, 10)
	return blk_revalidate_disk_zones(disk);
#else
	return blk_revalidate_disk_zones(disk, NULL);
#endif
}
#else
static int make_zones(struct gendisk *disk, const struct zbc *zbc)
{
	return -EOPNOTSUPP;
}
#endif

static const struct block_device_operations block_operations = {
	.owner = THIS_MODULE,
#ifdef CONFIG_BLK_DEV_ZONED
	.report_zones = report_zones,
#endif
};

static ssize_t serial_show(struct device *device, struct device_attribute *attribute, char *text)
{
	struct simdisk *d = dev_to_disk(device)->private_data;

	return scnprintf(text, PAGE_SIZE, "%.32s\n", d->header->serial);
}
static DEVICE_ATTR_RO(serial);

/* What flash has done since the start, in bytes: valid, written by the host with padding, copied by garbage collection, and its blocks. */
static ssize_t flash_show(struct device *device, struct device_attribute *attribute, char *text)
{
	struct simdisk *d = dev_to_disk(device)->private_data;
	u64 valid, written, copied, collected;
	unsigned long flags;

	if (d->header->words[SIM_KIND] != 2 || !d->header->words[SIM_UNITS])
		return 0;
	spin_lock_irqsave(&d->lock, flags);
	valid = sim_count(d->model, SIM_VALID) << 12;
	written = sim_count(d->model, SIM_WRITTEN) << 12;
	copied = sim_count(d->model, SIM_COPIED) << 12;
	collected = sim_count(d->model, SIM_COLLECTED);
	spin_unlock_irqrestore(&d->lock, flags);
	return scnprintf(text, PAGE_SIZE, "%llu %llu %llu %llu\n", valid, written, copied, collected);
}
static DEVICE_ATTR_RO(flash);

static struct attribute *disk_attrs[] = { &dev_attr_serial.attr, &dev_attr_flash.attr, NULL };
ATTRIBUTE_GROUPS(disk);

static int make_disk(struct simdisk *d)
{
	const u64 *words = d->header->words;
	int rotates = words[SIM_ROTATIONAL] != 0, forgets = words[SIM_VOLATILE] != 0;
	struct zbc *zbc = sim_zbc(d->model);
	struct request_queue *q;
	int error = 0;
#if SINCE(6, 9)
	struct queue_limits limits = {
		.logical_block_size = 512,
		.physical_block_size = 4096,
		.max_hw_sectors = 2048,
		.max_segments = 256,
		.max_hw_discard_sectors = rotates ? 0 : UINT_MAX >> 9,
		.discard_granularity = rotates ? 0 : 4096,
#if SINCE(6, 11)
		.chunk_sectors = zbc ? zbc->size : 0,
		.zone_write_granularity = zbc ? ZBC_PHYSICAL_SECTORS << 9 : 0,
		.features = (rotates ? BLK_FEAT_ROTATIONAL : 0) | (forgets ? BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA : 0) |
			    (zbc ? BLK_FEAT_ZONED : 0),
#else
		.zoned = zbc != NULL,
		.chunk_sectors = zbc ? zbc->size : 0,
		.max_zone_append_sectors = zbc ? zbc->size : 0,
		.zone_write_granularity = zbc ? ZBC_PHYSICAL_SECTORS << 9 : 0,
#endif
	};

	d->disk = blk_mq_alloc_disk(&d->tags, &limits, d);
	if (IS_ERR(d->disk))
		return PTR_ERR(d->disk);
	q = d->disk->queue;
#elif SINCE(5, 14)
	d->disk = blk_mq_alloc_disk(&d->tags, d);
	if (IS_ERR(d->disk))
		return PTR_ERR(d->disk);
	q = d->disk->queue;
#else
	d->disk = alloc_disk(1);
	if (!d->disk)
		return -ENOMEM;
	q = blk_mq_init_queue(&d->tags);
	if (IS_ERR(q))
		return PTR_ERR(q);
	d->disk->queue = q;
#endif
	q->queuedata = d;
#if !SINCE(6, 9)
	blk_queue_logical_block_size(q, 512);
	blk_queue_physical_block_size(q, 4096);
	blk_queue_max_hw_sectors(q, 2048);
	blk_queue_max_segments(q, 256);
	if (!rotates) {
		q->limits.discard_granularity = 4096;
		blk_queue_max_discard_sectors(q, UINT_MAX >> 9);
#if !SINCE(5, 19)
		blk_queue_flag_set(QUEUE_FLAG_DISCARD, q);
#endif
	}
#endif
#if !SINCE(6, 11)
	if (!rotates)
		blk_queue_flag_set(QUEUE_FLAG_NONROT, q);
	blk_queue_write_cache(q, forgets, forgets);
#endif
	d->disk->major = major;
	d->disk->first_minor = minors++;
	d->disk->minors = 1;
	d->disk->fops = &block_operations;
	d->disk->private_data = d;
	snprintf(d->disk->disk_name, DISK_NAME_LEN, "sim%c", 'a' + d->disk->first_minor);
	set_capacity(d->disk, d->header->sectors);
	if (d->header->flags & READ_ONLY)
		set_disk_ro(d->disk, true);
	if (zbc)
		error = make_zones(d->disk, zbc);
	if (error)
		return error;
#if SINCE(5, 15)
	error = device_add_disk(NULL, d->disk, disk_groups);
#else
	device_add_disk(NULL, d->disk, disk_groups);
#endif
	return error;
}

static int start(struct simdisk *d, u64 bytes)
{
	int error;

	if (d->header->magic != MAGIC || d->header->data > bytes || d->header->sectors > (bytes - d->header->data) >> 9)
		return -EINVAL;
	d->data = (char *)d->header + d->header->data;
	error = sim_start(d->model, d->header->words);
	if (error) {
		pr_err("simdisk: parameter %d is out of range\n", error - 1);
		return -EINVAL;
	}
	spin_lock_init(&d->lock);
#if SINCE(6, 13)
	hrtimer_setup(&d->timer, wake, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_HARD);
#else
	hrtimer_init(&d->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_HARD);
	d->timer.function = wake;
#endif
	d->tags.ops = &operations;
	d->tags.nr_hw_queues = 1;
	d->tags.queue_depth = d->header->words[SIM_DEPTH];
	d->tags.numa_node = NUMA_NO_NODE;
#if !SINCE(6, 14)
	d->tags.flags = BLK_MQ_F_SHOULD_MERGE;
#endif
#if SINCE(5, 15)
	if (!d->header->words[SIM_ROTATIONAL])
		d->tags.flags |= BLK_MQ_F_NO_SCHED_BY_DEFAULT;
#endif
	error = blk_mq_alloc_tag_set(&d->tags);
	return error ? error : make_disk(d);
}

/* Memory for as long as the machine, as its disks. */
static int begin_recording(struct simdisk *d, u64 at, u64 bytes)
{
	struct header *header = memremap(at, bytes, MEMREMAP_WB);

	if (!header)
		return -ENOMEM;
	d->record = (struct record *)((char *)header + header->data);
	if (header->magic == MAGIC && header->data <= bytes && bytes - header->data >= sizeof(*d->record) &&
	    d->record->magic == RECORD_MAGIC && d->record->bytes <= bytes - header->data) {
		d->record_bytes = d->record->bytes;
		return 0;
	}
	d->record = NULL;
	memunmap(header);
	return -EINVAL;
}

/* A disk stays as long as its machine: nothing is taken back but what a refused region took. */
static int attach(const char *text, const struct kernel_param *parameter)
{
	unsigned long long at, bytes, record_at, record_bytes;
	struct simdisk *d;
	int error = -ENOMEM, words = sscanf(text, "%llu %llu %llu %llu", &at, &bytes, &record_at, &record_bytes);

	if (words != 2 && words != 4)
		return -EINVAL;
	d = kzalloc(sizeof(*d), GFP_KERNEL);
	if (!d)
		return -ENOMEM;
	d->header = memremap(at, bytes, MEMREMAP_WB);
	if (d->header)
		d->is_target = !strncmp(d->header->serial, "pickfs-target", 13);
	if (d->header)
		d->model = vzalloc(sim_bytes(d->header->words));
	if (d->model)
		error = words == 4 ? begin_recording(d, record_at, record_bytes) : 0;
	if (!error)
		error = start(d, bytes);
	if (!error)
		return 0;
	if (d->header)
		memunmap(d->header);
	vfree(d->model);
	kfree(d);
	return error;
}

static const struct kernel_param_ops attach_operations = { .set = attach };
module_param_cb(attach, &attach_operations, NULL, 0200);

/* QEMU's pvpanic device (docs/specs/pvpanic.rst): the machine stops, is saved here, and goes on from here. */
#define PVPANIC 0x505
#define PANICKED 1
/* By then QEMU's next timer is due, whose time its clock may or may not be moved to while the machine stops. */
#define SETTLED_NS 50000000

/* Waits until the clock says exactly that: an instruction is a nanosecond. Whether QEMU has moved the clock at the stop, and how
 * it begins again, is settled by then, and interrupts wait. So all machines that go on from here are alike from then on. */
static int wait_until(u64 until)
{
	u64 left;

	asm volatile("1:	rdtsc\n"
		     "	shl $32, %%rdx\n"
		     "	or %%rdx, %%rax\n"
		     "	mov %[until], %[left]\n"
		     "	sub %%rax, %[left]\n"
		     "	cmp $64, %[left]\n"
		     "	jg 1b\n"
		     "	cmp $8, %[left]\n"
		     "	jl 4f\n"
		     "	test $1, %b[left]\n"
		     "	jz 2f\n"
		     "	nop\n"
		     "2:	shr $1, %[left]\n"
		     "3:	dec %[left]\n"
		     "	jnz 3b\n"
		     "4:\n"
		     : [left] "=&c"(left)
		     : [until] "r"(until)
		     : "rax", "rdx", "cc");
	return left ? -ETIME : 0;
}

static int save(const char *text, const struct kernel_param *parameter)
{
	unsigned long flags;
	u64 until;
	int error;

	local_irq_save(flags);
	until = rdtsc() + SETTLED_NS;
	outb(PANICKED, PVPANIC);
	error = wait_until(until);
	local_irq_restore(flags);
	return error;
}

static const struct kernel_param_ops save_operations = { .set = save };
module_param_cb(save, &save_operations, NULL, 0200);

/* ---- the processor's speed ---- */

/* QEMU's counts: a tick is a nanosecond of its time, and the timer divides by 16, as Linux asks it to. */
#define COUNT_KHZ 1000000
#define TIMER_HZ 62500000ULL
/* Its multiplier is ticks of a nanosecond, times 2^32. */
#define TIMER_SHIFT 32

static struct clock_event_device *timer_seen;

static int see_timer(struct kprobe *probe, struct pt_regs *regs)
{
	timer_seen = (struct clock_event_device *)regs->si;
	return 0;
}

static int differs(u64 found, u64 wanted)
{
	return found < wanted - wanted / 50 || found > wanted + wanted / 50;
}

/* No module may have the processor's timer, so it is taken from a call. */
struct clock_event_device *find_timer(void);
struct clock_event_device *find_timer(void)
{
	struct kprobe probe = { .symbol_name = "lapic_next_event", .pre_handler = see_timer };
	int tries;

	if (timer_seen || register_kprobe(&probe))
		return timer_seen;
	for (tries = 0; tries < 100 && !READ_ONCE(timer_seen); tries++)
		usleep_range(1000, 2000);
	unregister_kprobe(&probe);
	return timer_seen;
}

/*
 * The word `tsc_early_khz` makes all clocks of the kernel go slower, so the processor does more in a second of theirs. The
 * kernel has measured the processor's timer by another clock, which goes as before: timers would end too soon.
 */
static int match_timer(void)
{
	u64 measured = (TIMER_HZ << TIMER_SHIFT) / NSEC_PER_SEC, wanted;
	unsigned long flags;

	if (!differs(tsc_khz, COUNT_KHZ))
		return 0;
	wanted = div_u64(measured * tsc_khz, COUNT_KHZ);
	find_timer();
	if (!timer_seen || timer_seen->shift != TIMER_SHIFT || wanted > UINT_MAX ||
	    (differs(timer_seen->mult, measured) && differs(timer_seen->mult, wanted))) {
		pr_err("simdisk: the processor's timer is not as expected\n");
		return -ENODEV;
	}
	local_irq_save(flags);
	timer_seen->mult = wanted;
	timer_seen->min_delta_ns = clockevent_delta2ns(timer_seen->min_delta_ticks, timer_seen);
	timer_seen->max_delta_ns = clockevent_delta2ns(timer_seen->max_delta_ticks, timer_seen);
	local_irq_restore(flags);
	return 0;
}

static int __init simdisk_init(void)
{
	int error = match_timer();

	BUILD_BUG_ON(sizeof(struct header) > PAGE_SIZE);
	if (error)
		return error;
	waits_begin();
	programs_begin();
	major = register_blkdev(0, "simdisk");
	return major < 0 ? major : 0;
}
module_init(simdisk_init);

MODULE_DESCRIPTION("simulated disks of pickfs");
MODULE_LICENSE("Dual MIT/GPL");
