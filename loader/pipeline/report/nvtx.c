/* nvtx.c - see nvtx.h. The only file that includes NVIDIA's header. */
#include "loader/pipeline/report/nvtx.h"

#include <stddef.h>

#ifdef STOKER_HAVE_NVTX

#include <pthread.h>

#define NVTX_AS_SYSTEM_HEADER /* silences its warnings */
#include <nvtx3/nvToolsExt.h>

#include "loader/base/environment.h"

static void look_for_a_tool(void)
{
    nvtxInitialize(NULL);
}

bool stk_nvtx_init(struct stk_nvtx *nvtx, const char *(*name)(stoker_trace_kind))
{
    *nvtx = (struct stk_nvtx){ .domain = NULL };
    if (stk_environment_refuses_code() != NULL)
        return false;
    /* NVTX looks for a tool at the first call and then writes the table that all calls go through,
     * unguarded: loaders that are created at the same time would race. */
    static pthread_once_t looked = PTHREAD_ONCE_INIT;
    (void)pthread_once(&looked, look_for_a_tool);
    nvtxDomainHandle_t domain = nvtxDomainCreateA("stoker");
    nvtx->domain = domain;
    if (domain == NULL)
        return false;
    for (int kind = 0; kind < STOKER_TRACE_KIND_COUNT; kind++)
        nvtx->names[kind] = nvtxDomainRegisterStringA(domain, name((stoker_trace_kind)kind));
    return true;
}

void stk_nvtx_destroy(struct stk_nvtx *nvtx)
{
    if (nvtx->domain != NULL)
        nvtxDomainDestroy(nvtx->domain);
    nvtx->domain = NULL;
}

void stk_nvtx_push(const struct stk_nvtx *nvtx, stoker_trace_kind kind, uint64_t batch)
{
    if (nvtx == NULL)
        return;
    nvtxEventAttributes_t range = {
        .version = NVTX_VERSION,
        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
        .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
        .message.registered = nvtx->names[kind],
    };
    if (batch != STOKER_TRACE_NO_BATCH) {
        range.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
        range.payload.ullValue = batch;
    }
    (void)nvtxDomainRangePushEx(nvtx->domain, &range);
}

void stk_nvtx_pop(const struct stk_nvtx *nvtx)
{
    if (nvtx != NULL)
        (void)nvtxDomainRangePop(nvtx->domain);
}

#else

bool stk_nvtx_init(struct stk_nvtx *nvtx, const char *(*name)(stoker_trace_kind))
{
    (void)name;
    *nvtx = (struct stk_nvtx){ .domain = NULL };
    return false;
}

void stk_nvtx_destroy(struct stk_nvtx *nvtx)
{
    (void)nvtx;
}

void stk_nvtx_push(const struct stk_nvtx *nvtx, stoker_trace_kind kind, uint64_t batch)
{
    (void)nvtx;
    (void)kind;
    (void)batch;
}

void stk_nvtx_pop(const struct stk_nvtx *nvtx)
{
    (void)nvtx;
}

#endif
