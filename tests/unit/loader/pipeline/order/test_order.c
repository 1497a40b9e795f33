/* test_order.c - the right bytes, shared out among ranks; and the rules of borrowing: next,
 * release, the end of an epoch, the end of it all.
 */
#include "loader/base/struct_size.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/runs/scenario.h"

/* ---- the right bytes ---- */

enum { SAMPLES = 257, BATCH = 16 };

/* And each sample once in each epoch. That no setting changes them is test_determinism.c's. */
CleanTest(order, every_byte_is_the_files)
{
    struct stk_file_set set;
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    uint8_t seen[2][SAMPLES] = { 0 };
    cr_assert(stk_file_set_make(&set, SAMPLES, 9, 7, 0));
    const stoker_loader_options options = stk_small_options();
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), STOKER_OK);
    for (int rc; (rc = stoker_loader_next(loader, &batch, -1)) != STOKER_FINISHED;) {
        if (rc == STOKER_EPOCH_END)
            continue;
        cr_assert_eq(rc, STOKER_OK);
        cr_assert(stk_file_set_matches(&set, &batch));
        for (uint32_t i = 0; i < batch.count; i++)
            cr_assert_eq(seen[batch.epoch][batch.ids[i]]++, 0);
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
    stk_file_set_remove(&set);
}

CleanTest(order, ranks_share_each_epoch_out)
{
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, SAMPLES, 9, 7, 0));
    for (uint32_t world = 1; world <= 5; world++)
        for (int drop = 0; drop < 2; drop++) {
            uint8_t seen[SAMPLES] = { 0 };
            uint64_t dealt = 0;
            for (uint32_t rank = 0; rank < world; rank++) {
                stoker_loader_options options =
                    stk_small_options(.rank = rank, .world_size = world,
                                      .last = drop == 1 ? STOKER_LAST_DROP : STOKER_LAST_SHORT,
                                      .num_workers = (int32_t)rank, .epochs = 1);
                stoker_loader *loader = NULL;
                stoker_batch batch = STOKER_BATCH_INIT;
                uint64_t batches = 0;
                cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), STOKER_OK);
                while (stoker_loader_next(loader, &batch, -1) == STOKER_OK) {
                    cr_assert(stk_file_set_matches(&set, &batch));
                    for (uint32_t i = 0; i < batch.count; i++)
                        cr_assert_eq(seen[batch.ids[i]]++, 0);
                    cr_assert_eq(batch.index, batches++);
                    dealt += batch.count;
                    stoker_batch_release(&batch);
                }
                cr_assert_eq(batches, stoker_loader_batches_per_epoch(loader));
                cr_assert_eq(batches, drop ? SAMPLES / (BATCH * world)
                                           : (SAMPLES + BATCH * world - 1) / (BATCH * world));
                stoker_loader_destroy(&loader);
            }
            cr_assert_eq(dealt, drop ? SAMPLES / (BATCH * world) * BATCH * world : SAMPLES);
        }
    stk_file_set_remove(&set);
}

/* ---- borrowing ---- */

/* A held batch is not written to while others are made, taken and released. */
CleanTest(borrow, a_held_batch_stays_as_it_is)
{
    stoker_dataset *dataset = dataset_of("synth:bytes?count=1000&shape=40");
    for (int32_t workers = 0; workers <= 3; workers++) {
        stoker_loader_options options =
            stk_small_options(.num_workers = workers, .prefetch_batches = 4,
                              .epochs = STOKER_EPOCHS_ENDLESS);
        stoker_loader *loader = loader_of(dataset, &options);
        stoker_batch held[3];
        stk_batches_begin(held, 3);
        uint64_t hashes[3];
        for (int i = 0; i < 3; i++) {
            cr_assert_eq(stoker_loader_next(loader, &held[i], -1), STOKER_OK);
            hashes[i] = stk_batch_hash(&held[i]);
        }
        for (uint32_t round = 0; round < 120; round++) {
            const uint32_t out = round * 7 % 3; /* not always the oldest */
            for (int i = 0; i < 3; i++)
                cr_assert_eq(stk_batch_hash(&held[i]), hashes[i]);
            stoker_batch_release(&held[out]);
            int rc = stoker_loader_next(loader, &held[out], -1);
            if (rc == STOKER_EPOCH_END)
                rc = stoker_loader_next(loader, &held[out], -1);
            if (rc == STOKER_BUSY) { /* the next slot of the ring is among the held ones */
                for (uint32_t i = 0; i < 3; i++)
                    stoker_batch_release(&held[i]);
                for (uint32_t i = 0; i < 3; i++) {
                    while ((rc = stoker_loader_next(loader, &held[i], -1)) == STOKER_EPOCH_END)
                        ;
                    cr_assert_eq(rc, STOKER_OK);
                    hashes[i] = stk_batch_hash(&held[i]);
                }
                continue;
            }
            cr_assert_eq(rc, STOKER_OK);
            hashes[out] = stk_batch_hash(&held[out]);
        }
        for (int i = 0; i < 3; i++)
            stoker_batch_release(&held[i]);
        stoker_loader_destroy(&loader);
    }
    stoker_dataset_close(&dataset);
}

/* The slot that comes next is lent although others are free: that is reported, never waited for. */
CleanTest(borrow, a_batch_held_for_a_round_of_the_ring_is_busy)
{
    stoker_dataset *dataset = dataset_of("synth:bytes?count=1000&shape=40");
    for (int32_t workers = 0; workers <= 2; workers++) {
        stoker_loader_options options =
            stk_small_options(.num_workers = workers, .prefetch_batches = 4);
        stoker_loader *loader = loader_of(dataset, &options);
        stoker_batch first = STOKER_BATCH_INIT;
        stoker_batch batch = STOKER_BATCH_INIT;
        cr_assert_eq(stoker_loader_next(loader, &first, -1), STOKER_OK);
        for (int i = 1; i < 4; i++) {
            cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
            stoker_batch_release(&batch);
        }
        for (int i = 0; i < 3; i++)
            cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_BUSY);
        stoker_batch_release(&first);
        cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
        cr_assert_eq(batch.index, 4);
        stoker_batch_release(&batch);
        stoker_loader_destroy(&loader);
    }
    stoker_dataset_close(&dataset);
}

CleanTest(borrow, all_slots_lent_is_busy_until_one_comes_back)
{
    stoker_dataset *dataset = dataset_of("synth:bytes?count=1000&shape=40");
    for (uint32_t prefetch = 2; prefetch <= 5; prefetch++) {
        stoker_loader_options options =
            stk_small_options(.prefetch_batches = prefetch, .num_workers = (int32_t)prefetch - 2);
        stoker_loader *loader = loader_of(dataset, &options);
        stoker_batch held[5];
        stk_batches_begin(held, 5);
        stoker_batch untouched = { .struct_size = sizeof(stoker_batch), .count = 12345 };
        for (uint32_t i = 0; i < prefetch; i++)
            cr_assert_eq(stoker_loader_next(loader, &held[i], -1), STOKER_OK);
        cr_assert_eq(stoker_loader_next(loader, &untouched, -1), STOKER_BUSY);
        cr_assert_eq(untouched.count, 12345); /* written on success only */
        stoker_batch_release(&held[0]);
        cr_assert_eq(stoker_loader_next(loader, &held[0], -1), STOKER_OK);
        cr_assert_eq(held[0].index, prefetch);
        stoker_loader_destroy(&loader); /* with all of them lent */
        for (uint32_t i = 0; i < prefetch; i++)
            stoker_batch_release(&held[i]);
    }
    stoker_dataset_close(&dataset);
}

/* A batch of an older version is smaller: what lies behind it is not touched. */
CleanTest(borrow, a_batch_has_the_size_that_its_struct_size_gives)
{
    const size_t ours = sizeof(stoker_batch);
    static const size_t refused[] = { 0, 1, sizeof(stoker_batch) - 1, STK_STRUCT_BYTES_MAX + 1,
                                      SIZE_MAX };
    struct {
        stoker_batch batch;
        uint8_t behind[64];
    } given = { .batch = STOKER_BATCH_INIT };
    stoker_dataset *dataset = dataset_of("synth:bytes?count=1000&shape=40");
    stoker_loader_options options = stk_small_options();
    stoker_loader *loader = loader_of(dataset, &options);
    memset(given.behind, 0xA5, sizeof(given.behind));
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        given.batch.struct_size = refused[i];
        cr_assert_eq(stoker_loader_next(loader, &given.batch, -1), STOKER_EINVAL);
        cr_assert_null(given.batch.images.data);
    }
    given.batch.struct_size = ours;
    cr_assert_eq(stoker_loader_next(loader, &given.batch, -1), STOKER_OK);
    cr_assert_eq(given.batch.struct_size, ours);
    stoker_batch_release(&given.batch);
    cr_assert_eq(given.batch.struct_size, ours);
    for (size_t i = 0; i < sizeof(given.behind); i++)
        cr_assert_eq(given.behind[i], 0xA5);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

CleanTest(borrow, releasing_twice_or_nothing_is_harmless)
{
    stoker_dataset *dataset = dataset_of("synth:bytes?count=1000&shape=40");
    stoker_loader_options options = stk_small_options(.prefetch_batches = 2);
    stoker_loader *loader = loader_of(dataset, &options);
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_batch copy = STOKER_BATCH_INIT;
    stoker_batch_release(NULL);
    stoker_batch_release(&(stoker_batch){ .struct_size = sizeof(stoker_batch), .count = 0 });
    for (uint64_t i = 0; i < 40; i++) {
        cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
        cr_assert_eq(batch.index, i);
        const uint64_t hash = stk_batch_hash(&batch);
        cr_assert_neq(hash, 0);
        copy = batch;
        stoker_batch_release(&batch);
        cr_assert_null(batch.loader);
        cr_assert_null(batch.images.data);
        cr_assert_eq(batch.count, 0);
        stoker_batch_release(&batch);
        stoker_batch_release(&copy); /* a copy of what is given back already */
    }
    /* Had the second release counted, more than two could now be held. */
    cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
    cr_assert_eq(stoker_loader_next(loader, &copy, -1), STOKER_OK);
    stoker_batch third = STOKER_BATCH_INIT;
    cr_assert_eq(stoker_loader_next(loader, &third, -1), STOKER_BUSY);
    stoker_batch_release(&batch);
    stoker_batch_release(&copy);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

/* ---- ends ---- */

static void check_ends(uint64_t count, uint64_t epochs, bool drop_last, int32_t workers)
{
    char spec[64];
    (void)snprintf(spec, sizeof(spec), "synth:bytes?count=%llu&shape=3", (unsigned long long)count);
    stoker_dataset *dataset = dataset_of(spec);
    stoker_loader_options options =
        stk_small_options(.epochs = epochs,
                          .last = drop_last ? STOKER_LAST_DROP : STOKER_LAST_SHORT,
                          .num_workers = workers);
    stoker_loader *loader = loader_of(dataset, &options);
    const uint64_t batches = drop_last ? count / BATCH : (count + BATCH - 1) / BATCH;
    stoker_batch batch = STOKER_BATCH_INIT;
    for (uint64_t epoch = 0; epoch < epochs; epoch++) {
        for (uint64_t i = 0; i < batches; i++) {
            cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
            const uint64_t left = count - i * BATCH;
            cr_assert_eq(batch.count, left < BATCH ? left : BATCH);
            cr_assert_eq(batch.images.shape[0], batch.count);
            cr_assert_eq(batch.labels.shape[0], batch.count);
            cr_assert_eq(batch.epoch, epoch);
            cr_assert_eq(batch.index, i);
            stoker_batch_release(&batch);
        }
        cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_EPOCH_END);
    }
    for (int again = 0; again < 5; again++)
        cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_FINISHED);
    cr_assert_null(stoker_loader_error(loader));
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

CleanTest(ends, each_epoch_ends_once_and_the_run_for_good)
{
    static const uint64_t counts[] = { 16, 17, 31, 32, 33, 100 };
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        for (uint64_t epochs = 1; epochs <= 3; epochs++)
            for (int32_t workers = 0; workers <= 2; workers++) {
                check_ends(counts[i], epochs, false, workers);
                check_ends(counts[i], epochs, true, workers);
            }
}

/* 17 samples, 5 ranks of 1: in the fourth batch ranks 2 to 4 have no row, and still get it. */
CleanTest(ends, a_rank_without_rows_gets_an_empty_batch)
{
    stoker_dataset *dataset = dataset_of("synth:bytes?count=17&shape=3");
    for (uint32_t rank = 0; rank < 5; rank++) {
        stoker_loader_options options =
            stk_small_options(.batch_size = 1, .rank = rank, .world_size = 5, .epochs = 1);
        stoker_loader *loader = loader_of(dataset, &options);
        stoker_batch batch = STOKER_BATCH_INIT;
        for (uint64_t i = 0; i < 4; i++) {
            cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
            cr_assert_eq(batch.count, i < 3 || rank < 2 ? 1 : 0);
            stoker_batch_release(&batch);
        }
        cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_EPOCH_END);
        cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_FINISHED);
        stoker_loader_destroy(&loader);
    }
    stoker_dataset_close(&dataset);
}

CleanTest(ends, null_arguments_are_answered)
{
    stoker_dataset *dataset = dataset_of("synth:bytes?count=17&shape=3");
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    uint8_t state[STOKER_STATE_BYTES];
    stoker_error error;
    cr_assert_eq(stoker_loader_create(NULL, dataset, NULL, NULL), STOKER_EINVAL);
    cr_assert_eq(stoker_loader_create(&loader, NULL, NULL, NULL), STOKER_EINVAL);
    cr_assert_null(loader);
    cr_assert_eq(stoker_loader_next(NULL, &batch, -1), STOKER_EINVAL);
    cr_assert_eq(stoker_loader_state(NULL, state, sizeof(state), NULL, NULL), STOKER_EINVAL);
    cr_assert_eq(stoker_loader_bad_sample(NULL, 0, &error), STOKER_EINVAL);
    cr_assert_eq(stoker_loader_batches_per_epoch(NULL), 0);
    cr_assert_null(stoker_loader_error(NULL));
    stoker_loader_destroy(NULL);
    stoker_loader_destroy(&loader);
    const stoker_loader_options options = stk_small_options();
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, NULL), STOKER_OK);
    cr_assert_eq(stoker_loader_next(loader, NULL, -1), STOKER_EINVAL);
    cr_assert_eq(stoker_loader_state(loader, NULL, 0, NULL, NULL), STOKER_OK);
    cr_assert_eq(stoker_loader_bad_sample(loader, 0, &error), STOKER_EINVAL);
    stoker_loader_destroy(&loader);
    cr_assert_null(loader);
    stoker_dataset_close(&dataset);
}
