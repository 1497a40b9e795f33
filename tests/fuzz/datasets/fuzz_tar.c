/* fuzz_tar.c - any bytes as a tar archive, whole or cut. Images in it may be bad, but must say
 * so. */
#include "fuzz/dataset_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void open_with(const struct stk_fuzz_file *file, const char *parameters,
                      void (*look_at)(const stoker_dataset *dataset))
{
    char spec[200];
    (void)snprintf(spec, sizeof(spec), "tar:%s%s", file->path, parameters);
    stk_fuzz_open(spec, look_at);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct stk_fuzz_file file = stk_fuzz_file(bytes, size);
    open_with(&file, "", stk_fuzz_rows);
    open_with(&file, "?truncated=keep&height=4&width=4&channels=3&max_entries=1000", stk_fuzz_rows);
    open_with(&file, "?fields=txt,x.npy,png;jpg,mask.png,cls,__key__&truncated=keep",
              stk_fuzz_fields);
    open_with(&file, "?fields=npy,__key__", stk_fuzz_fields);
    close(file.fd);
    return 0;
}
