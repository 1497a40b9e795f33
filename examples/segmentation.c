/* segmentation.c - images with masks: files of the same names in two folders.
 *
 * usage: segmentation IMAGES MASKS     e.g. segmentation photos labels
 */
#include <stdio.h>
#include <stdlib.h>
#include <stoker/stoker.h>

int main(int argc, char **argv)
{
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_error error;
    char spec[4096];
    if (argc != 3)
        return EXIT_FAILURE;
    /* A field whose name begins with "mask" holds class numbers, which are never interpolated. */
    snprintf(spec, sizeof(spec), "folder:image=%s,mask=%s", argv[1], argv[2]);

    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    options.epochs = 1;
    options.shuffle = true;
    options.dtype = STOKER_DTYPE_FLOAT32; /* the images; masks stay as they are stored */
    options.layout = STOKER_LAYOUT_NCHW;
    options.transform.flip = true; /* the mask gets the crop and the flip of its image */
    options.transform.random_crop = (stoker_size){ 6, 8 };
    int rc = stoker_dataset_open(&dataset, spec, NULL, &error);
    if (rc == STOKER_OK)
        rc = stoker_loader_create(&loader, dataset, &options, &error);

    uint64_t pairs = 0, of_class[256] = { 0 };
    while (rc == STOKER_OK && (rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK) {
        const stoker_tensor *masks = &stoker_batch_field(&batch, "mask")->values;
        const uint64_t pixels = masks->shape[0] * masks->shape[1] * masks->shape[2];
        for (uint64_t i = 0; i < pixels; i++)
            of_class[((const uint8_t *)masks->data)[i]]++;
        pairs += batch.count;
        stoker_batch_release(&batch);
    }
    if (rc < 0) {
        const stoker_error *later = stoker_loader_error(loader); /* NULL: opening failed */
        fprintf(stderr, "segmentation: %s\n", later != NULL ? later->message : error.message);
    }
    printf("%llu pairs, pixels of each class:", (unsigned long long)pairs);
    for (int i = 0; i < 256; i++)
        if (of_class[i] > 0)
            printf(" %llu", (unsigned long long)of_class[i]);
    printf("\n");
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    return rc < 0;
}
