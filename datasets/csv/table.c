/* table.c - see table.h.
 *
 *   survey   check that all records have as many fields as the first; find header, columns, rows and
 *            words
 *   load     check every number of every row; keep the rows of the split; compute mean and
 *            deviation of the training rows
 *   fill     missing values by the mean
 *   zscore   normalise the rows kept
 *
 * The test rows are drawn from (seed, row number) by Knuth's algorithm S: exactly the number asked
 * for, each such set equally likely.
 */
#include "datasets/csv/table.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "datasets/csv/describe.h"
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
    struct stk_csv_choice choice;
    uint64_t row_count;     /* in the file, without those dropped */
    uint64_t dropped_count; /* rows with a missing value */
    uint64_t filled_count;  /* missing values that were filled in */
    uint64_t test_count;    /* rows for testing */
    double *mean;           /* [feature_count], running */
    double *squares;        /* [feature_count], sums of squared deviations, running */
    uint64_t *seen;         /* [feature_count], training rows with a value */
    uint64_t train_seen;
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

/* A field without a value. Of a column of words only an empty one is; text may be anything. */
static bool is_missing(const struct load *load, uint32_t column)
{
    const struct stk_csv_field *field = &load->fields[column];
    double value;
    switch ((enum stk_csv_use)load->choice.use[column]) {
    case STK_CSV_UNUSED:
    case STK_CSV_BYTES:
        return false;
    case STK_CSV_WORD:
        return field->size == 0;
    default:
        return stk_csv_is_missing(field, stk_csv_number(field, load->layout.plain, &value));
    }
}

static bool is_dropped(const struct load *load)
{
    if (load->wish->missing != STK_CSV_MISSING_DROP)
        return false;
    for (uint32_t column = 0; column < load->layout.count; column++) {
        if (is_missing(load, column))
            return true;
    }
    return false;
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

/* The next record that is not dropped. */
static int next_row(struct load *load, struct stk_csv_reader *reader)
{
    int rc = next_record(load, reader);
    while (rc == STOKER_OK && is_dropped(load))
        rc = next_record(load, reader);
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
    load->choice.use = stk_calloc(columns, sizeof(load->choice.use[0]));
    load->choice.features = stk_calloc(columns, sizeof(load->choice.features[0]));
    load->mean = stk_calloc(columns, sizeof(load->mean[0]));
    load->squares = stk_calloc(columns, sizeof(load->squares[0]));
    load->seen = stk_calloc(columns, sizeof(load->seen[0]));
    const bool taken = load->names != NULL && load->fields != NULL && load->choice.use != NULL &&
                       load->choice.features != NULL && load->mean != NULL &&
                       load->squares != NULL && load->seen != NULL;
    return taken ? STOKER_OK : no_memory(load, "a record");
}

/* The columns beside the rows, each with its name. */
static int make_extra(struct load *load)
{
    struct stk_csv_table *table = &load->table;
    table->columns = load->choice.feature_count;
    table->label_count = load->choice.label_count;
    if (load->choice.extra_count == 0)
        return STOKER_OK;
    table->extra = stk_calloc(load->choice.extra_count, sizeof(*table->extra));
    if (table->extra == NULL)
        return no_memory(load, "the columns");
    table->extra_count = load->choice.extra_count;
    for (uint32_t i = 0; i < table->extra_count; i++) {
        struct stk_csv_column *column = &table->extra[i];
        column->at = load->choice.extra[i];
        column->use = (enum stk_csv_use)load->choice.use[column->at];
        if (load->layout.names != NULL)
            (void)stk_csv_quote(&load->layout.names[column->at], column->name);
        else
            (void)snprintf(column->name, sizeof(column->name), "column%u", column->at + 1);
    }
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
    const struct stk_csv_wish *wish = load->wish;
    if (wish->header == STK_CSV_HEADER_YES ||
        (wish->header == STK_CSV_HEADER_AUTO && looks_like_header(load, load->names)))
        load->layout.names = load->names;
    rc = begin_rows(load, &reader);
    if (rc == STOKER_OK)
        rc = next_record(load, &reader);
    if (rc == STOKER_FINISHED)
        return stk_csv_fail(
            &load->text, STOKER_EEMPTY, NULL, 0, "a header, and no row%s",
            wish->header == STK_CSV_HEADER_AUTO ? "; if that line is a row, say header=0" : "");
    if (rc != STOKER_OK)
        return rc;
    load->layout.first = load->fields;
    const struct stk_csv_lists lists = { .labels = wish->label,
                                         .features = wish->columns,
                                         .words = wish->categories,
                                         .bytes = wish->bytes,
                                         .label_type = wish->label_type };
    rc = stk_csv_choose(&load->layout, &lists, &load->choice);
    return rc == STOKER_OK ? make_extra(load) : rc;
}

/* Words and lengths of a row that is kept, of either split: both have the same numbers for words. */
static int survey_row(struct load *load)
{
    for (uint32_t i = 0; i < load->table.extra_count; i++) {
        struct stk_csv_column *column = &load->table.extra[i];
        const struct stk_csv_field *field = &load->fields[column->at];
        if (column->use == STK_CSV_BYTES) {
            column->bytes_sum += field->size;
            column->bytes_max = field->size > column->bytes_max ? field->size : column->bytes_max;
        }
        if (column->use != STK_CSV_WORD)
            continue;
        const int rc = stk_csv_words_add(&column->words, field);
        if (rc == STOKER_ELIMIT)
            return stk_csv_fail(&load->text, rc, field, column->at + 1,
                                "%s: more than %d different words; bytes= reads them as text",
                                column->name, STK_CSV_WORDS_MAX);
        if (rc != STOKER_OK)
            return no_memory(load, "the words");
    }
    return STOKER_OK;
}

static int sort_words(struct load *load)
{
    for (uint32_t i = 0; i < load->table.extra_count; i++) {
        struct stk_csv_column *column = &load->table.extra[i];
        if (column->use != STK_CSV_WORD)
            continue;
        if (stk_csv_words_sort(&column->words) != STOKER_OK)
            return no_memory(load, "the words");
        column->class_count = column->words.count;
    }
    return STOKER_OK;
}

static int count_rows(struct load *load)
{
    struct stk_csv_reader reader;
    int rc = begin_rows(load, &reader);
    while (rc == STOKER_OK && (rc = next_record(load, &reader)) == STOKER_OK) {
        if (is_dropped(load)) {
            load->dropped_count++;
            continue;
        }
        load->row_count++;
        rc = survey_row(load);
    }
    if (rc != STOKER_FINISHED)
        return rc;
    if (load->row_count == 0)
        return stk_csv_fail(&load->text, STOKER_EEMPTY, NULL, 0,
                            "every row has a missing value, and missing=drop leaves it out");
    if (load->row_count > UINT32_MAX)
        return stk_csv_fail(&load->text, STOKER_ELIMIT, NULL, 0, "more than 2^32 - 1 rows");
    if (load->wish->test == 0.0)
        return sort_words(load);
    if (load->row_count < 2)
        return stk_csv_fail(&load->text, STOKER_EEMPTY, NULL, 0,
                            "one row cannot be split into training and test");
    load->test_count = (uint64_t)llround((double)load->row_count * load->wish->test);
    if (load->test_count == 0)
        load->test_count = 1;
    if (load->test_count == load->row_count)
        load->test_count--;
    return sort_words(load);
}

/* ---- numbers -------------------------------------------------------------------- */

/* What the spec may say about such a field. */
static const char *remedy(const struct load *load, uint32_t column, enum stk_csv_kind kind)
{
    const bool feature = load->choice.use[column] == STK_CSV_FEATURE;
    if (stk_csv_is_missing(&load->fields[column], kind))
        return feature
                   ? "; missing=mean or missing=NUMBER fills it in, missing=drop leaves out the row"
                   : "; missing=drop leaves out the row";
    if (kind != STK_CSV_TEXT)
        return "";
    return feature ? "; categories=COLUMN or bytes=COLUMN reads words"
                   : "; label_type=category reads words";
}

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
    return stk_csv_fail(&load->text, STOKER_EFORMAT, field, column + 1, "%s%s\"%s\" is %s%s", name,
                        name[0] == '\0' ? "" : ": ", stk_csv_quote(field, quoted), what[kind],
                        remedy(load, column, kind));
}

static int take_number(const struct load *load, uint32_t column, double *out)
{
    enum stk_csv_kind kind = stk_csv_number(&load->fields[column], load->layout.plain, out);
    return kind == STK_CSV_NUMBER ? STOKER_OK : complain(load, column, kind);
}

/* A feature; NaN if it is missing and gets the mean later. */
static int take_feature(struct load *load, uint32_t column, double *out)
{
    const struct stk_csv_field *field = &load->fields[column];
    const enum stk_csv_kind kind = stk_csv_number(field, load->layout.plain, out);
    if (kind == STK_CSV_NUMBER)
        return STOKER_OK;
    const enum stk_csv_missing policy = load->wish->missing;
    if (!stk_csv_is_missing(field, kind) ||
        (policy != STK_CSV_MISSING_NUMBER && policy != STK_CSV_MISSING_MEAN))
        return complain(load, column, kind);
    *out = policy == STK_CSV_MISSING_MEAN ? (double)NAN : load->wish->missing_number;
    load->filled_count++;
    return STOKER_OK;
}

/* ---- columns beside the rows ---------------------------------------------------- */

static int take_class(struct load *load, struct stk_csv_column *column, double value, int64_t *out)
{
    const struct stk_csv_field *field = &load->fields[column->at];
    char quoted[STK_CSV_QUOTED_BYTES];
    if (value != floor(value) || fabs(value) > LABEL_MAX)
        return stk_csv_fail(&load->text, STOKER_EFORMAT, field, column->at + 1,
                            "label \"%s\" is not a whole number below 2^53",
                            stk_csv_quote(field, quoted));
    *out = (int64_t)value;
    const uint64_t classes = load->wish->class_count;
    if (classes != 0 && (*out < 0 || (uint64_t)*out >= classes))
        return stk_csv_fail(&load->text, STOKER_EFORMAT, field, column->at + 1,
                            "label \"%s\" out of range (0..%llu)", stk_csv_quote(field, quoted),
                            (unsigned long long)classes - 1);
    column->negative = column->negative || *out < 0;
    column->largest = *out > column->largest ? *out : column->largest;
    return STOKER_OK;
}

static int take_word(struct load *load, struct stk_csv_column *column, int64_t *out)
{
    const struct stk_csv_field *field = &load->fields[column->at];
    if (field->size == 0)
        return stk_csv_fail(&load->text, STOKER_EFORMAT, field, column->at + 1,
                            "%s: an empty word; missing=drop leaves out the row", column->name);
    *out = stk_csv_words_find(&column->words, field);
    return STOKER_OK;
}

/* Texts lie one after the other, so they are stored in the order of the slots. */
static void store_bytes(const struct load *load, struct stk_csv_column *column, uint64_t slot)
{
    uint64_t *ends = column->ends.base;
    char *at = (char *)column->values.base + ends[slot];
    ends[slot + 1] = ends[slot] + stk_csv_text_of(&load->fields[column->at], at);
}

/* Check a column of the current record; store it as `slot` unless that is UINT64_MAX. */
static int take_extra(struct load *load, struct stk_csv_column *column, uint64_t slot)
{
    double value = 0.0;
    int64_t index = 0;
    int rc = STOKER_OK;
    if (column->use == STK_CSV_VALUE || column->use == STK_CSV_CLASS)
        rc = take_number(load, column->at, &value);
    if (rc == STOKER_OK && column->use == STK_CSV_CLASS)
        rc = take_class(load, column, value, &index);
    else if (column->use == STK_CSV_WORD)
        rc = take_word(load, column, &index);
    if (rc != STOKER_OK || slot == UINT64_MAX)
        return rc;
    if (column->use == STK_CSV_BYTES)
        store_bytes(load, column, slot);
    else if (column->use == STK_CSV_VALUE)
        ((float *)column->values.base)[slot] = (float)value;
    else
        ((int64_t *)column->values.base)[slot] = index;
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
    load->seen[feature]++;
    double away = value - load->mean[feature];
    load->mean[feature] += away / (double)load->seen[feature];
    load->squares[feature] += away * (value - load->mean[feature]);
}

/* Check everything in the current record; store it as row `slot` unless that is UINT64_MAX. */
static int take_row(struct load *load, bool is_test, uint64_t slot)
{
    const uint32_t features = load->choice.feature_count;
    float *row =
        slot == UINT64_MAX ? NULL : (float *)load->table.rows.base + (size_t)slot * features;
    load->train_seen += is_test ? 0 : 1;
    for (uint32_t i = 0; i < features; i++) {
        double value;
        int rc = take_feature(load, load->choice.features[i], &value);
        if (rc != STOKER_OK)
            return rc;
        if (!is_test && !isnan(value))
            learn(load, i, value);
        if (row != NULL)
            row[i] = (float)value;
    }
    int rc = STOKER_OK;
    for (uint32_t i = 0; rc == STOKER_OK && i < load->table.extra_count; i++)
        rc = take_extra(load, &load->table.extra[i], slot);
    return rc;
}

/* Bytes of a column in memory; its texts are those of all rows, of which a split has some. */
static uint64_t column_bytes(const struct stk_csv_column *column, uint64_t count)
{
    if (column->use == STK_CSV_BYTES)
        return (column->bytes_sum == 0 ? 1 : column->bytes_sum) + (count + 1) * sizeof(uint64_t);
    return count * (column->use == STK_CSV_VALUE ? sizeof(float) : sizeof(int64_t));
}

static bool map_column(struct stk_csv_column *column, uint64_t count)
{
    const uint64_t bytes = column_bytes(column, count);
    if (column->use != STK_CSV_BYTES)
        return stk_region_map(&column->values, (size_t)bytes) == STOKER_OK;
    const uint64_t ends_bytes = (count + 1) * sizeof(uint64_t);
    return stk_region_map(&column->ends, (size_t)ends_bytes) == STOKER_OK &&
           stk_region_map(&column->values, (size_t)(bytes - ends_bytes)) == STOKER_OK;
}

static int map_table(struct load *load)
{
    struct stk_csv_table *table = &load->table;
    table->count =
        load->wish->split == STK_CSV_TEST ? load->test_count : load->row_count - load->test_count;
    /* Counts are below 2^32 and texts lie in a file that is in memory, so that nothing here overflows. */
    uint64_t bytes = table->count * table->columns * sizeof(float);
    bool mapped = true;
    for (uint32_t i = 0; i < table->extra_count; i++)
        bytes += column_bytes(&table->extra[i], table->count);
    if (bytes > load->max_bytes)
        return stk_csv_fail(&load->text, STOKER_ELIMIT, NULL, 0,
                            "rows and labels take %llu bytes, at most %llu are allowed",
                            (unsigned long long)bytes, (unsigned long long)load->max_bytes);
    mapped =
        stk_region_map(&table->rows, table->count * table->columns * sizeof(float)) == STOKER_OK;
    for (uint32_t i = 0; mapped && i < table->extra_count; i++)
        mapped = map_column(&table->extra[i], table->count);
    return mapped ? STOKER_OK : no_memory(load, "the rows");
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
        rc = next_row(load, &reader);
        if (rc == STOKER_OK)
            rc = take_row(load, is_test, keep ? kept : UINT64_MAX);
        kept += keep ? 1 : 0;
    }
    assert(rc != STOKER_OK || kept == load->table.count);
    return rc;
}

static int fill_means(const struct load *load)
{
    float *row = load->table.rows.base;
    for (uint64_t r = 0; r < load->table.count; r++, row += load->table.columns)
        for (uint32_t i = 0; i < load->table.columns; i++) {
            if (!isnan(row[i]))
                continue;
            if (load->seen[i] == 0)
                return stk_csv_fail(&load->text, STOKER_EFORMAT, NULL, 0,
                                    "column %u has no value in the training rows, so no mean; "
                                    "leave it out of columns=",
                                    load->choice.features[i] + 1);
            row[i] = (float)load->mean[i];
        }
    return STOKER_OK;
}

/* A column that never changes becomes 0. */
static void standardise(struct load *load)
{
    float *row = load->table.rows.base;
    for (uint32_t i = 0; i < load->table.columns; i++)
        load->squares[i] = sqrt(load->squares[i] / (double)load->train_seen);
    for (uint64_t r = 0; r < load->table.count; r++, row += load->table.columns)
        for (uint32_t i = 0; i < load->table.columns; i++) {
            double away = (double)row[i] - load->mean[i];
            row[i] = (float)(load->squares[i] > 0.0 ? away / load->squares[i] : away);
        }
}

static void count_classes(struct load *load)
{
    for (uint32_t i = 0; i < load->table.extra_count; i++) {
        struct stk_csv_column *column = &load->table.extra[i];
        if (column->use != STK_CSV_CLASS)
            continue;
        if (load->wish->class_count != 0)
            column->class_count = (uint32_t)load->wish->class_count;
        else if (!column->negative && column->largest < CLASSES_MAX)
            column->class_count = (uint32_t)column->largest + 1;
    }
}

/* ---- all of it ------------------------------------------------------------------- */

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
    if (rc == STOKER_OK && load->filled_count > 0 && load->wish->missing == STK_CSV_MISSING_MEAN)
        rc = fill_means(load);
    if (rc != STOKER_OK)
        return rc;
    if (load->wish->zscore)
        standardise(load);
    count_classes(load);
    const struct stk_csv_summary summary = { .layout = &load->layout,
                                             .choice = &load->choice,
                                             .table = &load->table,
                                             .columns_named = load->wish->columns[0] != '\0',
                                             .dropped_count = load->dropped_count,
                                             .filled_count = load->filled_count };
    return stk_csv_describe(&load->table.description, &summary) == STOKER_OK
               ? STOKER_OK
               : no_memory(load, "the description");
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
    struct load load = { .wish = wish, .max_bytes = max_bytes };
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
    stk_free(load.choice.use);
    stk_free(load.choice.features);
    stk_free(load.mean);
    stk_free(load.squares);
    stk_free(load.seen);
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
    for (uint32_t i = 0; i < table->extra_count; i++) {
        stk_region_unmap(&table->extra[i].values);
        stk_region_unmap(&table->extra[i].ends);
        stk_csv_words_free(&table->extra[i].words);
    }
    stk_free(table->extra);
    stk_free(table->description);
}
