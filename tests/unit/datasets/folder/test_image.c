/* test_image.c - images in folder:, tar: and shards: what a decoder only warns of is
 * accepted or an error, as the parameter on_decode_warning says; WebP files beside the others.
 */
#include "support/leaks.h"

#if defined(STOKER_HAVE_JPEG) && defined(STOKER_HAVE_WEBP)
#include "support/files/jpeg_files.h"
#include "support/files/shard_files.h"
#include "support/files/tar_files.h"
#include "support/files/webp_files.h"
#include "support/sets/read_row.h"

enum { HEIGHT = 4, WIDTH = 6, SHARD_JPEG = 3 };

/* A gray JPEG file with bytes before its end marker that belong to nothing. */
static struct stk_bytes warned_jpeg(void)
{
    struct stk_jpeg_file file =
        stk_jpeg_write(&(struct stk_jpeg_kind){ HEIGHT, WIDTH, .channels = 1 });
    struct stk_bytes bytes = { 0 };
    stk_put(&bytes, file.at, file.size - 2);
    stk_put(&bytes, "these bytes belong to nothing", 29);
    stk_put(&bytes, "\xFF\xD9", 2);
    free(file.at);
    return bytes;
}

/* Open the spec with the parameter and read sample 0; the error of either. */
static int open_and_read(const char *spec, const char *parameter, stoker_error *error)
{
    char text[600];
    uint8_t row[HEIGHT * WIDTH];
    stoker_dataset *dataset = NULL;
    const stoker_dataset_options options = { .struct_size = sizeof(stoker_dataset_options),
                                             .max_bytes = 1 << 20 };
    (void)snprintf(text, sizeof(text), "%s%s", spec, parameter);
    int rc = stoker_dataset_open(&dataset, text, &options, error);
    if (rc == STOKER_OK)
        rc = stk_read_row(dataset, 0, row, sizeof(row), NULL, error);
    stoker_dataset_close(&dataset);
    return rc;
}

static void check_parameter(const char *spec)
{
    stoker_error error = { .message = "" };
    cr_assert_eq(open_and_read(spec, "", &error), STOKER_OK, "%s", error.message);
    cr_assert_eq(open_and_read(spec, "?on_decode_warning=accept", &error), STOKER_OK, "%s",
                 error.message);
    cr_assert_eq(open_and_read(spec, "?on_decode_warning=fail", &error), STOKER_ECORRUPT);
    cr_assert_not_null(strstr(error.message, "extraneous bytes"), "%s", error.message);
    cr_assert_eq(open_and_read(spec, "?on_decode_warning=maybe", &error), STOKER_ESPEC);
    cr_assert_not_null(strstr(error.message, "fail or accept"), "%s", error.message);
}

CleanTest(folder_image, a_warning_in_a_folder_fails_if_asked)
{
    const struct stk_bytes jpeg = warned_jpeg();
    struct stk_directory directory = stk_directory_make();
    char spec[400];
    stk_folder_mkdir(&directory, "a");
    stk_file_write(&directory, "a/x.jpg", jpeg.at, jpeg.size);
    (void)snprintf(spec, sizeof(spec), "folder:%s", directory.path);
    check_parameter(spec);
    stk_directory_remove(&directory);
}

CleanTest(folder_image, a_warning_in_an_archive_fails_if_asked)
{
    static struct stk_archive archive;
    const struct stk_bytes jpeg = warned_jpeg();
    struct stk_directory directory = stk_directory_make();
    char spec[400];
    stk_archive_add(&archive, '0', "x.jpg", jpeg.at, jpeg.size);
    stk_archive_end(&archive);
    stk_file_write(&directory, "x.tar", archive.at, archive.size);
    (void)snprintf(spec, sizeof(spec), "tar:%s/x.tar", directory.path);
    check_parameter(spec);
    stk_directory_remove(&directory);
}

/* A shard of one record, which becomes a JPEG file. */
static void make_shard(struct stk_shard_image *image, const struct stk_bytes *jpeg)
{
    stk_shard_image_make(image, 0, 1, 1, 1);
    stk_shard_image_empty(image);
    stk_shard_image_put(image, 0, 0, jpeg->at, (uint32_t)jpeg->size, SHARD_JPEG);
    stk_shard_image_seal(image);
}

CleanTest(folder_image, a_warning_in_a_shard_fails_if_asked)
{
    static struct stk_shard_image image;
    const struct stk_bytes jpeg = warned_jpeg();
    struct stk_directory directory = stk_directory_make();
    char spec[400];
    make_shard(&image, &jpeg);
    stk_shard_image_write(&image, &directory, "s-00000.stk");
    (void)snprintf(spec, sizeof(spec), "shards:%s", directory.path);
    check_parameter(spec);
    stk_directory_remove(&directory);
}
/* ---- WebP ------------------------------------------------------------------------ */

static const uint8_t olive[4] = { 120, 130, 10, 255 };

static struct stk_webp_file webp_file(uint32_t height, bool alpha)
{
    return stk_webp_write(&(struct stk_webp_kind){ height, WIDTH, true, alpha, olive });
}

/* Sample `id` is an image of that one color. */
static void check_olive(const stoker_dataset *dataset, uint64_t id)
{
    uint8_t row[HEIGHT * WIDTH * 3];
    stoker_error error = { .message = "" };
    cr_assert_eq(stoker_dataset_field_bytes(dataset, 0), sizeof(row));
    cr_assert_eq(stk_read_row(dataset, id, row, sizeof(row), NULL, &error), STOKER_OK, "%s",
                 error.message);
    cr_assert_arr_eq(row, olive, 3);
    cr_assert_arr_eq(row + sizeof(row) - 3, olive, 3);
}

CleanTest(folder_image, webp_files_lie_beside_others_in_a_folder)
{
    struct stk_webp_file webp = webp_file(HEIGHT, false);
    struct stk_directory directory = stk_directory_make();
    stoker_dataset *dataset = NULL;
    char spec[400];
    stk_folder_mkdir(&directory, "a");
    stk_file_write(&directory, "a/0.webp", webp.at, webp.size);
    stk_file_write(&directory, "a/1.PNG", webp.at, webp.size); /* whatever its name says */
    (void)snprintf(spec, sizeof(spec), "%s", directory.path);
    cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, NULL), STOKER_OK); /* a plain path */
    cr_assert_str_eq(stoker_dataset_name(dataset), "folder");
    cr_assert_eq(stoker_dataset_get_info(dataset)->count, 2);
    check_olive(dataset, 0);
    check_olive(dataset, 1);
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
    free(webp.at);
}

CleanTest(folder_image, webp_members_are_images_of_an_archive)
{
    static struct stk_archive archive;
    struct stk_webp_file webp = webp_file(HEIGHT, true);
    struct stk_webp_file tall = webp_file(HEIGHT + 1, true);
    struct stk_directory directory = stk_directory_make();
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    uint8_t row[HEIGHT * WIDTH * 3];
    char spec[400];
    stk_archive_add(&archive, '0', "x.webp", webp.at, webp.size);
    stk_archive_add(&archive, '0', "y.webp", tall.at, tall.size);
    stk_archive_end(&archive);
    stk_file_write(&directory, "x.tar", archive.at, archive.size);
    (void)snprintf(spec, sizeof(spec), "tar:%s/x.tar?channels=3", directory.path);
    cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, NULL), STOKER_OK);
    check_olive(dataset, 0);
    cr_assert_eq(stk_read_row(dataset, 1, row, sizeof(row), NULL, &error), STOKER_EFORMAT);
    cr_assert_not_null(strstr(error.message, "5 x 6"), "%s", error.message);
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
    free(webp.at);
    free(tall.at);
}
#else
CleanTest(folder_image, a_build_without_libjpeg_and_libwebp_warns_of_nothing)
{
}
#endif
