/* cache_choice.c - see cache_choice.h. */
#include "loader/api/choose/cache_choice.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "loader/api/choose/cache_key.h"
#include "loader/api/choose/order.h"
#include "loader/api/choose/sizing.h"
#include "loader/base/error.h"
#include "loader/base/launcher.h"
#include "loader/base/memory/budget.h"
#include "loader/base/memory/memory.h"
#include "loader/pipeline/rows/file_pieces.h"

enum {
    BLOCK_BYTES = 65536,   /* rows that one read brings into the cache */
    NOTES_SHARE = 8,       /* divides the memory that the cache leaves */
    ORDERED_EPOCHS_MIN = 4 /* in order, copying a file takes as long as two epochs save */
};

#define BUDGET_ANY (UINT64_MAX / 4)

size_t stk_cache_choice_row_bytes(const stoker_loader *loader)
{
    const struct stk_pipeline *pipeline = &loader->pipeline;
    const struct stk_framing *framing = &pipeline->transform.framing;
    return stk_pipeline_keeps_resized(&loader->facts)
               ? (size_t)framing->resize_height * framing->resize_width *
                     pipeline->transform.channels
               : pipeline->dataset->row_bytes;
}

/* Bytes of one sample in a cache of this kind. */
static size_t stride_of(const stoker_loader *loader, stoker_cache kind)
{
    const struct stk_pipeline *pipeline = &loader->pipeline;
    const struct stk_field_plan *plan = &pipeline->field_plan;
    if (kind != STOKER_CACHE_ENCODED)
        return plan->record_bytes;
    return pipeline->encoded_bytes_max > 0 ? plan->part_bytes * pipeline->part_count : 0;
}

/* A cache of this kind for all samples, or the pieces of files. */
static struct stk_cache_options cache_of(const stoker_loader *loader, stoker_cache kind,
                                         uint64_t budget_bytes)
{
    const struct stk_pipeline *pipeline = &loader->pipeline;
    if (kind == STOKER_CACHE_ENCODED && pipeline->first_pieces != NULL)
        return (struct stk_cache_options){
            .kind = kind,
            .budget_bytes = budget_bytes,
            .count = pipeline->first_pieces[pipeline->dataset->info.file_count],
            .stride_bytes = stk_file_pieces_stride(pipeline->encoded_bytes_max),
            .block_rows = 1,
        };
    const size_t row_bytes = stride_of(loader, STOKER_CACHE_DECODED);
    uint32_t block_rows = 1;
    while (pipeline->dataset->info.dense && block_rows * 2 * row_bytes <= BLOCK_BYTES)
        block_rows *= 2;
    return (struct stk_cache_options){
        .kind = kind,
        .budget_bytes = budget_bytes,
        .count = pipeline->dataset->info.count,
        .stride_bytes = stride_of(loader, kind),
        .block_rows = block_rows,
        .whole_places = pipeline->dataset->info.dense,
        .has_gaps = kind == STOKER_CACHE_ENCODED ? pipeline->part_count > 1
                                                 : pipeline->field_plan.record_has_gaps,
    };
}

static bool fits(const struct stk_cache_options *cache)
{
    return cache->stride_bytes > 0 && stk_cache_bytes(cache, cache->count) <= cache->budget_bytes;
}

static bool is_in_memory(const stoker_loader *loader)
{
    return loader->facts.source == STK_SOURCE_MEMORY;
}

/* Other rows in each epoch: nothing is kept. */
static bool makes_samples(const stoker_loader *loader)
{
    return loader->pipeline.dataset->ops->make != NULL;
}

static bool wants_sharing(const stoker_loader *loader)
{
    const stoker_switch asked = loader->options.share_cache;
    return asked == STOKER_SWITCH_ON || (asked == STOKER_SWITCH_AUTO && stk_local_ranks() > 1);
}

/* Bytes of the files that hold all samples; UINT64_MAX = not known. */
static uint64_t bytes_of_files(const stoker_dataset *dataset)
{
    const bool known =
        dataset->stamps.count > 0 && !dataset->info.has_paths && !dataset->stamps.apart;
    uint64_t sum = known ? 0 : UINT64_MAX;
    for (uint32_t i = 0; i < dataset->stamps.count && sum != UINT64_MAX; i++) {
        const struct stk_stamp *file = &dataset->stamps.each[i];
        if (file->fd < 0 || __builtin_add_overflow(sum, file->file.size, &sum))
            sum = UINT64_MAX;
    }
    return sum;
}

/* Returns true if samples as stored fit: each as long as the longest, or all in their files. */
static bool fits_encoded(const stoker_loader *loader, const struct stk_cache_options *cache)
{
    const stoker_dataset *dataset = loader->pipeline.dataset;
    /* Each begins at a line; pieces overlap. */
    const uint64_t repeated =
        loader->pipeline.first_pieces == NULL ? 0 : cache->stride_bytes - STK_PIECE_BYTES;
    const uint64_t padding = (STK_CACHE_LINE + repeated) * cache->count;
    const uint64_t files = bytes_of_files(dataset);
    uint64_t room;
    return fits(cache) ||
           (cache->stride_bytes > 0 && loader->pipeline.part_count == 1 &&
            files < UINT64_MAX - padding && stk_cache_capacity(cache, &room) == cache->count &&
            files + padding <= room);
}

/* Returns true if the cache would take more memory than the files that its rows are copied from,
 * since rows overlap or repeat. Unknown sizes count as large enough. */
static bool exceeds_files(const stoker_dataset *dataset)
{
    uint64_t row_bytes = 0;
    uint64_t all;
    for (uint32_t i = 0; i < dataset->info.field_count; i++) {
        if (dataset->fields[i].info.varies)
            return false;
        row_bytes += dataset->fields[i].info.part != STOKER_NO_PART ? dataset->fields[i].bytes : 0;
    }
    if (__builtin_mul_overflow(dataset->info.count, row_bytes, &all))
        return true;
    return all > bytes_of_files(dataset);
}

static bool is_cheap(const stoker_loader *loader)
{
    const stoker_dataset *dataset = loader->pipeline.dataset;
    if (dataset->stamps.apart)
        return false;
    return dataset->cheap_rows || (loader->facts.source == STK_SOURCE_FILES &&
                                   !loader->facts.has_codec && exceeds_files(dataset));
}

/* A permutation of the samples that other loaders do not share. */
static bool comes_once(const stoker_loader *loader)
{
    const stoker_loader_options *options = &loader->options;
    const stoker_dataset *dataset = loader->pipeline.dataset;
    return options->epochs == 1 && !wants_sharing(loader) && !stk_order_draws(options, dataset) &&
           !stk_order_mixes(options, dataset);
}

/* Returns true if ENCODED holds pieces of files instead of samples: rows are cheap to make, and
 * overlap, repeat or are smaller in their files. */
static bool takes_pieces(const stoker_loader *loader)
{
    const struct stk_pipeline *pipeline = &loader->pipeline;
    return is_cheap(loader) && !pipeline->dataset->info.dense && pipeline->part_count == 1 &&
           pipeline->encoded_bytes_max > 0 && loader->options.reader == NULL &&
           !is_in_memory(loader) && !makes_samples(loader) &&
           bytes_of_files(pipeline->dataset) != UINT64_MAX;
}

/* Number the pieces of all files. */
static int number_pieces(stoker_loader *loader)
{
    const stoker_dataset *dataset = loader->pipeline.dataset;
    const uint32_t count = dataset->info.file_count;
    uint64_t *first = stk_calloc((size_t)count + 1, sizeof(first[0]));
    if (first == NULL)
        return STOKER_ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        first[i + 1] = first[i] + dataset->stamps.each[i].file.size / STK_PIECE_BYTES + 1;
    loader->pipeline.first_pieces = first;
    return STOKER_OK;
}

/* Returns true if keeping cheap rows saves time. Rows in order are read in runs, which is nearly as
 * fast: a copy of their file pays after a few epochs, a copy of each row almost never. */
static bool pays(const stoker_loader *loader)
{
    const uint64_t epochs = loader->options.epochs; /* 0 = endless */
    if (loader->pipeline.first_pieces == NULL && !loader->pipeline.dataset->info.dense)
        return false;
    return loader->options.shuffle ||
           (loader->pipeline.first_pieces != NULL && (epochs == 0 || epochs >= ORDERED_EPOCHS_MIN));
}

/* Why AUTO keeps no rows, even if they fit. NULL = it keeps them. */
static const char *reason_to_decline(const stoker_loader *loader)
{
    if (loader->options.cache != STOKER_CACHE_AUTO)
        return NULL;
    if (is_cheap(loader) && !pays(loader))
        return "a row costs about as little to read again as to copy";
    return comes_once(loader) ? "every sample comes once" : NULL;
}

static stoker_cache choose_cache(const stoker_loader *loader, uint64_t budget)
{
    const struct stk_pipeline_facts *facts = &loader->facts;
    const struct stk_cache_options decoded = cache_of(loader, STOKER_CACHE_DECODED, budget);
    const struct stk_cache_options encoded = cache_of(loader, STOKER_CACHE_ENCODED, budget);
    if (loader->cache_needless || loader->cache_declined || makes_samples(loader))
        return STOKER_CACHE_NONE;
    if (loader->options.cache != STOKER_CACHE_AUTO)
        return loader->options.cache;
    const bool one_size = stk_pipeline_keeps_resized(facts) || !facts->any_size;
    /* What a GPU decodes is never in host memory. */
    if (one_size && loader->pipeline.first_pieces == NULL && !loader->pipeline.decode.on &&
        !loader->pipeline.field_plan.masks_differ && fits(&decoded))
        return STOKER_CACHE_DECODED;
    return fits_encoded(loader, &encoded) ? STOKER_CACHE_ENCODED : STOKER_CACHE_NONE;
}

static uint64_t budget_of(const stoker_loader *loader, uint32_t ranks)
{
    const uint64_t limit = loader->options.memory_bytes;
    if (limit == STOKER_BYTES_AUTO)
        return stk_budget_left(loader->available_bytes, ranks);
    const uint64_t batches = stk_sizing_batches_share(loader, limit);
    return limit > batches ? limit - batches : 0;
}

/* ---- a cache of several loaders ---- */

/* Find the shared cache of this kind, or make it unless join_only. Returns NULL, or why there is
 * none. */
static const char *share(stoker_loader *loader, const struct stk_identity *identity,
                         stoker_cache kind, uint64_t budget, bool join_only)
{
    char key[STK_SEGMENT_KEY_BYTES];
    struct stk_cache_options options = cache_of(loader, kind, budget);
    struct stk_cache *cache = &loader->pipeline.cache;
    stk_cache_key(loader, identity, &options, key);
    options.key = key;
    options.join_only = join_only;
    const int rc = stk_cache_init(cache, &options);
    if (rc == 0 && cache->kind != STOKER_CACHE_NONE)
        return NULL;
    return rc == STOKER_ENOMEM             ? "no memory for it"
           : cache->share_error == 0       ? "memory_bytes leaves room for no sample"
           : cache->share_error == -ENOSPC ? "250 loaders share it already"
           : cache->share_error == -EPROTO ? "a process has made it in another form"
           : cache->share_error == -EACCES
               ? "a process of another user or namespace has its address"
               : strerrordesc_np(-cache->share_error);
}

/* One that exists is taken as it is: what memory is left now says nothing, since that cache has
 * taken some of it. */
static bool finds(stoker_loader *loader, const struct stk_identity *identity)
{
    const struct stk_pipeline_facts *facts = &loader->facts;
    const bool decoded = (stk_pipeline_keeps_resized(facts) || !facts->any_size) &&
                         !loader->pipeline.decode.on && loader->pipeline.first_pieces == NULL;
    return loader->options.cache == STOKER_CACHE_AUTO &&
           ((decoded && share(loader, identity, STOKER_CACHE_DECODED, BUDGET_ANY, true) == NULL) ||
            share(loader, identity, STOKER_CACHE_ENCODED, BUDGET_ANY, true) == NULL);
}

static const char *share_any(stoker_loader *loader)
{
    struct stk_identity identity;
    const uint64_t budget = budget_of(loader, 1);
    const stoker_cache kind = choose_cache(loader, budget);
    if (kind == STOKER_CACHE_NONE)
        return loader->pipeline.device_cache.on ? "it lies in GPU memory" : "there is no cache";
    const char *reason = stk_cache_key_of_samples(loader, &identity);
    if (reason != NULL || finds(loader, &identity))
        return reason;
    reason = share(loader, &identity, kind, budget, false);
    loader->share_failed = reason != NULL;
    return reason;
}

static int make_shared(stoker_loader *loader, stoker_error *error)
{
    const struct stk_place nowhere = STK_NOWHERE;
    const char *reason = share_any(loader);
    if (reason == NULL)
        return 0;
    (void)snprintf(loader->share_reason, sizeof(loader->share_reason), "%s", reason);
    return loader->options.share_cache == STOKER_SWITCH_ON
               ? stk_error_set(error, STOKER_ENOTSUP, STOKER_STAGE_OPTIONS, &nowhere,
                               "share_cache ON: %s", reason)
               : 0;
}

/* ---- a cache of one loader ---- */

static int make_own(stoker_loader *loader)
{
    const uint64_t budget = budget_of(loader, stk_local_ranks());
    const stoker_cache kind = choose_cache(loader, budget);
    const struct stk_cache_options cache = cache_of(loader, kind, budget);
    int rc = stk_cache_init(&loader->pipeline.cache, &cache);
    if (rc == STOKER_ENOMEM && loader->options.cache == STOKER_CACHE_AUTO) {
        rc = 0; /* optional: init has left a cache that holds nothing */
        (void)snprintf(loader->cache_reason, sizeof(loader->cache_reason),
                       "no memory for %" PRIu64 " samples of at most %zu bytes", cache.count,
                       cache.stride_bytes);
    }
    if (rc == 0 && loader->pipeline.cache.kind == STOKER_CACHE_AUTO)
        loader->pipeline.cache.kind = STOKER_CACHE_NONE;
    if (loader->options.cache == STOKER_CACHE_AUTO && kind == STOKER_CACHE_NONE &&
        loader->cache_reason[0] == '\0' && !is_in_memory(loader) && !makes_samples(loader))
        (void)snprintf(loader->cache_reason, sizeof(loader->cache_reason),
                       "%" PRIu64 " samples of at most %zu bytes do not fit in the %" PRIu64
                       " bytes that a cache may take",
                       cache.count, cache.stride_bytes, budget);
    return rc;
}

/* ---- a cache that a loader before this one has kept ---- */

void stk_cache_choice_name(const stoker_loader *loader, stoker_cache kind,
                           char key[STK_SEGMENT_KEY_BYTES])
{
    const struct stk_identity same_dataset = { .words = { 0 } };
    const struct stk_cache_options cache = cache_of(loader, kind, 0);
    stk_cache_key(loader, &same_dataset, &cache, key);
}

/* Returns true if a cache of this loader would have that one's rows, as many of them, and be shared
 * or not as it is. With memory_bytes AUTO its size does not count: what memory is left now says
 * nothing, since that cache has taken some of it. */
static bool would_make(const stoker_loader *loader, const struct stk_kept_cache *kept)
{
    const stoker_loader_options *options = &loader->options;
    const struct stk_cache_options wanted =
        cache_of(loader, kept->cache.kind, budget_of(loader, stk_local_ranks()));
    char key[STK_SEGMENT_KEY_BYTES];
    uint64_t rows_bytes;
    stk_cache_choice_name(loader, kept->cache.kind, key);
    return !loader->cache_needless && !makes_samples(loader) && options->reader == NULL &&
           (options->cache == STOKER_CACHE_AUTO || options->cache == kept->cache.kind) &&
           wants_sharing(loader) == (kept->cache.share.header != NULL) &&
           memcmp(key, kept->key, sizeof(key)) == 0 &&
           (options->memory_bytes == STOKER_BYTES_AUTO ||
            (stk_cache_capacity(&wanted, &rows_bytes) == kept->cache.capacity &&
             rows_bytes == kept->cache.rows_bytes));
}

static bool takes_over(stoker_loader *loader, struct stk_kept_cache *kept)
{
    if (kept->cache.kind == STOKER_CACHE_NONE || !would_make(loader, kept))
        return false;
    loader->pipeline.cache = kept->cache;
    kept->cache = (struct stk_cache){ .kind = STOKER_CACHE_NONE };
    return true;
}

/* What this process counts as reserved: of a shared cache its part. */
uint64_t stk_cache_choice_reserved_bytes(const stoker_loader *loader)
{
    const struct stk_cache *cache = &loader->pipeline.cache;
    const uint64_t bytes = stk_cache_reserved_bytes(cache);
    return stk_cache_reserved_bytes(&loader->pipeline.notes) +
           (cache->share.header != NULL ? bytes / stk_local_ranks() : bytes);
}

/* ---- notes of decoders ---- */

/* Keep notes of images that are decoded again and in part, as far as the budget allows. They only
 * save time: without memory there are none. */
static void make_notes(stoker_loader *loader)
{
    const struct stk_pipeline *pipeline = &loader->pipeline;
    const struct stk_pipeline_facts *facts = &loader->facts;
    const bool again = pipeline->cache.kind != STOKER_CACHE_DECODED && !pipeline->device_cache.on &&
                       !pipeline->decode.on && !makes_samples(loader) && !comes_once(loader);
    const uint64_t budget = budget_of(loader, stk_local_ranks());
    const uint64_t taken = stk_cache_choice_reserved_bytes(loader);
    const struct stk_cache_options notes = {
        .kind = again && facts->transforms && (facts->any_size || facts->crops)
                    ? STOKER_CACHE_ENCODED
                    : STOKER_CACHE_NONE,
        .budget_bytes = budget > taken ? (budget - taken) / NOTES_SHARE : 0,
        .count = pipeline->dataset->info.count,
        /* Whole lines: each note begins at one. */
        .stride_bytes =
            pipeline->encoded_bytes_max / STK_NOTES_PART / STK_CACHE_LINE * STK_CACHE_LINE,
        .block_rows = 1,
    };
    (void)stk_cache_init(&loader->pipeline.notes, &notes);
}

static int make(stoker_loader *loader, stoker_error *error)
{
    int rc = wants_sharing(loader) ? make_shared(loader, error) : 0;
    if (rc == 0 && loader->pipeline.cache.share.header == NULL)
        rc = make_own(loader);
    return rc;
}

static void decline(stoker_loader *loader)
{
    const char *reason = loader->cache_needless ? NULL : reason_to_decline(loader);
    loader->cache_declined = reason != NULL;
    if (reason != NULL && loader->cache_reason[0] == '\0')
        (void)snprintf(loader->cache_reason, sizeof(loader->cache_reason), "%s", reason);
}

int stk_cache_choice_make(stoker_loader *loader, struct stk_kept_cache *kept, stoker_error *error)
{
    loader->cache_needless =
        loader->pipeline.device_cache.on || (is_in_memory(loader) && !loader->facts.has_codec);
    int rc = takes_pieces(loader) ? number_pieces(loader) : STOKER_OK;
    decline(loader);
    if (rc == 0 && !takes_over(loader, kept))
        rc = make(loader, error);
    loader->facts.pieces = loader->pipeline.first_pieces != NULL &&
                           loader->pipeline.cache.kind == STOKER_CACHE_ENCODED;
    if (!loader->facts.pieces) {
        stk_free(loader->pipeline.first_pieces);
        loader->pipeline.first_pieces = NULL;
    }
    if (rc == 0)
        make_notes(loader);
    const uint64_t taken = stk_cache_reserved_bytes(&loader->pipeline.cache) +
                           stk_cache_reserved_bytes(&loader->pipeline.notes);
    const uint64_t limit = loader->options.memory_bytes;
    loader->batches_bytes_max = limit == STOKER_BYTES_AUTO ? UINT64_MAX
                                : limit > taken            ? limit - taken
                                                           : 0;
    stk_budget_reserve(stk_cache_choice_reserved_bytes(loader));
    loader->facts.cache =
        loader->pipeline.device_cache.on ? STOKER_CACHE_DEVICE : loader->pipeline.cache.kind;
    return rc;
}
