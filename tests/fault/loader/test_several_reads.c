/* test_several_reads.c - every read of a sample's parts fails in its turn, whatever kind of part it
 * is for and however that is decoded: the sample is bad as a whole, the error names its field, and
 * every other row is the right one.
 *
 *   part 0   a whole file by name    "image"   a codec: into the row, apart and resized, or in parts and cropped
 *   part 1   file 0                  "box"     raw, 2 x float32: read as it is
 *   part 2   file 0                  "words"   raw, varies
 *   part 3   file 0                  "check"   a codec with a checksum
 *   part 4   memory                  "key"     raw, never read
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/runs/scenario.h"
#include "support/runs/scripted_reader.h"
#include "support/sets/photo_codec.h"

#include "support/files/dataset_files.h"

enum {
    COUNT = 4,
    EPOCHS = 3, /* the first one fills the caches */
    HEIGHT = 6,
    WIDTH = 8,
    IMAGE = 2 + HEIGHT * WIDTH,
    BOX = 8,
    WORDS = 5,
    CHECK = 16,
    RECORD = BOX + WORDS * 4, /* then the checks, apart */
    CHECKS_AT = COUNT * RECORD,
    FILE_BYTES = CHECKS_AT + COUNT * CHECK,
    READ_PARTS = 4
};

static struct {
    stoker_dataset *dataset;
    struct stk_directory directory;
    int fds[2]; /* file 0, the directory */
    stoker_codec image, check;
    char names[COUNT][8];
    uint8_t images[COUNT][IMAGE];
    uint8_t file[FILE_BYTES];
} set;

static uint32_t words_of(uint64_t id)
{
    return 1 + (uint32_t)(id % WORDS);
}

static uint8_t sum_of(const uint8_t *bytes)
{
    uint8_t sum = 0;
    for (int i = 0; i < CHECK; i++)
        sum = (uint8_t)(sum * 3 + bytes[i]);
    return sum;
}

static int describe(const void *self, stoker_dataset_info *out)
{
    (void)self;
    out->count = COUNT;
    out->field_count = out->part_count = READ_PARTS + 1;
    out->file_count = 1;
    out->encoded_bytes_max = IMAGE;
    out->has_paths = true;
    out->directory = set.fds[1];
    return STOKER_OK;
}

static int field(const void *self, uint32_t number, stoker_field_info *out)
{
    static const stoker_field_info fields[READ_PARTS + 1] = {
        { .name = "image",
          .kind = STOKER_FIELD_KIND_IMAGE,
          .dtype = STOKER_DTYPE_UINT8,
          .rank = 3,
          .shape = { HEIGHT, WIDTH, 1 },
          .pixels_max = HEIGHT * WIDTH },
        { .name = "box", .dtype = STOKER_DTYPE_FLOAT32, .rank = 1, .shape = { 2 } },
        { .name = "words",
          .dtype = STOKER_DTYPE_INT32,
          .rank = 1,
          .shape = { WORDS },
          .varies = true },
        { .name = "check", .dtype = STOKER_DTYPE_UINT8, .rank = 1, .shape = { CHECK } },
        { .name = "key", .dtype = STOKER_DTYPE_UINT8, .rank = 1, .shape = { 8 } },
    };
    (void)self;
    *out = fields[number];
    out->struct_size = sizeof(*out);
    out->part = number;
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *parts,
                  stoker_error *error)
{
    (void)self, (void)error;
    for (uint32_t i = 0; i < count; i++, parts += READ_PARTS + 1) {
        const uint64_t id = ids[i], at = id * RECORD;
        parts[0] = (stoker_part){ .extent = { .path = set.names[id], .bytes = IMAGE },
                                  .codec = &set.image };
        parts[1] = (stoker_part){ .extent = { .offset = at, .bytes = BOX } };
        parts[2] = (stoker_part){ .extent = { .offset = at + BOX, .bytes = 4 * words_of(id) } };
        parts[3] = (stoker_part){ .extent = { .offset = CHECKS_AT + id * CHECK, .bytes = CHECK },
                                  .codec = &set.check,
                                  .tag = sum_of(set.file + CHECKS_AT + id * CHECK) };
        parts[4] = (stoker_part){ .extent = { .memory = set.names[id], .bytes = 8 } };
    }
    return STOKER_OK;
}

static int file_of(const void *self, uint32_t number, stoker_file *out)
{
    (void)self, (void)number;
    *out = (stoker_file){ .path = "file 0", .fd = set.fds[0], .size = FILE_BYTES };
    return STOKER_OK;
}

static int decode(const void *self, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    const size_t row_bytes = out->rows[0].bytes_max;
    (void)self, (void)scratch, (void)error;
    if (out->got != NULL)
        return stk_photo_decode(in, out);
    memcpy(out->rows[0].data, in->bytes + (in->size - row_bytes), row_bytes);
    return STOKER_OK;
}

static int verify(const void *self, const stoker_encoded *in, void *copy, stoker_error *error)
{
    (void)self, (void)copy, (void)error;
    return sum_of(in->bytes) == in->tag ? STOKER_OK : STOKER_ECORRUPT;
}

static void make(void)
{
    static const stoker_dataset_ops ops = { .struct_size = sizeof(ops),
                                            .name = "reads",
                                            .describe = describe,
                                            .field = field,
                                            .locate = locate,
                                            .file = file_of };
    set.directory = stk_directory_make();
    for (size_t at = 0; at < FILE_BYTES; at++)
        set.file[at] = (uint8_t)stk_mix64(at);
    for (uint64_t id = 0; id < COUNT; id++) {
        for (size_t at = 0; at < IMAGE; at++)
            set.images[id][at] = (uint8_t)stk_mix64(id * 1000 + at);
        set.images[id][0] = HEIGHT;
        set.images[id][1] = WIDTH;
        (void)snprintf(set.names[id], sizeof(set.names[id]), "f%u", (unsigned)id);
        stk_file_write(&set.directory, set.names[id], set.images[id], IMAGE);
    }
    set.image = (stoker_codec){ .struct_size = sizeof(stoker_codec),
                                .name = "pixels",
                                .flags = STOKER_CODEC_ANY_SIZE,
                                .decode = decode,
                                .probe = stk_photo_probe };
    set.check = (stoker_codec){
        .struct_size = sizeof(stoker_codec), .name = "sum", .decode = decode, .verify = verify
    };
    set.fds[0] = memfd_create("reads", MFD_CLOEXEC);
    set.fds[1] = open(set.directory.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert_eq(write(set.fds[0], set.file, FILE_BYTES), FILE_BYTES);
    cr_assert_eq(stoker_dataset_create(&set.dataset, &ops, NULL, NULL), STOKER_OK);
}

static void unmake(void)
{
    stoker_dataset_close(&set.dataset);
    (void)close(set.fds[0]);
    (void)close(set.fds[1]);
    stk_directory_remove(&set.directory);
}

/* ---- runs -------------------------------------------------------------------------- */

struct seen {
    int rc;
    uint32_t rows;
    stoker_error error;
};

static uint64_t expected[EPOCHS][COUNT]; /* hash of a sample's row */

static uint64_t hash_row(const stoker_batch *batch, uint32_t row)
{
    uint64_t hash = 1;
    for (uint32_t i = 0; i < batch->field_count; i++) {
        const stoker_field *shown = &batch->fields[i];
        const uint8_t *values = shown->values.data;
        size_t bytes = stoker_dtype_bytes(shown->values.dtype);
        for (uint32_t axis = 1; axis < shown->values.rank; axis++)
            bytes *= (size_t)shown->values.shape[axis];
        if (shown->offsets == NULL)
            hash = stk_hash_bytes(hash, values + row * bytes, bytes);
        else
            hash = stk_hash_bytes(hash, values + (size_t)shown->offsets[row] * bytes,
                                  (size_t)(shown->offsets[row + 1] - shown->offsets[row]) * bytes);
    }
    return hash;
}

/* The first run learns the rows. */
static struct seen run(const stoker_loader_options *options, bool learns)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    struct seen seen = { .rc = 0 };
    stoker_loader *loader = loader_of(set.dataset, options);
    while (seen.rc >= 0 && (seen.rc = stoker_loader_next(loader, &batch, 20000)) >= 0 &&
           seen.rc != STOKER_FINISHED) {
        if (seen.rc != STOKER_OK)
            continue;
        for (uint32_t row = 0; row < batch.count; row++, seen.rows++) {
            const uint64_t id = batch.ids[row];
            if (learns)
                expected[batch.epoch][id] = hash_row(&batch, row);
            cr_assert_eq(hash_row(&batch, row), expected[batch.epoch][id], "sample %d of epoch %d",
                         (int)id, (int)batch.epoch);
        }
        stoker_batch_release(&batch);
    }
    if (seen.rc < 0)
        seen.error = *stoker_loader_error(loader);
    stoker_loader_destroy(&loader);
    return seen;
}

static stoker_loader_options options_of(int way)
{
    stoker_loader_options options = stk_small_options(.batch_size = 2, .prefetch_batches = 2,
                                                      .epochs = EPOCHS, .num_workers = 0);
    if (way == 1)
        options.transform.random_resized_crop = (stoker_size){ 4, 4 };
    if (way == 2)
        options.transform.random_crop = (stoker_size){ 3, 5 };
    return options;
}

static const char *const names[READ_PARTS] = { "\"image\"", "\"box\"", "\"words\"", "\"check\"" };

/* Reads number 0, 1, ... fail as the rule says. Returns a mask of the fields that errors named. */
static unsigned sweep(stoker_loader_options options, struct stk_script_rule rule, int code)
{
    unsigned named = 0;
    uint64_t failed = 0;
    for (rule.skip = 0;; rule.skip++) {
        stk_script_install(
            &(struct stk_script){ .rules = &rule, .rule_count = 1, .shuffle_seed = rule.skip + 1 });
        const struct seen seen = run(&options, false);
        if (stk_script_counts().hits[rule.what] == 0)
            break;
        failed++;
        switch (options.on_bad_sample) {
        case STOKER_ON_BAD_FAIL:
            cr_assert_eq(seen.rc, code, "read %d: %s", (int)rule.skip, seen.error.message);
            for (unsigned i = 0; i < READ_PARTS; i++)
                named |= strstr(seen.error.message, names[i]) != NULL ? 1U << i : 0;
            break;
        case STOKER_ON_BAD_SKIP:
            cr_assert_eq(seen.rc, STOKER_FINISHED);
            cr_assert_eq(seen.rows, EPOCHS * COUNT - 1);
            break;
        case STOKER_ON_BAD_SUBSTITUTE:
            cr_assert_eq(seen.rc, STOKER_FINISHED);
            cr_assert_eq(seen.rows, EPOCHS * COUNT);
            break;
        }
    }
    cr_assert_geq(failed, COUNT);
    return named;
}

CleanTest(several_reads, each_one_fails_in_its_turn)
{
    const struct stk_script_rule rule = {
        .what = STK_SCRIPT_ERRNO, .amount = EIO, .file = STK_SCRIPT_ANY_FILE, .times = 1
    };
    make();
    for (int way = 0; way < 3; way++) {
        stoker_loader_options options = options_of(way);
        cr_assert_eq(run(&options, true).rc, STOKER_FINISHED);
        options.reader = &stk_scripted_reader;
        for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DECODED; cache++)
            for (int policy = STOKER_ON_BAD_FAIL; policy <= STOKER_ON_BAD_SUBSTITUTE; policy++) {
                options.cache = (stoker_cache)cache;
                options.on_bad_sample = (stoker_on_bad)policy;
                options.num_workers = policy == STOKER_ON_BAD_SKIP ? 2 : 0;
                if (cache != STOKER_CACHE_DECODED && policy != (int)cache - STOKER_CACHE_NONE)
                    continue; /* NONE fails, ENCODED skips */
                const unsigned named = sweep(options, rule, STOKER_EIO);
                cr_assert(policy != STOKER_ON_BAD_FAIL || named == (1U << READ_PARTS) - 1,
                          "way %d: fields %x", way, named);
            }
    }
    unmake();
}

/* The part with a checksum, which a cache must not keep. */
CleanTest(several_reads, each_one_brings_a_wrong_bit)
{
    const struct stk_script_rule rule = {
        .what = STK_SCRIPT_FLIP, .file = 0, .offset = CHECKS_AT, .bytes = COUNT * CHECK, .times = 1
    };
    make();
    for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DECODED; cache++) {
        stoker_loader_options options = options_of(0);
        cr_assert_eq(run(&options, true).rc, STOKER_FINISHED);
        options.reader = &stk_scripted_reader;
        options.cache = (stoker_cache)cache;
        for (int policy = STOKER_ON_BAD_FAIL; policy <= STOKER_ON_BAD_SUBSTITUTE; policy++) {
            options.on_bad_sample = (stoker_on_bad)policy;
            const unsigned named = sweep(options, rule, STOKER_ECORRUPT);
            cr_assert(policy != STOKER_ON_BAD_FAIL || named == 1U << 3, "fields %x", named);
        }
    }
    unmake();
}

/* A file that ends too early. */
CleanTest(several_reads, each_one_ends_too_early)
{
    const struct stk_script_rule file = { .what = STK_SCRIPT_EOF, .file = 0, .times = 1 };
    make();
    for (int way = 0; way < 3; way += 2) {
        stoker_loader_options options = options_of(way);
        cr_assert_eq(run(&options, true).rc, STOKER_FINISHED);
        options.reader = &stk_scripted_reader;
        for (int policy = STOKER_ON_BAD_FAIL; policy <= STOKER_ON_BAD_SUBSTITUTE; policy++) {
            options.on_bad_sample = (stoker_on_bad)policy;
            const unsigned named = sweep(options, file, STOKER_ETRUNCATED);
            cr_assert(policy != STOKER_ON_BAD_FAIL || named == 0xE, "fields %x", named);
        }
    }
    unmake();
}
