/* read_depth.c - see read_depth.h.
 *
 *   usual length ─▶ window / usual ─┐
 *                                   ├─ the least of them, at least DEPTH_MIN ─▶ depth
 *   longest ─────▶ scratch / longest┘
 *
 * A set whose samples are of one length has its window and no more: both agree there.
 */
#include "loader/api/read_depth.h"

enum {
    DEPTH_MIN = 2,
    DEPTH_MAX = 128, /* where hot and cold small reads stop gaining */
    WINDOW_BYTES = 8 << 20,
    SCRATCH_BYTES = 64 << 20, /* of a worker; address space, and memory as far as it is used */
    LOOKS = 64                /* samples that tell what is usual */
};

/* The mean length of samples that lie in files, of some spread over the set; the longest where
 * none tells. */
static uint64_t usual_bytes(const stoker_dataset *dataset)
{
    const stoker_dataset_info *info = &dataset->info;
    const uint64_t looks = info->count < LOOKS ? info->count : LOOKS;
    uint64_t ids[LOOKS] = { 0 };
    stoker_sample samples[LOOKS];
    stoker_error error;
    uint64_t bytes = 0;
    uint64_t count = 0;
    for (uint64_t i = 0; i < looks; i++)
        ids[i] = info->count * i / looks; /* < count, even where the product wraps */
    if (dataset->ops->locate(dataset->self, ids, (uint32_t)looks, samples, &error) != 0)
        return info->encoded_bytes_max; /* the run will tell */
    for (uint64_t i = 0; i < looks; i++) {
        const stoker_extent *extent = &samples[i].extent;
        if (extent->memory != NULL || extent->bytes == 0 ||
            extent->bytes > info->encoded_bytes_max) /* not to be read, or refused */
            continue;
        bytes += extent->bytes;
        count++;
    }
    return count == 0 ? info->encoded_bytes_max : bytes / count;
}

uint32_t stk_read_depth(const stoker_dataset *dataset)
{
    if (dataset->info.encoded_bytes_max == 0) /* nothing is read: nobody need be asked */
        return DEPTH_MAX;
    const uint64_t longest = (uint64_t)dataset->info.encoded_bytes_max + 1;
    uint64_t depth = WINDOW_BYTES / (usual_bytes(dataset) + 1);
    if (depth > SCRATCH_BYTES / longest)
        depth = SCRATCH_BYTES / longest;
    return depth < DEPTH_MIN ? DEPTH_MIN : depth > DEPTH_MAX ? DEPTH_MAX : (uint32_t)depth;
}
