/* stoker/model.h - a network as a list of layers, checked while it is built.
 *
 *   stoker_model_create(&net, (uint32_t[]){ 28, 28, 1 }, 3, &error);
 *   stoker_model_conv2d(net, "conv1", &(stoker_conv2d){ .filters = 32, .kernel = { 3, 3 } });
 *   stoker_model_relu(net, "relu1");
 *   stoker_model_flatten(net, "flatten");
 *   stoker_model_linear(net, "fc1", &(stoker_linear){ .features = 10 });
 *   rc = stoker_model_softmax_cross_entropy(net, 0.0F);
 *
 * A layer reads the output of the layer before it; after stoker_model_from(), of another layer.
 * Images are channels-last: height, width, channels.
 *
 * Errors   The model keeps the first one: every later call returns it and changes nothing, so
 *          checking the last call is enough. The message names the layer and the shapes.
 * Closing  The loss is the last layer. A model without parameters, or with a layer whose output
 *          nothing reads, cannot be closed.
 * Names    Unique, 1..63 bytes of [A-Za-z0-9_.-]. As in PyTorch, "conv1" has the parameters
 *          "conv1.weight" and "conv1.bias" in a checkpoint.
 * Threads  Build a model in one thread; once closed, any number may read it.
 */
#ifndef STOKER_MODEL_H
#define STOKER_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/export.h>

STOKER_BEGIN_DECLS

typedef struct stoker_model stoker_model;

enum {
    STOKER_MODEL_LAYERS_MAX = 8192,
    STOKER_LAYER_NAME_MAX = 64,          /* bytes, including the final 0 */
    STOKER_MODEL_EXTENT_MAX = 65535,     /* height, width or channels */
    STOKER_MODEL_ELEMENTS_MAX = 1 << 30, /* per sample: of the input and of each layer */
    STOKER_MODEL_FEATURES_MAX = 1 << 24  /* outputs of a linear layer */
};
#define STOKER_MODEL_PARAMETERS_MAX (UINT64_C(1) << 36) /* per model */

/* The layers' options. Their sizes never change: new members replace reserved ones, which must be
 * 0. A 0 that is out of range means the default. */

/* Convolution as in PyTorch (a cross-correlation), without dilation, of a height x width x channels
 * input. Output extent = floor((in + 2 padding - kernel) / stride) + 1, also for pools. */
typedef struct stoker_conv2d {
    uint32_t filters;    /* output channels, 1..65535 */
    uint32_t kernel[2];  /* height, width; 1..255 */
    uint32_t stride[2];  /* 1..255; default 0 = 1 */
    uint32_t padding[2]; /* zeros on each side, < kernel; default 0 */
    /* Divides the input channels and filters; default 0 = 1. Input channels = depthwise. */
    uint32_t groups;
    bool no_bias; /* default false */
    uint32_t reserved[8];
} stoker_conv2d;

/* Fully connected layer of an input with one axis. */
typedef struct stoker_linear {
    uint32_t features; /* outputs, 1..2^24 */
    bool no_bias;      /* default false */
    uint32_t reserved[4];
} stoker_linear;

/* Pooling of a height x width x channels input. Padding is -inf for max; for average it is zeros
 * that count (PyTorch's count_include_pad = True). */
typedef struct stoker_pool2d {
    uint32_t kernel[2];  /* height, width; 1..255 */
    uint32_t stride[2];  /* 1..255; default 0 = kernel */
    uint32_t padding[2]; /* on each side, <= kernel / 2; default 0 */
    uint32_t reserved[4];
} stoker_pool2d;

/* Start from STOKER_BATCH_NORM_INIT: 0 is a value, not the default. */
typedef struct stoker_batch_norm {
    float epsilon;  /* 0..1; default 1e-5 */
    float momentum; /* weight of a batch in the running statistics, 0..1; default 0.1 */
    uint32_t reserved[4];
} stoker_batch_norm;
#define STOKER_BATCH_NORM_DEFAULTS                                                                 \
    STOKER_DEFAULT(epsilon, 1e-5F)                                                                 \
    STOKER_DEFAULT(momentum, 0.1F)

STOKER_MAKER(stoker_batch_norm, STOKER_BATCH_NORM_DEFAULTS)
#define STOKER_BATCH_NORM_INIT STOKER_INITIALIZER(stoker_batch_norm, STOKER_BATCH_NORM_DEFAULTS)

/* Start a model for samples of shape[rank], rank 1..3: features, height x width, or height x width
 * x channels. On success the caller owns *out; on failure it is unchanged. error may be NULL.
 * STOKER_EINVAL, ELIMIT, ENOMEM. */
STOKER_API int stoker_model_create(stoker_model **out, const uint32_t *shape, uint32_t rank,
                                   stoker_error *error);
STOKER_API void stoker_model_destroy(stoker_model **model); /* NULL-safe; sets *model to NULL */

/* Make the next layer read the output of `layer`; "input" names the samples. STOKER_EINVAL, or the
 * model's first error. */
STOKER_API int stoker_model_from(stoker_model *model, const char *layer);

/* Add a layer; names and options are copied. Returns 0 or the model's first error: STOKER_EINVAL
 * (an option, a name), EMISMATCH (shapes do not fit), ELIMIT (too many layers, too large), ENOMEM.
 * */
STOKER_API int stoker_model_conv2d(stoker_model *model, const char *name, const stoker_conv2d *o);
STOKER_API int stoker_model_linear(stoker_model *model, const char *name, const stoker_linear *o);
STOKER_API int stoker_model_max_pool2d(stoker_model *model, const char *name,
                                       const stoker_pool2d *o);
STOKER_API int stoker_model_avg_pool2d(stoker_model *model, const char *name,
                                       const stoker_pool2d *o);
/* Pool the whole image: the output is 1 x 1 x channels. Max: height x width <= 65536. */
STOKER_API int stoker_model_global_max_pool(stoker_model *model, const char *name);
STOKER_API int stoker_model_global_avg_pool(stoker_model *model, const char *name);
STOKER_API int stoker_model_relu(stoker_model *model, const char *name);
/* Normalize each channel (the last axis) of an input with one or three axes. o NULL = the
 * defaults. */
STOKER_API int stoker_model_batch_norm(stoker_model *model, const char *name,
                                       const stoker_batch_norm *o);
STOKER_API int stoker_model_dropout(stoker_model *model, const char *name, float rate); /* 0..<1 */
STOKER_API int stoker_model_flatten(stoker_model *model, const char *name);
/* Add the output of layer `other` to this layer's input; their shapes must be equal. */
STOKER_API int stoker_model_add(stoker_model *model, const char *name, const char *other);

/* Add the loss, named "loss", and close the model. Cross-entropy takes logits with one axis and
 * int64 labels 0..classes - 1; label_smoothing 0..<1 as in PyTorch. Mean squared error takes
 * float32 labels of the output's shape; it is the mean over batch and outputs. Errors as of a
 * layer. */
STOKER_API int stoker_model_softmax_cross_entropy(stoker_model *model, float label_smoothing);
STOKER_API int stoker_model_mse(stoker_model *model);

/* Returns the first error, or NULL if there is none. Valid until destroy. */
STOKER_API const stoker_error *stoker_model_error(const stoker_model *model);

typedef struct stoker_model_size {
    uint64_t layers;           /* without the input and the loss */
    uint64_t parameters;       /* trained scalars */
    uint64_t flops_per_sample; /* in an evaluation pass; a multiply-add counts as two */
    uint64_t reserved[4];      /* 0; the size never changes: new members take their place */
} stoker_model_size;
/* Write the model's size; all 0 if model is NULL. */
STOKER_API void stoker_model_get_size(const stoker_model *model, stoker_model_size *out);

/* Write a table of layers, output shapes, parameters and FLOPs into text: at most bytes - 1
 * characters and a final 0. Returns the length of the whole table, as snprintf() does. */
STOKER_API size_t stoker_model_summary(const stoker_model *model, char *text, size_t bytes);

STOKER_END_DECLS
#endif
