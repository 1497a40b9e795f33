/* events.c - see events.h. */
#include "trainer/files/events.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/bytes.h"
#include "loader/base/crc32c/crc32c.h"
#include "loader/base/error.h"
#include "loader/base/io/write_all.h"

enum {
    EVENT_BYTES_MAX = STK_EVENT_TAG_BYTES_MAX + 64,
    RECORD_HEAD_BYTES = 12,
    RECORD_TAIL_BYTES = 4,
    FILES_TRIED = 1000
};

static const char file_version[] = "brain.Event:2";

/* ---- protobuf ------------------------------------------------------------------- */

enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

struct message {
    size_t used;
    uint8_t bytes[EVENT_BYTES_MAX];
};

static void put_varint(struct message *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        to->bytes[to->used++] = (uint8_t)(value | 0x80);
    to->bytes[to->used++] = (uint8_t)value;
}

static void put_key(struct message *to, unsigned field, enum wire wire)
{
    put_varint(to, field << 3 | (unsigned)wire);
}

static void put_bytes(struct message *to, unsigned field, const void *bytes, size_t count)
{
    put_key(to, field, BYTES);
    put_varint(to, count);
    assert(to->used + count <= sizeof(to->bytes));
    memcpy(to->bytes + to->used, bytes, count);
    to->used += count;
}

static void put_message(struct message *to, unsigned field, const struct message *inner)
{
    put_bytes(to, field, inner->bytes, inner->used);
}

static void put_double(struct message *to, unsigned field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    put_key(to, field, FIXED64);
    stk_store_le64(to->bytes + to->used, bits);
    to->used += 8;
}

static void put_float(struct message *to, unsigned field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    put_key(to, field, FIXED32);
    stk_store_le32(to->bytes + to->used, bits);
    to->used += 4;
}

/* The first fields of all events. */
static struct message begin_event(double wall_time_s, uint64_t step)
{
    struct message event = { 0 };
    put_double(&event, 1, wall_time_s);
    if (step > 0) {
        put_key(&event, 2, VARINT);
        put_varint(&event, step);
    }
    return event;
}

/* ---- records -------------------------------------------------------------------- */

static uint32_t masked_crc(const uint8_t *bytes, size_t count)
{
    const uint32_t crc = stk_crc32c(0, bytes, count);
    return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

static int system_failure(const struct stk_events *events, const char *call, stoker_error *error)
{
    struct stk_place place = STK_NOWHERE;
    place.path = events->path;
    place.os_errno = errno;
    return stk_error_set(error, stk_error_from_errno(errno), STOKER_STAGE_TRANSFER, &place, "%s",
                         call);
}

int stk_events_flush(struct stk_events *events, stoker_error *error)
{
    const size_t bytes = events->used;
    events->used = 0; /* drop what could not be written: a retry would write part of it twice */
    if (bytes > 0 && !stk_write_all(events->fd, events->buffer, bytes))
        return system_failure(events, "write", error);
    return STOKER_OK;
}

static int put_record(struct stk_events *events, const struct message *event, stoker_error *error)
{
    if (sizeof(events->buffer) - events->used <
        event->used + RECORD_HEAD_BYTES + RECORD_TAIL_BYTES) {
        int rc = stk_events_flush(events, error);
        if (rc != STOKER_OK)
            return rc;
    }
    uint8_t *to = events->buffer + events->used;
    stk_store_le64(to, event->used);
    stk_store_le32(to + 8, masked_crc(to, 8));
    memcpy(to + RECORD_HEAD_BYTES, event->bytes, event->used);
    stk_store_le32(to + RECORD_HEAD_BYTES + event->used, masked_crc(event->bytes, event->used));
    events->used += RECORD_HEAD_BYTES + event->used + RECORD_TAIL_BYTES;
    return STOKER_OK;
}

int stk_events_scalar(struct stk_events *events, const char *tag, uint64_t step, double wall_time_s,
                      float value, stoker_error *error)
{
    assert(events->fd >= 0);
    assert(strlen(tag) <= STK_EVENT_TAG_BYTES_MAX);
    struct message scalar = { 0 };
    put_bytes(&scalar, 1, tag, strlen(tag));
    put_float(&scalar, 2, value);
    struct message summary = { 0 };
    put_message(&summary, 1, &scalar);
    struct message event = begin_event(wall_time_s, step);
    put_message(&event, 5, &summary);
    return put_record(events, &event, error);
}

/* ---- the file ------------------------------------------------------------------- */

/* Creates the directory and its parents. */
static bool make_directory(const char *directory)
{
    char path[STK_EVENTS_PATH_BYTES];
    const size_t length = strlen(directory);
    if (length >= sizeof(path)) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(path, directory, length + 1);
    for (char *slash = strchr(path + (path[0] == '/'), '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return false;
        *slash = '/';
    }
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

/* A slash would leave the directory. */
static void host_name(char out[65])
{
    if (gethostname(out, 64) != 0 || out[0] == '\0')
        memcpy(out, "localhost", sizeof("localhost"));
    out[64] = '\0';
    for (char *at = strchr(out, '/'); at != NULL; at = strchr(at, '/'))
        *at = '-';
}

/* Takes the first free name: a second run in the same second has another file. */
static int create(struct stk_events *events, const char *directory, double wall_time_s)
{
    char host[65];
    host_name(host);
    for (int n = 0; n < FILES_TRIED; n++) {
        char suffix[16] = "";
        if (n > 0)
            (void)snprintf(suffix, sizeof(suffix), ".%d", n);
        const int length =
            snprintf(events->path, sizeof(events->path), "%s/events.out.tfevents.%010lld.%s%s",
                     directory, (long long)wall_time_s, host, suffix);
        if (length < 0 || (size_t)length >= sizeof(events->path)) {
            errno = ENAMETOOLONG;
            return -1;
        }
        const int fd = open(events->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static int put_start(struct stk_events *events, double wall_time_s, uint64_t first_step,
                     stoker_error *error)
{
    struct message event = begin_event(wall_time_s, 0);
    put_bytes(&event, 3, file_version, strlen(file_version));
    int rc = put_record(events, &event, error);
    if (rc != STOKER_OK || first_step == 0)
        return rc;
    struct message session = { 0 };
    put_key(&session, 1, VARINT);
    put_varint(&session, 1);
    event = begin_event(wall_time_s, first_step + 1);
    put_message(&event, 7, &session);
    return put_record(events, &event, error);
}

int stk_events_open(struct stk_events *events, const char *directory, double wall_time_s,
                    uint64_t first_step, stoker_error *error)
{
    events->fd = -1;
    events->used = 0;
    (void)snprintf(events->path, sizeof(events->path), "%s", directory);
    if (!make_directory(directory))
        return system_failure(events, "mkdir", error);
    events->fd = create(events, directory, wall_time_s);
    if (events->fd < 0)
        return system_failure(events, "open", error);
    int rc = put_start(events, wall_time_s, first_step, error);
    if (rc == STOKER_OK)
        rc = stk_events_flush(events, error);
    if (rc != STOKER_OK)
        (void)stk_events_close(events, NULL);
    return rc;
}

int stk_events_close(struct stk_events *events, stoker_error *error)
{
    if (events->fd < 0)
        return STOKER_OK;
    int rc = stk_events_flush(events, error);
    if (close(events->fd) != 0 && errno != EINTR && rc == STOKER_OK)
        rc = system_failure(events, "close", error);
    events->fd = -1;
    return rc;
}
