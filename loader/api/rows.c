/* rows.c - see rows.h. */
#include "loader/api/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "loader/api/options.h"
#include "loader/base/error.h"

/* Which form images have when they cross the bus. */
enum sent { SENT_STORED, SENT_RESIZED, SENT_MADE };

/* Who does what then. */
struct division {
    struct stk_framing host; /* if host_transforms */
    bool host_transforms;
    struct stk_framing device;
    bool device_transforms;
    uint32_t height, width; /* of an image as it crosses */
};

/* ---- what is asked for ---- */

/* Rows of a batch have one size. */
static int check_sizes(const stoker_loader *loader, stoker_error *error)
{
    const stoker_dataset_info *set = &loader->pipeline.dataset->info;
    const struct stk_place nowhere = STK_NOWHERE;
    if (!set->sizes_differ || loader->pipeline.any_size)
        return 0;
    return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                         "images of several sizes: resize them (transform.resize, resize_shorter "
                         "or random_resized_crop), or give height= and width= in the data set's "
                         "spec, then other sizes are bad samples%s%s",
                         set->description != NULL ? "; " : "",
                         set->description != NULL ? set->description : "");
}

/* The shape of a row, and what images have to go through to get it. */
static int make_framing(stoker_loader *loader, struct stk_framing *framing, stoker_error *error)
{
    struct stk_pipeline *pipeline = &loader->pipeline;
    const stoker_dataset_info *set = &pipeline->dataset->info;
    memcpy(pipeline->shape, set->shape, sizeof(pipeline->shape));
    pipeline->transforms = stk_transform_wanted(&loader->options.transform);
    pipeline->image_bytes_max = pipeline->dataset->row_bytes;
    if (!pipeline->transforms)
        return 0;
    int rc = stk_options_framing(framing, &loader->options, pipeline->dataset, error);
    if (rc < 0)
        return rc;
    pipeline->shape[0] = framing->out_height;
    pipeline->shape[1] = framing->out_width;
    pipeline->any_size = set->pixels_max > 0 && framing->resizing != STK_RESIZE_NONE;
    if (pipeline->any_size && set->pixels_max * set->shape[2] > pipeline->image_bytes_max)
        pipeline->image_bytes_max = set->pixels_max * set->shape[2];
    return 0;
}

static size_t row_elements(const struct stk_pipeline *pipeline)
{
    size_t elements = 1;
    for (uint32_t axis = 0; axis < pipeline->dataset->info.rank; axis++)
        elements *= (size_t)pipeline->shape[axis];
    return elements;
}

/* What is no image, and not normalised by column, is one line of pixels. */
static uint32_t channels_of(const stoker_loader *loader)
{
    const stoker_dataset_info *set = &loader->pipeline.dataset->info;
    const uint64_t last = set->rank > 0 ? set->shape[set->rank - 1] : 1;
    const bool apart = set->is_image || loader->options.mean_count > 1;
    return apart && last <= STK_CHANNELS_MAX ? (uint32_t)last : 1;
}

static struct stk_convert_options conversion(const stoker_loader *loader)
{
    const stoker_dataset_info *set = &loader->pipeline.dataset->info;
    return (struct stk_convert_options){
        .from = set->dtype,
        .to = loader->options.dtype,
        .layout = loader->options.layout,
        .elements = row_elements(&loader->pipeline),
        .channels = channels_of(loader),
        .scale = loader->options.scale,
        .mean = loader->options.mean,
        .std = loader->options.std,
        .mean_count = loader->options.mean_count,
    };
}

/* ---- who does it ---- */

/* Pass images of height x width through unchanged. */
static bool pass_through(struct stk_framing *framing, uint64_t height, uint64_t width)
{
    const stoker_transform nothing = { .flip = false };
    char why[STK_TRANSFORM_WHY_BYTES];
    return height <= STOKER_TRANSFORM_SIDE_MAX && width <= STOKER_TRANSFORM_SIDE_MAX &&
           stk_framing_init(framing, &nothing, 0, (uint32_t)height, (uint32_t)width, false, why) ==
               0;
}

/* Images as stored; those of a row that is no image lie side by side. */
static bool divide_stored(const stoker_loader *loader, struct division *out)
{
    const struct stk_pipeline *pipeline = &loader->pipeline;
    const stoker_dataset_info *set = &pipeline->dataset->info;
    const struct stk_convert_plan *plan = &pipeline->convert;
    const uint64_t height = set->is_image ? set->shape[0] : 1;
    const uint64_t width = set->is_image ? set->shape[1] : plan->elements / plan->channels;
    if (pipeline->any_size || (!pipeline->transforms && !pass_through(&out->device, height, width)))
        return false;
    out->host_transforms = false;
    out->device_transforms = pipeline->transforms;
    out->height = (uint32_t)height;
    out->width = (uint32_t)width;
    return true;
}

/* Draws are of the place in the resized image: they are the same whoever makes them. */
static bool divide_resized(struct division *out)
{
    if (!out->host_transforms || out->host.resizing != STK_RESIZE_EXACT)
        return false;
    out->height = out->host.out_height = out->host.resize_height;
    out->width = out->host.out_width = out->host.resize_width;
    out->host.cropping = STK_CROP_NONE;
    out->host.pad = out->host.flip = out->host.cutout = 0;
    out->device.resizing = STK_RESIZE_NONE;
    out->device.resize_height = out->device.resize_width = 0;
    out->device_transforms = true;
    return true;
}

static bool divide_made(struct division *out)
{
    const uint32_t height = out->host.out_height, width = out->host.out_width;
    if (!out->host_transforms || !pass_through(&out->device, height, width))
        return false;
    out->device_transforms = false;
    out->height = height;
    out->width = width;
    return true;
}

static bool divide(const stoker_loader *loader, const struct stk_framing *framing, enum sent sent,
                   struct division *out)
{
    *out = (struct division){ .host = *framing,
                              .host_transforms = loader->pipeline.transforms,
                              .device = *framing };
    return sent == SENT_STORED    ? divide_stored(loader, out)
           : sent == SENT_RESIZED ? divide_resized(out)
                                  : divide_made(out);
}

static size_t sent_bytes(const stoker_loader *loader, const struct division *division)
{
    return (size_t)division->height * division->width * loader->pipeline.convert.channels;
}

/* ---- the GPU's part ---- */

/* Have the GPU do its part of a division; the host then only makes bytes. 0, or a reason is told. */
static int take_division(stoker_loader *loader, const struct division *division)
{
    struct stk_pipeline *pipeline = &loader->pipeline;
    const struct stk_device_convert_options options = {
        .device = loader->device,
        .framing = &division->device,
        .fill = loader->options.transform.fill,
        .convert = &pipeline->convert,
        .height = division->height,
        .width = division->width,
        .batch_size = loader->options.batch_size,
    };
    int rc = stk_device_convert_init(&loader->device_convert, &options, loader->convert_reason);
    if (rc < 0)
        return rc;
    const struct stk_convert_options bytes = {
        .from = STOKER_UINT8,
        .to = STOKER_UINT8,
        .layout = STOKER_NHWC,
        .elements = sent_bytes(loader, division),
        .channels = pipeline->convert.channels,
        .scale = loader->options.scale,
    };
    pipeline->transforms = division->host_transforms;
    return stk_convert_plan_init(&pipeline->convert, &bytes);
}

/* The first division that the GPU can do and that sends no more than the host would. Where it was asked
 * for, a call that fails is told, and not gone round. */
static int share_with_device(stoker_loader *loader, struct stk_framing *framing)
{
    const bool forced = loader->options.convert_on_device == STOKER_ON;
    int rc = STOKER_ENOTSUP;
    for (enum sent sent = SENT_STORED; sent <= SENT_MADE && rc < 0; sent++) {
        struct division division;
        if (!divide(loader, framing, sent, &division) ||
            !stk_device_convert_fits(&loader->pipeline.convert, division.device_transforms) ||
            (!forced && sent_bytes(loader, &division) > loader->row_bytes))
            continue;
        rc = take_division(loader, &division);
        if (rc == 0)
            *framing = division.host;
        if (rc == STOKER_EDEVICE && forced)
            break;
    }
    return rc;
}

/* The GPU converts and transforms where it can. */
static int plan_device(stoker_loader *loader, struct stk_framing *framing, stoker_error *error)
{
    const stoker_switch wanted = loader->options.convert_on_device;
    if (!loader->on_device || wanted == STOKER_OFF || loader->device_convert.on)
        return 0;
    (void)snprintf(loader->convert_reason, sizeof(loader->convert_reason),
                   "it takes rows of uint8 with 1 to 4 channels that are to be changed");
    const int rc = share_with_device(loader, framing);
    if (rc == 0)
        loader->convert_reason[0] = '\0';
    if (rc == 0 || wanted != STOKER_ON)
        return 0;
    const struct stk_place nowhere = STK_NOWHERE;
    return stk_error_set(error, rc, STOKER_STAGE_OPTIONS, &nowhere, "convert_on_device: %s",
                         loader->convert_reason);
}

/* ---- rows kept by the GPU ---- */

static bool is_random(const struct stk_framing *framing)
{
    return framing->resizing == STK_RESIZE_RANDOM || framing->cropping == STK_CROP_RANDOM ||
           framing->flip != 0 || framing->cutout != 0;
}

/* What is kept precedes all that is random, and has one size. */
static bool divide_kept(const stoker_loader *loader, const struct stk_framing *framing,
                        struct division *out)
{
    const struct stk_pipeline *pipeline = &loader->pipeline;
    if (pipeline->transforms && framing->resizing == STK_RESIZE_EXACT)
        return divide(loader, framing, SENT_RESIZED, out);
    if (!pipeline->any_size)
        return divide(loader, framing, SENT_STORED, out);
    return !is_random(framing) && divide(loader, framing, SENT_MADE, out);
}

/* Where all of the set's rows fit. 0, or the reason is told. */
static int keep_division(stoker_loader *loader, const struct division *division)
{
    struct stk_pipeline *pipeline = &loader->pipeline;
    const uint64_t count = pipeline->dataset->info.count;
    const uint64_t asked = loader->options.cache_bytes;
    uint64_t available = 0;
    int rc = loader->device->ops->available(loader->device, &available, loader->cache_reason);
    if (rc < 0)
        return rc;
    const uint64_t most = asked > 0 ? asked : available / 2;
    const uint64_t budget = most < available ? most : available;
    const uint32_t shape[3] = { division->height, division->width, pipeline->convert.channels };
    if (count > budget / sent_bytes(loader, division)) {
        (void)snprintf(loader->cache_reason, sizeof(loader->cache_reason),
                       "%" PRIu64 " rows of %zu bytes are more than the %" PRIu64
                       " bytes of GPU memory that they may take, of %" PRIu64 " free ones",
                       count, sent_bytes(loader, division), budget, available);
        return STOKER_ENOMEM;
    }
    rc = stk_device_cache_init(&pipeline->device_cache, loader->device, count, shape,
                               loader->cache_reason);
    if (rc < 0)
        return rc;
    rc = take_division(loader, division);
    if (rc < 0) {
        memcpy(loader->cache_reason, loader->convert_reason, sizeof(loader->cache_reason));
        stk_device_cache_destroy(&pipeline->device_cache);
        return rc;
    }
    (void)snprintf(loader->cache_reason, sizeof(loader->cache_reason),
                   "%" PRIu64 " rows of %zu bytes, of %" PRIu64
                   " bytes of GPU memory that are free",
                   count, pipeline->device_cache.row_bytes, available);
    return 0;
}

static int keep_on_device(stoker_loader *loader, struct stk_framing *framing)
{
    struct division division;
    const char *why = NULL;
    if (!loader->on_device)
        why = "batches are delivered on the CPU";
    else if (loader->options.convert_on_device == STOKER_OFF)
        why = "it converts on the GPU, and convert_on_device is OFF";
    else if (!divide_kept(loader, framing, &division))
        why = "it takes rows of one size, at most 16384 pixels a side";
    else if (!stk_device_convert_fits(&loader->pipeline.convert, true))
        why = "it takes rows of uint8 with 1 to 4 channels";
    if (why != NULL) {
        (void)snprintf(loader->cache_reason, sizeof(loader->cache_reason), "%s", why);
        return loader->on_device ? STOKER_ENOTSUP : STOKER_EDEVICE;
    }
    int rc = keep_division(loader, &division);
    if (rc == 0)
        *framing = division.host;
    return rc;
}

/* AUTO takes it where it fits; a reason is told where there is a GPU. */
static int plan_device_cache(stoker_loader *loader, struct stk_framing *framing,
                             stoker_error *error)
{
    const stoker_cache wanted = loader->options.cache;
    if (wanted != STOKER_CACHE_DEVICE && (wanted != STOKER_CACHE_AUTO || !loader->on_device))
        return 0;
    const int rc = keep_on_device(loader, framing);
    if (rc == 0 || wanted == STOKER_CACHE_AUTO)
        return 0;
    const struct stk_place nowhere = STK_NOWHERE;
    return stk_error_set(error, rc, STOKER_STAGE_OPTIONS, &nowhere, "cache DEVICE: %s",
                         loader->cache_reason);
}

/* ---- the host's part ---- */

static int plan_transform(stoker_loader *loader, const struct stk_framing *framing)
{
    struct stk_pipeline *pipeline = &loader->pipeline;
    const uint64_t *shape = pipeline->dataset->info.shape;
    const uint32_t height = pipeline->any_size ? STOKER_SOURCE_SIDE_MAX : (uint32_t)shape[0];
    const uint32_t width = pipeline->any_size ? STOKER_SOURCE_SIDE_MAX : (uint32_t)shape[1];
    if (!pipeline->transforms)
        return 0;
    pipeline->copies = false;
    return stk_transform_plan_init(&pipeline->transform, framing, loader->options.transform.fill,
                                   &pipeline->convert, (uint32_t)shape[2], height, width);
}

int stk_rows_plan(stoker_loader *loader, stoker_error *error)
{
    struct stk_pipeline *pipeline = &loader->pipeline;
    struct stk_framing framing = { .key = 0 };
    int rc = make_framing(loader, &framing, error);
    if (rc == 0)
        rc = check_sizes(loader, error);
    if (rc < 0)
        return rc;
    const struct stk_convert_options convert = conversion(loader);
    rc = stk_convert_plan_init(&pipeline->convert, &convert);
    loader->row_bytes = pipeline->convert.to_bytes;
    if (rc == 0)
        rc = plan_device_cache(loader, &framing, error);
    if (rc == 0)
        rc = plan_device(loader, &framing, error);
    if (rc < 0)
        return rc;
    pipeline->copies = pipeline->convert.copies &&
                       (pipeline->convert.layout == STOKER_NHWC || pipeline->convert.channels == 1);
    return plan_transform(loader, &framing);
}
