/* test_shards.c - records of shards on every route through the loader: none is delivered that is
 * not as it was stored, and one that is kept is verified once.
 *
 * Method: raw and LZ4 records, one bit of some of them flipped, by each reader, cache and type; and
 * a set of the test's own, which hands on what the shards say and counts.
 */
#include <fcntl.h>
#include <stdatomic.h>

#include "loader/dataset/dataset.h"
#include "support/files/shard_files.h"
#include "support/leaks.h"
#include "support/runs/scripted_reader.h"

enum { SHARDS = 3, COUNT = 16, SAMPLES = SHARDS * COUNT, EPOCHS = 4 };

static const char *const shard_names[SHARDS] = { "a.stk", "b.stk", "c.stk" };

/* Sample `id` is damaged: its shard's record on disk is another. */
static bool is_damaged(uint64_t id)
{
    return id == 2 || id == COUNT + 3 || id == 2 * COUNT;
}

/* Damaged samples have one bit flipped, behind the checksum's back. */
static struct stk_directory make_set(bool damaged)
{
    struct stk_directory directory = stk_directory_make();
    struct stk_shard_image image;
    for (uint32_t number = 0; number < SHARDS; number++) {
        stk_shard_image_make(&image, number, SHARDS, COUNT, stk_lz4_present() ? 2 : 1);
        for (uint32_t i = 0; damaged && i < COUNT; i++)
            if (is_damaged((uint64_t)number * COUNT + i))
                stk_shard_image_bytes(&image, i)[5] ^= 0x20;
        stk_shard_image_write(&image, &directory, shard_names[number]);
    }
    return directory;
}

static stoker_dataset *open_good(const struct stk_directory *directory)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    cr_assert_eq(stk_shard_test_open(&dataset, directory, "", &error), STOKER_OK, "%s",
                 error.message);
    return dataset;
}

static void check_row(const stoker_batch *batch, uint32_t row)
{
    uint8_t expected[STK_SHARD_TEST_ROW];
    const uint64_t id = batch->ids[row];
    stk_shard_test_row(id, expected);
    cr_assert_eq(((const int64_t *)batch->labels.data)[row], (int64_t)(id % 3));
    for (uint32_t i = 0; i < STK_SHARD_TEST_ROW; i++) {
        const size_t at = (size_t)row * STK_SHARD_TEST_ROW + i;
        const float found = batch->images.dtype == STOKER_DTYPE_UINT8
                                ? ((const uint8_t *)batch->images.data)[at]
                                : ((const float *)batch->images.data)[at];
        cr_assert_float_eq(found, (float)expected[i], 0.01F, "sample %d, byte %u", (int)id, i);
    }
}

/* All batches of a run; the rows of each epoch must be `expected`. */
static void play(const stoker_dataset *dataset, const stoker_loader_options *options,
                 uint32_t expected)
{
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    uint32_t rows = 0;
    cr_assert_eq(stoker_loader_create(&loader, dataset, options, NULL), STOKER_OK);
    for (int rc; (rc = stoker_loader_next(loader, &batch, -1)) != STOKER_FINISHED;) {
        if (rc == STOKER_EPOCH_END) {
            cr_assert_eq(rows, expected);
            rows = 0;
            continue;
        }
        cr_assert_eq(rc, STOKER_OK);
        rows += batch.count;
        for (uint32_t row = 0; row < batch.count; row++) {
            cr_assert(expected == SAMPLES || !is_damaged(batch.ids[row]));
            check_row(&batch, row);
        }
        stoker_batch_release(&batch);
    }
    stoker_error error;
    for (uint32_t i = 0; stoker_loader_bad_sample(loader, i, &error) == STOKER_OK; i++) {
        cr_assert_eq(error.code, STOKER_ECORRUPT);
        cr_assert_eq(error.stage, STOKER_STAGE_DECODE);
        cr_assert(is_damaged(error.sample));
        cr_assert_not_null(strstr(error.message, "checksum"), "%s", error.message);
    }
    stoker_loader_destroy(&loader);
}

static stoker_loader_options small_options(void)
{
    stoker_loader_options options = stk_default_options(.batch_size = 5);
    options.prefetch_batches = 2;
    options.epochs = EPOCHS;
    options.on_bad_sample = STOKER_ON_BAD_SKIP;
    options.pin_memory = STOKER_SWITCH_OFF;
    return options;
}

/* Every route through a set: readers x caches x workers x types. */
static void play_all(const stoker_dataset *dataset, uint32_t expected)
{
    const stoker_reader *const readers[] = { NULL, stoker_reader_pread() };
    static const stoker_dtype types[] = { STOKER_DTYPE_UINT8, STOKER_DTYPE_FLOAT32 };
    stoker_loader_options options = small_options();
    for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DECODED; cache++)
        for (int32_t workers = 0; workers <= 2; workers += 2)
            for (size_t i = 0; i < 4; i++) {
                options.cache = (stoker_cache)cache;
                options.num_workers = workers;
                options.reader = readers[i / 2];
                options.dtype = types[i % 2];
                options.scale = types[i % 2] == STOKER_DTYPE_UINT8 ? STOKER_SCALE_AUTO : 1.0F;
                play(dataset, &options, expected);
            }
}

CleanTest(loader_shards, rows_are_right_on_every_route)
{
    const struct stk_directory directory = make_set(false);
    stoker_dataset *dataset = open_good(&directory);
    play_all(dataset, SAMPLES);
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

CleanTest(loader_shards, rows_of_blocks_are_right_on_every_route)
{
    const struct stk_directory directory = stk_directory_make();
    struct stk_shard_image image;
    for (uint32_t number = 0; number < SHARDS; number++) {
        stk_shard_image_make_blocks(&image, number, SHARDS, COUNT, 3);
        stk_shard_image_write(&image, &directory, shard_names[number]);
    }
    stoker_dataset *dataset = open_good(&directory);
    play_all(dataset, SAMPLES);
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

/* In the later epochs, too: what is damaged is not kept. */
CleanTest(loader_shards, a_flipped_bit_is_noticed_on_every_route)
{
    const struct stk_directory directory = make_set(true);
    stoker_dataset *dataset = open_good(&directory);
    play_all(dataset, SAMPLES - 3);
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

/* ---- how often ---- */

/* Hands on what a set of shards says, its codecs wrapped to be counted. */
struct counting {
    stoker_dataset *inner;
    stoker_codec codecs[2]; /* [0] for raw records, [1] for others */
    const stoker_codec *wrapped[2];
    _Atomic uint32_t verified;
};

static struct counting counting;

static int count_verify(const void *self, const stoker_encoded *in, void *copy, stoker_error *error)
{
    const stoker_codec *codec = *(const stoker_codec *const *)self;
    atomic_fetch_add(&counting.verified, 1U);
    return codec->verify(codec->self, in, copy, error);
}

static int hand_on_decode(const void *self, void *scratch, const stoker_encoded *in,
                          const stoker_decoded *out, stoker_error *error)
{
    const stoker_codec *codec = *(const stoker_codec *const *)self;
    return codec->decode(codec->self, scratch, in, out, error);
}

static int describe(const void *self, stoker_dataset_info *out)
{
    (void)self;
    *out = *stoker_dataset_get_info(counting.inner);
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                  stoker_error *error)
{
    (void)self;
    const int rc = counting.inner->ops->locate(counting.inner->self, ids, count, out, error);
    for (uint32_t i = 0; rc == STOKER_OK && i < count; i++)
        out[i].codec = &counting.codecs[(out[i].codec->flags & STOKER_CODEC_ROW) != 0 ? 0 : 1];
    return rc;
}

static int values(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out)
{
    (void)self;
    return counting.inner->ops->values(counting.inner->self, field, ids, count, out);
}

static int file(const void *self, uint32_t number, stoker_file *out)
{
    (void)self;
    return counting.inner->ops->file(counting.inner->self, number, out);
}

static const stoker_dataset_ops counting_ops = { .struct_size = sizeof(stoker_dataset_ops),
                                                 .name = "counting",
                                                 .describe = describe,
                                                 .locate = locate,
                                                 .values = values,
                                                 .file = file };

static stoker_dataset *open_counting(const struct stk_directory *directory)
{
    stoker_dataset *dataset = NULL;
    counting.inner = open_good(directory);
    for (uint64_t id = 0; id < 2; id++) { /* records are raw and LZ4 in turn, if there is LZ4 */
        stoker_part sample;
        cr_assert_eq(stoker_dataset_locate(counting.inner, id, &sample, NULL), STOKER_OK);
        const int which = (sample.codec->flags & STOKER_CODEC_ROW) != 0 ? 0 : 1;
        counting.wrapped[which] = sample.codec;
        counting.codecs[which] = (stoker_codec){ .struct_size = sizeof(stoker_codec),
                                                 .name = "counted",
                                                 .self = &counting.wrapped[which],
                                                 .flags = which == 0 ? STOKER_CODEC_ROW : 0,
                                                 .decode = hand_on_decode,
                                                 .verify = count_verify };
    }
    cr_assert_eq(stoker_dataset_create(&dataset, &counting_ops, &counting, NULL), STOKER_OK);
    return dataset;
}

CleanTest(loader_shards, what_is_kept_is_verified_once)
{
    const struct stk_directory directory = make_set(false);
    for (int32_t workers = 0; workers <= 2; workers++)
        for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DECODED; cache++) {
            stoker_dataset *dataset = open_counting(&directory);
            stoker_loader_options options = small_options();
            atomic_store(&counting.verified, 0U);
            options.num_workers = workers;
            options.dtype = STOKER_DTYPE_UINT8;
            options.cache = (stoker_cache)cache;
            play(dataset, &options, SAMPLES);
            const uint32_t verified = atomic_load(&counting.verified);
            cr_assert_eq(verified, (cache == STOKER_CACHE_NONE ? EPOCHS : 1) * SAMPLES);
            stoker_dataset_close(&dataset);
            stoker_dataset_close(&counting.inner);
        }
    stk_directory_remove(&directory);
}

static uint64_t stored_bytes(const stoker_dataset *dataset)
{
    uint64_t bytes = 0;
    for (uint64_t id = 0; id < SAMPLES; id++) {
        stoker_part sample;
        cr_assert_eq(stoker_dataset_locate(dataset, id, &sample, NULL), STOKER_OK);
        bytes += sample.extent.bytes;
    }
    return bytes;
}

/* A record that came damaged is not kept, and its place not lost: it comes right later, and all are
 * kept. */
CleanTest(loader_shards, storage_that_flips_bits_for_a_while_fills_the_cache)
{
    enum { FLIPS = SAMPLES - 8 }; /* a whole epoch of them would end the run */
    static const struct stk_script_rule rule = {
        .what = STK_SCRIPT_FLIP, .amount = 5, .file = STK_SCRIPT_ANY_FILE, .times = FLIPS
    };
    const struct stk_directory directory = make_set(false);
    stoker_dataset *dataset = open_good(&directory);
    const uint64_t stored = stored_bytes(dataset);
    for (int32_t workers = 0; workers <= 2; workers++)
        for (int cache = STOKER_CACHE_ENCODED; cache <= STOKER_CACHE_DECODED; cache++) {
            stoker_loader *loader = NULL;
            stoker_batch batch = STOKER_BATCH_INIT;
            stoker_stats stats = { .struct_size = sizeof(stats) };
            stoker_loader_options options = small_options();
            uint64_t rows = 0;
            options.num_workers = workers;
            options.cache = (stoker_cache)cache;
            options.reader = &stk_scripted_reader;
            stk_script_install(&(struct stk_script){ .rules = &rule, .rule_count = 1 });
            cr_assert_eq(stoker_loader_create(&loader, dataset, &options, NULL), STOKER_OK);
            for (int rc; (rc = stoker_loader_next(loader, &batch, -1)) != STOKER_FINISHED;) {
                cr_assert_geq(rc, 0);
                for (uint32_t row = 0; rc == STOKER_OK && row < batch.count; row++)
                    check_row(&batch, row);
                rows += rc == STOKER_OK ? batch.count : 0;
                if (rc == STOKER_OK)
                    stoker_batch_release(&batch);
            }
            cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
            cr_assert_eq(stats.bad_samples, FLIPS);
            cr_assert_eq(rows, EPOCHS * SAMPLES - FLIPS);
            cr_assert_eq(stats.cache_held_bytes,
                         cache == STOKER_CACHE_ENCODED ? stored : SAMPLES * STK_SHARD_TEST_ROW);
            stoker_loader_destroy(&loader);
        }
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}
