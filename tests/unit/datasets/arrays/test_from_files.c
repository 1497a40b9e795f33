/* test_from_files.c - lists of files and arrays beside them as a data set: every field of every
 * sample, in the order given, and what is wrong is named.
 */
#include "support/sets/fields_of.h"
#include "support/sets/tar_reading.h"
#include "support/sweep.h"

enum { SAMPLES = 4, PATH_BYTES = 600 };

static const char *const captions[SAMPLES] = { "a bee", "", "two\nlines", "x" };
static const int16_t classes[SAMPLES] = { 2, 0, 1, 2 };
static const char *const class_names[] = { "ape", "bee", "cat" };
static const float boxes[] = { 1, 2, 3, 4, 5, 6 };
static const int64_t ends[SAMPLES + 1] = { 0, 1, 1, 3, 3 }; /* in pairs */

struct inputs {
    struct stk_directory directory;
    char at[3][SAMPLES][PATH_BYTES];
    const char *paths[3][SAMPLES];
    stoker_files files[3]; /* image, mask, caption */
    stoker_array arrays[2];
    int released;
};

static void put(struct inputs *inputs, int list, int sample, const char *name, const void *bytes,
                size_t size)
{
    const struct stk_directory directory = inputs->directory;
    stk_file_write(&directory, name, bytes, size);
    inputs->paths[list][sample] = stk_path_in(inputs->at[list][sample], &directory, name);
}

static void put_image(struct inputs *inputs, int list, int sample, const char *format)
{
    char name[20];
    uint8_t row[STK_FOLDER_ROW];
    struct stk_bytes bytes = { 0 };
    stk_folder_row((uint64_t)(sample + 50 * list), row);
    stk_put_png(&bytes, row, STK_FOLDER_ROW);
    (void)snprintf(name, sizeof(name), format, 9 - sample);
    put(inputs, list, sample, name, bytes.at, bytes.size);
}

/* Names fall while samples rise: the order is the caller's. */
static void make_inputs(struct inputs *inputs)
{
    static const char *const names[] = { "image", "mask", "caption" };
    *inputs = (struct inputs){ .directory = stk_directory_make() };
    for (int i = 0; i < SAMPLES; i++) {
        char name[20];
        put_image(inputs, 0, i, "%d.image.png");
        put_image(inputs, 1, i, "%d.mask.png");
        (void)snprintf(name, sizeof(name), "%d.txt", 9 - i);
        put(inputs, 2, i, name, captions[i], strlen(captions[i]));
    }
    for (int f = 0; f < 3; f++) {
        inputs->files[f] = (stoker_files)STOKER_FILES_INIT;
        inputs->files[f].name = names[f];
        inputs->files[f].paths = inputs->paths[f];
    }
    inputs->arrays[0] = inputs->arrays[1] = (stoker_array)STOKER_ARRAY_INIT;
    inputs->arrays[0].name = "label";
    inputs->arrays[0].data = classes;
    inputs->arrays[0].dtype = STOKER_DTYPE_INT16;
    inputs->arrays[0].class_count = 3;
    inputs->arrays[0].class_names = class_names;
    inputs->arrays[1].name = "boxes";
    inputs->arrays[1].data = boxes;
    inputs->arrays[1].dtype = STOKER_DTYPE_FLOAT32;
    inputs->arrays[1].rank = 2;
    inputs->arrays[1].shape[1] = 2;
    inputs->arrays[1].offsets = ends;
}

static void release(void *context)
{
    ++*(int *)context;
}

static int open_inputs(stoker_dataset **out, struct inputs *inputs, stoker_error *error)
{
    stoker_arrays_options options = STOKER_ARRAYS_OPTIONS_INIT;
    options.destroy = release;
    options.context = &inputs->released;
    return stoker_dataset_from_files(out, inputs->files, 3, inputs->arrays, 2, SAMPLES, &options,
                                     error);
}

static void check_sample(const stoker_dataset *dataset, int i)
{
    struct stk_fields_of sample = stk_fields_read(dataset, (uint64_t)i);
    uint8_t row[STK_FOLDER_ROW];
    const int64_t label = classes[i];
    const uint64_t entries = (uint64_t)(ends[i + 1] - ends[i]);
    stk_folder_row((uint64_t)i, row);
    stk_fields_check(dataset, &sample, "image", row, 0, sizeof(row));
    stk_folder_row((uint64_t)i + 50, row);
    stk_fields_check(dataset, &sample, "mask", row, 0, sizeof(row));
    stk_fields_check(dataset, &sample, "caption", captions[i], strlen(captions[i]),
                     strlen(captions[i]));
    stk_fields_check(dataset, &sample, "label", &label, 0, sizeof(label));
    stk_fields_check(dataset, &sample, "boxes", boxes + 2 * ends[i], entries,
                     2 * sizeof(float) * entries);
    stk_fields_free(&sample);
}

CleanTest(from_files, every_field_of_every_sample_in_the_order_given)
{
    stk_archive_needs_png();
    static struct inputs inputs;
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    make_inputs(&inputs);
    cr_assert_eq(open_inputs(&dataset, &inputs, &error), STOKER_OK, "%s", error.message);
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    cr_assert_eq(info->count, SAMPLES);
    cr_assert_eq(info->field_count, 5);
    cr_assert_eq(info->part_count, 4); /* the label has none */
    cr_assert_eq(info->class_count, 3);
    const uint32_t label = (uint32_t)stoker_dataset_find_field(dataset, "label");
    cr_assert_str_eq(stoker_dataset_class_name(dataset, label, 1), "bee");
    cr_assert_eq(stoker_dataset_field(dataset, 1)->kind, STOKER_FIELD_KIND_MASK);
    cr_assert_str_eq(stoker_dataset_name(dataset), "files");
    for (int i = 0; i < SAMPLES; i++)
        check_sample(dataset, i);
    cr_assert_eq(inputs.released, 0);
    stoker_dataset_close(&dataset);
    cr_assert_eq(inputs.released, 1);
    stk_directory_remove(&inputs.directory);
}

CleanTest(from_files, a_loader_delivers_files_and_arrays)
{
    stk_archive_needs_png();
    static struct inputs inputs;
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    stoker_loader_options options = stk_default_options(.batch_size = SAMPLES, .num_workers = 1);
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_error error = { .message = "" };
    make_inputs(&inputs);
    cr_assert_eq(open_inputs(&dataset, &inputs, &error), STOKER_OK, "%s", error.message);
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), STOKER_OK, "%s",
                 error.message);
    cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
    const int64_t *labels = batch.labels.data;
    const stoker_field *found = stoker_batch_field(&batch, "boxes");
    for (int i = 0; i < SAMPLES; i++)
        cr_assert_eq(labels[i], classes[i]);
    cr_assert_arr_eq(found->offsets, ends, sizeof(ends));
    cr_assert_arr_eq(found->values.data, boxes, sizeof(boxes));
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    stk_directory_remove(&inputs.directory);
}

CleanTest(from_files, relative_paths_begin_at_the_working_directory_of_the_call)
{
    stk_archive_needs_png();
    static struct inputs inputs;
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    char before[PATH_BYTES];
    make_inputs(&inputs);
    for (int i = 0; i < SAMPLES; i++)
        inputs.paths[0][i] = strrchr(inputs.paths[0][i], '/') + 1;
    cr_assert_not_null(getcwd(before, sizeof(before)));
    cr_assert_eq(chdir(inputs.directory.path), 0);
    const int rc = open_inputs(&dataset, &inputs, &error);
    cr_assert_eq(chdir(before), 0);
    cr_assert_eq(rc, STOKER_OK, "%s", error.message);
    for (int i = 0; i < SAMPLES; i++)
        check_sample(dataset, i);
    stoker_dataset_close(&dataset);
    stk_directory_remove(&inputs.directory);
}

static void expect(struct inputs *inputs, int code, const char *says)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    const int rc = open_inputs(&dataset, inputs, &error);
    cr_assert_eq(rc, code, "%s: %s", stoker_error_name(rc), error.message);
    cr_assert_null(dataset);
    cr_assert_not_null(strstr(error.message, says), "\"%s\" is not in: %s", says, error.message);
    cr_assert_eq(inputs->released, 0);
}

CleanTest(from_files, what_is_wrong_is_named)
{
    stk_archive_needs_png();
    static struct inputs inputs;
    make_inputs(&inputs);
    const char *const good = inputs.paths[1][2];
    inputs.paths[1][2] = "/nowhere/x.png";
    expect(&inputs, STOKER_ENOENT, "/nowhere/x.png");
    inputs.paths[1][2] = inputs.directory.path;
    expect(&inputs, STOKER_EISDIR, inputs.directory.path);
    inputs.paths[1][2] = "/dev/null";
    expect(&inputs, STOKER_EFORMAT, "/dev/null");
    inputs.paths[1][2] = inputs.paths[2][2];
    expect(&inputs, STOKER_EMISMATCH, "are not of one kind");
    inputs.paths[1][2] = "";
    expect(&inputs, STOKER_EINVAL, "missing or empty");
    inputs.paths[1][2] = NULL;
    expect(&inputs, STOKER_EINVAL, "missing or empty");
    inputs.paths[1][2] = good;
    inputs.files[1].name = "image";
    expect(&inputs, STOKER_EINVAL, "image");
    inputs.files[1].name = NULL;
    expect(&inputs, STOKER_EINVAL, "a name of 1 to 63 bytes");
    inputs.files[1].name = "mask";
    inputs.files[2].struct_size = 3;
    expect(&inputs, STOKER_EINVAL, "STOKER_FILES_INIT");
    inputs.files[2].struct_size = sizeof(stoker_files);
    inputs.arrays[0].data = NULL;
    expect(&inputs, STOKER_EINVAL, "its data are NULL");
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_from_files(&dataset, inputs.files, 33, NULL, 0, 1, NULL, NULL),
                 STOKER_EINVAL);
    cr_assert_eq(stoker_dataset_from_files(&dataset, inputs.files, 1, NULL, 1, 1, NULL, NULL),
                 STOKER_EINVAL);
    cr_assert_eq(stoker_dataset_from_files(&dataset, inputs.files, 1, NULL, 0, 0, NULL, NULL),
                 STOKER_EEMPTY);
    stk_directory_remove(&inputs.directory);
}

CleanTest(from_files, each_allocation_may_fail)
{
    stk_archive_needs_png();
    static struct inputs inputs;
    stoker_dataset *dataset = NULL;
    struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
    make_inputs(&inputs);
    while (stk_sweep_next(&sweep)) {
        sweep.rc = open_inputs(&dataset, &inputs, &sweep.error);
        cr_assert_eq(inputs.released, 0);
    }
    cr_assert_geq(sweep.failed, 8);
    stoker_dataset_close(&dataset);
    cr_assert_eq(inputs.released, 1);
    stk_directory_remove(&inputs.directory);
}
