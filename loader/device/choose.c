/* choose.c - opens the device that the options or the environment ask for. */
#include "loader/device/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/environment.h"
#include "loader/base/error.h"

/* Parse "cpu", "cuda" or "cuda:N"; false for anything else. */
static bool parse_device(const char *name, stoker_device *kind, uint32_t *index)
{
    *index = 0;
    *kind = STOKER_DEVICE_CPU;
    if (strcmp(name, "cpu") == 0)
        return true;
    *kind = STOKER_DEVICE_CUDA;
    if (strcmp(name, "cuda") == 0)
        return true;
    if (strncmp(name, "cuda:", 5) != 0 || name[5] < '0' || name[5] > '9')
        return false;
    char *end;
    const unsigned long number = strtoul(name + 5, &end, 10);
    *index = (uint32_t)number;
    return *end == '\0' && number < STOKER_DEVICE_INDEX_MAX;
}

static int open_kind(struct stk_device **out, stoker_device kind, uint32_t index, char *why)
{
    const struct stk_device_ops *ops = kind == STOKER_DEVICE_CUDA        ? &stk_device_cuda
                                       : kind == STOKER_DEVICE_CUDA_HOST ? &stk_device_cuda_host
                                                                         : &stk_device_cpu;
    return ops->open(out, index, why);
}

/* Open the first GPU, else the CPU; `why` then says why no GPU is used. */
static int open_first(struct stk_device **out, char why[STK_DEVICE_WHY_BYTES])
{
    char no_gpu[STK_DEVICE_WHY_BYTES];
    int rc = open_kind(out, STOKER_DEVICE_CUDA, 0, no_gpu);
    if (rc == 0)
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "the first GPU");
    if (rc != STOKER_EDEVICE)
        return rc;
    rc = open_kind(out, STOKER_DEVICE_CPU, 0, why);
    (void)snprintf(why, STK_DEVICE_WHY_BYTES, "no GPU: %.*s", STK_DEVICE_WHY_BYTES - 9, no_gpu);
    return rc;
}

int stk_device_choose(struct stk_device **out, stoker_device kind, uint32_t index,
                      char why[STK_DEVICE_WHY_BYTES], stoker_error *error)
{
    const char *named = kind == STOKER_DEVICE_AUTO ? stk_environment("STOKER_DEVICE") : NULL;
    const char *chosen_by = "asked for";
    if (named != NULL) {
        if (!parse_device(named, &kind, &index))
            return stk_refuse_option(error, STOKER_EINVAL,
                                     "STOKER_DEVICE is \"%.64s\": use cpu, cuda or cuda:N", named);
        chosen_by = "named by STOKER_DEVICE";
    }
    if (kind == STOKER_DEVICE_AUTO)
        return open_first(out, why);
    int rc = open_kind(out, kind, index, why);
    if (rc == 0)
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "%s", chosen_by);
    if (rc == STOKER_EDEVICE)
        (void)stk_refuse_option(error, rc, "device cuda:%u, %s: %s", (unsigned)index, chosen_by,
                                why);
    return rc;
}
