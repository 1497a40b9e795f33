/* run.c - see run.h.
 *
 *   loader ──▶ batch of rows ──▶ encoder ──▶ encoded samples ──▶ target
 *
 * The loader reads ahead while a batch is packed and written.
 */
#include "datasets/pack/run.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "datasets/pack/encoder.h"
#include "datasets/pack/fields.h"
#include "datasets/pack/progress.h"
#include "datasets/pack/rows.h"
#include "datasets/pack/target.h"
#include "datasets/pack/verify.h"
#include "loader/base/clock.h"

enum {
    BATCH_MAX = 256,
    BATCH_BYTES = 32 << 20,
    SHARD_BATCHES = 16,
    LEVEL_ALWAYS = 9 /* the level of versions without --level */
};

struct run {
    struct pack_plan plan;
    stoker_dataset *source;
    stoker_loader *loader;
    struct pack_encoder *encoder;
    const struct pack_target *target;
    void *into; /* the target's state; NULL = not open */
    struct pack_start start;
    struct pack_tally tally;
    struct pack_sample *samples; /* one batch */
    uint32_t batch_size;
    uint64_t source_done;
    uint64_t begun_ns;
    bool fields; /* samples of several fields: see fields.h */
    stoker_ranks ranks;
    struct pack_sharing sharing; /* with other ranks */
    struct pack_failure failure;
};

/* ---- the plan ------------------------------------------------------------------- */

static const struct pack_target *target_of(enum pack_form form)
{
    return form == PACK_SHARDS   ? &pack_target_shards
           : form == PACK_FOLDER ? &pack_target_folder
                                 : &pack_target_tar;
}

/* Choose a batch size with several batches per shard, so that shards are nearly full. It must not
 * depend on the number of workers, which may change on a resume. */
static uint32_t choose_batch_size(const struct run *run)
{
    const uint64_t row_bytes = stoker_dataset_row_bytes(run->source) + STK_SHARD_ENTRY_BYTES;
    uint64_t bytes = BATCH_BYTES;
    if (run->plan.arguments->form == PACK_SHARDS &&
        run->plan.arguments->shard_bytes / SHARD_BATCHES < bytes)
        bytes = run->plan.arguments->shard_bytes / SHARD_BATCHES;
    uint64_t size = bytes / row_bytes;
    size = size > BATCH_MAX ? BATCH_MAX : size;
    size = size > run->plan.info->count ? run->plan.info->count : size;
    return size == 0 ? 1 : (uint32_t)size;
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * 0x100000001B3U; /* FNV-1a */
    return hash;
}

/* Little-endian. */
static uint64_t mix_numbers(uint64_t hash, const uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (unsigned shift = 0; shift < 64; shift += 8) {
            const uint8_t byte = (uint8_t)(numbers[i] >> shift);
            hash = mix(hash, &byte, 1);
        }
    return hash;
}

/* Hash everything that must be the same for packing to be resumed. */
static uint64_t choose_set_id(const struct run *run)
{
    const struct pack_arguments *arguments = run->plan.arguments;
    const stoker_dataset_info *info = run->plan.info;
    const uint64_t numbers[] = { (uint64_t)arguments->form, (uint64_t)arguments->codec,
                                 arguments->quality,        arguments->shard_bytes,
                                 run->batch_size,           info->count,
                                 (uint64_t)info->dtype,     info->rank,
                                 info->class_count };
    const uint64_t level = arguments->level;
    uint64_t hash = 0xCBF29CE484222325U;
    hash = mix(hash, arguments->source, strlen(arguments->source) + 1);
    if (arguments->split != NULL)
        hash = mix(hash, arguments->split, strlen(arguments->split) + 1);
    hash = mix_numbers(hash, numbers, sizeof(numbers) / sizeof(numbers[0]));
    if (arguments->level != LEVEL_ALWAYS) /* so that packings of older versions can be resumed */
        hash = mix_numbers(hash, &level, 1);
    return mix_numbers(hash, info->shape, info->rank);
}

static struct pack_recipe choose_recipe(const struct run *run)
{
    const struct pack_arguments *arguments = run->plan.arguments;
    const stoker_dataset_info *info = run->plan.info;
    const bool pixels = info->is_image && info->dtype == STOKER_DTYPE_UINT8 &&
                        (info->shape[2] == 1 || info->shape[2] == 3 || info->shape[2] == 4) &&
                        info->shape[0] <= INT32_MAX && info->shape[1] <= INT32_MAX;
    struct pack_recipe recipe = { .source = run->source,
                                  .row_bytes = stoker_dataset_row_bytes(run->source),
                                  .codec = arguments->codec,
                                  .otherwise = arguments->form == PACK_SHARDS ? PACK_RAW : PACK_PNG,
                                  .quality = arguments->quality,
                                  .level = arguments->level };
    if (pixels)
        recipe.pixels = (struct pack_pixels){ .height = (uint32_t)info->shape[0],
                                              .width = (uint32_t)info->shape[1],
                                              .channels = (uint32_t)info->shape[2] };
    return recipe;
}

/* Returns NULL, or why these rows cannot be packed like this. */
static const char *unsuitable(const struct pack_recipe *recipe)
{
    const enum pack_codec codec = recipe->codec == PACK_KEEP ? recipe->otherwise : recipe->codec;
    const uint32_t channels = recipe->pixels.channels;
    if (codec == PACK_LZ4)
        return pack_lz4_present() ? NULL : "this stoker-pack was built without liblz4";
    if (codec == PACK_ZSTD)
        return pack_zstd_present() ? NULL : "this stoker-pack was built without libzstd";
    if (codec == PACK_RAW)
        return NULL;
    if (codec == PACK_PNG ? !pack_png_present() : !pack_jpeg_present())
        return "this stoker-pack was built without the library of that codec";
    if (channels == 0)
        return "rows that are no images of 8 bits with 1, 3 or 4 channels";
    return codec == PACK_JPEG && channels == 4 ? "JPEG has no fourth channel" : NULL;
}

/* A launcher that has bound this rank has divided the CPUs; else the ranks of a node share them. */
static uint32_t workers_of(const struct run *run)
{
    cpu_set_t ours; /* the CPUs that we may run on */
    const uint32_t here = run->ranks.local_world_size > 1 ? run->ranks.local_world_size : 1;
    const int all = get_nprocs();
    const int bound = sched_getaffinity(0, sizeof(ours), &ours) == 0 ? CPU_COUNT(&ours) : all;
    const uint32_t cpus = bound < all ? (uint32_t)bound : (uint32_t)all / here;
    if (run->plan.arguments->workers > 0)
        return (uint32_t)run->plan.arguments->workers;
    return cpus > 0 ? cpus : 1;
}

/* ---- open ----------------------------------------------------------------------- */

static bool open_source(struct run *run)
{
    const struct pack_arguments *arguments = run->plan.arguments;
    stoker_error error = { .message = "" };
    const stoker_dataset_options options = { STOKER_DATASET_OPTIONS_DEFAULTS.split =
                                                 arguments->split };
    if (stoker_dataset_open(&run->source, arguments->source, &options, &error) != STOKER_OK)
        return pack_fail(&run->failure, arguments->source, 0, "%s", error.message);
    if (stoker_mix_source_count(run->source) > 0)
        return pack_fail(&run->failure, arguments->source, 0,
                         "a mix is an order of its sources, which files do not keep: pack them one "
                         "by one");
    run->plan.source = run->source;
    run->plan.info = stoker_dataset_get_info(run->source);
    run->batch_size = choose_batch_size(run);
    run->plan.set_id = choose_set_id(run);
    return true;
}

static bool open_loader(struct run *run, const stoker_state *resume)
{
    return pack_rows_loader(&run->loader, &run->plan, run->batch_size, NULL, resume, &run->failure);
}

static bool open_encoder(struct run *run)
{
    const struct pack_recipe recipe = choose_recipe(run);
    const char *why = unsuitable(&recipe);
    run->samples = calloc(run->batch_size, sizeof(*run->samples));
    if (why == NULL && run->samples == NULL)
        why = "out of memory";
    if (why == NULL)
        why = pack_encoder_create(&run->encoder, &recipe, workers_of(run));
    return why == NULL || pack_fail(&run->failure, run->plan.arguments->source, 0, "%s", why);
}

static void close_all(struct run *run)
{
    if (run->into != NULL)
        run->target->close(run->into);
    pack_sharing_close(&run->sharing);
    stoker_loader_destroy(&run->loader);
    pack_encoder_destroy(&run->encoder);
    for (uint32_t i = 0; run->samples != NULL && i < run->batch_size; i++)
        pack_room_free(&run->samples[i].room);
    free(run->samples);
    stoker_dataset_close(&run->source);
}

/* ---- packing -------------------------------------------------------------------- */

static bool pack_batch(struct run *run, const stoker_batch *batch, const stoker_state *before)
{
    const uint64_t left = run->plan.info->count - run->source_done;
    struct pack_batch packed = { .samples = run->samples,
                                 .count = batch->count,
                                 .source_count = left < run->batch_size ? left : run->batch_size,
                                 .before = *before };
    if (!pack_rows_encode(&run->plan, run->encoder, run->samples, batch, &run->failure))
        return false;
    if (stoker_loader_state(run->loader, &packed.after) != STOKER_OK)
        return pack_fail(&run->failure, run->plan.arguments->source, 0, "the loader has no state");
    run->source_done += packed.source_count;
    return run->target->add(run->into, &packed, &run->failure);
}

static bool pack_batches(struct run *run)
{
    struct pack_progress progress = pack_progress_begin(
        "packed", run->source_done, run->plan.info->count, run->plan.arguments->quiet);
    stoker_state before = run->start.state;
    stoker_batch batch = STOKER_BATCH_INIT;
    bool good = true;
    int rc;
    while (good && (rc = stoker_loader_next(run->loader, &batch, -1)) == STOKER_OK) {
        good = pack_batch(run, &batch, &before) &&
               stoker_loader_state(run->loader, &before) == STOKER_OK;
        stoker_batch_release(&batch);
        pack_progress_show(&progress, run->source_done);
    }
    cli_progress_line_wipe(&progress.line);
    if (good && rc < 0)
        return pack_fail(&run->failure, run->plan.arguments->source, 0, "%s",
                         stoker_loader_error(run->loader)->message);
    return good;
}

/* ---- several ranks -------------------------------------------------------------- */

/* Returns NULL, or why several processes cannot pack into this form. */
static const char *indivisible(enum pack_form form)
{
    return form == PACK_TAR      ? "an archive is one file, written in order"
           : form == PACK_FOLDER ? "the files of a folder are compared and counted as one set"
                                 : NULL;
}

static bool read_ranks(struct run *run)
{
    stoker_error error = { .message = "" };
    const struct pack_arguments *arguments = run->plan.arguments;
    const char *why = indivisible(arguments->form);
    if (stoker_ranks_from_environment(&run->ranks, &error) != STOKER_OK)
        return pack_fail(&run->failure, "ranks", 0, "%s", error.message);
    if (run->ranks.world_size > 1 && why != NULL)
        return pack_fail(&run->failure, arguments->target, 0,
                         "%u ranks of %s cannot pack into %s: %s; pack into shards, or start one "
                         "process",
                         run->ranks.world_size, stoker_launcher_name(run->ranks.launcher),
                         pack_form_name(arguments->form), why);
    return true;
}

/* If other ranks take part, or have, everything goes through the folder that they share. */
static bool share(struct run *run)
{
    const size_t row_bytes = stoker_dataset_row_bytes(run->source);
    if (!pack_sharing_needed(run->plan.arguments, &run->ranks))
        return true;
    run->plan.sharing = &run->sharing;
    return pack_sharing_set(&run->sharing, &run->plan, &run->ranks, run->batch_size,
                            row_bytes == 0 ? 1 : row_bytes, &run->failure);
}

static bool pack_rows_together(struct run *run)
{
    struct pack_rows rows = { .plan = &run->plan,
                              .encoder = run->encoder,
                              .samples = run->samples,
                              .batch_size = run->batch_size,
                              .target = run->target,
                              .into = run->into };
    pack_sharing_begin_progress(&run->sharing, run->start.source_done);
    const bool good = pack_rows_begin(&rows.begin, &run->plan, run->batch_size, &run->failure) &&
                      pack_rows_divide(&rows, &run->start, &run->tally, &run->failure);
    cli_progress_line_wipe(&run->sharing.progress.line);
    return good;
}

/* ---- all of it ------------------------------------------------------------------ */

static bool pack_rows(struct run *run)
{
    if (!open_encoder(run) ||
        !run->target->open(&run->into, &run->plan, &run->start, &run->failure))
        return false;
    run->source_done = run->start.source_done;
    if (!run->start.finished && run->plan.sharing != NULL)
        return pack_rows_together(run);
    if (!run->start.finished) {
        const bool resumed = run->start.source_done > 0;
        if (!open_loader(run, resumed ? &run->start.state : NULL) || !pack_batches(run))
            return false;
    }
    return run->target->finish(run->into, &run->tally, &run->failure);
}

static bool pack_all(struct run *run)
{
    if (!read_ranks(run) || !open_source(run) || !share(run))
        return false;
    run->fields = pack_fields_needed(&run->plan);
    const bool good = run->fields
                          ? pack_fields_run(&run->plan, workers_of(run), &run->tally, &run->failure)
                          : pack_rows(run);
    if (good && run->plan.sharing != NULL)
        pack_sharing_tidy(&run->sharing);
    return good;
}

/* ---- report --------------------------------------------------------------------- */

static void report(const struct run *run)
{
    uint64_t sample_bytes = 0;
    for (uint32_t f = 0; f < run->plan.info->field_count; f++)
        if (run->fields || f == 0)
            sample_bytes += stoker_dataset_field_bytes(run->source, f);
    const uint64_t rows = run->tally.samples * sample_bytes;
    const double seconds = stk_seconds(stk_now_ns() - run->begun_ns);
    (void)printf("samples %" PRIu64 "\nkept_samples %" PRIu64 "\nbad_samples %" PRIu64
                 "\nrow_bytes %" PRIu64 "\nstored_bytes %" PRIu64 "\nratio %.3f\nfiles %" PRIu64
                 "\nseconds %.2f\n",
                 run->tally.samples, run->tally.kept_samples,
                 run->plan.info->count - run->tally.samples, rows, run->tally.bytes,
                 run->tally.bytes == 0 ? 0.0 : (double)rows / (double)run->tally.bytes,
                 run->tally.files, seconds);
    if (run->plan.info->description != NULL)
        (void)printf("found %s\n", run->plan.info->description);
    char spec[PACK_SPEC_BYTES];
    if (run->fields && pack_fields_spec(&run->plan, spec))
        (void)printf("spec %s\n", spec);
}

static int verify_fields(struct run *run)
{
    if (!pack_fields_verify(&run->plan, run->tally.samples, &run->failure))
        return PACK_NOT_VERIFIED;
    if (!run->plan.arguments->quiet)
        (void)printf("verified %s\n", run->plan.arguments->codec == PACK_JPEG
                                          ? "all fields but images"
                                          : "all fields");
    return PACK_GOOD;
}

static int verify(struct run *run)
{
    if (run->fields)
        return verify_fields(run);
    const bool lossy = run->plan.arguments->codec == PACK_JPEG;
    stoker_loader_destroy(&run->loader);
    if (!open_loader(run, NULL))
        return PACK_FAILED;
    const enum pack_verdict verdict = pack_verify(&run->plan, run->loader, lossy, &run->failure);
    if (verdict == PACK_SAME && !run->plan.arguments->quiet)
        (void)printf("verified %s\n", lossy ? "labels" : "rows and labels");
    return verdict == PACK_SAME        ? PACK_GOOD
           : verdict == PACK_DIFFERENT ? PACK_NOT_VERIFIED
                                       : PACK_FAILED;
}

/* All is packed: what rank 0 does, and a process that is alone. */
static int conclude(struct run *run)
{
    const bool whole = run->tally.samples == run->plan.info->count;
    int status = PACK_GOOD;
    if (!run->plan.arguments->quiet)
        report(run);
    if (run->plan.arguments->verify)
        status = verify(run);
    return status == PACK_GOOD && !whole ? PACK_LEFT_OUT : status;
}

static void explain(const struct run *run)
{
    if (run->failure.text[0] == '\0')
        return;
    if (run->ranks.world_size > 1)
        (void)fprintf(stderr, "stoker-pack: rank %u: %s\n", run->ranks.rank, run->failure.text);
    else
        (void)fprintf(stderr, "stoker-pack: %s\n", run->failure.text);
}

int pack_run(const struct pack_arguments *arguments)
{
    struct run run = { .plan = { .arguments = arguments },
                       .target = target_of(arguments->form),
                       .ranks = STOKER_RANKS_INIT,
                       .begun_ns = stk_now_ns() };
    int status = pack_all(&run) ? PACK_GOOD : PACK_FAILED;
    if (status == PACK_GOOD)
        pack_rows_report_bad(run.loader);
    if (status == PACK_GOOD && run.ranks.rank == 0)
        status = conclude(&run);
    explain(&run);
    close_all(&run);
    return status;
}
