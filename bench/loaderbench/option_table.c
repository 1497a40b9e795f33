/* option_table.c - the options of loaderbench: names, values, help. */
#include "bench/loaderbench/arguments.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(struct bench_arguments, field)
enum { SIDE_MAX = STOKER_TRANSFORM_SIDE_MAX };

/* ---- words ---------------------------------------------------------------------- */

static const struct cli_word auto_workers[] = { { "auto", STOKER_WORKERS_AUTO }, { NULL, 0 } };
static const struct cli_word pins[] = { { "on", STOKER_SWITCH_ON },
                                        { "off", STOKER_SWITCH_OFF },
                                        { "auto", STOKER_SWITCH_AUTO },
                                        { NULL, 0 } };
static const struct cli_word dtypes[] = {
    { "as-stored", STOKER_DTYPE_NONE },    { "uint8", STOKER_DTYPE_UINT8 },
    { "float32", STOKER_DTYPE_FLOAT32 },   { "float16", STOKER_DTYPE_FLOAT16 },
    { "bfloat16", STOKER_DTYPE_BFLOAT16 }, { NULL, 0 }
};
static const struct cli_word caches[] = {
    { "auto", STOKER_CACHE_AUTO },       { "none", STOKER_CACHE_NONE },
    { "encoded", STOKER_CACHE_ENCODED }, { "decoded", STOKER_CACHE_DECODED },
    { "device", STOKER_CACHE_DEVICE },   { NULL, 0 }
};
static const struct cli_word blockings[] = { { "on", 1 }, { "off", 0 }, { NULL, 0 } };
static const struct cli_word converts[] = { { "auto", STOKER_SWITCH_AUTO },
                                            { "device", STOKER_SWITCH_ON },
                                            { "host", STOKER_SWITCH_OFF },
                                            { NULL, 0 } };
static const struct cli_word decode_scales[] = { { "exact", STOKER_DECODE_SCALE_EXACT },
                                                 { "fast", STOKER_DECODE_SCALE_FAST },
                                                 { NULL, 0 } };
static const struct cli_word decodes[] = { { "cpu", STOKER_DECODE_CPU },
                                           { "device", STOKER_DECODE_DEVICE },
                                           { "auto", STOKER_DECODE_AUTO },
                                           { NULL, 0 } };
static const struct cli_word layouts[] = { { "nhwc", STOKER_LAYOUT_NHWC },
                                           { "nchw", STOKER_LAYOUT_NCHW },
                                           { NULL, 0 } };
static const struct cli_word devices[] = { { "cpu", STOKER_DEVICE_CPU },
                                           { "cuda", STOKER_DEVICE_CUDA },
                                           { "cuda-host", STOKER_DEVICE_CUDA_HOST },
                                           { NULL, 0 } };
static const struct cli_word readers[] = {
    { "uring", 0 }, { "pread", 0 }, { "null", 0 }, { NULL, 0 }
};
static const struct cli_word formats[] = { { "table", BENCH_FORMAT_TABLE },
                                           { "csv", BENCH_FORMAT_CSV },
                                           { "json", BENCH_FORMAT_JSON },
                                           { "html", BENCH_FORMAT_HTML },
                                           { NULL, 0 } };

/* ---- values of their own kind ----------------------------------------------------- */

/* "cpu", "cuda", "cuda:1", "cuda-host", "cuda-host:1"; `to` is the whole struct. */
static int read_device(const struct cli_option *row, const char *text, void *to, char *message)
{
    struct bench_arguments *arguments = to;
    const size_t length = strcspn(text, ":");
    for (const struct cli_word *known = row->words; known->text != NULL; known++) {
        uint64_t index = 0;
        if (strlen(known->text) != length || strncmp(text, known->text, length) != 0)
            continue;
        if (text[length] != '\0' && known->value == STOKER_DEVICE_CPU)
            break;
        if (text[length] != '\0' &&
            cli_count(text + length + 1, 0, STOKER_DEVICE_INDEX_MAX, &index, message) != STOKER_OK)
            return STOKER_EINVAL;
        arguments->device = (stoker_device)known->value;
        arguments->device_index = (uint32_t)index;
        return STOKER_OK;
    }
    return cli_not_one_of(text, strlen(text), "cpu, cuda, cuda:1, cuda-host", "gpu", "cuda",
                          message);
}

static int read_reader(const struct cli_option *row, const char *text, void *to, char *message)
{
    const stoker_reader *const known[] = { stoker_reader_uring(), stoker_reader_pread(),
                                           stoker_reader_null() };
    (void)row;
    for (size_t index = 0; index < sizeof(known) / sizeof(known[0]); index++)
        if (strcmp(text, known[index]->name) == 0) {
            *(const stoker_reader **)to = known[index];
            return STOKER_OK;
        }
    return cli_not_one_of(text, strlen(text), "uring, pread, null", NULL, NULL, message);
}

/* Numbers with commas, each at least row.min, into a struct bench_channels. */
static int read_channels(const struct cli_option *row, const char *text, void *to, char *message)
{
    struct bench_channels channels = { .count = 0 };
    for (const char *at = text; channels.count < BENCH_CHANNELS_MAX;) {
        char *end = NULL;
        float value = strtof(at, &end);
        if (end == at || !isfinite(value) || value < (float)row->min)
            return cli_complain(message, "'%.60s' has a value that is no number or out of range",
                                text);
        channels.values[channels.count++] = value;
        if (*end == '\0') {
            memcpy(to, &channels, sizeof(channels));
            return STOKER_OK;
        }
        if (*end != ',')
            return cli_complain(message, "'%.60s' is not a list of numbers with commas", text);
        at = end + 1;
    }
    return cli_complain(message, "more than %d channels", BENCH_CHANNELS_MAX);
}

/* One float in row.min .. row.max. */
static int read_float(const struct cli_option *row, const char *text, void *to, char *message)
{
    char *end = NULL;
    const float value = strtof(text, &end);
    if (end == text || *end != '\0' || !(value >= (float)row->min && value <= (float)row->max))
        return cli_complain(message, "'%.60s' is not a number in %g..%g", text, row->min, row->max);
    memcpy(to, &value, sizeof(value));
    return STOKER_OK;
}

/* "MIN,MAX", or "X", which is both; into two adjacent floats. */
static int read_floats(const struct cli_option *row, const char *text, void *to, char *message)
{
    char first[32] = "";
    float pair[2] = { 0, 0 };
    const size_t length = strcspn(text, ",");
    if (length < sizeof(first))
        memcpy(first, text, length);
    const char *second = text[length] == ',' ? text + length + 1 : first;
    if (read_float(row, first, &pair[0], message) != STOKER_OK ||
        read_float(row, second, &pair[1], message) != STOKER_OK || pair[0] > pair[1])
        return cli_complain(message, "'%.60s' is not MIN,MAX within %g..%g", text, row->min,
                            row->max);
    memcpy(to, pair, sizeof(pair));
    return STOKER_OK;
}

/* "240x320", or "32", which is 32x32. */
static int read_size(const struct cli_option *row, const char *text, void *to, char *message)
{
    char height[16] = "";
    const size_t digits = strcspn(text, "x");
    uint64_t sides[2] = { 0, 0 };
    (void)row;
    if (digits < sizeof(height))
        memcpy(height, text, digits);
    const char *width = text[digits] == 'x' ? text + digits + 1 : height;
    if (cli_count(height, 1, SIDE_MAX, &sides[0], message) != STOKER_OK ||
        cli_count(width, 1, SIDE_MAX, &sides[1], message) != STOKER_OK)
        return cli_complain(message, "'%.60s' is not a size such as 224 or 240x320", text);
    const stoker_size size = { .height = (uint32_t)sides[0], .width = (uint32_t)sides[1] };
    memcpy(to, &size, sizeof(size));
    return STOKER_OK;
}

/* ---- the table -------------------------------------------------------------------- */

static const struct cli_option rows[] = {
    { .help = "Swept (LIST: values with commas; numbers also as a range: 0,1,4-8)" },
    { "workers", 0, CLI_RANGES, AT(workers), 0, STOKER_WORKERS_MAX, "LIST", auto_workers,
      .help = "threads; 0 = the caller's, auto = tuned",
      .unset = "0,1,2,4,... up to the CPUs,auto" },
    { "pin-memory", 0, CLI_WORDS, AT(pins), 0, 0, "LIST", pins, .help = "on, off, auto",
      .unset = "off; on a GPU on,off" },
    { "batch-size", 0, CLI_RANGES, AT(batch_sizes), 1, STOKER_BATCH_MAX, "LIST", NULL,
      .help = "samples per batch, 1..65536" },
    { "dtype", 0, CLI_WORDS, AT(dtypes), 0, 0, "LIST", dtypes,
      .help = "as-stored, uint8, float32, float16, bfloat16" },
    { "cache", 0, CLI_WORDS, AT(caches), 0, 0, "LIST", caches,
      .help = "auto, none, encoded, decoded; on a GPU also device" },
    { "non-blocking", 0, CLI_WORDS, AT(blockings), 0, 0, "LIST", blockings,
      .help = "on a GPU: on = copied ahead, off = next waits for the copy", .unset = "on,off" },
    { "convert", 0, CLI_WORDS, AT(converts), 0, 0, "LIST", converts,
      .help = "on a GPU: auto, device, host: where rows get their type", .unset = "auto,host" },

    { .help = "The same in every cell" },
    { "device", 0, CLI_OTHER, 0, 0, 0, "NAME", devices,
      .help = "cpu, cuda, cuda:N, or cuda-host: page-locked for a GPU, and the consumer copies it",
      .unset = "cpu", .read = read_device },
    { "decode", 0, CLI_WORD, AT(decode), 0, 0, "NAME", decodes,
      .help =
          "cpu; on a GPU also device, or auto: if it can. Of JPEG files, by nvImageCodec; pixels "
          "differ by a few levels, so --verify is off" },
    { "layout", 0, CLI_WORD, AT(layout), 0, 0, "NAME", layouts,
      .help = "nhwc, nchw: of the images delivered" },
    { "mean", 0, CLI_OTHER, AT(mean), -1e30, 0, "LIST", NULL,
      .help = "subtracted per channel; goes with --std", .unset = "mnist: 0.1307, else none",
      .read = read_channels },
    { "std", 0, CLI_OTHER, AT(std), 1e-30, 0, "LIST", NULL, .help = "divides per channel",
      .unset = "mnist: 0.3081, else none", .read = read_channels },
    { "resize", 0, CLI_OTHER, AT(transform.resize), 0, 0, "SIZE", NULL,
      .help = "of every image, 224 or 240x320", .unset = "as they are", .read = read_size },
    { "resize-shorter", 0, CLI_COUNT32, AT(transform.resize_shorter), 1, SIDE_MAX, "N", NULL,
      .help = "the shorter side, the longer in proportion; a crop must follow" },
    { "random-resized-crop", 0, CLI_OTHER, AT(transform.random_resized_crop), 0, 0, "SIZE", NULL,
      .help = "a random rectangle, resized to SIZE", .read = read_size },
    { "center-crop", 0, CLI_OTHER, AT(transform.center_crop), 0, 0, "SIZE", NULL,
      .help = "the middle", .read = read_size },
    { "random-crop", 0, CLI_OTHER, AT(transform.random_crop), 0, 0, "SIZE", NULL,
      .help = "a random place, --pad pixels around the image included", .read = read_size },
    { "pad", 0, CLI_COUNT32, AT(transform.pad), 0, SIDE_MAX, "N", NULL,
      .help = "pixels of fill around the image" },
    { "flip", 0, CLI_SWITCH, AT(transform.flip), 0, 0, "on|off", NULL,
      .help = "every other image at random, left to right" },
    { "rotate", 0, CLI_OTHER, AT(transform.rotate_min), -360, 360, "MIN,MAX", NULL,
      .help = "by a random angle, degrees", .read = read_floats },
    { "brightness", 0, CLI_OTHER, AT(transform.brightness), 0, 100, "X", NULL,
      .help = "times a random factor in 1-X..1+X", .read = read_float },
    { "contrast", 0, CLI_OTHER, AT(transform.contrast), 0, 100, "X", NULL, .help = "the same",
      .read = read_float },
    { "saturation", 0, CLI_OTHER, AT(transform.saturation), 0, 100, "X", NULL, .help = "the same",
      .read = read_float },
    { "hue", 0, CLI_OTHER, AT(transform.hue), 0, 0.5, "X", NULL,
      .help = "shifted at random by -X..X of the circle, X at most 0.5", .read = read_float },
    { "blur", 0, CLI_COUNT32, AT(transform.blur), 0, STOKER_BLUR_MAX, "N", NULL,
      .help = "a Gaussian of N x N pixels, N odd" },
    { "sigma", 0, CLI_OTHER, AT(transform.sigma_min), 0.01, 64, "MIN,MAX", NULL,
      .help = "its random deviation, pixels", .unset = "0.1,2", .read = read_floats },
    { "cutout", 0, CLI_COUNT32, AT(transform.cutout), 0, SIDE_MAX, "N", NULL,
      .help = "fill a square of N pixels; on a GPU no ceilings are measured with any of these" },
    { "decode-scale", 0, CLI_WORD, AT(transform.decode_scale), 0, 0, "NAME", decode_scales,
      .help = "exact, fast: a JPEG that shrinks may be decoded at 1/8, 2/8 or 4/8 of its size" },
    { "reader", 0, CLI_OTHER, AT(reader), 0, 0, "NAME", readers, .help = "uring, pread, null",
      .unset = "the loader's choice", .read = read_reader },
    { "read-depth", 0, CLI_COUNT32, AT(read_depth), 1, STOKER_READ_DEPTH_MAX, "N", NULL,
      .help = "reads in flight per worker, 1..1024", .unset = "the loader's choice" },
    { "prefetch", 0, CLI_COUNT32, AT(prefetch_batches), 2, STOKER_PREFETCH_MAX, "N", NULL,
      .help = "slots in the ring, 2..64", .unset = "the loader's choice" },
    { "shuffle", 0, CLI_SWITCH, AT(shuffle), 0, 0, "on|off", NULL,
      .help = "a new order each epoch" },
    { "seed", 0, CLI_COUNT64, AT(seed), 0, 0x1p64, "N", NULL, .help = "of the order" },
    { "step-us", 0, CLI_COUNT32, AT(step_us), 0, 10000000, "N", NULL,
      .help = "the consumer sleeps N microseconds per batch; on a GPU it runs a kernel that long" },

    { .help = "Measuring" },
    { "repeats", 0, CLI_COUNT32, AT(repeats), 1, BENCH_REPEATS_MAX, "N", NULL,
      .help = "of every cell and its ceilings, in turn",
      .unset = "3 to 21: as many as --budget allows" },
    { "budget", 0, CLI_REAL, AT(budget_s), 0.1, 86400, "S", NULL,
      .help = "seconds that the sweep should take; at least 3 repeats are made" },
    { "epochs", 0, CLI_COUNT32, AT(epochs), 1, 1000000, "N", NULL,
      .help = "at least N epochs per repeat",
      .unset = "1, or a part of one if that takes more than ten times --seconds" },
    { "seconds", 0, CLI_REAL, AT(seconds), 0.001, 3600, "S", NULL,
      .help = "at least S seconds per repeat" },
    { "verify", 0, CLI_SWITCH, AT(verify), 0, 0, "on|off", NULL,
      .help = "check every sample of one untimed epoch per cell" },
    { "ceilings", 0, CLI_SWITCH, AT(ceilings), 0, 0, "on|off", NULL,
      .help = "measure what this machine could do at best",
      .unset = "on for --wide, --html and other formats than the table" },
    { "headspace", 0, CLI_FLAG, AT(headspace), 0, 0, NULL, NULL,
      .help = "also replay cached batches: the most a consumer could see; on a GPU the kernels "
              "of --step-us alone" },
    { "share-cache", 0, CLI_WORD, AT(share_cache), 0, 0, "on|off|auto", pins,
      .help =
          "of several ranks: one cache for those of a node; first epochs are measured without" },
    { "peer-timeout", 0, CLI_COUNT32, AT(peer_timeout_s), 1, 86400, "SECONDS", NULL,
      .help = "of several ranks: end if another one does not come for so long" },
    { "cold", 0, CLI_FLAG, AT(cold), 0, 0, NULL, NULL,
      .help = "drop the file from the page cache before each repeat" },
    { "open", 0, CLI_ACTION, AT(action), BENCH_OPEN, 0, NULL, NULL,
      .help = "only open the data set and read its first sample, --repeats times: how long that "
              "(or the refusal) takes, and how much memory (JSON)" },
    { "like-pytorch", 0, CLI_ACTION, AT(action), BENCH_LIKE_PYTORCH, 0, NULL, NULL,
      .help = "the well-known num_workers snippet instead of the sweep, and the effect of pinning "
              "on it" },
    { "beside", 0, CLI_TEXT, AT(beside), 0, 0, "FILE", NULL,
      .help = "with --like-pytorch: the same lines from another loader, printed beside ours" },

    { .help = "Output" },
    { "format", 0, CLI_WORD, AT(format), 0, 0, "NAME", formats,
      .help =
          "table, csv, json (one object per line), html (a page with charts, which also compares "
          "two results)" },
    { "wide", 0, CLI_FLAG, AT(wide), 0, 0, NULL, NULL,
      .help = "the table with all columns (120 characters) and the ceilings" },
    { "html", 0, CLI_TEXT, AT(html), 0, 0, "FILE", NULL,
      .help = "also write the page with charts" },
    { "strict", 0, CLI_FLAG, AT(strict), 0, 0, NULL, NULL,
      .help = "exit with 3 if the machine is too busy for usable figures" },
    { "output", 'o', CLI_TEXT, AT(output), 0, 0, "FILE", NULL,
      .help = "write FILE, complete or not at all; write to a device or FIFO as it is",
      .unset = "standard output" },
    { "trace", 0, CLI_TEXT, AT(trace), 0, 0, "FILE", NULL,
      .help = "also run two untimed epochs of each cell and write what every thread did, as JSON "
              "for ui.perfetto.dev and chrome://tracing" },
    { "quiet", 'q', CLI_FLAG, AT(quiet), 0, 0, NULL, NULL,
      .help = "no progress on standard error" },
    { "list", 0, CLI_STOP, AT(action), BENCH_LIST, 0, NULL, NULL,
      .help = "name what can be measured, and stop" },
    CLI_HELP_ROW(AT(help)),
    { "version", 0, CLI_STOP, AT(action), BENCH_VERSION, 0, NULL, NULL,
      .help = "the version of the tool and of the library" },
};

static_assert(sizeof(rows) / sizeof(rows[0]) <= CLI_OPTIONS_MAX, "the rows that a line has");

struct cli_table bench_option_table(void)
{
    return (struct cli_table){ .rows = rows, .count = sizeof(rows) / sizeof(rows[0]) };
}
