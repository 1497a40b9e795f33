/* trainer.c - a user's program: the installed trainer learns to classify drawn digits. */
#include <stdio.h>
#include <stdlib.h>
#include <stoker/stoker.h>
#include <stoker/trainer.h>

static int build(stoker_model **model)
{
    const uint32_t shape[] = { 28, 28, 1 };
    if (stoker_model_create(model, shape, 3, NULL) != STOKER_OK)
        return EXIT_FAILURE;
    stoker_model_flatten(*model, "flatten");
    stoker_model_linear(*model, "fc", &(stoker_linear){ .features = 10 });
    return stoker_model_softmax_cross_entropy(*model, 0);
}

/* One epoch; the loss of its last batch. */
static double train(stoker_loader *loader, stoker_trainer *trainer)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_step step = { 0 };
    while (stoker_loader_next(loader, &batch, -1) == STOKER_OK) {
        if (stoker_trainer_step(trainer, &batch, &step) != STOKER_OK)
            exit(EXIT_FAILURE);
        stoker_batch_release(&batch);
    }
    return step.loss;
}

int main(void)
{
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    stoker_model *model = NULL;
    stoker_trainer *trainer = NULL;
    stoker_loader_options how = STOKER_LOADER_OPTIONS_INIT;
    how.dtype = STOKER_DTYPE_FLOAT32;
    how.epochs = 1;
    how.last = STOKER_LAST_DROP;
    stoker_trainer_options options = STOKER_TRAINER_OPTIONS_INIT;
    options.optimizer = STOKER_OPTIMIZER_ADAM;
    if (stoker_dataset_open(&dataset, "synth:digits?count=4000", NULL, NULL) != STOKER_OK ||
        stoker_loader_create(&loader, dataset, &how, NULL) != STOKER_OK ||
        build(&model) != STOKER_OK ||
        stoker_trainer_create(&trainer, model, &options, NULL) != STOKER_OK)
        return EXIT_FAILURE;
    double loss = train(loader, trainer);
    printf("loss %.3f after %llu updates\n", loss,
           (unsigned long long)stoker_trainer_updates(trainer));
    stoker_trainer_destroy(&trainer);
    stoker_model_destroy(&model);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    return loss < 1.5 ? EXIT_SUCCESS : EXIT_FAILURE; /* guessing costs 2.3 */
}
