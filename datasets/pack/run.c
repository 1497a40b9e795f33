/* run.c - stoker-pack: convert a data set into another form.
 *
 *   ids ─▶ a team of threads: read, keep or encode each field ─▶ target, in the order of ids
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/stoker.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "datasets/pack/arguments.h"
#include "datasets/pack/encode/pixels.h"
#include "datasets/pack/item.h"
#include "datasets/pack/members.h"
#include "datasets/pack/progress.h"
#include "datasets/pack/target/target.h"
#include "datasets/pack/verify.h"
#include "loader/base/clock.h"
#include "loader/base/cpu/thread_team.h"

/* The exit status. */
enum {
    PACK_GOOD = 0,
    PACK_FAILED = 1,
    PACK_USAGE = 2,
    PACK_LEFT_OUT = 3, /* bad samples were reported, all others packed */
    PACK_NOT_VERIFIED = 4
};

enum {
    TOGETHER_MAX = 256,        /* samples that the threads read before they are written */
    TOGETHER_BYTES = 64 << 20, /* row bytes in them */
    SHARD_BYTES = 256 << 20,   /* default row bytes in a shard */
    SHARDS_MAX = 65536         /* in a set */
};

struct run {
    struct pack_plan plan;
    stoker_dataset *source;
    stoker_ranks ranks;
    const struct pack_target *target;
    void *into;              /* the target's state */
    struct pack_item *items; /* [together] */
    uint32_t together;
    uint32_t item_count; /* items in use */
    atomic_uint next;
    struct stk_thread_team *team;
    struct pack_tally tally;
    uint64_t begun_ns;
    struct pack_failure failure;
};

/* ---- the plan ------------------------------------------------------------------- */

/* One number per sample lies in the index of a shard, but field 0 always has a part. */
static void describe_fields(struct pack_plan *plan)
{
    for (uint32_t i = 0; i < plan->info->field_count; i++) {
        const stoker_field_info *from = stoker_dataset_field(plan->source, i);
        const bool word = i > 0 && from->rank == 0 && from->kind == STOKER_FIELD_KIND_ARRAY;
        struct stk_shard_field *field = &plan->fields[i];
        *field = (struct stk_shard_field){ .kind = from->kind,
                                           .dtype = from->dtype,
                                           .rank = from->rank,
                                           .varies = from->varies,
                                           .sizes_differ = from->sizes_differ,
                                           .class_count = from->class_count,
                                           .part = word ? STOKER_NO_PART : plan->part_count++ };
        memcpy(field->shape, from->shape, from->rank * sizeof(field->shape[0]));
        (void)snprintf(field->name, sizeof(field->name), "%s", from->name);
    }
}

static uint64_t sample_bytes(const struct pack_plan *plan)
{
    uint64_t bytes = 0;
    for (uint32_t f = 0; f < plan->info->field_count; f++)
        bytes += stoker_dataset_field_bytes(plan->source, f);
    return bytes == 0 ? 1 : bytes;
}

/* Where a shard ends must depend on the data set and the options alone. */
static void divide_into_shards(struct pack_plan *plan)
{
    const uint64_t count = plan->info->count;
    const uint64_t least = (count - 1) / SHARDS_MAX + 1;
    uint64_t samples = SHARD_BYTES / sample_bytes(plan);
    samples = samples < least ? least : samples;
    if (plan->arguments->shard_samples > 0)
        samples = plan->arguments->shard_samples;
    plan->shard_samples = samples;
    plan->shard_count = (count - 1) / samples + 1;
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * 0x100000001B3U; /* FNV-1a */
    return hash;
}

static uint64_t mix_number(uint64_t hash, uint64_t number)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(number >> (8 * i));
    return mix(hash, bytes, sizeof(bytes));
}

/* Hash everything that must be the same for packing to be resumed. */
static uint64_t choose_set_id(const struct pack_plan *plan)
{
    const struct pack_arguments *arguments = plan->arguments;
    const uint64_t numbers[] = { (uint64_t)arguments->form, (uint64_t)arguments->codec,
                                 arguments->quality,        arguments->level,
                                 plan->shard_samples,       plan->info->count,
                                 arguments->block_bytes };
    uint64_t hash = 0xCBF29CE484222325U;
    hash = mix(hash, arguments->source, strlen(arguments->source) + 1);
    if (arguments->split != NULL)
        hash = mix(hash, arguments->split, strlen(arguments->split) + 1);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        hash = mix_number(hash, numbers[i]);
    for (uint32_t i = 0; i < plan->info->field_count; i++) {
        uint8_t field[STK_SHARD_FIELD_BYTES];
        stk_shard_field_store(field, &plan->fields[i]);
        hash = mix(hash, field, sizeof(field));
    }
    return hash;
}

/* Returns NULL, or why this build cannot encode. */
static const char *missing_codec(const struct pack_arguments *arguments)
{
    const enum pack_codec codec = arguments->codec;
    if (codec == PACK_LZ4 && !pack_lz4_present())
        return "this stoker-pack was built without liblz4";
    if ((codec == PACK_ZSTD || (arguments->block_bytes > 0 && codec != PACK_LZ4)) &&
        !pack_zstd_present())
        return "this stoker-pack was built without libzstd";
    if (codec == PACK_PNG && !pack_png_present())
        return "this stoker-pack was built without libpng";
    return codec == PACK_JPEG && !pack_jpeg_present()
               ? "this stoker-pack was built without libjpeg-turbo"
               : NULL;
}

static const char *unsuitable_field(const struct pack_arguments *arguments,
                                    const struct stk_shard_field *field)
{
    const bool encodes = arguments->codec == PACK_PNG || arguments->codec == PACK_JPEG;
    if (stk_shard_value_bytes(field) == 0)
        return "a field has more than 1 GiB";
    if (field->class_count > STK_SHARD_CLASSES_MAX)
        return "a field has more than 2^20 classes";
    if (field->sizes_differ && arguments->codec != PACK_KEEP)
        return "images of several sizes: --codec keep stores them as they are";
    if (!encodes || !stk_shard_is_pixels(field))
        return NULL;
    if (field->dtype != STOKER_DTYPE_UINT8 || field->shape[0] > INT32_MAX ||
        field->shape[1] > INT32_MAX ||
        (field->shape[2] != 1 && field->shape[2] != 3 && field->shape[2] != 4))
        return "images that no file can hold: 8 bits and 1, 3 or 4 channels";
    return arguments->codec == PACK_JPEG && field->kind == STOKER_FIELD_KIND_IMAGE &&
                   field->shape[2] == 4
               ? "JPEG has no fourth channel"
               : NULL;
}

/* Returns NULL, or why the source cannot be packed like this. */
static const char *unsuitable(const struct pack_plan *plan)
{
    const struct pack_arguments *arguments = plan->arguments;
    const char *why = missing_codec(arguments);
    bool pixels = false;
    for (uint32_t i = 0; why == NULL && i < plan->info->field_count; i++) {
        why = unsuitable_field(arguments, &plan->fields[i]);
        pixels = pixels || stk_shard_is_pixels(&plan->fields[i]);
    }
    if (why != NULL)
        return why;
    if (arguments->form != PACK_SHARDS)
        return pack_members_unsuitable(plan);
    if (!pixels && (arguments->codec == PACK_PNG || arguments->codec == PACK_JPEG))
        return "no images, of which that codec could make files";
    return plan->shard_count > SHARDS_MAX ? "more than 65536 shards: raise --shard-samples" : NULL;
}

/* ---- open ----------------------------------------------------------------------- */

static bool read_ranks(struct run *run)
{
    stoker_error error = { .message = "" };
    const struct pack_arguments *arguments = run->plan.arguments;
    if (stoker_ranks_from_environment(&run->ranks, &error) != STOKER_OK)
        return pack_fail(&run->failure, "ranks", 0, "%s", error.message);
    run->plan.rank = run->ranks.rank;
    run->plan.world_size = run->ranks.world_size;
    if (run->ranks.world_size > 1 && arguments->form != PACK_SHARDS)
        return pack_fail(
            &run->failure, arguments->target, 0,
            "%u ranks of %s cannot write one %s: pack into shards, or start one process",
            run->ranks.world_size, stoker_launcher_name(run->ranks.launcher),
            pack_form_name(arguments->form));
    if (run->ranks.world_size > 1 && arguments->verify)
        return pack_fail(
            &run->failure, arguments->target, 0,
            "a rank sees its own shards only: verify in one process afterwards, by the "
            "same command");
    return true;
}

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
    describe_fields(&run->plan);
    divide_into_shards(&run->plan);
    run->plan.set_id = choose_set_id(&run->plan);
    const char *why = unsuitable(&run->plan);
    return why == NULL || pack_fail(&run->failure, arguments->source, 0, "%s", why);
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

static bool make_items(struct run *run)
{
    const uint64_t fit = TOGETHER_BYTES / sample_bytes(&run->plan);
    uint64_t together = fit > TOGETHER_MAX ? TOGETHER_MAX : fit;
    together = together > run->plan.info->count ? run->plan.info->count : together;
    run->together = together == 0 ? 1 : (uint32_t)together;
    run->items = calloc(run->together, sizeof(*run->items));
    for (uint32_t i = 0; run->items != NULL && i < run->together; i++)
        if (!pack_item_make(&run->items[i], &run->plan))
            return false;
    return run->items != NULL;
}

static bool make_team(struct run *run)
{
    const uint32_t threads = workers_of(run);
    if (!make_items(run))
        return pack_fail(&run->failure, run->plan.arguments->target, ENOMEM, "the samples");
    return stk_thread_team_create(&run->team, "stoker-pack",
                                  threads > STK_THREAD_TEAM_MAX ? STK_THREAD_TEAM_MAX : threads) ==
               STOKER_OK ||
           pack_fail(&run->failure, run->plan.arguments->target, 0,
                     "a thread could not be started");
}

static void close_all(struct run *run)
{
    run->target->close(run->into);
    stk_thread_team_destroy(run->team);
    for (uint32_t i = 0; run->items != NULL && i < run->together; i++)
        pack_item_free(&run->items[i]);
    free(run->items);
    stoker_dataset_close(&run->source);
}

/* ---- packing -------------------------------------------------------------------- */

static void read_items(void *argument, uint32_t thread)
{
    struct run *run = argument;
    (void)thread;
    for (;;) {
        const uint32_t at = atomic_fetch_add_explicit(&run->next, 1, memory_order_relaxed);
        if (at >= run->item_count)
            return;
        pack_item_read(&run->plan, &run->items[at]);
    }
}

/* Read and encode the first samples of a range, as many as fit, and add them. */
static bool pack_items(struct run *run, const struct pack_range *range)
{
    run->item_count = range->count < run->together ? (uint32_t)range->count : run->together;
    for (uint32_t i = 0; i < run->item_count; i++)
        run->items[i].id = range->first + i;
    atomic_store_explicit(&run->next, 0, memory_order_relaxed); /* published by the run */
    stk_thread_team_run(run->team, read_items, run);
    for (uint32_t i = 0; i < run->item_count; i++) {
        const struct pack_item *item = &run->items[i];
        if (item->failed[0] != '\0')
            return pack_fail(&run->failure, run->plan.arguments->source, 0,
                             "sample %" PRIu64 ": %s", item->id, item->failed);
        if (item->bad)
            (void)fprintf(stderr, "stoker-pack: left out: %s\n", item->error.message);
        if (!run->target->add(run->into, item, &run->failure))
            return false;
    }
    return true;
}

/* Progress is that of one rank: all have about as much to do. */
static bool pack_ranges(struct run *run)
{
    const struct pack_plan *plan = &run->plan;
    struct pack_range range = { 0 };
    uint64_t done = 0;
    struct pack_progress progress =
        pack_progress_begin("packed", 0, (plan->info->count - 1) / plan->world_size + 1,
                            plan->arguments->quiet || plan->rank > 0);
    bool good = true;
    while (good && (good = run->target->next(run->into, &range, &run->failure)) &&
           range.count > 0) {
        while (good && range.count > 0) {
            good = pack_items(run, &range);
            range.first += run->item_count;
            range.count -= run->item_count;
            done += run->item_count;
            pack_progress_show(&progress, done);
        }
    }
    cli_progress_line_wipe(&progress.line);
    return good;
}

static bool pack_all(struct run *run)
{
    return read_ranks(run) && open_source(run) &&
           run->target->open(&run->into, &run->plan, &run->failure) && make_team(run) &&
           pack_ranges(run) && run->target->finish(run->into, &run->tally, &run->failure);
}

/* ---- report --------------------------------------------------------------------- */

static void report(const struct run *run)
{
    const struct pack_tally *tally = &run->tally;
    uint64_t rows = 0; /* bytes of all parts as stored raw */
    for (uint32_t f = 0; f < run->plan.info->field_count; f++)
        if (run->plan.fields[f].part != STOKER_NO_PART)
            rows += tally->samples * stk_shard_value_bytes(&run->plan.fields[f]);
    const double seconds = stk_seconds(stk_now_ns() - run->begun_ns);
    char spec[PACK_SPEC_BYTES];
    if (run->ranks.world_size > 1)
        (void)printf("rank %u of %u\n", run->ranks.rank, run->ranks.world_size);
    (void)printf(
        "samples %" PRIu64 "\nkept_samples %" PRIu64 "\nbad_samples %" PRIu64 "\nrow_bytes %" PRIu64
        "\nstored_bytes %" PRIu64 "\nratio %.3f\nfiles %" PRIu64 "\nseconds %.2f\n",
        tally->samples, tally->kept_samples, tally->bad_samples, rows, tally->bytes,
        tally->bytes == 0 ? 0.0 : (double)rows / (double)tally->bytes, tally->files, seconds);
    if (run->plan.info->description != NULL)
        (void)printf("found %s\n", run->plan.info->description);
    if (pack_spec(&run->plan, spec))
        (void)printf("spec %s\n", spec);
}

static int conclude(struct run *run)
{
    const struct pack_arguments *arguments = run->plan.arguments;
    if (!arguments->quiet)
        report(run);
    if (arguments->verify && !pack_verify(&run->plan, run->tally.samples, &run->failure))
        return PACK_NOT_VERIFIED;
    if (arguments->verify && !arguments->quiet)
        (void)printf("verified %s\n",
                     arguments->codec == PACK_JPEG ? "all fields but images" : "all fields");
    return run->tally.bad_samples > 0 ? PACK_LEFT_OUT : PACK_GOOD;
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

/* Of several ranks, each reports its own shards. */
static int pack_run(const struct pack_arguments *arguments)
{
    const struct pack_target *const targets[] = { [PACK_SHARDS] = &pack_target_shards,
                                                  [PACK_FOLDER] = &pack_target_folder,
                                                  [PACK_TAR] = &pack_target_tar };
    struct run run = { .plan = { .arguments = arguments },
                       .target = targets[arguments->form],
                       .ranks = STOKER_RANKS_INIT,
                       .begun_ns = stk_now_ns() };
    const int status = pack_all(&run) ? conclude(&run) : PACK_FAILED;
    explain(&run);
    close_all(&run);
    return status;
}

static int run_command(int count, char **words)
{
    const struct pack_arguments arguments = pack_arguments_read(count, words);
    if (arguments.help != CLI_NO_HELP) {
        pack_help(arguments.help);
        return PACK_GOOD;
    }
    switch (arguments.action) {
    case PACK_VERSION:
        (void)printf("stoker-pack %s, libstoker %s\n", STOKER_VERSION_STRING, stoker_version());
        return PACK_GOOD;
    case PACK_MISUSED:
        return PACK_USAGE;
    default:
        return pack_run(&arguments);
    }
}

/* A report that cannot be written is a failure. */
int main(int count, char **words)
{
    const int status = run_command(count, words);
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return status;
    (void)fputs("stoker-pack: standard output: not all could be written\n", stderr);
    return status == PACK_GOOD ? PACK_FAILED : status;
}
