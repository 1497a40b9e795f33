/* trainer_logits.c - what a network with BatchNorm, groups and a flatten in it answers, for
 * check_trainer_torch.py to compare with PyTorch.
 *
 *   trainer_logits WRITE FILE   train a few steps, save the weights to FILE, print the logits
 *   trainer_logits AVERAGE FILE the same with averaged weights (FILE.ema), which answer
 *   trainer_logits READ FILE    load the weights of FILE, print the logits
 *
 * Samples are those of a formula that the script knows, too:
 * x[n] = ((n x 7919) mod 1009) / 504.5 - 1 over all values, labels sample mod 5. */
#include <stdio.h>
#include <stdlib.h>
#include <stoker/trainer.h>
#include <string.h>

enum { SAMPLES = 6, HEIGHT = 9, WIDTH = 7, CHANNELS = 4, CLASSES = 5, STEPS = 4 };
enum { SAMPLE_FLOATS = HEIGHT * WIDTH * CHANNELS };

static int build(stoker_model **net)
{
    const uint32_t shape[] = { HEIGHT, WIDTH, CHANNELS };
    if (stoker_model_create(net, shape, 3, NULL) != STOKER_OK)
        return STOKER_ENOMEM;
    stoker_model_conv2d(
        *net, "conv1",
        &(stoker_conv2d){ .filters = 8, .kernel = { 3, 2 }, .padding = { 1, 0 }, .groups = 2 });
    stoker_model_batch_norm(*net, "bn1", NULL);
    stoker_model_relu(*net, "relu1");
    stoker_model_max_pool2d(*net, "pool", &(stoker_pool2d){ .kernel = { 2, 2 } });
    stoker_model_flatten(*net, "flatten");
    stoker_model_linear(*net, "fc1", &(stoker_linear){ .features = CLASSES });
    return stoker_model_softmax_cross_entropy(*net, 0);
}

static void fill(float *samples, int64_t *labels)
{
    for (uint64_t n = 0; n < SAMPLES * SAMPLE_FLOATS; n++)
        samples[n] = (float)((double)(n * 7919 % 1009) / 504.5 - 1);
    for (int64_t n = 0; n < SAMPLES; n++)
        labels[n] = n % CLASSES;
}

static int train(stoker_trainer *trainer, float *samples, int64_t *labels)
{
    const stoker_batch batch = {
        .struct_size = sizeof(stoker_batch),
        .images = { .data = samples,
                    .dtype = STOKER_DTYPE_FLOAT32,
                    .rank = 4,
                    .shape = { SAMPLES, HEIGHT, WIDTH, CHANNELS } },
        .labels = { .data = labels, .dtype = STOKER_DTYPE_INT64, .rank = 1, .shape = { SAMPLES } },
        .count = SAMPLES
    };
    stoker_step step;
    int rc = STOKER_OK;
    for (int turn = 0; turn < STEPS && rc == STOKER_OK; turn++)
        rc = stoker_trainer_step(trainer, &batch, &step);
    return rc;
}

static int print_logits(stoker_trainer *trainer, const float *samples)
{
    float logits[SAMPLES * CLASSES];
    int rc = stoker_trainer_predict(trainer, samples, SAMPLES, logits);
    for (int n = 0; rc == STOKER_OK && n < SAMPLES * CLASSES; n++)
        printf("%.9g\n", (double)logits[n]);
    return rc;
}

int main(int count, char **arguments)
{
    static float samples[SAMPLES * SAMPLE_FLOATS];
    static int64_t labels[SAMPLES];
    stoker_model *net = NULL;
    stoker_trainer *trainer = NULL;
    stoker_error error = { 0 };
    stoker_trainer_options options = STOKER_TRAINER_OPTIONS_INIT;
    options.learning_rate = 0.05F;
    options.batch_size = SAMPLES;
    if (count != 3)
        return 2;
    if (strcmp(arguments[1], "AVERAGE") == 0)
        options.ema_decay = 0.5F;
    fill(samples, labels);
    int rc = build(&net);
    if (rc == STOKER_OK)
        rc = stoker_trainer_create(&trainer, net, &options, &error);
    if (rc == STOKER_OK && strcmp(arguments[1], "READ") != 0) {
        rc = train(trainer, samples, labels);
        if (rc == STOKER_OK)
            rc = stoker_trainer_save(trainer, arguments[2], NULL, 0, &error);
    } else if (rc == STOKER_OK) {
        rc = stoker_trainer_load_weights(trainer, arguments[2], &error);
    }
    if (rc == STOKER_OK)
        rc = print_logits(trainer, samples);
    if (rc != STOKER_OK)
        fprintf(stderr, "trainer_logits: %s: %s\n", stoker_strerror(rc), error.message);
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&net);
    return rc == STOKER_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
