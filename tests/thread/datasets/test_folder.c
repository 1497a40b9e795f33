/* test_folder.c - a folder is scanned by several threads at once, twice at the same time, and
 * read by several workers, under ThreadSanitizer.
 */
#include <pthread.h>
#include <sys/stat.h>

#include "support/runs/scenario.h"
#include "support/thread_check.h"

enum { CLASSES = 12, FILES = 20, ROW = 8, SCANS = 10, SCANNERS = 2 };

static char directory[256];

static void each_file(char *path, size_t bytes, int class, int file)
{
    (void)snprintf(path, bytes, "%.200s/%02d/%02d.raw", directory, class, file);
}

static int make_files(void)
{
    const char *parent = getenv("TMPDIR");
    char path[300];
    (void)snprintf(directory, sizeof(directory), "%.150s/stoker-test-XXXXXX",
                   parent != NULL ? parent : P_tmpdir);
    if (mkdtemp(directory) == NULL)
        return -1;
    for (int class = 0; class < CLASSES; class ++) {
        (void)snprintf(path, sizeof(path), "%.200s/%02d", directory, class);
        if (mkdir(path, 0755) != 0)
            return -1;
        for (int file = 0; file < FILES; file++) {
            each_file(path, sizeof(path), class, file);
            FILE *out = fopen(path, "wbe");
            if (out == NULL)
                return -1;
            for (int at = 0; at < ROW; at++)
                (void)putc(class * FILES + file, out);
            if (fclose(out) != 0)
                return -1;
        }
    }
    return 0;
}

static void remove_files(void)
{
    char path[300];
    for (int class = 0; class < CLASSES; class ++) {
        for (int file = 0; file < FILES; file++) {
            each_file(path, sizeof(path), class, file);
            (void)unlink(path);
        }
        (void)snprintf(path, sizeof(path), "%.200s/%02d", directory, class);
        (void)rmdir(path);
    }
    (void)rmdir(directory);
}

static void check_batch(const stoker_batch *batch)
{
    const uint8_t *images = batch->images.data;
    const int64_t *labels = batch->labels.data;
    for (uint32_t row = 0; row < batch->count; row++) {
        CHECK(labels[row] == (int64_t)(batch->ids[row] / FILES));
        for (int at = 0; at < ROW; at++)
            CHECK(images[row * ROW + (uint32_t)at] == batch->ids[row]);
    }
}

static void read_all(const stoker_dataset *dataset)
{
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader_options options = stk_small_options(.num_workers = 3);
    CHECK(stoker_loader_create(&loader, dataset, &options, NULL) == STOKER_OK);
    for (int rc; (rc = stoker_loader_next(loader, &batch, -1)) != STOKER_FINISHED;) {
        CHECK(rc >= 0);
        if (rc == STOKER_EPOCH_END)
            continue;
        check_batch(&batch);
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
}

static void *scan(void *argument)
{
    (void)argument;
    char spec[300];
    (void)snprintf(spec, sizeof(spec), "folder:%.200s?extensions=raw", directory);
    for (int i = 0; i < SCANS; i++) {
        stoker_dataset *dataset = NULL;
        CHECK(stoker_dataset_open(&dataset, spec, NULL, NULL) == STOKER_OK);
        CHECK(stoker_dataset_get_info(dataset)->count == CLASSES * FILES);
        if (i == 0)
            read_all(dataset);
        stoker_dataset_close(&dataset);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[SCANNERS];
    CHECK(make_files() == 0);
    for (int i = 0; i < SCANNERS; i++)
        CHECK(pthread_create(&threads[i], NULL, scan, NULL) == 0);
    for (int i = 0; i < SCANNERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    remove_files();
    return 0;
}
