/* test_window.c - threads that move from epoch to epoch share the lines of a window: each finds the
 * samples of its epoch, while others make the lines of theirs.
 *
 *   thread i   { begin epoch ─▶ look at some positions ─▶ the same hash as alone } over and over
 */
#include <pthread.h>

#include "loader/base/clock.h"
#include "loader/base/rng.h"
#include "loader/sampler/window.h"
#include "support/thread_check.h"

enum { THREADS = 6, BLOCKS = 300, COUNT = 1050, EPOCHS = 8, LOOKS = 50 };

/* Blocks of 3 and 4 samples: they need a table. */
static uint64_t first_of(const void *self, uint64_t block)
{
    (void)self;
    return block / 2 * 7 + block % 2 * 3;
}

static struct stk_window *window;
static uint64_t expected[EPOCHS];
static uint64_t start_ns;

static uint64_t look(uint64_t epoch, struct stk_window_line **line)
{
    uint64_t hash = 0;
    CHECK(stk_window_begin(window, epoch, line) == 0);
    for (uint64_t i = 0; i < LOOKS; i++)
        hash = stk_mix64(hash ^ stk_window_id(window, *line, i * 21));
    return hash;
}

static void *work(void *argument)
{
    struct stk_window_line *line = NULL;
    uint64_t epoch = *(const uint64_t *)argument;
    for (uint32_t round = 0; round < 1000 || stk_time_left(start_ns); round++) {
        epoch = stk_mix64(epoch + round) % 4 == 0 ? (epoch + 1) % EPOCHS : epoch;
        CHECK(look(epoch, &line) == expected[epoch]);
    }
    stk_window_leave(window, &line);
    return NULL;
}

int main(void)
{
    static const struct stk_blocks blocks = { .count = COUNT,
                                              .block_count = BLOCKS,
                                              .first = first_of };
    pthread_t threads[THREADS];
    uint64_t numbers[THREADS];
    struct stk_window_line *line = NULL;
    start_ns = stk_now_ns();
    CHECK(stk_window_make(&window, &blocks, 4, 8, 1) == 0);
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++)
        expected[epoch] = look(epoch, &line);
    stk_window_leave(window, &line);
    for (uint64_t i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
    }
    for (uint64_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    stk_window_free(window);
    return 0;
}
