/* nvtx_tool.h - the calls that the tool in nvtx_tool.c has counted so far. */
#ifndef STK_TEST_NVTX_TOOL_H
#define STK_TEST_NVTX_TOOL_H

#include <stdint.h>

enum { NVTX_TOOL_NAMES = 32 };

struct nvtx_tool_counts {
    unsigned name_count;
    char domain_name[32];
    char names[NVTX_TOOL_NAMES][32];
    uint64_t pushes[NVTX_TOOL_NAMES];   /* per name */
    uint64_t payloads[NVTX_TOOL_NAMES]; /* ranges that name a batch */
    uint64_t pops;
    uint64_t wrong;  /* calls that break the rules */
    int64_t domains; /* made and not destroyed */
};

/* Found by dlsym in the tool. */
typedef void nvtx_tool_look_fn(struct nvtx_tool_counts *out);

#endif
