/* settings.h - 36 settings of a loader that must not change a byte of any batch.
 *
 * Any two values of any two dimensions meet in one of them: with setting = w + 4 a + 12 b, the
 * digits w < 4, a < 3 and b < 3 and sums of them are the levels of ten dimensions.
 * test_determinism.c checks that.
 *
 * A cache is shared if it can be: samples lie in files, the launcher's variables name several
 * processes, and the reader is not given, but named by $STOKER_READER.
 */
#ifndef STK_TEST_SETTINGS_H
#define STK_TEST_SETTINGS_H

#include <stoker/stoker.h>

#include "support/files/reader_file.h"
#include "support/runs/memory_limit.h"
#include "support/runs/scripted_reader.h"

/* STK_SETTINGS_SHARED share the cache if they can; STK_SETTINGS_SHARED_PIECES of them if it holds
 * pieces of files, for which the others have no room. */
enum {
    STK_SETTINGS = 36,
    STK_SETTING_GPU = 24, /* and the settings after it: batches lie on the GPU */
    STK_SETTINGS_SHARED = 9,
    STK_SETTINGS_SHARED_PIECES = 5,
    STK_DIMENSIONS = 10,
    STK_LEVELS_MAX = 4
};

/* The levels of a setting, one per dimension. */
struct stk_setting {
    uint32_t workers, cache, reader, device, prefetch, memory_bytes, read_depth, pinned, traced,
        shared;
};

static inline struct stk_setting stk_setting_of(uint32_t number)
{
    const uint32_t w = number % 4;
    const uint32_t a = number / 4 % 3;
    const uint32_t b = number / 12;
    return (struct stk_setting){
        .workers = w,
        .cache = (w + 3 * a + b) % 4,
        .reader = a,
        .device = b,
        .prefetch = (a + b) % 3,
        .memory_bytes = (a + 2 * b) % 3,
        .read_depth = ((b == 0) + w) % 2,
        .pinned = ((a == 0) + w / 2) % 2,
        .traced = ((a == b) + w) % 2,
        .shared = ((a + b) % 3 == 0 ? 1 + w / 2 : w / 2) % 2,
    };
}

/* Bytes come in another order than they were asked for, and some in pieces. */
static inline const stoker_reader *stk_setting_own_reader(uint32_t number)
{
    static const struct stk_script_rule rules[] = {
        { .what = STK_SCRIPT_SHORT, .amount = 5, .file = STK_SCRIPT_ANY_FILE, .times = 30 },
        { .what = STK_SCRIPT_ERRNO, .amount = EAGAIN, .file = STK_SCRIPT_ANY_FILE, .times = 10 },
    };
    stk_script_install(
        &(struct stk_script){ .rules = rules, .rule_count = 2, .shuffle_seed = number + 1 });
    return &stk_scripted_reader;
}

/* Without io_uring here, pread takes its place. NULL if the environment names the reader. */
static inline const stoker_reader *stk_setting_reader(uint32_t number)
{
    const struct stk_setting setting = stk_setting_of(number);
    const bool uring = setting.reader == 0 && stk_test_reader_works(stoker_reader_uring());
    (void)unsetenv("STOKER_READER");
    if (setting.reader == 2)
        return stk_setting_own_reader(number);
    if (setting.shared != 0) {
        (void)setenv("STOKER_READER", uring ? "uring" : "pread", 1);
        return NULL;
    }
    return uring ? stoker_reader_uring() : stoker_reader_pread();
}

/* Set what the setting decides; without a GPU, its batches stay on the CPU. Call after what decides
 * how large a batch is. */
static inline void stk_setting_apply(uint32_t number, bool gpu, const stoker_dataset *dataset,
                                     stoker_loader_options *options)
{
    static const int32_t workers[] = { 0, 1, 3, 8 };
    static const stoker_cache caches[] = { STOKER_CACHE_NONE, STOKER_CACHE_ENCODED,
                                           STOKER_CACHE_DECODED, STOKER_CACHE_AUTO };
    static const stoker_device devices[] = { STOKER_DEVICE_CPU, STOKER_DEVICE_CUDA_HOST,
                                             STOKER_DEVICE_CUDA };
    static const uint32_t prefetch[] = { STOKER_PREFETCH_AUTO, 2, 5 };
    /* A shared cache takes whole pages: some for states and checksums, and one or two for rows. */
    static const uint64_t cache_bytes[2][3] = { { STOKER_BYTES_AUTO, 1500, 3000 },
                                                { STOKER_BYTES_AUTO, 24576, 28672 } };
    const struct stk_setting setting = stk_setting_of(number);
    options->num_workers = workers[setting.workers];
    options->cache = caches[setting.cache];
    options->reader = stk_setting_reader(number);
    options->device = gpu ? devices[setting.device] : STOKER_DEVICE_CPU;
    options->prefetch_batches = prefetch[setting.prefetch];
    options->read_depth = setting.read_depth == 0 ? STOKER_READ_DEPTH_AUTO : 1;
    options->pin_memory = setting.pinned == 0 ? STOKER_SWITCH_AUTO : STOKER_SWITCH_OFF;
    options->non_blocking = setting.pinned == 0;
    options->trace_events = setting.traced == 0 ? 0 : 64;
    options->share_cache = setting.shared == 0 ? STOKER_SWITCH_OFF : STOKER_SWITCH_AUTO;
    options->memory_bytes = STOKER_BYTES_AUTO;
    if (setting.memory_bytes > 0)
        stk_limit_cache(dataset, options, cache_bytes[setting.shared][setting.memory_bytes]);
}

#endif
