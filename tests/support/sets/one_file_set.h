/* one_file_set.h - a data set of 64 rows of 16 bytes in one file, where the test decides what that
 * file is: a pipe, or none at all. Its functions are those of stoker_dataset_ops; a set with more
 * to it begins with this one.
 */
#ifndef STK_TEST_ONE_FILE_SET_H
#define STK_TEST_ONE_FILE_SET_H

#include <stoker/stoker.h>

enum { STK_ONE_FILE_SAMPLES = 64, STK_ONE_FILE_ROW_BYTES = 16 };

struct stk_one_file_set {
    const char *path;          /* for messages */
    int fd;                    /* the caller's; -1 = none */
    const stoker_codec *codec; /* NULL = rows lie there as they are */
};

static inline int stk_one_file_describe(const void *self, stoker_dataset_info *out)
{
    (void)self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(stoker_dataset_info),
                                  .count = STK_ONE_FILE_SAMPLES,
                                  .dtype = STOKER_DTYPE_UINT8,
                                  .rank = 1,
                                  .shape = { STK_ONE_FILE_ROW_BYTES },
                                  .file_count = 1,
                                  .encoded_bytes_max = STK_ONE_FILE_ROW_BYTES };
    return STOKER_OK;
}

static inline int stk_one_file_locate(const void *self, const uint64_t *ids, uint32_t count,
                                      stoker_part *out, stoker_error *error)
{
    const struct stk_one_file_set *set = self;
    (void)error;
    for (uint32_t i = 0; i < count; i++)
        out[i] = (stoker_part){ .extent = { .offset = ids[i] * STK_ONE_FILE_ROW_BYTES,
                                            .bytes = STK_ONE_FILE_ROW_BYTES },
                                .codec = set->codec };
    return STOKER_OK;
}

static inline int stk_one_file_file(const void *self, uint32_t number, stoker_file *out)
{
    const struct stk_one_file_set *set = self;
    (void)number;
    *out = (stoker_file){ .path = set->path,
                          .fd = set->fd,
                          .size = STK_ONE_FILE_SAMPLES * STK_ONE_FILE_ROW_BYTES };
    return STOKER_OK;
}

#endif
