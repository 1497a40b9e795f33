/* checking.c - see checking.h. */
#include "bench/codecs/checking.h"

#include <string.h>

static int load_lines(const void *self, const stoker_encoded *in, stoker_error *error)
{
    (void)self;
    (void)error;
    enum { LINE_BYTES = 64 };
    uint64_t all = 0;
    for (size_t at = 0; at + sizeof(all) <= in->size; at += LINE_BYTES) {
        uint64_t word;
        memcpy(&word, in->bytes + at, sizeof(word));
        all ^= word;
    }
    __asm__ volatile("" : : "r"(all)); /* the compiler must assume that it is used */
    return STOKER_OK;
}

static int describe(const void *self, stoker_dataset_info *out)
{
    const struct bench_checking *set = self;
    *out = *stoker_dataset_get_info(set->of);
    return STOKER_OK;
}

static const stoker_codec *stand_in(const struct bench_checking *set, const stoker_codec *codec)
{
    for (uint32_t i = 0; i < set->codec_count; i++)
        if (set->known[i] == codec)
            return &set->codecs[i];
    return NULL;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                  stoker_error *error)
{
    const struct bench_checking *set = self;
    for (uint32_t i = 0; i < count; i++) {
        const int rc = stoker_dataset_locate(set->of, ids[i], &out[i], error);
        if (rc != STOKER_OK)
            return rc;
        out[i].codec = stand_in(set, out[i].codec);
    }
    return STOKER_OK;
}

static int file_of(const void *self, uint32_t number, stoker_file *out)
{
    const struct bench_checking *set = self;
    (void)number;
    *out = (stoker_file){ .path = set->file->path, .fd = set->file->fd, .size = set->file->size };
    return STOKER_OK;
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "checking",
                                        .describe = describe,
                                        .locate = locate,
                                        .file = file_of };

static bool learn(struct bench_checking *set, const stoker_codec *codec)
{
    if (codec == NULL || stand_in(set, codec) != NULL)
        return true;
    if (set->codec_count == BENCH_CODECS_MAX)
        return false;
    set->codecs[set->codec_count] = *codec;
    if (set->check != BENCH_CHECK_SUM)
        set->codecs[set->codec_count].verify = set->check == BENCH_CHECK_LOADS ? load_lines : NULL;
    set->known[set->codec_count++] = codec;
    return true;
}

int bench_checking_open(stoker_dataset **out, struct bench_checking *set, const stoker_dataset *of,
                        const struct bench_source_file *file, enum bench_check check)
{
    const stoker_dataset_info *info = stoker_dataset_get_info(of);
    *set = (struct bench_checking){ .of = of, .file = file, .check = check };
    if (info->file_count != 1 || info->has_paths || file->fd < 0)
        return STOKER_ENOTSUP;
    for (uint64_t id = 0; id < info->count; id++) {
        stoker_part sample;
        const int rc = stoker_dataset_locate(of, id, &sample, NULL);
        if (rc != STOKER_OK)
            return rc;
        if (!learn(set, sample.codec))
            return STOKER_ENOTSUP;
    }
    return stoker_dataset_create(out, &ops, set, NULL);
}
