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

/* The column of the labels; NULL = none. */
static const struct stk_csv_column *label_column(const struct stk_csv_table *table)
{
    return table->label_count == 0 ? NULL : &table->extra[0];
}

static stoker_dtype label_dtype(const struct stk_csv_table *table)
{
    const struct stk_csv_column *column = label_column(table);
    return column == NULL                 ? STOKER_DTYPE_NONE
           : column->use == STK_CSV_VALUE ? STOKER_DTYPE_FLOAT32
                                          : STOKER_DTYPE_INT64;
}

static uint32_t classes(const struct stk_csv_table *table)
{
    return label_column(table) == NULL ? 0 : label_column(table)->class_count;
}

static int describe(const void *self, stoker_dataset_info *out)
{
    const struct stk_csv_table *table = self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(stoker_dataset_info),
                                  .count = table->count,
                                  .dtype = STOKER_DTYPE_FLOAT32,
                                  .rank = 1,
                                  .shape = { table->columns },
                                  .label_dtype = label_dtype(table),
                                  .class_count = classes(table),
                                  .rows = table->rows.base,
                                  .description = table->description };
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                  stoker_error *error)
{
    (void)error;
    const struct stk_csv_table *table = self;
    const float *rows = table->rows.base;
    for (uint32_t i = 0; i < count; i++) {
        assert(ids[i] < table->count);
        out[i] = (stoker_part){
            .extent = { .memory = rows + ids[i] * table->columns,
                        .bytes = (uint32_t)(table->columns * sizeof(float)) },
        };
    }
    return STOKER_OK;
}

static int values(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out)
{
    (void)field;
    const struct stk_csv_table *table = self;
    const void *from = table->extra[0].values.base;
    const int64_t *classes = from;
    const float *targets = from;
    for (uint32_t i = 0; i < count; i++) {
        if (label_dtype(table) == STOKER_DTYPE_INT64)
            ((int64_t *)out)[i] = classes[ids[i]];
        else
            ((float *)out)[i] = targets[ids[i]];
    }
    return STOKER_OK;
}

static const char *class_name(const void *self, uint32_t index)
{
    const struct stk_csv_column *column = label_column(self);
    return column == NULL || column->use != STK_CSV_WORD ? NULL
                                                         : stk_csv_words_at(&column->words, index);
}

static void destroy(void *self)
{
    stk_csv_unload(self);
    stk_free(self);
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "csv",
                                        .describe = describe,
                                        .locate = locate,
                                        .values = values,
                                        .destroy = destroy,
                                        .class_name = class_name };

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
    if (rc == STOKER_OK && strchr(wish->label, ',') != NULL)
        rc = refuse(error, STOKER_EINVAL, "one column is the label; a comma in its name is %2C",
                    wish->label);
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
    struct stk_csv_table *table = stk_calloc(1, sizeof(*table));
    if (table == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPEN, &place, NULL);
    rc = stk_csv_load(table, opening->path, &opening->wish, options->max_bytes, error);
    if (rc != STOKER_OK) {
        stk_free(table);
        return rc;
    }
    rc = stoker_dataset_create(out, &ops, table, NULL);
    if (rc != STOKER_OK) {
        (void)stk_error_set(error, rc, STOKER_STAGE_OPEN, &place, "csv");
        destroy(table);
    }
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
