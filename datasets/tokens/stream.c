/* stream.c - see stream.h.
 *
 *   names ─▶ ┌ next ┐ ─▶ each thread: open, read the header ─▶ its file ─▶ then one pass in order
 *
 * A file that a thread could not open is opened again in that pass, so that the first one's error
 * is reported, whatever the number of threads.
 */
#include "datasets/tokens/stream.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "datasets/name_list.h"
#include "datasets/tokens/header.h"
#include "loader/base/cpu/thread.h"

enum { FILES_PER_THREAD = 32 };

struct opening {
    struct stk_tokens *tokens;
    struct stk_token_header *headers; /* [file_count] */
    bool *done; /* [file_count]: the file is open. Written by the thread that claimed it */
    const struct stk_tokens_wish *wish;
    /* The first file that no thread has taken. Relaxed: threads are joined before the results are
     * read. */
    atomic_uint next;
};

/* ---- opening -------------------------------------------------------------------- */

static int open_file(const struct opening *opening, uint32_t index, stoker_error *error)
{
    return stk_token_file_open(&opening->tokens->files[index], &opening->headers[index],
                               opening->wish, index < STK_TOKENS_OPEN_MAX, error);
}

static void *open_token_files(void *argument)
{
    struct opening *opening = argument;
    for (;;) {
        const uint32_t index = atomic_fetch_add_explicit(&opening->next, 1, memory_order_relaxed);
        if (index >= opening->tokens->file_count)
            return NULL;
        opening->done[index] = open_file(opening, index, NULL) == STOKER_OK;
    }
}

static int open_files(struct opening *opening, stoker_error *error)
{
    const struct stk_tokens *tokens = opening->tokens;
    int rc = STOKER_OK;
    const bool far = stk_storage_is_far(tokens->storage);
    const uint32_t pieces = far ? tokens->file_count : tokens->file_count / FILES_PER_THREAD;
    stk_threads_run(stk_threads_together(pieces, far), "stoker-tokens", open_token_files, opening);
    for (uint32_t i = 0; i < tokens->file_count && rc == STOKER_OK; i++)
        rc = opening->done[i] ? STOKER_OK : open_file(opening, i, error);
    while (rc == STOKER_OK && opening->tokens->open_count < tokens->file_count &&
           tokens->files[tokens->open_count].source.storage != NULL)
        opening->tokens->open_count++;
    return rc;
}

/* All files have the same element type; number their tokens. */
static int join_files(struct opening *opening, stoker_error *error)
{
    struct stk_tokens *tokens = opening->tokens;
    tokens->dtype = opening->headers[0].dtype;
    tokens->token_bytes = (uint32_t)stoker_dtype_bytes(tokens->dtype);
    tokens->has_index = true;
    for (uint32_t i = 0; i < tokens->file_count; i++) {
        struct stk_token_file *file = &tokens->files[i];
        const stoker_dtype dtype = opening->headers[i].dtype;
        char what[128];
        (void)snprintf(what, sizeof(what), "tokens of %s, but the first file's are %s",
                       stoker_dtype_name(dtype), stoker_dtype_name(tokens->dtype));
        if (dtype != tokens->dtype)
            return stk_refuse_file(error, STOKER_EMISMATCH, file->path, STOKER_NO_OFFSET, "%s: %s",
                                   opening->wish->format, what);
        file->first = tokens->count;
        tokens->has_index = tokens->has_index && file->index_path != NULL;
        if (__builtin_add_overflow(tokens->count, file->count, &tokens->count))
            return stk_refuse_file(error, STOKER_ELIMIT, file->path, STOKER_NO_OFFSET,
                                   "%s: more than 2^64 tokens", opening->wish->format);
    }
    return tokens->count > 0
               ? STOKER_OK
               : stk_refuse_file(error, STOKER_EEMPTY, tokens->files[0].path, STOKER_NO_OFFSET,
                                 "%s: no tokens", opening->wish->format);
}

static bool token_fits(int64_t token, stoker_dtype dtype)
{
    const bool is_signed = dtype == STOKER_DTYPE_INT8 || dtype == STOKER_DTYPE_INT16 ||
                           dtype == STOKER_DTYPE_INT32 || dtype == STOKER_DTYPE_INT64;
    const int bits = (int)stoker_dtype_bytes(dtype) * 8 - (is_signed ? 1 : 0);
    return token >= 0 && (bits >= 63 || token < INT64_C(1) << bits);
}

/* A token that the type cannot hold would never be found. */
static int check_marks(struct opening *opening, stoker_error *error)
{
    struct stk_tokens *tokens = opening->tokens;
    const int64_t marks[] = { opening->wish->eos, opening->wish->bos };
    for (int i = 0; i < 2; i++) {
        char what[96];
        if (marks[i] == STK_TOKENS_NONE || token_fits(marks[i], tokens->dtype))
            continue;
        (void)snprintf(what, sizeof(what), "%s %lld is no %s", i == 0 ? "eos" : "bos",
                       (long long)marks[i], stoker_dtype_name(tokens->dtype));
        return stk_refuse_file(error, STOKER_EINVAL, tokens->files[0].path, STOKER_NO_OFFSET,
                               "%s: %s", opening->wish->format, what);
    }
    tokens->eos = marks[0];
    tokens->bos = marks[1];
    return STOKER_OK;
}

static void describe(const struct opening *opening)
{
    static const char *const names[] = { "", "llm.c", "raw", "Megatron", "npy" };
    struct stk_tokens *tokens = opening->tokens;
    bool alike = true;
    for (uint32_t i = 1; i < tokens->file_count; i++)
        alike = alike && opening->headers[i].layout == opening->headers[0].layout;
    (void)snprintf(tokens->found, sizeof(tokens->found), "%u %s file%s, %llu tokens of %s",
                   tokens->file_count, alike ? names[opening->headers[0].layout] : "different",
                   tokens->file_count == 1 ? "" : "s", (unsigned long long)tokens->count,
                   stoker_dtype_name(tokens->dtype));
}

/* Give each file its path. */
static int take_names(struct opening *opening, const struct stk_name_list *names,
                      stoker_error *error)
{
    struct stk_tokens *tokens = opening->tokens;
    tokens->files = stk_calloc(names->count, sizeof(tokens->files[0]));
    opening->headers = stk_calloc(names->count, sizeof(opening->headers[0]));
    opening->done = stk_calloc(names->count, sizeof(opening->done[0]));
    if (tokens->files == NULL || opening->headers == NULL || opening->done == NULL)
        return stk_refuse_file(error, STOKER_ENOMEM, NULL, STOKER_NO_OFFSET,
                               "%s: the list of files", opening->wish->format);
    for (; tokens->file_count < names->count; tokens->file_count++) {
        const char *name = stk_name_at(names, tokens->file_count);
        struct stk_token_file *file = &tokens->files[tokens->file_count];
        file->source = (struct stk_source)STK_SOURCE_CLOSED;
        file->path = stk_calloc(strlen(name) + 1, 1);
        if (file->path == NULL)
            return stk_refuse_file(error, STOKER_ENOMEM, name, STOKER_NO_OFFSET, "%s: its path",
                                   opening->wish->format);
        memcpy(file->path, name, strlen(name));
    }
    return STOKER_OK;
}

static int open_all(struct opening *opening, stoker_error *error)
{
    struct stk_name_list names = { .text = NULL };
    int rc = stk_name_list_make(&names, opening->wish->storage, opening->wish->format,
                                opening->wish->names, opening->wish->name_bytes, error);
    if (rc == STOKER_OK)
        rc = take_names(opening, &names, error);
    stk_name_list_free(&names);
    if (rc == STOKER_OK)
        rc = open_files(opening, error);
    if (rc == STOKER_OK)
        rc = join_files(opening, error);
    if (rc == STOKER_OK)
        rc = check_marks(opening, error);
    if (rc == STOKER_OK)
        describe(opening);
    return rc;
}

int stk_tokens_open(struct stk_tokens *out, const struct stk_tokens_wish *wish, stoker_error *error)
{
    *out = (struct stk_tokens){ .storage = wish->storage };
    struct opening opening = { .tokens = out, .wish = wish };
    const int rc = open_all(&opening, error);
    stk_free(opening.headers);
    stk_free(opening.done);
    if (rc != STOKER_OK)
        stk_tokens_close(out);
    return rc;
}

void stk_tokens_close(struct stk_tokens *tokens)
{
    for (uint32_t i = 0; i < tokens->file_count; i++)
        stk_token_file_close(&tokens->files[i]);
    stk_free(tokens->files);
    stk_region_unmap(&tokens->start_memory);
    *tokens = (struct stk_tokens){ .file_count = 0 };
}

/* ---- reading -------------------------------------------------------------------- */

/* Use the open file, or open it for one read: another file may have its name by now. */
static int open_again(const struct stk_token_file *file, struct stk_source *source,
                      stoker_error *error)
{
    *source = file->source;
    if (source->storage != NULL)
        return STOKER_OK;
    const int rc = stk_source_open(source, &stk_storage_local, file->path, error);
    if (rc != STOKER_OK || stk_file_stamp_holds(&file->source.stamp, &source->stamp))
        return rc;
    const struct stk_place place = stk_at(file->path, STOKER_NO_OFFSET);
    stk_source_close(source);
    return stk_error_set(error, STOKER_ECHANGED, STOKER_STAGE_READ, &place,
                         "written to, or another file, since it was opened");
}

static void close_again(const struct stk_token_file *file, struct stk_source *source)
{
    if (file->source.storage == NULL)
        stk_source_close(source);
}

int stk_tokens_read(const struct stk_tokens *tokens, const struct stk_token_range *range, void *to,
                    stoker_error *error)
{
    const struct stk_token_file *file = &tokens->files[range->file];
    assert(range->offset <= file->count);
    assert(range->length <= file->count - range->offset);
    struct stk_source source;
    int rc = open_again(file, &source, error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_source_read(&source, to, (size_t)range->length * tokens->token_bytes,
                         file->offset + range->offset * tokens->token_bytes, error);
    close_again(file, &source);
    return rc;
}

static int map_file(struct stk_token_file *file, stoker_error *error)
{
    struct stk_source source;
    const void *mapped = NULL;
    int rc = open_again(file, &source, error);
    if (rc != STOKER_OK)
        return rc;
    if (source.size > 0)
        rc = stk_source_map(&source, &mapped, error);
    file->mapped = mapped;
    close_again(file, &source);
    return rc;
}

int stk_tokens_map(struct stk_tokens *tokens, stoker_error *error)
{
    int rc = STOKER_OK;
    for (uint32_t i = 0; i < tokens->file_count && rc == STOKER_OK; i++)
        rc = map_file(&tokens->files[i], error);
    return rc;
}

uint32_t stk_tokens_file_of(const struct stk_tokens *tokens, uint64_t number)
{
    assert(number < tokens->count);
    uint32_t low = 0, high = tokens->file_count; /* the file is in [low, high) */
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (tokens->files[middle].first <= number)
            low = middle;
        else
            high = middle;
    }
    return low;
}
