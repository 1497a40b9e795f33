/* main.c - tokens per second of one side, for race.py, which runs the sides in turn.
 *
 *   reads      pread of blocks of B x T + 1 tokens, one after the other, and nothing else: the ceiling
 *   llmc       the rule of llm.c's loader: fread of the same blocks, inputs and targets widened to int32
 *   ordered    Stoker: the same batches in the same order
 *   shuffled   Stoker: the same windows, shuffled
 *   mapped     as ordered, with map=1
 *   stored     Stoker: one field of T tokens, uint16 as stored, in order
 *
 *   direct     bare ring, past the page cache, the file once: the disk's ceiling, for cold
 *
 * With "cold" the pages of the file are dropped, and the rest of the file behind the batches that were checked is read once, whatever
 * SECONDS says. The third figure is then the share of the pages that stayed.
 *
 * Stoker works in the caller's thread: one core for all sides. Before anything is timed, the first batches are compared with
 * the file, token by token.
 *
 * usage: tokensbench FILE SIDE SECONDS B T [cold]       FILE: GPT-2's tokens as llm.c writes them
 *
 * Prints "TOKENS_PER_SECOND TOKENS_PER_SECOND_OF_CPU", which differ on a busy machine. Exit status: 0 measured, 1 a side failed or delivered wrong tokens, 2 usage.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <stoker/stoker.h>

#include "bench/material/evict.h"
#include "bench/tokens/direct.h"

enum { HEADER_BYTES = 1024, CHECKED_BATCHES = 64, SPEC_BYTES = 1024 };

struct side {
    const char *name;
    size_t rows, length; /* B, T */
    size_t block;        /* tokens that a step reads */
    uint64_t steps, step;
    uint64_t bytes; /* length of FILE */
    bool cold;
    int fd;
    FILE *file;
    stoker_dataset *dataset;
    stoker_loader *loader;
    uint16_t *tokens;          /* [block] */
    uint16_t *wanted;          /* [length + 1] */
    int32_t *inputs, *targets; /* [rows x length] */
    const char *error;
};

static double now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Read tokens from the file, which is warm. */
static bool read_tokens(const struct side *side, uint64_t first, uint16_t *to, size_t count)
{
    const size_t bytes = count * sizeof(*to);
    return pread(side->fd, to, bytes, (off_t)(HEADER_BYTES + first * sizeof(*to))) ==
           (ssize_t)bytes;
}

/* ---- the sides that are not ours ------------------------------------------------ */

static uint64_t next_step(struct side *side)
{
    const uint64_t step = side->step;
    side->step = step + 1 < side->steps ? step + 1 : 0;
    return step;
}

static bool step_reads(struct side *side)
{
    return read_tokens(side, next_step(side) * (side->block - 1), side->tokens, side->block);
}

/* As llmc/dataloader.h: seek to header + step x B x T tokens, read B x T + 1 of them, widen both sides. */
static bool step_llmc(struct side *side)
{
    const uint64_t first = next_step(side) * (side->block - 1);
    if (fseek(side->file, (long)(HEADER_BYTES + first * sizeof(uint16_t)), SEEK_SET) != 0 ||
        fread(side->tokens, sizeof(uint16_t), side->block, side->file) != side->block)
        return false;
    for (size_t i = 0; i + 1 < side->block; i++) {
        side->inputs[i] = (int)side->tokens[i];
        side->targets[i] = (int)side->tokens[i + 1];
    }
    return true;
}

static bool check_llmc(struct side *side)
{
    for (uint64_t step = 0; step < CHECKED_BATCHES; step++) {
        const uint64_t first = side->step * (side->block - 1);
        if (!step_llmc(side))
            return false;
        for (size_t i = 0; i + 1 < side->block; i++) {
            uint16_t pair[2];
            if (i % side->length == 0 && !read_tokens(side, first + i, pair, 2))
                return false;
            if (i % side->length == 0 &&
                (side->inputs[i] != pair[0] || side->targets[i] != pair[1]))
                return false;
        }
    }
    return true;
}

/* ---- ours ----------------------------------------------------------------------- */

static int next_batch(struct side *side, stoker_batch *batch)
{
    int rc = stoker_loader_next(side->loader, batch, -1);
    while (rc == STOKER_EPOCH_END)
        rc = stoker_loader_next(side->loader, batch, -1);
    if (rc < 0)
        side->error = stoker_loader_error(side->loader)->message;
    return rc;
}

static bool step_stoker(struct side *side)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    if (next_batch(side, &batch) < 0)
        return false;
    stoker_batch_release(&batch);
    return true;
}

/* One window against the file. */
static bool is_right(const struct side *side, const stoker_batch *batch, uint32_t row)
{
    const size_t at = row * side->length;
    if (!read_tokens(side, batch->ids[row] * side->length, side->wanted, side->length + 1))
        return false;
    if (batch->field_count == 1)
        return memcmp((const uint16_t *)batch->fields[0].values.data + at, side->wanted,
                      side->length * sizeof(uint16_t)) == 0;
    const int32_t *inputs = batch->fields[0].values.data, *targets = batch->fields[1].values.data;
    for (size_t i = 0; i < side->length; i++)
        if (inputs[at + i] != side->wanted[i] || targets[at + i] != side->wanted[i + 1])
            return false;
    return true;
}

static bool check_stoker(struct side *side)
{
    const bool ordered = strcmp(side->name, "shuffled") != 0;
    uint64_t next = 0;
    for (uint32_t number = 0; number < CHECKED_BATCHES; number++) {
        stoker_batch batch = STOKER_BATCH_INIT;
        if (next_batch(side, &batch) < 0)
            return false;
        for (uint32_t row = 0; row < batch.count; row++, next++)
            if ((ordered && batch.ids[row] != next) || !is_right(side, &batch, row))
                return false;
        stoker_batch_release(&batch);
    }
    return true;
}

static int open_loader(struct side *side, const char *path, stoker_error *error)
{
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    char spec[SPEC_BYTES];
    (void)snprintf(spec, sizeof(spec), "tokens:%s?length=%zu%s%s", path, side->length,
                   strcmp(side->name, "stored") == 0 ? "" : "&fields=inputs,targets&dtype=int32",
                   strcmp(side->name, "mapped") == 0 ? "&map=1" : "");
    const int rc = stoker_dataset_open(&side->dataset, spec, NULL, error);
    if (rc < 0)
        return rc;
    options.batch_size = (uint32_t)side->rows;
    options.shuffle = strcmp(side->name, "shuffled") == 0;
    options.last = STOKER_LAST_DROP;
    options.num_workers = 0;
    options.cache = STOKER_CACHE_NONE;
    options.device = STOKER_DEVICE_CPU;
    options.pin_memory = STOKER_SWITCH_OFF;
    return stoker_loader_create(&side->loader, side->dataset, &options, error);
}

/* ---- the run -------------------------------------------------------------------- */

static int complain(const char *what, const char *why)
{
    fprintf(stderr, "tokensbench: %s%s%s\n", what, why == NULL ? "" : ": ", why == NULL ? "" : why);
    return 1;
}

static bool open_files(struct side *side, const char *path)
{
    const off_t bytes =
        (side->fd = open(path, O_RDONLY | O_CLOEXEC)) < 0 ? 0 : lseek(side->fd, 0, SEEK_END);
    side->file = fopen(path, "rb");
    side->block = side->rows * side->length + 1;
    side->tokens = calloc(side->block, sizeof(side->tokens[0]));
    side->wanted = calloc(side->length + 1, sizeof(side->wanted[0]));
    side->inputs = calloc(side->block, sizeof(side->inputs[0]));
    side->targets = calloc(side->block, sizeof(side->targets[0]));
    side->bytes = bytes > 0 ? (uint64_t)bytes : 0;
    if (bytes > HEADER_BYTES)
        side->steps = (uint64_t)(bytes - HEADER_BYTES - 2) / (2 * (side->block - 1));
    return side->steps >= CHECKED_BATCHES && side->file != NULL && side->tokens != NULL &&
           side->wanted != NULL && side->inputs != NULL && side->targets != NULL;
}

/* Prints the tokens per second since the two clocks were read. */
static void print_rate(uint64_t tokens, double begin, double cpu_begin)
{
    const double elapsed = now(CLOCK_MONOTONIC) - begin;
    const double cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin;
    printf("%.0f %.0f", (double)tokens / elapsed, (double)tokens / cpu);
}

static int measure(struct side *side, bool (*step)(struct side *side), double seconds)
{
    const double begin = now(CLOCK_MONOTONIC), cpu_begin = now(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t steps = 0;
    while (now(CLOCK_MONOTONIC) - begin < seconds)
        for (int i = 0; i < 16; i++, steps++)
            if (!step(side))
                return complain(side->name, side->error);
    print_rate(steps * (side->block - 1), begin, cpu_begin);
    printf("\n");
    return 0;
}

/* The rest of the file, once. */
static int measure_cold(struct side *side, bool (*step)(struct side *side))
{
    double stayed = 0;
    const uint64_t steps = side->steps - CHECKED_BATCHES;
    if (bench_evict_file(side->fd, side->bytes, &stayed) != STOKER_OK)
        return complain(side->name, "its pages cannot be dropped");
    const double begin = now(CLOCK_MONOTONIC), cpu_begin = now(CLOCK_PROCESS_CPUTIME_ID);
    for (uint64_t i = 0; i < steps; i++)
        if (!step(side))
            return complain(side->name, side->error);
    print_rate(steps * (side->block - 1), begin, cpu_begin);
    printf(" %.3f\n", stayed);
    return 0;
}

static int measure_direct(const struct side *side, const char *path)
{
    uint64_t bytes = 0;
    const double begin = now(CLOCK_MONOTONIC), cpu_begin = now(CLOCK_PROCESS_CPUTIME_ID);
    const int rc = tokens_direct_read(path, &bytes);
    if (rc < 0)
        return complain(side->name, stoker_strerror(rc));
    print_rate(bytes / sizeof(uint16_t), begin, cpu_begin);
    printf(" 0\n");
    return 0;
}

static int measure_side(struct side *side, bool (*step)(struct side *side), double seconds)
{
    return side->cold ? measure_cold(side, step) : measure(side, step, seconds);
}

static void close_all(struct side *side)
{
    stoker_loader_destroy(&side->loader);
    stoker_dataset_close(&side->dataset);
    if (side->file != NULL)
        fclose(side->file);
    if (side->fd >= 0)
        close(side->fd);
    free(side->tokens);
    free(side->wanted);
    free(side->inputs);
    free(side->targets);
}

static int run(struct side *side, const char *path, double seconds)
{
    stoker_error error = { 0 };
    if (!open_files(side, path))
        return complain(path, "cannot be opened, or has fewer than 64 batches");
    if (strcmp(side->name, "reads") == 0)
        return measure_side(side, step_reads, seconds);
    if (strcmp(side->name, "direct") == 0)
        return measure_direct(side, path);
    if (strcmp(side->name, "llmc") == 0)
        return check_llmc(side) ? measure_side(side, step_llmc, seconds)
                                : complain(side->name, "wrong tokens");
    if (open_loader(side, path, &error) < 0)
        return complain(side->name, error.message);
    return check_stoker(side)
               ? measure_side(side, step_stoker, seconds)
               : complain(side->name, side->error == NULL ? "wrong tokens" : side->error);
}

int main(int argc, char **argv)
{
    static const char *const names[] = { "reads",  "llmc",   "ordered", "shuffled",
                                         "stored", "mapped", "direct" };
    struct side side = { .fd = -1, .cold = argc == 7 && strcmp(argv[6], "cold") == 0 };
    for (size_t i = 0; (argc == 6 || side.cold) && i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(argv[2], names[i]) == 0)
            side.name = names[i];
    if (side.name == NULL) {
        fprintf(
            stderr,
            "usage: tokensbench FILE reads|llmc|ordered|shuffled|stored|mapped|direct SECONDS B T "
            "[cold]\n");
        return 2;
    }
    side.rows = strtoul(argv[4], NULL, 10);
    side.length = strtoul(argv[5], NULL, 10);
    if (side.rows < 1 || side.length < 1 || side.rows > 4096 || side.length > 1 << 20)
        return complain("B is 1..4096, T is 1..1048576", NULL);
    const int rc = run(&side, argv[1], strtod(argv[3], NULL));
    close_all(&side);
    return rc;
}
