/* context.c - the driver's contexts: which device is current in a thread, and which devices were
 * initialized.
 *
 *   thread's stack   [ base ] [ pushed ] [ pushed ] ◀── current
 *
 * The base is what cudaSetDevice() chose; a thread that has chosen nothing is at device 0, which is
 * not initialized by that alone. As with CUDA, cudaSetDevice() initializes the device that it
 * names, and any other call the current one, but for those that only ask about devices, versions
 * and errors (standin_begin_light).
 */
#include <string.h>

#include "state.h"

enum { DEPTH_MAX = 16, INVALID_CONTEXT = 201 /* CUDA_ERROR_INVALID_CONTEXT */ };

struct CUctx_st {
    int device;
};

static struct CUctx_st primary[STANDIN_DEVICES_MAX] = { { 0 }, { 1 }, { 2 }, { 3 },
                                                        { 4 }, { 5 }, { 6 }, { 7 } };
static _Thread_local int base;
static _Thread_local int pushed[DEPTH_MAX];
static _Thread_local int depth;
static _Thread_local bool bound; /* a call of this thread has made the base's context */

int standin_current(void)
{
    return depth > 0 ? pushed[depth - 1] : base;
}

void standin_set_current(int device)
{
    if (depth > 0)
        pushed[depth - 1] = device;
    else
        base = device;
}

bool standin_has_context(void)
{
    return depth > 0 || bound;
}

void standin_initialize(int device)
{
    bound = bound || depth == 0;
    if (!standin_own_calls() && device < STANDIN_DEVICES_MAX)
        atomic_store(&standin.initialized[device], true);
}

bool standin_cuda_initialized(int device)
{
    return atomic_load(&standin.initialized[device]);
}

int standin_cuda_pushed(void)
{
    return depth;
}

/* ---- the driver's functions ---- */

static int init(unsigned flags)
{
    (void)flags;
    return (int)standin_begin_light();
}

static int get_device(int *device, int ordinal)
{
    const cudaError_t refused = standin_begin_light();
    if (refused != cudaSuccess)
        return (int)refused;
    *device = ordinal;
    return ordinal < atomic_load(&standin.devices) ? 0 : (int)cudaErrorInvalidDevice;
}

static int retain(struct CUctx_st **context, int device)
{
    const cudaError_t refused = standin_begin_light();
    if (refused != cudaSuccess)
        return (int)refused;
    standin_initialize(device);
    *context = &primary[device];
    return 0;
}

static int push(struct CUctx_st *context)
{
    const cudaError_t refused = standin_begin_light();
    if (refused != cudaSuccess)
        return (int)refused;
    if (context == NULL || depth == DEPTH_MAX)
        return INVALID_CONTEXT;
    pushed[depth++] = context->device;
    return 0;
}

/* As all that gives something back, it does so even if it reports an error. */
static int pop(struct CUctx_st **context)
{
    const cudaError_t refused = standin_begin_light();
    if (depth == 0)
        return INVALID_CONTEXT;
    *context = &primary[pushed[--depth]];
    return (int)refused;
}

/* ---- finding them ---- */

static const struct standin_function context_functions[] = {
    { "cuInit", (void (*)(void))init },
    { "cuDeviceGet", (void (*)(void))get_device },
    { "cuDevicePrimaryCtxRetain", (void (*)(void))retain },
    { "cuCtxPushCurrent", (void (*)(void))push },
    { "cuCtxPopCurrent", (void (*)(void))pop },
    { NULL, NULL },
};

static bool find(const struct standin_function *functions, const char *name, void **out)
{
    while (functions->name != NULL && strcmp(functions->name, name) != 0)
        functions++;
    memcpy(out, &functions->address, sizeof(*out));
    return functions->name != NULL;
}

static cudaError_t entry_point(const char *name, void **function,
                               enum cudaDriverEntryPointQueryResult *found)
{
    STANDIN_BEGIN_LIGHT;
    *found = (!atomic_load(&standin.no_contexts) && find(context_functions, name, function)) ||
                     find(standin_kernel_functions, name, function)
                 ? cudaDriverEntryPointSuccess
                 : cudaDriverEntryPointSymbolNotFound;
    return standin_end(cudaSuccess);
}

/* CUDA 12.5 has the second form. */
#if CUDART_VERSION >= 12050 && !defined(STANDIN_OLD_RUNTIME)
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *found)
{
    (void)version;
    (void)flags;
    return entry_point(name, function, found);
}
#else
cudaError_t cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *found)
{
    (void)flags;
    return entry_point(name, function, found);
}
#endif
