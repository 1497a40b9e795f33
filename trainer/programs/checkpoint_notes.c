/* checkpoint_notes.c - see checkpoint_notes.h. */
#include "trainer/programs/checkpoint_notes.h"

#include "loader/base/error.h"
#include "loader/base/io/output_file.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PERCENT_BYTES = 3 }; /* "%0A" */

static const char *program_word(enum preset preset)
{
    return preset == PRESET_HOUSING ? "housing" : "mnist";
}

/* ---- reading -------------------------------------------------------------------- */

static void take_note(void *user, const char *key, const char *value)
{
    struct checkpoint_notes *const notes = user;
    const struct {
        const char *key;
        char *to;
        size_t bytes;
    } known[] = {
        { "program", notes->program, sizeof(notes->program) },
        { "preset", notes->preset, sizeof(notes->preset) },
        { "seed", notes->seed, sizeof(notes->seed) },
        { "ema", notes->ema, sizeof(notes->ema) },
        { "split", notes->split, sizeof(notes->split) },
        { "data", notes->data, sizeof(notes->data) },
        { "test_data", notes->test_data, sizeof(notes->test_data) },
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(known[i].key, key) == 0)
            (void)snprintf(known[i].to, known[i].bytes, "%s", value);
}

int notes_read(struct checkpoint_notes *out, const struct arguments *arguments, stoker_error *error)
{
    *out = (struct checkpoint_notes){ .path = arguments->load != NULL ? arguments->load
                                                                      : arguments->weights };
    if (out->path == NULL)
        return STOKER_OK;
    return stoker_trainer_read_notes(out->path, take_note, out, error);
}

/* ---- taking over ---------------------------------------------------------------- */

int notes_choose_preset(const struct checkpoint_notes *notes, const struct arguments *arguments,
                        enum preset *preset, stoker_error *error)
{
    if (notes->preset[0] == '\0' || strcmp(notes->preset, preset_name(arguments->preset)) == 0)
        return STOKER_OK;
    if (strcmp(notes->program, program_word(arguments->preset)) != 0)
        return stk_refuse_option(error, STOKER_EMISMATCH,
                                 "%.100s: saved by %s, which has another network", notes->path,
                                 notes->program);
    if (arguments_give(arguments, "preset"))
        return stk_refuse_option(error, STOKER_EMISMATCH,
                                 "%.100s: saved by preset %s, which has another network: leave out "
                                 "--preset %s",
                                 notes->path, notes->preset, preset_name(arguments->preset));
    for (enum preset known = PRESET_FAST; known <= PRESET_HOUSING; known++)
        if (strcmp(notes->preset, preset_name(known)) == 0)
            *preset = known;
    return STOKER_OK;
}

void notes_adopt(const struct checkpoint_notes *notes, struct arguments *arguments)
{
    if (notes->seed[0] != '\0' && !arguments_give(arguments, "seed"))
        arguments->seed = strtoull(notes->seed, NULL, 10);
    if (notes->ema[0] != '\0' && arguments->load != NULL && !arguments_give(arguments, "ema"))
        arguments->ema = strtod(notes->ema, NULL);
}

bool notes_has_averages(const struct checkpoint_notes *notes, const struct arguments *arguments)
{
    return notes->ema[0] != '\0' && arguments->load != NULL && arguments->ema > 0.0;
}

/* ---- comparing ------------------------------------------------------------------ */

/* The spec in printable ASCII: other bytes as %XX. */
static void print_spec(char out[DATA_SPEC_MAX], const char *spec)
{
    size_t used = 0;
    for (; *spec != '\0' && used + PERCENT_BYTES < DATA_SPEC_MAX; spec++) {
        const unsigned char byte = (unsigned char)*spec;
        const bool plain = byte >= 0x20 && byte < 0x7F;
        const int length =
            snprintf(out + used, DATA_SPEC_MAX - used, plain ? "%c" : "%%%02X", byte);
        used += (size_t)length;
    }
    out[used] = '\0';
}

/* "csv:/a/b.csv?seed=5" without its folders: "csv:b.csv?seed=5". A file may have moved. */
static void strip_folders(char out[DATA_SPEC_MAX], const char *spec)
{
    const char *const parameters = spec + strcspn(spec, "?");
    size_t used = 0;
    for (const char *at = spec; *at != '\0'; at++) {
        if (*at == '/' && at < parameters)
            while (used > 0 && out[used - 1] != ':' && out[used - 1] != ',')
                used--;
        else
            out[used++] = *at;
    }
    out[used] = '\0';
}

/* Returns true if both name the same file or files, whatever the parameters are. */
static bool same_files(const char *a, const char *b)
{
    const size_t length = strcspn(a, "?");
    return length == strcspn(b, "?") && strncmp(a, b, length) == 0;
}

static void split_text(char *text, size_t bytes, const struct data *data)
{
    (void)snprintf(text, bytes, "%" PRIu64 " + %" PRIu64,
                   stoker_dataset_get_info(data->train)->count,
                   stoker_dataset_get_info(data->test)->count);
}

int notes_check(const struct checkpoint_notes *notes, const struct arguments *arguments,
                const struct data *data, stoker_error *error)
{
    char spec[DATA_SPEC_MAX];
    char now[DATA_SPEC_MAX];
    char then[DATA_SPEC_MAX];
    char split[sizeof(notes->split)];
    if (notes->data[0] == '\0' || arguments->test_data != NULL)
        return STOKER_OK;
    if (notes->test_data[0] != '\0')
        return stk_refuse_option(
            error, STOKER_EMISMATCH,
            "%.80s was tested on other data than it was trained on: give --test-data "
            "'%.200s' or another",
            notes->path, notes->test_data);
    print_spec(spec, data->spec);
    strip_folders(now, spec);
    strip_folders(then, notes->data);
    split_text(split, sizeof(split), data);
    const bool tunes = arguments->weights != NULL && arguments->action == ACTION_TRAIN;
    if (tunes && !same_files(now, then)) /* --weights is meant for training on other data */
        return STOKER_OK;
    if (strcmp(now, then) == 0 && (notes->split[0] == '\0' || strcmp(split, notes->split) == 0))
        return STOKER_OK;
    return stk_refuse_option(
        error, STOKER_EMISMATCH,
        "%.80s was trained and tested on other samples: %.160s, %s. This run has %.160s, %s, "
        "and might test on training data. Give the same --data and --seed, or separate test "
        "data with --test-data",
        notes->path, notes->data, notes->split, spec, split);
}

/* ---- writing -------------------------------------------------------------------- */

int notes_write(stoker_trainer *trainer, const struct arguments *arguments, const struct data *data,
                stoker_error *error)
{
    char seed[NOTE_BYTES];
    char ema[NOTE_BYTES];
    char split[2 * NOTE_BYTES];
    char spec[DATA_SPEC_MAX];
    char test_spec[DATA_SPEC_MAX];
    (void)snprintf(seed, sizeof(seed), "%" PRIu64, arguments->seed);
    (void)snprintf(ema, sizeof(ema), "%.9g", arguments->ema);
    split_text(split, sizeof(split), data);
    print_spec(spec, data->spec);
    print_spec(test_spec, arguments->test_data != NULL ? arguments->test_data : "");
    const struct {
        const char *key, *value;
        bool wanted;
    } notes[] = {
        { "program", program_word(arguments->preset), true },
        { "preset", preset_name(arguments->preset), true },
        { "seed", seed, true },
        { "data", spec, true },
        { "split", split, true },
        { "test_data", test_spec, arguments->test_data != NULL },
        { "ema", ema, arguments->ema > 0.0 },
    };
    int rc = STOKER_OK;
    for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]) && rc == STOKER_OK; i++)
        if (notes[i].wanted)
            rc = stoker_trainer_set_note(trainer, notes[i].key, notes[i].value, error);
    return rc;
}

int notes_check_output(const char *path, stoker_error *error)
{
    if (path == NULL)
        return STOKER_OK;
    struct stk_place place = STK_NOWHERE;
    place.path = path;
    place.os_errno = stk_output_check(path);
    if (stk_output_is_in_place(path))
        return stk_refuse_option(error, STOKER_EINVAL,
                                 "%.400s: cannot be written: it is not a regular file, which a "
                                 "checkpoint must be",
                                 path);
    return place.os_errno == 0 ? STOKER_OK
                               : stk_error_set(error, STOKER_EIO, STOKER_STAGE_OPTIONS, &place,
                                               "cannot be written");
}
