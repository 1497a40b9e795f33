/* header.h - the headers of token files.
 *
 *   llm.c      256 int32: magic, version, ...       | tokens   20240520 1 uint16, 20240801 7 uint32
 *   X.idx      MMIDIDX\0\0 | version 1 | dtype | counts | lengths, offsets, documents, modes
 *   .npy       NumPy's, one axis
 *   raw        none
 *
 * Sources: dev/data/data_common.py and llmc/dataloader.h of llm.c;
 * megatron/core/datasets/indexed_dataset.py.
 */
#ifndef STK_DATASETS_TOKENS_HEADER_H
#define STK_DATASETS_TOKENS_HEADER_H

#include "datasets/tokens/stream.h"

enum {
    STK_MEGATRON_HEADER_BYTES = 34,  /* before the lengths of an X.idx */
    STK_MEGATRON_SEQUENCE_BYTES = 12 /* a length of 4 bytes, and an offset of 8 */
};

/* What a file of a set is. */
struct stk_token_header {
    enum stk_token_layout layout;
    stoker_dtype dtype;
};

/* Open the file named file->path, or the X.bin of an X.idx, and check its header: sets all of *file
 * but `first`, and *header. `keep`: leave a local file open (in a storage there is nothing to
 * close). On failure *file only has its path. Errors as stk_tokens_open(). */
int stk_token_file_open(struct stk_token_file *file, struct stk_token_header *header,
                        const struct stk_tokens_wish *wish, bool keep, stoker_error *error);

/* Close it and free its paths. */
void stk_token_file_close(struct stk_token_file *file);

/* The part of an X.idx that holds its offsets, or its documents. */
static inline uint64_t stk_megatron_offsets_at(const struct stk_token_file *file)
{
    return STK_MEGATRON_HEADER_BYTES + 4 * file->sequences;
}
static inline uint64_t stk_megatron_documents_at(const struct stk_token_file *file)
{
    return STK_MEGATRON_HEADER_BYTES + STK_MEGATRON_SEQUENCE_BYTES * file->sequences;
}

#endif
