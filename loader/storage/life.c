/* life.c - make, share and close a storage of the caller's: see stoker/storage.h. */
#include "loader/base/memory/memory.h"
#include "loader/base/struct_size.h"
#include "loader/storage/storage.h"

int stoker_storage_create(stoker_storage **out, const stoker_storage_ops *ops, void *self,
                          stoker_error *error)
{
    if (out == NULL || ops == NULL ||
        !stk_struct_fits(ops, STK_SIZE_UP_TO(stoker_storage_ops, destroy), sizeof(*ops)))
        return stk_refuse_option(error, STOKER_EINVAL,
                                 "storage: out or ops is NULL, or ops->struct_size is not set, or "
                                 "it has callbacks that this version does not know");
    if (ops->name == NULL || ops->look == NULL || ops->list == NULL || ops->read == NULL)
        return stk_refuse_option(error, STOKER_EINVAL,
                                 "storage: its name, look, list or read is NULL");
    stoker_storage *storage = stk_calloc(1, sizeof(*storage));
    if (storage == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "storage %.64s", ops->name);
    stk_struct_read(&storage->ops, sizeof(storage->ops), ops, ops->struct_size);
    storage->self = self;
    atomic_init(&storage->references, 1U);
    *out = storage;
    return STOKER_OK;
}

stoker_storage *stoker_storage_share(stoker_storage *storage)
{
    if (storage != NULL)
        atomic_fetch_add_explicit(&storage->references, 1U, memory_order_relaxed);
    return storage;
}

void stoker_storage_close(stoker_storage **storage)
{
    if (storage == NULL || *storage == NULL)
        return;
    stoker_storage *const closing = *storage;
    *storage = NULL;
    /* Release and acquire: the last owner frees what the others wrote. */
    if (closing == &stk_storage_local ||
        atomic_fetch_sub_explicit(&closing->references, 1U, memory_order_acq_rel) > 1)
        return;
    if (closing->ops.destroy != NULL)
        closing->ops.destroy(closing->self);
    stk_free(closing);
}
