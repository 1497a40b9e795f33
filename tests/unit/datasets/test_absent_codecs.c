/* test_absent_codecs.c - a build without an image codec names it wherever images need it. The test
 * brings an image decoder of its own, which takes the codecs for absent that a case names.
 */
#include "loader/codec/jpeg/jpeg.h"
#include "loader/codec/png/png.h"
#include "loader/codec/webp/webp.h"
#include "support/files/folder_files.h"
#include "support/leaks.h"

static struct stk_image_kind png, jpeg, webp; /* as built, but present only if a case says so */
#define stk_image_png  png
#define stk_image_jpeg jpeg
#define stk_image_webp webp
#include "loader/codec/images/image_decoder.c"
#undef stk_image_png
#undef stk_image_jpeg
#undef stk_image_webp

static void build_with(bool has_png, bool has_jpeg)
{
    png = stk_image_png;
    jpeg = stk_image_jpeg;
    webp = stk_image_webp;
    png.present = png.present && has_png;
    jpeg.present = jpeg.present && has_jpeg;
    webp.present = false;
}

/* A folder of one class with one PNG file of 1 x 4 gray pixels. */
static int open_folder(const char *parameters, stoker_error *error)
{
    char spec[600];
    struct stk_directory directory = stk_directory_make();
    struct stk_bytes file = { 0 };
    stoker_dataset *dataset = NULL;
    stk_put_png_kind(&file, (const uint8_t[4]){ 1, 2, 3, 4 }, 4, 1, 0);
    stk_folder_mkdir(&directory, "class");
    stk_file_write(&directory, "class/a.png", file.at, file.size);
    (void)snprintf(spec, sizeof(spec), "folder:%s%s", directory.path, parameters);
    const int rc = stoker_dataset_open(&dataset, spec, NULL, error);
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
    return rc;
}

CleanTest(absent_codecs, are_named_when_a_folder_is_opened)
{
    static const struct {
        bool png, jpeg;
        const char *parameters, *message;
    } cases[] = {
        { false, false, "",
          "class/a.png: this build reads no PNG files: it was made without libpng" },
        { false, true, "",
          "class/a.png: this build reads no PNG files: it was made without libpng" },
        { false, false, "?height=1&width=4&channels=1",
          "this build reads no images: it was made without libpng, libjpeg-turbo and libwebp" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stoker_error error = { .message = "" };
        build_with(cases[i].png, cases[i].jpeg);
        cr_assert_eq(open_folder(cases[i].parameters, &error), STOKER_ENOTSUP, "case %zu", i);
        cr_assert_not_null(strstr(error.message, cases[i].message), "%s", error.message);
    }
}

CleanTest(absent_codecs, that_are_not_needed_do_not_matter)
{
#ifdef STOKER_HAVE_PNG
    stoker_error error = { .message = "" };
    build_with(true, false);
    cr_assert_eq(open_folder("", &error), STOKER_OK, "%s", error.message);
#else
    cr_skip_test("built without libpng");
#endif
}

CleanTest(absent_codecs, are_features_that_are_not_present)
{
    bool present = true;
    uint32_t number = 0;
    build_with(true, true);
    for (const char *name; (name = stoker_feature(number, &present)) != NULL; number++) {
        cr_assert_not_null(stoker_feature(number, NULL));
        if (strcmp(name, "png") == 0)
            cr_assert_eq(present, stk_image_png.present);
        if (strcmp(name, "jpeg") == 0)
            cr_assert_eq(present, stk_image_jpeg.present);
    }
    cr_assert_eq(number, 9);
    cr_assert_null(stoker_feature(UINT32_MAX, &present));
}
