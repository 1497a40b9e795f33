/* test_launch_mix.c - the mixing kernels give the bits of stk_mixup_rows() and stk_cutmix_rows(),
 * and their grids cover all threads.
 */
#include "kernels/transform/gpu/launch_blend.h"

#include "kernels/transform/gpu/launch.h"
#include "support/files/pages.h"
#include "support/gpu/kernel_source.h"
#include "support/leaks.h"

enum { BYTES_MAX = 1 << 17 };

static void expect_equal(const struct stk_mix_rows *here, const unsigned char *at,
                         const unsigned char *expected, size_t bytes)
{
    (void)here;
    pages_check(at);
    cr_assert_eq(memcmp(at, expected, bytes), 0);
}

/* Finite numbers of any type: no exponent of all ones. */
static void paint(unsigned char *at, size_t bytes)
{
    pages_fill(at, bytes, bytes);
    for (size_t i = 1; i < bytes; i += 2)
        at[i] &= 0xBF;
}

static void check_mixup(enum stk_mix_type type, uint32_t rows, size_t elements, uint32_t steps)
{
    const size_t stride = elements * stk_mix_element_bytes(type), bytes = stride * rows;
    struct pages pages = pages_open(BYTES_MAX), other_pages = pages_open(BYTES_MAX);
    unsigned char *at = pages_take(&pages, bytes), *expected = pages_take(&other_pages, bytes);
    paint(at, bytes);
    memcpy(expected, at, bytes);
    const struct stk_mix_rows all = { .at = at, .stride_bytes = stride, .count = rows };
    const struct stk_mix_rows wanted = { .at = expected, .stride_bytes = stride, .count = rows };
    const struct stk_kernel *kernel = stk_kernel_named(stk_mixup_kernel_name(type));
    struct stk_mixup_launch launch;
    stk_mixup_launch_of(&launch, &all, elements, steps);
    cr_assert_eq(kernel->arguments_bytes, sizeof(launch));
    cr_assert_eq(kernel->grid(&launch).x, (elements + 255) / 256);
    cr_assert_eq(kernel->grid(&launch).y, 1);
    run_kernel(kernel, &launch);
    stk_mixup_rows(type, &wanted, elements, steps);
    expect_equal(&all, at, expected, bytes);
    pages_close(&pages);
    pages_close(&other_pages);
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
    const size_t stride = box->planes * box->plane_bytes, bytes = stride * rows;
    struct pages pages = pages_open(BYTES_MAX), other_pages = pages_open(BYTES_MAX);
    unsigned char *at = pages_take(&pages, bytes), *expected = pages_take(&other_pages, bytes);
    paint(at, bytes);
    memcpy(expected, at, bytes);
    const struct stk_mix_rows all = { .at = at, .stride_bytes = stride, .count = rows };
    const struct stk_mix_rows wanted = { .at = expected, .stride_bytes = stride, .count = rows };
    const struct stk_kernel *kernel = stk_kernel_named("stk_cutmix");
    struct stk_cutmix_launch launch;
    stk_cutmix_launch_of(&launch, &all, box);
    cr_assert_eq(launch.unit_bytes, unit_bytes);
    const size_t units = box->run_bytes / unit_bytes * box->lines * box->planes;
    cr_assert_eq(kernel->grid(&launch).x, units > 0 ? (units + 255) / 256 : 1);
    run_kernel(kernel, &launch);
    stk_cutmix_rows(&wanted, box);
    expect_equal(&all, at, expected, bytes);
    pages_close(&pages);
    pages_close(&other_pages);
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
