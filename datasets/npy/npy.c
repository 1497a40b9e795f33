/* npy.c - "npy:X.npy[,Y.npy]", rows and labels, and "npy:x=X.npy,y=Y.npy", any number of named
 * arrays.
 *
 *   field i of sample s = row_bytes at header_bytes + s x row_bytes of file i
 *
 * Small arrays and labels are read into memory at open; of all others a sample is read when it is
 * needed. Little-endian rows need no codec; a codec swaps the bytes of big-endian ones.
 */
#include <string.h>

#include "datasets/arrays/set.h"
#include "datasets/formats.h"
#include "datasets/npy/array.h"
#include "datasets/parameters.h"

/* What is needed while opening only. */
struct opening {
    const stoker_dataset_options *options;
    stoker_error *error;
    struct stk_named items[STOKER_FIELDS_MAX];
    uint32_t count;
};

static int refuse_npy(const struct opening *opening, int code, const char *rest, const char *what)
{
    (void)stk_refuse_spec(opening->error, code, "\"npy:%.256s\": %s", rest, what);
    return code;
}

/* ---- the spec ------------------------------------------------------------------- */

/* X.npy or X.npy,Y.npy: rows, and labels. */
static int split_pair(struct opening *opening, const char *rest)
{
    const struct stk_spec spec = stk_spec_split(opening->options->storage, rest, ',');
    opening->items[0] = (struct stk_named){ .text = rest, .text_bytes = spec.name_bytes };
    opening->count = 1;
    if (spec.after != NULL) {
        opening->items[1] = (struct stk_named){ .name = "label",
                                                .text = spec.after,
                                                .text_bytes = strlen(spec.after) };
        opening->count = 2;
    }
    for (uint32_t i = 0; i < opening->count; i++)
        if (opening->items[i].text_bytes == 0)
            return refuse_npy(opening, STOKER_ESPEC, rest,
                              "a file name is empty; write npy:X.npy, npy:X.npy,Y.npy or "
                              "npy:x=X.npy,y=Y.npy");
    return STOKER_OK;
}

static int split_named(struct opening *opening, const char *rest)
{
    const char *at = rest;
    struct stk_named item;
    while (stk_named_next(&at, true, &item)) {
        if (opening->count == STOKER_FIELDS_MAX)
            return refuse_npy(opening, STOKER_ELIMIT, rest, "more than 128 arrays");
        if (item.text_bytes == 0)
            return refuse_npy(opening, STOKER_ESPEC, rest, "a file name is empty: NAME=FILE");
        opening->items[opening->count++] = item;
    }
    return STOKER_OK;
}

/* ---- arrays --------------------------------------------------------------------- */

static int open_array(struct stk_array_set *set, const struct opening *opening, uint32_t index,
                      struct stk_npy_input *input)
{
    const struct stk_named *item = &opening->items[index];
    struct stk_source *source = &set->sources[index];
    struct stk_npy_header header;
    struct stk_npy_wish wish = { .first = index == 0,
                                 .labels = index > 0 && strcmp(item->name, "label") == 0,
                                 .max_bytes = opening->options->max_bytes };
    char *path = stk_calloc(item->text_bytes + 1, 1);
    if (path == NULL)
        return refuse_npy(opening, STOKER_ENOMEM, item->text, "the path");
    memcpy(path, item->text, item->text_bytes);
    memcpy(wish.name, item->name, sizeof(wish.name));
    int rc = stk_source_open(source, opening->options->storage, path, opening->error);
    source->path = path; /* freed with the set */
    if (rc != STOKER_OK)
        return rc;
    input[index] = (struct stk_npy_input){ .name = path, .source = source, .bytes = source->size };
    rc = stk_npy_read_header(&header, &input[index], opening->error);
    if (rc != STOKER_OK)
        return rc;
    if (index == 0)
        set->count = header.lengths[0];
    rc = stk_npy_check_count(&input[index], &header, &input[0], set->count, opening->error);
    set->arrays[index].file = index;
    return rc == STOKER_OK ? stk_npy_take(&set->arrays[index], &set->regions[index], &wish,
                                          &input[index], &header, opening->error)
                           : rc;
}

/* The files of arrays that are in memory are not needed any more; those behind them move up. */
static void close_copied(struct stk_array_set *set)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < set->array_count; i++) {
        struct stk_source source = set->sources[i];
        set->sources[i] = (struct stk_source)STK_SOURCE_CLOSED;
        if (set->arrays[i].memory != NULL) {
            stk_source_close(&source);
            stk_free((char *)source.path);
            continue;
        }
        set->arrays[i].file = kept;
        set->sources[kept++] = source;
    }
    set->source_count = kept;
}

static int open_set(stoker_dataset **out, const struct opening *opening, const char *rest)
{
    struct stk_array_set *set = stk_array_set_new("npy", opening->count, opening->count);
    struct stk_npy_input *inputs = stk_calloc(opening->count, sizeof(*inputs));
    int rc = STOKER_OK;
    if (set == NULL || inputs == NULL)
        rc = refuse_npy(opening, STOKER_ENOMEM, rest, "opening");
    for (uint32_t i = 0; rc == STOKER_OK && i < opening->count; i++)
        rc = open_array(set, opening, i, inputs);
    if (rc == STOKER_OK) {
        close_copied(set);
        rc = stk_array_set_make(out, set, &stk_array_ops_npy, opening->error);
    }
    if (rc != STOKER_OK && set != NULL)
        stk_array_set_free(set);
    stk_free(inputs);
    return rc;
}

static int open_npy(stoker_dataset **out, const char *rest, const stoker_dataset_options *options,
                    stoker_error *error)
{
    struct opening opening = { .options = options, .error = error };
    if (options->split != NULL)
        return refuse_npy(&opening, STOKER_EINVAL, rest, "npy names its files and has no splits");
    int rc = stk_spec_no_parameters(options->storage, rest, "npy", error);
    if (rc == STOKER_OK)
        rc = stk_named_begins(rest) && !stk_storage_has(options->storage, rest)
                 ? split_named(&opening, rest)
                 : split_pair(&opening, rest);
    return rc == STOKER_OK ? open_set(out, &opening, rest) : rc;
}

static bool recognize_npy(const stoker_storage *storage, const char *path)
{
    uint8_t begin[8] = { 0 };
    return stk_source_begins(storage, path, begin, sizeof(begin)) &&
           stk_npy_magic(begin, sizeof(begin));
}

const struct stk_format stk_format_npy = { .name = "npy",
                                           .about =
                                               "npy:FILE[,LABELS]\tarrays of NumPy, read in place",
                                           .open = open_npy,
                                           .recognize = recognize_npy };
