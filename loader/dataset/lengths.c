/* lengths.c - the lengths of a field that varies, without reading it. */
#include <assert.h>
#include <inttypes.h>

#include "loader/base/error.h"
#include "loader/dataset/dataset.h"
#include "loader/dataset/part.h"

enum { PARTS_AT_ONCE = STOKER_FIELDS_MAX }; /* 8 KiB of the stack */

static int refuse_length(const stoker_dataset *dataset, uint32_t field, uint64_t id, int code,
                         const char *what, stoker_error *error)
{
    struct stk_place place = STK_NOWHERE;
    place.sample = id;
    return stk_error_set(error, code, STOKER_STAGE_LOCATE, &place, "%s, field \"%s\": %s",
                         dataset->ops->name, dataset->fields[field].info.name, what);
}

/* The length of one sample by the bytes of its raw part. */
static int length_of_part(const stoker_dataset *dataset, uint32_t field, uint64_t id,
                          const stoker_part *part, uint64_t *out, stoker_error *error)
{
    const size_t entry_bytes = dataset->fields[field].entry_bytes;
    if (part->codec != NULL)
        return refuse_length(dataset, field, id, STOKER_ENOTSUP,
                             "its lengths are only known when it is decoded", error);
    if (part->extent.bytes % entry_bytes != 0)
        return refuse_length(dataset, field, id, STOKER_EFORMAT,
                             "the bytes of its part are no multiple of an entry's", error);
    *out = part->extent.bytes / entry_bytes;
    return STOKER_OK;
}

static int lengths_of_parts(const stoker_dataset *dataset, uint32_t field, const uint64_t *ids,
                            uint32_t count, uint64_t *out, stoker_error *error)
{
    stoker_part parts[PARTS_AT_ONCE];
    const uint32_t part_count = dataset->info.part_count;
    const uint32_t own = dataset->fields[field].info.part;
    if (own == STOKER_NO_PART)
        return refuse_length(dataset, field, ids[0], STOKER_ENOTSUP,
                             "it is made sample by sample, and the data set has no lengths()",
                             error);
    while (count > 0) {
        const uint32_t most = PARTS_AT_ONCE / part_count;
        const uint32_t run = count < most ? count : most;
        for (uint32_t i = 0; i < run * part_count; i++)
            parts[i] = (stoker_part){ .tag = 0 };
        const int rc = stk_parts_locate(dataset, ids, run, parts, error);
        if (rc != STOKER_OK)
            return rc;
        for (uint32_t i = 0; i < run; i++) {
            const stoker_part *part = &parts[i * part_count + own];
            const int failed = length_of_part(dataset, field, ids[i], part, &out[i], error);
            if (failed != STOKER_OK)
                return failed;
        }
        ids += run;
        out += run;
        count -= run;
    }
    return STOKER_OK;
}

static int lengths_told(const stoker_dataset *dataset, uint32_t field, const uint64_t *ids,
                        uint32_t count, uint64_t *out, stoker_error *error)
{
    const int rc = dataset->ops->lengths(dataset->self, field, ids, count, out);
    stoker_error said;
    if (rc != STOKER_OK)
        return refuse_length(dataset, field, ids[0], stk_callback_failed(rc, "lengths()", &said),
                             said.message, error);
    return STOKER_OK;
}

int stoker_dataset_lengths(const stoker_dataset *dataset, uint32_t field, const uint64_t *ids,
                           uint32_t count, uint64_t *out, stoker_error *error)
{
    if (dataset == NULL || ids == NULL || out == NULL || field >= dataset->info.field_count)
        return stk_refuse_option(error, STOKER_EINVAL,
                                 "dataset, ids or out is NULL, or there is no such field");
    const stoker_field_info *info = &dataset->fields[field].info;
    const uint64_t most = info->rank == 0 ? 1 : info->shape[0];
    for (uint32_t i = 0; i < count; i++)
        if (ids[i] >= dataset->info.count)
            return refuse_length(dataset, field, ids[i], STOKER_EINVAL, "there is no such sample",
                                 error);
    for (uint32_t i = 0; i < count; i++)
        out[i] = most;
    if (!info->varies || count == 0)
        return STOKER_OK;
    const int rc = dataset->ops->lengths != NULL
                       ? lengths_told(dataset, field, ids, count, out, error)
                       : lengths_of_parts(dataset, field, ids, count, out, error);
    for (uint32_t i = 0; rc == STOKER_OK && i < count; i++)
        if (out[i] > most)
            return refuse_length(dataset, field, ids[i], STOKER_EFORMAT,
                                 "it is longer than its shape", error);
    return rc;
}
