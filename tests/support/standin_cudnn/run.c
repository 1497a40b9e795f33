/* run.c - the operations of a graph, by plain loops. */
#include <stdlib.h>
#include <string.h>

#include "kernels/float16.h"
#include "support/standin_cudnn/operations.h"

float standin_cudnn_load(const struct standin_cudnn_array *a, int64_t i)
{
    switch (a->t->dtype) {
    case STOKER_DTYPE_FLOAT16:
        return float_of_float16(((const uint16_t *)a->data)[i]);
    case STOKER_DTYPE_BFLOAT16:
        return float_of_bfloat16(((const uint16_t *)a->data)[i]);
    default:
        return ((const float *)a->data)[i];
    }
}

void standin_cudnn_store(const struct standin_cudnn_array *a, int64_t i, double value)
{
    switch (a->t->dtype) {
    case STOKER_DTYPE_FLOAT16:
        ((uint16_t *)a->data)[i] = float16_of_float((float)value);
        break;
    case STOKER_DTYPE_BFLOAT16:
        ((uint16_t *)a->data)[i] = bfloat16_of_float((float)value);
        break;
    default:
        ((float *)a->data)[i] = (float)value;
        break;
    }
}

static int64_t at(const struct standin_cudnn_array *a, int64_t n, int64_t h, int64_t w, int64_t c)
{
    return ((n * a->t->h + h) * a->t->w + w) * a->t->c + c;
}

/* ---- convolutions ---------------------------------------------------------------------------- */

/* Operands as floats, so that the inner loops are contiguous. In the forward direction w is
 * [h][w][c][n]. */
struct convolution {
    struct standin_cudnn_array x, w, y;
    const struct stk_cudnn_window *window;
    float *wide[3];                    /* x, w, y; one of them is the result */
    int64_t groups, filters, channels; /* per group */
};

enum { WIDE_X, WIDE_W, WIDE_Y };

/* The input of output position `out` and kernel position `k`; false: outside. */
static bool meets(int64_t out, int64_t k, int64_t stride, int64_t padding, int64_t extent,
                  int64_t *in)
{
    *in = out * stride - padding + k;
    return *in >= 0 && *in < extent;
}

/* sum += factor x values, rounded once, as the multiply-add of a GPU */
static void add_scaled(float *restrict sum, float factor, const float *restrict values,
                       int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        sum[i] = (float)((double)sum[i] + (double)factor * (double)values[i]);
}

/* The products of one output and one kernel position; x and y: offsets of their first channels. */
typedef void meet_fn(const struct convolution *v, int64_t x, int64_t kh, int64_t kw, int64_t y);

static void forward(const struct convolution *v, int64_t x, int64_t kh, int64_t kw, int64_t y)
{
    const int64_t place = (kh * v->w.t->w + kw) * v->channels;
    for (int64_t g = 0; g < v->groups; g++)
        for (int64_t c = 0; c < v->channels; c++)
            add_scaled(v->wide[WIDE_Y] + y + g * v->filters,
                       v->wide[WIDE_X][x + g * v->channels + c],
                       v->wide[WIDE_W] + (place + c) * v->w.t->n + g * v->filters, v->filters);
}

static void backward_data(const struct convolution *v, int64_t x, int64_t kh, int64_t kw, int64_t y)
{
    for (int64_t f = 0; f < v->w.t->n; f++)
        add_scaled(v->wide[WIDE_X] + x + f / v->filters * v->channels, v->wide[WIDE_Y][y + f],
                   v->wide[WIDE_W] + at(&v->w, f, kh, kw, 0), v->channels);
}

static void backward_weights(const struct convolution *v, int64_t x, int64_t kh, int64_t kw,
                             int64_t y)
{
    for (int64_t f = 0; f < v->w.t->n; f++)
        add_scaled(v->wide[WIDE_W] + at(&v->w, f, kh, kw, 0), v->wide[WIDE_Y][y + f],
                   v->wide[WIDE_X] + x + f / v->filters * v->channels, v->channels);
}

static void walk_kernel(const struct convolution *v, meet_fn *meet, int64_t n, int64_t oh,
                        int64_t ow)
{
    const struct stk_cudnn_window *const window = v->window;
    int64_t ih;
    int64_t iw;
    for (int64_t kh = 0; kh < v->w.t->h; kh++)
        for (int64_t kw = 0; kw < v->w.t->w; kw++)
            if (meets(oh, kh, window->stride[0], window->padding[0], v->x.t->h, &ih) &&
                meets(ow, kw, window->stride[1], window->padding[1], v->x.t->w, &iw))
                meet(v, at(&v->x, n, ih, iw, 0), kh, kw, at(&v->y, n, oh, ow, 0));
}

static void walk(const struct convolution *v, meet_fn *meet)
{
    for (int64_t n = 0; n < v->y.t->n; n++)
        for (int64_t oh = 0; oh < v->y.t->h; oh++)
            for (int64_t ow = 0; ow < v->y.t->w; ow++)
                walk_kernel(v, meet, n, oh, ow);
}

static float *zeros(uint64_t elements)
{
    float *const values = calloc(elements, sizeof(*values));
    if (values == NULL)
        abort();
    return values;
}

static float *widen(const struct standin_cudnn_array *a)
{
    const int64_t elements = (int64_t)standin_cudnn_elements(a->t);
    float *const wide = zeros((uint64_t)elements);
    for (int64_t i = 0; i < elements; i++)
        wide[i] = standin_cudnn_load(a, i);
    return wide;
}

/* [n][...] as [...][n] */
static float *widen_turned(const struct standin_cudnn_array *a)
{
    const int64_t filters = a->t->n;
    const int64_t rest = (int64_t)standin_cudnn_elements(a->t) / filters;
    float *const wide = zeros((uint64_t)(filters * rest));
    for (int64_t f = 0; f < filters; f++)
        for (int64_t i = 0; i < rest; i++)
            wide[i * filters + f] = standin_cudnn_load(a, f * rest + i);
    return wide;
}

static void convolve(struct convolution *v, const struct standin_cudnn_operation *o)
{
    static meet_fn *const meet[] = { forward, backward_data, backward_weights };
    static const int result_of[] = { WIDE_Y, WIDE_X, WIDE_W };
    const struct standin_cudnn_array *const arrays[] = { &v->x, &v->w, &v->y };
    const int result = result_of[o->direction];
    const int64_t elements = (int64_t)standin_cudnn_elements(arrays[result]->t);
    for (int i = 0; i < 3; i++)
        v->wide[i] = i == result ? zeros((uint64_t)elements) : widen(arrays[i]);
    if (result == WIDE_Y) {
        free(v->wide[WIDE_W]);
        v->wide[WIDE_W] = widen_turned(&v->w);
    }
    v->channels = v->w.t->c;
    v->groups = v->x.t->c / v->channels;
    v->filters = v->w.t->n / v->groups;
    walk(v, meet[o->direction]);
    for (int64_t i = 0; i < elements; i++)
        standin_cudnn_store(arrays[result], i, (double)v->wide[result][i]);
    for (int i = 0; i < 3; i++)
        free(v->wide[i]);
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* Read an operand whose extents are 1 or those of `whole`. */
static float load_spread(const struct standin_cudnn_array *a,
                         const struct standin_cudnn_array *whole, int64_t i)
{
    const int64_t c = i % whole->t->c;
    const int64_t w = i / whole->t->c % whole->t->w;
    const int64_t h = i / whole->t->c / whole->t->w % whole->t->h;
    const int64_t n = i / whole->t->c / whole->t->w / whole->t->h;
    return standin_cudnn_load(a, at(a, a->t->n == 1 ? 0 : n, a->t->h == 1 ? 0 : h,
                                    a->t->w == 1 ? 0 : w, a->t->c == 1 ? 0 : c));
}

static void pointwise(enum standin_cudnn_kind kind, const struct standin_cudnn_array *a,
                      const struct standin_cudnn_array *b, const struct standin_cudnn_array *out)
{
    for (int64_t i = 0; i < (int64_t)standin_cudnn_elements(out->t); i++) {
        const float x = standin_cudnn_load(a, i);
        const float y = b->data == NULL ? 0 : load_spread(b, out, i);
        const float value = kind == STANDIN_ADD ? x + y : x < 0 ? 0 : x;
        standin_cudnn_store(out, i, (double)value);
    }
}

struct standin_cudnn_array standin_cudnn_array_of(const struct standin_cudnn_work *work,
                                                  stk_cudnn_ref ref)
{
    if (ref == 0)
        return (struct standin_cudnn_array){ .data = NULL };
    return (struct standin_cudnn_array){ &work->tensor[ref - 1], work->data[ref - 1] };
}

static void run_operation(const struct standin_cudnn_work *work,
                          const struct standin_cudnn_operation *o)
{
    const struct standin_cudnn_array a = standin_cudnn_array_of(work, o->a);
    const struct standin_cudnn_array b = standin_cudnn_array_of(work, o->b);
    const struct standin_cudnn_array out = standin_cudnn_array_of(work, o->out);
    if (o->kind == STANDIN_CONVOLUTION)
        convolve(&(struct convolution){ .x = a, .w = b, .y = out, .window = &o->window }, o);
    else
        pointwise(o->kind, &a, &b, &out);
}

void standin_cudnn_work_run(struct standin_cudnn_work *work)
{
    void *passing[STK_CUDNN_TENSORS_MAX] = { NULL };
    for (uint32_t i = 0; i < work->tensors; i++)
        if (work->tensor[i].is_virtual) {
            passing[i] = calloc(standin_cudnn_elements(&work->tensor[i]), sizeof(float));
            if (passing[i] == NULL)
                abort();
            work->data[i] = passing[i];
        }
    memset(work->workspace, 255, work->workspace_bytes);
    for (uint32_t i = 0; i < work->operations; i++)
        run_operation(work, &work->operation[i]);
    memset(work->workspace, 255, work->workspace_bytes);
    for (uint32_t i = 0; i < work->tensors; i++)
        free(passing[i]);
}
