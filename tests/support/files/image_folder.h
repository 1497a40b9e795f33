/* image_folder.h - a folder of color PNG images, of one size or each of its own, opened as a data
 * set. */
#ifndef STK_TEST_IMAGE_FOLDER_H
#define STK_TEST_IMAGE_FOLDER_H

#include "picture.h"
#include "support/runs/scripted_reader.h"

/* folder_files.h comes after: it knows the scenario's sets. */
#include "folder_files.h"

enum { STK_IMAGE_COUNT = 40, STK_IMAGE_SIDE_MAX = 48 };

struct stk_image_folder {
    struct stk_directory directory;
    stoker_dataset *dataset;
    bool mixed; /* each has a size of its own; else 24 x 32 */
};

static inline void stk_image_size(const struct stk_image_folder *images, uint64_t id,
                                  struct stk_picture *picture)
{
    *picture = (struct stk_picture){ .depth = 8,
                                     .color = PNG_COLOR_TYPE_RGB,
                                     .filters = PNG_ALL_FILTERS,
                                     .height = 24,
                                     .width = 32 };
    if (!images->mixed)
        return;
    picture->height = 1 + (uint32_t)(stk_mix64(id) % STK_IMAGE_SIDE_MAX);
    picture->width = 1 + (uint32_t)(stk_mix64(id ^ 77) % STK_IMAGE_SIDE_MAX);
}

static inline void stk_image_folder_make(struct stk_image_folder *images, bool mixed,
                                         const char *parameters)
{
    static struct stk_picture picture;
    static struct stk_file_bytes file;
    stoker_error error = { .message = "" };
    char spec[400], name[64];
    *images = (struct stk_image_folder){ .directory = stk_directory_make(), .mixed = mixed };
    stk_folder_mkdir(&images->directory, "c0");
    for (uint64_t id = 0; id < STK_IMAGE_COUNT; id++) {
        stk_image_size(images, id, &picture);
        stk_picture_paint(&picture, id);
        stk_picture_write(&picture, &file);
        (void)snprintf(name, sizeof(name), "c0/f%03u.png", (unsigned)id);
        stk_file_write(&images->directory, name, file.at, file.size);
    }
    (void)snprintf(spec, sizeof(spec), "folder:%s%s", images->directory.path, parameters);
    cr_assert_eq(stoker_dataset_open(&images->dataset, spec, NULL, &error), STOKER_OK, "%s",
                 error.message);
}

static inline void stk_image_folder_remove(struct stk_image_folder *images)
{
    stoker_dataset_close(&images->dataset);
    stk_directory_remove(&images->directory);
}

#endif
