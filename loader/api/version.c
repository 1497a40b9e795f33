/* version.c - the version this library was built as, and what it was built with. */
#include <stddef.h>
#include <stoker/version.h>

#include "kernels/transform/gpu/launch.h"
#include "loader/codec/images/image_decoder.h"
#include "loader/codec/lz4.h"
#include "loader/codec/zstd.h"

#ifdef STOKER_HAVE_URING
#define HAS_URING true
#else
#define HAS_URING false
#endif
#ifdef STOKER_HAVE_DEFLATE
#define HAS_DEFLATE true
#else
#define HAS_DEFLATE false
#endif
#ifdef STOKER_HAVE_CUDA
#define HAS_CUDA true
#else
#define HAS_CUDA false
#endif

const char *stoker_version(void)
{
    return STOKER_VERSION_STRING;
}

uint32_t stoker_version_number(void)
{
    return STOKER_VERSION_NUMBER;
}

const char *stoker_feature(uint32_t number, bool *present)
{
    size_t bytes;
    const struct {
        const char *name;
        bool present;
    } features[] = {
        { "gzip", HAS_DEFLATE },        { "lz4", stk_lz4_present() },
        { "zstd", stk_zstd_present() }, { "io_uring", HAS_URING },
        { "cuda", HAS_CUDA },           { "cuda_kernels", stk_kernels_fatbin(&bytes) != NULL },
    };
    for (uint32_t codec = 0; codec < STK_SHARD_CODECS; codec++)
        if (stk_image_kinds[codec] != NULL && number-- == 0) {
            if (present != NULL)
                *present = stk_image_kinds[codec]->present;
            return stk_kinds[codec].name;
        }
    if (number >= sizeof(features) / sizeof(features[0]))
        return NULL;
    if (present != NULL)
        *present = features[number].present;
    return features[number].name;
}
