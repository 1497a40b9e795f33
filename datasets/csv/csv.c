/* csv.c - "csv:FILE?label=medv": rows of numbers and a label, read and checked at open.
 *
 *   choose   find the header and the columns from the first records
 *   count    check that all records have as many fields as the first
 *   fill     parse every number of every row into memory
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "datasets/csv/record.h"
#include "datasets/formats.h"
#include "datasets/gzip.h"
#include "datasets/number.h"
#include "datasets/parameters.h"
#include "datasets/source.h"

enum { COLUMNS_MAX = 65535, CLASSES_MAX = 65536, QUOTED_BYTES = 40 };
#define NO_COLUMN UINT32_MAX
static const double LABEL_MAX = 9007199254740992.0; /* 2^53: whole numbers are exact up to it */

/* The parameters of the spec. */
struct wish {
    char label[STK_PARAMETER_BYTES_MAX];   /* "" = none */
    char columns[STK_PARAMETER_BYTES_MAX]; /* "" = all but the label */
    char header[STK_PARAMETER_BYTES_MAX];
    char delimiter[STK_PARAMETER_BYTES_MAX];
    char label_type[STK_PARAMETER_BYTES_MAX];
    uint64_t class_count; /* labels end below it; 0 = largest label + 1 */
};

struct csv {
    struct stk_region rows;   /* [count][columns] float */
    struct stk_region labels; /* [count] float or int64_t */
    uint64_t count;
    uint32_t columns;
    stoker_dtype label_dtype; /* NONE, FLOAT32, INT64 */
    uint32_t class_count;     /* 0 = unknown */
};

struct load {
    const struct wish *wish;
    struct stk_csv_reader reader;
    bool has_header;
    uint32_t field_count;         /* per record, 1..COLUMNS_MAX */
    struct stk_csv_field *names;  /* [field_count], of the header if there is one */
    struct stk_csv_field *fields; /* [field_count], of the current record */
    uint32_t *columns;            /* [csv->columns]: the row, in this order */
    uint32_t label;               /* column, or NO_COLUMN */
    int64_t least, largest;       /* label, if labels are classes */
    struct csv *csv;
};

/* ---- columns -------------------------------------------------------------------- */

static int hex_digit(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    if (byte >= 'A' && byte <= 'F')
        return byte - 'A' + 10;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* Decode %XX. Returns the bytes of out, or -1 if a % is not followed by two hexadecimal digits. */
static int decode_percents(const char *text, size_t bytes, char *out)
{
    int size = 0;
    for (size_t i = 0; i < bytes; i++) {
        out[size++] = text[i];
        if (text[i] != '%')
            continue;
        const int high = i + 2 < bytes ? hex_digit(text[i + 1]) : -1;
        const int low = i + 2 < bytes ? hex_digit(text[i + 2]) : -1;
        if (high < 0 || low < 0)
            return -1;
        out[size - 1] = (char)(high * 16 + low);
        i += 2;
    }
    return size;
}

static const char *quote_field(const char *bytes, size_t size, char quoted[QUOTED_BYTES])
{
    const size_t most = QUOTED_BYTES - sizeof("...");
    (void)snprintf(quoted, QUOTED_BYTES, "%.*s%s", (int)(size > most ? most : size), bytes,
                   size > most ? "..." : "");
    return quoted;
}

static int refuse_column(const struct load *load, const char *name, size_t size, const char *why)
{
    char quoted[QUOTED_BYTES];
    return stk_csv_fail(&load->reader, STOKER_EINVAL, NULL, 0, "column \"%s\" %s",
                        quote_field(name, size, quoted), why);
}

/* Find a column by its name in the header, else by its number from 1. */
static int find_column(const struct load *load, const char *text, size_t bytes, uint32_t *out)
{
    char name[STK_PARAMETER_BYTES_MAX];
    uint32_t found = NO_COLUMN;
    const int size = decode_percents(text, bytes, name);
    if (size < 0)
        return refuse_column(load, text, bytes, "has a % without two hexadecimal digits");
    for (uint32_t i = 0; load->has_header && i < load->field_count; i++) {
        if (!stk_csv_equals(&load->names[i], name, (size_t)size))
            continue;
        if (found != NO_COLUMN)
            return refuse_column(load, name, (size_t)size, "occurs twice: give its number, from 1");
        found = i;
    }
    if (found == NO_COLUMN) {
        uint64_t number = 0;
        for (int i = 0; i < size && number <= COLUMNS_MAX; i++)
            number = name[i] >= '0' && name[i] <= '9' ? number * 10 + (uint64_t)(name[i] - '0')
                                                      : UINT64_MAX;
        if (number < 1 || number > load->field_count)
            return refuse_column(load, name, (size_t)size,
                                 load->has_header
                                     ? "is not in the header and not a column number"
                                     : "is not a column number, and there is no header with names");
        found = (uint32_t)(number - 1);
    }
    *out = found;
    return STOKER_OK;
}

/* Take the columns of "a,b,c" as the row. */
static int list_columns(struct load *load, const char *list)
{
    for (const char *at = list;; at++) {
        const size_t bytes = strcspn(at, ",");
        uint32_t column = NO_COLUMN;
        const int rc = find_column(load, at, bytes, &column);
        if (rc != STOKER_OK)
            return rc;
        bool twice = column == load->label;
        for (uint32_t i = 0; i < load->csv->columns; i++)
            twice = twice || load->columns[i] == column;
        if (twice)
            return refuse_column(load, at, bytes, "is named twice");
        load->columns[load->csv->columns++] = column;
        at += bytes;
        if (*at == '\0')
            return STOKER_OK;
    }
}

static int choose_columns(struct load *load)
{
    const struct wish *wish = load->wish;
    load->label = NO_COLUMN;
    if (wish->label[0] != '\0') {
        const int rc = find_column(load, wish->label, strlen(wish->label), &load->label);
        if (rc != STOKER_OK)
            return rc;
    }
    if (wish->columns[0] != '\0')
        return list_columns(load, wish->columns);
    for (uint32_t i = 0; i < load->field_count; i++)
        if (i != load->label)
            load->columns[load->csv->columns++] = i;
    return load->csv->columns > 0
               ? STOKER_OK
               : stk_csv_fail(&load->reader, STOKER_EFORMAT, NULL, 0, "no column but the label's");
}

/* ---- records -------------------------------------------------------------------- */

/* Read the next record into load->fields; it must be as long as the first. */
static int next_record(struct load *load)
{
    uint32_t count = 0;
    const int rc = stk_csv_next(&load->reader, load->fields, load->field_count, &count);
    return rc != STOKER_OK || count == load->field_count
               ? rc
               : stk_csv_fail(&load->reader, STOKER_EFORMAT, load->fields, 0,
                              "%u fields, but the first record has %u", count, load->field_count);
}

/* Go to the first row, behind the header if there is one. */
static int begin_rows(struct load *load)
{
    uint32_t count;
    const int rc = stk_csv_begin(&load->reader);
    return rc == STOKER_OK && load->has_header
               ? stk_csv_next(&load->reader, load->names, load->field_count, &count)
               : rc;
}

static int measure_first_record(struct load *load)
{
    struct stk_csv_field first;
    int rc = stk_csv_begin(&load->reader);
    if (rc == STOKER_OK)
        rc = stk_csv_next(&load->reader, &first, 1, &load->field_count);
    if (rc == STOKER_FINISHED)
        return stk_csv_fail(&load->reader, STOKER_EEMPTY, NULL, 0, "no line has anything on it");
    if (rc == STOKER_OK && load->field_count > COLUMNS_MAX)
        rc = stk_csv_fail(&load->reader, STOKER_ELIMIT, &first, 0,
                          "%u columns, at most %d are read", load->field_count, COLUMNS_MAX);
    if (rc != STOKER_OK)
        return rc;
    load->names = stk_calloc(load->field_count, sizeof(load->names[0]));
    load->fields = stk_calloc(load->field_count, sizeof(load->fields[0]));
    load->columns = stk_calloc(load->field_count, sizeof(load->columns[0]));
    return load->names != NULL && load->fields != NULL && load->columns != NULL
               ? STOKER_OK
               : stk_csv_fail(&load->reader, STOKER_ENOMEM, NULL, 0, "a record");
}

/* The first line is a header if the spec says so, or if it holds no number. */
static int find_header(struct load *load)
{
    const bool automatic = load->wish->header[0] == '\0' || load->wish->header[0] == 'a';
    bool text = true;
    int rc = begin_rows(load);
    if (rc == STOKER_OK)
        rc = next_record(load);
    if (rc != STOKER_OK)
        return rc;
    for (uint32_t i = 0; i < load->field_count; i++) {
        double value;
        text = text && stk_number_parse(load->fields[i].bytes, load->fields[i].size, &value) ==
                           STK_NUMBER_TEXT;
    }
    load->has_header = automatic ? text : load->wish->header[0] == '1';
    return begin_rows(load); /* keeps the names */
}

static int count_rows(struct load *load)
{
    const bool automatic = load->wish->header[0] == '\0' || load->wish->header[0] == 'a';
    int rc = begin_rows(load);
    while (rc == STOKER_OK && (rc = next_record(load)) == STOKER_OK)
        load->csv->count++;
    if (rc != STOKER_FINISHED)
        return rc;
    if (load->csv->count == 0)
        return stk_csv_fail(&load->reader, STOKER_EEMPTY, NULL, 0, "a header, and no row%s",
                            automatic ? "; if that line is a row, say header=0" : "");
    return load->csv->count <= UINT32_MAX
               ? STOKER_OK
               : stk_csv_fail(&load->reader, STOKER_ELIMIT, NULL, 0, "more than 2^32 - 1 rows");
}

/* ---- numbers -------------------------------------------------------------------- */

static int take_number(const struct load *load, uint32_t column, double *out)
{
    static const char *const what[] = {
        [STK_NUMBER_TEXT] = "not a number",
        [STK_NUMBER_NOT_FINITE] = "not a finite number",
        [STK_NUMBER_OVERLONG] = "a number of more than 64 characters",
        [STK_NUMBER_TOO_LARGE] = "too large for float32",
    };
    const struct stk_csv_field *field = &load->fields[column];
    const enum stk_number_kind kind = stk_number_parse(field->bytes, field->size, out);
    char quoted[QUOTED_BYTES], name[QUOTED_BYTES] = "";
    if (kind == STK_NUMBER)
        return STOKER_OK;
    if (load->has_header)
        (void)quote_field(load->names[column].bytes, load->names[column].size, name);
    return stk_csv_fail(
        &load->reader, STOKER_EFORMAT, field, column + 1, "%s%s\"%s\" is %s%s", name,
        name[0] == '\0' ? "" : ": ", quote_field(field->bytes, field->size, quoted), what[kind],
        column != load->label && load->wish->columns[0] == '\0' ? "; columns= chooses the columns"
                                                                : "");
}

static int take_class(struct load *load, double value, int64_t *out)
{
    const struct stk_csv_field *field = &load->fields[load->label];
    const uint64_t classes = load->wish->class_count;
    char quoted[QUOTED_BYTES];
    if (value != floor(value) || fabs(value) > LABEL_MAX)
        return stk_csv_fail(&load->reader, STOKER_EFORMAT, field, load->label + 1,
                            "label \"%s\" is not a whole number below 2^53",
                            quote_field(field->bytes, field->size, quoted));
    *out = (int64_t)value;
    if (classes != 0 && (*out < 0 || (uint64_t)*out >= classes))
        return stk_csv_fail(&load->reader, STOKER_EFORMAT, field, load->label + 1,
                            "label \"%s\" out of range (0..%llu)",
                            quote_field(field->bytes, field->size, quoted),
                            (unsigned long long)classes - 1);
    load->least = *out < load->least ? *out : load->least;
    load->largest = *out > load->largest ? *out : load->largest;
    return STOKER_OK;
}

/* Parse the current record as row number `at`. */
static int take_row(struct load *load, uint64_t at)
{
    const struct csv *csv = load->csv;
    float *row = (float *)csv->rows.base + (size_t)at * csv->columns;
    double value = 0.0;
    for (uint32_t i = 0; i < csv->columns; i++) {
        const int rc = take_number(load, load->columns[i], &value);
        if (rc != STOKER_OK)
            return rc;
        row[i] = (float)value;
    }
    if (load->label == NO_COLUMN)
        return STOKER_OK;
    const int rc = take_number(load, load->label, &value);
    if (rc == STOKER_OK && csv->label_dtype == STOKER_DTYPE_INT64)
        return take_class(load, value, (int64_t *)csv->labels.base + at);
    if (rc == STOKER_OK)
        ((float *)csv->labels.base)[at] = (float)value;
    return rc;
}

/* ---- load ----------------------------------------------------------------------- */

static int map_table(struct load *load, uint64_t max_bytes)
{
    struct csv *csv = load->csv;
    const uint64_t row_bytes = csv->count * csv->columns * sizeof(float); /* < 2^32 x 2^18 */
    const uint64_t label_bytes = csv->count * stoker_dtype_bytes(csv->label_dtype);
    const uint64_t bytes = row_bytes + label_bytes;
    if (bytes > max_bytes)
        return stk_csv_fail(&load->reader, STOKER_ELIMIT, NULL, 0,
                            "rows and labels take %" PRIu64 " bytes, at most %" PRIu64
                            " are allowed",
                            bytes, max_bytes);
    if (stk_region_map(&csv->rows, (size_t)row_bytes) != STOKER_OK ||
        (label_bytes > 0 && stk_region_map(&csv->labels, (size_t)label_bytes) != STOKER_OK))
        return stk_csv_fail(&load->reader, STOKER_ENOMEM, NULL, 0, "the rows");
    return STOKER_OK;
}

static int load_table(struct load *load, uint64_t max_bytes)
{
    int rc = measure_first_record(load);
    if (rc == STOKER_OK)
        rc = find_header(load);
    if (rc == STOKER_OK)
        rc = choose_columns(load);
    if (rc == STOKER_OK)
        rc = count_rows(load);
    if (rc == STOKER_OK)
        rc = map_table(load, max_bytes);
    if (rc == STOKER_OK)
        rc = begin_rows(load);
    for (uint64_t row = 0; rc == STOKER_OK && row < load->csv->count; row++) {
        rc = next_record(load);
        if (rc == STOKER_OK)
            rc = take_row(load, row);
    }
    if (rc == STOKER_OK && load->csv->label_dtype == STOKER_DTYPE_INT64) {
        if (load->wish->class_count != 0)
            load->csv->class_count = (uint32_t)load->wish->class_count;
        else if (load->least >= 0 && load->largest < CLASSES_MAX)
            load->csv->class_count = (uint32_t)load->largest + 1;
    }
    return rc;
}

/* Read a plain or gzip file into *contents. */
static int read_contents(const char *path, const stoker_dataset_options *options,
                         struct stk_region *contents, size_t *size, stoker_error *error)
{
    const uint64_t max_bytes = options->max_bytes;
    struct stk_source source;
    uint8_t begin[2] = { 0 };
    int rc = stk_source_open(&source, options->storage, path, error);
    if (rc != STOKER_OK)
        return rc;
    *size = (size_t)source.size;
    if (source.size >= sizeof(begin))
        rc = stk_source_read(&source, begin, sizeof(begin), 0, error);
    if (rc == STOKER_OK && stk_gzip_magic(begin, sizeof(begin)))
        rc = stk_gzip_unpack(&source, max_bytes, contents, size, error);
    else if (rc == STOKER_OK && source.size == 0)
        rc = stk_refuse_file(error, STOKER_EEMPTY, path, STOKER_NO_OFFSET, "an empty file");
    else if (rc == STOKER_OK && source.size > max_bytes)
        rc = stk_refuse_file(error, STOKER_ELIMIT, path, STOKER_NO_OFFSET,
                             "%llu bytes, at most %llu are allowed",
                             (unsigned long long)source.size, (unsigned long long)max_bytes);
    else if (rc == STOKER_OK && stk_region_map(contents, *size) != STOKER_OK)
        rc = stk_refuse_file(error, STOKER_ENOMEM, path, STOKER_NO_OFFSET, "%zu bytes", *size);
    else if (rc == STOKER_OK)
        rc = stk_source_read(&source, contents->base, *size, 0, error);
    stk_source_close(&source);
    return rc;
}

static int load_file(struct csv *csv, const char *path, const struct wish *wish, char delimiter,
                     const stoker_dataset_options *options, stoker_error *error)
{
    struct stk_region contents = { 0 };
    struct load load = { .wish = wish, .least = INT64_MAX, .largest = INT64_MIN, .csv = csv };
    size_t size = 0;
    int rc = read_contents(path, options, &contents, &size, error);
    load.reader = (struct stk_csv_reader){
        .path = path, .bytes = contents.base, .size = size, .delimiter = delimiter, .error = error
    };
    if (rc == STOKER_OK)
        rc = load_table(&load, options->max_bytes);
    stk_free(load.names);
    stk_free(load.fields);
    stk_free(load.columns);
    stk_region_unmap(&contents);
    return rc;
}

/* ---- callbacks ------------------------------------------------------------------ */

static int describe(const void *self, stoker_dataset_info *out)
{
    const struct csv *csv = self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(*out),
                                  .count = csv->count,
                                  .dtype = STOKER_DTYPE_FLOAT32,
                                  .rank = 1,
                                  .shape = { csv->columns },
                                  .label_dtype = csv->label_dtype,
                                  .class_count = csv->class_count,
                                  .rows = csv->rows.base };
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *parts,
                  stoker_error *error)
{
    const struct csv *csv = self;
    (void)error;
    for (uint32_t i = 0; i < count; i++) {
        assert(ids[i] < csv->count);
        parts[i] = (stoker_part){ .extent = { .memory = (const float *)csv->rows.base +
                                                        ids[i] * csv->columns,
                                              .bytes = (uint32_t)(csv->columns * sizeof(float)) } };
    }
    return STOKER_OK;
}

static int values(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out)
{
    const struct csv *csv = self;
    (void)field;
    for (uint32_t i = 0; i < count; i++) {
        if (csv->label_dtype == STOKER_DTYPE_INT64)
            ((int64_t *)out)[i] = ((const int64_t *)csv->labels.base)[ids[i]];
        else
            ((float *)out)[i] = ((const float *)csv->labels.base)[ids[i]];
    }
    return STOKER_OK;
}

static void destroy(void *self)
{
    struct csv *csv = self;
    stk_region_unmap(&csv->rows);
    stk_region_unmap(&csv->labels);
    stk_free(csv);
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "csv",
                                        .describe = describe,
                                        .locate = locate,
                                        .values = values,
                                        .destroy = destroy };

/* ---- the spec ------------------------------------------------------------------- */

static int refuse_value(stoker_error *error, int code, const char *value, const char *what)
{
    return stk_refuse_spec(error, code, "csv: \"%.64s\": %s", value, what);
}

/* "tab", or one printable character that is no part of a number. Returns 0 for anything else. */
static char delimiter_of(const char *value)
{
    char decoded[STK_PARAMETER_BYTES_MAX];
    const bool tab = strcmp(value, "tab") == 0;
    if (!tab && decode_percents(value, strlen(value), decoded) != 1)
        return 0;
    const char byte = tab ? '\t' : decoded[0];
    const bool separates = byte == '\t' || (byte > ' ' && byte <= '~');
    const bool in_numbers = strchr("+-.\"", byte) != NULL || (byte >= '0' && byte <= '9') ||
                            (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
    return separates && !in_numbers ? byte : 0;
}

static int read_parameters(struct wish *wish, const char *parameters, stoker_error *error)
{
    const struct stk_parameter table[] = {
        { .key = "label", .text = wish->label },
        { .key = "columns", .text = wish->columns },
        { .key = "header", .text = wish->header },
        { .key = "delimiter", .text = wish->delimiter },
        { .key = "label_type", .text = wish->label_type },
        { .key = "classes", .number = &wish->class_count, .least = 1, .most = CLASSES_MAX },
    };
    const char *header = wish->header, *type = wish->label_type;
    const int rc =
        stk_parameters_read(parameters, table, sizeof(table) / sizeof(table[0]), "csv", error);
    if (rc != STOKER_OK)
        return rc;
    if (header[0] != '\0' && strcmp(header, "auto") != 0 && strcmp(header, "0") != 0 &&
        strcmp(header, "1") != 0)
        return refuse_value(error, STOKER_ESPEC, header, "header is 0, 1 or auto");
    if (wish->delimiter[0] != '\0' && delimiter_of(wish->delimiter) == 0)
        return refuse_value(error, STOKER_ESPEC, wish->delimiter,
                            "the delimiter is tab, or one character like ; (or %3B)");
    if (type[0] != '\0' && strcmp(type, "float") != 0 && strcmp(type, "int") != 0)
        return refuse_value(error, STOKER_ESPEC, type, "label_type is float or int");
    if (type[0] == 'f' && wish->class_count != 0)
        return refuse_value(error, STOKER_EINVAL, type,
                            "label_type: classes are numbered with int");
    if (wish->label[0] == '\0' && (wish->class_count != 0 || type[0] != '\0'))
        return refuse_value(error, STOKER_EINVAL, parameters, "say which column: label=NAME");
    return STOKER_OK;
}

/* While a spec is opened. */
struct opening {
    struct wish wish;
    char path[];
};

static int open_table(stoker_dataset **out, struct opening *opening, const char *parameters,
                      const stoker_dataset_options *options, stoker_error *error)
{
    const struct wish *wish = &opening->wish;
    if (opening->path[0] == '\0')
        return stk_refuse_spec(error, STOKER_ESPEC,
                               "the file name is empty; write csv:FILE?label=COLUMN");
    if (options->split != NULL)
        return stk_refuse_spec(error, STOKER_EINVAL,
                               "split \"%s\": csv has no splits; test=0.2 in the spec makes some",
                               options->split);
    int rc = read_parameters(&opening->wish, parameters, error);
    if (rc != STOKER_OK)
        return rc;
    struct csv *csv = stk_calloc(1, sizeof(*csv));
    if (csv == NULL)
        return stk_refuse_spec(error, STOKER_ENOMEM, "the data set");
    csv->label_dtype = wish->label[0] == '\0' ? STOKER_DTYPE_NONE
                       : wish->class_count != 0 || wish->label_type[0] == 'i'
                           ? STOKER_DTYPE_INT64
                           : STOKER_DTYPE_FLOAT32;
    rc =
        load_file(csv, opening->path, wish,
                  wish->delimiter[0] == '\0' ? ',' : delimiter_of(wish->delimiter), options, error);
    if (rc == STOKER_OK)
        rc = stoker_dataset_create(out, &ops, csv, error);
    if (rc != STOKER_OK)
        destroy(csv);
    return rc;
}

static int open_csv(stoker_dataset **out, const char *rest, const stoker_dataset_options *options,
                    stoker_error *error)
{
    const struct stk_spec spec = stk_spec_split(options->storage, rest, '?');
    struct opening *opening = stk_calloc(1, sizeof(*opening) + spec.name_bytes + 1);
    if (opening == NULL)
        return stk_refuse_spec(error, STOKER_ENOMEM, "the spec");
    memcpy(opening->path, rest, spec.name_bytes);
    const int rc = open_table(out, opening, spec.after == NULL ? "" : spec.after, options, error);
    stk_free(opening);
    return rc;
}

/* A regular file whose name ends like one. */
static bool recognize_csv(const stoker_storage *storage, const char *path)
{
    stoker_object object;
    const char *dot = strrchr(path, '.');
    return dot != NULL && strcmp(dot, ".csv") == 0 &&
           stk_storage_look(storage, path, &object, NULL) == STOKER_OK &&
           object.kind == STOKER_OBJECT_KIND_FILE;
}

const struct stk_format stk_format_csv = {
    .name = "csv",
    .about = "csv:FILE?label=COLUMN\tnumbers, one sample per line",
    .open = open_csv,
    .recognize = recognize_csv
};
