/* length_plan.c - see length_plan.h. */
#include "loader/pipeline/order/length_plan.h"

#include <assert.h>
#include <string.h>

#include "loader/base/rng.h"

uint64_t stk_length_values(const struct stk_length_rule *rule, uint64_t rows, uint64_t longest,
                           uint64_t sum)
{
    if (rule->multiple == 0)
        return sum;
    const uint64_t padded = (longest + rule->multiple - 1) / rule->multiple * rule->multiple;
    return rows * (padded > rule->row_min ? padded : rule->row_min);
}

/* ---- samples by falling length: radix sort, which keeps the order of equal lengths ---- */

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS };

/* Sort by one digit. */
static void sort_digit(const uint64_t *lengths, uint32_t count, uint32_t shift,
                       const uint32_t *from, uint32_t *to)
{
    uint32_t at[DIGITS] = { 0 };
    uint32_t begin = 0;
    for (uint32_t i = 0; i < count; i++)
        at[lengths[i] >> shift & (DIGITS - 1)]++;
    for (uint32_t digit = DIGITS; digit-- > 0;) {
        const uint32_t some = at[digit];
        at[digit] = begin;
        begin += some;
    }
    for (uint32_t i = 0; i < count; i++)
        to[at[lengths[from[i]] >> shift & (DIGITS - 1)]++] = from[i];
}

static void sort(const uint64_t *lengths, uint32_t count, uint32_t *order, uint32_t *room)
{
    uint32_t *from = order;
    uint32_t *to = room;
    uint64_t any = 0;
    for (uint32_t i = 0; i < count; i++)
        any |= lengths[i];
    for (uint32_t shift = 0; shift < 64 && any >> shift != 0; shift += DIGIT_BITS) {
        sort_digit(lengths, count, shift, from, to);
        uint32_t *const other = from;
        from = to;
        to = other;
    }
    if (from != order)
        memcpy(order, from, count * sizeof(order[0]));
}

/* ---- batches ---- */

/* Cut the samples where the next one would exceed a limit. */
static uint32_t cut_batches(const struct stk_length_rule *rule, const uint64_t *lengths,
                            uint32_t count, const uint32_t *order, struct stk_length_cut *cuts)
{
    uint32_t batches = 0;
    uint64_t longest = 0;
    uint64_t sum = 0;
    struct stk_length_cut now = { .first = 0 };
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t length = lengths[order[i]];
        const uint64_t most = length > longest ? length : longest;
        if (now.rows == rule->rows_max ||
            (now.rows > 0 && stk_length_values(rule, now.rows + UINT64_C(1), most, sum + length) >
                                 rule->values_max)) {
            cuts[batches++] = now;
            now = (struct stk_length_cut){ .first = i };
            sum = 0;
        }
        longest = now.rows == 0 ? length : most;
        sum += length;
        now.rows++;
    }
    cuts[batches++] = now;
    return batches;
}

/* Fisher and Yates. The bias of a remainder of 64 bits is below 2^-32. */
static void shuffle(uint64_t key, struct stk_length_cut *cuts, uint32_t batches)
{
    for (uint32_t i = batches; i > 1; i--) {
        const uint32_t other = (uint32_t)(stk_mix64(key + i) % i);
        const struct stk_length_cut held = cuts[i - 1];
        cuts[i - 1] = cuts[other];
        cuts[other] = held;
    }
}

uint32_t stk_length_plan(const struct stk_length_rule *rule, uint64_t key, const uint64_t *lengths,
                         uint32_t count, uint32_t *order, struct stk_length_cut *cuts,
                         uint32_t *room)
{
    assert(count >= 1);
    assert(rule->rows_max >= 1);
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    if (rule->multiple == 0)
        return cut_batches(rule, lengths, count, order, cuts);
    sort(lengths, count, order, room);
    const uint32_t batches = cut_batches(rule, lengths, count, order, cuts);
    shuffle(key, cuts, batches);
    return batches;
}
