/* test_leases.c - others write to shards that are mapped (map=1), under ThreadSanitizer: the
 * process survives, the writer is resumed long before the kernel's timeout, and no signal is sent.
 *
 * Method: after the first epoch all rows come from the mapping. Then a writer cuts, overwrites or
 * only opens a shard, while the loader is in the middle of an epoch, at rest, or in the middle of a
 * batch. What is delivered afterwards must be right, or the run must end with an error. Without
 * leases SIGBUS ends this program.
 */
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "loader/dataset/dataset.h"
#include "support/files/shard_files.h"
#include "support/thread_check.h"

enum {
    SHARDS = 2,
    COUNT = 70,
    BATCH = 7,
    EPOCH_BATCHES = SHARDS * COUNT / BATCH,
    EPOCHS = 40,         /* many more rows than a loader makes ahead */
    WRITER_SECONDS = 20, /* the kernel would let it wait for 45 */
    SKIPPED = 77
};

/* What the writer does to the first shard. */
enum change { CUT, OVERWRITE, TOUCH };

static char directory[200];
static _Atomic int signals;

static void count_signal(int number)
{
    (void)number;
    atomic_fetch_add(&signals, 1);
}

static const char *shard(char path[256], int number)
{
    (void)snprintf(path, 256, "%s/%d.stk", directory, number);
    return path;
}

static void write_shards(void)
{
    static struct stk_shard_image image;
    for (uint32_t number = 0; number < SHARDS; number++) {
        char path[256];
        stk_shard_image_make(&image, number, SHARDS, COUNT, 1);
        FILE *to = fopen(shard(path, (int)number), "wbe");
        CHECK(to != NULL);
        CHECK(fwrite(image.at, image.size, 1, to) == 1);
        CHECK(fclose(to) == 0);
    }
}

/* ---- the writer ---- */

static void change_shard(enum change change)
{
    static const uint8_t garbage[8192] = { 0 };
    const uint64_t start_ns = stk_now_ns();
    char path[256];
    const int fd = open(shard(path, 0), O_RDWR | O_CLOEXEC | (change == CUT ? O_TRUNC : 0));
    CHECK(fd >= 0);
    CHECK(stk_now_ns() - start_ns < WRITER_SECONDS * UINT64_C(1000000000));
    if (change == OVERWRITE)
        CHECK(pwrite(fd, garbage, sizeof(garbage), 0) == (ssize_t)sizeof(garbage));
    CHECK(close(fd) == 0);
}

/* In another process, so that it is seen that the leases are not only among threads. */
static void change_in_child(enum change change)
{
    int status;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        change_shard(change);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void *change_in_thread(void *argument)
{
    change_shard(*(const enum change *)argument);
    return NULL;
}

/* ---- the reader ---- */

struct run {
    stoker_dataset *dataset;
    stoker_loader *loader;
};

static struct run begin(const char *spec_format, int workers)
{
    struct run run = { 0 };
    char spec[512];
    const stoker_loader_options options =
        stk_default_options(.batch_size = BATCH, .num_workers = workers, .epochs = EPOCHS,
                            .shuffle = true, .cache = STOKER_CACHE_NONE,
                            .device = STOKER_DEVICE_CPU);
    (void)snprintf(spec, sizeof(spec), spec_format, directory);
    CHECK(stoker_dataset_open(&run.dataset, spec, NULL, NULL) == STOKER_OK);
    CHECK(stoker_loader_create(&run.loader, run.dataset, &options, NULL) == STOKER_OK);
    return run;
}

static void end(struct run *run)
{
    stoker_loader_destroy(&run->loader);
    stoker_dataset_close(&run->dataset);
}

/* Take up to `most` batches, which must be right. Returns what ended that; 0 = their number. */
static int take(const struct run *run, int most)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc = STOKER_OK;
    for (int taken = 0; taken < most; taken += rc == STOKER_OK) {
        rc = stoker_loader_next(run->loader, &batch, -1);
        if (rc == STOKER_EPOCH_END)
            continue;
        if (rc != STOKER_OK)
            return rc;
        for (uint32_t i = 0; i < batch.count; i++) {
            uint8_t row[STK_SHARD_TEST_ROW];
            stk_shard_test_row(batch.ids[i] % (SHARDS * COUNT), row);
            CHECK(memcmp((const uint8_t *)batch.images.data + i * sizeof(row), row, sizeof(row)) ==
                  0);
        }
        stoker_batch_release(&batch);
    }
    return rc;
}

static int take_epoch(const struct run *run)
{
    return take(run, (int)stoker_dataset_get_info(run->dataset)->count / BATCH);
}

static bool is_mapped(const struct run *run, uint64_t id)
{
    stoker_part part;
    CHECK(stoker_dataset_locate(run->dataset, id, &part, NULL) == STOKER_OK);
    return part.extent.memory != NULL;
}

static int lease_of(const struct run *run, uint32_t number)
{
    stoker_file file;
    CHECK(run->dataset->ops->file(run->dataset->self, number, &file) == STOKER_OK);
    return fcntl(file.fd, F_GETLEASE);
}

/* Let the loader work until it has begun, and not finished, a batch: it holds rows that it has
 * located. */
static void stop_in_a_batch(const struct run *run)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc;
    while ((rc = stoker_loader_next(run->loader, &batch, 0)) != STOKER_TIMEOUT) {
        CHECK(rc == STOKER_OK || rc == STOKER_EPOCH_END);
        stoker_batch_release(&batch);
    }
}

/* ---- cases ---- */

/* The run after the change: right rows, then an error unless the shard is as it was. */
static void finish(struct run *run, enum change change)
{
    CHECK(!is_mapped(run, 0));
    CHECK(is_mapped(run, COUNT)); /* the other shard */
    const int rc = take(run, INT32_MAX);
    if (change == TOUCH)
        CHECK(rc == STOKER_FINISHED);
    else
        CHECK(rc == STOKER_ECORRUPT || rc == STOKER_ETRUNCATED || rc == STOKER_ECHANGED);
    end(run);
    write_shards();
}

static void check_rest(const char *spec, int workers, enum change change)
{
    struct run run = begin(spec, workers);
    CHECK(take_epoch(&run) == STOKER_OK);
    CHECK(take(&run, 3) == STOKER_OK);
    CHECK(is_mapped(&run, 0));
    change_in_child(change); /* and nobody calls next() */
    finish(&run, change);
}

static void check_at_work(const char *spec, int workers, enum change change)
{
    struct run run = begin(spec, workers);
    pthread_t writer;
    int rc = take(&run, EPOCH_BATCHES + 3);
    CHECK(rc == STOKER_OK);
    CHECK(pthread_create(&writer, NULL, change_in_thread, &change) == 0);
    for (int i = 0; i < 5 * EPOCH_BATCHES && rc == STOKER_OK; i++)
        rc = take(&run, 1);
    CHECK(pthread_join(writer, NULL) == 0);
    if (rc == STOKER_OK) {
        finish(&run, change);
        return;
    }
    CHECK(change != TOUCH);
    end(&run);
    write_shards();
}

static void check_in_a_batch(const char *spec, enum change change)
{
    for (int batches = 0; batches < 5; batches++) {
        struct run run = begin(spec, 0);
        CHECK(take_epoch(&run) == STOKER_OK && take(&run, batches) == STOKER_OK);
        stop_in_a_batch(&run);
        change_in_child(change);
        finish(&run, change);
    }
}

/* One sample at a time. */
static void check_read(void)
{
    struct run run = begin("shards:%s?map=1", 0);
    uint8_t bytes[STK_SHARD_TEST_ROW + 1];
    uint8_t row[STK_SHARD_TEST_ROW];
    size_t size;
    stk_shard_test_row(1, row);
    CHECK(take(&run, EPOCH_BATCHES) == STOKER_OK);
    change_in_child(TOUCH);
    CHECK(stoker_dataset_read_stored(run.dataset, 1, 0, bytes, sizeof(bytes), &size, NULL) ==
          STOKER_OK);
    CHECK(size == sizeof(row) && memcmp(bytes, row, size) == 0);
    change_in_child(CUT);
    CHECK(stoker_dataset_read_stored(run.dataset, 1, 0, bytes, sizeof(bytes), &size, NULL) ==
          STOKER_ETRUNCATED);
    end(&run);
    write_shards();
}

/* A writer that is there first: there is no lease, and it need not wait. */
static void check_open_writer(void)
{
    char path[256];
    const int fd = open(shard(path, 0), O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    struct run run = begin("shards:%s?map=1", 2);
    CHECK(lease_of(&run, 0) == F_UNLCK);
    CHECK(take(&run, EPOCH_BATCHES + 3) == STOKER_OK);
    CHECK(is_mapped(&run, 0));
    CHECK(close(fd) == 0);
    change_in_child(TOUCH);
    CHECK(is_mapped(&run, 0));
    CHECK(take(&run, INT32_MAX) == STOKER_FINISHED);
    end(&run);
}

/* Two processes have mapped the shard: the writer waits for both. */
static void check_two_processes(void)
{
    int ready[2], go[2], status;
    char word = 'x';
    CHECK(pipe(ready) == 0 && pipe(go) == 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    CHECK(close(child == 0 ? go[1] : go[0]) == 0); /* a parent that ends also ends the child */
    struct run run = begin("shards:%s?map=1", 2);
    CHECK(take(&run, EPOCH_BATCHES + 3) == STOKER_OK);
    if (child == 0) {
        CHECK(write(ready[1], &word, 1) == 1);
        CHECK(read(go[0], &word, 1) == 1);
        finish(&run, CUT);
        _exit(atomic_load(&signals) == 0 ? 0 : 1);
    }
    CHECK(read(ready[0], &word, 1) == 1);
    change_in_child(CUT);
    CHECK(!is_mapped(&run, 0));
    CHECK(take(&run, INT32_MAX) < 0);
    CHECK(write(go[1], &word, 1) == 1);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(close(ready[0]) == 0 && close(ready[1]) == 0 && close(go[1]) == 0);
    end(&run);
    write_shards();
}

/* A child that closes the data set does not take the lease from its parent. */
static void check_forked_close(void)
{
    struct run run = begin("shards:%s?map=1", 0);
    int status;
    stoker_loader_destroy(&run.loader); /* before the fork: a loader holds the data set open */
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        end(&run);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(lease_of(&run, 0) == F_RDLCK);
    change_in_child(TOUCH);
    CHECK(lease_of(&run, 0) == F_UNLCK);
    end(&run);
}

/* Returns true if this user gets leases, on a file system where they protect. */
static bool has_leases(void)
{
    char path[256];
    struct statfs in;
    const int fd = open(shard(path, 0), O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    const bool granted = fstatfs(fd, &in) == 0 && in.f_type != OVERLAYFS_SUPER_MAGIC &&
                         fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
    CHECK(close(fd) == 0);
    return granted;
}

int main(void)
{
    static const char *const specs[] = { "shards:%s?map=1", "shards:%s?map=1&verify=once",
                                         "concat:(shards:%1$s?map=1)+(shards:%1$s?map=1)" };
    const char *parent = getenv("TMPDIR");
    char path[256];
    (void)snprintf(directory, sizeof(directory), "%.150s/stoker-test-XXXXXX",
                   parent != NULL ? parent : P_tmpdir);
    CHECK(mkdtemp(directory) != NULL);
    CHECK(signal(SIGIO, count_signal) != SIG_ERR);
    CHECK(signal(SIGURG, count_signal) != SIG_ERR);
    write_shards();
    const bool granted = has_leases();
    if (granted) {
        check_two_processes(); /* first: under ThreadSanitizer the child of threads has none */
        for (int workers = 0; workers <= 2; workers += 2) {
            for (enum change change = CUT; change <= TOUCH; change++) {
                check_rest(specs[0], workers, change);
                check_at_work(specs[0], workers, change);
            }
            check_rest(specs[1], workers, CUT); /* does not notice what is overwritten */
            check_at_work(specs[1], workers, CUT);
        }
        check_in_a_batch(specs[0], CUT);
        check_in_a_batch(specs[1], CUT);
        check_in_a_batch(specs[2], CUT);
        check_read();
        check_forked_close();
    }
    check_open_writer();
    CHECK(atomic_load(&signals) == 0);
    for (int number = 0; number < SHARDS; number++)
        CHECK(unlink(shard(path, number)) == 0);
    CHECK(rmdir(directory) == 0);
    return granted ? 0 : SKIPPED;
}
