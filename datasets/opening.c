/* opening.c - see opening.h. */
#include "datasets/opening.h"

#include <assert.h>
#include <string.h>

#include "datasets/source.h"

enum {
    FILE_BYTES_MAX = 1 << 30,
    PIXELS_MAX = 1 << 28,
    SIDE_MAX = 1 << 20,
    CHANNELS_MAX = 4,
    COMMON = 6, /* parameters of all sets with images */
    TABLE_MAX = 12
};

int stk_opening_refuse(const struct stk_opening *opening, int code, const char *what)
{
    return stk_refuse_file(opening->error, code, opening->path, STOKER_NO_OFFSET, "%s: %s",
                           opening->format, what);
}

int stk_opening_folder(struct stk_opening *opening, const char *rest, const char *split)
{
    const struct stk_spec spec = stk_spec_split(opening->storage, rest, '?');
    opening->parameters = spec.after == NULL ? "" : spec.after;
    return stk_spec_root(opening->path, sizeof(opening->path), rest, spec.name_bytes, split,
                         opening->format, opening->error);
}

int stk_opening_parameters(struct stk_opening *opening, bool images,
                           const struct stk_parameter *own, size_t own_count)
{
    struct stk_parameter table[TABLE_MAX] = {
        { .key = "on_decode_warning", .text = opening->on_warning },
        { .key = "height", .number = &opening->height, .least = 1, .most = SIDE_MAX },
        { .key = "width", .number = &opening->width, .least = 1, .most = SIDE_MAX },
        { .key = "channels", .number = &opening->channels, .least = 1, .most = CHANNELS_MAX },
        { .key = "max_file_bytes",
          .number = &opening->file_bytes_max,
          .least = 1,
          .most = FILE_BYTES_MAX },
        { .key = "max_pixels", .number = &opening->pixels_max, .least = 1, .most = PIXELS_MAX },
    };
    const size_t common = images ? COMMON : 1;
    assert(common + own_count <= TABLE_MAX);
    memcpy(table + common, own, own_count * sizeof(*own));
    const int rc = stk_parameters_read(opening->parameters, table, common + own_count,
                                       opening->format, opening->error);
    if (rc != STOKER_OK)
        return rc;
    opening->warnings_fail = strcmp(opening->on_warning, "fail") == 0;
    const bool known = opening->warnings_fail || opening->on_warning[0] == '\0' ||
                       strcmp(opening->on_warning, "accept") == 0;
    return known ? STOKER_OK
                 : stk_opening_refuse(opening, STOKER_ESPEC,
                                      "on_decode_warning must be fail or accept");
}

int stk_opening_choose_row(const struct stk_opening *opening, const struct stk_survey_set *set,
                           struct stk_image_row *row, struct stk_image_codec *image)
{
    const struct stk_image_shape given = { (uint32_t)opening->height, (uint32_t)opening->width,
                                           (uint32_t)opening->channels };
    int rc = stk_image_row_choose(row, &given, set, opening->error);
    if (rc != STOKER_OK)
        return rc;
    const struct stk_image_options options = { .shape = row->shape,
                                               .any_pixels_max = opening->pixels_max,
                                               .warnings_fail = opening->warnings_fail,
                                               .gray_found = row->gray_found,
                                               .values = opening->mask };
    rc = stk_image_codec_init(image, NULL, &options);
    return rc == STOKER_OK ? rc : stk_opening_refuse(opening, rc, stk_image_codec_why(rc));
}

int stk_opening_finish(const struct stk_opening *opening, int rc, stoker_dataset **out,
                       const stoker_dataset_ops *ops, void *self)
{
    if (rc == STOKER_OK) {
        rc = stoker_dataset_create(out, ops, self, opening->error);
        if (rc != STOKER_OK)
            (void)stk_error_add_path(opening->error, rc, opening->path);
    }
    if (rc != STOKER_OK)
        ops->destroy(self);
    return rc;
}
