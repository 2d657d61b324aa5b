// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * zbc.h says what this is. Real disks limit how many zones can be open at a time (often 128). There is no such limit here: the
 * file systems that write to such disks keep fewer open.
 */
#include "zbc.h"

sim_word zbc_bytes(const sim_word *p)
{
	return p[SIM_ZBC_ZONES] * sizeof(struct zbc_zone);
}

int zbc_wrong(const sim_word *p)
{
	sim_word size = p[SIM_ZBC_SECTORS];

	/* The kernel takes powers of two alone. */
	if (size < 1 << 11 || size > 1U << 31 || size & (size - 1))
		return SIM_ZBC_SECTORS + 1;
	if (p[SIM_ZBC_ZONES] > ZBC_MOST_ZONES)
		return SIM_ZBC_ZONES + 1;
	return p[SIM_ZBC_CONVENTIONAL] >= p[SIM_ZBC_ZONES] ? SIM_ZBC_CONVENTIONAL + 1 : 0;
}

void zbc_start(struct zbc *z, const sim_word *p, void *table)
{
	unsigned int number;

	z->size = p[SIM_ZBC_SECTORS];
	z->zones = (unsigned int)p[SIM_ZBC_ZONES];
	z->conventional = (unsigned int)p[SIM_ZBC_CONVENTIONAL];
	z->zone = table;
	for (number = 0; number < z->zones; number++)
		z->zone[number].condition = number < z->conventional ? ZBC_CONVENTIONAL : ZBC_EMPTY;
}

static void reset(struct zbc_zone *zone)
{
	zone->pointer = zone->data = 0;
	zone->condition = ZBC_EMPTY;
}

static int write(struct zbc *z, struct zbc_zone *zone, sim_word offset, sim_word sectors)
{
	if (zone->condition == ZBC_FULL || offset != zone->pointer || offset + sectors > z->size)
		return -1;
	if ((offset | sectors) % ZBC_PHYSICAL_SECTORS)
		return -1;
	zone->pointer = zone->data = (unsigned int)(offset + sectors);
	if (zone->pointer == z->size)
		zone->condition = ZBC_FULL;
	else if (zone->condition != ZBC_EXPLICITLY_OPEN)
		zone->condition = ZBC_IMPLICITLY_OPEN;
	return 0;
}

static int manage(struct zbc *z, struct zbc_zone *zone, int command)
{
	int is_open = zone->condition == ZBC_IMPLICITLY_OPEN || zone->condition == ZBC_EXPLICITLY_OPEN;

	if (command == ZBC_RESET) {
		reset(zone);
	} else if (command == ZBC_FINISH) {
		zone->pointer = (unsigned int)z->size;
		zone->condition = ZBC_FULL;
	} else if (command == ZBC_OPEN && zone->condition != ZBC_FULL) {
		zone->condition = ZBC_EXPLICITLY_OPEN;
	} else if (command == ZBC_CLOSE && is_open) {
		zone->condition = zone->pointer ? ZBC_CLOSED : ZBC_EMPTY;
	}
	return 0;
}

int zbc_do(struct zbc *z, int command, sim_word *first, sim_word sectors)
{
	sim_word number = *first / z->size, offset = *first % z->size;
	struct zbc_zone *zone;

	if (command == ZBC_RESET_ALL) {
		for (number = z->conventional; number < z->zones; number++)
			reset(&z->zone[number]);
		return 0;
	}
	if (number >= z->zones)
		return -1;
	zone = &z->zone[number];
	if (zone->condition == ZBC_CONVENTIONAL)
		return command == ZBC_WRITE && *first + sectors <= z->conventional * z->size ? 0 : -1;
	if (command == ZBC_WRITE)
		return write(z, zone, offset, sectors);
	if (offset)
		return -1;
	if (command != ZBC_APPEND)
		return manage(z, zone, command);
	*first += zone->pointer;
	return write(z, zone, zone->pointer, sectors);
}

sim_word zbc_readable(const struct zbc *z, sim_word first, sim_word sectors)
{
	const struct zbc_zone *zone = &z->zone[first / z->size];
	sim_word offset = first % z->size, held = zone->data > offset ? zone->data - offset : 0;

	if (zone->condition == ZBC_CONVENTIONAL)
		return sectors;
	return held < sectors ? held : sectors;
}
