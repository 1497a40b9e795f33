/* images.c - parameters, splits, shapes and labels of a set of generated images.
 *
 * The split "test" has another key, so its images differ from those of "train".
 */
#include "datasets/synth/images.h"

#include <string.h>

#include "datasets/parameters.h"
#include "datasets/synth/synth.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/base/rng.h"

uint32_t stk_synth_images_label(const struct stk_synth_images *images, uint64_t id)
{
    const uint64_t high = stk_mix64(images->key ^ stk_mix64(id)) >> 32;
    return (uint32_t)((high * images->artist->class_count) >> 32);
}

/* ---- the codec: it decodes nothing, it draws ------------------------------------- */

static int open_scratch(const void *self, bool any_size, void **scratch)
{
    (void)any_size;
    const struct stk_synth_images *images = self;
    *scratch = stk_calloc(1, images->artist->scratch_bytes);
    return *scratch == NULL ? STOKER_ENOMEM : STOKER_OK;
}

static void close_scratch(const void *self, void *scratch)
{
    (void)self;
    stk_free(scratch);
}

static int decode(const void *self, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    (void)error;
    const struct stk_synth_images *images = self;
    images->artist->draw(images, in->sample, scratch, out->rows[0].data);
    return STOKER_OK;
}

/* ---- data set ------------------------------------------------------------------- */

static int describe(const void *self, stoker_dataset_info *out)
{
    const struct stk_synth_images *images = self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(stoker_dataset_info),
                                  .count = images->count,
                                  .dtype = STOKER_DTYPE_UINT8,
                                  .rank = 3,
                                  .shape = { images->size, images->size, images->artist->channels },
                                  .is_image = true,
                                  .label_dtype = STOKER_DTYPE_INT64,
                                  .class_count = images->artist->class_count,
                                  .fingerprint = images->key };
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                  stoker_error *error)
{
    (void)ids;
    (void)error;
    const struct stk_synth_images *images = self;
    for (uint32_t i = 0; i < count; i++)
        out[i] = (stoker_part){ .codec = &images->codec };
    return STOKER_OK;
}

static int values(const void *self, uint32_t field, const uint64_t *ids, uint32_t count, void *out)
{
    (void)field;
    const struct stk_synth_images *images = self;
    for (uint32_t i = 0; i < count; i++)
        ((int64_t *)out)[i] = stk_synth_images_label(images, ids[i]);
    return STOKER_OK;
}

/* ---- parameters ------------------------------------------------------------------ */

static int read_split(struct stk_synth_images *images, const stoker_dataset_options *options,
                      stoker_error *error)
{
    const bool test = options->split != NULL && strcmp(options->split, "test") == 0;
    if (options->split != NULL && !test && strcmp(options->split, "train") != 0)
        return stk_refuse_spec(error, STOKER_EINVAL, "split \"%s\": %s has \"train\" and \"test\"",
                               options->split, images->artist->name);
    images->key = stk_mix64(images->seed) ^ (test ? 0x7465737400000000U : 0);
    return STOKER_OK;
}

static int read_parameters(struct stk_synth_images *images, const char *text, stoker_error *error)
{
    const struct stk_synth_artist *artist = images->artist;
    const struct stk_parameter table[] = {
        { .key = "count",
          .number = &images->count,
          .least = 1,
          .most = STK_SYNTH_COUNT_MAX,
          .is_size = true },
        { .key = "seed", .number = &images->seed, .least = 0, .most = UINT64_MAX },
        { .key = "size",
          .number = &images->size,
          .least = artist->size_min,
          .most = artist->size_max,
          .is_size = true },
    };
    return stk_parameters_read(text, table, sizeof(table) / sizeof(table[0]), artist->name, error);
}

/* ---- life ----------------------------------------------------------------------- */

static void set_calls(struct stk_synth_images *images)
{
    const struct stk_synth_artist *artist = images->artist;
    images->codec = (stoker_codec){
        .struct_size = sizeof(stoker_codec), .name = artist->name, .self = images, .decode = decode
    };
    if (artist->scratch_bytes > 0) {
        images->codec.open = open_scratch;
        images->codec.close = close_scratch;
    }
    images->ops = (stoker_dataset_ops){ .struct_size = sizeof(stoker_dataset_ops),
                                        .name = artist->name,
                                        .describe = describe,
                                        .locate = locate,
                                        .values = values,
                                        .destroy = stk_free };
}

int stk_synth_images_open(stoker_dataset **out, const struct stk_synth_artist *artist,
                          const char *parameters, const stoker_dataset_options *options,
                          stoker_error *error)
{
    struct stk_synth_images *images = stk_calloc(1, sizeof(*images));
    if (images == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPEN, NULL, NULL);
    *images =
        (struct stk_synth_images){ .count = artist->count, .size = artist->size, .artist = artist };
    set_calls(images);
    int rc = read_parameters(images, parameters, error);
    if (rc == STOKER_OK)
        rc = read_split(images, options, error);
    if (rc == STOKER_OK)
        rc = stoker_dataset_create(out, &images->ops, images, error);
    if (rc != STOKER_OK)
        stk_free(images);
    return rc;
}
