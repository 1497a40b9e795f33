/* jpeg_set.h - a folder of JPEG files, for tests of decoding on a GPU: most are for the GPU, some
 * only the CPU decodes, some are bad.
 *
 *   id % 7 == 3   CMYK                             id % 7 == 5   gray, in a set of colors
 *   id % 5 == 1   progressive                      else          4:2:0, 4:2:2 or 4:4:4
 *   bad: 9        truncated    17  a marker inside of the coded data    23  text
 *
 * Without Criterion: ThreadSanitizer's programs use it as well.
 */
#ifndef STK_TEST_JPEG_SET_H
#define STK_TEST_JPEG_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jpeglib.h>

#include <stoker/stoker.h>

#include "loader/base/rng.h"

enum { STK_JPEG_SET_COUNT = 40, STK_JPEG_SET_SIDE_MAX = 48 };

struct stk_jpeg_set {
    stoker_dataset *dataset;
    char directory[200];
};

struct stk_jpeg_set_kind {
    stoker_size size; /* the images' size; 0 x 0: each has one of its own */
    bool bad;         /* three of them */
    bool gray;        /* all are, and so are the rows */
    uint32_t count;   /* 1..STK_JPEG_SET_COUNT; 0 = as many */
};

struct stk_jpeg_bytes {
    unsigned char *at; /* from malloc */
    unsigned long size;
};

/* Image `id` as a file. */
static inline struct stk_jpeg_bytes stk_jpeg_set_file(uint64_t id,
                                                      const struct stk_jpeg_set_kind *kind)
{
    struct stk_jpeg_bytes file = { NULL, 0 };
    struct jpeg_compress_struct compress;
    struct jpeg_error_mgr errors; /* the default one ends the program */
    const bool gray = kind->gray || id % 7 == 5, inks = !gray && id % 7 == 3;
    uint8_t row[STK_JPEG_SET_SIDE_MAX * 4];
    compress.err = jpeg_std_error(&errors);
    jpeg_create_compress(&compress);
    jpeg_mem_dest(&compress, &file.at, &file.size);
    compress.image_height = kind->size.height;
    compress.image_width = kind->size.width;
    if (kind->size.height == 0) {
        compress.image_height = 1 + (unsigned)(stk_mix64(id) % STK_JPEG_SET_SIDE_MAX);
        compress.image_width = 1 + (unsigned)(stk_mix64(id ^ 77) % STK_JPEG_SET_SIDE_MAX);
    }
    compress.input_components = gray ? 1 : inks ? 4 : 3;
    compress.in_color_space = gray ? JCS_GRAYSCALE : inks ? JCS_CMYK : JCS_RGB;
    jpeg_set_defaults(&compress);
    jpeg_set_quality(&compress, 85, TRUE);
    if (!gray && !inks) {
        compress.comp_info[0].h_samp_factor = id % 3 == 0 ? 1 : 2;
        compress.comp_info[0].v_samp_factor = id % 3 == 1 ? 2 : 1;
    }
    if (id % 5 == 1)
        jpeg_simple_progression(&compress);
    jpeg_start_compress(&compress, TRUE);
    while (compress.next_scanline < compress.image_height) {
        JSAMPROW rows[] = { row };
        for (unsigned i = 0; i < compress.image_width * (unsigned)compress.input_components; i++)
            row[i] = (uint8_t)(id * 37 + i * 5 + compress.next_scanline * 3 +
                               (stk_mix64(id * 65536 + compress.next_scanline * 256 + i) & 31));
        (void)jpeg_write_scanlines(&compress, rows, 1);
    }
    jpeg_finish_compress(&compress);
    jpeg_destroy_compress(&compress);
    return file;
}

/* Make image 9, 17 or 23 bad. */
static inline void stk_jpeg_set_spoil(uint64_t id, struct stk_jpeg_bytes *file)
{
    if (id == 9)
        file->size /= 2;
    if (id == 17) { /* a restart that was not announced, among the last codes */
        file->at[file->size - 12] = 0xFF;
        file->at[file->size - 11] = 0xD3;
    }
    if (id == 23) {
        memcpy(file->at, "no image at all", 16);
        file->size = 16;
    }
}

static inline bool stk_jpeg_set_write(const char *path, const struct stk_jpeg_bytes *file)
{
    FILE *out = fopen(path, "wbe");
    const bool written = out != NULL && fwrite(file->at, 1, file->size, out) == file->size;
    return out != NULL && fclose(out) == 0 && written;
}

/* parameters: of the spec, beginning with "?"; may be empty. */
static inline bool stk_jpeg_set_make(struct stk_jpeg_set *set, const struct stk_jpeg_set_kind *kind,
                                     const char *parameters)
{
    const char *parent = getenv("TMPDIR");
    char path[256], spec[512];
    (void)snprintf(set->directory, sizeof(set->directory), "%s/stoker-test-XXXXXX",
                   parent != NULL ? parent : P_tmpdir);
    bool made = mkdtemp(set->directory) != NULL;
    (void)snprintf(path, sizeof(path), "%s/c0", set->directory);
    made = made && mkdir(path, 0700) == 0;
    const uint64_t count = kind->count > 0 ? kind->count : STK_JPEG_SET_COUNT;
    for (uint64_t id = 0; id < count && made; id++) {
        struct stk_jpeg_bytes file = stk_jpeg_set_file(id, kind);
        if (kind->bad)
            stk_jpeg_set_spoil(id, &file);
        (void)snprintf(path, sizeof(path), "%s/c0/f%03u.jpg", set->directory, (unsigned)id);
        made = stk_jpeg_set_write(path, &file);
        free(file.at);
    }
    (void)snprintf(spec, sizeof(spec), "folder:%s%s", set->directory, parameters);
    return made && stoker_dataset_open(&set->dataset, spec, NULL, NULL) == STOKER_OK;
}

static inline void stk_jpeg_set_remove(struct stk_jpeg_set *set)
{
    char path[256];
    stoker_dataset_close(&set->dataset);
    for (unsigned id = 0; id < STK_JPEG_SET_COUNT; id++) {
        (void)snprintf(path, sizeof(path), "%s/c0/f%03u.jpg", set->directory, id);
        (void)unlink(path);
    }
    (void)snprintf(path, sizeof(path), "%s/c0", set->directory);
    (void)rmdir(path);
    (void)rmdir(set->directory);
}

#endif
