/* pattern.h - names in braces: "train-{000..099}.tar", "{a,b}/{0..9}.tar". */
#ifndef STK_DATASETS_TAR_PATTERN_H
#define STK_DATASETS_TAR_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

enum { STK_TAR_BRACES_MAX = 4, STK_TAR_FILES_MAX = 65536 };

/* One pair of braces: numbers, or words. */
struct stk_tar_braces {
    size_t begin;   /* of '{' in the text */
    size_t end;     /* behind '}' */
    uint32_t count; /* of what may stand for it, >= 1 */
    uint32_t width; /* digits at least, zeros in front; 0 = words */
    uint64_t first; /* number */
};

/* A pattern without braces is one name. */
struct stk_tar_pattern {
    const char *text; /* the caller's */
    size_t bytes;
    uint32_t brace_count;
    struct stk_tar_braces braces[STK_TAR_BRACES_MAX];
    uint32_t name_count; /* 1..STK_TAR_FILES_MAX */
};

/* Understand the `bytes` first bytes of text, which must outlive the pattern. STOKER_ESPEC: the
 * braces are broken; STOKER_ELIMIT: too many, of pairs or of names. */
int stk_tar_pattern_parse(struct stk_tar_pattern *out, const char *text, size_t bytes,
                          stoker_error *error);

/* Take the text as it is, braces included. */
void stk_tar_pattern_plain(struct stk_tar_pattern *out, const char *text, size_t bytes);

/* Write name `index` < name_count, the last braces changing fastest; returns its bytes, or 0 if
 * name_bytes (the final 0 included) are too few. */
size_t stk_tar_pattern_name(const struct stk_tar_pattern *pattern, uint32_t index, char *name,
                            size_t name_bytes);

#endif
