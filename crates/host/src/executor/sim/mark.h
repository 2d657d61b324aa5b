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
/* Of the driver: 1 while clocks go slower because the kernel compresses, else 0. */
#define MARK_COMPRESSES 0x50460100
/* The number of processors that the one stands for at present. */
#define MARK_PROCESSORS 0x50460200
/* 1 when the processor falls asleep, 0 when it is woken. */
#define MARK_SLEEPS 0x50460300

#define MARK(kind, value) asm volatile(".byte 0x0f, 0x1f, 0x80\n\t.long %c0" : : "i"((kind) + (value)) : "memory")

#endif
