/* embed.h - a file's bytes in a library: STK_EMBED(name, "path") defines NAME_begin and NAME_end. */
#ifndef STK_KERNELS_EMBED_H
#define STK_KERNELS_EMBED_H

#define STK_EMBED(name, path)                                                                      \
    __asm__(".pushsection .rodata\n"                                                               \
            ".hidden " #name "_begin\n"                                                            \
            ".hidden " #name "_end\n"                                                              \
            ".globl " #name "_begin\n"                                                             \
            ".globl " #name "_end\n"                                                               \
            ".balign 64\n" #name "_begin:\n"                                                       \
            ".incbin \"" path "\"\n" #name "_end:\n"                                               \
            ".popsection\n");                                                                      \
    extern const unsigned char name##_begin[], name##_end[]

#endif
