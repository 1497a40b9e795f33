/* test_cache.c - one cache, many threads: each row is loaded by one of them, seen whole by
 * all, and what is canceled is loaded by another.
 */
#include <pthread.h>

#include "loader/base/cpu/thread.h"
#include "loader/cache/cache.h"
#include "support/runs/scenario.h"
#include "support/thread_check.h"

enum { THREADS = 6, ROWS = 4096, STRIDE = 24, CANCEL_EVERY = 7 };

static struct stk_cache cache;
static _Atomic uint64_t loads[ROWS]; /* commits per block */
static _Atomic uint64_t seen;

static void fill_block(uint64_t id)
{
    const uint64_t first = stk_cache_block_first(&cache, id);
    const uint32_t rows = stk_cache_block_rows(&cache, id);
    for (uint64_t row = first; row < first + rows; row++)
        for (uint32_t at = 0; at < STRIDE; at++)
            stk_cache_row(&cache, row)[at] = stk_set_byte(row, at);
    atomic_fetch_add(&loads[first], 1U);
    stk_cache_commit(&cache, id);
}

static void visit(uint64_t id, uint64_t draw)
{
    const uint8_t *row = stk_cache_find(&cache, id);
    if (row == NULL) {
        if (stk_cache_begin(&cache, id, STRIDE) == NULL)
            return; /* another is at it: round the cache */
        if (draw % CANCEL_EVERY == 0) {
            stk_cache_row(&cache, id)[0] = 0xEE; /* half a row, never to be seen */
            stk_cache_cancel(&cache, id);
        } else {
            fill_block(id);
        }
        return;
    }
    for (uint32_t at = 0; at < STRIDE; at++)
        CHECK(row[at] == stk_set_byte(id, at));
    atomic_fetch_add(&seen, 1U);
}

static void *visit_all(void *argument)
{
    uint64_t draw = (uintptr_t)argument;
    for (int i = 0; i < 3 * ROWS; i++) {
        draw = stk_mix64(draw);
        visit(draw % ROWS, draw >> 32);
    }
    return NULL;
}

static void play(uint32_t block_rows)
{
    const struct stk_cache_options options = { .kind = STOKER_CACHE_ENCODED,
                                               .budget_bytes = UINT64_C(1) << 30,
                                               .count = ROWS,
                                               .stride_bytes = STRIDE,
                                               .block_rows = block_rows,
                                               .whole_places = block_rows > 1 };
    pthread_t threads[THREADS];
    CHECK(stk_cache_init(&cache, &options) == 0);
    for (int i = 0; i < ROWS; i++)
        atomic_store(&loads[i], 0U);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(stk_thread_start(&threads[i], "test", visit_all, (void *)(i + 1)) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    uint64_t held = 0;
    for (uint64_t id = 0; id < ROWS; id++) {
        CHECK(atomic_load(&loads[id]) <= 1); /* nothing is loaded twice */
        held += stk_cache_find(&cache, id) != NULL ? STRIDE : 0;
    }
    CHECK(held == atomic_load(&stk_cache_counts(&cache)->held_bytes));
    stk_cache_destroy(&cache);
}

int main(void)
{
    for (uint32_t block_rows = 1; block_rows <= 256; block_rows *= 4)
        play(block_rows);
    printf("%llu rows seen\n", (unsigned long long)atomic_load(&seen));
    return atomic_load(&seen) > ROWS ? 0 : 1;
}
