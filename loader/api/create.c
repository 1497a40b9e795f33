/* create.c - builds the pipeline that the options ask for.
 *
 *   options ─▶ device ─▶ rows ─▶ samples ─▶ cache ─▶ plan ─▶ reader ─▶ order, schedule ─▶ slots ─▶ workers
 *
 * On any failure destroy frees the parts that exist.
 */
#include "loader/api/create.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <stoker/stoker.h>

#include "loader/api/choose/blend.h"
#include "loader/api/choose/cache_choice.h"
#include "loader/api/choose/decode_choice.h"
#include "loader/api/choose/file_reader.h"
#include "loader/api/choose/length_choice.h"
#include "loader/api/choose/order.h"
#include "loader/api/choose/row_plan.h"
#include "loader/api/choose/sizing.h"
#include "loader/api/destroy.h"
#include "loader/api/lend/poll.h"
#include "loader/api/loader.h"
#include "loader/api/options.h"
#include "loader/api/state.h"
#include "loader/base/clock.h"
#include "loader/base/cpu/thread.h"
#include "loader/base/error.h"
#include "loader/base/memory/budget.h"
#include "loader/base/struct_size.h"
#include "loader/pipeline/reads/fetch_ring.h"

/* ---- the parts, in the order they are made ---- */

/* Report files that have already changed before any read; deliver.c checks again while running. */
static int check_stamps(const stoker_dataset *dataset, const stoker_part *sample,
                        stoker_error *error)
{
    const bool verifies = sample->codec != NULL && sample->codec->verify != NULL;
    const uint32_t changed = verifies ? UINT32_MAX : stk_stamps_first_changed(&dataset->stamps);
    if (changed == UINT32_MAX)
        return 0;
    stoker_file file = { .fd = -1 };
    struct stk_place place = STK_NOWHERE;
    if (dataset->ops->file(dataset->self, changed, &file) == 0)
        place.path = file.path;
    return stk_stamps_refuse(&dataset->stamps, changed, place, error);
}

static enum stk_source source_of(const stoker_extent *extent)
{
    if (extent->memory != NULL)
        return STK_SOURCE_MEMORY;
    return extent->bytes > 0 ? STK_SOURCE_FILES : STK_SOURCE_IDS;
}

/* For choices that only affect speed, sample 0 represents all samples, and the slowest of its parts
 * the sample. */
static int look_at_samples(stoker_loader *loader, struct stk_part_facts *each, stoker_error *error)
{
    const stoker_dataset *dataset = loader->pipeline.dataset;
    const stoker_dataset_info *info = &dataset->info;
    struct stk_pipeline_facts *facts = &loader->facts;
    stoker_part parts[STOKER_FIELDS_MAX];
    int rc = stoker_dataset_locate(dataset, 0, parts, error);
    facts->source = STK_SOURCE_MEMORY;
    for (uint32_t i = 0; rc == 0 && i < info->part_count; i++) {
        const stoker_codec *codec = parts[i].codec;
        each[i] = (struct stk_part_facts){
            .source = source_of(&parts[i].extent),
            .has_codec = codec != NULL,
            .bytes_are_row = stk_part_is_row(&parts[i]),
        };
        if (facts->source == STK_SOURCE_MEMORY || each[i].source == STK_SOURCE_FILES)
            facts->source = each[i].source;
        facts->has_codec = facts->has_codec || codec != NULL;
        facts->decodes_runs =
            info->part_count == 1 && codec != NULL && (codec->flags & STOKER_CODEC_RUNS) != 0;
        rc = check_stamps(dataset, &parts[i], error);
    }
    if (dataset->ops->make != NULL) { /* it takes as long as a codec */
        facts->source = STK_SOURCE_IDS;
        facts->has_codec = true;
    }
    /* A data set that makes its samples may have files, which are then only watched for changes. */
    const bool reads = info->part_count > 0 && (info->file_count > 0 || info->has_paths);
    loader->pipeline.encoded_bytes_max = reads ? info->encoded_bytes_max : 0;
    facts->has_files = loader->pipeline.encoded_bytes_max > 0;
    facts->one_part = info->part_count == 1 && dataset->ops->make == NULL;
    return rc;
}

/* drawn: what is done to images, on whichever side of the bus; NULL = nothing. Masks take it on the
 * host. */
static int plan_fields(stoker_loader *loader, const struct stk_part_facts *parts,
                       const struct stk_framing *drawn)
{
    struct stk_pipeline *pipeline = &loader->pipeline;
    struct stk_field_plan *plan = &pipeline->field_plan;
    const struct stk_field_plan_options options = {
        .dataset = pipeline->dataset,
        .sizes = loader->outputs.sizes,
        .outputs = loader->outputs.each,
        .parts = parts,
        .first_is_copied = loader->facts.copies && !loader->facts.transforms,
        .cached_bytes = stk_cache_choice_row_bytes(loader),
        .framing = drawn,
    };
    pipeline->part_count = pipeline->dataset->info.part_count;
    const int rc = stk_field_plan_init(plan, &options);
    plan->masks_differ = plan->masks != NULL && loader->facts.any_size;
    if (pipeline->dataset->ops->make != NULL)
        loader->facts.route = STK_ROUTE_READ_DECODE;
    for (uint32_t i = 0; rc == 0 && i < pipeline->part_count; i++)
        if (plan->parts[i].route > loader->facts.route)
            loader->facts.route = plan->parts[i].route;
    return rc;
}

/* Returns true if a batch's samples have ids that follow each other. */
static bool is_in_order(const stoker_loader *loader)
{
    const stoker_loader_options *options = &loader->options;
    const stoker_dataset *dataset = loader->pipeline.dataset;
    return !options->shuffle && !stk_order_mixes(options, dataset) &&
           !stk_order_draws(options, dataset) &&
           (options->world_size == 1 || options->deal == STOKER_DEAL_BATCHES);
}

static void make_plan(stoker_loader *loader)
{
    loader->facts.reader = stk_file_reader_rule(loader);
    loader->facts.threads = loader->options.num_workers != 0;
    loader->facts.in_order = is_in_order(loader);
    loader->pipeline.plan = stk_pipeline_plan_make(&loader->facts);
}

/* Set *resume to where options.resume continues, and add its changes of weights to the mix; leave
 * both alone without one. */
static int read_state(stoker_loader *loader, uint64_t length, struct stk_resume *resume,
                      stoker_error *error)
{
    stoker_loader_options *options = &loader->options;
    if (options->resume == NULL)
        return 0;
    struct stk_resume expected = stk_state_start(loader->pipeline.dataset, options);
    expected.length = length;
    expected.order_hash = loader->order_hash;
    const int rc = stk_state_read(resume, &loader->mix, options->resume, options->resume_size,
                                  &expected, error);
    options->resume = NULL; /* the caller's; nothing looks at it any more */
    return rc;
}

static int make_schedule(stoker_loader *loader, stoker_error *error)
{
    const stoker_loader_options *options = &loader->options;
    const uint64_t length = loader->pipeline.sampler.length;
    struct stk_resume resume = { .epoch = 0, .position = 0 };
    int rc = read_state(loader, length, &resume, error);
    if (rc < 0)
        return rc;
    const struct stk_schedule_options schedule = {
        .count = length,
        .batch_size = options->batch_size,
        .rank = options->rank,
        .world_size = options->world_size,
        .deal = options->deal,
        .last = options->last,
        .span_rows = stk_sizing_span_rows(loader),
        .share_rows = stk_sizing_share_rows(loader),
        .epochs = options->epochs,
        .first_epoch = resume.epoch,
        .first_position = resume.position,
    };
    stk_schedule_init(&loader->pipeline.schedule, &schedule);
    rc = stk_length_choice_start(loader, length, resume.epoch, resume.position, error);
    if (rc != 0)
        return rc;
    loader->options.order = NULL; /* the caller's; nothing looks at it any more */
    loader->state_epoch = resume.epoch;
    loader->state_position = resume.position;
    /* Resumed after an epoch's last batch: its end is not reported yet. */
    loader->end_pending = loader->pipeline.schedule.first_batches == 0 &&
                          (options->epochs == 0 || resume.epoch < options->epochs);
    return 0;
}

/* Page-locked memory only helps a GPU's copies: without a GPU, AUTO locks none. */
static stoker_switch pinning(const stoker_loader *loader)
{
    const stoker_switch asked = loader->options.pin_memory;
    return asked == STOKER_SWITCH_AUTO && loader->device->ops->pin == NULL ? STOKER_SWITCH_OFF
                                                                           : asked;
}

/* Slots are touched at creation: more than the available memory would get the process killed. */
static int check_memory(const stoker_loader *loader, const struct stk_slots_options *slots,
                        size_t row_bytes, stoker_error *error)
{
    const struct stk_place nowhere = STK_NOWHERE;
    const uint64_t bytes = stk_sizing_slots_bytes(loader, slots->slot_count);
    const uint64_t available = loader->available_bytes;
    const uint64_t most = loader->batches_bytes_max;
    if (bytes <= available && bytes <= most)
        return 0;
    return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPTIONS, &nowhere,
                         "%" PRIu32 " slots for batches of %" PRIu32 " rows of %zu bytes take more "
                         "than the %" PRIu64 " bytes that %s: choose a smaller batch_size, or "
                         "prefetch_batches",
                         slots->slot_count, slots->batch_size, row_bytes,
                         bytes > most ? most : available,
                         bytes > most ? "memory_bytes allows them" : "are available");
}

static int make_slots(stoker_loader *loader, stoker_error *error)
{
    const bool rereads = stk_pipeline_plan_rereads(&loader->pipeline.plan);
    const struct stk_slots_options slots = {
        .slot_count = stk_sizing_slot_count(loader),
        .batch_size = loader->options.batch_size,
        .batch_spans = loader->pipeline.schedule.batch_spans,
        .span_shares = loader->pipeline.schedule.span_shares,
        .sizes = loader->outputs.sizes,
        .field_count = loader->outputs.count,
        .label = loader->outputs.label,
        .pin_memory = pinning(loader),
        .device = loader->device,
        .node = loader->gpu_node < 0 ? NULL : &loader->gpu_node,
        .mark_fresh = loader->pipeline.device_cache.on,
        .keep_failures = loader->options.on_bad_sample != STOKER_ON_BAD_FAIL,
        .batches = loader->pipeline.schedule.batches,
        /* The caller's worker counts, too. With reads the kernel fills the slots, in any core's
         * cache. */
        .workers = loader->threads && !rereads ? loader->worker_count + 1 : 1,
    };
    int rc = check_memory(loader, &slots, loader->pipeline.field_plan.row_bytes, error);
    if (rc < 0)
        return rc;
    const struct stk_place nowhere = STK_NOWHERE;
    rc = stk_slots_init(&loader->pipeline.slots, &slots);
    if (rc == STOKER_EPIN || rc == STOKER_EDEVICE)
        return stk_error_set(error, rc, STOKER_STAGE_OPTIONS, &nowhere, "%s%s",
                             rc == STOKER_EPIN ? "pin_memory is not OFF, but " : "",
                             loader->pipeline.slots.pin_reason);
    return rc;
}

static int make_mixing(stoker_loader *loader, stoker_error *error)
{
    const struct stk_place nowhere = STK_NOWHERE;
    char why[STK_DEVICE_WHY_BYTES] = "";
    int rc = stk_blend_plan(&loader->pipeline.blend, loader, error);
    if (rc < 0)
        return rc;
    rc = stk_device_blend_init(&loader->device_blend, &loader->pipeline.blend, loader->device, why);
    return why[0] == '\0'
               ? rc
               : stk_error_set(error, rc, STOKER_STAGE_OPTIONS, &nowhere, "blend: %s", why);
}

static int make_transfer(stoker_loader *loader, stoker_error *error)
{
    if (!loader->on_device)
        return 0;
    int rc = stk_transfer_init(&loader->transfer, loader->device, &loader->pipeline.slots,
                               &loader->device_convert, &loader->pipeline.device_cache,
                               &loader->device_blend, &loader->pipeline.decode,
                               stk_sizing_buffer_count(loader));
    const char *failure = stk_device_failure(loader->device);
    const struct stk_place nowhere = STK_NOWHERE;
    if (rc == STOKER_EDEVICE && failure != NULL)
        return stk_error_set(error, rc, STOKER_STAGE_OPTIONS, &nowhere, "%s", failure);
    return rc;
}

static int make_leases(stoker_loader *loader)
{
    const struct stk_leases_owner owner = stk_batch_owner(loader, stk_loader_free);
    stk_leases_init(&loader->leases, &owner);
    const int rc = stk_kept_init(loader);
    /* A device has one user, the consumer's thread: what is returned there waits for next(). */
    if (loader->kept.any_thread && !loader->on_device)
        stk_leases_share(&loader->leases);
    return rc;
}

static int make_workers(stoker_loader *loader, stoker_error *error)
{
    int rc = stk_trace_init(&loader->trace, loader->threads ? loader->worker_count : 0,
                            loader->options.trace_events);
    if (rc < 0)
        return rc;
    loader->transfer.trace = stk_trace_ring_of(&loader->trace, 0);
    loader->workers = stk_calloc(loader->worker_count, sizeof(loader->workers[0]));
    if (loader->workers == NULL)
        return STOKER_ENOMEM;
    while (loader->workers_made < loader->worker_count) {
        const uint32_t index = loader->workers_made;
        struct stk_worker *worker = &loader->workers[index];
        rc = stk_worker_init(worker, &loader->pipeline, index, true);
        if (rc < 0)
            return rc;
        loader->workers_made++;
        worker->trace = stk_trace_ring_of(&loader->trace, loader->threads ? index + 1 : 0);
        rc = stk_hooks_open(&loader->pipeline.hooks, &worker->maker.hooks, error);
        if (rc < 0)
            return rc;
    }
    rc = stk_decode_choice_open(loader, error);
    if (rc < 0)
        return rc;
    if (!loader->threads)
        return stk_fetch_ring_open(&loader->workers[0].fetcher, error);
    /* Only workers have lanes: what the caller decoded would have other pixels. */
    const bool may_help = (loader->pipeline.encoded_bytes_max == 0 ||
                           stk_pipeline_may_become_resident(&loader->pipeline)) &&
                          !loader->pipeline.decode.on;
    if (may_help) {
        rc =
            stk_worker_init(&loader->caller_worker, &loader->pipeline, loader->worker_count, false);
        if (rc < 0)
            return rc;
        loader->has_caller_worker = true;
        rc = stk_hooks_open(&loader->pipeline.hooks, &loader->caller_worker.maker.hooks, error);
        if (rc < 0)
            return rc;
        loader->caller_worker.trace = stk_trace_ring_of(&loader->trace, 0);
    }
    for (uint32_t i = 0; i < loader->worker_count; i++) {
        rc = stk_worker_start(&loader->workers[i]);
        if (rc < 0)
            return rc;
    }
    for (uint32_t i = 0; i < loader->worker_count; i++) {
        rc = stk_worker_wait_started(&loader->workers[i], error);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static void copy_hooks(stoker_loader *loader)
{
    const stoker_loader_options *options = &loader->options;
    struct stk_hooks *hooks = &loader->pipeline.hooks;
    hooks->seed = options->seed;
    if (options->row_hook != NULL)
        stk_struct_read(&hooks->row, sizeof(hooks->row), options->row_hook,
                        options->row_hook->struct_size);
    if (options->batch_hook != NULL)
        stk_struct_read(&hooks->batch, sizeof(hooks->batch), options->batch_hook,
                        options->batch_hook->struct_size);
}

static int make_pipeline(stoker_loader *loader, struct stk_kept_cache *kept, stoker_error *error)
{
    int rc = stk_fork_guard_init(&loader->guard);
    if (rc == 0)
        rc = stk_bad_samples_init(&loader->bad_samples, loader->options.on_bad_sample,
                                  loader->options.max_bad_samples);
    loader->has_bad_samples = rc == 0;
    stk_messages_init(&loader->pipeline.messages, loader->options.on_log != NULL);
    loader->has_messages = true;
    loader->pipeline.on_bad = loader->options.on_bad_sample;
    copy_hooks(loader);
    if (rc == 0)
        rc = stk_device_choose(&loader->device, loader->options.device,
                               loader->options.device_index, loader->device_reason, error);
    loader->on_device = rc == 0 && stk_device_copies(loader->device);
    struct stk_framing framing = { .key = 0 };
    if (rc == 0)
        rc = stk_row_plan(loader, &framing, error);
    if (rc == 0)
        rc = stk_outputs_init(&loader->outputs, loader, error);
    const struct stk_framing drawn = framing;
    const bool transforms = loader->facts.transforms;
    if (rc == 0)
        rc = stk_row_plan_divide(loader, &framing, error);
    loader->pipeline.finish = &loader->outputs.finish;
    if (rc == 0)
        rc = make_mixing(loader, error);
    struct stk_part_facts parts[STOKER_FIELDS_MAX];
    if (rc == 0)
        rc = look_at_samples(loader, parts, error);
    if (rc == 0)
        rc = plan_fields(loader, parts, transforms ? &drawn : NULL);
    if (rc == 0)
        rc = stk_decode_choice_make(loader, &framing, error);
    if (rc == 0)
        rc = stk_cache_choice_make(loader, kept, error);
    if (rc == 0)
        rc = stk_file_reader_make(loader, error);
    make_plan(loader);
    if (rc == 0)
        rc = stk_order_make(loader, error);
    if (rc == 0)
        loader->order_hash = stk_length_choice_hash(loader, loader->order_hash);
    if (rc == 0)
        rc = make_schedule(loader, error);
    if (rc != 0)
        return rc;
    stk_sizing_choose_workers(loader);
    rc = stk_file_reader_make_blocks(loader, error);
    if (rc == 0)
        rc = make_slots(loader, error);
    if (rc == 0)
        rc = make_transfer(loader, error);
    if (rc == 0)
        rc = make_leases(loader);
    loader->pipeline.slots.workers = loader->tuner.workers;
    loader->pipeline.slots.spare_core = loader->cpus > loader->tuner.workers;
    return rc == 0 ? make_workers(loader, error) : rc;
}

int stk_loader_create(stoker_loader **out, const stoker_dataset *dataset,
                      const stoker_loader_options *given, struct stk_kept_cache *kept,
                      stoker_error *wanted)
{
    const struct stk_place nowhere = STK_NOWHERE;
    stoker_error error = { .code = 0 };
    stoker_loader_options options;
    stoker_loader *loader = NULL;
    int rc = dataset == NULL ? stk_error_set(&error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                                             "loader create: no data set")
                             : stk_options_resolve(&options, given, dataset, &error);
    if (rc == 0) {
        loader = stk_calloc(1, sizeof(*loader));
        rc = loader == NULL ? STOKER_ENOMEM : 0;
    }
    if (rc == 0) {
        loader->options = options;
        loader->available_bytes = stk_memory_available();
        /* const to callers means only that the contents do not change. */
        loader->dataset = stoker_dataset_share((stoker_dataset *)dataset);
        loader->pipeline.dataset = dataset;
        rc = make_pipeline(loader, kept, &error);
    }
    if (rc == 0) {
        stk_log_choices(loader);
        loader->created_ns = stk_now_ns();
        *out = loader;
        return STOKER_OK;
    }
    if (error.code != rc) /* nothing has reported more than the code */
        (void)stk_error_set(&error, rc, STOKER_STAGE_OPTIONS, &nowhere, NULL);
    if (wanted != NULL)
        *wanted = error;
    stoker_loader_destroy(&loader);
    return rc;
}

int stoker_loader_create(stoker_loader **out, const stoker_dataset *dataset,
                         const stoker_loader_options *options, stoker_error *error)
{
    struct stk_kept_cache none = { .cache = { .kind = STOKER_CACHE_NONE } };
    const struct stk_place nowhere = STK_NOWHERE;
    return out == NULL ? stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                                       "loader create: out is NULL")
                       : stk_loader_create(out, dataset, options, &none, error);
}
