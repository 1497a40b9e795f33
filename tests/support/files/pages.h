/* pages.h - memory that ends right before a page that nobody may touch, with a pattern in front. */
#ifndef TESTS_PAGES_H
#define TESTS_PAGES_H

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES_GUARD_BYTES = 64, PAGES_GUARD = 0xa5 };

struct pages {
    unsigned char *base, *end;
    size_t mapped_bytes, usable_bytes;
};

static inline struct pages pages_open(size_t usable_bytes)
{
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    usable_bytes = (usable_bytes + page_bytes - 1) / page_bytes * page_bytes;
    const size_t mapped_bytes = usable_bytes + page_bytes;
    unsigned char *base =
        mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(base, MAP_FAILED);
    cr_assert_eq(mprotect(base + usable_bytes, page_bytes, PROT_NONE), 0);
    return (struct pages){ base, base + usable_bytes, mapped_bytes, usable_bytes };
}

static inline void pages_close(struct pages *pages)
{
    munmap(pages->base, pages->mapped_bytes);
}

/* The last `bytes` bytes, with a guard pattern in front of them. */
static inline unsigned char *pages_take(const struct pages *pages, size_t bytes)
{
    cr_assert_leq(bytes + PAGES_GUARD_BYTES, pages->usable_bytes);
    memset(pages->end - bytes - PAGES_GUARD_BYTES, PAGES_GUARD, bytes + PAGES_GUARD_BYTES);
    return pages->end - bytes;
}

static inline void pages_check(const unsigned char *taken)
{
    for (size_t i = 1; i <= PAGES_GUARD_BYTES; i++)
        cr_assert_eq(taken[-(ptrdiff_t)i], PAGES_GUARD, "byte %zu in front was written", i);
}

/* Random bytes, the same for the same seed. */
static inline void pages_fill(unsigned char *out, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i++) {
        seed = seed * 6364136223846793005U + 1442695040888963407U;
        out[i] = (unsigned char)(seed >> 56);
    }
}

#endif
