/* record.c - see record.h. */
#include "trainer/programs/record.h"

static const char *const columns[] = { "train/epoch",         "train/loss",
                                       "train/learning_rate", "train/samples_per_s",
                                       "train/data_wait",     "test/loss",
                                       "train/accuracy",      "test/accuracy" };
enum { COLUMNS_OF_CLASSES = 2 }; /* the last ones */

int record_open(struct record *record, const struct arguments *arguments, bool classes,
                uint64_t first_step, stoker_error *error)
{
    stoker_training_log_options options = STOKER_TRAINING_LOG_OPTIONS_INIT;
    options.events = arguments->log_dir;
    options.csv = arguments->log;
    options.columns = columns;
    options.column_count =
        sizeof(columns) / sizeof(columns[0]) - (classes ? 0 : COLUMNS_OF_CLASSES);
    options.first_step = first_step;
    *record = (struct record){ .classes = classes };
    int rc = stoker_training_log_open(&record->log, &options, error);
    if (rc == STOKER_OK)
        rc = trace_open(&record->trace, arguments->trace, error);
    if (rc != STOKER_OK)
        (void)stoker_training_log_close(&record->log, NULL);
    return rc;
}

static void write_down(struct record *record, const char *name, uint64_t step, double value)
{
    if (record->rc == STOKER_OK)
        record->rc = stoker_training_log_scalar(record->log, name, step, value);
}

void record_train(struct record *record, const struct record_row *row)
{
    write_down(record, "train/epoch", row->step, row->epoch);
    write_down(record, "train/loss", row->step, row->loss);
    if (record->classes)
        write_down(record, "train/accuracy", row->step, row->accuracy);
    write_down(record, "train/learning_rate", row->step, row->learning_rate);
    write_down(record, "train/samples_per_s", row->step, row->samples_per_s);
    write_down(record, "train/data_wait", row->step, row->wait_share);
}

void record_test(struct record *record, uint64_t step, double loss, double accuracy)
{
    write_down(record, "test/loss", step, loss);
    if (record->classes)
        write_down(record, "test/accuracy", step, accuracy);
}

int record_close(struct record *record, stoker_error *error)
{
    int rc = stoker_training_log_close(&record->log, error);
    stoker_error trace_error = { 0 };
    const int trace_rc = trace_close(&record->trace, "training", &trace_error);
    if (rc == STOKER_OK)
        rc = record->rc;
    if (rc == STOKER_OK && trace_rc != STOKER_OK) {
        *error = trace_error;
        rc = trace_rc;
    }
    return rc;
}
