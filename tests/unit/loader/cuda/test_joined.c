/* test_joined.c - a field that is joined (STOKER_FIELD_FORM_JOINED) arrives on the stand-in's GPU
 * as on the host: values and offsets. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "support/cuda_run.h"
#include "support/leaks.h"
#include "support/token_files.h"

enum { BATCH = 5, BATCHES = 8, ENDS = 64 };

/* cu_seqlens of one batch. */
struct ends {
    uint64_t count;
    int32_t values[ENDS];
    int64_t offsets[BATCH + 1];
};

struct look {
    stoker_field field;
    uint32_t rows;
    struct ends *out;
};

static struct stk_cuda_consumer consumer;

static void copy_ends(void *argument)
{
    struct look *look = argument;
    look->out->count = look->field.values.shape[0];
    if (look->out->count > ENDS)
        return;
    memcpy(look->out->values, look->field.values.data, look->out->count * sizeof(int32_t));
    memcpy(look->out->offsets, look->field.device_offsets, (look->rows + 1) * sizeof(int64_t));
}

static void look_there(void *argument)
{
    struct look *look = argument;
    look->field.values.data = standin_cuda_view(look->field.values.data);
    look->field.device_offsets = standin_cuda_view(look->field.device_offsets);
    copy_ends(look);
}

static void look_at(const stoker_batch *batch, struct ends *out)
{
    struct look look = { .field = batch->fields[1], .rows = batch->count, .out = out };
    if (batch->device != STOKER_DEVICE_CUDA) {
        copy_ends(&look);
        return;
    }
    cr_assert_eq(stoker_batch_wait_on(batch, consumer.stream), STOKER_OK);
    standin_cuda_own_calls(true);
    cr_assert_eq(cudaLaunchHostFunc(consumer.stream, look_there, &look), cudaSuccess);
    standin_cuda_own_calls(false);
    stk_cuda_consumer_wait(&consumer);
}

static void run(const char *spec, stoker_device device, struct ends out[BATCHES])
{
    stoker_field_options field = STOKER_FIELD_OPTIONS_INIT;
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    field.name = "cu_seqlens";
    field.form = STOKER_FIELD_FORM_JOINED;
    options.fields = &field;
    options.field_count = 1;
    options.batch_size = BATCH;
    options.device = device;
    cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, NULL), STOKER_OK);
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, NULL), STOKER_OK);
    for (int number = 0; number < BATCHES; number++) {
        stoker_batch batch = STOKER_BATCH_INIT;
        int rc = stoker_loader_next(loader, &batch, 20000);
        if (rc == STOKER_EPOCH_END)
            rc = stoker_loader_next(loader, &batch, 20000);
        cr_assert_eq(rc, STOKER_OK);
        look_at(&batch, &out[number]);
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

Test(joined, arrives_on_a_gpu_as_on_the_host)
{
    static struct ends host[BATCHES], device[BATCHES];
    char spec[512];
    standin_cuda_reset(1);
    cr_assert(stk_cuda_consumer_init(&consumer, 0));
    struct stk_directory directory = stk_directory_make();
    const struct stk_bytes file = stk_llmc_file(0, 403, 2);
    stk_file_write(&directory, "a.bin", file.at, file.size);
    (void)snprintf(spec, sizeof(spec), "tokens:%s/a.bin?length=16&fields=tokens,cu_seqlens&eos=7",
                   directory.path);
    run(spec, STOKER_DEVICE_CPU, host);
    run(spec, STOKER_DEVICE_CUDA, device);
    for (int number = 0; number < BATCHES; number++)
        cr_assert(host[number].count > BATCH && host[number].count <= ENDS);
    cr_assert_arr_eq(host, device, sizeof(host));
    stk_directory_remove(&directory);
    stk_cuda_consumer_destroy(&consumer);
    cr_assert_eq(standin_cuda_live(), 0);
    stk_test_check_leaks();
}
