/* answer.h - what a server's headers say, and whether that is what was asked for.
 *
 *   "HTTP/1.1 206 ...", "Content-Range: ...", ... ──▶ stk_answer ──▶ judge against stk_wanted
 *
 * No byte of a body is used before its headers are judged: the range must be the one that was asked
 * for, of an object of the same size and version, and not encoded.
 */
#ifndef STK_REMOTE_ANSWER_H
#define STK_REMOTE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define STK_UNKNOWN UINT64_MAX /* a size or length that nobody has said */

enum { STK_ANSWER_BYTES_MAX = 64 << 10 }; /* all headers of an answer */

enum { STK_REGION_BYTES = 64 };

struct stk_answer {
    int status;      /* 206; 0 = none yet */
    uint32_t bytes;  /* of its headers */
    uint64_t length; /* Content-Length */
    bool has_range;  /* Content-Range: first-last/total, or only a total */
    uint64_t first, last, total;
    uint64_t etag;     /* a hash of the strong ETag; 0 = none */
    uint64_t modified; /* a hash of Last-Modified; 0 = none */
    /* What Hugging Face says about the object beside a redirect to it: a hash of X-Linked-Etag, and
     * X-Linked-Size; 0 = nothing. Those of all answers up to the last one's. */
    uint64_t linked_etag, linked_size;
    char region[STK_REGION_BYTES]; /* X-Amz-Bucket-Region; "" = not said */
    uint64_t retry_after_s;        /* 0 = not said */
    bool encoded;                  /* Content-Encoding is not identity */
    bool malformed; /* a header that counts cannot be parsed, or there are too many bytes */
};

/* Take one header line or status line, which begins a new answer. now: for dates. */
void stk_answer_take(struct stk_answer *answer, const char *line, size_t bytes, time_t now);

/* The version of an object of `size` bytes, as in stoker/storage.h; 0 = not known. */
uint64_t stk_answer_version(const struct stk_answer *answer, uint64_t size);

/* Returns the value of a header line of that name, and its length in *bytes; NULL = another. */
const char *stk_header_value(const char *line, size_t line_bytes, const char *name, size_t *bytes);

/* A part of an object. */
struct stk_wanted {
    uint64_t offset;
    uint64_t bytes;   /* may reach beyond the end; 0 = no range, all that the server answers */
    uint64_t size;    /* the object's, or STK_UNKNOWN */
    uint64_t version; /* 0 = any */
};

enum stk_verdict {
    STK_VERDICT_TAKE,     /* the body is what was asked for */
    STK_VERDICT_END,      /* the object ends before the offset */
    STK_VERDICT_REDIRECT, /* ask elsewhere */
    STK_VERDICT_RETRY,    /* may pass */
    STK_VERDICT_CHANGED,  /* another version or size */
    STK_VERDICT_ABSENT,   /* no such object */
    STK_VERDICT_DENIED,   /* not allowed, or not with these credentials */
    STK_VERDICT_FAIL      /* for good */
};

/* *expected: with TAKE, the bytes of the body that count; STK_UNKNOWN = until it ends. *why: for
 * all others, a reason in words. */
enum stk_verdict stk_answer_judge(const struct stk_answer *answer, const struct stk_wanted *wanted,
                                  uint64_t *expected, const char **why);

/* "404 Not Found", or "" if the status is not known. */
const char *stk_status_words(int status);

#endif
