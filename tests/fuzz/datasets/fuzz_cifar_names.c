/* fuzz_cifar_names.c - any bytes as the file with the names of CIFAR's classes, beside good
 * records.
 *
 * Whatever the names are, the set opens; each class has a name of one line, or none has a name.
 */
#include "fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { RECORD = 3074 };

static void make_records(void)
{
    static const uint8_t record[RECORD];
    char name[32];
    stk_fuzz_mkdir("10");
    stk_fuzz_mkdir("100");
    for (int i = 1; i <= 5; i++) {
        (void)snprintf(name, sizeof(name), "10/data_batch_%d.bin", i);
        stk_fuzz_write(name, record, RECORD - 1);
    }
    stk_fuzz_write("100/train.bin", record, RECORD);
}

static void look_at(const stoker_dataset *dataset)
{
    const uint32_t count = stoker_dataset_get_info(dataset)->class_count;
    const bool named = stoker_dataset_class_name(dataset, 1, 0) != NULL;
    for (uint32_t i = 0; i < count; i++) {
        const char *name = stoker_dataset_class_name(dataset, 1, i);
        STK_FUZZ_CHECK((name != NULL) == named);
        STK_FUZZ_CHECK(!named || (name[0] != '\0' && strchr(name, '\n') == NULL));
    }
    STK_FUZZ_CHECK(stoker_dataset_class_name(dataset, 1, count) == NULL);
    stk_fuzz_ends(dataset);
}

static void open_set(const char *name, const char *parameters)
{
    char spec[STK_FUZZ_PATH_BYTES + 64];
    char path[STK_FUZZ_PATH_BYTES];
    stoker_dataset *dataset = NULL;
    (void)snprintf(spec, sizeof(spec), "cifar:%s%s", stk_fuzz_path(path, name), parameters);
    STK_FUZZ_CHECK(stoker_dataset_open(&dataset, spec, NULL, NULL) == STOKER_OK);
    look_at(dataset);
    stoker_dataset_close(&dataset);
    STK_FUZZ_CHECK(stk_fault_live_bytes() == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (stk_fuzz_begins())
        make_records();
    stk_fuzz_write("10/batches.meta.txt", bytes, size);
    stk_fuzz_write("100/fine_label_names.txt", bytes, size);
    stk_fuzz_write("100/coarse_label_names.txt", bytes, size);
    open_set("10", "");
    open_set("100", "");
    open_set("100", "?labels=coarse");
    return 0;
}
