/* codec_run.h - one codec with its scratch, decoding to the end of readable memory.
 *
 * Input and row lie at the very end of heap blocks, so that ASan sees a byte too many.
 */
#ifndef STK_TEST_CODEC_RUN_H
#define STK_TEST_CODEC_RUN_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <stoker/codec.h>
#include <string.h>

#include "loader/base/fault.h"
#include "support/sets/decode.h"

struct stk_codec_run {
    const stoker_codec *codec;
    void *scratch;
    uint8_t *row;
    size_t row_bytes;
    stoker_error error; /* the last decode's */
};

static inline struct stk_codec_run stk_codec_run_open(const stoker_codec *codec, size_t row_bytes)
{
    struct stk_codec_run run = { .codec = codec, .row_bytes = row_bytes };
    if (codec->open != NULL)
        cr_assert_eq(codec->open(codec->self, false, &run.scratch), STOKER_OK);
    run.row = malloc(row_bytes);
    cr_assert_not_null(run.row);
    return run;
}

static inline void stk_codec_run_close(struct stk_codec_run *run)
{
    if (run->codec->close != NULL)
        run->codec->close(run->codec->self, run->scratch);
    free(run->row);
}

/* Decode from the bytes where they are. */
static inline int stk_codec_run_in_place(struct stk_codec_run *run, const uint8_t *bytes,
                                         size_t size)
{
    const stoker_encoded in = { .bytes = size == 0 ? NULL : bytes, .size = size };
    run->error.message[0] = '\0';
    int rc = stk_decode_row(run->codec, run->scratch, &in, run->row, run->row_bytes, &run->error);
    cr_assert_leq(rc, 0);
    cr_assert(rc == 0 || run->error.message[0] != '\0', "refused without a word");
    cr_assert_lt(strlen(run->error.message), sizeof(run->error.message));
    return rc;
}

/* Decode from a copy that ends where its memory does. */
static inline int stk_codec_run(struct stk_codec_run *run, const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    cr_assert_not_null(copy);
    memcpy(copy, bytes, size);
    int rc = stk_codec_run_in_place(run, copy, size);
    free(copy);
    return rc;
}

#endif
