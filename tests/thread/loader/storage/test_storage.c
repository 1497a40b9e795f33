/* test_storage.c - workers read a local file and two storages, one with a reader of its own, in one
 * loader, while another loader reads the same storages, under ThreadSanitizer. A third storage
 * keeps what it reads in a folder.
 */
#define STK_TEST_PLAIN
#include <pthread.h>

#include "loader/storage/cached.h"
#include "support/files/npy_bytes.h"
#include "support/plain_assert.h"
#include "support/sets/memory_storage.h"

enum { ROWS = 64, PARTS = 4, EPOCHS = 3 };

static stoker_dataset *joined;

/* Rows of one part hold 0, 1, ...: every epoch adds up to the same. */
static void *read_all(void *argument)
{
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    const stoker_loader_options options =
        stk_small_options(.batch_size = 5, .epochs = EPOCHS, .num_workers = *(int32_t *)argument,
                          .cache = STOKER_CACHE_NONE, .shuffle = true);
    uint64_t sum = 0;
    CHECK(stoker_loader_create(&loader, joined, &options, NULL) == STOKER_OK);
    for (int rc; (rc = stoker_loader_next(loader, &batch, 20000)) != STOKER_FINISHED;) {
        if (rc == STOKER_EPOCH_END)
            continue;
        CHECK(rc == STOKER_OK);
        for (uint32_t i = 0; i < batch.count; i++)
            sum += ((const uint32_t *)batch.images.data)[i];
        stoker_batch_release(&batch);
    }
    CHECK(sum == (uint64_t)EPOCHS * PARTS * ROWS * (ROWS - 1) / 2);
    stoker_loader_destroy(&loader);
    return NULL;
}

static void join(const struct stk_directory *directory, struct stk_memory_storage *storages)
{
    stoker_dataset *parts[PARTS] = { NULL };
    char spec[300];
    (void)snprintf(spec, sizeof(spec), "npy:%s/x.npy", directory->path);
    CHECK(stoker_dataset_open(&parts[0], spec, NULL, NULL) == STOKER_OK);
    for (int i = 1; i < PARTS; i++) {
        stoker_dataset_options options = STOKER_DATASET_OPTIONS_INIT;
        options.storage = storages[i - 1].storage;
        if (i == PARTS - 1) {
            char folder[300];
            (void)snprintf(folder, sizeof(folder), "%s/cache", directory->path);
            CHECK(stk_storage_cached(&options.storage, storages[i - 1].storage, folder, 1 << 30,
                                     NULL) == STOKER_OK);
        }
        CHECK(stoker_dataset_open(&parts[i], "npy:data/x.npy", &options, NULL) == STOKER_OK);
        if (i == PARTS - 1)
            stoker_storage_close(&options.storage);
        stoker_storage_close(&storages[i - 1].storage);
    }
    CHECK(stoker_dataset_concat(&joined, parts, PARTS, NULL) == STOKER_OK);
    for (int i = 0; i < PARTS; i++)
        stoker_dataset_close(&parts[i]);
}

int main(void)
{
    static struct stk_memory_storage storages[PARTS - 1];
    static stoker_reader reader;
    struct stk_directory directory = stk_directory_make();
    struct stk_bytes file = { 0 };
    uint32_t rows[ROWS];
    int32_t workers[2] = { 3, 2 };
    pthread_t threads[2];
    char cache[300];
    const uint64_t start_ns = stk_now_ns();
    for (uint32_t i = 0; i < ROWS; i++)
        rows[i] = i;
    stk_put_npy(&file, "<u4", "(64, 1)", rows, sizeof(rows));
    stk_file_write(&directory, "x.npy", file.at, file.size);
    (void)snprintf(cache, sizeof(cache), "%s/cache", directory.path);
    do {
        stk_memory_storage_make(&storages[0], &directory, NULL);
        stk_memory_storage_make(&storages[1], &directory, &reader);
        stk_memory_storage_make(&storages[2], &directory, NULL);
        join(&directory, storages);
        for (int i = 0; i < 2; i++)
            CHECK(pthread_create(&threads[i], NULL, read_all, &workers[i]) == 0);
        for (int i = 0; i < 2; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(storages[0].destroyed == 0);
        stoker_dataset_close(&joined);
        for (int i = 0; i < PARTS - 1; i++)
            CHECK(storages[i].destroyed == 1);
        CHECK(nftw(cache, stk_remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0);
    } while (stk_time_left(start_ns));
    stk_directory_remove(&directory);
    return 0;
}
