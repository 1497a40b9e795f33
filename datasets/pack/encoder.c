/* encoder.c - see encoder.h. Each thread of the team takes the next sample until none is left. */
#include "datasets/pack/encoder.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "loader/base/thread_team.h"

struct pack_encoder {
    struct pack_recipe recipe;
    struct stk_thread_team *team;
    struct pack_sample *samples;
    uint32_t count;
    atomic_uint next; /* sample to take */
};

/* Records of the rows' format are PNG or JPEG files. */
static bool take_codec(struct pack_sample *sample)
{
    sample->codec = stk_kind_of_bytes(sample->bytes, sample->size);
    return sample->codec == STK_SHARD_PNG || sample->codec == STK_SHARD_JPEG;
}

/* Takes over the bytes of a sample that is stored as a PNG or JPEG file. False: it is none, or can no
 * longer be read; then its row, which the loader has decoded, is all there is. */
static bool keep(const stoker_dataset *source, struct pack_sample *sample)
{
    stoker_part found = { 0 };
    if (!stk_kind_names_image(stoker_dataset_stored_as(source, sample->id)) ||
        stoker_dataset_locate(source, sample->id, &found, NULL) != STOKER_OK)
        return false;
    const size_t bytes_max = (size_t)found.extent.bytes + 1;
    sample->room.used = 0;
    if (!pack_room_for(&sample->room, bytes_max) ||
        stoker_dataset_read_stored(source, sample->id, sample->room.at, bytes_max, &sample->size,
                                   NULL) != STOKER_OK)
        return false;
    sample->room.used = sample->size;
    sample->bytes = sample->room.at;
    return take_codec(sample);
}

static void pack_as(const struct pack_recipe *recipe, enum pack_codec codec,
                    struct pack_sample *sample)
{
    sample->room.used = 0;
    switch (codec) {
    case PACK_LZ4:
        sample->failed = pack_lz4(sample->row, recipe->row_bytes, recipe->level, &sample->room);
        sample->codec = STK_SHARD_LZ4;
        break;
    case PACK_ZSTD:
        sample->failed = pack_zstd(sample->row, recipe->row_bytes, recipe->level, &sample->room);
        sample->codec = STK_SHARD_ZSTD;
        break;
    case PACK_PNG:
        sample->failed = pack_png(&recipe->pixels, sample->row, &sample->room);
        sample->codec = STK_SHARD_PNG;
        break;
    case PACK_JPEG:
        sample->failed = pack_jpeg(&recipe->pixels, recipe->quality, sample->row, &sample->room);
        sample->codec = STK_SHARD_JPEG;
        break;
    default:
        break;
    }
    sample->bytes = sample->room.at;
    sample->size = sample->room.used;
    const bool grew =
        (codec == PACK_LZ4 || codec == PACK_ZSTD) && sample->size >= recipe->row_bytes;
    if (codec == PACK_RAW || grew) {
        sample->bytes = sample->row;
        sample->size = recipe->row_bytes;
        sample->codec = STK_SHARD_RAW;
    }
}

static void pack_one(const struct pack_recipe *recipe, struct pack_sample *sample)
{
    sample->failed = NULL;
    if (recipe->codec != PACK_KEEP) {
        pack_as(recipe, recipe->codec, sample);
        return;
    }
    if (!keep(recipe->source, sample))
        pack_as(recipe, recipe->otherwise, sample);
}

static void encode(void *argument, uint32_t thread)
{
    struct pack_encoder *encoder = argument;
    (void)thread;
    for (;;) {
        const uint32_t at = atomic_fetch_add_explicit(&encoder->next, 1, memory_order_relaxed);
        if (at >= encoder->count)
            return;
        pack_one(&encoder->recipe, &encoder->samples[at]);
    }
}

const char *pack_encoder_create(struct pack_encoder **out, const struct pack_recipe *recipe,
                                uint32_t threads)
{
    struct pack_encoder *encoder = calloc(1, sizeof(*encoder));
    if (encoder == NULL)
        return "out of memory";
    encoder->recipe = *recipe;
    if (threads > STK_THREAD_TEAM_MAX)
        threads = STK_THREAD_TEAM_MAX;
    const int rc = stk_thread_team_create(&encoder->team, "stoker-pack", threads);
    if (rc != STOKER_OK) {
        free(encoder);
        return rc == STOKER_ENOMEM ? "out of memory" : "a thread could not be started";
    }
    *out = encoder;
    return NULL;
}

void pack_encoder_run(struct pack_encoder *encoder, struct pack_sample *samples, uint32_t count)
{
    encoder->samples = samples;
    encoder->count = count;
    atomic_store_explicit(&encoder->next, 0, memory_order_relaxed); /* published by the run */
    stk_thread_team_run(encoder->team, encode, encoder);
}

void pack_encoder_destroy(struct pack_encoder **at)
{
    if (*at == NULL)
        return;
    stk_thread_team_destroy((*at)->team);
    free(*at);
    *at = NULL;
}
