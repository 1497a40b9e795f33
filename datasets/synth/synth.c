/* synth.c - "synth:digits?...", "synth:pictures?...", "synth:bytes?...": pick the generator. */
#include "datasets/synth/synth.h"

#include <string.h>

#include "datasets/formats.h"
#include "loader/base/error.h"

static const struct kind {
    const char *name;
    int (*open)(stoker_dataset **out, const char *parameters, const stoker_dataset_options *options,
                stoker_error *error);
} kinds[] = {
    { "digits", stk_synth_digits_open },
    { "pictures", stk_synth_pictures_open },
    { "bytes", stk_synth_bytes_open },
};

static int open_synth(stoker_dataset **out, const char *rest, const stoker_dataset_options *options,
                      stoker_error *error)
{
    size_t name_bytes = strcspn(rest, "?");
    const char *parameters = rest + name_bytes + (rest[name_bytes] == '?' ? 1 : 0);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strlen(kinds[i].name) == name_bytes && memcmp(kinds[i].name, rest, name_bytes) == 0)
            return kinds[i].open(out, parameters, options, error);
    }
    return stk_refuse_spec(error, STOKER_ESPEC,
                           "synth:%.*s: the kinds are digits, pictures and bytes",
                           (int)(name_bytes < 64 ? name_bytes : 64), rest);
}

/* One seed both draws the images and splits them. */
static bool keeps_synth(const char *rest, const char *key)
{
    return strcmp(key, "seed") == 0 && strncmp(rest, "bytes", 5) != 0;
}

const struct stk_format stk_format_synth = {
    .name = "synth",
    .about = "synth:digits?count=N\tdrawn digits\nsynth:bytes?count=N&shape=28x28\tnoise, of any "
             "size\nsynth:pictures?count=N\tmade-up photographs",
    .open = open_synth,
    .keeps = keeps_synth
};
