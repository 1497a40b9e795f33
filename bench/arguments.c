/* arguments.c - from argv to what the user wants.
 *
 * getopt_long splits the line; each option has one small function, found through
 * one table, so that an option, its letter and its reader stand on one line.
 */
#include "bench/arguments.h"

#include "bench/cli/option_fault.h"
#include "kernels/transform/transform.h"
#include "loader/base/nearest.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef int take_fn(struct bench_arguments *arguments, const char *text, char *message);

static const char *const format_names[BENCH_FORMAT_COUNT] = { "table", "csv", "json", "html" };

__attribute__((format(printf, 2, 3))) static int complain(char *message, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(message, BENCH_MESSAGE_MAX, format, list);
    va_end(list);
    return STOKER_EINVAL;
}

static int take_count(const char *text, uint64_t min, uint64_t max, uint64_t *out, char *message)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    bool digits = text[0] >= '0' && text[0] <= '9';
    if (!digits || errno != 0 || *end != '\0' || value < min || value > max)
        return complain(message, "'%.60s' is not a whole number from %llu to %llu", text,
                        (unsigned long long)min, (unsigned long long)max);
    *out = value;
    return STOKER_OK;
}

static int take_count32(const char *text, uint32_t min, uint32_t max, uint32_t *out, char *message)
{
    uint64_t value = 0;
    int rc = take_count(text, min, max, &value, message);
    if (rc == STOKER_OK)
        *out = (uint32_t)value;
    return rc;
}

static int take_switch(const char *text, bool *out, char *message)
{
    if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
        return complain(message, "'%.60s' is neither on nor off", text);
    *out = strcmp(text, "on") == 0;
    return STOKER_OK;
}

/* Not one of the known words, which are listed with ", " between them: which is near? */
static int complain_word(char *message, const char *word, size_t length, const char *known)
{
    char list[200];
    char question[STK_NEAREST_BYTES];
    char *rest = list;
    struct stk_nearest nearest = stk_nearest_to(word, length);
    snprintf(list, sizeof(list), "%s", known);
    for (char *at; (at = strsep(&rest, ",")) != NULL;) {
        at += strspn(at, " ");
        stk_nearest_try(&nearest, at, at);
        if (strcmp(at, "cuda") == 0)
            stk_nearest_try(&nearest, "gpu", at);
    }
    return complain(message, "'%.*s' is not one of %s%s", length < 60 ? (int)length : 60, word,
                    known, stk_nearest_question(question, &nearest, ""));
}

/* Words separated by commas, each looked up by `find`, which returns false on a stranger. */
static int take_words(const char *text, bool (*find)(const char *word, int32_t *value),
                      struct bench_list *out, const char *known, char *message)
{
    struct bench_list list = { .count = 0 };
    for (const char *at = text;; at++) {
        char word[32] = "";
        size_t length = strcspn(at, ",");
        if (length < sizeof(word))
            memcpy(word, at, length);
        if (list.count == BENCH_LIST_MAX)
            return complain(message, "the list has more than %d values", BENCH_LIST_MAX);
        if (!find(word, &list.values[list.count]))
            return complain_word(message, at, length, known);
        list.count++;
        at += length;
        if (*at == '\0')
            break;
    }
    *out = list;
    return STOKER_OK;
}

static bool find_pin(const char *word, int32_t *value)
{
    static const char *const names[] = { "auto", "on", "off" }; /* in the order of stoker_switch */
    for (int32_t index = 0; index < 3; index++)
        if (strcmp(word, names[index]) == 0) {
            *value = index;
            return true;
        }
    return false;
}

static bool find_cache(const char *word, int32_t *value)
{
    for (int32_t cache = STOKER_CACHE_AUTO; cache <= STOKER_CACHE_DEVICE; cache++)
        if (strcmp(word, stoker_cache_name((stoker_cache)cache)) == 0) {
            *value = cache;
            return true;
        }
    return false;
}

static bool find_dtype(const char *word, int32_t *value)
{
    static const stoker_dtype known[] = { STOKER_UINT8, STOKER_FLOAT32, STOKER_FLOAT16,
                                          STOKER_BFLOAT16 };
    if (strcmp(word, "as-stored") == 0) {
        *value = STOKER_DTYPE_NONE;
        return true;
    }
    for (size_t index = 0; index < sizeof(known) / sizeof(known[0]); index++)
        if (strcmp(word, stoker_dtype_name(known[index])) == 0) {
            *value = (int32_t)known[index];
            return true;
        }
    return false;
}

static int take_workers(struct bench_arguments *arguments, const char *text, char *message)
{
    return bench_list_parse(&arguments->workers, text, 0, STOKER_WORKERS_MAX, true, message);
}

static int take_pins(struct bench_arguments *arguments, const char *text, char *message)
{
    arguments->pins_given = true;
    return take_words(text, find_pin, &arguments->pins, "on, off, auto", message);
}

static int take_batch_sizes(struct bench_arguments *arguments, const char *text, char *message)
{
    return bench_list_parse(&arguments->batch_sizes, text, 1, STOKER_BATCH_MAX, false, message);
}

static int take_dtypes(struct bench_arguments *arguments, const char *text, char *message)
{
    return take_words(text, find_dtype, &arguments->dtypes,
                      "as-stored, uint8, float32, float16, bfloat16", message);
}

static int take_caches(struct bench_arguments *arguments, const char *text, char *message)
{
    return take_words(text, find_cache, &arguments->caches, "auto, none, encoded, decoded, device",
                      message);
}

/* "cpu", "cuda", "cuda:1", "cuda-host", "cuda-host:1". */
static int take_device(struct bench_arguments *arguments, const char *text, char *message)
{
    static const struct {
        const char *name;
        stoker_device device;
    } known[] = { { "cpu", STOKER_DEVICE_CPU },
                  { "cuda", STOKER_DEVICE_CUDA },
                  { "cuda-host", STOKER_DEVICE_CUDA_HOST } };
    const size_t length = strcspn(text, ":");
    for (size_t index = 0; index < sizeof(known) / sizeof(known[0]); index++) {
        if (strlen(known[index].name) != length || strncmp(text, known[index].name, length) != 0)
            continue;
        arguments->device = known[index].device;
        arguments->device_index = 0;
        if (text[length] == '\0')
            return STOKER_OK;
        if (known[index].device != STOKER_DEVICE_CPU)
            return take_count32(text + length + 1, 0, STOKER_DEVICE_INDEX_MAX,
                                &arguments->device_index, message);
    }
    return complain_word(message, text, length, "cpu, cuda, cuda:1, cuda-host");
}

static bool find_blocking(const char *word, int32_t *value)
{
    *value = strcmp(word, "on") == 0;
    return *value == 1 || strcmp(word, "off") == 0;
}

static int take_blockings(struct bench_arguments *arguments, const char *text, char *message)
{
    return take_words(text, find_blocking, &arguments->blockings, "on, off", message);
}

static bool find_place(const char *word, int32_t *value)
{
    static const char *const names[] = { "auto", "device", "host" }; /* as stoker_switch */
    for (int32_t index = 0; index < 3; index++)
        if (strcmp(word, names[index]) == 0) {
            *value = index;
            return true;
        }
    return false;
}

static int take_converts(struct bench_arguments *arguments, const char *text, char *message)
{
    return take_words(text, find_place, &arguments->converts, "auto, device, host", message);
}

static int take_beside(struct bench_arguments *arguments, const char *text, char *message)
{
    if (text[0] == '\0')
        return complain(message, "the name of the file is empty");
    arguments->beside = text;
    return STOKER_OK;
}

static int take_reader(struct bench_arguments *arguments, const char *text, char *message)
{
    const stoker_reader *const known[] = { &stoker_reader_uring, &stoker_reader_pread,
                                           &stoker_reader_null };
    for (size_t index = 0; index < sizeof(known) / sizeof(known[0]); index++)
        if (strcmp(text, known[index]->name) == 0) {
            arguments->reader = known[index];
            return STOKER_OK;
        }
    return complain_word(message, text, strlen(text), "uring, pread, null");
}

static int take_floats(const char *text, float min, float *out, uint32_t *count, char *message)
{
    const char *at = text;
    for (*count = 0; *count < BENCH_CHANNELS_MAX;) {
        char *end = NULL;
        float value = strtof(at, &end);
        if (end == at || !isfinite(value) || value < min)
            return complain(message, "'%.60s' holds a value that is no number or out of range",
                            text);
        out[(*count)++] = value;
        if (*end == '\0')
            return STOKER_OK;
        if (*end != ',')
            return complain(message, "'%.60s' is not a list of numbers with commas", text);
        at = end + 1;
    }
    return complain(message, "more than %d channels", BENCH_CHANNELS_MAX);
}

static int take_mean(struct bench_arguments *arguments, const char *text, char *message)
{
    return take_floats(text, -1e30f, arguments->mean, &arguments->mean_count, message);
}

static int take_std(struct bench_arguments *arguments, const char *text, char *message)
{
    return take_floats(text, 1e-30f, arguments->std, &arguments->std_count, message);
}

static int take_layout(struct bench_arguments *arguments, const char *text, char *message)
{
    if (strcmp(text, "nhwc") != 0 && strcmp(text, "nchw") != 0)
        return complain(message, "'%.60s' is not one of nhwc, nchw", text);
    arguments->layout = strcmp(text, "nchw") == 0 ? STOKER_NCHW : STOKER_NHWC;
    return STOKER_OK;
}

static int take_read_depth(struct bench_arguments *arguments, const char *text, char *message)
{
    return take_count32(text, 1, STOKER_READ_DEPTH_MAX, &arguments->read_depth, message);
}

static int take_prefetch(struct bench_arguments *arguments, const char *text, char *message)
{
    return take_count32(text, 2, STOKER_PREFETCH_MAX, &arguments->prefetch_batches, message);
}

static int take_shuffle(struct bench_arguments *arguments, const char *text, char *message)
{
    return take_switch(text, &arguments->shuffle, message);
}

static int take_seed(struct bench_arguments *arguments, const char *text, char *message)
{
    return take_count(text, 0, UINT64_MAX, &arguments->seed, message);
}

static int take_repeats(struct bench_arguments *arguments, const char *text, char *message)
{
    return take_count32(text, 1, BENCH_REPEATS_MAX, &arguments->repeats, message);
}

static int take_epochs(struct bench_arguments *arguments, const char *text, char *message)
{
    return take_count32(text, 1, 1000000, &arguments->epochs, message);
}

static int take_seconds(struct bench_arguments *arguments, const char *text, char *message)
{
    char *end = NULL;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= 0.001) || value > 3600)
        return complain(message, "'%.60s' is not a number of seconds from 0.001 to 3600", text);
    arguments->seconds = value;
    return STOKER_OK;
}

static int take_step(struct bench_arguments *arguments, const char *text, char *message)
{
    return take_count32(text, 0, 10000000, &arguments->step_us, message);
}

static int take_verify(struct bench_arguments *arguments, const char *text, char *message)
{
    return take_switch(text, &arguments->verify, message);
}

static int take_ceilings(struct bench_arguments *arguments, const char *text, char *message)
{
    return take_switch(text, &arguments->ceilings, message);
}

static int take_format(struct bench_arguments *arguments, const char *text, char *message)
{
    for (int format = 0; format < BENCH_FORMAT_COUNT; format++)
        if (strcmp(text, format_names[format]) == 0) {
            arguments->format = (enum bench_format)format;
            return STOKER_OK;
        }
    return complain_word(message, text, strlen(text), "table, csv, json, html");
}

static int take_output(struct bench_arguments *arguments, const char *text, char *message)
{
    if (text[0] == '\0')
        return complain(message, "the name of the output file is empty");
    arguments->output = text;
    return STOKER_OK;
}

static int take_trace(struct bench_arguments *arguments, const char *text, char *message)
{
    if (text[0] == '\0')
        return complain(message, "the name of the trace is empty");
    arguments->trace = text;
    return STOKER_OK;
}

static int take_headspace(struct bench_arguments *arguments, const char *text, char *message)
{
    (void)text;
    (void)message;
    arguments->headspace = true;
    return STOKER_OK;
}

static int take_cold(struct bench_arguments *arguments, const char *text, char *message)
{
    (void)text;
    (void)message;
    arguments->cold = true;
    return STOKER_OK;
}

static int take_quiet(struct bench_arguments *arguments, const char *text, char *message)
{
    (void)text;
    (void)message;
    arguments->quiet = true;
    return STOKER_OK;
}

static int take_wide(struct bench_arguments *arguments, const char *text, char *message)
{
    (void)text;
    (void)message;
    arguments->wide = true;
    return STOKER_OK;
}

static int take_like_pytorch(struct bench_arguments *arguments, const char *text, char *message)
{
    (void)text;
    (void)message;
    arguments->action = BENCH_LIKE_PYTORCH;
    return STOKER_OK;
}

static int take_open(struct bench_arguments *arguments, const char *text, char *message)
{
    (void)text;
    (void)message;
    arguments->action = BENCH_OPEN;
    return STOKER_OK;
}

static int take_compare(struct bench_arguments *arguments, const char *text, char *message)
{
    (void)text;
    (void)message;
    arguments->action = BENCH_COMPARE;
    return STOKER_OK;
}

static int take_list(struct bench_arguments *arguments, const char *text, char *message)
{
    (void)text;
    (void)message;
    arguments->action = BENCH_LIST;
    return STOKER_OK;
}

static int take_help(struct bench_arguments *arguments, const char *text, char *message)
{
    (void)text;
    (void)message;
    arguments->action = BENCH_HELP;
    return STOKER_OK;
}

static int take_version(struct bench_arguments *arguments, const char *text, char *message)
{
    (void)text;
    (void)message;
    arguments->action = BENCH_VERSION;
    return STOKER_OK;
}

/* "224x224", "32", which is 32x32. */
static int take_size(const char *text, stoker_size *out, char *message)
{
    char height[16] = "";
    const size_t digits = strcspn(text, "x");
    stoker_size size;
    if (digits < sizeof(height))
        memcpy(height, text, digits);
    const char *width = text[digits] == 'x' ? text + digits + 1 : height;
    if (take_count32(height, 1, STOKER_TRANSFORM_SIDE_MAX, &size.height, message) != STOKER_OK ||
        take_count32(width, 1, STOKER_TRANSFORM_SIDE_MAX, &size.width, message) != STOKER_OK)
        return complain(message, "'%.60s' is no size such as 224 or 240x320", text);
    *out = size;
    return STOKER_OK;
}

static int take_resize(struct bench_arguments *arguments, const char *text, char *message)
{
    return take_size(text, &arguments->transform.resize, message);
}

static int take_resize_shorter(struct bench_arguments *arguments, const char *text, char *message)
{
    return take_count32(text, 1, STOKER_TRANSFORM_SIDE_MAX, &arguments->transform.resize_shorter,
                        message);
}

static int take_random_resized_crop(struct bench_arguments *arguments, const char *text,
                                    char *message)
{
    return take_size(text, &arguments->transform.random_resized_crop, message);
}

static int take_centre_crop(struct bench_arguments *arguments, const char *text, char *message)
{
    return take_size(text, &arguments->transform.centre_crop, message);
}

static int take_random_crop(struct bench_arguments *arguments, const char *text, char *message)
{
    return take_size(text, &arguments->transform.random_crop, message);
}

static int take_pad(struct bench_arguments *arguments, const char *text, char *message)
{
    return take_count32(text, 0, STOKER_TRANSFORM_SIDE_MAX, &arguments->transform.pad, message);
}

static int take_flip(struct bench_arguments *arguments, const char *text, char *message)
{
    return take_switch(text, &arguments->transform.flip, message);
}

static int take_cutout(struct bench_arguments *arguments, const char *text, char *message)
{
    return take_count32(text, 0, STOKER_TRANSFORM_SIDE_MAX, &arguments->transform.cutout, message);
}

static const struct {
    const char *name;
    int argument; /* required_argument or no_argument */
    take_fn *take;
} options[] = {
    { "workers", required_argument, take_workers },
    { "pin-memory", required_argument, take_pins },
    { "batch-size", required_argument, take_batch_sizes },
    { "dtype", required_argument, take_dtypes },
    { "cache", required_argument, take_caches },
    { "device", required_argument, take_device },
    { "non-blocking", required_argument, take_blockings },
    { "convert", required_argument, take_converts },
    { "layout", required_argument, take_layout },
    { "mean", required_argument, take_mean },
    { "std", required_argument, take_std },
    { "resize", required_argument, take_resize },
    { "resize-shorter", required_argument, take_resize_shorter },
    { "random-resized-crop", required_argument, take_random_resized_crop },
    { "centre-crop", required_argument, take_centre_crop },
    { "random-crop", required_argument, take_random_crop },
    { "pad", required_argument, take_pad },
    { "flip", required_argument, take_flip },
    { "cutout", required_argument, take_cutout },
    { "reader", required_argument, take_reader },
    { "read-depth", required_argument, take_read_depth },
    { "prefetch", required_argument, take_prefetch },
    { "shuffle", required_argument, take_shuffle },
    { "seed", required_argument, take_seed },
    { "repeats", required_argument, take_repeats },
    { "epochs", required_argument, take_epochs },
    { "seconds", required_argument, take_seconds },
    { "verify", required_argument, take_verify },
    { "ceilings", required_argument, take_ceilings },
    { "headspace", no_argument, take_headspace },
    { "step-us", required_argument, take_step },
    { "cold", no_argument, take_cold },
    { "like-pytorch", no_argument, take_like_pytorch },
    { "beside", required_argument, take_beside },
    { "open", no_argument, take_open },
    { "compare", no_argument, take_compare },
    { "format", required_argument, take_format },
    { "output", required_argument, take_output },
    { "trace", required_argument, take_trace },
    { "wide", no_argument, take_wide },
    { "quiet", no_argument, take_quiet },
    { "list", no_argument, take_list },
    { "help", no_argument, take_help },
    { "version", no_argument, take_version },
};

enum { OPTION_COUNT = sizeof(options) / sizeof(options[0]), LONG_BASE = 256 };

static void set_defaults(struct bench_arguments *arguments, uint32_t cpus)
{
    *arguments = (struct bench_arguments){ .action = BENCH_SWEEP,
                                           .shuffle = true,
                                           .verify = true,
                                           .ceilings = true,
                                           .repeats = 21,
                                           .seconds = 0.06,
                                           .device = STOKER_DEVICE_CPU,
                                           .format = BENCH_FORMAT_TABLE };
    bench_list_default_workers(&arguments->workers, cpus);
    arguments->pins = (struct bench_list){ .values = { STOKER_ON, STOKER_OFF }, .count = 2 };
    arguments->batch_sizes = (struct bench_list){ .values = { 64, 512 }, .count = 2 };
    arguments->dtypes = (struct bench_list){ .values = { STOKER_FLOAT32 }, .count = 1 };
    arguments->caches = (struct bench_list){ .values = { STOKER_CACHE_AUTO }, .count = 1 };
}

static int take_option(struct bench_arguments *arguments, int found, char *message)
{
    static const struct {
        char letter;
        take_fn *take;
    } letters[] = { { 'o', take_output }, { 'h', take_help }, { 'q', take_quiet } };

    char wrong[BENCH_MESSAGE_MAX] = "";
    if (found >= LONG_BASE) {
        int rc = options[found - LONG_BASE].take(arguments, optarg, wrong);
        return rc == STOKER_OK
                   ? rc
                   : complain(message, "--%s: %.200s", options[found - LONG_BASE].name, wrong);
    }
    for (size_t index = 0; index < sizeof(letters) / sizeof(letters[0]); index++)
        if (letters[index].letter == found) {
            int rc = letters[index].take(arguments, optarg, wrong);
            return rc == STOKER_OK ? rc : complain(message, "-%c: %.200s", found, wrong);
        }
    return complain(message, "unknown option");
}

/* What only a GPU knows is swept there alone; elsewhere there is one value of each. */
static int set_gpu_defaults(struct bench_arguments *arguments, char *message)
{
    const bool copies = arguments->device == STOKER_DEVICE_CUDA;
    const bool given = arguments->blockings.count > 0 || arguments->converts.count > 0;
    if (given && !copies)
        return complain(message, "--non-blocking and --convert tell how batches get to a GPU: they "
                                 "go with --device cuda");
    if (arguments->blockings.count == 0)
        arguments->blockings = (struct bench_list){ .values = { 1, 0 }, .count = copies ? 2 : 1 };
    if (arguments->converts.count == 0)
        arguments->converts =
            (struct bench_list){ .values = { STOKER_AUTO, STOKER_OFF }, .count = copies ? 2 : 1 };
    for (uint32_t index = 0; !copies && index < arguments->caches.count; index++)
        if (arguments->caches.values[index] == STOKER_CACHE_DEVICE)
            return complain(message,
                            "--cache device keeps rows on a GPU: it goes with --device cuda");
    if (arguments->headspace && arguments->device != STOKER_DEVICE_CPU && arguments->step_us == 0)
        return complain(message, "on a GPU --headspace is the step alone: it goes with --step-us");
    return STOKER_OK;
}

static int check_together(const struct bench_arguments *arguments, char *message)
{
    bool needs_data = arguments->action == BENCH_SWEEP || arguments->action == BENCH_LIKE_PYTORCH ||
                      arguments->action == BENCH_OPEN;
    if (needs_data && arguments->dataset == NULL)
        return complain(message, "no data set is named; try 'loaderbench synth:digits'");
    if (arguments->format != BENCH_FORMAT_TABLE && needs_data && arguments->action != BENCH_SWEEP)
        return complain(message, "--format is of the sweep's rows: --open prints JSON, and "
                                 "--like-pytorch its own lines");
    if (arguments->trace != NULL && arguments->output != NULL &&
        strcmp(arguments->trace, arguments->output) == 0)
        return complain(message, "--output and --trace name the same file");
    if (arguments->trace != NULL && needs_data && arguments->action != BENCH_SWEEP)
        return complain(message, "--trace records cells: it goes with the sweep only");
    if (arguments->beside != NULL && arguments->action != BENCH_LIKE_PYTORCH)
        return complain(message, "--beside goes with --like-pytorch only");
    if (arguments->mean_count != arguments->std_count)
        return complain(message, "--mean and --std must be given together, with as many values");
    if (arguments->cold)
        for (uint32_t index = 0; index < arguments->caches.count; index++)
            if (arguments->caches.values[index] != STOKER_CACHE_NONE)
                return complain(message, "--cold measures reading: it goes with --cache none only");
    return STOKER_OK;
}

static int take_compared(struct bench_arguments *arguments, int argc, char *const *argv,
                         char *message)
{
    if (argc - optind != 2)
        return complain(message, "--compare takes two files: loaderbench --compare OLD NEW");
    arguments->compared[0] = argv[optind++];
    arguments->compared[1] = argv[optind++];
    return STOKER_OK;
}

int bench_arguments_parse(struct bench_arguments *out, int argc, char *const *argv, uint32_t cpus,
                          char message[BENCH_MESSAGE_MAX])
{
    struct option long_options[OPTION_COUNT + 1] = { 0 };
    for (int index = 0; index < OPTION_COUNT; index++)
        long_options[index] = (struct option){ options[index].name, options[index].argument, NULL,
                                               LONG_BASE + index };

    set_defaults(out, cpus);
    bool caches_default = true;
    optind = 0; /* start anew: tests parse many lines */
    opterr = 0;
    for (int found; (found = getopt_long(argc, argv, ":o:hq", long_options, NULL)) != -1;) {
        if (found == '?' || found == ':') {
            cli_option_fault(message, BENCH_MESSAGE_MAX, found, argv, long_options);
            return STOKER_EINVAL;
        }
        int rc = take_option(out, found, message);
        if (rc != STOKER_OK)
            return rc;
        if (found >= LONG_BASE && options[found - LONG_BASE].take == take_caches)
            caches_default = false;
        if (out->action == BENCH_HELP || out->action == BENCH_VERSION)
            return STOKER_OK; /* whatever else stands on the line */
    }
    if (stk_transform_wanted(&out->transform) && out->device != STOKER_DEVICE_CPU)
        out->ceilings =
            false; /* the GPU does its part of the transforms: no bare loop is divided so */
    if (out->cold && caches_default)
        out->caches.values[0] = STOKER_CACHE_NONE;
    if (out->action == BENCH_COMPARE && take_compared(out, argc, argv, message) != STOKER_OK)
        return STOKER_EINVAL;
    if (optind < argc)
        out->dataset = argv[optind++];
    if (optind < argc)
        return complain(message, "more than one data set: '%.80s'", argv[optind]);
    int rc = set_gpu_defaults(out, message);
    return rc == STOKER_OK ? check_together(out, message) : rc;
}

void bench_arguments_default_mean(struct bench_arguments *arguments, const char *dataset_name)
{
    if (arguments->mean_count != 0 || strcmp(dataset_name, "mnist") != 0)
        return;
    arguments->mean[0] = 0.1307f;
    arguments->std[0] = 0.3081f;
    arguments->mean_count = 1;
    arguments->std_count = 1;
}
