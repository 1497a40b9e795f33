/* fuzz_tar_set.c - any bytes as up to four tar archives of one set.
 *
 *   input   1 byte: how many archives (modulo); 2 bytes for each but the last: its blocks of 512;
 *           their bytes
 */
#include "fuzz/dataset_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { ARCHIVES_MAX = 4, BLOCK = 512 };

static void open_with(const struct stk_fuzz_file *files, uint32_t count, const char *parameters)
{
    char spec[256];
    int used = snprintf(spec, sizeof(spec), "tar:/proc/self/fd/{");
    for (uint32_t i = 0; i < count; i++)
        used += snprintf(spec + used, sizeof(spec) - (size_t)used, "%s%d", i == 0 ? "" : ",",
                         files[i].fd);
    (void)snprintf(spec + used, sizeof(spec) - (size_t)used, "}%s", parameters);
    stk_fuzz_open(spec, stk_fuzz_rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct stk_fuzz_file files[ARCHIVES_MAX];
    if (size == 0)
        return 0;
    const uint32_t count = 1 + bytes[0] % ARCHIVES_MAX;
    const size_t head = 1 + 2 * ((size_t)count - 1);
    if (size < head)
        return 0;
    size_t at = head;
    for (uint32_t i = 0; i < count; i++) {
        size_t part = size - at;
        if (i + 1 < count) {
            const size_t asked = BLOCK * (size_t)(bytes[1 + 2 * i] | bytes[2 + 2 * i] << 8);
            part = asked < part ? asked : part;
        }
        files[i] = stk_fuzz_file(bytes + at, part);
        at += part;
    }
    open_with(files, count, "");
    open_with(files, count, "?truncated=keep&height=4&width=4&channels=3&max_entries=1000");
    for (uint32_t i = 0; i < count; i++)
        close(files[i].fd);
    return 0;
}
