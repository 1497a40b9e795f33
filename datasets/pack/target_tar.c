/* target_tar.c - pack into one archive in the form of WebDataset: KEY.png and KEY.cls.
 *
 * POSIX ustar: a header block of 512 bytes with name and size, the file padded to whole blocks, and two
 * blocks of zeros at the end. An existing archive is only compared, never changed.
 */
#include "datasets/pack/existing.h"
#include "datasets/pack/lock.h"
#include "datasets/pack/names.h"
#include "datasets/pack/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK_BYTES = 512, RECORD_BYTES = 20 * BLOCK_BYTES };

struct tar {
    const struct pack_plan *plan;
    int lock; /* output.hidden, locked; -1 = none */
    struct pack_output output;
    struct pack_existing existing; /* open: compare only */
    char folder[PACK_PATH_BYTES];
    uint64_t at; /* bytes written */
    struct pack_tally tally;
};

static void close_tar(void *self)
{
    struct tar *tar = self;
    pack_output_drop(&tar->output);
    pack_existing_close(&tar->existing);
    if (tar->lock >= 0)
        close(tar->lock);
    free(tar);
}

static bool is_there(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

static bool open_existing(struct tar *tar, const char *path, struct pack_failure *failure)
{
    return pack_existing_open(&tar->existing, path) ||
           pack_fail(failure, path, errno == EINVAL ? 0 : errno,
                     "there is something else of that name already");
}

/* Another packer may have finished between the first look and the lock: then compare with its archive
 * and drop the new, empty file that was locked. */
static bool open_new(struct tar *tar, const char *path, struct pack_failure *failure)
{
    const char *name = pack_path_split(path, tar->folder);
    if (!pack_output_name(&tar->output, tar->folder, name, failure))
        return false;
    tar->lock = pack_lock_file(tar->output.hidden, path, failure);
    if (tar->lock < 0)
        return false;
    if (!is_there(path))
        return pack_output_begin(&tar->output, tar->folder, name, failure);
    (void)unlink(tar->output.hidden);
    return open_existing(tar, path, failure);
}

static bool open_tar(void **self, const struct pack_plan *plan, struct pack_start *start,
                     struct pack_failure *failure)
{
    const char *path = plan->arguments->target;
    (void)start; /* an archive cannot be resumed */
    if (plan->info->label_dtype == STOKER_DTYPE_FLOAT32)
        return pack_fail(failure, path, 0, "labels that are no classes do not fit in .cls files");
    struct tar *tar = calloc(1, sizeof(*tar));
    if (tar == NULL)
        return pack_fail(failure, path, ENOMEM, "opening");
    tar->plan = plan;
    tar->lock = -1;
    if (!(is_there(path) ? open_existing(tar, path, failure) : open_new(tar, path, failure))) {
        close_tar(tar);
        return false;
    }
    *self = tar;
    return true;
}

/* ---- bytes ---------------------------------------------------------------------- */

static bool put(struct tar *tar, const void *bytes, size_t size, struct pack_failure *failure)
{
    if (tar->existing.file == NULL)
        return pack_output_write(&tar->output, bytes, size, failure);
    return pack_existing_next(&tar->existing, bytes, size) ||
           pack_fail(failure, tar->plan->arguments->target, 0,
                     "it exists and differs from what would be packed, from byte %" PRIu64
                     " on; remove it, or pack elsewhere",
                     tar->existing.at);
}

static bool put_zeros(struct tar *tar, uint64_t count, struct pack_failure *failure)
{
    static const uint8_t zeros[BLOCK_BYTES];
    for (; count > sizeof(zeros); count -= sizeof(zeros)) {
        if (!put(tar, zeros, sizeof(zeros), failure))
            return false;
    }
    return put(tar, zeros, (size_t)count, failure);
}

/* Octal digits and a final 0, filling the field. */
static void put_octal(char *to, size_t bytes, uint64_t value)
{
    to[bytes - 1] = '\0';
    for (size_t i = bytes - 1; i > 0; i--, value >>= 3)
        to[i - 1] = (char)('0' + (value & 7));
}

/* The checksum counts its own field as spaces. */
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
    return put(tar, header, sizeof(header), failure) && put(tar, bytes, size, failure) &&
           put_zeros(tar, gap, failure);
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
    if (tar->plan->info->label_dtype != STOKER_DTYPE_INT64)
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

/* Compare to the end of an existing archive; sync a new one. */
static bool end_archive(struct tar *tar, struct pack_failure *failure)
{
    if (tar->existing.file == NULL)
        return pack_output_commit(&tar->output, true, failure);
    tar->tally.kept_samples = tar->tally.samples;
    return pack_existing_ends(&tar->existing) ||
           pack_fail(failure, tar->plan->arguments->target, 0,
                     "it exists and continues after what would be packed; remove it, or "
                     "pack elsewhere");
}

static bool finish(void *self, struct pack_tally *tally, struct pack_failure *failure)
{
    struct tar *tar = self;
    const uint64_t end = tar->at + 2 * (uint64_t)BLOCK_BYTES;
    const uint64_t whole = (end + RECORD_BYTES - 1) / RECORD_BYTES * RECORD_BYTES;
    if (!put_zeros(tar, whole - tar->at, failure) || !end_archive(tar, failure))
        return false;
    tar->tally.bytes = whole;
    tar->tally.files = 1;
    *tally = tar->tally;
    return true;
}

const struct pack_target pack_target_tar = {
    .open = open_tar, .add = add_batch, .finish = finish, .close = close_tar
};
