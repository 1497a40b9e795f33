/* names.c - see names.h. */
#include "datasets/pack/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pack_file_name(char *to, size_t bytes, const struct pack_sample *sample)
{
    (void)snprintf(to, bytes, "%010" PRIu64 ".%s", sample->id,
                   stk_kinds[sample->codec].extensions[0]);
}

bool pack_file_number(const char *path, uint64_t *out)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    char *end = NULL;
    if (name[0] < '0' || name[0] > '9')
        return false;
    *out = strtoull(name, &end, 10);
    return *end == '.';
}
