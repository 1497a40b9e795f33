/* read_depth.c - how many reads a worker keeps in flight, if the options leave it open.
 *
 *   usual length ─▶ window / usual ─┐
 *                                   ├─ the smaller, at least DEPTH_MIN ─▶ depth
 *   longest ─────▶ scratch / longest┘
 *
 * Samples of one length get the whole window: then both agree.
 */
#include "loader/api/choose/sizing.h"

enum {
    DEPTH_MIN = 2,
    DEPTH_MAX = 128, /* small reads, cached or not, gain nothing beyond this */
    WINDOW_BYTES = 8 << 20,
    SCRATCH_BYTES = 64 << 20, /* per worker: address space, of which used pages take memory */
    LOOKS = 64                /* samples from which the usual length is estimated */
};

/* The mean length of the parts of LOOKS samples in files, spread evenly over the data set; the
 * longest if there are none. */
static uint64_t usual_bytes(const stoker_dataset *dataset)
{
    const stoker_dataset_info *info = &dataset->info;
    const uint64_t looks = info->count < LOOKS ? info->count : LOOKS;
    stoker_part parts[STOKER_FIELDS_MAX];
    uint64_t bytes = 0;
    uint64_t count = 0;
    for (uint64_t i = 0; i < looks; i++) {
        const uint64_t id = info->count * i / looks; /* < count, even if the product wraps */
        if (stoker_dataset_locate(dataset, id, parts, NULL) != 0)
            return info->encoded_bytes_max; /* the run will report the error */
        for (uint32_t p = 0; p < info->part_count; p++) {
            const stoker_extent *extent = &parts[p].extent;
            if (extent->memory != NULL || extent->bytes == 0 ||
                extent->bytes > info->encoded_bytes_max) /* not read, or refused later */
                continue;
            bytes += extent->bytes;
            count++;
        }
    }
    return count == 0 ? info->encoded_bytes_max : bytes / count;
}

uint32_t stk_sizing_read_depth(const stoker_dataset *dataset)
{
    if (dataset->info.encoded_bytes_max == 0) /* nothing is read */
        return DEPTH_MAX;
    const uint64_t longest = (uint64_t)dataset->info.encoded_bytes_max + 1;
    uint64_t depth = WINDOW_BYTES / (usual_bytes(dataset) + 1);
    if (depth > SCRATCH_BYTES / longest)
        depth = SCRATCH_BYTES / longest;
    return depth < DEPTH_MIN ? DEPTH_MIN : depth > DEPTH_MAX ? DEPTH_MAX : (uint32_t)depth;
}
