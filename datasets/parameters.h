/* parameters.h - a spec behind its word: a name, and "key=value&key=value". */
#ifndef STK_DATASETS_PARAMETERS_H
#define STK_DATASETS_PARAMETERS_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/dataset.h>

/* "images?height=28": the name "images", and "height=28" after the mark '?'. */
struct stk_spec {
    size_t name_bytes;
    const char *after; /* NULL = there is no mark */
};

/* Part a spec at its last mark. A mark may be part of a name, too: where something has the whole
 * text for its name there is none. */
struct stk_spec stk_spec_split(const char *rest, char mark);

/* Write DIR, or DIR/SPLIT where a split is a folder in the folder, to root. `whose` is for messages
 * ("folder"). STOKER_ESPEC: DIR is empty; STOKER_EINVAL: no such split can be; STOKER_ELIMIT. */
int stk_spec_root(char *root, size_t root_bytes, const char *name, size_t name_bytes,
                  const char *split, const char *whose, stoker_error *error);

enum { STK_PARAMETER_BYTES_MAX = 1024 }; /* of a value */

/* One key and where its value goes: exactly one of the targets is set. A key that
 * the text does not name leaves its target alone. */
struct stk_parameter {
    const char *key;
    uint64_t *number; /* decimal */
    uint64_t least;   /* STOKER_EINVAL outside least..most; */
    uint64_t most;    /* STOKER_ELIMIT over most, if ... */
    bool is_size;     /* ... the key says how much there is */
    stoker_dtype *dtype;
    struct stk_shape *shape; /* "28x28x1": lengths >= 1 */
    char *text;              /* any: STK_PARAMETER_BYTES_MAX bytes, the final 0 included */
};

struct stk_shape {
    uint32_t rank; /* 0..STOKER_RANK_MAX - 1 */
    uint64_t lengths[STOKER_RANK_MAX];
};

/* Read text into the targets. `whose` is for messages ("synth:bytes").
 * STOKER_ESPEC: a key is unknown or given twice, or a value not of its kind. */
int stk_parameters_read(const char *text, const struct stk_parameter *table, size_t table_count,
                        const char *whose, stoker_error *error);

#endif
