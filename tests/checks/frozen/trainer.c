/* trainer.c - a user's program that trains a small network, and prints hashes of what it got: see
 * program.c. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <stoker/model.h>
#include <stoker/stoker.h>
#include <stoker/trainer.h>
#include <stoker/training_log.h>

static void must(int rc, const char *what, const stoker_error *error)
{
    if (rc < 0) {
        fprintf(stderr, "%s: %s: %s\n", what, stoker_error_name(rc),
                error == NULL ? "" : error->message);
        exit(1);
    }
}

static stoker_model *make_model(void)
{
    stoker_model *model = NULL;
    stoker_error error;
    stoker_batch_norm norm = STOKER_BATCH_NORM_INIT;
    must(stoker_model_create(&model, (uint32_t[]){ 28, 28, 1 }, 3, &error), "model", &error);
    stoker_model_conv2d(model, "conv1",
                        &(stoker_conv2d){ .filters = 4, .kernel = { 3, 3 }, .stride = { 2, 2 } });
    stoker_model_batch_norm(model, "norm1", &norm);
    stoker_model_relu(model, "relu1");
    stoker_model_max_pool2d(model, "pool1", &(stoker_pool2d){ .kernel = { 2, 2 } });
    stoker_model_flatten(model, "flatten");
    stoker_model_linear(model, "fc1", &(stoker_linear){ .features = 10 });
    must(stoker_model_softmax_cross_entropy(model, 0.1F), "loss", stoker_model_error(model));
    return model;
}

int main(void)
{
    stoker_error error;
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    stoker_trainer *trainer = NULL;
    stoker_training_log *log = NULL;
    stoker_model *model = make_model();
    stoker_model_size size;
    stoker_model_get_size(model, &size);
    printf("parameters %llu\n", (unsigned long long)size.parameters);

    must(stoker_dataset_open(&dataset, "synth:digits?count=200", NULL, &error), "open", &error);
    stoker_loader_options loading = STOKER_LOADER_OPTIONS_INIT;
    loading.batch_size = 20;
    loading.epochs = 2;
    loading.shuffle = true;
    loading.dtype = STOKER_DTYPE_FLOAT32;
    must(stoker_loader_create(&loader, dataset, &loading, &error), "loader", &error);

    stoker_trainer_options options = STOKER_TRAINER_OPTIONS_INIT;
    options.backend = "ref";
    options.batch_size = 20;
    options.seed = 3;
    options.optimizer = STOKER_OPTIMIZER_ADAMW;
    options.schedule = STOKER_SCHEDULE_COSINE;
    options.total_updates = 20;
    options.accumulate = 2;
    options.ema_decay = 0.9F;
    options.clip_norm = 1.0F;
    must(stoker_trainer_create(&trainer, model, &options, &error), "trainer", &error);
    stoker_training_log_options logging = STOKER_TRAINING_LOG_OPTIONS_INIT;
    must(stoker_training_log_open(&log, &logging, &error), "log", &error);

    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_step step;
    stoker_evaluation sum = { 0 };
    uint64_t steps = 0;
    int rc;
    while ((rc = stoker_loader_next(loader, &batch, -1)) != STOKER_FINISHED) {
        must(rc, "next", stoker_loader_error(loader));
        if (rc != STOKER_OK)
            continue;
        must(stoker_trainer_step(trainer, &batch, &step), "step", stoker_trainer_error(trainer));
        must(stoker_trainer_evaluate(trainer, &batch, &sum), "evaluate",
             stoker_trainer_error(trainer));
        must(stoker_training_log_scalar(log, "train/loss", steps++, step.loss), "scalar", NULL);
        printf("loss %a of %llu, norm %a\n", step.loss, (unsigned long long)step.count,
               (double)step.gradient_norm);
        stoker_batch_release(&batch);
    }
    must(stoker_trainer_flush(trainer, &step), "flush", stoker_trainer_error(trainer));
    stoker_trainer_memory memory;
    stoker_trainer_capture capture;
    stoker_trainer_get_memory(trainer, &memory);
    stoker_trainer_get_capture(trainer, &capture);
    printf("sum %a of %llu, memory %llu, updates %llu, captured %llu\n", sum.loss_sum,
           (unsigned long long)sum.count, (unsigned long long)memory.peak,
           (unsigned long long)stoker_trainer_updates(trainer),
           (unsigned long long)capture.launched);
    must(stoker_training_log_close(&log, &error), "log", &error);
    stoker_trainer_destroy(&trainer);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    stoker_model_destroy(&model);
    return 0;
}
