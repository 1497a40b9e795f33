/* own_codec.c - a decoder of your own: samples are runs, pairs of a length and a value. */
#include <stdio.h>
#include <stoker/stoker.h>
#include <string.h>

enum { ROW_BYTES = 256, SAMPLES = 3, RUNS_BYTES = 4 };
static uint8_t stored[] = { 255, 0, 1, 9, 128, 1, 128, 2, 56, 4, 200, 3 };

/* Workers call it at once, each with its own scratch if there is open(). It must not allocate. */
static int decode(const void *self, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    const stoker_row *row = &out->rows[0]; /* the part's first field */
    size_t filled = 0;
    for (size_t i = 0; i + 1 < in->size; filled += in->bytes[i], i += 2) {
        if (in->bytes[i] > row->bytes_max - filled)
            return STOKER_ECORRUPT; /* a bad sample: options.on_bad_sample decides */
        memset((uint8_t *)row->data + filled, in->bytes[i + 1], in->bytes[i]);
    }
    return filled == row->bytes_max ? STOKER_OK : STOKER_ETRUNCATED;
}
static const stoker_codec runs = { .struct_size = sizeof(runs), .name = "runs", .decode = decode };

static int describe(const void *self, stoker_dataset_info *out)
{
    out->count = SAMPLES, out->dtype = STOKER_DTYPE_UINT8;
    out->rank = 1, out->shape[0] = ROW_BYTES;
    return STOKER_OK;
}

/* A codec belongs to a part: the samples of a data set may have different ones. */
static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *parts,
                  stoker_error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *at = (const uint8_t *)self + ids[i] * RUNS_BYTES;
        parts[i] = (stoker_part){ .extent = { .memory = at, .bytes = RUNS_BYTES }, .codec = &runs };
    }
    return STOKER_OK;
}

int main(void)
{
    const stoker_dataset_ops ops = { sizeof(ops), "runs", .describe = describe, .locate = locate };
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    unsigned long sum = 0;
    int rc = stoker_dataset_create(&dataset, &ops, stored, NULL);
    if (rc == STOKER_OK)
        rc = stoker_loader_create(&loader, dataset, NULL, NULL);
    if (rc == STOKER_OK && (rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK)
        for (uint32_t i = 0; i < batch.count * ROW_BYTES; i++)
            sum += ((const uint8_t *)batch.images.data)[i];
    printf("%u samples, sum %lu: %s\n", batch.count, sum, stoker_strerror(rc));
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    return rc < 0;
}
