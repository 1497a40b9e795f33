/* newer.c - a program of a later version, whose structs have one member more, with the library of
 * this version.
 *
 * It is compiled with grown headers (grow_headers.py). While the new members are 0 everything
 * works; if one is not, the library does not know what it asks for, and refuses the struct by its
 * name. What the library fills in is 0 there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stoker/stoker.h>

enum { COUNT = 20 };

#define CHECK(holds) ((holds) ? (void)0 : failed(__LINE__, #holds))

static stoker_error error;

static void failed(int line, const char *what)
{
    fprintf(stderr, "newer.c:%d: not so: %s; the last error: %s\n", line, what, error.message);
    exit(1);
}

/* The struct is refused with `code`, and the message has `words`. */
static void refused(int line, int rc, const char *words)
{
    if (rc != STOKER_EINVAL || strstr(error.message, words) == NULL)
        failed(line, words);
    error.message[0] = '\0';
}
#define REFUSED(call, words) refused(__LINE__, call, words)

static int apply_row(void *self, void *scratch, stoker_row *fields, uint32_t count,
                     const stoker_hook_sample *sample, stoker_rng *rng, stoker_error *why)
{
    (void)self, (void)scratch, (void)fields, (void)count, (void)sample, (void)rng, (void)why;
    return STOKER_OK;
}

static int apply_batch(void *self, void *scratch, stoker_hook_field *fields, uint32_t count,
                       const stoker_hook_batch *batch, stoker_rng *rng, stoker_error *why)
{
    (void)self, (void)scratch, (void)fields, (void)count, (void)batch, (void)rng, (void)why;
    return STOKER_OK;
}

/* ---- a data set of its own ---- */

static uint64_t news_of_info, news_of_field;

static int describe(const void *self, stoker_dataset_info *out)
{
    (void)self;
    *out = (stoker_dataset_info){
        .struct_size = sizeof(*out), .count = COUNT, .field_count = 1, .grown = news_of_info
    };
    return STOKER_OK;
}

static int field(const void *self, uint32_t index, stoker_field_info *out)
{
    (void)self, (void)index;
    *out = (stoker_field_info){ .struct_size = sizeof(*out),
                                .name = "row",
                                .dtype = STOKER_DTYPE_UINT8,
                                .rank = 1,
                                .shape = { 4 },
                                .part = STOKER_NO_PART,
                                .grown = news_of_field };
    return STOKER_OK;
}

static int make(const void *self, uint64_t id, stoker_row *rows, stoker_rng *rng, stoker_error *why)
{
    (void)self, (void)rng, (void)why;
    memset(rows[0].data, (int)id, 4);
    return STOKER_OK;
}

static void make_data_sets(void)
{
    stoker_dataset_ops ops = { .struct_size = sizeof(ops),
                               .name = "own",
                               .describe = describe,
                               .field = field,
                               .make = make };
    stoker_dataset *dataset = NULL;
    CHECK(stoker_dataset_create(&dataset, &ops, NULL, &error) == STOKER_OK);
    stoker_dataset_close(&dataset);
    ops.grown = 1;
    REFUSED(stoker_dataset_create(&dataset, &ops, NULL, &error), "ops->struct_size");
    ops.grown = 0;
    news_of_info = 1;
    REFUSED(stoker_dataset_create(&dataset, &ops, NULL, &error), "describe()");
    news_of_info = 0;
    news_of_field = 1;
    REFUSED(stoker_dataset_create(&dataset, &ops, NULL, &error), "field()");
}

static stoker_dataset *open_arrays(void)
{
    static const uint8_t rows[COUNT * 4];
    stoker_array arrays[2] = { STOKER_ARRAY_INIT, STOKER_ARRAY_INIT };
    stoker_arrays_options options = STOKER_ARRAYS_OPTIONS_INIT;
    stoker_dataset *dataset = NULL;
    for (int i = 0; i < 2; i++) {
        arrays[i].name = i == 0 ? "row" : "more";
        arrays[i].data = rows;
        arrays[i].dtype = STOKER_DTYPE_UINT8;
        arrays[i].rank = 1;
        arrays[i].shape[0] = 4;
    }
    arrays[1].grown = 1;
    REFUSED(stoker_dataset_from_arrays(&dataset, arrays, 2, COUNT, &options, &error),
            "STOKER_ARRAY_INIT");
    arrays[1].grown = 0;
    options.grown = 1;
    REFUSED(stoker_dataset_from_arrays(&dataset, arrays, 2, COUNT, &options, &error),
            "STOKER_ARRAYS_OPTIONS_INIT");
    options.grown = 0;
    CHECK(stoker_dataset_from_arrays(&dataset, arrays, 2, COUNT, &options, &error) == STOKER_OK);
    return dataset;
}

static void open_others(stoker_dataset *dataset)
{
    stoker_dataset_options options = STOKER_DATASET_OPTIONS_INIT;
    stoker_split split = STOKER_SPLIT_INIT;
    stoker_ranks ranks = STOKER_RANKS_INIT;
    stoker_dataset *out = NULL;
    options.grown = 1;
    REFUSED(stoker_dataset_open(&out, "synth:digits?count=9", &options, &error),
            "stoker_dataset_options");
    memset(&options, 0xA5, sizeof(options));
    CHECK(stoker_dataset_options_init_sized(&options, sizeof(options)) == STOKER_OK);
    CHECK(options.grown == 0 && options.struct_size == sizeof(options));
    CHECK(stoker_dataset_open(&out, "synth:digits?count=9", &options, &error) == STOKER_OK);
    stoker_dataset_close(&out);
    split.test = 0.5;
    split.grown = 1;
    REFUSED(stoker_dataset_split(&out, dataset, &split, &error), "stoker_split");
    split.grown = 0;
    CHECK(stoker_dataset_split(&out, dataset, &split, &error) == STOKER_OK);
    stoker_dataset_close(&out);
    ranks.grown = 1;
    CHECK(stoker_ranks_from_environment(&ranks, &error) == STOKER_OK && ranks.grown == 0);
}

/* ---- a loader ---- */

static void run(stoker_dataset *dataset, const stoker_loader_options *options)
{
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_stats before = STOKER_STATS_INIT, after = STOKER_STATS_INIT;
    stoker_trace_event events[8];
    stoker_trace trace = STOKER_TRACE_INIT;
    int rc;
    CHECK(stoker_loader_create(&loader, dataset, options, &error) == STOKER_OK);
    before.grown = after.grown = batch.grown = 1;
    CHECK(stoker_loader_stats(loader, &before) == STOKER_OK && before.grown == 0);
    while ((rc = stoker_loader_next(loader, &batch, -1)) != STOKER_FINISHED) {
        CHECK(rc >= 0);
        if (rc == STOKER_OK)
            CHECK(batch.grown == 0 && batch.struct_size == sizeof(batch) && batch.count > 0);
        stoker_batch_release(&batch);
        batch.grown = 1;
    }
    CHECK(stoker_loader_stats(loader, &after) == STOKER_OK && after.batches > 0);
    after.grown = 1;
    CHECK(stoker_stats_between(&before, &after, &after) == STOKER_OK && after.grown == 0);
    trace.events = events;
    trace.capacity = 8;
    CHECK(stoker_loader_trace(loader, &trace) == STOKER_OK && trace.count > 0);
    trace.grown = 1;
    CHECK(stoker_loader_trace(loader, &trace) == STOKER_EINVAL);
    stoker_loader_destroy(&loader);
}

static void load(stoker_dataset *dataset)
{
    stoker_loader *loader = NULL;
    stoker_loader_options options;
    stoker_field_options fields[2] = { STOKER_FIELD_OPTIONS_INIT, STOKER_FIELD_OPTIONS_INIT };
    stoker_order order = STOKER_ORDER_INIT;
    stoker_row_hook row_hook = { .struct_size = sizeof(row_hook), .apply = apply_row };
    stoker_batch_hook batch_hook = { .struct_size = sizeof(batch_hook), .apply = apply_batch };
    const stoker_reader *pread = stoker_reader_pread(); /* a shorter table than ours */
    stoker_reader reader = { .struct_size = sizeof(reader),
                             .name = "own",
                             .self = pread->self,
                             .open = pread->open,
                             .submit = pread->submit,
                             .reap = pread->reap,
                             .close = pread->close };
    memset(&options, 0xA5, sizeof(options));
    CHECK(stoker_loader_options_init_sized(&options, sizeof(options)) == STOKER_OK);
    CHECK(options.grown == 0);
    options.batch_size = 5;
    options.epochs = 1;
    options.trace_events = 64;
    fields[0].name = "more";
    fields[1].name = "row";
    options.fields = fields;
    options.field_count = 2;
    options.order = &order;
    options.row_hook = &row_hook;
    options.batch_hook = &batch_hook;
    options.reader = &reader;
    run(dataset, &options);

    uint64_t *const news[] = { &options.grown,  &fields[1].grown,  &order.grown,
                               &row_hook.grown, &batch_hook.grown, &reader.grown };
    static const char *const names[] = {
        "stoker_loader_options", "stoker_field_options", "order", "row_hook", "batch_hook", "reader"
    };
    for (int i = 0; i < 6; i++) {
        *news[i] = 1;
        REFUSED(stoker_loader_create(&loader, dataset, &options, &error), names[i]);
        *news[i] = 0;
    }
}

int main(void)
{
    make_data_sets();
    stoker_dataset *dataset = open_arrays();
    open_others(dataset);
    load(dataset);
    stoker_dataset_close(&dataset);
    puts("refused by name, and taken while 0");
    return 0;
}
