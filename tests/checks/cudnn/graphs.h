/* graphs.h - every graph of a training step of three networks: `fast` and `pytorch` (the presets of
 * the program mnist) and ResNet-18 on 224x224 images (He, Zhang, Ren, Sun, CVPR 2016, table 1).
 * BatchNorm has no graph: it is an own kernel. */
#ifndef STK_TEST_CUDNN_GRAPHS_H
#define STK_TEST_CUDNN_GRAPHS_H

#include "trainer/backend/cuda/cudnn/forms.h"

/* The types of a graph. */
enum { FLOAT16_ONLY = 1, BFLOAT16_ONLY = 2, FLOAT32_ONLY = 4, ALL_TYPES = 7 };

struct listed_graph {
    const char *network;
    enum stk_form form;
    int types;
    struct stk_form_shape shape;
};

#define MNIST(network, form, ...)                                                                  \
    {                                                                                              \
        network, form, ALL_TYPES,                                                                  \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define VALID   { 1, 1 }, { 0, 0 }, 1 /* stride 1, no padding, one group */
#define FAST_1  128, 28, 28, 1, 16, { 5, 5 }, VALID
#define FAST_2  128, 12, 12, 16, 32, { 3, 3 }, VALID
#define TORCH_1 64, 28, 28, 1, 32, { 3, 3 }, VALID
#define TORCH_2 64, 26, 26, 32, 64, { 3, 3 }, VALID

/* A 3x3 convolution that keeps the image's size, one that halves it, and the 1x1 beside that. */
#define SAME(side, c)     64, side, side, c, c, { 3, 3 }, { 1, 1 }, { 1, 1 }, 1
#define HALF(side, c)     64, side, side, c, 2 * (c), { 3, 3 }, { 2, 2 }, { 1, 1 }, 1
#define SHORTCUT(side, c) 64, side, side, c, 2 * (c), { 1, 1 }, { 2, 2 }, { 0, 0 }, 1
#define STEM              64, 224, 224, 3, 64, { 7, 7 }, { 2, 2 }, { 3, 3 }, 1

#define RESNET(form, types, ...)                                                                   \
    {                                                                                              \
        "resnet18", form, types,                                                                   \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

#define MNIST_WEIGHTS(network, ...)                                                                \
    {                                                                                              \
        network, STK_FORM_BACKWARD_WEIGHTS, ALL_TYPES,                                             \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define RESNET_WEIGHTS(...) RESNET(STK_FORM_BACKWARD_WEIGHTS, ALL_TYPES, __VA_ARGS__)

#define CONVOLUTION(...)                                                                           \
    RESNET(STK_FORM_CONV, ALL_TYPES, __VA_ARGS__),                                                 \
        RESNET(STK_FORM_BACKWARD_DATA, ALL_TYPES, __VA_ARGS__), RESNET_WEIGHTS(__VA_ARGS__)

static const struct listed_graph listed_graphs[] = {
    MNIST("fast", STK_FORM_CONV_BIAS, FAST_1),
    MNIST_WEIGHTS("fast", FAST_1),
    MNIST("fast", STK_FORM_CONV_BIAS, FAST_2),
    MNIST("fast", STK_FORM_BACKWARD_DATA, FAST_2),
    MNIST_WEIGHTS("fast", FAST_2),

    MNIST("pytorch", STK_FORM_CONV_BIAS_RELU, TORCH_1),
    MNIST_WEIGHTS("pytorch", TORCH_1),
    MNIST("pytorch", STK_FORM_CONV_BIAS_RELU, TORCH_2),
    MNIST("pytorch", STK_FORM_BACKWARD_DATA, TORCH_2),
    MNIST_WEIGHTS("pytorch", TORCH_2),

    RESNET(STK_FORM_CONV, ALL_TYPES, STEM),
    RESNET_WEIGHTS(STEM),
    CONVOLUTION(SAME(56, 64)),
    CONVOLUTION(HALF(56, 64)),
    CONVOLUTION(SHORTCUT(56, 64)),
    CONVOLUTION(SAME(28, 128)),
    CONVOLUTION(HALF(28, 128)),
    CONVOLUTION(SHORTCUT(28, 128)),
    CONVOLUTION(SAME(14, 256)),
    CONVOLUTION(HALF(14, 256)),
    CONVOLUTION(SHORTCUT(14, 256)),
    CONVOLUTION(SAME(7, 512)),
};
enum { LISTED_GRAPHS = sizeof(listed_graphs) / sizeof(listed_graphs[0]) };

#endif
