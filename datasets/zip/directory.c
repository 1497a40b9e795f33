/* directory.c - read the central directory of a zip archive: see zip.h and PKWARE's APPNOTE 6.3.
 *
 * The archive must be a single file that begins with a local header, and its directory must reach
 * to its end record: nothing may lie in between. Sizes come from the directory; local headers only
 * say where the data begin.
 */
#include "datasets/zip/zip.h"

#include <stdbool.h>
#include <string.h>

#include "loader/base/bytes.h"

enum {
    LOCAL_BYTES = 30,
    ENTRY_BYTES = 46,
    END_BYTES = 22,
    END64_BYTES = 56,
    LOCATOR_BYTES = 20,
    COMMENT_BYTES_MAX = 65535,
    EXTRA_ZIP64 = 1,
    FLAG_ENCRYPTED = 1,
    METHOD_STORED = 0,
    METHOD_DEFLATED = 8,
    DIRECTORY_BYTES_MAX = 16 << 20,
    RATIO_MAX = 1032 /* deflate cannot do better */
};

#define LOCAL_MAGIC   0x04034B50U
#define ENTRY_MAGIC   0x02014B50U
#define END_MAGIC     0x06054B50U
#define END64_MAGIC   0x06064B50U
#define LOCATOR_MAGIC 0x07064B50U

struct reading {
    const struct stk_source *source;
    stoker_error *error;
    uint64_t at; /* where the directory begins in the file */
    uint64_t bytes;
    uint64_t count; /* entries that the end record promises */
    uint8_t *directory;
    struct stk_zip *zip;
    size_t names_used;
};

#define FAIL(reading, code, offset, ...)                                                           \
    stk_error_set((reading)->error, code, STOKER_STAGE_OPEN,                                       \
                  &(struct stk_place){ (reading)->source->path, offset, STOKER_NO_SAMPLE, 0 },     \
                  __VA_ARGS__)

static uint16_t load_le16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

/* ---- the end -------------------------------------------------------------------- */

/* The zip64 end record, which a locator right before the end record names. */
static int read_end64(struct reading *in, const uint8_t *locator, uint64_t locator_at)
{
    uint8_t end[END64_BYTES];
    const uint64_t at = stk_load_le64(locator + 8);
    if (stk_load_le32(locator + 4) != 0 || stk_load_le32(locator + 16) > 1)
        return FAIL(in, STOKER_ENOTSUP, locator_at, "zip: an archive of several files");
    if (at > locator_at || locator_at - at < sizeof(end))
        return FAIL(in, STOKER_EFORMAT, locator_at, "zip: the zip64 end record is not before it");
    const int rc = stk_source_read(in->source, end, sizeof(end), at, in->error);
    if (rc != STOKER_OK)
        return rc;
    if (stk_load_le32(end) != END64_MAGIC || stk_load_le64(end + 4) != locator_at - at - 12)
        return FAIL(in, STOKER_EFORMAT, at, "zip: no zip64 end record here");
    in->count = stk_load_le64(end + 32);
    in->bytes = stk_load_le64(end + 40);
    in->at = stk_load_le64(end + 48);
    if (in->at > at || in->bytes != at - in->at)
        return FAIL(in, STOKER_EFORMAT, at, "zip: the directory does not end at its end record");
    return STOKER_OK;
}

/* `end` is the end record, at end_at in the file. */
static int read_end(struct reading *in, const uint8_t *end, uint64_t end_at)
{
    const uint32_t disks = stk_load_le32(end + 4);
    in->count = load_le16(end + 10);
    in->bytes = stk_load_le32(end + 12);
    in->at = stk_load_le32(end + 16);
    if (disks != 0 && disks != UINT32_MAX)
        return FAIL(in, STOKER_ENOTSUP, end_at, "zip: an archive of several files");
    if (end_at >= LOCATOR_BYTES) {
        uint8_t locator[LOCATOR_BYTES];
        const int rc = stk_source_read(in->source, locator, sizeof(locator), end_at - LOCATOR_BYTES,
                                       in->error);
        if (rc != STOKER_OK)
            return rc;
        if (stk_load_le32(locator) == LOCATOR_MAGIC)
            return read_end64(in, locator, end_at - LOCATOR_BYTES);
    }
    if (in->at > end_at || in->bytes != end_at - in->at)
        return FAIL(in, STOKER_EFORMAT, end_at,
                    "zip: the directory does not end at its end record");
    return STOKER_OK;
}

static bool is_end(const uint8_t *at, size_t comment_bytes)
{
    return stk_load_le32(at) == END_MAGIC && load_le16(at + 20) == comment_bytes;
}

/* Find the end record: the last one whose comment reaches to the end of the file. */
static int find_end(struct reading *in)
{
    const uint64_t size = in->source->size;
    const uint64_t most = END_BYTES + COMMENT_BYTES_MAX;
    const size_t bytes = (size_t)(size < most ? size : most);
    uint8_t begin[4] = { 0 };
    int rc = stk_source_read(in->source, begin, size < 4 ? (size_t)size : 4, 0, in->error);
    if (rc != STOKER_OK)
        return rc;
    if (size >= 4 && stk_load_le32(begin) == END_MAGIC && size <= most)
        return FAIL(in, STOKER_EEMPTY, 0, "zip: an archive without members");
    if (size >= 4 && stk_load_le32(begin) != LOCAL_MAGIC)
        return FAIL(in, STOKER_EMAGIC, 0,
                    "a zip archive begins with \"PK\", 3, 4; this file does not");
    if (size < LOCAL_BYTES + ENTRY_BYTES + END_BYTES)
        return FAIL(in, STOKER_ETRUNCATED, size, "zip: shorter than any archive with a member");
    uint8_t *tail = stk_calloc(bytes, 1);
    if (tail == NULL)
        return FAIL(in, STOKER_ENOMEM, STOKER_NO_OFFSET, "zip: the end record");
    rc = stk_source_read(in->source, tail, bytes, size - bytes, in->error);
    size_t comment = 0;
    while (rc == STOKER_OK && comment <= bytes - END_BYTES &&
           !is_end(tail + bytes - END_BYTES - comment, comment))
        comment++;
    if (rc == STOKER_OK && comment > bytes - END_BYTES)
        rc = FAIL(in, STOKER_ETRUNCATED, size, "zip: no end record at the end of the file");
    if (rc == STOKER_OK)
        rc = read_end(in, tail + bytes - END_BYTES - comment, size - END_BYTES - comment);
    stk_free(tail);
    return rc;
}

/* ---- entries -------------------------------------------------------------------- */

/* Sizes and offset of an entry that are all ones are in its zip64 field, in this order. */
static bool read_zip64(const uint8_t *extra, size_t bytes, struct stk_zip_member *member,
                       uint64_t *local_at)
{
    uint64_t *const wanted[] = { &member->bytes, &member->stored_bytes, local_at };
    size_t at = 0;
    while (bytes - at >= 4 && load_le16(extra + at) != EXTRA_ZIP64) {
        const size_t skip = 4 + (size_t)load_le16(extra + at + 2);
        at = skip < bytes - at ? at + skip : bytes;
    }
    size_t left = bytes - at >= 4 ? load_le16(extra + at + 2) : 0;
    left = left < bytes - at ? left : 0;
    at += 4;
    for (int i = 0; i < 3; i++) {
        if (*wanted[i] != UINT32_MAX)
            continue;
        if (left < 8)
            return false;
        *wanted[i] = stk_load_le64(extra + at);
        at += 8;
        left -= 8;
    }
    return true;
}

/* The data of a member begin behind its local header, which repeats its name. */
static int find_data(struct reading *in, struct stk_zip_member *member, uint64_t local_at)
{
    uint8_t local[LOCAL_BYTES + STK_ZIP_NAME_BYTES_MAX];
    const size_t name_bytes = strlen(member->name);
    if (local_at >= in->at || in->at - local_at < LOCAL_BYTES + name_bytes)
        return FAIL(in, STOKER_EFORMAT, local_at, "zip: \"%s\" does not lie before the directory",
                    member->name);
    const int rc =
        stk_source_read(in->source, local, LOCAL_BYTES + name_bytes, local_at, in->error);
    if (rc != STOKER_OK)
        return rc;
    if (stk_load_le32(local) != LOCAL_MAGIC || load_le16(local + 26) != name_bytes ||
        memcmp(local + LOCAL_BYTES, member->name, name_bytes) != 0)
        return FAIL(in, STOKER_EFORMAT, local_at, "zip: no local header of \"%s\"", member->name);
    member->offset = local_at + LOCAL_BYTES + name_bytes + load_le16(local + 28);
    if (member->offset > in->at || member->stored_bytes > in->at - member->offset)
        return FAIL(in, STOKER_EFORMAT, local_at, "zip: \"%s\" reaches into the directory",
                    member->name);
    return STOKER_OK;
}

static int check_entry(const struct reading *in, const uint8_t *entry, uint64_t offset,
                       const struct stk_zip_member *member)
{
    const uint16_t method = load_le16(entry + 10);
    if ((load_le16(entry + 8) & FLAG_ENCRYPTED) != 0)
        return FAIL(in, STOKER_ENOTSUP, offset, "zip: \"%s\" is encrypted", member->name);
    if (method != METHOD_STORED && method != METHOD_DEFLATED)
        return FAIL(in, STOKER_ENOTSUP, offset,
                    "zip: \"%s\" is packed by method %u; stored and deflated members are read",
                    member->name, method);
    if (method == METHOD_STORED ? member->bytes != member->stored_bytes
                                : member->bytes / RATIO_MAX > member->stored_bytes)
        return FAIL(in, STOKER_EFORMAT, offset, "zip: the sizes of \"%s\" do not agree",
                    member->name);
    for (uint32_t i = 0; i < in->zip->count; i++) {
        if (strcmp(in->zip->members[i].name, member->name) == 0)
            return FAIL(in, STOKER_EFORMAT, offset, "zip: \"%s\" is there twice", member->name);
    }
    return STOKER_OK;
}

/* Copy the name, which must be text. */
static int take_name(struct reading *in, const uint8_t *name, size_t bytes, uint64_t offset,
                     struct stk_zip_member *member)
{
    if (bytes == 0 || bytes > STK_ZIP_NAME_BYTES_MAX)
        return FAIL(in, STOKER_ELIMIT, offset, "zip: a name of %zu bytes, 1 to %d are read", bytes,
                    STK_ZIP_NAME_BYTES_MAX);
    if (memchr(name, '\0', bytes) != NULL)
        return FAIL(in, STOKER_EFORMAT, offset, "zip: a name with a NUL byte");
    char *copy = in->zip->names + in->names_used;
    memcpy(copy, name, bytes);
    member->name = copy;
    in->names_used += bytes + 1;
    return STOKER_OK;
}

/* Take the entry at `at` of the directory and move `at` to the next one. */
static int take_entry(struct reading *in, uint64_t *at)
{
    const uint8_t *entry = in->directory + *at;
    const uint64_t offset = in->at + *at;
    const uint64_t left = in->bytes - *at;
    if (left < ENTRY_BYTES || stk_load_le32(entry) != ENTRY_MAGIC)
        return FAIL(in, STOKER_EFORMAT, offset, "zip: no entry of the directory here");
    const size_t name_bytes = load_le16(entry + 28);
    const size_t extra_bytes = load_le16(entry + 30);
    const size_t entry_bytes = ENTRY_BYTES + name_bytes + extra_bytes + load_le16(entry + 32);
    uint64_t local_at = stk_load_le32(entry + 42);
    struct stk_zip_member member = { .sum = stk_load_le32(entry + 16),
                                     .stored_bytes = stk_load_le32(entry + 20),
                                     .bytes = stk_load_le32(entry + 24),
                                     .deflated = load_le16(entry + 10) == METHOD_DEFLATED };
    if (left < entry_bytes)
        return FAIL(in, STOKER_EFORMAT, offset, "zip: an entry reaches beyond the directory");
    *at += entry_bytes;
    int rc = take_name(in, entry + ENTRY_BYTES, name_bytes, offset, &member);
    if (rc != STOKER_OK)
        return rc;
    if (!read_zip64(entry + ENTRY_BYTES + name_bytes, extra_bytes, &member, &local_at))
        return FAIL(in, STOKER_EFORMAT, offset, "zip: \"%s\" lacks its zip64 sizes", member.name);
    if (member.name[name_bytes - 1] == '/')
        return STOKER_OK;
    rc = check_entry(in, entry, offset, &member);
    if (rc == STOKER_OK)
        rc = find_data(in, &member, local_at);
    if (rc == STOKER_OK)
        in->zip->members[in->zip->count++] = member;
    return rc;
}

static int take_entries(struct reading *in)
{
    uint64_t at = 0;
    int rc = stk_source_read(in->source, in->directory, (size_t)in->bytes, in->at, in->error);
    for (uint64_t i = 0; rc == STOKER_OK && i < in->count; i++)
        rc = take_entry(in, &at);
    if (rc == STOKER_OK && at != in->bytes)
        rc = FAIL(in, STOKER_EFORMAT, in->at + at,
                  "zip: the directory has more than its %llu entries",
                  (unsigned long long)in->count);
    if (rc == STOKER_OK && in->zip->count == 0)
        rc = FAIL(in, STOKER_EEMPTY, STOKER_NO_OFFSET, "zip: an archive without members");
    return rc;
}

static int take_memory(struct reading *in)
{
    if (in->count == 0)
        return FAIL(in, STOKER_EEMPTY, STOKER_NO_OFFSET, "zip: an archive without members");
    if (in->count > STK_ZIP_MEMBERS_MAX)
        return FAIL(in, STOKER_ELIMIT, STOKER_NO_OFFSET, "zip: %llu members, at most %d are read",
                    (unsigned long long)in->count, STK_ZIP_MEMBERS_MAX);
    if (in->bytes > DIRECTORY_BYTES_MAX)
        return FAIL(in, STOKER_ELIMIT, in->at,
                    "zip: a directory of %llu bytes, at most %d are read",
                    (unsigned long long)in->bytes, DIRECTORY_BYTES_MAX);
    if (in->bytes / ENTRY_BYTES < in->count)
        return FAIL(in, STOKER_EFORMAT, in->at, "zip: %llu bytes for %llu entries",
                    (unsigned long long)in->bytes, (unsigned long long)in->count);
    in->directory = stk_calloc((size_t)in->bytes, 1);
    in->zip->members = stk_calloc((size_t)in->count, sizeof(*in->zip->members));
    in->zip->names = stk_calloc((size_t)(in->bytes + in->count), 1); /* each with a 0 behind it */
    return in->directory != NULL && in->zip->members != NULL && in->zip->names != NULL
               ? STOKER_OK
               : FAIL(in, STOKER_ENOMEM, STOKER_NO_OFFSET, "zip: the directory");
}

int stk_zip_open(struct stk_zip *zip, const struct stk_source *source, stoker_error *error)
{
    *zip = (struct stk_zip){ .members = NULL };
    struct reading in = { .source = source, .error = error, .zip = zip };
    int rc = find_end(&in);
    if (rc == STOKER_OK)
        rc = take_memory(&in);
    if (rc == STOKER_OK)
        rc = take_entries(&in);
    stk_free(in.directory);
    if (rc != STOKER_OK)
        stk_zip_close(zip);
    return rc;
}

void stk_zip_close(struct stk_zip *zip)
{
    stk_free(zip->members);
    stk_free(zip->names);
    *zip = (struct stk_zip){ .members = NULL };
}
