/* names.h - what files of samples are called, in folders and archives. */
#ifndef PACK_NAMES_H
#define PACK_NAMES_H

#include "datasets/pack/sample.h"

/* "00000042.png": sorted by name they are in the source's order. */
void pack_file_name(char *to, size_t bytes, const struct pack_sample *sample);

/* The number in such a name, whatever folder and ending; false: it is none. */
bool pack_file_number(const char *path, uint64_t *out);

#endif
