/* test_thread_team.c - a thread team: every thread runs each pass once, and reads after a barrier
 * what the others wrote before it, without a lock.
 */
#include "loader/base/cpu/thread_team.h"
#include "support/thread_check.h"

enum { THREADS_MAX = 5, ROUNDS = 8, PASSES = 200 };

struct game {
    struct stk_thread_team *team;
    uint32_t threads;
    uint64_t pass;
    uint64_t written[ROUNDS][THREADS_MAX]; /* by its thread, read by all: plain memory */
    uint64_t passes[THREADS_MAX];
};

static uint64_t expected(uint64_t pass, uint32_t round, uint32_t thread)
{
    return pass * 1000 + round * 10 + thread;
}

static void play(void *argument, uint32_t thread)
{
    struct game *game = argument;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        if (game->pass % 50 == 49 && round == thread)
            usleep(300); /* longer than the others spin: they sleep */
        game->written[round][thread] = expected(game->pass, round, thread);
        stk_thread_team_barrier(game->team);
        for (uint32_t other = 0; other < game->threads; other++)
            CHECK(game->written[round][other] == expected(game->pass, round, other));
    }
    game->passes[thread]++;
}

static void play_with(uint32_t threads)
{
    static struct game game;
    game = (struct game){ .threads = threads };
    CHECK(stk_thread_team_create(&game.team, "test-team", threads) == 0);
    CHECK(stk_thread_team_threads(game.team) == threads);
    for (game.pass = 0; game.pass < PASSES; game.pass++) {
        stk_thread_team_run(game.team, play, &game);
        for (uint32_t thread = 0; thread < threads; thread++)
            CHECK(game.passes[thread] == game.pass + 1);
        if (game.pass % 64 == 63)
            usleep(500); /* the team falls asleep between passes */
    }
    stk_thread_team_destroy(game.team);
}

/* Shares are a partition, in order, and as even as can be. */
static void check_shares(void)
{
    for (uint64_t count = 0; count < 40; count++)
        for (uint32_t threads = 1; threads < 9; threads++) {
            uint64_t end = 0;
            for (uint32_t thread = 0; thread < threads; thread++) {
                const struct stk_share share = stk_share_of(count, thread, threads);
                CHECK(share.begin == end);
                CHECK(share.end >= share.begin);
                CHECK(share.end - share.begin <= count / threads + 1);
                end = share.end;
            }
            CHECK(end == count);
        }
}

int main(void)
{
    struct stk_thread_team *unused = NULL;
    check_shares();
    for (uint32_t threads = 1; threads <= THREADS_MAX; threads++) {
        play_with(threads);
        CHECK(stk_thread_team_create(&unused, "test-team", threads) ==
              0); /* destroyed without a pass */
        stk_thread_team_destroy(unused);
    }
    stk_thread_team_destroy(NULL);
    return 0;
}
