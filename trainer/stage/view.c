/* view.c - see view.h. */
#include "trainer/stage/view.h"

#include <assert.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"

int stk_arena_write(const struct stk_stage *stage, void *arena, const void *from, size_t bytes,
                    stoker_error *error)
{
    if (stage->ops->device != NULL)
        return stage->ops->device->upload(stage->backend, arena, from, bytes, error);
    if (bytes > 0)
        memcpy(arena, from, bytes);
    return STOKER_OK;
}

int stk_arena_read(const struct stk_stage *stage, void *to, const void *arena, size_t bytes,
                   stoker_error *error)
{
    if (stage->ops->device != NULL)
        return stage->ops->device->download(stage->backend, to, arena, bytes, error);
    if (bytes > 0) {
        assert(to != NULL); /* bytes > 0 need a destination */
        memcpy(to, arena, bytes);
    }
    return STOKER_OK;
}

int stk_view_take(struct stk_view *view, stoker_error *error)
{
    view->floats = NULL;
    if (view->bytes == 0)
        return STOKER_OK;
    view->floats = stk_calloc(1, view->bytes);
    view->copied = view->floats != NULL;
    if (view->copied)
        return STOKER_OK;
    return stk_refuse_option(error, STOKER_ENOMEM, "%zu bytes to copy an arena", view->bytes);
}

int stk_view_blank(struct stk_view *out, const struct stk_stage *stage, float *arena, size_t bytes,
                   stoker_error *error)
{
    *out = (struct stk_view){ .floats = arena, .bytes = bytes };
    return stage->ops->device == NULL ? STOKER_OK : stk_view_take(out, error);
}

int stk_view_read(struct stk_view *out, const struct stk_stage *stage, float *arena, size_t bytes,
                  stoker_error *error)
{
    int rc = stk_view_blank(out, stage, arena, bytes, error);
    if (rc == STOKER_OK && out->copied)
        rc = stk_arena_read(stage, out->floats, arena, bytes, error);
    if (rc != STOKER_OK)
        stk_view_close(out);
    return rc;
}

void stk_view_close(struct stk_view *view)
{
    if (view->copied)
        stk_free(view->floats);
    *view = (struct stk_view)STK_VIEW_CLOSED;
}
