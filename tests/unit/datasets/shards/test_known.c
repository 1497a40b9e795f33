/* test_known.c - shards verified once, and shards taken from mapped files.
 *
 * Method: read a record, change it in the file, read it again: what is noticed says what was
 * verified. The same rows and the same identity with every combination of the two parameters.
 */
#include <fcntl.h>
#include <sys/mman.h>

#include "datasets/shards/known.h"
#include "loader/dataset/identity.h"
#include "support/files/shard_files.h"
#include "support/leaks.h"
#include "support/sets/read_row.h"

enum {
    COUNT = 70, /* more than a word of marks */
    SHARDS = 2,
    EPOCHS = 20 /* many more rows than a loader makes ahead */
};

static const char *const all[] = { "", "?verify=always", "?verify=once", "?map=1",
                                   "?map=1&verify=once" };
enum { ALL = sizeof(all) / sizeof(all[0]) };

static struct stk_directory make_set(void)
{
    static const char *const names[SHARDS] = { "a.stk", "b.stk" };
    struct stk_directory directory = stk_directory_make();
    struct stk_shard_image image;
    for (uint32_t number = 0; number < SHARDS; number++) {
        stk_shard_image_make(&image, number, SHARDS, COUNT, 1);
        stk_shard_image_write(&image, &directory, names[number]);
    }
    return directory;
}

static stoker_dataset *open_set(const struct stk_directory *directory, const char *parameters)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    cr_assert_eq(stk_shard_test_open(&dataset, directory, parameters, &error), STOKER_OK, "%s: %s",
                 parameters, error.message);
    return dataset;
}

/* Add one to the first byte of a record of the first shard. */
static void damage(const struct stk_directory *directory, uint32_t id)
{
    char path[512];
    const int fd = open(stk_path_in(path, directory, "a.stk"), O_RDWR | O_CLOEXEC);
    const off_t at = 4096 + (off_t)STK_SHARD_TEST_ROW * id;
    uint8_t byte = 0;
    cr_assert_geq(fd, 0);
    cr_assert_eq(pread(fd, &byte, 1, at), 1);
    byte++;
    cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static int read_row(const stoker_dataset *dataset, uint64_t id, uint8_t row[STK_SHARD_TEST_ROW])
{
    stoker_label label;
    stoker_error error = { .message = "" };
    return stk_read_row(dataset, id, row, STK_SHARD_TEST_ROW, &label, &error);
}

/* Damage before the first read is always noticed, and again: a wrong record is never marked. */
CleanTest(shards_known, the_first_read_is_verified)
{
    for (size_t i = 0; i < ALL; i++) {
        const struct stk_directory directory = make_set();
        stoker_dataset *dataset = open_set(&directory, all[i]);
        uint8_t row[STK_SHARD_TEST_ROW];
        damage(&directory, 1);
        for (int turn = 0; turn < 2; turn++)
            cr_assert_eq(read_row(dataset, 1, row), STOKER_ECORRUPT, "%s", all[i]);
        cr_assert_eq(read_row(dataset, 0, row), STOKER_OK);
        cr_assert_eq(read_row(dataset, 2, row), STOKER_OK);
        stoker_dataset_close(&dataset);
        stk_directory_remove(&directory);
    }
}

CleanTest(shards_known, later_damage_is_noticed_unless_verified_once)
{
    for (size_t i = 0; i < ALL; i++) {
        const struct stk_directory directory = make_set();
        stoker_dataset *dataset = open_set(&directory, all[i]);
        const bool once = strstr(all[i], "once") != NULL;
        uint8_t row[STK_SHARD_TEST_ROW];
        uint8_t changed[STK_SHARD_TEST_ROW];
        cr_assert_eq(read_row(dataset, 65, row), STOKER_OK);
        damage(&directory, 65);
        cr_assert_eq(read_row(dataset, 65, changed), once ? STOKER_OK : STOKER_ECORRUPT, "%s",
                     all[i]);
        if (once)
            cr_assert_eq(changed[0], (uint8_t)(row[0] + 1));
        stoker_dataset_close(&dataset);
        stk_directory_remove(&directory);
    }
}

/* Records are read the first time, and in memory after that. */
CleanTest(shards_known, a_record_is_mapped_once_it_was_read)
{
    const struct stk_directory directory = make_set();
    for (size_t i = 0; i < ALL; i++) {
        stoker_dataset *dataset = open_set(&directory, all[i]);
        const bool maps = strstr(all[i], "map") != NULL;
        const bool once = strstr(all[i], "once") != NULL;
        uint8_t row[STK_SHARD_TEST_ROW];
        stoker_part sample = { 0 };
        cr_assert_eq(stoker_dataset_locate(dataset, COUNT, &sample, NULL), STOKER_OK);
        cr_assert_null(sample.extent.memory);
        cr_assert_not_null(sample.codec);
        cr_assert_eq(read_row(dataset, COUNT, row), STOKER_OK);
        cr_assert_eq(stoker_dataset_locate(dataset, COUNT, &sample, NULL), STOKER_OK);
        cr_assert_eq(sample.extent.memory != NULL, maps, "%s", all[i]);
        cr_assert_eq(sample.codec == NULL, maps && once, "%s", all[i]);
        if (maps)
            cr_assert_arr_eq(sample.extent.memory, row, sizeof(row));
        cr_assert_eq(sample.extent.offset, 4096);
        cr_assert_eq(sample.extent.file, 1);
        stoker_dataset_close(&dataset);
    }
    stk_directory_remove(&directory);
}

/* A run may be resumed with other parameters, before or after its records were read. */
CleanTest(shards_known, the_identity_stays)
{
    const struct stk_directory directory = make_set();
    stoker_dataset *plain = open_set(&directory, "");
    const struct stk_fingerprint wanted = stk_fingerprint_of(plain);
    for (size_t i = 0; i < ALL; i++) {
        for (int read = 0; read < 2; read++) {
            stoker_dataset *dataset = open_set(&directory, all[i]);
            uint8_t row[STK_SHARD_TEST_ROW];
            for (uint64_t id = 0; read == 1 && id < SHARDS * COUNT; id++)
                cr_assert_eq(read_row(dataset, id, row), STOKER_OK);
            const struct stk_fingerprint found = stk_fingerprint_of(dataset);
            cr_assert_eq(found.form, wanted.form);
            cr_assert_eq(found.content, wanted.content, "%s", all[i]);
            stoker_dataset_close(&dataset);
        }
    }
    stoker_dataset_close(&plain);
    stk_directory_remove(&directory);
}

static void check_batch(const stoker_batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        uint8_t expected[STK_SHARD_TEST_ROW];
        stk_shard_test_row(batch->ids[i], expected);
        cr_assert_arr_eq((const uint8_t *)batch->images.data + i * sizeof(expected), expected,
                         sizeof(expected));
        cr_assert_eq(((const int64_t *)batch->labels.data)[i], (int64_t)(batch->ids[i] % 3));
    }
}

/* Several epochs: the first reads, later ones do not; with an odd batch, spans mix both. */
CleanTest(shards_known, loaders_deliver_the_same_rows)
{
    const struct stk_directory directory = make_set();
    for (size_t i = 0; i < ALL * 3; i++) {
        stoker_dataset *dataset = open_set(&directory, all[i / 3]);
        stoker_loader *loader = NULL;
        stoker_loader_options options = stk_default_options(.batch_size = 7, .shuffle = true);
        stoker_batch batch = STOKER_BATCH_INIT;
        stoker_stats stats = { .struct_size = sizeof(stats) };
        uint64_t seen = 0;
        options.num_workers = (int32_t)(i % 3);
        options.epochs = EPOCHS;
        options.cache = STOKER_CACHE_NONE;
        cr_assert_eq(stoker_loader_create(&loader, dataset, &options, NULL), STOKER_OK);
        int rc;
        while ((rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK ||
               rc == STOKER_EPOCH_END) {
            if (rc == STOKER_EPOCH_END)
                continue;
            check_batch(&batch);
            seen += batch.count;
            stoker_batch_release(&batch);
        }
        cr_assert_null(stoker_loader_error(loader));
        cr_assert_eq(seen, EPOCHS * SHARDS * COUNT);
        cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
        const bool maps = strstr(all[i / 3], "map") != NULL;
        cr_assert_eq(stats.reads < EPOCHS * SHARDS * COUNT / 2, maps, "%llu reads",
                     (unsigned long long)stats.reads);
        stoker_loader_destroy(&loader);
        stoker_dataset_close(&dataset);
    }
    stk_directory_remove(&directory);
}

CleanTest(shards_known, parameters_are_checked)
{
    static const char *const wrong[] = { "?verify=never", "?verify=", "?map=2", "?verify=oncee" };
    const struct stk_directory directory = make_set();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        stoker_dataset *dataset = NULL;
        stoker_error error = { .message = "" };
        cr_assert_lt(stk_shard_test_open(&dataset, &directory, wrong[i], &error), 0, "%s",
                     wrong[i]);
        cr_assert_null(dataset);
    }
    stk_directory_remove(&directory);
}

/* Records 2^24 apart share the low bits of their index: with one checksum neither is ever
 * marked. */
Test(shards_known, records_that_look_the_same_are_not_told_apart)
{
    const uint64_t step = UINT64_C(1) << STK_SHARD_INDEX_BITS;
    const uint64_t count = step + 3;
    struct stk_shard_known known;
    struct stk_shard_record *records = mmap(NULL, count * sizeof(*records), PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                                            0); /* pages not touched take no memory */
    cr_assert_neq((void *)records, MAP_FAILED);
    records[1].sum = records[step + 1].sum = 77;
    records[2].sum = 5;
    cr_assert_eq(stk_shard_known_make(&known, records, count), STOKER_OK);
    cr_assert_eq(stk_shard_known_find(&known, 77, 1), STK_SHARD_NO_INDEX);
    cr_assert_eq(stk_shard_known_find(&known, 5, 2), 2);
    cr_assert_eq(stk_shard_known_find(&known, 0, 2), step + 2);
    cr_assert_eq(stk_shard_known_find(&known, 78, 1), STK_SHARD_NO_INDEX);
    stk_shard_known_mark(&known, STK_SHARD_NO_INDEX); /* marks none */
    stk_shard_known_mark(&known, step + 2);
    cr_assert(stk_shard_known_has(&known, step + 2));
    cr_assert_not(stk_shard_known_has(&known, 2));
    cr_assert_not(stk_shard_known_has(&known, STK_SHARD_NO_INDEX));
    stk_shard_known_free(&known);
    munmap(records, count * sizeof(*records));
}

/* A record that changes after its first epoch, in memory from then on. */
CleanTest(shards_known, a_loader_notices_later_damage_of_a_mapped_record)
{
    static const bool converts[] = { false, true };
    for (size_t i = 0; i < sizeof(converts) / sizeof(converts[0]); i++) {
        const struct stk_directory directory = make_set();
        stoker_dataset *dataset = open_set(&directory, "?map=1");
        stoker_loader *loader = NULL;
        stoker_loader_options options =
            stk_default_options(.batch_size = 7, .num_workers = 0, .epochs = EPOCHS,
                                .cache = STOKER_CACHE_NONE,
                                .dtype = converts[i] ? STOKER_DTYPE_FLOAT32 : STOKER_DTYPE_UINT8);
        stoker_batch batch = STOKER_BATCH_INIT;
        cr_assert_eq(stoker_loader_create(&loader, dataset, &options, NULL), STOKER_OK);
        int rc;
        while ((rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK)
            stoker_batch_release(&batch);
        cr_assert_eq(rc, STOKER_EPOCH_END);
        damage(&directory, 65);
        while ((rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK || rc == STOKER_EPOCH_END)
            stoker_batch_release(&batch);
        cr_assert_eq(rc, STOKER_ECORRUPT);
        cr_assert_eq(stoker_loader_error(loader)->sample, 65);
        cr_assert_not_null(strstr(stoker_loader_error(loader)->message, "checksum"));
        stoker_loader_destroy(&loader);
        stoker_dataset_close(&dataset);
        stk_directory_remove(&directory);
    }
}
