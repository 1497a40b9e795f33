/* open.c - finds the format that opens a spec such as "mnist:DIR" or a plain path.
 *
 *   "word:rest"  word is a format  -> that format opens rest
 *   "path"       it exists         -> the first format that recognizes it
 *   "...?test="  parameters of views, which wrap what the rest of the spec opens
 *   else                           -> STOKER_ENOENT or STOKER_ESPEC, listing what is understood
 */
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/struct_size.h"
#include "loader/base/text/nearest.h"
#include "loader/dataset/dataset.h"
#include "loader/dataset/format.h"
#include "loader/storage/cached.h"
#include "loader/storage/choose.h"
#include "loader/storage/remote/http.h"
#include "loader/storage/storage.h"

#define UNPACKED_BYTES_MAX ((uint64_t)1 << 46) /* what one address space can map */

/* The format whose name ends at the first colon of spec, or NULL. */
static const struct stk_format *format_named(const char *spec, size_t name_bytes)
{
    for (const struct stk_format *const *at = stk_formats; *at != NULL; at++) {
        if (strlen((*at)->name) == name_bytes && memcmp((*at)->name, spec, name_bytes) == 0)
            return *at;
    }
    return NULL;
}

size_t stoker_dataset_formats(char *text, size_t capacity)
{
    size_t bytes = 0;
    for (const struct stk_format *const *at = stk_formats; *at != NULL; at++) {
        const int added = snprintf(bytes < capacity ? text + bytes : NULL,
                                   bytes < capacity ? capacity - bytes : 0, "%s\n", (*at)->about);
        bytes += added > 0 ? (size_t)added : 0;
    }
    return bytes;
}

static const struct stk_format *format_of_path(const stoker_storage *storage, const char *path)
{
    for (const struct stk_format *const *at = stk_formats; *at != NULL; at++) {
        if ((*at)->recognize != NULL && (*at)->recognize(storage, path))
            return *at;
    }
    return NULL;
}

/* "mnist, idx, synth" */
static void list_formats(char *line, size_t line_bytes)
{
    size_t used = 0;
    line[0] = '\0';
    for (const struct stk_format *const *at = stk_formats; *at != NULL; at++) {
        int added =
            snprintf(line + used, line_bytes - used, "%s%s", used == 0 ? "" : ", ", (*at)->name);
        if (added < 0 || (size_t)added >= line_bytes - used)
            return;
        used += (size_t)added;
    }
}

/* No format fits: report if the file exists (`missing` is OK, else why not), and what is
 * understood. */
static int not_understood(const char *spec, size_t name_bytes, const stoker_error *missing,
                          stoker_error *error)
{
    char known[160];
    list_formats(known, sizeof(known));
    struct stk_place place = STK_NOWHERE;
    if (missing->code != STOKER_OK && stk_storage_is_url(spec)) {
        if (error != NULL)
            *error = *missing;
        return missing->code;
    }
    if (missing->code != STOKER_OK && spec[name_bytes] == ':') {
        char question[STK_NEAREST_BYTES];
        struct stk_nearest nearest = stk_nearest_to(spec, name_bytes);
        for (const struct stk_format *const *at = stk_formats; *at != NULL; at++)
            stk_nearest_try(&nearest, (*at)->name, (*at)->name);
        return stk_error_set(error, STOKER_ESPEC, STOKER_STAGE_OPEN, &place,
                             "\"%s\": \"%.*s\" is no format%s, and there is no such file; "
                             "formats are %s",
                             spec, (int)name_bytes, spec,
                             stk_nearest_question(question, &nearest, ""), known);
    }
    place.path = spec;
    place.os_errno = missing->os_errno;
    if (spec[0] == '\0')
        return stk_error_set(error, STOKER_ENOENT, STOKER_STAGE_OPEN, &place,
                             "the name is empty, and names no format (%s)", known);
    if (missing->code != STOKER_OK)
        return stk_error_set(error, missing->code, STOKER_STAGE_OPEN, &place,
                             "no format (%s) is named, so this is taken for a path", known);
    return stk_error_set(error, STOKER_ESPEC, STOKER_STAGE_OPEN, &place,
                         "no format recognizes this path; say which one it is: %s", known);
}

static const stoker_dataset_options defaults = STOKER_DATASET_OPTIONS_INIT;

#define OPTIONS_FIRST STK_SIZE_UP_TO(stoker_dataset_options, cache_dir_bytes)

/* Fields missing in an older, shorter struct keep their defaults. */
static int copy_given(stoker_dataset_options *options, const stoker_dataset_options *given,
                      stoker_error *error)
{
    *options = defaults;
    if (given == NULL)
        return 0;
    if (!stk_struct_fits(given, OPTIONS_FIRST, sizeof(*given)))
        return stk_refuse_option(error, STOKER_EINVAL, STK_STRUCT_REFUSAL, "stoker_dataset_options",
                                 given->struct_size, sizeof(*given), "STOKER_DATASET_OPTIONS_INIT");
    stk_struct_read(options, sizeof(*options), given, given->struct_size);
    if (options->max_bytes == 0)
        return stk_refuse_option(error, STOKER_EINVAL, "max_bytes 0 leaves no room for any file");
    if (options->max_bytes > UNPACKED_BYTES_MAX)
        options->max_bytes = UNPACKED_BYTES_MAX;
    if (options->cache_dir != NULL && options->cache_dir_bytes == 0)
        return stk_refuse_option(error, STOKER_EINVAL, "cache_dir_bytes 0 leaves no room");
    return 0;
}

/* The format named by the spec, whose part after the colon becomes *rest; NULL = none, and *rest is
 * the spec. */
static const struct stk_format *format_of_spec(const char *spec, const char **rest)
{
    const size_t name_bytes = strcspn(spec, ":");
    const struct stk_format *format =
        spec[name_bytes] == ':' ? format_named(spec, name_bytes) : NULL;
    *rest = format == NULL ? spec : spec + name_bytes + 1;
    return format;
}

static int open_as(stoker_dataset **out, const struct stk_format *format, const char *rest,
                   const stoker_dataset_options *options, stoker_error *error)
{
    const int rc = format->open(out, rest, options, error);
    if (rc == STOKER_OK && format->cheap_rows)
        (*out)->cheap_rows = true;
    if (rc == STOKER_OK)
        (*out)->storage = stoker_storage_share(options->storage);
    return rc;
}

static int open_plain(stoker_dataset **out, const char *spec, const stoker_dataset_options *options,
                      stoker_error *error)
{
    const char *rest;
    stoker_object object;
    stoker_error missing = { .code = STOKER_OK };
    const struct stk_format *format = format_of_spec(spec, &rest);
    stoker_dataset_options routed = *options;
    routed.storage = stk_storage_for(options->storage, rest);
    if (routed.storage == NULL)
        return stk_refuse_spec(error, STOKER_ENOMEM, "the storage of URLs");
    if (format == NULL && stk_storage_look(routed.storage, spec, &object, &missing) == STOKER_OK)
        format = format_of_path(routed.storage, spec);
    if (format == NULL)
        return not_understood(spec, strcspn(spec, ":"), &missing, error);
    return open_as(out, format, rest, &routed, error);
}

int stoker_dataset_open(stoker_dataset **out, const char *spec,
                        const stoker_dataset_options *options, stoker_error *error)
{
    stoker_dataset_options asked;
    int rc = copy_given(&asked, options, error);
    if (rc < 0)
        return rc;
    if (out == NULL || spec == NULL)
        return stk_refuse_spec(error, STOKER_EINVAL, "out or spec is NULL");
    if (asked.storage == NULL)
        asked.storage = &stk_storage_local;
    stoker_storage *cached = NULL;
    if (asked.cache_dir != NULL) {
        stoker_storage *below =
            asked.storage == &stk_storage_local ? stk_remote_default() : asked.storage;
        rc = below == NULL ? stk_refuse_spec(error, STOKER_ENOMEM, "the storage of URLs")
                           : stk_storage_cached(&cached, below, asked.cache_dir,
                                                asked.cache_dir_bytes, error);
        if (rc != STOKER_OK)
            return rc;
        asked.storage = cached;
    }
    asked.cache_dir = NULL; /* views open their sources with the same options */
    const char *rest;
    const struct stk_format *format = format_of_spec(spec, &rest);
    rc = stk_views_open(out, spec, format, rest, &asked, open_plain, error);
    stoker_storage_close(&cached); /* the data set shares it */
    return rc;
}
