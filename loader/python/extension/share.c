/* share.c - see share.h. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "share.h"

/* What one consumer received. */
struct handed {
    union {
        DLManagedTensorVersioned versioned;
        DLManagedTensor unversioned;
    } managed;
    struct core_share *share;
    void *copied; /* bytes of its own, or NULL */
};

struct core_share {
    /* acq_rel at the last one: what all did with the memory happened before its return */
    atomic_uint users;
    DLManagedTensorVersioned *source;
    struct CUstream_st *stream;
    atomic_bool first_taken;
    struct handed first; /* for the usual case of one consumer */
};

int core_share_make(struct core_share **out, const stoker_batch *batch, uint32_t part,
                    struct CUstream_st *stream)
{
    struct core_share *share = malloc(sizeof(*share));
    if (share == NULL)
        return STOKER_ENOMEM;
    const int rc = stoker_batch_to_dlpack(batch, part, stream, &share->source);
    if (rc != 0) {
        free(share);
        return rc;
    }
    atomic_init(&share->users, 1);
    atomic_init(&share->first_taken, false);
    share->stream = stream;
    *out = share;
    return 0;
}

struct core_share *core_share_use(struct core_share *share)
{
    atomic_fetch_add_explicit(&share->users, 1, memory_order_relaxed);
    return share;
}

void core_share_drop(struct core_share *share)
{
    if (share == NULL || atomic_fetch_sub_explicit(&share->users, 1, memory_order_acq_rel) != 1)
        return;
    share->source->deleter(share->source);
    free(share);
}

const DLTensor *core_share_tensor(const struct core_share *share)
{
    return &share->source->tensor;
}

struct CUstream_st *core_share_stream(const struct core_share *share)
{
    return share->stream;
}

static void give_back(struct handed *handed)
{
    struct core_share *share = handed->share;
    free(handed->copied);
    if (handed != &share->first)
        free(handed);
    core_share_drop(share);
}

static void delete_versioned(DLManagedTensorVersioned *managed)
{
    give_back(managed->context);
}

static void delete_unversioned(DLManagedTensor *managed)
{
    give_back(managed->context);
}

static size_t bytes_of(const DLTensor *tensor)
{
    size_t bytes = (size_t)(tensor->bits / 8) * tensor->lanes;
    for (int32_t i = 0; i < tensor->rank; i++)
        bytes *= (size_t)tensor->shape[i];
    return bytes;
}

/* *tensor is the share's, or has a copy of its bytes. */
static bool fill_tensor(struct handed *handed, DLTensor *tensor, bool copy)
{
    *tensor = handed->share->source->tensor;
    handed->copied = NULL;
    if (!copy)
        return true;
    const size_t bytes = bytes_of(tensor);
    handed->copied = malloc(bytes > 0 ? bytes : 1);
    if (handed->copied == NULL)
        return false;
    if (bytes > 0)
        memcpy(handed->copied, (const char *)tensor->data + tensor->byte_offset, bytes);
    tensor->data = handed->copied;
    tensor->byte_offset = 0;
    return true;
}

static struct handed *new_handed(struct core_share *share)
{
    const bool first = !atomic_exchange_explicit(&share->first_taken, true, memory_order_relaxed);
    struct handed *handed = first ? &share->first : malloc(sizeof(*handed));
    if (handed == NULL)
        return NULL;
    handed->share = core_share_use(share);
    return handed;
}

DLManagedTensorVersioned *core_share_versioned(struct core_share *share, bool copy)
{
    struct handed *handed = new_handed(share);
    if (handed == NULL)
        return NULL;
    DLManagedTensorVersioned *managed = &handed->managed.versioned;
    if (!fill_tensor(handed, &managed->tensor, copy)) {
        give_back(handed);
        return NULL;
    }
    managed->major = share->source->major;
    managed->minor = share->source->minor;
    managed->flags = share->source->flags | (copy ? DLPACK_COPIED : 0);
    managed->context = handed;
    managed->deleter = delete_versioned;
    return managed;
}

DLManagedTensor *core_share_unversioned(struct core_share *share, bool copy)
{
    struct handed *handed = new_handed(share);
    if (handed == NULL)
        return NULL;
    DLManagedTensor *managed = &handed->managed.unversioned;
    if (!fill_tensor(handed, &managed->tensor, copy)) {
        give_back(handed);
        return NULL;
    }
    managed->context = handed;
    managed->deleter = delete_unversioned;
    return managed;
}
