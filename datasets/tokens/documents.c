/* documents.c - the index of documents: see stream.h.
 *
 *   X.idx    lengths, offsets and documents are read side by side, in blocks, and compared
 *   marks    pieces of files ──▶ ┌ next ┐ ─▶ each thread: starts in one piece ─▶ joined
 *
 * A piece is read with the token before it, since an eos there begins a document here.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "datasets/tokens/header.h"
#include "loader/base/bytes.h"
#include "loader/base/cpu/thread.h"

#define PIECE_TOKENS (UINT64_C(1) << 26)

enum {
    BLOCK_TOKENS = 1 << 16,
    BLOCK_SEQUENCES = 4096,
    FIRST_STARTS = 1024,
    LOOK_TOKENS = 64 /* compared together; only if one of them matches, one by one */
};

/* Starts of documents in a part of the stream, in order. */
struct starts {
    uint64_t *at;
    size_t count, capacity;
};

struct finding {
    struct stk_tokens *tokens;
    struct starts *pieces;          /* [piece_count], each written by the thread that claimed it */
    struct stk_token_range *ranges; /* [piece_count] */
    uint64_t piece_count;
    uint64_t starts_max;
    /* The first piece that no thread has taken. Relaxed: threads are joined before the results are
     * read. */
    atomic_uint next;
    atomic_uint_fast64_t starts_found; /* relaxed: only a limit */
    pthread_mutex_t lock;              /* guards all below */
    uint64_t failed_piece;             /* the first one that failed; UINT64_MAX = none */
    stoker_error failure;
};

/* ---- the list of a piece -------------------------------------------------------- */

static int add_start(struct finding *finding, struct starts *starts, const char *path,
                     uint64_t start, stoker_error *error)
{
    if (starts->count == starts->capacity) {
        const uint64_t more = starts->count < FIRST_STARTS ? FIRST_STARTS : starts->count;
        /* A list has memory for up to twice its starts. */
        if (atomic_fetch_add_explicit(&finding->starts_found, more, memory_order_relaxed) + more >
            2 * finding->starts_max + FIRST_STARTS * finding->piece_count)
            return stk_refuse_file(error, STOKER_ELIMIT, path, STOKER_NO_OFFSET,
                                   "tokens: the index of documents exceeds max_bytes");
        uint64_t *larger = stk_array_grow(starts->at, sizeof(starts->at[0]), starts->count,
                                          &starts->capacity, (size_t)more);
        if (larger == NULL)
            return stk_refuse_file(error, STOKER_ENOMEM, path, STOKER_NO_OFFSET,
                                   "tokens: the index of documents");
        starts->at = larger;
    }
    starts->at[starts->count++] = start;
    return STOKER_OK;
}

/* ---- by marks ------------------------------------------------------------------- */

/* Set is_mark[i] = 1 if tokens[i] is eos, 2 if bos, 3 if both. Returns the OR of all. */
#define MARKS(type)                                                                                \
    {                                                                                              \
        const type ends = (type)tokens->eos, begins = (type)tokens->bos;                           \
        const uint8_t has_eos = tokens->eos != STK_TOKENS_NONE;                                    \
        const uint8_t has_bos = tokens->bos != STK_TOKENS_NONE ? 2 : 0;                            \
        for (uint32_t i = 0; i < LOOK_TOKENS; i++) {                                               \
            type token;                                                                            \
            memcpy(&token, at + i * sizeof(token), sizeof(token));                                 \
            marks[i] = (uint8_t)((token == ends ? has_eos : 0) | (token == begins ? has_bos : 0)); \
            any |= marks[i];                                                                       \
        }                                                                                          \
        break;                                                                                     \
    }

static uint8_t find_marks(const struct stk_tokens *tokens, const uint8_t *at, uint8_t *marks)
{
    uint8_t any = 0;
    switch (tokens->token_bytes) {
    case 1:
        MARKS(uint8_t)
    case 2:
        MARKS(uint16_t)
    case 4:
        MARKS(uint32_t)
    default:
        MARKS(uint64_t)
    }
    return any;
}

/* Find the starts in `count` tokens, the first of which is number `first` of the stream. *ended:
 * the token before them ended a document. */
static int scan_block(struct finding *finding, struct starts *starts, const char *path,
                      const uint8_t *block, uint32_t count, uint64_t first, bool *ended,
                      stoker_error *error)
{
    const uint32_t width = finding->tokens->token_bytes;
    int rc = STOKER_OK;
    for (uint32_t at = 0; at < count && rc == STOKER_OK; at += LOOK_TOKENS) {
        uint8_t marks[LOOK_TOKENS];
        const uint32_t some = count - at < LOOK_TOKENS ? count - at : LOOK_TOKENS;
        if (find_marks(finding->tokens, block + (size_t)at * width, marks) == 0 && !*ended)
            continue;
        for (uint32_t i = 0; i < some && rc == STOKER_OK; i++) {
            if (*ended || (marks[i] & 2) != 0)
                rc = add_start(finding, starts, path, first + at + i, error);
            *ended = (marks[i] & 1) != 0;
        }
    }
    return rc;
}

static int scan_piece(struct finding *finding, uint64_t piece, uint8_t *block, stoker_error *error)
{
    const struct stk_token_range whole = finding->ranges[piece];
    const struct stk_tokens *tokens = finding->tokens;
    const struct stk_token_file *file = &tokens->files[whole.file];
    bool ended = whole.offset == 0; /* a file begins a document */
    int rc = STOKER_OK;
    if (!ended) {
        uint8_t marks[LOOK_TOKENS];
        rc = stk_tokens_read(tokens, &(struct stk_token_range){ whole.file, whole.offset - 1, 1 },
                             block, error);
        (void)find_marks(tokens, block, marks);
        ended = (marks[0] & 1) != 0;
    }
    for (uint64_t done = 0; done < whole.length && rc == STOKER_OK; done += BLOCK_TOKENS) {
        const uint64_t left = whole.length - done;
        const struct stk_token_range range = { whole.file, whole.offset + done,
                                               left < BLOCK_TOKENS ? left : BLOCK_TOKENS };
        rc = stk_tokens_read(tokens, &range, block, error);
        if (rc == STOKER_OK)
            rc = scan_block(finding, &finding->pieces[piece], file->path, block,
                            (uint32_t)range.length, file->first + range.offset, &ended, error);
    }
    return rc;
}

/* Keep the error of the first piece that failed. */
static void note_failure(struct finding *finding, uint64_t piece, const stoker_error *error)
{
    pthread_mutex_lock(&finding->lock);
    if (piece < finding->failed_piece) {
        finding->failed_piece = piece;
        finding->failure = *error;
    }
    pthread_mutex_unlock(&finding->lock);
}

static void *scan(void *argument)
{
    struct finding *finding = argument;
    uint8_t *block = stk_calloc(BLOCK_TOKENS + LOOK_TOKENS,
                                finding->tokens->token_bytes); /* read past the end */
    for (;;) {
        const uint64_t piece = atomic_fetch_add_explicit(&finding->next, 1, memory_order_relaxed);
        if (piece >= finding->piece_count)
            break;
        stoker_error error;
        const int rc = block == NULL
                           ? stk_refuse_file(&error, STOKER_ENOMEM, NULL, STOKER_NO_OFFSET,
                                             "tokens: the index of documents")
                           : scan_piece(finding, piece, block, &error);
        if (rc != STOKER_OK) {
            note_failure(finding, piece, &error);
            break;
        }
    }
    stk_free(block);
    return NULL;
}

/* ---- by X.idx ------------------------------------------------------------------- */

/* A table of an X.idx, read in blocks. */
struct table {
    const struct stk_source *source;
    uint64_t at;    /* where the table begins */
    uint64_t count; /* entries */
    uint64_t next;  /* entry that is taken next */
    uint32_t entry_bytes;
    uint64_t held; /* entries in block from next - next % BLOCK_SEQUENCES on */
    uint8_t block[BLOCK_SEQUENCES * 8];
};

/* Take the next entry; there must be one. */
static int take_value(struct table *table, uint64_t *out, stoker_error *error)
{
    const uint64_t place = table->next % BLOCK_SEQUENCES;
    assert(table->next < table->count);
    if (place == 0) {
        const uint64_t left = table->count - table->next;
        const uint64_t some = left < BLOCK_SEQUENCES ? left : BLOCK_SEQUENCES;
        const int rc =
            stk_source_read(table->source, table->block, (size_t)some * table->entry_bytes,
                            table->at + table->next * table->entry_bytes, error);
        if (rc != STOKER_OK)
            return rc;
    }
    const uint8_t *entry = table->block + place * table->entry_bytes;
    *out = table->entry_bytes == 4 ? stk_load_le32(entry) : stk_load_le64(entry);
    table->next++;
    return STOKER_OK;
}

struct index_reading {
    struct table lengths, offsets, documents;
};

/* Where the entry that was taken last lies in its file. */
static uint64_t offset_of_entry(const struct table *table)
{
    return table->at + (table->next - 1) * table->entry_bytes;
}

/* Take the length and offset of the next sequence: it must begin where the one before it ended. */
static int take_sequence(const struct finding *finding, const struct stk_token_file *file,
                         struct index_reading *in, uint64_t *tokens, stoker_error *error)
{
    uint64_t length = 0, offset = 0;
    int rc = take_value(&in->lengths, &length, error);
    if (rc == STOKER_OK)
        rc = take_value(&in->offsets, &offset, error);
    if (rc != STOKER_OK)
        return rc;
    if (length > INT32_MAX)
        return stk_refuse_file(error, STOKER_EFORMAT, file->index_path,
                               offset_of_entry(&in->lengths), "tokens: a negative length");
    if (offset != *tokens * finding->tokens->token_bytes)
        return stk_refuse_file(error, STOKER_EFORMAT, file->index_path,
                               offset_of_entry(&in->offsets),
                               "tokens: a sequence does not begin where the one before it ends");
    if (length > file->count - *tokens)
        return stk_refuse_file(error, STOKER_EFORMAT, file->index_path,
                               offset_of_entry(&in->lengths),
                               "tokens: a sequence ends beyond the file of tokens");
    *tokens += length;
    return STOKER_OK;
}

/* Take the end of a document, in sequences. */
static int take_boundary(const struct stk_token_file *file, struct index_reading *in,
                         uint64_t *boundary, stoker_error *error)
{
    const uint64_t before = *boundary;
    const bool first = in->documents.next == 0;
    int rc = take_value(&in->documents, boundary, error);
    if (rc != STOKER_OK)
        return rc;
    const bool last = in->documents.next == in->documents.count;
    if (*boundary < before || *boundary > file->sequences || (first && *boundary != 0) ||
        (last && *boundary != file->sequences))
        return stk_refuse_file(
            error, STOKER_EFORMAT, file->index_path, offset_of_entry(&in->documents),
            "tokens: the documents do not ascend from 0 to the number of sequences");
    return STOKER_OK;
}

/* Read one X.idx side by side: the documents that end before a sequence, then the sequence. */
static int read_index(struct finding *finding, uint32_t index, struct index_reading *in,
                      stoker_error *error)
{
    const struct stk_token_file *file = &finding->tokens->files[index];
    struct starts *starts = &finding->pieces[index];
    uint64_t tokens = 0, boundary = 0, begun = 0;
    int rc = STOKER_OK;
    for (uint64_t sequence = 0; rc == STOKER_OK; sequence++) {
        while (rc == STOKER_OK && boundary == sequence &&
               in->documents.next < in->documents.count) {
            if (in->documents.next > 1) /* the first entry ends nothing */
                rc = add_start(finding, starts, file->path, file->first + begun, error);
            begun = tokens;
            if (rc == STOKER_OK)
                rc = take_boundary(file, in, &boundary, error);
        }
        if (rc != STOKER_OK || sequence == file->sequences)
            break;
        rc = take_sequence(finding, file, in, &tokens, error);
    }
    if (rc == STOKER_OK && in->documents.count > 1)
        rc = add_start(finding, starts, file->path, file->first + begun, error);
    return rc;
}

static int open_index(struct finding *finding, uint32_t index, struct index_reading *in,
                      stoker_error *error)
{
    const struct stk_token_file *file = &finding->tokens->files[index];
    struct stk_source source = STK_SOURCE_CLOSED;
    int rc = stk_source_open(&source, finding->tokens->storage, file->index_path, error);
    if (rc != STOKER_OK)
        return rc;
    in->lengths.source = in->offsets.source = in->documents.source = &source;
    in->lengths.at = STK_MEGATRON_HEADER_BYTES;
    in->offsets.at = stk_megatron_offsets_at(file);
    in->documents.at = stk_megatron_documents_at(file);
    in->lengths.entry_bytes = 4;
    in->offsets.entry_bytes = in->documents.entry_bytes = 8;
    in->lengths.count = in->offsets.count = file->sequences;
    in->documents.count = file->boundaries;
    in->lengths.next = in->offsets.next = in->documents.next = 0;
    rc = read_index(finding, index, in, error);
    stk_source_close(&source);
    return rc;
}

static int read_indices(struct finding *finding, stoker_error *error)
{
    struct index_reading *in = stk_calloc(1, sizeof(*in));
    int rc = STOKER_OK;
    if (in == NULL)
        return stk_refuse_file(error, STOKER_ENOMEM, NULL, STOKER_NO_OFFSET,
                               "tokens: the index of documents");
    for (uint32_t i = 0; i < finding->tokens->file_count && rc == STOKER_OK; i++)
        rc = open_index(finding, i, in, error);
    stk_free(in);
    return rc;
}

/* ---- all of them ---------------------------------------------------------------- */

/* Join the lists of all pieces. */
static int join_pieces(struct finding *finding, stoker_error *error)
{
    struct stk_tokens *tokens = finding->tokens;
    uint64_t count = 0;
    for (uint64_t i = 0; i < finding->piece_count; i++)
        count += finding->pieces[i].count;
    if (count > finding->starts_max)
        return stk_refuse_file(error, STOKER_ELIMIT, tokens->files[0].path, STOKER_NO_OFFSET,
                               "tokens: the index of documents exceeds max_bytes");
    if (stk_region_map(&tokens->start_memory, (size_t)(count + 1) * sizeof(uint64_t)) != STOKER_OK)
        return stk_refuse_file(error, STOKER_ENOMEM, tokens->files[0].path, STOKER_NO_OFFSET,
                               "tokens: the index of documents");
    tokens->starts = tokens->start_memory.base;
    uint64_t *at = tokens->starts;
    for (uint64_t i = 0; i < finding->piece_count; i++) {
        const struct starts *starts = &finding->pieces[i];
        if (starts->count > 0)
            memcpy(at, starts->at, (size_t)starts->count * sizeof(at[0]));
        at += starts->count;
    }
    *at = tokens->count;
    tokens->document_count = count;
    return STOKER_OK;
}

/* Cut the files in pieces; without `ranges` only count them. */
static uint64_t cut_pieces(const struct stk_tokens *tokens, struct stk_token_range *ranges)
{
    uint64_t pieces = 0;
    for (uint32_t i = 0; i < tokens->file_count; i++)
        for (uint64_t done = 0; done < tokens->files[i].count; done += PIECE_TOKENS) {
            const uint64_t left = tokens->files[i].count - done;
            if (ranges != NULL)
                ranges[pieces] =
                    (struct stk_token_range){ i, done, left < PIECE_TOKENS ? left : PIECE_TOKENS };
            pieces++;
        }
    return pieces;
}

static int scan_all(struct finding *finding, stoker_error *error)
{
    finding->ranges = stk_calloc((size_t)finding->piece_count, sizeof(finding->ranges[0]));
    if (finding->ranges == NULL)
        return stk_refuse_file(error, STOKER_ENOMEM, NULL, STOKER_NO_OFFSET,
                               "tokens: the index of documents");
    (void)cut_pieces(finding->tokens, finding->ranges);
    finding->failed_piece = UINT64_MAX;
    pthread_mutex_init(&finding->lock, NULL);
    stk_threads_run(
        stk_threads_together(finding->piece_count, stk_storage_is_far(finding->tokens->storage)),
        "stoker-tokens", scan, finding);
    pthread_mutex_destroy(&finding->lock);
    if (finding->failed_piece == UINT64_MAX)
        return STOKER_OK;
    if (error != NULL)
        *error = finding->failure;
    return finding->failure.code;
}

int stk_tokens_find_documents(struct stk_tokens *tokens, uint64_t bytes_max, stoker_error *error)
{
    const bool marked = tokens->eos != STK_TOKENS_NONE || tokens->bos != STK_TOKENS_NONE;
    assert(tokens->starts == NULL);
    if (!marked && !tokens->has_index)
        return stk_refuse_file(
            error, STOKER_ESPEC, tokens->files[0].path, STOKER_NO_OFFSET,
            "tokens: documents need eos=TOKEN or bos=TOKEN, or files of Megatron");
    struct finding finding = { .tokens = tokens, .starts_max = bytes_max / sizeof(uint64_t) };
    finding.piece_count = marked ? cut_pieces(tokens, NULL) : tokens->file_count;
    finding.pieces = stk_calloc((size_t)finding.piece_count, sizeof(finding.pieces[0]));
    if (finding.pieces == NULL)
        return stk_refuse_file(error, STOKER_ENOMEM, NULL, STOKER_NO_OFFSET,
                               "tokens: the index of documents");
    int rc = marked ? scan_all(&finding, error) : read_indices(&finding, error);
    if (rc == STOKER_OK)
        rc = join_pieces(&finding, error);
    for (uint64_t i = 0; i < finding.piece_count; i++)
        stk_free(finding.pieces[i].at);
    stk_free(finding.pieces);
    stk_free(finding.ranges);
    return rc;
}

struct stk_token_range stk_tokens_document(const struct stk_tokens *tokens, uint64_t index)
{
    assert(index < tokens->document_count);
    const uint64_t start = tokens->starts[index]; /* an empty last one starts behind all tokens */
    const uint32_t file =
        stk_tokens_file_of(tokens, start < tokens->count ? start : tokens->count - 1);
    return (struct stk_token_range){ .file = file,
                                     .offset = start - tokens->files[file].first,
                                     .length = tokens->starts[index + 1] - start };
}

uint64_t stk_tokens_document_of(const struct stk_tokens *tokens, uint64_t number)
{
    assert(number < tokens->count);
    uint64_t low = 0, high = tokens->document_count; /* the document is in [low, high) */
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (tokens->starts[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    return low;
}
