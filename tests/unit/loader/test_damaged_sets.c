/* test_damaged_sets.c - random configurations over data sets with damaged samples deliver what an
 * oracle says: rows, ids, labels, texts, reports and errors.
 *
 *   case ──▶ set of images, some damaged ──▶ oracle: order, substitutes, rows of each epoch
 *        └─▶ options of 1 to 3 legs, each resumed from the one before ──▶ each batch is compared
 *
 * The oracle's rows come from the pixels that were painted, in memory, through the plainest loader:
 * no files, no codec, no workers. Only if images differ in size, or are decoded at a fraction of
 * it, they come from the plainest loader over the set itself.
 *
 * STOKER_TEST_CASES=100000 runs that many cases, from number STOKER_TEST_FIRST on. Each case that
 * differs is printed; STOKER_TEST_FIRST=N STOKER_TEST_CASES=1 repeats case N.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stoker/arrays.h>

#include "support/leaks.h"

#if defined(STOKER_HAVE_PNG) && defined(STOKER_HAVE_JPEG) && defined(STOKER_HAVE_WEBP) &&          \
    defined(STOKER_HAVE_LZ4) && defined(STOKER_HAVE_ZSTD) && defined(STOKER_HAVE_DEFLATE)
#include "support/files/reader_file.h"
#include "support/runs/memory_limit.h"
#include "support/runs/shown_batch.h"
#include "support/sets/damaged_set.h"

enum {
    EPOCHS_MAX = 3,
    IDS_MAX = 2 * STK_DAMAGED_COUNT_MAX,
    LEGS_MAX = 3,
    RANKS_MAX = 3,
    BATCH_MAX = 20,
    ROW_MAX = 64 * 64 * 3 * 4, /* bytes of a row as delivered */
    TIMEOUT_MS = 60000
};

static struct stk_damaged_set set;

/* What the loaders run over: the set, or a view of it. */
static struct {
    stoker_dataset *dataset;
    enum { AS_IT_IS, REPEATED, SELECTED } kind;
    uint32_t count;
    uint64_t ids[IDS_MAX]; /* in the set */
} view;

/* ---- a case that differs --------------------------------------------------------- */

static jmp_buf differs;
static char difference[1000];
static stoker_loader *loaders[RANKS_MAX]; /* one per rank of the current leg */
static stoker_loader *plain_loader;
static stoker_dataset *memory; /* the same view of the images, of which only good ones matter */

static void check(bool right, const char *format, ...)
{
    va_list arguments;
    if (right)
        return;
    va_start(arguments, format);
    (void)vsnprintf(difference, sizeof(difference), format, arguments);
    va_end(arguments);
    longjmp(differs, 1);
}

/* ---- the oracle ------------------------------------------------------------------ */

static struct {
    uint64_t length;                     /* positions of an epoch */
    uint64_t ids[EPOCHS_MAX][IDS_MAX];   /* at each position */
    uint64_t other[EPOCHS_MAX][IDS_MAX]; /* the same with substitutes */
    bool good[IDS_MAX];
    size_t row_bytes;
    uint8_t rows[EPOCHS_MAX][IDS_MAX][ROW_MAX];
} oracle;

static struct stk_damaged_sample *sample_of(uint64_t id)
{
    return &set.samples[view.ids[id]];
}

/* The view of a data set, which it keeps open. */
static void look_at(stoker_dataset *dataset, stoker_dataset **out)
{
    stoker_error error = { .message = "" };
    const int rc = view.kind == SELECTED
                       ? stoker_dataset_select(out, dataset, view.ids, view.count, &error)
                       : stoker_dataset_concat(out, (stoker_dataset *[]){ dataset, dataset },
                                               view.count / set.count, &error);
    check(rc == STOKER_OK, "view: %s", error.message);
}

static void draw_view(void)
{
    view.kind = stk_chance(70) ? AS_IT_IS : stk_chance(50) ? REPEATED : SELECTED;
    view.count = view.kind == AS_IT_IS   ? set.count
                 : view.kind == REPEATED ? 2 * set.count
                                         : 1 + stk_roll(IDS_MAX);
    for (uint32_t id = 0; id < view.count; id++)
        view.ids[id] = view.kind == SELECTED ? stk_roll(set.count) : id % set.count;
    look_at(set.dataset, &view.dataset);
}

/* The plainest loader: one rank, no workers, no cache, pread. */
static stoker_loader_options plain(stoker_loader_options options)
{
    options.num_workers = 0;
    options.cache = STOKER_CACHE_NONE;
    options.share_cache = STOKER_SWITCH_OFF;
    options.reader = stoker_reader_pread();
    options.rank = 0;
    options.world_size = 1;
    options.last = STOKER_LAST_SHORT;
    options.max_bad_samples = STOKER_NO_LIMIT;
    return options;
}

static const uint8_t *row_of(const stoker_batch *batch, uint32_t row)
{
    return (const uint8_t *)batch->images.data + row * stk_step_bytes(&batch->images, 0);
}

/* Where to put the ids at each position, or the rows of each sample; either may be NULL. */
static void take_plain(const stoker_dataset *dataset, stoker_loader_options options,
                       uint64_t (*ids)[IDS_MAX], bool (*came)[IDS_MAX])
{
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_error error = { .message = "" };
    uint64_t position[EPOCHS_MAX] = { 0 };
    options.memory_bytes = STOKER_BYTES_AUTO; /* a limit is for the options' own batches */
    int rc = stoker_loader_create(&plain_loader, dataset, &options, &error);
    check(rc == STOKER_OK, "the plain loader: %s", error.message);
    while ((rc = stoker_loader_next(plain_loader, &batch, TIMEOUT_MS)) >= 0 &&
           rc != STOKER_FINISHED) {
        if (rc != STOKER_OK)
            continue;
        if (came != NULL)
            oracle.row_bytes = stk_step_bytes(&batch.images, 0);
        for (uint32_t row = 0; row < batch.count; row++) {
            if (ids != NULL)
                ids[batch.epoch][position[batch.epoch]++] = batch.ids[row];
            if (came == NULL)
                continue;
            came[batch.epoch][batch.ids[row]] = true;
            memcpy(oracle.rows[batch.epoch][batch.ids[row]], row_of(&batch, row), oracle.row_bytes);
        }
        stoker_batch_release(&batch);
    }
    const bool all_bad = rc == STOKER_EBADSAMPLES && came != NULL;
    check(rc == STOKER_FINISHED || all_bad, "the plain loader: %s",
          rc < 0 ? stoker_loader_error(plain_loader)->message : "stopped");
    stoker_loader_destroy(&plain_loader);
}

/* `array` of every sample, one after the other, as a data set. */
static void open_memory(const stoker_array *array)
{
    stoker_error error = { .message = "" };
    stoker_dataset *all = NULL;
    stoker_dataset_close(&memory);
    check(stoker_dataset_from_arrays(&all, array, 1, set.count, NULL, &error) == STOKER_OK,
          "memory: %s", error.message);
    look_at(all, &memory);
    stoker_dataset_close(&all);
}

/* The order is that of any data set of as many samples. */
static void find_order(stoker_loader_options options)
{
    static const uint8_t nothing[STK_DAMAGED_COUNT_MAX];
    stoker_array array = STOKER_ARRAY_INIT;
    array.name = "row";
    array.data = nothing;
    array.dtype = STOKER_DTYPE_UINT8;
    open_memory(&array);
    options = plain(options);
    options.dtype = STOKER_DTYPE_NONE;
    options.layout = STOKER_LAYOUT_NHWC;
    options.mean = options.std = NULL;
    options.mean_count = 0;
    options.transform = (stoker_transform)STOKER_TRANSFORM_INIT;
    take_plain(memory, options, oracle.ids, NULL);
    oracle.length = options.order != NULL ? options.order->length : view.count;
}

/* A flipped bit may have changed an image's size: such an image is bad unless it is resized. */
static bool needs_the_set(const stoker_transform *transform)
{
    const bool resizes = transform->resize.height > 0 || transform->resize_shorter > 0 ||
                         transform->random_resized_crop.height > 0;
    bool other_size = false;
    for (uint32_t id = 0; id < set.count; id++)
        other_size = other_size || (set.samples[id].asked && set.samples[id].verdict == STK_BAD);
    return set.differ || (resizes && other_size) ||
           (set.jpeg && transform->decode_scale == STOKER_DECODE_SCALE_FAST);
}

/* Take each epoch's rows from the set. An epoch of whole images says which samples are bad. */
static void find_rows_in_set(stoker_loader_options options)
{
    static bool came[EPOCHS_MAX][IDS_MAX];
    stoker_loader_options whole = options;
    whole.transform = (stoker_transform)STOKER_TRANSFORM_INIT;
    whole.transform.resize = (stoker_size){ 9, 9 };
    whole.epochs = 1;
    memset(came, 0, sizeof(came));
    take_plain(view.dataset, whole, NULL, came);
    for (uint32_t id = 0; id < view.count; id++) {
        const struct stk_damaged_sample *sample = sample_of(id);
        const bool known = sample->verdict != STK_ASK && !sample->asked;
        oracle.good[id] = came[0][id];
        check(!known || (sample->verdict == STK_GOOD) == came[0][id], "sample %u is %s", id,
              came[0][id] ? "bad, but delivered" : "good, but refused");
    }
    memset(came, 0, sizeof(came));
    take_plain(view.dataset, options, NULL, came);
    for (uint64_t epoch = 0; epoch < options.epochs; epoch++)
        for (uint32_t id = 0; id < view.count; id++)
            check(oracle.good[id] == came[epoch][id], "in part, sample %u is %s", id,
                  came[epoch][id] ? "bad, but delivered" : "good, but refused");
}

/* The rows of each epoch: what is drawn at random depends on seed, epoch and sample. */
static void find_rows(stoker_loader_options options)
{
    static uint8_t pixels[STK_DAMAGED_COUNT_MAX * STK_DAMAGED_ROW_MAX];
    static bool came[EPOCHS_MAX][IDS_MAX];
    stoker_array array = STOKER_ARRAY_INIT;
    options = plain(options);
    options.shuffle = false;
    options.order = NULL;
    options.on_bad_sample = STOKER_ON_BAD_SKIP;
    if (needs_the_set(&options.transform)) {
        find_rows_in_set(options);
        return;
    }
    array.name = "image";
    array.data = pixels;
    array.dtype = STOKER_DTYPE_UINT8;
    array.kind = STOKER_FIELD_KIND_IMAGE;
    array.rank = 3;
    array.shape[0] = set.height;
    array.shape[1] = set.width;
    array.shape[2] = set.channels;
    for (uint32_t id = 0; id < view.count; id++)
        oracle.good[id] = sample_of(id)->verdict == STK_GOOD;
    for (uint32_t id = 0; id < set.count; id++)
        memcpy(pixels + id * stk_damaged_row_bytes(&set), set.samples[id].row,
               stk_damaged_row_bytes(&set));
    open_memory(&array);
    take_plain(memory, options, NULL, came);
}

/* Half of an even number, half of an odd one to the next even number. */
static uint32_t halve(uint32_t room)
{
    return room / 2 + (room % 4 == 3);
}

/* Compare an element of a sample's row with plain arithmetic, for options that only crop. */
static bool plain_element_matches(const stoker_loader_options *options, uint32_t id, uint32_t y,
                                  uint32_t x, uint32_t c)
{
    const stoker_size crop = options->transform.center_crop;
    const uint32_t height = crop.height > 0 ? crop.height : set.height;
    const uint32_t width = crop.width > 0 ? crop.width : set.width;
    const uint32_t top = halve(set.height - height), left = halve(set.width - width);
    const uint8_t value = sample_of(id)->row[((top + y) * set.width + left + x) * set.channels + c];
    const uint32_t at = options->layout == STOKER_LAYOUT_NCHW ? (c * height + y) * width + x
                                                              : (y * width + x) * set.channels + c;
    float real;
    int32_t whole;
    if (options->dtype == STOKER_DTYPE_NONE)
        return oracle.rows[0][id][at] == value;
    memcpy(&real, oracle.rows[0][id] + 4 * (size_t)at, sizeof(real));
    memcpy(&whole, oracle.rows[0][id] + 4 * (size_t)at, sizeof(whole));
    return options->dtype == STOKER_DTYPE_INT32 ? whole == value
                                                : real == (float)value * (1.0F / 255.0F);
}

/* The oracle's own rows, wherever they are simple enough. */
static void check_rows(const stoker_loader_options *options)
{
    stoker_transform simple = STOKER_TRANSFORM_INIT;
    const bool exact = options->dtype == STOKER_DTYPE_NONE ||
                       options->dtype == STOKER_DTYPE_INT32 ||
                       (options->dtype == STOKER_DTYPE_FLOAT32 && options->mean_count == 0);
    simple.center_crop = options->transform.center_crop;
    if (!exact || set.differ || memcmp(&simple, &options->transform, sizeof(simple)) != 0)
        return;
    const bool crops = simple.center_crop.height > 0;
    const uint32_t height = crops ? simple.center_crop.height : set.height;
    const uint32_t width = crops ? simple.center_crop.width : set.width;
    for (uint32_t id = 0; id < view.count; id++)
        for (uint32_t i = 0; i < height * width * set.channels && oracle.good[id]; i++)
            check(plain_element_matches(options, id, i / set.channels / width,
                                        i / set.channels % width, i % set.channels),
                  "the oracle's row of sample %u is wrong at %u", id, i);
}

/* Substitutes are drawn from seed, epoch and position. */
static void find_substitutes(stoker_loader_options options)
{
    options = plain(options);
    options.batch_size = 1;
    take_plain(view.dataset, options, oracle.other, NULL);
    for (uint64_t epoch = 0; epoch < options.epochs; epoch++)
        for (uint64_t at = 0; at < oracle.length; at++) {
            const uint64_t id = oracle.other[epoch][at];
            check(oracle.good[oracle.ids[epoch][at]] ? id == oracle.ids[epoch][at]
                                                     : id < view.count && oracle.good[id],
                  "sample %d takes the place of %d", (int)id, (int)oracle.ids[epoch][at]);
        }
}

/* ---- one rank of one leg ----------------------------------------------------------- */

enum { ANY_ID = INT32_MAX };

/* What the next call must give. */
struct wanted {
    int rc;          /* STOKER_OK, EBADSAMPLES, or -1: the sample's own error */
    uint64_t sample; /* whose error it is */
    uint32_t count, padded;
    uint64_t ids[BATCH_MAX];
};

struct rank {
    stoker_loader *loader;
    stoker_loader_options options;
    uint64_t epoch, at; /* where the next global batch begins */
    uint64_t index;     /* the next batch has, in its epoch */
    uint64_t delivered, bad_rows;
    uint32_t filed; /* distinct bad samples so far */
    uint64_t reports[IDS_MAX];
    uint64_t barren; /* samples of the epochs without a good one */
    bool epoch_is_good;
};

static uint64_t batches_from(const struct rank *rank, uint64_t position)
{
    const uint64_t global = (uint64_t)rank->options.batch_size * rank->options.world_size;
    const uint64_t left = oracle.length - position;
    return left / global + (rank->options.last != STOKER_LAST_DROP && left % global != 0);
}

/* The position of row `row` of rank `of`'s batch. */
static uint64_t position_of(const struct rank *rank, uint32_t of, uint32_t row)
{
    const stoker_loader_options *options = &rank->options;
    return options->deal == STOKER_DEAL_BATCHES
               ? rank->at + (uint64_t)of * options->batch_size + row
               : rank->at + (uint64_t)row * options->world_size + of;
}

/* Returns true if the row is filled with an early sample of the epoch when its position is past
 * the end. */
static bool is_filled(const struct rank *rank, uint32_t row)
{
    return rank->options.last == STOKER_LAST_PAD ||
           (rank->options.last == STOKER_LAST_EVEN && position_of(rank, 0, row) < oracle.length);
}

/* A bad sample counts once. */
static void file_bad(struct rank *rank, uint64_t id, struct wanted *wanted)
{
    rank->bad_rows++;
    for (uint32_t i = 0; i < rank->filed; i++)
        if (rank->reports[i] == id)
            return;
    rank->reports[rank->filed++] = id;
    if (rank->filed > rank->options.max_bad_samples) {
        wanted->rc = STOKER_EBADSAMPLES;
        wanted->sample = id;
    }
}

/* The run ends if nothing was good in epochs that cover the data set. */
static void look_if_barren(struct rank *rank, uint32_t own, struct wanted *wanted)
{
    const uint64_t global = (uint64_t)rank->options.batch_size * rank->options.world_size;
    const uint64_t left_out = rank->options.last == STOKER_LAST_DROP ? view.count % global : 0;
    rank->epoch_is_good = rank->epoch_is_good || wanted->count > 0;
    rank->barren = rank->epoch_is_good ? 0 : rank->barren + own;
    if (batches_from(rank, rank->at) > 1)
        return;
    rank->epoch_is_good = false;
    if (wanted->rc == STOKER_OK && rank->options.on_bad_sample != STOKER_ON_BAD_FAIL &&
        rank->barren > 0 && rank->barren + left_out >= view.count)
        *wanted = (struct wanted){ .rc = STOKER_EBADSAMPLES, .sample = STOKER_NO_SAMPLE };
}

static void want_batch(struct rank *rank, struct wanted *wanted)
{
    const stoker_on_bad policy = rank->options.on_bad_sample;
    uint32_t own = 0;
    *wanted = (struct wanted){ .rc = STOKER_OK };
    for (uint32_t row = 0; row < rank->options.batch_size && wanted->rc == STOKER_OK; row++) {
        const uint64_t at = position_of(rank, rank->options.rank, row);
        const bool padded = at >= oracle.length;
        if (padded && !is_filled(rank, row))
            break;
        uint64_t id = oracle.ids[rank->epoch][at % oracle.length];
        own += !padded;
        if (!oracle.good[id]) {
            if (policy == STOKER_ON_BAD_FAIL)
                *wanted = (struct wanted){ .rc = -1, .sample = id };
            else
                file_bad(rank, id, wanted);
            if (policy != STOKER_ON_BAD_SUBSTITUTE)
                continue;
            id = padded ? ANY_ID : oracle.other[rank->epoch][at];
        }
        wanted->padded += padded;
        wanted->ids[wanted->count++] = id;
    }
    look_if_barren(rank, own, wanted);
}

static bool text_matches(const stoker_batch *batch, uint32_t row)
{
    char text[STK_DAMAGED_TEXT_MAX];
    const stoker_field *field = &batch->fields[1];
    const size_t bytes = stk_damaged_text(view.ids[batch->ids[row]], text);
    return (size_t)(field->offsets[row + 1] - field->offsets[row]) == bytes &&
           memcmp((const char *)field->values.data + field->offsets[row], text, bytes) == 0;
}

static void check_batch(const struct rank *rank, const stoker_batch *batch,
                        const struct wanted *wanted)
{
    const int epoch = (int)rank->epoch, index = (int)rank->index;
    const int64_t *labels = batch->labels.data;
    check(batch->epoch == rank->epoch && batch->index == rank->index,
          "batch %d of epoch %d came as %d of %d", index, epoch, (int)batch->index,
          (int)batch->epoch);
    check(batch->count == wanted->count && batch->padded == wanted->padded,
          "batch %d of epoch %d: %u samples, %u padded; wanted %u and %u", index, epoch,
          batch->count, batch->padded, wanted->count, wanted->padded);
    check(batch->count == 0 || stk_step_bytes(&batch->images, 0) == oracle.row_bytes,
          "rows of another size");
    for (uint32_t row = 0; row < batch->count; row++) {
        const uint64_t id = batch->ids[row];
        check(wanted->ids[row] == id ||
                  (wanted->ids[row] == ANY_ID && id < view.count && oracle.good[id]),
              "batch %d of epoch %d, row %u: sample %d, not %d", index, epoch, row, (int)id,
              (int)wanted->ids[row]);
        check(labels[row] == stk_damaged_label(&set, view.ids[id]), "sample %d has another label",
              (int)id);
        check(!set.texts || text_matches(batch, row), "sample %d has another text", (int)id);
        check(memcmp(row_of(batch, row), oracle.rows[epoch][id], oracle.row_bytes) == 0,
              "batch %d of epoch %d, row %u: wrong pixels of sample %d", index, epoch, row,
              (int)id);
    }
}

static void check_end(const struct rank *rank, int rc, const struct wanted *wanted)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    const stoker_error *error = stoker_loader_error(rank->loader);
    const bool right = wanted->rc == -1 ? rc < 0 && rc != STOKER_EBADSAMPLES : rc == wanted->rc;
    check(right && error != NULL, "batch %d of epoch %d: %s (%s) instead of the end, for sample %d",
          (int)rank->index, (int)rank->epoch, stoker_error_name(rc),
          error != NULL ? error->message : "", (int)wanted->sample);
    check(error->code == rc &&
              (wanted->sample == STOKER_NO_SAMPLE || error->sample == wanted->sample),
          "the error names sample %d, not %d: %s", (int)error->sample, (int)wanted->sample,
          error->message);
    check(stoker_loader_next(rank->loader, &batch, TIMEOUT_MS) == rc, "another error follows");
}

static void check_reports(const struct rank *rank, bool ended)
{
    stoker_stats stats = STOKER_STATS_INIT;
    stoker_error report;
    uint32_t count = 0;
    while (stoker_loader_bad_sample(rank->loader, count, &report) == STOKER_OK) {
        check(count < rank->filed && report.sample == rank->reports[count],
              "report %u is of sample %d", count, (int)report.sample);
        count++;
    }
    check(count == rank->filed, "%u reports, not %u", count, rank->filed);
    check(stoker_loader_stats(rank->loader, &stats) == STOKER_OK, "no statistics");
    check(ended || stats.bad_samples == rank->bad_rows, "%d bad samples counted, not %d",
          (int)stats.bad_samples, (int)rank->bad_rows);
}

/* Take and check the next batch. Returns false if the run is over, and had to be. */
static bool take_batch(struct rank *rank, bool *failed)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    const uint64_t global = (uint64_t)rank->options.batch_size * rank->options.world_size;
    struct wanted wanted;
    int rc = stoker_loader_next(rank->loader, &batch, TIMEOUT_MS);
    if (batches_from(rank, rank->at) == 0) {
        rank->epoch++;
        rank->at = rank->index = 0;
    }
    if (rank->epoch >= rank->options.epochs) {
        check(rc == STOKER_FINISHED, "%d where the run is over", rc);
        return false;
    }
    want_batch(rank, &wanted);
    *failed = wanted.rc != STOKER_OK;
    if (*failed) {
        check_end(rank, rc, &wanted);
        return false;
    }
    check(rc == STOKER_OK, "batch %d of epoch %d: %s", (int)rank->index, (int)rank->epoch,
          rc < 0 ? stoker_loader_error(rank->loader)->message : "no batch");
    check_batch(rank, &batch, &wanted);
    stoker_batch_release(&batch);
    rank->delivered++;
    rank->index++;
    rank->at += global;
    rank->at = rank->at < oracle.length ? rank->at : oracle.length;
    return true;
}

/* ---- legs -------------------------------------------------------------------------- */

struct leg {
    stoker_loader_options options;
    uint64_t batches; /* at most, per rank */
    bool restart;     /* the loader before gives its cache to this one */
};

static struct {
    uint64_t epochs;
    uint32_t legs;
    struct leg leg[LEGS_MAX];
    stoker_order order;
    double weights[IDS_MAX];
    float mean[3], std[3];
} plan;

/* Where the last leg stopped. */
static struct {
    uint64_t epoch, at;
    uint8_t state[STOKER_STATE_BYTES];
} stop;

static void create_leg(const struct leg *leg, bool resumes)
{
    stoker_error error = { .message = "" };
    for (uint32_t r = 0; r < leg->options.world_size; r++) {
        stoker_loader_options options = leg->options;
        options.rank = r;
        options.resume = resumes ? stop.state : NULL;
        options.resume_size = resumes ? sizeof(stop.state) : 0;
        int rc = leg->restart ? stoker_loader_restart(&loaders[r], &options, &error)
                              : stoker_loader_create(&loaders[r], view.dataset, &options, &error);
        if (rc == STOKER_ENOTSUP && options.share_cache == STOKER_SWITCH_ON) {
            options.share_cache = STOKER_SWITCH_OFF; /* no cache, or samples in memory */
            rc = stoker_loader_create(&loaders[r], view.dataset, &options, &error);
        }
        check(rc == STOKER_OK, "create: %s", error.message);
    }
}

static void check_epoch_end(const struct rank *rank)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    const int rc = stoker_loader_next(rank->loader, &batch, TIMEOUT_MS);
    check(rc == STOKER_EPOCH_END, "%d at the end of epoch %d", rc, (int)rank->epoch);
}

/* One rank's batches. Returns true if the run is over for it. */
static bool run_rank(const struct leg *leg, uint32_t r, struct rank *rank)
{
    bool failed = false, over = false;
    *rank = (struct rank){
        .loader = loaders[r], .options = leg->options, .epoch = stop.epoch, .at = stop.at
    };
    rank->options.rank = r;
    rank->index = batches_from(rank, 0) - batches_from(rank, stop.at);
    if (batches_from(rank, stop.at) == 0 && leg->batches > 0)
        check_epoch_end(rank); /* resumed with nothing left */
    while (!over && rank->delivered < leg->batches) {
        over = !take_batch(rank, &failed);
        if (over || rank->epoch >= rank->options.epochs)
            continue;
        if (batches_from(rank, rank->at) == 0 && rank->delivered < leg->batches)
            check_epoch_end(rank);
    }
    if (over)
        check_reports(rank, failed);
    return failed;
}

static void run_legs(void)
{
    bool over = false;
    stop.epoch = stop.at = 0;
    for (uint32_t i = 0; i < plan.legs && !over; i++) {
        const struct leg *leg = &plan.leg[i];
        static struct rank rank;
        uint8_t first[STOKER_STATE_BYTES];
        create_leg(leg, i > 0);
        for (uint32_t r = 0; r < leg->options.world_size; r++) {
            over = run_rank(leg, r, &rank) || over;
            uint8_t state[STOKER_STATE_BYTES];
            check(stoker_loader_state(loaders[r], state, sizeof(state), NULL, NULL) == STOKER_OK,
                  "no state");
            check(over || r == 0 || memcmp(first, state, sizeof(state)) == 0,
                  "rank %u stopped with another state", r);
            memcpy(first, state, sizeof(first));
        }
        stop.epoch = rank.epoch;
        stop.at = rank.at;
        memcpy(stop.state, first, sizeof(first));
        const bool keeps = !over && i + 1 < plan.legs && plan.leg[i + 1].restart;
        for (uint32_t r = 0; r < leg->options.world_size && !keeps; r++)
            stoker_loader_destroy(&loaders[r]);
    }
}

/* ---- plans ------------------------------------------------------------------------- */

/* Smaller than the image, or not set. */
static stoker_size draw_crop(uint32_t height, uint32_t width)
{
    return (stoker_size){ 1 + stk_roll(height), 1 + stk_roll(width) };
}

static void draw_transform(stoker_transform *transform)
{
    const uint32_t first = stk_roll(set.differ ? 30 : 100);
    uint32_t height = set.height, width = set.width;
    const stoker_size size = { 4 + stk_roll(28), 4 + stk_roll(28) };
    if (first < 30) {
        height = size.height;
        width = size.width;
        if (first < 10)
            transform->resize = size;
        else if (first < 22)
            transform->random_resized_crop = size;
        else
            transform->resize_shorter = height = width = size.height;
        transform->decode_scale = (stoker_decode_scale)stk_chance(30);
    }
    if (stk_chance(30) || transform->resize_shorter > 0)
        transform->center_crop = draw_crop(height, width);
    else if (stk_chance(40)) {
        transform->pad = stk_roll(5);
        transform->random_crop = draw_crop(height + 2 * transform->pad, width + 2 * transform->pad);
    }
    transform->flip = stk_chance(40);
    transform->cutout = stk_chance(15) ? 1 + stk_roll(9) : 0;
    transform->fill[0] = (uint8_t)stk_roll(256);
    if (stk_chance(8))
        transform->rotate_max = 30;
    if (stk_chance(8))
        transform->brightness = transform->hue = 0.25F;
}

static void draw_types(stoker_loader_options *options)
{
    static const stoker_dtype types[] = { STOKER_DTYPE_NONE,    STOKER_DTYPE_NONE,
                                          STOKER_DTYPE_FLOAT32, STOKER_DTYPE_FLOAT32,
                                          STOKER_DTYPE_FLOAT16, STOKER_DTYPE_BFLOAT16,
                                          STOKER_DTYPE_INT32 };
    options->dtype = types[stk_roll(set.differ ? 6 : 7)];
    if (options->dtype != STOKER_DTYPE_INT32)
        options->layout = (stoker_layout)stk_chance(40);
    const bool real = options->dtype != STOKER_DTYPE_NONE && options->dtype != STOKER_DTYPE_INT32;
    if (!real || stk_chance(60))
        return;
    for (uint32_t c = 0; c < 3; c++) {
        plan.mean[c] = (float)stk_roll(100) / 100;
        plan.std[c] = 0.25F + (float)stk_roll(100) / 100;
    }
    options->mean = plan.mean;
    options->std = plan.std;
    options->mean_count = stk_chance(50) ? 1 : set.channels;
}

static void draw_order(stoker_loader_options *options)
{
    options->shuffle = stk_chance(60);
    options->seed = stk_roll(1000);
    options->order = NULL;
    if (stk_chance(80))
        return;
    plan.order = stk_order_of(.kind = stk_chance(50) ? STOKER_ORDER_WEIGHTED : STOKER_ORDER_UNIFORM,
                              .length = 1 + stk_roll(IDS_MAX));
    for (uint32_t id = 0; id < view.count; id++)
        plan.weights[id] = id % 3 + 0.25;
    if (plan.order.kind == STOKER_ORDER_WEIGHTED) {
        plan.order.weights = plan.weights;
        plan.order.weight_count = view.count;
    }
    options->order = &plan.order;
}

/* What all legs have in common. */
static stoker_loader_options draw_common(void)
{
    stoker_loader_options options =
        stk_default_options(.epochs = 1 + stk_roll(EPOCHS_MAX), .device = STOKER_DEVICE_CPU);
    draw_types(&options);
    if (options.dtype != STOKER_DTYPE_INT32) /* wider integers are not transformed */
        draw_transform(&options.transform);
    draw_order(&options);
    options.on_bad_sample = (stoker_on_bad)stk_roll(3);
    options.max_bad_samples = stk_chance(70) ? STOKER_NO_LIMIT : stk_roll(8);
    options.last = (stoker_last)stk_roll(STOKER_LAST_EVEN + 1);
    options.batch_size = view.count < 7 ? view.count : 7;
    return options;
}

static void draw_cache(stoker_loader_options *options)
{
    const stoker_transform *transform = &options->transform;
    const bool resized = transform->resize.height > 0;
    options->cache = (stoker_cache)stk_roll(STOKER_CACHE_DECODED + 1);
    if (options->cache == STOKER_CACHE_DECODED && !resized &&
        (set.differ || transform->decode_scale == STOKER_DECODE_SCALE_FAST))
        options->cache = STOKER_CACHE_ENCODED;
    if (stk_chance(30))
        options->memory_bytes = 2000 + stk_roll(20000);
    if (options->reader == NULL && stk_chance(30)) {
        options->share_cache = STOKER_SWITCH_ON;
        options->memory_bytes = stk_chance(30) ? 16384 + 4096 * stk_roll(4) : STOKER_BYTES_AUTO;
    }
}

/* What never changes a byte, and how positions are divided. */
static void draw_leg(struct leg *leg, const stoker_loader_options *common)
{
    static const int32_t workers[] = { 0, 0, 1, 1, 2, 4, STOKER_WORKERS_AUTO };
    const uint64_t positions = common->order != NULL ? common->order->length : view.count;
    const uint32_t most = positions < view.count ? (uint32_t)positions : view.count;
    leg->options = *common;
    leg->options.num_workers = workers[stk_roll(7)];
    leg->options.prefetch_batches = stk_chance(50) ? STOKER_PREFETCH_AUTO : 2 + stk_roll(3);
    leg->options.read_depth = stk_chance(70) ? STOKER_READ_DEPTH_AUTO : 1 + stk_roll(2);
    leg->options.batch_size = 1 + stk_roll(most < BATCH_MAX ? most : BATCH_MAX);
    leg->options.world_size = stk_chance(60) ? 1 : 2 + stk_roll(2);
    leg->options.deal = (stoker_deal)stk_roll(2);
    const uint32_t reader = stk_roll(3);
    if (reader == 1)
        leg->options.reader = stoker_reader_pread();
    else if (reader == 2 && stk_test_reader_works(stoker_reader_uring()))
        leg->options.reader = stoker_reader_uring();
    draw_cache(&leg->options);
    if (leg->options.last == STOKER_LAST_DROP &&
        leg->options.batch_size * leg->options.world_size > most)
        leg->options.batch_size = leg->options.world_size = 1;
    if (leg->options.memory_bytes != STOKER_BYTES_AUTO)
        stk_limit_cache(view.dataset, &leg->options, leg->options.memory_bytes);
    leg->batches = UINT64_MAX;
    leg->restart = false;
}

static void draw_plan(void)
{
    const stoker_loader_options common = draw_common();
    plan.legs = 1 + (stk_chance(40) ? 1 + stk_roll(LEGS_MAX - 1) : 0);
    for (uint32_t i = 0; i < plan.legs; i++) {
        struct leg *leg = &plan.leg[i];
        draw_leg(leg, &common);
        if (i == 0)
            continue;
        plan.leg[i - 1].batches = stk_roll(10);
        leg->restart =
            leg[-1].options.world_size == 1 && leg->options.world_size == 1 && stk_chance(50);
    }
}

/* ---- cases ------------------------------------------------------------------------- */

/* Most samples are good, so that 32 draws find one. */
static bool most_are_good(void)
{
    uint32_t good = 0;
    for (uint32_t id = 0; id < view.count; id++)
        good += oracle.good[id];
    return 2 * good > view.count;
}

static void run_case(void)
{
    static const uint32_t percents[] = { 0, 5, 15, 15, 30, 30, 50, 100 };
    const char *wrong =
        stk_damaged_make(&set, 2 + stk_roll(STK_DAMAGED_COUNT_MAX - 1), percents[stk_roll(8)]);
    check(wrong == NULL, "%s", wrong);
    draw_view();
    draw_plan();
    stoker_loader_options *first = &plan.leg[0].options;
    find_rows(*first);
    check_rows(first);
    find_order(*first);
    if (first->on_bad_sample == STOKER_ON_BAD_SUBSTITUTE && !most_are_good())
        for (uint32_t i = 0; i < plan.legs; i++)
            plan.leg[i].options.on_bad_sample = STOKER_ON_BAD_SKIP;
    if (first->on_bad_sample == STOKER_ON_BAD_SUBSTITUTE)
        find_substitutes(*first);
    run_legs();
    check(!stk_damaged_opens_broken(&set), "it opens although its file is damaged");
}

static void show_case(uint64_t number)
{
    (void)fprintf(stderr, "case %llu: %s\n  %s, %u samples; view %d of %u\n",
                  (unsigned long long)number, difference, set.spec, set.count, (int)view.kind,
                  view.count);
    for (uint32_t i = 0; i < plan.legs; i++) {
        const stoker_loader_options *options = &plan.leg[i].options;
        const stoker_transform *transform = &options->transform;
        (void)fprintf(stderr,
                      "  leg %u: %d batches of %u, %u ranks, deal %d, last %d; %d workers, reader "
                      "%s, cache %s%s of %lld bytes%s; on_bad %d, max %lld; type %d; resize %u, "
                      "shorter %u, random %u, crop %u, random crop %u, scale %d\n",
                      i, (int)plan.leg[i].batches, options->batch_size, options->world_size,
                      (int)options->deal, (int)options->last, options->num_workers,
                      options->reader == NULL ? "default" : options->reader->name,
                      stoker_cache_name(options->cache),
                      options->share_cache == STOKER_SWITCH_ON ? ", shared," : "",
                      (long long)options->memory_bytes, plan.leg[i].restart ? ", restarted" : "",
                      (int)options->on_bad_sample, (long long)options->max_bad_samples,
                      (int)options->dtype, transform->resize.height, transform->resize_shorter,
                      transform->random_resized_crop.height, transform->center_crop.height,
                      transform->random_crop.height, (int)transform->decode_scale);
    }
}

#ifdef STK_TEST_ASAN
enum { CASES = 300 };
#else
enum { CASES = 600 };
#endif

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

Test(damaged_sets, every_configuration_delivers_what_the_oracle_says)
{
    const uint64_t first = number_of("STOKER_TEST_FIRST", 0);
    const uint64_t count = number_of("STOKER_TEST_CASES", CASES);
    volatile uint64_t wrong = 0;
    if (access("/dev/shm", W_OK) == 0) /* dozens of files a case: spare the disk */
        cr_assert_eq(setenv("TMPDIR", "/dev/shm", 1), 0);
    for (volatile uint64_t number = first; number < first + count; number++) {
        stk_dice = stk_mix64(number);
        plan.legs = 0;
        if (setjmp(differs) == 0) {
            run_case();
        } else {
            show_case(number);
            wrong++;
        }
        for (uint32_t r = 0; r < RANKS_MAX; r++)
            stoker_loader_destroy(&loaders[r]);
        stoker_loader_destroy(&plain_loader);
        stoker_dataset_close(&memory);
        stoker_dataset_close(&view.dataset);
        stk_damaged_remove(&set);
    }
    cr_assert_eq(wrong, 0, "%d of %d cases differ", (int)wrong, (int)count);
    stk_test_check_leaks();
}
#endif
