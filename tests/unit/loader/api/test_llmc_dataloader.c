/* test_llmc_dataloader.c - examples/llmc_dataloader.c: the batches that llm.c's own loader
 * makes, by its rule.
 *
 * Its rule, for batch s of rank r in a shard: B * T + 1 tokens from (s * ranks + r) * B * T on; a
 * shard has as many such batches as its tokens but one are enough for, and shards come one after
 * the other. All tokens differ, so the answer is known.
 */
#include "examples/llmc_dataloader.h"
#include "support/files/dataset_files.h"
#include "support/files/token_files.h"
#include "support/leaks.h"

enum { B = 2, T = 4, RANKS = 2, SHARDS = 2, STEPS = 12 + 8, TOKENS = B * T };

static const int shard_tokens[SHARDS] = { 200, 137 }; /* 199 = 12 x 16 + 7, 136 = 8 x 16 + 8 */

static int token(int shard, size_t i)
{
    return shard * 1000 + (int)i;
}

static struct stk_directory directory;
static char pattern[512];

static void write_shards(void)
{
    directory = stk_directory_make();
    for (int shard = 0; shard < SHARDS; shard++) {
        struct stk_bytes file = stk_llmc_file(0, 0, 2);
        char name[16];
        stk_store_le32(file.at + 8, (uint32_t)shard_tokens[shard]);
        for (int i = 0; i < shard_tokens[shard]; i++)
            stk_put(&file, &(uint16_t){ (uint16_t)token(shard, (size_t)i) }, 2);
        (void)snprintf(name, sizeof(name), "part_%d.bin", shard);
        stk_file_write(&directory, name, file.at, file.size);
    }
    (void)snprintf(pattern, sizeof(pattern), "%s/part_*.bin", directory.path);
}

static void remove_shards(void)
{
    stk_directory_remove(&directory);
}

TestSuite(llmc_dataloader, .init = write_shards, .fini = remove_shards);

/* The batch of a rank at a step of the epoch, by llm.c's rule. */
static void expect_batch(const DataLoader *loader, size_t rank, size_t step)
{
    const int shard = step < 12 ? 0 : 1;
    const size_t begin = ((step - (shard == 0 ? 0 : 12)) * RANKS + rank) * TOKENS;
    for (size_t i = 0; i < TOKENS; i++) {
        cr_assert_eq(loader->inputs[i], token(shard, begin + i), "step %zu, rank %zu", step, rank);
        cr_assert_eq(loader->targets[i], token(shard, begin + i + 1));
    }
}

CleanTest(llmc_dataloader, gives_the_batches_of_llmc_to_each_rank)
{
    for (size_t rank = 0; rank < RANKS; rank++) {
        DataLoader loader;
        dataloader_init(&loader, pattern, B, T, (int)rank, RANKS, 0);
        cr_assert_eq(loader.shard_num_samples, STEPS);
        cr_assert_eq(loader.num_tokens, STEPS * TOKENS * RANKS);
        for (size_t step = 0; step < 2 * STEPS; step++) {
            dataloader_next_batch(&loader);
            expect_batch(&loader, rank, step % STEPS);
            cr_assert_eq(loader.current_shard_idx, step / STEPS);
            cr_assert_eq(loader.current_sample_idx, step % STEPS + 1);
        }
        dataloader_reset(&loader);
        dataloader_next_batch(&loader);
        expect_batch(&loader, rank, 0);
        dataloader_free(&loader);
    }
}

CleanTest(llmc_dataloader, resumes_at_every_step)
{
    for (size_t step = 0; step <= STEPS; step++) {
        DataLoader loader;
        dataloader_init(&loader, pattern, B, T, 1, RANKS, 0);
        dataloader_next_batch(&loader);
        dataloader_resume(&loader, 3, step);
        dataloader_next_batch(&loader);
        expect_batch(&loader, 1, step % STEPS);
        cr_assert_eq(loader.current_shard_idx, step < STEPS ? 3 : 4);
        cr_assert_eq(loader.current_sample_idx, step % STEPS + 1);
        dataloader_free(&loader);
    }
}

/* The next batches of all ranks, from an epoch and a step on: seen[row] counts how often each row
 * of the epoch came. */
static void count_rows(size_t ranks, size_t epoch, size_t from, size_t to, unsigned *seen,
                       int *first)
{
    const size_t rows = RANKS * B / ranks; /* that each rank takes */
    for (size_t rank = 0; rank < ranks; rank++) {
        DataLoader loader;
        dataloader_init(&loader, pattern, rows, T, (int)rank, (int)ranks, 1);
        dataloader_resume(&loader, epoch, from);
        for (size_t step = from; step < to; step++) {
            dataloader_next_batch(&loader);
            for (size_t row = 0; row < rows; row++) {
                const int *inputs = loader.inputs + row * T;
                const int shard = inputs[0] / 1000;
                cr_assert_eq(inputs[0] % 1000 % T, 0);
                for (size_t i = 0; i < T; i++) {
                    cr_assert_eq(inputs[i], inputs[0] + (int)i);
                    cr_assert_eq(loader.targets[row * T + i], inputs[i] + 1);
                }
                seen[shard * 48 + inputs[0] % 1000 / T]++;
                first[(step * ranks + rank) * rows + row] = inputs[0];
            }
        }
        dataloader_free(&loader);
    }
}

/* Shuffled: each row once an epoch, another order in the next one, and the same one after a stop,
 * on other numbers of ranks. */
CleanTest(llmc_dataloader, shuffles_rows_and_resumes_the_same_order)
{
    enum { ROWS = STEPS * RANKS * B };
    int orders[3][ROWS] = { { 0 } };
    unsigned seen[3][ROWS] = { { 0 } };
    count_rows(2, 0, 0, STEPS, seen[0], orders[0]);
    count_rows(2, 1, 0, STEPS, seen[1], orders[1]);
    count_rows(2, 1, 0, 7, seen[2], orders[2]);
    count_rows(4, 1, 7, 13, seen[2], orders[2]);
    count_rows(1, 1, 13, STEPS, seen[2], orders[2]);
    for (size_t epoch = 0; epoch < 3; epoch++)
        for (size_t row = 0; row < ROWS; row++)
            cr_assert_eq(seen[epoch][row], 1);
    cr_assert_arr_eq(orders[2], orders[1], sizeof(orders[1]));
    cr_assert_arr_neq(orders[0], orders[1], sizeof(orders[1]));
}

/* As in llm.c, what is wrong with the files ends the program. */
Test(llmc_dataloader_ends, without_files, .exit_code = EXIT_FAILURE)
{
    DataLoader loader;
    dataloader_init(&loader, "/nowhere/part_*.bin", B, T, 0, 1, 0);
}
