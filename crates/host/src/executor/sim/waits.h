/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef PICFS_WAITS_H
#define PICFS_WAITS_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include "model.h"

void waits_begin(void);
void programs_begin(void);
/* Of the 64 kinds of requests: the operation times 16, and the flags. */
int waits_kind(struct request *rq);
/* A request has come; interrupts are off, as below. */
void waits_began(void);
/* A request has ended, `took` nanoseconds after it came, which are of these parts of the model's; interrupts are off. */
void waits_ended(struct request *rq, u64 took, const sim_word *parts, int is_target);

#endif
