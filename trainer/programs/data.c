/* data.c - see data.h. */
#include "trainer/programs/data.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stoker/arrays.h>

#include "loader/base/error.h"

/* $STOKER_DATA/name, then data/name. False if neither is there. */
static bool find(const char *name, char path[DATA_SPEC_MAX])
{
    const char *folder = getenv("STOKER_DATA");
    if (folder != NULL && folder[0] != '\0') {
        (void)snprintf(path, DATA_SPEC_MAX, "%s/%s", folder, name);
        if (access(path, R_OK) == 0)
            return true;
    }
    (void)snprintf(path, DATA_SPEC_MAX, "data/%s", name);
    return access(path, R_OK) == 0;
}

/* Explains that the data set has one part only, and how to make two. Returns rc. */
static int tell_undivided(const char *spec, int rc, stoker_error *error)
{
    stoker_dataset *whole = NULL;
    if (stoker_dataset_open(&whole, spec, NULL, NULL) != STOKER_OK)
        return rc;
    const char *format = stoker_dataset_name(whole);
    const char *path = strncmp(spec, format, strlen(format)) == 0 && spec[strlen(format)] == ':'
                           ? spec + strlen(format) + 1
                           : spec;
    const char *closed = strrchr(spec, ')'); /* parameters inside parentheses are another set's */
    const char mark = strchr(closed == NULL ? spec : closed, '?') == NULL ? '?' : '&';
    if (strcmp(format, "csv") == 0)
        rc = stk_refuse_option(
            error, rc,
            "%.300s: has no test split: csv:%.300s%clabel=COLUMN&test=0.2 keeps a "
            "fifth of its rows for testing, and --test-data names another file",
            spec, path, mark);
    else if (strcmp(format, "folder") == 0)
        rc = stk_refuse_option(
            error, rc,
            "%.150s: has no folders \"train\" and \"test\" with a folder per class; "
            "%.150s%ctest=0.1 "
            "keeps a tenth of the images for testing, and --test-data names another folder",
            spec, spec, mark);
    else
        rc = stk_refuse_option(
            error, rc,
            "%.150s: has no splits \"train\" and \"test\"; %.150s%ctest=0.1 keeps a tenth of the "
            "samples for testing, and --test-data names other test data",
            spec, spec, mark);
    stoker_dataset_close(&whole);
    return rc;
}

/* Opens the two sets. A format without splits needs --test-data. */
static int open_both(struct data *data, const struct arguments *arguments, stoker_error *error)
{
    const bool splits = arguments->test_data == NULL;
    const char *test_spec = splits ? data->spec : arguments->test_data;
    const stoker_dataset_options train = { STOKER_DATASET_OPTIONS_DEFAULTS.split =
                                               splits ? "train" : NULL };
    const stoker_dataset_options test = { STOKER_DATASET_OPTIONS_DEFAULTS.split =
                                              splits ? "test" : NULL };
    int rc = stoker_dataset_open(&data->train, data->spec, &train, error);
    if (rc == STOKER_OK)
        rc = stoker_dataset_open(&data->test, test_spec, &test, error);
    if (rc != STOKER_OK) {
        data_close(data);
        return splits ? tell_undivided(data->spec, rc, error) : rc;
    }
    const stoker_dataset_info *a = stoker_dataset_get_info(data->train);
    const stoker_dataset_info *b = stoker_dataset_get_info(data->test);
    bool alike = a->rank == b->rank && a->label_dtype == b->label_dtype;
    for (uint32_t axis = 0; alike && axis < a->rank; axis++)
        alike = a->shape[axis] == b->shape[axis];
    if (!alike) {
        data_close(data);
        rc = stk_refuse_option(error, STOKER_EMISMATCH,
                               "the training and test data have different shapes or labels");
    }
    return rc;
}

int data_open_images(struct data *out, const struct arguments *arguments, stoker_error *error)
{
    char path[DATA_SPEC_MAX];
    *out = (struct data){ .made_up = false };
    if (arguments->data != NULL) {
        (void)snprintf(out->spec, sizeof(out->spec), "%s", arguments->data);
    } else if (find("mnist", path)) {
        (void)snprintf(out->spec, sizeof(out->spec), "mnist:%.4000s", path);
    } else {
        (void)snprintf(out->spec, sizeof(out->spec), "synth:digits");
    }
    int rc = open_both(out, arguments, error);
    if (rc != STOKER_OK)
        return rc;
    out->made_up = strncmp(stoker_dataset_name(out->train), "synth:", 6) == 0;
    const stoker_dataset_info *info = stoker_dataset_get_info(out->train);
    if (!info->is_image || info->label_dtype != STOKER_DTYPE_INT64 || info->class_count < 2) {
        data_close(out);
        rc = stk_refuse_option(error, STOKER_ENOTSUP,
                               "%.200s: not a data set of images with classes", out->spec);
    }
    return rc;
}

/* Adds "key=value" to a spec without that key. */
static void add(struct data *data, const char *key, const char *value)
{
    char asked[32];
    (void)snprintf(asked, sizeof(asked), "%s=", key);
    const char *parameters = strrchr(data->spec, '?');
    for (const char *at = parameters; at != NULL; at = strchr(at + 1, '&'))
        if (strncmp(at + 1, asked, strlen(asked)) == 0)
            return;
    const size_t used = strlen(data->spec);
    (void)snprintf(data->spec + used, sizeof(data->spec) - used, "%s%s%s",
                   parameters == NULL ? "?" : "&", asked, value);
}

/* Mean and standard deviation of each column of the training rows. */
static int measure_columns(const stoker_dataset *train, uint64_t columns, float *row, double *mean,
                           double *deviation, stoker_error *error)
{
    const uint64_t count = stoker_dataset_get_info(train)->count;
    for (uint64_t id = 0; id < count; id++) {
        stoker_row rows[STOKER_FIELDS_MAX] = { { .data = row,
                                                 .bytes_max = columns * sizeof(*row) } };
        const int rc = stoker_dataset_read(train, id, rows, error);
        if (rc != STOKER_OK)
            return rc;
        for (uint64_t i = 0; i < columns; i++) { /* Welford's running sums */
            const double away = (double)row[i] - mean[i];
            mean[i] += away / (double)(id + 1);
            deviation[i] += away * ((double)row[i] - mean[i]);
        }
    }
    for (uint64_t i = 0; i < columns; i++)
        deviation[i] = sqrt(deviation[i] / (double)count);
    return STOKER_OK;
}

/* Replace a table by a copy in memory whose columns have mean 0 and deviation 1 in the training
 * rows; a column that never changes becomes 0. */
static int standardize(stoker_dataset **table, uint64_t columns, const double *mean,
                       const double *deviation, stoker_error *error)
{
    const uint64_t count = stoker_dataset_get_info(*table)->count;
    float *rows = calloc(count, (columns + 1) * sizeof(float));
    if (rows == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "out of memory: the table");
    float *labels = rows + count * columns;
    const int32_t label = stoker_dataset_find_field(*table, "label");
    int rc = STOKER_OK;
    for (uint64_t id = 0; rc == STOKER_OK && id < count; id++) {
        float *row = rows + id * columns;
        stoker_row fields[STOKER_FIELDS_MAX] = { { .data = row,
                                                   .bytes_max = columns * sizeof(*row) } };
        fields[label] = (stoker_row){ .data = &labels[id], .bytes_max = sizeof(labels[id]) };
        rc = stoker_dataset_read(*table, id, fields, error);
        for (uint64_t i = 0; rc == STOKER_OK && i < columns; i++)
            row[i] = (float)(((double)row[i] - mean[i]) / (deviation[i] > 0 ? deviation[i] : 1));
    }
    const stoker_array arrays[2] = { { .struct_size = sizeof(stoker_array),
                                       .name = "row",
                                       .data = rows,
                                       .dtype = STOKER_DTYPE_FLOAT32,
                                       .rank = 1,
                                       .shape = { columns } },
                                     { .struct_size = sizeof(stoker_array),
                                       .name = "label",
                                       .data = labels,
                                       .dtype = STOKER_DTYPE_FLOAT32 } };
    const stoker_arrays_options options = { .struct_size = sizeof(options),
                                            .destroy = free,
                                            .context = rows,
                                            .fingerprint = stoker_dataset_fingerprint(*table) };
    stoker_dataset *copy = NULL;
    if (rc == STOKER_OK)
        rc = stoker_dataset_from_arrays(&copy, arrays, 2, count, &options, error);
    if (rc != STOKER_OK) {
        free(rows);
        return rc;
    }
    stoker_dataset_close(table);
    *table = copy;
    return STOKER_OK;
}

static int standardize_both(struct data *data, stoker_error *error)
{
    const uint64_t columns = stoker_dataset_get_info(data->train)->shape[0];
    float *row = calloc(columns, sizeof(*row));
    double *mean = calloc(2 * columns, sizeof(*mean));
    if (row == NULL || mean == NULL) {
        free(row);
        free(mean);
        return stk_refuse_option(error, STOKER_ENOMEM, "out of memory: the means");
    }
    int rc = measure_columns(data->train, columns, row, mean, mean + columns, error);
    if (rc == STOKER_OK)
        rc = standardize(&data->train, columns, mean, mean + columns, error);
    if (rc == STOKER_OK)
        rc = standardize(&data->test, columns, mean, mean + columns, error);
    free(row);
    free(mean);
    return rc;
}

int data_open_table(struct data *out, const struct arguments *arguments, stoker_error *error)
{
    char path[DATA_SPEC_MAX];
    *out = (struct data){ .made_up = false };
    if (arguments->data != NULL)
        (void)snprintf(out->spec, sizeof(out->spec), "%.3900s", arguments->data);
    else if (find("boston/BostonHousing.csv", path))
        (void)snprintf(out->spec, sizeof(out->spec), "csv:%.3900s?label=medv", path);
    else
        return stk_refuse_option(error, STOKER_ENOENT,
                                 "there is no boston/BostonHousing.csv in $STOKER_DATA or data; "
                                 "trainer/programs/README.md says where to get it");
    if (strncmp(out->spec, "csv:", 4) == 0 && arguments->test_data == NULL) {
        char seed[24];
        (void)snprintf(seed, sizeof(seed), "%" PRIu64, arguments->seed);
        add(out, "test", "0.2");
        add(out, "seed", seed);
    }
    int rc = open_both(out, arguments, error);
    if (rc != STOKER_OK)
        return rc;
    const stoker_dataset_info *info = stoker_dataset_get_info(out->train);
    if (info->label_dtype != STOKER_DTYPE_FLOAT32)
        rc =
            stk_refuse_option(error, STOKER_ENOTSUP,
                              "%.200s: no column to predict is named; add label=COLUMN", out->spec);
    else if (info->rank == 1 && info->dtype == STOKER_DTYPE_FLOAT32)
        rc = standardize_both(out, error);
    if (rc != STOKER_OK)
        data_close(out);
    return rc;
}

void data_close(struct data *data)
{
    stoker_dataset_close(&data->train);
    stoker_dataset_close(&data->test);
}
