/* table.c - see table.h.
 *
 *   survey   check that all records have as many fields as the first; find header, columns, rows
 *   load     check every number of every row; keep the rows of the split; compute mean and
 *            deviation of the training rows
 *   zscore   normalise the rows kept
 *
 * The test rows are drawn from (seed, row number) by Knuth's algorithm S: exactly the number asked
 * for, each such set equally likely.
 */
#include "datasets/csv/table.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "datasets/csv/columns.h"
#include "datasets/gzip.h"
#include "datasets/source.h"
#include "loader/base/rng.h"

enum { CLASSES_MAX = 65536 };
static const double LABEL_MAX = 9007199254740992.0; /* 2^53: whole numbers are exact up to it */
static const uint64_t SPLIT_KEY = 0x6373762D73706C74U;

struct load {
    const struct stk_csv_wish *wish;
    struct stk_csv_text text;
    struct stk_csv_layout layout;
    struct stk_csv_field *names;  /* [columns], used if there is a header */
    struct stk_csv_field *fields; /* [columns], the current record */
    uint32_t *features;           /* [feature_count] */
    uint32_t feature_count;
    uint32_t label;
    uint64_t row_count;  /* in the file */
    uint64_t test_count; /* rows for testing */
    double *mean;        /* [feature_count], running */
    double *squares;     /* [feature_count], sums of squared deviations, running */
    uint64_t train_seen;
    int64_t largest_label;
    bool negative_label;
    uint64_t max_bytes;
    struct stk_csv_table table;
};

static int no_memory(const struct load *load, const char *what)
{
    return stk_csv_fail(&load->text, STOKER_ENOMEM, NULL, 0, "%s", what);
}

/* ---- survey --------------------------------------------------------------------- */

/* Returns true for a header: no field is a number. */
static bool looks_like_header(const struct load *load, const struct stk_csv_field *fields)
{
    bool words = false;
    for (uint32_t column = 0; column < load->layout.count; column++) {
        double value;
        enum stk_csv_kind kind = stk_csv_number(&fields[column], load->layout.plain, &value);
        if (kind != STK_CSV_TEXT && kind != STK_CSV_MISSING)
            return false;
        words = words || kind == STK_CSV_TEXT;
    }
    return words;
}

/* The next record into load->fields, as long as the first one. */
static int next_record(struct load *load, struct stk_csv_reader *reader)
{
    uint32_t count = 0;
    int rc = stk_csv_next(reader, load->fields, load->layout.count, &count);
    if (rc == STOKER_OK && count != load->layout.count)
        rc = stk_csv_fail(&load->text, STOKER_EFORMAT, load->fields, 0,
                          "%u fields, but the first record has %u", count, load->layout.count);
    return rc;
}

/* Stand before the first row: after the header, if there is one. */
static int begin_rows(struct load *load, struct stk_csv_reader *reader)
{
    uint32_t count;
    int rc = stk_csv_begin(reader, &load->text);
    if (rc == STOKER_OK && load->layout.names != NULL)
        rc = stk_csv_next(reader, load->names, load->layout.count, &count);
    return rc;
}

static int measure_first_record(struct load *load)
{
    struct stk_csv_reader reader;
    struct stk_csv_field first;
    int rc = stk_csv_begin(&reader, &load->text);
    if (rc == STOKER_OK)
        rc = stk_csv_next(&reader, &first, 1, &load->layout.count);
    if (rc == STOKER_FINISHED)
        return stk_csv_fail(&load->text, STOKER_EEMPTY, NULL, 0, "no line has anything on it");
    if (rc == STOKER_OK && load->layout.count > STK_CSV_COLUMNS_MAX)
        rc = stk_csv_fail(&load->text, STOKER_ELIMIT, &first, 0, "%u columns, at most %d are read",
                          load->layout.count, STK_CSV_COLUMNS_MAX);
    if (rc != STOKER_OK)
        return rc;
    const size_t columns = load->layout.count;
    load->names = stk_calloc(columns, sizeof(load->names[0]));
    load->fields = stk_calloc(columns, sizeof(load->fields[0]));
    load->features = stk_calloc(columns, sizeof(load->features[0]));
    load->mean = stk_calloc(columns, sizeof(load->mean[0]));
    load->squares = stk_calloc(columns, sizeof(load->squares[0]));
    if (load->names == NULL || load->fields == NULL || load->features == NULL ||
        load->mean == NULL || load->squares == NULL)
        return no_memory(load, "a record");
    return STOKER_OK;
}

/* The header, if there is one, and the columns, which the first row helps to choose. */
static int choose_columns(struct load *load)
{
    struct stk_csv_reader reader;
    uint32_t count;
    int rc = stk_csv_begin(&reader, &load->text);
    if (rc == STOKER_OK)
        rc = stk_csv_next(&reader, load->names, load->layout.count, &count);
    if (rc != STOKER_OK)
        return rc;
    const enum stk_csv_header header = load->wish->header;
    if (header == STK_CSV_HEADER_YES ||
        (header == STK_CSV_HEADER_AUTO && looks_like_header(load, load->names)))
        load->layout.names = load->names;
    rc = begin_rows(load, &reader);
    if (rc == STOKER_OK)
        rc = next_record(load, &reader);
    if (rc == STOKER_FINISHED)
        return stk_csv_fail(&load->text, STOKER_EEMPTY, NULL, 0, "a header, and no row%s",
                            header == STK_CSV_HEADER_AUTO ? "; if that line is a row, say header=0"
                                                          : "");
    if (rc != STOKER_OK)
        return rc;
    load->layout.first = load->fields;
    return stk_csv_choose(&load->layout, load->wish->label, load->wish->columns, &load->label,
                          load->features, &load->feature_count);
}

static int count_rows(struct load *load)
{
    struct stk_csv_reader reader;
    int rc = begin_rows(load, &reader);
    while (rc == STOKER_OK && (rc = next_record(load, &reader)) == STOKER_OK)
        load->row_count++;
    if (rc != STOKER_FINISHED)
        return rc;
    if (load->row_count > UINT32_MAX)
        return stk_csv_fail(&load->text, STOKER_ELIMIT, NULL, 0, "more than 2^32 - 1 rows");
    if (load->wish->test == 0.0)
        return STOKER_OK;
    if (load->row_count < 2)
        return stk_csv_fail(&load->text, STOKER_EEMPTY, NULL, 0,
                            "one row cannot be split into training and test");
    load->test_count = (uint64_t)llround((double)load->row_count * load->wish->test);
    if (load->test_count == 0)
        load->test_count = 1;
    if (load->test_count == load->row_count)
        load->test_count--;
    return STOKER_OK;
}

/* ---- numbers -------------------------------------------------------------------- */

static int complain(const struct load *load, uint32_t column, enum stk_csv_kind kind)
{
    static const char *const what[] = {
        [STK_CSV_MISSING] = "a missing value",
        [STK_CSV_NOT_FINITE] = "no finite number",
        [STK_CSV_OVERLONG] = "a number of more than 64 characters",
        [STK_CSV_TOO_LARGE] = "too large for float32",
        [STK_CSV_TEXT] = "no number",
    };
    char quoted[STK_CSV_QUOTED_BYTES];
    char name[STK_CSV_QUOTED_BYTES] = "";
    const struct stk_csv_field *field = &load->fields[column];
    if (load->layout.names != NULL)
        (void)stk_csv_quote(&load->layout.names[column], name);
    return stk_csv_fail(&load->text, STOKER_EFORMAT, field, column + 1, "%s%s\"%s\" is %s", name,
                        name[0] == '\0' ? "" : ": ", stk_csv_quote(field, quoted), what[kind]);
}

static int take_number(const struct load *load, uint32_t column, double *out)
{
    enum stk_csv_kind kind = stk_csv_number(&load->fields[column], load->layout.plain, out);
    return kind == STK_CSV_NUMBER ? STOKER_OK : complain(load, column, kind);
}

static int take_class(struct load *load, double value, int64_t *out)
{
    const struct stk_csv_field *field = &load->fields[load->label];
    char quoted[STK_CSV_QUOTED_BYTES];
    if (value != floor(value) || fabs(value) > LABEL_MAX)
        return stk_csv_fail(&load->text, STOKER_EFORMAT, field, load->label + 1,
                            "label \"%s\" is not a whole number below 2^53",
                            stk_csv_quote(field, quoted));
    *out = (int64_t)value;
    const uint64_t classes = load->wish->class_count;
    if (classes != 0 && (*out < 0 || (uint64_t)*out >= classes))
        return stk_csv_fail(&load->text, STOKER_EFORMAT, field, load->label + 1,
                            "label \"%s\" out of range (0..%llu)", stk_csv_quote(field, quoted),
                            (unsigned long long)classes - 1);
    load->negative_label = load->negative_label || *out < 0;
    if (*out > load->largest_label)
        load->largest_label = *out;
    return STOKER_OK;
}

/* Check the label of the current record; store it as label `slot` unless slot is UINT64_MAX. */
static int take_label(struct load *load, uint64_t slot)
{
    double value;
    int64_t class_index = 0;
    int rc = take_number(load, load->label, &value);
    if (rc == STOKER_OK && load->wish->label_is_class)
        rc = take_class(load, value, &class_index);
    if (rc != STOKER_OK || slot == UINT64_MAX)
        return rc;
    if (load->wish->label_is_class)
        ((int64_t *)load->table.labels.base)[slot] = class_index;
    else
        ((float *)load->table.labels.base)[slot] = (float)value;
    return STOKER_OK;
}

/* ---- load ----------------------------------------------------------------------- */

/* Returns true if the row is for testing: `wanted` of the `left` remaining rows are. */
static bool draw_test(const struct load *load, uint64_t row, uint64_t left, uint64_t wanted)
{
    uint64_t key = load->wish->seed ^ SPLIT_KEY;
    uint64_t word = stk_philox(key, 0, row).word[0];
    return ((word * left) >> 32) < wanted; /* left < 2^32 */
}

/* Welford's running mean and sum of squared deviations. */
static void learn(struct load *load, uint32_t feature, double value)
{
    double away = value - load->mean[feature];
    load->mean[feature] += away / (double)load->train_seen;
    load->squares[feature] += away * (value - load->mean[feature]);
}

/* Check all numbers of the current record; store them as row `slot` unless it is UINT64_MAX. */
static int take_row(struct load *load, bool is_test, uint64_t slot)
{
    load->train_seen += is_test ? 0 : 1;
    float *row = slot == UINT64_MAX
                     ? NULL
                     : (float *)load->table.rows.base + (size_t)slot * load->feature_count;
    for (uint32_t i = 0; i < load->feature_count; i++) {
        double value;
        int rc = take_number(load, load->features[i], &value);
        if (rc != STOKER_OK)
            return rc;
        if (!is_test)
            learn(load, i, value);
        if (row != NULL)
            row[i] = (float)value;
    }
    return load->label == STK_CSV_NO_COLUMN ? STOKER_OK : take_label(load, slot);
}

static int map_table(struct load *load)
{
    struct stk_csv_table *table = &load->table;
    table->columns = load->feature_count;
    table->count =
        load->wish->split == STK_CSV_TEST ? load->test_count : load->row_count - load->test_count;
    if (load->label != STK_CSV_NO_COLUMN)
        table->label_dtype = load->wish->label_is_class ? STOKER_DTYPE_INT64 : STOKER_DTYPE_FLOAT32;
    /* Both counts are below 2^32, so that nothing here overflows. */
    const uint64_t row_bytes = table->count * load->feature_count * sizeof(float);
    const uint64_t label_bytes = table->count * stoker_dtype_bytes(table->label_dtype);
    if (row_bytes + label_bytes > load->max_bytes)
        return stk_csv_fail(&load->text, STOKER_ELIMIT, NULL, 0,
                            "rows and labels take %llu bytes, at most %llu are allowed",
                            (unsigned long long)row_bytes + label_bytes,
                            (unsigned long long)load->max_bytes);
    if (stk_region_map(&table->rows, row_bytes) != STOKER_OK ||
        (label_bytes > 0 && stk_region_map(&table->labels, label_bytes) != STOKER_OK))
        return no_memory(load, "the rows");
    return STOKER_OK;
}

static int take_rows(struct load *load)
{
    struct stk_csv_reader reader;
    uint64_t wanted = load->test_count;
    uint64_t kept = 0;
    int rc = begin_rows(load, &reader);
    for (uint64_t row = 0; rc == STOKER_OK && row < load->row_count; row++) {
        const bool is_test = draw_test(load, row, load->row_count - row, wanted);
        const bool keep = is_test == (load->wish->split == STK_CSV_TEST);
        wanted -= is_test ? 1 : 0;
        rc = next_record(load, &reader);
        if (rc == STOKER_OK)
            rc = take_row(load, is_test, keep ? kept : UINT64_MAX);
        kept += keep ? 1 : 0;
    }
    assert(rc != STOKER_OK || kept == load->table.count);
    return rc;
}

/* A column that never changes becomes 0. */
static void standardise(struct load *load)
{
    float *row = load->table.rows.base;
    for (uint32_t i = 0; i < load->feature_count; i++)
        load->squares[i] = sqrt(load->squares[i] / (double)load->train_seen);
    for (uint64_t r = 0; r < load->table.count; r++, row += load->feature_count)
        for (uint32_t i = 0; i < load->feature_count; i++) {
            double away = (double)row[i] - load->mean[i];
            row[i] = (float)(load->squares[i] > 0.0 ? away / load->squares[i] : away);
        }
}

static int load_table(struct load *load)
{
    int rc = measure_first_record(load);
    if (rc == STOKER_OK)
        rc = choose_columns(load);
    if (rc == STOKER_OK)
        rc = count_rows(load);
    if (rc == STOKER_OK)
        rc = map_table(load);
    if (rc == STOKER_OK)
        rc = take_rows(load);
    if (rc != STOKER_OK)
        return rc;
    if (load->wish->zscore)
        standardise(load);
    if (load->wish->class_count != 0)
        load->table.class_count = (uint32_t)load->wish->class_count;
    else if (load->wish->label_is_class && !load->negative_label &&
             load->largest_label < CLASSES_MAX)
        load->table.class_count = (uint32_t)load->largest_label + 1;
    return STOKER_OK;
}

/* ---- file ----------------------------------------------------------------------- */

static int read_plain(const struct stk_source *source, uint64_t max_bytes,
                      struct stk_region *contents, stoker_error *error)
{
    struct stk_place place = stk_at(source->path, STOKER_NO_OFFSET);
    if (source->size > max_bytes)
        return stk_error_set(error, STOKER_ELIMIT, STOKER_STAGE_OPEN, &place,
                             "%llu bytes, at most %llu are allowed",
                             (unsigned long long)source->size, (unsigned long long)max_bytes);
    if (stk_region_map(contents, (size_t)source->size) != STOKER_OK)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPEN, &place, "%llu bytes",
                             (unsigned long long)source->size);
    return stk_source_read(source, contents->base, (size_t)source->size, 0, error);
}

static int read_contents(const char *path, uint64_t max_bytes, struct stk_region *contents,
                         size_t *size, stoker_error *error)
{
    struct stk_source source;
    uint8_t begin[2] = { 0 };
    int rc = stk_source_open(&source, path, error);
    if (rc != STOKER_OK)
        return rc;
    *size = (size_t)source.size;
    struct stk_place place = stk_at(path, STOKER_NO_OFFSET);
    if (source.size == 0)
        rc = stk_error_set(error, STOKER_EEMPTY, STOKER_STAGE_OPEN, &place, "an empty file");
    if (rc == STOKER_OK && source.size >= sizeof(begin))
        rc = stk_source_read(&source, begin, sizeof(begin), 0, error);
    if (rc == STOKER_OK && stk_gzip_magic(begin, sizeof(begin)))
        rc = stk_gzip_unpack(&source, max_bytes, contents, size, error);
    else if (rc == STOKER_OK)
        rc = read_plain(&source, max_bytes, contents, error);
    stk_source_close(&source);
    return rc;
}

int stk_csv_load(struct stk_csv_table *out, const char *path, const struct stk_csv_wish *wish,
                 uint64_t max_bytes, stoker_error *error)
{
    struct stk_region contents = { 0 };
    struct load load = { .wish = wish, .max_bytes = max_bytes, .largest_label = 0 };
    size_t size = 0;
    int rc = read_contents(path, max_bytes, &contents, &size, error);
    load.text = (struct stk_csv_text){ path, contents.base, size, wish->delimiter, error };
    load.layout = (struct stk_csv_layout){ .text = &load.text };
    if (rc == STOKER_OK) {
        load.layout.plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
        rc = load.layout.plain == (locale_t)0 ? no_memory(&load, "the locale") : load_table(&load);
    }
    if (load.layout.plain != (locale_t)0)
        freelocale(load.layout.plain);
    stk_free(load.names);
    stk_free(load.fields);
    stk_free(load.features);
    stk_free(load.mean);
    stk_free(load.squares);
    stk_region_unmap(&contents);
    if (rc == STOKER_OK)
        *out = load.table;
    else
        stk_csv_unload(&load.table);
    return rc;
}

void stk_csv_unload(struct stk_csv_table *table)
{
    stk_region_unmap(&table->rows);
    stk_region_unmap(&table->labels);
}
