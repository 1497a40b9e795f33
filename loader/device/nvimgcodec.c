/* nvimgcodec.c - see nvimgcodec.h. */
#include "loader/device/nvimgcodec.h"

#include <stdio.h>
#include <stoker/error.h>

#include "loader/base/library.h"

static int check_version(struct stk_nvimgcodec *codec, char *why, size_t why_bytes)
{
    struct stk_nvimgcodec_properties properties = { .head = { STK_NVIMGCODEC_PROPERTIES,
                                                              sizeof(properties), NULL } };
    const int status = codec->nvimgcodecGetProperties(&properties);
    codec->version = properties.version;
    if (status != STK_NVIMGCODEC_SUCCESS)
        (void)snprintf(why, why_bytes, "nvimgcodecGetProperties: %s (%d)",
                       stk_nvimgcodec_words(status), status);
    else if (properties.version < STK_NVIMGCODEC_VERSION_MIN ||
             properties.version >= STK_NVIMGCODEC_VERSION_END)
        (void)snprintf(why, why_bytes, "nvImageCodec is version %u.%u.%u, needed is 0.8 or 0.9",
                       properties.version / 1000, properties.version % 1000 / 100,
                       properties.version % 100);
    else
        return 0;
    return STOKER_EDEVICE;
}

int stk_nvimgcodec_load(struct stk_nvimgcodec *out, char *why, size_t why_bytes)
{
#define FUNCTION(name, arguments) { #name, offsetof(struct stk_nvimgcodec, name) },
    static const struct stk_function functions[] = { STK_NVIMGCODEC_FUNCTIONS(FUNCTION) };
#undef FUNCTION
    const char *reason = NULL;
    void *library = stk_library_open("STOKER_NVIMGCODEC", "libnvimgcodec.so.0", &reason);
    if (library == NULL ||
        !stk_library_fill(library, functions, sizeof(functions) / sizeof(functions[0]), out,
                          &reason)) {
        (void)snprintf(why, why_bytes, "nvImageCodec: %s", reason);
        return STOKER_EDEVICE;
    }
    return check_version(out, why, why_bytes);
}

const char *stk_nvimgcodec_words(int status)
{
    static const char *const words[] = {
        "success",
        "not initialized",
        "invalid parameter",
        "bad code stream",
        "unsupported code stream",
        "allocation failed",
        "execution failed",
        "the GPU's architecture does not fit",
        "internal error",
        "not supported by the library",
        "a library that it needs is missing",
        "extension not initialized",
        "extension: invalid parameter",
        "extension: bad code stream",
        "extension: unsupported code stream",
        "extension: allocation failed",
        "extension: the GPU's architecture does not fit",
        "extension: internal error",
        "extension: not supported",
        "extension: incomplete code stream",
        "extension: execution failed",
        "extension: a CUDA call failed",
    };
    const int count = (int)(sizeof(words) / sizeof(words[0]));
    return status >= 0 && status < count ? words[status] : "unknown status";
}
