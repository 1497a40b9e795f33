/* own_reader.c - storage of your own: a reader that decrypts, here by XOR, what pread() reads.
 *
 * usage: own_reader FILE     of tokens, uint16, whose bytes were all changed by XOR 0x5A
 */
#include <stdio.h>
#include <stoker/stoker.h>

/* Rings, queues and retries stay those of pread; only finished reads pass through here. */
static int reap(void *ring, stoker_read **done, uint32_t max, int64_t wait_ns)
{
    const int count = stoker_reader_pread()->reap(ring, done, max, wait_ns);
    for (int i = 0; i < count; i++) /* a read may be short, and a result < 0 is -errno */
        for (int64_t byte = 0; byte < done[i]->result; byte++)
            ((uint8_t *)done[i]->buffer)[byte] ^= 0x5A;
    return count;
}

int main(int argc, char **argv)
{
    const stoker_reader *pread = stoker_reader_pread();
    const stoker_reader decrypting = { .struct_size = sizeof(decrypting),
                                       .name = "decrypting",
                                       .self = pread->self,
                                       .open = pread->open,
                                       .submit = pread->submit,
                                       .reap = reap,
                                       .close = pread->close };
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    options.reader = &decrypting; /* it delivers every byte of every file */
    options.epochs = 1;
    options.num_workers = 2; /* each opens a ring of its own */
    char spec[4096];
    snprintf(spec, sizeof(spec), "tokens:%s?layout=raw&stored=uint16&length=50", argv[argc - 1]);
    int rc = stoker_dataset_open(&dataset, spec, NULL, NULL);
    if (rc == STOKER_OK)
        rc = stoker_loader_create(&loader, dataset, &options, NULL);
    unsigned long sum = 0;
    while (rc == STOKER_OK && (rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK) {
        for (uint32_t i = 0; i < batch.count * 50; i++)
            sum += ((const uint16_t *)batch.fields[0].values.data)[i];
        stoker_batch_release(&batch);
    }
    printf("sum %lu: %s\n", sum, stoker_strerror(rc));
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    return rc < 0;
}
