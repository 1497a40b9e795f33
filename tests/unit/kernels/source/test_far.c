/* test_far.c - offsets beyond 32 bits, and more samples than a grid has blocks, without the memory:
 * of arrays of up to a terabyte only the pages exist that the last blocks of a launch touch.
 *
 *   near   ▐█▌                a launch for few elements, channels or rows
 *   far    ▐░░░ ... ░░█▌      the same for billions, whose last block does what near's does
 */
#include "support/files/pages.h"
#include "support/gpu/transform_kernel_cases.h"
#include "support/leaks.h"

/* Returns the first of the last blocks: those of the last place in y, if it has many, else in x. */
static struct stk_launch_grid last_blocks(struct stk_launch_grid grid)
{
    const bool many = grid.y >= STK_TRAIN_PARTIALS_MAX;
    return (struct stk_launch_grid){ many ? 0 : grid.x - 1, many ? grid.y - 1 : 0 };
}

static void run_last(const struct stk_kernel *kernel, const void *arguments)
{
    run_blocks(kernel, arguments, last_blocks(kernel->grid(arguments)));
}

/* ---- training, mixing ------------------------------------------------------------------------ */

static struct kernel_case *near[64];
static size_t near_count, far_count;
static size_t line; /* near's elements of a line, if an array has several lines */

static void keep_near(struct kernel_case *c)
{
    cr_assert_lt(near_count, COUNT_OF(near));
    near[near_count++] = c;
}

/* Runs a case in place, as if the blocks before had added zeros and taken their tickets. */
static void run_case(struct kernel_case *c)
{
    const struct stk_kernel *kernel = kernel_case_kernel(c);
    const struct stk_launch_grid first = last_blocks(kernel->grid(c->arguments));
    for (int i = 0; i < c->count; i++) {
        const struct kernel_buffer *b = &c->buffers[i];
        unsigned char *at = b->alias >= 0 ? c->buffers[b->alias].begin : b->begin;
        memcpy(c->arguments + b->hole, &at, sizeof(at));
        if (b->alias < 0 && strcmp(b->name, "partial_sums") == 0)
            memset(at, 0, b->made * kernel_number_bytes(b->number));
        else if (b->alias < 0 && strcmp(b->name, first.y > 0 ? "tickets" : "ticket") == 0)
            memcpy(at, first.y > 0 ? &first.y : &first.x, sizeof(first.x));
    }
    run_blocks(kernel, c->arguments, first);
}

/* The ends of far's lines: takes over near's, or compares them. */
static void each_end(const struct kernel_case *from, struct kernel_case *c, bool compare)
{
    for (int i = 0; i < c->count; i++) {
        const struct kernel_buffer *n = &from->buffers[i], *f = &c->buffers[i];
        if (n->alias >= 0 || (compare && (n->role == ROLE_SCRATCH || n->role == ROLE_IN ||
                                          strcmp(n->name, "metrics") == 0)))
            continue;
        const size_t lines = n->count % line == 0 && n->count != f->count ? n->count / line : 1;
        const size_t bytes = n->count / lines * kernel_number_bytes(n->number);
        const size_t far_bytes = f->count / lines * kernel_number_bytes(n->number);
        for (size_t k = 0; k < lines; k++) {
            unsigned char *end = f->begin + (k + 1) * far_bytes - bytes;
            if (!compare)
                memcpy(end, n->begin + k * bytes, bytes);
            else
                cr_assert_eq(memcmp(end, n->begin + k * bytes, bytes), 0, "%s [%s] %s", c->name,
                             c->label, n->name);
        }
    }
}

static void check_far(struct kernel_case *c)
{
    struct kernel_case *from = near[far_count++];
    each_end(from, c, false);
    run_case(from);
    run_case(c);
    each_end(from, c, true);
    kernel_case_end(from);
    kernel_case_end(c);
}

/* Far's counts are multiples of what all blocks take at once: the last block ends the arrays. */
static void each_case(bool far, kernel_case_fn *visit)
{
    enum { PACKS = 2048, THREADS = STK_LAUNCH_THREADS, LINES = 40, GROUP = 32 };
    const uint64_t packs = far ? UINT64_C(33) << 29 : PACKS;
    const uint64_t elements = far ? UINT64_C(257) << 24 : THREADS;
    const uint64_t wide = (far ? UINT64_C(1) << 32 : 0) + THREADS;
    const uint32_t channels = far ? 1U << 27 : GROUP;
    line = SIZE_MAX;
    elementwise_cases(visit, 0, packs);
    visit(bias_relu_case(0, far ? UINT64_C(97) << 28 : 97 * PACKS, 97, 3));
    visit(update_case(1, STK_TRAIN_ADAM, elements, 1));
    visit(update_case(1, STK_TRAIN_ADAM, elements, 2));
    visit(norm_case(0, far ? UINT64_C(2049) << 21 : PACKS, 1, 0, 0));
    visit(dropout_case(0, PACKS, (uint32_t)(packs / PACKS), 0));
    visit(mse_case(0, far ? 16385 << 14 : 16, 16, 0));
    visit(cross_entropy_case(0, far ? 16384 : 8, 262400, 0));
    visit(norm_backward_case(0, far ? UINT64_C(33) << 24 : 128, 8, 1, 3, false));
    visit(bias_gradient_case(0, far ? UINT64_C(4097) << 20 : 1024, 4, far ? 1024 : 1));
    line = GROUP;
    visit(bias_gradient_case(0, LINES, channels, LINES));
    visit(moments_case(0, LINES, channels, LINES, true));
    visit(shared_sums_case(0, LINES, channels, LINES));
    visit(norm_backward_case(0, LINES, channels, LINES, 0, true));
    line = THREADS;
    visit(move_case(elements, 2));
    visit(mixup_case(STK_MIX_F32, 10, wide));
    line += 19;
    visit(cutmix_case(1, 3, 6, wide + 19));
}

CleanTest(far, the_last_block_of_billions_of_elements)
{
    each_case(false, keep_near);
    each_case(true, check_far);
}

/* ---- transforms ------------------------------------------------------------------------------ */

enum { EPOCH = 2, LARGE = 1 << 26, MANY = 2 * STK_LAUNCH_SAMPLES_MAX /* two rounds of a grid */ };

/* The image of the last sample is the one of its id, or, without an id, the last one. */
static const struct far_case {
    struct transform_case it;
    uint32_t channels;
    stoker_dtype to;
    stoker_layout layout;
    uint32_t count;
    uint64_t id;
} far_cases[] = {
#define FAR(name, height, width, channels, type, layout, count, id, ...)                           \
    {                                                                                              \
        { name, height, width, { __VA_ARGS__ } }, channels, STOKER_DTYPE_##type,                   \
            STOKER_LAYOUT_##layout, count, id                                                      \
    }
    FAR("all steps", 200, 180, 3, FLOAT32, NHWC, MANY, 123456, .random_resized_crop = { 170, 160 },
        STK_USUAL_AREA, STK_USUAL_RATIO, .flip = true, .rotate_min = -45, .rotate_max = 5,
        .contrast = 0.3F, .hue = 0.2F, .blur = 3, STK_USUAL_SIGMA, .cutout = 9),
    FAR("taps", 65535, 3, 1, UINT8, NHWC, 3 * MANY, 123456, .resize = { 16384, 1 }),
    FAR("pixels", 160, 161, 2, FLOAT16, NCHW, MANY, 0, .random_crop = { 160, 161 }, .pad = 4),
    FAR("planes", 160, 160, 4, FLOAT32, NCHW, MANY, 0, .flip = true),
    FAR("packs", 160, 160, 4, BFLOAT16, NHWC, MANY, 0, .flip = true),
    FAR("an id of more than 32 bits", 5, 7, 1, UINT8, NHWC, 3, UINT64_C(1) << 32 | 5, .flip = true),
    FAR("a large image, resized", 65535, 65535, 3, UINT8, NHWC, 2, 1, .resize = { 16384, 16384 },
        .random_crop = { 12, 16 }),
    FAR("a large image", 65535, 65535, 3, UINT8, NHWC, 2, 1, .random_crop = { 12, 16 }),
    FAR("two rounds of blocks of an image", 8704, 3855, 1, UINT8, NHWC, 1, 0, .flip = true),
#undef FAR
};

/* Fills an image; of a large one only the lines that are shown. */
static void fill_image(unsigned char *image, const struct far_case *c,
                       const struct stk_framing *framing)
{
    struct stk_frame frame;
    const uint32_t height = c->it.height, width = c->it.width * c->channels;
    stk_frame_draw(framing, height, c->it.width, EPOCH, c->id, &frame);
    const double down = (double)height / frame.grid_height;
    const bool large = (size_t)height * width > LARGE;
    const size_t top = large ? (size_t)(down * (frame.y - 1)) : 0;
    const size_t end = large ? (size_t)(down * (frame.y + (int)framing->out_height + 1)) : height;
    pages_fill(image + top * width, (end - top) * width, 1);
}

/* What the last sample was resized by and to lies behind the others': who writes and who reads it
 * agree on any place. */
static void check_scratch(const struct stk_launch_batch *batch)
{
    const struct stk_framing *framing = &batch->framing;
    const uint64_t last = batch->count - 1, sides = framing->out_height + framing->out_width;
    const size_t made = (size_t)framing->out_height * framing->out_width * batch->channels;
    if (batch->taps == NULL)
        return;
    cr_assert_neq(batch->taps[last * sides * (2 + batch->taps_max) + 1], 0);
    cr_assert_neq(memcmp(batch->resized + last * made, batch->resized + last * made + 1, made - 1),
                  0);
}

static void check_last(const struct far_case *c)
{
    static struct stk_launch_steps steps;
    struct stk_planned made;
    const size_t place = c->id != 0 ? c->id : c->count - 1;
    const size_t image_bytes = (size_t)c->it.height * c->it.width * c->channels;
    cr_assert_eq(transform_case_plan(&made, &c->it, 5, c->channels, c->to, c->layout, 0), 0, "%s",
                 made.why);
    const size_t row_bytes = made.convert.to_bytes;
    stk_launch_steps_init(&steps, &made.plan, c->it.height, c->it.width, c->count);
    uint64_t *ids = kernel_sparse(c->count * sizeof(*ids));
    unsigned char *images = kernel_sparse((place + 1) * image_bytes);
    unsigned char *out = kernel_sparse(c->count * row_bytes);
    unsigned char *scratch = kernel_sparse(steps.scratch_bytes + 1);
    unsigned char *wanted = kernel_sparse(row_bytes);
    unsigned char *row_scratch = kernel_sparse(stk_transform_scratch_bytes(&made.plan) + 1);
    ids[c->count - 1] = c->id;
    fill_image(images + place * image_bytes, c, &made.plan.framing);
    if (steps.scratch_bytes > 0)
        stk_launch_steps_place(&steps, scratch, c->count);
    stk_launch_steps_take(&steps, &(struct stk_launch_rows){ .images = images,
                                                             .gather = c->id != 0,
                                                             .ids = ids,
                                                             .out = out,
                                                             .count = c->count,
                                                             .epoch = EPOCH });
    for (uint32_t k = 0; k < steps.count; k++)
        run_last(steps.kernels[k], steps.arguments[k]);
    check_scratch(&steps.first.batch);
    const struct stk_image image = { .pixels = images + place * image_bytes,
                                     .height = c->it.height,
                                     .width = c->it.width };
    stk_transform_row(&made.plan, row_scratch, &image, EPOCH, c->id, NULL, wanted);
    const size_t made_bytes = c->count > 1 ? row_bytes : STK_LAUNCH_THREADS;
    cr_assert_eq(memcmp(out + c->count * row_bytes - made_bytes, wanted + row_bytes - made_bytes,
                        made_bytes),
                 0, "%s", c->it.name);
}

CleanTest(far, the_last_sample_of_a_batch)
{
    for (size_t i = 0; i < COUNT_OF(far_cases); i++)
        check_last(&far_cases[i]);
}

/* The last row is kept at the place of its id, then taken from there. */
static void check_keeping(uint32_t count, uint64_t row, uint64_t id)
{
    const size_t end = row < STK_ROWS_PIECE_BYTES ? row : STK_LAUNCH_THREADS; /* what is made */
    uint64_t *ids = kernel_sparse(count * sizeof(*ids));
    uint8_t *fresh = kernel_sparse(count), *rows = kernel_sparse(count * row);
    uint8_t *kept = kernel_sparse((id + 1) * row);
    uint8_t *const own = rows + count * row - end, *const other = kept + (id + 1) * row - end;
    const struct stk_launch_batch batch = { .ids = ids,
                                            .images = rows,
                                            .count = count,
                                            .height = 1,
                                            .width = (uint32_t)row,
                                            .channels = 1 };
    const struct stk_keep_launch keep = { .batch = batch, .fresh = fresh, .kept = kept };
    const struct stk_rows_launch rows_too = { batch, fresh, 1, { { rows, kept, row } } };
    ids[count - 1] = id;
    for (int turn = row > UINT32_MAX; turn < 3; turn++) { /* images have fewer pixels */
        fresh[count - 1] = turn < 2;
        pages_fill(turn < 2 ? own : other, end, (uint64_t)turn);
        run_last(stk_kernel_named(turn == 0 ? "stk_keep" : "stk_rows"),
                 turn == 0 ? (const void *)&keep : (const void *)&rows_too);
        cr_assert_eq(memcmp(own, other, end), 0, "%u rows of %zu bytes, turn %d", count, row, turn);
    }
}

CleanTest(far, rows_kept_far_apart)
{
    check_keeping(MANY, 36000, 300000);
    check_keeping(3, 24, UINT64_C(1) << 32 | 5);
    check_keeping(2, (UINT64_C(1) << 32) + (1 << 19), 1);
}
