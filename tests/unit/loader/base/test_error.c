/* test_error.c - every code has a name and a text, and a message names the whole place. */
#include <errno.h>
#include <stoker/stoker.h>

#include "loader/base/error.h"
#include "loader/base/text/printable.h"
#include "support/leaks.h"

CleanTest(error, every_code_has_a_name_and_a_text)
{
#define LIST(name, value, text) { name, #name, text },
    static const struct {
        int code;
        const char *name;
        const char *text;
    } all[] = { STOKER_ERRORS(LIST) };
#undef LIST
    enum { COUNT = sizeof(all) / sizeof(all[0]) };
    cr_assert_eq((int)COUNT, (int)STK_ERROR_COUNT, "a code is missing, or given twice");
    for (int i = 0; i < COUNT; i++) {
        cr_assert_eq(all[i].code, -(i + 1), "%s breaks the row", all[i].name);
        cr_assert_str_eq(stoker_error_name(all[i].code), all[i].name);
        cr_assert_str_eq(stoker_strerror(all[i].code), all[i].text);
        for (int j = 0; j < i; j++)
            cr_assert_str_neq(all[i].text, all[j].text);
    }
}

CleanTest(error, normal_stops_have_texts_and_unknown_codes_do_no_harm)
{
    static const int stops[] = { STOKER_OK,          STOKER_EPOCH_END, STOKER_FINISHED,
                                 STOKER_INTERRUPTED, STOKER_TIMEOUT,   STOKER_BUSY };
    for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
        cr_assert_str_neq(stoker_strerror(stops[i]), "unknown error code");
        cr_assert_str_neq(stoker_error_name(stops[i]), "STOKER_UNKNOWN");
    }
    static const int unknown[] = { STOKER_BUSY + 1, -STK_ERROR_COUNT - 1, INT32_MAX, INT32_MIN };
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        cr_assert_str_eq(stoker_strerror(unknown[i]), "unknown error code");
        cr_assert_str_eq(stoker_error_name(unknown[i]), "STOKER_UNKNOWN");
    }
}

CleanTest(error, every_stage_has_a_name)
{
    for (int stage = STOKER_STAGE_OPTIONS; stage <= STOKER_STAGE_HOOK; stage++)
        cr_assert_str_neq(stoker_stage_name((stoker_stage)stage), "unknown");
    cr_assert_str_eq(stoker_stage_name((stoker_stage)(STOKER_STAGE_HOOK + 1)), "unknown");
    cr_assert_str_eq(stoker_stage_name(STOKER_STAGE_TRANSFER), "transfer");
}

CleanTest(error, a_message_names_file_offset_sample_and_cause)
{
    stoker_error error;
    const struct stk_place place = {
        .path = "some/file", .offset = 4096, .sample = 17, .os_errno = EIO
    };
    cr_assert_eq(stk_error_set(&error, STOKER_EIO, STOKER_STAGE_READ, &place, "%d of %d", 3, 8),
                 STOKER_EIO);
    cr_assert_eq(error.code, STOKER_EIO);
    cr_assert_eq(error.stage, STOKER_STAGE_READ);
    cr_assert_eq(error.os_errno, EIO);
    cr_assert_eq(error.offset, 4096);
    cr_assert_eq(error.sample, 17);
    cr_assert_str_eq(error.path, "some/file");
    char expected[512];
    (void)snprintf(expected, sizeof(expected), "some/file: offset 4096: sample 17: 3 of 8: %s",
                   strerror(EIO));
    cr_assert_str_eq(error.message, expected);
}

CleanTest(error, what_is_unknown_is_left_out)
{
    stoker_error error;
    struct stk_place place = STK_NOWHERE;
    (void)stk_error_set(&error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &place, NULL);
    cr_assert_str_eq(error.message, stoker_strerror(STOKER_EINVAL));
    cr_assert_str_eq(error.path, "");
    cr_assert_eq(error.offset, STOKER_NO_OFFSET);
    cr_assert_eq(error.sample, STOKER_NO_SAMPLE);
    cr_assert_eq(stk_error_set(NULL, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &place, "unheard"),
                 STOKER_EINVAL);
}

CleanTest(error, refusals_have_their_stage_and_place)
{
    stoker_error error;
    cr_assert_eq(stk_refuse_option(&error, STOKER_EINVAL, "batch_size %d", 0), STOKER_EINVAL);
    cr_assert_eq(error.stage, STOKER_STAGE_OPTIONS);
    cr_assert_str_eq(error.message, "batch_size 0");
    cr_assert_eq(stk_refuse_spec(&error, STOKER_ENOMEM, "%s: the spec", "mix"), STOKER_ENOMEM);
    cr_assert_eq(error.stage, STOKER_STAGE_OPEN);
    cr_assert_str_eq(error.message, "out of memory: mix: the spec");
    cr_assert_eq(error.offset, STOKER_NO_OFFSET);
    cr_assert_eq(stk_refuse_file(&error, STOKER_EFORMAT, "a.idx", 4, "magic %x", 7),
                 STOKER_EFORMAT);
    cr_assert_eq(error.stage, STOKER_STAGE_OPEN);
    cr_assert_str_eq(error.path, "a.idx");
    cr_assert_str_eq(error.message, "a.idx: offset 4: magic 7");
    cr_assert_eq(stk_refuse_file(NULL, STOKER_EFORMAT, "a.idx", 4, "unheard"), STOKER_EFORMAT);
}

/* "no such file or directory" is what the kernel says as well: once is enough. */
CleanTest(error, a_message_is_not_repeated)
{
    const struct stk_place place = { .path = "some/file",
                                     .offset = STOKER_NO_OFFSET,
                                     .sample = STOKER_NO_SAMPLE,
                                     .os_errno = ENOENT };
    stoker_error error;
    cr_assert_eq(stk_error_set(&error, STOKER_ENOENT, STOKER_STAGE_OPEN, &place, "open"),
                 STOKER_ENOENT);
    cr_assert_eq(error.os_errno, ENOENT);
    cr_assert_str_eq(error.message, "some/file: open: no such file or directory");
}

CleanTest(error, a_long_path_keeps_its_end_and_a_long_message_its_start)
{
    char path[1024];
    memset(path, 'p', sizeof(path));
    memcpy(path + sizeof(path) - 9, "/the.end", 9);
    char what[1024];
    memset(what, 'w', sizeof(what) - 1);
    what[sizeof(what) - 1] = '\0';
    struct stk_place place = STK_NOWHERE;
    place.path = path;
    stoker_error error;
    memset(&error, 0xAA, sizeof(error));
    (void)stk_error_set(&error, STOKER_EIO, STOKER_STAGE_OPEN, &place, "%s", what);
    cr_assert_eq(strlen(error.path), sizeof(error.path) - 1);
    cr_assert_eq(strncmp(error.path, "...p", 4), 0);
    cr_assert_str_eq(error.path + strlen(error.path) - 8, "/the.end");
    cr_assert_lt(strlen(error.message), sizeof(error.message));
    cr_assert_not_null(strstr(error.message, "/the.end: www"));
    cr_assert_str_eq(error.message + strlen(error.message) - 6, "www...");
}

/* The path gives way to the message, which says where it was cut if it is too long alone. */
CleanTest(error, what_does_not_fit_is_marked)
{
    char path[256], what[700];
    memset(path, 'p', sizeof(path));
    memcpy(path + sizeof(path) - 9, "/the.end", 9);
    struct stk_place place = STK_NOWHERE;
    place.path = path;
    for (size_t length = 0; length < sizeof(what) - 5; length++) {
        stoker_error error;
        memset(what, 'w', length);
        memcpy(what + length, "\xc3\xa9nd", 5); /* an e with an accent */
        (void)stk_error_set(&error, STOKER_EINVAL, STOKER_STAGE_OPEN, &place, "%s", what);
        cr_assert_not_null(strstr(error.message, "/the.end: "), "%s", error.message);
        cr_assert_null(strchr(error.message, '?'), "%zu: a character was cut in two", length);
        const size_t size = strlen(error.message);
        cr_assert_str_eq(error.path, path);
        if (length < sizeof(error.message) - 70)
            cr_assert_str_eq(error.message + size - 4, "\xc3\xa9nd", "%s", error.message);
        else
            cr_assert(strcmp(error.message + size - 3, "...") == 0 ||
                      strcmp(error.message + size - 4, "\xc3\xa9nd") == 0);
    }
    stoker_error error;
    const struct stk_place nowhere = STK_NOWHERE;
    memset(what, 'w', 480);
    what[480] = '\0';
    (void)stk_error_set(&error, STOKER_EINVAL, STOKER_STAGE_OPEN, &nowhere, "%s", what);
    (void)stk_error_add_path(&error, STOKER_EINVAL, path);
    cr_assert_not_null(strstr(error.message, "/the.end: www"));
    cr_assert_str_eq(error.message + strlen(error.message) - 6, "www...");
}

/* The name of a file or member comes from the data set, so it is not trusted. */
CleanTest(error, path_and_message_are_printable_for_any_names)
{
    static const struct {
        const char *name;
        const char *shown;
    } names[] = {
        { "plain/name (1).png", "plain/name (1).png" },
        { "\x1b]0;owned\x07\x1b[2J\nsamples 60000", "?]0;owned??[2J?samples 60000" },
        { "tab\there\rand\x7f", "tab?here?and?" },
        { "\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80",
          "\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80" },
        { "c1 \xc2\x9b"
          "2J",
          "c1 ?2J" },
        { "nbsp \xc2\xa0.", "nbsp \xc2\xa0." },
        { "latin1 \xe9t\xe9", "latin1 ?t?" },
        { "override \xe2\x80\xaegpj.exe", "override ?gpj.exe" },
        { "isolate \xe2\x81\xa6x\xe2\x81\xa9", "isolate ?x?" },
        { "line \xe2\x80\xa8 paragraph \xe2\x80\xa9", "line ? paragraph ?" },
        { "dash \xe2\x80\xa7\xe2\x80\xaf", "dash \xe2\x80\xa7\xe2\x80\xaf" },
        { "overlong \xc0\x8a \xe0\x80\x8a", "overlong ?? ???" },
        { "surrogate \xed\xa0\x80", "surrogate ???" },
        { "beyond \xf4\x90\x80\x80 \xf8\x88\x80\x80\x80", "beyond ???? ?????" },
        { "cut \xf0\x9f\x98", "cut ???" },
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct stk_place place = { .path = names[i].name,
                                         .offset = STOKER_NO_OFFSET,
                                         .sample = STOKER_NO_SAMPLE };
        char expected[512];
        stoker_error error;
        (void)stk_error_set(&error, STOKER_EIO, STOKER_STAGE_READ, &place, "of \"%s\"",
                            names[i].name);
        cr_assert_str_eq(error.path, names[i].shown);
        (void)snprintf(expected, sizeof(expected), "%s: of \"%s\"", names[i].shown, names[i].shown);
        cr_assert_str_eq(error.message, expected);
    }
}

/* A path that keeps its end may lose half of a character. */
CleanTest(error, a_path_cut_inside_a_character_stays_utf8)
{
    char path[1024] = "";
    for (size_t at = 0; at + 2 < sizeof(path); at += 2)
        memcpy(path + at, "\xc3\xa9", 3);
    for (size_t shift = 0; shift < 2; shift++) {
        struct stk_place place = STK_NOWHERE;
        place.path = path + shift;
        stoker_error error;
        (void)stk_error_set(&error, STOKER_EIO, STOKER_STAGE_OPEN, &place, NULL);
        const char *at = error.path;
        for (uint32_t code; *at != '\0';) {
            const size_t length = stk_utf8_decode(at, &code);
            cr_assert_neq(length, 0, "byte %zu", (size_t)(at - error.path));
            at += length;
        }
    }
}

CleanTest(error, an_errno_becomes_the_code_that_says_the_same)
{
    static const struct {
        int os_errno;
        int code;
    } rows[] = {
        { ENOENT, STOKER_ENOENT },  { ENOTDIR, STOKER_ENOENT }, { EACCES, STOKER_EACCES },
        { EPERM, STOKER_EACCES },   { EISDIR, STOKER_EISDIR },  { ENOMEM, STOKER_ENOMEM },
        { EMFILE, STOKER_ENOFILE }, { ENFILE, STOKER_ENOFILE }, { ESTALE, STOKER_ECHANGED },
        { EIO, STOKER_EIO },        { ETIMEDOUT, STOKER_EIO },  { EPROTO, STOKER_EIO },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        cr_assert_eq(stk_error_from_errno(rows[i].os_errno), rows[i].code, "errno %d",
                     rows[i].os_errno);
}

CleanTest(error, a_specific_message_is_not_followed_by_the_general_sentence)
{
    stoker_error error;
    struct stk_place place = STK_NOWHERE;
    for (int code = -1; code >= -STK_ERROR_COUNT; code--) {
        (void)stk_error_set(&error, code, STOKER_STAGE_OPEN, &place, "seed 0, not %d", 5);
        cr_assert_str_eq(error.message,
                         code == STOKER_ENOMEM ? "out of memory: seed 0, not 5" : "seed 0, not 5");
        (void)stk_error_set(&error, code, STOKER_STAGE_OPEN, &place, NULL);
        cr_assert_str_eq(error.message, stoker_strerror(code));
    }
    place.path = "log.csv";
    place.os_errno = ENOSPC;
    (void)stk_error_set(&error, STOKER_EIO, STOKER_STAGE_OPEN, &place, "write");
    cr_assert_str_eq(error.message, "log.csv: write: No space left on device");
    place.os_errno = 0;
    (void)stk_error_set(&error, STOKER_ENOMEM, STOKER_STAGE_OPEN, &place, "its header");
    cr_assert_str_eq(error.message, "log.csv: out of memory: its header");
}
