/* verify.c - see verify.h.
 *
 * Reads the source through a loader, in order, and finds each good sample in the target: in shards and
 * archives by its position, in folders by its file name.
 */
#include "datasets/pack/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/pack/names.h"
#include "datasets/pack/output.h"
#include "datasets/pack/progress.h"

struct verifier {
    const struct pack_plan *plan;
    stoker_dataset *target;
    const stoker_dataset_info *info; /* the target's */
    uint64_t *where; /* target sample of each source sample, for folders; NULL = in order */
    uint8_t *row;
    size_t row_bytes;
    uint64_t compared;
    bool lossy;
};

/* ---- opening -------------------------------------------------------------------- */

static bool find_numbers(struct verifier *verifier, struct pack_failure *failure)
{
    const uint64_t count = verifier->plan->info->count;
    verifier->where = malloc((size_t)count * sizeof(*verifier->where));
    if (verifier->where == NULL)
        return pack_fail(failure, "verifying", ENOMEM, "the order");
    memset(verifier->where, 0xFF, (size_t)count * sizeof(*verifier->where));
    for (uint64_t i = 0; i < verifier->info->count; i++) {
        stoker_part sample = { 0 };
        uint64_t number = 0;
        if (stoker_dataset_locate(verifier->target, i, &sample, NULL) != STOKER_OK ||
            sample.extent.path == NULL || !pack_file_number(sample.extent.path, &number) ||
            number >= count)
            return pack_fail(failure, "verifying", 0, "a file that was not packed");
        verifier->where[number] = i;
    }
    return true;
}

static bool open_target(struct verifier *verifier, struct pack_failure *failure)
{
    char spec[PACK_PATH_BYTES + 128];
    stoker_error error = { .message = "" };
    const struct pack_arguments *arguments = verifier->plan->arguments;
    const stoker_dataset_info *source = verifier->plan->info;
    const int bytes =
        snprintf(spec, sizeof(spec), "%s:%s", pack_form_name(arguments->form), arguments->target);
    if (source->is_image && arguments->form != PACK_SHARDS) /* files do not store the row's type */
        (void)snprintf(spec + bytes, sizeof(spec) - (size_t)bytes, "?channels=%d",
                       (int)source->shape[2]);
    if (stoker_dataset_open(&verifier->target, spec, NULL, &error) != STOKER_OK)
        return pack_fail(failure, "verifying", 0, "%s", error.message);
    verifier->info = stoker_dataset_get_info(verifier->target);
    verifier->row_bytes = stoker_dataset_row_bytes(verifier->target);
    if (verifier->info->dtype != source->dtype || verifier->info->rank != source->rank ||
        memcmp(verifier->info->shape, source->shape, source->rank * sizeof(source->shape[0])) != 0)
        return pack_fail(failure, "verifying", 0, "the rows have another shape");
    verifier->row = malloc(verifier->row_bytes);
    if (verifier->row == NULL)
        return pack_fail(failure, "verifying", ENOMEM, "a row");
    return arguments->form != PACK_FOLDER || find_numbers(verifier, failure);
}

/* ---- comparing ------------------------------------------------------------------ */

static bool same_label(const struct verifier *verifier, const stoker_batch *batch, uint32_t at,
                       stoker_label found)
{
    const stoker_dtype type = verifier->plan->info->label_dtype;
    if (type == STOKER_DTYPE_INT64)
        return ((const int64_t *)batch->labels.data)[at] == found.index;
    if (type != STOKER_DTYPE_FLOAT32)
        return true;
    uint32_t wanted; /* bit for bit: a NaN is the same NaN, and 0 is not -0 */
    uint32_t bits;
    memcpy(&wanted, (const float *)batch->labels.data + at, sizeof(wanted));
    memcpy(&bits, &found.value, sizeof(bits));
    return wanted == bits;
}

static bool compare_one(struct verifier *verifier, const stoker_batch *batch, uint32_t at,
                        struct pack_failure *failure)
{
    const uint64_t id = batch->ids[at];
    const uint64_t there = verifier->where == NULL ? verifier->compared : verifier->where[id];
    const uint8_t *row = (const uint8_t *)batch->images.data + (size_t)at * verifier->row_bytes;
    stoker_label label = { .index = 0 };
    stoker_error error = { .message = "" };
    if (there >= verifier->info->count)
        return pack_fail(failure, "verifying", 0, "sample %" PRIu64 " is missing", id);
    if (stoker_dataset_read(verifier->target, there, verifier->row, verifier->row_bytes, &label,
                            &error) != STOKER_OK)
        return pack_fail(failure, "verifying", 0, "%s", error.message);
    if (!same_label(verifier, batch, at, label))
        return pack_fail(failure, "verifying", 0, "sample %" PRIu64 " has another label", id);
    if (!verifier->lossy && memcmp(row, verifier->row, verifier->row_bytes) != 0)
        return pack_fail(failure, "verifying", 0, "sample %" PRIu64 " has another row", id);
    verifier->compared++;
    return true;
}

static enum pack_verdict compare_all(struct verifier *verifier, stoker_loader *source,
                                     struct pack_failure *failure)
{
    struct pack_progress progress = pack_progress_begin("verified", 0, verifier->plan->info->count,
                                                        verifier->plan->arguments->quiet);
    stoker_batch batch = STOKER_BATCH_INIT;
    bool same = true;
    int rc;
    while (same && (rc = stoker_loader_next(source, &batch, -1)) == STOKER_OK) {
        for (uint32_t i = 0; same && i < batch.count; i++)
            same = compare_one(verifier, &batch, i, failure);
        stoker_batch_release(&batch);
        pack_progress_show(&progress, verifier->compared);
    }
    cli_progress_line_wipe(&progress.line);
    if (!same)
        return PACK_DIFFERENT;
    if (rc < 0) {
        (void)pack_fail(failure, "verifying", 0, "%s", stoker_loader_error(source)->message);
        return PACK_UNREADABLE;
    }
    if (verifier->compared == verifier->info->count)
        return PACK_SAME;
    (void)pack_fail(failure, "verifying", 0, "%" PRIu64 " samples, not %" PRIu64,
                    verifier->info->count, verifier->compared);
    return PACK_DIFFERENT;
}

enum pack_verdict pack_verify(const struct pack_plan *plan, stoker_loader *source, bool lossy,
                              struct pack_failure *failure)
{
    struct verifier verifier = { .plan = plan, .lossy = lossy };
    const enum pack_verdict verdict =
        open_target(&verifier, failure) ? compare_all(&verifier, source, failure) : PACK_DIFFERENT;
    stoker_dataset_close(&verifier.target);
    free(verifier.where);
    free(verifier.row);
    return verdict;
}
