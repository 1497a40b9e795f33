/* test_launch_mix.c - the mixing kernels give the bits of stk_mixup_rows() and stk_cutmix_rows(),
 * and their grids cover all threads.
 */
#include "kernels/transform/gpu/launch_blend.h"

#include "kernels/transform/gpu/launch.h"
#include "support/files/pages.h"
#include "support/gpu/kernel_source.h"
#include "support/leaks.h"

enum { BYTES_MAX = 1 << 17 };

/* Finite numbers of any type: no exponent of all ones. */
static void paint(unsigned char *at, size_t bytes)
{
    pages_fill(at, bytes, bytes);
    for (size_t i = 1; i < bytes; i += 2)
        at[i] &= 0xBF;
}

/* The rows of a launch, and the same rows for the CPU. */
struct both {
    struct pages pages[2];
    struct stk_mix_rows kernels, cpus;
};

static struct both begin(size_t stride, uint32_t rows)
{
    struct both b = { .pages = { pages_open(BYTES_MAX), pages_open(BYTES_MAX) } };
    b.kernels = (struct stk_mix_rows){ pages_take(&b.pages[0], stride * rows), stride, rows };
    b.cpus = (struct stk_mix_rows){ pages_take(&b.pages[1], stride * rows), stride, rows };
    paint(b.kernels.at, stride * rows);
    memcpy(b.cpus.at, b.kernels.at, stride * rows);
    return b;
}

static void expect_equal(struct both *b)
{
    pages_check(b->kernels.at);
    cr_assert_eq(memcmp(b->kernels.at, b->cpus.at, b->cpus.stride_bytes * b->cpus.count), 0);
    pages_close(&b->pages[0]);
    pages_close(&b->pages[1]);
}

static void check_mixup(enum stk_mix_type type, uint32_t rows, size_t elements, uint32_t steps)
{
    struct both b = begin(elements * stk_mix_element_bytes(type), rows);
    const struct stk_kernel *kernel = stk_kernel_named(stk_mixup_kernel_name(type));
    struct stk_mixup_launch launch;
    stk_mixup_launch_of(&launch, &b.kernels, elements, steps);
    cr_assert_eq(kernel->grid(&launch).x, (elements + 255) / 256);
    cr_assert_eq(kernel->grid(&launch).y, 1);
    run_kernel(kernel, &launch);
    stk_mixup_rows(type, &b.cpus, elements, steps);
    expect_equal(&b);
}

CleanTest(launch_mix, mixup_has_the_bits_of_the_rows)
{
    static const uint32_t rows[] = { 2, 7, 8, 9, 10, 17, 33 };
    static const size_t elements[] = { 1, 255, 257, 600 };
    for (int type = 0; type < STK_MIX_TYPES; type++)
        for (size_t r = 0; r < 7; r++)
            for (size_t e = 0; e < 4; e++)
                for (uint32_t steps = 0; steps <= STK_MIX_STEPS; steps += 8191)
                    check_mixup((enum stk_mix_type)type, rows[r], elements[e], steps);
}

static void check_cutmix(const struct stk_mix_box *box, uint32_t unit_bytes, uint32_t rows)
{
    struct both b = begin(box->planes * box->plane_bytes, rows);
    const struct stk_kernel *kernel = stk_kernel_named("stk_cutmix");
    struct stk_cutmix_launch launch;
    stk_cutmix_launch_of(&launch, &b.kernels, box);
    cr_assert_eq(launch.unit_bytes, unit_bytes);
    const size_t units = box->run_bytes / unit_bytes * box->lines * box->planes;
    cr_assert_eq(kernel->grid(&launch).x, units > 0 ? (units + 255) / 256 : 1);
    run_kernel(kernel, &launch);
    stk_cutmix_rows(&b.cpus, box);
    expect_equal(&b);
}

CleanTest(launch_mix, cutmix_has_the_bits_of_the_rows)
{
    static const struct stk_mix_box boxes[] = {
        /* first, line, plane and run bytes; lines, planes */
        { 0, 12, 120, 12, 10, 3 }, { 16, 40, 400, 20, 7, 1 }, { 10, 36, 360, 18, 2, 2 },
        { 3, 36, 360, 33, 9, 4 },  { 0, 8, 64, 0, 4, 2 },     { 0, 8, 64, 8, 0, 2 },
    };
    static const uint32_t units[] = { 4, 4, 2, 1, 4, 4 };
    for (size_t b = 0; b < sizeof(boxes) / sizeof(boxes[0]); b++)
        for (uint32_t rows = 2; rows <= 6; rows += 2)
            check_cutmix(&boxes[b], units[b], rows);
}
