/* test_deal.c - a few updates of a loader on each rank, and what came in each: one leg of a run that deal.sh divides among
 * several numbers of ranks.
 *
 *   test_deal make FOLDER             writes the data set
 *   test_deal FOLDER NAME UPDATES     continues FOLDER/NAME.DEAL.token, if there is one, for UPDATES updates,
 *                                     or to the end, for each way of dealing
 *
 * Rank 0 adds a line for each update to FOLDER/NAME.DEAL, which depends on no number of ranks: "epoch, samples, hash of the
 * set, hash of the order". The order is that of positions, so it is also checked here how batches are dealt.
 */
#include <string.h>

#define STK_TEST_PLAIN
#include "support/scenario.h"
#include "support/thread_check.h"
#include "trainer/peers/choose.h"

enum { COUNT = 437, GLOBAL_BATCH = 30, EPOCHS = 2 }; /* 14 global batches and 17 samples */

/* What one rank had in an update. */
struct taken {
    uint64_t epoch;
    uint64_t count;
    uint64_t rows[GLOBAL_BATCH]; /* one hash per sample: its id and every byte */
    stoker_state state;
};

static struct stk_peers *peers;

static void set_paths(struct stk_file_set *set, const char *folder)
{
    *set = (struct stk_file_set){ .count = COUNT, .row_bytes = 48 };
    (void)snprintf(set->images, sizeof(set->images), "%s/images", folder);
    (void)snprintf(set->labels, sizeof(set->labels), "%s/labels", folder);
}

static int make(const char *folder)
{
    struct stk_file_set set;
    set_paths(&set, folder);
    return stk_file_set_write(&set, (const uint32_t[]){ 4, 4, 3 }, 4) ? 0 : 1;
}

static stoker_loader *loader_of(const stoker_dataset *dataset, stoker_deal deal,
                                const stoker_state *resume)
{
    stoker_loader_options options = stk_small_options();
    stoker_loader *loader = NULL;
    stoker_error error = { .message = "" };
    CHECK(GLOBAL_BATCH % peers->world_size == 0);
    options.batch_size = GLOBAL_BATCH / peers->world_size;
    options.epochs = EPOCHS;
    options.rank = STOKER_RANK_AUTO;
    options.deal = deal;
    options.resume = resume;
    options.num_workers = (int32_t)(peers->rank % 3);
    options.transform = (stoker_transform){ .random_crop = { 3, 3 }, .pad = 1, .flip = true };
    options.cache = STOKER_CACHE_DECODED;
    options.share_cache = peers->world_size > 1 ? STOKER_SWITCH_ON : STOKER_SWITCH_OFF;
    if (stoker_loader_create(&loader, dataset, &options, &error) != STOKER_OK)
        fprintf(stderr, "%s\n", error.message);
    CHECK(loader != NULL);
    return loader;
}

static void note_rows(const stoker_batch *batch, struct taken *taken)
{
    const size_t row_bytes = batch->count == 0 ? 0 : 3 * 3 * 3;
    const uint8_t *const rows = batch->images.data;
    const int64_t *const labels = batch->labels.data;
    taken->epoch = batch->epoch;
    taken->count = batch->count;
    for (uint32_t row = 0; row < batch->count; row++)
        taken->rows[row] =
            stk_mix64(stk_hash_bytes(batch->ids[row] + 1, rows + row * row_bytes, row_bytes) ^
                      (uint64_t)labels[row]);
}

/* False at the end of the run. */
static bool take(stoker_loader *loader, struct taken *taken)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc = stoker_loader_next(loader, &batch, 20000);
    *taken = (struct taken){ .count = 0 };
    if (rc == STOKER_EPOCH_END)
        rc = stoker_loader_next(loader, &batch, 20000);
    if (rc == STOKER_FINISHED)
        return false;
    CHECK(rc == STOKER_OK);
    note_rows(&batch, taken);
    CHECK(stoker_loader_state(loader, &taken->state) == STOKER_OK);
    stoker_batch_release(&batch);
    return true;
}

/* Row `at` of the global batch, by its place in the epoch. */
static uint64_t row_at(const struct taken *all, stoker_deal deal, uint64_t at)
{
    const uint64_t batch_size = GLOBAL_BATCH / peers->world_size;
    const uint64_t rank = deal == STOKER_DEAL_BATCHES ? at / batch_size : at % peers->world_size;
    const uint64_t row = deal == STOKER_DEAL_BATCHES ? at % batch_size : at / peers->world_size;
    CHECK(row < all[rank].count);
    return all[rank].rows[row];
}

static void write_line(FILE *file, const struct taken *all, stoker_deal deal)
{
    uint64_t count = 0;
    uint64_t set = 0;
    uint64_t order = 0;
    for (uint32_t r = 0; r < peers->world_size; r++) {
        CHECK(all[r].epoch == all[0].epoch);
        CHECK(memcmp(&all[r].state, &all[0].state, sizeof(all[r].state)) == 0);
        count += all[r].count;
    }
    for (uint64_t at = 0; at < count; at++) {
        const uint64_t row = row_at(all, deal, at);
        set += row;
        order = stk_mix64(order ^ row);
    }
    CHECK(fprintf(file, "epoch %d, %d samples, set %016llx, order %016llx\n", (int)all[0].epoch,
                  (int)count, (unsigned long long)set, (unsigned long long)order) > 0);
}

static FILE *open_for(const char *path, const char *mode)
{
    FILE *const file = fopen(path, mode);
    if (file == NULL)
        perror(path);
    CHECK(file != NULL);
    return file;
}

/* Returns true if there is one. All ranks read it before rank 0 writes the next: they gather what they took in between. */
static bool read_token(const char *path, stoker_state *state)
{
    FILE *const file = fopen(path, "rbe");
    if (file == NULL)
        return false;
    CHECK(fread(state, sizeof(*state), 1, file) == 1);
    CHECK(fclose(file) == 0);
    return true;
}

static void write_token(const char *path, const stoker_state *state)
{
    FILE *const file = open_for(path, "wbe");
    CHECK(fwrite(state, sizeof(*state), 1, file) == 1);
    CHECK(fclose(file) == 0);
}

static void run_leg(const stoker_dataset *dataset, const char *lines, stoker_deal deal,
                    uint32_t updates)
{
    char token[512];
    stoker_state state;
    struct taken taken;
    (void)snprintf(token, sizeof(token), "%.400s.token", lines);
    stoker_loader *loader = loader_of(dataset, deal, read_token(token, &state) ? &state : NULL);
    FILE *const file = peers->rank == 0 ? open_for(lines, "ae") : NULL;
    for (uint32_t update = 0; update < updates && take(loader, &taken); update++) {
        const void *all = NULL;
        CHECK(sizeof(taken) <= peers->gather_bytes_max);
        CHECK(peers->ops->gather(peers, &taken, sizeof(taken), &all, NULL) == STOKER_OK);
        state = taken.state;
        if (file != NULL)
            write_line(file, all, deal);
    }
    if (file != NULL) {
        write_token(token, &state);
        CHECK(fclose(file) == 0);
    }
    stoker_loader_destroy(&loader);
}

int main(int argc, char **argv)
{
    static const char *const deals[] = { "positions", "batches" };
    const struct stk_peers_options options = { .timeout_ms = 30000, .floats_max = 1 };
    struct stk_file_set set;
    char text[600];
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    if (argc == 3)
        return make(argv[2]);
    CHECK(argc == 4);
    set_paths(&set, argv[1]);
    (void)snprintf(text, sizeof(text), "idx:%s,%s", set.images, set.labels);
    CHECK(stoker_dataset_open(&dataset, text, NULL, NULL) == STOKER_OK);
    if (stk_peers_join(&peers, STOKER_PEERS_MPI, &options, &error) != STOKER_OK)
        fprintf(stderr, "%s\n", error.message);
    CHECK(peers != NULL);
    for (int deal = STOKER_DEAL_POSITIONS; deal <= STOKER_DEAL_BATCHES; deal++) {
        (void)snprintf(text, sizeof(text), "%.300s/%.60s.%s", argv[1], argv[2], deals[deal]);
        run_leg(dataset, text, (stoker_deal)deal, (uint32_t)strtoul(argv[3], NULL, 10));
    }
    stk_peers_leave(&peers);
    stoker_dataset_close(&dataset);
    return 0;
}
