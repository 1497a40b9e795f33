/* test_shard_fields.c - shards of version 2 are read as their description says, and accepted only as far as they can be
 * verified.
 *
 * Method: write shards byte by byte by the description (field_shard_files.h), read them back; then spoil every part of
 * one, with its checksums left wrong and with them made right.
 */
#include "support/field_shard_files.h"
#include "support/fields_of.h"
#include "support/leaks.h"

enum { COUNT = 5, SHARDS = 3 };

static struct stk_field_shard shard;

static void write_shard(const struct stk_directory *directory, const char *name, size_t size)
{
    stk_file_write(directory, name, shard.at, size);
}

static struct stk_directory make_set(void)
{
    static const char *const names[SHARDS] = { "a.stk", "b.stk", "c.stk" };
    const struct stk_directory directory = stk_directory_make();
    for (uint32_t number = 0; number < SHARDS; number++) {
        stk_field_shard_make(&shard, number, SHARDS, COUNT);
        write_shard(&directory, names[number], sizeof(shard.at));
    }
    return directory;
}

static int open_set(stoker_dataset **out, const struct stk_directory *directory,
                    const char *parameters, uint64_t max_bytes, stoker_error *error)
{
    char spec[600];
    const stoker_dataset_options options = { .struct_size = sizeof(options),
                                             .max_bytes = max_bytes };
    (void)snprintf(spec, sizeof(spec), "shards:%s%s", directory->path, parameters);
    return stoker_dataset_open(out, spec, &options, error);
}

static void check_samples(const stoker_dataset *dataset, uint32_t count)
{
    for (uint32_t id = 0; id < count; id++) {
        struct stk_fields_of sample = stk_fields_read(dataset, id);
        const int16_t pair[2] = { (int16_t)id, (int16_t) - (int)id };
        const int64_t label = id % 3;
        char text[4];
        memset(text, 'a' + (int)id, sizeof(text));
        stk_fields_check(dataset, &sample, "pair", pair, 0, sizeof(pair));
        stk_fields_check(dataset, &sample, "text", text, id % 4, id % 4);
        stk_fields_check(dataset, &sample, "label", &label, 0, sizeof(label));
        stk_fields_free(&sample);
    }
}

CleanTest(shard_fields, read_as_described)
{
    const struct stk_directory directory = make_set();
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    cr_assert_eq(open_set(&dataset, &directory, "", 1 << 20, &error), STOKER_OK, "%s",
                 error.message);
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    cr_assert_str_eq(stoker_dataset_name(dataset), "shards");
    cr_assert_eq(info->count, SHARDS * COUNT);
    cr_assert_eq(info->field_count, 3);
    cr_assert_eq(info->part_count, 2);
    cr_assert_eq(info->file_count, SHARDS);
    cr_assert_eq(info->class_count, 3);
    cr_assert_str_eq(stoker_dataset_class_name(dataset, 1), "bee");
    cr_assert_str_eq(stoker_dataset_stored_as(dataset, 0), "raw");
    check_samples(dataset, SHARDS * COUNT);
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

static void expect(const struct stk_directory *directory, const char *parameters, int code,
                   const char *says)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    const int64_t live = stk_fault_live_bytes();
    const int rc = open_set(&dataset, directory, parameters, 1 << 20, &error);
    cr_assert_eq(rc, code, "%s, not %s: %s", stoker_error_name(rc), stoker_error_name(code),
                 error.message);
    cr_assert_eq(error.code, rc);
    cr_assert_null(dataset);
    cr_assert_not_null(strstr(error.message, says), "\"%s\" is not in: %s", says, error.message);
    cr_assert_eq(stk_fault_live_bytes(), live);
}

CleanTest(shard_fields, a_missing_shard_is_an_error_unless_allowed)
{
    const struct stk_directory directory = make_set();
    char path[600];
    stoker_dataset *dataset = NULL;
    cr_assert_eq(unlink(stk_path_in(path, &directory, "b.stk")), 0);
    expect(&directory, "", STOKER_EMISMATCH, "shards are missing");
    cr_assert_eq(open_set(&dataset, &directory, "?partial=1", 1 << 20, NULL), STOKER_OK);
    cr_assert_eq(stoker_dataset_get_info(dataset)->count, 2 * COUNT);
    stoker_dataset_close(&dataset);
    cr_assert_eq(unlink(stk_path_in(path, &directory, "c.stk")), 0);
    expect(&directory, "", STOKER_EMISMATCH, "the last one is missing");
    stk_directory_remove(&directory);
}

/* A number of the header or the index is replaced, and the checksums made right. */
static const struct lie {
    size_t at;
    uint8_t bytes;
    uint64_t value;
    int code;
    const char *says;
} lies[] = {
    { 8, 4, 3, STOKER_ENOTSUP, "version" },
    { 12, 4, 0x41, STOKER_ENOTSUP, "feature" },
    { 20, 4, 4095, STOKER_EFORMAT, "own fields" },
    { 24, 8, 0, STOKER_EFORMAT, "number of samples" },
    { 24, 8, UINT64_MAX, STOKER_EFORMAT, "number of samples" },
    { 24, 8, 4000, STOKER_EFORMAT, "puts the index where" },
    { 32, 8, 4 * 4096, STOKER_ETRUNCATED, "shorter than its header says" },
    { 32, 8, 2 * 4096, STOKER_EOVERSIZE, "after the end" },
    { 40, 8, 4096, STOKER_EFORMAT, "puts the index where" },
    { 48, 4, 3, STOKER_EFORMAT, "alignment" },
    { 52, 4, 0, STOKER_EFORMAT, "number of fields" },
    { 52, 4, 129, STOKER_EFORMAT, "number of fields" },
    { 56, 4, 0, STOKER_EFORMAT, "number of fields" },
    { 56, 4, 4, STOKER_EFORMAT, "number of fields" },
    { 60, 4, 0, STOKER_EFORMAT, "longest record" },
    { 60, 4, 3, STOKER_EFORMAT, "too long" },
    { 64, 4, UINT32_MAX, STOKER_EFORMAT, "names" },
    { 64, 4, 11, STOKER_EFORMAT, "names" },
    { 96, 8, 1, STOKER_EFORMAT, "place in the set" },
    { 2000, 1, 1, STOKER_EFORMAT, "own fields" },
#define FIELD(i) (STK_FIELD_SHARD_INDEX_AT + 160 * (i))
    { FIELD(0), 1, 0, STOKER_EINVAL, "a name has 1 to 63 bytes" },
    { FIELD(0) + 64, 1, 9, STOKER_EINVAL, "kind 9 is unknown" },
    { FIELD(0) + 64, 1, 1, STOKER_EFORMAT, "height, width and channels" },
    { FIELD(0) + 65, 1, 0, STOKER_EFORMAT, "shape of a field" },
    { FIELD(0) + 66, 1, 8, STOKER_EFORMAT, "shape of a field" },
    { FIELD(0) + 67, 1, 4, STOKER_EFORMAT, "must be 0" },
    { FIELD(0) + 67, 1, 2, STOKER_EFORMAT, "no images" },
    { FIELD(0) + 68, 4, 2, STOKER_EFORMAT, "not there" },
    { FIELD(0) + 68, 4, 1, STOKER_EFORMAT, "two fields of one part" },
    { FIELD(0) + 68, 4, UINT32_MAX, STOKER_EFORMAT, "type of the labels" },
    { FIELD(0) + 76, 1, 1, STOKER_EFORMAT, "must be 0" },
    { FIELD(0) + 80, 8, 3, STOKER_EFORMAT, "cannot be its field" },
    { FIELD(0) + 80, 8, (uint64_t)1 << 40, STOKER_EFORMAT, "shape of a field" },
    { FIELD(1) + 80, 8, 2, STOKER_EFORMAT, "cannot be its field" },
    { FIELD(2) + 72, 4, 2, STOKER_EFORMAT, "label that is no class" },
#define PART(sample, part) (FIELD(3) + 24 * (2 * (sample) + (part)))
    { PART(0, 0), 8, 4097, STOKER_EFORMAT, "not aligned" },
    { PART(1, 0), 8, 4096, STOKER_EFORMAT, "overlaps" },
    { PART(1, 0), 8, 1 << 20, STOKER_EFORMAT, "not among the parts" },
    { PART(0, 0) + 8, 4, 3, STOKER_EFORMAT, "cannot be its field" },
    { PART(0, 0) + 16, 1, 1, STOKER_EFORMAT, "codec" },
    { PART(0, 0) + 16, 1, 200, STOKER_EFORMAT, "codec" },
    { PART(0, 0) + 17, 1, 1, STOKER_EFORMAT, "must be 0" },
    { PART(COUNT, 0), 8, 3, STOKER_EFORMAT, "label that is no class" },
};

CleanTest(shard_fields, lies_are_refused)
{
    const struct stk_directory directory = stk_directory_make();
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        stk_field_shard_make(&shard, 0, 1, COUNT);
        for (uint8_t b = 0; b < lies[i].bytes; b++)
            shard.at[lies[i].at + b] = (uint8_t)(lies[i].value >> (8 * b));
        stk_field_shard_seal(&shard);
        write_shard(&directory, "a.stk", sizeof(shard.at));
        expect(&directory, "", lies[i].code, lies[i].says);
    }
    stk_directory_remove(&directory);
}

/* Checksums left as they were: a flipped bit is found at open, or when its part is read. The steps reach every bit of a
 * byte. */
CleanTest(shard_fields, flipped_bits_are_found)
{
    const struct stk_directory directory = stk_directory_make();
    for (size_t bit = 0; bit < 8 * sizeof(shard.at); bit += bit / 8 < 4096 + 80 ? 11 : 61) {
        stoker_dataset *dataset = NULL;
        stoker_error error = { .message = "" };
        stk_field_shard_make(&shard, 0, 1, COUNT);
        shard.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
        write_shard(&directory, "a.stk", sizeof(shard.at));
        const int rc = open_set(&dataset, &directory, "", 1 << 20, &error);
        const bool in_parts = bit / 8 >= 4096 && bit / 8 < STK_FIELD_SHARD_INDEX_AT;
        cr_assert_eq(rc == STOKER_OK, in_parts, "bit %zu: %s", bit, error.message);
        for (uint32_t id = 0; rc == STOKER_OK && id < COUNT; id++) {
            struct stk_fields_of sample = stk_fields_read(dataset, id);
            const int16_t pair[2] = { (int16_t)id, (int16_t) - (int)id };
            if (sample.rc == STOKER_OK)
                cr_assert_arr_eq(sample.rows[0].data, pair, sizeof(pair));
            else
                cr_assert_eq(sample.rc, STOKER_ECORRUPT);
            stk_fields_free(&sample);
        }
        stoker_dataset_close(&dataset);
    }
    stk_directory_remove(&directory);
}

CleanTest(shard_fields, every_prefix_is_refused)
{
    const struct stk_directory directory = stk_directory_make();
    stk_field_shard_make(&shard, 0, 1, COUNT);
    for (size_t size = 0; size < sizeof(shard.at); size += size < 200 ? 1 : 37) {
        stoker_dataset *dataset = NULL;
        write_shard(&directory, "a.stk", size);
        cr_assert_lt(open_set(&dataset, &directory, "", 1 << 20, NULL), 0, "%zu bytes", size);
        cr_assert_null(dataset);
    }
    stk_directory_remove(&directory);
}

CleanTest(shard_fields, limits_come_before_memory_and_each_allocation_may_fail)
{
    const struct stk_directory directory = make_set();
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    cr_assert_eq(open_set(&dataset, &directory, "", 500, &error), STOKER_ELIMIT);
    cr_assert_not_null(strstr(error.message, "max_bytes"));
    uint64_t nth = 0;
    while (dataset == NULL) {
        cr_assert_lt(++nth, 100);
        const int64_t live = stk_fault_live_bytes();
        stk_fault_arm(STK_FAULT_MEMORY, nth);
        const int rc = open_set(&dataset, &directory, "", 1 << 20, &error);
        (void)stk_fault_disarm();
        cr_assert(dataset != NULL || rc == STOKER_ENOMEM || rc == STOKER_ENOTSUP, "%s",
                  error.message);
        cr_assert(dataset != NULL || stk_fault_live_bytes() == live);
    }
    cr_assert_gt(nth, 10);
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}
