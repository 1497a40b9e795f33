/* test_log.c - options.on_log: what create chose, what it could not have, and what goes wrong while
 * running. Each message comes in the consumer's thread, once; what does not fit is counted.
 */
#include <errno.h>
#include <pthread.h>

#include "loader/api/loader.h"
#include "support/files/folder_files.h"
#include "support/files/reader_file.h"
#include "support/files/token_files.h"
#include "support/leaks.h"
#include "support/runs/memory_limit.h"
#include "support/runs/opened_loader.h"
#include "support/runs/scripted_reader.h"
#include "support/seccomp.h"
#include "support/sets/made_set.h"

enum { COUNT = 64, ROW = 32, LINES = 256 };

/* ---- a listener ---- */

static struct heard {
    pthread_t thread;
    uint32_t count;
    stoker_log_level levels[LINES];
    char lines[LINES][600];
} heard;

static void listen(void *self, stoker_log_level level, const char *message)
{
    struct heard *to = self;
    cr_assert(pthread_equal(to->thread, pthread_self()), "in another thread: %s", message);
    cr_assert_null(strpbrk(message, "\n\x1b"), "not one line of text: %s", message);
    cr_assert_lt(to->count, LINES);
    to->levels[to->count] = level;
    (void)snprintf(to->lines[to->count++], sizeof(to->lines[0]), "%s", message);
}

static stoker_loader_options options_of(void)
{
    stoker_loader_options options = stk_small_options();
    heard = (struct heard){ .thread = pthread_self() };
    options.on_log = listen;
    options.log_self = &heard;
    options.num_workers = 2;
    return options;
}

/* Number of messages of that level that contain `text`. */
static uint32_t hears(stoker_log_level level, const char *text)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < heard.count; i++)
        count += heard.levels[i] == level && strstr(heard.lines[i], text) != NULL;
    return count;
}

#define WARNED(text)   cr_assert_eq(hears(STOKER_LOG_WARNING, text), 1, "%s", text)
#define INFORMED(text) cr_assert_eq(hears(STOKER_LOG_INFO, text), 1, "%s", text)

static void run(const stoker_dataset *dataset, const stoker_loader_options *options)
{
    static struct stk_run result;
    cr_assert_eq(stk_run(dataset, options, &result), STOKER_FINISHED, "%s", result.error.message);
}

/* ---- data sets ---- */

static enum stk_made_kind raw(uint64_t id)
{
    (void)id;
    return STK_MADE_RAW;
}

static enum stk_made_kind half_broken(uint64_t id)
{
    return id % 2 == 0 ? STK_MADE_BROKEN : STK_MADE_RAW;
}

static struct stk_made_set set;

static void open_set(stk_made_kind_of *kind_of, uint32_t count)
{
    set = (struct stk_made_set){ .count = count, .row_bytes = ROW, .kind_of = kind_of };
    cr_assert(stk_made_set_open(&set));
}

/* ---- choices ---- */

CleanTest(log, a_run_without_surprises_warns_of_nothing)
{
    open_set(raw, COUNT);
    stoker_loader_options options = options_of();
    run(set.dataset, &options);
    INFORMED("device cpu: asked for");
    INFORMED("slots of");
    cr_assert_eq(hears(STOKER_LOG_INFO, "reader uring") + hears(STOKER_LOG_WARNING, "reader pread"),
                 1);
    cr_assert_eq(hears(STOKER_LOG_WARNING, "") - hears(STOKER_LOG_WARNING, "reader pread"), 0);
    stk_made_set_close(&set);
}

Test(log, io_uring_is_unavailable)
{
    const bool here = stk_test_reader_works(stoker_reader_uring());
    if (here && stk_seccomp_refuse(SYS_io_uring_setup, EPERM) < 0)
        cr_skip_test("no seccomp filters here");
    open_set(raw, COUNT);
    stoker_loader_options options = options_of();
    run(set.dataset, &options);
    WARNED("reader pread: ");
    WARNED("; reading with pread");
    stk_made_set_close(&set);
}

Test(log, no_gpu_for_auto)
{
    (void)setenv("STOKER_CUDART", "/nonexistent/libcudart.so", 1);
    open_set(raw, COUNT);
    stoker_loader_options options = options_of();
    options.device = STOKER_DEVICE_AUTO;
    run(set.dataset, &options);
    WARNED("device cpu: no GPU: ");
    stk_made_set_close(&set);
}

CleanTest(log, a_cache_that_was_asked_for_holds_a_part)
{
    open_set(raw, COUNT * 1024);
    stoker_loader_options options = options_of();
    options.epochs = 1;
    options.batch_size = 1024;
    options.cache = STOKER_CACHE_DECODED;
    stk_limit_cache(set.dataset, &options, 1 << 20);
    run(set.dataset, &options);
    WARNED("samples fit in memory_bytes");
    options = options_of();
    options.epochs = 1;
    options.batch_size = 1024;
    options.cache = STOKER_CACHE_ENCODED;
    stk_limit_cache(set.dataset, &options, 1);
    run(set.dataset, &options);
    WARNED("cache encoded: memory_bytes leaves room for no sample");
    stk_made_set_close(&set);
}

CleanTest(log, auto_has_no_room_for_a_cache)
{
    open_set(raw, COUNT);
    stoker_loader_options options = options_of();
    options.cache = STOKER_CACHE_AUTO;
    stk_limit_cache(set.dataset, &options, 1);
    run(set.dataset, &options);
    WARNED("no cache: 64 samples");
    stk_made_set_close(&set);
}

CleanTest(log, a_cache_that_is_not_needed)
{
    stoker_dataset *dataset = dataset_of("synth:digits?count=64");
    stoker_loader_options options = options_of();
    run(dataset, &options);
    INFORMED("device cpu");
    cr_assert_eq(hears(STOKER_LOG_WARNING, ""), 0);
    stoker_dataset_close(&dataset);
}

#define CHEAP  "no cache: a row costs about as little to read again as to copy"
#define ONCE   "no cache: every sample comes once"
#define ROWS   "cache decoded: up to"
#define PIECES "cache encoded: up to"

/* DIR/a.bin is a file of llm.c with 1000 tokens, DIR/x.idx rows of bytes. */
static const struct kept {
    const char *spec;
    uint64_t epochs;
    bool shuffle;
    stoker_order_kind order;
    stoker_cache kind;
    const char *says;
} kept[] = {
    { "tokens:%1$s/a.bin?length=16", 9, false, STOKER_ORDER_DEFAULT, STOKER_CACHE_NONE, CHEAP },
    { "tokens:%1$s/a.bin?length=16", 2, true, STOKER_ORDER_DEFAULT, STOKER_CACHE_DECODED, ROWS },
    { "tokens:%1$s/a.bin?length=16&fields=inputs,targets&dtype=int64", 3, false,
      STOKER_ORDER_DEFAULT, STOKER_CACHE_NONE, CHEAP },
    { "tokens:%1$s/a.bin?length=16&fields=inputs,targets&dtype=int64", 4, false,
      STOKER_ORDER_DEFAULT, STOKER_CACHE_ENCODED, PIECES },
    { "tokens:%1$s/a.bin?length=16&stride=1&fields=inputs,targets&dtype=int64", 2, true,
      STOKER_ORDER_UNIFORM, STOKER_CACHE_ENCODED, PIECES },
    { "tokens:%1$s/a.bin?length=16&stride=1&fields=inputs,targets&dtype=int64", 1, true,
      STOKER_ORDER_DEFAULT, STOKER_CACHE_NONE, ONCE },
    { "tokens:%1$s/a.bin?length=16&dtype=int32&map=1", 3, true, STOKER_ORDER_DEFAULT,
      STOKER_CACHE_NONE, CHEAP },
    { "documents:%1$s/a.bin?eos=7", 3, true, STOKER_ORDER_DEFAULT, STOKER_CACHE_ENCODED, PIECES },
    { "packed:1100:(documents:%1$s/a.bin?eos=7)", 3, true, STOKER_ORDER_DEFAULT, STOKER_CACHE_NONE,
      CHEAP },
    { "concat:(tokens:%1$s/a.bin?length=16)+"
      "(tokens:%1$s/a.bin?length=16)",
      3, true, STOKER_ORDER_DEFAULT, STOKER_CACHE_ENCODED, PIECES },
    { "idx:%1$s/x.idx", 3, false, STOKER_ORDER_DEFAULT, STOKER_CACHE_DECODED, ROWS },
    { "idx:%1$s/x.idx", 1, false, STOKER_ORDER_DEFAULT, STOKER_CACHE_NONE, ONCE },
    { "idx:%1$s/x.idx", 1, false, STOKER_ORDER_UNIFORM, STOKER_CACHE_DECODED,
      ROWS }, /* some come again */
    { "select:%1$s/ids:(idx:%1$s/x.idx)", 3, true, STOKER_ORDER_DEFAULT, STOKER_CACHE_ENCODED,
      PIECES },
};

CleanTest(log, auto_keeps_what_pays)
{
    const struct stk_directory directory = stk_directory_make();
    const struct stk_bytes tokens = stk_llmc_file(0, 1000, 2);
    stk_file_write(&directory, "a.bin", tokens.at, tokens.size);
    static const uint8_t rows[16 + 64 * 16] = { 0, 0, 8, 3, 0, 0, 0, 64, 0, 0, 0, 4, 0, 0, 0, 4 };
    stk_file_write(&directory, "x.idx", rows, sizeof(rows));
    char ids[3 * 64 * 3 + 1] = "";
    for (size_t i = 0, used = 0; i < 3 * 64; i++)
        used += (size_t)snprintf(ids + used, sizeof(ids) - used, "%zu ", i % 64);
    stk_file_write(&directory, "ids", ids, strlen(ids));
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        const struct kept *want = &kept[i];
        char spec[1024];
        (void)snprintf(spec, sizeof(spec), want->spec, directory.path);
        stoker_dataset *dataset = dataset_of(spec);
        stoker_order order = STOKER_ORDER_INIT;
        order.kind = want->order;
        stoker_loader_options options = options_of();
        options.epochs = want->epochs;
        options.shuffle = want->shuffle;
        options.batch_size = 1;
        options.cache = STOKER_CACHE_AUTO;
        options.order = want->order == STOKER_ORDER_DEFAULT ? NULL : &order;
        stoker_loader *loader = loader_of(dataset, &options);
        stoker_stats stats = STOKER_STATS_INIT;
        cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
        cr_assert_eq(stats.cache, want->kind, "%s: %s", spec, stoker_cache_name(stats.cache));
        INFORMED(want->says);
        cr_assert_eq(hears(STOKER_LOG_WARNING, "cache"), 0, "%s", spec);
        stoker_loader_destroy(&loader);
        stoker_dataset_close(&dataset);
    }
    stk_directory_remove(&directory);
}

CleanTest(log, a_cache_that_is_not_shared_because_there_is_none)
{
    setenv("LOCAL_WORLD_SIZE", "2", 1);
    stoker_dataset *dataset = dataset_of("synth:digits?count=64");
    stoker_loader_options options = options_of();
    options.cache = STOKER_CACHE_NONE;
    run(dataset, &options);
    INFORMED("the cache is not shared with other processes: there is no cache");
    cr_assert_eq(hears(STOKER_LOG_WARNING, "shared"), 0);
    stoker_dataset_close(&dataset);
}

/* ---- while running ---- */

CleanTest(log, bad_samples_are_reported_less_and_less_often)
{
    open_set(half_broken, 2048);
    stoker_loader_options options = options_of();
    options.epochs = 1;
    options.on_bad_sample = STOKER_ON_BAD_SKIP;
    run(set.dataset, &options);
    /* 10, and then at 20, 40, 80, 160, 320, 640 of 1024 */
    cr_assert_eq(hears(STOKER_LOG_WARNING, "sample skipped"), 16);
    cr_assert_eq(hears(STOKER_LOG_WARNING, "made.bin: offset "), 16);
    WARNED("(640 so far)");
    options = options_of();
    options.epochs = 1;
    options.on_bad_sample = STOKER_ON_BAD_SUBSTITUTE;
    run(set.dataset, &options);
    cr_assert_geq(hears(STOKER_LOG_WARNING, "sample substituted"), 16);
    stk_made_set_close(&set);
}

CleanTest(log, too_many_open_files)
{
    static const struct stk_script_rule rules[] = { { .what = STK_SCRIPT_ERRNO,
                                                      .amount = EMFILE,
                                                      .file = STK_SCRIPT_ANY_FILE,
                                                      .path = "c01/f00010.raw",
                                                      .times = 3 } };
    struct stk_folder_set folder;
    stk_folder_make(&folder, 20, 10, false);
    stk_script_install(&(struct stk_script){ .rules = rules, .rule_count = 1 });
    stoker_loader_options options = options_of();
    options.reader = &stk_scripted_reader;
    run(folder.dataset, &options);
    WARNED("too many open files");
    stk_folder_remove(&folder);
}

CleanTest(log, kept_batches_find_no_room)
{
    open_set(raw, COUNT);
    stoker_loader_options options = options_of();
    options.on_lent = STOKER_ON_LENT_GROW;
    options.prefetch_batches = 2;
    stk_limit_kept(set.dataset, &options, 0);
    stoker_batch batches[3];
    stk_batches_begin(batches, 3);
    stoker_loader *loader = loader_of(set.dataset, &options);
    cr_assert_eq(stoker_loader_next(loader, &batches[0], -1), STOKER_OK);
    cr_assert_eq(stoker_loader_next(loader, &batches[1], -1), STOKER_OK);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(stoker_loader_next(loader, &batches[2], 0), STOKER_BUSY);
    WARNED("what memory_bytes leaves for kept batches is used up");
    stoker_batch_release(&batches[0]);
    stoker_batch_release(&batches[1]);
    stoker_loader_destroy(&loader);
    stk_made_set_close(&set);
}

CleanTest(log, the_cache_pauses_and_goes_on)
{
    open_set(raw, COUNT);
    stoker_loader_options options = options_of();
    options.cache = STOKER_CACHE_DECODED;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader *loader = loader_of(set.dataset, &options);
    for (int i = 0; i < 6; i++) {
        atomic_store(&stk_cache_counts(&loader->pipeline.cache)->paused, i == 2 || i == 3);
        if (stoker_loader_next(loader, &batch, -1) == STOKER_OK)
            stoker_batch_release(&batch);
    }
    WARNED("memory is short: the cache holds");
    INFORMED("memory is no longer short");
    stoker_loader_destroy(&loader);
    stk_made_set_close(&set);
}

/* Each worker's ring fails once: the first says so, and next() counts them. */
CleanTest(log, workers_lose_their_rings)
{
    open_set(raw, COUNT);
    stoker_loader_options options = options_of();
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader *loader = loader_of(set.dataset, &options);
    struct stk_messages *messages = &loader->pipeline.messages;
    for (int i = 0; i < 2; i++)
        if (stk_messages_once(messages, STK_SAID_LOST_RING))
            stk_messages_put(messages, STOKER_LOG_WARNING, "the ring of a worker failed");
    atomic_fetch_add(&loader->pipeline.pread_workers, 1U);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
        stoker_batch_release(&batch);
    }
    WARNED("the ring of a worker failed");
    WARNED("1 of 2 workers got no ring, or lost it, and use pread");
    stoker_loader_destroy(&loader);
    stk_made_set_close(&set);
}

CleanTest(log, messages_that_do_not_fit_are_counted)
{
    open_set(raw, COUNT);
    stoker_loader_options options = options_of();
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader *loader = loader_of(set.dataset, &options);
    for (int i = 0; i < STK_MESSAGES_MAX + 5; i++)
        stk_messages_put(&loader->pipeline.messages, STOKER_LOG_INFO, "number %d.\x1b[2J", i);
    for (int round = 0; round < 2; round++) {
        cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
        stoker_batch_release(&batch);
    }
    cr_assert_eq(hears(STOKER_LOG_INFO, "number "), STK_MESSAGES_MAX);
    WARNED("5 more messages of workers were lost");
    stk_messages_put(&loader->pipeline.messages, STOKER_LOG_INFO, "and on");
    (void)stoker_loader_next(loader, &batch, -1);
    INFORMED("and on");
    cr_assert_eq(hears(STOKER_LOG_WARNING, "were lost"), 1);
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
    stk_made_set_close(&set);
}

/* Without on_log nothing is formatted or kept. */
CleanTest(log, nobody_listens)
{
    open_set(half_broken, COUNT);
    stoker_loader_options options = options_of();
    options.on_log = NULL;
    options.on_bad_sample = STOKER_ON_BAD_SKIP;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader *loader = loader_of(set.dataset, &options);
    stk_messages_put(&loader->pipeline.messages, STOKER_LOG_INFO, "unheard");
    cr_assert_not(stk_messages_any(&loader->pipeline.messages));
    cr_assert_not(stk_messages_once(&loader->pipeline.messages, STK_SAID_LOST_RING));
    cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
    cr_assert_eq(heard.count, 0);
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
    stk_made_set_close(&set);
}
