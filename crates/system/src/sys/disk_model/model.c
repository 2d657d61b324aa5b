// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The disk models of pickfs; model.h says how they are used.
 *
 * Hard disk: Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer 27(3), 1994, has the parts (seek
 * curve, rotation from the clock, skew, zones, read-ahead, immediate report of writes); shortest positioning time first
 * with an age limit is of Jacobson and Wilkes, HPL-CSP-91-7, 1991. Flash: dies, channels and a link are time lines, each
 * free from some moment on. Shingled: bands and a log, as Aghayev and Desnoyers found them ("Skylight", FAST 2015). Cards: open
 * units, as Bergmann found them ("Optimizing Linux with cheap flash drives", LWN 2011). Cloud volume: two token buckets.
 */
#include "ftl.h"
#include "zbc.h"

struct request {
	sim_word first, sectors, order, ready, came, parts[SIM_PARTS];
	unsigned char operation, forced, state;
};

enum { FREE, WAITS, READY, ENDING };

struct extent {
	sim_word first, sectors;
};

/* What the arm does until `until`. */
enum { RESTS, SERVES, DESTAGES, FLUSHES, CLEANS };

struct zone {
	sim_word first, cylinder, track;
};

/* A die programs, erases or collects garbage. */
struct span {
	sim_word begins, ends;
};

/* How the time of a read divides until a die or a channel is through with it; the rest is transfer. */
struct path {
	sim_word order, queue, collection, die;
};

struct disk {
	sim_word p[SIM_WORDS];
	sim_word now, order, counts[SIM_COUNTS], draws;
	struct request requests[SIM_TAGS];
	/* Those in use, in the order of their arrival. */
	unsigned int queue[SIM_TAGS], queued;
	/* Ends to come: a heap by time, then order. */
	struct {
		sim_word when, order;
		unsigned int tag;
	} ends[SIM_TAGS];
	unsigned int ending;
	/* hard disk */
	int arm, wrote_last;
	unsigned int serving, slot;
	sim_word begun, until, cylinder, head, last_command;
	/* What the arm's time until then is made of. */
	sim_word sought, turned, passed;
	struct extent dirty[SIM_MOST_SLOTS];
	unsigned int slots;
	sim_word cached;
	struct extent segments[SIM_MOST_SEGMENTS];
	sim_word used[SIM_MOST_SEGMENTS];
	/* Reading ahead: into which segment, from when and where on, up to where. */
	int ahead;
	unsigned int ahead_segment;
	sim_word ahead_since, ahead_from, ahead_limit;
	/* flash */
	sim_word read_free[SIM_MOST_DIES], program_free[SIM_MOST_DIES], programs[SIM_MOST_DIES];
	/* What dies have to do, the next first; each die has an equal share of the places. */
	struct span spans[SIM_SPANS];
	unsigned int span_count[SIM_MOST_DIES];
	/* Channels move what was read before what is to be programmed. */
	sim_word channel_reads[SIM_MOST_CHANNELS], channel_free[SIM_MOST_CHANNELS], in_free, out_free, barrier, latest;
	sim_word ring_when[SIM_RING], ring_sectors[SIM_RING];
	/* When the program begins that ends last so far, and for how much garbage collection it waits. */
	sim_word ring_begins[SIM_RING], ring_collects[SIM_RING];
	/* Garbage collection in what a die has to do. */
	sim_word collects[SIM_MOST_DIES];
	struct path die_path[SIM_MOST_DIES], channel_path[SIM_MOST_CHANNELS];
	unsigned int ring_first, ring_count, next_die;
	/* Sectors in the buffer, those that the next program has, and without what was added to make whole units. */
	sim_word buffered, open_sectors, open_own, slc_used, last_program;
	struct ftl ftl;
	/* What waits for the next program. */
	unsigned int waiting[FTL_MOST_ENTRIES], waiting_count;
	/* Open units of a card: which, up to where it is written, and when it was used. */
	struct {
		sim_word unit, at, used;
	} units[SIM_MOST_UNITS];
	/* shingled: bands that the log has writes of, a bit each */
	sim_word logged, waiting_bands, next_band, bands[SIM_MOST_BANDS / 64];
	struct zbc zbc;
	/* cloud volume: when the next operation would be due at the rates of base and peak */
	sim_word base_due, peak_due;
	struct sim_landing landings[SIM_LANDINGS];
	unsigned int landed_first, landed_count;
	sim_word missed;
};

static sim_word larger(sim_word a, sim_word b)
{
	return a > b ? a : b;
}

static sim_word smaller(sim_word a, sim_word b)
{
	return a < b ? a : b;
}

/* The n-th flush takes the same in each run on this place of the disk, which is the round's. Drawn by splitmix64 (Steele, Lea and Flood,
 * OOPSLA 2014). */
static sim_word flush_ns(struct disk *d)
{
	const sim_word *to = d->p + SIM_FLUSH_AT + 2;
	sim_word draw = d->p[SIM_START] + ++d->draws * 0x9E3779B97F4A7C15ULL;

	if (!d->p[SIM_FLUSHES])
		return d->p[SIM_FLUSH_NS];
	draw = (draw ^ draw >> 30) * 0xBF58476D1CE4E5B9ULL;
	draw = (draw ^ draw >> 27) * 0x94D049BB133111EBULL;
	draw = (draw ^ draw >> 31) % 1000000;
	while (to[0] <= draw)
		to += 2;
	return to[-1] + (to[1] - to[-1]) * (draw - to[-2]) / (to[0] - to[-2]);
}

sim_word sim_count(const void *disk, int which)
{
	const struct disk *d = disk;

	if (which == SIM_VALID)
		return d->ftl.mapped;
	if (which == SIM_WRITTEN)
		return d->ftl.written;
	if (which == SIM_COPIED)
		return d->ftl.copied;
	if (which == SIM_COLLECTED)
		return d->ftl.erased;
	if (which == SIM_ARM_FROM || which == SIM_ARM_UNTIL)
		return d->arm == RESTS ? 0 : which == SIM_ARM_FROM ? d->begun : d->until;
	if (which == SIM_MISSED)
		return d->missed;
	return which == SIM_CACHED ? (d->p[SIM_KIND] == 1 ? d->cached : d->buffered) : d->counts[which];
}

/* ---- what is on the medium ---- */

static void land(struct disk *d, sim_word first, sim_word sectors, sim_word begun, sim_word when)
{
	struct sim_landing *at = &d->landings[(d->landed_first + d->landed_count) % SIM_LANDINGS];

	if (d->landed_count == SIM_LANDINGS) {
		d->missed++;
		return;
	}
	at->first = first == SIM_NEVER ? first : first - d->p[SIM_START];
	at->sectors = sectors;
	at->begun = begun;
	at->when = when;
	d->landed_count++;
}

int sim_landed(void *disk, struct sim_landing *landing)
{
	struct disk *d = disk;

	if (!d->landed_count)
		return 0;
	*landing = d->landings[d->landed_first];
	d->landed_first = (d->landed_first + 1) % SIM_LANDINGS;
	d->landed_count--;
	return 1;
}

/* ---- ends of requests ---- */

static int earlier(const struct disk *d, unsigned int a, unsigned int b)
{
	if (d->ends[a].when != d->ends[b].when)
		return d->ends[a].when < d->ends[b].when;
	return d->ends[a].order < d->ends[b].order;
}

static void swap(struct disk *d, unsigned int a, unsigned int b)
{
	sim_word when = d->ends[a].when, order = d->ends[a].order;
	unsigned int tag = d->ends[a].tag;

	d->ends[a] = d->ends[b];
	d->ends[b].when = when;
	d->ends[b].order = order;
	d->ends[b].tag = tag;
}

static void leave_queue(struct disk *d, unsigned int tag)
{
	unsigned int i, kept = 0;

	for (i = 0; i < d->queued; i++)
		if (d->queue[i] != tag)
			d->queue[kept++] = d->queue[i];
	d->queued = kept;
}

/* What a hard disk's request has not spent on itself, nor for what the arm did for it, is the command and the queue. */
static void divide_rest(const struct disk *d, struct request *r, sim_word when)
{
	sim_word rest = when - r->came, command;
	unsigned int part;

	for (part = 0; part < SIM_PARTS; part++)
		rest -= r->parts[part];
	command = smaller(rest, d->p[SIM_COMMAND_NS]);
	r->parts[SIM_PART_CONTROLLER] += command;
	r->parts[SIM_PART_QUEUE] += rest - command;
}

const sim_word *sim_parts(const void *disk, unsigned int tag)
{
	const struct disk *d = disk;

	return d->requests[tag].parts;
}

static void end(struct disk *d, unsigned int tag, sim_word when)
{
	unsigned int at = d->ending++;

	if (d->p[SIM_KIND] == 1) {
		divide_rest(d, &d->requests[tag], when);
		d->last_command = larger(d->last_command, when);
	}
	leave_queue(d, tag);
	d->requests[tag].state = ENDING;
	d->ends[at].when = when;
	d->ends[at].order = d->requests[tag].order;
	d->ends[at].tag = tag;
	while (at && earlier(d, at, (at - 1) / 2)) {
		swap(d, at, (at - 1) / 2);
		at = (at - 1) / 2;
	}
}

int sim_done(void *disk, unsigned int *tag, sim_word *when)
{
	struct disk *d = disk;
	unsigned int at = 0, child;

	if (!d->ending || d->ends[0].when > d->now)
		return 0;
	*tag = d->ends[0].tag;
	*when = d->ends[0].when;
	d->requests[*tag].state = FREE;
	d->ends[0] = d->ends[--d->ending];
	while ((child = 2 * at + 1) < d->ending) {
		if (child + 1 < d->ending && earlier(d, child + 1, child))
			child++;
		if (!earlier(d, child, at))
			break;
		swap(d, child, at);
		at = child;
	}
	return 1;
}

/* ---- geometry of a hard disk ---- */

struct place {
	sim_word cylinder, head, offset, track;
};

static struct zone zone(const struct disk *d, unsigned int index)
{
	const sim_word *at = d->p + SIM_ZONE_AT + 3 * index;
	struct zone found = { at[0], at[1], at[2] };

	return found;
}

static struct place place(const struct disk *d, sim_word sector)
{
	unsigned int low = 0, high = (unsigned int)d->p[SIM_ZONES] - 1;
	struct zone in;
	struct place found;
	sim_word tracks;

	while (low < high) {
		unsigned int middle = (low + high + 1) / 2;

		if (zone(d, middle).first <= sector)
			low = middle;
		else
			high = middle - 1;
	}
	in = zone(d, low);
	tracks = (sector - in.first) / in.track;
	found.offset = (sector - in.first) % in.track;
	found.cylinder = in.cylinder + tracks / d->p[SIM_HEADS];
	found.head = tracks % d->p[SIM_HEADS];
	found.track = in.track;
	return found;
}

/* Angle at which a sector begins, as the time of the turn. */
static sim_word angle(const struct disk *d, const struct place *at)
{
	sim_word in_cylinder = (d->p[SIM_HEADS] - 1) * d->p[SIM_HEAD_SKEW_NS] + d->p[SIM_CYLINDER_SKEW_NS];
	sim_word skew = at->cylinder * in_cylinder + at->head * d->p[SIM_HEAD_SKEW_NS];

	return (at->offset * d->p[SIM_TURN_NS] / at->track + skew) % d->p[SIM_TURN_NS];
}

sim_word sim_seek_ns(const void *disk, sim_word cylinders)
{
	const struct disk *d = disk;
	const sim_word *pairs = d->p + SIM_SEEK_AT;
	unsigned int low = 0, high = (unsigned int)d->p[SIM_SEEKS] - 1;
	sim_word span, from, to;

	if (!cylinders)
		return 0;
	if (cylinders >= pairs[2 * high])
		return pairs[2 * high + 1];
	if (cylinders <= pairs[0])
		return pairs[1];
	while (high - low > 1) {
		unsigned int middle = (low + high) / 2;

		if (pairs[2 * middle] <= cylinders)
			low = middle;
		else
			high = middle;
	}
	span = pairs[2 * high] - pairs[2 * low];
	from = pairs[2 * low + 1];
	to = pairs[2 * high + 1];
	/* Seek curves rise. */
	return from + (to - from) * (cylinders - pairs[2 * low]) / span;
}

/* Until the arm is on the track and settled. */
static sim_word moving(const struct disk *d, const struct place *to, int writes)
{
	sim_word apart = to->cylinder > d->cylinder ? to->cylinder - d->cylinder : d->cylinder - to->cylinder;
	sim_word moves = sim_seek_ns(d, apart);

	if (to->head != d->head)
		moves = larger(moves, d->p[SIM_HEAD_SWITCH_NS]);
	if (writes && moves)
		moves += d->p[SIM_WRITE_SETTLE_NS];
	return moves;
}

/* From where the arm is, at that time, until the sector begins below the head. */
static sim_word positioning(const struct disk *d, sim_word sector, int writes, sim_word at)
{
	struct place to = place(d, sector);
	sim_word moves = moving(d, &to, writes), turn = d->p[SIM_TURN_NS];

	return moves + (angle(d, &to) + turn - (at + moves + d->p[SIM_PHASE_NS]) % turn) % turn;
}

/* From the beginning of the first sector to the end of the last one, without a revolution missed. */
static sim_word transfer(const struct disk *d, sim_word first, sim_word sectors)
{
	sim_word all = 0;

	while (sectors) {
		struct place at = place(d, first);
		sim_word here = smaller(sectors, at.track - at.offset), turn = d->p[SIM_TURN_NS];

		all += (at.offset + here) * turn / at.track - at.offset * turn / at.track;
		sectors -= here;
		first += here;
		if (sectors)
			all += at.head + 1 < d->p[SIM_HEADS] ? d->p[SIM_HEAD_SKEW_NS] : d->p[SIM_CYLINDER_SKEW_NS];
	}
	return all;
}

/* Sectors that have passed below the head so long after the first one began, at most so many. */
static sim_word passed(const struct disk *d, sim_word first, sim_word time, sim_word most)
{
	sim_word all = 0;

	while (all < most) {
		struct place at = place(d, first + all);
		sim_word turn = d->p[SIM_TURN_NS], begins = at.offset * turn / at.track;
		sim_word rest = turn - begins, skew;

		if (time < rest) {
			/* Whole sectors only, and never one whose end is still to come. */
			sim_word reached = (begins + time) * at.track / turn;

			while (reached * turn / at.track > begins + time)
				reached--;
			if (reached > at.offset)
				all += reached - at.offset;
			break;
		}
		all += at.track - at.offset;
		skew = at.head + 1 < d->p[SIM_HEADS] ? d->p[SIM_HEAD_SKEW_NS] : d->p[SIM_CYLINDER_SKEW_NS];
		if (time < rest + skew)
			break;
		time -= rest + skew;
	}
	return smaller(all, most);
}

/* ---- caches of a hard disk ---- */

static void stand_at(struct disk *d, sim_word sector)
{
	struct place at = place(d, smaller(sector, d->p[SIM_SECTORS] - 1));

	d->cylinder = at.cylinder;
	d->head = at.head;
}

/* What was read ahead up to now is in the cache. */
static void look_ahead(struct disk *d, sim_word now)
{
	struct extent *segment = &d->segments[d->ahead_segment];
	sim_word end_of, most = d->p[SIM_SEGMENT_SECTORS];

	if (!d->ahead || now < d->ahead_since)
		return;
	end_of = d->ahead_from + passed(d, d->ahead_from, now - d->ahead_since, d->ahead_limit - d->ahead_from);
	if (segment->sectors)
		segment->sectors = larger(segment->sectors, end_of - segment->first);
	if (segment->sectors > most) {
		segment->first += segment->sectors - most;
		segment->sectors = most;
	}
	stand_at(d, end_of);
}

static int inside(const struct extent *whole, sim_word first, sim_word sectors)
{
	return whole->sectors && first >= whole->first && first + sectors <= whole->first + whole->sectors;
}

static int hit(struct disk *d, sim_word first, sim_word sectors)
{
	unsigned int i;

	for (i = 0; i < d->p[SIM_SEGMENTS]; i++)
		if (inside(&d->segments[i], first, sectors)) {
			d->used[i] = ++d->order;
			return 1;
		}
	for (i = 0; i < d->slots; i++)
		if (inside(&d->dirty[i], first, sectors))
			return 1;
	return 0;
}

/* Into the segment that it continues, or else the one that was used longest ago; what comes behind is read ahead. */
static void remember(struct disk *d, sim_word first, sim_word sectors, sim_word now)
{
	unsigned int i, found = 0, continues = 0;

	if (!d->p[SIM_SEGMENTS])
		return;
	for (i = 0; i < d->p[SIM_SEGMENTS] && !continues; i++) {
		sim_word last = d->segments[i].first + d->segments[i].sectors;

		if (d->segments[i].sectors && first >= d->segments[i].first && first <= last) {
			found = i;
			continues = 1;
		} else if (d->used[i] < d->used[found]) {
			found = i;
		}
	}
	if (!continues) {
		d->segments[found].first = first;
		d->segments[found].sectors = 0;
	}
	d->segments[found].sectors = larger(d->segments[found].sectors, first + sectors - d->segments[found].first);
	d->used[found] = ++d->order;
	d->ahead = 1;
	d->ahead_segment = found;
	d->ahead_since = now;
	d->ahead_from = first + sectors;
	d->ahead_limit = smaller(first + sectors + d->p[SIM_AHEAD_SECTORS], d->p[SIM_SECTORS]);
}

static void forget(struct disk *d, sim_word first, sim_word sectors)
{
	unsigned int i;

	for (i = 0; i < d->p[SIM_SEGMENTS]; i++) {
		struct extent *segment = &d->segments[i];

		if (segment->sectors && first < segment->first + segment->sectors && segment->first < first + sectors) {
			segment->sectors = 0;
			if (d->ahead && d->ahead_segment == i)
				d->ahead = 0;
		}
	}
}

/* 1 if the write is in the cache now. What overwrites or continues an extent costs no slot. */
static int cache(struct disk *d, sim_word first, sim_word sectors)
{
	unsigned int i, fixed = d->arm == DESTAGES ? d->slot : SIM_MOST_SLOTS;

	for (i = 0; i < d->slots; i++) {
		struct extent *extent = &d->dirty[i];

		if (i == fixed)
			continue;
		if (inside(extent, first, sectors))
			return 1;
		if (extent->first + extent->sectors == first && extent->sectors + sectors <= 2048 &&
		    d->cached + sectors <= d->p[SIM_CACHE_SECTORS]) {
			extent->sectors += sectors;
			d->cached += sectors;
			return 1;
		}
	}
	if (d->slots >= d->p[SIM_CACHE_SLOTS])
		return 0;
	/* One write that is larger than the cache passes when it is alone. */
	if (d->cached && d->cached + sectors > d->p[SIM_CACHE_SECTORS])
		return 0;
	d->dirty[d->slots].first = first;
	d->dirty[d->slots++].sectors = sectors;
	d->cached += sectors;
	return 1;
}

/* ---- the arm ---- */

/* Order of the first FLUSH that waits. */
static sim_word barrier(const struct disk *d)
{
	unsigned int i;

	for (i = 0; i < d->queued; i++)
		if (d->requests[d->queue[i]].operation == SIM_FLUSH)
			return d->requests[d->queue[i]].order;
	return SIM_NEVER;
}

/* What can be answered without the arm is; the others wait for it. */
static void admit(struct disk *d, unsigned int tag, sim_word now)
{
	struct request *r = &d->requests[tag];
	sim_word link = r->sectors * d->p[SIM_LINK_PS] / 1000, quick = now + d->p[SIM_COMMAND_NS] + link;

	if (r->operation == SIM_FLUSH)
		return;
	if (r->operation == SIM_TRIM) {
		r->parts[SIM_PART_CONTROLLER] = d->p[SIM_TRIM_NS];
		end(d, tag, now + d->p[SIM_COMMAND_NS] + d->p[SIM_TRIM_NS]);
	} else if (r->operation == SIM_READ) {
		if (d->arm == RESTS)
			look_ahead(d, now);
		if (hit(d, r->first, r->sectors)) {
			d->counts[SIM_READ_HITS]++;
			r->parts[SIM_PART_LINK] = link;
			end(d, tag, quick);
			return;
		}
		r->state = READY;
		r->ready = now + d->p[SIM_COMMAND_NS];
	} else if (r->forced || !d->p[SIM_WRITE_CACHE]) {
		r->state = READY;
		r->ready = now + d->p[SIM_COMMAND_NS];
	} else if (cache(d, r->first, r->sectors)) {
		forget(d, r->first, r->sectors);
		r->parts[SIM_PART_LINK] = link;
		end(d, tag, quick);
	}
}

/* Those that a FLUSH held up, or for which there was no room. */
static void admit_waiting(struct disk *d, sim_word now)
{
	unsigned int i = 0;
	sim_word before = barrier(d);

	while (i < d->queued && d->requests[d->queue[i]].order < before) {
		unsigned int tag = d->queue[i];

		if (d->requests[tag].state == WAITS)
			admit(d, tag, now);
		if (i < d->queued && d->queue[i] == tag)
			i++;
	}
}

/* The request that the arm reaches first, or the one that has waited too long; SIM_TAGS if none is ready. */
static unsigned int nearest(const struct disk *d, sim_word now)
{
	unsigned int i, best = SIM_TAGS, seen = 0;
	sim_word shortest = SIM_NEVER;

	for (i = 0; i < d->queued && seen < d->p[SIM_DEPTH]; i++) {
		const struct request *r = &d->requests[d->queue[i]];
		sim_word begins, takes;

		if (r->state != READY)
			continue;
		seen++;
		if (now > r->ready && now - r->ready > d->p[SIM_AGE_LIMIT_NS])
			return d->queue[i];
		begins = larger(now, r->ready);
		takes = begins - now + positioning(d, r->first, r->operation == SIM_WRITE, begins);
		if (takes < shortest) {
			shortest = takes;
			best = d->queue[i];
		}
	}
	return best;
}

/* ---- a shingled disk ---- */

/* The log is the innermost part of the disk, and is written in turn. */
static sim_word log_at(const struct disk *d)
{
	return d->p[SIM_SECTORS] - d->p[SIM_LOG_SECTORS] + d->logged % d->p[SIM_LOG_SECTORS];
}

static int goes_to_log(const struct disk *d, const struct extent *extent)
{
	return d->p[SIM_BAND_SECTORS] && extent->sectors < d->p[SIM_STREAM_SECTORS];
}

static int log_is_full(const struct disk *d, sim_word sectors)
{
	return d->p[SIM_BAND_SECTORS] && d->waiting_bands && d->logged + sectors > d->p[SIM_LOG_SECTORS];
}

static void put_into_log(struct disk *d, const struct extent *extent)
{
	sim_word band = extent->first / d->p[SIM_BAND_SECTORS];
	sim_word last = (extent->first + extent->sectors - 1) / d->p[SIM_BAND_SECTORS];

	d->logged += extent->sectors;
	for (; band <= last; band++) {
		if (!(d->bands[band / 64] >> band % 64 & 1))
			d->waiting_bands++;
		d->bands[band / 64] |= 1ULL << band % 64;
	}
}

/* Reads the next band that waits and writes it with what the log has of it: an even share of what is there. */
static void clean(struct disk *d, sim_word now)
{
	sim_word band = d->next_band, bands = d->p[SIM_SECTORS] / d->p[SIM_BAND_SECTORS] + 1, first, sectors, takes;

	while (!(d->bands[band / 64] >> band % 64 & 1))
		band = (band + 1) % bands;
	first = band * d->p[SIM_BAND_SECTORS];
	sectors = smaller(d->p[SIM_BAND_SECTORS], d->p[SIM_SECTORS] - first);
	d->ahead = 0;
	d->arm = CLEANS;
	d->wrote_last = 1;
	d->begun = now;
	takes = positioning(d, first, 0, now) + transfer(d, first, sectors);
	stand_at(d, first + sectors - 1);
	takes += positioning(d, first, 1, now + takes) + transfer(d, first, sectors);
	stand_at(d, first + sectors - 1);
	d->until = now + takes;
	d->bands[band / 64] &= ~(1ULL << band % 64);
	d->logged -= d->logged / d->waiting_bands;
	d->waiting_bands--;
	d->next_band = (band + 1) % bands;
	d->counts[SIM_MERGES]++;
}

static int may_clean(const struct disk *d, sim_word now)
{
	return d->waiting_bands && now >= d->last_command + d->p[SIM_CLEAN_IDLE_NS];
}

/* When the arm is through with sectors that it goes to. */
static sim_word reach(struct disk *d, sim_word first, sim_word sectors, int writes, sim_word begins)
{
	struct place to = place(d, first);

	d->sought = moving(d, &to, writes);
	d->turned = positioning(d, first, writes, begins) - d->sought;
	d->passed = transfer(d, first, sectors);
	stand_at(d, first + sectors - 1);
	return begins + d->sought + d->turned + d->passed;
}

static void divide_arm(const struct disk *d, struct request *r)
{
	r->parts[SIM_PART_SEEK] = d->sought;
	r->parts[SIM_PART_TURN] = d->turned;
	r->parts[SIM_PART_TRANSFER] = d->passed;
}

/* 0 if it was in the cache by the time that its command began. */
static int serve(struct disk *d, unsigned int tag, sim_word now)
{
	struct request *r = &d->requests[tag];
	sim_word begins = larger(now, r->ready), first = r->first, sectors = r->sectors;

	d->begun = begins;
	d->wrote_last = r->operation == SIM_WRITE;
	if (r->operation == SIM_READ && d->ahead) {
		const struct extent *segment = &d->segments[d->ahead_segment];
		sim_word reached;

		/* Reading ahead goes on until the command begins, and into it where it asks for what comes. */
		look_ahead(d, begins);
		reached = segment->first + segment->sectors;
		if (segment->sectors && first >= segment->first && first < reached) {
			if (reached >= first + sectors) {
				d->counts[SIM_READ_HITS]++;
				r->parts[SIM_PART_LINK] = sectors * d->p[SIM_LINK_PS] / 1000;
				end(d, tag, begins + r->parts[SIM_PART_LINK]);
				return 0;
			}
			if (reached < d->ahead_limit) {
				d->arm = SERVES;
				d->serving = tag;
				d->until = larger(begins, d->ahead_since + transfer(d, d->ahead_from, first + sectors - d->ahead_from));
				r->parts[SIM_PART_TRANSFER] = d->until - begins;
				stand_at(d, first + sectors - 1);
				return 1;
			}
			/* It has ended, so the arm goes to the rest. */
			sectors -= reached - first;
			first = reached;
		}
	}
	d->arm = SERVES;
	d->serving = tag;
	d->ahead = 0;
	d->counts[SIM_SEEKED]++;
	if (r->operation == SIM_WRITE) {
		struct extent written = { first, sectors };

		if (goes_to_log(d, &written)) {
			first = smaller(log_at(d), d->p[SIM_SECTORS] - sectors);
			put_into_log(d, &written);
		}
	}
	d->until = reach(d, first, sectors, r->operation == SIM_WRITE, begins);
	divide_arm(d, r);
	return 1;
}

static void destage(struct disk *d, sim_word now)
{
	unsigned int i, best = 0;
	sim_word shortest = SIM_NEVER;
	struct extent to;

	for (i = 0; i < d->slots && i < d->p[SIM_DESTAGE_WINDOW]; i++) {
		sim_word takes = positioning(d, d->dirty[i].first, 1, now);

		if (takes < shortest) {
			shortest = takes;
			best = i;
		}
	}
	to = d->dirty[best];
	if (goes_to_log(d, &to)) {
		if (log_is_full(d, to.sectors))
			return clean(d, now);
		to.first = smaller(log_at(d), d->p[SIM_SECTORS] - to.sectors);
		put_into_log(d, &d->dirty[best]);
	}
	d->ahead = 0;
	d->arm = DESTAGES;
	d->begun = now;
	d->wrote_last = 1;
	d->slot = best;
	d->counts[SIM_DESTAGED]++;
	d->until = reach(d, to.first, to.sectors, 1, now);
}

/* The request before the first FLUSH, if there is one, keeps it waiting. */
static int flush_may_begin(const struct disk *d)
{
	return d->queued && d->requests[d->queue[0]].operation == SIM_FLUSH;
}

static int must_write(const struct disk *d)
{
	if (d->queued && d->requests[d->queue[0]].state == WAITS)
		return d->slots > 0;
	return d->slots && (d->cached >= d->p[SIM_HIGH_WATER] || d->slots >= d->p[SIM_CACHE_SLOTS]);
}

static void begin(struct disk *d, sim_word now)
{
	unsigned int tag;

	if (d->arm != RESTS)
		return;
	look_ahead(d, now);
	do {
		if (flush_may_begin(d)) {
			if (d->slots)
				return destage(d, now);
			d->arm = FLUSHES;
			d->begun = now;
			d->serving = d->queue[0];
			d->requests[d->serving].parts[SIM_PART_FLUSH] = flush_ns(d);
			d->until = larger(now, d->requests[d->serving].ready) + d->requests[d->serving].parts[SIM_PART_FLUSH];
			return;
		}
		tag = nearest(d, now);
		if (must_write(d) && !(tag < SIM_TAGS && d->wrote_last))
			return destage(d, now);
		if (tag == SIM_TAGS) {
			if (d->slots && now >= d->last_command + d->p[SIM_IDLE_NS])
				destage(d, now);
			else if (!d->slots && may_clean(d, now))
				clean(d, now);
			return;
		}
	} while (!serve(d, tag, now));
}

/* Of what the arm did last, so much. */
static void divide_destage(const struct disk *d, struct request *r, sim_word time)
{
	sim_word passed = smaller(time, d->passed), turned = smaller(time - passed, d->turned);

	r->parts[SIM_PART_TRANSFER] += passed;
	r->parts[SIM_PART_TURN] += turned;
	r->parts[SIM_PART_SEEK] += time - passed - turned;
}

/* Writing from the cache is for the first FLUSH, and for what waits for room in it; cleaning keeps all waiting. */
static void divide_waiting(const struct disk *d, struct request *requests, sim_word now)
{
	sim_word before = barrier(d);
	unsigned int i;

	for (i = 0; i < d->queued; i++) {
		struct request *r = &requests[d->queue[i]];
		sim_word since = larger(d->begun, r->came);

		if (now <= since)
			continue;
		if (d->arm == CLEANS)
			r->parts[SIM_PART_COLLECTION] += now - since;
		else if (r->state == WAITS && r->order <= before)
			divide_destage(d, r, now - since);
	}
}

/* The arm is through with what it did. */
static void finish(struct disk *d, sim_word now)
{
	int did = d->arm;

	if (did == DESTAGES || did == CLEANS)
		divide_waiting(d, d->requests, now);
	d->arm = RESTS;
	if (did == SERVES) {
		struct request *r = &d->requests[d->serving];

		if (r->operation == SIM_READ)
			remember(d, r->first, r->sectors, now);
		else
			forget(d, r->first, r->sectors);
		if (r->operation == SIM_WRITE)
			land(d, r->first, r->sectors, now, now);
		end(d, d->serving, now);
	} else if (did == DESTAGES) {
		land(d, d->dirty[d->slot].first, d->dirty[d->slot].sectors, d->begun, now);
		d->cached -= d->dirty[d->slot].sectors;
		d->slots--;
		for (; d->slot < d->slots; d->slot++)
			d->dirty[d->slot] = d->dirty[d->slot + 1];
	} else if (did == FLUSHES) {
		d->counts[SIM_FLUSHED]++;
		end(d, d->serving, now);
	}
	admit_waiting(d, now);
	begin(d, now);
}

/* When the arm has something to do next. */
static sim_word next_of_arm(const struct disk *d)
{
	if (d->arm != RESTS)
		return d->until;
	if (d->slots)
		return larger(d->now, d->last_command + d->p[SIM_IDLE_NS]);
	return d->waiting_bands ? larger(d->now, d->last_command + d->p[SIM_CLEAN_IDLE_NS]) : SIM_NEVER;
}

static void move(struct disk *d, sim_word now)
{
	sim_word at;

	while ((at = next_of_arm(d)) <= now) {
		d->now = larger(d->now, at);
		if (d->arm != RESTS)
			finish(d, at);
		else
			begin(d, at);
	}
}

/* ---- flash ---- */

/* Room in the write buffer that programs have made by then. */
static void drain(struct disk *d, sim_word now)
{
	while (d->ring_count && d->ring_when[d->ring_first] <= now) {
		d->buffered -= d->ring_sectors[d->ring_first];
		d->ring_first = (d->ring_first + 1) % SIM_RING;
		d->ring_count--;
	}
}

static sim_word last_program(const struct disk *d)
{
	return d->ring_count ? d->ring_when[(d->ring_first + d->ring_count - 1) % SIM_RING] : 0;
}

static struct span *spans_of(struct disk *d, sim_word die)
{
	return d->spans + die * (SIM_SPANS / d->p[SIM_DIES]);
}

static void drop_spans(struct disk *d, sim_word die, sim_word now)
{
	struct span *of = spans_of(d, die);
	unsigned int i, past = 0;

	while (past < d->span_count[die] && of[past].ends <= now)
		past++;
	if (!past)
		return;
	d->span_count[die] -= past;
	for (i = 0; i < d->span_count[die]; i++)
		of[i] = of[i + past];
}

/* Behind all that the die has to do. Where there is no place left, the die counts as busy in between. */
static void add_span(struct disk *d, sim_word die, sim_word begins, sim_word ends)
{
	struct span *of = spans_of(d, die);
	unsigned int *count = &d->span_count[die];

	drop_spans(d, die, d->now);
	if (!*count || (of[*count - 1].ends < begins && *count < SIM_SPANS / d->p[SIM_DIES]))
		of[(*count)++].begins = begins;
	of[*count - 1].ends = ends;
	d->program_free[die] = ends;
}

/* A read that may begin then suspends what the die does, and goes before what it is to do later. How long it waits. */
static sim_word suspend(struct disk *d, sim_word die, sim_word begins)
{
	struct span *of = spans_of(d, die);
	sim_word waits = 0, free;
	unsigned int i;

	drop_spans(d, die, begins);
	if (d->span_count[die] && of->begins <= begins) {
		waits = smaller(of->ends - begins, d->p[SIM_SUSPEND_NS]);
		/* The rest of it begins then. */
		of->begins = begins + waits;
	}
	free = begins + waits + d->p[SIM_READ_NS];
	for (i = 0; i < d->span_count[die] && of[i].begins < free; i++) {
		of[i].ends += free - of[i].begins;
		of[i].begins = free;
		free = of[i].ends;
	}
	if (d->span_count[die])
		d->program_free[die] = of[d->span_count[die] - 1].ends;
	return waits;
}

/* When a channel has moved so much of what is to be programmed. */
static sim_word move_written(struct disk *d, sim_word die, sim_word moves, sim_word now)
{
	sim_word channel = die % d->p[SIM_CHANNELS];

	d->channel_free[channel] = larger(larger(now, d->channel_free[channel]), d->channel_reads[channel]) + moves;
	return d->channel_free[channel];
}

/* The same of what was read, which goes first. */
static sim_word move_read(struct disk *d, sim_word die, sim_word moves, sim_word now)
{
	sim_word channel = die % d->p[SIM_CHANNELS], begins = larger(now, d->channel_reads[channel]);

	d->channel_reads[channel] = begins + moves;
	if (d->channel_free[channel] > begins)
		d->channel_free[channel] += moves;
	return d->channel_reads[channel];
}

/* Garbage collection in what a die has to do from then on. It counts as what comes last of it. */
static sim_word collects(const struct disk *d, sim_word die, sim_word now)
{
	return d->program_free[die] > now ? smaller(d->collects[die], d->program_free[die] - now) : 0;
}

/* Garbage collection occupies a die as reads, programs and erases do. Of an erase it takes the share that a block here has of a block. */
static void occupy(struct disk *d, unsigned int die, struct ftl_work *work, sim_word now)
{
	sim_word moved = 2 * (sim_word)work->units * FTL_UNIT_SECTORS * d->p[SIM_CHANNEL_PS] / 1000;
	sim_word takes = work->reads * d->p[SIM_READ_NS] + work->programs * d->p[SIM_PROGRAM_NS], begins;

	if (d->p[SIM_ERASE_PROGRAMS])
		takes += work->erases * d->p[SIM_ERASE_NS] * d->p[SIM_BLOCK_PROGRAMS] / d->p[SIM_ERASE_PROGRAMS];
	if (!takes)
		return;
	if (moved)
		move_written(d, die, moved, now);
	d->collects[die] = collects(d, die, now) + takes;
	begins = larger(larger(now, d->program_free[die]), d->read_free[die]);
	add_span(d, die, begins, begins + takes);
	d->counts[SIM_PROGRAMS] += work->programs;
	d->counts[SIM_ERASES] += work->erases;
	work->reads = work->programs = work->erases = work->units = 0;
}

/* The die of what waits, after the garbage collection that makes room for it. */
static sim_word place_on_die(struct disk *d, sim_word now)
{
	unsigned int die = d->next_die, other;

	d->next_die = (unsigned int)((die + 1) % d->p[SIM_DIES]);
	if (!d->p[SIM_UNITS])
		return die;
	die = ftl_program(&d->ftl, d->waiting, d->waiting_count);
	d->waiting_count = 0;
	for (other = 0; other < d->ftl.dies; other++)
		occupy(d, other, &d->ftl.work[other], now);
	return die;
}

/* The SLC cache is made of blocks without data. */
static sim_word slc_room(const struct disk *d)
{
	if (!d->p[SIM_UNITS])
		return d->p[SIM_SLC_SECTORS];
	return d->p[SIM_SLC_SECTORS] * (d->p[SIM_UNITS] - d->ftl.mapped) / d->p[SIM_UNITS];
}

/* A program on a die begins and ends; what ends before the last one is waited for as that is. */
static void into_ring(struct disk *d, unsigned int at, sim_word begins, sim_word ends, sim_word held)
{
	unsigned int last = (at + SIM_RING - 1) % SIM_RING;
	int is_last = ends >= last_program(d);

	d->ring_when[at] = larger(last_program(d), ends);
	d->ring_begins[at] = is_last ? begins : d->ring_begins[last];
	d->ring_collects[at] = is_last ? held : d->ring_collects[last];
}

static void wait_for_program(const struct disk *d, unsigned int at, sim_word now, sim_word *parts)
{
	sim_word begins = d->ring_begins[at], copies = begins > now ? smaller(d->ring_collects[at], begins - now) : 0;

	if (d->ring_when[at] <= now)
		return;
	parts[SIM_PART_COLLECTION] += copies;
	parts[SIM_PART_DIE] += d->ring_when[at] - now - copies;
}

/* Programs what was collected on the next die. Room is made in the order of writing. */
static void program(struct disk *d, sim_word now)
{
	sim_word die = place_on_die(d, now), sectors = d->open_sectors, takes = d->p[SIM_PROGRAM_NS], begins, idle, held;
	unsigned int at = (d->ring_first + d->ring_count) % SIM_RING;

	if (d->p[SIM_SLC_SECTORS]) {
		idle = now > d->last_program ? now - d->last_program : 0;
		d->slc_used -= smaller(d->slc_used, idle / larger(1, d->p[SIM_SLC_REFILL_NS]));
		if (d->slc_used + sectors <= slc_room(d)) {
			d->slc_used += sectors;
			takes = d->p[SIM_SLC_PROGRAM_NS];
		}
	}
	begins = move_written(d, die, sectors * d->p[SIM_CHANNEL_PS] / 1000, now);
	begins = larger(larger(begins, d->program_free[die]), d->read_free[die]);
	if (!d->p[SIM_UNITS] && d->p[SIM_ERASE_PROGRAMS] && ++d->programs[die] % d->p[SIM_ERASE_PROGRAMS] == 0) {
		takes += d->p[SIM_ERASE_NS];
		d->counts[SIM_ERASES]++;
	}
	d->counts[SIM_PROGRAMS]++;
	held = smaller(collects(d, die, now), begins - now);
	add_span(d, die, begins, begins + takes);
	d->last_program = larger(d->last_program, begins + takes);
	into_ring(d, at, begins, begins + takes, held);
	land(d, SIM_NEVER, d->open_own, now, d->ring_when[at]);
	d->ring_sectors[at] = sectors;
	d->ring_count++;
	d->open_sectors = d->open_own = 0;
}

/* When so many sectors have room, from that moment on. */
static sim_word room(struct disk *d, sim_word sectors, sim_word now, sim_word *parts)
{
	drain(d, now);
	while (d->ring_count && (d->buffered + sectors > d->p[SIM_BUFFER_SECTORS] || d->ring_count + 2 > SIM_RING)) {
		wait_for_program(d, d->ring_first, now, parts);
		now = larger(now, d->ring_when[d->ring_first]);
		drain(d, now);
	}
	return now;
}

/* Copying so much within a card, and erasing what it was in. */
static sim_word copying(const struct disk *d, sim_word sectors)
{
	sim_word unit = d->p[SIM_PAGE_SECTORS] * d->p[SIM_PROGRAM_PAGES], programs = (sectors + unit - 1) / unit;

	return programs * (d->p[SIM_READ_NS] + d->p[SIM_PROGRAM_NS]) / d->p[SIM_DIES] + d->p[SIM_ERASE_NS];
}

/* Where a card's unit is written on costs nothing. What begins elsewhere has the unit copied, and one more open unit than there
 * can be has the rest of the one copied that was used longest ago. */
static sim_word open_unit(struct disk *d, sim_word first, sim_word sectors)
{
	sim_word size = d->p[SIM_UNIT_SECTORS], offset = first % size, takes = 0;
	unsigned int i, found = 0;

	for (i = 0; i < d->p[SIM_OPEN_UNITS]; i++) {
		if (d->units[i].unit == first / size + 1) {
			found = i;
			break;
		}
		if (d->units[i].used < d->units[found].used)
			found = i;
	}
	if (i == d->p[SIM_OPEN_UNITS]) {
		if (d->units[found].unit && d->units[found].at < size)
			takes += copying(d, size - d->units[found].at);
		d->units[found].unit = first / size + 1;
		d->units[found].at = 0;
	}
	if (d->units[found].at != offset)
		takes += copying(d, size);
	d->units[found].at = offset + sectors;
	d->units[found].used = ++d->order;
	d->counts[SIM_MERGES] += takes != 0;
	return takes;
}

/* How long copying takes for a write, which comes in behind it. */
static sim_word open_units(struct disk *d, sim_word first, sim_word sectors, sim_word now)
{
	sim_word all = 0;

	while (d->p[SIM_UNIT_SECTORS] && sectors) {
		sim_word piece = smaller(sectors, d->p[SIM_UNIT_SECTORS] - first % d->p[SIM_UNIT_SECTORS]);
		sim_word takes = open_unit(d, first, piece);

		if (takes)
			d->in_free = larger(now, d->in_free) + takes;
		all += takes;
		first += piece;
		sectors -= piece;
	}
	return all;
}

/* With units, writes begin and end with one. */
static void note_units(struct disk *d, sim_word first, sim_word sectors)
{
	sim_word unit = (first - d->p[SIM_START]) / FTL_UNIT_SECTORS;

	if (d->p[SIM_UNITS])
		for (; sectors; sectors -= FTL_UNIT_SECTORS)
			d->waiting[d->waiting_count++] = (unsigned int)unit++;
}

/* The link is busy with other requests, or with units that are copied for this one. */
static void wait_for_link(const struct disk *d, sim_word now, sim_word copying, sim_word *parts)
{
	sim_word waits = d->in_free > now ? d->in_free - now : 0;

	parts[SIM_PART_COLLECTION] += smaller(waits, copying);
	parts[SIM_PART_QUEUE] += waits - smaller(waits, copying);
}

/* Sectors of the request among others. */
static sim_word own(const struct request *r, sim_word first, sim_word sectors)
{
	sim_word from = larger(first, r->first), until = smaller(first + sectors, r->first + r->sectors);

	return until > from ? until - from : 0;
}

/* A piece after the other enters the buffer, so a write that is larger than it passes too. */
static sim_word take_in(struct disk *d, struct request *r, sim_word first, sim_word sectors, sim_word now, sim_word copying)
{
	sim_word *parts = r->parts, unit = d->p[SIM_PAGE_SECTORS] * d->p[SIM_PROGRAM_PAGES], frames = d->p[SIM_FRAMES_NS];

	while (sectors) {
		sim_word piece = smaller(sectors, unit - d->open_sectors);

		now = room(d, piece, now, parts);
		wait_for_link(d, now, copying, parts);
		parts[SIM_PART_LINK] += frames + piece * d->p[SIM_LINK_PS] / 1000;
		now = larger(now, d->in_free) + frames + piece * d->p[SIM_LINK_PS] / 1000;
		frames = 0;
		d->in_free = now;
		d->buffered += piece;
		d->open_sectors += piece;
		d->open_own += own(r, first, piece);
		note_units(d, first, piece);
		first += piece;
		sectors -= piece;
		if (d->open_sectors == unit)
			program(d, now);
	}
	return now;
}

/* The die of a sector, and sectors from there on that one page has. Without units pages lie on the dies in turn. SIM_NEVER: on none. */
static sim_word die_of(const struct disk *d, sim_word first, sim_word *sectors)
{
	sim_word page = d->p[SIM_PAGE_SECTORS], unit = (first - d->p[SIM_START]) / FTL_UNIT_SECTORS;
	unsigned int slot;

	*sectors = page - first % page;
	if (!d->p[SIM_UNITS])
		return first / page % d->p[SIM_DIES];
	slot = d->ftl.map[unit];
	*sectors = FTL_UNIT_SECTORS - first % FTL_UNIT_SECTORS;
	if (!slot)
		return SIM_NEVER;
	while (slot % d->ftl.page_units && ++unit < d->p[SIM_UNITS] && d->ftl.map[unit] == slot + 1) {
		*sectors += FTL_UNIT_SECTORS;
		slot++;
	}
	return ftl_die(&d->ftl, slot - 1);
}

/* What a read goes on behind: itself, with its path until then, or others. */
static void follow(struct path *path, const struct path *before, sim_word waits)
{
	if (waits && before->order == path->order)
		*path = *before;
	else
		path->queue += waits;
}

/* When a die has read so much, and its channel has moved it. */
static sim_word read_page(struct disk *d, sim_word die, sim_word sectors, sim_word now, struct path *path)
{
	sim_word channel = die % d->p[SIM_CHANNELS], begins = larger(now, d->read_free[die]);
	sim_word collecting = collects(d, die, begins), waits = suspend(d, die, begins), copies = smaller(waits, collecting), read;

	follow(path, &d->die_path[die], begins - now);
	path->collection += copies;
	path->queue += waits - copies;
	path->die += d->p[SIM_READ_NS];
	d->die_path[die] = *path;
	read = d->read_free[die] = begins + waits + d->p[SIM_READ_NS];
	follow(path, &d->channel_path[channel], d->channel_reads[channel] > read ? d->channel_reads[channel] - read : 0);
	d->channel_path[channel] = *path;
	return move_read(d, die, sectors * d->p[SIM_CHANNEL_PS] / 1000, read);
}

/* The link begins with a page that came by this path, after it had waited so long for others. */
static void divide_read(sim_word *found, const struct path *path, sim_word waits, sim_word time)
{
	found[SIM_PART_QUEUE] = path->queue + waits;
	found[SIM_PART_COLLECTION] = path->collection;
	found[SIM_PART_DIE] = path->die;
	found[SIM_PART_TRANSFER] = time - path->queue - path->collection - path->die;
	found[SIM_PART_LINK] = 0;
}

/* What is on no die is answered from the map. The time is that of the page for which the link waited last, and of the link from there on. */
static sim_word read_pages(struct disk *d, struct request *r, sim_word first, sim_word sectors, sim_word now)
{
	sim_word last = now, frames = d->p[SIM_FRAMES_NS], found[SIM_PARTS] = { 0 };
	unsigned int part;

	while (sectors) {
		sim_word on_page, die = die_of(d, first, &on_page), piece = smaller(sectors, on_page);
		sim_word takes = frames + piece * d->p[SIM_LINK_PS] / 1000;
		struct path path = { r->order, 0, 0, 0 };
		sim_word at = die == SIM_NEVER ? now : read_page(d, die, piece, now, &path);

		if (at >= d->out_free || last == now)
			divide_read(found, &path, d->out_free > at ? d->out_free - at : 0, at - now);
		found[SIM_PART_LINK] += takes;
		d->out_free = larger(d->out_free, at) + takes;
		frames = 0;
		last = larger(last, d->out_free);
		first += piece;
		sectors -= piece;
	}
	for (part = 0; part < SIM_PARTS; part++)
		r->parts[part] += found[part];
	return last;
}

/* When all that was written so far is on the dies, or safe without. */
static sim_word persist(struct disk *d, sim_word now, sim_word *parts)
{
	if (d->p[SIM_PROTECTED])
		return now;
	if (d->open_sectors)
		program(d, now);
	if (d->ring_count)
		wait_for_program(d, (d->ring_first + d->ring_count - 1) % SIM_RING, now, parts);
	return larger(now, last_program(d));
}

/* Whole units take the place of the parts at both ends, which are read first, one after the other. */
static sim_word write_units(struct disk *d, struct request *r, sim_word now)
{
	sim_word before = r->first % FTL_UNIT_SECTORS, whole = before + r->sectors, first = r->first - before, last;

	if (!d->p[SIM_UNITS])
		return take_in(d, r, r->first, r->sectors, now, open_units(d, r->first, r->sectors, now));
	last = whole / FTL_UNIT_SECTORS * FTL_UNIT_SECTORS;
	if (before)
		now = read_pages(d, r, first, FTL_UNIT_SECTORS, now);
	if (last < whole && !(before && !last))
		now = read_pages(d, r, first + last, FTL_UNIT_SECTORS, now);
	whole = (whole + FTL_UNIT_SECTORS - 1) / FTL_UNIT_SECTORS * FTL_UNIT_SECTORS;
	return take_in(d, r, first, whole, now, 0);
}

/* Units that are not trimmed as a whole stay. */
static void trim_units(struct disk *d, sim_word first, sim_word sectors)
{
	sim_word from = (first - d->p[SIM_START] + FTL_UNIT_SECTORS - 1) / FTL_UNIT_SECTORS, unit;
	sim_word until = (first - d->p[SIM_START] + sectors) / FTL_UNIT_SECTORS;
	unsigned int i;

	for (unit = from; unit < until && unit < d->p[SIM_UNITS]; unit++)
		ftl_trim(&d->ftl, (unsigned int)unit);
	for (i = 0; i < d->waiting_count; i++)
		if (d->waiting[i] >= from && d->waiting[i] < until)
			d->waiting[i] = FTL_NONE;
}

/* All that happens to it is known when it comes. */
static sim_word flash(struct disk *d, struct request *r, sim_word now)
{
	sim_word begins = larger(now, d->barrier) + d->p[SIM_COMMAND_NS], ends = begins;
	int alone = r->operation == SIM_FLUSH && !d->p[SIM_QUEUED_FLUSH];

	if (alone)
		begins = larger(begins, d->latest);
	r->parts[SIM_PART_CONTROLLER] = d->p[SIM_COMMAND_NS];
	r->parts[SIM_PART_QUEUE] = begins - now - d->p[SIM_COMMAND_NS];
	if (r->operation == SIM_READ)
		ends = read_pages(d, r, r->first, r->sectors, begins);
	else if (r->operation == SIM_WRITE)
		ends = write_units(d, r, begins);
	else if (r->operation == SIM_TRIM) {
		trim_units(d, r->first, r->sectors);
		r->parts[SIM_PART_CONTROLLER] += d->p[SIM_TRIM_NS];
		ends = begins + d->p[SIM_TRIM_NS];
	}
	if (r->operation == SIM_FLUSH || (r->forced && !d->p[SIM_PROTECTED])) {
		r->parts[SIM_PART_FLUSH] = flush_ns(d);
		ends = persist(d, larger(ends, begins), r->parts) + r->parts[SIM_PART_FLUSH];
		d->counts[SIM_FLUSHED] += r->operation == SIM_FLUSH;
	}
	d->latest = larger(d->latest, ends);
	if (alone)
		d->barrier = ends;
	return ends;
}

/* ---- a cloud volume ---- */

/* As many operations as the bucket of credits allows, at no more than the peak's rate; the link's rate comes on top. What is
 * answered is durable. */
static sim_word cloud(struct disk *d, struct request *r, sim_word now)
{
	sim_word size = d->p[SIM_OPERATION_SECTORS], operations = 1, spare = d->p[SIM_CREDITS] * d->p[SIM_BASE_NS], came = now;
	int moves = r->operation == SIM_READ || r->operation == SIM_WRITE;

	r->parts[SIM_PART_CONTROLLER] = d->p[SIM_COMMAND_NS];
	if (r->operation == SIM_FLUSH) {
		r->parts[SIM_PART_FLUSH] = flush_ns(d);
		return now + d->p[SIM_COMMAND_NS] + r->parts[SIM_PART_FLUSH];
	}
	if (moves)
		operations = larger(1, (r->sectors + size - 1) / size);
	now = larger(now, d->peak_due);
	if (d->base_due > spare)
		now = larger(now, d->base_due - spare);
	r->parts[SIM_PART_RATE] = now - came;
	d->peak_due = now + operations * d->p[SIM_PEAK_NS];
	d->base_due = larger(d->base_due, now) + operations * d->p[SIM_BASE_NS];
	if (!moves) {
		r->parts[SIM_PART_CONTROLLER] += d->p[SIM_TRIM_NS];
		return now + d->p[SIM_COMMAND_NS] + d->p[SIM_TRIM_NS];
	}
	r->parts[SIM_PART_QUEUE] = larger(d->out_free, now) - now;
	r->parts[SIM_PART_LINK] = r->sectors * d->p[SIM_LINK_PS] / 1000;
	d->out_free = larger(d->out_free, now) + r->parts[SIM_PART_LINK];
	return d->out_free + d->p[SIM_COMMAND_NS];
}

/* ---- what a caller sees ---- */

static int bad(const sim_word *p, int which, sim_word least, sim_word most)
{
	return p[which] < least || p[which] > most ? which + 1 : 0;
}

/* Of the zones that are used; the angle of a sector is a share of the turn, so that longer tracks would be out of range. */
static int bad_tracks(const sim_word *p)
{
	unsigned int i;
	int wrong = bad(p, SIM_ZONES, 1, SIM_MOST_ZONES);

	for (i = 0; !wrong && i < p[SIM_ZONES]; i++)
		if (bad(p, SIM_ZONE_AT + 3 * i + 2, 1, 1 << 20))
			wrong = SIM_ZONES + 1;
	return wrong;
}

static int bad_arm(const sim_word *p)
{
	static const unsigned char once[] = { SIM_TURN_NS, SIM_HEADS, SIM_CACHE_SLOTS, SIM_DESTAGE_WINDOW };
	unsigned int i;
	int wrong = 0;

	for (i = 0; i < sizeof(once) && !wrong; i++)
		wrong = bad(p, once[i], 1, 1ULL << 32);
	if (!wrong)
		wrong = bad(p, SIM_CACHE_SLOTS, 1, SIM_MOST_SLOTS);
	if (!wrong)
		wrong = bad(p, SIM_HIGH_WATER, 0, p[SIM_CACHE_SECTORS]);
	if (!wrong)
		wrong = bad(p, SIM_SEGMENTS, 0, SIM_MOST_SEGMENTS);
	if (!wrong)
		wrong = bad(p, SIM_SEEKS, 1, SIM_MOST_SEEKS);
	if (!wrong)
		wrong = bad_tracks(p);
	if (!wrong && p[SIM_BAND_SECTORS])
		wrong = bad(p, SIM_BAND_SECTORS, p[SIM_SECTORS] / (SIM_MOST_BANDS - 1) + 1, p[SIM_SECTORS]);
	if (!wrong && p[SIM_BAND_SECTORS])
		wrong = bad(p, SIM_LOG_SECTORS, 4096, p[SIM_SECTORS] / 2);
	if (!wrong && p[SIM_ZBC_ZONES])
		wrong = zbc_wrong(p);
	return wrong;
}

static int bad_flash(const sim_word *p)
{
	int wrong = bad(p, SIM_DIES, 1, SIM_MOST_DIES);

	if (!wrong)
		wrong = bad(p, SIM_CHANNELS, 1, SIM_MOST_CHANNELS);
	if (!wrong)
		wrong = bad(p, SIM_PAGE_SECTORS, 1, 1 << 16);
	if (!wrong)
		wrong = bad(p, SIM_PROGRAM_PAGES, 1, 1 << 10);
	if (!wrong)
		wrong = bad(p, SIM_BUFFER_SECTORS, p[SIM_PAGE_SECTORS] * p[SIM_PROGRAM_PAGES], 1ULL << 32);
	if (!wrong && p[SIM_UNIT_SECTORS])
		wrong = bad(p, SIM_OPEN_UNITS, 1, SIM_MOST_UNITS);
	if (!wrong && p[SIM_UNITS])
		wrong = ftl_wrong(p);
	return wrong;
}

static int bad_cloud(const sim_word *p)
{
	int wrong = bad(p, SIM_BASE_NS, 1, 1ULL << 32);

	if (!wrong)
		wrong = bad(p, SIM_PEAK_NS, 1, p[SIM_BASE_NS]);
	if (!wrong)
		wrong = bad(p, SIM_CREDITS, 1, 1ULL << 30);
	if (!wrong)
		wrong = bad(p, SIM_OPERATION_SECTORS, 1, 1 << 16);
	return wrong;
}

/* Shares from none to all that rise, and times that do not fall. */
static int bad_flushes(const sim_word *p)
{
	const sim_word *pair = p + SIM_FLUSH_AT;
	sim_word count = p[SIM_FLUSHES];
	unsigned int i;

	if (!count)
		return 0;
	if (count < 2 || count > SIM_MOST_FLUSHES || pair[0] || pair[2 * count - 2] != 1000000 || pair[2 * count - 1] > 1ULL << 32)
		return SIM_FLUSHES + 1;
	for (i = 1; i < count; i++)
		if (pair[2 * i] <= pair[2 * i - 2] || pair[2 * i + 1] < pair[2 * i - 1])
			return SIM_FLUSHES + 1;
	return 0;
}

static int wrong_in(const sim_word *words)
{
	int wrong = bad(words, SIM_KIND, 0, 3);

	if (!wrong)
		wrong = bad(words, SIM_SECTORS, 1, 1ULL << 40);
	if (!wrong)
		wrong = bad(words, SIM_DEPTH, 1, SIM_TAGS);
	if (!wrong)
		wrong = bad_flushes(words);
	if (!wrong && words[SIM_KIND] == 1)
		wrong = bad_arm(words);
	if (!wrong && words[SIM_KIND] == 2)
		wrong = bad_flash(words);
	if (!wrong && words[SIM_KIND] == 3)
		wrong = bad_cloud(words);
	return wrong;
}

static int has_units(const sim_word *words)
{
	return words[SIM_KIND] == 2 && words[SIM_UNITS];
}

static int has_zones(const sim_word *words)
{
	return words[SIM_KIND] == 1 && words[SIM_ZBC_ZONES];
}

struct zbc *sim_zbc(void *disk)
{
	struct disk *d = disk;

	return has_zones(d->p) ? &d->zbc : 0;
}

sim_word sim_bytes(const sim_word *words)
{
	sim_word tables = 0;

	if (!wrong_in(words))
		tables = has_units(words) ? ftl_bytes(words) : has_zones(words) ? zbc_bytes(words) : 0;
	return sizeof(struct disk) + tables;
}

int sim_start(void *disk, const sim_word *words)
{
	struct disk *d = disk;
	int wrong = wrong_in(words), i;

	for (i = 0; !wrong && i < SIM_WORDS; i++)
		d->p[i] = words[i];
	if (!wrong && has_units(words))
		ftl_start(&d->ftl, words, d + 1);
	if (!wrong && has_zones(words))
		zbc_start(&d->zbc, words, d + 1);
	return wrong;
}

int sim_broken(const void *disk)
{
	const struct disk *d = disk;

	return has_units(d->p) ? ftl_broken(&d->ftl) : 0;
}

void sim_submit(void *disk, unsigned int tag, int operation, int forced, sim_word first, sim_word sectors, sim_word now)
{
	struct disk *d = disk;
	struct request *r = &d->requests[tag];
	unsigned int part;

	sim_wake(d, now);
	now = d->now;
	r->came = now;
	for (part = 0; part < SIM_PARTS; part++)
		r->parts[part] = 0;
	r->first = d->p[SIM_START] + first;
	r->sectors = sectors;
	r->order = ++d->order;
	r->ready = now + d->p[SIM_COMMAND_NS];
	r->operation = (unsigned char)operation;
	r->forced = forced != 0;
	r->state = WAITS;
	d->queue[d->queued++] = tag;
	if (d->p[SIM_KIND] == 0)
		return end(d, tag, now);
	if (d->p[SIM_KIND] == 2)
		return end(d, tag, flash(d, r, now));
	if (d->p[SIM_KIND] == 3)
		return end(d, tag, cloud(d, r, now));
	d->last_command = now;
	if (r->order < barrier(d))
		admit(d, tag, now);
	begin(d, now);
}

sim_word sim_next(void *disk)
{
	struct disk *d = disk;
	sim_word at = d->ending ? d->ends[0].when : SIM_NEVER;

	return d->p[SIM_KIND] == 1 ? smaller(at, next_of_arm(d)) : at;
}

void sim_wake(void *disk, sim_word now)
{
	struct disk *d = disk;

	if (d->p[SIM_KIND] == 1)
		move(d, now);
	d->now = larger(d->now, now);
	if (d->p[SIM_KIND] == 2)
		drain(d, now);
}
