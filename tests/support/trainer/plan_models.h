/* plan_models.h - networks for the tests of model and plan. A plain program defines STK_TEST_PLAIN
 * first. */
#ifndef STK_TEST_PLAN_MODELS_H
#define STK_TEST_PLAN_MODELS_H

#ifdef STK_TEST_PLAIN
#include "support/plain_assert.h"
#else
#include <criterion/criterion.h>
#endif
#include <stdio.h>
#include <stoker/model.h>

#include "loader/base/rng.h"
#include "trainer/model/model.h"

static inline stoker_model *stk_test_begin(uint32_t h, uint32_t w, uint32_t c)
{
    stoker_model *model = NULL;
    const uint32_t image[3] = { h, w, c };
    cr_assert_eq(stoker_model_create(&model, h == 0 ? &c : image, h == 0 ? 1 : 3, NULL), STOKER_OK);
    return model;
}

static inline stoker_model *stk_test_end(stoker_model *model)
{
    const stoker_error *error = stoker_model_error(model);
    cr_assert_null(error, "%s", error == NULL ? "" : error->message);
    return model;
}

static inline void stk_test_conv(stoker_model *model, const char *name, uint32_t filters,
                                 uint32_t groups)
{
    (void)stoker_model_conv2d(
        model, name,
        &(stoker_conv2d){
            .filters = filters, .kernel = { 3, 3 }, .padding = { 1, 1 }, .groups = groups });
}

static inline void stk_test_linear(stoker_model *model, const char *name, uint32_t features)
{
    (void)stoker_model_linear(model, name, &(stoker_linear){ .features = features });
}

/* The network of PyTorch's MNIST example, with its dropouts or without. */
static inline stoker_model *stk_test_mnist_net(bool drops)
{
    stoker_model *model = stk_test_begin(28, 28, 1);
    (void)stoker_model_conv2d(model, "conv1",
                              &(stoker_conv2d){ .filters = 32, .kernel = { 3, 3 } });
    (void)stoker_model_relu(model, "relu1");
    (void)stoker_model_conv2d(model, "conv2",
                              &(stoker_conv2d){ .filters = 64, .kernel = { 3, 3 } });
    (void)stoker_model_relu(model, "relu2");
    (void)stoker_model_max_pool2d(model, "pool", &(stoker_pool2d){ .kernel = { 2, 2 } });
    if (drops)
        (void)stoker_model_dropout(model, "dropout1", 0.25F);
    (void)stoker_model_flatten(model, "flatten");
    stk_test_linear(model, "fc1", 128);
    (void)stoker_model_relu(model, "relu3");
    if (drops)
        (void)stoker_model_dropout(model, "dropout2", 0.5F);
    stk_test_linear(model, "fc2", 10);
    (void)stoker_model_softmax_cross_entropy(model, 0.0F);
    return stk_test_end(model);
}

static inline stoker_model *stk_test_mnist(void)
{
    return stk_test_mnist_net(true);
}

/* Convolution, BatchNorm, ReLU, eight times; a pool after every second. */
static inline stoker_model *stk_test_bn_net(void)
{
    stoker_model *model = stk_test_begin(32, 32, 3);
    char name[32];
    for (int i = 0; i < 8; i++) {
        (void)snprintf(name, sizeof(name), "conv%d", i);
        stk_test_conv(model, name, 16, 1);
        (void)snprintf(name, sizeof(name), "bn%d", i);
        (void)stoker_model_batch_norm(model, name, NULL);
        (void)snprintf(name, sizeof(name), "relu%d", i);
        (void)stoker_model_relu(model, name);
        (void)snprintf(name, sizeof(name), "pool%d", i);
        if (i % 2 == 1)
            (void)stoker_model_max_pool2d(model, name, &(stoker_pool2d){ .kernel = { 2, 2 } });
    }
    (void)stoker_model_global_avg_pool(model, "mean");
    (void)stoker_model_flatten(model, "flatten");
    stk_test_linear(model, "fc", 10);
    (void)stoker_model_softmax_cross_entropy(model, 0.1F);
    return stk_test_end(model);
}

/* Blocks as in ResNet; the first widens, with a convolution in its shortcut. */
static inline stoker_model *stk_test_residual(void)
{
    stoker_model *model = stk_test_begin(16, 16, 3);
    stk_test_conv(model, "stem", 8, 1);
    (void)stoker_model_batch_norm(model, "stem.bn", NULL);
    (void)stoker_model_relu(model, "out0");
    for (int i = 1; i <= 6; i++) {
        char from[32];
        char n[6][32];
        static const char *const parts[6] = { "conv1", "bn1", "relu1", "conv2", "bn2", "sum" };
        for (int j = 0; j < 6; j++)
            (void)snprintf(n[j], sizeof(n[j]), "b%d.%s", i, parts[j]);
        (void)snprintf(from, sizeof(from), "out%d", i - 1);
        stk_test_conv(model, n[0], 16, 1);
        (void)stoker_model_batch_norm(model, n[1], NULL);
        (void)stoker_model_relu(model, n[2]);
        stk_test_conv(model, n[3], 16, 1);
        (void)stoker_model_batch_norm(model, n[4], NULL);
        if (i == 1) {
            (void)stoker_model_from(model, from);
            stk_test_conv(model, "shortcut", 16, 1);
            (void)snprintf(from, sizeof(from), "shortcut");
            (void)stoker_model_from(model, n[4]);
        }
        (void)stoker_model_add(model, n[5], from);
        (void)snprintf(from, sizeof(from), "out%d", i);
        (void)stoker_model_relu(model, from);
    }
    (void)stoker_model_global_avg_pool(model, "mean");
    (void)stoker_model_flatten(model, "flatten");
    stk_test_linear(model, "fc", 10);
    (void)stoker_model_softmax_cross_entropy(model, 0.0F);
    return stk_test_end(model);
}

static inline stoker_model *stk_test_depthwise(void)
{
    stoker_model *model = stk_test_begin(12, 12, 8);
    stk_test_conv(model, "depthwise", 8, 8);
    (void)stoker_model_batch_norm(model, "bn1", NULL);
    (void)stoker_model_relu(model, "relu1");
    (void)stoker_model_conv2d(
        model, "pointwise", &(stoker_conv2d){ .filters = 24, .kernel = { 1, 1 }, .no_bias = true });
    (void)stoker_model_batch_norm(model, "bn2", NULL);
    (void)stoker_model_avg_pool2d(model, "pool", &(stoker_pool2d){ .kernel = { 3, 3 } });
    (void)stoker_model_flatten(model, "flatten");
    stk_test_linear(model, "fc", 3);
    (void)stoker_model_mse(model);
    return stk_test_end(model);
}

/* What people seldom write: layers before any parameter, a layer added to itself, a value read
 * three times, BatchNorm twice in a row, ReLU after ReLU and after flatten, dropout of nothing. */
static inline stoker_model *stk_test_awkward(void)
{
    stoker_model *model = stk_test_begin(6, 6, 4);
    (void)stoker_model_relu(model, "first");
    (void)stoker_model_max_pool2d(
        model, "early",
        &(stoker_pool2d){ .kernel = { 3, 3 }, .stride = { 1, 1 }, .padding = { 1, 1 } });
    (void)stoker_model_dropout(model, "nothing", 0.0F);
    (void)stoker_model_batch_norm(model, "bn1", NULL);
    (void)stoker_model_batch_norm(model, "bn2", NULL);
    (void)stoker_model_batch_norm(model, "bn3", NULL);
    (void)stoker_model_relu(model, "relu1");
    (void)stoker_model_relu(model, "relu2");
    (void)stoker_model_add(model, "twice", "relu2");
    (void)stoker_model_add(model, "thrice", "relu2");
    (void)stoker_model_add(model, "with_input", "input");
    (void)stoker_model_from(model, "bn3");
    (void)stoker_model_dropout(model, "drop", 0.5F);
    (void)stoker_model_add(model, "all", "with_input");
    (void)stoker_model_global_max_pool(model, "largest");
    (void)stoker_model_flatten(model, "flatten1");
    (void)stoker_model_flatten(model, "flatten2");
    (void)stoker_model_relu(model, "relu3");
    stk_test_linear(model, "fc1", 4);
    (void)stoker_model_flatten(model, "flatten3");
    (void)stoker_model_relu(model, "relu4");
    (void)stoker_model_dropout(model, "drop2", 0.1F);
    (void)stoker_model_batch_norm(model, "bn4", NULL);
    (void)stoker_model_mse(model);
    return stk_test_end(model);
}

static inline stoker_model *stk_test_chain(uint32_t layers)
{
    stoker_model *model = stk_test_begin(0, 0, 64);
    char name[32];
    for (uint32_t i = 0; i < layers; i++) {
        (void)snprintf(name, sizeof(name), "fc%u", i);
        stk_test_linear(model, name, 64);
        (void)snprintf(name, sizeof(name), "relu%u", i);
        if (i + 1 < layers)
            (void)stoker_model_relu(model, name);
    }
    (void)stoker_model_mse(model);
    return stk_test_end(model);
}

/* One more layer, of any kind that keeps the shape, reading any layer of the kept shape. */
static inline void stk_test_add_random(stoker_model *model, uint32_t number,
                                       struct stk_random random)
{
    char name[32];
    char from[STOKER_LAYER_NAME_MAX];
    char other[STOKER_LAYER_NAME_MAX];
    const uint32_t count = model->layer_count;
    const uint32_t back = random.word[1] % 8;
    (void)snprintf(name, sizeof(name), "l%u", number);
    (void)snprintf(from, sizeof(from), "%s",
                   model->layers[back < 3 && back < count ? count - 1 - back : count - 1].name);
    (void)snprintf(other, sizeof(other), "%s", model->layers[random.word[2] % count].name);
    (void)stoker_model_from(model, from);
    const stoker_pool2d pool = { .kernel = { 3, 3 }, .stride = { 1, 1 }, .padding = { 1, 1 } };
    switch (random.word[0] % 8) {
    case 0:
        stk_test_conv(model, name, 4, random.word[3] % 2 == 0 ? 1 : 4);
        return;
    case 1:
        (void)stoker_model_relu(model, name);
        return;
    case 2:
    case 3:
        (void)stoker_model_batch_norm(model, name, NULL);
        return;
    case 4:
        (void)stoker_model_dropout(model, name, random.word[3] % 2 == 0 ? 0.3F : 0.0F);
        return;
    case 5:
        (void)stoker_model_max_pool2d(model, name, &pool);
        return;
    case 6:
        (void)stoker_model_avg_pool2d(model, name, &pool);
        return;
    default:
        (void)stoker_model_add(model, name, other);
    }
}

static inline stoker_model *stk_test_random(uint64_t seed)
{
    stoker_model *model = stk_test_begin(5, 5, 4);
    const uint32_t layers = 2 + (uint32_t)(stk_mix64(seed) % 30);
    for (uint32_t i = 0; i < layers; i++)
        stk_test_add_random(model, i, stk_philox(seed, 1, i));
    /* What nothing reads yet is added up, so that every layer is on a way to the loss. */
    bool read[STOKER_MODEL_LAYERS_MAX] = { false };
    const uint32_t count = model->layer_count;
    for (uint32_t i = 1; i < count; i++) {
        read[model->layers[i].input] = true;
        if (model->layers[i].kind == STK_ADD)
            read[model->layers[i].other] = true;
    }
    for (uint32_t i = 0; i + 1 < count; i++)
        if (!read[i]) {
            char name[32];
            char other[STOKER_LAYER_NAME_MAX];
            (void)snprintf(name, sizeof(name), "sum%u", i);
            (void)snprintf(other, sizeof(other), "%s", model->layers[i].name);
            (void)stoker_model_add(model, name, other);
        }
    (void)stoker_model_flatten(model, "flatten");
    stk_test_linear(model, "fc", 2);
    (void)stoker_model_softmax_cross_entropy(model, 0.0F);
    return stk_test_end(model);
}

#endif
