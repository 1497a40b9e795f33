/* test_tcp.c - ranks that meet over TCP, as threads: what they gather and broadcast. */
#include "loader/base/fault.h"
#include "support/tcp_run.h"

enum { LARGE = 3 * STK_TCP_FRAME_BYTES_MAX + 17, FEW = 1000 };

/* ---- what all ranks say --------------------------------------------------------------- */

static int gather_bytes(struct tcp_rank *me, size_t bytes)
{
    uint8_t *const mine = malloc(bytes);
    const void *gathered = NULL;
    CHECK(mine != NULL);
    memset(mine, (int)(me->rank + bytes), bytes);
    const int rc = me->peers->ops->gather(me->peers, mine, bytes, &gathered, &me->error);
    const uint8_t *const all = gathered;
    for (size_t i = 0; i < bytes * me->run->world_size && rc == STOKER_OK; i++)
        CHECK(all[i] == (uint8_t)(i / bytes + bytes));
    free(mine);
    return rc;
}

/* Zeros at the end of words are not sent. Rank r's word has 3 r other bytes in front of them. */
static int gather_short_words(struct tcp_rank *me)
{
    uint8_t mine[100] = { 0 };
    const void *gathered = NULL;
    memset(mine, 7, 3 * me->rank);
    const int rc = me->peers->ops->gather(me->peers, mine, sizeof(mine), &gathered, &me->error);
    const uint8_t *const all = gathered;
    for (size_t i = 0; i < sizeof(mine) * me->run->world_size && rc == STOKER_OK; i++)
        CHECK(all[i] == (i % sizeof(mine) < 3 * (i / sizeof(mine)) ? 7 : 0));
    return rc;
}

static int broadcast_bytes(struct tcp_rank *me, size_t bytes)
{
    uint8_t *const memory = calloc(1, bytes);
    CHECK(memory != NULL);
    for (size_t i = 0; i < bytes && me->rank == 0; i++)
        memory[i] = (uint8_t)(i * 7);
    const int rc = me->peers->ops->broadcast(me->peers, memory, bytes, &me->error);
    for (size_t i = 0; i < bytes && rc == STOKER_OK; i++)
        CHECK(memory[i] == (uint8_t)(i * 7));
    free(memory);
    return rc;
}

static int sum_doubles(struct tcp_rank *me)
{
    double numbers[FEW];
    const double world_size = (double)me->run->world_size;
    const double expected = world_size * (world_size - 1) / 2;
    for (uint32_t i = 0; i < FEW; i++)
        numbers[i] = (double)me->rank;
    const int rc = stk_peers_sum(me->peers, numbers, FEW, &me->error);
    for (uint32_t i = 0; i < FEW && rc == STOKER_OK; i++)
        CHECK(numbers[i] >= expected && numbers[i] <= expected);
    return rc;
}

/* Nothing lies between the calls: a rank's word of the next one often comes early. */
static int talk(struct tcp_rank *me)
{
    const struct stk_peers_ops *const ops = me->peers->ops;
    CHECK(me->peers->rank == me->rank);
    CHECK(me->peers->world_size == me->run->world_size);
    const size_t most = me->run->world_size == 1 ? FEW : me->peers->gather_bytes_max;
    int rc = tcp_meet(me);
    for (uint32_t i = 0; i < 20 && rc == STOKER_OK; i++)
        rc = tcp_meet(me);
    if (rc == STOKER_OK)
        rc = gather_bytes(me, 1);
    if (rc == STOKER_OK)
        rc = gather_bytes(me, most);
    if (rc == STOKER_OK)
        rc = gather_short_words(me);
    if (rc == STOKER_OK)
        rc = broadcast_bytes(me, FEW);
    if (rc == STOKER_OK)
        rc = broadcast_bytes(me, LARGE);
    if (rc == STOKER_OK)
        rc = sum_doubles(me);
    if (rc == STOKER_OK)
        rc = ops->poll(me->peers, &me->error);
    if (rc == STOKER_OK)
        rc = ops->finish(me->peers, &me->error);
    return rc == STOKER_OK ? tcp_meet(me) : rc;
}

/* Rank 0 comes in the middle: some wait for it, others come later. */
static void come_unevenly(struct tcp_rank *me)
{
    tcp_sleep_ms((long)((me->rank + me->run->world_size / 2) % me->run->world_size) * 5);
}

static void every_number_of_ranks(void)
{
    static const uint32_t sizes[] = { 1, 2, 3, 5, 17 };
    static struct tcp_run run;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (int uneven = 0; uneven < 2; uneven++) {
            tcp_open_run(&run, sizes[i], TCP_LONG_MS, talk);
            run.before = uneven ? come_unevenly : NULL;
            tcp_run_all(&run);
            for (uint32_t r = 0; r < run.world_size; r++)
                tcp_check_says(&run.rank[r], STOKER_OK, "");
        }
    CHECK(stk_fault_live_bytes() == 0);
}

int main(void)
{
    const uint32_t files = tcp_open_files();
    every_number_of_ranks();
    CHECK(tcp_open_files() == files);
    return 0;
}
