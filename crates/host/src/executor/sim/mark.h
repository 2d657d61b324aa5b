/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Marks in the stream of instructions, for profile.c: a long no-operation with a number in its displacement. It is executed
 * always, whether or not anything looks. The same numbers as in crates/system/src/sys/mark.rs, and those of the driver.
 */
#ifndef PICFS_MARK_H
#define PICFS_MARK_H

#define MARK_KIND(number) ((number) & 0xffffff00)
#define MARK_VALUE(number) ((number) & 0xff)

/* Of the agent: the clock of a phase. */
#define MARK_PHASE 0x50460000
enum { WORK_BEGINS = 1, WORK_ENDS, SYNC_BEGINS, SYNC_ENDS };
/* Of the driver: what the processor executes, as each has a pace of its own. */
#define MARK_PACE 0x50460100
enum { KERNEL, COMPRESSION, PROGRAM, PACES };
/* The number of processors that the one stands for at present. */
#define MARK_PROCESSORS 0x50460200
/* 1 when the processor falls asleep, 0 when it is woken. */
#define MARK_SLEEPS 0x50460300
/* The number of the program that runs from now on; 0 is the kernel. */
#define MARK_PROGRAM 0x50460400

#define MARK(kind, value) asm volatile(".byte 0x0f, 0x1f, 0x80\n\t.long %c0" : : "i"((kind) + (value)) : "memory")

/* The same for a value from 0 to MARK_MOST that is not known before: a mark has its number in itself. */
#define MARK_MOST 64
#define MARK_IF(kind, value) case value: MARK(kind, value); break;
#define MARK_EIGHT(kind, first) \
	MARK_IF(kind, first) MARK_IF(kind, first + 1) MARK_IF(kind, first + 2) MARK_IF(kind, first + 3) \
	MARK_IF(kind, first + 4) MARK_IF(kind, first + 5) MARK_IF(kind, first + 6) MARK_IF(kind, first + 7)
#define MARK_VARIABLE(kind, value) \
	switch (value) { \
	MARK_EIGHT(kind, 0) MARK_EIGHT(kind, 8) MARK_EIGHT(kind, 16) MARK_EIGHT(kind, 24) \
	MARK_EIGHT(kind, 32) MARK_EIGHT(kind, 40) MARK_EIGHT(kind, 48) MARK_EIGHT(kind, 56) MARK_IF(kind, 64) \
	}

#endif
