/* notes.c - the caller's notes in a checkpoint: setting them, and reading those of a file. */

#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/base/text/json.h"
#include "trainer/api/trainer.h"
#include "trainer/files/safetensors.h"

static const char own_keys[] = "stoker.";

static char *copy_text(const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *const copy = stk_calloc(bytes, 1);
    if (copy != NULL)
        memcpy(copy, text, bytes);
    return copy;
}

static bool is_own(const char *key)
{
    return strncmp(key, own_keys, sizeof(own_keys) - 1) == 0;
}

static bool is_good(const char *key, const char *value)
{
    return key[0] != '\0' && strlen(key) <= STK_NOTE_KEY_MAX && !is_own(key) && stk_is_utf8(key) &&
           strlen(value) <= STK_NOTE_VALUE_MAX && stk_is_utf8(value);
}

/* Returns the note with that key, or an unused one, or NULL. */
static struct stk_note *find_note(struct stk_notes *notes, const char *key)
{
    for (uint32_t i = 0; i < notes->count; i++)
        if (strcmp(notes->note[i].key, key) == 0)
            return &notes->note[i];
    return notes->count < STK_TRAINER_NOTES_MAX ? &notes->note[notes->count] : NULL;
}

int stoker_trainer_set_note(stoker_trainer *trainer, const char *key, const char *value,
                            stoker_error *error)
{
    if (trainer == NULL || key == NULL || value == NULL || !is_good(key, value))
        return stk_refuse_option(
            error, STOKER_EINVAL,
            "a note needs UTF-8, a key of 1 to %d bytes that does not start with "
            "\"stoker.\", and a value of at most %d bytes",
            STK_NOTE_KEY_MAX, STK_NOTE_VALUE_MAX);
    struct stk_note *const place = find_note(&trainer->notes, key);
    if (place == NULL)
        return stk_refuse_option(error, STOKER_ELIMIT, "more than %d notes", STK_TRAINER_NOTES_MAX);
    const bool is_new = place->key == NULL;
    char *const own_key = is_new ? copy_text(key) : NULL;
    char *const own_value = copy_text(value);
    if (own_value == NULL || (is_new && own_key == NULL)) {
        stk_free(own_key);
        stk_free(own_value);
        return stk_refuse_option(error, STOKER_ENOMEM, "a note");
    }
    stk_free((char *)place->value);
    place->value = own_value;
    if (is_new) {
        place->key = own_key;
        trainer->notes.count++;
    }
    return STOKER_OK;
}

void stk_notes_free(struct stk_notes *notes)
{
    for (uint32_t i = 0; i < notes->count; i++) {
        stk_free((char *)notes->note[i].key);
        stk_free((char *)notes->note[i].value);
    }
    memset(notes, 0, sizeof(*notes));
}

int stoker_trainer_read_notes(const char *path, stoker_note_function *take, void *user,
                              stoker_error *error)
{
    struct stk_safetensors file;
    if (path == NULL || take == NULL)
        return stk_refuse_option(error, STOKER_EINVAL, "read_notes: an argument is NULL");
    const int rc = stk_safetensors_open(&file, path, error);
    if (rc != STOKER_OK)
        return rc;
    const struct stk_tensor_set *const set = &file.set;
    for (uint32_t i = 0; i < set->note_count; i++)
        if (!is_own(set->notes[i].key))
            take(user, set->notes[i].key, set->notes[i].value);
    stk_safetensors_close(&file);
    return STOKER_OK;
}
