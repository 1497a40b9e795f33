/* test_dataset_fields.c - a data set with three parts and five fields: what it describes is
 * checked, and each field of a sample can be read.
 *
 *   part 0, memory   "pair.a" 2 x uint8, "pair.b" uint16     one raw part, two fields
 *   part 1, file     "words" up to 5 x int32                 raw, varies
 *   part 2, drawn    "text" bytes                            a codec with STOKER_CODEC_FIELDS
 *   values()         "label" int64, "weight" 2 x float32
 */
#include <stoker/stoker.h>

#include "loader/base/fault.h"
#include "support/files/dataset_files.h"
#include "support/leaks.h"
#include "support/sets/read_row.h"

enum { COUNT = 6, FIELDS = 6, PARTS = 3, WORDS_MAX = 5 };

struct fields_set {
    stoker_dataset_info info;
    stoker_field_info fields[FIELDS];
    stoker_codec text;
    uint8_t pairs[COUNT][4];
    int32_t words[COUNT * WORDS_MAX];
    struct stk_memory_file file;
    int values_rc;
    uint64_t text_length; /* what decode() reports; 0 = the truth */
};

static int describe(const void *self, stoker_dataset_info *out)
{
    *out = ((const struct fields_set *)self)->info;
    return STOKER_OK;
}

static int field_of(const void *self, uint32_t field, stoker_field_info *out)
{
    cr_assert_lt(field, FIELDS);
    cr_assert_eq(out->struct_size, sizeof(*out));
    *out = ((const struct fields_set *)self)->fields[field];
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *parts,
                  stoker_error *error)
{
    const struct fields_set *set = self;
    (void)error;
    for (uint32_t i = 0; i < count; i++) {
        stoker_part *part = &parts[(size_t)i * PARTS];
        part[0] = (stoker_part){ .extent = { .memory = set->pairs[ids[i]], .bytes = 4 } };
        part[1] = (stoker_part){ .extent = { .offset = ids[i] * 4 * WORDS_MAX,
                                             .bytes = (uint32_t)(ids[i] % (WORDS_MAX + 1)) * 4 } };
        part[2] = (stoker_part){ .codec = &set->text };
    }
    return STOKER_OK;
}

static int values(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out)
{
    for (uint32_t i = 0; i < count; i++)
        if (field == 4)
            ((int64_t *)out)[i] = (int64_t)ids[i] * 10;
        else
            for (uint32_t at = 0; at < 2; at++)
                ((float *)out)[2 * i + at] = (float)ids[i] + (float)at / 2;
    return ((const struct fields_set *)self)->values_rc;
}

static int file_of(const void *self, uint32_t file, stoker_file *out)
{
    const struct fields_set *set = self;
    (void)file;
    *out = (stoker_file){ .path = set->file.path, .fd = set->file.fd, .size = sizeof(set->words) };
    return STOKER_OK;
}

static int decode_text(const void *self, void *scratch, const stoker_encoded *in,
                       const stoker_decoded *out, stoker_error *error)
{
    stoker_row *rows = out->rows;
    const struct fields_set *set = self;
    (void)scratch;
    (void)error;
    cr_assert_eq(out->field_count, 1);
    cr_assert_eq(rows[0].bytes_max, 16);
    memcpy(rows[0].data, "sample", 6);
    ((uint8_t *)rows[0].data)[6] = (uint8_t)('0' + in->sample);
    rows[0].length = set->text_length != 0 ? set->text_length : 7;
    return STOKER_OK;
}

static const stoker_dataset_ops fields_ops = { .struct_size = sizeof(stoker_dataset_ops),
                                               .name = "fields",
                                               .describe = describe,
                                               .field = field_of,
                                               .locate = locate,
                                               .values = values,
                                               .file = file_of };

static stoker_field_info field(const char *name, stoker_dtype dtype, uint32_t part)
{
    return (stoker_field_info){
        .struct_size = sizeof(stoker_field_info), .name = name, .dtype = dtype, .part = part
    };
}

static void make(struct fields_set *set)
{
    *set = (struct fields_set){ .info = { .struct_size = sizeof(stoker_dataset_info),
                                          .count = COUNT,
                                          .field_count = FIELDS,
                                          .part_count = PARTS,
                                          .file_count = 1,
                                          .encoded_bytes_max = 4 * WORDS_MAX } };
    set->text = (stoker_codec){ .struct_size = sizeof(stoker_codec),
                                .name = "text",
                                .self = set,
                                .flags = STOKER_CODEC_FIELDS,
                                .decode = decode_text };
    set->fields[0] = field("pair.a", STOKER_DTYPE_UINT8, 0);
    set->fields[0].rank = 1;
    set->fields[0].shape[0] = 2;
    set->fields[1] = field("pair.b", STOKER_DTYPE_INT16, 0);
    set->fields[2] = field("words", STOKER_DTYPE_INT32, 1);
    set->fields[2].rank = 1;
    set->fields[2].shape[0] = WORDS_MAX;
    set->fields[2].varies = true;
    set->fields[3] = field("text", STOKER_DTYPE_UINT8, 2);
    set->fields[3].kind = STOKER_FIELD_KIND_BYTES;
    set->fields[3].rank = 1;
    set->fields[3].shape[0] = 16;
    set->fields[3].varies = true;
    set->fields[4] = field("label", STOKER_DTYPE_INT64, STOKER_NO_PART);
    set->fields[4].class_count = 60;
    set->fields[5] = field("weight", STOKER_DTYPE_FLOAT32, STOKER_NO_PART);
    set->fields[5].rank = 1;
    set->fields[5].shape[0] = 2;
    for (uint32_t id = 0; id < COUNT; id++) {
        const uint16_t b = (uint16_t)(1000 + id);
        set->pairs[id][0] = (uint8_t)id;
        set->pairs[id][1] = (uint8_t)(id + 100);
        memcpy(&set->pairs[id][2], &b, 2);
    }
    for (int32_t i = 0; i < COUNT * WORDS_MAX; i++)
        set->words[i] = 7 * i;
    set->file = stk_memory_file(set->words, sizeof(set->words));
}

struct read {
    uint8_t a[2];
    int16_t b;
    int32_t words[WORDS_MAX];
    uint8_t text[16];
    int64_t label;
    float weight[2];
    stoker_row rows[FIELDS];
};

static void aim(struct read *read)
{
    memset(read, 0, sizeof(*read));
    read->rows[0] = (stoker_row){ .data = read->a, .bytes_max = sizeof(read->a) };
    read->rows[1] = (stoker_row){ .data = &read->b, .bytes_max = sizeof(read->b) };
    read->rows[2] = (stoker_row){ .data = read->words, .bytes_max = sizeof(read->words) };
    read->rows[3] = (stoker_row){ .data = read->text, .bytes_max = sizeof(read->text) };
    read->rows[4] = (stoker_row){ .data = &read->label, .bytes_max = sizeof(read->label) };
    read->rows[5] = (stoker_row){ .data = read->weight, .bytes_max = sizeof(read->weight) };
}

static void check(const struct read *read, uint64_t id)
{
    cr_assert_eq(read->a[0], id);
    cr_assert_eq(read->a[1], id + 100);
    cr_assert_eq(read->b, 1000 + (int64_t)id);
    cr_assert_eq(read->rows[2].length, id % (WORDS_MAX + 1));
    for (uint64_t i = 0; i < read->rows[2].length; i++)
        cr_assert_eq(read->words[i], 7 * (int64_t)(id * WORDS_MAX + i));
    cr_assert_eq(read->rows[3].length, 7);
    cr_assert_arr_eq(read->text, "sample", 6);
    cr_assert_eq(read->text[6], '0' + id);
    cr_assert_eq(read->label, (int64_t)id * 10);
    cr_assert_float_eq(read->weight[1], (double)id + 0.5, 0);
}

CleanTest(dataset_fields, each_field_of_a_sample_is_read)
{
    struct fields_set set;
    make(&set);
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_create(&dataset, &fields_ops, &set, NULL), STOKER_OK);
    struct read read;
    for (uint64_t id = 0; id < COUNT; id++) {
        aim(&read);
        cr_assert_eq(stoker_dataset_read(dataset, id, read.rows, NULL), STOKER_OK);
        check(&read, id);
    }
    aim(&read); /* a field without a place is left out */
    for (uint32_t i = 0; i < FIELDS; i++)
        if (i != 1)
            read.rows[i].data = NULL;
    cr_assert_eq(stoker_dataset_read(dataset, 3, read.rows, NULL), STOKER_OK);
    cr_assert_eq(read.b, 1003);
    cr_assert_eq(read.a[1], 0);
    stoker_dataset_close(&dataset);
    close(set.file.fd);
}

CleanTest(dataset_fields, the_summary_is_about_field_0_and_the_label)
{
    struct fields_set set;
    make(&set);
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_create(&dataset, &fields_ops, &set, NULL), STOKER_OK);
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    cr_assert_eq(info->dtype, STOKER_DTYPE_UINT8);
    cr_assert_eq(info->rank, 1);
    cr_assert_eq(info->shape[0], 2);
    cr_assert_eq(info->label_dtype, STOKER_DTYPE_INT64);
    cr_assert_eq(info->class_count, 60);
    cr_assert_eq(stoker_dataset_find_field(dataset, "words"), 2);
    cr_assert_eq(stoker_dataset_find_field(dataset, "word"), -1);
    cr_assert_eq(stoker_dataset_field_bytes(dataset, 2), 4 * WORDS_MAX);
    cr_assert_eq(stoker_dataset_field_bytes(dataset, FIELDS), 0);
    cr_assert_str_eq(stoker_dataset_field(dataset, 3)->name, "text");
    cr_assert_null(stoker_dataset_field(dataset, FIELDS));
    int64_t index = 0;
    uint8_t row[2];
    stoker_label label;
    cr_assert_eq(stk_read_row(dataset, 5, row, sizeof(row), &label, NULL), STOKER_OK);
    index = label.index;
    cr_assert_eq(index, 50);
    cr_assert_eq(row[1], 105);
    stoker_dataset_close(&dataset);
    close(set.file.fd);
}

CleanTest(dataset_fields, a_set_without_field_has_an_image_and_a_label)
{
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_open(&dataset, "synth:digits?count=10", NULL, NULL), STOKER_OK);
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    cr_assert_eq(info->field_count, 2);
    cr_assert_eq(info->part_count, 1);
    cr_assert_str_eq(stoker_dataset_field(dataset, 0)->name, "image");
    cr_assert_eq(stoker_dataset_field(dataset, 0)->kind, STOKER_FIELD_KIND_IMAGE);
    cr_assert_eq(stoker_dataset_field(dataset, 0)->part, 0);
    cr_assert_str_eq(stoker_dataset_field(dataset, 1)->name, "label");
    cr_assert_eq(stoker_dataset_field(dataset, 1)->part, STOKER_NO_PART);
    cr_assert_eq(stoker_dataset_field(dataset, 1)->class_count, 10);
    stoker_dataset_close(&dataset);
}

/* What is wrong with a description: the one change that makes it so. */
static void spoil(struct fields_set *set, int how)
{
    stoker_field_info *fields = set->fields;
    switch (how) {
    case 0:
        set->info.field_count = 0;
        break;
    case 1:
        set->info.field_count = STOKER_FIELDS_MAX + 1;
        break;
    case 2:
        set->info.part_count = STOKER_FIELDS_MAX + 1;
        break;
    case 3:
        set->info.part_count = 2;
        break; /* and "text" comes from part 2 */
    case 4:
        set->info.part_count = 4;
        break; /* and part 3 fills nothing */
    case 5:
        fields[0].name = "pair a";
        break;
    case 6:
        fields[0].name = "";
        break;
    case 7:
        fields[1].name = "pair.a";
        break;
    case 8:
        fields[0].kind = STOKER_FIELD_KIND_IMAGE;
        break; /* with one axis */
    case 9:
        fields[0].kind = STOKER_FIELD_KIND_BYTES;
        break; /* without varying */
    case 10:
        fields[0].shape[0] = 0;
        break;
    case 11:
        fields[4].varies = true;
        break; /* without axes */
    case 12:
        fields[5].varies = true;
        break; /* from values() */
    case 13:
        fields[4].part = 0;
        break; /* not beside the other fields of part 0 */
    case 14:
        set->info.dense = true;
        break;
    case 15:
        set->info.struct_size = 8;
        break;
    case 16:
        fields[0].kind = (stoker_field_kind)9;
        break;
    default:
        fields[0].sizes_differ = true;
        break;
    }
}

CleanTest(dataset_fields, a_description_that_contradicts_itself_is_refused)
{
    for (int how = 0; how < 18; how++) {
        struct fields_set set;
        make(&set);
        spoil(&set, how);
        stoker_dataset *dataset = NULL;
        cr_assert_eq(stoker_dataset_create(&dataset, &fields_ops, &set, NULL), STOKER_EINVAL, "%d",
                     how);
        cr_assert_null(dataset);
        close(set.file.fd);
    }
}

static int read_words(struct fields_set *set, uint64_t id, stoker_error *error)
{
    stoker_dataset *dataset = NULL;
    struct read read;
    aim(&read);
    *error = (stoker_error){ .code = 0 };
    cr_assert_eq(stoker_dataset_create(&dataset, &fields_ops, set, NULL), STOKER_OK);
    const int rc = stoker_dataset_read(dataset, id, read.rows, error);
    stoker_dataset_close(&dataset);
    return rc;
}

CleanTest(dataset_fields, a_codec_for_one_field_is_refused_by_name)
{
    struct fields_set set;
    stoker_dataset *dataset = NULL;
    stoker_part parts[PARTS];
    stoker_error error = { .code = 0 };
    make(&set);
    set.text.flags = 0;
    set.info.struct_size = set.fields[0].struct_size = 0; /* as `*out = (type){ ... }` leaves it */
    cr_assert_eq(stoker_dataset_create(&dataset, &fields_ops, &set, &error), STOKER_OK, "%s",
                 error.message);
    cr_assert_eq(stoker_dataset_locate(dataset, 3, parts, &error), STOKER_EINVAL);
    cr_assert_str_eq(error.message,
                     "sample 3: fields: part 2, field \"text\": codec text: a part of several "
                     "fields, or one that varies, needs STOKER_CODEC_FIELDS");
    stoker_dataset_close(&dataset);
    close(set.file.fd);
}

CleanTest(dataset_fields, what_a_field_cannot_hold_is_an_error)
{
    struct fields_set set;
    stoker_error error;
    make(&set);
    set.fields[2].shape[0] = 3;
    cr_assert_eq(read_words(&set, 5, &error), STOKER_ELIMIT);
    cr_assert_not_null(strstr(error.message, "\"words\""), "%s", error.message);
    cr_assert_eq(read_words(&set, 3, &error), STOKER_OK);
    set.fields[2].rank = 2;
    set.fields[2].shape[0] = set.fields[2].shape[1] = 2; /* steps of 8 bytes */
    cr_assert_eq(read_words(&set, 3, &error), STOKER_EFORMAT);
    set.text_length = 17;
    cr_assert_eq(read_words(&set, 2, &error), STOKER_EFORMAT);
    cr_assert_not_null(strstr(error.message, "length 17"), "%s", error.message);
    set.text_length = 0;
    set.values_rc = STOKER_EIO;
    cr_assert_eq(read_words(&set, 2, &error), STOKER_EIO);
    close(set.file.fd);
}

/* Two fields, one of which varies, drawn from the generator. */
static int make_rows(const void *self, uint64_t id, stoker_row *rows, stoker_rng *rng,
                     stoker_error *error)
{
    (void)self;
    (void)error;
    const uint64_t drawn = stoker_rng_u64(rng);
    memcpy(rows[0].data, &drawn, sizeof(drawn));
    memset(rows[1].data, (int)id, id);
    rows[1].length = id;
    return id == 5 ? STOKER_EIO : STOKER_OK;
}

static int describe_made(const void *self, stoker_dataset_info *out)
{
    (void)self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(*out), .count = COUNT, .field_count = 2 };
    return STOKER_OK;
}

static int field_made(const void *self, uint32_t index, stoker_field_info *out)
{
    (void)self;
    *out = field(index == 0 ? "drawn" : "text", STOKER_DTYPE_UINT8, STOKER_NO_PART);
    out->rank = 1;
    out->shape[0] = 8;
    out->varies = index == 1;
    return STOKER_OK;
}

CleanTest(dataset_fields, a_set_without_parts_makes_its_samples)
{
    static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                            .name = "made",
                                            .describe = describe_made,
                                            .field = field_made,
                                            .make = make_rows };
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_create(&dataset, &ops, NULL, NULL), STOKER_OK);
    for (uint64_t id = 0; id < 5; id++) {
        uint64_t drawn = 0;
        uint64_t again = 0;
        uint8_t text[8] = { 0 };
        stoker_row rows[2] = { { .data = &drawn, .bytes_max = 8 },
                               { .data = text, .bytes_max = 8 } };
        cr_assert_eq(stoker_dataset_read(dataset, id, rows, NULL), STOKER_OK);
        cr_assert_eq(rows[1].length, id);
        cr_assert(id == 0 || text[id - 1] == id);
        rows[0].data = &again;
        rows[1].data = NULL; /* not wanted */
        cr_assert_eq(stoker_dataset_read(dataset, id, rows, NULL), STOKER_OK);
        cr_assert_eq(again, drawn);
    }
    uint64_t drawn = 0;
    stoker_error error = { .code = 0 };
    stoker_row rows[2] = { { .data = &drawn, .bytes_max = 8 } };
    cr_assert_eq(stoker_dataset_read(dataset, 5, rows, &error), STOKER_EIO);
    cr_assert_eq(error.sample, 5);
    stoker_dataset_close(&dataset);
    stoker_dataset_ops neither = ops;
    neither.make = NULL;
    cr_assert_eq(stoker_dataset_create(&dataset, &neither, NULL, NULL), STOKER_EINVAL);
}

CleanTest(dataset_fields, create_survives_each_allocation_failure)
{
    struct fields_set set;
    stoker_dataset *dataset = NULL;
    make(&set);
    int failures = 0;
    for (uint32_t nth = 1; dataset == NULL; nth++) {
        cr_assert_lt(nth, 20);
        stk_fault_arm(STK_FAULT_ANY, nth);
        const int rc = stoker_dataset_create(&dataset, &fields_ops, &set, NULL);
        stk_fault_disarm();
        failures += rc != STOKER_OK;
        cr_assert_eq(rc, dataset == NULL ? STOKER_ENOMEM : STOKER_OK);
    }
    cr_assert_geq(failures, 4);
    stoker_dataset_close(&dataset);
    close(set.file.fd);
}
