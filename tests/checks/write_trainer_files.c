/* write_trainer_files.c - files for check_trainer_files.py to read, and the reverse.
 *
 *   write_trainer_files DIR          DIR/model.safetensors, DIR/runs, DIR/log.csv
 *   write_trainer_files --read FILE  print each tensor of a safetensors file, and each note
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/training_log.h>
#include <string.h>

#include "loader/base/crc32c/crc32c.h"
#include "trainer/files/safetensors.h"

enum { ROWS = 4, COLUMNS = 6, STEPS = 40 };

static int failed(const stoker_error *error)
{
    fprintf(stderr, "%s\n", error->message);
    return EXIT_FAILURE;
}

static int write_tensors(const char *directory, stoker_error *error)
{
    static float weight[ROWS][COLUMNS];
    static const int64_t step = INT64_C(-1234567890123);
    static const uint16_t halves[3] = { 0x3C00, 0xC000, 0x7BFF }; /* 1, -2, 65504 */
    static const uint8_t bytes[5] = { 0, 1, 2, 254, 255 };
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++)
            weight[r][c] = (float)r + (float)c / 8;
    const struct stk_named_tensor weights[] = {
        { .name = "fc1.weight",
          .dtype = STK_FILE_F32,
          .rank = 2,
          .shape = { ROWS, COLUMNS },
          .data = weight },
        { .name = "bytes", .dtype = STK_FILE_U8, .rank = 1, .shape = { 5 }, .data = bytes },
        { .name = "halves", .dtype = STK_FILE_F16, .rank = 1, .shape = { 3 }, .data = halves },
        { .name = "gr\xC3\xB6\xC3\x9F"
                  "e \"1\"",
          .dtype = STK_FILE_F32,
          .rank = 2,
          .shape = { 0, 7 } },
        { .name = "step", .dtype = STK_FILE_I64, .data = &step },
    };
    const struct stk_note notes[] = { { "format", "pt" } };
    const struct stk_tensor_set set = { weights, 5, notes, 1 };
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/model.safetensors", directory);
    FILE *const file = fopen(path, "wbe");
    if (file == NULL)
        return STOKER_EIO;
    const int rc = stk_safetensors_write(fileno(file), path, &set, error);
    return fclose(file) == 0 ? rc : STOKER_EIO;
}

static int write_log(const char *directory, stoker_error *error)
{
    static const char *const names[] = { "train/loss", "test/accuracy" };
    char events[4096], csv[4096];
    (void)snprintf(events, sizeof(events), "%s/runs", directory);
    (void)snprintf(csv, sizeof(csv), "%s/log.csv", directory);
    stoker_training_log_options options = STOKER_TRAINING_LOG_OPTIONS_INIT;
    options.events = events;
    options.csv = csv;
    options.columns = names;
    options.column_count = 2;
    stoker_training_log *log = NULL;
    int rc = stoker_training_log_open(&log, &options, error);
    for (uint64_t step = 0; step < STEPS && rc == STOKER_OK; step++) {
        rc = stoker_training_log_scalar(log, names[0], step * 10, 2.0 / (double)(step + 1));
        if (rc == STOKER_OK && step % 4 == 0)
            rc = stoker_training_log_scalar(log, names[1], step * 10, (double)step / STEPS);
    }
    const int close_rc = stoker_training_log_close(&log, error);
    return rc == STOKER_OK ? close_rc : rc;
}

static int print_file(const char *path, stoker_error *error)
{
    struct stk_safetensors file;
    const int rc = stk_safetensors_open(&file, path, error);
    if (rc != STOKER_OK)
        return rc;
    const struct stk_tensor_set *set = &file.set;
    for (uint32_t i = 0; i < set->tensor_count; i++) {
        const struct stk_named_tensor *tensor = &set->tensors[i];
        printf("tensor %s %s", tensor->name, stk_file_dtype_name(tensor->dtype));
        for (uint32_t axis = 0; axis < tensor->rank; axis++)
            printf(" %" PRIu64, tensor->shape[axis]);
        printf(" crc32c %08" PRIx32 "\n", stk_crc32c(0, tensor->data, tensor->bytes));
    }
    for (uint32_t i = 0; i < set->note_count; i++)
        printf("note %s %s\n", set->notes[i].key, set->notes[i].value);
    stk_safetensors_close(&file);
    return STOKER_OK;
}

int main(int argc, char **argv)
{
    stoker_error error = { 0 };
    if (argc == 3 && strcmp(argv[1], "--read") == 0)
        return print_file(argv[2], &error) == STOKER_OK ? EXIT_SUCCESS : failed(&error);
    if (argc != 2) {
        fprintf(stderr, "usage: write_trainer_files DIR | --read FILE\n");
        return EXIT_FAILURE;
    }
    if (write_tensors(argv[1], &error) != STOKER_OK || write_log(argv[1], &error) != STOKER_OK)
        return failed(&error);
    return EXIT_SUCCESS;
}
