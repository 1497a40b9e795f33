/* test_callbacks.c - what the caller's own functions may do to a loader: return what they should
 * not, bring many codec objects, and never be asked for nothing.
 */
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/runs/scenario.h"

enum { COUNT = 120, SIDE = 4, CHANNELS = 3, ROW = SIDE * SIDE * CHANNELS, CODECS = 100 };

/* ---- a set of images that are made from their ids -------------------------------- */

enum word { KEPT, OPEN, DECODE, VERIFY, LOCATE, FILE_OF, MEASURE, WORDS };

static struct made {
    enum word breaks; /* the function that returns `stop`, and has done nothing */
    int stop;         /* neither 0 nor an error */
    uint64_t flags;   /* set in parts with an odd sample id */
    uint32_t codecs;
    stoker_size size; /* that decode() reports of images in their own size, or probe() */
    bool regions;     /* the codec has probe() */
    /* What decode() reports of a third of the samples, if its height is not 0. */
    stoker_region got;
    stoker_codec codec[CODECS];
    bool file;                 /* a file that no sample lies in */
    uint8_t rows[COUNT][ROW];  /* for verify(): bytes there are */
    _Atomic uint32_t nothings; /* calls with a count of 0 */
    _Atomic int32_t open;      /* scratches */
    bool labeled;
} made;

static int open_codec(const void *self, bool any_size, void **scratch)
{
    (void)self;
    (void)any_size;
    (void)scratch;
    if (made.breaks == OPEN)
        return made.stop;
    made.open++;
    return STOKER_OK;
}

static void close_codec(const void *self, void *scratch)
{
    (void)self;
    (void)scratch;
    made.open--;
}

static void draw(uint64_t id, uint8_t *row)
{
    for (uint32_t at = 0; at < ROW; at++)
        row[at] = stk_set_byte(id, at);
}

static int decode(const void *self, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    const bool third = in->sample % 3 == 0;
    (void)scratch;
    (void)error;
    cr_assert_eq(*(const uint32_t *)self, in->sample % made.codecs);
    if (made.breaks == DECODE && third)
        return made.stop;
    draw(in->sample, out->rows[0].data);
    if (out->got == NULL)
        return STOKER_OK;
    *out->got = (stoker_region){ 0, 0, SIDE, SIDE, 8 };
    if (made.regions) {
        cr_assert_eq(out->rows[0].bytes_max, ROW);
        cr_assert(memcmp(out->wanted, out->got, sizeof(*out->got)) == 0);
        if (third && made.got.height != 0)
            *out->got = made.got;
    } else {
        cr_assert_null(out->wanted);
        if (third && made.breaks == KEPT)
            *out->got = (stoker_region){ 0, 0, made.size.height, made.size.width, 8 };
    }
    return STOKER_OK;
}

static int probe(const void *self, const stoker_encoded *in, bool inspect,
                 stoker_image_header *header, stoker_error *error)
{
    const bool third = in->sample % 3 == 0;
    const bool wrong = third && made.breaks == KEPT && made.got.height == 0;
    (void)self;
    (void)error;
    cr_assert_not(inspect);
    header->height = wrong ? made.size.height : SIDE;
    header->width = wrong ? made.size.width : SIDE;
    return third && made.breaks == MEASURE ? made.stop : STOKER_OK;
}

static int verify(const void *self, const stoker_encoded *in, void *copy, stoker_error *error)
{
    (void)self;
    (void)copy;
    (void)error;
    return made.breaks == VERIFY && in->sample % 3 == 0 ? made.stop : STOKER_OK;
}

static int describe(const void *self, stoker_dataset_info *out)
{
    (void)self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(stoker_dataset_info),
                                  .count = COUNT,
                                  .dtype = STOKER_DTYPE_UINT8,
                                  .rank = 3,
                                  .shape = { SIDE, SIDE, CHANNELS },
                                  .is_image = true,
                                  .pixels_max = SIDE * SIDE,
                                  .file_count = made.file ? 1 : 0,
                                  .encoded_bytes_max = made.file ? ROW : 0,
                                  .label_dtype =
                                      made.labeled ? STOKER_DTYPE_INT64 : STOKER_DTYPE_NONE };
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                  stoker_error *error)
{
    (void)self;
    cr_assert_not_null(error);
    made.nothings += count == 0;
    for (uint32_t i = 0; i < count; i++) {
        if (made.breaks == LOCATE && ids[i] == COUNT - 1)
            return made.stop;
        out[i] = (stoker_part){ .codec = &made.codec[ids[i] % made.codecs] };
        out[i].flags = ids[i] % 2 == 1 ? made.flags : 0;
        if (made.breaks == VERIFY)
            out[i].extent = (stoker_extent){ .memory = made.rows[ids[i]], .bytes = ROW };
    }
    return STOKER_OK;
}

static int values_of(const void *self, uint32_t field, const uint64_t *ids, uint32_t count,
                     void *out)
{
    (void)self;
    (void)field;
    made.nothings += count == 0;
    for (uint32_t i = 0; i < count; i++)
        ((int64_t *)out)[i] = (int64_t)ids[i];
    return STOKER_OK;
}

static int file_of(const void *self, uint32_t file, stoker_file *out)
{
    (void)self;
    (void)file;
    *out = (stoker_file){ .path = "none", .fd = 0 };
    return made.breaks == FILE_OF ? made.stop : STOKER_OK;
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "callbacks",
                                        .describe = describe,
                                        .locate = locate,
                                        .values = values_of,
                                        .file = file_of };

static uint32_t numbers[CODECS];

static stoker_dataset *make_set(enum word breaks, uint32_t codecs)
{
    stoker_dataset *dataset = NULL;
    made.breaks = breaks;
    made.stop = 1;
    made.flags = 0;
    made.codecs = codecs;
    made.file = breaks == FILE_OF;
    for (uint32_t i = 0; i < codecs; i++) {
        numbers[i] = i;
        made.codec[i] = (stoker_codec){ .struct_size = sizeof(stoker_codec),
                                        .name = "drawn",
                                        .self = &numbers[i],
                                        .flags = STOKER_CODEC_ANY_SIZE,
                                        .open = open_codec,
                                        .close = close_codec,
                                        .decode = decode,
                                        .probe = made.regions ? probe : NULL,
                                        .verify = breaks == VERIFY ? verify : NULL };
    }
    cr_assert_eq(stoker_dataset_create(&dataset, &ops, NULL, NULL), STOKER_OK);
    return dataset;
}

/* Rows delivered, all of them right; *rc = how the run ended. */
static uint64_t play(const stoker_dataset *dataset, const stoker_loader_options *options, int *rc)
{
    uint64_t rows = 0;
    uint8_t expected[ROW];
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader *loader = loader_of(dataset, options);
    while ((*rc = stoker_loader_next(loader, &batch, -1)) >= 0 && *rc != STOKER_FINISHED) {
        if (*rc != STOKER_OK)
            continue;
        for (uint32_t row = 0; row < batch.count; row++) {
            draw(batch.ids[row], expected);
            cr_assert_arr_eq((uint8_t *)batch.images.data + (size_t)row * ROW, expected, ROW);
        }
        rows += batch.count;
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
    cr_assert_eq(made.open, 0);
    return rows;
}

/* ---- more than 0 is neither done nor an error ------------------------------------ */

/* A third of the samples: by decode(), verify(), and by images of a size that cannot be. */
static void expect_third_is_bad(enum word breaks, bool any_size, int code)
{
    stoker_dataset *dataset = make_set(breaks, 1);
    for (int32_t workers = 0; workers <= 2; workers++)
        for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DECODED; cache++) {
            int rc;
            stoker_loader_options options = stk_small_options();
            made.stop = workers == 1 ? INT32_MIN : 1;
            options.num_workers = workers;
            options.cache = (stoker_cache)cache;
            if (any_size)
                options.transform.resize = (stoker_size){ .height = SIDE, .width = SIDE };
            (void)play(dataset, &options, &rc);
            cr_assert_eq(rc, code, "workers %d cache %d: rc %d", workers, cache, rc);
            options.on_bad_sample = STOKER_ON_BAD_SKIP;
            cr_assert_eq(play(dataset, &options, &rc), 2 * (COUNT - COUNT / 3));
            cr_assert_eq(rc, STOKER_FINISHED);
        }
    stoker_dataset_close(&dataset);
}

CleanTest(callbacks, rows_that_were_never_written_are_not_delivered)
{
    expect_third_is_bad(DECODE, false, STOKER_EINVAL);
    expect_third_is_bad(VERIFY, false, STOKER_EINVAL);
    expect_third_is_bad(DECODE, true, STOKER_EINVAL);
    static const stoker_size wrong[] = {
        { 0, 0 }, { SIDE, 0 }, { SIDE + 1, SIDE }, { 1 << 16, 1 }, { UINT32_MAX, UINT32_MAX }
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        made.size = wrong[i];
        expect_third_is_bad(KEPT, true, STOKER_ELIMIT);
    }
}

CleanTest(callbacks, rows_are_not_made_of_a_region_that_cannot_be)
{
    static const stoker_size sizes[] = { { 0, 0 }, { SIDE + 1, SIDE }, { 1 << 16, 1 } };
    static const stoker_region regions[] = {
        { 1, 0, SIDE - 1, SIDE, 8 },     { 0, 1, SIDE, SIDE - 1, 8 },
        { 0, 0, SIDE + 1, SIDE, 8 },     { 0, 0, SIDE, SIDE + 1, 8 },
        { 0, 0, SIDE / 2, SIDE / 2, 4 }, { 0, 0, 2 * SIDE, 2 * SIDE, 16 },
        { 0, 0, SIDE, SIDE, 0 },         { 1, 0, UINT32_MAX, SIDE, 8 },
    };
    made.regions = true;
    expect_third_is_bad(DECODE, true, STOKER_EINVAL);
    expect_third_is_bad(MEASURE, true, STOKER_EINVAL);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        made.size = sizes[i];
        expect_third_is_bad(KEPT, true, STOKER_ELIMIT);
    }
    for (size_t i = 0; i < sizeof(regions) / sizeof(regions[0]); i++) {
        made.got = regions[i];
        expect_third_is_bad(KEPT, true, STOKER_ELIMIT);
    }
}

CleanTest(callbacks, a_set_or_codec_that_stops_ends_the_run)
{
    static const enum word words[] = { LOCATE, OPEN };
    for (size_t i = 0; i < 2; i++) {
        stoker_dataset *dataset = make_set(words[i], 1);
        for (int32_t workers = 0; workers <= 1; workers++) {
            int rc;
            stoker_loader_options options = stk_small_options();
            made.stop = workers == 1 ? INT32_MIN : 1;
            options.num_workers = workers;
            (void)play(dataset, &options, &rc);
            cr_assert_eq(rc, STOKER_EINVAL);
        }
        stoker_part sample;
        if (words[i] == LOCATE)
            cr_assert_eq(stoker_dataset_locate(dataset, COUNT - 1, &sample, NULL), STOKER_EINVAL);
        stoker_dataset_close(&dataset);
    }
    stoker_dataset *dataset = make_set(FILE_OF, 1);
    stoker_loader *loader = NULL;
    const stoker_loader_options options = stk_small_options();
    stoker_error error;
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), STOKER_EINVAL);
    cr_assert_str_eq(error.message, "file 0: file() returned 1, which is neither 0 nor an error");
    stoker_dataset_close(&dataset);
}

/* ---- parts that cannot be decoded ------------------------------------------------ */

static void break_size(stoker_codec *codec)
{
    codec->struct_size = 0;
}
static void break_name(stoker_codec *codec)
{
    codec->name = NULL;
}
static void break_decode(stoker_codec *codec)
{
    codec->decode = NULL;
}
static void break_probe(stoker_codec *codec)
{
    codec->flags |= STOKER_CODEC_FILE;
    codec->probe = NULL;
}
static void break_flags(stoker_codec *codec)
{
    codec->flags |= 1U << 31;
}
static void set_flag(stoker_codec *codec)
{
    (void)codec;
    made.flags = STOKER_PART_RANGE << 1;
}

CleanTest(callbacks, a_part_that_cannot_be_decoded_is_refused_by_name)
{
    static const struct {
        void (*break_it)(stoker_codec *codec);
        const char *expected;
    } cases[] = {
        { break_size, "codec drawn: struct_size is not set" },
        { break_name, "codec without a name: name is NULL" },
        { break_decode, "codec drawn: decode is NULL" },
        { break_probe, "codec drawn: STOKER_CODEC_FILE is set, but probe is NULL" },
        { break_flags, "codec drawn: it has flags that this version does not know" },
        { set_flag, "locate() set flags that this version does not know" },
    };
    made.regions = true;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (uint32_t broken = 0; broken < 2; broken++) {
            stoker_dataset *dataset = make_set(KEPT, 2);
            stoker_loader *loader = NULL;
            stoker_batch batch = STOKER_BATCH_INIT;
            stoker_error error = { .message = "" };
            stoker_loader_options options = stk_small_options();
            options.on_bad_sample = STOKER_ON_BAD_SKIP; /* it is no sample that is bad */
            cases[i].break_it(&made.codec[broken]);
            int rc = stoker_loader_create(&loader, dataset, &options, &error);
            if (broken == 1 || cases[i].break_it == set_flag) { /* not the first sample's */
                cr_assert_eq(rc, STOKER_OK, "%s", error.message);
                rc = stoker_loader_next(loader, &batch, -1);
                error = *stoker_loader_error(loader);
            }
            cr_assert_eq(rc, STOKER_EINVAL);
            cr_assert_not_null(strstr(error.message, "callbacks: part 0, field \"image\": "));
            cr_assert_not_null(strstr(error.message, cases[i].expected), "%s", error.message);
            stoker_loader_destroy(&loader);
            stoker_dataset_close(&dataset);
        }
}

/* ---- numbers --------------------------------------------------------------------- */

CleanTest(callbacks, a_set_may_have_many_codec_objects)
{
    for (uint32_t codecs = 1; codecs <= CODECS; codecs += 11) {
        stoker_dataset *dataset = make_set(KEPT, codecs);
        for (int32_t workers = 0; workers <= 2; workers++) {
            int rc;
            stoker_loader_options options = stk_small_options(.num_workers = workers);
            cr_assert_eq(play(dataset, &options, &rc), 2 * COUNT);
            cr_assert_eq(rc, STOKER_FINISHED, "%u codecs: rc %d", codecs, rc);
        }
        stoker_dataset_close(&dataset);
    }
}

/* More ranks than samples in the last batches: some have no rows there. */
CleanTest(callbacks, nobody_is_asked_for_no_samples)
{
    for (int labeled = 0; labeled < 2; labeled++) {
        made.labeled = labeled == 1;
        stoker_dataset *dataset = make_set(KEPT, 1);
        for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DECODED; cache += 2)
            for (uint32_t rank = 0; rank < 256; rank += 17) {
                int rc;
                stoker_loader_options options =
                    stk_small_options(.num_workers = (int32_t)rank % 2, .world_size = 256,
                                      .rank = rank, .batch_size = 3, .epochs = 3,
                                      .cache = (stoker_cache)cache);
                cr_assert_eq(play(dataset, &options, &rc), rank < COUNT ? 3 : 0);
                cr_assert_eq(rc, STOKER_FINISHED);
            }
        cr_assert_eq(made.nothings, 0);
        stoker_dataset_close(&dataset);
    }
}
