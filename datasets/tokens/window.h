/* window.h - from the tokens of a window, as stored, to its fields.
 *
 *   stored        t0 t1 t2 | t3 t4 t5          one read of `length` tokens, and one for targets
 *   tokens, inputs  0 .. length - 1            targets  1 .. length
 *   positions     0  1  2    0  1  2           from the first token of the document in the window
 *   documents     0  0  0    1  1  1           counted in the window
 *   document_ids  7  7  7    8  8  8           in the stream: needs the index of documents
 *   cu_seqlens    0 3 6                        varying: where documents begin, and the end
 */
#ifndef STK_DATASETS_TOKENS_WINDOW_H
#define STK_DATASETS_TOKENS_WINDOW_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/codec.h>
#include <stoker/dataset.h>

#include "datasets/tokens/stream.h"
#include "kernels/convert/elements.h"

enum stk_window_field {
    STK_WINDOW_TOKENS,
    STK_WINDOW_INPUTS, /* as TOKENS, with another name */
    STK_WINDOW_TARGETS,
    STK_WINDOW_POSITIONS,
    STK_WINDOW_DOCUMENTS,
    STK_WINDOW_DOCUMENT_IDS,
    STK_WINDOW_CU_SEQLENS,
    STK_WINDOW_MAX_SEQLEN,
    STK_WINDOW_FIELDS
};

struct stk_window {
    const struct stk_tokens *tokens; /* with its documents, if any field needs them */
    enum stk_window_field fields[STK_WINDOW_FIELDS];
    uint32_t field_count;     /* >= 1; the first is TOKENS, INPUTS or TARGETS */
    uint32_t length;          /* tokens, >= 1 */
    uint32_t documents_max;   /* parts of documents that a window may have; >= 1 */
    stoker_dtype dtype;       /* delivered tokens */
    stk_elements_fn *convert; /* from tokens->dtype to dtype */
    bool checked;             /* from unsigned to signed of the same width: a token may not fit */
    /* The number in the stream of a window's first token. */
    uint64_t (*first)(const void *self, uint64_t id);
    const void *self;
    stoker_codec codec; /* set by stk_window_init() */
};

/* Parse "inputs,targets,positions". Returns NULL, or what is wrong, a static text. */
const char *stk_window_parse(struct stk_window *window, const char *fields);

/* Make the codec of a window whose other members are set. */
void stk_window_init(struct stk_window *window);

/* Describe field `field`, which comes from part 0. */
void stk_window_describe(const struct stk_window *window, uint32_t field, stoker_field_info *out);

bool stk_window_has(const struct stk_window *window, enum stk_window_field field);

/* Tokens that one window reads. */
static inline uint64_t stk_window_tokens(const struct stk_window *window)
{
    return (uint64_t)window->length + (stk_window_has(window, STK_WINDOW_TARGETS) ? 1 : 0);
}

/* Returns true if some field needs to know where documents begin. */
bool stk_window_needs_documents(const struct stk_window *window);

/* Returns true if a window is delivered as it is stored. */
bool stk_window_is_raw(const struct stk_window *window);

#endif
