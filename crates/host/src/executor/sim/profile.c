// SPDX-License-Identifier: MIT
/*
 * A plugin of QEMU's that counts the instructions which a guest executes, by address, apart for each clock of a phase, each pace of
 * the guest's clock and each program (mark.h). It changes nothing that the guest could see. It is compiled without QEMU's headers, for its
 * plugin interface of version 1. With `out=FILE` it writes, when QEMU ends, for each bank a line
 * "clock NUMBER PART PACE PROCESSORS PROGRAM ASLEEP" and then lines "ADDRESS INSTRUCTIONS", addresses in hexadecimal. ASLEEP are
 * the instructions among them between falling asleep and waking, which the driver counts as idle.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "mark.h"

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void (*translated_cb)(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void (*executed_cb)(unsigned int, void *);
typedef void (*ended_cb)(qemu_plugin_id_t, void *);
extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, translated_cb);
extern void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, ended_cb, void *);
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, executed_cb, int, void *);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, executed_cb, int, void *);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
extern const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);

#define VISIBLE __attribute__((visibility("default")))
VISIBLE int qemu_plugin_version = 1;

/* A block of instructions that are translated together. */
struct block {
	uint64_t address, instructions;
	uint32_t number;
};

/* Blocks beyond these are counted as one, with the address 0. */
#define BLOCKS (1u << 20)
#define SLOTS (BLOCKS << 1)
static struct block slots[SLOTS];
static uint64_t addresses[BLOCKS];
static uint32_t blocks = 1, used;

/* What has a count of its own. Outside of all clocks is bank 0. */
struct bank {
	int clock, part, pace, processors, program;
	uint64_t asleep, *counts;
};

#define BANKS 16384
static struct bank banks[BANKS];
static int known = 1;
static struct bank *bank = banks;

static int clocks, part, pace, processors = 1, program;
static uint64_t executed, slept_at;
static const char *out;

struct mark {
	uint32_t number;
	struct block *block;
	/* From the mark to the block's end. */
	uint64_t rest;
};

static void *zeroed(size_t count, size_t bytes)
{
	void *memory = calloc(count, bytes);

	if (!memory) {
		fprintf(stderr, "profile: no memory\n");
		abort();
	}
	return memory;
}

static struct block *find(uint64_t address, uint64_t instructions)
{
	uint64_t hash = (address ^ instructions << 48) * 0x9E3779B97F4A7C15ull >> 40;
	struct block *block;

	if (used > SLOTS / 4 * 3) {
		block = zeroed(1, sizeof(*block));
		block->instructions = instructions;
		return block;
	}
	for (;; hash++) {
		block = &slots[hash % SLOTS];
		if (block->instructions && (block->address != address || block->instructions != instructions))
			continue;
		if (!block->instructions) {
			used++;
			block->address = address;
			block->instructions = instructions;
			block->number = blocks < BLOCKS ? blocks++ : 0;
			addresses[block->number] = block->number ? address : 0;
		}
		return block;
	}
}

/* By the clock, the pace and the program of now. Banks of earlier clocks come before. */
static struct bank *bank_of_now(void)
{
	struct bank wanted = { clocks, part, pace, processors, program, 0, NULL };
	int i;

	if (!part)
		return banks;
	for (i = known; i-- > 1 && banks[i].clock == clocks;)
		if (!memcmp(&banks[i], &wanted, offsetof(struct bank, program) + sizeof(wanted.program)))
			return &banks[i];
	if (known == BANKS) {
		fprintf(stderr, "profile: too many clocks\n");
		abort();
	}
	wanted.counts = zeroed(BLOCKS, sizeof(*wanted.counts));
	banks[known] = wanted;
	return &banks[known++];
}

static void ran(unsigned int processor, void *given)
{
	struct block *block = given;

	bank->counts[block->number] += block->instructions;
	executed += block->instructions;
}

static void marked(unsigned int processor, void *given)
{
	struct mark *mark = given;
	int value = MARK_VALUE(mark->number);
	struct bank *before = bank;

	switch (MARK_KIND(mark->number)) {
	case MARK_PHASE:
		clocks += value == WORK_BEGINS;
		part = value == WORK_BEGINS ? 1 : value == SYNC_BEGINS ? 2 : 0;
		break;
	case MARK_PACE:
		pace = value;
		break;
	case MARK_PROCESSORS:
		processors = value;
		break;
	case MARK_PROGRAM:
		program = value;
		break;
	case MARK_SLEEPS:
		if (value)
			slept_at = executed - mark->rest;
		else if (slept_at)
			bank->asleep += executed - mark->rest - slept_at;
		return;
	}
	bank = bank_of_now();
	/* The whole block was counted where it began. */
	before->counts[mark->block->number] -= mark->rest;
	bank->counts[mark->block->number] += mark->rest;
}

static int is_mark(const struct qemu_plugin_insn *instruction, uint32_t *number)
{
	static const uint8_t operation[] = { 0x0f, 0x1f, 0x80 };
	const uint8_t *bytes = qemu_plugin_insn_data(instruction);

	if (qemu_plugin_insn_size(instruction) != sizeof(operation) + sizeof(*number))
		return 0;
	memcpy(number, bytes + sizeof(operation), sizeof(*number));
	return !memcmp(bytes, operation, sizeof(operation)) && *number >> 16 == MARK_PHASE >> 16;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t i, instructions = qemu_plugin_tb_n_insns(tb);
	struct block *block = find(qemu_plugin_tb_vaddr(tb), instructions);

	qemu_plugin_register_vcpu_tb_exec_cb(tb, ran, 0, block);
	for (i = 0; i < instructions; i++) {
		struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(tb, i);
		struct mark *mark;
		uint32_t number;

		if (!is_mark(instruction, &number))
			continue;
		mark = zeroed(1, sizeof(*mark));
		*mark = (struct mark){ number, block, instructions - i };
		qemu_plugin_register_vcpu_insn_exec_cb(instruction, marked, 0, mark);
	}
}

static void ended(qemu_plugin_id_t id, void *unused)
{
	FILE *file = fopen(out, "w");
	int b, wrong;
	uint32_t i;

	if (!file) {
		perror(out);
		return;
	}
	for (b = 1; b < known; b++) {
		struct bank *of = &banks[b];

		fprintf(file, "clock %d %d %d %d %d %llu\n", of->clock, of->part, of->pace, of->processors,
			of->program, (unsigned long long)of->asleep);
		for (i = 0; i < blocks; i++)
			if (of->counts[i])
				fprintf(file, "%llx %llu\n", (unsigned long long)addresses[i], (unsigned long long)of->counts[i]);
	}
	fprintf(file, "end\n");
	wrong = ferror(file);
	if (fclose(file) || wrong)
		perror(out);
}

VISIBLE int qemu_plugin_install(qemu_plugin_id_t id, const void *machine, int words, char **word)
{
	int i;

	for (i = 0; i < words; i++)
		if (!strncmp(word[i], "out=", 4))
			out = strdup(word[i] + 4);
	if (!out)
		return -1;
	banks[0].counts = zeroed(BLOCKS, sizeof(*banks[0].counts));
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, ended, NULL);
	return 0;
}
