/* target_tar.c - packing into one archive, as WebDataset has them: KEY.png and KEY.cls.
 *
 * POSIX ustar: a block of 512 bytes tells name and size of a file, its bytes follow, filled up
 * to a whole block; two blocks of zeros end it.
 */
#include "datasets/pack/names.h"
#include "datasets/pack/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BLOCK_BYTES = 512, RECORD_BYTES = 20 * BLOCK_BYTES };

struct tar {
    const struct pack_plan *plan;
    struct pack_output output;
    char folder[PACK_PATH_BYTES];
    uint64_t at; /* bytes written */
    struct pack_tally tally;
};

static void close_tar(void *self)
{
    struct tar *tar = self;
    pack_output_drop(&tar->output);
    free(tar);
}

/* Split DIR/NAME; a name alone is in ".". */
static const char *split_path(const char *path, char folder[PACK_PATH_BYTES])
{
    const char *slash = strrchr(path, '/');
    const size_t bytes = slash == NULL ? 1 : slash == path ? 1 : (size_t)(slash - path);
    (void)snprintf(folder, PACK_PATH_BYTES, "%.*s", (int)bytes, slash == NULL ? "." : path);
    return slash == NULL ? path : slash + 1;
}

static bool open_tar(void **self, const struct pack_plan *plan, struct pack_start *start,
                     struct pack_failure *failure)
{
    const char *path = plan->arguments->target;
    struct stat status;
    (void)start; /* an archive is written at one go */
    if (plan->info->label_dtype == STOKER_FLOAT32)
        return pack_fail(failure, path, 0, "labels that are no classes do not fit in .cls files");
    if (lstat(path, &status) == 0)
        return pack_fail(failure, path, 0, "there is such a file already");
    struct tar *tar = calloc(1, sizeof(*tar));
    if (tar == NULL)
        return pack_fail(failure, path, ENOMEM, "opening");
    tar->plan = plan;
    const char *name = split_path(path, tar->folder);
    if (!pack_output_begin(&tar->output, tar->folder, name, failure)) {
        close_tar(tar);
        return false;
    }
    *self = tar;
    return true;
}

/* Octal digits and a 0, as many as there is room for. */
static void put_octal(char *to, size_t bytes, uint64_t value)
{
    to[bytes - 1] = '\0';
    for (size_t i = bytes - 1; i > 0; i--, value >>= 3)
        to[i - 1] = (char)('0' + (value & 7));
}

/* The sum is taken with its own field full of spaces. */
static void make_header(char block[BLOCK_BYTES], const char *name, uint64_t size)
{
    static const char magic[8] = { 'u', 's', 't', 'a', 'r', '\0', '0', '0' };
    unsigned sum = 0;
    memset(block, 0, BLOCK_BYTES);
    (void)snprintf(block, 100, "%s", name);
    put_octal(block + 100, 8, 0644);
    put_octal(block + 108, 8, 0);
    put_octal(block + 116, 8, 0);
    put_octal(block + 124, 12, size);
    put_octal(block + 136, 12, 0); /* no time: the same samples give the same archive */
    memset(block + 148, ' ', 8);
    block[156] = '0';
    memcpy(block + 257, magic, sizeof(magic));
    for (int i = 0; i < BLOCK_BYTES; i++)
        sum += (unsigned char)block[i];
    put_octal(block + 148, 7, sum);
}

static bool add_file(struct tar *tar, const char *name, const void *bytes, size_t size,
                     struct pack_failure *failure)
{
    char header[BLOCK_BYTES];
    const size_t gap = (BLOCK_BYTES - size % BLOCK_BYTES) % BLOCK_BYTES;
    make_header(header, name, size);
    tar->at += BLOCK_BYTES + size + gap;
    return pack_output_write(&tar->output, header, sizeof(header), failure) &&
           pack_output_write(&tar->output, bytes, size, failure) &&
           pack_output_zeros(&tar->output, gap, failure);
}

static bool add_sample(struct tar *tar, const struct pack_sample *sample,
                       struct pack_failure *failure)
{
    char name[64];
    char text[32];
    pack_file_name(name, sizeof(name), sample);
    tar->tally.samples++;
    if (!add_file(tar, name, sample->bytes, sample->size, failure))
        return false;
    if (tar->plan->info->label_dtype != STOKER_INT64)
        return true;
    const int length = snprintf(text, sizeof(text), "%" PRId64, sample->label.index);
    (void)snprintf(strrchr(name, '.'), 5, ".cls");
    return add_file(tar, name, text, (size_t)length, failure);
}

static bool add_batch(void *self, const struct pack_batch *batch, struct pack_failure *failure)
{
    struct tar *tar = self;
    for (uint32_t i = 0; i < batch->count; i++) {
        if (!add_sample(tar, &batch->samples[i], failure))
            return false;
    }
    return true;
}

static bool finish(void *self, struct pack_tally *tally, struct pack_failure *failure)
{
    struct tar *tar = self;
    const uint64_t end = tar->at + 2 * (uint64_t)BLOCK_BYTES;
    const uint64_t whole = (end + RECORD_BYTES - 1) / RECORD_BYTES * RECORD_BYTES;
    if (!pack_output_zeros(&tar->output, whole - tar->at, failure) ||
        !pack_output_commit(&tar->output, true, failure))
        return false;
    tar->tally.bytes = whole;
    tar->tally.files = 1;
    *tally = tar->tally;
    return true;
}

const struct pack_target pack_target_tar = {
    .open = open_tar, .add = add_batch, .finish = finish, .close = close_tar
};
