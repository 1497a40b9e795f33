/* pool.cu - maximum and average over windows, forward and backward.
 *
 * A thread takes WIDTH adjacent channels, 16 bytes, or one if c is no multiple of that. Forward, it
 * takes one window. Backward, it takes a tile of stride x stride inputs, which begins where a
 * window does: finding the tile's place takes divisions, finding those of its inputs does not. Each
 * input gathers from the windows that cover it: no atomics, and a fixed order of additions. Common
 * windows (2 x 2, 3 x 3) have code of their own, in which a tile loads each window once. */
#include "kernels/train/device.cuh"

/* A place in a batch of h x w x packs; c: its first channel. */
struct position {
    uint32_t n, h, w, c;
};

static __device__ __forceinline__ position position_of(uint32_t i, uint32_t h, uint32_t w,
                                                       uint32_t packs, uint32_t width)
{
    position p;
    p.c = i % packs * width;
    i /= packs;
    p.w = i % w;
    i /= w;
    p.h = i % h;
    p.n = i / h;
    return p;
}

static __device__ __forceinline__ uint32_t input_at(const stk_train_window &w, const position &p,
                                                    uint32_t h, uint32_t column)
{
    return ((p.n * w.in_h + h) * w.in_w + column) * w.c + p.c;
}

static __device__ __forceinline__ uint32_t output_at(const stk_train_window &w, const position &p,
                                                     uint32_t oh, uint32_t ow)
{
    return ((p.n * w.out_h + oh) * w.out_w + ow) * w.c + p.c;
}

/* ---- forward --------------------------------------------------------------------------------- */

/* Calls take(r, s, at) for each place of the window at output p inside the image; `at` is its
 * element. */
template <class Take>
static __device__ __forceinline__ void each_place(const stk_train_window &w, const position &p,
                                                  const Take &take)
{
    const stk_train_range rows =
        stk_train_inside(p.h, w.kernel[0], w.stride[0], w.padding[0], w.in_h);
    const stk_train_range columns =
        stk_train_inside(p.w, w.kernel[1], w.stride[1], w.padding[1], w.in_w);
    uint32_t line = input_at(w, p, p.h * w.stride[0] + rows.first - w.padding[0],
                             p.w * w.stride[1] + columns.first - w.padding[1]);
#pragma unroll 1
    for (uint32_t r = rows.first; r < rows.end; r++) {
        uint32_t at = line;
#pragma unroll 2
        for (uint32_t s = columns.first; s < columns.end; s++) {
            take(r, s, at);
            at += w.c;
        }
        line += w.in_w * w.c;
    }
}

/* Stores the places of the maxima of outputs at, at + 1, ... Places of two bytes, which are rare,
 * are not packed. */
template <int WIDTH>
static __device__ __forceinline__ void store_places(void *places, uint32_t at,
                                                    const uint32_t *place, bool wide)
{
    if (WIDTH == 1 && wide)
        ((uint16_t *)places)[at] = (uint16_t)place[0];
    else if (WIDTH == 1)
        ((uint8_t *)places)[at] = (uint8_t)place[0];
#pragma unroll
    for (int i = 0; i + 4 <= WIDTH; i += 4)
        *(uint32_t *)((uint8_t *)places + at + i) =
            place[i] | place[i + 1] << 8 | place[i + 2] << 16 | place[i + 3] << 24;
}
template <class T, int WIDTH>
static __device__ __forceinline__ void max_pool_of(const stk_train_max_pool &a)
{
    const stk_train_window &w = a.window;
    const uint32_t outputs = w.n * w.out_h * w.out_w * (w.c / WIDTH);
    const bool wide = stk_train_is_wide(&w);
    for (uint32_t i = first_element_32(); i < outputs; i += element_stride_32()) {
        const position p = position_of(i, w.out_h, w.out_w, w.c / WIDTH, WIDTH);
        float best[WIDTH];
        uint32_t place[WIDTH];
        const uint32_t none =
            stk_train_inside(p.h, w.kernel[0], w.stride[0], w.padding[0], w.in_h).first *
                w.kernel[1] +
            stk_train_inside(p.w, w.kernel[1], w.stride[1], w.padding[1], w.in_w).first;
#pragma unroll
        for (int k = 0; k < WIDTH; k++)
            best[k] = -INFINITY, place[k] = none;
        each_place(w, p, [&](uint32_t r, uint32_t s, uint32_t at) {
            float value[WIDTH];
            load_wide<WIDTH>((const T *)a.x + at, value);
#pragma unroll
            for (int k = 0; k < WIDTH; k++)
                if (!(value[k] <= best[k]) && !isnan(best[k])) { /* the first NaN stays */
                    best[k] = value[k];
                    place[k] = r * w.kernel[1] + s;
                }
        });
#pragma unroll
        for (int k = 0; k < WIDTH; k++)
            best[k] = a.relu != 0 && best[k] < 0 ? 0 : best[k];
        store_wide<WIDTH>((T *)a.y + (uint64_t)i * WIDTH, best);
        if (a.places != nullptr)
            store_places<WIDTH>(a.places, i * WIDTH, place, wide);
    }
}

static __device__ __forceinline__ float window_places(const stk_train_window &w)
{
    return (float)(w.kernel[0] * w.kernel[1]);
}

template <class T, int WIDTH>
static __device__ __forceinline__ void avg_pool_of(const stk_train_avg_pool &a)
{
    const stk_train_window &w = a.window;
    const uint32_t outputs = w.n * w.out_h * w.out_w * (w.c / WIDTH);
    for (uint32_t i = first_element_32(); i < outputs; i += element_stride_32()) {
        const position p = position_of(i, w.out_h, w.out_w, w.c / WIDTH, WIDTH);
        float sum[WIDTH] = {};
        each_place(w, p, [&](uint32_t, uint32_t, uint32_t at) {
            float value[WIDTH];
            load_wide<WIDTH>((const T *)a.x + at, value);
#pragma unroll
            for (int k = 0; k < WIDTH; k++)
                sum[k] += value[k];
        });
#pragma unroll
        for (int k = 0; k < WIDTH; k++)
            sum[k] /= window_places(w);
        store_wide<WIDTH>((T *)a.y + (uint64_t)i * WIDTH, sum);
    }
}

/* ---- backward -------------------------------------------------------------------------------- */

/* Where an input lies in no window, and a window without a maximum. */
enum : uint32_t { OUTSIDE = 0xFFFFFFFFU, NOWHERE = 0xFFFFFFFEU };

/* What WIDTH channels of one window add to the input at place `here` of it. */
template <class T, int WIDTH> struct max_window {
    float dy[WIDTH];
    uint32_t place[WIDTH];

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int k = 0; k < WIDTH; k++)
            dy[k] = 0, place[k] = NOWHERE;
    }
    __device__ __forceinline__ void load(const stk_train_max_pool_backward &a, uint32_t at,
                                         float /* places */)
    {
        load_wide<WIDTH>((const T *)a.dy + at, dy);
        if (WIDTH == 1 && stk_train_is_wide(&a.window))
            place[0] = ((const uint16_t *)a.places)[at];
        else if (WIDTH == 1)
            place[0] = ((const uint8_t *)a.places)[at];
#pragma unroll
        for (int k = 0; k + 4 <= WIDTH; k += 4) {
            const uint32_t four = *(const uint32_t *)((const uint8_t *)a.places + at + k);
#pragma unroll
            for (int byte = 0; byte < 4; byte++)
                place[k + byte] = four >> 8 * byte & 0xFF;
        }
        if (a.y == nullptr)
            return;
        float y[WIDTH];
        load_wide<WIDTH>((const T *)a.y + at, y);
#pragma unroll
        for (int k = 0; k < WIDTH; k++)
            place[k] = y[k] > 0 ? place[k] : NOWHERE;
    }
    __device__ __forceinline__ void add(uint32_t here, float *sum) const
    {
#pragma unroll
        for (int k = 0; k < WIDTH; k++)
            if (place[k] == here)
                sum[k] += dy[k];
    }
};

template <class T, int WIDTH> struct avg_window {
    float dy[WIDTH]; /* one input's share */

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int k = 0; k < WIDTH; k++)
            dy[k] = 0;
    }
    __device__ __forceinline__ void load(const stk_train_avg_pool &a, uint32_t at, float places)
    {
        load_wide<WIDTH>((const T *)a.x + at, dy);
#pragma unroll
        for (int k = 0; k < WIDTH; k++)
            dy[k] /= places;
    }
    __device__ __forceinline__ void add(uint32_t here, float *sum) const
    {
        if (here == OUTSIDE)
            return;
#pragma unroll
        for (int k = 0; k < WIDTH; k++)
            sum[k] += dy[k];
    }
};

/* Calls visit(r, s, at) for each input of tile p, inside the image, at place (r, s) of the tile. */
template <class Visit>
static __device__ __forceinline__ void each_input(const stk_train_window &w, const position &p,
                                                  const Visit &visit)
{
#pragma unroll 1 /* windows are small: more copies of the loop would only take registers */
    for (uint32_t r = 0; r < w.stride[0]; r++) {
        const uint32_t h = p.h * w.stride[0] + r - w.padding[0]; /* above the image it is large */
        if (h >= w.in_h)
            continue;
        const uint32_t line = input_at(w, p, h, 0);
#pragma unroll 1
        for (uint32_t s = 0; s < w.stride[1]; s++) {
            const uint32_t column = p.w * w.stride[1] + s - w.padding[1];
            if (column < w.in_w)
                visit(r, s, line + column * w.c);
        }
    }
}

/* Windows do not overlap: all inputs of a tile lie in the window that begins with it, or in
 * none. */
template <class Window, class T, int WIDTH, class Arguments>
static __device__ __forceinline__ void tile_of_one(const Arguments &a, T *dx, const position &p)
{
    const stk_train_window &w = a.window;
    const bool covered = p.h < w.out_h && p.w < w.out_w;
    Window window;
    window.clear();
    if (covered)
        window.load(a, output_at(w, p, p.h, p.w), window_places(w));
    each_input(w, p, [&](uint32_t r, uint32_t s, uint32_t at) {
        const bool inside = covered && r < w.kernel[0] && s < w.kernel[1];
        float sum[WIDTH] = {};
        window.add(inside ? r * w.kernel[1] + s : OUTSIDE, sum);
        store_wide<WIDTH>(dx + at, sum);
    });
}

/* The windows that cover place `r` of tile `tile` along one axis; the last one begins with the
 * tile. */
static __device__ __forceinline__ stk_train_range covering(uint32_t tile, uint32_t r,
                                                           uint32_t kernel, uint32_t before,
                                                           uint32_t rest, uint32_t outputs)
{
    /* before: (kernel - 1) / stride, rest: the remainder */
    const uint32_t taken = r <= rest ? before + 1 : before;
    stk_train_range range;
    range.first = tile + 1 < taken ? 0 : tile + 1 - taken;
    range.end = tile + 1 < outputs ? tile + 1 : outputs;
    return range;
}

/* Windows overlap. */
template <class Window, class T, int WIDTH, class Arguments>
static __device__ __forceinline__ void tile_of_several(const Arguments &a, T *dx, const position &p)
{
    const stk_train_window &w = a.window;
    const uint32_t before[2] = { (w.kernel[0] - 1) / w.stride[0], (w.kernel[1] - 1) / w.stride[1] };
    const uint32_t rest[2] = { (w.kernel[0] - 1) % w.stride[0], (w.kernel[1] - 1) % w.stride[1] };
    each_input(w, p, [&](uint32_t r, uint32_t s, uint32_t at) {
        const stk_train_range rows = covering(p.h, r, w.kernel[0], before[0], rest[0], w.out_h);
        const stk_train_range columns = covering(p.w, s, w.kernel[1], before[1], rest[1], w.out_w);
        float sum[WIDTH] = {};
#pragma unroll 1
        for (uint32_t oh = rows.first; oh < rows.end; oh++)
#pragma unroll 1
            for (uint32_t ow = columns.first; ow < columns.end; ow++) {
                Window window;
                window.load(a, output_at(w, p, oh, ow), window_places(w));
                window.add(((p.h - oh) * w.stride[0] + r) * w.kernel[1] + (p.w - ow) * w.stride[1] +
                               s,
                           sum);
            }
        store_wide<WIDTH>(dx + at, sum);
    });
}

/* Calls visit(p) for each tile of `side` inputs with an input of the image. */
template <class Visit>
static __device__ __forceinline__ void each_tile(const stk_train_window &w,
                                                 const uint32_t (&side)[2], int width,
                                                 const Visit &visit)
{
    const uint32_t tiles_h = stk_train_tiles(w.in_h, side[0], w.padding[0]);
    const uint32_t tiles_w = stk_train_tiles(w.in_w, side[1], w.padding[1]);
    const uint32_t packs = w.c / width;
    const uint32_t tiles = w.n * tiles_h * tiles_w * packs;
    for (uint32_t i = first_element_32(); i < tiles; i += element_stride_32()) {
        position p = position_of(i, tiles_h, tiles_w, packs, width);
        p.h += w.padding[0] / side[0]; /* the first tile with an input of the image */
        p.w += w.padding[1] / side[1];
        visit(p);
    }
}

template <class Window, class T, int WIDTH, class Arguments>
static __device__ __forceinline__ void each_tile_of_any(const Arguments &a, T *dx)
{
    const stk_train_window &w = a.window;
    if (w.kernel[0] <= w.stride[0] && w.kernel[1] <= w.stride[1])
        each_tile(w, w.stride, WIDTH,
                  [&](const position &p) { tile_of_one<Window, T, WIDTH>(a, dx, p); });
    else
        each_tile(w, w.stride, WIDTH,
                  [&](const position &p) { tile_of_several<Window, T, WIDTH>(a, dx, p); });
}

/* ---- backward, windows that the compiler knows: SIDE x SIDE at STRIDE, which divides TILE ---- */

enum : int { TILE = 2 /* stk_train_tile_side() */ };

/* Adds a window to the inputs of a tile that it covers; (row, column): the place of the tile's
 * first input in the window. */
template <int SIDE, int WIDTH, class Window>
static __device__ __forceinline__ void add_known(const Window &window, int row, int column,
                                                 float (&sum)[TILE][TILE][WIDTH])
{
#pragma unroll
    for (int r = 0; r < TILE; r++)
#pragma unroll
        for (int s = 0; s < TILE; s++)
            if (row + r >= 0 && row + r < SIDE && column + s >= 0 && column + s < SIDE)
                window.add((row + r) * SIDE + column + s, sum[r][s]);
}

template <int WIDTH, class T>
static __device__ __forceinline__ void store_tile(T *dx, const stk_train_window &w,
                                                  const position &p,
                                                  const float (&sum)[TILE][TILE][WIDTH])
{
#pragma unroll
    for (int r = 0; r < TILE; r++)
#pragma unroll
        for (int s = 0; s < TILE; s++) {
            const uint32_t h = p.h * TILE + r - w.padding[0]; /* above the image it is large */
            const uint32_t column = p.w * TILE + s - w.padding[1];
            if (h < w.in_h && column < w.in_w)
                store_wide<WIDTH>(dx + input_at(w, p, h, column), sum[r][s]);
        }
}

/* Loads each window that covers the tile once. */
template <class Window, class T, int WIDTH, int SIDE, int STRIDE, class Arguments>
static __device__ __forceinline__ void tile_of_known(const Arguments &a, T *dx, const position &p)
{
    enum : int { BEFORE = (SIDE - 1) / STRIDE, WINDOWS = BEFORE + TILE / STRIDE };
    const stk_train_window &w = a.window;
    float sum[TILE][TILE][WIDTH] = {};
#pragma unroll
    for (int i = 0; i < WINDOWS; i++)
#pragma unroll
        for (int j = 0; j < WINDOWS; j++) {
            const uint32_t oh = p.h * (TILE / STRIDE) + i - BEFORE; /* large if negative */
            const uint32_t ow = p.w * (TILE / STRIDE) + j - BEFORE;
            if (oh < w.out_h && ow < w.out_w) {
                Window window;
                window.load(a, output_at(w, p, oh, ow), SIDE * SIDE);
                add_known<SIDE>(window, (BEFORE - i) * STRIDE, (BEFORE - j) * STRIDE, sum);
            }
        }
    store_tile(dx, w, p, sum);
}

template <class Window, class T, int WIDTH, int SIDE, int STRIDE, class Arguments>
static __device__ __forceinline__ void each_tile_of_known(const Arguments &a, T *dx)
{
    const uint32_t side[] = { TILE, TILE };
    each_tile(a.window, side, WIDTH,
              [&](const position &p) { tile_of_known<Window, T, WIDTH, SIDE, STRIDE>(a, dx, p); });
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* Returns true if threads take WIDTH channels. */
template <class T> static __device__ __forceinline__ bool takes_packs(const stk_train_window &w)
{
    return w.c % widest<T>::WIDTH == 0 && !stk_train_is_wide(&w);
}

static __device__ __forceinline__ bool has_windows(const stk_train_window &w, uint32_t side,
                                                   uint32_t stride)
{
    return w.kernel[0] == side && w.kernel[1] == side && w.stride[0] == stride &&
           w.stride[1] == stride;
}

template <class T>
static __device__ __forceinline__ void max_pool_forward(const stk_train_max_pool &a)
{
    if (takes_packs<T>(a.window))
        max_pool_of<T, widest<T>::WIDTH>(a);
    else
        max_pool_of<T, 1>(a);
}

template <class T>
static __device__ __forceinline__ void max_pool_backward(const stk_train_max_pool_backward &a)
{
    enum { WIDTH = widest<T>::WIDTH };
    T *const dx = (T *)a.dx;
    if (!takes_packs<T>(a.window))
        each_tile_of_any<max_window<T, 1>, T, 1>(a, dx);
    else if (has_windows(a.window, 2, 2))
        each_tile_of_known<max_window<T, WIDTH>, T, WIDTH, 2, 2>(a, dx);
    else if (has_windows(a.window, 3, 2))
        each_tile_of_known<max_window<T, WIDTH>, T, WIDTH, 3, 2>(a, dx);
    else if (has_windows(a.window, 3, 1))
        each_tile_of_known<max_window<T, WIDTH>, T, WIDTH, 3, 1>(a, dx);
    else
        each_tile_of_any<max_window<T, WIDTH>, T, WIDTH>(a, dx);
}

template <class T>
static __device__ __forceinline__ void avg_pool_forward(const stk_train_avg_pool &a)
{
    if (takes_packs<T>(a.window))
        avg_pool_of<T, widest<T>::WIDTH>(a);
    else
        avg_pool_of<T, 1>(a);
}

template <class T>
static __device__ __forceinline__ void avg_pool_backward(const stk_train_avg_pool &a)
{
    enum { WIDTH = widest<T>::WIDTH };
    T *const dx = (T *)a.y;
    if (!takes_packs<T>(a.window))
        each_tile_of_any<avg_window<T, 1>, T, 1>(a, dx);
    else if (has_windows(a.window, 2, 2))
        each_tile_of_known<avg_window<T, WIDTH>, T, WIDTH, 2, 2>(a, dx);
    else
        each_tile_of_any<avg_window<T, WIDTH>, T, WIDTH>(a, dx);
}

STK_KERNEL(stk_train_max_pool_forward, stk_train_max_pool, max_pool_forward)
/* With 4 blocks of a multiprocessor, 64 registers a thread: left to itself the compiler takes 40 on
 * some GPUs, and spills. */
STK_KERNEL_BOUNDED(stk_train_max_pool_backward, stk_train_max_pool_backward, max_pool_backward,
                   STK_LAUNCH_THREADS, 4)
STK_KERNEL(stk_train_avg_pool_forward, stk_train_avg_pool, avg_pool_forward)
STK_KERNEL(stk_train_avg_pool_backward, stk_train_avg_pool, avg_pool_backward)
