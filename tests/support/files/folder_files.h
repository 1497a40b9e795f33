/* folder_files.h - folders of small files, a folder a class, whose every row is known.
 *
 *   DIR/c0/f000.raw  DIR/c1/f001.raw ...     sample i is stk_set_byte(i, 0..), class i / per class
 *
 * As rows of raw bytes, or as gray PNG files of one row of pixels that store what they do not
 * compress.
 */
#ifndef STK_TEST_FOLDER_FILES_H
#define STK_TEST_FOLDER_FILES_H

#include "dataset_files.h"
#include "support/runs/scenario.h"

enum { STK_FOLDER_ROW = 40, STK_FOLDER_ROW_MAX = 4000 };

/* ---- PNG ------------------------------------------------------------------------ */

static inline void stk_put_png_chunk(struct stk_bytes *to, const char *type, const void *bytes,
                                     size_t size)
{
    uint8_t checked[4 + STK_FOLDER_ROW_MAX];
    cr_assert_leq(size, STK_FOLDER_ROW_MAX);
    memcpy(checked, type, 4);
    if (size > 0)
        memcpy(checked + 4, bytes, size);
    stk_put_be32(to, (uint32_t)size);
    stk_put(to, checked, size + 4);
    stk_put_be32(to, stk_crc32(checked, size + 4));
}

enum { STK_PNG_OF_PALETTE = 1, STK_PNG_OF_16_BITS = 2 };

/* One row of `width` pixels with 1 or 3 channels: gray and RGB, palette indices, or gray of 16
 * bits. */
static inline void stk_put_png_kind(struct stk_bytes *to, const uint8_t *pixels, uint32_t width,
                                    uint32_t channels, int kind)
{
    static const uint8_t magic[8] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n' };
    struct stk_bytes header = { 0 };
    struct stk_bytes data = { 0 };
    uint32_t a = 1;
    uint32_t b = 1; /* Adler-32, the filter's 0 included */
    stk_put(to, magic, sizeof(magic));
    stk_put_be32(&header, width);
    stk_put_be32(&header, 1);
    const bool wide = kind == STK_PNG_OF_16_BITS;
    const bool palette = kind == STK_PNG_OF_PALETTE;
    stk_put(&header,
            (const uint8_t[5]){ wide ? 16 : 8,
                                palette         ? 3
                                : channels == 3 ? 2
                                                : 0,
                                0, 0, 0 },
            5);
    stk_put_png_chunk(to, "IHDR", header.at, header.size);
    if (palette) /* fewer colors than indices */
        stk_put_png_chunk(to, "PLTE", (const uint8_t[6]){ 9, 8, 7, 200, 100, 50 }, 6);

    const uint32_t bytes = width * channels * (wide ? 2 : 1);
    const uint16_t stored = (uint16_t)(bytes + 1);
    const uint8_t block[8] = { 0x78,
                               0x01,
                               1,
                               (uint8_t)stored,
                               (uint8_t)(stored >> 8),
                               (uint8_t)~stored,
                               (uint8_t)((uint16_t)~stored >> 8),
                               0 };
    stk_put(&data, block, sizeof(block));
    stk_put(&data, pixels, bytes);
    for (uint32_t i = 0; i < bytes; i++) {
        a = (a + pixels[i]) % 65521;
        b = (b + a) % 65521;
    }
    stk_put_be32(&data, b << 16 | a);
    stk_put_png_chunk(to, "IDAT", data.at, data.size);
    stk_put_png_chunk(to, "IEND", NULL, 0);
}

/* One row of `width` pixels with 1 (gray) or 3 channels. */
static inline void stk_put_png_of(struct stk_bytes *to, const uint8_t *pixels, uint32_t width,
                                  uint32_t channels)
{
    stk_put_png_kind(to, pixels, width, channels, 0);
}

/* One row of `width` gray pixels. */
static inline void stk_put_png(struct stk_bytes *to, const uint8_t *pixels, uint32_t width)
{
    stk_put_png_of(to, pixels, width, 1);
}

/* The same with colors: red is the gray, green one more, blue two more. */
static inline void stk_put_png_rgb(struct stk_bytes *to, const uint8_t *pixels, uint32_t width)
{
    uint8_t colors[3 * 64];
    cr_assert_leq(width, 64);
    for (uint32_t at = 0; at < 3 * width; at++)
        colors[at] = (uint8_t)(pixels[at / 3] + at % 3);
    stk_put_png_of(to, colors, width, 3);
}

/* ---- folders -------------------------------------------------------------------- */

struct stk_folder_set {
    struct stk_directory directory;
    stoker_dataset *dataset;
    uint32_t count;
    uint32_t per_class;
    bool png;
};

/* Where sample `id` lies, beneath the directory. */
static inline const char *stk_folder_name(const struct stk_folder_set *set, uint64_t id,
                                          char name[64])
{
    (void)snprintf(name, 64, "c%02u/f%05u.%s", (unsigned)(id / set->per_class), (unsigned)id,
                   set->png ? "png" : "raw");
    return name;
}

static inline void stk_folder_row(uint64_t id, uint8_t row[STK_FOLDER_ROW])
{
    for (uint32_t at = 0; at < STK_FOLDER_ROW; at++)
        row[at] = stk_set_byte(id, at);
}

static inline void stk_folder_write(const struct stk_folder_set *set, uint64_t id)
{
    uint8_t row[STK_FOLDER_ROW];
    struct stk_bytes bytes = { 0 };
    char name[64];
    stk_folder_row(id, row);
    if (set->png)
        stk_put_png(&bytes, row, STK_FOLDER_ROW);
    else
        stk_put(&bytes, row, sizeof(row));
    stk_file_write(&set->directory, stk_folder_name(set, id, name), bytes.at, bytes.size);
}

static inline void stk_folder_mkdir(const struct stk_directory *directory, const char *name)
{
    char path[512];
    cr_assert_eq(mkdir(stk_path_in(path, directory, name), 0755), 0, "%s", name);
}

/* A file of at most 64 zeros. */
static inline void stk_folder_touch(const struct stk_directory *directory, const char *name,
                                    size_t bytes)
{
    const uint8_t zeros[64] = { 0 };
    cr_assert_leq(bytes, sizeof(zeros));
    stk_file_write(directory, name, zeros, bytes);
}

/* Write `count` files, per_class of them a class, and open them. */
static inline void stk_folder_make(struct stk_folder_set *set, uint32_t count, uint32_t per_class,
                                   bool png)
{
    stoker_error error = { .message = "" };
    char spec[400];
    *set = (struct stk_folder_set){
        .directory = stk_directory_make(), .count = count, .per_class = per_class, .png = png
    };
    for (uint32_t id = 0; id < count; id++) {
        char name[64];
        if (id % per_class == 0) {
            (void)snprintf(name, sizeof(name), "c%02u", id / per_class);
            stk_folder_mkdir(&set->directory, name);
        }
        stk_folder_write(set, id);
    }
    (void)snprintf(spec, sizeof(spec), "folder:%.200s?extensions=%s", set->directory.path,
                   png ? "png" : "raw");
    cr_assert_eq(stoker_dataset_open(&set->dataset, spec, NULL, &error), STOKER_OK, "%s",
                 error.message);
}

static inline void stk_folder_remove(struct stk_folder_set *set)
{
    stoker_dataset_close(&set->dataset);
    stk_directory_remove(&set->directory);
}

/* Returns true if every row of a batch as stored, and its label, match its id. */
static inline bool stk_folder_matches(const struct stk_folder_set *set, const stoker_batch *batch)
{
    const uint8_t *images = batch->images.data;
    const int64_t *labels = batch->labels.data;
    for (uint32_t row = 0; row < batch->count; row++) {
        uint8_t expected[STK_FOLDER_ROW];
        stk_folder_row(batch->ids[row], expected);
        if (labels[row] != (int64_t)(batch->ids[row] / set->per_class) ||
            memcmp(images + (size_t)row * STK_FOLDER_ROW, expected, STK_FOLDER_ROW) != 0)
            return false;
    }
    return true;
}

#endif
