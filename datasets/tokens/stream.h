/* stream.h - a set of token files as one numbered stream: for tokens: and for packed documents.
 *
 *   file     | header | token 0 | ... |      llm.c .bin, raw, .npy; Megatron .bin with header X.idx
 *   stream   | tokens of file 0 | tokens of file 1 | ...
 *   window   some tokens of one file
 *   document ends at an eos, begins at a bos, or as X.idx says; never crosses into the next file
 *
 * Opening reads one header per file, several at a time, and nothing else: the index of documents is
 * made only by stk_tokens_find_documents(). At most STK_TOKENS_OPEN_MAX local files stay open;
 * others are opened for each read.
 *
 * Threads  Immutable once open, and once the documents are found.
 */
#ifndef STK_DATASETS_TOKENS_STREAM_H
#define STK_DATASETS_TOKENS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/dataset.h>

#include "datasets/source.h"
#include "loader/base/memory/memory.h"

enum {
    STK_TOKENS_OPEN_MAX = 256,    /* local files that stay open */
    STK_TOKENS_FILES_MAX = 65536, /* files of a set */
    STK_TOKENS_TEXT_BYTES = 256   /* room for what opening found */
};

#define STK_TOKENS_NONE INT64_MIN /* no such token: of eos and bos */

enum stk_token_layout {
    STK_TOKENS_ANY, /* as the file's header says */
    STK_TOKENS_LLMC,
    STK_TOKENS_RAW,
    STK_TOKENS_MEGATRON,
    STK_TOKENS_NPY
};

/* How to open a set. */
struct stk_tokens_wish {
    const stoker_storage *storage; /* where they are */
    const char *names; /* a file, or names with braces, `*` and `[...]`; need not be ended */
    size_t name_bytes;
    enum stk_token_layout layout;
    stoker_dtype raw_dtype; /* element type of raw files; NONE = refuse raw files */
    /* The tokens at which documents end and begin, or STK_TOKENS_NONE. Both may be given. */
    int64_t eos, bos;
    const char *format; /* for messages: "tokens" */
};

struct stk_token_file {
    char *path;               /* the file with the tokens */
    struct stk_source source; /* closed, with size and stamp, if it is not kept open */
    uint64_t offset;          /* bytes before the first token */
    uint64_t count;           /* tokens, may be 0 */
    uint64_t first;           /* number of its first token in the stream */
    const uint8_t *mapped;    /* all of it; NULL = not mapped */
    /* Megatron's X.idx; else NULL and 0. */
    char *index_path;
    uint64_t sequences;
    uint64_t boundaries; /* entries of its table of documents: one more than documents */
};

struct stk_tokens {
    const stoker_storage *storage; /* where the files are */
    /* In the order of the names; where a glob found them, sorted by strcmp(). */
    struct stk_token_file *files; /* [file_count] */
    uint32_t file_count;
    uint32_t open_count;               /* files that stay open: the first ones */
    uint32_t token_bytes;              /* 1, 2, 4 or 8 */
    stoker_dtype dtype;                /* an integer type, that all files have */
    bool has_index;                    /* every file has an X.idx */
    uint64_t count;                    /* tokens in all files, >= 1 */
    int64_t eos, bos;                  /* as wished for */
    char found[STK_TOKENS_TEXT_BYTES]; /* "3 llm.c files, 300000000 tokens of uint16" */

    /* Once the documents are found: where each begins in the stream, and at the end `count`. */
    uint64_t document_count;
    uint64_t *starts; /* [document_count + 1] */
    struct stk_region start_memory;
};

/* Some tokens of one file. */
struct stk_token_range {
    uint32_t file;
    uint64_t offset; /* tokens of the file before it */
    uint64_t length; /* tokens; 0 = an empty document */
};

/* Open all files of a set. On failure *out is all zero. Errors: STOKER_ESPEC (malformed names),
 * STOKER_ENOENT and others of opening, STOKER_EEMPTY (no file, or no token), STOKER_ELIMIT (too
 * many files), STOKER_EMAGIC, STOKER_EFORMAT, STOKER_ETRUNCATED, STOKER_EOVERSIZE (with file and
 * offset), STOKER_EMISMATCH (files differ in dtype), STOKER_ENOMEM. */
int stk_tokens_open(struct stk_tokens *out, const struct stk_tokens_wish *wish,
                    stoker_error *error);
void stk_tokens_close(struct stk_tokens *tokens); /* all zero is allowed */

/* Map all files. STOKER_ECHANGED (a file changed since it was opened), STOKER_ENOMEM and others of
 * mmap(). */
int stk_tokens_map(struct stk_tokens *tokens, stoker_error *error);

/* Read some tokens, as stored, in this thread; range->offset + range->length <= the file's count.
 * STOKER_ECHANGED: a file that is not kept open was written to, or replaced, since it was
 * opened. */
int stk_tokens_read(const struct stk_tokens *tokens, const struct stk_token_range *range, void *to,
                    stoker_error *error);

/* Make the index of documents: from X.idx if all files have one and neither eos nor bos is given,
 * else by reading all tokens once, with a few threads. It takes 8 bytes per document, within
 * bytes_max. Only an X.idx has documents without tokens. Errors: STOKER_ESPEC (no eos, bos or
 * X.idx), STOKER_EFORMAT, STOKER_ECORRUPT (an X.idx whose documents are out of order, or beyond its
 * .bin), STOKER_ELIMIT (bytes_max), STOKER_ENOMEM, those of reading. */
int stk_tokens_find_documents(struct stk_tokens *tokens, uint64_t bytes_max, stoker_error *error);

/* Document `index` < document_count. */
struct stk_token_range stk_tokens_document(const struct stk_tokens *tokens, uint64_t index);

/* The document that holds token `number` < count of the stream. O(log documents). */
uint64_t stk_tokens_document_of(const struct stk_tokens *tokens, uint64_t number);

/* The file that holds token `number` < count of the stream. O(log files). */
uint32_t stk_tokens_file_of(const struct stk_tokens *tokens, uint64_t number);

#endif
