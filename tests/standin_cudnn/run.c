/* run.c - the operations of a graph, one after the other, by plain loops. */
#include <stdlib.h>
#include <string.h>

#include "kernels/float16.h"
#include "standin_cudnn/operations.h"

/* One tensor while a graph runs. */
struct array {
    const struct stk_cudnn_tensor *t;
    void *data;
};

static float load(const struct array *a, int64_t i)
{
    switch (a->t->dtype) {
    case STOKER_FLOAT16:
        return float_of_float16(((const uint16_t *)a->data)[i]);
    case STOKER_BFLOAT16:
        return float_of_bfloat16(((const uint16_t *)a->data)[i]);
    default:
        return ((const float *)a->data)[i];
    }
}

static void store(const struct array *a, int64_t i, double value)
{
    switch (a->t->dtype) {
    case STOKER_FLOAT16:
        ((uint16_t *)a->data)[i] = float16_of_float((float)value);
        break;
    case STOKER_BFLOAT16:
        ((uint16_t *)a->data)[i] = bfloat16_of_float((float)value);
        break;
    default:
        ((float *)a->data)[i] = (float)value;
        break;
    }
}

static int64_t at(const struct array *a, int64_t n, int64_t h, int64_t w, int64_t c)
{
    return ((n * a->t->h + h) * a->t->w + w) * a->t->c + c;
}

/* ---- convolutions ------------------------------------------------------------------------------- */

struct convolution {
    struct array x, w, y;
    const struct stk_cudnn_window *window;
};

/* Where output place `out` and kernel place `k` meet in the input; false: beside it. */
static bool meets(int64_t out, int64_t k, int64_t stride, int64_t padding, int64_t extent,
                  int64_t *in)
{
    *in = out * stride - padding + k;
    return *in >= 0 && *in < extent;
}

/* Filter f reads channels from here on. */
static int64_t first_channel(const struct convolution *v, int64_t f)
{
    const int64_t groups = v->x.t->c / v->w.t->c;
    return f / (v->w.t->n / groups) * v->w.t->c;
}

/* Call `visit` for each triple of places that a convolution multiplies. */
typedef void visit_fn(const struct convolution *v, double *sums, int64_t x, int64_t w, int64_t y);

static void walk_filter(const struct convolution *v, double *sums, visit_fn *visit, int64_t n,
                        int64_t oh, int64_t ow, int64_t f)
{
    const struct stk_cudnn_window *const window = v->window;
    const int64_t channel = first_channel(v, f);
    int64_t ih;
    int64_t iw;
    for (int64_t kh = 0; kh < v->w.t->h; kh++)
        for (int64_t kw = 0; kw < v->w.t->w; kw++) {
            if (!meets(oh, kh, window->stride[0], window->padding[0], v->x.t->h, &ih) ||
                !meets(ow, kw, window->stride[1], window->padding[1], v->x.t->w, &iw))
                continue;
            for (int64_t c = 0; c < v->w.t->c; c++)
                visit(v, sums, at(&v->x, n, ih, iw, channel + c), at(&v->w, f, kh, kw, c),
                      at(&v->y, n, oh, ow, f));
        }
}

static void walk(const struct convolution *v, double *sums, visit_fn *visit)
{
    for (int64_t n = 0; n < v->y.t->n; n++)
        for (int64_t oh = 0; oh < v->y.t->h; oh++)
            for (int64_t ow = 0; ow < v->y.t->w; ow++)
                for (int64_t f = 0; f < v->y.t->c; f++)
                    walk_filter(v, sums, visit, n, oh, ow, f);
}

static void forward(const struct convolution *v, double *sums, int64_t x, int64_t w, int64_t y)
{
    sums[y] += (double)load(&v->x, x) * (double)load(&v->w, w);
}

static void backward_data(const struct convolution *v, double *sums, int64_t x, int64_t w,
                          int64_t y)
{
    sums[x] += (double)load(&v->y, y) * (double)load(&v->w, w);
}

static void backward_weights(const struct convolution *v, double *sums, int64_t x, int64_t w,
                             int64_t y)
{
    sums[w] += (double)load(&v->x, x) * (double)load(&v->y, y);
}

static void convolve(const struct convolution *v, const struct standin_cudnn_operation *o)
{
    static visit_fn *const visits[] = { forward, backward_data, backward_weights };
    const struct array *const results[] = { &v->y, &v->x, &v->w };
    const struct array *const result = results[o->direction];
    const uint64_t elements = standin_cudnn_elements(result->t);
    double *const sums = calloc(elements, sizeof(*sums));
    if (sums == NULL)
        abort();
    walk(v, sums, visits[o->direction]);
    for (uint64_t i = 0; i < elements; i++) {
        const double old = o->window.add ? (double)load(result, (int64_t)i) : 0;
        store(result, (int64_t)i, old + sums[i]);
    }
    free(sums);
}

/* ---- the rest ----------------------------------------------------------------------------------- */

/* Of an operand whose extents are 1 or those of `whole`. */
static float load_spread(const struct array *a, const struct array *whole, int64_t i)
{
    const int64_t c = i % whole->t->c;
    const int64_t w = i / whole->t->c % whole->t->w;
    const int64_t h = i / whole->t->c / whole->t->w % whole->t->h;
    const int64_t n = i / whole->t->c / whole->t->w / whole->t->h;
    return load(a, at(a, a->t->n == 1 ? 0 : n, a->t->h == 1 ? 0 : h, a->t->w == 1 ? 0 : w,
                      a->t->c == 1 ? 0 : c));
}

static void pointwise(enum standin_cudnn_kind kind, const struct array *a, const struct array *b,
                      const struct array *out)
{
    for (int64_t i = 0; i < (int64_t)standin_cudnn_elements(out->t); i++) {
        const float x = load(a, i);
        const float y = b->data == NULL ? 0 : load_spread(b, out, i);
        float value = 0;
        switch (kind) {
        case STANDIN_ADD:
            value = x + y;
            break;
        case STANDIN_MULTIPLY:
            value = x * y;
            break;
        case STANDIN_RELU:
            value = x < 0 ? 0 : x;
            break;
        case STANDIN_RELU_BACKWARD:
        default:
            value = x > 0 ? y : 0;
            break;
        }
        store(out, i, (double)value);
    }
}

/* Sums over the axes in which the output has an extent of 1; the squares' if out2 is one. */
static void sum(const struct array *x, const struct array *out, bool squares)
{
    const uint64_t elements = standin_cudnn_elements(out->t);
    double *const sums = calloc(elements, sizeof(*sums));
    if (sums == NULL)
        abort();
    for (int64_t n = 0; n < x->t->n; n++)
        for (int64_t h = 0; h < x->t->h; h++)
            for (int64_t w = 0; w < x->t->w; w++)
                for (int64_t c = 0; c < x->t->c; c++) {
                    const double value = (double)load(x, at(x, n, h, w, c));
                    sums[at(out, out->t->n == 1 ? 0 : n, out->t->h == 1 ? 0 : h,
                            out->t->w == 1 ? 0 : w, out->t->c == 1 ? 0 : c)] +=
                        squares ? value * value : value;
                }
    for (uint64_t i = 0; i < elements; i++)
        store(out, (int64_t)i, sums[i]);
    free(sums);
}

static struct array array_of(const struct standin_cudnn_work *work, stk_cudnn_ref ref)
{
    if (ref == 0)
        return (struct array){ .data = NULL };
    return (struct array){ &work->tensor[ref - 1], work->data[ref - 1] };
}

static void run_operation(const struct standin_cudnn_work *work,
                          const struct standin_cudnn_operation *o)
{
    const struct array a = array_of(work, o->a);
    const struct array b = array_of(work, o->b);
    const struct array out = array_of(work, o->out);
    const struct array out2 = array_of(work, o->out2);
    switch (o->kind) {
    case STANDIN_CONVOLUTION:
        convolve(&(struct convolution){ a, b, out, &o->window }, o);
        break;
    case STANDIN_SUM:
        sum(&a, &out, false);
        break;
    case STANDIN_STATISTICS:
        sum(&a, &out, false);
        sum(&a, &out2, true);
        break;
    case STANDIN_ADD:
    case STANDIN_MULTIPLY:
    case STANDIN_RELU:
    case STANDIN_RELU_BACKWARD:
    default:
        pointwise(o->kind, &a, &b, &out);
        break;
    }
}

void standin_cudnn_work_run(struct standin_cudnn_work *work)
{
    void *passing[STK_CUDNN_TENSORS_MAX] = { NULL };
    for (uint32_t i = 0; i < work->tensors; i++)
        if (work->tensor[i].passing) {
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
