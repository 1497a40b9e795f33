/* names.h - file names of samples in folders and archives. */
#ifndef PACK_NAMES_H
#define PACK_NAMES_H

#include "datasets/pack/sample.h"

/* "00000042.png": sorting by name gives the source's order. */
void pack_file_name(char *to, size_t bytes, const struct pack_sample *sample);

/* Get the number from such a name, ignoring folder and extension; false if it has none. */
bool pack_file_number(const char *path, uint64_t *out);

#endif
