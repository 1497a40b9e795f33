/* list.c - "0,1,4-8,auto": the values of one swept option. */
#include "bench/arguments.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int complain(char message[BENCH_MESSAGE_MAX], const char *what, const char *text,
                    int32_t min, int32_t max)
{
    snprintf(message, BENCH_MESSAGE_MAX,
             "%s in the list '%.100s' of whole numbers from %" PRId32 " to %" PRId32, what, text,
             min, max);
    return STOKER_EINVAL;
}

static bool parse_number(const char **at, int32_t min, int32_t max, int32_t *out)
{
    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    char *end = NULL;
    long value = strtol(*at, &end, 10);
    if (errno != 0 || value < min || value > max)
        return false;
    *at = end;
    *out = (int32_t)value;
    return true;
}

/* One part, from *at to the next comma: "auto", "4" or "4-8". */
static const char *parse_part(struct bench_list *list, const char **at, int32_t min, int32_t max,
                              bool auto_allowed)
{
    int32_t first = -1;
    int32_t last = -1;
    if (auto_allowed && strncmp(*at, "auto", 4) == 0) {
        *at += 4;
    } else {
        if (!parse_number(at, min, max, &first))
            return "a value that is no number or out of range";
        last = first;
        if (**at == '-') {
            (*at)++;
            if (!parse_number(at, min, max, &last))
                return "a range whose end is no number or out of range";
        }
        if (last < first)
            return "a range that runs backwards";
    }
    if (last - first >= BENCH_LIST_MAX - (int32_t)list->count)
        return "more than 512 values";
    for (int32_t value = first; value <= last; value++)
        list->values[list->count++] = value;
    return NULL;
}

int bench_list_parse(struct bench_list *out, const char *text, int32_t min, int32_t max,
                     bool auto_allowed, char message[BENCH_MESSAGE_MAX])
{
    struct bench_list list = { .count = 0 };
    const char *at = text;
    for (;;) {
        const char *wrong = parse_part(&list, &at, min, max, auto_allowed);
        if (wrong != NULL)
            return complain(message, wrong, text, min, max);
        if (*at == '\0')
            break;
        if (*at != ',')
            return complain(message, "something other than a comma between values", text, min, max);
        at++;
    }
    *out = list;
    return STOKER_OK;
}

void bench_list_default_workers(struct bench_list *out, uint32_t cpus)
{
    out->count = 0;
    out->values[out->count++] = 0;
    for (uint32_t workers = 1; workers < cpus && workers < STOKER_WORKERS_MAX; workers *= 2)
        out->values[out->count++] = (int32_t)workers;
    uint32_t all = cpus < STOKER_WORKERS_MAX ? cpus : STOKER_WORKERS_MAX;
    out->values[out->count++] = (int32_t)all;
    out->values[out->count++] = STOKER_WORKERS_AUTO;
}
