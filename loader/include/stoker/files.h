/* stoker/files.h - make a data set of lists of files, and of arrays in memory such as labels.
 *
 *   stoker_files files[2] = { STOKER_FILES_INIT, STOKER_FILES_INIT };
 *   files[0].name = "image";  files[0].paths = images;          one path per sample
 *   files[1].name = "mask";   files[1].paths = masks;
 *   stoker_dataset_from_files(&dataset, files, 2, &labels, 1, count, NULL, &error);
 */
#ifndef STOKER_FILES_H
#define STOKER_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/arrays.h>

STOKER_BEGIN_DECLS

enum { STOKER_FILES_MAX = 32 }; /* lists of files */

/* One field, with one file per sample. Start from STOKER_FILES_INIT, then set name and paths.
 *
 * All files of a list are of one kind, as in `folder:image=DIR,mask=DIR`: images (.png, .jpg,
 * .jpeg, .webp), arrays (.npy), or bytes (anything else). Images are masks if the name begins with
 * "mask" or "seg". */
typedef struct stoker_files {
    size_t struct_size; /* set by STOKER_FILES_INIT; the same in all lists of one call */
    const char *name;   /* field name: see stoker_field_info; copied. No default */
    /* One file per sample. Copied, 16 bytes and the path each. Relative paths are resolved against
     * the working directory at the call. No default. */
    const char *const *paths;
    /* Shape of a row of images or masks: sides 1..65535; channels 1 gray, 3 RGB, 4 RGBA. Default 0
     * = read from the images, as `folder:` does. Ignored for other files. */
    uint32_t height, width, channels;
} stoker_files;

#define STOKER_FILES_DEFAULTS STOKER_DEFAULT(struct_size, sizeof(stoker_files))

STOKER_MAKER(stoker_files, STOKER_FILES_DEFAULTS)
#define STOKER_FILES_INIT STOKER_INITIALIZER(stoker_files, STOKER_FILES_DEFAULTS)
STOKER_API int stoker_files_init_sized(stoker_files *out, size_t struct_size);

/* Make a data set of `count` >= 1 samples from file_count lists of files, 1 to STOKER_FILES_MAX,
 * and array_count arrays as for stoker_dataset_from_arrays(), 0 to STOKER_FIELDS_MAX - file_count.
 * Its fields are the lists, then the arrays. `options` applies to the arrays, and may be NULL.
 *
 * The call stats every file and reads up to 1000 image headers. Files do not stay open: each read
 * opens one and closes it. If a file has vanished or its length has changed by then, the sample is
 * bad and the report names the file.
 *
 * On success the caller owns *out; on failure it is untouched. Errors: those of
 * stoker_dataset_from_arrays() and of stat() (STOKER_ENOENT, EACCES, ...); STOKER_EISDIR,
 * STOKER_EFORMAT (not a regular file), STOKER_EMISMATCH (a list has files of several kinds, or .npy
 * files that differ in more than the first axis). */
STOKER_API int stoker_dataset_from_files(stoker_dataset **out, const stoker_files *files,
                                         uint32_t file_count, const stoker_array *arrays,
                                         uint32_t array_count, uint64_t count,
                                         const stoker_arrays_options *options, stoker_error *error);

STOKER_END_DECLS
#endif
