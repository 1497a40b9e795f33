/* parameters.h - parse a spec after its prefix: a name, "key=value&key=value", and
 * "x=X.npy,y=Y.npy". */
#ifndef STK_DATASETS_PARAMETERS_H
#define STK_DATASETS_PARAMETERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/dataset.h>

#include "loader/storage/storage.h"

/* "images?height=28": the name "images", and "height=28" after the mark '?'. */
struct stk_spec {
    size_t name_bytes;
    const char *after; /* NULL = no mark */
};

/* Split a spec at its last mark. A name may contain the mark: if a file has the whole text as its
 * name, the spec is not split. */
struct stk_spec stk_spec_split(const stoker_storage *storage, const char *rest, char mark);

/* For formats without parameters: refuse `rest` if it ends in some, which would be taken for part
 * of a name. STOKER_ESPEC. */
int stk_spec_no_parameters(const stoker_storage *storage, const char *rest, const char *whose,
                           stoker_error *error);

/* Write DIR, or DIR/SPLIT if a split is given, to root. `whose` is for messages ("folder").
 * STOKER_ESPEC: DIR is empty; STOKER_EINVAL: invalid split; STOKER_ELIMIT: too long. */
int stk_spec_root(char *root, size_t root_bytes, const char *name, size_t name_bytes,
                  const char *split, const char *whose, stoker_error *error);

enum { STK_PARAMETER_BYTES_MAX = 1024 }; /* longest value, with its final 0 */

/* One key and its target; exactly one target is set. A key that is not given leaves its target
 * unchanged. */
struct stk_parameter {
    const char *key;
    uint64_t *number; /* decimal */
    uint64_t least;   /* STOKER_EINVAL outside least..most, */
    uint64_t most;    /* but STOKER_ELIMIT over most if ... */
    bool is_size;     /* ... the key is a size or count */
    stoker_dtype *dtype;
    struct stk_shape *shape; /* "28x28x1": lengths >= 1 */
    char *text;              /* any text; has STK_PARAMETER_BYTES_MAX bytes */
};

struct stk_shape {
    uint32_t rank; /* 0..STOKER_RANK_MAX - 1 */
    uint64_t lengths[STOKER_RANK_MAX];
};

/* Read text into the targets. `whose` is for messages ("synth:bytes").
 * STOKER_ESPEC: a key is unknown or given twice, or a value has the wrong type. */
int stk_parameters_read(const char *text, const struct stk_parameter *table, size_t table_count,
                        const char *whose, stoker_error *error);

/* An item of a list, in the list's text. */
struct stk_named {
    char name[STOKER_FIELD_NAME_BYTES]; /* before the '='; "" = none */
    const char *text;                   /* behind it */
    size_t text_bytes;
};

/* Returns true if the text begins with NAME=, a name being 1..63 bytes of letters, digits and
 * "_-.". */
bool stk_named_begins(const char *text);

/* Take the next item from *at and move *at behind it; false at the end of the list. With
 * `all_named` an item reaches to the next comma with a NAME= behind it, so that a text may contain
 * commas; else to the next comma. */
bool stk_named_next(const char **at, bool all_named, struct stk_named *out);

#endif
