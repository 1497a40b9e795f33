/* model.h - the layers and parameters of a network, as plan and files see them.
 *
 *   value 0      the samples
 *   value n      what layer n wrote         (layers[0] is the input: it writes value 0)
 *
 * Parameters of all layers lie in one arena in the order of the layers, each at a multiple
 * of STK_ALIGN_FLOATS; running statistics lie in a second one. Weights are channels-last in
 * memory: convolution [filters][kernel h][kernel w][in / groups], linear [out][in]. */
#ifndef STK_TRAINER_MODEL_H
#define STK_TRAINER_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/model.h>

enum { STK_ALIGN_FLOATS = 16, STK_PARAMETERS_PER_LAYER = 2, STK_STATISTICS_PER_LAYER = 2 };

enum stk_layer_kind {
    STK_INPUT,
    STK_CONV2D,
    STK_LINEAR,
    STK_MAX_POOL,
    STK_AVG_POOL,
    STK_RELU,
    STK_BATCH_NORM,
    STK_DROPOUT,
    STK_FLATTEN,
    STK_ADD,
    STK_SOFTMAX_CROSS_ENTROPY,
    STK_MSE,
    STK_SEAM /* of a stage: in place of the input or of the loss, where another device has the layers */
};

/* One sample; rank 1: h = w = 1, c = features. Rank 2 (h, w) has c = 1. */
struct stk_shape {
    uint32_t rank;
    uint32_t h, w, c;
};
static inline uint64_t stk_shape_elements(struct stk_shape s)
{
    return (uint64_t)s.h * s.w * s.c;
}

enum stk_parameter_role { STK_WEIGHT, STK_BIAS };

/* One tensor of the parameter arena or of the statistics arena (mean, variance). */
struct stk_parameter {
    char name[STOKER_LAYER_NAME_MAX + 16]; /* "conv1.weight", "bn1.running_mean" */
    uint32_t layer;
    /* Weight decay applies to every role, biases and BatchNorm's included, as in PyTorch. */
    enum stk_parameter_role role;
    uint64_t offset;   /* floats from the arena's start */
    uint64_t elements; /* floats, padding not counted */
    uint32_t rank;
    uint32_t torch_shape[4]; /* conv [filters][in/groups][kh][kw], linear [out][in], others [n] */
    struct stk_shape flattened; /* what reads a flattened image: its shape, else all 0. PyTorch
                                   orders the columns of a linear weight, and the elements of
                                   BatchNorm on rank 1, by c,h,w and we by h,w,c */
};

struct stk_layer {
    enum stk_layer_kind kind;
    char name[STOKER_LAYER_NAME_MAX];
    uint32_t input; /* layer whose output is read */
    uint32_t other; /* STK_ADD: the second one */
    struct stk_shape in, out;
    struct stk_shape flattened; /* out is this image, flattened; else all 0 */
    uint32_t kernel[2], stride[2], padding[2], groups; /* resolved defaults; pools and conv2d */
    float rate;                                        /* dropout; cross-entropy's smoothing */
    float epsilon, momentum;                           /* BatchNorm */
    int32_t weight, bias; /* index into parameters; -1 = none. BatchNorm: gamma, beta */
    int32_t running_mean, running_var; /* index into statistics; -1 = none */
    uint64_t flops;                    /* forward, one sample */
};

struct stoker_model {
    struct stk_layer *layers; /* [0] is the input, the last is the loss once closed */
    uint32_t layer_count, layer_capacity;
    struct stk_parameter *parameters;
    uint32_t parameter_count, parameter_capacity;
    uint64_t parameter_floats;   /* arena, padding included */
    uint64_t parameter_elements; /* padding not counted */
    struct stk_parameter *statistics;
    uint32_t statistic_count, statistic_capacity;
    uint64_t statistic_floats;
    uint32_t next_input;    /* what the next layer reads */
    uint32_t layers_before; /* of a stage: layer i here is layer i + layers_before of the network */
    bool closed;            /* the loss has been added */
    stoker_error error;     /* code 0 = none */
};

/* "conv2d", "linear", ... */
const char *stk_layer_kind_name(enum stk_layer_kind kind);

/* "26x26x32". */
enum { STK_SHAPE_TEXT_BYTES = 40 };
struct stk_shape_text {
    char text[STK_SHAPE_TEXT_BYTES];
};
struct stk_shape_text stk_shape_text(struct stk_shape shape);

/* Fill the arenas as PyTorch initialises Conv2d, Linear (kaiming_uniform, a = sqrt 5: uniform in
 * +-1/sqrt(fan in), weight and bias) and BatchNorm2d (1 and 0); statistics 0 and 1. Padding is 0.
 * Drawn from the counter-based generator keyed by seed: the same on every machine. */
void stk_model_initialize(const stoker_model *model, uint64_t seed, float *parameters,
                          float *statistics);

#endif
