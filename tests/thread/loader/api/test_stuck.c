/* test_stuck.c - a thread whose system call comes back after destroy has given it up, and after the
 * data set was closed, finds the memory that it needs, and calls nothing of the caller's any more.
 *
 *   worker   submit ─▶ reap, pread: waits for the gate ───────────────────────────▶ stopping: close, gone
 *   main                    destroy: waits 6 s, gives it up ─▶ close ─▶ the gate opens
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <time.h>

#include "loader/api/loader.h"
#include "support/sets/one_file_set.h"
#include "support/thread_check.h"

enum { ROW_BYTES = STK_ONE_FILE_ROW_BYTES };

/* ---- a set whose codec looks at memory of the set ---- */

struct set {
    struct stk_one_file_set file; /* first: its functions take it for the set */
    stoker_codec codec;
    uint8_t mask[ROW_BYTES];
};

static _Atomic bool closed_set;
static _Atomic uint32_t decoded;

static int decode(const void *self, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    void *row = out->rows[0].data;
    const size_t row_bytes = out->rows[0].bytes_max;
    const struct set *set = self;
    const uint8_t *from = in->bytes;
    uint8_t *to = row;
    (void)scratch;
    (void)error;
    CHECK(!closed_set);
    for (size_t i = 0; i < row_bytes; i++)
        to[i] = from[i] ^ set->mask[i];
    atomic_fetch_add(&decoded, 1U);
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                  stoker_error *error)
{
    CHECK(!closed_set);
    return stk_one_file_locate(self, ids, count, out, error);
}

static void free_set(void *self)
{
    closed_set = true;
    free(self);
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "gated",
                                        .describe = stk_one_file_describe,
                                        .locate = locate,
                                        .file = stk_one_file_file,
                                        .destroy = free_set };

/* ---- a system call that is stuck until the gate opens ---- */

static _Atomic bool stuck, gate_open;

static void sleep_ms(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* Found before libc's: the file is on a storage that does not answer. */
ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
    (void)fd;
    (void)offset;
    for (stuck = true; !gate_open;)
        sleep_ms();
    memset(to, 0, bytes);
    return (ssize_t)bytes;
}

/* ---- */

static stoker_loader *kept; /* what is left behind stays within the leak checker's sight */

int main(void)
{
    struct set *set = calloc(1, sizeof(*set));
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    CHECK(set != NULL);
    set->codec = (stoker_codec){
        .struct_size = sizeof(stoker_codec), .name = "mask", .self = set, .decode = decode
    };
    set->file = (struct stk_one_file_set){ .path = "gate",
                                           .fd = open("/dev/zero", O_RDONLY | O_CLOEXEC),
                                           .codec = &set->codec };
    CHECK(stoker_dataset_create(&dataset, &ops, set, NULL) == STOKER_OK);
    stoker_loader_options options =
        stk_default_options(.num_workers = 1, .batch_size = 4, .cache = STOKER_CACHE_NONE,
                            .reader = stoker_reader_pread());
    CHECK(stoker_loader_create(&loader, dataset, &options, NULL) == STOKER_OK);
    kept = loader;
    CHECK(stoker_loader_next(loader, &batch, 10) == STOKER_TIMEOUT);
    while (!stuck)
        sleep_ms();
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    CHECK(loader == NULL && dataset == NULL && kept != NULL);
    gate_open = true;
    while (atomic_load(&kept->workers[0].life) != STK_WORKER_GONE)
        sleep_ms();
    CHECK(decoded == 0); /* what is the caller's is not called any more */
    CHECK(!closed_set);  /* the file may have been in use until then */
    return 0;
}
