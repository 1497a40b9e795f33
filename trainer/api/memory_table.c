/* memory_table.c - reports the memory of a trainer as numbers and as a table, and gives back what
 * can be spared. */
#include <stdio.h>
#include <string.h>

#include "trainer/api/trainer.h"
#include "trainer/model/digits.h"

void stoker_trainer_get_memory(const stoker_trainer *trainer, stoker_trainer_memory *out)
{
    if (out == NULL)
        return;
    *out = (stoker_trainer_memory){ 0 };
    if (trainer != NULL)
        *out = trainer->memory;
}

enum { TABLE_BYTES = 3072 };

static void add_line(char *table, const char *name, uint64_t bytes, const char *remark)
{
    const size_t length = strlen(table);
    (void)snprintf(table + length, TABLE_BYTES - length, "%-18s %18s%s\n", name,
                   stk_digits(bytes).text, remark);
}

static void describe_saving(char *remark, size_t bytes, const char *without, uint64_t more,
                            uint64_t taken)
{
    const size_t length = strlen(remark);
    if (taken < more)
        (void)snprintf(remark + length, bytes - length, "  (%s %s: %.1f times as much)", without,
                       stk_digits(more).text, (double)more / (double)taken);
}

/* What recomputation and 16 bits save; "" = nothing. */
static void describe_savings(char *remark, size_t bytes, const stoker_trainer_memory *memory)
{
    remark[0] = '\0';
    describe_saving(remark, bytes, "without recomputation", memory->activations_plain,
                    memory->activations);
    if (memory->precision != STOKER_DTYPE_FLOAT32)
        describe_saving(remark, bytes, "in float32", memory->activations_float32,
                        memory->activations);
}

static void add_choice(char *table, const stoker_trainer_memory *memory)
{
    char segments[48] = "";
    if (memory->checkpoint_segments > 1)
        (void)snprintf(segments, sizeof(segments), ", %" PRIu32 " checkpoint segments",
                       memory->checkpoint_segments);
    const size_t length = strlen(table);
    (void)snprintf(
        table + length, TABLE_BYTES - length, "batch size %" PRIu32 "%s%s%s%s\n",
        memory->batch_size, segments, memory->recompute_batch_norm ? ", BatchNorm recomputed" : "",
        memory->precision != STOKER_DTYPE_FLOAT32 ? ", activations in " : "",
        memory->precision != STOKER_DTYPE_FLOAT32 ? stoker_dtype_name(memory->precision) : "");
}

/* The table of one stage. */
static void add_stage(char *table, const stoker_trainer_memory *memory)
{
    char remark[192];
    describe_savings(remark, sizeof(remark), memory);
    const size_t length = strlen(table);
    (void)snprintf(table + length, TABLE_BYTES - length, "%-18s %18s\n", "memory", "bytes");
    add_line(table, "parameters", memory->parameters, "");
    if (memory->stored_parameters > 0)
        add_line(table, "16-bit parameters", memory->stored_parameters, "");
    add_line(table, "gradients", memory->gradients, "");
    add_line(table, "optimizer state", memory->optimizer_state, "");
    add_line(table, "statistics", memory->statistics, "");
    add_line(table, "activations", memory->activations, remark);
    add_line(table, "workspace", memory->workspace, "");
    add_line(table, "peak", memory->peak, "");
    add_choice(table, memory);
}

static void add_blank_line(char *table)
{
    const size_t length = strlen(table);
    (void)snprintf(table + length, TABLE_BYTES - length, "\n");
}

static void add_heading(char *table, const struct stk_stage *stage)
{
    const size_t length = strlen(table);
    const uint32_t before = stage->model->layers_before;
    char name[STK_STAGE_NAME_BYTES];
    stk_stage_name(stage, name);
    (void)snprintf(table + length, TABLE_BYTES - length, "%s, layers %u to %u\n", name, before + 1,
                   before + stage->model->layer_count - 2);
}

/* Not memory, but what the two share. */
static void add_crossing(char *table, const char *crossing)
{
    const size_t length = strlen(table);
    if (crossing != NULL)
        (void)snprintf(table + length, TABLE_BYTES - length, "values cross %s\n", crossing);
}

size_t stoker_trainer_memory_table(const stoker_trainer *trainer, char *text, size_t bytes)
{
    char table[TABLE_BYTES] = "";
    if (text != NULL && bytes > 0)
        text[0] = '\0';
    if (trainer == NULL)
        return 0;
    const bool two = trainer->stage_count > 1;
    for (uint32_t s = 0; s < trainer->stage_count; s++) {
        if (two)
            add_heading(table, trainer->stage[s]);
        add_stage(table, &trainer->stage[s]->memory);
        if (two)
            add_blank_line(table);
    }
    if (two) {
        add_line(table, "peak of both", trainer->memory.peak, "");
        add_crossing(table, trainer->runner->crossing);
    }
    const size_t length = strlen(table);
    if (text != NULL && bytes > 0) {
        const size_t copied = length < bytes ? length : bytes - 1;
        memcpy(text, table, copied);
        text[copied] = '\0';
    }
    return length;
}

/* Give back what carries no state between steps: activations, gradients between two groups,
 * workspaces, recordings. Weights, state, averages, statistics and unread losses stay. It is
 * allocated again before the next step, evaluation or load. */
uint64_t stoker_trainer_trim(stoker_trainer *trainer)
{
    uint64_t bytes = 0;
    if (trainer == NULL || stk_trainer_drain(trainer, &trainer->error) != STOKER_OK)
        return 0;
    for (uint32_t s = 0; s < trainer->stage_count; s++)
        bytes += stk_stage_trim(trainer->stage[s], trainer->progress.group_passes == 0 &&
                                                       !trainer->peers->holds_arrays);
    return bytes;
}
