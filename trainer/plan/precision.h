/* precision.h - what each operation stores and computes in, in one table.
 *
 * T is the plan's storage type. With T float16 or bfloat16, values and their gradients take half
 * the bytes, and matrix units work twice as fast or more; what sums up many numbers, or is added to
 * over and over, stays wide: sums, statistics, losses, gradients of parameters, and the parameters
 * themselves, of which convolutions and linear layers read a copy rounded to T. */
#ifndef STK_TRAINER_PRECISION_H
#define STK_TRAINER_PRECISION_H

#include "trainer/plan/plan.h"

enum stk_width {
    STK_WIDTH_NONE,    /* there is nothing of the kind */
    STK_WIDTH_STORAGE, /* T */
    STK_WIDTH_FLOAT32,
    STK_WIDTH_FLOAT64,
    STK_WIDTH_PLACES, /* whole numbers, of one byte or two */
    STK_WIDTHS
};

struct stk_precision {
    const char *name;          /* "conv forward" */
    enum stk_width reads;      /* x, x2, y and dy, as far as the operation has them */
    enum stk_width writes;     /* y or dx */
    enum stk_width parameters; /* weight and bias, gamma and beta */
    enum stk_width sums;       /* sums of products or elements: at least this wide, rounded once */
    enum stk_width keeps;      /* aux, gradients of parameters, losses */
};

/* By kind. */
extern const struct stk_precision stk_precisions[STK_OP_KINDS];

/* "T", "float32", ...; "-" for nothing. */
const char *stk_width_name(enum stk_width width);

/* Returns true if values of the type are smaller than a float. */
static inline bool stk_is_narrow(stoker_dtype storage)
{
    return storage == STOKER_DTYPE_FLOAT16 || storage == STOKER_DTYPE_BFLOAT16;
}

/* Returns true if an operation reads parameters that were rounded to T. */
static inline bool stk_reads_rounded(enum stk_op_kind kind)
{
    return stk_precisions[kind].parameters == STK_WIDTH_STORAGE;
}

#endif
