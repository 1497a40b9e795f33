/* test_decode.c - JPEG files decoded on a GPU by the real nvImageCodec: close to what the CPU makes
 * of them, the CPU's own bytes where the GPU does not decode, and the same bad samples.
 *
 * Prints how far the pixels are apart: another inverse transform and another interpolation of
 * chroma. Exits 77 with the reason if there is no GPU or no nvImageCodec. The stand-in decodes as
 * the CPU does: every byte is then equal (argument `equal`).
 */
#include <dlfcn.h>
#include <stoker/cuda.h>

#include "support/files/jpeg_set.h"
#include "support/runs/scenario.h"

#include "first_gpu.h"

/* 40 images of noise in 4:2:0 to 4:4:4, which is harder than photographs. */
enum { SIDE = 24, ROW = SIDE * SIDE * 3, MEAN_MAX = 8 };

struct rows {
    uint8_t at[STK_JPEG_SET_COUNT][ROW];
    bool there[STK_JPEG_SET_COUNT];
    uint64_t bad, decoded;
};

static stoker_loader_options options_for(bool on_gpu)
{
    return stk_small_options(.batch_size = 8, .epochs = 1, .num_workers = 2,
                             .transform.resize = (stoker_size){ SIDE, SIDE },
                             .on_bad_sample = STOKER_ON_BAD_SKIP,
                             .device = on_gpu ? STOKER_DEVICE_CUDA : STOKER_DEVICE_CPU,
                             .decode = on_gpu ? STOKER_DECODE_DEVICE : STOKER_DECODE_CPU);
}

/* One epoch; each row to its sample's place. */
static void collect(const struct stk_cuda_runtime *cuda, stoker_loader *loader, bool on_gpu,
                    struct rows *rows)
{
    static uint8_t images[8 * ROW];
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_stats stats = STOKER_STATS_INIT;
    int rc;
    while ((rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK || rc == STOKER_EPOCH_END) {
        if (rc == STOKER_EPOCH_END)
            continue;
        CHECK(stoker_batch_wait_on(&batch, NULL) == STOKER_OK);
        if (on_gpu)
            stk_gpu_copy(cuda, images, batch.images.data, batch.count * (size_t)ROW,
                         cudaMemcpyDeviceToHost);
        else
            memcpy(images, batch.images.data, batch.count * (size_t)ROW);
        for (uint32_t i = 0; i < batch.count; i++) {
            CHECK(batch.ids[i] < STK_JPEG_SET_COUNT);
            memcpy(rows->at[batch.ids[i]], images + i * (size_t)ROW, ROW);
            rows->there[batch.ids[i]] = true;
        }
        stoker_batch_release(&batch);
    }
    CHECK(rc == STOKER_FINISHED);
    CHECK(stoker_loader_stats(loader, &stats) == STOKER_OK);
    rows->bad = stats.bad_samples;
    rows->decoded = stats.device_images;
}

/* Images that only the CPU decodes: CMYK and gray. */
static bool is_host(uint64_t id)
{
    return id % 7 == 3 || id % 7 == 5;
}

static void compare(const struct rows *gpu, const struct rows *cpu, bool equal)
{
    uint64_t sum = 0, count = 0;
    int most = 0;
    for (uint64_t id = 0; id < STK_JPEG_SET_COUNT; id++) {
        CHECK(gpu->there[id] == cpu->there[id] || id == 17); /* damage that a GPU may not notice */
        if (!gpu->there[id] || !cpu->there[id])
            continue;
        CHECK(!(is_host(id) || equal) || memcmp(gpu->at[id], cpu->at[id], ROW) == 0);
        for (int i = 0; i < ROW && !is_host(id); i++, count++) {
            const int apart = abs(gpu->at[id][i] - cpu->at[id][i]);
            sum += (uint64_t)apart;
            most = apart > most ? apart : most;
        }
    }
    printf("%llu images decoded on the GPU; %.3f levels apart on average, %d at most; %llu bad "
           "samples, "
           "%llu on the CPU\n",
           (unsigned long long)gpu->decoded, (double)sum / (double)count, most,
           (unsigned long long)gpu->bad, (unsigned long long)cpu->bad);
    CHECK(gpu->decoded > STK_JPEG_SET_COUNT / 2);
    CHECK(sum <= count * MEAN_MAX);
    CHECK(gpu->bad >= 2 && gpu->bad <= cpu->bad);
}

static bool is_missing(const char *named, const char *library)
{
    return dlopen(named != NULL ? named : library, RTLD_LAZY) == NULL;
}

int main(int argc, char **argv)
{
    static struct rows gpu, cpu; /* too large for a stack */
    static struct stk_jpeg_set set;
    const struct stk_jpeg_set_kind bad = { .bad = true };
    const bool equal = argc > 1 && strcmp(argv[1], "equal") == 0;
    struct stk_cuda_runtime cuda;
    stoker_loader *loader = NULL;
    stoker_error error = { .message = "" };
    const char *missing = stk_gpu_missing(&cuda);
    if (missing != NULL)
        return stk_gpu_skip(missing);
    CHECK(stk_jpeg_set_make(&set, &bad, "?channels=3"));
    stoker_loader_options options = options_for(true);
    if (stoker_loader_create(&loader, set.dataset, &options, &error) != STOKER_OK) {
        stk_jpeg_set_remove(&set);
        if (is_missing(getenv("STOKER_NVIMGCODEC"), "libnvimgcodec.so.0") ||
            (is_missing(NULL, "libnvjpeg.so.13") && is_missing(NULL, "libnvjpeg.so.12")))
            return stk_gpu_skip(error.message);
        printf("%s\n", error.message);
        return 1;
    }
    collect(&cuda, loader, true, &gpu);
    stoker_loader_destroy(&loader);
    options = options_for(false);
    CHECK(stoker_loader_create(&loader, set.dataset, &options, NULL) == STOKER_OK);
    collect(&cuda, loader, false, &cpu);
    stoker_loader_destroy(&loader);
    compare(&gpu, &cpu, equal);
    stk_jpeg_set_remove(&set);
    return 0;
}
