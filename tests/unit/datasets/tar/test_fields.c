/* test_fields.c - tar archives with more than an image and a label: masks, arrays, text, keys.
 *
 * Method: archives put together by hand, in memory; every field of every sample is compared. Every
 * prefix and every flipped bit of headers must give an error or a data set whose samples read, or
 * say why not.
 */
#include "support/files/npy_bytes.h"
#include "support/sets/fields_of.h"
#include "support/sets/refused_specs.h"
#include "support/sets/tar_reading.h"
#include "support/sweep.h"

enum { SAMPLES = 4 };

static struct stk_archive archive; /* one per test: each runs in a process of its own */

static const char *const captions[SAMPLES] = { "a bee", "", "two\nlines", "x" };
#define ALL "?fields=png,seg.png,boxes.npy,score.npy,txt,json,cls,__key__"

/* Boxes of sample i: i rows of 4 numbers. */
static float box(int sample, int at)
{
    return (float)(100 * sample + at) / 8;
}

static void add_array(const char *name, const char *descr, const char *shape, const void *elements,
                      size_t bytes)
{
    struct stk_bytes file = { 0 };
    stk_put_npy(&file, descr, shape, elements, bytes);
    stk_archive_add(&archive, '0', name, file.at, file.size);
}

static void add_boxes(const char *name, int sample)
{
    float boxes[4 * SAMPLES];
    char shape[20];
    (void)snprintf(shape, sizeof(shape), "(%d, 4)", sample);
    for (int at = 0; at < 4 * sample; at++)
        boxes[at] = box(sample, at);
    add_array(name, "<f4", shape, boxes, (size_t)sample * 4 * sizeof(float));
}

static void add_sample(int i)
{
    char name[40];
    const double score = i + 0.5;
    (void)snprintf(name, sizeof(name), "d/k%d.png", i);
    stk_archive_image(&archive, name, (uint64_t)i);
    (void)snprintf(name, sizeof(name), "d/k%d.seg.png", i);
    stk_archive_image(&archive, name, (uint64_t)i + 100);
    (void)snprintf(name, sizeof(name), "d/k%d.boxes.npy", i);
    add_boxes(name, i);
    (void)snprintf(name, sizeof(name), "d/k%d.score.npy", i);
    add_array(name, "<f8", "()", &score, sizeof(score));
    (void)snprintf(name, sizeof(name), "d/k%d.txt", i);
    stk_archive_text(&archive, name, captions[i]);
    (void)snprintf(name, sizeof(name), "d/k%d.json", i);
    stk_archive_text(&archive, name, "{}");
    (void)snprintf(name, sizeof(name), "d/k%d.cls", i);
    stk_archive_text(&archive, name, i == 0 ? "0" : "2");
}

static void make_archive(void)
{
    archive.size = 0;
    for (int i = 0; i < SAMPLES; i++)
        add_sample(i);
    stk_archive_end(&archive);
}

static stoker_dataset *open_good(const char *parameters)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    cr_assert_eq(stk_archive_open(&dataset, &archive, parameters, &error), STOKER_OK, "%s",
                 error.message);
    return dataset;
}

static void check_sample(const stoker_dataset *dataset, int i)
{
    struct stk_fields_of sample = stk_fields_read(dataset, (uint64_t)i);
    uint8_t row[STK_FOLDER_ROW];
    float boxes[4 * SAMPLES];
    char key[16];
    const double score = i + 0.5;
    const int64_t label = i == 0 ? 0 : 2;
    stk_folder_row((uint64_t)i, row);
    stk_fields_check(dataset, &sample, "image", row, 0, sizeof(row));
    stk_folder_row((uint64_t)i + 100, row);
    stk_fields_check(dataset, &sample, "seg", row, 0, sizeof(row));
    for (int at = 0; at < 4 * i; at++)
        boxes[at] = box(i, at);
    stk_fields_check(dataset, &sample, "boxes", boxes, (uint64_t)i, (size_t)i * 16);
    stk_fields_check(dataset, &sample, "score", &score, 0, sizeof(score));
    stk_fields_check(dataset, &sample, "txt", captions[i], strlen(captions[i]),
                     strlen(captions[i]));
    stk_fields_check(dataset, &sample, "json", "{}", 2, 2);
    stk_fields_check(dataset, &sample, "label", &label, 0, sizeof(label));
    (void)snprintf(key, sizeof(key), "d/k%d", i);
    stk_fields_check(dataset, &sample, "key", key, strlen(key), strlen(key));
    stk_fields_free(&sample);
}

CleanTest(tar_fields, every_kind_of_member_becomes_a_field)
{
    stk_archive_needs_png();
    make_archive();
    stoker_dataset *dataset = open_good(ALL);
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    cr_assert_eq(info->count, SAMPLES);
    cr_assert_eq(info->field_count, 8);
    cr_assert_eq(info->part_count, 7);
    cr_assert_eq(info->label_dtype, STOKER_DTYPE_INT64);
    cr_assert_eq(info->class_count, 3);
    cr_assert_eq(stoker_dataset_field(dataset, 0)->kind, STOKER_FIELD_KIND_IMAGE);
    cr_assert_eq(stoker_dataset_field(dataset, 1)->kind, STOKER_FIELD_KIND_MASK);
    const stoker_field_info *boxes = stoker_dataset_field(dataset, 2);
    cr_assert(boxes->varies);
    cr_assert_eq(boxes->shape[0], SAMPLES - 1);
    cr_assert_eq(boxes->shape[1], 4);
    cr_assert_eq(stoker_dataset_field(dataset, 3)->rank, 0);
    cr_assert_eq(stoker_dataset_field(dataset, 4)->kind, STOKER_FIELD_KIND_BYTES);
    cr_assert_eq(stoker_dataset_field(dataset, 4)->shape[0], strlen("two\nlines"));
    for (int i = 0; i < SAMPLES; i++)
        check_sample(dataset, i);
    stoker_dataset_close(&dataset);
}

CleanTest(tar_fields, the_spec_orders_and_names_them)
{
    stk_archive_needs_png();
    make_archive();
    stoker_dataset *dataset = open_good("?fields=caption=txt,image=webp;png,mask=seg.png");
    cr_assert_eq(stoker_dataset_get_info(dataset)->field_count, 3);
    cr_assert_eq(stoker_dataset_find_field(dataset, "caption"), 0);
    cr_assert_eq(stoker_dataset_find_field(dataset, "image"), 1);
    cr_assert_eq(stoker_dataset_find_field(dataset, "mask"), 2);
    cr_assert_eq(stoker_dataset_get_info(dataset)->label_dtype, STOKER_DTYPE_NONE);
    stoker_dataset_close(&dataset);
}

/* Arrays of one length make a field of fixed shape; without entries at all it still varies. */
CleanTest(tar_fields, only_lengths_that_differ_vary)
{
    static const int16_t pair[2] = { 7, -7 };
    for (int i = 0; i < 2; i++) {
        add_array(i == 0 ? "a.x.npy" : "b.x.npy", "<i2", "(2,)", pair, sizeof(pair));
        add_array(i == 0 ? "a.y.npy" : "b.y.npy", "|u1", "(0, 3)", NULL, 0);
    }
    stk_archive_end(&archive);
    stoker_dataset *dataset = open_good("?fields=x.npy,y.npy");
    const stoker_field_info *x = stoker_dataset_field(dataset, 0);
    cr_assert_not(x->varies);
    cr_assert_eq(x->shape[0], 2);
    cr_assert_eq(x->dtype, STOKER_DTYPE_INT16);
    cr_assert(stoker_dataset_field(dataset, 1)->varies);
    struct stk_fields_of sample = stk_fields_read(dataset, 1);
    stk_fields_check(dataset, &sample, "x", pair, 0, sizeof(pair));
    stk_fields_check(dataset, &sample, "y", NULL, 0, 0);
    stk_fields_free(&sample);
    stoker_dataset_close(&dataset);
}

CleanTest(tar_fields, what_is_missing_or_does_not_fit_is_named)
{
    stk_archive_needs_png();
    stk_archive_image(&archive, "a.png", 1);
    stk_archive_text(&archive, "a.txt", "a");
    stk_archive_image(&archive, "b.png", 2);
    stk_archive_text(&archive, "c.json", "not wanted");
    stk_archive_end(&archive);
    stk_archive_check_refused(&archive, "?fields=png,txt", STOKER_EMISMATCH, "tar: b has no .txt");
    stk_archive_check_refused(&archive, "?fields=txt,cls", STOKER_EMISMATCH, "tar: a has no .cls");
    stk_archive_check_refused(&archive, "?fields=npy", STOKER_EEMPTY, "no KEY.npy among 4 members");
    stk_archive_check_refused(&archive, "?fields=cls", STOKER_ESPEC, "a member other than cls");
    stk_archive_check_refused(&archive, "?fields=png,png", STOKER_ESPEC,
                              "\"png\": the extension is there twice");
    stk_archive_check_refused(&archive, "?fields=x=png,x=txt", STOKER_ESPEC,
                              "\"txt\": two fields have the same name");
    stk_archive_check_refused(&archive, "?fields=png,,txt", STOKER_ESPEC, "an extension has 1");
    stk_archive_check_refused(&archive, "?fields=png,x=PNG", STOKER_ESPEC, "is there twice");

    archive.size = 0;
    add_array("a.x.npy", "<f4", "(1,)", "abcd", 4);
    add_array("b.x.npy", "<f8", "(1,)", "abcdefgh", 8);
    stk_archive_end(&archive);
    stk_archive_check_refused(&archive, "?fields=x.npy", STOKER_EMISMATCH,
                              "a.x.npy and b.x.npy differ in type");
    archive.size = 0;
    add_array("a.x.npy", ">f4", "(1,)", "abcd", 4);
    add_array("b.x.npy", "<f4", "(1,)", "abcd", 4);
    stk_archive_end(&archive);
    stk_archive_check_refused(&archive, "?fields=x.npy", STOKER_EMISMATCH,
                              "a.x.npy and b.x.npy differ in type or byte order");
    archive.size = 0;
    add_array("a.x.npy", "<f4", "(2,)", "abcd", 4);
    stk_archive_end(&archive);
    stk_archive_check_refused(&archive, "?fields=x.npy", STOKER_ETRUNCATED, "a.x.npy: ");
}

/* The elements 1, 2, ... of `size` bytes, the highest first. */
static size_t put_big_endian(uint8_t *to, size_t count, size_t size)
{
    memset(to, 0, count * size);
    for (size_t i = 0; i < count; i++)
        to[i * size + size - 1] = (uint8_t)(i + 1);
    return count * size;
}

CleanTest(tar_fields, big_endian_elements_are_swapped)
{
    static const uint16_t twos[2] = { 1, 2 };
    static const uint32_t four = 1;
    static const uint64_t eights[6] = { 1, 2, 3, 4, 5, 6 };
    uint8_t bytes[48];
    for (int i = 0; i < 3; i++) { /* the last is empty */
        char names[3][20];
        char shape[20];
        (void)snprintf(names[0], sizeof(names[0]), "k%d.x.npy", i);
        (void)snprintf(names[1], sizeof(names[1]), "k%d.y.npy", i);
        (void)snprintf(names[2], sizeof(names[2]), "k%d.z.npy", i);
        (void)snprintf(shape, sizeof(shape), "(%d, 3)", 2 - i);
        add_array(names[0], ">u2", "(2,)", bytes, put_big_endian(bytes, 2, 2));
        add_array(names[1], ">u4", "()", bytes, put_big_endian(bytes, 1, 4));
        add_array(names[2], ">i8", shape, bytes, put_big_endian(bytes, 3 * (2 - (size_t)i), 8));
    }
    stk_archive_end(&archive);
    stoker_dataset *dataset = open_good("?fields=x.npy,y.npy,z.npy");
    cr_assert_not(stoker_dataset_field(dataset, 0)->varies);
    cr_assert(stoker_dataset_field(dataset, 2)->varies);
    for (uint64_t i = 0; i < 3; i++) {
        struct stk_fields_of sample = stk_fields_read(dataset, i);
        stk_fields_check(dataset, &sample, "x", twos, 0, sizeof(twos));
        stk_fields_check(dataset, &sample, "y", &four, 0, sizeof(four));
        stk_fields_check(dataset, &sample, "z", eights, 2 - i, 24 * (2 - i));
        stk_fields_free(&sample);
    }
    stoker_dataset_close(&dataset);
}

CleanTest(tar_fields, fortran_order_is_refused_with_the_remedy)
{
    static const char text[] = "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }\n";
    struct stk_bytes file = { 0 };
    const uint8_t begin[10] = { 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, sizeof(text) - 1, 0 };
    stk_put(&file, begin, sizeof(begin));
    stk_put(&file, text, sizeof(text) - 1);
    stk_put(&file, "abcd", 4);
    stk_archive_add(&archive, '0', "a.x.npy", file.at, file.size);
    stk_archive_end(&archive);
    stk_archive_check_refused(&archive, "?fields=x.npy", STOKER_ENOTSUP, "save it in C order");
}

/* Sample 0 of an archive whose only mask is that file. */
static void check_mask(const struct stk_bytes *png, const uint8_t *values, const char *refused)
{
    archive.size = 0;
    stk_archive_image(&archive, "a.png", 1);
    stk_archive_add(&archive, '0', "a.mask.png", png->at, png->size);
    stk_archive_end(&archive);
    stoker_dataset *dataset = open_good("?fields=png,mask.png");
    const stoker_field_info *mask = stoker_dataset_field(dataset, 1);
    cr_assert_eq(mask->kind, STOKER_FIELD_KIND_MASK);
    cr_assert_eq(mask->shape[2], 1);
    struct stk_fields_of sample = stk_fields_read(dataset, 0);
    if (refused == NULL) {
        stk_fields_check(dataset, &sample, "mask", values, 0, STK_FOLDER_ROW);
    } else {
        cr_assert_eq(sample.rc, STOKER_EFORMAT);
        cr_assert_not_null(strstr(sample.error.message, refused), "%s", sample.error.message);
    }
    stk_fields_free(&sample);
    stoker_dataset_close(&dataset);
}

/* A mask's values are class numbers: the indices of a palette, or gray levels. Colors are a bad
 * sample, not gray. */
CleanTest(tar_fields, a_mask_has_the_values_that_are_stored)
{
    stk_archive_needs_png();
    uint8_t pixels[3 * STK_FOLDER_ROW] = { 1, 2, 3, 255 };
    struct stk_bytes png = { 0 };
    stk_put_png_kind(&png, pixels, STK_FOLDER_ROW, 1, STK_PNG_OF_PALETTE);
    check_mask(&png, pixels, NULL);
    png.size = 0;
    stk_put_png(&png, pixels, STK_FOLDER_ROW);
    check_mask(&png, pixels, NULL);
    png.size = 0;
    stk_put_png_rgb(&png, pixels, STK_FOLDER_ROW);
    check_mask(&png, NULL, "a mask of colors");
    png.size = 0;
    stk_put_png_kind(&png, pixels, STK_FOLDER_ROW, 1, STK_PNG_OF_16_BITS);
    check_mask(&png, NULL, "a mask of 16 bits");
}

/* Several archives are indexed by several threads: keys, lengths and shapes are those of all. */
CleanTest(tar_fields, archives_add_up)
{
    enum { FILES = 12 };
    const struct stk_directory directory = stk_directory_make();
    char spec[600];
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    for (int file = 0; file < FILES; file++) {
        char name[40];
        archive.size = 0;
        (void)snprintf(name, sizeof(name), "key-%d.boxes.npy", file);
        add_boxes(name, file % SAMPLES);
        (void)snprintf(name, sizeof(name), "key-%d.txt", file);
        stk_archive_text(&archive, name, captions[file % SAMPLES]);
        stk_archive_end(&archive);
        (void)snprintf(name, sizeof(name), "%02d.tar", file);
        stk_file_write(&directory, name, archive.at, archive.size);
    }
    (void)snprintf(spec, sizeof(spec), "tar:%s/{00..11}.tar?fields=txt,boxes.npy,__key__",
                   directory.path);
    cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, &error), STOKER_OK, "%s", error.message);
    cr_assert_eq(stoker_dataset_field(dataset, 1)->shape[0], SAMPLES - 1);
    for (int i = 0; i < FILES; i++) {
        char key[20];
        struct stk_fields_of sample = stk_fields_read(dataset, (uint64_t)i);
        (void)snprintf(key, sizeof(key), "key-%d", i);
        stk_fields_check(dataset, &sample, "key", key, strlen(key), strlen(key));
        stk_fields_check(dataset, &sample, "txt", captions[i % SAMPLES],
                         strlen(captions[i % SAMPLES]), strlen(captions[i % SAMPLES]));
        stk_fields_free(&sample);
    }
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

/* ---- sweeps --------------------------------------------------------------------- */

static void read_all(const stoker_dataset *dataset)
{
    const uint64_t count = stoker_dataset_get_info(dataset)->count;
    for (uint32_t f = 0; f < stoker_dataset_get_info(dataset)->field_count; f++)
        if (stoker_dataset_field_bytes(dataset, f) > 1 << 20)
            return;
    for (uint64_t id = 0; id < count; id++) {
        struct stk_fields_of sample = stk_fields_read(dataset, id);
        cr_assert(sample.rc == STOKER_OK || sample.error.message[0] != '\0');
        stk_fields_free(&sample);
    }
}

CleanTest(tar_fields, every_prefix_is_an_error_or_fewer_samples)
{
    stk_archive_needs_png();
    make_archive();
    const size_t size = archive.size;
    for (archive.size = 0; archive.size < size; archive.size += archive.size % 512 == 1 ? 511 : 1) {
        stoker_error error = { .message = "" };
        stoker_dataset *dataset = NULL;
        int rc = stk_archive_open(&dataset, &archive, ALL, &error);
        cr_assert_eq(rc == STOKER_OK, dataset != NULL);
        cr_assert(dataset != NULL || error.code == rc);
        stoker_dataset_close(&dataset);
        rc = stk_archive_open(&dataset, &archive, ALL "&truncated=keep", &error);
        if (rc == STOKER_OK)
            read_all(dataset);
        stoker_dataset_close(&dataset);
    }
}

CleanTest(tar_fields, every_flipped_bit_is_an_error_or_reads)
{
    stk_archive_needs_png();
    unsigned opened = 0;
    archive.size = 0;
    add_sample(1);
    stk_archive_end(&archive);
    for (size_t bit = 0; bit < 8 * archive.size; bit++) {
        stoker_error error = { .message = "" };
        stoker_dataset *dataset = NULL;
        archive.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
        const int rc = stk_archive_open(&dataset, &archive, ALL, &error);
        cr_assert_eq(rc == STOKER_OK, dataset != NULL);
        cr_assert(dataset != NULL || error.code == rc);
        if (dataset != NULL) {
            opened++;
            read_all(dataset);
        }
        stoker_dataset_close(&dataset);
        archive.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    cr_assert_gt(opened, 1000);
}

CleanTest(tar_fields, each_allocation_may_fail)
{
    stk_archive_needs_png();
    make_archive();
    stoker_dataset *dataset = NULL;
    struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
    while (stk_sweep_next(&sweep))
        sweep.rc = stk_archive_open(&dataset, &archive, ALL, &sweep.error);
    cr_assert_geq(sweep.failed, 15);
    stoker_dataset_close(&dataset);
}
