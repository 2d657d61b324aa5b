// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * ftl.h says what this is. Greedy: the full block with the fewest valid units is collected, when the host needs a block and one is
 * free (Bux and Iliadis, "Performance of greedy garbage collection in flash-based solid-state drives", Performance Evaluation 67(11), 2010).
 */
#include "ftl.h"

sim_word ftl_bytes(const sim_word *p)
{
	sim_word per_program = p[SIM_PAGE_SECTORS] * p[SIM_PROGRAM_PAGES] / FTL_UNIT_SECTORS;
	sim_word per_block = per_program * p[SIM_DIES] * p[SIM_BLOCK_PROGRAMS];

	return p[SIM_BLOCKS] * sizeof(struct ftl_block) +
	       (p[SIM_UNITS] + p[SIM_BLOCKS] * per_block + per_block + 1) * sizeof(unsigned int);
}

int ftl_wrong(const sim_word *p)
{
	sim_word per_program = p[SIM_PAGE_SECTORS] * p[SIM_PROGRAM_PAGES] / FTL_UNIT_SECTORS, per_block;

	if (p[SIM_UNIT_SECTORS])
		return SIM_UNIT_SECTORS + 1;
	if (p[SIM_PAGE_SECTORS] % FTL_UNIT_SECTORS)
		return SIM_PAGE_SECTORS + 1;
	if (per_program > FTL_MOST_ENTRIES)
		return SIM_PROGRAM_PAGES + 1;
	if (p[SIM_UNITS] > FTL_MOST_UNITS)
		return SIM_UNITS + 1;
	if (p[SIM_FILLED] > p[SIM_UNITS])
		return SIM_FILLED + 1;
	if (!p[SIM_BLOCK_PROGRAMS] || p[SIM_BLOCK_PROGRAMS] > 1 << 16)
		return SIM_BLOCK_PROGRAMS + 1;
	per_block = per_program * p[SIM_DIES] * p[SIM_BLOCK_PROGRAMS];
	if (p[SIM_BLOCKS] > FTL_MOST_SLOTS / per_block || p[SIM_BLOCKS] * per_block < p[SIM_UNITS] + FTL_LEAST_SPARE * per_block)
		return SIM_BLOCKS + 1;
	return 0;
}

unsigned int ftl_die(const struct ftl *f, unsigned int slot)
{
	return slot % f->per_block / f->per_program % f->dies;
}

/* ---- full blocks, by what is valid in them ---- */

static void enqueue(struct ftl *f, unsigned int number)
{
	struct ftl_block *b = &f->block[number];
	unsigned int first = f->queues[b->valid];

	b->next = first;
	b->previous = FTL_NONE;
	if (first != FTL_NONE)
		f->block[first].previous = number;
	f->queues[b->valid] = number;
	if (b->valid < f->least)
		f->least = b->valid;
}

static void dequeue(struct ftl *f, unsigned int number)
{
	struct ftl_block *b = &f->block[number];

	if (b->previous == FTL_NONE)
		f->queues[b->valid] = b->next;
	else
		f->block[b->previous].next = b->next;
	if (b->next != FTL_NONE)
		f->block[b->next].previous = b->previous;
}

static unsigned int victim(struct ftl *f)
{
	while (f->queues[f->least] == FTL_NONE)
		f->least++;
	return f->queues[f->least];
}

static unsigned int take_free(struct ftl *f)
{
	unsigned int number = f->free;

	f->free = f->block[number].next;
	f->free_count--;
	return number;
}

static void give_back(struct ftl *f, unsigned int number)
{
	f->block[number].next = f->free;
	f->free = number;
	f->free_count++;
}

/* ---- units ---- */

void ftl_trim(struct ftl *f, unsigned int unit)
{
	unsigned int slot = f->map[unit], number;

	if (!slot)
		return;
	number = (slot - 1) / f->per_block;
	if (f->block[number].closed)
		dequeue(f, number);
	f->block[number].valid--;
	if (f->block[number].closed)
		enqueue(f, number);
	f->held[slot - 1] = 0;
	f->map[unit] = 0;
	f->mapped--;
}

static int is_full(const struct ftl *f, const struct ftl_stream *stream)
{
	return stream->block == FTL_NONE || stream->at == f->per_block;
}

static void open_next(struct ftl *f, struct ftl_stream *stream)
{
	stream->block = take_free(f);
	stream->at = 0;
}

static void close_full(struct ftl *f, struct ftl_stream *stream)
{
	if (stream->block == FTL_NONE)
		return;
	f->block[stream->block].closed = 1;
	enqueue(f, stream->block);
	stream->block = FTL_NONE;
}

/* The stream's block has room. What was valid of the unit no longer is. */
static void put(struct ftl *f, struct ftl_stream *stream, unsigned int unit)
{
	unsigned int slot = stream->block * f->per_block + stream->at++;

	if (unit == FTL_NONE)
		return;
	ftl_trim(f, unit);
	f->map[unit] = slot + 1;
	f->held[slot] = unit + 1;
	f->block[stream->block].valid++;
	f->mapped++;
}

/* A copied unit waits in the controller until there are enough for a program. */
static void copy(struct ftl *f, unsigned int unit)
{
	if (is_full(f, &f->copies)) {
		close_full(f, &f->copies);
		open_next(f, &f->copies);
	}
	put(f, &f->copies, unit);
	f->copied++;
	if (f->copies.at % f->per_program == 0)
		f->work[ftl_die(f, f->copies.at - 1)].programs++;
}

/* Reads what is valid in a block, as many pages at once as are programmed at once; copies it, and erases the block. */
static void collect(struct ftl *f)
{
	unsigned int number = victim(f), slot = number * f->per_block, program, i, die;

	dequeue(f, number);
	f->block[number].closed = 0;
	for (program = 0; program < f->per_block / f->per_program; program++) {
		unsigned int before = f->block[number].valid;

		for (i = 0; i < f->per_program; i++, slot++)
			if (f->held[slot])
				copy(f, f->held[slot] - 1);
		die = program % f->dies;
		f->work[die].reads += f->block[number].valid != before;
		f->work[die].units += before - f->block[number].valid;
	}
	for (die = 0; die < f->dies; die++)
		f->work[die].erases++;
	f->erased++;
	give_back(f, number);
}

static void open_for_host(struct ftl *f)
{
	if (!is_full(f, &f->host))
		return;
	close_full(f, &f->host);
	while (f->free_count < 2)
		collect(f);
	open_next(f, &f->host);
}

unsigned int ftl_program(struct ftl *f, const unsigned int *units, unsigned int count)
{
	unsigned int i, die;

	open_for_host(f);
	die = ftl_die(f, f->host.block * f->per_block + f->host.at);
	for (i = 0; i < f->per_program; i++)
		put(f, &f->host, i < count ? units[i] : FTL_NONE);
	f->written += f->per_program;
	return die;
}

/* ---- a drive that was used ---- */

/* So many units in a row are in use or not. */
#define RUN 256

/* `filled` of all units, spread evenly. */
static int was_used(const struct ftl *f, sim_word filled, sim_word unit)
{
	sim_word run = unit / RUN, runs = (f->units + RUN - 1) / RUN, share = (filled * runs + f->units - 1) / f->units;

	return (run + 1) * share / runs != run * share / runs;
}

static void use(struct ftl *f, sim_word filled, sim_word unit)
{
	if (!was_used(f, filled, unit))
		return;
	open_for_host(f);
	put(f, &f->host, (unsigned int)unit);
}

/* All that is in use was written in order, and then each unit twice more on average, in random order: by then greedy collection is
 * steady. That was before the clock starts. Random numbers: xorshift (Marsaglia, "Xorshift RNGs", 2003). */
static void age(struct ftl *f, sim_word filled, sim_word random)
{
	sim_word unit, step;
	unsigned int die;

	for (unit = 0; unit < f->units; unit++)
		use(f, filled, unit);
	for (step = 0; step < 2 * (sim_word)f->units; step++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		use(f, filled, (random >> 11) % f->units);
	}
	while (f->host.at % f->per_program)
		put(f, &f->host, FTL_NONE);
	f->copied = f->erased = 0;
	for (die = 0; die < f->dies; die++)
		f->work[die].reads = f->work[die].programs = f->work[die].erases = f->work[die].units = 0;
}

void ftl_start(struct ftl *f, const sim_word *p, void *tables)
{
	unsigned int number;

	f->units = (unsigned int)p[SIM_UNITS];
	f->blocks = (unsigned int)p[SIM_BLOCKS];
	f->dies = (unsigned int)p[SIM_DIES];
	f->page_units = (unsigned int)p[SIM_PAGE_SECTORS] / FTL_UNIT_SECTORS;
	f->per_program = f->page_units * (unsigned int)p[SIM_PROGRAM_PAGES];
	f->per_block = f->per_program * f->dies * (unsigned int)p[SIM_BLOCK_PROGRAMS];
	f->block = tables;
	f->map = (unsigned int *)(f->block + f->blocks);
	f->held = f->map + f->units;
	f->queues = f->held + (sim_word)f->blocks * f->per_block;
	for (number = 0; number <= f->per_block; number++)
		f->queues[number] = FTL_NONE;
	f->host.block = f->copies.block = FTL_NONE;
	for (number = f->blocks; number--;)
		give_back(f, number);
	f->least = f->per_block;
	/* Any but 0. */
	if (p[SIM_FILLED])
		age(f, p[SIM_FILLED], p[SIM_START] + 1);
}

/* ---- what must hold ---- */

int ftl_broken(const struct ftl *f)
{
	unsigned int unit, slot, number, valid = 0, queued = 0, least = FTL_NONE;

	for (unit = 0; unit < f->units; unit++)
		if (f->map[unit] && f->held[f->map[unit] - 1] != unit + 1)
			return 1;
	for (number = 0; number < f->blocks; number++) {
		unsigned int found = 0;

		for (slot = number * f->per_block; slot < (number + 1) * f->per_block; slot++) {
			if (f->held[slot] && f->map[f->held[slot] - 1] != slot + 1)
				return 2;
			found += f->held[slot] != 0;
		}
		if (found != f->block[number].valid)
			return 3;
		if (f->block[number].closed && found < least)
			least = found;
		valid += found;
		queued += f->block[number].closed;
	}
	if (valid != f->mapped)
		return 4;
	if (queued + f->free_count + (f->host.block != FTL_NONE) + (f->copies.block != FTL_NONE) != f->blocks)
		return 5;
	for (number = f->free, slot = 0; slot < f->free_count; number = f->block[number].next, slot++)
		if (f->block[number].valid || f->block[number].closed)
			return 6;
	return queued && f->least > least ? 7 : 0;
}
