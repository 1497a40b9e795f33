/* window_quality.c - prints how random the window order is, as the table of docs/order.md.
 *
 * 256,000 samples sorted by class, 1,000 classes and as many blocks: each block is one class. Per
 * batch of 256: distinct classes. Per pair of neighbors: the distance of their ids. Both as shares
 * of what the uniform shuffle has. And the most blocks in use at a time: from the first of their
 * samples to the last.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stoker/stoker.h>

enum { BATCH = 256, BLOCKS = 1000, BLOCK_SAMPLES = 256, EPOCHS = 2 };

struct quality {
    double classes;  /* in a batch */
    double distance; /* of neighbors */
    uint32_t blocks; /* in use at a time, at most */
};

static void must(int rc, const stoker_error *error)
{
    if (rc == 0)
        return;
    (void)fprintf(stderr, "window_quality: %s\n", error->message);
    exit(1);
}

static uint32_t count_classes(const stoker_batch *batch)
{
    uint8_t seen[BLOCKS] = { 0 };
    uint32_t classes = 0;
    for (uint32_t i = 0; i < batch->count; i++)
        classes += seen[batch->ids[i] / BLOCK_SAMPLES]++ == 0 ? 1 : 0;
    return classes;
}

static double sum_distances(const stoker_batch *batch)
{
    double sum = 0.0;
    for (uint32_t i = 1; i < batch->count; i++)
        sum += batch->ids[i] > batch->ids[i - 1] ? (double)(batch->ids[i] - batch->ids[i - 1])
                                                 : (double)(batch->ids[i - 1] - batch->ids[i]);
    return sum;
}

/* Count the samples that each block has had in the epoch. */
static uint32_t count_blocks(const stoker_batch *batch, uint32_t most)
{
    static uint32_t had[BLOCKS], in_use;
    if (batch->index == 0)
        memset(had, 0, sizeof(had));
    for (uint32_t i = 0; i < batch->count; i++) {
        uint32_t *block = &had[batch->ids[i] / BLOCK_SAMPLES];
        in_use += (*block)++ == 0 ? 1 : 0;
        most = in_use > most ? in_use : most;
        in_use -= *block == BLOCK_SAMPLES ? 1 : 0;
    }
    return most;
}

static struct quality measure(const stoker_dataset *dataset, const stoker_order *order)
{
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_error error;
    struct quality sum = { 0.0, 0.0, 0 };
    uint64_t batches = 0;
    options.batch_size = BATCH;
    options.epochs = EPOCHS;
    options.num_workers = 0;
    options.shuffle = true;
    options.order = order;
    options.device = STOKER_DEVICE_CPU;
    must(stoker_loader_create(&loader, dataset, &options, &error), &error);
    for (int rc; (rc = stoker_loader_next(loader, &batch, -1)) != STOKER_FINISHED;) {
        if (rc == STOKER_EPOCH_END)
            continue;
        must(rc, stoker_loader_error(loader));
        sum.classes += count_classes(&batch);
        sum.distance += sum_distances(&batch);
        sum.blocks = count_blocks(&batch, sum.blocks);
        batches++;
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
    return (struct quality){ .classes = sum.classes / (double)batches,
                             .distance = sum.distance / (double)(batches * (BATCH - 1)),
                             .blocks = sum.blocks };
}

int main(void)
{
    static const uint64_t windows[] = { 1, 2, 4, 8, 16, 64, BLOCKS };
    static const uint32_t lanes[] = { 1, 8, 64 };
    stoker_dataset *dataset = NULL;
    stoker_error error;
    must(stoker_dataset_open(&dataset, "synth:bytes?count=256000&shape=1", NULL, &error), &error);
    const struct quality uniform = measure(dataset, NULL);
    (void)printf("uniform: %.1f classes, distance %.3f of the samples\n", uniform.classes,
                 uniform.distance / (BLOCKS * BLOCK_SAMPLES));
    for (size_t w = 0; w < sizeof(windows) / sizeof(windows[0]); w++) {
        (void)printf("| %" PRIu64, windows[w]);
        for (size_t l = 0; l < sizeof(lanes) / sizeof(lanes[0]); l++) {
            stoker_order order = STOKER_ORDER_INIT;
            order.kind = STOKER_ORDER_WINDOW;
            order.window_blocks = windows[w];
            order.lanes = lanes[l];
            order.block_samples = BLOCK_SAMPLES;
            const struct quality found = measure(dataset, &order);
            (void)printf(" | %" PRIu32 " | %.2f | %.2f", found.blocks,
                         found.classes / uniform.classes, found.distance / uniform.distance);
        }
        (void)printf(" |\n");
    }
    stoker_dataset_close(&dataset);
    return 0;
}
