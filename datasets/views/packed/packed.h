/* packed.h - a data set of rows that are packed from the documents of another: see
 * stoker_dataset_pack().
 *
 *   fit.c            which row each document of a block lies in
 *   rows.c           the table of all rows
 *   read.c           the tokens of a row: from its documents' extents
 *   fields.c         the fields of a row, from its tokens and where its documents begin
 *   packed.c         checks, callbacks and life
 *   spec.c           packed:LENGTH:(SPEC)?...
 *
 * A row is gathered from several extents, while a part of a sample is one extent. So rows are made
 * (stoker_dataset_ops.make): a worker reads the documents with pread, one after the other, straight
 * into the row. Rows that are to be read in one piece, by many reads in flight, are packed into
 * shards once.
 */
#ifndef STK_DATASETS_VIEWS_PACKED_H
#define STK_DATASETS_VIEWS_PACKED_H

#include "datasets/views/packed/rows.h"

enum {
    STK_PACKED_FIELDS = 7, /* bits of stoker_packed_fields */
    STK_PACKED_TEXT_BYTES = 192
};

struct stk_packed {
    stoker_dataset *documents; /* held */
    uint32_t source;           /* the field of documents that is packed */
    stoker_dtype stored;       /* its type */
    size_t stored_bytes;       /* one element of it */
    stoker_packing packing;
    stoker_dtype dtype;         /* that of tokens, inputs and targets */
    uint32_t row_documents_max; /* documents of the fullest row */
    uint32_t field_count;
    uint32_t bits[STK_PACKED_FIELDS]; /* field i is this bit of stoker_packed_fields */
    struct stk_packed_rows rows;
    char description[STK_PACKED_TEXT_BYTES];
};

/* ---- packed_read.c ---- */

/* Write the tokens of row `row` as stored, without padding, to `tokens`, and where its documents
 * begin, and at the end the number of tokens, to starts[0..count + 1), where count = first[row + 1]
 * - first[row]. */
int stk_packed_read(const struct stk_packed *packed, uint64_t row, void *tokens, int32_t *starts,
                    stoker_error *error);

/* ---- packed_fields.c ---- */

/* Returns true for the integer types that can be packed. */
bool stk_packed_is_token(stoker_dtype dtype);

/* Returns true if a value can be an element of the type. */
bool stk_packed_fits(stoker_dtype dtype, int64_t value);

/* Describe the field of a bit. */
void stk_packed_describe_field(const struct stk_packed *packed, uint32_t bit,
                               stoker_field_info *out);

/* Fill all fields: rows[i] is that of bits[i]. `tokens` are `length` elements as stored, padding
 * included. STOKER_EFORMAT: one does not fit the type. */
int stk_packed_fill(const struct stk_packed *packed, const void *tokens, const int32_t *starts,
                    uint32_t count, stoker_row *rows, stoker_error *error);

/* Fill tokens[from..length) with padding, as stored. */
void stk_packed_pad(const struct stk_packed *packed, void *tokens, uint64_t from);

#endif
