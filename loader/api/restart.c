/* restart.c - replaces a loader by another one, which takes over its cache.
 *
 *   loader ──stop the workers──▶ its cache ──the same rows?──▶ yes: the new loader's
 *                                                        └──▶ no: freed
 */
#include <stoker/stoker.h>

#include "loader/api/create.h"
#include "loader/api/destroy.h"
#include "loader/api/loader.h"
#include "loader/api/options.h"
#include "loader/base/error.h"

static int refuse(stoker_error *error, const char *what)
{
    const struct stk_place nowhere = STK_NOWHERE;
    return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere, "loader restart: %s",
                         what);
}

int stoker_loader_restart(stoker_loader **loader, const stoker_loader_options *options,
                          stoker_error *error)
{
    struct stk_kept_cache kept = { .cache = { .kind = STOKER_CACHE_NONE } };
    if (loader == NULL || *loader == NULL)
        return refuse(error, "no loader");
    stoker_loader_options resolved;
    int rc = stk_options_resolve(&resolved, options, (*loader)->dataset, error);
    if (rc != STOKER_OK)
        return rc; /* the loader stays */
    stoker_dataset *dataset = stoker_dataset_share((*loader)->dataset);
    stk_loader_destroy_keeping(loader, &kept);
    rc = stk_loader_create(loader, dataset, options, &kept, error);
    stoker_dataset_close(&dataset);
    stk_cache_destroy(&kept.cache); /* nobody has taken it */
    return rc;
}
