/* memory.c - device memory that the host cannot access, and page-locked ranges. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "state.h"

struct range {
    struct range *next;
    const char *base; /* the program's address */
    size_t bytes;
    char *view; /* device memory: where it is mapped; NULL = a page-locked range */
    int device; /* its device, or the current one when it was page-locked */
    int users;  /* copies under way */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *ranges; /* guarded by lock */
static _Atomic uint64_t used[STANDIN_DEVICES_MAX];

uint64_t standin_memory_used(int device)
{
    return atomic_load(&used[device]);
}

/* The link to the range that contains an address. Under the lock. */
static struct range **find(const void *memory, bool device)
{
    const char *at = memory;
    struct range **link = &ranges;
    for (; *link != NULL; link = &(*link)->next)
        if (((*link)->view != NULL) == device && at >= (*link)->base &&
            at < (*link)->base + (*link)->bytes)
            break;
    return link;
}

static void add(const struct range *range)
{
    struct range *kept = malloc(sizeof(*kept));
    if (kept == NULL)
        abort();
    *kept = *range;
    pthread_mutex_lock(&lock);
    kept->next = ranges;
    ranges = kept;
    pthread_mutex_unlock(&lock);
    atomic_fetch_add(&standin.live, 1);
}

/* Remove the range that starts at base from the list; false: there is none. */
static bool take(const void *base, bool device, struct range *out)
{
    pthread_mutex_lock(&lock);
    struct range **link = find(base, device);
    struct range *range = *link;
    const bool found = range != NULL && range->base == base;
    if (found) {
        *link = range->next;
        *out = *range;
        free(range);
    }
    pthread_mutex_unlock(&lock);
    if (found) {
        atomic_fetch_sub(&standin.live, 1);
        if (out->device != standin_current())
            atomic_fetch_add(&standin.strays, 1U);
        if (out->users > 0 && atomic_load(&standin.lost) == 0)
            atomic_fetch_add(&standin.violations, 1U);
    }
    return found;
}

/* An address at which nothing is mapped, used once. Kernels' arguments are searched for addresses
 * word by word (source.c), and a word may be a number with stale bytes behind it in padding. So the
 * upper half is that of no host memory, which stacks are full of, and bit 31 is set, which it is in
 * no number below 2^31 and in no float above 0. */
static char *reserve(size_t bytes)
{
    static _Atomic uint64_t upper = 1 << 23;
    const uint64_t own = atomic_fetch_add(&upper, 1 + (bytes >> 32));
    return (void *)(uintptr_t)(own << 32 | UINT64_C(1) << 31);
}

cudaError_t standin_memory_alloc(void **out, size_t bytes)
{
    const int device = standin_current();
    if (bytes > atomic_load(&standin.memory_bytes) - standin_memory_used(device))
        return cudaErrorMemoryAllocation;
    void *const view = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (view == MAP_FAILED)
        abort();
    char *const base = reserve(bytes);
    add(&(struct range){ .base = base, .bytes = bytes, .view = view, .device = device });
    atomic_fetch_add(&used[device], bytes);
    *out = base;
    return cudaSuccess;
}

cudaError_t standin_memory_free(void *memory)
{
    struct range range;
    if (memory == NULL)
        return cudaSuccess;
    if (!take(memory, true, &range))
        return cudaErrorInvalidValue;
    atomic_fetch_sub(&used[range.device], range.bytes);
    munmap(range.view, range.bytes);
    return cudaSuccess;
}

cudaError_t standin_pin(void *base, size_t bytes)
{
    pthread_mutex_lock(&lock);
    const bool twice = *find(base, false) != NULL;
    pthread_mutex_unlock(&lock);
    if (twice)
        return cudaErrorHostMemoryAlreadyRegistered;
    add(&(struct range){ .base = base, .bytes = bytes, .device = standin_current() });
    return cudaSuccess;
}

cudaError_t standin_unpin(void *base)
{
    struct range range;
    return take(base, false, &range) ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
}

bool standin_on_device(const void *memory, size_t bytes, bool *inside)
{
    pthread_mutex_lock(&lock);
    const struct range *range = *find(memory, true);
    *inside = range != NULL && (const char *)memory + bytes <= range->base + range->bytes;
    pthread_mutex_unlock(&lock);
    return range != NULL;
}

/* Device of the range that contains it; -1: there is none. */
static int device_of(const void *memory, bool device)
{
    pthread_mutex_lock(&lock);
    const struct range *range = *find(memory, device);
    const int found = range == NULL ? -1 : range->device;
    pthread_mutex_unlock(&lock);
    return found;
}

int standin_memory_device(const void *memory)
{
    return device_of(memory, true);
}

int standin_cuda_pinned_with(const void *memory)
{
    return device_of(memory, false);
}

bool standin_pin_use(const void *memory, size_t bytes, int change)
{
    pthread_mutex_lock(&lock);
    struct range *range = *find(memory, false);
    const bool pinned = range != NULL && (const char *)memory + bytes <= range->base + range->bytes;
    if (pinned)
        range->users += change;
    pthread_mutex_unlock(&lock);
    return pinned;
}

bool standin_view_range(const void *address, void **view, size_t *bytes)
{
    const char *at = address;
    pthread_mutex_lock(&lock);
    const struct range *range = ranges;
    while (range != NULL &&
           (range->view == NULL || at < range->view || at >= range->view + range->bytes))
        range = range->next;
    if (range != NULL) {
        *view = range->view;
        *bytes = range->bytes;
    }
    pthread_mutex_unlock(&lock);
    return range != NULL;
}

void *standin_cuda_view_range(const void *device_memory, size_t bytes)
{
    char *view = NULL;
    pthread_mutex_lock(&lock);
    const struct range *range = *find(device_memory, true);
    if (range != NULL && (const char *)device_memory + bytes <= range->base + range->bytes)
        view = range->view + ((const char *)device_memory - range->base);
    pthread_mutex_unlock(&lock);
    return view;
}

void *standin_cuda_view(const void *device_memory)
{
    return standin_cuda_view_range(device_memory, 0);
}
