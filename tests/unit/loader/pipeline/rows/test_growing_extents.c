/* test_growing_extents.c - a data set whose extents grow, against its contract, never gets bytes
 * behind what the cache holds of a sample.
 */
#include <criterion/criterion.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/defaults.h"
#include "support/leaks.h"
#include "support/sets/one_file_set.h"

enum { ROW = STK_ONE_FILE_ROW_BYTES, SAMPLES = STK_ONE_FILE_SAMPLES };

struct growing {
    struct stk_one_file_set file; /* first: its functions take this one */
    stoker_codec codec;
    uint32_t bytes; /* of each extent */
};

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                  stoker_error *error)
{
    const struct growing *set = self;
    const int rc = stk_one_file_locate(self, ids, count, out, error);
    for (uint32_t i = 0; i < count; i++) {
        out[i].codec = &set->codec;
        out[i].extent.bytes = set->bytes;
    }
    return rc;
}

/* Every byte of sample i in the file is i + 1. */
static int decode(const void *self, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    (void)self;
    (void)scratch;
    (void)error;
    for (size_t i = 0; i < in->size; i++)
        if (in->bytes[i] != in->sample + 1)
            return STOKER_ECORRUPT;
    memset(out->rows[0].data, 0, ROW);
    return STOKER_OK;
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(ops),
                                        .name = "growing",
                                        .describe = stk_one_file_describe,
                                        .locate = locate,
                                        .file = stk_one_file_file };

CleanTest(growing_extents, are_read_again)
{
    struct growing set = {
        .file = { .path = "growing", .fd = memfd_create("growing", MFD_CLOEXEC) },
        .codec = { .struct_size = sizeof(stoker_codec), .name = "growing", .decode = decode },
        .bytes = 4
    };
    for (int i = 0; i < SAMPLES * ROW; i++)
        cr_assert_eq(write(set.file.fd, &(uint8_t){ (uint8_t)(i / ROW + 1) }, 1), 1);
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    const stoker_loader_options options =
        stk_small_options(.epochs = 3, .num_workers = 0, .cache = STOKER_CACHE_ENCODED);
    cr_assert_eq(stoker_dataset_create(&dataset, &ops, &set, NULL), STOKER_OK);
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, NULL), STOKER_OK);
    for (int rc; (rc = stoker_loader_next(loader, &batch, -1)) != STOKER_FINISHED;) {
        if (rc == STOKER_EPOCH_END) {
            set.bytes = ROW;
            continue;
        }
        cr_assert_eq(rc, STOKER_OK, "%s", stoker_loader_error(loader)->message);
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    close(set.file.fd);
}
