/* device_list.h - the devices of --data-parallel, as --device lists them: "cuda:0,cuda:1",
 * "cpu,cpu". "cuda" is the first GPU, "cuda:0": it does not stand for the GPU of a rank here. */
#ifndef STK_PROGRAMS_DEVICE_LIST_H
#define STK_PROGRAMS_DEVICE_LIST_H

#include <stdint.h>

#include "loader/cli/options.h"

enum { DEVICES_MAX = 64, DEVICE_BYTES = 32 };

struct device_list {
    uint32_t count;
    char name[DEVICES_MAX][DEVICE_BYTES];
};

/* STOKER_EINVAL: a name is empty or too long, a GPU is named twice, or there are too many; message
 * is one line. */
int device_list_read(struct device_list *out, const char *text, char message[CLI_MESSAGE_BYTES]);

#endif
