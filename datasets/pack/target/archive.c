/* archive.c - see archive.h. */
#include "datasets/pack/target/archive.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK_BYTES = 512, RECORD_BYTES = 20 * BLOCK_BYTES, NAME_BYTES = 100 };

/* ---- open ----------------------------------------------------------------------- */

static bool is_there(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

static bool open_existing(struct pack_archive *archive, struct pack_failure *failure)
{
    return pack_existing_open(&archive->existing, archive->path) ||
           pack_fail(failure, archive->path, errno == EINVAL ? 0 : errno,
                     "there is something else of that name already");
}

/* Another packer may have finished between the first look and the lock: then compare with its
 * archive. */
static bool open_new(struct pack_archive *archive, struct pack_failure *failure)
{
    char folder[PACK_PATH_BYTES];
    const char *name = pack_path_split(archive->path, folder);
    if (!pack_output_begin(&archive->output, folder, name, failure))
        return false;
    if (!is_there(archive->path))
        return true;
    pack_output_drop(&archive->output);
    return open_existing(archive, failure);
}

bool pack_archive_open(struct pack_archive *archive, const char *path, struct pack_failure *failure)
{
    *archive = (struct pack_archive){ .path = path };
    return is_there(path) ? open_existing(archive, failure) : open_new(archive, failure);
}

void pack_archive_close(struct pack_archive *archive)
{
    pack_output_drop(&archive->output);
    pack_existing_close(&archive->existing);
}

bool pack_archive_existed(const struct pack_archive *archive)
{
    return archive->existing.file != NULL;
}

/* ---- bytes ---------------------------------------------------------------------- */

static bool write_to_archive(struct pack_archive *archive, const void *bytes, size_t size,
                             struct pack_failure *failure)
{
    archive->at += size;
    if (archive->existing.file == NULL)
        return pack_output_write(&archive->output, bytes, size, failure);
    return pack_existing_next(&archive->existing, bytes, size) ||
           pack_fail(failure, archive->path, 0,
                     "it exists and differs from what would be packed, from byte %" PRIu64
                     " on; remove it, or pack elsewhere",
                     archive->existing.at);
}

static bool put_zeros(struct pack_archive *archive, uint64_t count, struct pack_failure *failure)
{
    static const uint8_t zeros[BLOCK_BYTES];
    for (; count > sizeof(zeros); count -= sizeof(zeros)) {
        if (!write_to_archive(archive, zeros, sizeof(zeros), failure))
            return false;
    }
    return write_to_archive(archive, zeros, (size_t)count, failure);
}

/* Octal digits and a final 0, filling the field. */
static void put_octal(char *to, size_t bytes, uint64_t value)
{
    to[bytes - 1] = '\0';
    for (size_t i = bytes - 1; i > 0; i--, value >>= 3)
        to[i - 1] = (char)('0' + (value & 7));
}

/* The checksum counts its own field as spaces. */
static void make_header(char block[BLOCK_BYTES], char type, const char *name, uint64_t size)
{
    static const char magic[8] = { 'u', 's', 't', 'a', 'r', '\0', '0', '0' };
    unsigned sum = 0;
    memset(block, 0, BLOCK_BYTES);
    (void)snprintf(block, NAME_BYTES, "%s", name);
    put_octal(block + 100, 8, 0644);
    put_octal(block + 108, 8, 0);
    put_octal(block + 116, 8, 0);
    put_octal(block + 124, 12, size);
    put_octal(block + 136, 12, 0); /* no time: the same samples give the same archive */
    memset(block + 148, ' ', 8);
    block[156] = type;
    memcpy(block + 257, magic, sizeof(magic));
    for (int i = 0; i < BLOCK_BYTES; i++)
        sum += (unsigned char)block[i];
    put_octal(block + 148, 7, sum);
}

static bool put_member(struct pack_archive *archive, char type, const char *name, const void *bytes,
                       size_t size, struct pack_failure *failure)
{
    char header[BLOCK_BYTES];
    const size_t gap = (BLOCK_BYTES - size % BLOCK_BYTES) % BLOCK_BYTES;
    make_header(header, type, name, size);
    return write_to_archive(archive, header, sizeof(header), failure) &&
           write_to_archive(archive, bytes, size, failure) && put_zeros(archive, gap, failure);
}

/* "LENGTH path=NAME\n", where LENGTH counts its own digits. */
static bool put_long_name(struct pack_archive *archive, const char *name,
                          struct pack_failure *failure)
{
    const size_t rest = strlen(" path=\n") + strlen(name);
    size_t length = rest + 3; /* names have 100 to 4095 bytes, so 3 or 4 digits */
    length += length > 999 ? 1 : 0;
    char *record = malloc(length + 1);
    if (record == NULL)
        return pack_fail(failure, archive->path, ENOMEM, "a long name");
    (void)snprintf(record, length + 1, "%zu path=%s\n", length, name);
    const bool good = put_member(archive, 'x', "PaxHeader", record, length, failure);
    free(record);
    return good;
}

bool pack_archive_add(struct pack_archive *archive, const char *name, const void *bytes,
                      size_t size, struct pack_failure *failure)
{
    return (strlen(name) < NAME_BYTES || put_long_name(archive, name, failure)) &&
           put_member(archive, '0', name, bytes, size, failure);
}

bool pack_archive_finish(struct pack_archive *archive, struct pack_failure *failure)
{
    const uint64_t end = archive->at + 2 * (uint64_t)BLOCK_BYTES;
    const uint64_t whole = (end + RECORD_BYTES - 1) / RECORD_BYTES * RECORD_BYTES;
    if (!put_zeros(archive, whole - archive->at, failure))
        return false;
    if (archive->existing.file == NULL)
        return pack_output_commit(&archive->output, true, failure);
    return pack_existing_ends(&archive->existing) ||
           pack_fail(failure, archive->path, 0,
                     "it exists and continues after what would be packed; remove it, or "
                     "pack elsewhere");
}
