/* parameters.h - the "key=value&key=value" part of a spec. */
#ifndef STK_DATASETS_PARAMETERS_H
#define STK_DATASETS_PARAMETERS_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/dataset.h>

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
