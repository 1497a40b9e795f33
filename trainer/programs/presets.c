/* presets.c - see presets.h.
 *
 *   fast      234 updates, Adam with a one-cycle rate: settings after tuomaso's train_mnist_fast,
 *             and smoothed labels
 *   pytorch   those of PyTorch's examples/mnist
 *   batchnorm those of fast
 *   housing   Adam at a constant rate
 */
#include "trainer/programs/presets.h"

static void set_base(struct arguments *arguments)
{
    *arguments = (struct arguments){ .action = ACTION_TRAIN,
                                     .mean = -1.0,
                                     .workers = STOKER_WORKERS_AUTO,
                                     .batch_size = 64,
                                     .accumulate = 1,
                                     .learning_rate = (double)STOKER_OPTIMIZER_DEFAULT,
                                     .betas = { 0.9, 0.999 },
                                     .gamma = 0.1,
                                     .peer_timeout = 120,
                                     .eval_every = 1 };
}

static void set_fast(struct arguments *arguments)
{
    arguments->epochs = 1;
    arguments->steps =
        /* the whole batches of one epoch of MNIST: a GPU captures a step for each size of
         * batch */
        234;
    arguments->batch_size = 256;
    arguments->optimizer = STOKER_OPTIMIZER_ADAM;
    arguments->learning_rate = 0.015;
    arguments->label_smoothing = 0.1; /* without it one epoch is not enough */
    arguments->betas[0] = 0.7;
    arguments->betas[1] = 0.9;
    arguments->schedule = STOKER_SCHEDULE_ONE_CYCLE;
}

static void set_pytorch(struct arguments *arguments)
{
    arguments->epochs = 3;
    arguments->optimizer = STOKER_OPTIMIZER_ADADELTA;
    arguments->learning_rate = 1.0;
    arguments->schedule = STOKER_SCHEDULE_STEP;
    arguments->gamma = 0.7;
}

static void set_housing(struct arguments *arguments)
{
    arguments->epochs = 300;
    arguments->batch_size = 128;
    arguments->optimizer = STOKER_OPTIMIZER_ADAM;
    arguments->learning_rate = 0.01;
    arguments->eval_every = 50;
}

void preset_apply(struct arguments *arguments, enum preset preset)
{
    set_base(arguments);
    arguments->preset = preset;
    if (preset == PRESET_FAST || preset == PRESET_BATCHNORM)
        set_fast(arguments);
    else if (preset == PRESET_PYTORCH)
        set_pytorch(arguments);
    else
        set_housing(arguments);
}
