/* fit.c - see fit.h. */
#include "datasets/views/packed/fit.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stoker/error.h>
#include <string.h>

#include "loader/base/memory/memory.h"

#define NONE UINT32_MAX

/* ---- rooms that some row has ------------------------------------------------------------- */

static uint32_t words_of(uint32_t row_length, uint32_t level)
{
    return (row_length >> (6 * (level + 1))) + 1;
}

static void mark_room(struct stk_fit *fit, uint32_t room)
{
    for (uint32_t level = 0; level < fit->levels; level++, room >>= 6)
        fit->bits[level][room >> 6] |= UINT64_C(1) << (room & 63);
}

static void unmark(struct stk_fit *fit, uint32_t room)
{
    for (uint32_t level = 0; level < fit->levels; level++, room >>= 6) {
        fit->bits[level][room >> 6] &= ~(UINT64_C(1) << (room & 63));
        if (fit->bits[level][room >> 6] != 0)
            return;
    }
}

/* The least marked room that is at least `room`; NONE if there is none. Climbs until a word has a
 * later bit, then descends to its first. */
static uint32_t least_from(const struct stk_fit *fit, uint32_t room)
{
    uint32_t at = room;
    for (uint32_t level = 0; level < fit->levels; level++) {
        const uint32_t word = at >> 6;
        uint64_t later = 0;
        if (word < words_of(fit->row_length, level))
            later = fit->bits[level][word] & (UINT64_MAX << (at & 63));
        if (later == 0) {
            at = word + 1;
            continue;
        }
        at = (word << 6) + (uint32_t)__builtin_ctzll(later);
        while (level > 0) {
            level--;
            at = (at << 6) + (uint32_t)__builtin_ctzll(fit->bits[level][at]);
        }
        return at;
    }
    return NONE;
}

/* ---- rows by their room -------------------------------------------------------------------- */

static void put_row(struct stk_fit *fit, uint32_t row, uint32_t room)
{
    if (fit->top[room] == NONE)
        mark_room(fit, room);
    fit->next[row] = fit->top[room];
    fit->top[room] = row;
}

static uint32_t take_row(struct stk_fit *fit, uint32_t room)
{
    const uint32_t row = fit->top[room];
    fit->top[room] = fit->next[row];
    if (fit->top[room] == NONE)
        unmark(fit, room);
    return row;
}

/* ---- packing --------------------------------------------------------------------------------- */

/* Fill fit->sorted: a stable counting sort by falling length. */
static void sort(struct stk_fit *fit, const uint32_t *lengths, uint32_t count)
{
    const uint32_t row_length = fit->row_length;
    uint32_t *first = fit->first;
    memset(first, 0, (row_length + UINT64_C(2)) * sizeof(first[0]));
    for (uint32_t i = 0; i < count; i++) {
        assert(lengths[i] >= 1);
        assert(lengths[i] <= row_length);
        first[row_length - lengths[i] + 1]++;
    }
    for (uint32_t i = 0; i <= row_length; i++)
        first[i + 1] += first[i];
    for (uint32_t i = 0; i < count; i++)
        fit->sorted[first[row_length - lengths[i]]++] = i;
}

/* Number rows by their first items. */
static void renumber(struct stk_fit *fit, uint32_t count, uint32_t *row_of, uint32_t rows)
{
    uint32_t seen = 0;
    memset(fit->number, 0xff, rows * sizeof(fit->number[0]));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *number = &fit->number[row_of[i]];
        if (*number == NONE)
            *number = seen++;
        row_of[i] = *number;
    }
    assert(seen == rows);
}

uint32_t stk_fit_pack(struct stk_fit *fit, const uint32_t *lengths, uint32_t count,
                      uint32_t *row_of)
{
    uint32_t rows = 0;
    assert(count <= fit->items_max);
    sort(fit, lengths, count);
    memset(fit->top, 0xff, (fit->row_length + UINT64_C(1)) * sizeof(fit->top[0]));
    for (uint32_t level = 0; level < fit->levels; level++)
        memset(fit->bits[level], 0, words_of(fit->row_length, level) * sizeof(uint64_t));
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t item = fit->sorted[i];
        const uint32_t length = lengths[item];
        const uint32_t room = least_from(fit, length);
        const uint32_t row = room == NONE ? rows++ : take_row(fit, room);
        const uint32_t left = (room == NONE ? fit->row_length : room) - length;
        row_of[item] = row;
        if (left > 0)
            put_row(fit, row, left);
    }
    renumber(fit, count, row_of, rows);
    return rows;
}

/* ---- life
 * -------------------------------------------------------------------------------------- */

static bool has_all(const struct stk_fit *fit)
{
    for (uint32_t level = 0; level < fit->levels; level++)
        if (fit->bits[level] == NULL)
            return false;
    return fit->first != NULL && fit->sorted != NULL && fit->top != NULL && fit->next != NULL &&
           fit->number != NULL;
}

int stk_fit_init(struct stk_fit *fit, uint32_t row_length, uint32_t items_max)
{
    assert(row_length >= 1);
    assert(row_length <= STK_FIT_LENGTH_MAX);
    assert(items_max >= 1);
    *fit = (struct stk_fit){ .row_length = row_length, .items_max = items_max };
    fit->first = stk_calloc(row_length + UINT64_C(2), sizeof(fit->first[0]));
    fit->sorted = stk_calloc(items_max, sizeof(fit->sorted[0]));
    fit->top = stk_calloc(row_length + UINT64_C(1), sizeof(fit->top[0]));
    fit->next = stk_calloc(items_max, sizeof(fit->next[0]));
    fit->number = stk_calloc(items_max, sizeof(fit->number[0]));
    do {
        fit->bits[fit->levels] =
            stk_calloc(words_of(row_length, fit->levels), sizeof(fit->bits[0][0]));
        fit->levels++;
    } while (words_of(row_length, fit->levels - 1) > 1);
    if (has_all(fit))
        return STOKER_OK;
    stk_fit_free(fit);
    return STOKER_ENOMEM;
}

void stk_fit_free(struct stk_fit *fit)
{
    stk_free(fit->first);
    stk_free(fit->sorted);
    stk_free(fit->top);
    stk_free(fit->next);
    stk_free(fit->number);
    for (uint32_t level = 0; level < STK_FIT_LEVELS; level++)
        stk_free(fit->bits[level]);
    *fit = (struct stk_fit){ .levels = 0 };
}
