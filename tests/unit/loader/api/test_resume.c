/* test_resume.c - what a state says, and what resumes from it: indices, ends of epochs. That the
 * samples are those of a run never stopped is test_determinism.c's.
 */
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/runs/scenario.h"

static uint64_t take(stoker_loader *loader, uint32_t batches, uint8_t *seen)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    uint64_t taken = 0;
    for (uint32_t i = 0; i < batches && stoker_loader_next(loader, &batch, -1) == STOKER_OK; i++) {
        for (uint32_t row = 0; row < batch.count; row++)
            seen[batch.ids[row]]++;
        taken += batch.count;
        stoker_batch_release(&batch);
    }
    return taken;
}

/* The number of a batch in its epoch, for progress and schedules, is that of a run never
 * stopped. */
CleanTest(resume, the_index_of_a_batch_continues)
{
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_open(&dataset, "synth:bytes?count=107&shape=3", NULL, NULL), 0);
    for (int last = STOKER_LAST_SHORT; last <= STOKER_LAST_EVEN; last++)
        for (uint32_t stop = 0; stop <= 10; stop++) {
            uint8_t state[STOKER_STATE_BYTES];
            stoker_batch batch = STOKER_BATCH_INIT;
            stoker_loader_options options = stk_small_options(.batch_size = 5, .world_size = 2,
                                                              .rank = 1, .last = (stoker_last)last);
            uint8_t seen[107] = { 0 };
            stoker_loader *loader = loader_of(dataset, &options);
            (void)take(loader, stop, seen);
            save_and_destroy(&loader, &options, state, sizeof(state));
            loader = loader_of(dataset, &options);
            const uint64_t batches = stoker_loader_batches_per_epoch(loader);
            for (uint64_t index = stop; index < 2 * batches;) {
                const int rc = stoker_loader_next(loader, &batch, -1);
                if (rc == STOKER_EPOCH_END)
                    continue;
                cr_assert_eq(rc, STOKER_OK);
                cr_assert_eq(batch.epoch, index / batches);
                cr_assert_eq(batch.index, index % batches, "stop %u: %d", stop, (int)batch.index);
                stoker_batch_release(&batch);
                index++;
            }
            stoker_loader_destroy(&loader);
        }
    stoker_dataset_close(&dataset);
}

/* A state that is moved is the state that a loader has there. */
CleanTest(resume, a_state_moves_to_any_position)
{
    stoker_dataset *dataset = NULL;
    uint8_t moved[STOKER_STATE_BYTES], state[STOKER_STATE_BYTES];
    stoker_error error;
    uint8_t seen[107] = { 0 };
    stoker_loader_options options = stk_small_options(.batch_size = 5);
    cr_assert_eq(stoker_dataset_open(&dataset, "synth:bytes?count=107&shape=3", NULL, NULL), 0);
    stoker_loader *loader = loader_of(dataset, &options);
    cr_assert_eq(stoker_loader_state(loader, moved, sizeof(moved), NULL, NULL), STOKER_OK);
    for (uint64_t batch = 1; batch <= 22; batch++) {
        (void)take(loader, 1, seen);
        cr_assert_eq(stoker_loader_state(loader, state, sizeof(state), NULL, NULL), STOKER_OK);
        cr_assert_eq(
            stoker_state_seek(moved, sizeof(moved), 0, batch == 22 ? 107 : 5 * batch, NULL),
            STOKER_OK);
        cr_assert_arr_eq(moved, state, sizeof(state));
    }
    stoker_loader_destroy(&loader);
    cr_assert_eq(stoker_state_seek(moved, sizeof(moved), 0, 108, NULL), STOKER_OK);
    options.resume = moved;
    options.resume_size = sizeof(moved);
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), STOKER_ESTATE);
    moved[20] ^= 1;
    memcpy(state, moved, sizeof(state));
    cr_assert_eq(stoker_state_seek(moved, sizeof(moved), 0, 5, &error), STOKER_ESTATE);
    cr_assert_arr_eq(moved, state, sizeof(state));
    cr_assert_eq(strncmp(error.message, "state: damaged", 14), 0, "%s", error.message);
    cr_assert_eq(stoker_state_seek(NULL, sizeof(moved), 0, 5, &error), STOKER_EINVAL);
    stoker_dataset_close(&dataset);
}

/* With another batch size the last index of the epoch is the same as without a stop. */
CleanTest(resume, the_index_ends_where_the_epoch_does)
{
    stoker_dataset *dataset = NULL;
    uint8_t state[STOKER_STATE_BYTES];
    stoker_batch batch = STOKER_BATCH_INIT;
    uint8_t seen[107] = { 0 };
    stoker_loader_options options = stk_small_options(.batch_size = 5, .epochs = 1);
    cr_assert_eq(stoker_dataset_open(&dataset, "synth:bytes?count=107&shape=3", NULL, NULL), 0);
    stoker_loader *loader = loader_of(dataset, &options);
    (void)take(loader, 3, seen);
    save_and_destroy(&loader, &options, state, sizeof(state));
    options.batch_size = 16; /* 92 samples are left: 6 batches of 7 */
    loader = loader_of(dataset, &options);
    for (uint64_t index = 1; index < 7; index++) {
        cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
        cr_assert_eq(batch.index, index);
        stoker_batch_release(&batch);
    }
    cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_EPOCH_END);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

/* After the last batch, before its EPOCH_END: the end is reported, then the next epoch begins.
 * After EPOCH_END it is not reported again. */
CleanTest(resume, exactly_at_the_end_of_an_epoch)
{
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_open(&dataset, "synth:bytes?count=40&shape=3", NULL, NULL), 0);
    for (int i = 0; i < 4; i++)
        for (uint64_t epochs = 0; epochs <= 2; epochs++) { /* 0: endless */
            const bool drop = i % 2 == 1;
            const bool reported = i / 2 == 1;
            uint8_t seen[40] = { 0 };
            uint8_t state[STOKER_STATE_BYTES];
            stoker_batch batch = STOKER_BATCH_INIT;
            stoker_loader_options options =
                stk_small_options(.last = drop ? STOKER_LAST_DROP : STOKER_LAST_SHORT,
                                  .epochs = epochs == 0 ? STOKER_EPOCHS_ENDLESS : epochs);
            stoker_loader *loader = loader_of(dataset, &options);
            (void)take(loader, drop ? 2 : 3, seen);
            if (reported)
                cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_EPOCH_END);
            save_and_destroy(&loader, &options, state, sizeof(state));
            loader = loader_of(dataset, &options);
            if (!reported)
                cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_EPOCH_END);
            if (epochs == 1) {
                cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_FINISHED);
            } else {
                cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
                cr_assert_eq(batch.epoch, 1);
                cr_assert_eq(batch.index, 0);
            }
            stoker_batch_release(&batch);
            stoker_loader_destroy(&loader);
        }
    stoker_dataset_close(&dataset);
}

/* Batches that workers made ahead are not in the state. */
CleanTest(resume, a_state_counts_delivered_batches_only)
{
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_open(&dataset, "synth:bytes?count=1000&shape=3", NULL, NULL), 0);
    uint8_t states[2][STOKER_STATE_BYTES];
    for (int i = 0; i < 2; i++) {
        uint8_t seen[1000] = { 0 };
        stoker_loader_options options =
            stk_small_options(.num_workers = i * 3, .prefetch_batches = i == 0 ? 2 : 32);
        stoker_loader *loader = loader_of(dataset, &options);
        cr_assert_eq(take(loader, 7, seen), 112);
        save_and_destroy(&loader, &options, states[i], sizeof(states[i]));
    }
    cr_assert_arr_eq(states[0], states[1], sizeof(states[0]));
    stoker_dataset_close(&dataset);
}

CleanTest(resume, from_the_state_of_another_set_is_refused)
{
    static const char *const others[][2] = {
        { "synth:bytes?count=101&shape=3", "this has 101" },
        { "synth:bytes?count=100&shape=3&dtype=int8", "element type" },
    };
    uint8_t state[STOKER_STATE_BYTES];
    stoker_loader_options options = stk_small_options();
    stoker_dataset *dataset = dataset_of("synth:bytes?count=100&shape=3");
    stoker_loader *loader = loader_of(dataset, &options);
    save_and_destroy(&loader, &options, state, sizeof(state));
    stoker_dataset_close(&dataset);
    for (int i = 0; i < 2; i++) {
        stoker_error error = { 0 };
        dataset = dataset_of(others[i][0]);
        cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), STOKER_ESTATE);
        cr_assert_null(loader);
        cr_assert_eq(strncmp(error.message, "resume: ", 8), 0);
        cr_assert_not_null(strstr(error.message, others[i][1]), "%s", error.message);
        stoker_dataset_close(&dataset);
    }
}

/* Room, size and arguments; options.resume is a pointer with a size. */
CleanTest(resume, a_state_goes_where_there_is_room)
{
    uint8_t state[STOKER_STATE_BYTES + 1];
    size_t size = 0;
    stoker_error error = { 0 };
    stoker_loader_options options = stk_small_options();
    stoker_dataset *dataset = dataset_of("synth:bytes?count=100&shape=3");
    stoker_loader *loader = loader_of(dataset, &options);
    cr_assert_eq(stoker_loader_state(loader, NULL, 0, &size, NULL), STOKER_OK);
    cr_assert_eq(size, STOKER_STATE_BYTES);
    size = 0;
    memset(state, 0xA5, sizeof(state));
    cr_assert_eq(stoker_loader_state(loader, state, STOKER_STATE_BYTES - 1, &size, &error),
                 STOKER_ELIMIT);
    cr_assert_not_null(strstr(error.message, "63 bytes, the state has 64"), "%s", error.message);
    cr_assert_eq(size, STOKER_STATE_BYTES);
    cr_assert_eq(state[0], 0xA5);
    cr_assert_eq(stoker_loader_state(loader, state, sizeof(state), NULL, NULL), STOKER_OK);
    cr_assert_eq(state[STOKER_STATE_BYTES], 0xA5);
    stoker_loader_destroy(&loader);
    for (int i = 0; i < 2; i++) {
        options.resume = i == 0 ? NULL : state;
        options.resume_size = i == 0 ? STOKER_STATE_BYTES : 0;
        cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), STOKER_EINVAL);
        cr_assert_not_null(strstr(error.message, "resume_size"), "%s", error.message);
    }
    stoker_dataset_close(&dataset);
}
