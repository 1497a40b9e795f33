/* shadow.c - the memory of a launch, and a cell of shadow memory for each of its bytes.
 *
 * Cells lie in one large mapping, of which the system gives only the pages that are touched. It is never cleared: cells of
 * earlier launches and blocks hold smaller slices (machine.h).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "machine.h"

#define ARENA_BYTES ((size_t)1 << 38)
enum { REGIONS_MAX = 256 };

static struct ct_region regions[REGIONS_MAX]; /* [0]: shared memory */
static size_t region_count;
static struct ct_region *latest; /* the one that was hit last */
static struct ct_cell *arena;
static size_t arena_used;

static struct ct_cell *take_cells(size_t bytes)
{
    if (arena == NULL)
        arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (arena == MAP_FAILED || arena_used + bytes > ARENA_BYTES / sizeof(*arena))
        abort();
    struct ct_cell *cells = arena + arena_used;
    arena_used += bytes;
    return cells;
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
    arena_used = 0;
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
    if (arena != NULL && madvise(arena, ARENA_BYTES, MADV_DONTNEED) != 0)
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
