/* words.c - see words.h.
 *
 *   slots   [ 0 | 2 | 0 | 1 | ... ]      open addressing; grows by doubling while it is half full
 *   at      [ 0, 7, ... ]                the offset of word 0, 1, ...
 *   bytes   "setosa\0virginica\0..."
 */
#include "datasets/csv/words.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <stoker/error.h>

#include "loader/base/memory.h"

enum { SLOTS_MIN = 64, BYTES_MIN = 1024 };

/* FNV-1a over the text with doubled quotes undone. */
static uint64_t hash_field(const struct stk_csv_field *field)
{
    uint64_t hash = 0xCBF29CE484222325U;
    for (size_t i = 0; i < field->size; i++) {
        hash = (hash ^ (uint8_t)field->bytes[i]) * 0x100000001B3U;
        if (field->quoted && field->bytes[i] == '"')
            i++;
    }
    return hash ^ hash >> 29;
}

static uint64_t hash_word(const char *word)
{
    const struct stk_csv_field field = { .bytes = word, .size = strlen(word) };
    return hash_field(&field);
}

/* The slot of the field's word, or the free slot where it belongs. */
static uint32_t find_slot(const struct stk_csv_words *words, const struct stk_csv_field *field)
{
    const uint32_t mask = words->slot_count - 1;
    uint32_t slot = (uint32_t)hash_field(field) & mask;
    for (; words->slots[slot] != 0; slot = (slot + 1) & mask) {
        const char *word = words->bytes + words->at[words->slots[slot] - 1];
        if (stk_csv_equals(field, word, strlen(word)))
            break;
    }
    return slot;
}

/* ---- room ----------------------------------------------------------------------- */

static int grow_slots(struct stk_csv_words *words)
{
    const uint32_t slot_count = words->slot_count == 0 ? SLOTS_MIN : words->slot_count * 2;
    uint32_t *slots = stk_calloc(slot_count, sizeof(*slots));
    size_t *at = stk_calloc(slot_count / 2, sizeof(*at));
    if (slots == NULL || at == NULL) {
        stk_free(slots);
        stk_free(at);
        return STOKER_ENOMEM;
    }
    for (uint32_t word = 0; word < words->count; word++) {
        uint32_t slot = (uint32_t)hash_word(words->bytes + words->at[word]) & (slot_count - 1);
        while (slots[slot] != 0)
            slot = (slot + 1) & (slot_count - 1);
        slots[slot] = word + 1;
        at[word] = words->at[word];
    }
    stk_free(words->slots);
    stk_free(words->at);
    words->slots = slots;
    words->at = at;
    words->slot_count = slot_count;
    return STOKER_OK;
}

static int grow_bytes(struct stk_csv_words *words, size_t more)
{
    size_t room = words->room == 0 ? BYTES_MIN : words->room;
    while (room - words->used < more)
        room *= 2; /* bounded by twice the file, which is in memory */
    if (room == words->room)
        return STOKER_OK;
    char *bytes = stk_calloc(room, 1);
    if (bytes == NULL)
        return STOKER_ENOMEM;
    if (words->used > 0)
        memcpy(bytes, words->bytes, words->used);
    stk_free(words->bytes);
    words->bytes = bytes;
    words->room = room;
    return STOKER_OK;
}

/* ---- words ---------------------------------------------------------------------- */

int stk_csv_words_add(struct stk_csv_words *words, const struct stk_csv_field *field)
{
    assert(words->rank == NULL);
    int rc = STOKER_OK;
    if (words->count >= words->slot_count / 2)
        rc = grow_slots(words);
    if (rc != STOKER_OK)
        return rc;
    const uint32_t slot = find_slot(words, field);
    if (words->slots[slot] != 0)
        return STOKER_OK;
    if (words->count == STK_CSV_WORDS_MAX)
        return STOKER_ELIMIT;
    rc = grow_bytes(words, field->size + 1);
    if (rc != STOKER_OK)
        return rc;
    words->at[words->count] = words->used;
    words->used += stk_csv_text_of(field, words->bytes + words->used);
    words->bytes[words->used++] = '\0';
    words->slots[slot] = ++words->count;
    return STOKER_OK;
}

static int by_bytes(const void *a, const void *b, void *argument)
{
    const struct stk_csv_words *words = argument;
    return strcmp(words->bytes + words->at[*(const uint32_t *)a],
                  words->bytes + words->at[*(const uint32_t *)b]);
}

int stk_csv_words_sort(struct stk_csv_words *words)
{
    words->rank = stk_calloc((size_t)words->count + 1, sizeof(*words->rank));
    words->sorted = stk_calloc((size_t)words->count + 1, sizeof(*words->sorted));
    if (words->rank == NULL || words->sorted == NULL)
        return STOKER_ENOMEM;
    for (uint32_t word = 0; word < words->count; word++)
        words->sorted[word] = word;
    qsort_r(words->sorted, words->count, sizeof(words->sorted[0]), by_bytes, words);
    for (uint32_t place = 0; place < words->count; place++)
        words->rank[words->sorted[place]] = place;
    return STOKER_OK;
}

uint32_t stk_csv_words_find(const struct stk_csv_words *words, const struct stk_csv_field *field)
{
    const uint32_t word = words->slots[find_slot(words, field)];
    assert(word != 0);
    return words->rank[word - 1];
}

const char *stk_csv_words_at(const struct stk_csv_words *words, uint32_t place)
{
    assert(place < words->count);
    return words->bytes + words->at[words->sorted[place]];
}

void stk_csv_words_free(struct stk_csv_words *words)
{
    stk_free(words->bytes);
    stk_free(words->slots);
    stk_free(words->at);
    stk_free(words->rank);
    stk_free(words->sorted);
    *words = (struct stk_csv_words){ .bytes = NULL };
}
