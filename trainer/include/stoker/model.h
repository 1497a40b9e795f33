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
 * Errors   The first one is kept: every later call on the model returns it and changes
 *          nothing, so checking the last call is enough. The message names the layer and the
 *          shapes that do not fit.
 * Closing  The loss comes last. It is an error if a layer is not read by another, or if the model
 *          has no parameters.
 * Names    Unique, 1..63 bytes of [A-Za-z0-9_.-]. As in PyTorch, "conv1" has the parameters
 *          "conv1.weight" and "conv1.bias" in a checkpoint.
 * Threads  A model is changed by one thread; once built, any number may read it.
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
    STOKER_LAYER_NAME_MAX = 64,          /* bytes, the final 0 included */
    STOKER_MODEL_EXTENT_MAX = 65535,     /* height, width or channels */
    STOKER_MODEL_ELEMENTS_MAX = 1 << 30, /* in a sample, and in each layer's output for it */
    STOKER_MODEL_FEATURES_MAX = 1 << 24  /* outputs of a linear layer */
};
#define STOKER_MODEL_PARAMETERS_MAX (UINT64_C(1) << 36) /* per model */

/* The options of layers. Their sizes never change: new members take the place of reserved ones,
 * which must be 0. A 0 where it is out of range is a member that was not given, and has its
 * default. */

/* Convolution, in the cross-correlation sense of PyTorch. Output extent =
 * floor((in + 2 padding - dilation x (kernel - 1) - 1) / stride) + 1; dilation is 1. */
typedef struct stoker_conv2d {
    uint32_t filters;    /* output channels, 1..65535 */
    uint32_t kernel[2];  /* height, width; 1..255 */
    uint32_t stride[2];  /* 1..255; default 0 = 1 */
    uint32_t padding[2]; /* zeros on each side, < kernel; default 0 */
    uint32_t groups;     /* divides input channels and filters; = input channels: depthwise;
                            default 0 = 1 */
    bool no_bias;        /* default false */
    uint32_t reserved[8];
} stoker_conv2d;

typedef struct stoker_linear {
    uint32_t features; /* outputs, 1..2^24 */
    bool no_bias;      /* default false */
    uint32_t reserved[4];
} stoker_linear;

typedef struct stoker_pool2d {
    uint32_t kernel[2];  /* 1..255 */
    uint32_t stride[2];  /* default 0 = kernel */
    uint32_t padding[2]; /* <= kernel / 2; default 0. -inf for max; zeros that count for average
                            (PyTorch's count_include_pad = True) */
    uint32_t reserved[4];
} stoker_pool2d;

/* Start from STOKER_BATCH_NORM_INIT: 0 is a value. */
typedef struct stoker_batch_norm {
    float epsilon;  /* 0..1; default 1e-5 */
    float momentum; /* share of the new statistics, 0..1; default 0.1; 0 = never change them */
    uint32_t reserved[4];
} stoker_batch_norm;
#define STOKER_BATCH_NORM_DEFAULTS                                                                 \
    STOKER_DEFAULT(epsilon, 1e-5F)                                                                 \
    STOKER_DEFAULT(momentum, 0.1F)

STOKER_MAKER(stoker_batch_norm, STOKER_BATCH_NORM_DEFAULTS)
#define STOKER_BATCH_NORM_INIT STOKER_INITIALIZER(stoker_batch_norm, STOKER_BATCH_NORM_DEFAULTS)

/* Start a network for samples with `rank` (1..3) axes. On success the caller owns *out and calls
 * stoker_model_destroy(); on failure it is unchanged. error may be NULL. */
STOKER_API int stoker_model_create(stoker_model **out, const uint32_t *shape, uint32_t rank,
                                   stoker_error *error);
STOKER_API void stoker_model_destroy(stoker_model **model); /* NULL-safe; sets NULL */

/* Let the next layer read the output of `layer`; "input" names the samples. */
STOKER_API int stoker_model_from(stoker_model *model, const char *layer);

/* Layers. All return 0 or the model's first error: STOKER_EINVAL (an option, a name),
 * STOKER_EMISMATCH (shapes do not fit), STOKER_ELIMIT (too many layers, too large), ENOMEM. */
STOKER_API int stoker_model_conv2d(stoker_model *model, const char *name, const stoker_conv2d *o);
STOKER_API int stoker_model_linear(stoker_model *model, const char *name, const stoker_linear *o);
STOKER_API int stoker_model_max_pool2d(stoker_model *model, const char *name,
                                       const stoker_pool2d *o);
STOKER_API int stoker_model_avg_pool2d(stoker_model *model, const char *name,
                                       const stoker_pool2d *o);
STOKER_API int stoker_model_global_max_pool(stoker_model *model, const char *name); /* -> 1,1,C */
STOKER_API int stoker_model_global_avg_pool(stoker_model *model, const char *name);
STOKER_API int stoker_model_relu(stoker_model *model, const char *name);
/* Normalizes over the last axis. o NULL = the defaults. */
STOKER_API int stoker_model_batch_norm(stoker_model *model, const char *name,
                                       const stoker_batch_norm *o);
STOKER_API int stoker_model_dropout(stoker_model *model, const char *name, float rate); /* 0..<1 */
STOKER_API int stoker_model_flatten(stoker_model *model, const char *name);
/* Adds the output of layer `other` to this layer's input; shapes must be equal. */
STOKER_API int stoker_model_add(stoker_model *model, const char *name, const char *other);

/* Add the loss, which closes the model. Cross-entropy takes rank-1 logits and int64 labels
 * 0..classes-1; label_smoothing 0..<1 as in PyTorch. mse takes float32 labels, one per output, and
 * is the mean over batch and outputs. */
STOKER_API int stoker_model_softmax_cross_entropy(stoker_model *model, float label_smoothing);
STOKER_API int stoker_model_mse(stoker_model *model);

/* The first error, or NULL. Valid until destroy. */
STOKER_API const stoker_error *stoker_model_error(const stoker_model *model);

typedef struct stoker_model_size {
    uint64_t layers;           /* without the input and the loss */
    uint64_t parameters;       /* trained scalars */
    uint64_t flops_per_sample; /* in a forward pass; a multiply-add counts as two */
    uint64_t reserved[4];      /* 0; the size never changes: new members take their place */
} stoker_model_size;
STOKER_API void stoker_model_get_size(const stoker_model *model, stoker_model_size *out);

/* Write a table of layers, output shapes, parameters and FLOPs into text, at most bytes - 1
 * characters and a final 0. Returns the length of the whole table, as snprintf does. */
STOKER_API size_t stoker_model_summary(const stoker_model *model, char *text, size_t bytes);

STOKER_END_DECLS
#endif
