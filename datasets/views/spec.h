/* spec.h - split the spec of a view into the specs in parentheses and the parameters that every
 * spec accepts. */
#ifndef STK_DATASETS_VIEWS_SPEC_H
#define STK_DATASETS_VIEWS_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/dataset.h>
#include <stoker/error.h>

#include "datasets/parameters.h"

enum { STK_SPEC_NESTED_MAX = 16, STK_SPEC_OPERANDS_MAX = 4096 };

/* A piece of a spec, not ended by a NUL. */
struct stk_spec_text {
    const char *at;
    size_t bytes;
};

/* Cut "(SPEC)" off the beginning of *rest, which then begins behind it. Parentheses inside must
 * match. Returns false if *rest does not begin so: then nothing is changed. */
bool stk_spec_operand(const char **rest, struct stk_spec_text *operand);

/* Open a data set in parentheses. `format` is for messages. */
int stk_spec_open(stoker_dataset **out, struct stk_spec_text operand, const char *format,
                  const stoker_dataset_options *options, stoker_error *error);

/* Read a file of sample ids, text or .npy, of at most max_bytes. *ids, of which there is at least
 * one, is freed by stk_free().
 *   text   numbers between blanks and line breaks; '#' begins a comment that ends with its line
 *   .npy   integers on one axis, or a second one of length 1
 * Errors: those of opening and reading, STOKER_EFORMAT (with the offset of the number),
 * STOKER_EEMPTY, STOKER_ELIMIT, STOKER_ENOTSUP (other NumPy types), STOKER_ENOMEM. */
int stk_id_file_read(uint64_t **ids, uint64_t *count, stoker_storage *storage, const char *path,
                     uint64_t max_bytes, stoker_error *error);

/* How deep parentheses are nested, at most. */
uint32_t stk_spec_depth(const char *spec);

/* The parameters that every spec takes. An empty text = not given. */
struct stk_spec_wish {
    char split[STK_PARAMETER_BYTES_MAX];
    char test[STK_PARAMETER_BYTES_MAX];
    char seed[STK_PARAMETER_BYTES_MAX];
    char stratified[STK_PARAMETER_BYTES_MAX];
    char weighted[STK_PARAMETER_BYTES_MAX];
    bool format_reads_seed; /* then both read it */
    bool format_reads_test; /* then it is not in `test` */
};

/* Take these parameters out of a spec: *wish gets them, and `plain`, which has room for the whole
 * spec, gets the rest. `keeps` says which keys the format reads by itself; they stay in `plain`,
 * and only `seed` is also in *wish. NULL = none. STOKER_ESPEC: a key is given twice or its value is
 * too long. */
int stk_spec_take(struct stk_spec_wish *wish, char *plain, const stoker_storage *storage,
                  const char *spec, bool (*keeps)(const char *rest, const char *key),
                  const char *rest, stoker_error *error);

#endif
