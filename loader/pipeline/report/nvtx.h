/* nvtx.h - emits the stages as NVTX ranges, for Nsight Systems and similar tools.
 *
 * NVTX loads the tool that NVTX_INJECTION64_PATH names when a loader is created. Without a tool, in
 * a build without NVTX, or in a program with elevated rights, stk_nvtx_init returns false and
 * nothing is emitted.
 */
#ifndef STK_PIPELINE_NVTX_H
#define STK_PIPELINE_NVTX_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/trace.h>

struct stk_nvtx {
    void *domain; /* NULL = no tool listens */
    void *names[STOKER_TRACE_KIND_COUNT];
};

/* Returns true if a tool listens. name: gives the text of each kind. */
bool stk_nvtx_init(struct stk_nvtx *nvtx, const char *(*name)(stoker_trace_kind));
void stk_nvtx_destroy(struct stk_nvtx *nvtx);

/* Open and close a range of the calling thread, with the batch as payload if there is one. NULL is
 * allowed. */
void stk_nvtx_push(const struct stk_nvtx *nvtx, stoker_trace_kind kind, uint64_t batch);
void stk_nvtx_pop(const struct stk_nvtx *nvtx);

#endif
