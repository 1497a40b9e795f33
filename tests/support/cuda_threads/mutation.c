/* mutation.c - kernels that are broken on purpose, at one site. */
#include "machine.h"

bool ct_broken(const struct cuda_site *site, int how)
{
    const struct cuda_threads_mutation *mutation = &ct.launch->mutation;
    return mutation->site != NULL && mutation->site->number == site->number &&
           (int)mutation->how == how;
}

int cuda_bound(const struct cuda_site *site)
{
    ct_reach(site);
    return ct_broken(site, CUDA_THREADS_WIDENED);
}
