/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * When a disk answers: a hard disk, flash, a volume of a cloud, or none. Integers only, no clock, no allocation, no header: the same file is
 * part of the guest's kernel module and of pickfs, whose tests drive it on a virtual clock.
 *
 * Times are nanoseconds, places are sectors of 512 bytes. A caller submits requests, asks for the next moment at which
 * anything happens, and calls sim_wake at that moment or later: what happens meanwhile gets its own times, so a late
 * timer does not shift what comes after.
 */
#ifndef PICKFS_MODEL_H
#define PICKFS_MODEL_H

typedef unsigned long long sim_word;

#define SIM_NEVER (~0ULL)

enum sim_operation { SIM_READ, SIM_WRITE, SIM_FLUSH, SIM_TRIM };

/* The flat table of integers that a model is made of. The order is that of NAMES in parameters.rs. */
enum sim_parameter {
	SIM_KIND, /* 0: answers at once; 1: hard disk; 2: flash; 3: cloud volume */
	SIM_SECTORS, /* of the modelled disk */
	SIM_START, /* where on it the first sector of the device lies */
	SIM_DEPTH, /* commands at a time */
	SIM_COMMAND_NS, /* controller, each command */
	SIM_LINK_PS, /* host link, each sector */
	SIM_VOLATILE, /* a power cut loses what was not flushed */
	SIM_ROTATIONAL,
	SIM_FLUSH_NS, /* FLUSH with nothing to write, where there is no table of such times */
	SIM_TRIM_NS,
	/* hard disk */
	SIM_TURN_NS,
	SIM_PHASE_NS, /* angle of the platter at time 0 */
	SIM_HEADS,
	SIM_HEAD_SWITCH_NS,
	SIM_HEAD_SKEW_NS, /* between the first sectors of two tracks of a cylinder */
	SIM_CYLINDER_SKEW_NS,
	SIM_WRITE_SETTLE_NS, /* after a seek or head switch, before writing */
	SIM_AGE_LIMIT_NS, /* a request that waits longer is next */
	SIM_WRITE_CACHE, /* 1: writes are answered from the cache */
	SIM_CACHE_SECTORS,
	SIM_CACHE_SLOTS, /* separate extents in the cache */
	SIM_DESTAGE_WINDOW, /* oldest extents among which the arm chooses */
	SIM_HIGH_WATER, /* cached sectors from which on writing takes turns with reading */
	SIM_IDLE_NS, /* without a command, before the cache is written */
	SIM_SEGMENTS, /* of the read cache */
	SIM_SEGMENT_SECTORS,
	SIM_AHEAD_SECTORS, /* read behind a read while nothing else is to do */
	/* flash */
	SIM_DIES,
	SIM_CHANNELS,
	SIM_PAGE_SECTORS,
	SIM_READ_NS,
	SIM_PROGRAM_NS,
	SIM_PROGRAM_PAGES, /* programmed at once on a die */
	SIM_CHANNEL_PS, /* each sector */
	SIM_BUFFER_SECTORS,
	SIM_PROTECTED, /* capacitors: FLUSH has nothing to wait for */
	SIM_ERASE_NS,
	SIM_ERASE_PROGRAMS, /* programs of a die between two erases */
	SIM_QUEUED_FLUSH, /* 0: FLUSH waits for all commands and holds up later ones */
	SIM_SUSPEND_NS, /* a read waits at most so long for a program */
	SIM_SLC_SECTORS,
	SIM_SLC_PROGRAM_NS,
	SIM_SLC_REFILL_NS, /* idle time that frees one sector of it */
	SIM_FRAMES_NS, /* host link, each command: what is no data */
	SIM_UNIT_SECTORS, /* of cards: erased as a whole, written from its start on; 0: pages go anywhere */
	SIM_OPEN_UNITS, /* units that are written at a time */
	/* what flash has where; without units the device is a small part of an unused drive, and pages go anywhere */
	SIM_UNITS, /* of 4 KiB, of the device */
	SIM_BLOCKS, /* each as many programs of all dies, of the device and its share of the spare */
	SIM_BLOCK_PROGRAMS, /* of each die in a block */
	SIM_FILLED, /* units that hold data at the start, after use */
	/* shingled hard disk */
	SIM_BAND_SECTORS, /* tracks that overlap, written as a whole; 0: none */
	SIM_LOG_SECTORS, /* room for writes that wait for their bands */
	SIM_STREAM_SECTORS, /* writes of this size go to their place at once */
	SIM_CLEAN_IDLE_NS, /* without a command, before bands are written */
	/* host-managed hard disk, of the device; without zones it is written anywhere */
	SIM_ZBC_SECTORS, /* of a zone */
	SIM_ZBC_ZONES,
	SIM_ZBC_CONVENTIONAL, /* of them, at the start, written anywhere */
	/* cloud volume */
	SIM_BASE_NS, /* between two operations, for long */
	SIM_PEAK_NS, /* between two operations, as long as there are credits */
	SIM_CREDITS, /* operations that may be done beyond the base */
	SIM_OPERATION_SECTORS, /* of one; what is larger counts as several */
	/* tables */
	SIM_SEEKS, /* pairs: cylinders, ns */
	SIM_ZONES, /* triples: first sector, first cylinder, sectors a track */
	SIM_FLUSHES, /* pairs: millionths of all flushes, and the longest of them, ns; evenly between two */
	SIM_TABLES = 64
};

#define SIM_MOST_SEEKS 128
#define SIM_MOST_ZONES 32
#define SIM_MOST_FLUSHES 16
#define SIM_SEEK_AT SIM_TABLES
#define SIM_ZONE_AT (SIM_SEEK_AT + 2 * SIM_MOST_SEEKS)
#define SIM_FLUSH_AT (SIM_ZONE_AT + 3 * SIM_MOST_ZONES)
#define SIM_WORDS (SIM_FLUSH_AT + 2 * SIM_MOST_FLUSHES)

/* Largest tag + 1, and bounds of what a parameter may ask for. */
#define SIM_TAGS 256
#define SIM_MOST_SLOTS 1024
#define SIM_MOST_SEGMENTS 64
#define SIM_MOST_DIES 256
#define SIM_MOST_CHANNELS 64
#define SIM_MOST_UNITS 64
#define SIM_MOST_BANDS (1 << 20)
#define SIM_RING 8192
/* Stretches of time in which dies are busy, of all dies: 32 dies have 64 each. */
#define SIM_SPANS 2048
/* What came to the medium and was not asked for yet; more is not kept. */
#define SIM_LANDINGS 4096

/* Counted since the start; then sectors in the write cache, and from when until when the arm is busy (0 if it rests). */
enum sim_count {
	SIM_SEEKED,
	SIM_READ_HITS,
	SIM_DESTAGED,
	SIM_FLUSHED,
	SIM_PROGRAMS,
	SIM_ERASES,
	SIM_MERGES, /* units of a card that were copied, or bands that were written anew */
	SIM_COUNTS,
	SIM_CACHED = SIM_COUNTS,
	SIM_ARM_FROM,
	SIM_ARM_UNTIL,
	/* Landings that were not kept. */
	SIM_MISSED,
	/* Of flash: units that are valid; slots that the host's programs took; units that garbage collection copied; blocks that it erased. */
	SIM_VALID,
	SIM_WRITTEN,
	SIM_COPIED,
	SIM_COLLECTED
};

/* What the time of a request is made of, from when it comes to its end. Each has a line with its comment: build.rs makes Rust's list of them. */
enum sim_part {
	SIM_PART_QUEUE, /* waits behind other requests, or for what the disk does on behalf of others */
	SIM_PART_RATE, /* a volume's limit of operations */
	SIM_PART_CONTROLLER, /* each command; TRIM */
	SIM_PART_SEEK, /* the arm moves, changes heads and settles */
	SIM_PART_TURN, /* the platter turns to the first sector */
	SIM_PART_TRANSFER, /* between medium and controller: the sectors pass by the head; the channel of a die */
	SIM_PART_DIE, /* reads, programs, and erases that are not of garbage collection */
	SIM_PART_COLLECTION, /* garbage collection; copying of a card's units; cleaning of bands */
	SIM_PART_LINK, /* to the host */
	SIM_PART_FLUSH, /* what FLUSH and FUA take besides what they write */
	SIM_PARTS
};

/* Sectors that are on the medium from a moment on. */
struct sim_landing {
	sim_word first; /* of the device; SIM_NEVER: the next ones in the order in which they were written */
	sim_word sectors;
	sim_word begun; /* what was in the cache by then */
	sim_word when;
};

/* Bytes of memory that a disk needs, zeroed and aligned to 8, where it is to stay. */
sim_word sim_bytes(const sim_word *words);
/* 0, or the number + 1 of the first parameter that is out of range. */
int sim_start(void *disk, const sim_word *words);
/* Operation, first sector, sectors. `forced` is FUA. A tag is in use until it is done. Time never goes back. */
void sim_submit(void *disk, unsigned int tag, int operation, int forced, sim_word first, sim_word sectors, sim_word now);
/* When something happens next; SIM_NEVER while nothing is under way. */
sim_word sim_next(void *disk);
/* Lets everything up to now happen. */
void sim_wake(void *disk, sim_word now);
/* Takes one request that was done by the time of the last wake: 1, its tag and when it was done; else 0. */
int sim_done(void *disk, unsigned int *tag, sim_word *when);
/* Nanoseconds of each part of the request that had this tag last and was taken; they sum to its time. */
const sim_word *sim_parts(const void *disk, unsigned int tag);
/* Takes what came to the medium, also what is known to come: 1, else 0. */
int sim_landed(void *disk, struct sim_landing *landing);
sim_word sim_count(const void *disk, int which);
/* 0, or the number of a rule that its tables break; for tests. */
int sim_broken(const void *disk);
/* Time of the arm from a sector to a cylinder so many away, without rotation. */
sim_word sim_seek_ns(const void *disk, sim_word cylinders);

#endif
