/* kernel_case.h - one launch of a kernel with memory of its own, run twice, and how the two
 * compare.
 *
 *   arguments: a struct with holes ──▶ a copy for each side ──▶ kernel             ──┐
 *   buffers: what fills the holes ───▶ a copy for each side ──▶ its source in order ─┴─▶ the same bits, or nearly
 *
 * Buffers have exactly the bytes that the kernel may use. The kernel runs on fibers
 * (kernel_case_on_threads.h) or on a GPU (tests/gpu); its source in order is kernel_source.h.
 * tests/unit/kernels/source compares that with the CPU's code. A plain program defines
 * STK_TEST_PLAIN first.
 */
#ifndef STK_TEST_KERNEL_CASE_H
#define STK_TEST_KERNEL_CASE_H

#ifdef STK_TEST_PLAIN
#include "support/plain_assert.h"
#else
#include <criterion/criterion.h>
#endif
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/float16.h"
#include "kernels/train/train.h"
#include "kernels/transform/gpu/launch.h"
#include "loader/base/rng.h"
#include "support/gpu/kernel_source.h"

enum kernel_number { NUMBER_F32, NUMBER_F16, NUMBER_BF16, NUMBER_F64, NUMBER_BYTE };
enum kernel_role {
    ROLE_IN,
    ROLE_OUT, /* must not be read before it is written */
    ROLE_IN_OUT,
    ROLE_SCRATCH /* the same, and not compared */
};

struct kernel_buffer {
    size_t hole; /* offset of its pointer in the arguments */
    const char *name;
    enum kernel_number number;
    enum kernel_role role;
    size_t count;
    size_t made; /* how many are filled in: all, or, if there are too many, none (zeros) */
    int alias;   /* the buffer whose memory it is; -1 = its own */
    /* Largest difference, relative to the largest number of the buffer; 0 = the same bits. */
    double loose;
    /* Of bytes: where a double lies that may differ by `loose`, relative to itself. */
    size_t loose_at;
    unsigned char *begin, *by_kernel, *in_order;
};

enum { KERNEL_BUFFERS_MAX = 72, KERNEL_ARGUMENTS_MAX = 1536, KERNEL_MADE_BYTES = 1 << 24 };

struct kernel_case {
    char name[64], label[128];
    _Alignas(16) unsigned char arguments[KERNEL_ARGUMENTS_MAX];
    size_t arguments_bytes;
    struct kernel_buffer buffers[KERNEL_BUFFERS_MAX];
    int count;
};

struct kernel_differences {
    uint32_t count;
    char first[512];
};

/* ---- numbers --------------------------------------------------------------------------------- */

static inline size_t kernel_number_bytes(enum kernel_number number)
{
    static const size_t bytes[] = { 4, 2, 2, 8, 1 };
    return bytes[number];
}

static inline void kernel_put(struct kernel_buffer *b, size_t i, double value)
{
    const float single = (float)value;
    const uint16_t half =
        b->number == NUMBER_F16 ? float16_of_float(single) : bfloat16_of_float(single);
    if (b->number == NUMBER_F32)
        memcpy(b->begin + 4 * i, &single, 4);
    else if (b->number == NUMBER_F64)
        memcpy(b->begin + 8 * i, &value, 8);
    else
        memcpy(b->begin + 2 * i, &half, 2);
}

static inline double kernel_get(const struct kernel_buffer *b, const unsigned char *bytes, size_t i)
{
    float single;
    double value;
    uint16_t half;
    memcpy(&half, bytes + 2 * i, b->number == NUMBER_BYTE ? 0 : 2);
    switch (b->number) {
    case NUMBER_F32:
        memcpy(&single, bytes + 4 * i, 4);
        return (double)single;
    case NUMBER_F64:
        memcpy(&value, bytes + 8 * i, 8);
        return value;
    case NUMBER_F16:
        return (double)float_of_float16(half);
    case NUMBER_BF16:
        return (double)float_of_bfloat16(half);
    case NUMBER_BYTE:
    default:
        return bytes[i];
    }
}

/* In [-1, 1), the same in each run. */
static inline double kernel_random(uint64_t seed, uint64_t i)
{
    return (double)(int32_t)(uint32_t)stk_mix64(seed * 1000003 + i) * 0x1p-31;
}

/* ---- cases ----------------------------------------------------------------------------------- */

/* `suffix`: the storage type's; `arguments` is copied. */
static inline struct kernel_case *kernel_case_begin(const char *name, const char *suffix,
                                                    const void *arguments, size_t bytes)
{
    struct kernel_case *c = calloc(1, sizeof(*c));
    cr_assert(c != NULL && bytes <= KERNEL_ARGUMENTS_MAX);
    (void)snprintf(c->name, sizeof(c->name), "%s%s", name, suffix);
    memcpy(c->arguments, arguments, bytes);
    c->arguments_bytes = bytes;
    return c;
}

__attribute__((format(printf, 2, 3))) static inline void kernel_case_label(struct kernel_case *c,
                                                                           const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(c->label, sizeof(c->label), format, list);
    va_end(list);
}

/* Zeros, of which only the pages exist that are touched. */
static inline void *kernel_sparse(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cr_assert(at != MAP_FAILED);
    (void)madvise(at, bytes, MADV_NOHUGEPAGE);
    return at;
}

/* Numbers in [-1, 1), drawn by name; outputs begin as 0xA5. So many that they are KERNEL_MADE_BYTES
 * stay zeros. */
static inline struct kernel_buffer *kernel_case_add(struct kernel_case *c, size_t hole,
                                                    const char *name, enum kernel_number number,
                                                    enum kernel_role role, size_t count)
{
    cr_assert_lt(c->count, (int)KERNEL_BUFFERS_MAX);
    struct kernel_buffer *b = &c->buffers[c->count++];
    const size_t bytes = count * kernel_number_bytes(number);
    *b = (struct kernel_buffer){
        .hole = hole, .name = name, .number = number, .role = role, .count = count, .alias = -1
    };
    b->begin = kernel_sparse(bytes + 1);
    if (bytes >= KERNEL_MADE_BYTES)
        return b;
    b->made = count;
    memset(b->begin, 0xA5, bytes);
    if (role == ROLE_IN || role == ROLE_IN_OUT)
        for (size_t i = 0; i < count && number != NUMBER_BYTE; i++)
            kernel_put(b, i, kernel_random((uint64_t)(c->count * 64 + name[0]), i));
    return b;
}

/* Bytes as they are. */
static inline struct kernel_buffer *kernel_case_bytes(struct kernel_case *c, size_t hole,
                                                      const char *name, enum kernel_role role,
                                                      const void *bytes, size_t count)
{
    struct kernel_buffer *b = kernel_case_add(c, hole, name, NUMBER_BYTE, role, count);
    memcpy(b->begin, bytes, b->made);
    return b;
}

/* The pointer at `hole` is the one of another buffer. */
static inline void kernel_case_alias(struct kernel_case *c, size_t hole,
                                     const struct kernel_buffer *of)
{
    cr_assert_lt(c->count, (int)KERNEL_BUFFERS_MAX);
    c->buffers[c->count++] =
        (struct kernel_buffer){ .hole = hole, .alias = (int)(of - c->buffers) };
}

/* How many cases of a kernel a program has counted. */
static inline unsigned *kernel_cases_of(const char *kernel)
{
    enum { KERNELS_MAX = 160 };
    static struct {
        char name[64];
        unsigned cases;
    } counted[KERNELS_MAX];
    size_t i = 0;
    while (counted[i].name[0] != '\0' && strcmp(counted[i].name, kernel) != 0)
        i++;
    cr_assert_lt(i, (size_t)KERNELS_MAX - 1);
    (void)snprintf(counted[i].name, sizeof(counted[i].name), "%s", kernel);
    return &counted[i].cases;
}

static inline void kernel_case_end(struct kernel_case *c)
{
    for (int i = 0; i < c->count; i++)
        if (c->buffers[i].alias < 0)
            (void)munmap(c->buffers[i].begin,
                         c->buffers[i].count * kernel_number_bytes(c->buffers[i].number) + 1);
    free(c);
}

/* ---- running --------------------------------------------------------------------------------- */

static inline const struct stk_kernel *kernel_case_kernel(const struct kernel_case *c)
{
    const struct stk_kernel *kernel = stk_train_kernel_named(c->name);
    kernel = kernel != NULL ? kernel : stk_kernel_named(c->name);
    cr_assert_not_null(kernel, "%s", c->name);
    cr_assert_eq(kernel->arguments_bytes, c->arguments_bytes, "%s", c->name);
    return kernel;
}

/* Gives one side its copies. Own blocks of malloc(), so that a sanitizer sees their ends. */
static inline void kernel_case_place(struct kernel_case *c, bool kernel, unsigned char *arguments)
{
    memcpy(arguments, c->arguments, c->arguments_bytes);
    for (int i = 0; i < c->count; i++) {
        struct kernel_buffer *b = &c->buffers[i];
        const size_t bytes = b->count * kernel_number_bytes(b->number);
        unsigned char *at;
        if (b->alias >= 0) {
            at = kernel ? c->buffers[b->alias].by_kernel : c->buffers[b->alias].in_order;
        } else {
            at = malloc(bytes > 0 ? bytes : 1);
            cr_assert_not_null(at);
            memcpy(at, b->begin, bytes);
            *(kernel ? &b->by_kernel : &b->in_order) = at;
        }
        memcpy(arguments + b->hole, &at, sizeof(at));
    }
}

static inline void kernel_case_release(struct kernel_case *c)
{
    for (int i = 0; i < c->count; i++)
        if (c->buffers[i].alias < 0) {
            free(c->buffers[i].by_kernel);
            free(c->buffers[i].in_order);
        }
}

/* Fewer blocks than the kernel's grid has: every thread or block then goes round again. Sums by
 * chunks depend on their grid. */
static inline void kernel_case_reduce(const struct kernel_case *c, uint32_t blocks_max,
                                      struct stk_launch_grid *grid)
{
    const bool chunks = strstr(c->name, "moments") != NULL || strstr(c->name, "_sums") != NULL ||
                        strstr(c->name, "bias_gradient") != NULL;
    const bool train = strncmp(c->name, "stk_train_", strlen("stk_train_")) == 0;
    uint32_t *side = train ? &grid->x : &grid->y;
    if (blocks_max > 0 && !chunks && *side > blocks_max)
        *side = blocks_max;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static inline void kernel_case_differs(struct kernel_differences *found,
                                       const struct kernel_case *c, const struct kernel_buffer *b,
                                       size_t i)
{
    if (found->count++ == 0)
        (void)snprintf(found->first, sizeof(found->first), "%s [%s] %s[%zu]: %.9g, in order %.9g",
                       c->name, c->label, b->name, i, kernel_get(b, b->by_kernel, i),
                       kernel_get(b, b->in_order, i));
}

/* The largest finite number of what the source made in order. */
static inline double kernel_scale(const struct kernel_buffer *b)
{
    double scale = 0;
    for (size_t i = 0; i < b->count; i++) {
        const double value = fabs(kernel_get(b, b->in_order, i));
        scale = isfinite(value) && value > scale ? value : scale;
    }
    return scale;
}

/* Takes over the double that may differ, if it does by little enough. */
static inline void kernel_case_settle(const struct kernel_buffer *b)
{
    double found, expected;
    if (b->number != NUMBER_BYTE || b->loose <= 0)
        return;
    memcpy(&found, b->by_kernel + b->loose_at, sizeof(found));
    memcpy(&expected, b->in_order + b->loose_at, sizeof(expected));
    if (fabs(found - expected) <= b->loose * fabs(expected) || (isnan(found) && isnan(expected)))
        memcpy(b->by_kernel + b->loose_at, &expected, sizeof(expected));
}

static inline void kernel_case_compare(struct kernel_differences *found,
                                       const struct kernel_case *c)
{
    for (int k = 0; k < c->count; k++) {
        const struct kernel_buffer *b = &c->buffers[k];
        const size_t bytes = kernel_number_bytes(b->number);
        if (b->alias >= 0 || b->role == ROLE_SCRATCH)
            continue;
        kernel_case_settle(b);
        if (memcmp(b->by_kernel, b->in_order, b->count * bytes) == 0)
            continue;
        const double scale = kernel_scale(b);
        for (size_t i = 0; i < b->count; i++) {
            if (memcmp(b->by_kernel + i * bytes, b->in_order + i * bytes, bytes) == 0)
                continue;
            const double made = kernel_get(b, b->by_kernel, i);
            const double expected = kernel_get(b, b->in_order, i);
            const bool near =
                (isnan(made) && isnan(expected)) || fabs(made - expected) <= b->loose * scale;
            if (b->number == NUMBER_BYTE || !near) /* NaN differs from every number */
                kernel_case_differs(found, c, b, i);
        }
    }
}

#endif
