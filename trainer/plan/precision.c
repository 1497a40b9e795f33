/* precision.c - see precision.h. */
#include "trainer/plan/precision.h"

#define T       STK_WIDTH_STORAGE
#define FLOAT32 STK_WIDTH_FLOAT32
#define FLOAT64 STK_WIDTH_FLOAT64
#define PLACES  STK_WIDTH_PLACES
#define NONE    STK_WIDTH_NONE

/* name, reads, writes, parameters, sums, keeps */
const struct stk_precision stk_precisions[STK_OP_KINDS] = {
    [STK_OP_CONV_FORWARD] = { "conv forward", T, T, T, FLOAT32, NONE },
    [STK_OP_CONV_BACKWARD_DATA] = { "conv backward data", T, T, T, FLOAT32, NONE },
    [STK_OP_CONV_BACKWARD_WEIGHTS] = { "conv backward weights", T, NONE, NONE, FLOAT32, FLOAT32 },
    [STK_OP_LINEAR_FORWARD] = { "linear forward", T, T, T, FLOAT32, NONE },
    [STK_OP_LINEAR_BACKWARD_DATA] = { "linear backward data", T, T, T, FLOAT32, NONE },
    [STK_OP_LINEAR_BACKWARD_WEIGHTS] = { "linear backward weights", T, NONE, NONE, FLOAT32,
                                         FLOAT32 },
    [STK_OP_MAX_POOL_FORWARD] = { "max pool forward", T, T, NONE, NONE, PLACES },
    [STK_OP_MAX_POOL_BACKWARD] = { "max pool backward", T, T, NONE, FLOAT32, PLACES },
    [STK_OP_AVG_POOL_FORWARD] = { "average pool forward", T, T, NONE, FLOAT32, NONE },
    [STK_OP_AVG_POOL_BACKWARD] = { "average pool backward", T, T, NONE, FLOAT32, NONE },
    [STK_OP_RELU_FORWARD] = { "ReLU forward", T, T, NONE, NONE, NONE },
    [STK_OP_RELU_BACKWARD] = { "ReLU backward", T, T, NONE, NONE, NONE },
    [STK_OP_BATCH_NORM_FORWARD] = { "BatchNorm forward", T, T, FLOAT32, FLOAT32, FLOAT32 },
    [STK_OP_BATCH_NORM_APPLY] = { "BatchNorm again", T, T, FLOAT32, NONE, FLOAT32 },
    [STK_OP_BATCH_NORM_INFER] = { "BatchNorm inference", T, T, FLOAT32, NONE, NONE },
    [STK_OP_BATCH_NORM_BACKWARD] = { "BatchNorm backward", T, T, FLOAT32, FLOAT32, FLOAT32 },
    [STK_OP_DROPOUT_FORWARD] = { "dropout forward", T, T, NONE, NONE, NONE },
    [STK_OP_DROPOUT_BACKWARD] = { "dropout backward", T, T, NONE, NONE, NONE },
    [STK_OP_ADD_FORWARD] = { "add", T, T, NONE, FLOAT32, NONE },
    [STK_OP_ACCUMULATE] = { "sum of gradients", T, T, NONE, FLOAT32, NONE },
    [STK_OP_COPY] = { "copy of a gradient", T, T, NONE, NONE, NONE },
    [STK_OP_CAST] = { "samples", FLOAT32, T, NONE, NONE, NONE },
    [STK_OP_SOFTMAX_CROSS_ENTROPY] = { "softmax cross-entropy", T, T, NONE, FLOAT32, FLOAT64 },
    [STK_OP_MSE] = { "mean squared error", T, T, NONE, FLOAT32, FLOAT64 },
    [STK_OP_CUT] = { "cut of two stages", T, T, NONE, NONE, NONE },
};

const char *stk_width_name(enum stk_width width)
{
    static const char *const names[STK_WIDTHS] = {
        [STK_WIDTH_NONE] = "-",          [STK_WIDTH_STORAGE] = "T",
        [STK_WIDTH_FLOAT32] = "float32", [STK_WIDTH_FLOAT64] = "float64",
        [STK_WIDTH_PLACES] = "places",
    };
    return names[width];
}
