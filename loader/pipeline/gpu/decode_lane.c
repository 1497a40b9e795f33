/* decode_lane.c - see decode_lane.h. */
#include "loader/pipeline/gpu/decode_lane.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

enum { ALIGN = 256 };

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* ---- open and close ---- */

static size_t table_at(const struct stk_device_decode *decode)
{
    return aligned(decode->pixel_bytes) + aligned(decode->scratch_bytes);
}

static int make_decode_lane(struct stk_decode_lane *lane, char why[STK_DEVICE_WHY_BYTES])
{
    struct stk_device_decode *decode = lane->decode;
    struct stk_device *device = decode->device;
    int rc = stk_region_map(&lane->memory, decode->file_bytes > 0 ? decode->file_bytes : 1);
    if (rc == 0)
        rc = stk_lane_open(&lane->lane, device, why);
    if (rc == 0 && decode->pins)
        rc = device->ops->pin(device, &lane->memory, why);
    if (rc < 0)
        return rc;
    lane->pixels = device->ops->alloc(device, table_at(decode) + sizeof(lane->table), why);
    if (lane->pixels == NULL)
        return STOKER_EDEVICE;
    if (stk_lane_enter(lane->lane) < 0)
        return STOKER_EDEVICE;
    rc = stk_batch_decoder_open(&lane->decoder, &decode->library, (int)device->index,
                                stk_lane_stream(lane->lane), why);
    stk_lane_leave(lane->lane);
    return rc;
}

int stk_decode_lane_open(struct stk_decode_lane **out, struct stk_device_decode *decode,
                         char why[STK_DEVICE_WHY_BYTES])
{
    struct stk_decode_lane *lane = stk_calloc(1, sizeof(*lane));
    *out = lane;
    if (lane == NULL)
        return STOKER_ENOMEM;
    lane->decode = decode;
    return make_decode_lane(lane, why);
}

void stk_decode_lane_close(struct stk_decode_lane **at)
{
    struct stk_decode_lane *lane = *at;
    if (lane == NULL)
        return;
    struct stk_device *device = lane->decode->device;
    const bool entered = lane->lane != NULL && stk_lane_enter(lane->lane) == 0;
    stk_batch_decoder_close(&lane->decoder);
    if (entered)
        stk_lane_leave(lane->lane);
    if (lane->pixels != NULL)
        device->ops->free(device, lane->pixels);
    stk_lane_close(&lane->lane);
    if (lane->memory.locked)
        device->ops->unpin(device, &lane->memory);
    stk_region_unmap(&lane->memory);
    stk_free(lane);
    *at = NULL;
}

/* ---- images that wait ---- */

bool stk_decode_lane_is_full(const struct stk_decode_lane *lane)
{
    return lane->count == STK_BATCH_DECODER_IMAGES_MAX ||
           (lane->count > 0 &&
            lane->used_bytes + lane->decode->file_bytes_max > lane->decode->file_bytes);
}

static bool may_decode(const struct stk_decode_lane *lane, const stoker_image_header *header,
                       size_t size)
{
    const struct stk_device_decode *decode = lane->decode;
    const stoker_size one = decode->one_size;
    return header->format == STOKER_IMAGE_FORMAT_JPEG && header->channels == decode->channels &&
           header->height <= decode->side_max && header->width <= decode->side_max &&
           (uint64_t)header->height * header->width * header->channels <= decode->pixel_bytes &&
           (decode->any_size || (header->height == one.height && header->width == one.width)) &&
           size <= decode->file_bytes - lane->used_bytes;
}

bool stk_decode_lane_add(struct stk_decode_lane *lane, const struct stk_part_ref *ref,
                         const stoker_image_header *header)
{
    if (!may_decode(lane, header, ref->size))
        return false;
    assert(lane->count < STK_BATCH_DECODER_IMAGES_MAX);
    struct stk_lane_image *taken = &lane->images[lane->count];
    *taken =
        (struct stk_lane_image){ .ref = *ref, .height = header->height, .width = header->width };
    uint8_t *to = (uint8_t *)lane->memory.base + lane->used_bytes;
    memcpy(to, ref->bytes, ref->size);
    taken->ref.bytes = to;
    lane->used_bytes += ref->size;
    lane->count++;
    return true;
}

void stk_decode_lane_clear(struct stk_decode_lane *lane)
{
    lane->count = 0;
    lane->used_bytes = 0;
}

/* ---- decoding ---- */

static size_t bytes_of(const struct stk_decode_lane *lane, const struct stk_lane_image *image)
{
    return aligned((size_t)image->height * image->width * lane->decode->channels);
}

/* Choose how many images, from `first` on, are decoded and transformed at once, and prepare their
 * launches. They belong to one epoch, and their pixels and the kernels' scratch have to fit. */
static uint32_t choose_images(struct stk_decode_lane *lane, uint32_t first)
{
    const struct stk_device_decode *decode = lane->decode;
    const uint64_t epoch = lane->images[first].ref.span->epoch;
    size_t at = 0;
    uint32_t count = 0, height = 0, width = 0;
    while (first + count < lane->count) {
        const struct stk_lane_image *image = &lane->images[first + count];
        if (image->ref.span->epoch != epoch ||
            (count > 0 && at + bytes_of(lane, image) > decode->pixel_bytes))
            break;
        lane->files[count++] = (struct stk_batch_file){ .bytes = image->ref.bytes,
                                                        .size = image->ref.size,
                                                        .pixels = lane->pixels + at,
                                                        .height = image->height,
                                                        .width = image->width,
                                                        .channels = decode->channels };
        at += bytes_of(lane, image);
        height = image->height > height ? image->height : height;
        width = image->width > width ? image->width : width;
    }
    stk_launch_steps_init(&lane->steps, &decode->plan->transform, height, width, count);
    while (lane->steps.scratch_bytes > decode->scratch_bytes) {
        count = (count + 1) / 2; /* ends: there is room for one */
        stk_launch_steps_init(&lane->steps, &decode->plan->transform, height, width, count);
    }
    stk_launch_steps_place(&lane->steps, lane->pixels + aligned(decode->pixel_bytes), count);
    return count;
}

/* List the images that were decoded; returns their number. */
static uint32_t fill_table(struct stk_decode_lane *lane, uint32_t first, uint32_t count)
{
    const struct stk_device_decode *decode = lane->decode;
    /* Images of one size may be transformed as one long line: the batch says which size counts. */
    const struct stk_launch_batch *batch = &lane->steps.first.batch;
    struct stk_lane_table *table = &lane->table;
    uint32_t listed = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct stk_batch_file *file = &lane->files[i];
        const struct stk_part_ref *ref = &lane->images[first + i].ref;
        if (!file->decoded)
            continue;
        table->ids[listed] = stk_ref_id(ref);
        table->places[listed] =
            stk_device_decode_row(decode, ref->span->batch, ref->span->first_row + ref->row);
        table->sources[listed++] = (struct stk_launch_source){
            .at = (uint64_t)((const uint8_t *)file->pixels - lane->pixels),
            .height = decode->any_size ? file->height : batch->height,
            .width = decode->any_size ? file->width : batch->width,
        };
    }
    return listed;
}

/* Queue the kernels that make the rows of the images that were decoded. */
static int transform(struct stk_decode_lane *lane, uint32_t first, uint32_t count)
{
    const struct stk_device_decode *decode = lane->decode;
    struct stk_launch_steps *steps = &lane->steps;
    uint8_t *table = lane->pixels + table_at(decode);
    const struct stk_launch_rows rows = {
        .images = lane->pixels,
        .ids = table + offsetof(struct stk_lane_table, ids),
        .places = table + offsetof(struct stk_lane_table, places),
        .sources = table + offsetof(struct stk_lane_table, sources),
        .out = decode->rows,
        .count = fill_table(lane, first, count),
        .epoch = lane->images[first].ref.span->epoch,
    };
    if (rows.count == 0)
        return 0;
    int rc = stk_lane_copy(lane->lane, table, &lane->table, sizeof(lane->table));
    stk_launch_steps_take(steps, &rows);
    for (uint32_t k = 0; k < steps->count && rc == 0; k++) {
        const struct stk_launch_grid grid = steps->kernels[k]->grid(steps->arguments[k]);
        const struct stk_device_launch launch = {
            .kernel = stk_device_decode_kernel(decode, steps->kernels[k]),
            .grid_x = grid.x,
            .grid_y = grid.y,
            .block_threads = STK_LAUNCH_THREADS,
            .arguments = steps->arguments[k],
        };
        assert(launch.kernel != NULL);
        rc = stk_lane_launch(lane->lane, &launch);
    }
    return rc;
}

/* Note where the rows are, and count. */
static void take_decoded_rows(struct stk_decode_lane *lane, uint32_t first, uint32_t count)
{
    struct stk_device_decode *decode = lane->decode;
    for (uint32_t i = first; i < first + count; i++) {
        struct stk_lane_image *image = &lane->images[i];
        const uint32_t row = image->ref.span->first_row + image->ref.row;
        image->decoded = lane->files[i - first].decoded;
        if (!image->decoded)
            continue;
        stk_device_decode_places(decode, image->ref.span->batch)[row] = (int32_t)row;
        atomic_fetch_add_explicit(&decode->images, 1U, memory_order_relaxed);
        atomic_fetch_add_explicit(&decode->file_bytes_sent, image->ref.size, memory_order_relaxed);
    }
}

/* Decode and transform images that have room at once. Whatever fails, nothing is in progress
 * afterwards: nvJPEG's hardware engine ignores the stream, and would write the next images over
 * pixels that queued kernels still read (torchcodec #1634). */
static int run_some(struct stk_decode_lane *lane, uint32_t first, uint32_t count)
{
    struct stk_device *device = lane->decode->device;
    char why[STK_DEVICE_WHY_BYTES];
    int rc = stk_batch_decoder_run(&lane->decoder, lane->files, count, why);
    if (rc < 0)
        (void)stk_device_fail(device, "cuda:%u: %s", (unsigned)device->index, why);
    if (rc == 0)
        rc = transform(lane, first, count);
    const int waited = stk_lane_wait(lane->lane);
    rc = rc == 0 ? waited : rc;
    if (rc == 0)
        take_decoded_rows(lane, first, count);
    return rc;
}

int stk_decode_lane_run(struct stk_decode_lane *lane)
{
    const struct stk_device_decode *decode = lane->decode;
    if (stk_device_failure(decode->device) != NULL)
        return STOKER_EDEVICE;
    int rc = stk_lane_enter(lane->lane);
    if (rc < 0)
        return rc;
    for (uint32_t first = 0; first < lane->count && rc == 0;) {
        const uint32_t count = choose_images(lane, first);
        rc = run_some(lane, first, count);
        first += count;
    }
    stk_lane_leave(lane->lane);
    return rc;
}
