/* shadow.c - the memory of a launch, and a cell of shadow memory for each of its bytes.
 *
 * Cells lie in large chunks, of which the system gives only the pages that are touched. Each launch
 * takes them from the first chunk on, and none is ever cleared: cells of earlier launches and
 * blocks hold smaller slices (machine.h).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "machine.h"

enum { REGIONS_MAX = 256, CHUNKS_MAX = REGIONS_MAX, CHUNK_CELLS = 1 << 22 };

struct chunk {
    struct ct_cell *cells;
    size_t count;
};

static struct ct_region regions[REGIONS_MAX]; /* [0]: shared memory */
static size_t region_count;
static struct ct_region *latest; /* the one that was hit last */
static struct chunk chunks[CHUNKS_MAX];
static size_t chunk_count;
static size_t current, used; /* the chunk that cells are taken from, and how many were */

static void add_chunk(size_t cells)
{
    const size_t count = cells > CHUNK_CELLS ? cells : CHUNK_CELLS;
    if (chunk_count == CHUNKS_MAX)
        abort();
    void *memory = mmap(NULL, count * sizeof(struct ct_cell), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        abort();
    chunks[chunk_count++] = (struct chunk){ memory, count };
}

static struct ct_cell *take_cells(size_t count)
{
    while (current < chunk_count && used + count > chunks[current].count) {
        current++;
        used = 0;
    }
    if (current == chunk_count)
        add_chunk(count);
    used += count;
    return chunks[current].cells + used - count;
}

static struct ct_region *add(const struct cuda_threads_memory *memory)
{
    if (region_count == REGIONS_MAX)
        abort();
    const char *from = memory->at;
    regions[region_count] = (struct ct_region){ .from = from,
                                                .to = from + memory->bytes,
                                                .name = memory->name,
                                                .writable = memory->writable,
                                                .scratch = memory->scratch,
                                                .cells = take_cells(memory->bytes) };
    return &regions[region_count++];
}

void ct_regions_begin(void)
{
    const struct cuda_threads_module *module = ct.module;
    region_count = 0;
    current = used = 0;
    latest =
        add(&(struct cuda_threads_memory){ .at = module->shared,
                                           .bytes = (size_t)(module->shared_end - module->shared),
                                           .name = "shared memory",
                                           .writable = true,
                                           .scratch = true });
    latest->shared = true;
    (void)add(&(struct cuda_threads_memory){ .at = (void *)(uintptr_t)ct.launch->arguments,
                                             .bytes = ct.launch->arguments_bytes,
                                             .name = "the arguments" });
    for (size_t i = 0; i < ct.launch->memory_count; i++)
        (void)add(&ct.launch->memory[i]);
}

void ct_regions_forget(void)
{
    for (size_t i = 0; i < chunk_count; i++)
        if (madvise(chunks[i].cells, chunks[i].count * sizeof(struct ct_cell), MADV_DONTNEED) != 0)
            abort();
}

struct ct_region *ct_region_at(const char *at)
{
    if (at >= latest->from && at < latest->to)
        return latest;
    for (size_t i = 0; i < region_count; i++)
        if (at >= regions[i].from && at < regions[i].to)
            return latest = &regions[i];
    struct cuda_threads_memory found;
    if (ct.launch->find == NULL || !ct.launch->find(at, &found))
        return NULL;
    return latest = add(&found);
}
