/* channel_kernel_cases.h - launches of the training kernels that work by channel: sums of a bias,
 * BatchNorm on one GPU and on several. All give the same bits in any order.
 */
#ifndef STK_TEST_CHANNEL_KERNEL_CASES_H
#define STK_TEST_CHANNEL_KERNEL_CASES_H

#include "support/gpu/train_kernel_cases.h"

static inline struct kernel_case *bias_gradient_case(int type, uint64_t pixels, uint32_t channels,
                                                     uint32_t chunks)
{
    const struct stk_train_bias_gradient a = {
        .pixels = pixels, .c = channels, .chunks = chunks, .write = chunks == 7
    };
    struct kernel_case *c =
        kernel_case_begin("stk_train_bias_gradient", kernel_suffixes[type], &a, sizeof(a));
    kernel_case_label(c, "%d pixels of %u channels, %u chunks", (int)pixels, channels, chunks);
    kernel_case_add(c, HOLE(stk_train_bias_gradient, dy), "dy", (enum kernel_number)type, ROLE_IN,
                    pixels * channels);
    kernel_case_add(c, HOLE(stk_train_bias_gradient, bias_grad), "bias_grad", NUMBER_F32,
                    ROLE_IN_OUT, channels);
    kernel_case_add(c, HOLE(stk_train_bias_gradient, partial_sums), "partial_sums", NUMBER_F32,
                    ROLE_SCRATCH, (size_t)chunks * channels);
    kernel_case_bytes(c, HOLE(stk_train_bias_gradient, tickets), "tickets", ROLE_IN_OUT,
                      kernel_zeros, (channels + 31) / 32 * 4);
    return c;
}

static inline struct kernel_case *moments_case(int type, uint64_t pixels, uint32_t channels,
                                               uint32_t chunks, bool running)
{
    const struct stk_train_batch_norm_moments a = {
        .pixels = pixels, .c = channels, .chunks = chunks, .epsilon = 1e-5F, .momentum = 0.1F
    };
    struct kernel_case *c =
        kernel_case_begin("stk_train_batch_norm_moments", kernel_suffixes[type], &a, sizeof(a));
    kernel_case_label(c, "%d pixels of %u channels, %u chunks", (int)pixels, channels, chunks);
    kernel_case_add(c, HOLE(stk_train_batch_norm_moments, x), "x", (enum kernel_number)type,
                    ROLE_IN, pixels * channels);
    kernel_case_add(c, HOLE(stk_train_batch_norm_moments, mean), "mean", NUMBER_F32, ROLE_OUT,
                    channels);
    kernel_case_add(c, HOLE(stk_train_batch_norm_moments, inverse), "inverse", NUMBER_F32, ROLE_OUT,
                    channels);
    if (running) {
        kernel_case_add(c, HOLE(stk_train_batch_norm_moments, running_mean), "running_mean",
                        NUMBER_F32, ROLE_IN_OUT, channels);
        kernel_case_add(c, HOLE(stk_train_batch_norm_moments, running_var), "running_var",
                        NUMBER_F32, ROLE_IN_OUT, channels);
    }
    kernel_case_add(c, HOLE(stk_train_batch_norm_moments, partial_sums), "partial_sums", NUMBER_F32,
                    ROLE_SCRATCH, (size_t)chunks * 2 * channels);
    kernel_case_bytes(c, HOLE(stk_train_batch_norm_moments, tickets), "tickets", ROLE_IN_OUT,
                      kernel_zeros, (channels + 31) / 32 * 4);
    return c;
}

/* The sums of one GPU of several. */
static inline struct kernel_case *shared_sums_case(int type, uint64_t pixels, uint32_t channels,
                                                   uint32_t chunks)
{
    const struct stk_train_batch_norm_sums a = { .pixels = pixels,
                                                 .c = channels,
                                                 .chunks = chunks };
    struct kernel_case *c =
        kernel_case_begin("stk_train_batch_norm_sums", kernel_suffixes[type], &a, sizeof(a));
    kernel_case_label(c, "%d pixels of %u channels, %u chunks", (int)pixels, channels, chunks);
    kernel_case_add(c, HOLE(stk_train_batch_norm_sums, x), "x", (enum kernel_number)type, ROLE_IN,
                    pixels * channels);
    kernel_case_add(c, HOLE(stk_train_batch_norm_sums, shift), "shift", NUMBER_F32, ROLE_IN,
                    channels);
    kernel_case_add(c, HOLE(stk_train_batch_norm_sums, sums), "sums", NUMBER_F64, ROLE_OUT,
                    2 * (size_t)channels);
    kernel_case_add(c, HOLE(stk_train_batch_norm_sums, partial_sums), "partial_sums", NUMBER_F32,
                    ROLE_SCRATCH, (size_t)chunks * 2 * channels);
    kernel_case_bytes(c, HOLE(stk_train_batch_norm_sums, tickets), "tickets", ROLE_IN_OUT,
                      kernel_zeros, (channels + 31) / 32 * 4);
    return c;
}

static inline struct kernel_case *finish_case(uint32_t channels, bool running)
{
#define FIELD(field) HOLE(stk_train_batch_norm_finish, field)
    const struct stk_train_batch_norm_finish a = {
        .pixels = 64, .c = channels, .epsilon = 1e-5F, .momentum = 0.1F
    };
    struct kernel_case *c = kernel_case_begin("stk_train_batch_norm_finish", "", &a, sizeof(a));
    kernel_case_label(c, "%u channels", channels);
    kernel_buffer_scale(
        kernel_case_add(c, FIELD(sums), "sums", NUMBER_F64, ROLE_IN, 2 * (size_t)channels), 50);
    kernel_case_add(c, FIELD(shift), "shift", NUMBER_F32, ROLE_IN, channels);
    kernel_case_add(c, FIELD(mean), "mean", NUMBER_F32, ROLE_OUT, channels);
    kernel_case_add(c, FIELD(inverse), "inverse", NUMBER_F32, ROLE_OUT, channels);
    if (running) {
        kernel_case_add(c, FIELD(running_mean), "running_mean", NUMBER_F32, ROLE_IN_OUT, channels);
        kernel_case_add(c, FIELD(running_var), "running_var", NUMBER_F32, ROLE_IN_OUT, channels);
    }
#undef FIELD
    return c;
}

/* Some ranks had no batch. */
static inline struct kernel_case *move_case(uint64_t count, uint32_t ranks)
{
    const struct stk_train_move_statistics a = { .count = count, .ranks = ranks };
    struct kernel_case *c = kernel_case_begin("stk_train_move_statistics", "", &a, sizeof(a));
    kernel_case_label(c, "%d of %u ranks", (int)count, ranks);
    kernel_case_add(c, HOLE(stk_train_move_statistics, running), "running", NUMBER_F32, ROLE_IN_OUT,
                    count);
    struct kernel_buffer *found = kernel_case_add(c, HOLE(stk_train_move_statistics, found),
                                                  "found", NUMBER_F32, ROLE_IN, ranks * count);
    for (size_t i = 0; i < count && i < found->made; i++)
        kernel_put(found, i, i % 3 == 0 ? (double)NAN : 0.5);
    kernel_case_add(c, HOLE(stk_train_move_statistics, momenta), "momenta", NUMBER_F32, ROLE_IN,
                    count);
    return c;
}

/* mode: 0 no ReLU, 1 ReLU with y recomputed and dx in place of dy, 2 ReLU with y, 3 as 0 with other
 * GPUs. */
static inline struct kernel_case *norm_backward_case(int type, uint64_t pixels, uint32_t channels,
                                                     uint32_t chunks, int mode, bool sums)
{
#define FIELD(field) HOLE(stk_train_batch_norm_backward, field)
    const struct stk_train_batch_norm_backward a = { .pixels = pixels,
                                                     .c = channels,
                                                     .chunks = chunks,
                                                     .relu = mode == 1 || mode == 2,
                                                     .pixels_of_all = 231,
                                                     .write = mode == 2 };
    struct kernel_case *c = kernel_case_begin(sums ? "stk_train_batch_norm_backward_sums"
                                                   : "stk_train_batch_norm_backward",
                                              kernel_suffixes[type], &a, sizeof(a));
    const enum kernel_number number = (enum kernel_number)type;
    const bool in_place = !sums && mode == 1;
    static const size_t holes[] = { FIELD(mean), FIELD(inverse), FIELD(gamma), FIELD(beta) };
    kernel_case_label(c, "%d pixels of %u channels, %u chunks, mode %d", (int)pixels, channels,
                      chunks, mode);
    kernel_case_add(c, FIELD(x), "x", number, ROLE_IN, pixels * channels);
    struct kernel_buffer *dy = kernel_case_add(c, FIELD(dy), "dy", number,
                                               in_place ? ROLE_IN_OUT : ROLE_IN, pixels * channels);
    if (mode == 2)
        kernel_case_add(c, FIELD(y), "y", number, ROLE_IN, pixels * channels);
    for (size_t i = 0; i < COUNT_OF(holes); i++)
        kernel_case_add(c, holes[i], "statistics", NUMBER_F32, ROLE_IN, channels);
    kernel_case_add(c, FIELD(sums), "sums", NUMBER_F32, sums ? ROLE_OUT : ROLE_IN,
                    2 * (size_t)channels);
    if (mode == 3)
        kernel_case_add(c, FIELD(sums_of_all), "sums_of_all", NUMBER_F64, sums ? ROLE_OUT : ROLE_IN,
                        2 * (size_t)channels);
    if (in_place)
        kernel_case_alias(c, FIELD(dx), dy);
    else if (!sums)
        kernel_case_add(c, FIELD(dx), "dx", number, ROLE_OUT, pixels * channels);
    if (!sums)
        return c;
    kernel_case_add(c, FIELD(gamma_grad), "gamma_grad", NUMBER_F32, ROLE_IN_OUT, channels);
    kernel_case_add(c, FIELD(beta_grad), "beta_grad", NUMBER_F32, ROLE_IN_OUT, channels);
    kernel_case_add(c, FIELD(partial_sums), "partial_sums", NUMBER_F32, ROLE_SCRATCH,
                    (size_t)chunks * 2 * channels);
    kernel_case_bytes(c, FIELD(tickets), "tickets", ROLE_IN_OUT, kernel_zeros,
                      (channels + 31) / 32 * 4);
#undef FIELD
    return c;
}

/* mode: bit 0 ReLU, bit 1 the inverse is known, bit 2 y in place of x. */
static inline struct kernel_case *batch_norm_case(int type, uint64_t pixels, uint32_t channels,
                                                  int mode)
{
#define FIELD(field) HOLE(stk_train_batch_norm, field)
    const struct stk_train_batch_norm a = {
        .count = (uint32_t)(pixels * channels), .c = channels, .relu = mode & 1, .epsilon = 1e-5F
    };
    struct kernel_case *c =
        kernel_case_begin("stk_train_batch_norm", kernel_suffixes[type], &a, sizeof(a));
    const enum kernel_number number = (enum kernel_number)type;
    kernel_case_label(c, "%d pixels of %u channels, mode %d", (int)pixels, channels, mode);
    struct kernel_buffer *x = kernel_case_add(
        c, FIELD(x), "x", number, (mode & 4) != 0 ? ROLE_IN_OUT : ROLE_IN, pixels * channels);
    if ((mode & 4) != 0)
        kernel_case_alias(c, FIELD(y), x);
    else
        kernel_case_add(c, FIELD(y), "y", number, ROLE_OUT, pixels * channels);
    kernel_case_add(c, FIELD(mean), "mean", NUMBER_F32, ROLE_IN, channels);
    kernel_case_add(c, FIELD(gamma), "gamma", NUMBER_F32, ROLE_IN, channels);
    kernel_case_add(c, FIELD(beta), "beta", NUMBER_F32, ROLE_IN, channels);
    kernel_buffer_positive(kernel_case_add(c, (mode & 2) != 0 ? FIELD(inverse) : FIELD(variance),
                                           "spread", NUMBER_F32, ROLE_IN, channels));
#undef FIELD
    return c;
}

static inline void each_channel_case(kernel_case_fn *visit)
{
    static const uint32_t shapes[][2] = { { 1, 1 },  { 1, 3 },   { 7, 1 },    { 8, 24 },
                                          { 9, 32 }, { 64, 33 }, { 257, 10 }, { 65, 72 } };
    static const uint32_t chunks[] = { 1, 2, 7, 40 };
    /* More channels than a block takes at once. */
    for (int type = 0; type < KERNEL_TYPES; type++)
        for (uint32_t channels = 1028; channels < 3000; channels += 1028) {
            visit(batch_norm_case(type, 3, channels, 0));
            visit(norm_backward_case(type, 3, channels, 1, 1, false));
        }
    for (int type = 0; type < KERNEL_TYPES; type++)
        for (size_t i = 0; i < COUNT_OF(shapes); i++) {
            const uint32_t pixels = shapes[i][0], channels = shapes[i][1];
            for (size_t k = 0; k < COUNT_OF(chunks); k++) {
                visit(bias_gradient_case(type, pixels, channels, chunks[k]));
                visit(moments_case(type, pixels, channels, chunks[k], k % 2 == 0));
                visit(norm_backward_case(type, pixels, channels, chunks[k], (int)k, true));
                visit(shared_sums_case(type, pixels, channels, chunks[k]));
            }
            for (int mode = 0; mode < 4; mode++)
                visit(norm_backward_case(type, pixels, channels, 1, mode, false));
            for (int mode = 0; mode < 8; mode += i % 2 == 0 ? 1 : 3)
                visit(batch_norm_case(type, pixels, channels, mode));
        }
    for (uint32_t channels = 1; channels < 600; channels += 255) {
        visit(finish_case(channels, channels % 2 == 0));
        visit(move_case(channels, 1 + channels % 4));
    }
}

/* All launches of the training kernels. */
static inline void each_train_case(kernel_case_fn *visit)
{
    each_loss_case(visit);
    each_update_case(visit);
    each_elementwise_case(visit);
    each_pool_case(visit);
    each_channel_case(visit);
    each_dropout_case(visit);
}

#endif
