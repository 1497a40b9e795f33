/* test_loader.c - the loader with a GPU: the CPU's bytes for every setting, both rules of the
 * buffers, and DLPack tensors.
 *
 *   consumer's stream   wait for batch ─▶ [ late ] ─▶ copy it to the archive ─▶ released
 *
 * The archive keeps each batch as the stream found it and is checked at the end. `late` is a kernel
 * that spins for LATE_NS, a hundred times as long as the copy of a batch, on one warp: it holds up
 * no copy and takes no bandwidth. So a slot refilled before its copy is done, or a buffer before it
 * is released, shows as wrong bytes: with a runtime that lies about events this program fails
 * (unit.gpu.loader_slot, loader_buffer). Exits 77 with the reason if there is no GPU.
 *
 *   gpu_loader [rules]      rules: only the checks with `late`
 */
#include <stoker/cuda.h>
#include <stoker/dlpack.h>

#include "bench/loaderbench/device/spin.h"
#include "loader/api/lend/dlpack_layout.h"
#include "support/runs/scenario.h"

#include "first_gpu.h"

enum { BATCHES_MAX = 32, LATE_NS = 2000000, ALIGN = 256 };

struct gpu {
    struct stk_cuda_runtime cuda;
    cudaStream_t stream;
    cudaLibrary_t library;
    cudaKernel_t late; /* NULL = built without it */
    uint64_t *sum;     /* GPU memory, which `late` writes */
};

struct archive {
    char *memory; /* GPU memory */
    char *here;   /* a copy on the host */
    size_t slot_bytes, label_at, id_at;
    stoker_batch batches[BATCHES_MAX]; /* their shapes; pointers are stale */
    uint32_t count;
};

static size_t align(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t image_bytes(const stoker_batch *batch)
{
    size_t bytes = stoker_dtype_bytes(batch->images.dtype);
    for (uint32_t axis = 0; axis < batch->images.rank; axis++)
        bytes *= (size_t)batch->images.shape[axis];
    return bytes;
}

/* ---- the archive ---- */

static void archive_make(struct gpu *gpu, struct archive *archive, const stoker_batch *first)
{
    archive->label_at = align(image_bytes(first));
    archive->id_at = archive->label_at + align(first->count * sizeof(int64_t));
    archive->slot_bytes = archive->id_at + align(first->count * sizeof(uint64_t));
    CHECK(gpu->cuda.cudaMalloc((void **)&archive->memory, BATCHES_MAX * archive->slot_bytes) ==
          cudaSuccess);
    archive->here = malloc(BATCHES_MAX * archive->slot_bytes);
    CHECK(archive->here != NULL);
}

static void archive_free(struct gpu *gpu, struct archive *archive)
{
    CHECK(archive->memory == NULL || gpu->cuda.cudaFree(archive->memory) == cudaSuccess);
    free(archive->here);
}

static void put(struct gpu *gpu, void *to, const void *from, size_t bytes)
{
    CHECK(gpu->cuda.cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, gpu->stream) ==
          cudaSuccess);
}

static void archive_add(struct gpu *gpu, struct archive *archive, const stoker_batch *batch)
{
    if (archive->memory == NULL)
        archive_make(gpu, archive, batch);
    CHECK(archive->count < BATCHES_MAX);
    char *slot = archive->memory + archive->count * archive->slot_bytes;
    const uint64_t *ids = batch->device == STOKER_DEVICE_CUDA ? batch->device_ids : batch->ids;
    put(gpu, slot, batch->images.data, image_bytes(batch));
    put(gpu, slot + archive->label_at, batch->labels.data, batch->count * sizeof(int64_t));
    put(gpu, slot + archive->id_at, ids, batch->count * sizeof(uint64_t));
    archive->batches[archive->count++] = *batch;
}

/* Hashes of what the stream found. */
static void archive_read(struct gpu *gpu, struct archive *archive, struct stk_run *run)
{
    CHECK(gpu->cuda.cudaStreamSynchronize(gpu->stream) == cudaSuccess);
    if (archive->count > 0)
        put(gpu, archive->here, archive->memory, archive->count * archive->slot_bytes);
    CHECK(gpu->cuda.cudaStreamSynchronize(gpu->stream) == cudaSuccess);
    for (uint32_t i = 0; i < archive->count; i++) {
        stoker_batch batch = archive->batches[i];
        char *slot = archive->here + i * archive->slot_bytes;
        batch.images.data = slot;
        batch.labels.data = slot + archive->label_at;
        batch.ids = (const uint64_t *)(const void *)(slot + archive->id_at);
        run->hashes[run->batches++] = stk_batch_hash(&batch);
        run->samples += batch.count;
    }
}

/* ---- the consumer ---- */

static void be_late(struct gpu *gpu)
{
    struct bench_spin spin = { .images = (const uint8_t *)gpu->sum,
                               .image_bytes = sizeof(*gpu->sum),
                               .sum = gpu->sum,
                               .spin_ns = LATE_NS };
    void *arguments[] = { &spin };
    CHECK(stk_cuda_launch_kernel(&gpu->cuda, (const void *)gpu->late, (dim3){ 1, 1, 1 },
                                 (dim3){ BENCH_SPIN_THREADS, 1, 1 }, arguments,
                                 gpu->stream) == cudaSuccess);
}

/* Takes the batch as a tensor and releases it at once. */
static void use_tensor(struct gpu *gpu, struct archive *archive, stoker_batch *batch, bool late)
{
    DLManagedTensorVersioned *images = NULL;
    const stoker_batch seen = *batch;
    CHECK(stoker_batch_to_dlpack(batch, STOKER_TENSOR_IMAGES, gpu->stream, &images) == STOKER_OK);
    CHECK(images->dl_tensor.data == batch->images.data);
    CHECK(images->dl_tensor.device.device_type == kDLCUDA);
    stoker_batch_release(batch);
    if (late)
        be_late(gpu);
    archive_add(gpu, archive, &seen);
    images->deleter(images);
}

static void use_batch(struct gpu *gpu, struct archive *archive, stoker_batch *batch, bool late)
{
    CHECK(stoker_batch_wait_on(batch, gpu->stream) == STOKER_OK);
    if (late)
        be_late(gpu);
    archive_add(gpu, archive, batch);
    CHECK(stoker_batch_release_on(batch, gpu->stream) == STOKER_OK);
}

static void run_on_gpu(struct gpu *gpu, const stoker_dataset *dataset,
                       const stoker_loader_options *options, bool late, bool tensors,
                       struct stk_run *run, stoker_stats *stats)
{
    struct archive archive = { .memory = NULL };
    stoker_loader *loader = NULL;
    stoker_error error = { 0 };
    stoker_loader_options wanted = *options;
    *run = (struct stk_run){ 0 };
    if (stoker_loader_create(&loader, dataset, &wanted, &error) != STOKER_OK) {
        fprintf(stderr, "create: %s\n", error.message);
        exit(1);
    }
    for (;;) {
        stoker_batch batch = STOKER_BATCH_INIT;
        run->rc = stoker_loader_next(loader, &batch, -1);
        if (run->rc == STOKER_EPOCH_END) {
            run->epoch_ends++;
            continue;
        }
        if (run->rc != STOKER_OK)
            break;
        if (tensors)
            use_tensor(gpu, &archive, &batch, late);
        else
            use_batch(gpu, &archive, &batch, late);
    }
    CHECK(run->rc == STOKER_FINISHED);
    archive_read(gpu, &archive, run);
    *stats = (stoker_stats){ .struct_size = sizeof(*stats) };
    CHECK(stoker_loader_stats(loader, stats) == STOKER_OK);
    stoker_loader_destroy(&loader);
    archive_free(gpu, &archive);
}

/* ---- checks ---- */

static void same(const struct stk_run *found, const struct stk_run *wanted, const char *what)
{
    if (stk_runs_equal(found, wanted))
        return;
    fprintf(stderr, "%s: not the CPU's bytes (%u of %u batches)\n", what, found->batches,
            wanted->batches);
    exit(1);
}

static stoker_loader_options settings_of(uint32_t number)
{
    static const stoker_dtype types[] = { STOKER_DTYPE_NONE, STOKER_DTYPE_FLOAT32,
                                          STOKER_DTYPE_FLOAT16, STOKER_DTYPE_BFLOAT16 };
    static const float mean[] = { 0.5F, 0.25F, 0.125F }, std[] = { 0.25F, 0.5F, 0.75F };
    stoker_loader_options options =
        stk_small_options(.dtype = types[number % 4],
                          .layout = number / 4 % 2 == 0 ? STOKER_LAYOUT_NHWC : STOKER_LAYOUT_NCHW,
                          .pin_memory = number / 8 % 2 == 0 ? STOKER_SWITCH_ON : STOKER_SWITCH_OFF,
                          .non_blocking = number / 16 % 2 == 0,
                          .convert_on_device =
                              number / 32 % 2 == 0 ? STOKER_SWITCH_AUTO : STOKER_SWITCH_OFF,
                          .num_workers = (int32_t)(number % 3),
                          .blend.mixup_alpha = number % 3 == 1 ? 0.5F : 0.0F,
                          .blend.cutmix_alpha = number % 5 < 2 ? 1.0F : 0.0F);
    if (options.dtype != STOKER_DTYPE_NONE) {
        options.mean = mean;
        options.std = std;
        options.mean_count = 3;
    }
    return options;
}

static uint32_t check_settings(struct gpu *gpu)
{
    enum { SETTINGS = 64 };
    struct stk_file_set set;
    static struct stk_run found, wanted;
    stoker_stats stats;
    uint32_t converted = 0;
    CHECK(stk_file_set_make(&set, 103, 7, 5, 3));
    for (uint32_t number = 0; number < SETTINGS; number++) {
        char what[64];
        stoker_loader_options options = settings_of(number);
        CHECK(stk_run(set.dataset, &options, &wanted) == STOKER_FINISHED);
        (void)snprintf(what, sizeof(what), "setting %u", number);
        options.device = STOKER_DEVICE_CUDA;
        run_on_gpu(gpu, set.dataset, &options, false, number % 5 == 4, &found, &stats);
        same(&found, &wanted, what);
        CHECK(stats.copies == wanted.batches);
        CHECK(stats.pinned == (options.pin_memory == STOKER_SWITCH_ON));
        converted += stats.converts_on_device;
        options.device = STOKER_DEVICE_CUDA_HOST;
        options.convert_on_device = STOKER_SWITCH_AUTO;
        if (number % 8 == 1) {
            run_on_gpu(gpu, set.dataset, &options, false, false, &found, &stats);
            same(&found, &wanted, "cuda-host");
        }
    }
    stk_file_set_remove(&set);
    printf("%d settings: the CPU's bytes; %u of them converted on the GPU\n", (int)SETTINGS,
           converted);
    return converted;
}

/* Batches of megabytes, a late stream, and the fewest slots and buffers. */
static void check_rules(struct gpu *gpu)
{
    static struct stk_run found, wanted;
    stoker_dataset *dataset = NULL;
    stoker_stats stats;
    CHECK(stoker_dataset_open(&dataset, "synth:pictures?count=128&size=64", NULL, NULL) ==
              STOKER_OK ||
          stoker_dataset_open(&dataset, "synth:bytes?count=128&shape=64x64x3", NULL, NULL) ==
              STOKER_OK);
    for (int round = 0; round < 8; round++) {
        stoker_loader_options options =
            stk_small_options(.batch_size = 32, .epochs = 4, .prefetch_batches = 2,
                              .num_workers = 2, .cache = STOKER_CACHE_DECODED,
                              .dtype = STOKER_DTYPE_FLOAT32);
        CHECK(stk_run(dataset, &options, &wanted) == STOKER_FINISHED);
        options.device = STOKER_DEVICE_CUDA;
        options.pin_memory = round / 2 % 2 == 0 ? STOKER_SWITCH_ON : STOKER_SWITCH_OFF;
        options.convert_on_device = round / 4 == 0 ? STOKER_SWITCH_AUTO : STOKER_SWITCH_OFF;
        run_on_gpu(gpu, dataset, &options, true, round % 2 == 1, &found, &stats);
        same(&found, &wanted, round % 2 == 1 ? "late, as tensors" : "late");
    }
    stoker_dataset_close(&dataset);
    puts("slots and buffers are refilled in time, and not before");
}

static void load_late(struct gpu *gpu)
{
    size_t bytes;
    const void *const image = bench_spin_fatbin(&bytes);
    if (image == NULL)
        return;
    CHECK(gpu->cuda.cudaLibraryLoadData(&gpu->library, image, NULL, NULL, 0, NULL, NULL, 0) ==
          cudaSuccess);
    CHECK(gpu->cuda.cudaLibraryGetKernel(&gpu->late, gpu->library, BENCH_SPIN_NAME) == cudaSuccess);
    CHECK(gpu->cuda.cudaMalloc((void **)&gpu->sum, sizeof(*gpu->sum)) == cudaSuccess);
    CHECK(gpu->cuda.cudaMemsetAsync(gpu->sum, 0, sizeof(*gpu->sum), gpu->stream) == cudaSuccess);
}

static void drop_late(struct gpu *gpu)
{
    if (gpu->late == NULL)
        return;
    CHECK(gpu->cuda.cudaFree(gpu->sum) == cudaSuccess);
    CHECK(gpu->cuda.cudaLibraryUnload(gpu->library) == cudaSuccess);
}

int main(int count, char **words)
{
    static struct gpu gpu;
    const char *const missing = stk_gpu_missing(&gpu.cuda);
    if (missing != NULL)
        return stk_gpu_skip(missing);
    CHECK(gpu.cuda.cudaStreamCreateWithFlags(&gpu.stream, cudaStreamNonBlocking) == cudaSuccess);
    load_late(&gpu);
    if (count < 2 || strcmp(words[1], "rules") != 0)
        (void)check_settings(&gpu);
    if (gpu.late != NULL)
        check_rules(&gpu);
    else
        puts("built without nvcc or bench/: no kernel holds up the stream, the rules are not "
             "checked");
    drop_late(&gpu);
    CHECK(gpu.cuda.cudaStreamDestroy(gpu.stream) == cudaSuccess);
    return 0;
}
