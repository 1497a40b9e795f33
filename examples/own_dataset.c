/* own_dataset.c - a data set in a format of your own: a file of lines of 8 bytes, a sample each.
 *
 * usage: own_dataset FILE     e.g. of seq -f %07.0f 0 999
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/stoker.h>
#include <unistd.h>

enum { LINE_BYTES = 8 };

/* Several workers run the callbacks at once: they only read `self`, here the file. */
static int describe(const void *self, stoker_dataset_info *out)
{
    out->count = ((const stoker_file *)self)->size / LINE_BYTES;
    out->dtype = STOKER_DTYPE_UINT8;
    out->rank = out->file_count = 1;
    out->shape[0] = out->encoded_bytes_max = LINE_BYTES;
    return STOKER_OK;
}

/* Say where samples are; the loader reads them. Without a codec the bytes are the row. */
static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *parts,
                  stoker_error *error)
{
    for (uint32_t i = 0; i < count; i++)
        parts[i] =
            (stoker_part){ .extent = { .offset = ids[i] * LINE_BYTES, .bytes = LINE_BYTES } };
    return STOKER_OK;
}

static int get_file(const void *self, uint32_t index, stoker_file *out)
{
    *out = *(const stoker_file *)self;
    return STOKER_OK;
}

int main(int argc, char **argv)
{
    const stoker_dataset_ops ops = { sizeof(ops), "lines", .describe = describe, .locate = locate,
                                     .file = get_file };
    stoker_file file = { .path = argv[argc - 1], .fd = open(argv[argc - 1], O_RDONLY) };
    file.size = (uint64_t)lseek(file.fd, 0, SEEK_END);
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    unsigned long sum = 0;
    int rc = stoker_dataset_create(&dataset, &ops, &file, NULL);
    if (rc == STOKER_OK)
        rc = stoker_loader_create(&loader, dataset, NULL, NULL);
    for (; rc == STOKER_OK && (rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK;
         stoker_batch_release(&batch))
        for (uint32_t i = 0; i < batch.count; i++)
            sum += strtoul((const char *)batch.images.data + i * LINE_BYTES, NULL, 10);
    printf("sum %lu: %s\n", sum, stoker_strerror(rc));
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset); /* calls ops.destroy, if set: `file` had to live until here */
    return rc < 0;
}
