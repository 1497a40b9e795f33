/* fuzz_trainer_checkpoint.c - any file as a checkpoint: loaded whole, or refused with a reason and
 * without a change.
 *
 * What was loaded can be trained on and saved again. */
#include <stdbool.h>
#include <string.h>

#include "fuzz/dataset_input.h"
#include "support/defaults.h"
#include "trainer/api/trainer.h"

enum { FEATURES = 3, OUTPUTS = 2, BATCH = 2, PATH_BYTES = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void write_file(const char *path, const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(path, "wbe");
    STK_FUZZ_CHECK(file != NULL);
    STK_FUZZ_CHECK(fwrite(bytes, 1, size, file) == size);
    STK_FUZZ_CHECK(fclose(file) == 0);
}

/* ---- the trainer ---------------------------------------------------------------- */

static stoker_model *build(void)
{
    stoker_model *model = NULL;
    STK_FUZZ_CHECK(stoker_model_create(&model, (uint32_t[]){ FEATURES }, 1, NULL) == STOKER_OK);
    (void)stoker_model_batch_norm(model, "bn", NULL);
    (void)stoker_model_linear(model, "fc", &(stoker_linear){ .features = OUTPUTS });
    STK_FUZZ_CHECK(stoker_model_mse(model) == STOKER_OK);
    return model;
}

static stoker_trainer *trainer_of(const stoker_model *model)
{
    stoker_trainer *trainer = NULL;
    stoker_trainer_options options =
        stk_trainer_options(.backend = "ref", .batch_size = BATCH, .accumulate = 2,
                            .optimizer = STOKER_OPTIMIZER_ADAM, .ema_decay = 0.5F,
                            .schedule = STOKER_SCHEDULE_COSINE, .total_updates = 10);
    STK_FUZZ_CHECK(stoker_trainer_create(&trainer, model, &options, NULL) == STOKER_OK);
    return trainer;
}

static bool same(const stoker_trainer *a, const stoker_trainer *b)
{
    const size_t bytes = a->model->parameter_floats * sizeof(float);
    bool equal =
        memcmp(a->stage[0]->arenas.parameters, b->stage[0]->arenas.parameters, bytes) == 0 &&
        memcmp(a->stage[0]->arenas.statistics, b->stage[0]->arenas.statistics,
               a->memory.statistics) == 0 &&
        memcmp(a->stage[0]->ema, b->stage[0]->ema, bytes) == 0 &&
        a->progress.updates == b->progress.updates;
    for (uint32_t i = 0; i < a->state_count; i++)
        equal = equal && memcmp(a->stage[0]->state[i], b->stage[0]->state[i], bytes) == 0;
    return equal;
}

static void go_on(stoker_trainer *trainer, const char *path)
{
    float samples[BATCH * FEATURES] = { 1, 2, 3, 4, 5, 6 };
    float labels[BATCH * OUTPUTS] = { 1, 2, 3, 4 };
    const stoker_batch batch = { .struct_size = sizeof(stoker_batch),
                                 .images = { .data = samples,
                                             .dtype = STOKER_DTYPE_FLOAT32,
                                             .rank = 2,
                                             .shape = { BATCH, FEATURES } },
                                 .labels = { .data = labels,
                                             .dtype = STOKER_DTYPE_FLOAT32,
                                             .rank = 2,
                                             .shape = { BATCH, OUTPUTS } },
                                 .count = BATCH };
    stoker_error error = { 0 };
    for (int i = 0; i < 3; i++)
        STK_FUZZ_CHECK(stoker_trainer_step(trainer, &batch, NULL) == STOKER_OK);
    const int rc = stoker_trainer_save(trainer, path, NULL, 0, &error);
    STK_FUZZ_CHECK(rc == STOKER_OK || rc == STOKER_EDIVERGED);
    STK_FUZZ_CHECK(rc != STOKER_OK ||
                   stoker_trainer_load(trainer, path, NULL, 0, NULL, &error) == STOKER_OK);
}

static void count_note(void *user, const char *key, const char *value)
{
    STK_FUZZ_CHECK(strncmp(key, "stoker.", 7) != 0);
    *(size_t *)user += strlen(key) + strlen(value);
}

typedef int way_in(stoker_trainer *trainer, const char *path, stoker_error *error);

static int load(stoker_trainer *trainer, const char *path, stoker_error *error)
{
    uint8_t loader[64];
    size_t size = 0;
    const int rc = stoker_trainer_load(trainer, path, loader, sizeof(loader), &size, error);
    STK_FUZZ_CHECK(rc != STOKER_OK || size <= sizeof(loader));
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static way_in *const ways[] = { stoker_trainer_load_weights, stoker_trainer_load_averages,
                                    load };
    char folder[PATH_BYTES];
    char path[PATH_BYTES + 32];
    (void)snprintf(folder, sizeof(folder), "/tmp/stoker-fuzz-XXXXXX");
    STK_FUZZ_CHECK(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof(path), "%s/m.safetensors", folder);
    write_file(path, bytes, size);
    stoker_model *model = build();
    stoker_trainer *untouched = trainer_of(model);
    int rc = STOKER_OK;
    stoker_trainer *trainer = NULL;
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        stoker_error error = { 0 };
        stoker_trainer_destroy(&trainer);
        trainer = trainer_of(model);
        rc = ways[i](trainer, path, &error);
        STK_FUZZ_CHECK(rc == STOKER_OK || (error.code == rc && error.message[0] != '\0'));
        STK_FUZZ_CHECK(rc == STOKER_OK || same(trainer, untouched));
    }
    size_t characters = 0;
    (void)stoker_trainer_read_notes(path, count_note, &characters, NULL);
    STK_FUZZ_CHECK(characters <= size);
    if (rc == STOKER_OK)
        go_on(trainer, path);
    stoker_trainer_destroy(&trainer);
    stoker_trainer_destroy(&untouched);
    stoker_model_destroy(&model);
    STK_FUZZ_CHECK(unlink(path) == 0);
    STK_FUZZ_CHECK(rmdir(folder) == 0); /* nothing else was left there */
    STK_FUZZ_CHECK(stk_fault_live_bytes() == 0);
    return 0;
}
