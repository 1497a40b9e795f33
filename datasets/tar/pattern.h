/* pattern.h - names in braces: "train-{000..099}.tar", "{a,b}/{0..9}.tar". */
#ifndef STK_DATASETS_TAR_PATTERN_H
#define STK_DATASETS_TAR_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

enum { STK_TAR_BRACES_MAX = 4, STK_TAR_FILES_MAX = 65536 };

/* One pair of braces: a range of numbers, or words. */
struct stk_tar_braces {
    size_t begin;   /* offset of '{' */
    size_t end;     /* offset after '}' */
    uint32_t count; /* replacements, >= 1 */
    uint32_t width; /* minimum digits, zero-padded; 0 = words */
    uint64_t first; /* number of the range */
};

/* A pattern without braces is one name. */
struct stk_tar_pattern {
    const char *text; /* the caller's */
    size_t bytes;
    uint32_t brace_count;
    struct stk_tar_braces braces[STK_TAR_BRACES_MAX];
    uint32_t name_count; /* 1..STK_TAR_FILES_MAX */
};

/* Parse the first `bytes` bytes of text, which must outlive the pattern. format is for messages ("tar").
 * STOKER_ESPEC: malformed braces; STOKER_ELIMIT: too many pairs or names. */
int stk_tar_pattern_parse(struct stk_tar_pattern *out, const char *format, const char *text,
                          size_t bytes, stoker_error *error);

/* Use the text literally, braces included. */
void stk_tar_pattern_plain(struct stk_tar_pattern *out, const char *text, size_t bytes);

/* Write name `index` < name_count; the last braces change fastest. Returns its length, or 0 if it and
 * the final 0 need more than name_bytes. */
size_t stk_tar_pattern_name(const struct stk_tar_pattern *pattern, uint32_t index, char *name,
                            size_t name_bytes);

#endif
