/* test_mix.c - a mix whose weights change again and again while workers take its positions: a run
 * with any number of workers delivers what one without workers does, that made the same changes.
 *
 *   consumer   next, release, change ─▶ course      workers   course ─▶ frames ─▶ ids
 */
#include "support/runs/scenario.h"
#include "support/thread_check.h"

enum { SOURCES = 3, BATCH = 8, EPOCH = 120, BATCHES = 60, SLOTS = 3, RUNS = 4 };

static const char spec[] =
    "mix:0.5*(synth:bytes?count=50&shape=8)+0.3*(synth:bytes?count=7&shape=8)"
    "+0.2*(synth:bytes?count=90&shape=8)?epoch_samples=120";

/* Change the weights at the end of the batches that may be under way after `done`. Light weights
 * take longer frames. */
static void change(stoker_loader *loader, uint32_t done)
{
    const double weights[SOURCES] = { 1.0, done % 7 == 0 ? 0.0 : 0.5, 1.0 / (1 + done * done) };
    const stoker_mix_change later = { .position = (uint64_t)(done + SLOTS) * BATCH + done % BATCH,
                                      .weights = weights };
    stoker_error error = { .message = "" };
    if (stoker_loader_change_mix(loader, &later, &error) != STOKER_OK)
        fprintf(stderr, "%s\n", error.message);
    CHECK(error.message[0] == '\0');
}

static uint64_t run(const stoker_dataset *dataset, int32_t workers)
{
    stoker_loader_options options =
        stk_small_options(.batch_size = BATCH, .epochs = BATCHES * BATCH / EPOCH,
                          .prefetch_batches = SLOTS, .num_workers = workers);
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    uint64_t hash = 0;
    CHECK(stoker_loader_create(&loader, dataset, &options, NULL) == STOKER_OK);
    for (uint32_t done = 0; done < BATCHES;) {
        if (stoker_loader_next(loader, &batch, 20000) == STOKER_EPOCH_END)
            continue;
        CHECK(batch.count == BATCH);
        for (uint32_t row = 0; row < batch.count; row++)
            hash = stk_mix64(hash ^ batch.ids[row]);
        stoker_batch_release(&batch);
        if (++done + SLOTS < BATCHES)
            change(loader, done);
    }
    stoker_loader_destroy(&loader);
    return hash;
}

int main(void)
{
    stoker_dataset *dataset = NULL;
    CHECK(stoker_dataset_open(&dataset, spec, NULL, NULL) == STOKER_OK);
    const uint64_t expected = run(dataset, 0);
    for (int32_t workers = 1; workers <= RUNS; workers++)
        CHECK(run(dataset, workers) == expected);
    stoker_dataset_close(&dataset);
    return 0;
}
