/* test_several_kinds.c - samples whose fields come in less usual ways: tokens alone, values()
 * alone, three fields of one raw part, images of any size beside something else.
 */
#include "kernels/convert/convert.h"
#include "loader/api/loader.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/sets/photo_codec.h"
#include "support/sets/several_set.h"

enum { COUNT = 41, LONGEST = 9, SIDE = 6, PIXELS = SIDE * SIDE };

enum kind { TOKENS, VALUES, TRIPLE, PHOTOS, MASKED };

struct kind_set {
    enum kind kind;
    stoker_dataset *dataset;
    stoker_codec photo;
    bool raw;                         /* MASKED: images lie in memory as they are */
    uint8_t bytes[COUNT][2 + PIXELS]; /* part 0 of each sample */
    uint16_t words[COUNT][LONGEST];   /* part 1 of each sample */
};

static uint32_t length_of(uint64_t id)
{
    return (uint32_t)(stk_mix64(id) % (LONGEST + 1));
}

static int describe(const void *self, stoker_dataset_info *out)
{
    static const uint32_t fields[] = { 2, 3, 3, 2, 2 };
    static const uint32_t parts[] = { 1, 0, 1, 2, 2 };
    const struct kind_set *set = self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(*out),
                                  .count = COUNT,
                                  .field_count = fields[set->kind],
                                  .part_count = parts[set->kind] };
    return STOKER_OK;
}

static int field_of(const void *self, uint32_t field, stoker_field_info *out)
{
    static const stoker_field_info fields[5][3] = {
        { { .name = "tokens",
            .dtype = STOKER_DTYPE_INT16,
            .rank = 1,
            .shape = { LONGEST },
            .varies = true },
          { .name = "label", .dtype = STOKER_DTYPE_INT64, .part = STOKER_NO_PART } },
        { { .name = "row",
            .dtype = STOKER_DTYPE_UINT8,
            .rank = 1,
            .shape = { 3 },
            .part = STOKER_NO_PART },
          { .name = "label", .dtype = STOKER_DTYPE_INT64, .part = STOKER_NO_PART },
          { .name = "more", .dtype = STOKER_DTYPE_INT64, .part = STOKER_NO_PART } },
        { { .name = "a", .dtype = STOKER_DTYPE_UINT8, .rank = 1, .shape = { 5 } },
          { .name = "b", .dtype = STOKER_DTYPE_UINT8 },
          { .name = "c", .dtype = STOKER_DTYPE_INT16, .rank = 2, .shape = { 2, 3 } } },
        { { .name = "image",
            .kind = STOKER_FIELD_KIND_IMAGE,
            .dtype = STOKER_DTYPE_UINT8,
            .rank = 3,
            .shape = { 4, 5, 1 },
            .pixels_max = PIXELS },
          { .name = "words",
            .dtype = STOKER_DTYPE_INT16,
            .rank = 1,
            .shape = { LONGEST },
            .varies = true,
            .part = 1 } },
        { { .name = "image",
            .kind = STOKER_FIELD_KIND_IMAGE,
            .dtype = STOKER_DTYPE_UINT8,
            .rank = 3,
            .shape = { 4, 5, 1 } },
          { .name = "mask",
            .kind = STOKER_FIELD_KIND_MASK,
            .dtype = STOKER_DTYPE_UINT8,
            .rank = 3,
            .shape = { 4, 5, 1 },
            .part = 1 } },
    };
    const struct kind_set *set = self;
    *out = fields[set->kind][field];
    out->struct_size = sizeof(*out);
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *parts,
                  stoker_error *error)
{
    const struct kind_set *set = self;
    const uint32_t part_count = set->kind >= PHOTOS ? 2 : 1;
    (void)error;
    for (uint32_t i = 0; i < count; i++) {
        const stoker_extent words = { .memory = set->words[ids[i]],
                                      .bytes = 2 * length_of(ids[i]) };
        stoker_part *part = &parts[(size_t)i * part_count];
        part[0] = (stoker_part){ .extent = words };
        if (set->kind != TOKENS)
            part[0].extent =
                (stoker_extent){ .memory = set->bytes[ids[i]],
                                 .bytes = set->kind == TRIPLE ? 18
                                                              : 2U + set->bytes[ids[i]][0] *
                                                                         set->bytes[ids[i]][1] };
        if (set->kind == PHOTOS) {
            part[0].codec = &set->photo;
            part[0].codec_id = 1 + (ids[i] * 7 + 3) % COUNT; /* as in a view */
            part[1] = (stoker_part){ .extent = words };
        }
        if (set->kind == MASKED) {
            part[1] = (stoker_part){ .extent = { .memory = &set->bytes[ids[i]][2], .bytes = 20 } };
            part[0].codec = set->raw ? NULL : &set->photo;
            if (set->raw)
                part[0] = part[1];
        }
    }
    return STOKER_OK;
}

static int values(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out)
{
    const struct kind_set *set = self;
    for (uint32_t i = 0; i < count; i++)
        if (set->kind == VALUES && field == 0)
            memcpy((uint8_t *)out + (size_t)i * 3, set->bytes[ids[i]], 3);
        else
            ((int64_t *)out)[i] = (int64_t)(ids[i] * 10 + field);
    return STOKER_OK;
}

static int decode(const void *self, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    (void)self, (void)scratch, (void)error;
    return out->got == NULL && (in->bytes[0] != 4 || in->bytes[1] != 5) ? STOKER_EFORMAT
                                                                        : stk_photo_decode(in, out);
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "kinds",
                                        .describe = describe,
                                        .field = field_of,
                                        .locate = locate,
                                        .values = values };

static void make(struct kind_set *set, enum kind kind)
{
    *set = (struct kind_set){ .kind = kind };
    set->photo = (stoker_codec){ .struct_size = sizeof(stoker_codec),
                                 .name = "photo",
                                 .flags = STOKER_CODEC_ANY_SIZE,
                                 .decode = decode };
    for (uint32_t id = 0; id < COUNT; id++) {
        for (uint32_t at = 0; at < sizeof(set->bytes[id]); at++)
            set->bytes[id][at] = (uint8_t)stk_mix64(id * 100 + at);
        if (kind >= PHOTOS) {
            set->bytes[id][0] = id % 3 == 0 ? 4 : (uint8_t)(3 + id % 4);
            set->bytes[id][1] = id % 3 == 0 ? 5 : (uint8_t)(3 + id % 3);
        }
        if (kind == MASKED) {
            set->bytes[id][0] = 4;
            set->bytes[id][1] = 5;
        }
        for (uint32_t at = 0; at < LONGEST; at++)
            set->words[id][at] = (uint16_t)stk_mix64(id * 50 + at);
    }
    stoker_error error = { .code = 0 };
    cr_assert_eq(stoker_dataset_create(&set->dataset, &ops, set, &error), STOKER_OK, "%s",
                 error.message);
}

/* ---- runs ---- */

typedef void check_row(const struct kind_set *set, uint64_t id, uint32_t field, const uint8_t *row,
                       uint64_t length);

/* Bytes of a row; of a step along its first axis if it varies. */
static size_t bytes_of(const stoker_field *field)
{
    size_t bytes = stoker_dtype_bytes(field->values.dtype);
    for (uint32_t axis = 1; axis < field->values.rank; axis++)
        bytes *= (size_t)field->values.shape[axis];
    return bytes;
}

static uint64_t run(const struct kind_set *set, const stoker_loader_options *options,
                    check_row *check)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    uint64_t hash = 0;
    stoker_loader *loader = loader_of(set->dataset, options);
    for (int rc; (rc = stoker_loader_next(loader, &batch, 20000)) != STOKER_FINISHED;) {
        if (rc == STOKER_EPOCH_END)
            continue;
        cr_assert_eq(rc, STOKER_OK, "%s", stoker_loader_error(loader)->message);
        for (uint32_t row = 0; row < batch.count; row++)
            for (uint32_t i = 0; i < batch.field_count; i++) {
                uint64_t length;
                const uint8_t *at = stk_field_row(&batch, i, row, &length);
                const size_t bytes = bytes_of(&batch.fields[i]);
                hash = stk_hash_bytes(hash, at,
                                      batch.fields[i].offsets != NULL ? length * bytes : bytes);
                check(set, batch.ids[row], i, at, length);
            }
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
    return hash;
}

static void run_everywhere(const struct kind_set *set, stoker_loader_options options,
                           check_row *check)
{
    options.batch_size = 6;
    options.epochs = 4;
    options.prefetch_batches = 2;
    options.num_workers = 0;
    const uint64_t expected = run(set, &options, check);
    for (int32_t workers = 0; workers <= 3; workers++)
        for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DECODED; cache++) {
            options.num_workers = workers;
            options.cache = (stoker_cache)cache;
            cr_assert_eq(run(set, &options, check), expected, "workers %d cache %d", workers,
                         cache);
        }
}

/* ---- kinds ---- */

static void check_tokens(const struct kind_set *set, uint64_t id, uint32_t field,
                         const uint8_t *row, uint64_t length)
{
    const float *tokens = (const float *)(const void *)row;
    if (field != 0)
        return;
    cr_assert_eq(length, length_of(id));
    for (uint32_t i = 0; i < length; i++)
        cr_assert_eq(tokens[i], (float)(int16_t)set->words[id][i]);
}

static void check_nothing(const struct kind_set *set, uint64_t id, uint32_t field,
                          const uint8_t *row, uint64_t length)
{
    (void)set, (void)id, (void)field, (void)row, (void)length;
}

CleanTest(several_kinds, tokens_are_converted_at_their_length)
{
    struct kind_set set;
    stoker_loader_options options = stk_small_options(.dtype = STOKER_DTYPE_FLOAT32);
    make(&set, TOKENS);
    run_everywhere(&set, options, check_tokens);
    options.dtype = STOKER_DTYPE_NONE;
    run_everywhere(&set, options, check_nothing);
    stoker_dataset_close(&set.dataset);
}

static void check_values(const struct kind_set *set, uint64_t id, uint32_t field,
                         const uint8_t *row, uint64_t length)
{
    const int64_t expected = (int64_t)(id * 10 + field);
    (void)length;
    for (uint32_t i = 0; field == 0 && i < 3; i++)
        cr_assert_eq(((const float *)(const void *)row)[i], (float)set->bytes[id][i] * 0.5F);
    if (field > 0)
        cr_assert_eq(memcmp(row, &expected, sizeof(expected)), 0);
}

CleanTest(several_kinds, samples_without_parts_come_from_values_alone)
{
    struct kind_set set;
    stoker_loader_options options = stk_small_options(.dtype = STOKER_DTYPE_FLOAT32, .scale = 0.5F);
    make(&set, VALUES);
    run_everywhere(&set, options, check_values);
    stoker_dataset_close(&set.dataset);
}

static void check_triple(const struct kind_set *set, uint64_t id, uint32_t field,
                         const uint8_t *row, uint64_t length)
{
    static const uint32_t at[] = { 0, 5, 6, 18 };
    (void)length;
    cr_assert_eq(memcmp(row, set->bytes[id] + at[field], at[field + 1] - at[field]), 0);
}

CleanTest(several_kinds, one_raw_part_fills_three_fields)
{
    struct kind_set set;
    make(&set, TRIPLE);
    run_everywhere(&set, stk_small_options(), check_triple);
    stoker_dataset_close(&set.dataset);
}

static void check_words(const struct kind_set *set, uint64_t id, uint32_t field, const uint8_t *row,
                        uint64_t length)
{
    if (field != 1)
        return;
    cr_assert_eq(length, length_of(id));
    cr_assert_eq(memcmp(row, set->words[id], 2 * length), 0);
}

CleanTest(several_kinds, images_of_any_size_have_fields_beside_them)
{
    struct kind_set set;
    stoker_loader_options options = stk_small_options();
    make(&set, PHOTOS);
    options.transform.resize = (stoker_size){ 4, 4 }; /* cached after it */
    options.transform.flip = true;
    run_everywhere(&set, options, check_words);
    options.transform.resize = (stoker_size){ 0, 0 }; /* cached as decoded, if of the set's size */
    options.transform.random_resized_crop = (stoker_size){ 4, 4 };
    run_everywhere(&set, options, check_words);
    options.dtype = STOKER_DTYPE_FLOAT32;
    run_everywhere(&set, options, check_words);
    stoker_dataset_close(&set.dataset);
}

/* The draw follows the sample's id, not the one that the codec of a view knows it by. */
CleanTest(several_kinds, a_part_of_an_image_gives_the_same_row_as_all_of_it)
{
    struct kind_set set;
    stoker_loader_options options = stk_small_options();
    make(&set, PHOTOS);
    options.transform.random_resized_crop = (stoker_size){ 3, 3 };
    options.transform.flip = true;
    const uint64_t whole = run(&set, &options, check_words);
    set.photo.probe = stk_photo_probe;
    cr_assert_eq(run(&set, &options, check_words), whole);
    run_everywhere(&set, options, check_words);
    stoker_dataset_close(&set.dataset);
}

/* The mask has its image's pixels, and nothing is resampled: they stay the same. */
static void check_masked(const struct kind_set *set, uint64_t id, uint32_t field,
                         const uint8_t *row, uint64_t length)
{
    static _Thread_local uint8_t image[20];
    (void)set, (void)id, (void)length;
    if (field == 0)
        memcpy(image, row, 9);
    else
        cr_assert_eq(memcmp(image, row, 9), 0, "sample %d", (int)id);
}

CleanTest(several_kinds, a_mask_moves_with_its_image)
{
    struct kind_set set;
    stoker_loader_options options = stk_small_options();
    make(&set, MASKED);
    options.transform.random_crop = (stoker_size){ 3, 3 };
    options.transform.pad = 2;
    options.transform.flip = true;
    for (int raw = 0; raw < 2; raw++) {
        set.raw = raw != 0;
        run_everywhere(&set, options, check_masked);
    }
    stoker_dataset_close(&set.dataset);
}
