/* number_file.h - numbers in the small text files of /proc and /sys, read without allocating. */
#ifndef STK_BASE_NUMBER_FILE_H
#define STK_BASE_NUMBER_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Read the first bytes of a file, at most text_bytes - 1, and end them with a 0. Returns their
 * number; 0 if the file cannot be read. */
size_t stk_text_file_read(const char *path, char *text, size_t text_bytes);

/* The number behind `key` at the start of a line; key "" = at the start of the text. UINT64_MAX if
 * there is none, as with "max". */
uint64_t stk_number_in(const char *text, const char *key);

#endif
