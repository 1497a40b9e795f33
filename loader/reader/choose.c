/* choose.c - see readers.h.
 *
 *   STOKER_READER set ----> that reader, or an error
 *   not set --> a ring opens, runs and closes? --yes--> uring
 *                                              --no---> pread, and the ring's error as the reason
 */
#include "loader/reader/readers.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/environment.h"
#include "loader/base/error.h"

/* Not null: it delivers garbage, and no environment variable may change the bytes of a batch. */
static const stoker_reader *const readers[] = { &stk_reader_uring, &stk_reader_pread };

static const stoker_reader *find_reader(const char *name)
{
    for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
        if (strcmp(readers[i]->name, name) == 0)
            return readers[i];
    return NULL;
}

/* Open and close the smallest ring. */
static int probe(const stoker_reader *reader, stoker_error *error)
{
    const stoker_reader_setup smallest = { .struct_size = sizeof(smallest), .depth = 1 };
    void *ring = NULL;
    int rc = reader->open(reader->self, &ring, &smallest, error);
    return rc < 0 ? rc : reader->close(ring, 0);
}

static int choose_named(const stoker_reader **out, const char *name, char *reason,
                        size_t reason_bytes, stoker_error *error)
{
    const stoker_reader *reader = find_reader(name);
    if (reader == NULL) {
        const struct stk_place place = STK_NOWHERE;
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &place,
                             "STOKER_READER=%.40s: not one of uring, pread", name);
    }
    int rc = probe(reader, error);
    if (rc < 0)
        return rc;
    (void)snprintf(reason, reason_bytes, "STOKER_READER=%s", name);
    *out = reader;
    return 0;
}

/* The ring's own message, without the text of the error code at its end. */
static void describe_fallback(char *reason, size_t reason_bytes, const stoker_error *refusal)
{
    const char *end = strstr(refusal->message, stoker_strerror(refusal->code));
    size_t length = strlen(refusal->message);
    if (end != NULL && end - refusal->message >= 2)
        length = (size_t)(end - refusal->message) - 2; /* the ": " before it */
    (void)snprintf(reason, reason_bytes, "%.*s; reading with pread", (int)length, refusal->message);
}

int stk_reader_choose(const stoker_reader **out, char *reason, size_t reason_bytes,
                      stoker_error *error)
{
    assert(out != NULL);
    assert(reason != NULL);
    assert(reason_bytes >= 1);

    const char *name = stk_environment("STOKER_READER");
    if (name != NULL)
        return choose_named(out, name, reason, reason_bytes, error);

    stoker_error refusal = { 0 };
    int rc = probe(&stk_reader_uring, &refusal);
    if (rc < 0 && rc != STOKER_EREADER) {
        if (error != NULL)
            *error = refusal;
        return rc;
    }
    if (rc == 0)
        (void)snprintf(reason, reason_bytes, "io_uring works here");
    else
        describe_fallback(reason, reason_bytes, &refusal);
    *out = rc == 0 ? &stk_reader_uring : &stk_reader_pread;
    return 0;
}
