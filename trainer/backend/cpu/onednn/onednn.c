/* onednn.c - convolutions and linear layers through oneDNN's C API: the one file that includes its
 * headers.
 *
 *   convolution   x, y plain NHWC;  weights  ohwi ──reorder──▶ the layout that oneDNN prefers ──▶ primitive
 *   linear        forward y = x w' + bias, data dx = dy w, weights w += dy' x: one matrix product
 *                 each, all plain
 *
 * A primitive of a convolution is for a fixed number of samples. There is one for a whole shard and
 * one for each smaller power of two: any count takes few calls, and nothing is created later. A
 * product takes any count.
 *
 * Version 3 has no operation descriptors and opaque memory descriptors; only the functions between
 * the #if and its #endif differ. */
#include "trainer/backend/cpu/onednn/onednn.h"

#include <assert.h>
#include <oneapi/dnnl/dnnl.h>
#include <string.h>

#include <stoker/error.h>

#include "loader/base/cpu/thread_team.h"
#include "loader/base/memory/memory.h"

enum { SIZES_MAX = 34 }; /* the shard, the next smaller shard, 2^31 .. 2^0 */
enum { X, PLAIN, WANTED, BIAS, Y, SCRATCH, MEMORIES };

/* The primitive for one number of samples. */
struct sized {
    uint32_t samples;
    dnnl_primitive_t primitive;
    dnnl_primitive_t reorder; /* reorders weights or their gradient; NULL = not needed */
    uint64_t wanted_bytes;    /* weights in the preferred layout; 0 without a reorder */
    uint64_t scratch_bytes;
};

struct stk_onednn {
    enum stk_op_kind kind;
    bool biased;              /* the primitive has a bias or its gradient */
    dnnl_data_type_t type;    /* element type; gradients of weights are f32 */
    uint64_t weights, biases; /* elements */
    uint64_t in, out;         /* elements of x and y for one sample */
    uint32_t threads;
    dnnl_engine_t engine;
    uint64_t wanted_bytes, scratch_bytes; /* largest of all primitives */
    uint64_t own_bytes;
    uint32_t sizes;                /* 1 for a linear layer */
    struct sized sized[SIZES_MAX]; /* by falling number of samples */
    dnnl_stream_t *streams;        /* [threads] */
    dnnl_memory_t *memories;       /* [sizes][threads][MEMORIES]; of a linear layer only SCRATCH */
};

/* A convolution as described to oneDNN. */
struct problem {
    dnnl_dims_t src, weights, bias, dst, strides, dilates, padding;
    int weights_rank;
    bool biased;
};

/* An operand of a linear layer's product. */
struct matrix {
    dnnl_dims_t dims, strides;
    dnnl_data_type_t type;
};

typedef dnnl_memory_desc_t desc;
struct descs {
    desc src, weights, bias, dst;
};

#if DNNL_VERSION_MAJOR < 3
typedef const dnnl_memory_desc_t *desc_view;

static dnnl_status_t describe(desc *out, int rank, const dnnl_dims_t dims, dnnl_data_type_t type,
                              dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_init_by_tag(out, rank, dims, type, tag);
}

static dnnl_status_t describe_matrix(desc *out, struct matrix m)
{
    return dnnl_memory_desc_init_by_strides(out, 2, m.dims, m.type, m.strides);
}

static void undescribe(desc *d)
{
    (void)d;
}

static desc_view view_of(const desc *d)
{
    return d;
}

static dnnl_status_t forward_desc(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                  const struct problem *p, const struct descs *d,
                                  const_dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t op;
    dnnl_status_t rc = dnnl_convolution_forward_desc_init(
        &op, dnnl_forward_training, dnnl_convolution_direct, &d->src, &d->weights,
        p->biased ? &d->bias : NULL, &d->dst, p->strides, p->padding, p->padding);
    return rc != dnnl_success ? rc : dnnl_primitive_desc_create(out, &op, attr, engine, NULL);
}

static dnnl_status_t data_desc(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                               const struct problem *p, const struct descs *d,
                               const_dnnl_primitive_attr_t attr, const_dnnl_primitive_desc_t hint)
{
    dnnl_convolution_desc_t op;
    dnnl_status_t rc =
        dnnl_convolution_backward_data_desc_init(&op, dnnl_convolution_direct, &d->src, &d->weights,
                                                 &d->dst, p->strides, p->padding, p->padding);
    return rc != dnnl_success ? rc : dnnl_primitive_desc_create(out, &op, attr, engine, hint);
}

static dnnl_status_t weights_desc(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                  const struct problem *p, const struct descs *d,
                                  const_dnnl_primitive_attr_t attr,
                                  const_dnnl_primitive_desc_t hint)
{
    dnnl_convolution_desc_t op;
    dnnl_status_t rc = dnnl_convolution_backward_weights_desc_init(
        &op, dnnl_convolution_direct, &d->src, &d->weights, p->biased ? &d->bias : NULL, &d->dst,
        p->strides, p->padding, p->padding);
    return rc != dnnl_success ? rc : dnnl_primitive_desc_create(out, &op, attr, engine, hint);
}

static dnnl_status_t product_desc(dnnl_primitive_desc_t *out, dnnl_engine_t engine, bool biased,
                                  const struct descs *d, const_dnnl_primitive_attr_t attr)
{
    dnnl_matmul_desc_t op;
    dnnl_status_t rc =
        dnnl_matmul_desc_init(&op, &d->src, &d->weights, biased ? &d->bias : NULL, &d->dst);
    return rc != dnnl_success ? rc : dnnl_primitive_desc_create(out, &op, attr, engine, NULL);
}

static dnnl_status_t append_sum(dnnl_post_ops_t post_ops)
{
    return dnnl_post_ops_append_sum(post_ops, 1);
}
#else
typedef const_dnnl_memory_desc_t desc_view;

static dnnl_status_t describe(desc *out, int rank, const dnnl_dims_t dims, dnnl_data_type_t type,
                              dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_create_with_tag(out, rank, dims, type, tag);
}

static dnnl_status_t describe_matrix(desc *out, struct matrix m)
{
    return dnnl_memory_desc_create_with_strides(out, 2, m.dims, m.type, m.strides);
}

static void undescribe(desc *d)
{
    if (*d != NULL)
        dnnl_memory_desc_destroy(*d);
}

static desc_view view_of(const desc *d)
{
    return *d;
}

static dnnl_status_t forward_desc(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                  const struct problem *p, const struct descs *d,
                                  const_dnnl_primitive_attr_t attr)
{
    return dnnl_convolution_forward_primitive_desc_create(
        out, engine, dnnl_forward_training, dnnl_convolution_direct, d->src, d->weights,
        p->biased ? d->bias : NULL, d->dst, p->strides, p->dilates, p->padding, p->padding, attr);
}

static dnnl_status_t data_desc(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                               const struct problem *p, const struct descs *d,
                               const_dnnl_primitive_attr_t attr, const_dnnl_primitive_desc_t hint)
{
    return dnnl_convolution_backward_data_primitive_desc_create(
        out, engine, dnnl_convolution_direct, d->src, d->weights, d->dst, p->strides, p->dilates,
        p->padding, p->padding, hint, attr);
}

static dnnl_status_t weights_desc(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                  const struct problem *p, const struct descs *d,
                                  const_dnnl_primitive_attr_t attr,
                                  const_dnnl_primitive_desc_t hint)
{
    return dnnl_convolution_backward_weights_primitive_desc_create(
        out, engine, dnnl_convolution_direct, d->src, d->weights, p->biased ? d->bias : NULL,
        d->dst, p->strides, p->dilates, p->padding, p->padding, hint, attr);
}

static dnnl_status_t product_desc(dnnl_primitive_desc_t *out, dnnl_engine_t engine, bool biased,
                                  const struct descs *d, const_dnnl_primitive_attr_t attr)
{
    return dnnl_matmul_primitive_desc_create(out, engine, d->src, d->weights,
                                             biased ? d->bias : NULL, d->dst, attr);
}

static dnnl_status_t append_sum(dnnl_post_ops_t post_ops)
{
    return dnnl_post_ops_append_sum(post_ops, 1, 0, dnnl_data_type_undef);
}
#endif

static void undescribe_all(struct descs *d)
{
    undescribe(&d->src);
    undescribe(&d->weights);
    undescribe(&d->bias);
    undescribe(&d->dst);
}

static int error_of(dnnl_status_t status)
{
    if (status == dnnl_success)
        return STOKER_OK;
    return status == dnnl_out_of_memory ? STOKER_ENOMEM : STOKER_ENOTSUP;
}

static bool is_conv(const struct stk_onednn *op)
{
    return op->kind <= STK_OP_CONV_BACKWARD_WEIGHTS;
}

static dnnl_status_t make_attributes(dnnl_primitive_attr_t *out, bool adds)
{
    dnnl_post_ops_t post_ops = NULL;
    dnnl_status_t rc = dnnl_primitive_attr_create(out);
    if (rc == dnnl_success)
        rc = dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
    if (rc != dnnl_success || !adds)
        return rc;
    rc = dnnl_post_ops_create(&post_ops);
    if (rc == dnnl_success)
        rc = append_sum(post_ops);
    if (rc == dnnl_success)
        rc = dnnl_primitive_attr_set_post_ops(*out, post_ops);
    if (post_ops != NULL)
        dnnl_post_ops_destroy(post_ops);
    return rc;
}

/* dnnl_unimplemented if oneDNN has only its reference code, which is no faster than our plain
 * loops. */
static dnnl_status_t check_fast(const_dnnl_primitive_desc_t pd)
{
    const char *name = "";
    const dnnl_status_t rc = dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    return rc == dnnl_success && strncmp(name, "ref", 3) == 0 ? dnnl_unimplemented : rc;
}

/* ---- convolutions ---- */

static struct problem problem_of(const struct stk_layer *layer, uint32_t samples)
{
    const struct stk_shape in = layer->in;
    const struct stk_shape out = layer->out;
    const dnnl_dim_t groups = layer->groups;
    struct problem p = { .src = { samples, in.c, in.h, in.w },
                         .dst = { samples, out.c, out.h, out.w },
                         .bias = { out.c },
                         .weights = { out.c, in.c, layer->kernel[0], layer->kernel[1] },
                         .weights_rank = 4,
                         .strides = { layer->stride[0], layer->stride[1] },
                         .padding = { layer->padding[0], layer->padding[1] },
                         .biased = layer->bias >= 0 };
    if (groups > 1) {
        const dnnl_dims_t grouped = { groups, out.c / groups, in.c / groups, layer->kernel[0],
                                      layer->kernel[1] };
        memcpy(p.weights, grouped, sizeof(grouped));
        p.weights_rank = 5;
    }
    return p;
}

/* parameters: the type of weights and bias. */
static dnnl_status_t describe_conv(struct descs *d, const struct problem *p, dnnl_data_type_t type,
                                   dnnl_data_type_t parameters)
{
    dnnl_status_t rc = describe(&d->src, 4, p->src, type, dnnl_nhwc);
    if (rc == dnnl_success)
        rc = describe(&d->weights, p->weights_rank, p->weights, parameters, dnnl_format_tag_any);
    if (rc == dnnl_success)
        rc = describe(&d->bias, 1, p->bias, parameters, dnnl_a);
    return rc == dnnl_success ? describe(&d->dst, 4, p->dst, type, dnnl_nhwc) : rc;
}

/* Gradients of parameters are float32. */
static dnnl_data_type_t parameter_type(const struct stk_onednn *op)
{
    return op->kind == STK_OP_CONV_BACKWARD_WEIGHTS ? dnnl_f32 : op->type;
}

/* The primitive descriptor; a gradient takes the forward one as a hint. */
static dnnl_status_t make_conv_desc(dnnl_primitive_desc_t *out, const struct stk_onednn *op,
                                    const struct problem *p)
{
    struct descs d, forward;
    memset(&d, 0, sizeof(d));
    memset(&forward, 0, sizeof(forward));
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t hint = NULL;
    dnnl_status_t rc = describe_conv(&d, p, op->type, parameter_type(op));
    if (rc == dnnl_success)
        rc = describe_conv(&forward, p, op->type, op->type);
    if (rc == dnnl_success)
        rc = make_attributes(&attributes, false);
    if (rc == dnnl_success && op->kind == STK_OP_CONV_FORWARD)
        rc = forward_desc(out, op->engine, p, &d, attributes);
    else if (rc == dnnl_success)
        rc = forward_desc(&hint, op->engine, p, &forward, NULL);
    if (rc == dnnl_success && op->kind == STK_OP_CONV_BACKWARD_DATA)
        rc = data_desc(out, op->engine, p, &d, attributes, hint);
    if (rc == dnnl_success && op->kind == STK_OP_CONV_BACKWARD_WEIGHTS)
        rc = weights_desc(out, op->engine, p, &d, attributes, hint);
    if (hint != NULL)
        dnnl_primitive_desc_destroy(hint);
    if (attributes != NULL)
        dnnl_primitive_attr_destroy(attributes);
    undescribe_all(&d);
    undescribe_all(&forward);
    return rc;
}

static dnnl_status_t make_reorder(dnnl_primitive_t *out, dnnl_engine_t engine, desc_view from,
                                  desc_view to)
{
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t rc = dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine, NULL);
    if (rc == dnnl_success) {
        rc = dnnl_primitive_create(out, pd);
        dnnl_primitive_desc_destroy(pd);
    }
    return rc;
}

static dnnl_memory_t *memories_of(const struct stk_onednn *op, uint32_t size, uint32_t thread)
{
    return op->memories + ((uint64_t)size * op->threads + thread) * MEMORIES;
}

/* Memory objects for each thread; their addresses are set when the primitive runs. */
static dnnl_status_t make_memories(const struct stk_onednn *op, uint32_t size,
                                   const desc_view views[MEMORIES])
{
    for (uint32_t thread = 0; thread < op->threads; thread++)
        for (int which = 0; which < MEMORIES; which++) {
            if (views[which] == NULL)
                continue;
            dnnl_memory_t *memory = &memories_of(op, size, thread)[which];
            const dnnl_status_t rc =
                dnnl_memory_create(memory, views[which], op->engine, DNNL_MEMORY_NONE);
            if (rc != dnnl_success)
                return rc;
        }
    return dnnl_success;
}

static dnnl_status_t make_from_desc(struct stk_onednn *op, uint32_t size, const struct problem *p,
                                    dnnl_primitive_desc_t pd)
{
    const bool back = op->kind == STK_OP_CONV_BACKWARD_WEIGHTS;
    struct sized *sized = &op->sized[size];
    desc plain;
    dnnl_status_t rc = describe(&plain, p->weights_rank, p->weights, parameter_type(op),
                                p->weights_rank == 5 ? dnnl_gohwi : dnnl_ohwi);
    if (rc != dnnl_success)
        return rc;
    desc_view views[MEMORIES] = { NULL };
    views[X] = dnnl_primitive_desc_query_md(
        pd, op->kind == STK_OP_CONV_BACKWARD_DATA ? dnnl_query_diff_src_md : dnnl_query_src_md, 0);
    views[Y] = dnnl_primitive_desc_query_md(
        pd, op->kind == STK_OP_CONV_FORWARD ? dnnl_query_dst_md : dnnl_query_diff_dst_md, 0);
    views[WANTED] = dnnl_primitive_desc_query_md(
        pd, back ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
    views[PLAIN] = view_of(&plain);
    if (op->biased)
        views[BIAS] = dnnl_primitive_desc_query_md(
            pd, back ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 1);
    views[SCRATCH] = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    sized->scratch_bytes = dnnl_memory_desc_get_size(views[SCRATCH]);
    if (!dnnl_memory_desc_equal(views[WANTED], views[PLAIN])) {
        sized->wanted_bytes = dnnl_memory_desc_get_size(views[WANTED]);
        rc = make_reorder(&sized->reorder, op->engine, views[back ? WANTED : PLAIN],
                          views[back ? PLAIN : WANTED]);
    }
    if (rc == dnnl_success)
        rc = dnnl_primitive_create(&sized->primitive, pd);
    if (rc == dnnl_success)
        rc = make_memories(op, size, views);
    undescribe(&plain);
    return rc;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static dnnl_status_t make_conv(struct stk_onednn *op, const struct stk_layer *layer, uint32_t size)
{
    const struct problem p = problem_of(layer, op->sized[size].samples);
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t rc = make_conv_desc(&pd, op, &p);
    if (rc == dnnl_success) {
        rc = check_fast(pd);
        if (rc == dnnl_success)
            rc = make_from_desc(op, size, &p, pd);
        dnnl_primitive_desc_destroy(pd);
    }
    op->wanted_bytes = larger(op->wanted_bytes, op->sized[size].wanted_bytes);
    op->scratch_bytes = larger(op->scratch_bytes, op->sized[size].scratch_bytes);
    return rc;
}

/* ---- linear layers ---- */

static struct matrix transposed(struct matrix m)
{
    return (struct matrix){ { m.dims[1], m.dims[0] }, { m.strides[1], m.strides[0] }, m.type };
}

/* The product of `samples` samples and `outputs` outputs. Either may be DNNL_RUNTIME_DIM_VAL. */
static dnnl_status_t describe_product(struct descs *d, const struct stk_onednn *op,
                                      dnnl_dim_t samples, dnnl_dim_t outputs)
{
    const dnnl_dim_t in = (dnnl_dim_t)op->in;
    const dnnl_dim_t out = (dnnl_dim_t)op->out;
    const bool forward = op->kind == STK_OP_LINEAR_FORWARD;
    const bool back = op->kind == STK_OP_LINEAR_BACKWARD_WEIGHTS;
    const struct matrix x = { { samples, in }, { in, 1 }, op->type };
    const struct matrix y = { { samples, outputs }, { out, 1 }, op->type };
    const struct matrix w = { { outputs, in }, { in, 1 }, back ? dnnl_f32 : op->type };
    const struct matrix bias = { { 1, out }, { out, 1 }, op->type };
    dnnl_status_t rc = describe_matrix(&d->src, forward ? x : back ? transposed(y) : y);
    if (rc == dnnl_success)
        rc = describe_matrix(&d->weights, forward ? transposed(w) : back ? x : w);
    if (rc == dnnl_success)
        rc = describe_matrix(&d->bias, bias);
    return rc == dnnl_success ? describe_matrix(&d->dst, forward ? y : back ? w : x) : rc;
}

static dnnl_status_t make_product(struct stk_onednn *op)
{
    const bool back = op->kind == STK_OP_LINEAR_BACKWARD_WEIGHTS;
    struct descs d;
    memset(&d, 0, sizeof(d));
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t rc = describe_product(&d, op, DNNL_RUNTIME_DIM_VAL,
                                        back ? DNNL_RUNTIME_DIM_VAL : (dnnl_dim_t)op->out);
    if (rc == dnnl_success)
        rc = make_attributes(&attributes, back);
    if (rc == dnnl_success)
        rc = product_desc(&pd, op->engine, op->biased, &d, attributes);
    if (rc == dnnl_success)
        rc = check_fast(pd);
    if (rc == dnnl_success) {
        const desc_view views[MEMORIES] = { [SCRATCH] = dnnl_primitive_desc_query_md(
                                                pd, dnnl_query_scratchpad_md, 0) };
        op->scratch_bytes = dnnl_memory_desc_get_size(views[SCRATCH]);
        rc = make_memories(op, 0, views);
    }
    if (rc == dnnl_success)
        rc = dnnl_primitive_create(&op->sized[0].primitive, pd);
    if (pd != NULL)
        dnnl_primitive_desc_destroy(pd);
    if (attributes != NULL)
        dnnl_primitive_attr_destroy(attributes);
    undescribe_all(&d);
    return rc;
}

/* ---- creation ---- */

/* shard, shard - 1 (threads that got one sample less), and the powers of two below. */
static uint32_t list_sizes(uint32_t shard, struct sized *sized)
{
    uint32_t count = 0;
    sized[count++].samples = shard;
    if (shard > 2 && ((shard - 1) & (shard - 2)) != 0)
        sized[count++].samples = shard - 1;
    for (uint32_t power = UINT32_C(1) << 31; power >= 1; power /= 2)
        if (power < shard)
            sized[count++].samples = power;
    assert(count <= SIZES_MAX);
    return count;
}

static struct stk_onednn *allocate(enum stk_op_kind kind, uint32_t samples, uint32_t threads)
{
    struct sized sized[SIZES_MAX] = { 0 };
    const bool conv = kind <= STK_OP_CONV_BACKWARD_WEIGHTS;
    const uint32_t sizes = conv ? list_sizes(samples, sized) : 1;
    const uint64_t own = sizeof(struct stk_onednn) + threads * sizeof(dnnl_stream_t) +
                         (uint64_t)sizes * threads * MEMORIES * sizeof(dnnl_memory_t);
    struct stk_onednn *op = stk_calloc(1, own);
    if (op == NULL)
        return NULL;
    op->kind = kind;
    op->own_bytes = own;
    op->threads = threads;
    op->sizes = sizes;
    memcpy(op->sized, sized, sizeof(sized));
    op->streams = (dnnl_stream_t *)(void *)(op + 1);
    op->memories = (dnnl_memory_t *)(void *)(op->streams + threads);
    return op;
}

static dnnl_status_t make_all(struct stk_onednn *op, const struct stk_layer *layer)
{
    dnnl_status_t rc = dnnl_engine_create(&op->engine, dnnl_cpu, 0);
    for (uint32_t thread = 0; rc == dnnl_success && thread < op->threads; thread++)
        rc = dnnl_stream_create(&op->streams[thread], op->engine, dnnl_stream_default_flags);
    if (rc == dnnl_success && !is_conv(op))
        return make_product(op);
    for (uint32_t size = 0; rc == dnnl_success && size < op->sizes; size++)
        rc = make_conv(op, layer, size);
    return rc;
}

int stk_onednn_create(struct stk_onednn **out, const struct stk_layer *layer, enum stk_op_kind kind,
                      stoker_dtype storage, uint32_t samples, uint32_t threads)
{
    assert(samples >= 1 && kind <= STK_OP_LINEAR_BACKWARD_WEIGHTS);
    if (storage == STOKER_DTYPE_FLOAT16)
        return STOKER_ENOTSUP;
    struct stk_onednn *op = allocate(kind, samples, threads);
    if (op == NULL)
        return STOKER_ENOMEM;
    op->type = storage == STOKER_DTYPE_BFLOAT16 ? dnnl_bf16 : dnnl_f32;
    op->biased =
        layer->bias >= 0 && (kind == STK_OP_CONV_FORWARD || kind == STK_OP_CONV_BACKWARD_WEIGHTS ||
                             kind == STK_OP_LINEAR_FORWARD);
    op->biases = op->biased ? layer->out.c : 0;
    op->in = stk_shape_elements(layer->in);
    op->out = stk_shape_elements(layer->out);
    if (is_conv(op))
        op->weights = (uint64_t)layer->out.c * layer->kernel[0] * layer->kernel[1] *
                      (layer->in.c / layer->groups);

    /* Code is generated for the number of OpenMP threads: it must be the same as at run time. */
    const int before = stk_onednn_enter_thread();
    const int rc = error_of(make_all(op, layer));
    stk_onednn_leave_thread(before);
    if (rc != STOKER_OK) {
        stk_onednn_destroy(op);
        return rc;
    }
    *out = op;
    return STOKER_OK;
}

void stk_onednn_destroy(struct stk_onednn *op)
{
    if (op == NULL)
        return;
    for (uint64_t i = 0; i < (uint64_t)op->sizes * op->threads * MEMORIES; i++)
        if (op->memories[i] != NULL)
            dnnl_memory_destroy(op->memories[i]);
    for (uint32_t size = 0; size < op->sizes; size++) {
        if (op->sized[size].primitive != NULL)
            dnnl_primitive_destroy(op->sized[size].primitive);
        if (op->sized[size].reorder != NULL)
            dnnl_primitive_destroy(op->sized[size].reorder);
    }
    for (uint32_t thread = 0; thread < op->threads; thread++)
        if (op->streams[thread] != NULL)
            dnnl_stream_destroy(op->streams[thread]);
    if (op->engine != NULL)
        dnnl_engine_destroy(op->engine);
    stk_free(op);
}

static uint64_t round_to_line(uint64_t bytes)
{
    return (bytes + STK_CACHE_LINE - 1) / STK_CACHE_LINE * STK_CACHE_LINE;
}

/* scratch: weights in the preferred layout | gradients of weights and bias, plain | oneDNN's own */
static uint64_t plain_bytes(const struct stk_onednn *op)
{
    if (op->kind != STK_OP_CONV_BACKWARD_WEIGHTS)
        return 0;
    return round_to_line(op->weights * sizeof(float)) + round_to_line(op->biases * sizeof(float));
}

uint64_t stk_onednn_scratch_bytes(const struct stk_onednn *op)
{
    return round_to_line(op->wanted_bytes) + plain_bytes(op) + round_to_line(op->scratch_bytes);
}

uint64_t stk_onednn_own_bytes(const struct stk_onednn *op)
{
    return op->own_bytes;
}

/* ---- running ---- */

/* One call of a primitive: its memory objects and their addresses. */
struct call {
    const struct stk_onednn *op;
    const struct sized *sized;
    dnnl_stream_t stream;
    dnnl_memory_t *memories;
    void *bytes[MEMORIES];
};

static dnnl_status_t bind(const struct call *call)
{
    for (int which = 0; which < MEMORIES; which++) {
        if (call->memories[which] == NULL)
            continue;
        const dnnl_status_t rc =
            dnnl_memory_set_data_handle(call->memories[which], call->bytes[which]);
        if (rc != dnnl_success)
            return rc;
    }
    return dnnl_success;
}

static dnnl_status_t reorder(const struct call *call, int from, int to)
{
    const dnnl_exec_arg_t arguments[] = { { DNNL_ARG_FROM, call->memories[from] },
                                          { DNNL_ARG_TO, call->memories[to] } };
    return dnnl_primitive_execute(call->sized->reorder, call->stream, 2, arguments);
}

static dnnl_status_t execute(const struct call *call)
{
    const bool back = call->op->kind == STK_OP_CONV_BACKWARD_WEIGHTS;
    const bool forward = call->op->kind == STK_OP_CONV_FORWARD;
    dnnl_memory_t *m = call->memories;
    dnnl_memory_t weights = call->sized->reorder != NULL ? m[WANTED] : m[PLAIN];
    const dnnl_exec_arg_t arguments[] = {
        { forward || back ? DNNL_ARG_SRC : DNNL_ARG_DIFF_SRC, m[X] },
        { back ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, weights },
        { forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, m[Y] },
        { DNNL_ARG_SCRATCHPAD, m[SCRATCH] },
        { back ? DNNL_ARG_DIFF_BIAS : DNNL_ARG_BIAS, m[BIAS] },
    };
    dnnl_status_t rc = bind(call);
    if (rc == dnnl_success && call->sized->reorder != NULL && !back)
        rc = reorder(call, PLAIN, WANTED);
    if (rc == dnnl_success)
        rc = dnnl_primitive_execute(call->sized->primitive, call->stream, m[BIAS] != NULL ? 5 : 4,
                                    arguments);
    if (rc == dnnl_success && call->sized->reorder != NULL && back)
        rc = reorder(call, WANTED, PLAIN);
    return rc == dnnl_success ? dnnl_stream_wait(call->stream) : rc;
}

static void add_floats(float *sum, const float *part, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        sum[i] += part[i];
}

/* Address of an element of x or y. The cast removes const: oneDNN has one type of memory and does
 * not write inputs. */
static void *element_of(const struct stk_onednn *op, const float *operand, uint64_t element)
{
    const uint64_t bytes = op->type == dnnl_f32 ? sizeof(float) : sizeof(uint16_t);
    return (uint8_t *)(void *)operand + element * bytes;
}

/* The addresses of the operands from sample `first` on, and of the parts of scratch. */
static void find_bytes(struct call *call, const struct stk_operands *o, uint32_t first,
                       uint8_t *scratch)
{
    const struct stk_onednn *op = call->op;
    uint8_t *plain = scratch + round_to_line(op->wanted_bytes);
    const bool back = op->kind == STK_OP_CONV_BACKWARD_WEIGHTS;
    const float *x = op->kind == STK_OP_CONV_BACKWARD_DATA ? o->dx : o->x;
    const float *y = op->kind == STK_OP_CONV_FORWARD ? o->y : o->dy;
    call->bytes[X] = element_of(op, x, first * op->in);
    call->bytes[Y] = element_of(op, y, first * op->out);
    call->bytes[WANTED] = scratch;
    call->bytes[PLAIN] = back ? (void *)plain : (void *)o->weight;
    call->bytes[BIAS] =
        back ? (void *)(plain + round_to_line(op->weights * sizeof(float))) : (void *)o->bias;
    call->bytes[SCRATCH] = plain + plain_bytes(op);
}

static int run_conv(const struct stk_onednn *op, const struct stk_operands *o, uint32_t thread,
                    void *scratch)
{
    uint32_t size = 0;
    for (uint32_t first = 0; first < o->count; first += op->sized[size].samples) {
        while (op->sized[size].samples > o->count - first)
            size++; /* the last one is for one sample */
        struct call call = { .op = op,
                             .sized = &op->sized[size],
                             .stream = op->streams[thread],
                             .memories = memories_of(op, size, thread) };
        find_bytes(&call, o, first, scratch);
        if (execute(&call) != dnnl_success)
            return STOKER_EDEVICE;
        if (op->kind != STK_OP_CONV_BACKWARD_WEIGHTS)
            continue;
        add_floats(o->weight_grad, call.bytes[PLAIN], op->weights);
        if (op->biased)
            add_floats(o->bias_grad, call.bytes[BIAS], op->biases);
    }
    return STOKER_OK;
}

/* One operand of a product. */
struct factor {
    int name;
    const desc *desc;
    void *bytes;
};

static dnnl_status_t multiply(const struct stk_onednn *op, const struct factor *factors,
                              uint32_t thread, void *scratch)
{
    dnnl_exec_arg_t arguments[5] = { { DNNL_ARG_SCRATCHPAD, memories_of(op, 0, thread)[SCRATCH] } };
    dnnl_status_t rc = dnnl_memory_set_data_handle(arguments[0].memory, scratch);
    int count = 1;
    for (int i = 0; i < 4 && rc == dnnl_success; i++)
        if (factors[i].bytes != NULL) {
            arguments[count].arg = factors[i].name;
            rc = dnnl_memory_create(&arguments[count].memory, view_of(factors[i].desc), op->engine,
                                    factors[i].bytes);
            count += rc == dnnl_success ? 1 : 0;
        }
    if (rc == dnnl_success)
        rc = dnnl_primitive_execute(op->sized[0].primitive, op->streams[thread], count, arguments);
    if (rc == dnnl_success)
        rc = dnnl_stream_wait(op->streams[thread]);
    for (int i = 1; i < count; i++)
        dnnl_memory_destroy(arguments[i].memory);
    return rc;
}

static int run_product(const struct stk_onednn *op, const struct stk_operands *o, uint32_t thread,
                       void *scratch)
{
    const bool forward = op->kind == STK_OP_LINEAR_FORWARD;
    const bool back = op->kind == STK_OP_LINEAR_BACKWARD_WEIGHTS;
    const struct stk_share rows =
        back ? stk_share_of(op->out, thread, op->threads) : (struct stk_share){ 0, op->out };
    if (rows.begin == rows.end)
        return STOKER_OK;
    void *x = element_of(op, back || forward ? o->x : o->dx, 0);
    void *y = element_of(op, forward ? o->y : o->dy, rows.begin);
    void *w = back ? (void *)(o->weight_grad + rows.begin * op->in) : (void *)o->weight;
    struct descs d;
    memset(&d, 0, sizeof(d));
    const struct factor factors[4] = {
        { DNNL_ARG_SRC, &d.src, forward ? x : y },
        { DNNL_ARG_WEIGHTS, &d.weights, back ? x : w },
        { DNNL_ARG_DST, &d.dst,
          forward ? y
          : back  ? w
                  : x },
        { DNNL_ARG_BIAS, &d.bias, op->biased ? (void *)o->bias : NULL },
    };
    dnnl_status_t rc = describe_product(&d, op, o->count, (dnnl_dim_t)(rows.end - rows.begin));
    if (rc == dnnl_success)
        rc = multiply(op, factors, thread, scratch);
    undescribe_all(&d);
    return rc == dnnl_success ? STOKER_OK : STOKER_EDEVICE;
}

int stk_onednn_run(const struct stk_onednn *op, const struct stk_operands *o, uint32_t thread,
                   void *scratch)
{
    return is_conv(op) ? run_conv(op, o, thread, scratch) : run_product(op, o, thread, scratch);
}

/* oneDNN may use OpenMP, TBB or neither; only the first has these functions. */
extern int omp_get_max_threads(void) __attribute__((weak));
extern void omp_set_num_threads(int threads) __attribute__((weak));

int stk_onednn_enter_thread(void)
{
    if (omp_get_max_threads == NULL || omp_set_num_threads == NULL)
        return 1;
    const int before = omp_get_max_threads();
    if (before != 1)
        omp_set_num_threads(1);
    return before;
}

void stk_onednn_leave_thread(int before)
{
    if (before != 1 && omp_set_num_threads != NULL)
        omp_set_num_threads(before);
}
