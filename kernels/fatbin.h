/* fatbin.h - defines a function that returns the fatbin which nvcc wrote, or NULL in a build
 * without nvcc; and one that returns what it was compiled for. */
#ifndef STK_KERNELS_FATBIN_H
#define STK_KERNELS_FATBIN_H

/* The bytes of the file `path` become part of the library, followed by their number. */
#define STK_EMBED_FATBIN(function, path)                                                           \
    __asm__(".pushsection .rodata\n"                                                               \
            ".hidden " #function "_begin\n"                                                        \
            ".hidden " #function "_size\n"                                                         \
            ".globl " #function "_begin\n"                                                         \
            ".globl " #function "_size\n"                                                          \
            ".balign 64\n" #function "_begin:\n"                                                   \
            ".incbin \"" path "\"\n"                                                               \
            "0:\n"                                                                                 \
            ".balign 8\n" #function "_size:\n"                                                     \
            ".8byte 0b - " #function "_begin\n"                                                    \
            ".popsection\n");                                                                      \
    extern const unsigned char function##_begin[];                                                 \
    extern const uint64_t function##_size;                                                         \
    const void *function(size_t *bytes)                                                            \
    {                                                                                              \
        *bytes = function##_size;                                                                  \
        return function##_begin;                                                                   \
    }

#define STK_NO_FATBIN(function)                                                                    \
    const void *function(size_t *bytes)                                                            \
    {                                                                                              \
        *bytes = 0;                                                                                \
        return NULL;                                                                               \
    }

/* What it was compiled for; cmake/StokerNvcc.cmake defines both for the two fatbin.c. */
#ifndef STK_FATBIN_TARGETS
#define STK_FATBIN_TARGETS ""
#define STK_FATBIN_TOOLKIT 0
#endif

#define STK_DESCRIBE_FATBIN(function)                                                              \
    struct stk_fatbin_targets function(void)                                                       \
    {                                                                                              \
        return (struct stk_fatbin_targets){ STK_FATBIN_TOOLKIT, STK_FATBIN_TARGETS };              \
    }

#endif
