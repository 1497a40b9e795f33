/* tokens.c - inputs and targets of a language model, from files of tokens, and how to resume.
 *
 * usage: tokens FILES     llm.c's, Megatron's or NumPy's, e.g. tokens 'fineweb_train_*.bin'
 */
#include <stdio.h>
#include <stoker/stoker.h>

enum { LENGTH = 64, STEPS = 5 };

/* Print the first tokens of STEPS batches, beginning at `state`; then save the loader's new state
 * there. */
static int train(const stoker_dataset *dataset, void *state, size_t *bytes)
{
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_error error;
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    options.batch_size = 4;
    options.shuffle = true; /* windows; each is delivered once per epoch */
    options.seed = 1;
    options.resume = *bytes > 0 ? state : NULL;
    options.resume_size = *bytes;
    int rc = stoker_loader_create(&loader, dataset, &options, &error);
    for (int step = 0; rc == STOKER_OK && step < STEPS; step++) {
        rc = stoker_loader_next(loader, &batch, -1);
        if (rc != STOKER_OK)
            break;
        const int32_t *inputs = stoker_batch_field(&batch, "inputs")->values.data;
        const int32_t *targets = stoker_batch_field(&batch, "targets")->values.data;
        printf("%llu: %d -> %d\n", (unsigned long long)batch.index, inputs[0], targets[0]);
        stoker_batch_release(&batch); /* inputs and targets are [batch_size, LENGTH] */
    }
    if (rc == STOKER_OK) /* save it with the model's weights */
        rc = stoker_loader_state(loader, state, STOKER_STATE_BYTES, bytes, &error);
    if (rc < 0)
        fprintf(stderr, "tokens: %s\n", error.message);
    stoker_loader_destroy(&loader);
    return rc;
}

int main(int argc, char **argv)
{
    stoker_dataset *dataset = NULL;
    stoker_error error;
    char spec[4096];
    unsigned char state[STOKER_STATE_BYTES];
    size_t bytes = 0;
    snprintf(spec, sizeof(spec), "tokens:%s?length=%d&fields=inputs,targets&dtype=int32",
             argv[argc - 1], LENGTH);
    int rc = stoker_dataset_open(&dataset, spec, NULL, &error);
    if (rc < 0)
        fprintf(stderr, "tokens: %s\n", error.message);
    for (int run = 0; rc == STOKER_OK && run < 2; run++) /* the second continues the first */
        rc = train(dataset, state, &bytes);
    stoker_dataset_close(&dataset);
    return rc < 0;
}
