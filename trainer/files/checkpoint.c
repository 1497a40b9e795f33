/* checkpoint.c - see checkpoint.h: opening, and the order of the steps of a save. */
#include "trainer/files/checkpoint.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "loader/base/clock.h"
#include "loader/base/error.h"
#include "loader/base/rng.h"
#include "trainer/files/directory.h"

#define GENERATION_KEY "stoker.generation"
#define PAIR_KEY       "stoker.pair"
#define STATE_KEY      "stoker.state"
#define AVERAGES_KEY   "stoker.averages_of"
#define OWN_KEYS       "stoker."

enum { OWN_NOTES = 3, OPEN_TRIES = 16, PAIR_BYTES = 24 };

static int refuse(stoker_error *error, int code, const char *path, const char *what)
{
    struct stk_place place = STK_NOWHERE;
    place.path = path;
    return stk_error_set(error, code, STOKER_STAGE_OPEN, &place, "%s", what);
}

/* ---- save ----------------------------------------------------------------------- */

/* What identifies the two files as a pair. */
struct pair {
    char generation[24];
    char number[PAIR_BYTES];
    char state_name[NAME_MAX + 1];    /* "" = no state */
    char averages_name[NAME_MAX + 1]; /* "" = the name would be too long */
};

static void draw_pair(struct pair *pair, uint64_t generation)
{
    uint64_t number;
    if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
        number = stk_mix64(stk_now_ns() ^ (uint64_t)(uintptr_t)pair);
    (void)snprintf(pair->generation, sizeof(pair->generation), "%" PRIu64, generation);
    (void)snprintf(pair->number, sizeof(pair->number), "%016" PRIx64, number);
}

static int check_notes(const char *path, const struct stk_tensor_set *set, stoker_error *error)
{
    for (uint32_t i = 0; i < set->note_count; i++)
        if (strncmp(set->notes[i].key, OWN_KEYS, strlen(OWN_KEYS)) == 0)
            return refuse(error, STOKER_EINVAL, path, "a key that begins with \"stoker.\"");
    return STOKER_OK;
}

enum part { WEIGHTS, STATE, AVERAGES };

/* Writes the set, our notes before the caller's, and gives the file the part's name. */
static int write_set(struct stk_directory_files *files, const struct stk_tensor_set *set,
                     const struct pair *pair, enum part part, stoker_error *error)
{
    const char *const names[] = {
        [WEIGHTS] = files->base, [STATE] = pair->state_name, [AVERAGES] = pair->averages_name
    };
    struct stk_note *notes = stk_calloc((size_t)set->note_count + OWN_NOTES, sizeof(notes[0]));
    if (notes == NULL)
        return refuse(error, STOKER_ENOMEM, files->path, "the list of notes");
    uint32_t count = 0;
    notes[count++] = (struct stk_note){ GENERATION_KEY, pair->generation };
    notes[count++] = (struct stk_note){ PAIR_KEY, pair->number };
    if (part == AVERAGES)
        notes[count++] = (struct stk_note){ AVERAGES_KEY, files->base };
    if (part == WEIGHTS && pair->state_name[0] != '\0')
        notes[count++] = (struct stk_note){ STATE_KEY, pair->state_name };
    for (uint32_t i = 0; i < set->note_count; i++)
        notes[count++] = set->notes[i];
    const struct stk_tensor_set whole = { .tensors = set->tensors,
                                          .tensor_count = set->tensor_count,
                                          .notes = notes,
                                          .note_count = count };
    int fd = -1;
    int rc = stk_directory_begin(files, &fd, error);
    if (rc == STOKER_OK)
        rc = stk_safetensors_write(fd, files->path, &whole, error);
    if (rc == STOKER_OK)
        rc = stk_directory_place(files, fd, names[part], error);
    else
        stk_directory_abandon(files, fd);
    stk_free(notes);
    return rc;
}

enum averages { NONE, OURS, ANOTHERS };

/* Finds out which file has the name of our averages. */
static enum averages find_averages(const struct stk_directory_files *files, const char *name)
{
    char path[STK_PATH_BYTES];
    struct stk_safetensors found;
    if (name[0] == '\0' || stk_path_beside(path, files->path, name) != STOKER_OK)
        return NONE;
    const int rc = stk_safetensors_open(&found, path, NULL);
    if (rc != STOKER_OK)
        return rc == STOKER_ENOENT ? NONE : ANOTHERS;
    const char *const of = stk_note_find(&found.set, AVERAGES_KEY);
    const bool ours = of != NULL && strcmp(of, files->base) == 0;
    stk_safetensors_close(&found);
    return ours ? OURS : ANOTHERS;
}

static int write_averages(struct stk_directory_files *files, const struct stk_tensor_set *averages,
                          const struct pair *pair, stoker_error *error)
{
    if (pair->averages_name[0] == '\0')
        return refuse(error, STOKER_EINVAL, files->path, "a longer name than files may have");
    if (find_averages(files, pair->averages_name) == ANOTHERS)
        return refuse(error, STOKER_EMISMATCH, files->path,
                      "its averages would replace a file beside it that ends in .ema");
    return write_set(files, averages, pair, AVERAGES, error);
}

enum commit { REPLACED, REPLACED_NOT, UNKNOWN };

/* After a failure: does PATH name the new state? A rename can report an error after it took effect (over a network,
 * for example); then PATH needs the new state. */
static enum commit look(const struct stk_directory_files *files, const struct pair *pair)
{
    struct stk_safetensors found;
    const int rc = stk_safetensors_open(&found, files->path, NULL);
    if (rc == STOKER_ENOENT || rc == STOKER_EISDIR || rc == STOKER_ENOTSUP)
        return REPLACED_NOT;
    if (rc != STOKER_OK)
        return UNKNOWN;
    const char *const number = stk_note_find(&found.set, PAIR_KEY);
    const bool ours = number != NULL && strcmp(number, pair->number) == 0;
    stk_safetensors_close(&found);
    return ours ? REPLACED : REPLACED_NOT;
}

static int save_locked(struct stk_directory_files *files, const struct stk_tensor_set *weights,
                       const struct stk_tensor_set *averages, const struct stk_tensor_set *state,
                       stoker_error *error)
{
    struct pair pair = { 0 };
    uint64_t last = 0;
    int rc = stk_directory_last_generation(files, &last, error);
    if (rc != STOKER_OK)
        return rc;
    if (last >= STK_GENERATION_MAX)
        return refuse(error, STOKER_ELIMIT, files->path, "a state file of the last generation");
    draw_pair(&pair, last + 1);
    (void)stk_averages_name(pair.averages_name, files->base);
    if (state != NULL) {
        rc = stk_state_name(pair.state_name, files->base, last + 1);
        if (rc != STOKER_OK)
            return refuse(error, rc, files->path, "a longer name than files may have");
        rc = write_set(files, state, &pair, STATE, error);
        if (rc == STOKER_OK)
            rc = stk_directory_sync(files, error);
    }
    if (rc == STOKER_OK && averages != NULL)
        rc = write_averages(files, averages, &pair, error);
    if (rc == STOKER_OK)
        rc = write_set(files, weights, &pair, WEIGHTS, error); /* the commit */
    if (rc != STOKER_OK) {
        const enum commit commit = look(files, &pair);
        if (commit == REPLACED_NOT && pair.state_name[0] != '\0')
            stk_directory_remove(files, pair.state_name);
        if (commit != REPLACED)
            return rc;
    }
    rc = stk_directory_sync(files, error);
    if (rc == STOKER_OK && averages == NULL && find_averages(files, pair.averages_name) == OURS)
        stk_directory_remove(files, pair.averages_name);
    if (rc == STOKER_OK)
        stk_directory_sweep(files, pair.state_name);
    return rc;
}

int stk_checkpoint_save(const char *path, const struct stk_tensor_set *weights,
                        const struct stk_tensor_set *averages, const struct stk_tensor_set *state,
                        stoker_error *error)
{
    assert(path != NULL);
    assert(weights != NULL);
    int rc = check_notes(path, weights, error);
    if (rc == STOKER_OK && state != NULL)
        rc = check_notes(path, state, error);
    if (rc == STOKER_OK && averages != NULL)
        rc = check_notes(path, averages, error);
    struct stk_directory_files files;
    if (rc == STOKER_OK)
        rc = stk_directory_open(&files, path, error);
    if (rc != STOKER_OK)
        return rc;
    rc = save_locked(&files, weights, averages, state, error);
    stk_directory_close(&files);
    return rc;
}

/* ---- open ----------------------------------------------------------------------- */

static uint64_t generation_of(const struct stk_tensor_set *set)
{
    const char *text = stk_note_find(set, GENERATION_KEY);
    uint64_t value = 0;
    for (; text != NULL && *text >= '0' && *text <= '9'; text++)
        if (value < UINT64_MAX / 16)
            value = value * 10 + (uint64_t)(*text - '0');
    return value;
}

static bool same_note(const struct stk_checkpoint *checkpoint, const char *key)
{
    const char *a = stk_note_find(&checkpoint->weights.set, key);
    const char *b = stk_note_find(&checkpoint->state.set, key);
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

static int open_state(struct stk_checkpoint *out, const char *path, const char *name,
                      stoker_error *error)
{
    char state_path[STK_PATH_BYTES];
    int rc = stk_path_beside(state_path, path, name);
    if (rc != STOKER_OK)
        return refuse(error, rc, path, "the name of its state file");
    rc = stk_safetensors_open(&out->state, state_path, error);
    if (rc != STOKER_OK)
        return rc;
    if (!same_note(out, PAIR_KEY) || !same_note(out, GENERATION_KEY))
        return refuse(error, STOKER_EMISMATCH, state_path, "it is the state of other weights");
    out->has_state = true;
    return STOKER_OK;
}

static int open_once(struct stk_checkpoint *out, const char *path, enum stk_checkpoint_parts parts,
                     stoker_error *error)
{
    int rc = stk_safetensors_open(&out->weights, path, error);
    if (rc != STOKER_OK)
        return rc;
    out->generation = generation_of(&out->weights.set);
    const char *name = stk_note_find(&out->weights.set, STATE_KEY);
    if (name == NULL || parts == STK_CHECKPOINT_WEIGHTS_ONLY)
        return STOKER_OK;
    if (!stk_is_state_name(name))
        return refuse(error, STOKER_EFORMAT, path, "it names a state file that cannot be one");
    return open_state(out, path, name, error);
}

/* The number that identifies a save, cut to fit; "" = not written by us. */
static void pair_of(char out[PAIR_BYTES], const struct stk_tensor_set *set)
{
    const char *text = stk_note_find(set, PAIR_KEY);
    (void)snprintf(out, PAIR_BYTES, "%s", text != NULL ? text : "");
}

int stk_checkpoint_open(struct stk_checkpoint *out, const char *path,
                        enum stk_checkpoint_parts parts, stoker_error *error)
{
    assert(path != NULL);
    /* A save that commits between our two opens takes the state away, or puts another in its
     * place: then PATH is another. */
    char seen[PAIR_BYTES] = "", pair[PAIR_BYTES];
    for (int tries = 0; tries < OPEN_TRIES; tries++) {
        memset(out, 0, sizeof(*out));
        const int rc = open_once(out, path, parts, error);
        if (rc == STOKER_OK)
            return STOKER_OK;
        pair_of(pair, &out->weights.set);
        stk_checkpoint_close(out);
        if ((rc != STOKER_ENOENT && rc != STOKER_EMISMATCH) || strcmp(pair, seen) == 0)
            return rc;
        memcpy(seen, pair, sizeof(seen));
    }
    return refuse(error, STOKER_ECHANGED, path, "saved again and again while it was read");
}

void stk_checkpoint_close(struct stk_checkpoint *checkpoint)
{
    stk_safetensors_close(&checkpoint->weights);
    stk_safetensors_close(&checkpoint->state);
    memset(checkpoint, 0, sizeof(*checkpoint));
}
