/* course.h - the weights of a mix from its first position on: legs, each with weights of its own.
 *
 *   positions   0 ........ first of leg 1 ........ first of leg 2 ....
 *               | leg 0: w0               | leg 1: w1             | leg 2: w2
 *
 * A leg counts shares from its own first position, and knows what each source has had before it.
 *
 * Threads   stk_course_add() belongs to one thread at a time; any number of threads look up
 *           positions meanwhile. A leg never changes once it is there.
 */
#ifndef STK_SAMPLER_COURSE_H
#define STK_SAMPLER_COURSE_H

#include <stdatomic.h>
#include <stdint.h>

#include "loader/sampler/quota.h"

enum { STK_COURSE_CHANGES_MAX = 65536 };

struct stk_course_leg {
    uint64_t first;   /* position */
    uint64_t *before; /* [source_count] samples of each source before it */
    double *weights;  /* [source_count] as given */
    struct stk_quota quota;
};

/* Legs in order. When the array is full a larger one takes its place; readers may still look into
 * the old one. */
struct stk_course_table {
    struct stk_course_table *older; /* NULL = none */
    uint32_t room;
    const struct stk_course_leg *legs[]; /* [room] */
};

struct stk_course {
    uint32_t source_count;
    uint32_t borrowed; /* the first legs, which another course owns */
    /* The table is stored before the count, with release; readers load the count with acquire, and
     * then the table, which holds at least as many legs. */
    _Atomic(struct stk_course_table *) table;
    _Atomic uint32_t leg_count;
};

/* Make a course without legs: for 1..STK_QUOTA_SOURCES_MAX sources. */
void stk_course_init(struct stk_course *course, uint32_t source_count);

/* Make a course that begins with the legs of another one, which must outlive it. Returns 0 or
 * STOKER_ENOMEM. */
int stk_course_continue(struct stk_course *course, const struct stk_course *from);
void stk_course_free(struct stk_course *course); /* all zero is allowed */

/* Add a leg from position `first` on, with checked weights: 0 for the first leg, above that of the
 * last leg for others, and at most 2^62. Returns 0, STOKER_ELIMIT (too many) or STOKER_ENOMEM. */
int stk_course_add(struct stk_course *course, uint64_t first, const double *weights);

/* Leg `index` < leg_count. */
const struct stk_course_leg *stk_course_leg(const struct stk_course *course, uint32_t index);
uint32_t stk_course_leg_count(const struct stk_course *course);

/* The leg of a position; *end becomes the first position of the next one, UINT64_MAX without
 * one. */
const struct stk_course_leg *stk_course_at(const struct stk_course *course, uint64_t position,
                                           uint64_t *end);

/* counts[i] = samples of source i before `position` <= 2^62. Returns 0 or STOKER_ENOMEM. */
int stk_course_counts(const struct stk_course *course, uint64_t position, uint64_t *counts);

#endif
