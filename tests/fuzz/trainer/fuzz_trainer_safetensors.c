/* fuzz_trainer_safetensors.c - any bytes as a safetensors file: read whole, or refused with a
 * place.
 *
 * What was read is written again and must read the same. */
#include <string.h>

#include "fuzz/dataset_input.h"
#include "trainer/files/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_same(const struct stk_tensor_set *a, const struct stk_tensor_set *b)
{
    STK_FUZZ_CHECK(a->tensor_count == b->tensor_count);
    for (uint32_t i = 0; i < a->tensor_count; i++) {
        const struct stk_named_tensor *x = &a->tensors[i];
        const struct stk_named_tensor *y = stk_tensor_find(b, x->name);
        STK_FUZZ_CHECK(y != NULL);
        STK_FUZZ_CHECK(x->dtype == y->dtype && x->rank == y->rank && x->bytes == y->bytes);
        STK_FUZZ_CHECK(memcmp(x->shape, y->shape, sizeof(x->shape)) == 0);
        STK_FUZZ_CHECK(x->bytes == 0 || memcmp(x->data, y->data, x->bytes) == 0);
    }
}

/* Notes of ours are made again by the writer, so a set with such is not written. */
static void write_again(const struct stk_tensor_set *set)
{
    for (uint32_t i = 0; i < set->note_count; i++)
        if (strncmp(set->notes[i].key, "stoker.", 7) == 0)
            return;
    struct stk_fuzz_file file = stk_fuzz_file((const uint8_t *)"", 0);
    struct stk_safetensors again;
    stoker_error error = { 0 };
    STK_FUZZ_CHECK(stk_safetensors_write(file.fd, file.path, set, &error) == STOKER_OK);
    STK_FUZZ_CHECK(stk_safetensors_open(&again, file.path, &error) == STOKER_OK);
    check_same(set, &again.set);
    stk_safetensors_close(&again);
    close(file.fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct stk_safetensors file;
    stoker_error error = { 0 };
    const int rc = stk_safetensors_parse(&file, bytes, size, "fuzz", &error);
    STK_FUZZ_CHECK(rc == STOKER_OK || (error.code == rc && error.message[0] != '\0'));
    /* Pages, and at most 96 bytes of list for 40 of header, and 16 for each colon. */
    STK_FUZZ_CHECK(stk_fault_live_bytes() <= (int64_t)(size * 20 + 16384));
    if (rc == STOKER_OK)
        write_again(&file.set);
    stk_safetensors_close(&file);
    STK_FUZZ_CHECK(stk_fault_live_bytes() == 0);
    return 0;
}
