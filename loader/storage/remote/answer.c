/* answer.c - see answer.h. */
#include "loader/storage/remote/answer.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "loader/base/rng.h"
#include "loader/storage/remote/etag.h"

/* ---- parse ---------------------------------------------------------------------- */

/* Parse decimal digits at *at, and move it behind them. Returns false if there are none, or if the
 * number has no room. */
static bool take_number(const char **at, const char *end, uint64_t *out)
{
    const char *from = *at;
    uint64_t value = 0;
    for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
        const uint64_t digit = (uint64_t)(**at - '0');
        if (value > (INT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return *at > from;
}

static bool is_number(const char *text, size_t bytes, uint64_t *out)
{
    const char *at = text;
    return take_number(&at, text + bytes, out) && at == text + bytes;
}

static bool skip(const char **at, const char *end, char wanted)
{
    if (*at == end || **at != wanted)
        return false;
    (*at)++;
    return true;
}

/* "bytes 0-99/1000", or with a star for what is not said */
static bool take_range(struct stk_answer *answer, const char *text, size_t bytes)
{
    const char *at = text + 6, *end = text + bytes;
    if (answer->has_range || bytes < 6 || strncasecmp(text, "bytes ", 6) != 0)
        return false;
    answer->has_range = true;
    answer->first = answer->last = answer->total = STK_UNKNOWN;
    if (!skip(&at, end, '*') &&
        !(take_number(&at, end, &answer->first) && skip(&at, end, '-') &&
          take_number(&at, end, &answer->last) && answer->first <= answer->last))
        return false;
    if (!skip(&at, end, '/'))
        return false;
    if (!skip(&at, end, '*') && !take_number(&at, end, &answer->total))
        return false;
    return at == end && (answer->first == STK_UNKNOWN || answer->last < answer->total);
}

/* "Sun, 06 Nov 1994 08:49:37 GMT"; all other forms are obsolete. Returns -1 if it is none. */
static time_t date_of(const char *text, size_t bytes)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char copy[32], month[4];
    struct tm time = { .tm_isdst = 0 };
    if (bytes != 29)
        return -1;
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    if (sscanf(copy, "%*3s, %2d %3s %4d %2d:%2d:%2d GMT", &time.tm_mday, month, &time.tm_year,
               &time.tm_hour, &time.tm_min, &time.tm_sec) != 6)
        return -1;
    const char *found = strstr(months, month);
    if (found == NULL || strlen(month) != 3)
        return -1;
    time.tm_mon = (int)(found - months) / 3;
    time.tm_year -= 1900;
    return timegm(&time);
}

static uint64_t retry_after_s(const char *text, size_t bytes, time_t now)
{
    uint64_t seconds;
    if (is_number(text, bytes, &seconds))
        return seconds;
    const time_t then = date_of(text, bytes);
    return then > now ? (uint64_t)(then - now) : 0;
}

const char *stk_header_value(const char *line, size_t line_bytes, const char *name, size_t *bytes)
{
    const size_t name_bytes = strlen(name);
    if (line_bytes <= name_bytes || line[name_bytes] != ':' ||
        strncasecmp(line, name, name_bytes) != 0)
        return NULL;
    const char *at = line + name_bytes + 1, *end = line + line_bytes;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    while (end > at && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *bytes = (size_t)(end - at);
    return at;
}

static void begin(struct stk_answer *answer, const char *line, size_t bytes)
{
    const char *at = memchr(line, ' ', bytes), *end = line + bytes;
    uint64_t status = 0;
    *answer = (struct stk_answer){ .length = STK_UNKNOWN,
                                   .total = STK_UNKNOWN,
                                   .linked_etag = answer->linked_etag,
                                   .linked_size = answer->linked_size };
    if (at == NULL || (at++, !take_number(&at, end, &status)) || status < 100 || status > 599)
        answer->malformed = true;
    else
        answer->status = (int)status;
}

void stk_answer_take(struct stk_answer *answer, const char *line, size_t bytes, time_t now)
{
    size_t value_bytes;
    const char *value;
    if (bytes >= 5 && memcmp(line, "HTTP/", 5) == 0)
        begin(answer, line, bytes);
    answer->malformed |= bytes > STK_ANSWER_BYTES_MAX - answer->bytes;
    if (answer->malformed)
        return;
    answer->bytes += (uint32_t)bytes;
    if ((value = stk_header_value(line, bytes, "content-length", &value_bytes)) != NULL)
        answer->malformed =
            answer->length != STK_UNKNOWN || !is_number(value, value_bytes, &answer->length);
    else if ((value = stk_header_value(line, bytes, "content-range", &value_bytes)) != NULL)
        answer->malformed = !take_range(answer, value, value_bytes);
    else if ((value = stk_header_value(line, bytes, "content-encoding", &value_bytes)) != NULL)
        answer->encoded =
            value_bytes != 0 && (value_bytes != 8 || strncasecmp(value, "identity", 8) != 0);
    else if ((value = stk_header_value(line, bytes, "etag", &value_bytes)) != NULL)
        answer->etag = stk_etag_version(value, value_bytes);
    else if ((value = stk_header_value(line, bytes, "x-linked-etag", &value_bytes)) != NULL)
        answer->linked_etag = stk_etag_version(value, value_bytes);
    else if ((value = stk_header_value(line, bytes, "x-linked-size", &value_bytes)) != NULL)
        answer->malformed = !is_number(value, value_bytes, &answer->linked_size);
    else if ((value = stk_header_value(line, bytes, "x-amz-bucket-region", &value_bytes)) != NULL)
        (void)snprintf(answer->region, sizeof(answer->region), "%.*s",
                       value_bytes < STK_REGION_BYTES ? (int)value_bytes : 0, value);
    else if ((value = stk_header_value(line, bytes, "last-modified", &value_bytes)) != NULL)
        answer->modified = stk_etag_version(value, value_bytes);
    else if ((value = stk_header_value(line, bytes, "retry-after", &value_bytes)) != NULL)
        answer->retry_after_s = retry_after_s(value, value_bytes, now);
}

uint64_t stk_answer_version(const struct stk_answer *answer, uint64_t size)
{
    if (answer->linked_etag != 0 || answer->etag != 0)
        return answer->linked_etag != 0 ? answer->linked_etag : answer->etag;
    const uint64_t version = answer->modified == 0 ? 0 : stk_mix64(answer->modified ^ size);
    return answer->modified != 0 && version == 0 ? 1 : version;
}

/* ---- judge ---------------------------------------------------------------------- */

const char *stk_status_words(int status)
{
    static const struct {
        int status;
        const char *words;
    } known[] = {
        { 400, "400 Bad Request" },
        { 401, "401 Unauthorized" },
        { 403, "403 Forbidden" },
        { 404, "404 Not Found" },
        { 405, "405 Method Not Allowed" },
        { 408, "408 Request Timeout" },
        { 410, "410 Gone" },
        { 412, "412 Precondition Failed" },
        { 416, "416 Range Not Satisfiable" },
        { 429, "429 Too Many Requests" },
        { 500, "500 Internal Server Error" },
        { 502, "502 Bad Gateway" },
        { 503, "503 Service Unavailable" },
        { 504, "504 Gateway Timeout" },
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i].status == status)
            return known[i].words;
    return "";
}

static enum stk_verdict judge_status(int status)
{
    switch (status) {
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
        return STK_VERDICT_REDIRECT;
    case 401:
    case 403:
        return STK_VERDICT_DENIED;
    case 404:
    case 410:
        return STK_VERDICT_ABSENT;
    case 412:
        return STK_VERDICT_CHANGED;
    case 408:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
        return STK_VERDICT_RETRY;
    default:
        return STK_VERDICT_FAIL;
    }
}

/* 416: the object ends before the offset, as *total says. */
static enum stk_verdict judge_end(const struct stk_answer *answer, const struct stk_wanted *wanted)
{
    const uint64_t size = answer->has_range ? answer->total : wanted->size;
    if (size == STK_UNKNOWN)
        return STK_VERDICT_FAIL;
    if (wanted->size != STK_UNKNOWN && size != wanted->size)
        return STK_VERDICT_CHANGED;
    return wanted->offset >= size ? STK_VERDICT_END : STK_VERDICT_RETRY;
}

/* Check that it is the range that was asked for. A server may say 200 with a Content-Range. */
static const char *check_range(const struct stk_answer *answer, const struct stk_wanted *wanted,
                               uint64_t size, uint64_t *expected)
{
    if (answer->first != wanted->offset || wanted->offset >= size)
        return "the answer has another range than was asked for";
    const uint64_t end =
        wanted->bytes > size - wanted->offset ? size : wanted->offset + wanted->bytes;
    *expected = answer->last - answer->first + 1;
    if (size == STK_UNKNOWN ? *expected > wanted->bytes : answer->last + 1 != end)
        return "the answer has another range than was asked for";
    if (answer->length != STK_UNKNOWN && answer->length != *expected)
        return "the answer's length is not that of its range";
    return NULL;
}

/* A plain 200 is the whole object. */
static const char *check_whole(const struct stk_answer *answer, const struct stk_wanted *wanted,
                               uint64_t size, uint64_t *expected)
{
    *expected = size;
    if (wanted->bytes == 0)
        return NULL;
    if (answer->status == 206)
        return "206 without a Content-Range";
    if (wanted->offset > 0)
        return "the server ignores the range that was asked for";
    if (size == STK_UNKNOWN)
        return "the server says no length";
    if (wanted->bytes < size)
        *expected = wanted->bytes;
    return NULL;
}

static enum stk_verdict judge_body(const struct stk_answer *answer, const struct stk_wanted *wanted,
                                   uint64_t *expected, const char **why)
{
    if (answer->encoded) {
        *why = "the server encodes its answer (Content-Encoding), although it was asked not to";
        return STK_VERDICT_FAIL;
    }
    const bool ranged = answer->has_range && answer->first != STK_UNKNOWN && wanted->bytes > 0;
    uint64_t size = ranged ? answer->total : answer->length;
    if (size != STK_UNKNOWN && wanted->size != STK_UNKNOWN && size != wanted->size) {
        *why = "its size is another than when it was opened";
        return STK_VERDICT_CHANGED;
    }
    size = size == STK_UNKNOWN ? wanted->size : size;
    *why = ranged ? check_range(answer, wanted, size, expected)
                  : check_whole(answer, wanted, size, expected);
    if (*why != NULL)
        return STK_VERDICT_RETRY;
    *why = "";
    const uint64_t version = stk_answer_version(answer, size);
    if (wanted->version == 0 || version == wanted->version)
        return STK_VERDICT_TAKE;
    *why = version != 0 ? "another version than when it was opened"
                        : "the answer has neither an ETag nor a Last-Modified";
    return version != 0 ? STK_VERDICT_CHANGED : STK_VERDICT_RETRY;
}

enum stk_verdict stk_answer_judge(const struct stk_answer *answer, const struct stk_wanted *wanted,
                                  uint64_t *expected, const char **why)
{
    *expected = 0;
    *why = stk_status_words(answer->status);
    if (answer->malformed) {
        *why = "malformed headers";
        return STK_VERDICT_RETRY;
    }
    if (answer->status == 200 || answer->status == 206)
        return judge_body(answer, wanted, expected, why);
    return answer->status == 416 ? judge_end(answer, wanted) : judge_status(answer->status);
}
