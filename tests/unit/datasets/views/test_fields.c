/* test_fields.c - views of samples with several parts and fields: every field of a sample is
 * that of the wrapped data set, and a concat says which field of its sets differs.
 *
 *   part 0, memory   "pair" 2 x uint8                part 2, drawn   "text" bytes, from the id
 *   part 1, memory   "words" up to N x int32         values()        "label" int64, "weight" float32
 */
#include "support/leaks.h"
#include "support/runs/scenario.h"

enum { COUNT_MAX = 8, FIELDS = 5, PARTS = 3, WORDS_MAX = 9 };

struct set {
    uint32_t count;
    uint8_t mark; /* differs in every set */
    uint32_t words_max;
    stoker_field_info fields[FIELDS];
    stoker_codec text;
    uint8_t pairs[COUNT_MAX][2];
    int32_t words[COUNT_MAX][WORDS_MAX];
};

static int describe(const void *self, stoker_dataset_info *out)
{
    out->count = ((const struct set *)self)->count;
    out->field_count = FIELDS;
    out->part_count = PARTS;
    return STOKER_OK;
}

static int field_of(const void *self, uint32_t field, stoker_field_info *out)
{
    *out = ((const struct set *)self)->fields[field];
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *parts,
                  stoker_error *error)
{
    const struct set *set = self;
    (void)error;
    for (uint32_t i = 0; i < count; i++) {
        stoker_part *part = &parts[i * PARTS];
        part[0] = (stoker_part){ .extent = { .memory = set->pairs[ids[i]], .bytes = 2 } };
        part[1] = (stoker_part){ .extent = { .memory = set->words[ids[i]],
                                             .bytes = 4 * (uint32_t)(ids[i] % set->words_max) } };
        part[2] = (stoker_part){ .codec = &set->text };
    }
    return STOKER_OK;
}

static int values(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out)
{
    const struct set *set = self;
    for (uint32_t i = 0; i < count; i++)
        if (field == 3)
            ((int64_t *)out)[i] = (int64_t)(ids[i] % 2);
        else
            ((float *)out)[i] = (float)(set->mark * 100 + ids[i]);
    return STOKER_OK;
}

static int draw_text(const void *self, void *scratch, const stoker_encoded *in,
                     const stoker_decoded *out, stoker_error *error)
{
    stoker_row *rows = out->rows;
    (void)scratch;
    (void)error;
    cr_assert_eq(out->field_count, 1);
    rows[0].length = 1 + in->sample;
    memset(rows[0].data, ((const struct set *)self)->mark, (size_t)rows[0].length);
    return STOKER_OK;
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "own",
                                        .describe = describe,
                                        .field = field_of,
                                        .locate = locate,
                                        .values = values };

static stoker_field_info field(const char *name, stoker_dtype dtype, uint32_t part, uint64_t length)
{
    return (stoker_field_info){ .struct_size = sizeof(stoker_field_info),
                                .name = name,
                                .dtype = dtype,
                                .rank = length > 0,
                                .shape = { length },
                                .part = part };
}

static void fill(struct set *set, uint32_t count, uint8_t mark, uint32_t words_max)
{
    *set = (struct set){ .count = count, .mark = mark, .words_max = words_max };
    set->text = (stoker_codec){ .struct_size = sizeof(stoker_codec),
                                .name = "text",
                                .self = set,
                                .flags = STOKER_CODEC_FIELDS,
                                .decode = draw_text };
    set->fields[0] = field("pair", STOKER_DTYPE_UINT8, 0, 2);
    set->fields[1] = field("words", STOKER_DTYPE_INT32, 1, words_max);
    set->fields[1].varies = true;
    set->fields[2] = field("text", STOKER_DTYPE_UINT8, 2, 16);
    set->fields[2].varies = true;
    set->fields[2].kind = STOKER_FIELD_KIND_BYTES;
    set->fields[3] = field("label", STOKER_DTYPE_INT64, STOKER_NO_PART, 0);
    set->fields[3].class_count = 2;
    set->fields[4] = field("weight", STOKER_DTYPE_FLOAT32, STOKER_NO_PART, 0);
    for (uint32_t id = 0; id < count; id++) {
        set->pairs[id][0] = mark;
        set->pairs[id][1] = (uint8_t)id;
        for (uint32_t at = 0; at < WORDS_MAX; at++)
            set->words[id][at] = (int32_t)(mark * 1000 + id * 10 + at);
    }
}

static stoker_dataset *open_set(struct set *set)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    cr_assert_eq(stoker_dataset_create(&dataset, &ops, set, &error), STOKER_OK, "%s",
                 error.message);
    return dataset;
}

/* All fields of a sample. */
struct sample {
    uint8_t bytes[FIELDS][64];
    uint64_t lengths[FIELDS];
};

static struct sample sample_of(const stoker_dataset *dataset, uint64_t id)
{
    struct sample sample;
    stoker_row rows[FIELDS];
    stoker_error error = { .message = "" };
    memset(&sample, 0, sizeof(sample));
    for (uint32_t i = 0; i < FIELDS; i++)
        rows[i] = (stoker_row){ .data = sample.bytes[i],
                                .bytes_max = stoker_dataset_field_bytes(dataset, i) };
    cr_assert_eq(stoker_dataset_read(dataset, id, rows, &error), STOKER_OK, "%s", error.message);
    for (uint32_t i = 0; i < FIELDS; i++)
        sample.lengths[i] = rows[i].length;
    return sample;
}

static void expect_sample(const stoker_dataset *view, uint64_t id, const stoker_dataset *dataset,
                          uint64_t inner_id)
{
    const struct sample found = sample_of(view, id);
    const struct sample expected = sample_of(dataset, inner_id);
    cr_assert_arr_eq(&found, &expected, sizeof(found), "sample %u", (unsigned)id);
}

CleanTest(view_fields, are_those_of_the_wrapped_sets)
{
    static const uint64_t ids[] = { 9, 0, 7 };
    struct set sets[2];
    stoker_dataset *inner[2] = { NULL };
    stoker_dataset *joined = NULL, *chosen = NULL, *twice = NULL, *side = NULL;
    fill(&sets[0], 6, 1, 5);
    fill(&sets[1], 4, 2, 9);
    for (int i = 0; i < 2; i++)
        inner[i] = open_set(&sets[i]);
    cr_assert_eq(stoker_dataset_concat(&joined, inner, 2, NULL), STOKER_OK);
    cr_assert_eq(stoker_dataset_field(joined, 1)->shape[0], 9, "the longest of both");
    cr_assert_eq(stoker_dataset_field(joined, 3)->class_count, 2);
    cr_assert_eq(stoker_dataset_find_field(joined, "text"), 2);
    for (uint64_t id = 0; id < 10; id++)
        expect_sample(joined, id, inner[id / 6], id % 6);
    cr_assert_eq(stoker_dataset_select(&chosen, joined, ids, 3, NULL), STOKER_OK);
    for (uint64_t i = 0; i < 3; i++)
        expect_sample(chosen, i, joined, ids[i]);
    cr_assert_eq(stoker_dataset_concat(&twice, (stoker_dataset *[]){ chosen, chosen }, 2, NULL),
                 STOKER_OK);
    for (uint64_t i = 0; i < 6; i++)
        expect_sample(twice, i, joined, ids[i % 3]);
    stoker_split split = stk_split_of(.test = 0.5, .stratified = true);
    cr_assert_eq(stoker_dataset_split(&side, inner[0], &split, NULL), STOKER_OK);
    for (uint64_t i = 0; i < 3; i++)
        expect_sample(side, i, inner[0], sample_of(side, i).bytes[0][1]);
    stoker_dataset_close(&side);
    stoker_dataset_close(&twice);
    stoker_dataset_close(&chosen);
    stoker_dataset_close(&joined);
    for (int i = 0; i < 2; i++)
        stoker_dataset_close(&inner[i]);
}

/* Row `row` of a batch holds the fields of its sample. */
static void expect_row(const stoker_dataset *dataset, const stoker_batch *batch, uint32_t row)
{
    const struct sample expected = sample_of(dataset, batch->ids[row]);
    for (uint32_t i = 0; i < FIELDS; i++) {
        const stoker_field *field = &batch->fields[i];
        const stoker_field_info *info = stoker_dataset_field(dataset, i);
        const size_t whole = stoker_dataset_field_bytes(dataset, i);
        const size_t entry = info->varies ? whole / (size_t)info->shape[0] : whole;
        const int64_t begin = info->varies ? field->offsets[row] : row;
        const int64_t count = info->varies ? field->offsets[row + 1] - begin : 1;
        cr_assert_str_eq(field->name, info->name);
        cr_assert(!info->varies || count == (int64_t)expected.lengths[i], "field %u", i);
        cr_assert_eq(memcmp((const uint8_t *)field->values.data + (size_t)begin * entry,
                            expected.bytes[i], (size_t)count * entry),
                     0, "field %u of sample %u", i, (unsigned)batch->ids[row]);
    }
}

/* The fields of batches: of a concat, by weight, with and without workers. */
CleanTest(view_fields, are_delivered)
{
    struct set sets[2];
    stoker_dataset *inner[2], *joined = NULL, *weighted = NULL;
    fill(&sets[0], 6, 1, 5);
    fill(&sets[1], 4, 2, 9);
    for (int i = 0; i < 2; i++)
        inner[i] = open_set(&sets[i]);
    cr_assert_eq(stoker_dataset_concat(&joined, inner, 2, NULL), STOKER_OK);
    cr_assert_eq(stoker_dataset_balance(&weighted, joined, NULL), STOKER_OK);
    for (int32_t workers = 0; workers < 4; workers++)
        for (int by_weight = 0; by_weight < 2; by_weight++) {
            const stoker_dataset *dataset = by_weight == 1 ? weighted : joined;
            stoker_loader_options options =
                stk_small_options(.batch_size = 4, .num_workers = workers);
            stoker_batch batch = STOKER_BATCH_INIT;
            stoker_error error = { .message = "" };
            stoker_loader *loader = NULL;
            uint32_t rows = 0;
            cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), STOKER_OK, "%s",
                         error.message);
            for (int rc; (rc = stoker_loader_next(loader, &batch, 20000)) != STOKER_FINISHED;) {
                if (rc == STOKER_EPOCH_END)
                    continue;
                cr_assert_eq(rc, STOKER_OK);
                for (uint32_t row = 0; row < batch.count; row++)
                    expect_row(dataset, &batch, row);
                rows += batch.count;
                stoker_batch_release(&batch);
            }
            cr_assert_eq(rows, 20);
            stoker_loader_destroy(&loader);
        }
    stoker_dataset_close(&weighted);
    stoker_dataset_close(&joined);
    for (int i = 0; i < 2; i++)
        stoker_dataset_close(&inner[i]);
}

CleanTest(view_fields, that_differ_are_named)
{
    static const struct {
        uint32_t field;
        stoker_field_info changed;
        const char *words;
    } cases[] = {
        { 0,
          { .shape = { 1 } },
          "field \"pair\": data set 1 (own) has 2 uint8, data set 2 (own) has 1 uint8" },
        { 1,
          { .dtype = STOKER_DTYPE_FLOAT32 },
          "field \"words\": data set 1 (own) has 0..5 int32, data set 2 (own) has 0..5 float32" },
        { 2,
          { .name = "caption" },
          "field 2 is \"text\" (0..16 uint8 bytes) in data set 1 (own), but \"caption\"" },
        { 4,
          { .dtype = STOKER_DTYPE_INT64 },
          "field \"weight\": data set 1 (own) has float32, data set 2 (own) has int64" },
    };
    struct set sets[2];
    fill(&sets[0], 6, 1, 5);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fill(&sets[1], 4, 2, 5);
        stoker_field_info *field = &sets[1].fields[cases[i].field];
        if (cases[i].changed.name != NULL)
            field->name = cases[i].changed.name;
        if (cases[i].changed.dtype != STOKER_DTYPE_NONE)
            field->dtype = cases[i].changed.dtype;
        if (cases[i].changed.shape[0] > 0)
            field->shape[0] = cases[i].changed.shape[0];
        stoker_dataset *inner[2] = { open_set(&sets[0]), open_set(&sets[1]) };
        stoker_dataset *joined = NULL;
        stoker_error error = { .message = "" };
        cr_assert_eq(stoker_dataset_concat(&joined, inner, 2, &error), STOKER_EMISMATCH);
        cr_assert_not_null(strstr(error.message, cases[i].words), "%s", error.message);
        for (int at = 0; at < 2; at++)
            stoker_dataset_close(&inner[at]);
    }
}
