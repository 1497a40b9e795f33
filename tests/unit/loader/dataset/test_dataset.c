/* test_dataset.c - a data set of one's own: what create() refuses, and reading a sample.
 *
 * Method: a data set whose every answer the test chooses; the table of what describe()
 * may say wrongly is walked row by row.
 */
#include <errno.h>
#include <stoker/stoker.h>
#include <sys/mman.h>

#include "loader/base/fault.h"
#include "loader/base/struct_size.h"
#include "loader/codec/big_endian.h"
#include "loader/codec/raw.h"
#include "loader/dataset/format.h"
#include "support/files/dataset_files.h"
#include "support/leaks.h"
#include "support/sets/read_row.h"

/* ---- a data set that describes itself as the test wants ------------------------------------ */

struct told {
    stoker_dataset_info info;
    stoker_part sample; /* every id gets it */
    int64_t label;      /* likewise */
    stoker_file file;
    int describe_rc, locate_rc, file_rc;
    int destroyed;
};

static int describe(const void *self, stoker_dataset_info *out)
{
    *out = ((const struct told *)self)->info;
    return ((const struct told *)self)->describe_rc;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                  stoker_error *error)
{
    (void)ids;
    (void)error;
    for (uint32_t i = 0; i < count; i++)
        out[i] = ((const struct told *)self)->sample;
    return ((const struct told *)self)->locate_rc;
}

static int values(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out)
{
    (void)ids;
    cr_assert_eq(field, 1);
    for (uint32_t i = 0; i < count; i++)
        ((int64_t *)out)[i] = ((const struct told *)self)->label;
    return STOKER_OK;
}

static int file_of(const void *self, uint32_t file, stoker_file *out)
{
    (void)file;
    *out = ((const struct told *)self)->file;
    return ((const struct told *)self)->file_rc;
}

static void destroy(void *self)
{
    ((struct told *)self)->destroyed++;
}

static const stoker_dataset_ops told_ops = { .struct_size = sizeof(stoker_dataset_ops),
                                             .name = "described",
                                             .describe = describe,
                                             .locate = locate,
                                             .values = values,
                                             .file = file_of,
                                             .destroy = destroy };

/* Ten rows of four bytes in one file. */
static struct told sound(void)
{
    return (struct told){ .info = { .struct_size = sizeof(stoker_dataset_info),
                                    .count = 10,
                                    .dtype = STOKER_DTYPE_UINT8,
                                    .rank = 1,
                                    .shape = { 4 },
                                    .label_dtype = STOKER_DTYPE_INT64,
                                    .class_count = 3,
                                    .file_count = 1,
                                    .encoded_bytes_max = 4 } };
}

/* ---- create and close ----------------------------------------------------------- */

CleanTest(dataset, create_keeps_what_was_described)
{
    struct told told = sound();
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_create(&dataset, &told_ops, &told, NULL), STOKER_OK);
    cr_assert_str_eq(stoker_dataset_name(dataset), "described");
    cr_assert_eq(stoker_dataset_field_bytes(dataset, 0), 4);
    cr_assert_eq(stoker_dataset_get_info(dataset)->class_count, 3);
    stoker_dataset_close(&dataset);
    cr_assert_null(dataset);
    cr_assert_eq(told.destroyed, 1);
    stoker_dataset_close(&dataset);
    stoker_dataset_close(NULL);
    cr_assert_eq(told.destroyed, 1);
}

CleanTest(dataset, create_wants_its_callbacks)
{
    struct told told = sound();
    stoker_dataset *dataset = NULL;
    for (int missing = 0; missing < 6; missing++) {
        stoker_dataset_ops ops = told_ops;
        if (missing == 0)
            ops.name = NULL;
        if (missing == 1)
            ops.describe = NULL;
        if (missing == 2)
            ops.locate = NULL;
        if (missing == 3)
            ops.file = NULL; /* and file_count is 1 */
        if (missing == 4)
            ops.values = NULL; /* and there are labels */
        if (missing == 5)
            ops.struct_size = 0;
        cr_assert_eq(stoker_dataset_create(&dataset, &ops, &told, NULL), STOKER_EINVAL, "%d",
                     missing);
        cr_assert_null(dataset);
    }
    cr_assert_eq(stoker_dataset_create(&dataset, NULL, &told, NULL), STOKER_EINVAL);
    cr_assert_eq(stoker_dataset_create(NULL, &told_ops, &told, NULL), STOKER_EINVAL);

    stoker_dataset_ops ops = told_ops;
    ops.file = NULL;
    ops.destroy = NULL;
    told.info.file_count = 0;
    told.info.encoded_bytes_max = 0;
    cr_assert_eq(stoker_dataset_create(&dataset, &ops, &told, NULL), STOKER_OK,
                 "both are optional");
    stoker_dataset_close(&dataset);
    cr_assert_eq(told.destroyed, 0, "on failure self stays the caller's");
}

CleanTest(dataset, create_refuses_what_is_not_consistent)
{
    enum { ROWS = 17 };
    struct told told[ROWS];
    for (int i = 0; i < ROWS; i++)
        told[i] = sound();
    told[0].info.dtype = STOKER_DTYPE_NONE;
    told[1].info.dtype = (stoker_dtype)99;
    told[2].info.rank = STOKER_RANK_MAX;
    told[3].info.shape[0] = 0;
    told[4].info.shape[0] = UINT64_MAX;
    told[5].info.rank = 2;
    told[5].info.shape[0] = told[5].info.shape[1] = UINT64_C(1) << 33;
    told[6].info.is_image = true; /* rank 1 */
    told[7].info.label_dtype = STOKER_DTYPE_UINT8;
    told[8].info.label_dtype = STOKER_DTYPE_NONE;    /* with 3 classes */
    told[9].info.label_dtype = STOKER_DTYPE_FLOAT32; /* with 3 classes */
    told[10].info.dense = true;
    told[10].info.file_count = 0;
    told[11].info.encoded_bytes_max = 0;
    told[12].info.dense = true;
    told[12].info.encoded_bytes_max = 5; /* a row has 4 */
    told[13].info.dense = true;
    told[13].info.count = UINT64_MAX / 2;
    told[14].describe_rc = 7; /* no code of ours */
    told[15].describe_rc = INT32_MIN;
    told[16].info.part_count = 2; /* without field(): locate() would write beyond one part */
    for (int i = 0; i < ROWS; i++) {
        stoker_dataset *dataset = NULL;
        cr_assert_eq(stoker_dataset_create(&dataset, &told_ops, &told[i], NULL), STOKER_EINVAL,
                     "%d", i);
        cr_assert_null(dataset);
        cr_assert_eq(told[i].destroyed, 0);
    }
    struct told empty = sound();
    stoker_dataset *dataset = NULL;
    empty.info.count = 0;
    cr_assert_eq(stoker_dataset_create(&dataset, &told_ops, &empty, NULL), STOKER_EEMPTY);
    empty.describe_rc = STOKER_EIO;
    cr_assert_eq(stoker_dataset_create(&dataset, &told_ops, &empty, NULL), STOKER_EIO);
    struct told large = sound();
    large.info.encoded_bytes_max = UINT32_MAX; /* a read of this version: one less */
    cr_assert_eq(stoker_dataset_create(&dataset, &told_ops, &large, NULL), STOKER_ELIMIT);
    large.info.encoded_bytes_max--;
    cr_assert_eq(stoker_dataset_create(&dataset, &told_ops, &large, NULL), STOKER_OK);
    stoker_dataset_close(&dataset);
}

CleanTest(dataset, create_survives_the_failure_of_its_allocation)
{
    struct told told = sound();
    stoker_dataset *dataset = NULL;
    stk_fault_arm(STK_FAULT_ANY, 1);
    cr_assert_eq(stoker_dataset_create(&dataset, &told_ops, &told, NULL), STOKER_ENOMEM);
    cr_assert(stk_fault_disarm());
    cr_assert_null(dataset);
    cr_assert_eq(told.destroyed, 0);
}

CleanTest(dataset, null_is_answered)
{
    cr_assert_null(stoker_dataset_get_info(NULL));
    cr_assert_null(stoker_dataset_name(NULL));
    cr_assert_eq(stoker_dataset_field_bytes(NULL, 0), 0);
    stoker_part sample;
    stoker_error error = { 0 };
    cr_assert_eq(stoker_dataset_locate(NULL, 0, &sample, &error), STOKER_EINVAL);
    cr_assert_eq(stk_read_row(NULL, 0, &sample, 4, NULL, &error), STOKER_EINVAL);
    cr_assert_eq(error.code, STOKER_EINVAL);
}

/* ---- read ----------------------------------------------------------------------- */

/* Fails, and says why if self is a text. */
static int failing_decode(const void *self, void *scratch, const stoker_encoded *in,
                          const stoker_decoded *out, stoker_error *error)
{
    (void)out;
    (void)scratch;
    (void)in;
    if (self != NULL)
        (void)snprintf(error->message, sizeof(error->message), "%s", (const char *)self);
    return STOKER_ECORRUPT;
}

/* Answers with a normal stop, which no codec has. */
static int stopping_decode(const void *self, void *scratch, const stoker_encoded *in,
                           const stoker_decoded *out, stoker_error *error)
{
    (void)failing_decode(self, scratch, in, out, error);
    return STOKER_EPOCH_END;
}

/* Counts in its scratch; the row becomes the sample id and this count. */
static int counting_open(const void *self, bool any_size, void **scratch)
{
    *scratch = calloc(1, sizeof(int));
    return self == NULL && !any_size && *scratch != NULL ? STOKER_OK : STOKER_ENOMEM;
}

static int refusing_open(const void *self, bool any_size, void **scratch)
{
    (void)self;
    (void)any_size;
    (void)scratch;
    return STOKER_ENOMEM;
}

static void counting_close(const void *self, void *scratch)
{
    (void)self;
    free(scratch);
}

static int counting_decode(const void *self, void *scratch, const stoker_encoded *in,
                           const stoker_decoded *out, stoker_error *error)
{
    void *row = out->rows[0].data;
    const size_t row_bytes = out->rows[0].bytes_max;
    (void)self;
    (void)error;
    memset(row, (int)in->sample, row_bytes);
    ((uint8_t *)row)[0] = (uint8_t)++ * (int *)scratch;
    return in->size == 0 && in->bytes == NULL ? STOKER_OK : STOKER_EINVAL;
}

static int read_told(struct told *told, uint64_t id, uint8_t row[4], stoker_error *error)
{
    stoker_dataset *dataset = NULL;
    stoker_label label = { .index = -1 };
    *error = (stoker_error){ 0 };
    cr_assert_eq(stoker_dataset_create(&dataset, &told_ops, told, NULL), STOKER_OK);
    int rc = stk_read_row(dataset, id, row, 4, &label, error);
    cr_assert_eq(label.index, rc == STOKER_OK ? told->label : -1);
    cr_assert_eq(error->code, rc);
    cr_assert(rc == STOKER_OK || error->message[0] != '\0');
    stoker_dataset_close(&dataset);
    return rc;
}

CleanTest(dataset, read_takes_bytes_from_memory_from_nowhere_and_from_a_file)
{
    struct told told = sound();
    stoker_error error;
    uint8_t row[4];
    told.label = 2;
    told.sample.extent = (stoker_extent){ .memory = "abcd", .bytes = 4 };
    cr_assert_eq(read_told(&told, 3, row, &error), STOKER_OK);
    cr_assert_arr_eq(row, "abcd", 4);
    told.sample.codec = &stk_codec_raw;
    cr_assert_eq(read_told(&told, 3, row, &error), STOKER_OK);
    told.sample.codec = &stk_codec_be16;
    cr_assert_eq(read_told(&told, 3, row, &error), STOKER_OK);
    uint16_t elements[2];
    memcpy(elements, row, 4);
    cr_assert_eq(elements[0], 'a' * 256 + 'b');

    const stoker_codec counting = { .struct_size = sizeof(stoker_codec),
                                    .name = "counting",
                                    .open = counting_open,
                                    .close = counting_close,
                                    .decode = counting_decode };
    told.sample.extent = (stoker_extent){ 0 };
    told.sample.codec = &counting;
    cr_assert_eq(read_told(&told, 9, row, &error), STOKER_OK);
    cr_assert_arr_eq(row, ((uint8_t[]){ 1, 9, 9, 9 }), 4);

    struct stk_memory_file file = stk_memory_file("0123456789", 10);
    told.file = (stoker_file){ .path = file.path, .fd = file.fd, .size = 10 };
    told.sample.codec = NULL;
    told.sample.extent = (stoker_extent){ .offset = 6, .bytes = 4 };
    cr_assert_eq(read_told(&told, 0, row, &error), STOKER_OK);
    cr_assert_arr_eq(row, "6789", 4);
    close(file.fd);
}

/* The row is the part's last four bytes. */
static int last_decode(const void *self, void *scratch, const stoker_encoded *in,
                       const stoker_decoded *out, stoker_error *error)
{
    (void)self;
    (void)scratch;
    (void)error;
    memcpy(out->rows[0].data, in->bytes + in->size - 4, 4);
    return STOKER_OK;
}

/* No size or offset on the way from locate() to decode() may have 32 bits. */
CleanTest(dataset, a_part_in_memory_may_exceed_4_gib)
{
    const size_t bytes = (UINT64_C(1) << 32) + 6;
    const stoker_codec last = { .struct_size = sizeof(stoker_codec),
                                .name = "last",
                                .decode = last_decode };
    struct told told = sound();
    uint8_t *part = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cr_assert_neq(part, MAP_FAILED);
    memcpy(part + bytes - 4, "tail", 4);
    memcpy(part + 2, "head", 4); /* where 32 bits of the size would end */
    told.info.file_count = 0;
    told.info.encoded_bytes_max = bytes;
    told.sample = (stoker_part){ .extent = { .memory = part, .bytes = bytes }, .codec = &last };
    stoker_error error;
    uint8_t row[4];
    cr_assert_eq(read_told(&told, 0, row, &error), STOKER_OK);
    cr_assert_arr_eq(row, "tail", 4);

    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    cr_assert_eq(stoker_dataset_create(&dataset, &told_ops, &told, NULL), STOKER_OK);
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), STOKER_OK, "%s",
                 error.message);
    cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
    for (uint32_t i = 0; i < batch.count; i++)
        cr_assert_arr_eq((uint8_t *)batch.images.data + 4 * (size_t)i, "tail", 4);
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    munmap(part, bytes);
}

/* Every format of the table has its line, and a text without room ends where the room does. */
CleanTest(dataset, formats_describe_themselves)
{
    char text[4096], cut[8];
    const size_t bytes = stoker_dataset_formats(text, sizeof(text));
    cr_assert_eq(bytes, strlen(text));
    for (const struct stk_format *const *at = stk_formats; *at != NULL; at++) {
        char line[64];
        (void)snprintf(line, sizeof(line), "\n%s:", (*at)->name);
        cr_assert(strstr(text, line) != NULL || strncmp(text, line + 1, strlen(line) - 1) == 0,
                  "%s", (*at)->name);
    }
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1)
        cr_assert_lt(strcspn(line, "\t"), strcspn(line, "\n"), "%s", line);
    cr_assert_eq(stoker_dataset_formats(NULL, 0), bytes);
    cr_assert_eq(stoker_dataset_formats(cut, sizeof(cut)), bytes);
    cr_assert_eq(strlen(cut), sizeof(cut) - 1);
    cr_assert_eq(strncmp(cut, text, sizeof(cut) - 1), 0);
}

CleanTest(dataset, read_reports_where_it_failed)
{
    struct told told = sound();
    stoker_error error;
    uint8_t row[4];
    struct stk_memory_file file = stk_memory_file("0123456789", 10);
    told.file = (stoker_file){ .path = file.path, .fd = file.fd, .size = 10 };

    told.sample.extent = (stoker_extent){ .offset = 8, .bytes = 4 };
    cr_assert_eq(read_told(&told, 5, row, &error), STOKER_ETRUNCATED);
    cr_assert_eq(error.offset, 10, "where the file ends");
    cr_assert_eq(error.sample, 5);
    cr_assert_eq(error.stage, STOKER_STAGE_READ);
    cr_assert_str_eq(error.path, file.path);

    told.sample.extent = (stoker_extent){ .offset = 2, .bytes = 3 }; /* a row has 4 */
    cr_assert_eq(read_told(&told, 5, row, &error), STOKER_EFORMAT);
    cr_assert_eq(error.stage, STOKER_STAGE_DECODE);
    cr_assert_eq(error.offset, 2);

    told.sample.extent = (stoker_extent){ .bytes = 4, .file = 1 };
    cr_assert_eq(read_told(&told, 5, row, &error), STOKER_EINVAL);
    cr_assert_not_null(strstr(error.message, "file 1 of 1"));

    told.sample.extent = (stoker_extent){ .bytes = 4 };
    told.file_rc = STOKER_ENOENT;
    cr_assert_eq(read_told(&told, 5, row, &error), STOKER_ENOENT);
    told.file_rc = STOKER_OK;
    told.file.fd = -1;
    cr_assert_eq(read_told(&told, 5, row, &error), STOKER_ENOTSUP);
    cr_assert_not_null(strstr(error.message, "no descriptor"), "%s", error.message);
    told.file.fd = 1 << 20; /* nor is that one */
    cr_assert_eq(read_told(&told, 5, row, &error), STOKER_EIO);
    cr_assert_eq(error.os_errno, EBADF);

    told.file.fd = file.fd;
    stk_fault_arm(STK_FAULT_ANY, 5); /* the first four are the data set's own */
    cr_assert_eq(read_told(&told, 5, row, &error), STOKER_ENOMEM);
    stk_fault_disarm();
    close(file.fd);
}

CleanTest(dataset, read_reports_what_the_codec_said)
{
    struct told told = sound();
    stoker_error error;
    uint8_t row[4];
    stoker_codec codec = { .struct_size = sizeof(stoker_codec),
                           .name = "failing",
                           .self = "the reason",
                           .decode = failing_decode };
    told.sample.extent = (stoker_extent){ .memory = "abcd", .bytes = 4 };
    told.sample.codec = &codec;
    cr_assert_eq(read_told(&told, 5, row, &error), STOKER_ECORRUPT);
    cr_assert_eq(error.stage, STOKER_STAGE_DECODE);
    cr_assert_eq(error.sample, 5);
    cr_assert_not_null(strstr(error.message, "codec failing: the reason"));
    codec.self = NULL;
    cr_assert_eq(read_told(&told, 5, row, &error), STOKER_ECORRUPT);
    cr_assert_not_null(strstr(error.message, "codec failing"));

    codec.decode = stopping_decode;
    cr_assert_eq(read_told(&told, 5, row, &error), STOKER_EINVAL);
    codec.open = refusing_open;
    cr_assert_eq(read_told(&told, 5, row, &error), STOKER_ENOMEM);

    told.sample.codec = &stk_codec_be64; /* no whole element in a row of 4 */
    cr_assert_eq(read_told(&told, 5, row, &error), STOKER_EFORMAT);
    told.sample.codec = NULL;
    told.sample.extent = (stoker_extent){ 0 }; /* raw, and nothing there */
    cr_assert_eq(read_told(&told, 5, row, &error), STOKER_EFORMAT);
}

CleanTest(dataset, read_and_locate_check_their_arguments)
{
    struct told told = sound();
    stoker_dataset *dataset = NULL;
    stoker_error error = { 0 };
    stoker_part sample;
    uint8_t row[4];
    cr_assert_eq(stoker_dataset_create(&dataset, &told_ops, &told, NULL), STOKER_OK);
    cr_assert_eq(stoker_dataset_locate(dataset, 10, &sample, &error), STOKER_EINVAL);
    cr_assert_eq(error.sample, 10);
    cr_assert_eq(stoker_dataset_locate(dataset, 0, NULL, NULL), STOKER_EINVAL);
    cr_assert_eq(stk_read_row(dataset, 10, row, 4, NULL, &error), STOKER_EINVAL);
    cr_assert_eq(stoker_dataset_read(dataset, 0, NULL, &error), STOKER_EINVAL);
    cr_assert_eq(stk_read_row(dataset, 0, row, 3, NULL, &error), STOKER_EINVAL);
    told.locate_rc = STOKER_EIO;
    cr_assert_eq(stk_read_row(dataset, 0, row, 4, NULL, &error), STOKER_EIO);
    stoker_dataset_close(&dataset);
}

/* ---- names of classes ------------------------------------------------------------ */

static const char *name_of_label(const void *self, uint32_t field, uint32_t index)
{
    static const char *const names[] = { "ape", "bee", NULL };
    (void)self;
    cr_assert_eq(field, 1);
    return names[index];
}

CleanTest(dataset, classes_have_names_by_a_callback)
{
    struct told told = sound();
    stoker_dataset_ops by_label = told_ops;
    stoker_dataset *dataset = NULL;
    by_label.class_name = name_of_label;
    cr_assert_eq(stoker_dataset_create(&dataset, &by_label, &told, NULL), STOKER_OK);
    cr_assert_str_eq(stoker_dataset_class_name(dataset, 1, 0), "ape");
    cr_assert_str_eq(stoker_dataset_class_name(dataset, 1, 1), "bee");
    cr_assert_null(stoker_dataset_class_name(dataset, 1, 2));
    cr_assert_null(stoker_dataset_class_name(dataset, 1, 3));
    cr_assert_null(stoker_dataset_class_name(dataset, 0, 0)); /* has no classes */
    cr_assert_null(stoker_dataset_class_name(dataset, 2, 0));
    cr_assert_null(stoker_dataset_class_name(NULL, 0, 0));
    stoker_dataset_close(&dataset);
    cr_assert_eq(stoker_dataset_create(&dataset, &told_ops, &told, NULL), STOKER_OK);
    cr_assert_null(stoker_dataset_class_name(dataset, 1, 0)); /* no callback */
    stoker_dataset_close(&dataset);
}

/* ---- blocks ---------------------------------------------------------------------- */

static const uint64_t *block_firsts;

static uint64_t told_block_first(const void *self, uint64_t block)
{
    (void)self;
    return block_firsts[block];
}

CleanTest(dataset, blocks_ascend_from_0)
{
    static const struct {
        uint64_t count;
        uint64_t firsts[3];
        int rc;
    } rows[] = {
        { 1, { 0 }, STOKER_OK },           { 3, { 0, 1, 9 }, STOKER_OK },
        { 1, { 1 }, STOKER_EINVAL },       { 3, { 0, 2, 2 }, STOKER_EINVAL },
        { 3, { 0, 5, 4 }, STOKER_EINVAL }, { 2, { 0, 10 }, STOKER_EINVAL },
        { 11, { 0 }, STOKER_EINVAL },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct told told = sound();
        stoker_dataset_ops ops = told_ops;
        stoker_dataset *dataset = NULL;
        told.info.block_count = rows[i].count;
        block_firsts = rows[i].firsts;
        cr_assert_eq(stoker_dataset_create(&dataset, &ops, &told, NULL), STOKER_EINVAL, "%zu", i);
        ops.block_first = told_block_first;
        cr_assert_eq(stoker_dataset_create(&dataset, &ops, &told, NULL), rows[i].rc, "%zu", i);
        stoker_dataset_close(&dataset);
    }
}

/* ---- bytes as stored ------------------------------------------------------------ */

static const char *always_png(const void *self, uint64_t id)
{
    (void)self;
    (void)id;
    return "png";
}

CleanTest(dataset, codec_or_data_set_report_the_stored_form)
{
    struct told told = sound();
    stoker_dataset_ops knows = told_ops;
    stoker_dataset *dataset = NULL;
    knows.stored_as = always_png;
    cr_assert_eq(stoker_dataset_create(&dataset, &told_ops, &told, NULL), STOKER_OK);
    cr_assert_str_eq(stoker_dataset_stored_as(dataset, 9), "raw");
    told.sample.codec = stk_codec_big_endian(4);
    cr_assert_str_eq(stoker_dataset_stored_as(dataset, 0), told.sample.codec->name);
    cr_assert_null(stoker_dataset_stored_as(dataset, 10));
    cr_assert_null(stoker_dataset_stored_as(NULL, 0));
    told.locate_rc = STOKER_EIO;
    cr_assert_null(stoker_dataset_stored_as(dataset, 0));
    stoker_dataset_close(&dataset);
    cr_assert_eq(stoker_dataset_create(&dataset, &knows, &told, NULL), STOKER_OK);
    cr_assert_str_eq(stoker_dataset_stored_as(dataset, 0), "png");
    cr_assert_null(stoker_dataset_stored_as(dataset, 10));
    stoker_dataset_close(&dataset);
}

CleanTest(dataset, stored_bytes_come_as_they_lie_there)
{
    struct told told = sound();
    stoker_dataset *dataset = NULL;
    stoker_error error;
    struct stk_memory_file file = stk_memory_file("0123456789", 10);
    char bytes[8] = "........";
    size_t size = 99;
    told.file = (stoker_file){ .path = "digits", .fd = file.fd, .size = 10 };
    told.info.encoded_bytes_max = 5;
    told.sample =
        (stoker_part){ .extent = { .offset = 3, .bytes = 5 }, .codec = stk_codec_big_endian(4) };
    cr_assert_eq(stoker_dataset_create(&dataset, &told_ops, &told, NULL), STOKER_OK);
    cr_assert_eq(stoker_dataset_read_stored(dataset, 1, 0, bytes, 6, &size, &error), STOKER_OK);
    cr_assert_eq(size, 5);
    cr_assert_eq(memcmp(bytes, "34567", 5), 0);

    size = 99;
    cr_assert_eq(stoker_dataset_read_stored(dataset, 1, 0, bytes, 5, &size, &error), STOKER_EINVAL);
    cr_assert_eq(stoker_dataset_read_stored(dataset, 10, 0, bytes, 6, &size, &error),
                 STOKER_EINVAL);
    cr_assert_eq(stoker_dataset_read_stored(NULL, 1, 0, bytes, 6, &size, &error), STOKER_EINVAL);
    cr_assert_eq(stoker_dataset_read_stored(dataset, 1, 0, NULL, 6, &size, &error), STOKER_EINVAL);
    cr_assert_eq(stoker_dataset_read_stored(dataset, 1, 0, bytes, 6, NULL, &error), STOKER_EINVAL);
    told.sample.extent.bytes = 6; /* more than was announced */
    cr_assert_eq(stoker_dataset_read_stored(dataset, 1, 0, bytes, 8, &size, &error), STOKER_ELIMIT);
    told.sample.extent.bytes = UINT64_C(1) << 32 | 5; /* 5 in its low half */
    cr_assert_eq(stoker_dataset_read_stored(dataset, 1, 0, bytes, (size_t)1 << 33, &size, &error),
                 STOKER_ELIMIT);
    told.sample.extent = (stoker_extent){ .offset = 8, .bytes = 5 };
    cr_assert_eq(stoker_dataset_read_stored(dataset, 1, 0, bytes, 8, &size, &error),
                 STOKER_ETRUNCATED);
    cr_assert_eq(error.offset, 10);
    cr_assert_eq(size, 99, "written only on success");

    told.sample.extent = (stoker_extent){ .memory = "memory", .bytes = 5 };
    cr_assert_eq(stoker_dataset_read_stored(dataset, 1, 0, bytes, 8, &size, &error), STOKER_OK);
    cr_assert_eq(memcmp(bytes, "memor", size), 0);
    told.sample.extent = (stoker_extent){ .bytes = 0 };
    cr_assert_eq(stoker_dataset_read_stored(dataset, 1, 0, bytes, 1, &size, &error), STOKER_OK);
    cr_assert_eq(size, 0);
    stoker_dataset_close(&dataset);
    close(file.fd);
}

/* ---- open ----------------------------------------------------------------------- */

CleanTest(dataset, an_unknown_spec_lists_the_formats)
{
    const struct stk_directory directory = stk_directory_make();
    char path[512];
    stk_file_write(&directory, "notes.txt", "not a data set", 14);
    stk_file_write(&directory, "short", "", 1);
    const struct {
        const char *spec;
        int code;
        const char *says;
    } rows[] = {
        { "", STOKER_ENOENT, "mnist" },
        { "no-such-file", STOKER_ENOENT, "no-such-file" },
        { "imagenet:somewhere", STOKER_ESPEC, "\"imagenet\"" },
        { ":", STOKER_ESPEC, "mnist" },
        { "MNIST:somewhere", STOKER_ESPEC, "mnist" },
        { directory.path, STOKER_ESPEC, directory.path },
        { stk_path_in(path, &directory, "notes.txt"), STOKER_ESPEC, "idx" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        stoker_error error = { 0 };
        stoker_dataset *dataset = NULL;
        const stoker_dataset_options options = STOKER_DATASET_OPTIONS_INIT;
        cr_assert_eq(stoker_dataset_open(&dataset, rows[i].spec, &options, &error), rows[i].code,
                     "%s: %s", rows[i].spec, error.message);
        cr_assert_eq(error.code, rows[i].code);
        cr_assert_null(dataset);
        cr_assert_not_null(strstr(error.message, rows[i].says), "%s", error.message);
        for (const struct stk_format *const *at = stk_formats; *at != NULL; at++)
            cr_assert_not_null(strstr(error.message, (*at)->name), "%s", error.message);
    }
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_open(&dataset, stk_path_in(path, &directory, "short"), NULL, NULL),
                 STOKER_ESPEC);
    cr_assert_eq(stoker_dataset_open(&dataset, NULL, NULL, NULL), STOKER_EINVAL);
    cr_assert_eq(stoker_dataset_open(NULL, "synth:digits", NULL, NULL), STOKER_EINVAL);
    stk_directory_remove(&directory);
}

CleanTest(dataset, a_path_with_a_colon_is_still_a_path)
{
    const struct stk_directory directory = stk_directory_make();
    static const uint8_t idx[] = { 0, 0, 8, 1, 0, 0, 0, 1, 42 };
    char path[512];
    stk_file_write(&directory, "odd:name", idx, sizeof(idx));
    stoker_dataset *dataset = NULL;
    cr_assert_eq(
        stoker_dataset_open(&dataset, stk_path_in(path, &directory, "odd:name"), NULL, NULL),
        STOKER_OK);
    cr_assert_str_eq(stoker_dataset_name(dataset), "idx");
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

CleanTest(dataset, the_limit_on_unpacked_bytes_is_obeyed)
{
    static const uint64_t limits[] = { 1 << 20, UINT64_MAX };
    static const uint8_t idx[] = { 0, 0, 8, 1, 0, 0, 0, 1, 42 };
    struct stk_bytes packed = { 0 };
    stk_put_gzip(&packed, idx, sizeof(idx));
    struct stk_memory_file file = stk_memory_file(packed.at, packed.size);
    stoker_dataset *dataset = NULL;
#ifdef STOKER_HAVE_DEFLATE
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        const stoker_dataset_options options = { .struct_size = sizeof(stoker_dataset_options),
                                                 .max_bytes = limits[i] };
        cr_assert_eq(stoker_dataset_open(&dataset, file.path, &options, NULL), STOKER_OK);
        stoker_dataset_close(&dataset);
    }
    const stoker_dataset_options none = { .struct_size = sizeof(none), .max_bytes = 0 };
    cr_assert_eq(stoker_dataset_open(&dataset, file.path, &none, NULL), STOKER_EINVAL);
    const stoker_dataset_options tight = { .struct_size = sizeof(stoker_dataset_options),
                                           .max_bytes = sizeof(idx) - 1 };
    cr_assert_eq(stoker_dataset_open(&dataset, file.path, &tight, NULL), STOKER_ELIMIT);
#else
    const stoker_dataset_options options = { .struct_size = sizeof(stoker_dataset_options),
                                             .max_bytes = limits[0] };
    cr_assert_eq(stoker_dataset_open(&dataset, file.path, &options, NULL), STOKER_ENOTSUP);
#endif
    close(file.fd);
}

CleanTest(dataset_open, options_have_their_size_and_their_defaults)
{
    static const size_t refused[] = { 0, sizeof(size_t), sizeof(stoker_dataset_options) - 1,
                                      STK_STRUCT_BYTES_MAX + 1, SIZE_MAX };
    stoker_dataset_options options = STOKER_DATASET_OPTIONS_INIT;
    cr_assert_null(options.split);
    cr_assert_eq(options.max_bytes, UINT64_C(16) << 30);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        stoker_dataset *dataset = NULL;
        stoker_error error = { .code = 0 };
        options.struct_size = refused[i];
        cr_assert_eq(stoker_dataset_open(&dataset, "synth:digits?count=9", &options, &error),
                     STOKER_EINVAL);
        cr_assert_null(dataset);
        cr_assert_not_null(strstr(error.message, "struct_size"), "%s", error.message);
    }
}
