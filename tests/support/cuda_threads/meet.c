/* meet.c - barriers and shuffles: what threads do together. */
#include <string.h>

#include "machine.h"

void cuda_barrier(const struct cuda_site *site)
{
    ct_reach(site);
    if (ct_broken(site, CUDA_THREADS_DROPPED) ||
        (ct_broken(site, CUDA_THREADS_DIVERGENT) && ct_self() >= ct.thread_count / 2))
        return;
    ct_pause(CT_AT_BARRIER, site);
}

void cuda_fence(const struct cuda_site *site)
{
    ct_reach(site);
    if (!ct_broken(site, CUDA_THREADS_DROPPED))
        ct_order_fence();
}

void cuda_shuffle(const struct cuda_site *site, uint32_t mask, int source, void *value,
                  size_t bytes)
{
    struct ct_thread *self = ct.running;
    const int lane = (int)(ct_self() % CT_WARP);
    ct_reach(site);
    if (ct_broken(site, CUDA_THREADS_NARROWED))
        mask &= ~(1U << (CT_WARP - 1));
    if ((mask >> lane & 1) == 0 || (mask >> source & 1) == 0) {
        ct_find(CUDA_THREADS_SHUFFLE, NULL, "lane %d takes from lane %d by mask 0x%08x, %s:%d",
                lane, source, mask, site->file, site->line);
        ct_end_launch();
    }
    self->mask = mask;
    self->source = source;
    self->value = 0;
    memcpy(&self->value, value, bytes);
    ct_pause(CT_AT_SHUFFLE, site);
    memcpy(value, &self->taken, bytes);
}

/* Names another site than the first thread's, if there is one. */
static const struct cuda_site *other_site(const struct cuda_site *site)
{
    for (uint32_t i = 0; i < ct.thread_count; i++)
        if (ct.threads[i].state == CT_AT_BARRIER && ct.threads[i].site != site)
            return ct.threads[i].site;
    return NULL;
}

bool ct_release_barrier(void)
{
    const struct cuda_site *site = NULL;
    for (uint32_t i = 0; i < ct.thread_count; i++) {
        if (ct.threads[i].state == CT_AT_SHUFFLE)
            return false;
        if (ct.threads[i].state == CT_AT_BARRIER && site == NULL)
            site = ct.threads[i].site;
    }
    if (site == NULL)
        return false;
    const struct cuda_site *other = other_site(site);
    if (other != NULL) {
        ct_find(CUDA_THREADS_BARRIER, NULL, "threads wait at %s:%d and at %s:%d", site->file,
                site->line, other->file, other->line);
        ct.ended = true;
        return true;
    }
    if (ct.live < ct.thread_count)
        ct_find(CUDA_THREADS_BARRIER, site, "%u of %u threads have left the kernel before %s:%d",
                ct.thread_count - ct.live, ct.thread_count, site->file, site->line);
    for (uint32_t i = 0; i < ct.thread_count; i++)
        if (ct.threads[i].state == CT_AT_BARRIER)
            ct.threads[i].state = CT_READY;
    if (ct.epoch + 1 == CT_EPOCHS_MAX) {
        ct_find(CUDA_THREADS_BARRIER, NULL, "more than %d in one block", CT_EPOCHS_MAX);
        ct.ended = true;
        return true;
    }
    ct.epoch_slices[++ct.epoch] = ++ct.slice;
    return true;
}

/* Completes the shuffle of a warp if all lanes of its mask are there. */
static bool release_warp(struct ct_thread *warp, uint32_t lanes)
{
    uint32_t there = 0, wanted = 0;
    const struct cuda_site *site = NULL;
    for (uint32_t lane = 0; lane < lanes; lane++) {
        if (warp[lane].state != CT_AT_SHUFFLE)
            continue;
        if (site != NULL && (site != warp[lane].site || wanted != warp[lane].mask))
            return false; /* nobody completes it: a deadlock */
        there |= 1U << lane;
        site = warp[lane].site;
        wanted = warp[lane].mask;
    }
    if (there == 0 || (wanted & ~there) != 0)
        return false;
    for (uint32_t lane = 0; lane < lanes; lane++)
        warp[lane].taken = warp[warp[lane].source].value;
    for (uint32_t lane = 0; lane < lanes; lane++)
        if (warp[lane].state == CT_AT_SHUFFLE)
            warp[lane].state = CT_READY;
    return true;
}

bool ct_release_shuffles(void)
{
    bool any = false;
    for (uint32_t i = 0; i < ct.thread_count; i += CT_WARP) {
        const uint32_t rest = ct.thread_count - i;
        any |= release_warp(&ct.threads[i], rest < CT_WARP ? rest : CT_WARP);
    }
    return any;
}
