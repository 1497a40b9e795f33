/* test_lengths.c - batches of a bounded number of values on each rank: one leg of a run that
 * lengths.sh divides among several numbers of ranks.
 *
 *   test_lengths NAME STEPS continues NAME.state, if there is one, for STEPS steps, or to the end
 *
 * Rank 0 adds a line for each batch to NAME, in the order of batches: "epoch, samples, hash". All
 * ranks make equally many steps; only in an epoch's last one may a rank have no batch.
 */
#define STK_TEST_PLAIN
#include "loader/base/rng.h"
#include "support/plain_assert.h"
#include "support/thread_check.h"
#include "trainer/peers/choose.h"

#include <stoker/stoker.h>

enum { COUNT = 700, LONGEST = 30, BUDGET = 90, EPOCHS = 2 };

/* What one rank had in a step. */
struct taken {
    uint64_t epoch;
    uint64_t count;
    uint64_t hash;
    uint64_t ended; /* 1 = the run is over */
    uint8_t state[STOKER_STATE_BYTES];
};

static struct stk_peers *peers;
static int64_t offsets[COUNT + 1];
static uint16_t tokens[COUNT * LONGEST];

static stoker_dataset *documents(void)
{
    stoker_array array = STOKER_ARRAY_INIT;
    stoker_dataset *dataset = NULL;
    for (int64_t i = 0; i < COUNT; i++)
        offsets[i + 1] = offsets[i] + 1 + (int64_t)(stk_mix64((uint64_t)i) % LONGEST);
    for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++)
        tokens[i] = (uint16_t)i;
    array.name = "tokens";
    array.data = tokens;
    array.dtype = STOKER_DTYPE_UINT16;
    array.rank = 1;
    array.offsets = offsets;
    CHECK(stoker_dataset_from_arrays(&dataset, &array, 1, COUNT, NULL, NULL) == STOKER_OK);
    return dataset;
}

static stoker_loader *loader_of(const stoker_dataset *dataset, const uint8_t *resume)
{
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    stoker_field_options padded = STOKER_FIELD_OPTIONS_INIT;
    stoker_loader *loader = NULL;
    stoker_error error = { .message = "" };
    padded.name = "tokens";
    padded.form = STOKER_FIELD_FORM_PADDED;
    options.fields = &padded;
    options.field_count = 1;
    options.batch_size = 32;
    options.shuffle = true;
    options.seed = 5;
    options.epochs = EPOCHS;
    options.rank = STOKER_RANK_AUTO;
    options.num_workers = (int32_t)(peers->rank % 3);
    options.batch_values_max = BUDGET;
    options.batch_window = 100;
    options.resume = resume;
    options.resume_size = resume == NULL ? 0 : STOKER_STATE_BYTES;
    if (stoker_loader_create(&loader, dataset, &options, &error) != STOKER_OK)
        fprintf(stderr, "%s\n", error.message);
    CHECK(loader != NULL);
    return loader;
}

static void take(stoker_loader *loader, struct taken *taken)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc = stoker_loader_next(loader, &batch, 20000);
    *taken = (struct taken){ .count = 0 };
    if (rc == STOKER_EPOCH_END)
        rc = stoker_loader_next(loader, &batch, 20000);
    taken->ended = rc == STOKER_FINISHED;
    if (taken->ended)
        return;
    CHECK(rc == STOKER_OK);
    taken->epoch = batch.epoch;
    taken->count = batch.count;
    if (batch.count > 0)
        CHECK(batch.count * batch.fields[0].values.shape[1] <= BUDGET);
    for (uint32_t row = 0; row < batch.count; row++)
        taken->hash = stk_mix64(taken->hash ^ batch.ids[row]);
    CHECK(stoker_loader_state(loader, taken->state, sizeof(taken->state), NULL, NULL) == STOKER_OK);
    stoker_batch_release(&batch);
}

static void write_lines(FILE *file, const struct taken *all)
{
    for (uint32_t r = 0; r < peers->world_size; r++) {
        CHECK(all[r].ended == all[0].ended);
        CHECK(all[r].epoch == all[0].epoch);
        CHECK(memcmp(all[r].state, all[0].state, sizeof(all[r].state)) == 0);
        if (all[r].count > 0)
            CHECK(fprintf(file, "epoch %d, %d samples, %016llx\n", (int)all[r].epoch,
                          (int)all[r].count, (unsigned long long)all[r].hash) > 0);
    }
}

/* Returns true if there is one. All ranks read it before rank 0 writes the next: they gather what
 * they took in between. */
static bool read_state(const char *path, uint8_t state[STOKER_STATE_BYTES])
{
    FILE *const file = fopen(path, "rbe");
    if (file == NULL)
        return false;
    CHECK(fread(state, STOKER_STATE_BYTES, 1, file) == 1);
    CHECK(fclose(file) == 0);
    return true;
}

static void write_state(const char *path, const uint8_t state[STOKER_STATE_BYTES])
{
    FILE *const file = fopen(path, "wbe");
    CHECK(file != NULL);
    CHECK(fwrite(state, STOKER_STATE_BYTES, 1, file) == 1);
    CHECK(fclose(file) == 0);
}

static void run_leg(const stoker_dataset *dataset, const char *lines, uint32_t steps)
{
    char saved[512];
    uint8_t state[STOKER_STATE_BYTES];
    struct taken taken;
    (void)snprintf(saved, sizeof(saved), "%.400s.state", lines);
    stoker_loader *loader = loader_of(dataset, read_state(saved, state) ? state : NULL);
    FILE *const file = peers->rank == 0 ? fopen(lines, "ae") : NULL;
    CHECK(peers->rank != 0 || file != NULL);
    for (uint32_t step = 0; step < steps; step++) {
        const void *all = NULL;
        take(loader, &taken);
        CHECK(sizeof(taken) <= peers->gather_bytes_max);
        CHECK(peers->ops->gather(peers, &taken, sizeof(taken), &all, NULL) == STOKER_OK);
        if (file != NULL)
            write_lines(file, all);
        if (taken.ended)
            break;
        memcpy(state, taken.state, sizeof(state));
    }
    if (file != NULL) {
        write_state(saved, state);
        CHECK(fclose(file) == 0);
    }
    stoker_loader_destroy(&loader);
}

int main(int argc, char **argv)
{
    const struct stk_peers_options options = { .timeout_ms = 30000, .floats_max = 1 };
    stoker_error error = { .message = "" };
    CHECK(argc == 3);
    stoker_dataset *dataset = documents();
    stoker_ranks ranks = STOKER_RANKS_INIT;
    if (stk_peers_join(&peers, &ranks, STOKER_PEERS_MPI, &options, &error) != STOKER_OK)
        fprintf(stderr, "%s\n", error.message);
    CHECK(peers != NULL);
    run_leg(dataset, argv[1], (uint32_t)strtoul(argv[2], NULL, 10));
    stk_peers_leave(&peers);
    stoker_dataset_close(&dataset);
    return 0;
}
