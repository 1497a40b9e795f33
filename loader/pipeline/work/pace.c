/* pace.c - see pace.h. */
#include "loader/pipeline/work/pace.h"

#define TAKEN_NS UINT64_C(100000) /* work to take at once */
#define TIMED_NS UINT64_C(50000)  /* work before the rate is measured again */

uint32_t stk_pace_step(struct stk_pace *pace, uint64_t rows, uint64_t busy_ns, uint32_t share_rows,
                       uint32_t shares_max)
{
    const uint64_t made = rows - pace->rows;
    const uint64_t took_ns = busy_ns - pace->busy_ns;
    uint64_t wanted = pace->shares > 0 ? pace->shares : 1;
    if (pace->gathers)
        wanted = 2 * wanted;
    else if (made > 0 && took_ns >= TIMED_NS)
        wanted = TAKEN_NS * made / took_ns / share_rows;
    else
        return pace->shares = (uint32_t)wanted;
    pace->rows = rows;
    pace->busy_ns = busy_ns;
    const uint64_t most = 2 * (uint64_t)(pace->shares > 0 ? pace->shares : 1);
    wanted = wanted < most ? wanted : most;
    wanted = wanted < shares_max ? wanted : shares_max;
    return pace->shares = wanted > 0 ? (uint32_t)wanted : 1;
}
