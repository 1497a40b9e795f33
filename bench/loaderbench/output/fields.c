/* fields.c - see fields.h. */
#include "bench/loaderbench/output/fields.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#define MACHINE(kind, name)                                                                        \
    {                                                                                              \
#name, kind, offsetof(struct bench_machine, name)                                          \
    }
#define CELL(kind, name)                                                                           \
    {                                                                                              \
#name, kind, offsetof(struct bench_cell, name)                                             \
    }
#define FIRST(kind, name)                                                                          \
    {                                                                                              \
        "first_epoch_" #name, kind, offsetof(struct bench_cell, first.name)                        \
    }
#define CEILING(kind, name)                                                                        \
    {                                                                                              \
#name, kind, offsetof(struct bench_ceiling_row, name)                                      \
    }

const struct bench_field bench_machine_fields[] = {
    MACHINE(BENCH_COUNT32, schema),
    MACHINE(BENCH_TEXT, date),
    MACHINE(BENCH_TEXT, host),
    MACHINE(BENCH_TEXT, commit),
    MACHINE(BENCH_TEXT, compiler),
    MACHINE(BENCH_NUMBER, load_1m),
    MACHINE(BENCH_NUMBER, load_5m),
    MACHINE(BENCH_NUMBER, load_15m),
    MACHINE(BENCH_TEXT, tool_version),
    MACHINE(BENCH_TEXT, library_version),
    MACHINE(BENCH_TEXT, args),
    MACHINE(BENCH_TEXT, cpu),
    MACHINE(BENCH_TEXT, gpu),
    MACHINE(BENCH_COUNT32, cpus),
    MACHINE(BENCH_TEXT, kernel),
    MACHINE(BENCH_TEXT, disk),
    MACHINE(BENCH_COUNT64, memory_bytes),
    MACHINE(BENCH_TEXT, dataset),
    MACHINE(BENCH_TEXT, dataset_name),
    MACHINE(BENCH_COUNT64, samples),
    MACHINE(BENCH_COUNT64, row_bytes),
};
const size_t bench_machine_field_count =
    sizeof(bench_machine_fields) / sizeof(bench_machine_fields[0]);

const struct bench_field bench_cell_fields[] = {
    CELL(BENCH_SIGNED32, workers),
    { "auto", BENCH_BOOL, offsetof(struct bench_cell, automatic) },
    CELL(BENCH_TEXT, pin_memory),
    CELL(BENCH_BOOL, pinned),
    CELL(BENCH_TEXT, device),
    CELL(BENCH_TEXT, non_blocking),
    CELL(BENCH_TEXT, convert),
    CELL(BENCH_COUNT32, batch_size),
    CELL(BENCH_TEXT, dtype),
    CELL(BENCH_TEXT, layout),
    CELL(BENCH_TEXT, reader),
    CELL(BENCH_TEXT, cache),
    CELL(BENCH_COUNT32, read_depth),
    CELL(BENCH_COUNT32, slots),
    CELL(BENCH_BOOL, cold),
    CELL(BENCH_NUMBER, samples_per_s),
    CELL(BENCH_NUMBER, samples_per_s_min),
    CELL(BENCH_NUMBER, samples_per_s_max),
    CELL(BENCH_NUMBER, samples_per_s_low),
    CELL(BENCH_NUMBER, samples_per_s_high),
    FIRST(BENCH_BOOL, separate),
    FIRST(BENCH_NUMBER, samples_per_s),
    FIRST(BENCH_NUMBER, samples_per_s_min),
    FIRST(BENCH_NUMBER, samples_per_s_max),
    FIRST(BENCH_NUMBER, samples_per_s_low),
    FIRST(BENCH_NUMBER, samples_per_s_high),
    FIRST(BENCH_TEXT, limit),
    FIRST(BENCH_TEXT, verdict),
    FIRST(BENCH_TEXT, ceiling),
    FIRST(BENCH_NUMBER, ceiling_samples_per_s),
    FIRST(BENCH_NUMBER, ceiling_share),
    FIRST(BENCH_COUNT32, repeats),
    FIRST(BENCH_BOOL, whole),
    CELL(BENCH_NUMBER, cached_share),
    { "read_us", BENCH_NUMBER, offsetof(struct bench_cell, stages.read_us) },
    { "decode_us", BENCH_NUMBER, offsetof(struct bench_cell, stages.decode_us) },
    { "convert_us", BENCH_NUMBER, offsetof(struct bench_cell, stages.convert_us) },
    { "slot_wait_us", BENCH_NUMBER, offsetof(struct bench_cell, stages.slot_wait_us) },
    { "first_epoch_read_us", BENCH_NUMBER, offsetof(struct bench_cell, first.stages.read_us) },
    { "first_epoch_decode_us", BENCH_NUMBER, offsetof(struct bench_cell, first.stages.decode_us) },
    { "first_epoch_convert_us", BENCH_NUMBER,
      offsetof(struct bench_cell, first.stages.convert_us) },
    { "first_epoch_slot_wait_us", BENCH_NUMBER,
      offsetof(struct bench_cell, first.stages.slot_wait_us) },
    CELL(BENCH_NUMBER, spread),
    CELL(BENCH_NUMBER, half_spread),
    CELL(BENCH_NUMBER, bytes_per_s),
    CELL(BENCH_NUMBER, first_batch_ms),
    CELL(BENCH_NUMBER, create_ms),
    CELL(BENCH_NUMBER, resume_ms),
    CELL(BENCH_NUMBER, cpu_s_per_million),
    CELL(BENCH_NUMBER, stall_share),
    CELL(BENCH_NUMBER, epoch_gap_ms),
    CELL(BENCH_COUNT64, rss_bytes),
    CELL(BENCH_COUNT64, rss_base_bytes),
    CELL(BENCH_COUNT64, announced_bytes),
    CELL(BENCH_COUNT64, slot_bytes),
    CELL(BENCH_COUNT64, locked_bytes),
    CELL(BENCH_COUNT64, device_bytes),
    CELL(BENCH_COUNT64, copy_bytes),
    CELL(BENCH_COUNT64, copy_waits),
    CELL(BENCH_TEXT, limit),
    CELL(BENCH_TEXT, verdict),
    CELL(BENCH_TEXT, ceiling),
    CELL(BENCH_NUMBER, ceiling_samples_per_s),
    CELL(BENCH_NUMBER, ceiling_share),
    CELL(BENCH_NUMBER, headspace_samples_per_s),
    CELL(BENCH_NUMBER, headspace_share),
    CELL(BENCH_NUMBER, cold_resident_share),
    CELL(BENCH_COUNT32, repeats),
    CELL(BENCH_COUNT64, verified),
    CELL(BENCH_BOOL, whole_epochs),
    CELL(BENCH_BOOL, skipped),
    CELL(BENCH_TEXT, error),
};
const size_t bench_cell_field_count = sizeof(bench_cell_fields) / sizeof(bench_cell_fields[0]);

const struct bench_field bench_ceiling_fields[] = {
    CEILING(BENCH_TEXT, name),
    CEILING(BENCH_COUNT32, threads),
    CEILING(BENCH_COUNT32, batch_size),
    CEILING(BENCH_TEXT, dtype),
    CEILING(BENCH_COUNT64, ring_bytes),
    CEILING(BENCH_COUNT32, read_depth),
    CEILING(BENCH_NUMBER, samples_per_s),
    CEILING(BENCH_NUMBER, samples_per_s_min),
    CEILING(BENCH_NUMBER, samples_per_s_max),
    CEILING(BENCH_NUMBER, bytes_per_s),
    CEILING(BENCH_COUNT32, repeats),
    CEILING(BENCH_TEXT, note),
};
const size_t bench_ceiling_field_count =
    sizeof(bench_ceiling_fields) / sizeof(bench_ceiling_fields[0]);

void bench_print_number(FILE *file, double value, const char *missing)
{
    if (isfinite(value))
        fprintf(file, "%.9g", value);
    else
        fputs(missing, file);
}

void bench_print_field(FILE *file, const struct bench_field *field, const char *base,
                       const char *missing)
{
    const void *at = base + field->offset;
    switch (field->kind) {
    case BENCH_TEXT: /* each form quotes text differently */
        assert(false);
        break;
    case BENCH_NUMBER:
        bench_print_number(file, *(const double *)at, missing);
        break;
    case BENCH_COUNT64:
        fprintf(file, "%" PRIu64, *(const uint64_t *)at);
        break;
    case BENCH_COUNT32:
        fprintf(file, "%" PRIu32, *(const uint32_t *)at);
        break;
    case BENCH_SIGNED32:
        fprintf(file, "%" PRId32, *(const int32_t *)at);
        break;
    case BENCH_BOOL:
        fputs(*(const bool *)at ? "true" : "false", file);
        break;
    }
}
