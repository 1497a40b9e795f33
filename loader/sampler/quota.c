/* quota.c - see quota.h.
 *
 * Points at which a source's due samples are whole numbers are walked through without division.
 * `at` is such a point in positions from the edge, rounded up, and `over` by how much it was
 * rounded, in 1 / part of a position:
 *
 *   point z / part positions from it ──▶ at = ceil(z / part), over = at x part - z; then z + sum
 */
#include "loader/sampler/quota.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "loader/base/memory/memory.h"

#include <stoker/error.h>

__extension__ typedef unsigned __int128 wide;

enum { SUM_BITS = 62, DIGITS_MAX = 9, NONE = 0 };

/* ---- parts ------------------------------------------------------------------------------- */

enum stk_quota_fault stk_quota_check(const double *weights, uint32_t count, uint32_t *index)
{
    double sum = 0.0;
    for (*index = 0; *index < count; ++*index) {
        if (!isfinite(weights[*index]) || weights[*index] < 0.0)
            return STK_QUOTA_NEGATIVE;
        sum += weights[*index] / count; /* cannot overflow */
    }
    if (sum <= 0.0)
        return STK_QUOTA_ALL_ZERO;
    for (*index = 0; *index < count; ++*index)
        if (weights[*index] > 0.0 && weights[*index] / count < sum / STK_QUOTA_RATIO_MAX)
            return STK_QUOTA_TOO_SMALL;
    return STK_QUOTA_FINE;
}

/* Returns true if weight x scale is a whole number, but for the rounding of a decimal number to a
 * double. */
static bool is_whole(double weight, double scale, uint64_t *whole)
{
    const double scaled = weight * scale;
    if (!(scaled <= (double)(UINT64_C(1) << 49)))
        return false;
    const double nearest = rint(scaled);
    *whole = (uint64_t)nearest;
    return fabs(scaled - nearest) <= nearest * 0x1p-51;
}

static bool take_decimals(struct stk_quota *quota, const double *weights)
{
    double scale = 1.0;
    for (int digits = 0; digits <= DIGITS_MAX; digits++, scale *= 10.0) {
        uint32_t i = 0;
        while (i < quota->source_count && is_whole(weights[i], scale, &quota->shares[i].part))
            i++;
        if (i == quota->source_count)
            return true;
    }
    return false;
}

static uint64_t cut_all(struct stk_quota *quota, const double *weights, int shift)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < quota->source_count; i++) {
        quota->shares[i].part = (uint64_t)ldexp(weights[i], shift);
        sum += quota->shares[i].part;
    }
    return sum;
}

/* Parts are weights x 2^s, cut, with the largest s for which they surely add up to at most 2^62: as
 * in alias.c. */
static void take_bits(struct stk_quota *quota, const double *weights)
{
    double most = 0.0;
    int exponent;
    int shift = SUM_BITS;
    for (uint32_t i = 0; i < quota->source_count; i++)
        most = weights[i] > most ? weights[i] : most;
    (void)frexp(most, &exponent);
    for (uint32_t rest = quota->source_count - 1; rest > 0; rest /= 2)
        shift--;
    shift -= exponent;
    const uint64_t sum = cut_all(quota, weights, shift) + quota->source_count;
    int more = 0;
    while (sum << more <= (UINT64_C(1) << (SUM_BITS - 1)))
        more++;
    (void)cut_all(quota, weights, shift + more);
}

static void set_steps(struct stk_quota *quota)
{
    uint64_t least = UINT64_MAX;
    quota->sum = 0;
    for (uint32_t i = 0; i < quota->source_count; i++) {
        const uint64_t part = quota->shares[i].part;
        quota->sum += part;
        least = part > 0 && part < least ? part : least;
    }
    assert(quota->sum > 0);
    const uint64_t longest = (quota->sum - 1) / least + 1;
    assert(longest <= 2 * (uint64_t)STK_QUOTA_RATIO_MAX); /* the weights were checked */
    quota->frame_length = longest > STK_QUOTA_FRAME_MIN ? (uint32_t)longest : STK_QUOTA_FRAME_MIN;
    for (uint32_t i = 0; i < quota->source_count; i++) {
        struct stk_quota_share *share = &quota->shares[i];
        const wide due = (wide)share->part * quota->frame_length;
        share->frame_whole = (uint64_t)(due / quota->sum);
        share->frame_rest = (uint64_t)(due % quota->sum);
        share->step = share->part == 0 ? 0 : quota->sum / share->part;
        share->step_rest = share->part == 0 ? 0 : quota->sum % share->part;
    }
}

int stk_quota_make(struct stk_quota *quota, const double *weights, uint32_t count)
{
    assert(count >= 1);
    assert(count <= STK_QUOTA_SOURCES_MAX);
    *quota = (struct stk_quota){ .source_count = count };
    quota->shares = stk_calloc(count, sizeof(quota->shares[0]));
    if (quota->shares == NULL)
        return STOKER_ENOMEM;
    if (!take_decimals(quota, weights))
        take_bits(quota, weights);
    set_steps(quota);
    return STOKER_OK;
}

void stk_quota_free(struct stk_quota *quota)
{
    stk_free(quota->shares);
    *quota = (struct stk_quota){ .shares = NULL };
}

/* ---- points of a source -------------------------------------------------------------------- */

struct point {
    uint64_t at;   /* positions from the edge, rounded up */
    uint64_t over; /* by which it was rounded, in 1 / part */
};

static struct point point_at(const struct stk_quota_share *share, uint64_t z)
{
    const uint64_t at = z / share->part + (z % share->part != 0 ? 1 : 0);
    return (struct point){ .at = at, .over = at * share->part - z };
}

static struct point point_after(const struct stk_quota_share *share, struct point point)
{
    if (point.over >= share->step_rest)
        return (struct point){ point.at + share->step, point.over - share->step_rest };
    return (struct point){ point.at + share->step + 1,
                           point.over + share->part - share->step_rest };
}

/* The first position of a window that begins at a point, and the last of one that ends there. */
static uint64_t first_behind(struct point point)
{
    return point.over == 0 ? point.at + 1 : point.at;
}

/* The next point after an edge. */
static struct point point_after_edge(const struct stk_quota *quota,
                                     const struct stk_quota_share *share,
                                     const struct stk_quota_edge *edge)
{
    return point_at(share, edge->rest == 0 ? 0 : quota->sum - edge->rest);
}

/* ---- memory -------------------------------------------------------------------------------- */

/* Positions of a frame count from 1 here. Sources in lists are 1 + their number; NONE ends a
 * list. */
struct stk_quota_plan {
    uint16_t *due;       /* [frame_length + 1] samples whose windows end at a position: a list */
    uint16_t *starting;  /* [frame_length + 1] sources whose next window begins there: a list */
    uint32_t *inner;     /* [frame_length + 1] windows beyond an edge that end there */
    uint64_t *due_words; /* one bit per position whose list `due` is not empty */
    uint16_t *next_due;  /* [source_count] */
    uint16_t *next_starting; /* [source_count] */
    uint32_t *left;          /* [source_count] samples that the frame still has to begin */
    uint32_t *taken;         /* [source_count] samples that it has had */
    struct point *point;     /* [source_count] where the next window begins */
    bool *waiting;           /* [source_count] it has a sample in a list `due` */
    uint64_t *age;           /* [source_count] positions of the window before the edge */
    uint16_t *oldest;        /* [source_count] heap by age */
};

struct layout {
    char *base;
    size_t bytes;
};

static void *place_array(struct layout *layout, size_t count, size_t bytes)
{
    void *at = layout->base == NULL ? NULL : layout->base + layout->bytes;
    layout->bytes += (count * bytes + 15) / 16 * 16;
    return at;
}

static void place_all(struct layout *layout, struct stk_quota_frame *frame, uint32_t sources,
                      uint32_t length)
{
    struct stk_quota_plan unused = { 0 };
    struct stk_quota_plan *plan = place_array(layout, 1, sizeof(*plan));
    frame->plan = plan;
    plan = plan == NULL ? &unused : plan;
    frame->begin = place_array(layout, sources, sizeof(frame->begin[0]));
    frame->end = place_array(layout, sources, sizeof(frame->end[0]));
    frame->ranks = place_array(layout, length, sizeof(frame->ranks[0]));
    frame->sources = place_array(layout, length, sizeof(frame->sources[0]));
    plan->due = place_array(layout, length + 1, sizeof(plan->due[0]));
    plan->starting = place_array(layout, length + 1, sizeof(plan->starting[0]));
    plan->inner = place_array(layout, length + 1, sizeof(plan->inner[0]));
    plan->due_words = place_array(layout, length / 64 + 1, sizeof(plan->due_words[0]));
    plan->next_due = place_array(layout, sources, sizeof(plan->next_due[0]));
    plan->next_starting = place_array(layout, sources, sizeof(plan->next_starting[0]));
    plan->left = place_array(layout, sources, sizeof(plan->left[0]));
    plan->taken = place_array(layout, sources, sizeof(plan->taken[0]));
    plan->point = place_array(layout, sources, sizeof(plan->point[0]));
    plan->waiting = place_array(layout, sources, sizeof(plan->waiting[0]));
    plan->age = place_array(layout, sources, sizeof(plan->age[0]));
    plan->oldest = place_array(layout, sources, sizeof(plan->oldest[0]));
}

int stk_quota_frame_reserve(struct stk_quota_frame *frame, const struct stk_quota *quota)
{
    if (frame->source_room >= quota->source_count && frame->length_room >= quota->frame_length)
        return STOKER_OK;
    struct stk_quota_frame made = { .source_room = quota->source_count,
                                    .length_room = quota->frame_length };
    struct layout layout = { .base = NULL };
    place_all(&layout, &made, made.source_room, made.length_room);
    layout.base = stk_calloc(layout.bytes, 1);
    if (layout.base == NULL)
        return STOKER_ENOMEM;
    made.memory = layout.base;
    layout.bytes = 0;
    place_all(&layout, &made, made.source_room, made.length_room);
    stk_quota_frame_free(frame);
    *frame = made;
    return STOKER_OK;
}

void stk_quota_frame_free(struct stk_quota_frame *frame)
{
    stk_free(frame->memory);
    *frame = (struct stk_quota_frame){ .memory = NULL };
}

/* ---- the edge ------------------------------------------------------------------------------- */

/* The heap has the oldest sample first; of two of an age, that of the lower source. */
static bool is_older(const struct stk_quota_plan *plan, uint16_t a, uint16_t b)
{
    return plan->age[a] != plan->age[b] ? plan->age[a] > plan->age[b] : a < b;
}

static void heap_add(struct stk_quota_plan *plan, uint32_t *size, uint16_t source)
{
    uint32_t at = (*size)++;
    while (at > 0 && is_older(plan, source, plan->oldest[(at - 1) / 2])) {
        plan->oldest[at] = plan->oldest[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    plan->oldest[at] = source;
}

static uint16_t heap_take(struct stk_quota_plan *plan, uint32_t *size)
{
    assert(*size > 0);
    const uint16_t first = plan->oldest[0];
    const uint16_t last = plan->oldest[--*size];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= *size)
            break;
        if (child + 1 < *size && is_older(plan, plan->oldest[child + 1], plan->oldest[child]))
            child++;
        if (!is_older(plan, plan->oldest[child], last))
            break;
        plan->oldest[at] = plan->oldest[child];
        at = child;
    }
    plan->oldest[at] = last;
    return first;
}

/* Enter the windows that reach across the edge by their ends, and count the later ones by theirs.
 * Returns the fractions that are due, summed: samples to take before the edge. *last becomes the
 * last end of a window that reaches across. */
static uint32_t survey_edge(const struct stk_quota *quota, const struct stk_quota_edge *edge,
                            struct stk_quota_plan *plan, uint32_t *last)
{
    wide rests = 0;
    *last = 0;
    for (uint32_t i = 0; i < quota->source_count; i++) {
        const struct stk_quota_share *share = &quota->shares[i];
        rests += edge[i].rest;
        if (share->part == 0 || edge[i].rest == 0)
            continue;
        plan->age[i] = point_at(share, edge[i].rest).at;
        plan->point[i] = point_at(share, quota->sum - edge[i].rest);
        assert(plan->point[i].at <= quota->frame_length);
        const uint32_t end = (uint32_t)plan->point[i].at;
        plan->next_due[i] = plan->due[end];
        plan->due[end] = (uint16_t)(i + 1);
        *last = end > *last ? end : *last;
    }
    for (uint32_t i = 0; i < quota->source_count; i++) {
        const struct stk_quota_share *share = &quota->shares[i];
        if (share->part == 0)
            continue;
        struct point point = edge[i].rest == 0 ? (struct point){ 0, 0 } : plan->point[i];
        for (point = point_after(share, point); point.at <= *last;
             point = point_after(share, point))
            plan->inner[point.at]++;
    }
    assert(rests % quota->sum == 0);
    return (uint32_t)(rests / quota->sum);
}

/* Choose which of the samples whose windows reach across are taken before the edge: see quota.h. */
static void settle_edge(const struct stk_quota *quota, struct stk_quota_edge *edge,
                        struct stk_quota_plan *plan)
{
    uint32_t last;
    uint32_t waiting = 0; /* in the heap */
    uint32_t taken = 0;
    uint64_t ending = 0; /* windows that have ended, of samples taken before the edge, too */
    memset(plan->inner, 0, (quota->frame_length + (size_t)1) * sizeof(plan->inner[0]));
    for (uint32_t i = 0; i < quota->source_count; i++)
        edge[i].taken = false;
    const uint32_t wanted = survey_edge(quota, edge, plan, &last);
    for (uint32_t at = 1; at <= last; at++) {
        ending += plan->inner[at];
        for (uint16_t next = plan->due[at]; next != NONE; next = plan->next_due[next - 1]) {
            heap_add(plan, &waiting, (uint16_t)(next - 1));
            ending++;
        }
        plan->due[at] = NONE;
        for (; ending > at + (uint64_t)taken; taken++)
            edge[heap_take(plan, &waiting)].taken = true;
    }
    assert(taken <= wanted);
    for (; taken < wanted; taken++)
        edge[heap_take(plan, &waiting)].taken = true;
}

static void edge_at(const struct stk_quota *quota, uint64_t position, struct stk_quota_edge *edge)
{
    for (uint32_t i = 0; i < quota->source_count; i++) {
        const wide due = (wide)position * quota->shares[i].part;
        edge[i].whole = (uint64_t)(due / quota->sum);
        edge[i].rest = (uint64_t)(due % quota->sum);
    }
}

static void edge_after(const struct stk_quota *quota, const struct stk_quota_edge *from,
                       struct stk_quota_edge *to)
{
    for (uint32_t i = 0; i < quota->source_count; i++) {
        const uint64_t rest = from[i].rest + quota->shares[i].frame_rest;
        const bool carry = rest >= quota->sum;
        to[i].whole = from[i].whole + quota->shares[i].frame_whole + (carry ? 1 : 0);
        to[i].rest = carry ? rest - quota->sum : rest;
    }
}

/* ---- the frame ------------------------------------------------------------------------------ */

/* A source has a sample that may come from now on, until position `end`. */
static void offer(struct stk_quota_plan *plan, uint32_t source, uint64_t end)
{
    plan->next_due[source] = plan->due[end];
    plan->due[end] = (uint16_t)(source + 1);
    plan->due_words[end / 64] |= UINT64_C(1) << end % 64;
    plan->waiting[source] = true;
}

/* Note when the source's next window begins, if the frame has another sample of it. */
static void await(struct stk_quota_plan *plan, uint32_t source)
{
    if (plan->left[source] == 0)
        return;
    const uint64_t start = first_behind(plan->point[source]);
    plan->next_starting[source] = plan->starting[start];
    plan->starting[start] = (uint16_t)(source + 1);
}

/* The source's next window has begun. */
static void open_window(const struct stk_quota *quota, struct stk_quota_plan *plan, uint32_t source)
{
    plan->left[source]--;
    plan->point[source] = point_after(&quota->shares[source], plan->point[source]);
    const uint64_t end = plan->point[source].at;
    offer(plan, source, end < quota->frame_length ? end : quota->frame_length);
    await(plan, source);
}

/* Enter what the frame has to begin with: the last source first, so that the first one is found
 * first. */
static void begin_sources(const struct stk_quota *quota, const struct stk_quota_frame *frame)
{
    struct stk_quota_plan *plan = frame->plan;
    for (uint32_t i = quota->source_count; i-- > 0;) {
        const struct stk_quota_edge *edge = &frame->begin[i];
        const uint64_t samples =
            frame->end[i].whole + (frame->end[i].taken ? 1 : 0) - stk_quota_before(frame, i);
        plan->taken[i] = 0;
        plan->waiting[i] = false;
        plan->left[i] = (uint32_t)samples;
        if (samples == 0)
            continue;
        plan->point[i] = point_after_edge(quota, &quota->shares[i], edge);
        if (edge->rest > 0 && !edge->taken) {
            plan->left[i]--;
            offer(plan, i, plan->point[i].at);
        }
        await(plan, i);
    }
}

/* Open the windows that begin at a position. If a source still waits, its sample must come at this
 * position: then its next window opens after that. Returns 1 + that source, or NONE. */
static uint16_t open_windows(const struct stk_quota *quota, struct stk_quota_plan *plan,
                             uint32_t position)
{
    uint16_t late = NONE;
    uint16_t next = plan->starting[position];
    plan->starting[position] = NONE;
    while (next != NONE) {
        const uint16_t source = (uint16_t)(next - 1);
        next = plan->next_starting[source];
        if (plan->waiting[source]) {
            assert(late == NONE);
            late = (uint16_t)(source + 1);
        } else {
            open_window(quota, plan, source);
        }
    }
    return late;
}

/* The source of the sample that is due first. */
static uint16_t take_first(struct stk_quota_plan *plan, uint32_t position)
{
    uint32_t word = position / 64;
    assert((plan->due_words[word] & ((UINT64_C(1) << position % 64) - 1)) == 0); /* none is late */
    while (plan->due_words[word] == 0)
        word++;
    const uint32_t end = word * 64 + (uint32_t)__builtin_ctzll(plan->due_words[word]);
    const uint16_t source = (uint16_t)(plan->due[end] - 1);
    plan->due[end] = plan->next_due[source];
    if (plan->due[end] == NONE)
        plan->due_words[word] &= ~(UINT64_C(1) << end % 64);
    plan->waiting[source] = false;
    return source;
}

static void fill_frame(const struct stk_quota *quota, struct stk_quota_frame *frame)
{
    struct stk_quota_plan *plan = frame->plan;
    begin_sources(quota, frame);
    for (uint32_t position = 1; position <= quota->frame_length; position++) {
        const uint16_t late = open_windows(quota, plan, position);
        const uint16_t source = take_first(plan, position);
        assert(late == NONE || late == source + 1);
        frame->sources[position - 1] = source;
        frame->ranks[position - 1] = plan->taken[source]++;
        if (late != NONE)
            open_window(quota, plan, source);
    }
}

void stk_quota_frame_seek(struct stk_quota_frame *frame, const struct stk_quota *quota,
                          uint64_t number)
{
    assert(frame->source_room >= quota->source_count);
    assert(frame->length_room >= quota->frame_length);
    if (frame->quota == quota && frame->number == number)
        return;
    if (frame->quota == quota && frame->number + 1 == number) {
        struct stk_quota_edge *edge = frame->begin;
        frame->begin = frame->end;
        frame->end = edge;
    } else {
        edge_at(quota, number * quota->frame_length, frame->begin);
        settle_edge(quota, frame->begin, frame->plan);
    }
    edge_after(quota, frame->begin, frame->end);
    settle_edge(quota, frame->end, frame->plan);
    frame->quota = quota;
    frame->number = number;
    fill_frame(quota, frame);
}
