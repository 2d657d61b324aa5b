/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Where flash has put what was written: a map of units of 4 KiB, streams into open blocks, greedy garbage collection, TRIM. It has no
 * clock: what it makes the dies do is counted for each of them, and model.c turns that into time. Integers only, no allocation, no header.
 *
 * A block here has one erase block of every die and is written and erased as a whole, its programs on the dies in turn (a "superblock").
 */
#ifndef PICKFS_FTL_H
#define PICKFS_FTL_H

#include "model.h"

#define FTL_UNIT_SECTORS 8
#define FTL_MOST_UNITS (1 << 23)
#define FTL_MOST_SLOTS (1 << 25)
/* Of one program. */
#define FTL_MOST_ENTRIES 1024
/* Blocks that are neither full nor to be had: two that are written, one that is kept free, and as many more as let a victim always have
 * something that is no longer valid. */
#define FTL_LEAST_SPARE 6
#define FTL_NONE (~0U)

struct ftl_block {
	unsigned int valid, next, previous, closed;
};

/* A block that is written, and the next place in it. */
struct ftl_stream {
	unsigned int block, at;
};

/* What garbage collection made a die do. */
struct ftl_work {
	unsigned int reads, programs, erases, units;
};

struct ftl {
	unsigned int units, blocks, per_program, per_block, dies, page_units;
	unsigned int mapped, free, free_count, least;
	struct ftl_stream host, copies;
	/* Slots of the host's programs, units that were copied, blocks that were erased. */
	sim_word written, copied, erased;
	struct ftl_work work[SIM_MOST_DIES];
	unsigned int *map; /* by unit: its slot + 1; 0: none */
	unsigned int *held; /* by slot: its unit + 1; 0: nothing valid */
	unsigned int *queues; /* by valid units: the first of the full blocks that have so many */
	struct ftl_block *block;
};

/* Of its tables, for parameters that are in range. */
sim_word ftl_bytes(const sim_word *p);
/* The number + 1 of the first parameter that is out of range; 0. */
int ftl_wrong(const sim_word *p);
void ftl_start(struct ftl *f, const sim_word *p, void *tables);
/* Writes one program of the host's: units, FTL_NONE where there is padding, and padding behind them. Its die. */
unsigned int ftl_program(struct ftl *f, const unsigned int *units, unsigned int count);
void ftl_trim(struct ftl *f, unsigned int unit);
unsigned int ftl_die(const struct ftl *f, unsigned int slot);
/* 0, or the number of a rule that its tables break. */
int ftl_broken(const struct ftl *f);

#endif
