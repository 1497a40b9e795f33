/* findings.c - the report of a launch. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "machine.h"

/* The kinds, as findings begin. */
static const char *const kinds[CUDA_THREADS_KINDS] = {
    [CUDA_THREADS_RACE_IN_BLOCK] = "race in a block",
    [CUDA_THREADS_RACE_BETWEEN_BLOCKS] = "race between blocks",
    [CUDA_THREADS_OUTSIDE] = "access outside the launch's memory",
    [CUDA_THREADS_MISALIGNED] = "misaligned access",
    [CUDA_THREADS_CONSTANT] = "write to constant memory",
    [CUDA_THREADS_UNWRITTEN] = "read of what nobody has written",
    [CUDA_THREADS_BARRIER] = "barrier",
    [CUDA_THREADS_SHUFFLE] = "shuffle",
    [CUDA_THREADS_DEADLOCK] = "deadlock",
};

/* " at LIBRARY+0xOFFSET", for addr2line. */
static void place(char *out, size_t bytes, const void *code)
{
    Dl_info info;
    out[0] = '\0';
    if (code != NULL && dladdr(code, &info) != 0)
        (void)snprintf(out, bytes, " at %s+0x%tx", info.dli_fname,
                       (const char *)code - (const char *)info.dli_fbase);
}

/* Returns true if the same was found at the same place. */
static bool known(enum cuda_threads_kind kind, const char *at)
{
    for (uint32_t i = 0; i < ct.report->count && i < CUDA_THREADS_FINDINGS_MAX; i++)
        if (ct.report->findings[i].kind == kind && strstr(ct.report->findings[i].text, at) != NULL)
            return true;
    return false;
}

void ct_find(enum cuda_threads_kind kind, const void *code, const char *format, ...)
{
    char what[CUDA_THREADS_TEXT_BYTES / 2] = "", at[CUDA_THREADS_TEXT_BYTES / 2];
    place(at, sizeof(at), code);
    if (at[0] != '\0' && known(kind, at))
        return;
    va_list list;
    va_start(list, format);
    (void)vsnprintf(what, sizeof(what), format, list);
    va_end(list);
    const uint32_t number = ct.report->count++;
    if (number >= CUDA_THREADS_FINDINGS_MAX)
        return;
    struct cuda_threads_finding *finding = &ct.report->findings[number];
    const struct cuda_where *now = cuda_now;
    finding->kind = kind;
    (void)snprintf(finding->text, sizeof(finding->text), "%s, block %u,%u, thread %u: %s: %s%s",
                   ct.launch->kernel, now->block.x, now->block.y, now->thread.x, kinds[kind], what,
                   at);
}
