/* quota.h - which of several sources each position of an order takes, so that after every position
 * each source has had its share within one sample.
 *
 *   weights ──▶ parts (integers), sum ──▶ frames of positions ──▶ source at each position
 *
 * After p positions source i is due p x part[i] / sum samples. It must have had at least the floor
 * of that, and at most the ceiling. So its sample j has a window of positions, the first at which
 * the ceiling reaches j to the first at which the floor does:
 *
 *   positions      1 2 3 4 5 6 7 8 9 10
 *   part 3 of 10   [1 1 1 1]               sample 1: 1..4
 *                        [2 2 2 2]         sample 2: 4..7
 *                              [3 3 3 3]   sample 3: 7..10
 *
 * Positions can be given to samples so that each lies in its window: of the positions a + 1 to b,
 * the windows that lie wholly in them belong to at most sum_i max(0, floor(b w_i) - ceil(a w_i)) <=
 * b - a samples, which is Hall's condition for windows. (Tijdeman, "The chairman assignment
 * problem", Discrete Mathematics 32, 1980, has a bound below 1 for every set of shares; Steiner and
 * Yeomans, "Level schedules for mixed-model, just-in-time processes", Management Science 39, 1993,
 * the windows.) In a stretch of positions whose beginning and end are consistent with that, taking
 * the sample with the earliest end of its window at each position keeps them all (Glover, "Maximum
 * matching in a convex bipartite graph", Naval Research Logistics Quarterly 14, 1967).
 *
 * That rule alone would have to be followed from position 0. So positions are cut into frames as
 * long as the longest window, and what has been taken at the edge between two frames is computed
 * from the edge's position alone. At an edge each source has at most one window that reaches
 * across. F of these samples must be taken before the edge, F = the sum of the fractions that are
 * due. What comes after the edge demands for every b that at least a number of those due by b have
 * been taken; what lies before it limits the number of young ones. Both are limits on nested sets,
 * so a choice that meets both is found by going through b in order and, when a demand forces it,
 * taking the oldest sample that is due by then; at the end the oldest of the rest until there are
 * F. Some choice meets both, since positions can be given to all samples; an exchange argument
 * turns it into this one. No window reaches across two edges, so a frame between two such edges can
 * be filled.
 *
 * So the source of any position follows from its frame alone. All numbers are integers: the same on
 * every machine.
 *
 * Threads   A quota is immutable once made: any number of threads. A frame belongs to one thread.
 */
#ifndef STK_SAMPLER_QUOTA_H
#define STK_SAMPLER_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

enum { STK_QUOTA_SOURCES_MAX = 4096, STK_QUOTA_RATIO_MAX = 1 << 20, STK_QUOTA_FRAME_MIN = 64 };

/* The share of one source, and what steps through its windows need. */
struct stk_quota_share {
    uint64_t part;        /* in 1 / sum; 0 = the source does not come */
    uint64_t step;        /* sum / part: positions per sample, rounded down */
    uint64_t step_rest;   /* sum % part */
    uint64_t frame_whole; /* samples due in a frame, rounded down */
    uint64_t frame_rest;  /* and the rest, in 1 / sum */
};

struct stk_quota {
    struct stk_quota_share *shares; /* [source_count] */
    uint64_t sum;                   /* all parts together, <= 2^62 */
    uint32_t source_count;
    uint32_t frame_length; /* positions: the longest window, at least STK_QUOTA_FRAME_MIN */
};

/* What is wrong with weights. */
enum stk_quota_fault {
    STK_QUOTA_FINE,
    STK_QUOTA_NEGATIVE, /* or not finite */
    STK_QUOTA_ALL_ZERO,
    STK_QUOTA_TOO_SMALL /* above 0, and below 1 / STK_QUOTA_RATIO_MAX of the sum */
};

/* Check `count` weights; *index becomes that of the first wrong one. */
enum stk_quota_fault stk_quota_check(const double *weights, uint32_t count, uint32_t *index);

/* Make the quota of 1..STK_QUOTA_SOURCES_MAX checked weights. If all are decimal numbers of up to 9
 * digits behind the point the parts are exactly in their ratio, otherwise to 2^-60 of the sum.
 * Returns 0 or STOKER_ENOMEM. */
int stk_quota_make(struct stk_quota *quota, const double *weights, uint32_t count);
void stk_quota_free(struct stk_quota *quota); /* all zero is allowed */

/* What has been taken of a source at an edge between frames. */
struct stk_quota_edge {
    uint64_t whole; /* samples due, rounded down */
    uint64_t rest;  /* and the rest, in 1 / sum */
    bool taken;     /* also the sample whose window reaches across */
};

/* The frame that a thread works in. */
struct stk_quota_frame {
    const struct stk_quota *quota; /* NULL = none yet */
    uint64_t number;
    struct stk_quota_edge *begin; /* [source_count] the edge before it */
    struct stk_quota_edge *end;   /* [source_count] the edge after it */
    uint16_t *sources;            /* [frame_length] the source at each position */
    uint32_t *ranks; /* [frame_length] how many of that source the frame has before it */
    struct stk_quota_plan *plan; /* memory while a frame is filled */
    void *memory;                /* all of the above */
    uint32_t source_room;        /* for that many sources */
    uint32_t length_room;        /* and positions */
};

/* Take memory for frames of this quota, if there is too little. Returns 0 or STOKER_ENOMEM: then
 * the frame is as before. */
int stk_quota_frame_reserve(struct stk_quota_frame *frame, const struct stk_quota *quota);
void stk_quota_frame_free(struct stk_quota_frame *frame); /* all zero is allowed */

/* Fill in frame `number` of a quota that memory was taken for: positions number x frame_length and
 * on, all below 2^62. */
void stk_quota_frame_seek(struct stk_quota_frame *frame, const struct stk_quota *quota,
                          uint64_t number);

/* Samples of a source that precede the frame. */
static inline uint64_t stk_quota_before(const struct stk_quota_frame *frame, uint32_t source)
{
    return frame->begin[source].whole + (frame->begin[source].taken ? 1 : 0);
}

#endif
