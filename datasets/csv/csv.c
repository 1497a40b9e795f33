/* csv.c - "csv:FILE?label=medv&test=0.2&split=train&zscore=1": rows of numbers, read once.
 *
 *   spec ──▶ wish ──▶ table.c ──▶ rows and labels in memory ──▶ callbacks
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "datasets/csv/columns.h"
#include "datasets/csv/table.h"
#include "datasets/formats.h"
#include "datasets/source.h"

/* ---- callbacks ------------------------------------------------------------------ */

/* Field 0 is the row; field 1 + i is column i of table->extra. Bytes are part 1, 2, ... */
struct csv {
    struct stk_csv_table table;
    char names[STK_CSV_EXTRA_MAX][STOKER_FIELD_NAME_BYTES];
    uint32_t parts[STK_CSV_EXTRA_MAX]; /* STOKER_NO_PART unless it is bytes */
    uint32_t part_count;
};

static int describe(const void *self, stoker_dataset_info *out)
{
    const struct csv *csv = self;
    const struct stk_csv_table *table = &csv->table;
    *out = (stoker_dataset_info){ .struct_size = sizeof(*out),
                                  .count = table->count,
                                  .field_count = 1 + table->extra_count,
                                  .part_count = csv->part_count,
                                  .rows = csv->part_count == 1 ? table->rows.base : NULL,
                                  .description = table->description };
    return STOKER_OK;
}

static int describe_field(const void *self, uint32_t field, stoker_field_info *out)
{
    const struct csv *csv = self;
    *out = (stoker_field_info){ .struct_size = sizeof(*out),
                                .name = "row",
                                .dtype = STOKER_DTYPE_FLOAT32,
                                .rank = 1,
                                .shape = { csv->table.columns } };
    if (field == 0)
        return STOKER_OK;
    const struct stk_csv_column *column = &csv->table.extra[field - 1];
    out->name = csv->names[field - 1];
    out->part = csv->parts[field - 1];
    out->class_count = column->class_count;
    out->rank = 0;
    out->shape[0] = 0;
    if (column->use != STK_CSV_VALUE)
        out->dtype = STOKER_DTYPE_INT64;
    if (column->use != STK_CSV_BYTES)
        return STOKER_OK;
    out->kind = STOKER_FIELD_BYTES;
    out->dtype = STOKER_DTYPE_UINT8;
    out->rank = 1;
    out->shape[0] = column->bytes_max == 0 ? 1 : column->bytes_max;
    out->varies = true;
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *parts,
                  stoker_error *error)
{
    (void)error;
    const struct csv *csv = self;
    const struct stk_csv_table *table = &csv->table;
    const float *rows = table->rows.base;
    for (uint32_t i = 0; i < count; i++) {
        stoker_part *of = &parts[(size_t)i * csv->part_count];
        assert(ids[i] < table->count);
        of[0] = (stoker_part){ .extent = { .memory = rows + ids[i] * table->columns,
                                           .bytes = (uint32_t)(table->columns * sizeof(float)) } };
        for (uint32_t c = 0; c < table->extra_count; c++) {
            const uint64_t *ends = table->extra[c].ends.base;
            if (csv->parts[c] == STOKER_NO_PART)
                continue;
            of[csv->parts[c]] = (stoker_part){
                .extent = { .memory = (const char *)table->extra[c].values.base + ends[ids[i]],
                            .bytes = (uint32_t)(ends[ids[i] + 1] - ends[ids[i]]) }
            };
        }
    }
    return STOKER_OK;
}

static int values(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out)
{
    const struct csv *csv = self;
    const struct stk_csv_column *column = &csv->table.extra[field - 1];
    const float *targets = column->values.base;
    const int64_t *classes = column->values.base;
    assert(column->use != STK_CSV_BYTES);
    for (uint32_t i = 0; i < count; i++) {
        if (column->use == STK_CSV_VALUE)
            ((float *)out)[i] = targets[ids[i]];
        else
            ((int64_t *)out)[i] = classes[ids[i]];
    }
    return STOKER_OK;
}

static const char *field_class_name(const void *self, uint32_t field, uint32_t index)
{
    const struct csv *csv = self;
    const struct stk_csv_column *column = field == 0 ? NULL : &csv->table.extra[field - 1];
    return column != NULL && column->use == STK_CSV_WORD ? stk_csv_words_at(&column->words, index)
                                                         : NULL;
}

static void destroy(void *self)
{
    struct csv *csv = self;
    stk_csv_unload(&csv->table);
    stk_free(csv);
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "csv",
                                        .describe = describe,
                                        .field = describe_field,
                                        .locate = locate,
                                        .values = values,
                                        .destroy = destroy,
                                        .field_class_name = field_class_name };

/* ---- names of fields ------------------------------------------------------------ */

/* What a field's name cannot hold becomes '_': "sale price, EUR" is "sale_price__EUR". */
static void make_name(char name[STOKER_FIELD_NAME_BYTES], const char *column)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-.";
    size_t used = 0;
    for (; used < STOKER_FIELD_NAME_BYTES - 1 && column[used] != '\0'; used++)
        name[used] = strchr(allowed, column[used]) != NULL ? column[used] : '_';
    name[used] = '\0';
}

static bool is_taken(const struct csv *csv, uint32_t before, const char *name)
{
    for (uint32_t i = 0; i < before; i++)
        if (strcmp(csv->names[i], name) == 0)
            return true;
    return strcmp(name, "row") == 0 || name[0] == '\0';
}

/* One label is "label"; all other fields have the name of their column, or "column3" if that is taken. */
static void name_fields(struct csv *csv)
{
    const struct stk_csv_table *table = &csv->table;
    csv->part_count = 1;
    for (uint32_t i = 0; i < table->extra_count; i++) {
        const struct stk_csv_column *column = &table->extra[i];
        make_name(csv->names[i], i == 0 && table->label_count == 1 ? "label" : column->name);
        if (is_taken(csv, i, csv->names[i]))
            (void)snprintf(csv->names[i], sizeof(csv->names[i]), "column%u", column->at + 1);
        csv->parts[i] = column->use == STK_CSV_BYTES ? csv->part_count++ : STOKER_NO_PART;
    }
}

/* ---- parameters ----------------------------------------------------------------- */

struct texts {
    char header[STK_PARAMETER_BYTES_MAX];
    char delimiter[STK_PARAMETER_BYTES_MAX];
    char label_type[STK_PARAMETER_BYTES_MAX];
    char split[STK_PARAMETER_BYTES_MAX];
    char test[STK_PARAMETER_BYTES_MAX];
    char missing[STK_PARAMETER_BYTES_MAX];
};

static int refuse(stoker_error *error, int code, const char *what, const char *value)
{
    struct stk_place place = STK_NOWHERE;
    return stk_error_set(error, code, STOKER_STAGE_OPEN, &place, "csv: \"%.64s\": %s", value, what);
}

static int take_header(struct stk_csv_wish *wish, const char *value, stoker_error *error)
{
    static const char *const words[] = {
        [STK_CSV_HEADER_AUTO] = "auto", [STK_CSV_HEADER_YES] = "1", [STK_CSV_HEADER_NO] = "0"
    };
    for (int i = 0; i < 3; i++) {
        if (strcmp(value, words[i]) == 0) {
            wish->header = (enum stk_csv_header)i;
            return STOKER_OK;
        }
    }
    return refuse(error, STOKER_ESPEC, "header is 0, 1 or auto", value);
}

/* Printable, and nothing that may be part of a number. */
static int take_delimiter(struct stk_csv_wish *wish, const char *value, stoker_error *error)
{
    char decoded[STK_PARAMETER_BYTES_MAX];
    const bool tab = strcmp(value, "tab") == 0;
    int size = tab ? 1 : stk_csv_decode(value, strlen(value), decoded);
    char byte = tab ? '\t' : decoded[0];
    if (size != 1 || (byte != '\t' && (byte <= ' ' || byte > '~')) ||
        strchr("+-.\"", byte) != NULL || (byte >= '0' && byte <= '9') ||
        (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z'))
        return refuse(error, STOKER_ESPEC, "the delimiter is tab, or one character like ; (or %3B)",
                      value);
    wish->delimiter = byte;
    return STOKER_OK;
}

static int take_label_type(struct stk_csv_wish *wish, const char *value, stoker_error *error)
{
    static const char *const words[] = { [STK_CSV_LABEL_FLOAT] = "float",
                                         [STK_CSV_LABEL_INT] = "int",
                                         [STK_CSV_LABEL_WORD] = "category" };
    for (int type = STK_CSV_LABEL_FLOAT; type <= STK_CSV_LABEL_WORD; type++) {
        if (strcmp(value, words[type]) != 0)
            continue;
        if (type != STK_CSV_LABEL_INT && wish->class_count != 0)
            return refuse(error, STOKER_EINVAL, "label_type: classes are numbered with int", value);
        wish->label_type = (enum stk_csv_label_type)type;
        return STOKER_OK;
    }
    return refuse(error, STOKER_ESPEC, "label_type is float, int or category", value);
}

/* A number of the spec; `otherwise` says what is expected. */
static int take_number(double *out, const char *value, const char *otherwise, stoker_error *error)
{
    const struct stk_csv_field field = { .bytes = value, .size = strlen(value) };
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (plain == (locale_t)0)
        return refuse(error, STOKER_ENOMEM, "a number", value);
    enum stk_csv_kind kind = stk_csv_number(&field, plain, out);
    freelocale(plain);
    return kind == STK_CSV_NUMBER ? STOKER_OK : refuse(error, STOKER_ESPEC, otherwise, value);
}

static int take_missing(struct stk_csv_wish *wish, const char *value, stoker_error *error)
{
    wish->missing = strcmp(value, "error") == 0  ? STK_CSV_MISSING_ERROR
                    : strcmp(value, "mean") == 0 ? STK_CSV_MISSING_MEAN
                    : strcmp(value, "drop") == 0 ? STK_CSV_MISSING_DROP
                                                 : STK_CSV_MISSING_NUMBER;
    return wish->missing != STK_CSV_MISSING_NUMBER
               ? STOKER_OK
               : take_number(&wish->missing_number, value,
                             "missing is error, drop, mean or a number", error);
}

static int take_test(struct stk_csv_wish *wish, const char *value, stoker_error *error)
{
    const int rc = take_number(&wish->test, value, "test is a share of the rows, like 0.2", error);
    if (rc != STOKER_OK)
        return rc;
    if (wish->test < 0.0 || wish->test >= 1.0)
        return refuse(error, STOKER_EINVAL, "test is from 0 to less than 1", value);
    return STOKER_OK;
}

/* The spec's split, or the options'; both may say the same. */
static int take_split(struct stk_csv_wish *wish, const char *value,
                      const stoker_dataset_options *options, stoker_error *error)
{
    const char *asked = options->split;
    if (asked != NULL && value[0] != '\0' && strcmp(asked, value) != 0)
        return refuse(error, STOKER_EINVAL, "the spec asks for another split", asked);
    if (asked == NULL)
        asked = value;
    const bool test = strcmp(asked, "test") == 0;
    if (asked[0] != '\0' && !test && strcmp(asked, "train") != 0)
        return refuse(error, STOKER_EINVAL, "csv has the splits train and test", asked);
    if (test && wish->test == 0.0)
        return refuse(error, STOKER_EINVAL,
                      "no row is for testing unless the spec says how many: test=0.2", asked);
    if (wish->test != 0.0)
        wish->split = test ? STK_CSV_TEST : STK_CSV_TRAIN;
    return STOKER_OK;
}

static int read_parameters(struct stk_csv_wish *wish, struct texts *texts, const char *parameters,
                           const stoker_dataset_options *options, stoker_error *error)
{
    uint64_t zscore = 0;
    const struct stk_parameter table[] = {
        { .key = "label", .text = wish->label },
        { .key = "columns", .text = wish->columns },
        { .key = "categories", .text = wish->categories },
        { .key = "bytes", .text = wish->bytes },
        { .key = "header", .text = texts->header },
        { .key = "delimiter", .text = texts->delimiter },
        { .key = "label_type", .text = texts->label_type },
        { .key = "classes", .number = &wish->class_count, .least = 1, .most = 65536 },
        { .key = "split", .text = texts->split },
        { .key = "test", .text = texts->test },
        { .key = "seed", .number = &wish->seed, .least = 0, .most = UINT64_MAX },
        { .key = "missing", .text = texts->missing },
        { .key = "zscore", .number = &zscore, .least = 0, .most = 1 },
    };
    int rc = stk_parameters_read(parameters, table, sizeof(table) / sizeof(table[0]), "csv", error);
    wish->zscore = zscore == 1;
    wish->delimiter = ',';
    wish->label_type = wish->class_count != 0 ? STK_CSV_LABEL_INT : STK_CSV_LABEL_AUTO;
    if (rc == STOKER_OK && texts->header[0] != '\0')
        rc = take_header(wish, texts->header, error);
    if (rc == STOKER_OK && texts->delimiter[0] != '\0')
        rc = take_delimiter(wish, texts->delimiter, error);
    if (rc == STOKER_OK && texts->label_type[0] != '\0')
        rc = take_label_type(wish, texts->label_type, error);
    if (rc == STOKER_OK && texts->missing[0] != '\0')
        rc = take_missing(wish, texts->missing, error);
    if (rc == STOKER_OK && texts->test[0] != '\0')
        rc = take_test(wish, texts->test, error);
    if (rc == STOKER_OK)
        rc = take_split(wish, texts->split, options, error);
    if (rc == STOKER_OK && wish->label[0] == '\0' &&
        (wish->class_count != 0 || wish->label_type != STK_CSV_LABEL_AUTO))
        rc = refuse(error, STOKER_EINVAL, "say which column: label=NAME", parameters);
    return rc;
}

/* ---- open ----------------------------------------------------------------------- */

/* What is needed while opening only. */
struct opening {
    struct stk_csv_wish wish;
    struct texts texts;
    char path[];
};

static int open_table(stoker_dataset **out, struct opening *opening, const char *parameters,
                      const stoker_dataset_options *options, stoker_error *error)
{
    struct stk_place place = STK_NOWHERE;
    if (opening->path[0] == '\0')
        return stk_error_set(error, STOKER_ESPEC, STOKER_STAGE_OPEN, &place,
                             "the file name is empty; write csv:FILE?label=COLUMN");
    int rc = read_parameters(&opening->wish, &opening->texts, parameters, options, error);
    if (rc != STOKER_OK)
        return rc;
    struct csv *csv = stk_calloc(1, sizeof(*csv));
    if (csv == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPEN, &place, NULL);
    rc = stk_csv_load(&csv->table, opening->path, &opening->wish, options->max_bytes, error);
    if (rc != STOKER_OK) {
        stk_free(csv);
        return rc;
    }
    name_fields(csv);
    rc = stoker_dataset_create(out, &ops, csv, error);
    if (rc != STOKER_OK)
        destroy(csv);
    return rc;
}

static int open_csv(stoker_dataset **out, const char *rest, const stoker_dataset_options *options,
                    stoker_error *error)
{
    const struct stk_spec spec = stk_spec_split(rest, '?');
    struct opening *opening = stk_calloc(1, sizeof(*opening) + spec.name_bytes + 1);
    struct stk_place place = STK_NOWHERE;
    if (opening == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPEN, &place, "the spec");
    memcpy(opening->path, rest, spec.name_bytes);
    int rc = open_table(out, opening, spec.after == NULL ? "" : spec.after, options, error);
    stk_free(opening);
    return rc;
}

/* A regular file whose name ends like one. */
static bool recognise_csv(const char *path)
{
    struct stat status;
    const char *dot = strrchr(path, '.');
    return dot != NULL && strcmp(dot, ".csv") == 0 && stat(path, &status) == 0 &&
           S_ISREG(status.st_mode);
}

/* The table needs to know its training rows: for zscore. */
static bool keeps_csv(const char *rest, const char *key)
{
    (void)rest;
    return strcmp(key, "split") == 0 || strcmp(key, "test") == 0 || strcmp(key, "seed") == 0;
}

const struct stk_format stk_format_csv = {
    .name = "csv", .open = open_csv, .recognise = recognise_csv, .keeps = keeps_csv
};
