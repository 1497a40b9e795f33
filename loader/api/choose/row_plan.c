/* row_plan.c - see row_plan.h. */
#include "loader/api/choose/row_plan.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernels/transform/mask/mask.h"
#include "loader/api/choose/sizing.h"
#include "loader/api/options.h"
#include "loader/base/error.h"
#include "loader/pipeline/batch/blend.h"

/* The form in which images cross the bus: see row_plan.h. */
enum sent { SENT_STORED, SENT_RESIZED, SENT_MADE };

/* How the work is divided between host and device. */
struct division {
    struct stk_framing host; /* if host_transforms */
    bool host_transforms;
    struct stk_framing device;
    bool device_transforms;
    uint32_t height, width; /* size of an image as it crosses the bus */
};

/* ---- what the options ask for ---- */

/* All rows of a batch have the same size. */
static int check_sizes(const stoker_loader *loader, stoker_error *error)
{
    const stoker_dataset_info *set = &loader->pipeline.dataset->info;
    const struct stk_place nowhere = STK_NOWHERE;
    if (!set->sizes_differ || loader->facts.any_size)
        return 0;
    return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                         "images differ in size: set transform.resize, resize_shorter or "
                         "random_resized_crop, or height= and width= in the data set's spec "
                         "(other sizes are then bad samples)%s%s",
                         set->description != NULL ? "; " : "",
                         set->description != NULL ? set->description : "");
}

static int refuse_mask(const struct stk_field *mask, const char *why, stoker_error *error)
{
    const struct stk_place nowhere = STK_NOWHERE;
    return stk_error_set(error, STOKER_ENOTSUP, STOKER_STAGE_OPTIONS, &nowhere,
                         "options.transform: the mask \"%s\" %s", mask->info.name, why);
}

static bool has_masks(const stoker_loader *loader)
{
    const stoker_dataset *dataset = loader->pipeline.dataset;
    for (uint32_t i = 1; i < dataset->info.field_count; i++)
        if (dataset->fields[i].info.kind == STOKER_FIELD_KIND_MASK)
            return true;
    return false;
}

/* Beside images that differ in size. */
static int check_any_mask(const stoker_loader *loader, const struct stk_field *mask,
                          stoker_error *error)
{
    const stoker_dataset *dataset = loader->pipeline.dataset;
    if (dataset->part_fields[mask->info.part].count > 1)
        return refuse_mask(
            mask, "shares a part with other fields, beside images that may differ in size", error);
    if (loader->options.cache == STOKER_CACHE_DECODED)
        return refuse_mask(
            mask, "is decoded in its own size, which cache DECODED does not keep: use ENCODED",
            error);
    return 0;
}

/* A mask keeps to its image, of which it has the size. */
static int check_masks(const stoker_loader *loader, stoker_error *error)
{
    const stoker_dataset *dataset = loader->pipeline.dataset;
    const uint64_t *shape = dataset->info.shape;
    for (uint32_t i = 1; loader->facts.transforms && i < dataset->info.field_count; i++) {
        const struct stk_field *mask = &dataset->fields[i];
        if (mask->info.kind != STOKER_FIELD_KIND_MASK)
            continue;
        if (mask->entry_bytes / mask->info.shape[1] > STK_MASK_PIXEL_BYTES_MAX)
            return refuse_mask(mask, "has more than 32 bytes per pixel", error);
        if (mask->info.part == STOKER_NO_PART)
            return refuse_mask(mask, "comes from values()", error);
        const int rc = loader->facts.any_size ? check_any_mask(loader, mask, error) : 0;
        if (rc < 0)
            return rc;
        if (!loader->facts.any_size &&
            (mask->info.shape[0] != shape[0] || mask->info.shape[1] != shape[1]))
            return refuse_mask(mask, "has another height or width than field 0", error);
    }
    return 0;
}

/* Bytes of the largest image, or mask, that is decoded in its own size. */
static size_t any_bytes_max(const stoker_dataset *dataset)
{
    const stoker_dataset_info *set = &dataset->info;
    size_t most = set->pixels_max * set->shape[2];
    for (uint32_t i = 1; i < set->field_count; i++) {
        const struct stk_field *field = &dataset->fields[i];
        const bool mask = field->info.kind == STOKER_FIELD_KIND_MASK;
        const size_t bytes =
            mask ? set->pixels_max * (field->entry_bytes / (size_t)field->info.shape[1]) : 0;
        most = bytes > most ? bytes : most;
    }
    return most > dataset->row_bytes ? most : dataset->row_bytes;
}

/* The shape of a row, and the transforms that lead to it. */
static int make_framing(stoker_loader *loader, struct stk_framing *framing, stoker_error *error)
{
    struct stk_pipeline *pipeline = &loader->pipeline;
    const stoker_dataset_info *set = &pipeline->dataset->info;
    memcpy(pipeline->shape, set->shape, sizeof(pipeline->shape));
    loader->facts.transforms = stk_transform_wanted(&loader->options.transform);
    pipeline->image_bytes_max = pipeline->dataset->row_bytes;
    if (!loader->facts.transforms)
        return 0;
    int rc = stk_options_framing(framing, &loader->options, pipeline->dataset, error);
    if (rc < 0)
        return rc;
    pipeline->shape[0] = framing->out_height;
    pipeline->shape[1] = framing->out_width;
    loader->facts.any_size = set->pixels_max > 0 && framing->resizing != STK_RESIZE_NONE;
    if (loader->facts.any_size)
        pipeline->image_bytes_max = any_bytes_max(pipeline->dataset);
    return 0;
}

static size_t row_elements(const struct stk_pipeline *pipeline)
{
    size_t elements = 1;
    for (uint32_t axis = 0; axis < pipeline->dataset->info.rank; axis++)
        elements *= (size_t)pipeline->shape[axis];
    return elements;
}

/* A row that is neither an image nor normalized by column counts as one line of pixels. */
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

/* ---- divisions ---- */

/* Pass images of height x width through unchanged. */
static bool pass_through(struct stk_framing *framing, uint64_t height, uint64_t width)
{
    const stoker_transform nothing = { .flip = false };
    char why[STK_TRANSFORM_WHY_BYTES];
    return height <= STOKER_TRANSFORM_SIDE_MAX && width <= STOKER_TRANSFORM_SIDE_MAX &&
           stk_framing_init(framing, &nothing, 0, (uint32_t)height, (uint32_t)width, false, why) ==
               0;
}

/* Send images as stored. A row that is no image is sent as one line of pixels. */
static bool divide_stored(const stoker_loader *loader, struct division *out)
{
    const struct stk_pipeline *pipeline = &loader->pipeline;
    const stoker_dataset_info *set = &pipeline->dataset->info;
    const struct stk_convert_plan *plan = &pipeline->convert;
    const uint64_t height = set->is_image ? set->shape[0] : 1;
    const uint64_t width = set->is_image ? set->shape[1] : plan->elements / plan->channels;
    if (loader->facts.any_size ||
        (!loader->facts.transforms && !pass_through(&out->device, height, width)))
        return false;
    out->host_transforms = false;
    out->device_transforms = loader->facts.transforms;
    out->height = (uint32_t)height;
    out->width = (uint32_t)width;
    return true;
}

/* Random draws are positions in the resized image, so host and device draw the same. */
static bool divide_resized(struct division *out)
{
    if (!out->host_transforms || out->host.resizing != STK_RESIZE_EXACT)
        return false;
    out->height = out->host.out_height = out->host.resize_height;
    out->width = out->host.out_width = out->host.resize_width;
    out->host.cropping = STK_CROP_NONE;
    out->host.pad = out->host.flip = out->host.cutout = 0;
    out->host.retouch = (struct stk_retouching){ .key = 0 };
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
                              .host_transforms = loader->facts.transforms,
                              .device = *framing };
    return sent == SENT_STORED    ? divide_stored(loader, out)
           : sent == SENT_RESIZED ? divide_resized(out)
                                  : divide_made(out);
}

static size_t sent_bytes(const stoker_loader *loader, const struct division *division)
{
    return (size_t)division->height * division->width * loader->pipeline.convert.channels;
}

/* ---- the device's part ---- */

/* Set up the device's part; the host then only makes bytes. On failure convert_reason is set. */
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
        .from = STOKER_DTYPE_UINT8,
        .to = STOKER_DTYPE_UINT8,
        .layout = STOKER_LAYOUT_NHWC,
        .elements = sent_bytes(loader, division),
        .channels = pipeline->convert.channels,
        .scale = loader->options.scale,
    };
    loader->facts.transforms = division->host_transforms;
    return stk_convert_plan_init(&pipeline->convert, &bytes);
}

/* Take the first division that the device can do and that sends no more bytes than without its
 * help. With convert_on_device = ON the size does not matter, and an error of the device is
 * reported at once. */
static int share_with_device(stoker_loader *loader, struct stk_framing *framing)
{
    const bool forced = loader->options.convert_on_device == STOKER_SWITCH_ON;
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

/* Hooks see finished rows in host memory. */
static bool is_hooked(const stoker_loader *loader)
{
    return loader->options.row_hook != NULL || loader->options.batch_hook != NULL;
}

/* Let the device convert and transform, if it can. */
static int plan_device(stoker_loader *loader, struct stk_framing *framing, stoker_error *error)
{
    const stoker_switch wanted = loader->options.convert_on_device;
    const struct stk_place nowhere = STK_NOWHERE;
    if (!loader->on_device && wanted == STOKER_SWITCH_ON)
        return stk_error_set(error, STOKER_ENOTSUP, STOKER_STAGE_OPTIONS, &nowhere,
                             "convert_on_device is ON, but batches are not delivered on a GPU: "
                             "set device to CUDA, or convert_on_device to AUTO");
    if (!loader->on_device || wanted == STOKER_SWITCH_OFF || loader->device_convert.on)
        return 0;
    const bool varies = loader->pipeline.dataset->fields[0].info.varies;
    (void)snprintf(
        loader->convert_reason, sizeof(loader->convert_reason), "%s",
        is_hooked(loader) ? "hooks work on finished rows, on the host"
        : varies
            ? "the GPU converts no rows whose length varies"
            : "the GPU converts only uint8 rows with 1 to 4 channels, and only if that changes "
              "them");
    const int rc =
        is_hooked(loader) || varies ? STOKER_ENOTSUP : share_with_device(loader, framing);
    if (rc == 0)
        loader->convert_reason[0] = '\0';
    if (rc == 0 || wanted != STOKER_SWITCH_ON)
        return 0;
    return stk_error_set(error, rc, STOKER_STAGE_OPTIONS, &nowhere, "convert_on_device: %s",
                         loader->convert_reason);
}

/* ---- the cache in GPU memory ---- */

static bool is_random(const struct stk_framing *framing)
{
    return framing->resizing == STK_RESIZE_RANDOM || framing->cropping == STK_CROP_RANDOM ||
           framing->flip != 0 || framing->cutout != 0 || stk_retouching_any(&framing->retouch);
}

/* Cached rows have one size and precede everything random. */
static bool divide_cached(const stoker_loader *loader, const struct stk_framing *framing,
                          struct division *out)
{
    if (loader->facts.transforms && framing->resizing == STK_RESIZE_EXACT)
        return divide(loader, framing, SENT_RESIZED, out);
    if (!loader->facts.any_size)
        return divide(loader, framing, SENT_STORED, out);
    return !is_random(framing) && divide(loader, framing, SENT_MADE, out);
}

/* Bytes of a row of each field in GPU memory: those that come from a part. images: of field 0,
 * which has no other row then, or 0. Returns the sum. */
static size_t kept_bytes(const stoker_loader *loader, size_t images, size_t *row_bytes)
{
    const stoker_dataset *dataset = loader->pipeline.dataset;
    size_t sum = images;
    for (uint32_t i = 0; i < loader->outputs.count; i++) { /* options.blend adds the last ones */
        const struct stk_output *output = &loader->outputs.each[i];
        const bool kept = i < dataset->info.field_count &&
                          dataset->fields[i].info.part != STOKER_NO_PART && (i > 0 || images == 0);
        row_bytes[i] = kept ? output->elements * stoker_dtype_bytes(output->view.values.dtype) : 0;
        sum += row_bytes[i];
    }
    return sum;
}

/* Returns STOKER_ENOMEM, with cache_reason set, if not all rows fit. */
static int check_budget(stoker_loader *loader, size_t row_bytes, uint64_t *available)
{
    const uint64_t count = loader->pipeline.dataset->info.count;
    const uint64_t asked = loader->options.memory_bytes;
    assert(row_bytes > 0); /* there are parts, and each fills a field */
    const int rc = loader->device->ops->available(loader->device, available, loader->cache_reason);
    if (rc < 0)
        return rc;
    const uint64_t most = asked < *available ? asked : *available;
    /* An eighth: the rows of a slot are planned later. */
    const uint64_t batches = stk_sizing_batches_share(loader, most);
    const uint64_t budget = asked == STOKER_BYTES_AUTO ? *available / 2
                            : most > batches           ? most - batches
                                                       : 0;
    if (count <= budget / row_bytes)
        return 0;
    (void)snprintf(loader->cache_reason, sizeof(loader->cache_reason),
                   "%" PRIu64 " rows of %zu bytes need more than the limit of %" PRIu64
                   " bytes of GPU memory (%" PRIu64 " are free)",
                   count, row_bytes, budget, *available);
    return STOKER_ENOMEM;
}

/* Cache the rows if all of them fit; division: of field 0, or NULL: it is kept as delivered, if it
 * is kept. On failure cache_reason is set. */
static int keep_rows(stoker_loader *loader, const struct division *division)
{
    struct stk_pipeline *pipeline = &loader->pipeline;
    size_t row_bytes[STOKER_FIELDS_MAX];
    struct stk_device_cache_options options = { .device = loader->device,
                                                .count = pipeline->dataset->info.count,
                                                .row_bytes = row_bytes,
                                                .field_count = loader->outputs.count };
    if (division != NULL) {
        options.image_size[0] = division->height;
        options.image_size[1] = division->width;
        options.image_size[2] = pipeline->convert.channels;
    }
    uint64_t available = 0;
    const size_t images = division != NULL ? sent_bytes(loader, division) : 0;
    int rc = check_budget(loader, kept_bytes(loader, images, row_bytes), &available);
    if (rc == 0)
        rc = stk_device_cache_init(&pipeline->device_cache, &options, loader->cache_reason);
    if (rc == 0 && division != NULL)
        rc = take_division(loader, division);
    if (rc < 0 && pipeline->device_cache.on) {
        memcpy(loader->cache_reason, loader->convert_reason, sizeof(loader->cache_reason));
        stk_device_cache_destroy(&pipeline->device_cache);
    }
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < loader->outputs.count; i++)
        loader->outputs.each[i].kept = row_bytes[i] > 0;
    (void)snprintf(loader->cache_reason, sizeof(loader->cache_reason),
                   "%" PRIu64 " rows of %zu bytes, of %" PRIu64 " bytes of free GPU memory",
                   options.count, pipeline->device_cache.row_bytes, available);
    return 0;
}

/* Returns true if a field beside field 0 has a part: it would be kept, too. */
static bool has_parts_beside(const stoker_dataset *dataset)
{
    for (uint32_t i = 1; i < dataset->info.field_count; i++)
        if (dataset->fields[i].info.part != STOKER_NO_PART)
            return true;
    return false;
}

/* Returns true if the rows cannot be kept, whatever they look like: cache_reason is set. */
static bool keeps_nothing(stoker_loader *loader, const struct stk_framing *framing)
{
    const stoker_dataset *dataset = loader->pipeline.dataset;
    const char *why = NULL;
    if (!loader->on_device)
        why = "batches stay on the CPU";
    else if (is_hooked(loader))
        why = "hooks work on finished rows, on the host";
    else if (dataset->info.part_count == 0)
        why = "samples have no parts: values() or make() fills them each time";
    else if (stk_blend_wanted(&loader->options.blend) && has_parts_beside(dataset))
        why = "blend takes labels and masks on the host";
    else if (loader->facts.transforms && has_masks(loader) && is_random(framing))
        why = "masks take random crops and flips on the host";
    if (why != NULL)
        (void)snprintf(loader->cache_reason, sizeof(loader->cache_reason), "%s", why);
    for (uint32_t i = 0; why == NULL && i < dataset->info.field_count; i++)
        if (dataset->fields[i].info.varies) {
            why = dataset->fields[i].info.name;
            (void)snprintf(loader->cache_reason, sizeof(loader->cache_reason),
                           "field \"%s\" varies in length: the host packs its rows in each batch",
                           why);
        }
    return why != NULL;
}

/* Divide the work on field 0, which is kept as it crosses the bus. Returns NULL, or why not;
 * *needed: it can then not be kept at all. */
static const char *divide_kept(const stoker_loader *loader, const struct stk_framing *framing,
                               struct division *division, bool *needed)
{
    const bool masked = loader->facts.transforms && has_masks(loader);
    const bool divided = masked ? divide(loader, framing, SENT_MADE, division)
                                : divide_cached(loader, framing, division);
    *needed = loader->facts.transforms;
    if (loader->pipeline.dataset->fields[0].info.part == STOKER_NO_PART) {
        *needed = false;
        return "field 0 comes from values()";
    }
    if (!divided)
        return "all rows must have the same size, at most 16384 pixels a side";
    if (!stk_device_convert_fits(&loader->pipeline.convert, true))
        return "rows must be uint8 with 1 to 4 channels";
    *needed = true;
    return loader->options.convert_on_device == STOKER_SWITCH_OFF
               ? "rows are then converted on the GPU, but convert_on_device is OFF"
               : NULL;
}

static int cache_on_device(stoker_loader *loader, struct stk_framing *framing)
{
    struct division division;
    bool needed = true;
    const int code = loader->on_device ? STOKER_ENOTSUP : STOKER_EDEVICE;
    if (keeps_nothing(loader, framing))
        return code;
    const char *why = divide_kept(loader, framing, &division, &needed);
    const bool divides = why == NULL;
    /* Held rows are not in the slot: only images that the GPU converts are mixed there. */
    needed = needed || stk_blend_wanted(&loader->options.blend);
    if (why != NULL && needed) {
        (void)snprintf(loader->cache_reason, sizeof(loader->cache_reason), "%s", why);
        return code;
    }
    const int rc = keep_rows(loader, divides ? &division : NULL);
    if (rc == 0 && divides)
        *framing = division.host;
    return rc;
}

/* With AUTO the device cache is used if it fits. */
static int plan_device_cache(stoker_loader *loader, struct stk_framing *framing,
                             stoker_error *error)
{
    const stoker_cache wanted = loader->options.cache;
    if (wanted != STOKER_CACHE_DEVICE && (wanted != STOKER_CACHE_AUTO || !loader->on_device))
        return 0;
    const int rc = cache_on_device(loader, framing);
    if (rc == 0 || wanted == STOKER_CACHE_AUTO)
        return 0;
    const struct stk_place nowhere = STK_NOWHERE;
    return stk_error_set(error, rc, STOKER_STAGE_OPTIONS, &nowhere, "cache DEVICE: %s",
                         loader->cache_reason);
}

/* ---- the host's part ---- */

/* Images of one size, of which the crop leaves a part. They must not exceed what the codec decodes
 * in parts. */
static bool crops_parts(const stoker_dataset_info *set, const struct stk_framing *framing)
{
    return framing->resizing == STK_RESIZE_NONE && framing->cropping != STK_CROP_NONE &&
           (framing->out_height < set->shape[0] || framing->out_width < set->shape[1]) &&
           set->shape[0] * set->shape[1] <= set->pixels_max;
}

static int plan_transform(stoker_loader *loader, const struct stk_framing *framing)
{
    struct stk_pipeline *pipeline = &loader->pipeline;
    const uint64_t *shape = pipeline->dataset->info.shape;
    const bool any_size = loader->facts.any_size;
    uint32_t height = any_size ? STOKER_SOURCE_SIDE_MAX : (uint32_t)shape[0];
    uint32_t width = any_size ? STOKER_SOURCE_SIDE_MAX : (uint32_t)shape[1];
    if (!loader->facts.transforms)
        return 0;
    if (framing->resizing == STK_RESIZE_EXACT) { /* a cache holds images of that size, too */
        height = height > framing->resize_height ? height : framing->resize_height;
        width = width > framing->resize_width ? width : framing->resize_width;
    }
    loader->facts.copies = false;
    loader->facts.resizes_exactly = framing->resizing == STK_RESIZE_EXACT;
    loader->facts.crops = crops_parts(&pipeline->dataset->info, framing);
    return stk_transform_plan_init(&pipeline->transform, framing, loader->options.transform.fill,
                                   &pipeline->convert, (uint32_t)shape[2], height, width);
}

int stk_row_plan(stoker_loader *loader, struct stk_framing *framing, stoker_error *error)
{
    struct stk_pipeline *pipeline = &loader->pipeline;
    *framing = (struct stk_framing){ .key = 0 };
    int rc = make_framing(loader, framing, error);
    if (rc == 0)
        rc = check_sizes(loader, error);
    if (rc == 0)
        rc = check_masks(loader, error);
    if (rc < 0)
        return rc;
    const struct stk_convert_options convert = conversion(loader);
    rc = stk_convert_plan_init(&pipeline->convert, &convert);
    loader->row_bytes = pipeline->convert.to_bytes;
    return rc;
}

int stk_row_plan_divide(stoker_loader *loader, struct stk_framing *framing, stoker_error *error)
{
    struct stk_pipeline *pipeline = &loader->pipeline;
    const bool varies = pipeline->dataset->fields[0].info.varies;
    int rc = plan_device_cache(loader, framing, error);
    if (rc == 0)
        rc = plan_device(loader, framing, error);
    if (rc < 0)
        return rc;
    if (!varies)
        loader->outputs.sizes[0].row_bytes = pipeline->convert.to_bytes;
    /* Rows whose length varies change their type when the batch is complete: api/outputs. */
    loader->facts.copies =
        varies || (pipeline->convert.copies && (pipeline->convert.layout == STOKER_LAYOUT_NHWC ||
                                                pipeline->convert.channels == 1));
    return plan_transform(loader, framing);
}
