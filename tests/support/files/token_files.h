/* token_files.h - token files of each layout: token i of a file is stk_token(seed, i), with
 * documents in between. */
#ifndef STK_TEST_TOKEN_FILES_H
#define STK_TEST_TOKEN_FILES_H

#include <stoker/stoker.h>

#include "support/files/dataset_files.h"

enum { STK_EOS = 7, STK_LLMC_BYTES = 1024 };

/* Documents of 1 to 9 tokens, each ended by STK_EOS; no other token is it. */
static inline uint32_t stk_token(uint32_t seed, uint64_t i)
{
    const uint64_t mixed = (i + 1) * 0x9E3779B97F4A7C15U ^ seed * 0xBF58476D1CE4E5B9U;
    const bool ends = mixed >> 61 == 0 || i % 9 == 8;
    return ends ? STK_EOS : 100 + (uint32_t)(i % 1000) + seed * 1000;
}

static inline void stk_put_tokens(struct stk_bytes *to, uint32_t seed, uint32_t count, size_t width)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t token = stk_token(seed, i);
        stk_put(to, &token, width); /* little-endian: the low bytes */
    }
}

/* A file of llm.c: GPT-2's with tokens of 2 bytes, Llama 3's with 4. */
static inline struct stk_bytes stk_llmc_file(uint32_t seed, uint32_t count, size_t width)
{
    struct stk_bytes file = { .size = STK_LLMC_BYTES };
    stk_store_le32(file.at, width == 2 ? 20240520 : 20240801);
    stk_store_le32(file.at + 4, width == 2 ? 1 : 7);
    stk_store_le32(file.at + 8, count);
    stk_put_tokens(&file, seed, count, width);
    return file;
}

static inline void stk_put_le64(struct stk_bytes *to, uint64_t value)
{
    stk_put(to, &value, sizeof(value));
}

/* The X.idx of sequences of tokens of 2 bytes. Document d has the sequences bounds[d] .. bounds[d +
 * 1] - 1. */
static inline struct stk_bytes stk_megatron_index_of(const uint32_t *lengths, uint64_t sequences,
                                                     const uint64_t *bounds, uint64_t documents)
{
    struct stk_bytes file = { 0 };
    uint64_t tokens = 0;
    stk_put(&file, "MMIDIDX\0", 9);
    stk_put_le64(&file, 1);
    stk_put(&file, &(uint8_t){ 8 }, 1);
    stk_put_le64(&file, sequences);
    stk_put_le64(&file, documents + 1);
    for (uint64_t i = 0; i < sequences; i++)
        stk_put(&file, &lengths[i], 4);
    for (uint64_t i = 0; i < sequences; i++) {
        stk_put_le64(&file, tokens * 2);
        tokens += lengths[i];
    }
    for (uint64_t i = 0; i <= documents; i++)
        stk_put_le64(&file, bounds[i]);
    return file;
}

/* The X.idx of `count` tokens of 2 bytes, whose documents the eos end: a sequence each. */
static inline struct stk_bytes stk_megatron_index(uint32_t seed, uint32_t count)
{
    uint32_t lengths[1024];
    uint64_t bounds[1025] = { 0 };
    uint64_t sequences = 0;
    for (uint32_t i = 0, begin = 0; i < count; i++)
        if (stk_token(seed, i) == STK_EOS || i + 1 == count) {
            lengths[sequences++] = i + 1 - begin;
            bounds[sequences] = sequences;
            begin = i + 1;
        }
    return stk_megatron_index_of(lengths, sequences, bounds, sequences);
}

/* X.bin and X.idx. */
static inline void stk_megatron_write(const struct stk_directory *directory, const char *name,
                                      uint32_t seed, uint32_t count)
{
    char path[128];
    struct stk_bytes bin = { 0 };
    const struct stk_bytes index = stk_megatron_index(seed, count);
    stk_put_tokens(&bin, seed, count, 2);
    (void)snprintf(path, sizeof(path), "%s.bin", name);
    stk_file_write(directory, path, bin.at, bin.size);
    (void)snprintf(path, sizeof(path), "%s.idx", name);
    stk_file_write(directory, path, index.at, index.size);
}

#endif
