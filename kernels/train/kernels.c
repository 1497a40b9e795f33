/* kernels.c - the table of the training kernels and their grids. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "kernels/train/dropout.h"
#include "kernels/train/elements.h"
#include "kernels/train/train.h"

enum {
    THREADS = STK_LAUNCH_THREADS,
    BLOCKS_MAX = 1 << 16, /* beyond that, threads loop */
    SUM_CHANNELS = 32     /* channels per block of a per-channel sum */
};

/* One thread per element, up to BLOCKS_MAX blocks. */
static struct stk_launch_grid blocks_for(uint64_t elements, uint32_t blocks_max)
{
    const uint64_t blocks = (elements + THREADS - 1) / THREADS;
    const uint64_t most = blocks < blocks_max ? blocks : blocks_max;
    return (struct stk_launch_grid){ most < 1 ? 1 : (uint32_t)most, 1 };
}

static struct stk_launch_grid cross_entropy_grid(const void *arguments)
{
    const struct stk_train_cross_entropy *const a = arguments;
    return blocks_for((uint64_t)a->rows * stk_train_row_lanes(a->classes), STK_TRAIN_PARTIALS_MAX);
}

static struct stk_launch_grid mse_grid(const void *arguments)
{
    const struct stk_train_mse *const a = arguments;
    return blocks_for((uint64_t)a->rows * a->outputs, STK_TRAIN_PARTIALS_MAX);
}

static struct stk_launch_grid norm_grid(const void *arguments)
{
    const struct stk_train_norm *const a = arguments;
    return blocks_for((a->count + STK_TRAIN_PACK - 1) / STK_TRAIN_PACK, STK_TRAIN_PARTIALS_MAX);
}

static struct stk_launch_grid one_block(const void *arguments)
{
    (void)arguments;
    return (struct stk_launch_grid){ 1, 1 };
}

static struct stk_launch_grid update_grid(const void *arguments)
{
    return blocks_for(((const struct stk_train_update *)arguments)->count, BLOCKS_MAX);
}

/* One thread per eight elements. */
static struct stk_launch_grid packs_grid(uint64_t count)
{
    return blocks_for((count + STK_TRAIN_PACK - 1) / STK_TRAIN_PACK, BLOCKS_MAX);
}

static struct stk_launch_grid cast_grid(const void *arguments)
{
    return packs_grid(((const struct stk_train_cast *)arguments)->count);
}

static struct stk_launch_grid add_gradient_grid(const void *arguments)
{
    return packs_grid(((const struct stk_train_add_gradient *)arguments)->count);
}

static struct stk_launch_grid relu_grid(const void *arguments)
{
    return packs_grid(((const struct stk_train_relu *)arguments)->count);
}

static struct stk_launch_grid relu_backward_grid(const void *arguments)
{
    return packs_grid(((const struct stk_train_relu_backward *)arguments)->count);
}

static struct stk_launch_grid add_grid(const void *arguments)
{
    return packs_grid(((const struct stk_train_add *)arguments)->count);
}

/* One thread per pack of channels of `places` places. The packs of 16 bits are twice as wide as
 * these: half the threads have nothing to do. */
static struct stk_launch_grid pool_grid(uint64_t places, const struct stk_train_window *w)
{
    const uint32_t packs = w->c / stk_train_width(w->c, sizeof(float));
    return blocks_for(places * w->n * packs, BLOCKS_MAX);
}

static struct stk_launch_grid pool_forward_grid(const struct stk_train_window *w)
{
    return pool_grid((uint64_t)w->out_h * w->out_w, w);
}

static struct stk_launch_grid pool_backward_grid(const struct stk_train_window *w)
{
    const uint64_t lines = stk_train_tiles(w->in_h, stk_train_tile_side(w, 0), w->padding[0]);
    return pool_grid(lines * stk_train_tiles(w->in_w, stk_train_tile_side(w, 1), w->padding[1]), w);
}

static struct stk_launch_grid max_pool_grid(const void *arguments)
{
    return pool_forward_grid(&((const struct stk_train_max_pool *)arguments)->window);
}

static struct stk_launch_grid max_pool_backward_grid(const void *arguments)
{
    return pool_backward_grid(&((const struct stk_train_max_pool_backward *)arguments)->window);
}

static struct stk_launch_grid avg_pool_grid(const void *arguments)
{
    return pool_forward_grid(&((const struct stk_train_avg_pool *)arguments)->window);
}

static struct stk_launch_grid avg_pool_backward_grid(const void *arguments)
{
    return pool_backward_grid(&((const struct stk_train_avg_pool *)arguments)->window);
}

/* A thread per eight elements if these are enough blocks for every GPU; beyond that, at least
 * `each` elements a block, for what a thread and a block do once. */
static struct stk_launch_grid repeated_grid(uint64_t count, uint64_t each)
{
    enum { BLOCKS = 1024, LEAST = THREADS * STK_TRAIN_PACK, ENOUGH = THREADS * 32 };
    each = each > ENOUGH ? each : ENOUGH;
    const uint64_t most = count / each > BLOCKS ? count / each : BLOCKS;
    return blocks_for((count + LEAST - 1) / LEAST * THREADS, (uint32_t)most);
}

static struct stk_launch_grid bias_relu_grid(const void *arguments)
{
    return repeated_grid(((const struct stk_train_bias_relu *)arguments)->count, 0);
}

static struct stk_launch_grid dropout_grid(const void *arguments)
{
    const struct stk_train_dropout *const a = arguments;
    const uint64_t groups = (a->elements + STK_DROPOUT_GROUP - 1) / STK_DROPOUT_GROUP;
    return repeated_grid(groups * STK_DROPOUT_GROUP * a->samples, 0);
}

/* At least 32 pixels a block. */
static struct stk_launch_grid by_channel_grid(uint64_t count, uint32_t c)
{
    enum { PIXELS = 32 };
    return repeated_grid(count, (uint64_t)PIXELS * c);
}

static struct stk_launch_grid batch_norm_grid(const void *arguments)
{
    const struct stk_train_batch_norm *const a = arguments;
    return by_channel_grid(a->count, a->c);
}

static struct stk_launch_grid chunks_grid(uint32_t c, uint32_t chunks)
{
    return (struct stk_launch_grid){ (c + SUM_CHANNELS - 1) / SUM_CHANNELS, chunks };
}

static struct stk_launch_grid moments_grid(const void *arguments)
{
    const struct stk_train_batch_norm_moments *const a = arguments;
    return chunks_grid(a->c, a->chunks);
}

static struct stk_launch_grid sums_grid(const void *arguments)
{
    const struct stk_train_batch_norm_sums *const a = arguments;
    return chunks_grid(a->c, a->chunks);
}

static struct stk_launch_grid finish_grid(const void *arguments)
{
    return blocks_for(((const struct stk_train_batch_norm_finish *)arguments)->c, BLOCKS_MAX);
}

static struct stk_launch_grid move_grid(const void *arguments)
{
    return blocks_for(((const struct stk_train_move_statistics *)arguments)->count, BLOCKS_MAX);
}

static struct stk_launch_grid backward_sums_grid(const void *arguments)
{
    const struct stk_train_batch_norm_backward *const a = arguments;
    return chunks_grid(a->c, a->chunks);
}

static struct stk_launch_grid batch_norm_backward_grid(const void *arguments)
{
    const struct stk_train_batch_norm_backward *const a = arguments;
    return by_channel_grid(a->pixels * a->c, a->c);
}

static struct stk_launch_grid bias_grid(const void *arguments)
{
    const struct stk_train_bias_gradient *const a = arguments;
    return chunks_grid(a->c, a->chunks);
}

/* One kernel in three storage types. */
#define IN_EACH_TYPE(name, arguments, grid)                                                        \
    { #name "_f32", sizeof(struct arguments), grid },                                              \
        { #name "_f16", sizeof(struct arguments), grid },                                          \
    {                                                                                              \
#name "_bf16", sizeof(struct arguments), grid                                              \
    }

const struct stk_kernel stk_train_kernels[] = {
    IN_EACH_TYPE(stk_train_softmax_cross_entropy, stk_train_cross_entropy, cross_entropy_grid),
    IN_EACH_TYPE(stk_train_mse, stk_train_mse, mse_grid),
    IN_EACH_TYPE(stk_train_gradient_norm, stk_train_norm, norm_grid),
    { "stk_train_prepare", sizeof(struct stk_train_prepare), one_block },
    IN_EACH_TYPE(stk_train_update, stk_train_update, update_grid),
    IN_EACH_TYPE(stk_train_cast, stk_train_cast, cast_grid),
    IN_EACH_TYPE(stk_train_add_gradient, stk_train_add_gradient, add_gradient_grid),
    IN_EACH_TYPE(stk_train_relu, stk_train_relu, relu_grid),
    IN_EACH_TYPE(stk_train_relu_backward, stk_train_relu_backward, relu_backward_grid),
    IN_EACH_TYPE(stk_train_add, stk_train_add, add_grid),
    IN_EACH_TYPE(stk_train_bias_relu, stk_train_bias_relu, bias_relu_grid),
    IN_EACH_TYPE(stk_train_max_pool_forward, stk_train_max_pool, max_pool_grid),
    IN_EACH_TYPE(stk_train_max_pool_backward, stk_train_max_pool_backward, max_pool_backward_grid),
    IN_EACH_TYPE(stk_train_avg_pool_forward, stk_train_avg_pool, avg_pool_grid),
    IN_EACH_TYPE(stk_train_avg_pool_backward, stk_train_avg_pool, avg_pool_backward_grid),
    IN_EACH_TYPE(stk_train_dropout, stk_train_dropout, dropout_grid),
    IN_EACH_TYPE(stk_train_batch_norm, stk_train_batch_norm, batch_norm_grid),
    IN_EACH_TYPE(stk_train_batch_norm_moments, stk_train_batch_norm_moments, moments_grid),
    IN_EACH_TYPE(stk_train_batch_norm_sums, stk_train_batch_norm_sums, sums_grid),
    { "stk_train_batch_norm_finish", sizeof(struct stk_train_batch_norm_finish), finish_grid },
    { "stk_train_move_statistics", sizeof(struct stk_train_move_statistics), move_grid },
    IN_EACH_TYPE(stk_train_batch_norm_backward_sums, stk_train_batch_norm_backward,
                 backward_sums_grid),
    IN_EACH_TYPE(stk_train_batch_norm_backward, stk_train_batch_norm_backward,
                 batch_norm_backward_grid),
    IN_EACH_TYPE(stk_train_bias_gradient, stk_train_bias_gradient, bias_grid),
    { .name = NULL },
};

const struct stk_kernel *stk_train_kernel_named(const char *name)
{
    for (const struct stk_kernel *k = stk_train_kernels; k->name != NULL; k++)
        if (strcmp(k->name, name) == 0)
            return k;
    return NULL;
}

const struct stk_kernel *stk_train_kernel_in(const char *name, stoker_dtype dtype)
{
    enum { NAME_BYTES = 64 };
    char whole[NAME_BYTES];
    const char *const type = dtype == STOKER_DTYPE_FLOAT16    ? "_f16"
                             : dtype == STOKER_DTYPE_BFLOAT16 ? "_bf16"
                                                              : "_f32";
    (void)snprintf(whole, sizeof(whole), "%s%s", name, type);
    const struct stk_kernel *const kernel = stk_train_kernel_named(whole);
    assert(kernel != NULL);
    return kernel;
}
