/* inflate_verdict.h - one zlib stream to our inflate and to others, which must say the same.
 *
 * zlib judges each stream just as we do. libdeflate takes a little more, so of it we only ask that
 * it takes what we take, and makes the same of it.
 */
#ifndef STK_TEST_INFLATE_VERDICT_H
#define STK_TEST_INFLATE_VERDICT_H

#include <stdlib.h>
#include <string.h>

#include "loader/codec/png/inflate.h"
#include <libdeflate.h>
#ifdef STOKER_TEST_ZLIB
#include <zlib.h>
#endif

/* One try. The caller frees `out`. */
struct stk_inflate_try {
    bool accepted;
    uint8_t *out;
};

/* With just the slack that is promised, filled with `slack`. */
static inline struct stk_inflate_try stk_inflate_try_ours(const uint8_t *in, size_t in_bytes,
                                                          size_t out_bytes, bool plain, int slack)
{
    struct stk_inflate *tables = calloc(1, sizeof(*tables));
    uint8_t *copy = malloc(in_bytes + STK_INFLATE_IN_SLACK_BYTES);
    struct stk_inflate_try ours = { .out = calloc(1, out_bytes + STK_INFLATE_OUT_SLACK_BYTES) };
    if (tables == NULL || copy == NULL || ours.out == NULL)
        abort();
    tables->plain = plain;
    if (in_bytes > 0)
        memcpy(copy, in, in_bytes);
    memset(copy + in_bytes, slack, STK_INFLATE_IN_SLACK_BYTES);
    ours.accepted = stk_inflate(tables, copy, in_bytes, ours.out, out_bytes);
    free(copy);
    free(tables);
    return ours;
}

static inline struct stk_inflate_try stk_inflate_try_libdeflate(const uint8_t *in, size_t in_bytes,
                                                                size_t out_bytes)
{
    struct libdeflate_decompressor *engine = libdeflate_alloc_decompressor();
    struct stk_inflate_try theirs = { .out = malloc(out_bytes + 1) };
    if (engine == NULL || theirs.out == NULL)
        abort();
    size_t used = 0;
    const enum libdeflate_result result =
        libdeflate_zlib_decompress_ex(engine, in, in_bytes, theirs.out, out_bytes, &used, NULL);
    theirs.accepted = result == LIBDEFLATE_SUCCESS && used == in_bytes;
    libdeflate_free_decompressor(engine);
    return theirs;
}

#ifdef STOKER_TEST_ZLIB
static inline struct stk_inflate_try stk_inflate_try_zlib(const uint8_t *in, size_t in_bytes,
                                                          size_t out_bytes)
{
    struct stk_inflate_try theirs = { .out = malloc(out_bytes + 1) };
    z_stream stream = { .next_in = (Bytef *)(uintptr_t)in, .avail_in = (uInt)in_bytes };
    if (theirs.out == NULL || inflateInit(&stream) != Z_OK)
        abort();
    stream.next_out = theirs.out;
    stream.avail_out = (uInt)out_bytes;
    const int rc = inflate(&stream, Z_FINISH);
    theirs.accepted = rc == Z_STREAM_END && stream.avail_in == 0 && stream.avail_out == 0;
    (void)inflateEnd(&stream);
    return theirs;
}
#endif

/* What is wrong with another's answer; NULL = nothing. Frees its bytes. */
static inline const char *stk_inflate_differs(const struct stk_inflate_try *ours,
                                              struct stk_inflate_try *other, size_t out_bytes,
                                              bool may_take_more, const char *who)
{
    const char *wrong = NULL;
    if (ours->accepted != other->accepted && !(may_take_more && other->accepted))
        wrong = who;
    if (ours->accepted && other->accepted && out_bytes > 0 &&
        memcmp(ours->out, other->out, out_bytes) != 0)
        wrong = who;
    free(other->out);
    return wrong;
}

/* Inflate a stream with every decoder. Returns NULL, or the name of one that disagrees; *out, to be freed,
 * holds the bytes if *accepted. */
static inline const char *stk_inflate_judge(const uint8_t *in, size_t in_bytes, size_t out_bytes,
                                            bool *accepted, uint8_t **out)
{
    const struct stk_inflate_try ours = stk_inflate_try_ours(in, in_bytes, out_bytes, false, 0xFF);
    struct stk_inflate_try plain = stk_inflate_try_ours(in, in_bytes, out_bytes, true, 0);
    const char *who = stk_inflate_differs(&ours, &plain, out_bytes, false, "plain C");
    struct stk_inflate_try deflate = stk_inflate_try_libdeflate(in, in_bytes, out_bytes);
    const char *by_deflate = stk_inflate_differs(&ours, &deflate, out_bytes, true, "libdeflate");
    who = who != NULL ? who : by_deflate;
#ifdef STOKER_TEST_ZLIB
    struct stk_inflate_try zlib = stk_inflate_try_zlib(in, in_bytes, out_bytes);
    const char *by_zlib = stk_inflate_differs(&ours, &zlib, out_bytes, false, "zlib");
    who = who != NULL ? who : by_zlib;
#endif
    *accepted = ours.accepted;
    *out = ours.out;
    return who;
}

#endif
