/* nvtx_tool.c - a tool that listens to NVTX, as Nsight Systems would: it is loaded because
 * NVTX_INJECTION64_PATH names it, and counts the calls.
 */
#define NVTX_AS_SYSTEM_HEADER
#include <nvtx3/nvToolsExt.h>

#include "nvtx_tool.h"

#include <stdatomic.h>
#include <string.h>

#define TOLD __attribute__((visibility("default")))

static char names[NVTX_TOOL_NAMES][32];
static _Atomic unsigned name_count;
static _Atomic uint64_t pushes[NVTX_TOOL_NAMES];
static _Atomic uint64_t payloads[NVTX_TOOL_NAMES];
static _Atomic uint64_t pops;
static _Atomic uint64_t wrong;
static _Atomic int64_t domains;
static char domain_name[32];
static _Thread_local int depth;

static nvtxDomainHandle_t create_domain(const char *name)
{
    (void)strncpy(domain_name, name, sizeof(domain_name) - 1);
    atomic_fetch_add(&domains, 1);
    return (nvtxDomainHandle_t)(void *)domain_name;
}

static void destroy_domain(nvtxDomainHandle_t domain)
{
    if ((void *)domain != domain_name)
        atomic_fetch_add(&wrong, 1U);
    atomic_fetch_sub(&domains, 1);
}

/* The same words get the same handle. */
static nvtxStringHandle_t register_string(nvtxDomainHandle_t domain, const char *text)
{
    (void)domain;
    const unsigned count = atomic_load(&name_count);
    for (unsigned i = 0; i < count; i++)
        if (strcmp(names[i], text) == 0)
            return (nvtxStringHandle_t)(void *)names[i];
    if (count == NVTX_TOOL_NAMES)
        return NULL;
    (void)strncpy(names[count], text, sizeof(names[0]) - 1);
    atomic_store(&name_count, count + 1);
    return (nvtxStringHandle_t)(void *)names[count];
}

static int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *range)
{
    const char *name = (const char *)(const void *)range->message.registered;
    const ptrdiff_t at = (name - names[0]) / (ptrdiff_t)sizeof(names[0]);
    if ((void *)domain != domain_name || range->version != NVTX_VERSION ||
        range->size != NVTX_EVENT_ATTRIB_STRUCT_SIZE || at < 0 || at >= NVTX_TOOL_NAMES ||
        range->messageType != NVTX_MESSAGE_TYPE_REGISTERED) {
        atomic_fetch_add(&wrong, 1U);
        return -1;
    }
    atomic_fetch_add(&pushes[at], 1U);
    if (range->payloadType == NVTX_PAYLOAD_TYPE_UNSIGNED_INT64)
        atomic_fetch_add(&payloads[at], 1U);
    return depth++;
}

static int pop(nvtxDomainHandle_t domain)
{
    if ((void *)domain != domain_name || depth == 0)
        atomic_fetch_add(&wrong, 1U);
    atomic_fetch_add(&pops, 1U);
    return --depth;
}

TOLD int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    const NvtxExportTableCallbacks *callbacks =
        (const NvtxExportTableCallbacks *)get_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table = NULL;
    unsigned size = 0;
    if (callbacks == NULL ||
        callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0 ||
        size <= NVTX_CBID_CORE2_DomainDestroy)
        return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create_domain;
    *table[NVTX_CBID_CORE2_DomainDestroy] = (NvtxFunctionPointer)destroy_domain;
    *table[NVTX_CBID_CORE2_DomainRegisterStringA] = (NvtxFunctionPointer)register_string;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
    return 1;
}

TOLD void nvtx_tool_look(struct nvtx_tool_counts *out)
{
    *out = (struct nvtx_tool_counts){ .name_count = atomic_load(&name_count),
                                      .pops = atomic_load(&pops),
                                      .wrong = atomic_load(&wrong),
                                      .domains = atomic_load(&domains) };
    (void)memcpy(out->domain_name, domain_name, sizeof(out->domain_name));
    (void)memcpy(out->names, names, sizeof(out->names));
    for (unsigned i = 0; i < NVTX_TOOL_NAMES; i++) {
        out->pushes[i] = atomic_load(&pushes[i]);
        out->payloads[i] = atomic_load(&payloads[i]);
    }
}
