/* mix.h - the order of a mix of several sources: which source a position takes, and which of its
 * samples.
 *
 *   position of the mix ──course, quota──▶ (source, n) ──▶ epoch n / count ──sampler──▶ sample id
 *
 * Positions count from the start of the run: epoch x length + position in the epoch. Each source
 * has a permutation of its own for each of its own epochs; without shuffle it comes in order.
 *
 * Threads   A mix is immutable once made, but for its course (course.h): any number of threads. A
 *           cursor belongs to one.
 */
#ifndef STK_SAMPLER_MIX_H
#define STK_SAMPLER_MIX_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/error.h>

#include "loader/sampler/course.h"
#include "loader/sampler/sampler.h"
#include "loader/sampler/window.h"

/* What a data set says about its mix. */
struct stk_mix_plan {
    uint32_t source_count;
    uint64_t length; /* positions in an epoch */
    /* [source_count] the ids of source i are those below id_ends[i], and not below id_ends[i -
     * 1] */
    const uint64_t *id_ends;
    /* [source_count] what each source declares; block_count 0 = no blocks */
    const struct stk_blocks *blocks;
    struct stk_course course; /* from position 0 */
};

struct stk_mix_source {
    struct stk_sampler sampler; /* over its own ids, from 0; owns its window */
    uint64_t first_id;
};

struct stk_mix {
    uint32_t source_count;
    uint64_t length;
    bool shuffle;
    struct stk_mix_source *sources; /* [source_count] */
    struct stk_course course;       /* the plan's, and changes while it runs */
};

/* The source of an id that exists. */
uint32_t stk_mix_plan_source(const struct stk_mix_plan *plan, uint64_t id);

/* The source of an id that exists, of which another sample may take the place of a bad one. */
const struct stk_mix_source *stk_mix_source(const struct stk_mix *mix, uint64_t id);

/* Make the mix of a plan, which must outlive it. Returns 0 or STOKER_ENOMEM. */
int stk_mix_make(struct stk_mix *mix, const struct stk_mix_plan *plan, uint64_t seed, bool shuffle);
void stk_mix_free(struct stk_mix *mix); /* all zero is allowed */

/* The position of the run at a position of an epoch; UINT64_MAX if that exceeds 2^62. */
uint64_t stk_mix_position(const struct stk_mix *mix, uint64_t epoch, uint64_t position);

/* What one thread remembers from position to position. */
struct stk_mix_cursor;

/* Returns NULL without memory. It has room for frames of all legs that the course has now. */
struct stk_mix_cursor *stk_mix_cursor_make(const struct stk_mix *mix);
void stk_mix_cursor_free(struct stk_mix_cursor *cursor); /* NULL is allowed */

/* ids[i] = the sample at position first + i * stride of an epoch, for i < n. Returns 0;
 * STOKER_ELIMIT: the run is over 2^62 samples long; STOKER_ENOMEM: a leg that was added later needs
 * longer frames, or an epoch of a source a table of its blocks. Then *error is filled in. */
int stk_mix_ids(const struct stk_mix *mix, struct stk_mix_cursor *cursor, uint64_t epoch,
                uint64_t first, uint64_t stride, uint32_t n, uint64_t *ids, stoker_error *error);

#endif
