/* main.c - samples of 100 fields of 4 KiB against samples of one field of 400 KiB, pinned and not.
 *
 *   one     one part, one field
 *   part    one part that fills 100 fields, like a record of shards
 *   parts   100 parts, each of one field, like arrays or members of a tar
 *
 * All lie in memory. Each way has a loader with page-locked slots and one without; they take turns, and a ratio is the
 * median over the turns. Before that, every byte of an epoch is compared.
 *
 * usage: fieldsbench [TURNS] [WORKERS] [cpu|cuda]
 *
 * Exit status: 0 measured, 1 a loader failed or delivered wrong bytes, 3 a target is missed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <stoker/stoker.h>

enum {
    FIELDS = 100,
    FIELD_BYTES = 4096,
    ROW_BYTES = FIELDS * FIELD_BYTES,
    SAMPLES = 256,
    BATCH = 16,
    WAYS = 3,
    CELLS = 2 * WAYS, /* way x pinned */
    TURNS_MAX = 1001,
    TURN_BATCHES = 48,
    SETTLE_BATCHES = 16 /* more than a ring has slots */
};

static const char *const way_names[WAYS] = { "one field of 400 KiB", "100 fields, one part",
                                             "100 fields, 100 parts" };

/* ---- the data set ---- */

struct set {
    const uint8_t *rows;
    uint32_t fields, parts;
    char names[FIELDS][12];
};

static int describe(const void *self, stoker_dataset_info *out)
{
    const struct set *set = self;
    out->count = SAMPLES;
    out->field_count = set->fields;
    out->part_count = set->parts;
    return STOKER_OK;
}

static int describe_field(const void *self, uint32_t field, stoker_field_info *out)
{
    const struct set *set = self;
    out->struct_size = sizeof(*out);
    out->name = set->names[field];
    out->kind = STOKER_FIELD_ARRAY;
    out->dtype = STOKER_DTYPE_UINT8;
    out->rank = 1;
    out->shape[0] = ROW_BYTES / set->fields;
    out->part = set->parts == 1 ? 0 : field;
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *parts,
                  stoker_error *error)
{
    (void)error;
    const struct set *set = self;
    const uint32_t bytes = ROW_BYTES / set->parts;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t part = 0; part < set->parts; part++)
            parts[i * set->parts + part] =
                (stoker_part){ .extent = { .memory = set->rows + ids[i] * ROW_BYTES + part * bytes,
                                           .bytes = bytes } };
    return STOKER_OK;
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(ops),
                                        .name = "fieldsbench",
                                        .describe = describe,
                                        .field = describe_field,
                                        .locate = locate };

static void name_fields(struct set *set)
{
    for (uint32_t field = 0; field < set->fields; field++)
        (void)snprintf(set->names[field], sizeof(set->names[field]), "f%u", field % FIELDS);
}

/* ---- the cells ---- */

struct cell {
    const struct set *set;
    bool pinned;
    stoker_loader *loader;
    double seconds[TURNS_MAX]; /* per sample */
};

static int complain(const char *what, const stoker_error *error)
{
    fprintf(stderr, "fieldsbench: %s: %s\n", what, error->message);
    return 1;
}

static int make_loader(struct cell *cell, const stoker_dataset *dataset, int32_t workers,
                       stoker_device device)
{
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    stoker_error error = { 0 };
    options.batch_size = BATCH;
    options.shuffle = true;
    options.num_workers = workers;
    options.cache = STOKER_CACHE_NONE;
    options.device = device;
    options.non_blocking = false; /* on a GPU next waits for the copy */
    options.pin_memory = cell->pinned ? STOKER_SWITCH_ON : STOKER_SWITCH_OFF;
    const int rc = stoker_loader_create(&cell->loader, dataset, &options, &error);
    return rc < 0 ? complain("create", &error) : 0;
}

static bool is_right(const struct set *set, const stoker_batch *batch)
{
    const size_t bytes = ROW_BYTES / set->fields;
    if (batch->field_count != set->fields)
        return false;
    for (uint32_t field = 0; field < set->fields; field++)
        for (uint32_t row = 0; row < batch->count; row++)
            if (memcmp((const uint8_t *)batch->fields[field].values.data + row * bytes,
                       set->rows + batch->ids[row] * ROW_BYTES + field * bytes, bytes) != 0)
                return false;
    return true;
}

/* Take batches; seconds per sample, < 0 on failure. */
static double take(struct cell *cell, int batches, bool compare)
{
    struct timespec begin, end;
    uint64_t samples = 0;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    while (batches > 0) {
        stoker_batch batch = STOKER_BATCH_INIT;
        const int rc = stoker_loader_next(cell->loader, &batch, -1);
        if (rc == STOKER_EPOCH_END)
            continue;
        if (rc != STOKER_OK || (compare && !is_right(cell->set, &batch)))
            return -1;
        samples += batch.count;
        stoker_batch_release(&batch);
        batches--;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec)) /
           (double)samples;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *values, int count)
{
    static double sorted[TURNS_MAX];
    memcpy(sorted, values, (size_t)count * sizeof(sorted[0]));
    qsort(sorted, (size_t)count, sizeof(sorted[0]), by_size);
    return sorted[count / 2];
}

static double ratio(const struct cell *one, const struct cell *other, int turns)
{
    static double ratios[TURNS_MAX];
    for (int turn = 0; turn < turns; turn++)
        ratios[turn] = one->seconds[turn] / other->seconds[turn];
    return median(ratios, turns);
}

/* ---- the run ---- */

static int run(struct cell cells[CELLS], int turns, bool compare)
{
    for (int i = 0; i < CELLS; i++)
        if (take(&cells[i], SAMPLES / BATCH, compare) < 0) {
            fprintf(stderr, "fieldsbench: %s: wrong bytes, or %s\n", way_names[i / 2],
                    stoker_loader_error(cells[i].loader) == NULL
                        ? "no error"
                        : stoker_loader_error(cells[i].loader)->message);
            return 1;
        }
    for (int turn = 0; turn < turns; turn++)
        for (int i = 0; i < CELLS; i++) {
            struct cell *cell = &cells[(i + turn) % CELLS];
            if (take(cell, SETTLE_BATCHES, false) < 0)
                return 1;
            cell->seconds[turn] = take(cell, TURN_BATCHES, false);
        }
    return 0;
}

static int report(const struct cell cells[CELLS], int turns)
{
    int missed = 0;
    printf("%-24s %-9s %12s %8s %14s\n", "sample", "pinned", "samples/s", "GB/s", "time / one");
    for (int i = 0; i < CELLS; i++) {
        const double seconds = median(cells[i].seconds, turns);
        printf("%-24s %-9s %12.0f %8.2f %14.3f\n", way_names[i / 2], cells[i].pinned ? "yes" : "no",
               1 / seconds, ROW_BYTES / seconds / 1e9, ratio(&cells[i], &cells[i % 2], turns));
    }
    for (int way = 1; way < WAYS; way++) {
        const double pinned = ratio(&cells[2 * way + 1], &cells[2 * way], turns);
        const double cost = ratio(&cells[2 * way], &cells[0], turns);
        printf("%s: pinned / unpinned samples/s %.3f (>= 1, 0.97 with noise) %s; time / one field "
               "%.3f (<= 1.1) %s\n",
               way_names[way], pinned, pinned >= 0.97 ? "holds" : "DOES NOT HOLD", cost,
               cost <= 1.1 ? "holds" : "DOES NOT HOLD");
        missed += pinned < 0.97 || cost > 1.1;
    }
    return missed > 0 ? 3 : 0;
}

int main(int argc, char **argv)
{
    static struct set sets[WAYS] = { { .fields = 1, .parts = 1 },
                                     { .fields = FIELDS, .parts = 1 },
                                     { .fields = FIELDS, .parts = FIELDS } };
    static struct cell cells[CELLS];
    stoker_dataset *datasets[WAYS] = { NULL };
    const int turns = argc > 1 ? atoi(argv[1]) : 51;
    const int32_t workers = argc > 2 ? (int32_t)atoi(argv[2]) : 2;
    const bool cuda = argc > 3 && strcmp(argv[3], "cuda") == 0;
    uint8_t *rows = malloc((size_t)SAMPLES * ROW_BYTES);
    int rc = rows == NULL || turns < 1 || turns > TURNS_MAX;
    for (size_t i = 0; rc == 0 && i < (size_t)SAMPLES * ROW_BYTES; i++)
        rows[i] = (uint8_t)(i * 2654435761U >> 13);
    for (int i = 0; rc == 0 && i < CELLS; i++) {
        const int way = i / 2;
        stoker_error error = { 0 };
        sets[way].rows = rows;
        name_fields(&sets[way]);
        if (datasets[way] == NULL &&
            stoker_dataset_create(&datasets[way], &ops, &sets[way], &error) < 0)
            rc = complain("data set", &error);
        cells[i] = (struct cell){ .set = &sets[way], .pinned = i % 2 == 0 };
        if (rc == 0)
            rc = make_loader(&cells[i], datasets[way], workers,
                             cuda ? STOKER_DEVICE_CUDA : STOKER_DEVICE_CPU);
    }
    if (rc == 0)
        rc = run(cells, turns, !cuda);
    if (rc == 0)
        rc = report(cells, turns);
    for (int i = 0; i < CELLS; i++)
        stoker_loader_destroy(&cells[i].loader);
    for (int way = 0; way < WAYS; way++)
        stoker_dataset_close(&datasets[way]);
    free(rows);
    return rc;
}
