/* onednn.c - convolutions through oneDNN's C API: the one file that includes its headers.
 *
 *   x, y plain NHWC;  weights  ohwi ──reorder──▶ the layout that oneDNN prefers ──▶ primitive
 *
 * A primitive is for a fixed number of samples. There is one for a whole shard and one for each smaller power of two:
 * any count takes few calls, and nothing is created later. Version 3 has no operation descriptors and opaque memory
 * descriptors; only the functions between the #if and its #endif differ. */
#include "trainer/backend/cpu/onednn/onednn.h"

#include <assert.h>
#include <oneapi/dnnl/dnnl.h>
#include <string.h>

#include <stoker/error.h>

#include "loader/base/memory.h"

enum { SIZES_MAX = 34 }; /* the shard, the next smaller shard, 2^31 .. 2^0 */
enum { SRC, PLAIN, WANTED, BIAS, DST, SCRATCH, MEMORIES };

/* The primitive for one number of samples. */
struct sized {
    uint32_t samples;
    dnnl_primitive_t conv;
    dnnl_primitive_t reorder; /* reorders weights or their gradient; NULL = not needed */
    uint64_t wanted_bytes;    /* weights in the preferred layout; 0 without a reorder */
    uint64_t scratch_bytes;
};

struct stk_onednn_conv {
    enum stk_op_kind kind;
    bool biased;
    uint64_t weights, biases; /* floats */
    uint64_t x_floats, y_floats;
    uint32_t threads;
    dnnl_engine_t engine;
    uint64_t wanted_bytes, scratch_bytes; /* largest of all primitives */
    uint64_t own_bytes;
    uint32_t sizes;
    struct sized sized[SIZES_MAX]; /* by falling number of samples */
    dnnl_stream_t *streams;        /* [threads] */
    dnnl_memory_t *memories;       /* [sizes][threads][MEMORIES] */
};

/* A convolution as described to oneDNN. */
struct problem {
    dnnl_dims_t src, weights, bias, dst, strides, dilates, padding;
    int weights_rank;
    bool biased;
    enum stk_op_kind kind;
};

#if DNNL_VERSION_MAJOR < 3
typedef const dnnl_memory_desc_t *desc_view;
typedef dnnl_memory_desc_t desc;

static dnnl_status_t describe(desc *out, int rank, const dnnl_dims_t dims, dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_init_by_tag(out, rank, dims, dnnl_f32, tag);
}

static void undescribe(desc *d)
{
    (void)d;
}

static desc_view view_of(const desc *d)
{
    return d;
}

struct descs {
    desc src, weights, bias, dst;
};

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
#else
typedef const_dnnl_memory_desc_t desc_view;
typedef dnnl_memory_desc_t desc;

static dnnl_status_t describe(desc *out, int rank, const dnnl_dims_t dims, dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_create_with_tag(out, rank, dims, dnnl_f32, tag);
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

struct descs {
    desc src, weights, bias, dst;
};

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
#endif

static int error_of(dnnl_status_t status)
{
    if (status == dnnl_success)
        return STOKER_OK;
    return status == dnnl_out_of_memory ? STOKER_ENOMEM : STOKER_ENOTSUP;
}

static struct problem problem_of(const struct stk_layer *layer, enum stk_op_kind kind,
                                 uint32_t samples)
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
                         .biased = layer->bias >= 0,
                         .kind = kind };
    if (groups > 1) {
        const dnnl_dims_t grouped = { groups, out.c / groups, in.c / groups, layer->kernel[0],
                                      layer->kernel[1] };
        memcpy(p.weights, grouped, sizeof(grouped));
        p.weights_rank = 5;
    }
    return p;
}

static dnnl_format_tag_t plain_tag(const struct problem *p)
{
    return p->weights_rank == 5 ? dnnl_gohwi : dnnl_ohwi;
}

static dnnl_status_t make_attributes(dnnl_primitive_attr_t *out)
{
    const dnnl_status_t rc = dnnl_primitive_attr_create(out);
    return rc != dnnl_success
               ? rc
               : dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
}

static dnnl_status_t describe_all(struct descs *d, const struct problem *p)
{
    dnnl_status_t rc = describe(&d->src, 4, p->src, dnnl_nhwc);
    if (rc == dnnl_success)
        rc = describe(&d->weights, p->weights_rank, p->weights, dnnl_format_tag_any);
    if (rc == dnnl_success)
        rc = describe(&d->bias, 1, p->bias, dnnl_a);
    return rc == dnnl_success ? describe(&d->dst, 4, p->dst, dnnl_nhwc) : rc;
}

/* The primitive descriptor of the problem's kind; a gradient takes the forward one as a hint. */
static dnnl_status_t make_desc(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                               const struct problem *p)
{
    struct descs d;
    memset(&d, 0, sizeof(d));
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t hint = NULL;
    const bool forward = p->kind == STK_OP_CONV_FORWARD;
    dnnl_status_t rc = describe_all(&d, p);
    if (rc == dnnl_success)
        rc = make_attributes(&attributes);
    if (rc == dnnl_success)
        rc = forward_desc(forward ? out : &hint, engine, p, &d, forward ? attributes : NULL);
    if (rc == dnnl_success && p->kind == STK_OP_CONV_BACKWARD_DATA)
        rc = data_desc(out, engine, p, &d, attributes, hint);
    if (rc == dnnl_success && p->kind == STK_OP_CONV_BACKWARD_WEIGHTS)
        rc = weights_desc(out, engine, p, &d, attributes, hint);
    if (hint != NULL)
        dnnl_primitive_desc_destroy(hint);
    if (attributes != NULL)
        dnnl_primitive_attr_destroy(attributes);
    undescribe(&d.src);
    undescribe(&d.weights);
    undescribe(&d.bias);
    undescribe(&d.dst);
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

static dnnl_memory_t *memories_of(const struct stk_onednn_conv *conv, uint32_t size,
                                  uint32_t thread)
{
    return conv->memories + ((uint64_t)size * conv->threads + thread) * MEMORIES;
}

/* Memory objects for each thread; their addresses are set when the primitive runs. */
static dnnl_status_t make_memories(const struct stk_onednn_conv *conv, uint32_t size,
                                   const desc_view views[MEMORIES])
{
    for (uint32_t thread = 0; thread < conv->threads; thread++)
        for (int which = 0; which < MEMORIES; which++) {
            if (views[which] == NULL)
                continue;
            dnnl_memory_t *memory = &memories_of(conv, size, thread)[which];
            const dnnl_status_t rc =
                dnnl_memory_create(memory, views[which], conv->engine, DNNL_MEMORY_NONE);
            if (rc != dnnl_success)
                return rc;
        }
    return dnnl_success;
}

static dnnl_status_t make_from_desc(struct stk_onednn_conv *conv, uint32_t size,
                                    const struct problem *p, dnnl_primitive_desc_t pd)
{
    const bool back = p->kind == STK_OP_CONV_BACKWARD_WEIGHTS;
    struct sized *sized = &conv->sized[size];
    desc plain;
    dnnl_status_t rc = describe(&plain, p->weights_rank, p->weights, plain_tag(p));
    if (rc != dnnl_success)
        return rc;
    desc_view views[MEMORIES] = { NULL };
    views[SRC] = dnnl_primitive_desc_query_md(
        pd, p->kind == STK_OP_CONV_BACKWARD_DATA ? dnnl_query_diff_src_md : dnnl_query_src_md, 0);
    views[DST] = dnnl_primitive_desc_query_md(
        pd, p->kind == STK_OP_CONV_FORWARD ? dnnl_query_dst_md : dnnl_query_diff_dst_md, 0);
    views[WANTED] = dnnl_primitive_desc_query_md(
        pd, back ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
    views[PLAIN] = view_of(&plain);
    if (p->biased && p->kind != STK_OP_CONV_BACKWARD_DATA)
        views[BIAS] = dnnl_primitive_desc_query_md(
            pd, back ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 1);
    views[SCRATCH] = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    sized->scratch_bytes = dnnl_memory_desc_get_size(views[SCRATCH]);
    if (!dnnl_memory_desc_equal(views[WANTED], views[PLAIN])) {
        sized->wanted_bytes = dnnl_memory_desc_get_size(views[WANTED]);
        rc = make_reorder(&sized->reorder, conv->engine, views[back ? WANTED : PLAIN],
                          views[back ? PLAIN : WANTED]);
    }
    if (rc == dnnl_success)
        rc = dnnl_primitive_create(&sized->conv, pd);
    if (rc == dnnl_success)
        rc = make_memories(conv, size, views);
    undescribe(&plain);
    return rc;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static dnnl_status_t make_sized(struct stk_onednn_conv *conv, const struct stk_layer *layer,
                                uint32_t size)
{
    const struct problem p = problem_of(layer, conv->kind, conv->sized[size].samples);
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t rc = make_desc(&pd, conv->engine, &p);
    if (rc == dnnl_success) {
        rc = make_from_desc(conv, size, &p, pd);
        dnnl_primitive_desc_destroy(pd);
    }
    conv->wanted_bytes = larger(conv->wanted_bytes, conv->sized[size].wanted_bytes);
    conv->scratch_bytes = larger(conv->scratch_bytes, conv->sized[size].scratch_bytes);
    return rc;
}

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

static struct stk_onednn_conv *allocate(uint32_t samples, uint32_t threads)
{
    struct sized sized[SIZES_MAX] = { 0 };
    const uint32_t sizes = list_sizes(samples, sized);
    const uint64_t own = sizeof(struct stk_onednn_conv) + threads * sizeof(dnnl_stream_t) +
                         (uint64_t)sizes * threads * MEMORIES * sizeof(dnnl_memory_t);
    struct stk_onednn_conv *conv = stk_calloc(1, own);
    if (conv == NULL)
        return NULL;
    conv->own_bytes = own;
    conv->threads = threads;
    conv->sizes = sizes;
    memcpy(conv->sized, sized, sizeof(sized));
    conv->streams = (dnnl_stream_t *)(void *)(conv + 1);
    conv->memories = (dnnl_memory_t *)(void *)(conv->streams + threads);
    return conv;
}

static dnnl_status_t make_all(struct stk_onednn_conv *conv, const struct stk_layer *layer)
{
    dnnl_status_t rc = dnnl_engine_create(&conv->engine, dnnl_cpu, 0);
    for (uint32_t thread = 0; rc == dnnl_success && thread < conv->threads; thread++)
        rc = dnnl_stream_create(&conv->streams[thread], conv->engine, dnnl_stream_default_flags);
    for (uint32_t size = 0; rc == dnnl_success && size < conv->sizes; size++)
        rc = make_sized(conv, layer, size);
    return rc;
}

int stk_onednn_conv_create(struct stk_onednn_conv **out, const struct stk_layer *layer,
                           enum stk_op_kind kind, uint32_t samples, uint32_t threads)
{
    assert(samples >= 1);
    struct stk_onednn_conv *conv = allocate(samples, threads);
    if (conv == NULL)
        return STOKER_ENOMEM;
    conv->kind = kind;
    conv->biased = layer->bias >= 0;
    conv->biases = conv->biased ? layer->out.c : 0;
    conv->weights = (uint64_t)layer->out.c * layer->kernel[0] * layer->kernel[1] *
                    (layer->in.c / layer->groups);
    conv->x_floats = stk_shape_elements(layer->in);
    conv->y_floats = stk_shape_elements(layer->out);

    /* Code is generated for the number of OpenMP threads: it must be the same as at run time. */
    const int before = stk_onednn_enter_thread();
    const int rc = error_of(make_all(conv, layer));
    stk_onednn_leave_thread(before);
    if (rc != STOKER_OK) {
        stk_onednn_conv_destroy(conv);
        return rc;
    }
    *out = conv;
    return STOKER_OK;
}

void stk_onednn_conv_destroy(struct stk_onednn_conv *conv)
{
    if (conv == NULL)
        return;
    for (uint64_t i = 0; i < (uint64_t)conv->sizes * conv->threads * MEMORIES; i++)
        if (conv->memories[i] != NULL)
            dnnl_memory_destroy(conv->memories[i]);
    for (uint32_t size = 0; size < conv->sizes; size++) {
        if (conv->sized[size].conv != NULL)
            dnnl_primitive_destroy(conv->sized[size].conv);
        if (conv->sized[size].reorder != NULL)
            dnnl_primitive_destroy(conv->sized[size].reorder);
    }
    for (uint32_t thread = 0; thread < conv->threads; thread++)
        if (conv->streams[thread] != NULL)
            dnnl_stream_destroy(conv->streams[thread]);
    if (conv->engine != NULL)
        dnnl_engine_destroy(conv->engine);
    stk_free(conv);
}

static uint64_t round_to_line(uint64_t bytes)
{
    return (bytes + STK_CACHE_LINE - 1) / STK_CACHE_LINE * STK_CACHE_LINE;
}

/* scratch: weights in the preferred layout | gradients of weights and bias, plain | oneDNN's own */
static uint64_t plain_bytes(const struct stk_onednn_conv *conv)
{
    if (conv->kind != STK_OP_CONV_BACKWARD_WEIGHTS)
        return 0;
    return round_to_line(conv->weights * sizeof(float)) +
           round_to_line(conv->biases * sizeof(float));
}

uint64_t stk_onednn_conv_scratch_bytes(const struct stk_onednn_conv *conv)
{
    return round_to_line(conv->wanted_bytes) + plain_bytes(conv) +
           round_to_line(conv->scratch_bytes);
}

uint64_t stk_onednn_conv_own_bytes(const struct stk_onednn_conv *conv)
{
    return conv->own_bytes;
}

/* One call of a primitive: its memory objects and their addresses. */
struct call {
    const struct stk_onednn_conv *conv;
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
    const bool back = call->conv->kind == STK_OP_CONV_BACKWARD_WEIGHTS;
    const bool forward = call->conv->kind == STK_OP_CONV_FORWARD;
    dnnl_memory_t *m = call->memories;
    dnnl_memory_t weights = call->sized->reorder != NULL ? m[WANTED] : m[PLAIN];
    dnnl_exec_arg_t arguments[5] = {
        { forward || back ? DNNL_ARG_SRC : DNNL_ARG_DIFF_SRC, m[SRC] },
        { back ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, weights },
        { forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, m[DST] },
        { DNNL_ARG_SCRATCHPAD, m[SCRATCH] },
        { back ? DNNL_ARG_DIFF_BIAS : DNNL_ARG_BIAS, m[BIAS] },
    };
    dnnl_status_t rc = bind(call);
    if (rc == dnnl_success && call->sized->reorder != NULL && !back)
        rc = reorder(call, PLAIN, WANTED);
    if (rc == dnnl_success)
        rc = dnnl_primitive_execute(call->sized->conv, call->stream, m[BIAS] != NULL ? 5 : 4,
                                    arguments);
    if (rc == dnnl_success && call->sized->reorder != NULL && back)
        rc = reorder(call, WANTED, PLAIN);
    return rc == dnnl_success ? dnnl_stream_wait(call->stream) : rc;
}

static void add(float *sum, const float *part, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        sum[i] += part[i];
}

/* The addresses of the operands from sample `first` on, and of the parts of scratch. The casts remove const: oneDNN has
 * one type of memory and does not write inputs. */
static void find_bytes(struct call *call, const struct stk_operands *o, uint32_t first,
                       uint8_t *scratch)
{
    const struct stk_onednn_conv *conv = call->conv;
    uint8_t *plain = scratch + round_to_line(conv->wanted_bytes);
    const bool back = conv->kind == STK_OP_CONV_BACKWARD_WEIGHTS;
    const float *x = conv->kind == STK_OP_CONV_BACKWARD_DATA ? o->dx : o->x;
    const float *y = conv->kind == STK_OP_CONV_FORWARD ? o->y : o->dy;
    call->bytes[SRC] = (void *)(x + first * conv->x_floats);
    call->bytes[DST] = (void *)(y + first * conv->y_floats);
    call->bytes[WANTED] = scratch;
    call->bytes[PLAIN] = back ? (void *)plain : (void *)o->weight;
    call->bytes[BIAS] =
        back ? (void *)(plain + round_to_line(conv->weights * sizeof(float))) : (void *)o->bias;
    call->bytes[SCRATCH] = plain + plain_bytes(conv);
}

int stk_onednn_conv_run(const struct stk_onednn_conv *conv, const struct stk_operands *o,
                        uint32_t thread, void *scratch)
{
    uint32_t size = 0;
    for (uint32_t first = 0; first < o->count; first += conv->sized[size].samples) {
        while (conv->sized[size].samples > o->count - first)
            size++; /* the last one is for one sample */
        struct call call = { .conv = conv,
                             .sized = &conv->sized[size],
                             .stream = conv->streams[thread],
                             .memories = memories_of(conv, size, thread) };
        find_bytes(&call, o, first, scratch);
        if (execute(&call) != dnnl_success)
            return STOKER_EDEVICE;
        if (conv->kind != STK_OP_CONV_BACKWARD_WEIGHTS)
            continue;
        add(o->weight_grad, call.bytes[PLAIN], conv->weights);
        if (conv->biased)
            add(o->bias_grad, call.bytes[BIAS], conv->biases);
    }
    return STOKER_OK;
}

void stk_onednn_multiply(const struct stk_onednn_product *p)
{
    dnnl_sgemm(p->a_transposed ? 'T' : 'N', p->b_transposed ? 'T' : 'N', p->m, p->n, p->k, 1, p->a,
               p->a_row, p->b, p->b_row, p->beta, p->c, p->c_row);
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
