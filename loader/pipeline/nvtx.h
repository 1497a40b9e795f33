/* nvtx.h - the stages as NVTX ranges, for Nsight Systems and its like.
 *
 * A tool that wants them is loaded when a loader is created, by what NVTX_INJECTION64_PATH
 * names; without one, or built without NVTX, stk_nvtx_init says so and nothing more happens.
 */
#ifndef STK_PIPELINE_NVTX_H
#define STK_PIPELINE_NVTX_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/trace.h>

struct stk_nvtx {
    void *domain; /* NULL = nobody listens */
    void *names[STOKER_TRACE_KIND_COUNT];
};

/* Whether a tool listens. */
bool stk_nvtx_init(struct stk_nvtx *nvtx);
void stk_nvtx_destroy(struct stk_nvtx *nvtx);

/* A range of the calling thread; its payload is the batch, if there is one. NULL: nothing. */
void stk_nvtx_push(const struct stk_nvtx *nvtx, stoker_trace_kind kind, uint64_t batch);
void stk_nvtx_pop(const struct stk_nvtx *nvtx);

#endif
