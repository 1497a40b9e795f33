/* test_resume.c - a trainer that was saved and loaded anywhere ends with the same bits;
 * what does not fit is refused and changes nothing.
 */
#include "support/trainer/plan_models.h"

#include <stoker/mix.h>

#include "kernels/float16.h"
#include "loader/base/fault.h"
#include "support/leaks.h"
#include "support/trainer/opened_trainer.h"
#include "trainer/api/trainer.h"
#include "trainer/files/safetensors.h"
#include "trainer/model/torch_layout.h"

#include <fcntl.h>
#include <math.h>

#include "support/trainer/trainer_golden.h"

enum { SIDE = 6, CHANNELS = 3, CLASSES = 4, BATCH = 4, PASSES = 9, PATH_BYTES = 128 };

static stoker_model *network(uint32_t filters)
{
    stoker_model *model = stk_test_begin(SIDE, SIDE, CHANNELS);
    stk_test_conv(model, "conv1", filters, 1);
    (void)stoker_model_batch_norm(model, "bn1", NULL);
    (void)stoker_model_relu(model, "relu1");
    (void)stoker_model_dropout(model, "dropout", 0.25F);
    (void)stoker_model_flatten(model, "flatten");
    stk_test_linear(model, "fc", CLASSES);
    (void)stoker_model_softmax_cross_entropy(model, 0.0F);
    return stk_test_end(model);
}

static stoker_trainer_options options_of(stoker_optimizer optimizer)
{
    return stk_trainer_options(.backend = "cpu", .threads = 1, .batch_size = BATCH, .accumulate = 2,
                               .optimizer = optimizer, .ema_decay = 0.9F, .seed = 3,
                               .schedule = STOKER_SCHEDULE_ONE_CYCLE, .total_updates = PASSES);
}

static void train(stoker_trainer *trainer, uint64_t begin, uint64_t end)
{
    static float images[BATCH * SIDE * SIDE * CHANNELS];
    int64_t labels[BATCH];
    for (uint64_t pass = begin; pass < end; pass++) {
        golden_fill(images, BATCH * SIDE * SIDE * CHANNELS, 50 + pass, 1.0F);
        for (uint64_t i = 0; i < BATCH; i++)
            labels[i] = (int64_t)((pass + i) % CLASSES);
        const stoker_batch batch = golden_images(images, labels, BATCH, SIDE, SIDE, CHANNELS);
        cr_assert_eq(stoker_trainer_step(trainer, &batch, NULL), STOKER_OK);
    }
}

static bool same(const stoker_trainer *a, const stoker_trainer *b)
{
    const size_t bytes = a->model->parameter_floats * sizeof(float);
    bool equal =
        memcmp(a->stage[0]->arenas.parameters, b->stage[0]->arenas.parameters, bytes) == 0 &&
        memcmp(a->stage[0]->arenas.statistics, b->stage[0]->arenas.statistics,
               a->memory.statistics) == 0 &&
        memcmp(a->stage[0]->ema, b->stage[0]->ema, bytes) == 0 &&
        a->progress.updates == b->progress.updates && a->progress.passes == b->progress.passes;
    for (uint32_t i = 0; i < a->state_count; i++)
        equal = equal && memcmp(a->stage[0]->state[i], b->stage[0]->state[i], bytes) == 0;
    return equal;
}

/* A folder of its own for one test. */
struct folder {
    char name[64], path[PATH_BYTES];
};

static void folder_make(struct folder *folder)
{
    (void)strcpy(folder->name, "stoker-resume-XXXXXX");
    cr_assert_not_null(mkdtemp(folder->name));
    (void)snprintf(folder->path, sizeof(folder->path), "%s/model.safetensors", folder->name);
}

static void folder_remove(const struct folder *folder)
{
    char command[PATH_BYTES];
    (void)snprintf(command, sizeof(command), "rm -r '%s'", folder->name);
    cr_assert_eq(system(command), 0);
}

/* Stopped after every number of passes, in the middle of a group too. */
CleanTest(trainer_step_resume, a_run_stopped_anywhere_ends_with_the_same_bits)
{
    struct folder folder;
    stoker_model *model = network(4);
    folder_make(&folder);
    for (int optimizer = 0; optimizer <= (int)STOKER_OPTIMIZER_ASGD; optimizer++) {
        stoker_trainer_options options = options_of((stoker_optimizer)optimizer);
        options.dynamic_loss_scale = optimizer % 2 == 1;
        stoker_trainer *whole = trainer_of(model, options);
        train(whole, 0, PASSES);
        for (uint64_t stop = 0; stop <= PASSES; stop++) {
            stoker_trainer *first = trainer_of(model, options);
            const uint8_t state[1000] = { (uint8_t)(stop + 1), 2, 3, [999] = 4 };
            const size_t state_bytes = stop % 2 == 0 ? sizeof(state) - stop : 0;
            uint8_t back[1000] = { 0 };
            stoker_error error = { .code = 0 };
            size_t size = 7;
            train(first, 0, stop);
            cr_assert_eq(stoker_trainer_save(first, folder.path, state, state_bytes, &error),
                         STOKER_OK, "%s", error.message);
            stoker_trainer_destroy(&first);
            options.seed = 99; /* the file's counts */
            stoker_trainer *second = trainer_of(model, options);
            options.seed = 3;
            cr_assert_eq(
                stoker_trainer_load(second, folder.path, back, sizeof(back), &size, &error),
                STOKER_OK, "%s", error.message);
            cr_assert_eq(size, state_bytes);
            cr_assert_eq(memcmp(state, back, state_bytes), 0);
            train(second, stop, PASSES);
            cr_assert(same(whole, second), "optimizer %d, stopped after %u", optimizer,
                      (unsigned)stop);
            stoker_trainer_destroy(&second);
        }
        stoker_trainer_destroy(&whole);
    }
    folder_remove(&folder);
    stoker_model_destroy(&model);
}

static int load(stoker_trainer *trainer, const char *path, stoker_error *error)
{
    return stoker_trainer_load(trainer, path, NULL, 0, NULL, error);
}

CleanTest(trainer_step_resume, what_does_not_fit_is_refused_and_changes_nothing)
{
    struct folder folder;
    stoker_model *model = network(4);
    stoker_model *other_model = network(5);
    stoker_error error;
    folder_make(&folder);
    stoker_trainer *saved = trainer_of(model, options_of(STOKER_OPTIMIZER_ADAM));
    train(saved, 0, 3);
    cr_assert_eq(stoker_trainer_save(saved, folder.path, NULL, 0, NULL), STOKER_OK);

    stoker_trainer *other = trainer_of(other_model, options_of(STOKER_OPTIMIZER_ADAM));
    stoker_trainer *untouched = trainer_of(other_model, options_of(STOKER_OPTIMIZER_ADAM));
    cr_assert_eq(load(other, folder.path, &error), STOKER_EMISMATCH);
    cr_assert_not_null(strstr(error.message, "conv1.weight"), "%s", error.message);
    cr_assert_eq(stoker_trainer_load_weights(other, folder.path, &error), STOKER_EMISMATCH);
    cr_assert_eq(load(other, "no-such-file.safetensors", &error), STOKER_ENOENT);
    cr_assert_eq(stoker_trainer_load_averages(other, folder.path, &error), STOKER_EMISMATCH);
    cr_assert(same(other, untouched));

    stoker_trainer *sgd = trainer_of(model, options_of(STOKER_OPTIMIZER_SGD));
    stoker_trainer *sgd_untouched = trainer_of(model, options_of(STOKER_OPTIMIZER_SGD));
    cr_assert_eq(load(sgd, folder.path, &error), STOKER_EMISMATCH);
    cr_assert_not_null(strstr(error.message, "optimizer"), "%s", error.message);
    cr_assert(same(sgd, sgd_untouched));
    cr_assert_eq(stoker_trainer_load_weights(sgd, folder.path, &error), STOKER_OK);
    cr_assert_eq(memcmp(sgd->stage[0]->arenas.parameters, saved->stage[0]->arenas.parameters,
                        model->parameter_floats * sizeof(float)),
                 0);
    cr_assert_eq(stoker_trainer_updates(sgd), 0);

    stoker_trainer_destroy(&saved);
    stoker_trainer_destroy(&other);
    stoker_trainer_destroy(&untouched);
    stoker_trainer_destroy(&sgd);
    stoker_trainer_destroy(&sgd_untouched);
    folder_remove(&folder);
    stoker_model_destroy(&model);
    stoker_model_destroy(&other_model);
}

static float element(const struct stk_named_tensor *tensor, uint64_t index)
{
    float value;
    memcpy(&value, (const unsigned char *)tensor->data + index * sizeof(value), sizeof(value));
    return value;
}

/* Written out by hand: conv1 [filter][c][y][x], fc [out][c,h,w]. */
CleanTest(trainer_step_resume, the_file_has_names_and_layouts_of_pytorch)
{
    enum { FILTERS = 4 };
    struct folder folder;
    struct stk_safetensors file;
    stoker_model *model = network(FILTERS);
    folder_make(&folder);
    stoker_trainer *trainer = trainer_of(model, options_of(STOKER_OPTIMIZER_ADAM));
    train(trainer, 0, 3);
    cr_assert_eq(stoker_trainer_save(trainer, folder.path, NULL, 0, NULL), STOKER_OK);
    cr_assert_eq(stk_safetensors_open(&file, folder.path, NULL), STOKER_OK);
    cr_assert_eq(file.set.tensor_count, 9 + 6 + 4); /* model, ema, state */
    const struct stk_named_tensor *conv = stk_tensor_find(&file.set, "model.conv1.weight");
    const struct stk_named_tensor *fc = stk_tensor_find(&file.set, "model.fc.weight");
    const struct stk_named_tensor *tracked =
        stk_tensor_find(&file.set, "model.bn1.num_batches_tracked");
    cr_assert_not_null(conv);
    cr_assert_not_null(fc);
    cr_assert_not_null(tracked);
    const float *here = trainer->stage[0]->arenas.parameters + model->parameters[0].offset;
    for (uint64_t f = 0; f < FILTERS; f++)
        for (uint64_t c = 0; c < CHANNELS; c++)
            for (uint64_t k = 0; k < 9; k++)
                cr_assert_float_eq(element(conv, (f * CHANNELS + c) * 9 + k),
                                   here[(f * 9 + k) * CHANNELS + c], 0);
    here = trainer->stage[0]->arenas.parameters + model->parameters[4].offset;
    cr_assert_str_eq(model->parameters[4].name, "fc.weight");
    for (uint64_t o = 0; o < CLASSES; o++)
        for (uint64_t c = 0; c < FILTERS; c++)
            for (uint64_t p = 0; p < SIDE * SIDE; p++)
                cr_assert_float_eq(element(fc, (o * FILTERS + c) * SIDE * SIDE + p),
                                   here[(o * SIDE * SIDE + p) * FILTERS + c], 0);
    int64_t passes;
    memcpy(&passes, tracked->data, sizeof(passes));
    cr_assert_eq(passes, 3);
    stk_safetensors_close(&file);
    stoker_trainer_destroy(&trainer);
    folder_remove(&folder);
    stoker_model_destroy(&model);
}

static stoker_loader *loader_of(stoker_dataset *mix, const void *state, size_t size)
{
    stoker_loader *loader = NULL;
    stoker_error error = { .message = "" };
    stoker_loader_options options =
        stk_default_options(.batch_size = 8, .num_workers = 0, .shuffle = true, .epochs = 3,
                            .resume = state, .resume_size = size);
    cr_assert_eq(stoker_loader_create(&loader, mix, &options, &error), STOKER_OK, "%s",
                 error.message);
    return loader;
}

static uint64_t next_sample(stoker_loader *loader)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc = stoker_loader_next(loader, &batch, -1);
    if (rc == STOKER_EPOCH_END)
        rc = stoker_loader_next(loader, &batch, -1);
    cr_assert_eq(rc, STOKER_OK);
    const uint64_t sample = batch.ids[0];
    stoker_batch_release(&batch);
    return sample;
}

/* The loader's state is then larger than STOKER_STATE_BYTES. */
CleanTest(trainer_step_resume, a_loader_whose_mix_changed_continues)
{
    enum { BATCHES = 30 };
    static const double weights[2] = { 0.25, 0.75 };
    struct folder folder;
    uint8_t bytes[1024];
    size_t size = 0;
    stoker_error error = { .message = "" };
    stoker_dataset *mix = NULL;
    stoker_model *model = network(4);
    folder_make(&folder);
    cr_assert_eq(stoker_dataset_open(&mix,
                                     "mix:0.5*(synth:digits?count=90)+0.5*(synth:digits?count=70)",
                                     NULL, &error),
                 STOKER_OK, "%s", error.message);
    stoker_loader *loader = loader_of(mix, NULL, 0);
    for (int i = 0; i < 3; i++)
        (void)next_sample(loader);
    cr_assert_eq(stoker_loader_change_mix(
                     loader, &(stoker_mix_change){ .position = 120, .weights = weights }, &error),
                 STOKER_OK, "%s", error.message);
    (void)next_sample(loader);
    size_t state_bytes = 0;
    cr_assert_eq(stoker_loader_state(loader, bytes, sizeof(bytes), &state_bytes, &error),
                 STOKER_OK);
    cr_assert_gt(state_bytes, STOKER_STATE_BYTES);
    stoker_trainer *trainer = trainer_of(model, options_of(STOKER_OPTIMIZER_ADAM));
    cr_assert_eq(stoker_trainer_save(trainer, folder.path, bytes, state_bytes, &error), STOKER_OK);
    memset(bytes, 0, sizeof(bytes));
    cr_assert_eq(stoker_trainer_load(trainer, folder.path, bytes, sizeof(bytes), &size, &error),
                 STOKER_OK);
    cr_assert_eq(size, state_bytes);
    stoker_loader *resumed = loader_of(mix, bytes, size);
    for (int i = 0; i < BATCHES; i++)
        cr_assert_eq(next_sample(loader), next_sample(resumed), "batch %d", i);
    stoker_loader_destroy(&loader);
    stoker_loader_destroy(&resumed);
    stoker_dataset_close(&mix);
    stoker_trainer_destroy(&trainer);
    folder_remove(&folder);
    stoker_model_destroy(&model);
}

CleanTest(trainer_step_resume, a_state_that_does_not_fit_is_refused)
{
    struct folder folder;
    uint8_t bytes[100] = { 1, 2, 3 };
    size_t size = 0;
    stoker_error error;
    stoker_model *model = network(4);
    folder_make(&folder);
    stoker_trainer *saved = trainer_of(model, options_of(STOKER_OPTIMIZER_ADAM));
    stoker_trainer *other = trainer_of(model, options_of(STOKER_OPTIMIZER_ADAM));
    stoker_trainer *untouched = trainer_of(model, options_of(STOKER_OPTIMIZER_ADAM));
    train(saved, 0, 3);
    cr_assert_eq(stoker_trainer_save(saved, folder.path, NULL, 1, &error), STOKER_EINVAL);
    cr_assert_eq(stoker_trainer_save(saved, folder.path, bytes, 100, &error), STOKER_OK);
    cr_assert_eq(stoker_trainer_load(other, folder.path, bytes, 99, &size, &error), STOKER_ELIMIT);
    cr_assert_not_null(strstr(error.message, "99 bytes, the loader's state has 100"), "%s",
                       error.message);
    cr_assert_eq(size, 100);
    cr_assert(same(other, untouched));
    size = 0;
    cr_assert_eq(stoker_trainer_load(other, folder.path, NULL, 0, &size, &error), STOKER_OK);
    cr_assert_eq(size, 100);
    cr_assert(same(other, saved));
    stoker_trainer_destroy(&saved);
    stoker_trainer_destroy(&other);
    stoker_trainer_destroy(&untouched);
    folder_remove(&folder);
    stoker_model_destroy(&model);
}

/* The rate of such a schedule follows the length of the run: another length is another curve. */
CleanTest(trainer_step_resume, a_schedule_of_another_length_is_refused)
{
    struct folder folder;
    stoker_error error = { 0 };
    stoker_model *model = network(4);
    folder_make(&folder);
    stoker_trainer_options options = options_of(STOKER_OPTIMIZER_SGD);
    stoker_trainer *saved = trainer_of(model, options);
    train(saved, 0, 4);
    cr_assert_eq(stoker_trainer_save(saved, folder.path, NULL, 0, &error), STOKER_OK);
    options.total_updates *= 2;
    stoker_trainer *longer = trainer_of(model, options);
    stoker_trainer *untouched = trainer_of(model, options);
    cr_assert_eq(load(longer, folder.path, &error), STOKER_EMISMATCH);
    cr_assert_not_null(strstr(error.message, "one-cycle, 9 updates"), "%s", error.message);
    cr_assert(same(longer, untouched));
    cr_assert_eq(stoker_trainer_load_weights(longer, folder.path, &error), STOKER_OK);
    options.schedule = STOKER_SCHEDULE_CONSTANT; /* asked for */
    stoker_trainer *constant = trainer_of(model, options);
    cr_assert_eq(load(constant, folder.path, &error), STOKER_OK, "%s", error.message);
    stoker_trainer_destroy(&saved);
    stoker_trainer_destroy(&longer);
    stoker_trainer_destroy(&untouched);
    stoker_trainer_destroy(&constant);
    folder_remove(&folder);
    stoker_model_destroy(&model);
}

static int64_t batches_in(const char *path)
{
    struct stk_safetensors file;
    int64_t batches = -1;
    cr_assert_eq(stk_safetensors_open(&file, path, NULL), STOKER_OK);
    const struct stk_named_tensor *tracked =
        stk_tensor_find(&file.set, "model.bn1.num_batches_tracked");
    cr_assert_not_null(tracked);
    memcpy(&batches, tracked->data, sizeof(batches));
    stk_safetensors_close(&file);
    return batches;
}

/* Batches seen: by the file's statistics, and by passes here. */
CleanTest(trainer_step_resume, batches_tracked_continue_from_loaded_weights)
{
    struct folder folder;
    stoker_model *model = network(4);
    folder_make(&folder);
    stoker_trainer *first = trainer_of(model, options_of(STOKER_OPTIMIZER_ADAM));
    stoker_trainer *second = trainer_of(model, options_of(STOKER_OPTIMIZER_ADAM));
    stoker_trainer *third = trainer_of(model, options_of(STOKER_OPTIMIZER_ADAM));
    train(first, 0, 5);
    cr_assert_eq(stoker_trainer_save(first, folder.path, NULL, 0, NULL), STOKER_OK);
    cr_assert_eq(batches_in(folder.path), 5);
    train(second, 0, 2);
    cr_assert_eq(stoker_trainer_load_weights(second, folder.path, NULL), STOKER_OK);
    train(second, 2, 4);
    cr_assert_eq(stoker_trainer_save(second, folder.path, NULL, 0, NULL), STOKER_OK);
    cr_assert_eq(batches_in(folder.path), 7);
    cr_assert_eq(load(third, folder.path, NULL), STOKER_OK);
    train(third, 4, 5);
    cr_assert_eq(stoker_trainer_save(third, folder.path, NULL, 0, NULL), STOKER_OK);
    cr_assert_eq(batches_in(folder.path), 8);
    stoker_trainer_destroy(&first);
    stoker_trainer_destroy(&second);
    stoker_trainer_destroy(&third);
    folder_remove(&folder);
    stoker_model_destroy(&model);
}

/* The tensor in another type, its numbers rounded to 8 bits so that each type holds them. */
static void convert(struct stk_named_tensor *tensor, enum stk_file_dtype dtype, double *room)
{
    const uint64_t count = tensor->bytes / sizeof(float);
    unsigned char *to = (unsigned char *)room;
    for (uint64_t i = 0; i < count; i++, to += stk_file_dtype_bytes(dtype)) {
        float value = element(tensor, i);
        value = (float)((int)(value * 64)) / 64;
        const double wide = (double)value;
        const uint16_t half =
            dtype == STK_FILE_F16 ? float16_of_float(value) : bfloat16_of_float(value);
        if (dtype == STK_FILE_F64)
            memcpy(to, &wide, sizeof(wide));
        else if (dtype == STK_FILE_F32)
            memcpy(to, &value, sizeof(value));
        else
            memcpy(to, &half, sizeof(half));
    }
    tensor->dtype = dtype;
    tensor->data = room;
}

CleanTest(trainer_step_resume, weights_of_other_types_are_converted)
{
    enum { TENSORS = 16, FLOATS = 4096 };
    static double room[TENSORS][FLOATS];
    static const enum stk_file_dtype dtypes[] = { STK_FILE_F32, STK_FILE_F16, STK_FILE_BF16,
                                                  STK_FILE_F64 };
    struct folder folder;
    struct stk_safetensors file;
    stoker_error error = { 0 };
    stoker_model *model = network(4);
    folder_make(&folder);
    stoker_trainer *saved = trainer_of(model, options_of(STOKER_OPTIMIZER_ADAM));
    stoker_trainer *expected = trainer_of(model, options_of(STOKER_OPTIMIZER_ADAM));
    train(saved, 0, 3);
    for (int d = 0; d < 4; d++) {
        struct stk_named_tensor tensors[TENSORS];
        struct stk_tensor_set set = { .tensors = tensors };
        cr_assert_eq(stoker_trainer_save(saved, folder.path, NULL, 0, NULL), STOKER_OK);
        cr_assert_eq(stk_safetensors_open(&file, folder.path, NULL), STOKER_OK);
        for (uint32_t i = 0; i < file.set.tensor_count; i++) {
            if (strncmp(file.set.tensors[i].name, "model.", 6) != 0)
                continue;
            struct stk_named_tensor *const tensor = &tensors[set.tensor_count];
            *tensor = file.set.tensors[i];
            tensor->name += 6; /* as PyTorch has it */
            if (tensor->dtype == STK_FILE_F32)
                convert(tensor, dtypes[d], room[set.tensor_count]);
            set.tensor_count++;
        }
        const int fd = open(folder.path, O_WRONLY | O_TRUNC | O_CLOEXEC);
        cr_assert_geq(fd, 0);
        cr_assert_eq(stk_safetensors_write(fd, folder.path, &set, &error), STOKER_OK, "%s",
                     error.message);
        (void)close(fd);
        stk_safetensors_close(&file);
        stoker_trainer *other = trainer_of(model, options_of(STOKER_OPTIMIZER_ADAM));
        cr_assert_eq(stoker_trainer_load_weights(d == 0 ? expected : other, folder.path, &error),
                     STOKER_OK, "%s", error.message);
        cr_assert(d == 0 || memcmp(expected->stage[0]->arenas.parameters,
                                   other->stage[0]->arenas.parameters,
                                   model->parameter_floats * sizeof(float)) == 0,
                  "%s", stk_file_dtype_name(dtypes[d]));
        stoker_trainer_destroy(&other);
    }
    stoker_trainer_destroy(&saved);
    stoker_trainer_destroy(&expected);
    folder_remove(&folder);
    stoker_model_destroy(&model);
}

/* The averages, as another program and as a trainer without any reads them. */
CleanTest(trainer_step_resume, averages_are_saved_and_loaded_as_weights)
{
    struct folder folder;
    stoker_error error = { 0 };
    stoker_model *model = network(4);
    const size_t bytes = model->parameter_floats * sizeof(float);
    folder_make(&folder);
    stoker_trainer_options options = options_of(STOKER_OPTIMIZER_ADAM);
    stoker_trainer *saved = trainer_of(model, options);
    train(saved, 0, 8);
    cr_assert_eq(stoker_trainer_save(saved, folder.path, NULL, 0, &error), STOKER_OK);
    options.ema_decay = 0;
    stoker_trainer *plain = trainer_of(model, options);
    cr_assert_eq(stoker_trainer_load_averages(plain, folder.path, &error), STOKER_OK, "%s",
                 error.message);
    cr_assert_eq(memcmp(plain->stage[0]->arenas.parameters, saved->stage[0]->ema, bytes), 0);
    cr_assert_neq(
        memcmp(plain->stage[0]->arenas.parameters, saved->stage[0]->arenas.parameters, bytes), 0);
    cr_assert_eq(memcmp(plain->stage[0]->arenas.statistics, saved->stage[0]->arenas.statistics,
                        saved->memory.statistics),
                 0);
    cr_assert_eq(stoker_trainer_load_weights(plain, folder.path, &error), STOKER_OK);
    cr_assert_eq(
        memcmp(plain->stage[0]->arenas.parameters, saved->stage[0]->arenas.parameters, bytes), 0);
    cr_assert_eq(stoker_trainer_save(plain, folder.path, NULL, 0, &error), STOKER_OK);
    cr_assert_eq(stoker_trainer_load_averages(plain, folder.path, &error), STOKER_EMISMATCH);
    stoker_trainer_destroy(&saved);
    stoker_trainer_destroy(&plain);
    folder_remove(&folder);
    stoker_model_destroy(&model);
}

struct heard {
    uint32_t count;
    char text[64];
};

static void hear(void *user, const char *key, const char *value)
{
    struct heard *const heard = user;
    heard->count++;
    (void)snprintf(heard->text, sizeof(heard->text), "%s=%s", key, value);
}

CleanTest(trainer_step_resume, notes_are_saved_and_read_back)
{
    struct folder folder;
    struct heard heard = { .count = 0 };
    char key[80];
    stoker_error error = { 0 };
    stoker_model *model = network(4);
    folder_make(&folder);
    stoker_trainer *trainer = trainer_of(model, options_of(STOKER_OPTIMIZER_ADAM));
    cr_assert_eq(stoker_trainer_set_note(trainer, "data", "first", &error), STOKER_OK);
    cr_assert_eq(stoker_trainer_set_note(trainer, "data", "csv:a\"b", &error), STOKER_OK);
    cr_assert_eq(stoker_trainer_set_note(trainer, "stoker.pair", "1", &error), STOKER_EINVAL);
    cr_assert_eq(stoker_trainer_set_note(trainer, "", "1", &error), STOKER_EINVAL);
    cr_assert_eq(stoker_trainer_set_note(trainer, "a", "\xFF", &error), STOKER_EINVAL);
    memset(key, 'k', sizeof(key));
    key[64] = '\0';
    cr_assert_eq(stoker_trainer_set_note(trainer, key, "1", &error), STOKER_EINVAL);
    cr_assert_eq(stoker_trainer_save(trainer, folder.path, NULL, 0, &error), STOKER_OK);
    cr_assert_eq(stoker_trainer_read_notes(folder.path, hear, &heard, &error), STOKER_OK);
    cr_assert_eq(heard.count, 1);
    cr_assert_str_eq(heard.text, "data=csv:a\"b");
    cr_assert_eq(stoker_trainer_read_notes("nowhere", hear, &heard, &error), STOKER_ENOENT);
    for (int i = 1; i < 32; i++) {
        (void)snprintf(key, sizeof(key), "k%d", i);
        cr_assert_eq(stoker_trainer_set_note(trainer, key, "", &error), STOKER_OK);
    }
    cr_assert_eq(stoker_trainer_set_note(trainer, "more", "", &error), STOKER_ELIMIT);
    stoker_trainer_destroy(&trainer);
    folder_remove(&folder);
    stoker_model_destroy(&model);
}

/* Weights that are no numbers replace no good ones. */
CleanTest(trainer_step_resume, diverged_weights_are_not_saved)
{
    struct folder folder;
    stoker_error error = { 0 };
    stoker_model *model = network(4);
    folder_make(&folder);
    stoker_trainer *good = trainer_of(model, options_of(STOKER_OPTIMIZER_ADAM));
    stoker_trainer *bad = trainer_of(model, options_of(STOKER_OPTIMIZER_ADAM));
    cr_assert_eq(stoker_trainer_save(good, folder.path, NULL, 0, &error), STOKER_OK);
    bad->stage[0]->arenas.parameters[model->parameters[0].offset] = (float)NAN;
    cr_assert_eq(stoker_trainer_save(bad, folder.path, NULL, 0, &error), STOKER_EDIVERGED);
    cr_assert_not_null(strstr(error.message, "nan"), "%s", error.message);
    cr_assert_eq(load(bad, folder.path, &error), STOKER_OK, "%s", error.message);
    cr_assert(same(good, bad));
    stoker_trainer_destroy(&good);
    stoker_trainer_destroy(&bad);
    folder_remove(&folder);
    stoker_model_destroy(&model);
}

CleanTest(trainer_step_resume, without_memory_saving_and_loading_say_so)
{
    struct folder folder;
    stoker_model *model = network(4);
    folder_make(&folder);
    stoker_trainer *trainer = trainer_of(model, options_of(STOKER_OPTIMIZER_ADAM));
    stoker_trainer *other = trainer_of(model, options_of(STOKER_OPTIMIZER_ADAM));
    stoker_trainer *untouched = trainer_of(model, options_of(STOKER_OPTIMIZER_ADAM));
    train(trainer, 0, 3);
    const int64_t live = stk_fault_live_bytes();
    for (int loading = 0; loading < 2; loading++)
        for (uint64_t nth = 1;; nth++) {
            stk_fault_arm(STK_FAULT_MEMORY, nth);
            const int rc = loading ? load(other, folder.path, NULL)
                                   : stoker_trainer_save(trainer, folder.path, NULL, 0, NULL);
            if (!stk_fault_disarm()) {
                cr_assert_eq(rc, STOKER_OK);
                break;
            }
            cr_assert_eq(rc, STOKER_ENOMEM, "allocation %u: %d", (unsigned)nth, rc);
            cr_assert_eq(stk_fault_live_bytes(), live);
            cr_assert(same(other, untouched));
        }
    cr_assert(same(trainer, other));
    stoker_trainer_destroy(&trainer);
    stoker_trainer_destroy(&other);
    stoker_trainer_destroy(&untouched);
    folder_remove(&folder);
    stoker_model_destroy(&model);
}
