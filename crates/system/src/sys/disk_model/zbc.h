/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Zones of a host-managed disk: conventional ones at the start, then zones that are written in order alone (INCITS 536, Zoned Block
 * Commands). It says which commands the disk refuses and where each zone's write pointer is; model.c says how long they take.
 * Integers only, no clock, no allocation, no header.
 */
#ifndef PICKFS_ZBC_H
#define PICKFS_ZBC_H

#include "model.h"

/* Writes begin and end with a physical sector of 4 KiB. */
#define ZBC_PHYSICAL_SECTORS 8
#define ZBC_MOST_ZONES (1 << 20)

/* As the standard numbers them. */
enum zbc_condition {
	ZBC_CONVENTIONAL = 0,
	ZBC_EMPTY = 1,
	ZBC_IMPLICITLY_OPEN = 2,
	ZBC_EXPLICITLY_OPEN = 3,
	ZBC_CLOSED = 4,
	ZBC_FULL = 14
};

enum zbc_command { ZBC_WRITE, ZBC_APPEND, ZBC_RESET, ZBC_RESET_ALL, ZBC_OPEN, ZBC_CLOSE, ZBC_FINISH };

/* The write pointer, in sectors from the zone's start, and the sectors before it that hold data: FINISH moves the pointer alone. */
struct zbc_zone {
	unsigned int pointer, data, condition;
};

struct zbc {
	sim_word size; /* of a zone */
	unsigned int zones, conventional;
	struct zbc_zone *zone;
};

/* Of its table, for parameters that are in range. */
sim_word zbc_bytes(const sim_word *p);
/* The number + 1 of the first parameter that is out of range; 0. */
int zbc_wrong(const sim_word *p);
/* All zones are empty: so is the disk, which comes and goes with its machine. */
void zbc_start(struct zbc *z, const sim_word *p, void *table);
/* 0, or -1 where the disk refuses the command. `first` is a sector of the device; APPEND sets it to where the data go. */
int zbc_do(struct zbc *z, int command, sim_word *first, sim_word sectors);
/* Sectors from `first` on, at most so many, that hold data; those behind them in the zone read as zeros. */
sim_word zbc_readable(const struct zbc *z, sim_word first, sim_word sectors);
/* Of the disk: its zones, or 0 where it has none. */
struct zbc *sim_zbc(void *disk);

#endif
