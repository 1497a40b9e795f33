/* access.c - each access of a kernel to memory: is it allowed, and does it race with an earlier
 * one?
 *
 * The compiler, asked for ThreadSanitizer, calls a function before each access; these are here
 * instead of in its runtime.
 */
#include <string.h>

#include "machine.h"

enum { ATOMIC = 1 << 15 }; /* in the thread of a stamp of a write */

static uint32_t thread_of(struct ct_stamp stamp)
{
    return stamp.thread & ~(unsigned)ATOMIC;
}

/* Returns true if an access before races with this one. Not if both are atomic. */
static bool races(struct ct_stamp before, const char *at, bool shared, bool atomic)
{
    const uint32_t first = shared ? ct.block_slice : ct.launch_slice;
    const bool was_atomic = (before.thread & ATOMIC) != 0;
    if (before.slice < first || (atomic && was_atomic))
        return false;
    if (before.slice >= ct.block_slice)
        return thread_of(before) != ct_self() && before.epoch == ct.epoch;
    before.thread = (uint16_t)thread_of(before);
    return !ct_ordered(before, at, was_atomic);
}

static void report_race(struct ct_stamp before, const char *at, const struct ct_region *region,
                        const char *what, const void *code)
{
    const bool in_block = before.slice >= ct.block_slice;
    ct_find(in_block ? CUDA_THREADS_RACE_IN_BLOCK : CUDA_THREADS_RACE_BETWEEN_BLOCKS, code,
            "%s byte %td of %s, which thread %u%s used", what, at - region->from, region->name,
            thread_of(before), in_block ? "" : " of another block");
}

/* Writes over another block's write, made since the last hook: they are races unless the byte stays
 * what it was. */
struct unsettled {
    const char *at;
    char before;
    struct ct_stamp stamp;
    const struct ct_region *region;
    const void *code;
};
enum { UNSETTLED_MAX = 16 };
static struct unsettled unsettled[UNSETTLED_MAX];
static size_t unsettled_count;

void ct_settle_writes(void)
{
    for (size_t i = 0; i < unsettled_count; i++) {
        const struct unsettled *u = &unsettled[i];
        if (*u->at != u->before)
            report_race(u->stamp, u->at, u->region, "another value over", u->code);
    }
    unsettled_count = 0;
}

/* Returns true if the race is one only if the value changes. */
static bool settle_later(struct ct_stamp before, const char *at, const struct ct_region *region,
                         const void *code)
{
    if (!ct.launch->equal_writes || before.slice >= ct.block_slice ||
        unsettled_count == UNSETTLED_MAX)
        return false;
    unsettled[unsettled_count++] = (struct unsettled){ at, *at, before, region, code };
    return true;
}

static struct ct_stamp stamp_now(bool atomic)
{
    return (struct ct_stamp){ .slice = ct.slice,
                              .thread = (uint16_t)(ct_self() | (atomic ? ATOMIC : 0)),
                              .epoch = (uint16_t)ct.epoch };
}

static void note_write(struct ct_cell *cell, const char *at, const struct ct_region *region,
                       bool atomic, const void *code)
{
    const struct ct_stamp *const before[] = { &cell->write, &cell->read, &cell->read2,
                                              &cell->elsewhere };
    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
        if (races(*before[i], at, region->shared, atomic) &&
            (i > 0 || !settle_later(*before[i], at, region, code))) {
            report_race(*before[i], at, region, i == 0 ? "write over" : "write of read", code);
            break;
        }
    cell->write = stamp_now(atomic);
}

static void note_read(struct ct_cell *cell, const char *at, const struct ct_region *region,
                      const void *code)
{
    const struct ct_stamp now = stamp_now(false);
    const uint32_t first = region->shared ? ct.block_slice : ct.launch_slice;
    if (region->scratch && cell->write.slice < first)
        ct_find(CUDA_THREADS_UNWRITTEN, code, "byte %td of %s", at - region->from, region->name);
    if (races(cell->write, at, region->shared, false))
        report_race(cell->write, at, region, "read of written", code);
    if (cell->read.slice < ct.block_slice) { /* the first read in this block */
        if (cell->read.slice >= ct.launch_slice)
            cell->elsewhere = cell->read;
        cell->read = now;
        cell->read2 = (struct ct_stamp){ 0 };
    } else if (cell->read.epoch != now.epoch) {
        cell->read = now;
        cell->read2 = (struct ct_stamp){ 0 };
    } else if (cell->read.thread == now.thread) {
        cell->read = now;
    } else {
        cell->read2 = now;
    }
}

/* The region of the whole access; else a finding, which ends the launch: NULL for the module's
 * constants. */
static struct ct_region *region_of(const char *at, size_t bytes, bool write, const void *code)
{
    struct ct_region *region = ct_region_at(at);
    if (region == NULL && !write && at >= ct.module->image && at < ct.module->image_end)
        return NULL;
    if (region == NULL)
        ct_find(CUDA_THREADS_OUTSIDE, code, "%s of %zu bytes at %p", write ? "write" : "read",
                bytes, (const void *)at);
    else if ((size_t)(region->to - at) < bytes)
        ct_find(CUDA_THREADS_OUTSIDE, code, "%s of %zu bytes, %td before the end of %s",
                write ? "write" : "read", bytes, region->to - at, region->name);
    else if (write && !region->writable)
        ct_find(CUDA_THREADS_CONSTANT, code, "byte %td of %s", at - region->from, region->name);
    else
        return region;
    ct_end_launch();
    return NULL;
}

/* align: of the type that is accessed, as far as it must hold. */
static void note(const char *at, size_t bytes, size_t align, bool write, bool atomic,
                 const void *code)
{
    const struct ct_region *region = region_of(at, bytes, write, code);
    if (region == NULL)
        return;
    if ((uintptr_t)at % align != 0) {
        ct_find(CUDA_THREADS_MISALIGNED, code, "%s of %zu bytes at byte %td of %s",
                write ? "write" : "read", bytes, at - region->from, region->name);
        ct_end_launch();
        return;
    }
    ct.report->accesses++;
    for (size_t i = 0; i < bytes; i++) {
        struct ct_cell *cell = &region->cells[at - region->from + (ptrdiff_t)i];
        if (write)
            note_write(cell, at + i, region, atomic, code);
        else
            note_read(cell, at + i, region, code);
    }
}

void ct_access_atomic(const char *at, size_t bytes, const void *code)
{
    note(at, bytes, bytes, true, true, code);
}

void cuda_atomic(void *at, size_t bytes)
{
    if (!ct_watched())
        return;
    ct_access_atomic(at, bytes, __builtin_return_address(0));
    ct_order_atomic(at, bytes);
}

/* ---- the compiler's hooks: not beside a sanitizer, whose runtime has them -------------------- */

#ifndef CT_UNWATCHED

static void access_by_kernel(const void *memory, size_t bytes, size_t align, bool write,
                             const void *code)
{
    const char *at = memory;
    if (ct.running == NULL || bytes == 0 || (size_t)(at - ct.running->stack) < CT_STACK_BYTES)
        return;
    ct_settle_writes();
    note(at, bytes, align, write, false, code);
    if (unsettled_count == 0 && ct.launch->interrupt_every != 0 &&
        ct_random() % ct.launch->interrupt_every == 0)
        ct_pause(CT_READY, NULL);
}

#define READS(memory, bytes, align)                                                                \
    access_by_kernel(memory, bytes, align, false, __builtin_return_address(0))
#define WRITES(memory, bytes, align)                                                               \
    access_by_kernel(memory, bytes, align, true, __builtin_return_address(0))

#define DEFINE_HOOK(name, arguments, body)                                                         \
    void __tsan_##name arguments;                                                                  \
    void __tsan_##name arguments                                                                   \
    {                                                                                              \
        body;                                                                                      \
    }
#define DEFINE_HOOKS_OF(prefix, bytes, align)                                                      \
    DEFINE_HOOK(prefix##read##bytes, (void *memory), READS(memory, bytes, align))                  \
    DEFINE_HOOK(prefix##write##bytes, (void *memory), WRITES(memory, bytes, align))                \
    DEFINE_HOOK(prefix##read_write##bytes, (void *memory), READS(memory, bytes, align);            \
                WRITES(memory, bytes, align))
#define DEFINE_HOOKS(bytes) DEFINE_HOOKS_OF(, bytes, bytes) DEFINE_HOOKS_OF(unaligned_, bytes, 1)
DEFINE_HOOKS(1)
DEFINE_HOOKS(2)
DEFINE_HOOKS(4)
DEFINE_HOOKS(8)
DEFINE_HOOKS(16)
DEFINE_HOOK(read_range, (void *memory, size_t bytes), READS(memory, bytes, 1))
DEFINE_HOOK(write_range, (void *memory, size_t bytes), WRITES(memory, bytes, 1))
DEFINE_HOOK(func_entry, (void *caller), (void)caller)
DEFINE_HOOK(func_exit, (void), (void)0)
DEFINE_HOOK(init, (void), (void)0)

#else

#define READS(memory, bytes, align)  (void)(memory)
#define WRITES(memory, bytes, align) (void)(memory)

#endif

/* What a module calls as memcpy() and so on (ld --wrap). */
void *__wrap_memcpy(void *to, const void *from, size_t bytes);
void *__wrap_memmove(void *to, const void *from, size_t bytes);
void *__wrap_memset(void *to, int value, size_t bytes);

void *__wrap_memcpy(void *to, const void *from, size_t bytes)
{
    READS(from, bytes, 1);
    WRITES(to, bytes, 1);
    return memcpy(to, from, bytes);
}

void *__wrap_memmove(void *to, const void *from, size_t bytes)
{
    READS(from, bytes, 1);
    WRITES(to, bytes, 1);
    return memmove(to, from, bytes);
}

void *__wrap_memset(void *to, int value, size_t bytes)
{
    WRITES(to, bytes, 1);
    return memset(to, value, bytes);
}
