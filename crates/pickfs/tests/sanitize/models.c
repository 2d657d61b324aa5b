/*
 * Plays random requests to random disk models, good ones and ones with damaged parameters: "models FIRST_SEED COUNT". The models must
 * refuse what is out of range, and keep their rules; `make sanitize` compiles them so that wrong addresses and undefined behaviour end it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ftl.h"
#include "zbc.h"

#define REQUESTS 300
#define LARGEST_MODEL (64u << 20)

static sim_word state, words[SIM_WORDS];
static char busy[SIM_TAGS];
static sim_word came[SIM_TAGS];
static unsigned int under_way;

static sim_word any(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static sim_word below(sim_word bound)
{
	return bound ? any() % bound : 0;
}

/* Numbers at which arithmetic goes wrong are likelier than others. */
static sim_word odd(void)
{
	switch (below(8)) {
	case 0:
		return below(3);
	case 1:
		return below(64);
	case 2:
		return 1ull << below(64);
	case 3:
		return (1ull << below(64)) - 1;
	case 4:
		return 8 * below(512);
	case 5:
		return below(1000000);
	case 6:
		return below(100000000);
	default:
		return any();
	}
}

struct range {
	unsigned int word;
	sim_word from, to;
};

static const struct range OF_ALL[] = {
	{ SIM_KIND, 0, 3 }, { SIM_DEPTH, 1, 64 }, { SIM_COMMAND_NS, 1, 50000 }, { SIM_LINK_PS, 1, 2000000 },
	{ SIM_VOLATILE, 0, 1 }, { SIM_FLUSH_NS, 1, 100000 }, { SIM_TRIM_NS, 1, 100000 },
	/* a hard disk */
	{ SIM_TURN_NS, 8333333, 8333333 }, { SIM_HEADS, 1, 8 }, { SIM_HEAD_SWITCH_NS, 0, 1000000 },
	{ SIM_HEAD_SKEW_NS, 0, 1000000 }, { SIM_CYLINDER_SKEW_NS, 0, 1000000 }, { SIM_WRITE_SETTLE_NS, 0, 1000000 },
	{ SIM_AGE_LIMIT_NS, 1, 1000000000 }, { SIM_WRITE_CACHE, 0, 1 }, { SIM_CACHE_SECTORS, 64, 32768 },
	{ SIM_CACHE_SLOTS, 1, SIM_MOST_SLOTS }, { SIM_DESTAGE_WINDOW, 1, 64 }, { SIM_HIGH_WATER, 0, 63 },
	{ SIM_IDLE_NS, 0, 100000000 }, { SIM_SEGMENTS, 1, SIM_MOST_SEGMENTS }, { SIM_SEGMENT_SECTORS, 8, 4096 },
	{ SIM_AHEAD_SECTORS, 0, 8 },
	/* flash */
	{ SIM_DIES, 1, 16 }, { SIM_CHANNELS, 1, 8 }, { SIM_READ_NS, 50000, 50000 }, { SIM_PROGRAM_NS, 500000, 500000 },
	{ SIM_PROGRAM_PAGES, 1, 8 }, { SIM_CHANNEL_PS, 100000, 100000 }, { SIM_BUFFER_SECTORS, 256, 16384 },
	{ SIM_PROTECTED, 0, 1 }, { SIM_ERASE_NS, 3000000, 3000000 }, { SIM_ERASE_PROGRAMS, 1, 512 },
	{ SIM_QUEUED_FLUSH, 0, 1 }, { SIM_SUSPEND_NS, 0, 100000 }, { SIM_SLC_SECTORS, 0, 4096 },
	/* a cloud volume */
	{ SIM_BASE_NS, 1000000, 1000000 }, { SIM_PEAK_NS, 1, 1000000 }, { SIM_CREDITS, 1, 1000 },
	{ SIM_OPERATION_SECTORS, 1, 512 },
};

static void make_flash(void)
{
	sim_word in_block;

	words[SIM_PAGE_SECTORS] = 8ull << below(3);
	if (below(2)) {
		words[SIM_UNITS] = words[SIM_SECTORS] / FTL_UNIT_SECTORS;
		words[SIM_BLOCK_PROGRAMS] = 1 + below(32);
		in_block = words[SIM_BLOCK_PROGRAMS] * words[SIM_DIES] * words[SIM_PAGE_SECTORS] * words[SIM_PROGRAM_PAGES];
		words[SIM_BLOCKS] = words[SIM_SECTORS] / in_block + FTL_LEAST_SPARE + below(8);
		words[SIM_FILLED] = below(words[SIM_UNITS] + 1);
	} else if (below(3) == 0) {
		words[SIM_UNIT_SECTORS] = 8ull << below(10);
		words[SIM_OPEN_UNITS] = 1 + below(8);
	}
}

static void make_arm(void)
{
	unsigned int zone;

	words[SIM_SEEKS] = 2;
	words[SIM_SEEK_AT] = 1;
	words[SIM_SEEK_AT + 1] = 1000000;
	words[SIM_SEEK_AT + 2] = 100000;
	words[SIM_SEEK_AT + 3] = 12000000;
	words[SIM_ZONES] = 1 + below(4);
	for (zone = 0; zone < words[SIM_ZONES]; zone++) {
		words[SIM_ZONE_AT + 3 * zone] = zone * (words[SIM_SECTORS] / 4);
		words[SIM_ZONE_AT + 3 * zone + 1] = zone * 10000;
		words[SIM_ZONE_AT + 3 * zone + 2] = 500 + below(2000);
	}
	if (below(3) == 0) {
		words[SIM_BAND_SECTORS] = 256ull << below(6);
		words[SIM_LOG_SECTORS] = 4096 + words[SIM_BAND_SECTORS] * below(16);
		words[SIM_STREAM_SECTORS] = below(4096);
		words[SIM_CLEAN_IDLE_NS] = below(1000000000);
	} else if (below(3) == 0) {
		words[SIM_ZBC_SECTORS] = 2048ull << below(3);
		words[SIM_ZBC_ZONES] = words[SIM_SECTORS] / words[SIM_ZBC_SECTORS];
		words[SIM_ZBC_CONVENTIONAL] = below(4);
	}
}

/* A good model, most of whose like are then damaged. */
static void make_words(void)
{
	sim_word damages;
	unsigned int i;

	memset(words, 0, sizeof(words));
	for (i = 0; i < sizeof(OF_ALL) / sizeof(*OF_ALL); i++)
		words[OF_ALL[i].word] = OF_ALL[i].from + below(OF_ALL[i].to - OF_ALL[i].from + 1);
	words[SIM_SECTORS] = 4096ull << below(10);
	make_flash();
	make_arm();
	for (damages = below(4); damages; damages--)
		words[below(2) ? below(SIM_TABLES) : below(SIM_WORDS)] = odd();
}

/* Of the device: a caller asks for no sector beyond its end. */
static sim_word capacity(void)
{
	sim_word most = words[SIM_SECTORS], zoned = words[SIM_ZBC_ZONES] * words[SIM_ZBC_SECTORS];

	if (words[SIM_KIND] == 2 && words[SIM_UNITS] && words[SIM_UNITS] * FTL_UNIT_SECTORS < most)
		most = words[SIM_UNITS] * FTL_UNIT_SECTORS;
	if (words[SIM_KIND] == 1 && words[SIM_ZBC_ZONES] && zoned < most)
		most = zoned;
	return words[SIM_START] < most ? most - words[SIM_START] : 0;
}

static void command_zones(void *disk, sim_word sectors)
{
	sim_word first = 8 * below(sectors / 8);
	struct zbc *zbc = sim_zbc(disk);

	if (!zbc)
		return;
	zbc_do(zbc, (int)below(7), &first, 8 * below(64));
	zbc_readable(zbc, 8 * below(sectors / 8), below(4096));
}

static void submit(void *disk, sim_word sectors, sim_word now)
{
	static const int OPERATIONS[] = { SIM_READ, SIM_READ, SIM_WRITE, SIM_WRITE, SIM_WRITE, SIM_FLUSH, SIM_TRIM };
	unsigned int tag = (unsigned int)below(SIM_TAGS);
	int operation = OPERATIONS[below(7)];
	sim_word first = 8 * below(sectors / 8), length = 8 * (1 + below(64));

	while (busy[tag])
		tag = (tag + 1) % SIM_TAGS;
	if (first + length > sectors)
		length = sectors - first;
	if (operation == SIM_FLUSH)
		first = length = 0;
	busy[tag] = 1;
	came[tag] = now;
	under_way++;
	sim_submit(disk, tag, operation, operation == SIM_WRITE && below(8) == 0, first, length, now);
}

/* Modulo 2^64, as times of damaged models may overflow. */
static int parts_sum(const void *disk, unsigned int tag, sim_word time)
{
	const sim_word *parts = sim_parts(disk, tag);
	unsigned int part;

	for (part = 0; part < SIM_PARTS; part++)
		time -= parts[part];
	return time == 0;
}

/* 0, or what is wrong. */
static const char *collect(void *disk)
{
	struct sim_landing landing;
	unsigned int tag;
	sim_word when;
	int most;

	while (sim_done(disk, &tag, &when)) {
		if (tag >= SIM_TAGS || !busy[tag])
			return "a request is done that is not under way";
		if (!parts_sum(disk, tag, when - came[tag]))
			return "the parts of a request do not sum to its time";
		busy[tag] = 0;
		under_way--;
	}
	for (most = 2 * SIM_LANDINGS; sim_landed(disk, &landing); most--)
		if (!most)
			return "landings never end";
	return sim_broken(disk) ? "a rule of its tables is broken" : 0;
}

static const char *play(void *disk)
{
	sim_word now = 0, sectors = capacity(), next;
	const char *wrong = 0;
	int i;

	memset(busy, 0, sizeof(busy));
	under_way = 0;
	for (i = 0; !wrong && sectors > 16 && i < REQUESTS; i++) {
		if (below(3) && under_way < words[SIM_DEPTH] && under_way < SIM_TAGS) {
			command_zones(disk, sectors);
			submit(disk, sectors, now);
		} else {
			next = sim_next(disk);
			now = next != SIM_NEVER && next >= now && next - now < 1ull << 50 ? next : now + below(1000000);
			sim_wake(disk, now);
		}
		wrong = collect(disk);
	}
	return wrong;
}

int main(int count, char **given)
{
	sim_word seed = count > 2 ? strtoull(given[1], 0, 10) : 0, end = seed + (count > 2 ? strtoull(given[2], 0, 10) : 1000);
	unsigned int started = 0, refused = 0;

	for (; seed < end; seed++) {
		const char *wrong = 0;
		sim_word bytes;
		void *disk;

		state = (seed + 1) * 0x9E3779B97F4A7C15ull | 1;
		make_words();
		bytes = sim_bytes(words);
		disk = bytes > LARGEST_MODEL ? 0 : calloc(1, bytes);
		if (!disk)
			continue;
		if (sim_start(disk, words))
			refused++;
		else
			wrong = play(disk), started++;
		free(disk);
		if (wrong) {
			printf("seed %llu: %s\n", seed, wrong);
			return 1;
		}
	}
	printf("%u models were played to, %u were refused\n", started, refused);
	return !started || !refused;
}
