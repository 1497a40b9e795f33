/* image_survey.c - see image_survey.h.
 *
 *   ids ─▶ ┌ next ┐ ─▶ each thread: read a header ─▶ its entry in looks ─▶ then one pass over all
 *          └──────┘
 */
#include "datasets/image_survey.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/cpu/thread.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/base/text/printable.h"

enum {
    SMALL_BYTES = 4096,     /* hold the header of any PNG, and of most JPEG files */
    LARGE_BYTES = 64 << 10, /* hold what cameras write in front of it */
    LOOKS_PER_THREAD = 32,
    NAME_BYTES = 48 /* longest name in the text */
};

struct look {
    uint64_t id;
    int rc;
    struct stk_image_shape shape;
};

struct survey {
    const struct stk_survey_set *set;
    struct look *looks;
    uint32_t count;
    atomic_uint next; /* the first look that no thread has taken; looks are each one thread's */
};

static struct stk_place place_of_set(const struct stk_survey_set *set)
{
    struct stk_place place = STK_NOWHERE;
    place.path = set->path;
    return place;
}

/* ---- one header ----------------------------------------------------------------- */

static int probe_with(const struct stk_survey_set *set, uint64_t id, uint32_t bytes,
                      struct stk_image_shape *out, stoker_error *error)
{
    uint8_t small[SMALL_BYTES];
    const struct stk_place place = place_of_set(set);
    uint8_t *large = bytes > SMALL_BYTES ? stk_calloc(bytes, 1) : NULL;
    if (bytes > SMALL_BYTES && large == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPEN, &place, "an image's header");
    const int rc = set->probe(set->self, id, large != NULL ? large : small, bytes, out, error);
    stk_free(large);
    return rc;
}

/* As much of the image as it takes. */
static int look_at(const struct stk_survey_set *set, uint64_t id, struct stk_image_shape *out,
                   stoker_error *error)
{
    static const uint32_t steps[] = { SMALL_BYTES, LARGE_BYTES, UINT32_MAX };
    const uint64_t whole = set->bytes(set->self, id);
    if (whole > set->bytes_max)
        return STOKER_ELIMIT;
    int rc = STOKER_ETRUNCATED;
    uint64_t done = 0;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && rc == STOKER_ETRUNCATED; i++) {
        const uint64_t bytes = whole < steps[i] ? whole : steps[i];
        if (i > 0 && bytes == done)
            break;
        rc = probe_with(set, id, (uint32_t)bytes, out, error);
        done = bytes;
    }
    return rc;
}

static void *survey_images(void *argument)
{
    struct survey *survey = argument;
    for (;;) {
        const unsigned at = atomic_fetch_add_explicit(&survey->next, 1, memory_order_relaxed);
        if (at >= survey->count)
            return NULL;
        struct look *look = &survey->looks[at];
        stoker_error ignored;
        look->rc = look_at(survey->set, look->id, &look->shape, &ignored);
    }
}

/* ---- all of them ---------------------------------------------------------------- */

struct counts {
    uint64_t sound;
    uint64_t gray;
    const struct look *first;
    const struct look *other; /* the first of another size than first; NULL = all have one */
};

static struct counts count_up(const struct survey *survey)
{
    struct counts counts = { 0 };
    for (uint32_t i = 0; i < survey->count; i++) {
        const struct look *look = &survey->looks[i];
        if (look->rc != STOKER_OK)
            continue;
        counts.sound++;
        counts.gray += look->shape.channels == 1 ? 1 : 0;
        if (counts.first == NULL)
            counts.first = look;
        if (counts.other == NULL && (look->shape.height != counts.first->shape.height ||
                                     look->shape.width != counts.first->shape.width))
            counts.other = look;
    }
    return counts;
}

/* "c0/a.png 24x32": names by their ends, which is where they differ. */
static void describe_one(char *to, size_t bytes, const struct stk_survey_set *set,
                         const struct look *look)
{
    const char *name = set->name == NULL ? NULL : set->name(set->self, look->id);
    const size_t length = name == NULL ? 0 : strlen(name);
    const unsigned height = look->shape.height;
    const unsigned width = look->shape.width;
    if (name == NULL)
        (void)snprintf(to, bytes, "sample %" PRIu64 " %ux%u", look->id, height, width);
    else
        (void)snprintf(to, bytes, "%s %ux%u",
                       length > NAME_BYTES ? name + length - NAME_BYTES : name, height, width);
}

static void describe(char text[STK_SURVEY_TEXT_BYTES], const struct survey *survey,
                     const struct counts *counts)
{
    char sizes[2 * (NAME_BYTES + 32) + 32];
    char one[NAME_BYTES + 32];
    char other[NAME_BYTES + 32];
    const char *colors = counts->gray == counts->sound ? "gray"
                         : counts->gray == 0           ? "color"
                                                       : "gray and color";
    if (counts->other == NULL) {
        (void)snprintf(sizes, sizeof(sizes), "%ux%u", counts->first->shape.height,
                       counts->first->shape.width);
    } else {
        describe_one(one, sizeof(one), survey->set, counts->first);
        describe_one(other, sizeof(other), survey->set, counts->other);
        (void)snprintf(sizes, sizeof(sizes), "several sizes (%s, %s)", one, other);
    }
    (void)snprintf(text, STK_SURVEY_TEXT_BYTES,
                   "%" PRIu64 " of %" PRIu64 " image headers read: %s, %s", counts->sound,
                   survey->set->count, sizes, colors);
    stk_printable(text);
}

/* No image has a sound header: report why the first one has none, or ENOMEM. */
static int fail_survey(const struct survey *survey, stoker_error *error)
{
    const struct stk_place place = place_of_set(survey->set);
    struct stk_image_shape ignored;
    for (uint32_t i = 0; i < survey->count; i++) {
        if (survey->looks[i].rc == STOKER_ELIMIT)
            continue;
        const int rc = look_at(survey->set, survey->looks[i].id, &ignored, error);
        if (rc != STOKER_OK && rc != STOKER_ELIMIT)
            return rc;
    }
    return stk_error_set(error, STOKER_ELIMIT, STOKER_STAGE_OPEN, &place,
                         "every image is longer than max_file_bytes=%" PRIu64,
                         survey->set->bytes_max);
}

static int evaluate(struct stk_image_survey *out, const struct survey *survey, stoker_error *error)
{
    const struct stk_place place = place_of_set(survey->set);
    const struct counts counts = count_up(survey);
    for (uint32_t i = 0; i < survey->count; i++) /* not an image's fault: another would hide it */
        if (survey->looks[i].rc == STOKER_ENOMEM)
            return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPEN, &place,
                                 "an image's header");
    if (counts.first == NULL)
        return fail_survey(survey, error);
    *out = (struct stk_image_survey){ .first = counts.first->shape,
                                      .all_gray = counts.gray == counts.sound,
                                      .sizes_differ = counts.other != NULL };
    describe(out->text, survey, &counts);
    return STOKER_OK;
}

int stk_image_survey(struct stk_image_survey *out, const struct stk_survey_set *set,
                     stoker_error *error)
{
    const struct stk_place place = place_of_set(set);
    struct survey survey = { .set = set,
                             .count = set->count < STK_SURVEY_IMAGES_MAX ? (uint32_t)set->count
                                                                         : STK_SURVEY_IMAGES_MAX };
    survey.looks = stk_calloc(survey.count, sizeof(survey.looks[0]));
    if (survey.looks == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPEN, &place,
                             "looking at the images");
    for (uint32_t i = 0; i < survey.count; i++) /* i x count may be more than 64 bits hold */
        survey.looks[i].id =
            set->count / survey.count * i + set->count % survey.count * i / survey.count;
    atomic_init(&survey.next, 0);
    stk_threads_run(
        stk_threads_together(set->far ? survey.count : survey.count / LOOKS_PER_THREAD, set->far),
        "stoker-look", survey_images, &survey);
    const int rc = evaluate(out, &survey, error);
    stk_free(survey.looks);
    return rc;
}

int stk_image_row_choose(struct stk_image_row *out, const struct stk_image_shape *given,
                         const struct stk_survey_set *set, stoker_error *error)
{
    struct stk_image_survey survey = { .text = "" };
    const bool sized = given->height != 0 && given->width != 0;
    *out = (struct stk_image_row){ .shape = *given };
    if (sized && given->channels != 0)
        return STOKER_OK;
    const int rc = stk_image_survey(&survey, set, error);
    if (rc != STOKER_OK)
        return rc;
    if (given->height == 0)
        out->shape.height = survey.first.height;
    if (given->width == 0)
        out->shape.width = survey.first.width;
    if (given->channels == 0)
        out->shape.channels = survey.all_gray ? 1 : 3;
    out->gray_found = given->channels == 0 && survey.all_gray;
    out->sizes_differ = !sized && survey.sizes_differ;
    memcpy(out->text, survey.text, sizeof(out->text));
    return STOKER_OK;
}
