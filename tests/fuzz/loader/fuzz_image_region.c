/* fuzz_image_region.c - any bytes as an image of which a rectangle is wanted: it can be decoded if
 * and only if the whole image can, with the same pixels, by a worker that has seen damage as by a
 * fresh one, and with the notes of an earlier decode as without. Damaged notes are read safely.
 *
 *   input  [how:1] [y:2] [x:2] [height:2] [width:2] image     taken modulo the image's size
 *   how    lowest bits: channels of a row and smallest scale
 */
#include "fuzz/codec_input.h"
#include "fuzz/edits.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum {
    PIXELS_MAX = STK_FUZZ_PIXELS_MAX,
    PIXELS_BYTES = 4 * PIXELS_MAX,
    HEAD_BYTES = 9,
    NOTES_BYTES = 2000
};

struct worker {
    const stoker_codec *codec;
    void *scratch;
    uint32_t channels;
};

static struct worker open_worker(const struct stk_image_codec *image, uint32_t channels)
{
    struct worker worker = { .codec = &image->codec, .channels = channels };
    STK_FUZZ_MUST(worker.codec->open(worker.codec->self, true, &worker.scratch) == STOKER_OK);
    return worker;
}

static void close_worker(const struct worker *worker)
{
    worker->codec->close(worker->codec->self, worker->scratch);
}

static uint32_t load_16(const uint8_t *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8;
}

static stoker_region wanted_of(const uint8_t *head, stoker_size size, uint32_t eighths)
{
    stoker_region wanted = { .eighths = eighths };
    wanted.height = 1 + load_16(head + 4) % size.height;
    wanted.width = 1 + load_16(head + 6) % size.width;
    wanted.y = load_16(head) % (size.height - wanted.height + 1);
    wanted.x = load_16(head + 2) % (size.width - wanted.width + 1);
    return wanted;
}

/* Pixels in memory of just the image's size, so that ASan sees a byte too many. */
struct decoded {
    int rc;
    uint8_t *pixels;
    stoker_region got;
};

static struct decoded decode(const struct worker *worker, const stoker_encoded *in,
                             stoker_size size, const stoker_region *wanted)
{
    const size_t bytes = (size_t)size.height * size.width * worker->channels;
    struct decoded decoded = { .pixels = calloc(1, bytes) };
    stoker_error error = { .message = "" };
    STK_FUZZ_MUST(decoded.pixels != NULL);
    decoded.rc = stk_decode_image(worker->codec, worker->scratch, in, wanted, decoded.pixels, bytes,
                                  &decoded.got, &error);
    STK_FUZZ_MUST(decoded.rc <= 0 && decoded.rc != STOKER_ENOMEM);
    STK_FUZZ_MUST(decoded.rc == 0 || error.message[0] != '\0');
    return decoded;
}

static uint8_t *decode_whole(const struct worker *worker, const stoker_encoded *in,
                             stoker_size size)
{
    const size_t bytes = (size_t)size.height * size.width * worker->channels;
    uint8_t *pixels = calloc(1, bytes);
    stoker_region again;
    STK_FUZZ_MUST(pixels != NULL);
    if (stk_decode_image(worker->codec, worker->scratch, in, NULL, pixels, bytes, &again, NULL) ==
        STOKER_OK) {
        STK_FUZZ_MUST(again.height == size.height && again.width == size.width);
        return pixels;
    }
    free(pixels);
    return NULL;
}

/* The wanted pixels of two decoded rectangles at one scale. */
static void compare(const struct decoded *one, const struct decoded *other,
                    const stoker_region *wanted, uint32_t channels)
{
    const stoker_region *a = &one->got, *b = &other->got;
    STK_FUZZ_MUST(a->eighths == b->eighths && a->eighths >= wanted->eighths && a->eighths <= 8);
    const struct stk_image_range y = stk_image_range(wanted->y, wanted->height, a->eighths);
    const struct stk_image_range x = stk_image_range(wanted->x, wanted->width, a->eighths);
    STK_FUZZ_MUST(a->y <= y.from && y.to <= a->y + a->height);
    STK_FUZZ_MUST(a->x <= x.from && x.to <= a->x + a->width);
    for (uint32_t line = y.from; line < y.to; line++)
        STK_FUZZ_MUST(memcmp(one->pixels + ((line - a->y) * a->width + x.from - a->x) * channels,
                             other->pixels + ((line - b->y) * b->width + x.from - b->x) * channels,
                             (size_t)(x.to - x.from) * channels) == 0);
}

/* Decode a rectangle with notes about another one, and with damaged notes. */
static void check_notes(const struct worker *worker, const stoker_encoded *bare, stoker_size size,
                        const uint8_t *head, const stoker_region *wanted,
                        const struct decoded *expected)
{
    static _Alignas(8) uint8_t room[NOTES_BYTES];
    stoker_notes notes = { .room = room, .room_bytes = sizeof(room) };
    stoker_encoded in = *bare;
    const stoker_region corner = { 0, 0, 1, 1, 8 };
    in.notes = &notes;
    free(decode(worker, &in, size, &corner).pixels);
    if (notes.noted_bytes == 0)
        return;
    for (int damaged = 0; damaged < 2; damaged++) {
        uint8_t *known = malloc(notes.noted_bytes);
        STK_FUZZ_MUST(known != NULL);
        memcpy(known, room, notes.noted_bytes);
        if (damaged == 1)
            stk_fuzz_edit(known, notes.noted_bytes, head, HEAD_BYTES - 1);
        notes.known = known;
        notes.known_bytes = notes.noted_bytes;
        const struct decoded found = decode(worker, &in, size, wanted);
        STK_FUZZ_MUST(found.rc == expected->rc);
        if (damaged == 0 && found.rc == STOKER_OK)
            compare(&found, expected, wanted, worker->channels);
        free(found.pixels);
        free(known);
    }
}

static void check(const struct stk_image_codec *image, const stoker_encoded *in,
                  const uint8_t *head, uint32_t channels, uint32_t eighths)
{
    const struct worker used = open_worker(image, channels);
    const struct worker fresh = open_worker(image, channels);
    stoker_size size;
    if (stk_decode_size(used.codec, in, &size, NULL) == STOKER_OK &&
        (uint64_t)size.height * size.width <= PIXELS_MAX) {
        const stoker_region wanted = wanted_of(head, size, eighths);
        struct decoded whole = { .pixels = decode_whole(&used, in, size),
                                 .got = { 0, 0, size.height, size.width, 8 } };
        const stoker_encoded half = { .bytes = in->bytes, .size = in->size / 2 };
        free(decode(&used, &half, size, &wanted).pixels);
        const struct decoded part = decode(&used, in, size, &wanted);
        const struct decoded again = decode(&fresh, in, size, &wanted);
        STK_FUZZ_MUST(part.rc == again.rc);
        STK_FUZZ_MUST((part.rc == STOKER_OK) == (whole.pixels != NULL));
        if (part.rc == STOKER_OK)
            compare(&part, &again, &wanted, channels);
        if (whole.pixels != NULL && part.got.eighths == 8)
            compare(&part, &whole, &wanted, channels);
        check_notes(&used, in, size, head, &wanted, &part);
        free(whole.pixels);
        free(part.pixels);
        free(again.pixels);
    }
    close_worker(&used);
    close_worker(&fresh);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const uint32_t channels[] = { 1, 3, 4 };
    if (size < HEAD_BYTES)
        return 0;
    const uint32_t how = bytes[0];
    const struct stk_image_options options = { .shape = { 8, 8, channels[how % 3] },
                                               .any_pixels_max = PIXELS_MAX };
    const stoker_encoded in = { .bytes = bytes + HEAD_BYTES, .size = size - HEAD_BYTES };
    struct stk_image_codec image;
    if (stk_image_codec_init(&image, NULL, &options) != STOKER_OK)
        return 0; /* a build without any image codec */
    check(&image, &in, bytes + 1, options.shape.channels, 1 + how / 3 % 8);
    STK_FUZZ_MUST(stk_fault_live_bytes() == 0);
    return 0;
}
