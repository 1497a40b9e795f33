/* transfer.c - see transfer.h. */
#include "loader/pipeline/gpu/transfer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/pipeline/report/ledger.h"

enum {
    BUFFER_ALIGN = 256,   /* what cudaMalloc promises for the first one */
    GAP_BYTES_MAX = 65536 /* unused bytes that are copied to save a copy */
};

static size_t align(size_t bytes)
{
    return (bytes + BUFFER_ALIGN - 1) / BUFFER_ALIGN * BUFFER_ALIGN;
}

/* ---- create and destroy ---- */

static int fail_transfer(struct stk_transfer *transfer, const char *why)
{
    return stk_device_fail(transfer->device, "cuda:%u: %s", (unsigned)transfer->device->index, why);
}

static int make_events(struct stk_transfer *transfer)
{
    struct stk_device *device = transfer->device;
    char why[STK_DEVICE_WHY_BYTES];
    for (uint32_t i = 0; i < transfer->event_count; i++)
        if ((transfer->copied[i] = device->ops->event_create(device, why)) == NULL)
            return fail_transfer(transfer, why);
    return 0;
}

static bool make_buffer_events(struct stk_device *device, struct stk_buffer *buffer,
                               char why[STK_DEVICE_WHY_BYTES])
{
    buffer->released = device->ops->event_create(device, why);
    if (buffer->released == NULL)
        return false;
    buffer->ready = device->ops->event_create(device, why);
    if (buffer->ready == NULL)
        device->ops->event_destroy(device, buffer->released);
    return buffer->ready != NULL;
}

/* A buffer without memory on the device. Returns 0, STOKER_ENOMEM, or STOKER_EDEVICE with the
 * reason in `why`. */
static int make_buffer(struct stk_transfer *transfer, struct stk_buffer **out,
                       char why[STK_DEVICE_WHY_BYTES])
{
    struct stk_device *device = transfer->device;
    const struct stk_slots *slots = transfer->slots;
    const size_t varying = slots->fields.lengths / slots->batch_size;
    const size_t numbers = slots->batch_size + varying * (slots->batch_size + STK_OFFSETS_MORE);
    struct stk_buffer *buffer = stk_calloc(1, sizeof(*buffer) + numbers * sizeof(uint64_t));
    if (buffer == NULL)
        return STOKER_ENOMEM;
    if (!make_buffer_events(device, buffer, why)) {
        stk_free(buffer);
        return STOKER_EDEVICE;
    }
    stk_lease_init(&buffer->lease);
    buffer->ids = (uint64_t *)(void *)(buffer + 1);
    buffer->offsets = (int64_t *)(void *)(buffer->ids + slots->batch_size);
    buffer->earlier = transfer->made;
    transfer->made = buffer;
    *out = buffer;
    return 0;
}

/* Where the rows of field 0 lie in a buffer as they are delivered. */
static size_t images_at(const struct stk_transfer *transfer)
{
    return transfer->convert->on ? align(transfer->slots->slot_bytes) : 0;
}

static void use_memory(const struct stk_transfer *transfer, struct stk_buffer *buffer,
                       uint8_t *memory)
{
    buffer->memory = memory;
    buffer->images = memory + images_at(transfer);
}

static int make_buffers(struct stk_transfer *transfer)
{
    struct stk_device *device = transfer->device;
    char why[STK_DEVICE_WHY_BYTES];
    transfer->memory =
        device->ops->alloc(device, transfer->buffer_bytes * transfer->buffer_count, why);
    if (transfer->memory == NULL)
        return fail_transfer(transfer, why);
    for (uint32_t i = 0; i < transfer->buffer_count; i++) {
        struct stk_buffer *buffer = NULL;
        const int rc = make_buffer(transfer, &buffer, why);
        if (rc < 0)
            return rc == STOKER_EDEVICE ? fail_transfer(transfer, why) : rc;
        use_memory(transfer, buffer, transfer->memory + i * transfer->buffer_bytes);
        buffer->turn = i;
        transfer->buffers[i] = buffer;
    }
    return 0;
}

int stk_transfer_init(struct stk_transfer *transfer, struct stk_device *device,
                      struct stk_slots *slots, struct stk_device_convert *convert,
                      struct stk_device_cache *cache, struct stk_device_blend *mixing,
                      const struct stk_device_decode *decode, uint32_t buffer_count)
{
    assert(buffer_count >= 2); /* one is copied to while the other is lent */
    memset(transfer, 0, sizeof(*transfer));
    transfer->device = device;
    transfer->slots = slots;
    transfer->convert = convert;
    transfer->cache = cache;
    transfer->blend = mixing;
    transfer->decode = decode;
    stk_device_blend_place(mixing, 0, images_at(transfer), convert->convert.to_bytes);
    transfer->buffer_bytes = align(slots->slot_bytes);
    if (convert->on)
        transfer->buffer_bytes += align(convert->convert.to_bytes * slots->batch_size);
    transfer->buffer_count = buffer_count;
    transfer->event_count =
        (buffer_count > slots->slot_count ? buffer_count : slots->slot_count) + 1;
    transfer->buffers = stk_calloc(buffer_count, sizeof(transfer->buffers[0]));
    transfer->copied = stk_calloc(transfer->event_count, sizeof(transfer->copied[0]));
    /* Each field and its offsets, ids, flags. */
    transfer->pieces =
        stk_calloc(2 * (size_t)slots->fields.count + 2 + (decode->on ? slots->batch_size : 0),
                   sizeof(transfer->pieces[0]));
    transfer->launches =
        stk_calloc((size_t)STK_CACHE_LAUNCHES_MAX + STK_LAUNCH_STEPS_MAX + mixing->mixed_count,
                   sizeof(transfer->launches[0]));
    int rc = transfer->buffers == NULL || transfer->copied == NULL || transfer->pieces == NULL ||
                     transfer->launches == NULL
                 ? STOKER_ENOMEM
                 : 0;
    if (rc == 0)
        rc = make_events(transfer);
    if (rc == 0)
        rc = make_buffers(transfer);
    if (rc < 0)
        (void)stk_transfer_destroy(transfer, 0);
    return rc;
}

/* Returns true if the consumer's work with every buffer has ended; a failure counts as ended. */
static bool wait_for_consumer(struct stk_transfer *transfer, uint64_t deadline_ns)
{
    struct stk_device *device = transfer->device;
    for (struct stk_buffer *buffer = transfer->made; buffer != NULL; buffer = buffer->earlier)
        if (device->ops->wait(device, buffer->released, deadline_ns, false) == 0)
            return false;
    return true;
}

static void free_buffers(struct stk_transfer *transfer)
{
    struct stk_device *device = transfer->device;
    while (transfer->made != NULL) {
        struct stk_buffer *buffer = transfer->made;
        transfer->made = buffer->earlier;
        device->ops->event_destroy(device, buffer->released);
        device->ops->event_destroy(device, buffer->ready);
        if (buffer->owns_memory)
            device->ops->free(device, buffer->memory);
        stk_free(buffer);
    }
    if (transfer->memory != NULL)
        device->ops->free(device, transfer->memory);
    stk_free(transfer->buffers);
}

bool stk_transfer_destroy(struct stk_transfer *transfer, uint64_t deadline_ns)
{
    struct stk_device *device = transfer->device;
    if (device == NULL)
        return true;
    const bool sent = transfer->slots->head > 0;
    if (sent &&
        (!device->ops->drain(device, deadline_ns) || !wait_for_consumer(transfer, deadline_ns)))
        return false;
    for (uint32_t i = 0; transfer->copied != NULL && i < transfer->event_count; i++)
        if (transfer->copied[i] != NULL)
            device->ops->event_destroy(device, transfer->copied[i]);
    free_buffers(transfer);
    stk_free(transfer->copied);
    stk_free(transfer->pieces);
    stk_free(transfer->launches);
    memset(transfer, 0, sizeof(*transfer));
    return true;
}

/* ---- slots ---- */

int stk_transfer_retire(struct stk_transfer *transfer)
{
    struct stk_device *device = transfer->device;
    while (stk_transfer_copying(transfer)) {
        const int done =
            device->ops->done(device, stk_transfer_copied(transfer, transfer->retired));
        if (done <= 0)
            return done;
        const uint64_t batch = transfer->retired++;
        const uint64_t begin_ns = stk_trace_begin(transfer->trace, STOKER_TRACE_RETIRE, batch);
        (void)stk_slots_release(transfer->slots, batch);
        stk_trace_end(transfer->trace, STOKER_TRACE_RETIRE, begin_ns, batch, 0, 0);
    }
    return 0;
}

/* ---- rows that were made on the GPU ---- */

/* Rows of field 0 from `first` on that were made on the same side, one behind the other. */
static uint32_t run_of(const int32_t *places, uint32_t first, uint32_t rows)
{
    const bool on_host = places[first] == STK_MADE_ON_HOST;
    uint32_t count = 1;
    while (first + count < rows &&
           places[first + count] == (on_host ? STK_MADE_ON_HOST : places[first] + (int32_t)count))
        count++;
    return count;
}

/* Collect the rows of field 0 that lie on the GPU, behind `count` pieces. Returns the number of
 * pieces. */
static uint32_t add_rows_within(struct stk_transfer *transfer, uint32_t count, uint64_t batch,
                                uint8_t *memory, uint32_t rows)
{
    const struct stk_device_decode *decode = transfer->decode;
    const struct stk_slot_field *field = &transfer->slots->fields.each[0];
    const int32_t *places = stk_device_decode_places(decode, batch);
    for (uint32_t row = 0, run; row < rows; row += run) {
        run = run_of(places, row, rows);
        if (places[row] != STK_MADE_ON_HOST)
            transfer->pieces[count++] = (struct stk_send_piece){
                .to = memory + field->at + row * field->stride_bytes,
                .from = decode->rows + stk_device_decode_row(decode, batch, (uint32_t)places[row]) *
                                           decode->row_bytes,
                .bytes = run * field->stride_bytes,
                .within = true,
            };
    }
    return count;
}

/* ---- copies ---- */

/* Returns true if the GPU holds all rows: what it keeps of them needs no copy. */
static bool holds_rows(const struct stk_transfer *transfer, const struct stk_slot *slot,
                       uint32_t rows)
{
    return transfer->cache->on && memchr(slot->fresh, 1, rows) == NULL;
}

/* Add bytes at `at` of the slot to the pieces, or to the last one if the gap is small. */
static void add_piece(struct stk_transfer *transfer, uint32_t *count, const struct stk_slot *slot,
                      uint8_t *memory, size_t at, size_t bytes)
{
    struct stk_send_piece *last = *count > 0 ? &transfer->pieces[*count - 1] : NULL;
    const uint8_t *from = slot->images + at;
    if (bytes == 0)
        return;
    if (last != NULL) {
        const size_t end = (size_t)(from - (const uint8_t *)last->from);
        if (end - last->bytes <= GAP_BYTES_MAX) {
            last->bytes = end + bytes;
            return;
        }
    }
    transfer->pieces[(*count)++] =
        (struct stk_send_piece){ .to = memory + at, .from = from, .bytes = bytes };
}

/* Add the rows of field 0 that were made on the host. */
static void add_host_rows(struct stk_transfer *transfer, uint32_t *count,
                          const struct stk_slot *slot, uint8_t *memory, uint32_t rows)
{
    const struct stk_slot_field *field = &transfer->slots->fields.each[0];
    const int32_t *places = stk_device_decode_places(transfer->decode, transfer->slots->head);
    for (uint32_t row = 0, run; row < rows; row += run) {
        run = run_of(places, row, rows);
        if (places[row] == STK_MADE_ON_HOST)
            add_piece(transfer, count, slot, memory, field->at + row * field->stride_bytes,
                      run * field->stride_bytes);
    }
}

/* Collects what is used of a slot, in the order of its memory. Returns the number of pieces. */
static uint32_t pieces_of(struct stk_transfer *transfer, const struct stk_slot *slot,
                          uint8_t *memory, uint32_t rows, bool held)
{
    const struct stk_slots *slots = transfer->slots;
    uint32_t count = 0;
    for (uint32_t i = 0; i < slots->fields.count; i++) {
        const struct stk_slot_field *field = &slots->fields.each[i];
        if (held && stk_device_cache_keeps(transfer->cache, i))
            continue;
        if (i == 0 && transfer->decode->on) {
            add_host_rows(transfer, &count, slot, memory, rows);
            continue;
        }
        const int64_t *offsets = (const void *)(slot->images + field->offsets_at);
        add_piece(transfer, &count, slot, memory, field->at,
                  field->entry_bytes == 0 ? rows * field->stride_bytes
                                          : (size_t)offsets[slots->batch_size + 2]);
    }
    for (uint32_t i = 0; i < slots->fields.count && rows > 0; i++)
        if (slots->fields.each[i].entry_bytes > 0)
            add_piece(transfer, &count, slot, memory, slots->fields.each[i].offsets_at,
                      (rows + (size_t)1) * sizeof(int64_t));
    add_piece(transfer, &count, slot, memory, slots->ids_at, rows * sizeof(slot->ids[0]));
    if (slots->fresh_at > 0)
        add_piece(transfer, &count, slot, memory, slots->fresh_at, rows);
    /* Behind the others, which may have copied a gap over their places. */
    return transfer->decode->on && !(held && stk_device_cache_keeps(transfer->cache, 0))
               ? add_rows_within(transfer, count, slots->head, memory, rows)
               : count;
}

static size_t bytes_of(const struct stk_send *send)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < send->piece_count; i++)
        bytes += send->pieces[i].within ? 0 : send->pieces[i].bytes;
    return bytes;
}

/* Collects the kernels that follow a copy, in order. Returns their number. */
static uint32_t kernels_behind(const struct stk_transfer *transfer, const struct stk_slot *slot,
                               const struct stk_buffer *buffer, const struct stk_batch_place *place,
                               bool fresh)
{
    struct stk_device_launch *launches = transfer->launches;
    struct stk_device_convert *convert = transfer->convert;
    struct stk_device_cache *cache = transfer->cache;
    uint8_t *memory = buffer->memory;
    const uint8_t *ids = memory + ((uint8_t *)slot->ids - slot->images);
    uint32_t count = 0;
    if (buffer->rows == 0)
        return 0;
    if (cache->on) {
        const struct stk_kept_batch batch = { .memory = memory,
                                              .fields = &transfer->slots->fields,
                                              .ids = ids,
                                              .fresh = memory + (slot->fresh - slot->images),
                                              .count = buffer->rows,
                                              .any_fresh = fresh };
        count = stk_device_cache_launches(cache, &batch, launches);
    }
    if (!convert->on)
        return count;
    const struct stk_launch_rows stored = {
        .images = cache->images ? cache->fields[0].rows : memory,
        .gather = cache->images,
        .ids = ids,
        .out = buffer->images,
        .count = buffer->rows,
        .epoch = place->epoch,
    };
    stk_device_convert_rows(convert, &stored);
    memcpy(launches + count, convert->launches, convert->steps.count * sizeof(launches[0]));
    count += convert->steps.count;
    return count +
           stk_device_blend_launch(transfer->blend, memory, place, buffer->rows, launches + count);
}

/* The host's copy of a batch's ids and offsets: its slot is refilled while the batch is lent. */
static void keep_numbers(const struct stk_slots *slots, const struct stk_slot *slot, uint32_t rows,
                         struct stk_buffer *buffer)
{
    const size_t numbers = slots->batch_size + STK_OFFSETS_MORE;
    int64_t *offsets = buffer->offsets;
    memcpy(buffer->ids, slot->ids, rows * sizeof(buffer->ids[0]));
    for (uint32_t i = 0; i < slots->fields.count; i++) {
        if (slots->fields.each[i].entry_bytes == 0)
            continue;
        memcpy(offsets, slot->images + slots->fields.each[i].offsets_at,
               numbers * sizeof(offsets[0]));
        offsets += numbers;
    }
}

int stk_transfer_send(struct stk_transfer *transfer, uint32_t rows,
                      const struct stk_batch_place *place)
{
    struct stk_slots *slots = transfer->slots;
    struct stk_device *device = transfer->device;
    const uint64_t batch = slots->head;
    const struct stk_slot *slot = stk_slots_of(slots, batch);
    struct stk_buffer *buffer = stk_transfer_buffer(transfer, batch);
    assert(buffer->turn == batch);
    keep_numbers(slots, slot, rows, buffer);
    buffer->rows = rows;
    buffer->stream = NULL;
    const bool held = holds_rows(transfer, slot, rows);
    const struct stk_send send = {
        .pieces = transfer->pieces,
        .piece_count = pieces_of(transfer, slot, buffer->memory, rows, held),
        .after = buffer->used ? buffer->released : NULL,
        .after_kernels = buffer->changed ? buffer->ready : NULL,
        .launches = transfer->launches,
        .launch_count = kernels_behind(transfer, slot, buffer, place, !held),
        .copied = stk_transfer_copied(transfer, batch),
        .ready = buffer->ready,
    };
    buffer->changed = send.launch_count > 0;
    const uint64_t begin_ns = stk_trace_begin(transfer->trace, STOKER_TRACE_SEND, batch);
    stk_slots_take(slots); /* also on failure: the device may have started */
    const int rc = device->ops->send(device, &send);
    if (rc == 0 && transfer->cache->on)
        stk_device_cache_commit(transfer->cache, slot->ids, slot->fresh, rows);
    stk_ledger_add(&transfer->copy_bytes, bytes_of(&send));
    stk_trace_end(transfer->trace, STOKER_TRACE_SEND, begin_ns, batch, 0, rows);
    return rc;
}

/* ---- buffers ---- */

struct stk_buffer *stk_transfer_lend(struct stk_transfer *transfer)
{
    assert(stk_transfer_sent(transfer));
    struct stk_buffer *buffer = stk_transfer_buffer(transfer, transfer->delivered++);
    buffer->lent = true;
    buffer->shared = false;
    atomic_store_explicit(&buffer->lease.turn, buffer->turn, memory_order_relaxed);
    return buffer;
}

int stk_transfer_wait_on(struct stk_transfer *transfer, struct stk_buffer *buffer, void *stream,
                         char why[STK_DEVICE_WHY_BYTES])
{
    struct stk_device *device = transfer->device;
    assert(buffer->lent);
    /* If the copy is done, its event may belong to a later one. */
    void *const event = buffer->changed ? buffer->ready
                        : buffer->turn < transfer->retired
                            ? NULL
                            : stk_transfer_copied(transfer, buffer->turn);
    const int rc = device->ops->wait_on(device, event, stream, why);
    if (rc == 0)
        buffer->stream = stream;
    return rc;
}

int stk_transfer_release_on(struct stk_transfer *transfer, struct stk_buffer *buffer, void *stream,
                            char why[STK_DEVICE_WHY_BYTES])
{
    struct stk_device *device = transfer->device;
    const int rc = buffer->shared ? stk_transfer_end_work(transfer, buffer, stream, why)
                                  : device->ops->mark_on(device, buffer->released, stream, why);
    if (rc != STOKER_EINVAL)
        stk_transfer_free(transfer, buffer);
    return rc;
}

void stk_transfer_share(struct stk_buffer *buffer)
{
    assert(buffer->lent);
    buffer->shared = true;
}

int stk_transfer_end_work(struct stk_transfer *transfer, struct stk_buffer *buffer, void *stream,
                          char why[STK_DEVICE_WHY_BYTES])
{
    struct stk_device *device = transfer->device;
    const int rc = device->ops->wait_on(device, buffer->released, stream, why);
    return rc < 0 ? rc : device->ops->mark_on(device, buffer->released, stream, why);
}

void stk_transfer_free(struct stk_transfer *transfer, struct stk_buffer *buffer)
{
    assert(buffer->lent);
    buffer->lent = false;
    buffer->turn += transfer->buffer_count;
    buffer->used = true;
}

/* ---- memory for batches that the consumer keeps ---- */

struct stk_buffer *stk_transfer_more_memory(struct stk_transfer *transfer,
                                            char why[STK_DEVICE_WHY_BYTES])
{
    struct stk_device *device = transfer->device;
    struct stk_buffer *buffer = NULL;
    uint8_t *memory = device->ops->alloc(device, transfer->buffer_bytes, why);
    if (memory == NULL)
        return NULL;
    const int rc = make_buffer(transfer, &buffer, why);
    if (rc == 0) {
        use_memory(transfer, buffer, memory);
        buffer->owns_memory = true;
        return buffer;
    }
    if (rc == STOKER_ENOMEM)
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "%s", stoker_strerror(rc));
    device->ops->free(device, memory);
    return NULL;
}

void stk_transfer_exchange(struct stk_transfer *transfer, struct stk_buffer *buffer)
{
    const uint64_t head = transfer->slots->head;
    struct stk_buffer **place = &transfer->buffers[head % transfer->buffer_count];
    assert((*place)->lent);
    assert(!buffer->lent);
    (*place)->lease.kept = true;
    buffer->lease.kept = false;
    buffer->turn = head;
    *place = buffer;
}
