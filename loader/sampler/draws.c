/* draws.c - see draws.h. */
#include "loader/sampler/draws.h"

#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/rng.h"

#define DRAWS_STREAM                                                                               \
    UINT64_C(0x7765696768747321) /* "weights!": keeps these draws apart from others */

#define UNIFORM_STREAM UINT64_C(0x756E69666F726D21) /* "uniform!" */

/* A random word is mapped to the range as by stk_alias_draw(). */
static void draw_alike(uint64_t count, uint64_t seed, uint64_t epoch, uint64_t first,
                       uint64_t stride, uint32_t n, uint64_t *ids)
{
    __extension__ typedef unsigned __int128 wide;
    for (uint32_t i = 0; i < n; i++) {
        const struct stk_random random =
            stk_philox(seed ^ UNIFORM_STREAM, epoch, first + i * stride);
        const uint64_t word = (uint64_t)random.word[0] << 32 | random.word[1];
        ids[i] = (uint64_t)((wide)word * count >> 64);
    }
}

static void draw(const struct stk_draws *draws, uint64_t seed, uint64_t epoch, uint64_t first,
                 uint64_t stride, uint32_t n, uint64_t *ids)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct stk_random random = stk_philox(seed ^ DRAWS_STREAM, epoch, first + i * stride);
        ids[i] = stk_alias_draw(&draws->alias, (uint64_t)random.word[0] << 32 | random.word[1],
                                (uint64_t)random.word[2] << 32 | random.word[3]);
    }
}

/* The index of the first id that does not exist; n = all do. */
static uint32_t first_stranger(const uint64_t *ids, uint32_t n, uint64_t count)
{
    uint32_t i = 0;
    while (i < n && ids[i] < count)
        i++;
    return i;
}

static int ask_order_callback(const struct stk_draws *draws, uint64_t count, uint64_t epoch,
                              uint64_t first, uint64_t stride, uint32_t n, uint64_t *ids,
                              stoker_error *error)
{
    char what[STK_LINE_BYTES];
    stoker_error said;
    stk_error_clear(&said);
    memset(ids, 0xFF, n * sizeof(ids[0])); /* an id that is left out does not exist */
    const int rc = draws->own(draws->self, epoch, first, stride, n, ids, &said);
    if (rc != 0) {
        const int code = stk_callback_code(rc, "it", &said);
        return stk_error_set(error, code, STOKER_STAGE_LOCATE, NULL,
                             "order.ids, epoch %llu, position %llu: %s", (unsigned long long)epoch,
                             (unsigned long long)first,
                             said.message[0] != '\0' ? said.message : stoker_strerror(code));
    }
    const uint32_t bad = first_stranger(ids, n, count);
    if (bad == n)
        return 0;
    (void)snprintf(what, sizeof(what), "id %llu of a data set of %llu samples",
                   (unsigned long long)ids[bad], (unsigned long long)count);
    return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_LOCATE, NULL,
                         "order.ids, epoch %llu, position %llu: %s", (unsigned long long)epoch,
                         (unsigned long long)first + bad * stride, what);
}

int stk_draws_ids(const struct stk_draws *draws, uint64_t count, uint64_t seed, uint64_t epoch,
                  uint64_t first, uint64_t stride, uint32_t n, uint64_t *ids, stoker_error *error)
{
    if (draws->own == NULL && draws->alias.columns == NULL) {
        draw_alike(count, seed, epoch, first, stride, n, ids);
        return 0;
    }
    if (draws->own == NULL) {
        draw(draws, seed, epoch, first, stride, n, ids);
        return 0;
    }
    const int rc =
        n == 0 ? 0 : ask_order_callback(draws, count, epoch, first, stride, n, ids, error);
    if (rc < 0)
        memset(ids, 0, n * sizeof(ids[0]));
    return rc;
}
