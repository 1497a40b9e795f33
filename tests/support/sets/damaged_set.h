/* damaged_set.h - data sets of images, some damaged by a seed in ways whose effect is known.
 *
 *   image of a sort ──▶ file ──damage──▶ bytes and verdict ──▶ folder, archive, shards or array
 *
 *   GOOD   the sample has these pixels, damaged or not
 *   BAD    no decoder may accept it
 *   ASK    its format has no checksum: reading the sample alone decides, and all loaders must agree
 *
 * Images are made once per process, files once per set. With Criterion.
 */
#ifndef STK_TEST_DAMAGED_SET_H
#define STK_TEST_DAMAGED_SET_H

#include "support/crc32c_by_bits.h"
#include "support/files/jpeg_files.h"
#include "support/files/picture.h"
#include "support/files/png_sums.h"
#include "support/files/webp_files.h"
#include "support/sets/read_row.h"

/* These come after: they know the scenario's sets. */
#include "support/files/tar_files.h"

#include "loader/codec/lz4.h"
#include "loader/codec/zstd.h"

/* ---- chance ---------------------------------------------------------------------- */

static uint64_t stk_dice;

/* 0 .. sides - 1 */
static inline uint32_t stk_roll(uint32_t sides)
{
    return (uint32_t)((stk_mix64(++stk_dice) >> 32) * sides >> 32);
}

static inline bool stk_chance(uint32_t percent)
{
    return stk_roll(100) < percent;
}

/* ---- images ---------------------------------------------------------------------- */

enum {
    STK_DAMAGED_COUNT_MAX = 48,
    STK_DAMAGED_SIDE_MAX = 40,
    STK_DAMAGED_ROW_MAX = STK_DAMAGED_SIDE_MAX * STK_DAMAGED_SIDE_MAX * 3,
    STK_DAMAGED_FILE_MAX = 3 * STK_DAMAGED_ROW_MAX,
    STK_DAMAGED_TEXT_MAX = 40
};

enum stk_sort_form { STK_AS_PNG, STK_AS_JPEG, STK_AS_WEBP, STK_AS_RAW, STK_AS_LZ4, STK_AS_ZSTD };

struct stk_sort {
    enum stk_sort_form form;
    uint32_t height, width; /* 0: each image has a size of its own */
    uint32_t channels;      /* 1 gray, 3 color */
    uint8_t color, depth;   /* PNG */
    bool interlaced;
    int h_factor, v_factor; /* JPEG */
    bool progressive;
    uint32_t restart_rows;
    bool lossless; /* WebP */
};

static const struct stk_sort stk_sorts[] = {
    { STK_AS_PNG, 24, 31, 3, PNG_COLOR_TYPE_RGB, 8, .interlaced = false },
    { STK_AS_PNG, 24, 31, 3, PNG_COLOR_TYPE_RGB, 8, .interlaced = true },
    { STK_AS_PNG, 24, 31, 3, PNG_COLOR_TYPE_RGB, 16, .interlaced = false },
    { STK_AS_PNG, 24, 31, 3, PNG_COLOR_TYPE_PALETTE, 8, .interlaced = false },
    { STK_AS_PNG, 24, 31, 3, PNG_COLOR_TYPE_RGB_ALPHA, 8, .interlaced = false },
    { STK_AS_PNG, 40, 9, 1, PNG_COLOR_TYPE_GRAY, 8, .interlaced = false },
    { STK_AS_PNG, 40, 9, 1, PNG_COLOR_TYPE_GRAY, 2, .interlaced = false },
    { STK_AS_PNG, 8, 17, 3, PNG_COLOR_TYPE_RGB, 8, .interlaced = false },
    { STK_AS_PNG, 0, 0, 3, PNG_COLOR_TYPE_RGB, 8, .interlaced = false },
    { STK_AS_JPEG, 24, 31, 3, .h_factor = 2, .v_factor = 2 },
    { STK_AS_JPEG, 24, 31, 3, .h_factor = 1, .v_factor = 1, .restart_rows = 1 },
    { STK_AS_JPEG, 24, 31, 3, .h_factor = 2, .v_factor = 1, .progressive = true },
    { STK_AS_JPEG, 40, 9, 1, .h_factor = 1, .v_factor = 1 },
    { STK_AS_JPEG, 8, 17, 3, .h_factor = 2, .v_factor = 1 },
    { STK_AS_JPEG, 0, 0, 3, .h_factor = 2, .v_factor = 2 },
    { STK_AS_WEBP, 24, 31, 3, .lossless = false },
    { STK_AS_WEBP, 24, 31, 3, .lossless = true },
    { STK_AS_WEBP, 8, 17, 3, .lossless = false },
    { STK_AS_WEBP, 0, 0, 3, .lossless = true },
    { STK_AS_RAW, 24, 31, 3, .depth = 8 },
    { STK_AS_RAW, 40, 9, 1, .depth = 8 },
    { STK_AS_LZ4, 24, 31, 3, .depth = 8 },
    { STK_AS_ZSTD, 8, 17, 3, .depth = 8 },
};
enum { STK_SORTS = sizeof(stk_sorts) / sizeof(stk_sorts[0]) };

/* One image: its file, and the pixels of its row in its own size. */
struct stk_pooled {
    uint8_t *file; /* kept for ever; NULL = not made yet */
    size_t bytes;
    uint32_t height, width;
    uint8_t row[STK_DAMAGED_ROW_MAX];
};

static inline void stk_pooled_png(struct stk_pooled *out, const struct stk_sort *sort,
                                  uint64_t seed)
{
    static struct stk_picture picture;
    static struct stk_file_bytes file;
    picture = (struct stk_picture){ .width = out->width,
                                    .height = out->height,
                                    .depth = sort->depth,
                                    .color = sort->color,
                                    .interlaced = sort->interlaced,
                                    .filters = PNG_ALL_FILTERS };
    stk_picture_paint(&picture, seed);
    stk_picture_write(&picture, &file);
    for (uint32_t i = 0; i < out->height * out->width; i++)
        stk_picture_expect(&picture, i / out->width, i % out->width, sort->channels,
                           out->row + (size_t)i * sort->channels);
    out->bytes = file.size;
    out->file = malloc(file.size);
    memcpy(out->file, file.at, file.size);
}

static inline void stk_pooled_jpeg(struct stk_pooled *out, const struct stk_sort *sort)
{
    const struct stk_jpeg_kind kind = { .height = out->height,
                                        .width = out->width,
                                        .channels = sort->channels,
                                        .h_factor = sort->h_factor,
                                        .v_factor = sort->v_factor,
                                        .progressive = sort->progressive,
                                        .restart_rows = sort->restart_rows };
    const struct stk_jpeg_file file = stk_jpeg_write(&kind);
    stk_jpeg_expect(&file, sort->channels, out->row);
    out->file = file.at;
    out->bytes = file.size;
}

static inline void stk_pooled_webp(struct stk_pooled *out, const struct stk_sort *sort)
{
    const struct stk_webp_kind kind = { .height = out->height,
                                        .width = out->width,
                                        .lossless = sort->lossless };
    const struct stk_webp_file file = stk_webp_write(&kind);
    stk_webp_expect(&file, sort->channels, out->row);
    out->file = file.at;
    out->bytes = file.size;
}

/* Rows as they are, or packed: runs and noise by turns. */
static inline void stk_pooled_rows(struct stk_pooled *out, const struct stk_sort *sort,
                                   uint64_t seed)
{
    const size_t row = (size_t)out->height * out->width * sort->channels;
    for (size_t i = 0; i < row; i++)
        out->row[i] = (uint8_t)(i / 50 % 3 == 0 ? stk_mix64(seed * 65537 + i) : i / 10 + seed);
    out->file = malloc(2 * row + 64);
    out->bytes = row;
    if (sort->form == STK_AS_LZ4)
        out->bytes = stk_lz4_pack(out->row, row, 0, out->file, 2 * row);
    else if (sort->form == STK_AS_ZSTD)
        out->bytes = stk_zstd_pack(out->row, row, 3, out->file, 2 * row);
    else
        memcpy(out->file, out->row, row);
    cr_assert_gt(out->bytes, 0);
}

static inline const struct stk_pooled *stk_pooled_image(size_t sort, uint32_t number)
{
    static struct stk_pooled pool[STK_SORTS][STK_DAMAGED_COUNT_MAX];
    struct stk_pooled *image = &pool[sort][number];
    const uint64_t seed = sort * 1000 + number;
    if (image->file != NULL)
        return image;
    image->height = stk_sorts[sort].height;
    image->width = stk_sorts[sort].width;
    if (image->height == 0) {
        image->height = 1 + (uint32_t)(stk_mix64(seed) % STK_DAMAGED_SIDE_MAX);
        image->width = 1 + (uint32_t)(stk_mix64(seed ^ 77) % STK_DAMAGED_SIDE_MAX);
    }
    switch (stk_sorts[sort].form) {
    case STK_AS_PNG:
        stk_pooled_png(image, &stk_sorts[sort], seed);
        break;
    case STK_AS_JPEG:
        stk_pooled_jpeg(image, &stk_sorts[sort]);
        break;
    case STK_AS_WEBP:
        stk_pooled_webp(image, &stk_sorts[sort]);
        break;
    default:
        stk_pooled_rows(image, &stk_sorts[sort], seed);
        break;
    }
    cr_assert_leq(image->bytes, STK_DAMAGED_FILE_MAX - 64);
    return image;
}

/* ---- damage ---------------------------------------------------------------------- */

enum stk_verdict { STK_GOOD, STK_BAD, STK_ASK };
enum stk_container { STK_IN_FOLDER, STK_IN_TAR, STK_IN_SHARDS, STK_IN_IDX };

struct stk_damaged_sample {
    const struct stk_pooled *image;
    enum stk_sort_form form;
    enum stk_verdict verdict;
    bool asked;   /* the verdict was ASK */
    bool late;    /* the damage is done once the data set is open */
    bool stale;   /* shards: the checksum is that of the undamaged bytes */
    size_t bytes; /* the file has */
    uint8_t file[STK_DAMAGED_FILE_MAX];
    uint8_t row[STK_DAMAGED_ROW_MAX]; /* as wanted, if it is good */
};

struct stk_damaged_set {
    struct stk_directory directory;
    stoker_dataset *dataset;
    enum stk_container container;
    bool differ;        /* images differ in size */
    bool jpeg;          /* some are JPEG files */
    bool packed;        /* the array lies in a gzip file */
    bool texts;         /* in an archive: beside each image, as field 1 */
    bool verifies_once; /* the shards' records; then files must not change */
    uint32_t count, shards;
    uint32_t height, width, channels;
    char spec[512];
    struct stk_damaged_sample samples[STK_DAMAGED_COUNT_MAX];
};

static inline int64_t stk_damaged_label(const struct stk_damaged_set *set, uint64_t id)
{
    return (int64_t)(id * 3 / set->count);
}

static inline void stk_flip(struct stk_damaged_sample *sample, size_t first, size_t end)
{
    const size_t at = first + stk_roll((uint32_t)(end - first));
    sample->file[at] ^= (uint8_t)(1U << stk_roll(8));
}

static inline void stk_cut(struct stk_damaged_sample *sample, size_t bytes)
{
    sample->bytes = bytes;
    sample->verdict = STK_BAD;
}

/* Flip a bit in a chunk of a PNG file and put its CRC right again. */
static inline void stk_flip_sealed(struct stk_damaged_sample *sample)
{
    size_t at = 8, chunks = stk_roll(4);
    while (chunks-- > 0 && at + 12 + stk_load_be32(sample->file + at) < sample->bytes)
        at += 12 + stk_load_be32(sample->file + at);
    const size_t body = stk_load_be32(sample->file + at);
    stk_flip(sample, at + 4, at + 8 + body);
    stk_png_put_be32(sample->file + at + 8 + body, stk_png_sum(sample->file + at + 4, 4 + body));
    sample->verdict = STK_ASK;
}

/* All of a PNG file is under some checksum. */
static inline void stk_damage_png(struct stk_damaged_sample *sample)
{
    enum { END = 12 }; /* bytes of IEND */
    const uint32_t kind = stk_roll(10);
    uint8_t end[END];
    sample->verdict = STK_BAD;
    if (kind == 0) { /* IEND before the pixels */
        memcpy(end, sample->file + sample->bytes - END, END);
        memmove(sample->file + 33 + END, sample->file + 33, sample->bytes - 33 - END);
        memcpy(sample->file + 33, end, END);
    } else if (kind == 1) {
        stk_cut(sample, sample->bytes - END);
    } else if (kind <= 3) {
        stk_flip_sealed(sample);
    } else {
        stk_flip(sample, 0, sample->bytes);
    }
}

/* A JPEG or WebP file has no checksum; its first bytes say what it is. */
static inline void stk_damage_unchecked(struct stk_damaged_sample *sample)
{
    const uint32_t kind = stk_roll(10);
    sample->verdict = STK_ASK;
    if (kind == 0) {
        stk_flip(sample, 0, 2);
        sample->verdict = STK_BAD;
    } else if (kind == 1) { /* a marker among the last codes */
        sample->file[sample->bytes - 12] = 0xFF;
        sample->file[sample->bytes - 11] = 0xD3;
    } else if (kind == 2) {
        for (uint32_t more = 1 + stk_roll(60); more > 0; more--)
            sample->file[sample->bytes++] = (uint8_t)stk_roll(256);
    } else {
        for (uint32_t flips = kind < 7 ? 1 : 3; flips > 0; flips--)
            stk_flip(sample, 2, sample->bytes);
    }
}

static inline void stk_damage_row(struct stk_damaged_sample *sample)
{
    stk_flip(sample, 0, sample->bytes);
    memcpy(sample->row, sample->file, sample->bytes);
}

/* What a record's checksum does not match is bad, whatever is in it. */
static inline void stk_damage_record(struct stk_damaged_sample *sample, bool late)
{
    sample->late = late;
    sample->stale = true;
    stk_flip(sample, 0, sample->bytes);
    sample->verdict = STK_BAD;
}

static inline void stk_damage(struct stk_damaged_set *set, struct stk_damaged_sample *sample)
{
    const bool rows = sample->form >= STK_AS_RAW;
    if (set->container == STK_IN_SHARDS && stk_chance(60)) {
        stk_damage_record(sample, !set->verifies_once && stk_chance(40));
        return;
    }
    sample->late = set->container == STK_IN_FOLDER && stk_chance(30);
    const bool may_shrink =
        set->container == STK_IN_FOLDER || (set->container == STK_IN_TAR && !rows);
    if (may_shrink && stk_chance(20))
        stk_cut(sample, stk_chance(30) ? 0 : stk_roll((uint32_t)sample->bytes));
    else if (sample->form == STK_AS_PNG)
        stk_damage_png(sample);
    else if (sample->form == STK_AS_JPEG || sample->form == STK_AS_WEBP)
        stk_damage_unchecked(sample);
    else if (sample->form == STK_AS_RAW)
        stk_damage_row(sample);
    else
        stk_damage_record(sample, false);
    if (sample->late && sample->bytes != sample->image->bytes)
        sample->verdict = STK_BAD; /* it has another length than the scan found */
}

/* ---- containers ------------------------------------------------------------------ */

static inline const char *stk_damaged_name(const struct stk_damaged_set *set, uint32_t id,
                                           char name[64])
{
    static const char *const extensions[] = { "png", "jpg", "webp", "raw" };
    (void)snprintf(name, 64, "c%u/f%03u.%s", (unsigned)stk_damaged_label(set, id), id,
                   extensions[set->samples[id].form]);
    return name;
}

static inline void stk_damaged_folder(struct stk_damaged_set *set)
{
    char name[64];
    for (uint32_t c = 0; c < 3; c++) {
        (void)snprintf(name, sizeof(name), "c%u", c);
        stk_folder_mkdir(&set->directory, name);
    }
    for (uint32_t id = 0; id < set->count; id++) {
        const struct stk_damaged_sample *sample = &set->samples[id];
        stk_file_write(&set->directory, stk_damaged_name(set, id, name),
                       sample->late ? sample->image->file : sample->file,
                       sample->late ? sample->image->bytes : sample->bytes);
    }
    (void)snprintf(set->spec, sizeof(set->spec),
                   "folder:%.200s?height=%u&width=%u&channels=%u&extensions=png,jpg,webp,raw%s",
                   set->directory.path, set->height, set->width, set->channels,
                   stk_chance(20) ? "&on_decode_warning=fail" : "");
}

/* The text of a sample, of any length. */
static inline size_t stk_damaged_text(uint64_t id, char text[STK_DAMAGED_TEXT_MAX])
{
    const size_t bytes = stk_mix64(id) % STK_DAMAGED_TEXT_MAX;
    memset(text, 'a' + (int)(id % 26), bytes);
    return bytes;
}

/* One archive, or two. */
static inline void stk_damaged_tar(struct stk_damaged_set *set)
{
    static struct stk_archive archive;
    static const char *const extensions[] = { "png", "jpg", "webp" };
    const uint32_t half = stk_chance(50) ? set->count : set->count / 2;
    char name[64], label[8], text[STK_DAMAGED_TEXT_MAX];
    archive.size = 0;
    set->texts = stk_chance(40);
    for (uint32_t id = 0; id < set->count; id++) {
        const struct stk_damaged_sample *sample = &set->samples[id];
        (void)snprintf(name, sizeof(name), "k%03u.%s", id, extensions[sample->form]);
        stk_archive_add(&archive, '0', name, sample->file, sample->bytes);
        (void)snprintf(name, sizeof(name), "k%03u.cls", id);
        (void)snprintf(label, sizeof(label), "%d", (int)stk_damaged_label(set, id));
        stk_archive_text(&archive, name, label);
        (void)snprintf(name, sizeof(name), "k%03u.txt", id);
        stk_archive_add(&archive, '0', name, text, stk_damaged_text(id, text));
        if (id + 1 == half || id + 1 == set->count) {
            stk_archive_end(&archive);
            stk_file_write(&set->directory, id < half ? "0.tar" : "1.tar", archive.at,
                           archive.size);
            archive.size = 0;
        }
    }
    (void)snprintf(set->spec, sizeof(set->spec), "tar:%.200s/%s?height=%u&width=%u&channels=%u%s",
                   set->directory.path, half < set->count ? "{0,1}.tar" : "0.tar", set->height,
                   set->width, set->channels, set->texts ? "&fields=image,txt,cls" : "");
}

enum { STK_DAMAGED_INDEX_ROOM = 4096 };

/* A shard, by the description in docs/formats/shard_files.md. */
static inline size_t stk_damaged_shard(const struct stk_damaged_set *set, uint32_t number,
                                       uint32_t first, uint32_t count, uint8_t *at)
{
    static const uint8_t codecs[] = { 2, 3, 0, 0, 1, 4 };
    uint32_t used = 4096, longest = 0, needs = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct stk_damaged_sample *sample = &set->samples[first + i];
        memcpy(at + used, sample->late ? sample->image->file : sample->file, sample->bytes);
        longest = sample->bytes > longest ? (uint32_t)sample->bytes : longest;
        needs |= 1U << codecs[sample->form];
        used += ((uint32_t)sample->bytes + 7) / 8 * 8;
    }
    const uint32_t index = (used + 4095) / 4096 * 4096;
    const size_t size = index + STK_DAMAGED_INDEX_ROOM;
    uint8_t *image = at + index, *label = image + 160, *entry = label + 160;
    memcpy(image, "image", 5);
    memcpy(image + 64, (const uint8_t[3]){ STOKER_FIELD_KIND_IMAGE, STOKER_DTYPE_UINT8, 3 }, 3);
    stk_store_le64(image + 80, set->height);
    stk_store_le64(image + 88, set->width);
    stk_store_le64(image + 96, set->channels);
    memcpy(label, "label", 5);
    label[65] = STOKER_DTYPE_INT64;
    stk_store_le32(label + 68, UINT32_MAX);
    stk_store_le32(label + 72, 3);
    used = 4096;
    for (uint32_t i = 0; i < count; i++, entry += 24) {
        const struct stk_damaged_sample *sample = &set->samples[first + i];
        stk_store_le64(entry, used);
        stk_store_le64(entry + 8, sample->bytes);
        stk_store_le32(
            entry + 16,
            stk_crc32c_by_bits(sample->stale ? sample->image->file : sample->file, sample->bytes));
        entry[20] = codecs[sample->form];
        used += ((uint32_t)sample->bytes + 7) / 8 * 8;
    }
    for (uint32_t i = 0; i < count; i++, entry += 8)
        stk_store_le64(entry, (uint64_t)stk_damaged_label(set, first + i));
    memcpy(at, "\x89STK\r\n\x1A\n", 8);
    stk_store_le32(at + 8, 3);
    stk_store_le32(at + 12, 4096);
    stk_store_le64(at + 16, needs);
    stk_store_le64(at + 32, size);
    stk_store_le64(at + 40, index);
    stk_store_le32(at + 48, stk_crc32c_by_bits(at + index, size - index));
    stk_store_le32(at + 52, 8);
    stk_store_le64(at + 56, longest);
    stk_store_le64(at + 64, count);
    stk_store_le32(at + 72, 2);
    stk_store_le32(at + 76, 1);
    stk_store_le64(at + 88, 0x1234);
    stk_store_le32(at + 96, number);
    stk_store_le32(at + 100, set->shards);
    stk_store_le64(at + 104, first);
    stk_store_le64(at + 112, count);
    stk_store_le32(at + 4092, stk_crc32c_by_bits(at, 4092));
    return size;
}

static inline void stk_damaged_shards(struct stk_damaged_set *set)
{
    static uint8_t at[STK_DAMAGED_COUNT_MAX * STK_DAMAGED_FILE_MAX + 4 * 4096];
    char name[64];
    set->shards = 1 + stk_roll(2);
    const uint32_t each = set->count / set->shards;
    for (uint32_t number = 0; number < set->shards; number++) {
        const uint32_t first = number * each;
        const uint32_t count = number + 1 == set->shards ? set->count - first : each;
        memset(at, 0, sizeof(at));
        const size_t size = stk_damaged_shard(set, number, first, count, at);
        (void)snprintf(name, sizeof(name), "%u.stk", number);
        stk_file_write(&set->directory, name, at, size);
    }
    (void)snprintf(set->spec, sizeof(set->spec), "shards:%.200s?verify=%s&map=%u",
                   set->directory.path, set->verifies_once ? "once" : "always", stk_roll(2));
}

/* Turn `size` bytes into a gzip member that stores them. Returns its size, up to 64 bytes more. */
static inline size_t stk_damaged_gzip(uint8_t *at, size_t size)
{
    enum { BLOCK = 60000 };
    uint8_t *out = malloc(size + size / BLOCK * 5 + 32), *to = out;
    memcpy(to, "\x1F\x8B\x08\0\0\0\0\0\0\xFF", 10);
    to += 10;
    for (size_t done = 0; done < size; done += BLOCK) {
        const uint32_t block = (uint32_t)(size - done < BLOCK ? size - done : BLOCK);
        *to = done + block == size;
        stk_store_le32(to + 1, block | ~block << 16);
        memcpy(to + 5, at + done, block);
        to += 5 + block;
    }
    stk_store_le32(to, stk_crc32(at, size));
    stk_store_le32(to + 4, (uint32_t)size);
    const size_t bytes = (size_t)(to + 8 - out);
    memcpy(at, out, bytes);
    free(out);
    return bytes;
}

/* Rows in one file, which may be packed, and labels in another. */
static inline void stk_damaged_idx(struct stk_damaged_set *set)
{
    enum { HEADER = 20 };
    static uint8_t at[HEADER + STK_DAMAGED_COUNT_MAX * STK_DAMAGED_ROW_MAX + 64];
    const size_t row = (size_t)set->height * set->width * set->channels;
    struct stk_bytes header = { 0 }, labels = { 0 };
    stk_put_idx_header(&header, 8, 4,
                       (const uint32_t[]){ set->count, set->height, set->width, set->channels });
    stk_put_idx_header(&labels, 8, 1, &set->count);
    memcpy(at, header.at, HEADER);
    for (uint32_t id = 0; id < set->count; id++) {
        const uint8_t label = (uint8_t)stk_damaged_label(set, id);
        memcpy(at + HEADER + id * row, set->samples[id].file, row);
        stk_put(&labels, &label, 1);
    }
    size_t size = HEADER + set->count * row;
    set->packed = stk_chance(30);
    if (set->packed)
        size = stk_damaged_gzip(at, size);
    stk_file_write(&set->directory, "x", at, size);
    stk_file_write(&set->directory, "y", labels.at, labels.size);
    (void)snprintf(set->spec, sizeof(set->spec), "idx:%.200s/x,%.200s/y", set->directory.path,
                   set->directory.path);
}

/* ---- sets ------------------------------------------------------------------------ */

/* Another sort whose images fit beside those of `sort` in a folder or an archive. */
static inline size_t stk_sort_beside(size_t sort)
{
    for (;;) {
        const size_t other = stk_roll(STK_SORTS);
        if (stk_sorts[other].height == stk_sorts[sort].height &&
            stk_sorts[other].channels == stk_sorts[sort].channels &&
            stk_sorts[other].form <= STK_AS_WEBP)
            return other;
    }
}

static inline enum stk_container stk_container_for(const struct stk_sort *sort)
{
    static const enum stk_container all[] = { STK_IN_FOLDER, STK_IN_TAR, STK_IN_SHARDS,
                                              STK_IN_IDX };
    for (;;) {
        const enum stk_container container = all[stk_roll(4)];
        if (container == STK_IN_FOLDER ? sort->form <= STK_AS_RAW
            : container == STK_IN_TAR  ? sort->form <= STK_AS_WEBP
            : container == STK_IN_IDX  ? sort->form == STK_AS_RAW
                                       : sort->form != STK_AS_WEBP && sort->height > 0)
            return container;
    }
}

static inline void stk_damaged_fill(struct stk_damaged_set *set, uint32_t percent)
{
    const size_t sort = stk_roll(STK_SORTS);
    set->container = stk_container_for(&stk_sorts[sort]);
    set->differ = stk_sorts[sort].height == 0;
    set->height = set->differ ? 20 : stk_sorts[sort].height;
    set->width = set->differ ? 20 : stk_sorts[sort].width;
    set->channels = stk_sorts[sort].channels;
    const bool blend =
        set->container <= STK_IN_TAR && stk_sorts[sort].form <= STK_AS_WEBP && stk_chance(25);
    for (uint32_t id = 0; id < set->count; id++) {
        struct stk_damaged_sample *sample = &set->samples[id];
        const size_t own = blend ? stk_sort_beside(sort) : sort;
        sample->image = stk_pooled_image(own, id);
        sample->form = stk_sorts[own].form;
        sample->verdict = STK_GOOD;
        sample->asked = sample->late = sample->stale = false;
        sample->bytes = sample->image->bytes;
        memcpy(sample->file, sample->image->file, sample->bytes);
        memcpy(sample->row, sample->image->row, sizeof(sample->row));
        set->jpeg = set->jpeg || sample->form == STK_AS_JPEG;
        if (stk_chance(percent))
            stk_damage(set, sample);
    }
}

/* What changes once the data set is open. */
static inline void stk_damage_late(const struct stk_damaged_set *set)
{
    char name[64], path[512];
    for (uint32_t id = 0; id < set->count; id++) {
        const struct stk_damaged_sample *sample = &set->samples[id];
        if (!sample->late)
            continue;
        if (set->container == STK_IN_FOLDER) {
            stk_file_write(&set->directory, stk_damaged_name(set, id, name), sample->file,
                           sample->bytes);
            continue;
        }
        stoker_part part;
        cr_assert_eq(stoker_dataset_locate(set->dataset, id, &part, NULL), STOKER_OK);
        const uint32_t each = set->count / set->shards;
        const uint32_t shard = id / each < set->shards ? id / each : set->shards - 1;
        (void)snprintf(name, sizeof(name), "%u.stk", shard);
        const int fd = open(stk_path_in(path, &set->directory, name), O_WRONLY | O_CLOEXEC);
        cr_assert_geq(fd, 0);
        cr_assert_eq(pwrite(fd, sample->file, sample->bytes, (off_t)part.extent.offset),
                     (ssize_t)sample->bytes);
        close(fd);
    }
}

static inline size_t stk_damaged_row_bytes(const struct stk_damaged_set *set)
{
    return (size_t)set->height * set->width * set->channels;
}

/* Read each sample alone: that turns ASK into a verdict. Returns what must not happen, or NULL.
 * Images that differ in size cannot be read so, and keep ASK. */
static inline const char *stk_damaged_ask(struct stk_damaged_set *set)
{
    static uint8_t row[STK_DAMAGED_ROW_MAX];
    for (uint32_t id = 0; id < set->count && !set->differ; id++) {
        struct stk_damaged_sample *sample = &set->samples[id];
        const int rc = stk_read_row(set->dataset, id, row, stk_damaged_row_bytes(set), NULL, NULL);
        sample->asked = sample->verdict == STK_ASK;
        if (sample->asked) {
            sample->verdict = rc == STOKER_OK ? STK_GOOD : STK_BAD;
            memcpy(sample->row, row, sizeof(row));
        }
        if ((rc == STOKER_OK) != (sample->verdict == STK_GOOD))
            return rc == STOKER_OK ? "a damaged sample was read" : "a good sample was refused";
        if (rc == STOKER_OK && memcmp(row, sample->row, stk_damaged_row_bytes(set)) != 0)
            return "a sample was read with wrong pixels";
    }
    return NULL;
}

/* Make a set of `count` images, about `percent` of them damaged. */
static inline const char *stk_damaged_make(struct stk_damaged_set *set, uint32_t count,
                                           uint32_t percent)
{
    static void (*const write[])(struct stk_damaged_set *) = {
        [STK_IN_FOLDER] = stk_damaged_folder,
        [STK_IN_TAR] = stk_damaged_tar,
        [STK_IN_SHARDS] = stk_damaged_shards,
        [STK_IN_IDX] = stk_damaged_idx,
    };
    static stoker_error error;
    set->directory = stk_directory_make();
    set->dataset = NULL;
    set->count = count;
    set->jpeg = set->packed = set->texts = false;
    set->verifies_once = stk_chance(30);
    stk_damaged_fill(set, percent);
    write[set->container](set);
    if (stoker_dataset_open(&set->dataset, set->spec, NULL, &error) != STOKER_OK)
        return error.message;
    stk_damage_late(set);
    return stk_damaged_ask(set);
}

static inline void stk_damaged_remove(struct stk_damaged_set *set)
{
    stoker_dataset_close(&set->dataset);
    stk_directory_remove(&set->directory);
}

/* Damage a file of the set where it describes its samples, or where one checksum covers all of it;
 * a folder has no such file. Returns true if the set still opens. */
static inline bool stk_damaged_opens_broken(const struct stk_damaged_set *set)
{
    static const char *const names[] = { NULL, "0.tar", "0.stk", "x" };
    static uint8_t at[1 << 20];
    char path[512];
    stoker_dataset *dataset = NULL;
    if (set->container == STK_IN_FOLDER)
        return false;
    const int fd =
        open(stk_path_in(path, &set->directory, names[set->container]), O_RDWR | O_CLOEXEC);
    const size_t size = (size_t)pread(fd, at, sizeof(at), 0);
    size_t from = 0, end = size;
    if (set->container == STK_IN_TAR)
        end = 148; /* the first header, up to its checksum */
    else if (set->container == STK_IN_SHARDS && stk_chance(50))
        from = (size_t)stk_load_le64(at + 40);
    else if (set->container == STK_IN_SHARDS)
        end = 4096;
    else if (set->packed)
        from = 10;
    const size_t place = from + stk_roll((uint32_t)(end - from));
    at[place] ^= (uint8_t)(1U << stk_roll(8));
    if (stk_chance(30) || (set->container == STK_IN_IDX && !set->packed))
        cr_assert_eq(
            ftruncate(fd, stk_roll((uint32_t)size - (set->container == STK_IN_TAR ? 1024 : 0))), 0);
    else
        cr_assert_eq(pwrite(fd, at + place, 1, (off_t)place), 1);
    close(fd);
    if (stoker_dataset_open(&dataset, set->spec, NULL, NULL) != STOKER_OK)
        return false;
    stoker_dataset_close(&dataset);
    return true;
}

#endif
