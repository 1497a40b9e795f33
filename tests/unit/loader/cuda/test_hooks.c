/* test_hooks.c - with a hook the host finishes rows: the GPU gets the bits of the CPU, converts
 * nothing, and the statistics say why.
 */
#include "support/cuda_bits.h"
#include "support/opened_loader.h"
#include "support/random_hooks.h"

static struct stk_random_hooks hooks;

static void begin(void)
{
    stk_cuda_bits_begin(1);
    stk_random_hooks_init(&hooks);
}

TestSuite(cuda_hooks, .init = begin, .fini = stk_cuda_bits_finish);

static stoker_loader_options hooked_options(void)
{
    stoker_loader_options options =
        stk_cuda_bits_options(STOKER_DTYPE_FLOAT32, STOKER_LAYOUT_NCHW, 1);
    options.row_hook = &hooks.row;
    options.batch_hook = &hooks.batch;
    options.transform = (stoker_transform){ .random_crop = { 28, 28 }, .pad = 2, .flip = true };
    return options;
}

Test(cuda_hooks, bits_are_those_of_the_cpu_and_no_kernel_runs)
{
    stoker_dataset *dataset = dataset_of("synth:digits?count=100");
    for (int32_t workers = 0; workers <= 3; workers += 3) {
        stoker_loader_options options = hooked_options();
        options.num_workers = workers;
        cr_assert_eq(stk_cuda_bits_expect(dataset, options, 0, "hooks").launches, 0);
    }
    stoker_dataset_close(&dataset);
}

Test(cuda_hooks, the_statistics_say_why)
{
    stoker_dataset *dataset = dataset_of("synth:digits?count=100");
    const stoker_loader_options options = hooked_options();
    stoker_stats stats = { .struct_size = sizeof(stats) };
    stoker_loader *loader = loader_of(dataset, &options);
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    cr_assert_not(stats.converts_on_device);
    cr_assert_neq(strstr(stats.convert_reason, "hooks work on finished rows"), NULL, "%s",
                  stats.convert_reason);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

static void refused(stoker_loader_options options, const char *words)
{
    stoker_dataset *dataset = dataset_of("synth:digits?count=100");
    stoker_loader *loader = NULL;
    stoker_error error = { .code = 0 };
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), STOKER_ENOTSUP);
    cr_assert_neq(strstr(error.message, words), NULL, "%s", error.message);
    stoker_dataset_close(&dataset);
}

Test(cuda_hooks, what_needs_the_gpu_is_refused_by_name)
{
    stoker_loader_options options = hooked_options();
    options.convert_on_device = STOKER_SWITCH_ON;
    refused(options, "convert_on_device: hooks work on finished rows");
    options = hooked_options();
    options.cache = STOKER_CACHE_DEVICE;
    refused(options, "cache DEVICE: hooks work on finished rows");
}
