/* cache_key.c - see cache_key.h. */
#include "loader/api/choose/cache_key.h"

#include <inttypes.h>
#include <stdio.h>
#include <stoker/version.h>
#include <sys/stat.h>

#include "loader/base/environment.h"

/* Variables in which launchers name a job. Two jobs with the same data do not share: each has a
 * budget of its own. */
static void add_job(struct stk_identity *identity)
{
    static const char *const names[] = { "TORCHELASTIC_RUN_ID", "MASTER_ADDR",  "MASTER_PORT",
                                         "PMIX_NAMESPACE",      "SLURM_JOB_ID", "SLURM_STEP_ID" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        stk_identity_add_text(identity, stk_environment(names[i]));
}

/* Members of a cache look each other up in /proc, by numbers that mean the same only in one PID
 * namespace. */
static bool add_namespace(struct stk_identity *identity)
{
    struct stat status;
    if (stat("/proc/self/ns/pid", &status) != 0)
        return false;
    stk_identity_add(identity, status.st_ino);
    return true;
}

/* What makes rows from samples, and where they lie in a place of the cache. */
static void add_rows(struct stk_identity *identity, const stoker_loader *loader,
                     const struct stk_cache_options *cache)
{
    const struct stk_pipeline *pipeline = &loader->pipeline;
    const struct stk_framing *framing = &pipeline->transform.framing;
    const struct stk_field_plan *plan = &pipeline->field_plan;
    const bool resized = stk_pipeline_keeps_resized(&loader->facts);
    stk_identity_add(identity, (uint64_t)cache->kind << 32 | cache->block_rows);
    stk_identity_add(identity, cache->stride_bytes);
    stk_identity_add(identity, (uint64_t)cache->whole_places << 1 | resized);
    stk_identity_add(identity,
                     resized ? (uint64_t)framing->resize_height << 32 | framing->resize_width : 0);
    stk_identity_add(identity, resized ? (uint64_t)loader->options.transform.decode_scale : 0);
    stk_identity_add(identity, plan->part_bytes);
    for (uint32_t i = 0; i < pipeline->dataset->info.field_count; i++)
        stk_identity_add(identity, plan->record_at[i]);
}

const char *stk_cache_key_of_samples(const stoker_loader *loader, struct stk_identity *out)
{
    if (loader->options.reader != NULL)
        return "the loader has a reader of its own";
    if (!stk_identity_of(loader->pipeline.dataset, out))
        return "not all samples lie in files";
    if (!add_namespace(out))
        return "/proc cannot be read";
    stk_identity_add_text(out, STOKER_VERSION_STRING);
    add_job(out);
    return NULL;
}

void stk_cache_key(const stoker_loader *loader, const struct stk_identity *samples,
                   const struct stk_cache_options *cache, char key[STK_SEGMENT_KEY_BYTES])
{
    struct stk_identity identity = *samples;
    add_rows(&identity, loader, cache);
    (void)snprintf(key, STK_SEGMENT_KEY_BYTES, "%016" PRIx64 "%016" PRIx64, identity.words[0],
                   identity.words[1]);
}
