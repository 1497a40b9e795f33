/* product.c - see product.h: the one file that includes cuBLASLt's header.
 *
 * The library is column-major: a row-major [r][c] is a matrix of c rows and r columns for it. So d
 * = a b is requested as d' = b' a', and the bias, one value per column of d, is one per row. */
#include "trainer/backend/cuda/cublaslt/product.h"

#include <assert.h>
#include <cublasLt.h>
#include <dlfcn.h>

#include "loader/base/error.h"
#include "loader/base/library.h"
#include "loader/base/memory/memory.h"

/* X(function): what is looked up. */
#define FUNCTIONS(X)                                                                               \
    X(cublasLtGetStatusString)                                                                     \
    X(cublasLtCreate)                                                                              \
    X(cublasLtDestroy)                                                                             \
    X(cublasLtMatmulDescCreate)                                                                    \
    X(cublasLtMatmulDescDestroy)                                                                   \
    X(cublasLtMatmulDescSetAttribute)                                                              \
    X(cublasLtMatrixLayoutCreate)                                                                  \
    X(cublasLtMatrixLayoutDestroy)                                                                 \
    X(cublasLtMatmulPreferenceCreate)                                                              \
    X(cublasLtMatmulPreferenceDestroy)                                                             \
    X(cublasLtMatmulPreferenceSetAttribute)                                                        \
    X(cublasLtMatmulAlgoGetHeuristic)                                                              \
    X(cublasLtMatmul)

struct calls {
#define MEMBER(function) __typeof__(&(function)) function;
    FUNCTIONS(MEMBER)
#undef MEMBER
};

struct stk_cublaslt {
    void *library;
    cublasLtHandle_t handle;
    struct calls call;
};

struct stk_product {
    const struct stk_cublaslt *cublaslt;
    cublasLtMatmulDesc_t matmul;
    cublasLtMatrixLayout_t left, right, result; /* b, a and d */
    float beta;
    uint32_t algorithms, chosen;
    cublasLtMatmulHeuristicResult_t algorithm[STK_BENCHMARK_MAX]; /* best first */
};

static int failed(const struct stk_cublaslt *cublaslt, cublasStatus_t status, const char *what,
                  stoker_error *error)
{
    const int code = status == CUBLAS_STATUS_NOT_SUPPORTED  ? STOKER_ENOTSUP
                     : status == CUBLAS_STATUS_ALLOC_FAILED ? STOKER_ENOMEM
                                                            : STOKER_EDEVICE;
    return stk_refuse_option(error, code, "cuBLASLt: %s: %s", what,
                             cublaslt->call.cublasLtGetStatusString(status));
}

/* ---- the library ----------------------------------------------------------------------------- */

static int failed_to_load(stoker_error *error, const char *why)
{
    return stk_error_set(error, STOKER_EDEVICE, STOKER_STAGE_OPEN, &(struct stk_place)STK_NOWHERE,
                         "cuBLASLt: %s", why);
}

/* The functions and structs used here are the same in both. First the one that belongs to the CUDA
 * runtime that is tried first (loader/base/cuda/cuda_runtime.c). */
#if CUBLAS_VER_MAJOR >= 13
static const char *const sonames[] = { "libcublasLt.so.13", "libcublasLt.so.12" };
#else
static const char *const sonames[] = { "libcublasLt.so.12", "libcublasLt.so.13" };
#endif

/* With `variable` the file that it names comes before the soname; NULL = none. */
static int load(struct stk_cublaslt *cublaslt, const char *variable, const char *soname,
                stoker_error *error)
{
#define FUNCTION(name) STK_FUNCTION(struct calls, name)
    static const struct stk_function functions[] = { FUNCTIONS(FUNCTION) };
#undef FUNCTION
    const size_t count = sizeof(functions) / sizeof(functions[0]);
    const char *why = NULL;
    cublaslt->library = stk_library_open(variable, soname, &why);
    if (cublaslt->library == NULL ||
        !stk_library_fill(cublaslt->library, functions, count, &cublaslt->call, &why))
        return failed_to_load(error, why);
    return STOKER_OK;
}

static void unload(struct stk_cublaslt *cublaslt)
{
    if (cublaslt->handle != NULL)
        (void)cublaslt->call.cublasLtDestroy(cublaslt->handle);
    if (cublaslt->library != NULL)
        (void)dlclose(cublaslt->library);
    cublaslt->handle = NULL;
    cublaslt->library = NULL;
}

static int start(struct stk_cublaslt *cublaslt, const char *variable, const char *soname,
                 stoker_error *error)
{
    int rc = load(cublaslt, variable, soname, error);
    if (rc == STOKER_OK) {
        const cublasStatus_t status = cublaslt->call.cublasLtCreate(&cublaslt->handle);
        if (status != CUBLAS_STATUS_SUCCESS) {
            cublaslt->handle = NULL;
            rc = failed(cublaslt, status, "the current CUDA device", error);
        }
    }
    if (rc != STOKER_OK)
        unload(cublaslt);
    return rc;
}

/* A library that needs a later driver than there is loads, and its create fails. */
static int start_first_that_works(struct stk_cublaslt *cublaslt, stoker_error *error)
{
    static const char variable[] = "STOKER_CUBLASLT";
    stoker_error first = { .code = 0 };
    const int rc = start(cublaslt, variable, sonames[0], &first);
    if (rc == STOKER_OK || start(cublaslt, variable, sonames[1], NULL) == STOKER_OK)
        return STOKER_OK;
    if (error != NULL)
        *error = first;
    return rc;
}

int stk_cublaslt_open(struct stk_cublaslt **out, const char *library, stoker_error *error)
{
    struct stk_cublaslt *cublaslt = stk_calloc(1, sizeof(*cublaslt));
    if (cublaslt == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPEN,
                             &(struct stk_place)STK_NOWHERE, "cuBLASLt");
    const int rc = library != NULL ? start(cublaslt, NULL, library, error)
                                   : start_first_that_works(cublaslt, error);
    if (rc != STOKER_OK) {
        stk_cublaslt_close(&cublaslt);
        return rc;
    }
    *out = cublaslt;
    return STOKER_OK;
}

void stk_cublaslt_close(struct stk_cublaslt **cublaslt)
{
    struct stk_cublaslt *const c = *cublaslt;
    if (c == NULL)
        return;
    unload(c);
    stk_free(c);
    *cublaslt = NULL;
}

/* ---- products -------------------------------------------------------------------------------- */

static cudaDataType_t data_type(stoker_dtype dtype)
{
    switch (dtype) {
    case STOKER_DTYPE_FLOAT16:
        return CUDA_R_16F;
    case STOKER_DTYPE_BFLOAT16:
        return CUDA_R_16BF;
    default:
        assert(dtype == STOKER_DTYPE_FLOAT32);
        return CUDA_R_32F;
    }
}

static cublasLtEpilogue_t epilogue_of(enum stk_product_epilogue epilogue)
{
    switch (epilogue) {
    case STK_PRODUCT_RELU:
        return CUBLASLT_EPILOGUE_RELU;
    case STK_PRODUCT_BIAS:
        return CUBLASLT_EPILOGUE_BIAS;
    case STK_PRODUCT_BIAS_RELU:
        return CUBLASLT_EPILOGUE_RELU_BIAS;
    case STK_PRODUCT_WRITE:
    case STK_PRODUCT_ADD:
    default:
        return CUBLASLT_EPILOGUE_DEFAULT;
    }
}

static bool has_bias(enum stk_product_epilogue epilogue)
{
    return epilogue == STK_PRODUCT_BIAS || epilogue == STK_PRODUCT_BIAS_RELU;
}

static cublasStatus_t point_to_bias(struct stk_product *p, const void *bias)
{
    const void *const place = &bias;
    return p->cublaslt->call.cublasLtMatmulDescSetAttribute(
        p->matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER, place, sizeof(bias));
}

/* Algorithms are requested before there is a bias: only the alignment of its address matters. */
static const _Alignas(16) char some_place[16];

static cublasStatus_t describe(struct stk_product *p, const struct stk_product_shape *s,
                               const struct stk_engine_rules *rules)
{
    const struct stk_cublaslt *const lt = p->cublaslt;
    const bool tf32 = s->in == STOKER_DTYPE_FLOAT32 && !rules->full_float32;
    const cublasOperation_t left = s->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t right = s->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasLtEpilogue_t end = epilogue_of(s->epilogue);
    cublasStatus_t status = lt->call.cublasLtMatmulDescCreate(
        &p->matmul, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = lt->call.cublasLtMatmulDescSetAttribute(p->matmul, CUBLASLT_MATMUL_DESC_TRANSA,
                                                         &left, sizeof(left));
    if (status == CUBLAS_STATUS_SUCCESS)
        status = lt->call.cublasLtMatmulDescSetAttribute(p->matmul, CUBLASLT_MATMUL_DESC_TRANSB,
                                                         &right, sizeof(right));
    if (status == CUBLAS_STATUS_SUCCESS)
        status = lt->call.cublasLtMatmulDescSetAttribute(p->matmul, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                                         &end, sizeof(end));
    if (status == CUBLAS_STATUS_SUCCESS && has_bias(s->epilogue))
        status = point_to_bias(p, some_place);
    return status;
}

/* The layout of a row-major [rows][columns]. */
static cublasStatus_t lay_out(const struct stk_product *p, cublasLtMatrixLayout_t *out,
                              stoker_dtype dtype, uint64_t rows, uint64_t columns)
{
    return p->cublaslt->call.cublasLtMatrixLayoutCreate(out, data_type(dtype), columns, rows,
                                                        (int64_t)columns);
}

static cublasStatus_t lay_out_all(struct stk_product *p, const struct stk_product_shape *s)
{
    cublasStatus_t status = lay_out(p, &p->left, s->in, s->b_transposed ? s->columns : s->depth,
                                    s->b_transposed ? s->depth : s->columns);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = lay_out(p, &p->right, s->in, s->a_transposed ? s->depth : s->rows,
                         s->a_transposed ? s->rows : s->depth);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = lay_out(p, &p->result, s->out, s->rows, s->columns);
    return status;
}

/* The rules as preferences. Deterministic runs exclude algorithms in which several blocks share a
 * sum, since the order of their additions is not documented. */
static cublasStatus_t set_preference(const struct stk_cublaslt *lt,
                                     cublasLtMatmulPreference_t preference,
                                     const struct stk_engine_rules *rules)
{
    const uint64_t bytes = rules->workspace_bytes_max;
    const uint32_t schemes =
        rules->deterministic ? CUBLASLT_REDUCTION_SCHEME_NONE : CUBLASLT_REDUCTION_SCHEME_MASK;
    const uint32_t alignment_bytes = 16; /* the default is 256 */
    static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES
    };
    cublasStatus_t status = lt->call.cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes));
    if (status == CUBLAS_STATUS_SUCCESS)
        status = lt->call.cublasLtMatmulPreferenceSetAttribute(
            preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof(schemes));
    for (size_t i = 0; i < sizeof(alignments) / sizeof(alignments[0]); i++)
        if (status == CUBLAS_STATUS_SUCCESS)
            status = lt->call.cublasLtMatmulPreferenceSetAttribute(
                preference, alignments[i], &alignment_bytes, sizeof(alignment_bytes));
    return status;
}

static cublasStatus_t find_algorithms(struct stk_product *p, const struct stk_engine_rules *rules)
{
    const struct stk_cublaslt *const lt = p->cublaslt;
    cublasLtMatmulPreference_t preference = NULL;
    cublasStatus_t status = lt->call.cublasLtMatmulPreferenceCreate(&preference);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    int found = 0;
    status = set_preference(lt, preference, rules);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = lt->call.cublasLtMatmulAlgoGetHeuristic(lt->handle, p->matmul, p->left, p->right,
                                                         p->result, p->result, preference,
                                                         STK_BENCHMARK_MAX, p->algorithm, &found);
    (void)lt->call.cublasLtMatmulPreferenceDestroy(preference);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    for (int i = 0; i < found; i++) /* each has a status of its own */
        if (p->algorithm[i].state == CUBLAS_STATUS_SUCCESS &&
            p->algorithm[i].workspaceSize <= rules->workspace_bytes_max)
            p->algorithm[p->algorithms++] = p->algorithm[i];
    return p->algorithms > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

int stk_product_create(struct stk_product **out, struct stk_cublaslt *cublaslt,
                       const struct stk_product_shape *shape, const struct stk_engine_rules *rules,
                       stoker_error *error)
{
    assert(shape->rows >= 1);
    assert(shape->columns >= 1);
    assert(shape->depth >= 1);
    assert(shape->out == shape->in || shape->out == STOKER_DTYPE_FLOAT32);
    struct stk_product *product = stk_calloc(1, sizeof(*product));
    if (product == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "cuBLASLt: a product");
    product->cublaslt = cublaslt;
    product->beta = shape->epilogue == STK_PRODUCT_ADD ? 1 : 0;
    cublasStatus_t status = describe(product, shape, rules);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = lay_out_all(product, shape);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = find_algorithms(product, rules);
    if (status != CUBLAS_STATUS_SUCCESS) {
        stk_product_destroy(&product);
        return failed(cublaslt, status, "a product", error);
    }
    *out = product;
    return STOKER_OK;
}

void stk_product_destroy(struct stk_product **product)
{
    struct stk_product *const p = *product;
    if (p == NULL)
        return;
    const struct stk_cublaslt *const lt = p->cublaslt;
    const cublasLtMatrixLayout_t layouts[] = { p->left, p->right, p->result };
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
        if (layouts[i] != NULL)
            (void)lt->call.cublasLtMatrixLayoutDestroy(layouts[i]);
    if (p->matmul != NULL)
        (void)lt->call.cublasLtMatmulDescDestroy(p->matmul);
    stk_free(p);
    *product = NULL;
}

uint32_t stk_product_algorithms(const struct stk_product *product)
{
    return product->algorithms;
}

void stk_product_choose(struct stk_product *product, uint32_t algorithm)
{
    assert(algorithm < product->algorithms);
    product->chosen = algorithm;
}

uint32_t stk_product_chosen(const struct stk_product *product)
{
    return product->chosen;
}

uint64_t stk_product_workspace_bytes(const struct stk_product *product)
{
    return product->algorithm[product->chosen].workspaceSize;
}

void stk_product_add(struct stk_product *product, bool add)
{
    product->beta = add ? 1 : 0;
}

int stk_product_run(struct stk_product *product, const void *a, const void *b, const void *bias,
                    void *d, void *workspace, void *stream, stoker_error *error)
{
    const struct stk_cublaslt *const lt = product->cublaslt;
    const cublasLtMatmulHeuristicResult_t *const chosen = &product->algorithm[product->chosen];
    const float one = 1;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (bias != NULL)
        status = point_to_bias(product, bias);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = lt->call.cublasLtMatmul(lt->handle, product->matmul, &one, b, product->left, a,
                                         product->right, &product->beta, d, product->result, d,
                                         product->result, &chosen->algo, workspace,
                                         chosen->workspaceSize, (cudaStream_t)stream);
    return status == CUBLAS_STATUS_SUCCESS ? STOKER_OK : failed(lt, status, "run", error);
}
