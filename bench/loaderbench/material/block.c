/* block.c - see block.h. */
#include "bench/loaderbench/material/block.h"

#include <assert.h>
#include <stdint.h>
#include <stoker/error.h>
#include <string.h>
#include <sys/mman.h>

static const size_t huge_bytes = (size_t)2 << 20;

int bench_block_create(struct bench_block *out, size_t size)
{
    assert(size >= 1);
    if (size > SIZE_MAX - huge_bytes)
        return STOKER_ENOMEM;
    size_t mapped = (size + huge_bytes - 1) & ~(huge_bytes - 1);
    void *bytes = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED)
        return STOKER_ENOMEM;
    (void)madvise(bytes, mapped, MADV_HUGEPAGE); /* slower without */
    memset(bytes, 0, size);
    *out = (struct bench_block){ .bytes = bytes, .size = size, .mapped = mapped };
    return STOKER_OK;
}

void bench_block_destroy(struct bench_block *block)
{
    if (block->bytes != NULL)
        munmap(block->bytes, block->mapped);
    *block = (struct bench_block){ 0 };
}
