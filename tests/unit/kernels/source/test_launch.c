/* test_launch.c - the kernels give the bits of stk_transform_row(), and the table is complete.
 *
 * Method: the cases of transform_cases.h, in batches whose images are gathered, in order, or of
 * several sizes, with scratch of exactly the required size.
 */
#include "kernels/transform/gpu/launch.h"

#include "support/files/pages.h"
#include "support/gpu/kernel_source.h"
#include "support/gpu/transform_cases.h"
#include "support/leaks.h"

enum { SAMPLES = 5, IMAGES = 7, EPOCH = 2 };

static const uint64_t ids[SAMPLES] = { 3, 0, 6, 1, 3 };

struct arena {
    struct pages images, out, expected, device, scratch;
};

/* Runs all steps with scratch of exactly the required size. */
static void run_steps(struct stk_launch_steps *steps, const struct stk_launch_rows *rows,
                      struct arena *arena)
{
    unsigned char *scratch = NULL;
    if (steps->scratch_bytes > 0) {
        scratch = pages_take(&arena->device, steps->scratch_bytes);
        memset(scratch, 0xA5, steps->scratch_bytes);
        stk_launch_steps_place(steps, scratch, SAMPLES);
    }
    stk_launch_steps_take(steps, rows);
    for (uint32_t i = 0; i < steps->count; i++)
        run_kernel(steps->kernels[i], steps->arguments[i]);
    if (scratch != NULL)
        pages_check(scratch);
    pages_check(rows->out);
}

static void check_case(struct arena *arena, const struct transform_case *it, uint32_t channels,
                       stoker_dtype to, stoker_layout layout, bool gather, bool sized)
{
    struct stk_planned made;
    const uint32_t mean_count = to == STOKER_DTYPE_UINT8 ? 0 : channels;
    cr_assert_eq(transform_case_plan(&made, it, 5, channels, to, layout, mean_count), STOKER_OK,
                 "%s: %s", it->name, made.why);
    const size_t image_bytes = (size_t)it->height * it->width * channels;
    unsigned char *images = pages_take(&arena->images, IMAGES * image_bytes);
    pages_fill(images, IMAGES * image_bytes, it->width);
    const size_t row_bytes = made.convert.to_bytes;
    static struct stk_launch_steps steps;
    stk_launch_steps_init(&steps, &made.plan, it->height, it->width, SAMPLES);
    struct stk_launch_source sources[SAMPLES];
    uint64_t places[SAMPLES];
    transform_case_sources(it, channels, sources, places, SAMPLES);
    const struct stk_launch_rows rows = { .images = images,
                                          .gather = gather,
                                          .ids = ids,
                                          .out = pages_take(&arena->out, SAMPLES * row_bytes),
                                          .count = SAMPLES,
                                          .epoch = EPOCH,
                                          .sources = sized ? sources : NULL,
                                          .places = sized ? places : NULL };
    run_steps(&steps, &rows, arena);
    unsigned char *expected = pages_take(&arena->expected, row_bytes);
    const size_t scratch_bytes = (stk_transform_scratch_bytes(&made.plan) + 63) / 64 * 64;
    unsigned char *scratch = pages_take(&arena->scratch, scratch_bytes);
    memset(scratch, 0, scratch_bytes);
    for (size_t k = 0; k < SAMPLES; k++) {
        const struct stk_image picture = { .pixels = images + (gather ? ids[k] : k) * image_bytes,
                                           .height = sized ? sources[k].height : it->height,
                                           .width = sized ? sources[k].width : it->width };
        const size_t row = sized ? places[k] : k;
        stk_transform_row(&made.plan, scratch, &picture, EPOCH, ids[k], NULL, expected);
        cr_assert_eq(memcmp((const char *)rows.out + row * row_bytes, expected, row_bytes), 0,
                     "%s: %u channels, type %d, layout %d, row %zu", it->name, channels, (int)to,
                     (int)layout, row);
    }
}

CleanTest(launch, kernels_give_the_bits_of_the_rows)
{
    static const stoker_dtype types[] = { STOKER_DTYPE_FLOAT32, STOKER_DTYPE_FLOAT16,
                                          STOKER_DTYPE_BFLOAT16, STOKER_DTYPE_UINT8 };
    struct arena arena;
    struct pages *all[] = { &arena.images, &arena.out, &arena.expected, &arena.device,
                            &arena.scratch };
    for (size_t i = 0; i < 5; i++)
        *all[i] = pages_open(1 << 20);
    const size_t untouched = sizeof(untouched_cases) / sizeof(untouched_cases[0]);
    for (size_t i = 0; i < TRANSFORM_CASES + untouched; i++) {
        const struct transform_case *it =
            i < TRANSFORM_CASES ? &transform_cases[i] : &untouched_cases[i - TRANSFORM_CASES];
        for (uint32_t channels = 1; channels <= 4; channels++)
            for (size_t type = 0; type < 4; type++) {
                const bool resizes = transform_case_resizes(it);
                const bool sized[] = { resizes && channels % 2 == 1, resizes && channels % 2 == 0 };
                check_case(&arena, it, channels, types[type], STOKER_LAYOUT_NHWC, !sized[0],
                           sized[0]);
                check_case(&arena, it, channels, types[type], STOKER_LAYOUT_NCHW, false, sized[1]);
            }
    }
    for (size_t i = 0; i < 5; i++)
        pages_close(all[i]);
}

CleanTest(launch, fresh_rows_are_kept_at_the_places_of_their_ids)
{
    enum { PIXELS = 6, CHANNELS = 3, ROW = PIXELS * CHANNELS };
    static const uint8_t fresh[SAMPLES] = { 1, 0, 1, 1, 0 };
    uint8_t images[SAMPLES * ROW], kept[IMAGES * ROW], expected[IMAGES * ROW];
    pages_fill(images, sizeof(images), 1);
    memset(kept, 0xA5, sizeof(kept));
    memset(expected, 0xA5, sizeof(expected));
    const struct stk_keep_launch launch = { .batch = { .ids = ids,
                                                       .images = images,
                                                       .count = SAMPLES,
                                                       .height = 2,
                                                       .width = 3,
                                                       .channels = CHANNELS },
                                            .fresh = fresh,
                                            .kept = kept };
    run_kernel(stk_kernel_named("stk_keep"), &launch);
    for (size_t k = 0; k < SAMPLES; k++)
        if (fresh[k] != 0)
            memcpy(expected + ids[k] * ROW, images + k * ROW, ROW);
    cr_assert_eq(memcmp(kept, expected, sizeof(kept)), 0);
}

/* Fields of every length that the loops treat differently: some rows are fresh, others are kept. */
CleanTest(launch, rows_of_fields_are_kept_or_taken)
{
    static const uint64_t lengths[] = { 1, 7, 8, 24, 2048, 2049, 65536, 65537, 65544, 140000 };
    enum { FIELDS = sizeof(lengths) / sizeof(lengths[0]) };
    static const uint8_t fresh[SAMPLES] = { 1, 0, 1, 0, 1 };
    struct stk_rows_launch launch = { .batch = { .ids = ids, .count = SAMPLES },
                                      .fresh = fresh,
                                      .field_count = FIELDS };
    uint8_t *before[FIELDS];
    for (int f = 0; f < FIELDS; f++) {
        const size_t rows = SAMPLES * lengths[f], kept = IMAGES * lengths[f];
        launch.fields[f] = (struct stk_rows_field){ malloc(rows), malloc(kept), lengths[f] };
        before[f] = malloc(rows + kept);
        cr_assert(launch.fields[f].rows && launch.fields[f].kept && before[f]);
        pages_fill(launch.fields[f].rows, rows, 1);
        pages_fill(launch.fields[f].kept, kept, 2);
        memcpy(launch.fields[f].rows + 4 * lengths[f], launch.fields[f].rows, lengths[f]);
        memcpy(before[f], launch.fields[f].rows, rows);
        memcpy(before[f] + rows, launch.fields[f].kept, kept);
    }
    run_kernel(stk_kernel_named("stk_rows"), &launch);
    for (int f = 0; f < FIELDS; f++) {
        const size_t bytes = lengths[f];
        const uint8_t *rows = before[f], *kept = before[f] + SAMPLES * bytes;
        for (size_t k = 0; k < SAMPLES; k++) {
            const uint8_t *expected = fresh[k] != 0 ? rows + k * bytes : kept + ids[k] * bytes;
            cr_assert_eq(memcmp(launch.fields[f].rows + k * bytes, expected, bytes), 0);
        }
        for (size_t i = 0; i < IMAGES; i++) { /* ids 3 (twice) and 6 are fresh */
            const uint8_t *expected = i == 3 ? rows : i == 6 ? rows + 2 * bytes : kept + i * bytes;
            cr_assert_eq(memcmp(launch.fields[f].kept + i * bytes, expected, bytes), 0);
        }
        free(launch.fields[f].rows);
        free(launch.fields[f].kept);
        free(before[f]);
    }
    const struct stk_launch_grid grid = stk_kernel_named("stk_rows")->grid(&launch);
    cr_assert_eq(grid.x, FIELDS * 3); /* 140000 bytes are three pieces */
    cr_assert_eq(grid.y, SAMPLES);
}

CleanTest(launch, a_crop_divides_by_the_width)
{
    static struct stk_transform_plan plan = { .channels = 1 };
    struct stk_crop_launch launch;
    for (uint32_t width = 1; width <= STOKER_TRANSFORM_SIDE_MAX; width += 1 + width / 200) {
        plan.framing.out_width = width;
        stk_launch_of(&launch, &plan, 1, width);
        const uint32_t lines = STOKER_TRANSFORM_SIDE_MAX;
        for (uint32_t y = 1; y <= lines; y += 1 + y / 8) {
            cr_assert_eq(stk_crop_line(&launch, y * width - 1), y - 1);
            cr_assert_eq(stk_crop_line(&launch, y * width), y);
        }
        cr_assert_eq(stk_crop_line(&launch, INT32_MAX), INT32_MAX / width);
    }
}

CleanTest(launch, every_kernel_is_found_by_its_name_and_covers_its_threads)
{
    const uint64_t id = 0;
    const struct stk_crop_launch launch = { .batch = {
                                                .framing = { .out_height = 17, .out_width = 16 },
                                                .height = 17,
                                                .width = 16,
                                                .channels = 1,
                                                .ids = &id,
                                                .count = 70000 } };
    /* The first row that begins a kernel's name counts. Crops take 272 pixels in packs of 4, 8 or
     * 16: a block makes 2, 4 or 8 samples. */
    static const struct {
        const char *name;
        uint32_t x, y;
    } grids[] = {
        { "stk_retouch", 274, 1 },   { "stk_rectangles", 2188, 1 }, { "stk_crop_f32_", 35000, 1 },
        { "stk_crop_u8_", 8750, 1 }, { "stk_crop_", 17500, 1 },     { "stk_taps", 1, 65535 },
        { "stk_gray", 1, 65535 },    { "stk_", 2, 65535 },
    };
    size_t count = 0;
    for (const struct stk_kernel *kernel = stk_kernels; kernel->name != NULL; kernel++, count++) {
        cr_assert_eq(stk_kernel_named(kernel->name), kernel);
        /* The grid of stk_rows depends on its fields; of the others see test_launch_mix.c. */
        if (strcmp(kernel->name, "stk_rows") == 0 || strstr(kernel->name, "mix") != NULL)
            continue;
        size_t i = 0;
        while (strncmp(kernel->name, grids[i].name, strlen(grids[i].name)) != 0)
            i++;
        cr_assert_eq(kernel->grid(&launch).x, grids[i].x, "%s", kernel->name);
        cr_assert_eq(kernel->grid(&launch).y, grids[i].y, "%s", kernel->name);
    }
    cr_assert_eq(count, 24);
    cr_assert_null(stk_kernel_named("stk_crop"));
}

CleanTest(launch, the_fatbin_is_there_or_it_is_not)
{
    size_t bytes = 1;
    const void *fatbin = stk_kernels_fatbin(&bytes);
    cr_assert_eq(fatbin == NULL, bytes == 0);
    if (fatbin != NULL) /* a fatbin begins with its magic number */
        cr_assert_eq(memcmp(fatbin, "\x50\xed\x55\xba", 4), 0);
}
