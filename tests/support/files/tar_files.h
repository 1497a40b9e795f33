/* tar_files.h - tar archives put together by hand: headers with right sums and whatever inside. */
#ifndef STK_TEST_TAR_FILES_H
#define STK_TEST_TAR_FILES_H

#include "folder_files.h"

enum { STK_ARCHIVE_BLOCK = 512, STK_ARCHIVE_BYTES_MAX = 2 << 20 };

struct stk_archive {
    size_t size;
    uint8_t at[STK_ARCHIVE_BYTES_MAX];
};

static inline void stk_archive_put(struct stk_archive *to, const void *bytes, size_t size)
{
    cr_assert_leq(size, sizeof(to->at) - to->size);
    if (size > 0)
        memcpy(to->at + to->size, bytes, size);
    to->size += size;
}

/* Up to the next block. */
static inline void stk_archive_pad(struct stk_archive *to)
{
    while (to->size % STK_ARCHIVE_BLOCK != 0)
        stk_archive_put(to, "", 1);
}

/* A header of the POSIX kind; its sum is not right yet. */
static inline void stk_archive_header(uint8_t block[STK_ARCHIVE_BLOCK], char type, const char *name,
                                      uint64_t size)
{
    char text[24];
    memset(block, 0, STK_ARCHIVE_BLOCK);
    memcpy(block, name, strnlen(name, 100));
    memcpy(block + 100, "0000644", 8);
    memcpy(block + 108, "0000000", 8);
    memcpy(block + 116, "0000000", 8);
    (void)snprintf(text, sizeof(text), "%011llo", (unsigned long long)size);
    memcpy(block + 124, text, 12);
    memcpy(block + 136, "00000000000", 12);
    block[156] = (uint8_t)type;
    memcpy(block + 257, "ustar\00000", 8);
}

static inline void stk_archive_sum(uint8_t block[STK_ARCHIVE_BLOCK])
{
    unsigned sum = 0;
    char text[12];
    memset(block + 148, ' ', 8);
    for (int i = 0; i < STK_ARCHIVE_BLOCK; i++)
        sum += block[i];
    (void)snprintf(text, sizeof(text), "%06o", sum);
    memcpy(block + 148, text, 7);
}

static inline void stk_archive_block(struct stk_archive *to, uint8_t block[STK_ARCHIVE_BLOCK])
{
    stk_archive_sum(block);
    stk_archive_put(to, block, STK_ARCHIVE_BLOCK);
}

static inline void stk_archive_add(struct stk_archive *to, char type, const char *name,
                                   const void *bytes, size_t size)
{
    uint8_t block[STK_ARCHIVE_BLOCK];
    stk_archive_header(block, type, name, size);
    stk_archive_block(to, block);
    stk_archive_put(to, bytes, size);
    stk_archive_pad(to);
}

static inline void stk_archive_text(struct stk_archive *to, const char *name, const char *text)
{
    stk_archive_add(to, '0', name, text, strlen(text));
}

/* The picture of sample `id`: STK_FOLDER_ROW gray pixels in a row. */
static inline void stk_archive_image(struct stk_archive *to, const char *name, uint64_t id)
{
    uint8_t row[STK_FOLDER_ROW];
    struct stk_bytes png = { 0 };
    stk_folder_row(id, row);
    stk_put_png(&png, row, STK_FOLDER_ROW);
    stk_archive_add(to, '0', name, png.at, png.size);
}

/* Records of the PAX kind, as a member of that type. */
static inline void stk_archive_records(struct stk_archive *to, char type, const char *records)
{
    stk_archive_add(to, type, "./PaxHeaders/x", records, strlen(records));
}

/* "KEY.png" and "KEY.cls" of sample `id`. */
static inline void stk_archive_sample(struct stk_archive *to, const char *key, uint64_t id,
                                      int label)
{
    char name[200];
    char text[24];
    (void)snprintf(name, sizeof(name), "%s.png", key);
    stk_archive_image(to, name, id);
    (void)snprintf(name, sizeof(name), "%s.cls", key);
    (void)snprintf(text, sizeof(text), "%d", label);
    stk_archive_text(to, name, text);
}

static inline void stk_archive_end(struct stk_archive *to)
{
    static const uint8_t zeros[2 * STK_ARCHIVE_BLOCK];
    stk_archive_put(to, zeros, sizeof(zeros));
}

#endif
