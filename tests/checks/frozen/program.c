/* program.c - a user's program that uses as much of the library as one file can, and prints hashes
 * of what it got.
 *
 * check_frozen_headers.sh compiles it with the headers of a released version and with those of this
 * one, and runs it with this library and with one whose structs grew: all must print the same. It
 * must compile with the oldest headers, so it never uses what came later.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stoker/stoker.h>

enum { COUNT = 60, SIDE = 6, TEXT_MAX = 9 };

static uint64_t hash;

static void add(const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001B3);
}

static void must(int rc, const char *what, const stoker_error *error)
{
    if (rc < 0) {
        fprintf(stderr, "%s: %s: %s\n", what, stoker_error_name(rc), error->message);
        exit(1);
    }
}

/* Print and restart the hash. */
static void say(const char *what)
{
    printf("%s %016llx\n", what, (unsigned long long)hash);
    hash = UINT64_C(0xCBF29CE484222325);
}

/* ---- a run ---- */

static void add_tensor(const stoker_tensor *tensor)
{
    size_t bytes = stoker_dtype_bytes(tensor->dtype);
    for (uint32_t axis = 0; axis < tensor->rank; axis++)
        bytes *= (size_t)tensor->shape[axis];
    if (tensor->data != NULL)
        add(tensor->data, bytes);
}

static void add_batch(const stoker_batch *batch)
{
    add_tensor(&batch->images);
    add_tensor(&batch->labels);
    add(batch->ids, batch->count * sizeof(batch->ids[0]));
    add(&batch->index, sizeof(batch->index));
    for (uint32_t i = 0; i < batch->field_count; i++) {
        const stoker_field *field = &batch->fields[i];
        add(field->name, strlen(field->name));
        add_tensor(&field->values);
        if (field->offsets != NULL)
            add(field->offsets, (batch->count + 1) * sizeof(field->offsets[0]));
    }
}

static uint32_t heard;

static void listen(void *self, stoker_log_level level, const char *message)
{
    heard += self == (void *)&heard && level >= STOKER_LOG_INFO && message[0] != '\0';
}

/* A struct that the library fills in, and what it must not touch: its own may be larger. */
#define GUARDED(type, name)                                                                        \
    struct {                                                                                       \
        type given;                                                                                \
        unsigned char behind[64];                                                                  \
    } name

static const unsigned char untouched[64] = "what lies behind a caller's struct stays as it is";

#define GUARD(name, init)                                                                          \
    do {                                                                                           \
        name.given = init;                                                                         \
        memcpy(name.behind, untouched, sizeof(untouched));                                         \
    } while (0)

static void stayed(const unsigned char *behind, const char *what)
{
    if (memcmp(behind, untouched, sizeof(untouched)) != 0) {
        fprintf(stderr, "the library writes behind the caller's %s\n", what);
        exit(1);
    }
}

static void run(const char *what, const stoker_dataset *dataset,
                const stoker_loader_options *wanted)
{
    stoker_loader_options options = *wanted;
    stoker_loader *loader = NULL;
    stoker_error error;
    const stoker_batch no_batch = STOKER_BATCH_INIT;
    const stoker_stats no_stats = STOKER_STATS_INIT;
    const stoker_trace no_trace = STOKER_TRACE_INIT;
    GUARDED(stoker_batch, batch);
    GUARDED(stoker_stats, before);
    GUARDED(stoker_stats, after);
    GUARDED(stoker_stats, passed);
    GUARDED(stoker_trace, trace);
    stoker_trace_event events[64];
    uint8_t state[STOKER_STATE_BYTES];
    int fd = -1, rc;
    GUARD(batch, no_batch);
    GUARD(before, no_stats);
    GUARD(after, no_stats);
    GUARD(passed, no_stats);
    GUARD(trace, no_trace);
    options.on_log = listen;
    options.log_self = &heard;
    options.trace_events = 256;
    must(stoker_loader_create(&loader, dataset, &options, &error), what, &error);
    must(stoker_loader_stats(loader, &before.given), "stats", &error);
    must(stoker_loader_fd(loader, &fd, &error), "fd", &error);
    while ((rc = stoker_loader_next(loader, &batch.given, -1)) != STOKER_FINISHED) {
        must(rc, what, stoker_loader_error(loader));
        if (rc != STOKER_OK)
            continue;
        add_batch(&batch.given);
        must(stoker_loader_state(loader, state, sizeof(state), NULL, &error), "state", &error);
        add(state, sizeof(state));
        stoker_batch_release(&batch.given);
    }
    must(stoker_loader_stats(loader, &after.given), "stats", &error);
    must(stoker_stats_between(&before.given, &after.given, &passed.given), "between", &error);
    add(&passed.given.batches, sizeof(passed.given.batches));
    add(&passed.given.samples, sizeof(passed.given.samples));
    add(&passed.given.bad_samples, sizeof(passed.given.bad_samples));
    add(passed.given.route, strlen(passed.given.route));
    trace.given.events = events;
    trace.given.capacity = 64;
    must(stoker_loader_trace(loader, &trace.given), "trace", &error);
    if (trace.given.count > 0)
        add("traced", 6);
    stayed(batch.behind, "batch");
    stayed(before.behind, "stats");
    stayed(passed.behind, "stats between two others");
    stayed(trace.behind, "trace");
    stoker_loader_destroy(&loader);
    say(what);
}

static stoker_loader_options options_of(void)
{
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    options.batch_size = 8;
    options.epochs = 2;
    options.seed = 42;
    options.shuffle = true;
    options.num_workers = 2;
    options.last = STOKER_LAST_PAD;
    return options;
}

/* ---- own data: three fields from a part and a callback; with a codec, in a file ---- */

struct set {
    FILE *file;
    stoker_codec codec;
};

static int describe(const void *self, stoker_dataset_info *out)
{
    (void)self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(*out),
                                  .count = COUNT,
                                  .field_count = 3,
                                  .part_count = 1,
                                  .file_count = 1,
                                  .encoded_bytes_max = SIDE + TEXT_MAX,
                                  .fingerprint = 7 };
    return STOKER_OK;
}

static int field(const void *self, uint32_t index, stoker_field_info *out)
{
    static const char *const names[] = { "row", "text", "label" };
    (void)self;
    *out =
        (stoker_field_info){ .struct_size = sizeof(*out),
                             .name = names[index],
                             .kind = index == 1 ? STOKER_FIELD_KIND_BYTES : STOKER_FIELD_KIND_ARRAY,
                             .dtype = index == 2 ? STOKER_DTYPE_INT64 : STOKER_DTYPE_UINT8,
                             .rank = index == 2 ? 0 : 1,
                             .shape = { index == 0 ? SIDE : TEXT_MAX },
                             .varies = index == 1,
                             .part = index == 2 ? STOKER_NO_PART : 0,
                             .class_count = index == 2 ? 5 : 0 };
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *parts,
                  stoker_error *error)
{
    const struct set *set = self;
    (void)error;
    for (uint32_t i = 0; i < count; i++)
        parts[i] = (stoker_part){ .extent = { .offset = ids[i] * (SIDE + TEXT_MAX),
                                              .bytes = SIDE + TEXT_MAX },
                                  .codec = &set->codec,
                                  .tag = ids[i] % (TEXT_MAX + 1) };
    return STOKER_OK;
}

static int values(const void *self, uint32_t index, const uint64_t *ids, uint32_t count, void *out)
{
    (void)self, (void)index;
    for (uint32_t i = 0; i < count; i++)
        ((int64_t *)out)[i] = (int64_t)(ids[i] % 5);
    return STOKER_OK;
}

static int file_of(const void *self, uint32_t index, stoker_file *out)
{
    const struct set *set = self;
    (void)index;
    *out =
        (stoker_file){ .path = "made", .fd = fileno(set->file), .size = COUNT * (SIDE + TEXT_MAX) };
    return STOKER_OK;
}

static int decode(const void *self, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    stoker_row *rows = out->rows;
    (void)self, (void)scratch, (void)error;
    if (out->field_count != 2 || in->size != SIDE + TEXT_MAX)
        return STOKER_EFORMAT;
    memcpy(rows[0].data, in->bytes, SIDE);
    memcpy(rows[1].data, in->bytes + SIDE, (size_t)in->tag);
    rows[1].length = in->tag;
    return STOKER_OK;
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(ops),
                                        .name = "own",
                                        .describe = describe,
                                        .field = field,
                                        .locate = locate,
                                        .values = values,
                                        .file = file_of };

static int change_row(void *self, void *scratch, stoker_row *fields, uint32_t count,
                      const stoker_hook_sample *sample, stoker_rng *rng, stoker_error *error)
{
    (void)self, (void)scratch, (void)error;
    ((uint8_t *)fields[0].data)[0] = (uint8_t)(stoker_rng_below(rng, 256) + sample->id + count);
    return STOKER_OK;
}

static int change_batch(void *self, void *scratch, stoker_hook_field *fields, uint32_t count,
                        const stoker_hook_batch *batch, stoker_rng *rng, stoker_error *error)
{
    (void)self, (void)scratch, (void)count, (void)error;
    ((uint8_t *)fields[0].data)[1] = (uint8_t)(batch->rows + stoker_rng_u64(rng) % 7);
    return STOKER_OK;
}

/* ---- an own reader: that of the library, counted ---- */

static stoker_reader counted;
static const stoker_reader *plain;
static _Bool was_opened;

static int open_counted(void *self, void **ring, const stoker_reader_setup *setup,
                        stoker_error *error)
{
    (void)self;
    was_opened = setup->struct_size >= sizeof(size_t) && setup->file_count == 1;
    return plain->open(plain->self, ring, setup, error);
}

static void own_data(void)
{
    struct set set = { .file = tmpfile(),
                       .codec = { .struct_size = sizeof(stoker_codec),
                                  .name = "halves",
                                  .flags = STOKER_CODEC_FIELDS,
                                  .decode = decode } };
    stoker_dataset *dataset = NULL;
    stoker_error error;
    for (int i = 0; i < COUNT * (SIDE + TEXT_MAX); i++)
        putc((i * 131) % 251, set.file);
    fflush(set.file);
    must(stoker_dataset_create(&dataset, &ops, &set, &error), "own data", &error);

    stoker_loader_options options = options_of();
    stoker_field_options fields[2] = { STOKER_FIELD_OPTIONS_INIT, STOKER_FIELD_OPTIONS_INIT };
    fields[0].name = "text";
    fields[0].form = STOKER_FIELD_FORM_PADDED_MULTIPLE;
    fields[0].multiple = 4;
    fields[1].name = "label";
    options.fields = fields;
    options.field_count = 2;
    options.cache = STOKER_CACHE_DECODED;
    run("fields", dataset, &options);

    const stoker_row_hook row_hook = { .struct_size = sizeof(row_hook), .apply = change_row };
    const stoker_batch_hook batch_hook = { .struct_size = sizeof(batch_hook),
                                           .apply = change_batch };
    options.row_hook = &row_hook;
    options.batch_hook = &batch_hook;
    run("hooks", dataset, &options);

    plain = stoker_reader_pread();
    counted = *plain;
    counted.struct_size = sizeof(counted);
    counted.name = "counted";
    counted.open = open_counted;
    options.reader = &counted;
    options.cache = STOKER_CACHE_NONE;
    run("reader", dataset, &options);
    printf("reader opened %d\n", was_opened);
    stoker_dataset_close(&dataset);
    fclose(set.file);
}

/* ---- own data without parts, arrays, views, orders ---- */

static int describe_made(const void *self, stoker_dataset_info *out)
{
    (void)self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(*out), .count = COUNT, .field_count = 1 };
    return STOKER_OK;
}

static int field_made(const void *self, uint32_t index, stoker_field_info *out)
{
    (void)self, (void)index;
    *out = (stoker_field_info){ .struct_size = sizeof(*out),
                                .name = "number",
                                .dtype = STOKER_DTYPE_FLOAT32,
                                .part = STOKER_NO_PART };
    return STOKER_OK;
}

static int make(const void *self, uint64_t id, stoker_row *rows, stoker_rng *rng,
                stoker_error *error)
{
    (void)self, (void)error;
    *(float *)rows[0].data = (float)id + stoker_rng_float(rng);
    return id % 20 == 3 ? STOKER_ECORRUPT : STOKER_OK;
}

static const stoker_dataset_ops made_ops = { .struct_size = sizeof(made_ops),
                                             .name = "made",
                                             .describe = describe_made,
                                             .field = field_made,
                                             .make = make };

static int backwards(void *self, uint64_t epoch, uint64_t position, uint64_t stride, uint32_t count,
                     uint64_t *ids_out, stoker_error *error)
{
    (void)self, (void)error;
    for (uint32_t i = 0; i < count; i++)
        ids_out[i] = (COUNT - 1 - (position + i * stride) % COUNT + epoch) % COUNT;
    return STOKER_OK;
}

static void arrays_and_orders(void)
{
    static float numbers[COUNT * 2];
    static int32_t labels[COUNT];
    stoker_array arrays[2] = { STOKER_ARRAY_INIT, STOKER_ARRAY_INIT };
    stoker_arrays_options own = STOKER_ARRAYS_OPTIONS_INIT;
    stoker_dataset *dataset = NULL, *side = NULL;
    stoker_split split = STOKER_SPLIT_INIT;
    stoker_order order = STOKER_ORDER_INIT;
    stoker_error error;
    for (int i = 0; i < COUNT; i++) {
        numbers[2 * i] = (float)i;
        labels[i] = i % 3;
    }
    arrays[0].name = "row";
    arrays[0].data = numbers;
    arrays[0].dtype = STOKER_DTYPE_FLOAT32;
    arrays[0].rank = 1;
    arrays[0].shape[0] = 2;
    arrays[1].name = "label";
    arrays[1].data = labels;
    arrays[1].dtype = STOKER_DTYPE_INT32;
    arrays[1].class_count = 3;
    own.fingerprint = 99;
    must(stoker_dataset_from_arrays(&dataset, arrays, 2, COUNT, &own, &error), "arrays", &error);
    stoker_loader_options options = options_of();
    run("arrays", dataset, &options);

    split.test = 0.25;
    split.side = STOKER_SIDE_TEST;
    split.stratified = true;
    must(stoker_dataset_split(&side, dataset, &split, &error), "split", &error);
    run("split", side, &options);
    stoker_dataset_close(&side);

    order.kind = STOKER_ORDER_OWN;
    order.ids = backwards;
    order.name = "backwards";
    options.order = &order;
    run("order", dataset, &options);
    options.order = NULL;
    options.on_lent = STOKER_ON_LENT_GROW;
    run("grow", dataset, &options);
    stoker_dataset_close(&dataset);

    must(stoker_dataset_create(&dataset, &made_ops, NULL, &error), "made", &error);
    options.on_bad_sample = STOKER_ON_BAD_SUBSTITUTE;
    run("made", dataset, &options);
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    const stoker_field_info *first = stoker_dataset_field(dataset, 0);
    printf("info %llu %u %s %d\n", (unsigned long long)info->count, info->field_count, first->name,
           (int)first->dtype);
    stoker_dataset_close(&dataset);
}

int main(void)
{
    stoker_dataset_options opening = STOKER_DATASET_OPTIONS_INIT;
    stoker_dataset *dataset = NULL;
    stoker_error error;
    stoker_ranks ranks = STOKER_RANKS_INIT;
    must(stoker_dataset_open(&dataset, "synth:digits?count=100", &opening, &error), "open", &error);
    stoker_loader_options options = options_of();
    static const float mean[] = { 0.25F }, std[] = { 0.5F };
    options.dtype = STOKER_DTYPE_FLOAT32;
    options.layout = STOKER_LAYOUT_NCHW;
    options.mean = mean;
    options.std = std;
    options.mean_count = 1;
    options.transform.random_resized_crop = (stoker_size){ 12, 10 };
    options.transform.flip = true;
    options.transform.blur = 3;
    say("start");
    run("transform", dataset, &options);
    stoker_dataset_close(&dataset);
    own_data();
    arrays_and_orders();
    must(stoker_ranks_from_environment(&ranks, &error), "ranks", &error);
    printf("ranks %u of %u\nheard %s\n", ranks.rank, ranks.world_size, heard > 0 ? "yes" : "no");
    return 0;
}
