/* device_list.c - see device_list.h. */
#include "trainer/programs/device_list.h"

#include <string.h>

#include <stoker/error.h>

static int add(struct device_list *list, const char *name, size_t length, const char *text,
               char *message)
{
    if (length == 0)
        return cli_complain(message, "--device %.80s: a name is empty", text);
    if (length >= DEVICE_BYTES)
        return cli_complain(message, "--device: '%.*s' is no device", (int)length, name);
    if (list->count == DEVICES_MAX)
        return cli_complain(message, "--device: more than %d devices", DEVICES_MAX);
    char *const added = list->name[list->count];
    memcpy(added, name, length);
    added[length] = '\0';
    if (strcmp(added, "cuda") == 0)
        memcpy(added, "cuda:0", sizeof("cuda:0"));
    /* A GPU has memory for one rank, and NCCL wants one rank on each. */
    for (uint32_t d = 0; d < list->count && strncmp(added, "cuda", 4) == 0; d++)
        if (strcmp(list->name[d], added) == 0)
            return cli_complain(message, "--device %.80s: a GPU takes one rank, %s is named twice",
                                text, added);
    list->count++;
    return STOKER_OK;
}

int device_list_read(struct device_list *out, const char *text, char message[CLI_MESSAGE_BYTES])
{
    int rc = STOKER_OK;
    out->count = 0;
    for (const char *name = text; rc == STOKER_OK; name += strcspn(name, ",") + 1) {
        const size_t length = strcspn(name, ",");
        rc = add(out, name, length, text, message);
        if (name[length] == '\0')
            break;
    }
    return rc;
}
