/* options.c - a dictionary as stoker_loader_options: one row of a table per member.
 *
 * None leaves the default. "auto" is the value by which a number lets the library choose. What a
 * value may be is checked by the library, which names the option as well; this file checks types,
 * words and names.
 */
#include <string.h>

#include "loader.h"

enum kind { U32, U64, I32, BOOL, SWITCH, WORD, FLOAT, SCALE, DOUBLE, DTYPE, SIZE, FILL, NESTED };

struct member {
    const char *name;
    enum kind kind;
    size_t at;          /* bytes into the struct */
    uint64_t automatic; /* the value that "auto" selects; NO_AUTO = the word is refused */
    const char *const *words;
    size_t word_count;
};

#define NO_AUTO          UINT64_C(0x5354)
#define COUNT(array)     (sizeof(array) / sizeof((array)[0]))
#define AT(type, name)   offsetof(type, name)
#define LOADER(name)     AT(stoker_loader_options, name)
#define TRANSFORM(name)  AT(stoker_transform, name)
#define WORDS(words)     NO_AUTO, (words), COUNT(words)
#define PLAIN            NO_AUTO, NULL, 0
#define AUTOMATIC(value) (uint64_t)(value), NULL, 0

_Static_assert(sizeof(stoker_switch) == 4 && sizeof(stoker_dtype) == 4, "words are 4 bytes");

static const char *const lasts[] = { "short", "drop", "pad", "even" };
static const char *const caches[] = { "auto", "none", "encoded", "decoded", "device" };
static const char *const devices[] = { "auto", "cpu", "cuda", "cuda_host" };
static const char *const layouts[] = { "NHWC", "NCHW" };
static const char *const bads[] = { "fail", "skip", "substitute" };
static const char *const deals[] = { "positions", "batches" };
static const char *const decodes[] = { "cpu", "device", "auto" };
static const char *const switches[] = { "auto", "on", "off" };
/* Python frees batches in whichever thread drops the last reference. The library allows that with
 * WAIT and GROW. */
static const char *const lents[] = { NULL, NULL, "wait", "grow" };

static const struct member loader_members[] = {
    { "batch_size", U32, LOADER(batch_size), PLAIN },
    { "shuffle", BOOL, LOADER(shuffle), PLAIN },
    { "last", WORD, LOADER(last), WORDS(lasts) },
    { "epochs", U64, LOADER(epochs), AUTOMATIC(STOKER_EPOCHS_ENDLESS) },
    { "seed", U64, LOADER(seed), PLAIN },
    { "num_workers", I32, LOADER(num_workers), AUTOMATIC(STOKER_WORKERS_AUTO) },
    { "dtype", DTYPE, LOADER(dtype), PLAIN },
    { "prefetch_batches", U32, LOADER(prefetch_batches), AUTOMATIC(STOKER_PREFETCH_AUTO) },
    { "read_depth", U32, LOADER(read_depth), AUTOMATIC(STOKER_READ_DEPTH_AUTO) },
    { "cache", WORD, LOADER(cache), WORDS(caches) },
    { "memory_bytes", U64, LOADER(memory_bytes), AUTOMATIC(STOKER_BYTES_AUTO) },
    { "block_memory_bytes", U64, LOADER(block_memory_bytes), AUTOMATIC(STOKER_BYTES_AUTO) },
    { "share_cache", SWITCH, LOADER(share_cache), WORDS(switches) },
    { "on_lent", WORD, LOADER(on_lent), WORDS(lents) },
    { "device", WORD, LOADER(device), WORDS(devices) },
    { "device_index", U32, LOADER(device_index), PLAIN },
    { "pin_memory", SWITCH, LOADER(pin_memory), WORDS(switches) },
    { "non_blocking", BOOL, LOADER(non_blocking), PLAIN },
    { "convert_on_device", SWITCH, LOADER(convert_on_device), WORDS(switches) },
    { "layout", WORD, LOADER(layout), WORDS(layouts) },
    { "scale", SCALE, LOADER(scale), PLAIN },
    { "rank", U32, LOADER(rank), AUTOMATIC(STOKER_RANK_AUTO) },
    { "world_size", U32, LOADER(world_size), PLAIN },
    { "on_bad_sample", WORD, LOADER(on_bad_sample), WORDS(bads) },
    { "max_bad_samples", U64, LOADER(max_bad_samples), AUTOMATIC(STOKER_NO_LIMIT) },
    { "trace_events", U32, LOADER(trace_events), PLAIN },
    { "deal", WORD, LOADER(deal), WORDS(deals) },
    { "local_rank", U32, LOADER(local_rank), PLAIN },
    { "local_world_size", U32, LOADER(local_world_size), PLAIN },
    { "decode", WORD, LOADER(decode), WORDS(decodes) },
    { "batch_values_max", U64, LOADER(batch_values_max), PLAIN },
    { "batch_window", U32, LOADER(batch_window), PLAIN },
    { "transform", NESTED, 0, PLAIN }, /* read_nested() */
    { "blend", NESTED, 0, PLAIN },
    { "mean", NESTED, 0, PLAIN },
    { "std", NESTED, 0, PLAIN },
    { "fields", NESTED, 0, PLAIN },
    { "order", NESTED, 0, PLAIN },
    { "resume", NESTED, 0, PLAIN },
    { "row_hook", NESTED, 0, PLAIN },
    { "batch_hook", NESTED, 0, PLAIN },
    { "on_log", NESTED, 0, PLAIN },
};

static const char *const scales[] = { "exact", "fast" };

static const struct member transform_members[] = {
    { "resize", SIZE, TRANSFORM(resize), PLAIN },
    { "resize_shorter", U32, TRANSFORM(resize_shorter), PLAIN },
    { "random_resized_crop", SIZE, TRANSFORM(random_resized_crop), PLAIN },
    { "area_min", FLOAT, TRANSFORM(area_min), PLAIN },
    { "area_max", FLOAT, TRANSFORM(area_max), PLAIN },
    { "ratio_min", FLOAT, TRANSFORM(ratio_min), PLAIN },
    { "ratio_max", FLOAT, TRANSFORM(ratio_max), PLAIN },
    { "center_crop", SIZE, TRANSFORM(center_crop), PLAIN },
    { "random_crop", SIZE, TRANSFORM(random_crop), PLAIN },
    { "pad", U32, TRANSFORM(pad), PLAIN },
    { "flip", BOOL, TRANSFORM(flip), PLAIN },
    { "cutout", U32, TRANSFORM(cutout), PLAIN },
    { "fill", FILL, TRANSFORM(fill), PLAIN },
    { "rotate_min", FLOAT, TRANSFORM(rotate_min), PLAIN },
    { "rotate_max", FLOAT, TRANSFORM(rotate_max), PLAIN },
    { "brightness", FLOAT, TRANSFORM(brightness), PLAIN },
    { "contrast", FLOAT, TRANSFORM(contrast), PLAIN },
    { "saturation", FLOAT, TRANSFORM(saturation), PLAIN },
    { "hue", FLOAT, TRANSFORM(hue), PLAIN },
    { "blur", U32, TRANSFORM(blur), PLAIN },
    { "sigma_min", FLOAT, TRANSFORM(sigma_min), PLAIN },
    { "sigma_max", FLOAT, TRANSFORM(sigma_max), PLAIN },
    { "decode_scale", WORD, TRANSFORM(decode_scale), WORDS(scales) },
};

static const struct member blend_members[] = {
    { "mixup_alpha", FLOAT, AT(stoker_blend, mixup_alpha), PLAIN },
    { "cutmix_alpha", FLOAT, AT(stoker_blend, cutmix_alpha), PLAIN },
    { "probability", FLOAT, AT(stoker_blend, probability), PLAIN },
    { "cutmix_share", FLOAT, AT(stoker_blend, cutmix_share), PLAIN },
};

static const char *const forms[] = { "packed", "padded", "padded_multiple", "padded_max",
                                     "joined" };

static const struct member field_members[] = {
    { "dtype", DTYPE, AT(stoker_field_options, dtype), PLAIN },
    { "form", WORD, AT(stoker_field_options, form), WORDS(forms) },
    { "multiple", U32, AT(stoker_field_options, multiple), PLAIN },
    { "pad_value", DOUBLE, AT(stoker_field_options, pad_value), PLAIN },
    { "fill_value", DOUBLE, AT(stoker_field_options, fill_value), PLAIN },
};

static const char *const orders[] = { "default", "weighted", "own", "uniform", "window" };

static const struct member order_members[] = {
    { "kind", WORD, AT(stoker_order, kind), WORDS(orders) },
    { "length", U64, AT(stoker_order, length), AUTOMATIC(STOKER_LENGTH_AUTO) },
    { "fingerprint", U64, AT(stoker_order, fingerprint), PLAIN },
    { "window_blocks", U64, AT(stoker_order, window_blocks), PLAIN },
    { "lanes", U32, AT(stoker_order, lanes), PLAIN },
    { "block_samples", U64, AT(stoker_order, block_samples), AUTOMATIC(STOKER_LENGTH_AUTO) },
    { "weights", NESTED, 0, PLAIN }, /* read_order() */
    { "ids", NESTED, 0, PLAIN },
    { "name", NESTED, 0, PLAIN },
};

/* ---- one value ---- */

static bool is_auto(PyObject *value)
{
    return PyUnicode_Check(value) && PyUnicode_CompareWithASCIIString(value, "auto") == 0;
}

static int read_switch(PyObject *value, const struct member *member, uint32_t *out)
{
    if (PyBool_Check(value)) {
        *out = value == Py_True ? STOKER_SWITCH_ON : STOKER_SWITCH_OFF;
        return 0;
    }
    const int word = core_word(value, member->name, member->words, member->word_count);
    *out = (uint32_t)word;
    return word < 0 ? -1 : 0;
}

static int read_word(PyObject *value, const struct member *member, uint32_t *out)
{
    if (member->words == lents && is_auto(value)) {
        *out = STOKER_ON_LENT_GROW;
        return 0;
    }
    const int word = core_word(value, member->name, member->words, member->word_count);
    *out = (uint32_t)word;
    return word < 0 ? -1 : 0;
}

static int read_float(PyObject *value, const char *name, float *out)
{
    double number;
    if (core_double(value, name, &number) < 0)
        return -1;
    *out = (float)number;
    return 0;
}

/* values[0..*count), at most `most`. */
static int read_numbers(PyObject *sequence, const char *name, double *values, size_t most,
                        size_t *count)
{
    PyObject *list = PySequence_List(sequence);
    if (list == NULL)
        return -1;
    int rc = 0;
    *count = (size_t)PyList_Size(list);
    if (*count > most) {
        PyErr_Format(PyExc_ValueError, "%s: %zu values, at most %zu", name, *count, most);
        rc = -1;
    }
    for (size_t i = 0; rc == 0 && i < *count; i++)
        rc = core_double(PyList_GetItem(list, (Py_ssize_t)i), name, &values[i]);
    Py_DECREF(list);
    return rc;
}

static int read_pixels(PyObject *value, const char *name, double most, uint32_t *out, size_t room,
                       size_t *count)
{
    double numbers[STOKER_TRANSFORM_CHANNELS_MAX];
    if (read_numbers(value, name, numbers, room, count) < 0)
        return -1;
    for (size_t i = 0; i < *count; i++) {
        if (!(numbers[i] >= 0 && numbers[i] <= most)) {
            PyErr_Format(PyExc_ValueError, "%s: %R has a value out of its range", name, value);
            return -1;
        }
        out[i] = (uint32_t)numbers[i];
    }
    return 0;
}

static int read_size(PyObject *value, const char *name, stoker_size *out)
{
    uint32_t sides[2];
    size_t count;
    if (read_pixels(value, name, UINT32_MAX, sides, 2, &count) < 0)
        return -1;
    if (count != 2) {
        PyErr_Format(PyExc_ValueError, "%s: (height, width), not %R", name, value);
        return -1;
    }
    *out = (stoker_size){ .height = sides[0], .width = sides[1] };
    return 0;
}

static int read_fill(PyObject *value, const char *name, uint8_t *out)
{
    uint32_t levels[STOKER_TRANSFORM_CHANNELS_MAX];
    size_t count;
    if (read_pixels(value, name, UINT8_MAX, levels, STOKER_TRANSFORM_CHANNELS_MAX, &count) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        out[i] = (uint8_t)levels[i];
    return 0;
}

static int read_value(PyObject *value, const struct member *member, void *at)
{
    const char *name = member->name;
    const bool automatic = member->automatic != NO_AUTO && is_auto(value);
    switch (member->kind) {
    case U32:
        if (automatic)
            return (void)(*(uint32_t *)at = (uint32_t)member->automatic), 0;
        return core_u32(value, name, at);
    case U64:
        if (automatic)
            return (void)(*(uint64_t *)at = member->automatic), 0;
        return core_u64(value, name, at);
    case I32:
        if (automatic)
            return (void)(*(int32_t *)at = (int32_t)member->automatic), 0;
        return core_i32(value, name, at);
    case BOOL:
        return core_bool(value, name, at);
    case SWITCH:
        return read_switch(value, member, at);
    case WORD:
        return read_word(value, member, at);
    case FLOAT:
        return read_float(value, name, at);
    case SCALE:
        if (is_auto(value))
            return (void)(*(float *)at = STOKER_SCALE_AUTO), 0;
        return read_float(value, name, at);
    case DOUBLE:
        return core_double(value, name, at);
    case DTYPE:
        return core_dtype(value, name, at);
    case SIZE:
        return read_size(value, name, at);
    case FILL:
        return read_fill(value, name, at);
    case NESTED:
        break;
    }
    return 0;
}

/* ---- a dictionary ---- */

static const struct member *find(const struct member *members, size_t count, PyObject *key)
{
    for (size_t i = 0; i < count; i++)
        if (PyUnicode_CompareWithASCIIString(key, members[i].name) == 0)
            return &members[i];
    return NULL;
}

static int check_dict(PyObject *dict, const char *name)
{
    if (PyDict_Check(dict))
        return 0;
    PyErr_Format(PyExc_TypeError, "%s: a dictionary, not %R", name, dict);
    return -1;
}

/* Every key of the dictionary into the struct at `base`; an unknown one is an error that names
 * it. */
static int read_members(PyObject *dict, const char *what, const struct member *members,
                        size_t count, void *base)
{
    PyObject *key, *value;
    Py_ssize_t position = 0;
    if (check_dict(dict, what) < 0)
        return -1;
    while (PyDict_Next(dict, &position, &key, &value)) {
        const struct member *member = PyUnicode_Check(key) ? find(members, count, key) : NULL;
        if (member == NULL) {
            PyErr_Format(PyExc_ValueError, "%s: there is no %R", what, key);
            return -1;
        }
        if (value != Py_None && read_value(value, member, (char *)base + member->at) < 0)
            return -1;
    }
    return 0;
}

/* *out becomes dict[name], borrowed; NULL if it is missing or None. */
static int get(PyObject *dict, const char *name, PyObject **out)
{
    PyObject *key = PyUnicode_FromString(name);
    if (key == NULL)
        return -1;
    PyObject *value = PyDict_GetItemWithError(dict, key);
    Py_DECREF(key);
    *out = value == Py_None ? NULL : value;
    return value == NULL && PyErr_Occurred() ? -1 : 0;
}

static int read_channels(PyObject *value, const char *name, float *out, const float **place,
                         uint32_t *count)
{
    double numbers[STOKER_CHANNELS_MAX];
    size_t found;
    if (value == NULL)
        return 0;
    if (read_numbers(value, name, numbers, STOKER_CHANNELS_MAX, &found) < 0)
        return -1;
    if (*count != 0 && *count != found) {
        PyErr_SetString(PyExc_ValueError, "std: not as many values as mean");
        return -1;
    }
    for (size_t i = 0; i < found; i++)
        out[i] = (float)numbers[i];
    *place = found > 0 ? out : NULL;
    *count = (uint32_t)found;
    return 0;
}

static int read_fields(PyObject *dict, core_options *options)
{
    PyObject *key, *value;
    Py_ssize_t position = 0;
    if (dict == NULL)
        return 0;
    if (check_dict(dict, "fields") < 0)
        return -1;
    while (PyDict_Next(dict, &position, &key, &value)) {
        if (options->c.field_count == STOKER_FIELDS_MAX) {
            PyErr_Format(PyExc_ValueError, "fields: more than %d", STOKER_FIELDS_MAX);
            return -1;
        }
        stoker_field_options *field = &options->fields[options->c.field_count++];
        *field = (stoker_field_options)STOKER_FIELD_OPTIONS_INIT;
        if ((field->name = core_text(key, "fields", options->keep)) == NULL ||
            read_members(value, "fields", field_members, COUNT(field_members), field) < 0)
            return -1;
    }
    options->c.fields = options->fields;
    return 0;
}

static int read_weights(PyObject *value, core_options *options)
{
    uint64_t count;
    PyObject *bytes = core_numbers(value, "order: weights", &count);
    const int rc = bytes != NULL ? PyList_Append(options->keep, bytes) : -1;
    Py_XDECREF(bytes);
    if (rc < 0)
        return -1;
    options->order.weights = (const double *)(const void *)PyBytes_AsString(bytes);
    options->order.weight_count = count;
    return 0;
}

static int read_order(PyObject *dict, core_options *options, struct core_hooks *hooks)
{
    if (dict == NULL)
        return 0;
    options->order = (stoker_order)STOKER_ORDER_INIT;
    options->c.order = &options->order;
    if (read_members(dict, "order", order_members, COUNT(order_members), &options->order) < 0)
        return -1;
    PyObject *weights, *ids, *name;
    if (get(dict, "weights", &weights) < 0 || get(dict, "ids", &ids) < 0 ||
        get(dict, "name", &name) < 0 || (weights != NULL && read_weights(weights, options) < 0) ||
        (ids != NULL && core_set_order(hooks, ids, &options->order) < 0))
        return -1;
    if (name != NULL)
        options->order.name = core_text(name, "order: name", options->keep);
    return name == NULL || options->order.name != NULL ? 0 : -1;
}

static int read_resume(PyObject *value, core_options *options)
{
    if (value == NULL)
        return 0;
    PyObject *bytes = core_bytes(value, "resume");
    if (bytes == NULL)
        return -1;
    const int rc = PyList_Append(options->keep, bytes);
    options->c.resume = PyBytes_AsString(bytes);
    options->c.resume_size = (size_t)PyBytes_Size(bytes);
    Py_DECREF(bytes);
    return rc;
}

static int read_code(PyObject *dict, core_options *options, struct core_hooks *hooks)
{
    PyObject *row, *batch, *log;
    if (get(dict, "row_hook", &row) < 0 || get(dict, "batch_hook", &batch) < 0 ||
        get(dict, "on_log", &log) < 0 ||
        (row != NULL && core_set_row_hook(hooks, row, &options->c) < 0) ||
        (batch != NULL && core_set_batch_hook(hooks, batch, &options->c) < 0) ||
        (log != NULL && core_set_log(hooks, log, &options->c) < 0))
        return -1;
    return 0;
}

static int read_images(PyObject *dict, core_options *options)
{
    PyObject *transform, *blend, *mean, *std;
    if (get(dict, "transform", &transform) < 0 || get(dict, "blend", &blend) < 0 ||
        get(dict, "mean", &mean) < 0 || get(dict, "std", &std) < 0)
        return -1;
    if (transform != NULL && read_members(transform, "transform", transform_members,
                                          COUNT(transform_members), &options->c.transform) < 0)
        return -1;
    if (blend != NULL &&
        read_members(blend, "blend", blend_members, COUNT(blend_members), &options->c.blend) < 0)
        return -1;
    uint32_t *count = &options->c.mean_count;
    if (read_channels(mean, "mean", options->mean, &options->c.mean, count) < 0)
        return -1;
    return read_channels(std, "std", options->std, &options->c.std, count);
}

static int read_nested(PyObject *dict, core_options *options, struct core_hooks *hooks)
{
    PyObject *fields, *order, *resume;
    if (get(dict, "fields", &fields) < 0 || get(dict, "order", &order) < 0 ||
        get(dict, "resume", &resume) < 0 || read_images(dict, options) < 0 ||
        read_fields(fields, options) < 0 || read_order(order, options, hooks) < 0 ||
        read_resume(resume, options) < 0)
        return -1;
    return read_code(dict, options, hooks);
}

int core_read_options(PyObject *dict, core_options *options, struct core_hooks *hooks)
{
    options->c = (stoker_loader_options)STOKER_LOADER_OPTIONS_INIT;
    options->c.on_lent = STOKER_ON_LENT_GROW;
    options->keep = PyList_New(0);
    if (options->keep == NULL)
        return -1;
    if (dict == NULL || dict == Py_None)
        return 0;
    if (read_members(dict, "options", loader_members, COUNT(loader_members), &options->c) < 0)
        return -1;
    return read_nested(dict, options, hooks);
}
