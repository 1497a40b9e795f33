/* cublaslt.c - see standin_cublaslt.h. */
#include "support/standin_cublaslt/standin_cublaslt.h"

#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/float16.h"
#include "support/standin_cuda/standin_cuda.h"

struct layout {
    cudaDataType_t type;
    uint64_t rows, columns;
    int64_t ld;
};

struct matmul {
    cublasComputeType_t compute;
    cublasOperation_t left, right;
    cublasLtEpilogue_t epilogue;
    const void *bias;
};

struct preference {
    uint64_t workspace_bytes;
    uint32_t schemes, alignment_bytes[4];
};

/* Contents of cublasLtMatmulAlgo_t. */
struct algorithm {
    uint64_t workspace_bytes;
    uint32_t alignment_bytes;
    uint32_t index; /* in the list */
};

static struct {
    bool epilogues, refuses;
    struct standin_cublaslt_failing failing;
    _Atomic uint64_t runs; /* trainers may be in several threads */
    _Atomic int64_t live;
} standin = { .epilogues = true };

void standin_cublaslt_reset(bool epilogues)
{
    standin.epilogues = epilogues;
    standin.refuses = false;
    standin.failing = (struct standin_cublaslt_failing){ 0 };
    standin.runs = 0;
}

void standin_cublaslt_fail(struct standin_cublaslt_failing failing)
{
    standin.failing = failing;
}

void standin_cublaslt_refuse(bool refuses)
{
    standin.refuses = refuses;
}

uint64_t standin_cublaslt_runs(void)
{
    return standin.runs;
}

int64_t standin_cublaslt_live(void)
{
    return standin.live;
}

/* ---- create, set and destroy ----------------------------------------------------------------- */

/* A copy; NULL: out of memory. */
static void *create(const void *from, size_t bytes)
{
    void *const made = malloc(bytes);
    if (made == NULL)
        return NULL;
    standin.live++;
    return memcpy(made, from, bytes);
}

static cublasStatus_t created(const void *made)
{
    return made == NULL ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t destroy(void *made)
{
    free(made);
    standin.live -= made != NULL;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "CUBLAS_STATUS_EXECUTION_FAILED";
    default:
        return "another status";
    }
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out)
{
    int device;
    if (standin.refuses || cudaGetDevice(&device) != cudaSuccess)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *out = create(&device, sizeof(device));
    return created(*out);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    return destroy(handle);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    if (scale != CUDA_R_32F ||
        (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    const struct matmul matmul = { compute, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT,
                                   NULL };
    *out = create(&matmul, sizeof(matmul));
    return created(*out);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t matmul)
{
    return destroy(matmul);
}

/* Copy an attribute that is as large as its member. */
static cublasStatus_t set(void *member, size_t bytes, const void *value, size_t value_bytes)
{
    if (bytes != value_bytes)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(member, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t described,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void *value, size_t bytes)
{
    struct matmul *const m = (void *)described;
    switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return set(&m->left, sizeof(m->left), value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return set(&m->right, sizeof(m->right), value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return set(&m->epilogue, sizeof(m->epilogue), value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return set(&m->bias, sizeof(m->bias), value, bytes);
    default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld)
{
    if (rows == 0 || columns == 0 || ld < (int64_t)rows)
        return CUBLAS_STATUS_INVALID_VALUE;
    const struct layout layout = { type, rows, columns, ld };
    *out = create(&layout, sizeof(layout));
    return created(*out);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return destroy(layout);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    const struct preference preference = { 0,
                                           CUBLASLT_REDUCTION_SCHEME_MASK,
                                           { 256, 256, 256, 256 } };
    *out = create(&preference, sizeof(preference));
    return created(*out);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    return destroy(preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void *value, size_t bytes)
{
    struct preference *const p = (void *)preference;
    switch (name) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return set(&p->workspace_bytes, sizeof(p->workspace_bytes), value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return set(&p->schemes, sizeof(p->schemes), value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return set(&p->alignment_bytes[name - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES],
                   sizeof(uint32_t), value, bytes);
    default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
}

/* ---- supported products ---------------------------------------------------------------------- */

static bool has_bias(cublasLtEpilogue_t epilogue)
{
    return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
}

static bool has_relu(cublasLtEpilogue_t epilogue)
{
    return epilogue == CUBLASLT_EPILOGUE_RELU || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
}

/* d = op(a) op(b): extents, types, epilogue. */
static cublasStatus_t check(const struct matmul *m, const struct layout *a, const struct layout *b,
                            const struct layout *c, const struct layout *d)
{
    const uint64_t rows = m->left == CUBLAS_OP_N ? a->rows : a->columns;
    const uint64_t depth = m->left == CUBLAS_OP_N ? a->columns : a->rows;
    const uint64_t depth_too = m->right == CUBLAS_OP_N ? b->rows : b->columns;
    const uint64_t columns = m->right == CUBLAS_OP_N ? b->columns : b->rows;
    if (rows != d->rows || columns != d->columns || depth != depth_too || c->rows != d->rows ||
        c->columns != d->columns)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (a->type != b->type || c->type != d->type || (d->type != a->type && d->type != CUDA_R_32F))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    const bool plain = m->epilogue == CUBLASLT_EPILOGUE_DEFAULT;
    if (!plain && (!standin.epilogues || !(has_bias(m->epilogue) || has_relu(m->epilogue))))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return has_bias(m->epilogue) && m->bias == NULL ? CUBLAS_STATUS_INVALID_VALUE
                                                    : CUBLAS_STATUS_SUCCESS;
}

/* Append to the list. */
static void propose(cublasLtMatmulHeuristicResult_t results[], int *found,
                    const struct preference *p, uint64_t workspace_bytes)
{
    cublasLtMatmulHeuristicResult_t *const result = &results[*found];
    struct algorithm algorithm = { workspace_bytes, 0, (uint32_t)*found };
    *found += 1;
    for (int i = 0; i < 4; i++)
        if (p->alignment_bytes[i] > algorithm.alignment_bytes)
            algorithm.alignment_bytes = p->alignment_bytes[i];
    memset(result, 0, sizeof(*result));
    memcpy(result->algo.data, &algorithm, sizeof(algorithm));
    result->workspaceSize = workspace_bytes;
    result->state = CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t matmul,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int *found)
{
    enum { SHARED_BYTES = 4096 };
    const struct preference *const p = (const void *)preference;
    *found = 0;
    if (handle == NULL)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    const cublasStatus_t status = check((const void *)matmul, (const void *)a, (const void *)b,
                                        (const void *)c, (const void *)d);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    if ((p->schemes & CUBLASLT_REDUCTION_SCHEME_INPLACE) != 0 &&
        p->workspace_bytes >= SHARED_BYTES && *found < wanted)
        propose(results, found, p, SHARED_BYTES);
    if (*found < wanted)
        propose(results, found, p, 0);
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- running --------------------------------------------------------------------------------- */

/* One product, with the host addresses of its operands. */
struct work {
    struct matmul matmul;
    struct layout a, b, d;
    float alpha, beta;
    const void *left, *right, *old;
    void *result, *workspace;
    uint64_t workspace_bytes;
};

static float load(const void *data, cudaDataType_t type, uint64_t i)
{
    switch (type) {
    case CUDA_R_16F:
        return float_of_float16(((const uint16_t *)data)[i]);
    case CUDA_R_16BF:
        return float_of_bfloat16(((const uint16_t *)data)[i]);
    default:
        return ((const float *)data)[i];
    }
}

static void store(void *data, cudaDataType_t type, uint64_t i, float value)
{
    if (type == CUDA_R_16F)
        ((uint16_t *)data)[i] = float16_of_float(value);
    else if (type == CUDA_R_16BF)
        ((uint16_t *)data)[i] = bfloat16_of_float(value);
    else
        ((float *)data)[i] = value;
}

/* op(matrix) in float32, dense, column-major. */
static float *widen(const void *data, const struct layout *l, cublasOperation_t op)
{
    const uint64_t ld = (uint64_t)l->ld;
    const bool as_it_lies = op == CUBLAS_OP_N;
    float *const wide = malloc(l->rows * l->columns * sizeof(*wide));
    if (wide == NULL)
        abort();
    for (uint64_t column = 0; column < l->columns; column++)
        for (uint64_t row = 0; row < l->rows; row++)
            wide[as_it_lies ? column * l->rows + row : row * l->columns + column] =
                load(data, l->type, column * ld + row);
    return wide;
}

/* Apply alpha, the old values and the epilogue. */
static void write_column(const struct work *w, uint64_t column, const float *sums)
{
    for (uint64_t row = 0; row < w->d.rows; row++) {
        const uint64_t at = row + column * (uint64_t)w->d.ld;
        float value = w->alpha * sums[row];
        if (w->beta < 0 || w->beta > 0)
            value += w->beta * load(w->old, w->d.type, at);
        if (has_bias(w->matmul.epilogue))
            value += load(w->matmul.bias, w->d.type, row);
        if (has_relu(w->matmul.epilogue) && value < 0)
            value = 0;
        store(w->result, w->d.type, at, value);
    }
}

static void multiply(const struct work *w)
{
    const uint64_t depth = w->matmul.left == CUBLAS_OP_N ? w->a.columns : w->a.rows;
    float *const left = widen(w->left, &w->a, w->matmul.left);    /* [depth][rows] */
    float *const right = widen(w->right, &w->b, w->matmul.right); /* [columns][depth] */
    float *const sums = malloc(w->d.rows * sizeof(*sums));
    if (sums == NULL)
        abort();
    for (uint64_t column = 0; column < w->d.columns; column++) {
        memset(sums, 0, w->d.rows * sizeof(*sums));
        for (uint64_t k = 0; k < depth; k++) {
            const float factor = right[column * depth + k];
            const float *const values = left + k * w->d.rows;
            for (uint64_t row = 0; row < w->d.rows; row++)
                sums[row] += factor * values[row];
        }
        write_column(w, column, sums);
    }
    free(sums);
    free(right);
    free(left);
}

static void scribble(const struct work *w)
{
    if (w->workspace != NULL)
        memset(w->workspace, 255, w->workspace_bytes);
}

static void run(const struct standin_cuda_kernel *kernel, void *argument)
{
    (void)kernel;
    const struct work *const w = argument;
    scribble(w);
    multiply(w);
    scribble(w);
}

static uint64_t type_bytes(cudaDataType_t type)
{
    return type == CUDA_R_32F ? 4 : 2;
}

/* Host pointer to `bytes` of device memory; NULL = not device memory, or badly aligned. */
static void *view(const void *memory, uint64_t bytes, uint32_t alignment_bytes)
{
    return (uintptr_t)memory % alignment_bytes == 0 ? standin_cuda_view_range(memory, bytes) : NULL;
}

static void *view_matrix(const void *memory, const struct layout *l, uint32_t alignment_bytes)
{
    const uint64_t elements = (l->columns - 1) * (uint64_t)l->ld + l->rows;
    return view(memory, elements * type_bytes(l->type), alignment_bytes);
}

static bool fails(const struct algorithm *algorithm, const struct matmul *matmul)
{
    return (standin.failing.algorithms >> algorithm->index & 1) != 0 &&
           (!standin.failing.fused_only || matmul->epilogue != CUBLASLT_EPILOGUE_DEFAULT);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t matmul,
                              const void *alpha, const void *a, cublasLtMatrixLayout_t a_layout,
                              const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
                              const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    static const struct standin_cuda_kernel kernel = { "cublaslt", sizeof(struct work), run };
    const cublasStatus_t status =
        check((const void *)matmul, (const void *)a_layout, (const void *)b_layout,
              (const void *)c_layout, (const void *)d_layout);
    if (handle == NULL || status != CUBLAS_STATUS_SUCCESS)
        return handle == NULL ? CUBLAS_STATUS_NOT_INITIALIZED : status;
    struct algorithm algorithm;
    memcpy(&algorithm, algo->data, sizeof(algorithm));
    struct work w = { .matmul = *(const struct matmul *)(const void *)matmul,
                      .a = *(const struct layout *)(const void *)a_layout,
                      .b = *(const struct layout *)(const void *)b_layout,
                      .d = *(const struct layout *)(const void *)d_layout,
                      .alpha = *(const float *)alpha,
                      .beta = *(const float *)beta,
                      .workspace_bytes = algorithm.workspace_bytes };
    const uint32_t aligned = algorithm.alignment_bytes;
    w.left = view_matrix(a, &w.a, aligned);
    w.right = view_matrix(b, &w.b, aligned);
    w.old = view_matrix(c, &w.d, aligned);
    w.result = view_matrix(d, &w.d, aligned);
    if (w.left == NULL || w.right == NULL || w.old == NULL || w.result == NULL)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (has_bias(w.matmul.epilogue)) {
        w.matmul.bias = view(w.matmul.bias, w.d.rows * type_bytes(w.d.type), 16);
        if (w.matmul.bias == NULL)
            return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (w.workspace_bytes > 0) {
        w.workspace = view(workspace, w.workspace_bytes, 256);
        if (w.workspace == NULL || workspace_bytes < w.workspace_bytes)
            return CUBLAS_STATUS_INVALID_VALUE;
    }
    standin.runs++;
    if (fails(&algorithm, &w.matmul) && !standin.failing.loses_device)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if (fails(&algorithm, &w.matmul)) /* noticed at the call after the launch */
        standin_cuda_fail(2, cudaErrorIllegalAddress, true);
    return standin_cuda_queue(&kernel, &w, stream) ? CUBLAS_STATUS_SUCCESS
                                                   : CUBLAS_STATUS_EXECUTION_FAILED;
}
