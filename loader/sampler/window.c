/* window.c - see window.h. */
#include "loader/sampler/window.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stoker/error.h>

#include "loader/base/memory/memory.h"
#include "loader/base/rng.h"
#include "loader/sampler/sampler.h"

/* These keep the keys of blocks, runs and the short block's place apart from others. */
#define BLOCKS_STREAM UINT64_C(0x626C6F636B732121) /* "blocks!!" */
#define RUNS_STREAM   UINT64_C(0x72756E7321212121) /* "runs!!!!" */
#define PLACE_STREAM  UINT64_C(0x706C616365212121) /* "place!!!" */

#define NO_EPOCH UINT64_MAX

enum { HASHED_MAX = 65536 };

__extension__ typedef unsigned __int128 wide;

struct stk_window_line {
    struct stk_window_line *next;
    uint64_t epoch;                  /* NO_EPOCH = none yet */
    uint32_t users;                  /* orders that hold it */
    struct stk_sampler_order blocks; /* keys of their permutation */
    uint64_t short_place;            /* where the short block begins; of equal blocks */
    uint64_t begins[]; /* [block_count] where each block of the line begins; of unequal ones */
};

struct stk_window {
    struct stk_blocks blocks;
    bool equal;                  /* all blocks but the last have block_samples samples */
    uint64_t short_samples;      /* of the last one, if it has fewer; else 0 */
    struct stk_sampler permuted; /* blocks; without the short one */
    uint64_t seed;
    uint64_t runs_seed;
    uint32_t lanes;
    uint64_t run;                  /* positions, >= 1 */
    bool shifts;                   /* lanes begin with a shorter run */
    pthread_mutex_t lock;          /* guards `lines`, and in them all but what a user reads */
    struct stk_window_line *lines; /* at least two */
};

/* ---- blocks ------------------------------------------------------------------------------ */

static uint64_t first_of(const struct stk_blocks *blocks, uint64_t block)
{
    if (block >= blocks->block_count)
        return blocks->count;
    return blocks->first != NULL ? blocks->first(blocks->self, block)
                                 : block * blocks->block_samples;
}

/* Returns true if each block but the last has blocks->block_samples samples, and the last no
 * more. */
static bool are_equal(const struct stk_blocks *blocks)
{
    const uint64_t samples = blocks->block_samples;
    for (uint64_t block = 1; blocks->first != NULL && block < blocks->block_count; block++)
        if (first_of(blocks, block) != block * samples)
            return false;
    return blocks->count - (blocks->block_count - 1) * samples <= samples;
}

/* ---- the line of an epoch ------------------------------------------------------------------ */

static int add_line(struct stk_window *window, struct stk_window_line **out)
{
    const size_t begins = window->equal ? 0 : (size_t)window->blocks.block_count;
    struct stk_window_line *line = stk_calloc(1, sizeof(*line) + begins * sizeof(line->begins[0]));
    if (line == NULL)
        return STOKER_ENOMEM;
    line->epoch = NO_EPOCH;
    line->next = window->lines;
    window->lines = line;
    *out = line;
    return STOKER_OK;
}

static void make_table(const struct stk_window *window, struct stk_window_line *line)
{
    const uint64_t count = window->blocks.block_count;
    uint64_t blocks[STK_SAMPLER_BLOCK];
    uint64_t begin = 0;
    for (uint64_t done = 0; done < count; done += STK_SAMPLER_BLOCK) {
        const uint32_t n =
            count - done < STK_SAMPLER_BLOCK ? (uint32_t)(count - done) : STK_SAMPLER_BLOCK;
        stk_sampler_shuffled(&window->permuted, &line->blocks, done, 1, n, blocks);
        for (uint32_t i = 0; i < n; i++) {
            line->begins[done + i] = begin;
            begin +=
                first_of(&window->blocks, blocks[i] + 1) - first_of(&window->blocks, blocks[i]);
        }
    }
    assert(begin == window->blocks.count);
}

static void make_line(const struct stk_window *window, uint64_t epoch, struct stk_window_line *line)
{
    line->epoch = epoch;
    stk_sampler_begin(&window->permuted, epoch, &line->blocks);
    if (!window->equal) {
        make_table(window, line);
        return;
    }
    const struct stk_random random = stk_philox(window->seed ^ PLACE_STREAM, epoch, 0);
    const uint64_t word = (uint64_t)random.word[0] << 32 | random.word[1];
    line->short_place =
        (uint64_t)((wide)word * window->blocks.block_count >> 64) * window->blocks.block_samples;
}

/* Returns the line of an epoch, else the oldest one that nobody uses, so that two are enough while
 * threads move from one epoch to the next. */
static struct stk_window_line *find_line(const struct stk_window *window, uint64_t epoch)
{
    struct stk_window_line *unused = NULL;
    for (struct stk_window_line *line = window->lines; line != NULL; line = line->next) {
        if (line->epoch == epoch)
            return line;
        if (line->users == 0 && (unused == NULL || line->epoch < unused->epoch))
            unused = line;
    }
    return unused;
}

int stk_window_begin(struct stk_window *window, uint64_t epoch, struct stk_window_line **line)
{
    int rc = STOKER_OK;
    stk_window_leave(window, line);
    (void)pthread_mutex_lock(&window->lock);
    struct stk_window_line *found = find_line(window, epoch);
    if (found == NULL)
        rc = add_line(window, &found);
    if (rc == STOKER_OK) {
        if (found->epoch != epoch)
            make_line(window, epoch, found);
        found->users++;
        *line = found;
    }
    (void)pthread_mutex_unlock(&window->lock);
    return rc;
}

void stk_window_leave(struct stk_window *window, struct stk_window_line **line)
{
    if (*line == NULL)
        return;
    (void)pthread_mutex_lock(&window->lock);
    assert((*line)->users > 0);
    (*line)->users--;
    (void)pthread_mutex_unlock(&window->lock);
    *line = NULL;
}

static void free_lines(struct stk_window *window)
{
    for (struct stk_window_line *next; window->lines != NULL; window->lines = next) {
        next = window->lines->next;
        stk_free(window->lines);
    }
}

/* ---- life ---------------------------------------------------------------------------------- */

static void cut_blocks(struct stk_window *window)
{
    struct stk_blocks *blocks = &window->blocks;
    if (blocks->first != NULL)
        blocks->block_samples = first_of(blocks, 1);
    window->equal = are_equal(blocks);
    const uint64_t last = blocks->count - first_of(blocks, blocks->block_count - 1);
    window->short_samples = window->equal && last < blocks->block_samples ? last : 0;
    stk_sampler_init(&window->permuted, blocks->block_count - (window->short_samples > 0 ? 1 : 0),
                     stk_mix64(window->seed ^ BLOCKS_STREAM), true);
}

/* A run is not longer than a lane. */
static void cut_lanes(struct stk_window *window, uint64_t window_blocks, uint32_t lanes)
{
    const struct stk_blocks *blocks = &window->blocks;
    const uint64_t lane = blocks->count / lanes + (blocks->count % lanes > 0 ? 1 : 0);
    const uint64_t run = (uint64_t)((wide)window_blocks * blocks->count / blocks->block_count);
    window->lanes = lanes;
    window->shifts = run < lane;
    window->run = window->shifts ? run : lane;
}

int stk_window_make(struct stk_window **out, const struct stk_blocks *blocks,
                    uint64_t window_blocks, uint32_t lanes, uint64_t seed)
{
    assert(window_blocks >= 1);
    assert(lanes >= 1);
    *out = NULL;
    if (window_blocks >= blocks->block_count)
        return STOKER_OK;
    struct stk_window *window = stk_calloc(1, sizeof(*window));
    if (window == NULL)
        return STOKER_ENOMEM;
    window->blocks = *blocks;
    window->seed = seed;
    window->runs_seed = stk_mix64(seed ^ RUNS_STREAM);
    cut_blocks(window);
    cut_lanes(window, window_blocks, lanes);
    int rc = STOKER_OK;
    if (!window->equal && blocks->block_count > STK_WINDOW_TABLE_MAX)
        rc = STOKER_ELIMIT;
    struct stk_window_line *line;
    for (int i = 0; rc == STOKER_OK && i < 2; i++)
        rc = add_line(window, &line);
    if (rc == STOKER_OK && pthread_mutex_init(&window->lock, NULL) != 0)
        rc = STOKER_ENOMEM;
    if (rc == STOKER_OK) {
        *out = window;
        return STOKER_OK;
    }
    free_lines(window);
    stk_free(window);
    return rc;
}

void stk_window_free(struct stk_window *window)
{
    if (window == NULL)
        return;
    free_lines(window);
    (void)pthread_mutex_destroy(&window->lock);
    stk_free(window);
}

uint64_t stk_window_hash(const struct stk_window *window)
{
    const struct stk_blocks *blocks = &window->blocks;
    const uint64_t looks = blocks->block_count < HASHED_MAX ? blocks->block_count : HASHED_MAX;
    uint64_t sum = stk_mix64(window->run) + window->lanes;
    sum = stk_mix64(sum ^ blocks->block_count) + blocks->count;
    for (uint64_t i = 0; !window->equal && i < looks; i++)
        sum = stk_mix64(sum ^ first_of(blocks, i * (blocks->block_count / looks)));
    return stk_mix64(sum ^ blocks->block_samples);
}

/* ---- ids ------------------------------------------------------------------------------------- */

/* A stretch of a lane whose positions are permuted among themselves. */
struct run {
    uint64_t lane_begin; /* the lane's first place on the line */
    uint64_t lane_length;
    bool backward;  /* the lane goes from its last place to its first */
    uint64_t begin; /* in the lane */
    uint64_t length;
    uint64_t at; /* the position that is asked for, in the run */
};

static struct run run_of(const struct stk_window *window, uint64_t position)
{
    const uint64_t lane = position % window->lanes;
    const uint64_t at = position / window->lanes;
    const uint64_t whole = window->blocks.count / window->lanes;
    const uint64_t longer = window->blocks.count % window->lanes; /* lanes with one more */
    const uint64_t length = whole + (lane < longer ? 1 : 0);
    const uint64_t shift =
        window->shifts ? (uint64_t)((wide)lane * window->run / window->lanes) : 0;
    const uint64_t index = (at + shift) / window->run;
    const uint64_t begin = index == 0 ? 0 : index * window->run - shift;
    const uint64_t end = (index + 1) * window->run - shift;
    return (struct run){ .lane_begin = lane * whole + (lane < longer ? lane : longer),
                         .lane_length = length,
                         .backward = lane % 2 == 1,
                         .begin = begin,
                         .length = (end < length ? end : length) - begin,
                         .at = at - begin };
}

/* The place on the line. */
static uint64_t place_of(const struct stk_window *window, const struct stk_window_line *line,
                         const struct run *run)
{
    struct stk_sampler sampler;
    struct stk_sampler_order order;
    const uint64_t number = run->lane_begin + run->begin; /* no other run has it */
    uint64_t at;
    stk_sampler_init(&sampler, run->length, window->runs_seed, true);
    stk_sampler_begin(&sampler, stk_mix64(stk_mix64(line->epoch) + number), &order);
    stk_sampler_map(&sampler, &order, &run->at, 1, &at);
    at += run->begin;
    return run->lane_begin + (run->backward ? run->lane_length - 1 - at : at);
}

/* The last block of the line that begins at or before `at`. */
static uint64_t find_block(const struct stk_window_line *line, uint64_t count, uint64_t at)
{
    uint64_t low = 0;
    uint64_t high = count;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (line->begins[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The sample at a place on the line. */
static uint64_t sample_at(const struct stk_window *window, const struct stk_window_line *line,
                          uint64_t at)
{
    const struct stk_blocks *blocks = &window->blocks;
    const uint64_t short_samples = window->short_samples;
    uint64_t block;
    if (!window->equal) {
        const uint64_t index = find_block(line, blocks->block_count, at);
        stk_sampler_map(&window->permuted, &line->blocks, &index, 1, &block);
        return first_of(blocks, block) + at - line->begins[index];
    }
    if (short_samples > 0 && at >= line->short_place) {
        if (at < line->short_place + short_samples)
            return blocks->count - short_samples + at - line->short_place;
        at -= short_samples;
    }
    const uint64_t index = at / blocks->block_samples;
    stk_sampler_map(&window->permuted, &line->blocks, &index, 1, &block);
    return block * blocks->block_samples + at % blocks->block_samples;
}

uint64_t stk_window_id(const struct stk_window *window, const struct stk_window_line *line,
                       uint64_t position)
{
    assert(position < window->blocks.count);
    const struct run run = run_of(window, position);
    return sample_at(window, line, place_of(window, line, &run));
}
