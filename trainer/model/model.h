/* model.h - the layers and parameters of a network, as the plan and the files use them.
 *
 *   value 0      the samples
 *   value n      the output of layer n      (layers[0] is the input, which writes value 0)
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
    STK_CUT /* the input or the loss of a stage, if another device has the layers beside it */
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
    enum stk_parameter_role role; /* all decay, as in PyTorch */
    uint64_t offset;              /* floats from the start of the arena */
    uint64_t elements;            /* floats, without padding */
    uint32_t rank;
    uint32_t torch_shape[4]; /* conv [filters][in/groups][kh][kw], linear [out][in], others [n] */
    /* If the layer reads a flattened image, its shape, else all 0: PyTorch orders the columns of a
     * linear weight, and the elements of BatchNorm on rank 1, by c,h,w; here it is h,w,c. */
    struct stk_shape flattened;
};

struct stk_layer {
    enum stk_layer_kind kind;
    char name[STOKER_LAYER_NAME_MAX];
    uint32_t input; /* the layer whose output it reads */
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
    uint64_t parameter_floats;   /* size of the arena, with padding */
    uint64_t parameter_elements; /* without padding */
    struct stk_parameter *statistics;
    uint32_t statistic_count, statistic_capacity;
    uint64_t statistic_floats;
    uint32_t next_input;    /* the layer that the next one reads */
    uint32_t layers_before; /* in half a network: layer i is layer i + layers_before of the whole */
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

/* Initializes the arenas as PyTorch does: Conv2d and Linear uniform in +-1/sqrt(fan in), weight and
 * bias (kaiming_uniform, a = sqrt 5); BatchNorm2d 1 and 0; statistics 0 and 1; padding 0. The
 * counter-based generator keyed by seed gives the same numbers on every machine. */
void stk_model_initialize(const stoker_model *model, uint64_t seed, float *parameters,
                          float *statistics);

#endif
