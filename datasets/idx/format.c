/* format.c - parse "idx:SAMPLES[,LABELS]" and recognise IDX files. */
#include <string.h>

#include "datasets/formats.h"
#include "datasets/gzip.h"
#include "datasets/idx/idx.h"
#include "datasets/parameters.h"
#include "datasets/source.h"
#include "loader/base/memory.h"

static int open_idx(stoker_dataset **out, const char *rest, const stoker_dataset_options *options)
{
    struct stk_place place = STK_NOWHERE;
    if (options->split != NULL)
        return stk_error_set(options->error, STOKER_EINVAL, STOKER_STAGE_OPEN, &place,
                             "split \"%s\": idx names its files and has no splits", options->split);
    const struct stk_spec spec = stk_spec_split(rest, ',');
    if (spec.name_bytes == 0 || (spec.after != NULL && spec.after[0] == '\0'))
        return stk_error_set(options->error, STOKER_ESPEC, STOKER_STAGE_OPEN, &place,
                             "\"idx:%s\": a file name is empty; write idx:SAMPLES or "
                             "idx:SAMPLES,LABELS",
                             rest);
    if (spec.after == NULL)
        return stk_idx_open(out, &stk_idx_ops, rest, NULL, options);

    char *images_path = stk_calloc(spec.name_bytes + 1, 1);
    if (images_path == NULL)
        return stk_error_set(options->error, STOKER_ENOMEM, STOKER_STAGE_OPEN, &place, "the path");
    memcpy(images_path, rest, spec.name_bytes);
    int rc = stk_idx_open(out, &stk_idx_ops, images_path, spec.after, options);
    stk_free(images_path);
    return rc;
}

/* Returns true for a file that starts like IDX, or like gzip, which no other format uses. */
static bool recognise_idx(const char *path)
{
    struct stk_source source;
    if (stk_source_open(&source, path, NULL) != STOKER_OK)
        return false;
    uint8_t begin[4] = { 0 };
    bool like = source.size >= sizeof(begin) &&
                stk_source_read(&source, begin, sizeof(begin), 0, NULL) == STOKER_OK &&
                (stk_gzip_magic(begin, sizeof(begin)) ||
                 (begin[0] == 0 && begin[1] == 0 && begin[2] >= 0x08 && begin[2] <= 0x0E));
    stk_source_close(&source);
    return like;
}

const struct stk_format stk_format_idx = { .name = "idx",
                                           .open = open_idx,
                                           .recognise = recognise_idx };
