/* memory.c - see memory.h.
 *
 *   arena   [block|rows of samples|whole images of coefficients ...        ]
 *            ^ reset for each image                                 bytes ^
 *
 * libjpeg's "virtual" arrays, such as all coefficients of a progressive image, lie here in one
 * piece.
 */
#ifdef STOKER_HAVE_JPEG
#include "loader/codec/jpeg/memory.h"

#include <assert.h>
#include <string.h>

#include <jerror.h>

enum {
    ALIGNMENT = 64,
    ROW_ALIGNMENT = 128 /* libjpeg-turbo's vector code writes past a row's end, up to 64 bytes */
};

/* libjpeg declares these two for the memory manager to define. */
struct jvirt_sarray_control {
    JSAMPARRAY rows;
    JDIMENSION count;
};

struct jvirt_barray_control {
    JBLOCKARRAY rows;
    JDIMENSION count;
};

static void *take(j_common_ptr cinfo, size_t bytes)
{
    struct stk_jpeg_arena *arena = cinfo->client_data;
    const size_t left = arena->bytes - arena->used;
    if (bytes > left || left - bytes < ALIGNMENT)
        ERREXIT1(cinfo, JERR_OUT_OF_MEMORY, 0);
    uint8_t *block = arena->base + arena->used;
    arena->used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return block;
}

static void *alloc_block(j_common_ptr cinfo, int pool, size_t bytes)
{
    (void)pool;
    return take(cinfo, bytes);
}

static JSAMPARRAY alloc_samples(j_common_ptr cinfo, int pool, JDIMENSION width, JDIMENSION rows)
{
    (void)pool;
    const size_t stride =
        ((size_t)width * sizeof(JSAMPLE) + ROW_ALIGNMENT - 1) / ROW_ALIGNMENT * ROW_ALIGNMENT;
    JSAMPARRAY array = take(cinfo, rows * sizeof(array[0]));
    uint8_t *samples = take(cinfo, rows * stride + ROW_ALIGNMENT);
    for (JDIMENSION row = 0; row < rows; row++)
        array[row] = (JSAMPROW)(void *)(samples + row * stride);
    return array;
}

static JBLOCKARRAY alloc_blocks(j_common_ptr cinfo, int pool, JDIMENSION width, JDIMENSION rows)
{
    (void)pool;
    JBLOCKARRAY array = take(cinfo, rows * sizeof(array[0]));
    JBLOCKROW blocks = take(cinfo, (size_t)rows * width * sizeof(JBLOCK));
    for (JDIMENSION row = 0; row < rows; row++)
        array[row] = blocks + (size_t)row * width;
    return array;
}

static jvirt_sarray_ptr request_samples(j_common_ptr cinfo, int pool, boolean zeroed,
                                        JDIMENSION width, JDIMENSION rows, JDIMENSION access)
{
    (void)access;
    jvirt_sarray_ptr array = take(cinfo, sizeof(*array));
    array->rows = alloc_samples(cinfo, pool, width, rows);
    array->count = rows;
    for (JDIMENSION row = 0; zeroed && row < rows; row++)
        memset(array->rows[row], 0, width * sizeof(JSAMPLE));
    return array;
}

static jvirt_barray_ptr request_blocks(j_common_ptr cinfo, int pool, boolean zeroed,
                                       JDIMENSION width, JDIMENSION rows, JDIMENSION access)
{
    (void)access;
    jvirt_barray_ptr array = take(cinfo, sizeof(*array));
    array->rows = alloc_blocks(cinfo, pool, width, rows);
    array->count = rows;
    for (JDIMENSION row = 0; zeroed && row < rows; row++)
        memset(array->rows[row], 0, width * sizeof(JBLOCK));
    return array;
}

static void realize(j_common_ptr cinfo)
{
    (void)cinfo; /* they are allocated at once */
}

static void check_access(j_common_ptr cinfo, JDIMENSION first, JDIMENSION rows, JDIMENSION count)
{
    if (first > count || rows > count - first)
        ERREXIT(cinfo, JERR_BAD_VIRTUAL_ACCESS);
}

static JSAMPARRAY access_samples(j_common_ptr cinfo, jvirt_sarray_ptr array, JDIMENSION first,
                                 JDIMENSION rows, boolean writable)
{
    (void)writable;
    check_access(cinfo, first, rows, array->count);
    return array->rows + first;
}

static JBLOCKARRAY access_blocks(j_common_ptr cinfo, jvirt_barray_ptr array, JDIMENSION first,
                                 JDIMENSION rows, boolean writable)
{
    (void)writable;
    check_access(cinfo, first, rows, array->count);
    return array->rows + first;
}

static void free_pool(j_common_ptr cinfo, int pool)
{
    (void)cinfo;
    (void)pool;
}

void stk_jpeg_memory_install(j_common_ptr cinfo, struct stk_jpeg_arena *arena)
{
    struct jpeg_memory_mgr *methods = cinfo->mem;
    assert(methods != NULL);
    cinfo->client_data = arena;
    methods->alloc_small = alloc_block;
    methods->alloc_large = alloc_block;
    methods->alloc_sarray = alloc_samples;
    methods->alloc_barray = alloc_blocks;
    methods->request_virt_sarray = request_samples;
    methods->request_virt_barray = request_blocks;
    methods->realize_virt_arrays = realize;
    methods->access_virt_sarray = access_samples;
    methods->access_virt_barray = access_blocks;
    methods->free_pool = free_pool;
    /* self_destruct stays: it frees what jpeg_create_decompress() took. */
}
#else
typedef int stk_jpeg_memory_is_not_built; /* C requires a declaration */
#endif
