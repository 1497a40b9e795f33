/* test_deal.c - a few updates of a loader on each rank, and what came in each: one leg of a run
 * that deal.sh divides among several numbers of ranks.
 *
 *   test_deal make FOLDER writes the data sets test_deal FOLDER NAME UPDATES continues
 *   FOLDER/NAME.HOW.state, if there is one, for UPDATES updates, or to the
 *                                     end, for each HOW:
 *
 *   positions, batches                images, dealt in either way
 *   mix                               five sources of tokens, two of them packed, whose weights
 *                                     change while the first leg runs: later legs know that by the
 *                                     state alone
 *
 * Rank 0 adds a line for each update to FOLDER/NAME.HOW, which depends on no number of ranks:
 * "epoch, samples, hash of the set, hash of the order". The order is that of positions, so it is
 * also checked here how batches are dealt.
 */
#define STK_TEST_PLAIN
#include "support/runs/scenario.h"
#include "support/thread_check.h"
#include "trainer/peers/choose.h"

enum { COUNT = 874, GLOBAL_BATCH = 60, EPOCHS = 2 }; /* 14 global batches and 34 samples */
enum { TOKENS = 9000, LENGTH = 16, SOURCES = 5, CHANGE_AT = 470 };

/* What one rank had in an update. */
struct taken {
    uint64_t epoch;
    uint64_t count;
    uint64_t rows[GLOBAL_BATCH]; /* one hash per sample: its id and every byte */
    size_t state_size;
    uint8_t state[256];
};

/* One way to run. */
struct how {
    const char *name;
    stoker_deal deal;
    const stoker_dataset *dataset;
    size_t row_bytes; /* as delivered */
    bool mixes;
};

static struct stk_peers *peers;

static void set_paths(struct stk_file_set *set, const char *folder)
{
    *set = (struct stk_file_set){ .count = COUNT, .row_bytes = 48 };
    (void)snprintf(set->images, sizeof(set->images), "%s/images", folder);
    (void)snprintf(set->labels, sizeof(set->labels), "%s/labels", folder);
}

/* Documents of 1 to 13 tokens, each of which ends with token 0. */
static void write_states(const char *folder, int number)
{
    char path[300];
    (void)snprintf(path, sizeof(path), "%.250s/tokens%d.bin", folder, number);
    FILE *const file = fopen(path, "wbe");
    CHECK(file != NULL);
    for (uint64_t at = 0, left = 5; at < TOKENS; at++, left--) {
        const uint64_t drawn = stk_mix64(at + 100000 * (uint64_t)number);
        const uint16_t token = left == 0 ? 0 : (uint16_t)(1 + drawn % 50000);
        left = left == 0 ? 1 + drawn % 13 : left;
        CHECK(fwrite(&token, sizeof(token), 1, file) == 1);
    }
    CHECK(fclose(file) == 0);
}

static int make(const char *folder)
{
    struct stk_file_set set;
    set_paths(&set, folder);
    write_states(folder, 1);
    write_states(folder, 2);
    return stk_file_set_write(&set, (const uint32_t[]){ 4, 4, 3 }, 4) ? 0 : 1;
}

static stoker_dataset *open_spec(const char *spec)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    if (stoker_dataset_open(&dataset, spec, NULL, &error) != STOKER_OK)
        fprintf(stderr, "%s: %s\n", spec, error.message);
    CHECK(dataset != NULL);
    return dataset;
}

/* The small sources come several times in an epoch. */
static stoker_dataset *open_mix(const char *folder)
{
    char spec[2000];
    (void)snprintf(
        spec, sizeof(spec),
        "mix:0.4*(tokens:%.250s/tokens1.bin?length=16&stored=uint16)"
        "+0.1*(packed:16:(documents:%.250s/tokens1.bin?eos=0&stored=uint16)?fields=tokens)"
        "+0.2*(tokens:%.250s/tokens2.bin?length=16&stored=uint16)"
        "+0.2*(packed:16:(documents:%.250s/tokens2.bin?eos=0&stored=uint16)?fields=tokens&block=64)"
        "+0.1*(tokens:%.250s/tokens2.bin?length=16&stored=uint16&test=0.02&split=test)"
        "?epoch_samples=%d",
        folder, folder, folder, folder, folder, COUNT);
    return open_spec(spec);
}

/* With a mix: from its state on, which has the change; or make the change. */
static void change_mix(stoker_loader *loader, const struct how *how, size_t resume_size)
{
    static const double weights[SOURCES] = { 0.05, 0.5, 0, 0.25, 0.2 };
    const stoker_mix_change change = { .position = CHANGE_AT, .weights = weights };
    stoker_error error = { .message = "" };
    if (!how->mixes || resume_size > 0)
        return;
    if (stoker_loader_change_mix(loader, &change, &error) != STOKER_OK)
        fprintf(stderr, "%s\n", error.message);
    CHECK(error.message[0] == '\0');
}

static stoker_loader *loader_of(const struct how *how, const uint8_t *resume, size_t resume_size)
{
    stoker_loader_options options = stk_small_options();
    stoker_loader *loader = NULL;
    stoker_error error = { .message = "" };
    CHECK(GLOBAL_BATCH % peers->world_size == 0);
    options.batch_size = GLOBAL_BATCH / peers->world_size;
    options.epochs = EPOCHS;
    options.rank = STOKER_RANK_AUTO;
    options.deal = how->deal;
    options.resume = resume_size > 0 ? resume : NULL;
    options.resume_size = resume_size;
    options.num_workers = (int32_t)(peers->rank % 3);
    options.prefetch_batches = 4;
    if (!how->mixes) {
        options.transform = (stoker_transform){ .random_crop = { 3, 3 }, .pad = 1, .flip = true };
        options.cache = STOKER_CACHE_DECODED;
        options.share_cache = peers->world_size > 1 ? STOKER_SWITCH_ON : STOKER_SWITCH_OFF;
    }
    if (stoker_loader_create(&loader, how->dataset, &options, &error) != STOKER_OK)
        fprintf(stderr, "%s\n", error.message);
    CHECK(loader != NULL);
    change_mix(loader, how, resume_size);
    return loader;
}

static void note_rows(const stoker_batch *batch, size_t row_bytes, struct taken *taken)
{
    const uint8_t *const rows = batch->images.data;
    const int64_t *const labels = batch->labels.data;
    taken->epoch = batch->epoch;
    taken->count = batch->count;
    for (uint32_t row = 0; row < batch->count; row++)
        taken->rows[row] =
            stk_mix64(stk_hash_bytes(batch->ids[row] + 1, rows + row * row_bytes, row_bytes) ^
                      (uint64_t)(labels == NULL ? 0 : labels[row]));
}

/* False at the end of the run. */
static bool take(stoker_loader *loader, const struct how *how, struct taken *taken)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc = stoker_loader_next(loader, &batch, 20000);
    *taken = (struct taken){ .count = 0 };
    if (rc == STOKER_EPOCH_END)
        rc = stoker_loader_next(loader, &batch, 20000);
    if (rc == STOKER_FINISHED)
        return false;
    CHECK(rc == STOKER_OK);
    note_rows(&batch, how->row_bytes, taken);
    CHECK(stoker_loader_state(loader, taken->state, sizeof(taken->state), &taken->state_size,
                              NULL) == STOKER_OK);
    CHECK(taken->state_size == STOKER_STATE_BYTES + (how->mixes ? 8 + 8 * SOURCES : 0));
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
        CHECK(memcmp(all[r].state, all[0].state, sizeof(all[r].state)) == 0);
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

/* Returns its size, 0 if there is none. All ranks read it before rank 0 writes the next: they
 * gather what they took in between. */
static size_t read_state(const char *path, uint8_t *state, size_t most)
{
    FILE *const file = fopen(path, "rbe");
    if (file == NULL)
        return 0;
    const size_t size = fread(state, 1, most, file);
    CHECK(size >= STOKER_STATE_BYTES);
    CHECK(fclose(file) == 0);
    return size;
}

static void write_state(const char *path, const struct taken *taken)
{
    FILE *const file = open_for(path, "wbe");
    CHECK(fwrite(taken->state, taken->state_size, 1, file) == 1);
    CHECK(fclose(file) == 0);
}

static void run_leg(const struct how *how, const char *lines, uint32_t updates)
{
    char saved[512];
    uint8_t state[sizeof(((struct taken *)NULL)->state)];
    struct taken taken;
    struct taken last = { .state_size = 0 };
    (void)snprintf(saved, sizeof(saved), "%.400s.state", lines);
    stoker_loader *loader = loader_of(how, state, read_state(saved, state, sizeof(state)));
    FILE *const file = peers->rank == 0 ? open_for(lines, "ae") : NULL;
    for (uint32_t update = 0; update < updates && take(loader, how, &taken); update++) {
        const void *all = NULL;
        CHECK(sizeof(taken) <= peers->gather_bytes_max);
        CHECK(peers->ops->gather(peers, &taken, sizeof(taken), &all, NULL) == STOKER_OK);
        last = taken;
        if (file != NULL)
            write_line(file, all, how->deal);
    }
    if (file != NULL) {
        write_state(saved, &last);
        CHECK(fclose(file) == 0);
    }
    stoker_loader_destroy(&loader);
}

int main(int argc, char **argv)
{
    const struct stk_peers_options options = { .timeout_ms = 30000, .floats_max = 1 };
    struct stk_file_set set;
    char text[600];
    stoker_error error = { .message = "" };
    if (argc == 3)
        return make(argv[2]);
    CHECK(argc == 4);
    set_paths(&set, argv[1]);
    (void)snprintf(text, sizeof(text), "idx:%s,%s", set.images, set.labels);
    stoker_dataset *images = open_spec(text);
    stoker_dataset *mix = open_mix(argv[1]);
    const struct how hows[] = {
        { "positions", STOKER_DEAL_POSITIONS, images, 3 * 3 * 3, false },
        { "batches", STOKER_DEAL_BATCHES, images, 3 * 3 * 3, false },
        { "mix", STOKER_DEAL_POSITIONS, mix, LENGTH * sizeof(uint16_t), true },
    };
    stoker_ranks ranks = STOKER_RANKS_INIT;
    if (stk_peers_join(&peers, &ranks, STOKER_PEERS_MPI, &options, &error) != STOKER_OK)
        fprintf(stderr, "%s\n", error.message);
    CHECK(peers != NULL);
    for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]); i++) {
        (void)snprintf(text, sizeof(text), "%.300s/%.60s.%s", argv[1], argv[2], hows[i].name);
        run_leg(&hows[i], text, (uint32_t)strtoul(argv[3], NULL, 10));
    }
    stk_peers_leave(&peers);
    stoker_dataset_close(&images);
    stoker_dataset_close(&mix);
    return 0;
}
