/* networks.c - see networks.h. Parameters are found in a checkpoint by the layers' names, which are
 * those that PyTorch users expect.
 */
#include "trainer/programs/networks.h"

static void conv(stoker_model *net, const char *name, uint32_t filters, uint32_t side)
{
    const stoker_conv2d options = { .filters = filters, .kernel = { side, side } };
    (void)stoker_model_conv2d(net, name, &options); /* the model keeps its first error */
}

static void linear(stoker_model *net, const char *name, uint32_t features)
{
    const stoker_linear options = { .features = features };
    (void)stoker_model_linear(net, name, &options);
}

static void max_pool(stoker_model *net, const char *name)
{
    const stoker_pool2d options = { .kernel = { 2, 2 } };
    (void)stoker_model_max_pool2d(net, name, &options);
}

/* After train_mnist_fast (tuomaso), with fewer filters and half the hidden units, made up for by
 * slightly longer training. Pooling before ReLU does the same on a quarter of the values. */
static void build_fast(stoker_model *net)
{
    conv(net, "conv1", 16, 5);
    max_pool(net, "pool1");
    (void)stoker_model_relu(net, "relu1");
    conv(net, "conv2", 32, 3);
    max_pool(net, "pool2");
    (void)stoker_model_relu(net, "relu2");
    (void)stoker_model_flatten(net, "flatten");
    linear(net, "fc1", 128);
    (void)stoker_model_relu(net, "relu3");
}

/* BatchNorm has a bias for each filter, so the convolutions need none. */
static void normed_conv(stoker_model *net, const char *conv_name, const char *norm_name,
                        uint32_t filters)
{
    const stoker_conv2d options = { .filters = filters, .kernel = { 3, 3 }, .no_bias = true };
    (void)stoker_model_conv2d(net, conv_name, &options);
    (void)stoker_model_batch_norm(net, norm_name, NULL);
}

/* As build_fast, normalized. */
static void build_batchnorm(stoker_model *net)
{
    normed_conv(net, "conv1", "bn1", 16);
    max_pool(net, "pool1");
    (void)stoker_model_relu(net, "relu1");
    normed_conv(net, "conv2", "bn2", 32);
    max_pool(net, "pool2");
    (void)stoker_model_relu(net, "relu2");
    (void)stoker_model_flatten(net, "flatten");
    linear(net, "fc1", 128);
    (void)stoker_model_relu(net, "relu3");
}

/* PyTorch's examples/mnist. */
static void build_pytorch(stoker_model *net)
{
    conv(net, "conv1", 32, 3);
    (void)stoker_model_relu(net, "relu1");
    conv(net, "conv2", 64, 3);
    (void)stoker_model_relu(net, "relu2");
    max_pool(net, "pool");
    (void)stoker_model_dropout(net, "dropout1", 0.25F);
    (void)stoker_model_flatten(net, "flatten");
    linear(net, "fc1", 128);
    (void)stoker_model_relu(net, "relu3");
    (void)stoker_model_dropout(net, "dropout2", 0.5F);
}

static int build_housing(stoker_model *net)
{
    linear(net, "fc1", 16);
    (void)stoker_model_relu(net, "relu1");
    linear(net, "fc2", 32);
    (void)stoker_model_relu(net, "relu2");
    linear(net, "fc3", 1);
    return stoker_model_mse(net);
}

int network_build(stoker_model **out, const struct arguments *arguments,
                  const stoker_dataset_info *samples, stoker_error *error)
{
    uint32_t shape[STOKER_RANK_MAX] = { 0 };
    for (uint32_t axis = 0; axis < samples->rank; axis++)
        shape[axis] =
            samples->shape[axis] > UINT32_MAX ? UINT32_MAX : (uint32_t)samples->shape[axis];
    stoker_model *net = NULL;
    int rc = stoker_model_create(&net, shape, samples->rank, error);
    if (rc != STOKER_OK)
        return rc;
    if (arguments->preset == PRESET_HOUSING) {
        rc = build_housing(net);
    } else {
        if (arguments->preset == PRESET_FAST)
            build_fast(net);
        else if (arguments->preset == PRESET_BATCHNORM)
            build_batchnorm(net);
        else
            build_pytorch(net);
        linear(net, "fc2", samples->class_count);
        rc = stoker_model_softmax_cross_entropy(net, (float)arguments->label_smoothing);
    }
    if (rc == STOKER_OK) {
        *out = net;
        return STOKER_OK;
    }
    *error = *stoker_model_error(net);
    stoker_model_destroy(&net);
    return rc;
}
