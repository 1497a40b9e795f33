/* test_shared_cache.c - one cache for several loaders and processes: what one has loaded the others
 * find, other data are never taken for the same, and a process that dies leaves nothing that blocks
 * the others.
 */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "loader/api/loader.h"
#include "support/leaks.h"
#include "support/runs/emulator.h"
#include "support/runs/opened_loader.h"
#include "support/runs/scenario.h"

enum { ROWS = 100, STRIDE = 10 };

static char key[STK_SEGMENT_KEY_BYTES];

static struct stk_cache_options form(void)
{
    (void)snprintf(key, sizeof(key), "test-%d", (int)getpid());
    return (struct stk_cache_options){ .kind = STOKER_CACHE_DECODED,
                                       .budget_bytes = 1 << 20,
                                       .count = ROWS,
                                       .stride_bytes = STRIDE,
                                       .block_rows = 1,
                                       .key = key };
}

static void make(struct stk_cache *cache, const struct stk_cache_options *options)
{
    cr_assert_eq(stk_cache_init(cache, options), 0);
    cr_assert_eq(cache->share_error, 0, "%s", strerror(-cache->share_error));
    cr_assert_eq(cache->kind, options->kind);
}

static void load(struct stk_cache *cache, uint64_t id)
{
    cr_assert(stk_cache_begin(cache, id, STRIDE));
    memset(stk_cache_row(cache, id), (int)id, STRIDE);
    stk_cache_commit(cache, id);
}

static int open_descriptors(void)
{
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

CleanTest(shared_cache, what_one_loads_all_find)
{
    const int before = open_descriptors();
    const struct stk_cache_options options = form();
    struct stk_cache first;
    make(&first, &options);
    struct stk_cache second;
    make(&second, &options);
    cr_assert_neq(first.rows.base, second.rows.base, "two mappings");
    load(&first, 7);
    cr_assert_not_null(stk_cache_find(&second, 7));
    cr_assert_eq(stk_cache_find(&second, 7)[9], 7);
    cr_assert(stk_cache_begin(&second, 8, STRIDE));
    cr_assert_not(stk_cache_begin(&first, 8, STRIDE), "another loads it, and lives");
    stk_cache_cancel(&second, 8);
    for (uint64_t id = 0; id < ROWS; id++)
        if (stk_cache_find(&first, id) == NULL)
            load(id % 2 == 0 ? &first : &second, id);
    cr_assert_not(stk_cache_holds_all(&first, ROWS), "it has not checked what the second loaded");
    for (uint64_t id = 0; id < ROWS; id++)
        cr_assert(stk_cache_find(&first, id) != NULL && stk_cache_find(&second, id) != NULL);
    cr_assert(stk_cache_holds_all(&first, ROWS));
    cr_assert(stk_cache_holds_all(&second, ROWS));
    cr_assert_eq(atomic_load(&stk_cache_counts(&second)->held_bytes), ROWS * STRIDE);
    cr_assert_eq(stk_members_count(&first.share.header->members), 2);

    stk_cache_destroy(&first); /* the one that others find it by */
    cr_assert_eq(stk_cache_find(&second, 42)[0], 42);
    cr_assert_eq(stk_members_count(&second.share.header->members), 1);
    struct stk_cache third;
    make(&third, &options);
    cr_assert_null(stk_cache_find(&third, 42), "a new one");
    stk_cache_destroy(&second);
    stk_cache_destroy(&third);
    cr_assert_eq(open_descriptors(), before);
}

static int refusal(const struct stk_cache_options *options)
{
    struct stk_cache cache;
    cr_assert_eq(stk_cache_init(&cache, options), 0);
    cr_assert_eq(cache.kind, STOKER_CACHE_NONE);
    cr_assert_null(cache.rows.base);
    const int why = cache.share_error;
    stk_cache_destroy(&cache);
    return why;
}

CleanTest(shared_cache, takes_the_room_of_the_first_and_nothing_else_that_differs)
{
    struct stk_cache_options options = form();
    options.join_only = true;
    cr_assert_eq(refusal(&options), -ENOENT);
    options.join_only = false;
    /* Pages for words, sums and rows: room for all 100 rows. */
    options.budget_bytes = 4 * (uint64_t)sysconf(_SC_PAGESIZE);
    struct stk_cache first;
    make(&first, &options);
    options.budget_bytes = UINT64_MAX / 4;
    options.join_only = true;
    struct stk_cache second;
    make(&second, &options);
    cr_assert_eq(second.capacity, first.capacity);
    cr_assert_eq(second.rows_bytes, first.rows_bytes);
    stk_cache_destroy(&second);
    options.join_only = false;

    struct stk_cache_options other = options;
    other.count++;
    cr_assert_eq(refusal(&other), -EPROTO);
    other = options;
    other.stride_bytes = 2 * STRIDE;
    cr_assert_eq(refusal(&other), -EPROTO);
    other = options;
    other.block_rows = 4;
    cr_assert_eq(refusal(&other), -EPROTO);
    other = options;
    other.kind = STOKER_CACHE_ENCODED;
    cr_assert_eq(refusal(&other), -EPROTO);
    stk_cache_destroy(&first);
}

/* A child that joins, begins block 3 and loads block 4, and waits until it is killed. */
static pid_t start_loader(const struct stk_cache_options *options)
{
    int ready[2];
    cr_assert_eq(pipe(ready), 0);
    const pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        struct stk_cache cache;
        const bool works = stk_cache_init(&cache, options) == 0 && cache.share_error == 0 &&
                           stk_cache_begin(&cache, 3, STRIDE) && stk_cache_begin(&cache, 4, STRIDE);
        if (works)
            stk_cache_commit(&cache, 4);
        if (write(ready[1], "x", works) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    char byte;
    close(ready[1]);
    cr_assert_eq(read(ready[0], &byte, 1), 1, "the other process could not join");
    close(ready[0]);
    return child;
}

static void wait_for_death(pid_t child, int flags)
{
    siginfo_t info;
    cr_assert_eq(waitid(P_PID, (id_t)child, &info, WEXITED | flags), 0);
    cr_assert_eq(info.si_code, CLD_KILLED);
}

CleanTest(shared_cache, a_killed_process_locks_nothing)
{
    if (stk_test_is_emulated())
        cr_skip_test("this emulator makes up the time at which a process began");
    const struct stk_cache_options options = form();
    struct stk_cache cache;
    make(&cache, &options);
    const pid_t child = start_loader(&options);
    cr_assert_not_null(stk_cache_find(&cache, 4));
    cr_assert_not(stk_cache_begin(&cache, 3, STRIDE), "its loader lives");
    kill(child, SIGSTOP);
    cr_assert_not(stk_cache_begin(&cache, 3, STRIDE), "its loader may continue");
    kill(child, SIGKILL);
    wait_for_death(child, WNOWAIT); /* dead, and not yet waited for */
    cr_assert(stk_cache_begin(&cache, 3, STRIDE));
    stk_cache_commit(&cache, 3);
    wait_for_death(child, 0);
    cr_assert_not_null(stk_cache_find(&cache, 3));
    cr_assert_eq(stk_members_count(&cache.share.header->members), 1, "the dead do not count");
    cr_assert_eq(stk_members_join(&cache.share.header->members), 2, "nobody gets their number");
    cr_assert_eq(atomic_load(&stk_cache_counts(&cache)->coming_bytes), 0);
    stk_cache_destroy(&cache);
}

CleanTest(shared_cache, goes_with_the_last_process_even_if_all_are_killed)
{
    const struct stk_cache_options options = form();
    const pid_t first = start_loader(&options);
    struct stk_cache_options late = options;
    late.join_only = true;
    struct stk_cache cache;
    make(&cache, &late);
    stk_cache_destroy(&cache);
    kill(first, SIGKILL);
    wait_for_death(first, 0);
    cr_assert_eq(refusal(&late), -ENOENT);
}

static socklen_t address_of_key(struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    const int length = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
                                "stoker/%u/%s", (unsigned)geteuid(), key);
    return (socklen_t)(sizeof(sa_family_t) + 1 + (size_t)length);
}

CleanTest(shared_cache, an_address_that_nobody_serves_delays_but_does_not_stop)
{
    const struct stk_cache_options options = form();
    struct sockaddr_un address;
    const socklen_t size = address_of_key(&address);
    const int squatter = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(squatter, (const struct sockaddr *)&address, size), 0);
    cr_assert_eq(refusal(&options), -ETIMEDOUT);
    close(squatter);
}

/* ---- bytes that another process changes ---- */

/* What each kind of cache sums: a block of rows; samples of their own lengths; records with parts
 * of any length. */
static const struct summed {
    stoker_cache kind;
    uint32_t block_rows;
    bool has_gaps;
    uint32_t stride_bytes;
    uint32_t filled; /* bytes of each sample, from its start */
} summed[] = {
    { STOKER_CACHE_DECODED, 1, false, STRIDE, STRIDE },
    { STOKER_CACHE_DECODED, 8, false, STRIDE, STRIDE },
    { STOKER_CACHE_ENCODED, 1, false, STRIDE, STRIDE - 3 },
    { STOKER_CACHE_ENCODED, 4, false, STRIDE, STRIDE },
    { STOKER_CACHE_ENCODED, 1, true, 5 * 4096 + 100, 4096 + 7 },
    { STOKER_CACHE_DECODED, 1, true, 100, 100 },
};

static void fill(struct stk_cache *cache, const struct summed *form, uint64_t id)
{
    cr_assert(stk_cache_begin(cache, id, form->filled));
    const uint64_t first = stk_cache_block_first(cache, id);
    for (uint64_t row = first; row < first + stk_cache_block_rows(cache, id); row++)
        memset(stk_cache_row(cache, row), (int)row + 1, form->filled);
    stk_cache_commit(cache, id);
}

static long pages_in_use(const struct stk_cache *cache)
{
    struct stat status;
    cr_assert_eq(fstat(cache->share.segment.memory, &status), 0);
    return (long)status.st_blocks * 512 / sysconf(_SC_PAGESIZE);
}

CleanTest(shared_cache, a_block_that_was_changed_is_not_used)
{
    for (size_t i = 0; i < sizeof(summed) / sizeof(summed[0]); i++) {
        const struct summed *want = &summed[i];
        struct stk_cache_options options = form();
        options.budget_bytes = UINT64_MAX / 4;
        options.kind = want->kind;
        options.block_rows = want->block_rows;
        options.whole_places = want->block_rows > 1;
        options.has_gaps = want->has_gaps;
        options.stride_bytes = want->stride_bytes;
        struct stk_cache first, second;
        make(&first, &options);
        make(&second, &options);
        for (uint64_t id = 0; id < ROWS; id += want->block_rows)
            fill(&first, want, id);
        const long pages = pages_in_use(&first);
        stk_cache_row(&first, 48)[want->filled - 1] ^= 1U;
        uint64_t held = 0;
        for (uint64_t id = 0; id < ROWS; id++)
            held += stk_cache_find(&second, id) != NULL;
        cr_assert_eq(pages_in_use(&first), pages, "%zu: a sum took memory", i);
        cr_assert_eq(held, ROWS - want->block_rows, "%zu: %d", i, (int)held);
        cr_assert_null(stk_cache_find(&second, 48));
        cr_assert_not(stk_cache_begin(&second, 48, STRIDE), "others may be using it");
        cr_assert_eq(atomic_load(&second.spoilt), 1);
        cr_assert_not(stk_cache_holds_all(&second, ROWS));
        stk_cache_destroy(&first);
        stk_cache_destroy(&second);
    }
}

CleanTest(shared_cache, a_place_outside_of_the_rows_is_not_used)
{
    const struct stk_cache_options options = form();
    struct stk_cache first, second;
    make(&first, &options);
    make(&second, &options);
    const uint64_t end = first.rows.bytes + 1; /* places count from 1 */
    const uint64_t places[] = { 0, end - STRIDE + 1, end, UINT64_MAX >> 8 };
    for (uint64_t id = 0; id < 4; id++) {
        load(&first, id);
        atomic_store(stk_cache_word(&first, id), places[id] << 8 | STK_CACHE_READY);
        cr_assert_null(stk_cache_find(&second, id));
        cr_assert_eq(atomic_load(&second.spoilt), id + 1);
        cr_assert_eq(stk_cache_find(&first, id)[0], (uint8_t)id, "it knows where it lies");
        cr_assert(stk_cache_begin(&second, id + 10, STRIDE));
        atomic_store(stk_cache_word(&first, id + 10), places[id] << 8 | (STK_CACHE_LOADING + 1));
        stk_cache_commit(&second, id + 10);
        cr_assert_null(stk_cache_find(&second, id + 10));
    }
    stk_cache_destroy(&first);
    stk_cache_destroy(&second);
}

/* ---- processes of another PID namespace ---- */

enum answer { REFUSED = 10, SERVED, IMPOSSIBLE };

static struct sockaddr_un address;
static socklen_t address_bytes;
static int made[2], done[2]; /* pipes: the memory is served; it is no longer needed */

/* Ask for the memory as a process does that ignores segment.c. */
static enum answer ask(void)
{
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec payload = { .iov_base = &byte, .iov_len = 1 };
    struct msghdr message = { .msg_iov = &payload,
                              .msg_iovlen = 1,
                              .msg_control = control,
                              .msg_controllen = sizeof(control) };
    const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(connection, (const struct sockaddr *)&address, address_bytes) != 0)
        return IMPOSSIBLE;
    return recvmsg(connection, &message, 0) == 0 ? REFUSED : SERVED;
}

static enum answer serve(void)
{
    struct stk_segment segment;
    char byte;
    if (stk_segment_open(&segment, key, 4096) != 1 || stk_segment_serve(&segment) != 0 ||
        write(made[1], "x", 1) != 1)
        return IMPOSSIBLE;
    close(done[1]);
    return read(done[0], &byte, 1) == 0 ? SERVED : IMPOSSIBLE;
}

/* Start a process of a new PID namespace. Its exit code is act()'s. */
static pid_t start_outside(enum answer (*act)(void))
{
    const pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child > 0)
        return child;
    int status = 0;
    const pid_t outside = unshare(CLONE_NEWPID) == 0 ? fork() : -1;
    if (outside == 0)
        _exit((int)act());
    close(made[1]);
    close(done[1]);
    const bool ended = outside > 0 && waitpid(outside, &status, 0) == outside && WIFEXITED(status);
    _exit(ended ? WEXITSTATUS(status) : (int)IMPOSSIBLE);
}

static enum answer answer_of(pid_t child)
{
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status));
    return (enum answer)WEXITSTATUS(status);
}

CleanTest(shared_cache, another_pid_namespace_gets_no_memory)
{
    const struct stk_cache_options options = form();
    struct stk_cache cache;
    make(&cache, &options);
    address_bytes = address_of_key(&address);
    cr_assert_eq(ask(), SERVED, "this process may have it");
    const enum answer answer = answer_of(start_outside(ask));
    stk_cache_destroy(&cache);
    if (answer == IMPOSSIBLE)
        cr_skip_test("NOT TESTED: this user cannot make a PID namespace");
    cr_assert_eq(answer, REFUSED);
}

CleanTest(shared_cache, memory_from_another_pid_namespace_is_not_taken)
{
    struct stk_cache_options options = form();
    char byte;
    cr_assert_eq(pipe(made), 0);
    cr_assert_eq(pipe(done), 0);
    const pid_t child = start_outside(serve);
    close(made[1]);
    const bool is_made = read(made[0], &byte, 1) == 1;
    options.join_only = true;
    const int why = is_made ? refusal(&options) : 0;
    close(done[1]);
    close(done[0]);
    close(made[0]);
    const enum answer answer = answer_of(child);
    if (!is_made)
        cr_skip_test("NOT TESTED: this user cannot make a PID namespace");
    cr_assert_eq(answer, SERVED);
    cr_assert_eq(why, -EACCES);
}

CleanTest(shared_cache, every_failure_leaves_a_cache_that_holds_nothing)
{
    const int before = open_descriptors();
    const struct stk_cache_options options = form();
    struct stk_cache cache;
    uint64_t nth = 0;
    do {
        stk_fault_arm(STK_FAULT_ANY, ++nth);
        const int rc = stk_cache_init(&cache, &options);
        cr_assert(rc == 0 || rc == STOKER_ENOMEM, "%d", rc);
        cr_assert((cache.rows.base != NULL) == (rc == 0 && cache.share_error == 0));
        stk_cache_destroy(&cache);
        cr_assert_eq(open_descriptors(), before);
    } while (stk_fault_disarm());
    cr_assert_gt(nth, 7, "the segment, its header, four regions, a thread");
}

CleanTest(shared_cache, the_numbers_of_loaders_that_left_are_given_again)
{
    static struct stk_members members;
    for (int i = 0; i < 2 * STK_MEMBERS_MAX; i++) { /* one comes and goes */
        cr_assert_eq(stk_members_join(&members), 0);
        cr_assert_eq(stk_members_count(&members), 1);
        stk_members_leave(&members, 0);
    }
    for (int i = 0; i < STK_MEMBERS_MAX; i++) {
        cr_assert_eq(stk_members_join(&members), i);
        cr_assert_not(stk_members_is_dead(&members, (uint32_t)i));
    }
    cr_assert_eq(stk_members_join(&members), -ENOSPC);
    stk_members_leave(&members, 3);
    cr_assert_not(stk_members_is_dead(&members, 3), "it has left");
    cr_assert_eq(stk_members_join(&members), 3);
}

/* ---- loaders -------------------------------------------------------------------- */

enum { SAMPLES = 300, EPOCHS = 8 };

static stoker_loader_options loader_options(stoker_cache cache)
{
    stoker_loader_options options =
        stk_small_options(.cache = cache, .share_cache = STOKER_SWITCH_ON);
    options.epochs = EPOCHS;
    return options;
}

static stoker_stats deliver_all(stoker_loader *loader, const struct stk_file_set *set)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    uint64_t samples = 0;
    int rc;
    while ((rc = stoker_loader_next(loader, &batch, -1)) != STOKER_FINISHED) {
        cr_assert_geq(rc, 0, "%s", stoker_loader_error(loader)->message);
        if (rc != STOKER_OK)
            continue;
        cr_assert(stk_file_set_matches(set, &batch));
        samples += batch.count;
        stoker_batch_release(&batch);
    }
    cr_assert_eq(samples, EPOCHS * SAMPLES);
    stoker_stats stats = STOKER_STATS_INIT;
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    return stats;
}

CleanTest(shared_cache, a_second_loader_reads_nothing)
{
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, SAMPLES, 20, 20, 0));
    for (stoker_cache kind = STOKER_CACHE_AUTO; kind <= STOKER_CACHE_DECODED; kind++) {
        if (kind == STOKER_CACHE_NONE)
            continue;
        const stoker_loader_options options = loader_options(kind);
        stoker_dataset *again = NULL;
        char spec[600];
        (void)snprintf(spec, sizeof(spec), "idx:%s,%s", set.images, set.labels);
        cr_assert_eq(stoker_dataset_open(&again, spec, NULL, NULL), STOKER_OK);
        stoker_loader *first = loader_of(set.dataset, &options);
        const stoker_stats read = deliver_all(first, &set);
        cr_assert_gt(read.reads, 0);
        cr_assert_eq(read.cache_sharers, 1);
        stoker_loader *second = loader_of(again, &options);
        cr_assert_str_empty(read.share_reason);
        const stoker_stats found = deliver_all(second, &set);
        cr_assert_eq(found.cache_sharers, 2);
        cr_assert_eq(found.cache_held_bytes, SAMPLES * 400);
        cr_assert_eq(found.reads, 0, "cache %d: %d", (int)kind, (int)found.reads);
        stoker_loader_destroy(&first);
        stoker_loader_destroy(&second);
        stoker_dataset_close(&again);
    }
    stk_file_set_remove(&set);
}

static uint32_t heard; /* warnings of rows that were changed */

static void listen_to(void *self, stoker_log_level level, const char *message)
{
    (void)self;
    heard +=
        level == STOKER_LOG_WARNING && strstr(message, "was changed by another process") != NULL;
}

CleanTest(shared_cache, a_changed_row_is_read_again_and_not_delivered)
{
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, SAMPLES, 20, 20, 0));
    for (stoker_cache kind = STOKER_CACHE_ENCODED; kind <= STOKER_CACHE_DECODED; kind++) {
        stoker_loader_options options = loader_options(kind);
        options.on_log = listen_to;
        heard = 0;
        stoker_loader *first = loader_of(set.dataset, &options);
        deliver_all(first, &set);
        struct stk_cache *cache = &first->pipeline.cache;
        for (uint64_t id = 0; id < SAMPLES; id += cache->block_rows)
            stk_cache_row(cache, id)[3] ^= 0x10U;
        stoker_loader *second = loader_of(set.dataset, &options);
        cr_assert_gt(deliver_all(second, &set).reads, 0);
        cr_assert_eq(heard, 1, "%d", (int)heard);
        stoker_loader_destroy(&first);
        stoker_loader_destroy(&second);
    }
    stk_file_set_remove(&set);
}

/* Loaders that must not share: what they deliver would be wrong. */
static void expect_apart(int line, const stoker_dataset *one, const stoker_loader_options *options,
                         const stoker_dataset *other, const stoker_loader_options *its_options)
{
    stoker_loader *first = loader_of(one, options);
    stoker_loader *second = loader_of(other, its_options);
    stoker_stats stats = STOKER_STATS_INIT;
    cr_assert_eq(stoker_loader_stats(second, &stats), STOKER_OK);
    cr_assert_eq(stats.cache_sharers, 1, "line %d: %u", line, stats.cache_sharers);
    stoker_loader_destroy(&first);
    stoker_loader_destroy(&second);
}

static stoker_dataset *viewed(const char *format, const struct stk_file_set *set)
{
    char spec[1024];
    (void)snprintf(spec, sizeof(spec), format, set->images, set->labels);
    return dataset_of(spec);
}

CleanTest(shared_cache, other_data_or_another_form_have_a_cache_of_their_own)
{
    struct stk_file_set set;
    struct stk_file_set twin;
    cr_assert(stk_file_set_make(&set, SAMPLES, 20, 20, 0));
    cr_assert(stk_file_set_make(&twin, SAMPLES, 20, 20, 0));
    const stoker_loader_options options = loader_options(STOKER_CACHE_DECODED);
    const stoker_loader_options encoded = loader_options(STOKER_CACHE_ENCODED);
    expect_apart(__LINE__, set.dataset, &options, twin.dataset,
                 &options); /* equal names, sizes and bytes */
    expect_apart(__LINE__, set.dataset, &options, set.dataset, &encoded);

    stoker_dataset *train = viewed("idx:%s,%s?split=train&test=0.5&seed=0", &set);
    stoker_dataset *test = viewed("idx:%s,%s?split=test&test=0.5&seed=0", &set);
    expect_apart(__LINE__, train, &options, test, &options);
    stoker_dataset_close(&train);
    stoker_dataset_close(&test);

    setenv("SLURM_JOB_ID", "12", 1);
    stoker_loader *first = loader_of(set.dataset, &options);
    setenv("SLURM_JOB_ID", "13", 1);
    stoker_loader *second = loader_of(set.dataset, &options);
    stoker_stats stats = STOKER_STATS_INIT;
    cr_assert_eq(stoker_loader_stats(second, &stats), STOKER_OK);
    cr_assert_eq(stats.cache_sharers, 1, "another job");
    stoker_loader_destroy(&first);
    stoker_loader_destroy(&second);
    stk_file_set_remove(&twin);
    stk_file_set_remove(&set);
}

CleanTest(shared_cache, a_rewritten_file_is_another_file)
{
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, SAMPLES, 20, 20, 0));
    const stoker_loader_options options = loader_options(STOKER_CACHE_DECODED);
    stoker_loader *first = loader_of(set.dataset, &options);
    FILE *file = fopen(set.images, "r+be");
    cr_assert_not_null(file);
    cr_assert_eq(fseek(file, set.header_bytes, SEEK_SET), 0);
    cr_assert_eq(putc(stk_set_byte(0, 0), file), stk_set_byte(0, 0)); /* even with the same byte */
    cr_assert_eq(fclose(file), 0);
    stoker_dataset *again = viewed("idx:%s,%s", &set);
    stoker_loader *second = loader_of(again, &options);
    stoker_stats stats = STOKER_STATS_INIT;
    cr_assert_eq(stoker_loader_stats(second, &stats), STOKER_OK);
    cr_assert_eq(stats.cache_sharers, 1);
    stoker_loader_destroy(&first);
    stoker_loader_destroy(&second);
    stoker_dataset_close(&again);
    stk_file_set_remove(&set);
}

CleanTest(shared_cache, says_why_it_is_not_shared)
{
    stoker_dataset *drawn = dataset_of("synth:digits?count=100");
    stoker_loader_options options = loader_options(STOKER_CACHE_DECODED);
    stoker_loader *loader = NULL;
    stoker_error error = { .code = 0 };
    cr_assert_eq(stoker_loader_create(&loader, drawn, &options, &error), STOKER_ENOTSUP);
    cr_assert_not_null(strstr(error.message, "share_cache ON: not all samples lie in files"), "%s",
                       error.message);
    options.share_cache = STOKER_SWITCH_AUTO;
    loader = loader_of(drawn, &options);
    stoker_stats stats = STOKER_STATS_INIT;
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    cr_assert_str_empty(stats.share_reason, "one process: nobody to share with");
    stoker_loader_destroy(&loader);

    setenv("LOCAL_WORLD_SIZE", "2", 1);
    loader = loader_of(drawn, &options);
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    cr_assert_eq(stats.cache_sharers, 0);
    cr_assert_str_eq(stats.share_reason, "not all samples lie in files");
    cr_assert_eq(stats.cache, STOKER_CACHE_DECODED, "it has one of its own");
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&drawn);
}

CleanTest(shared_cache, processes_of_one_node_share_by_default)
{
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, SAMPLES, 20, 20, 0));
    setenv("LOCAL_WORLD_SIZE", "2", 1);
    stoker_loader_options options = loader_options(STOKER_CACHE_AUTO);
    options.share_cache = STOKER_SWITCH_AUTO;
    stoker_loader *first = loader_of(set.dataset, &options);
    cr_assert_eq(deliver_all(first, &set).cache_sharers, 1);
    stoker_loader *second = loader_of(set.dataset, &options);
    cr_assert_eq(deliver_all(second, &set).reads, 0);
    stoker_loader_destroy(&first);
    stoker_loader_destroy(&second);
    stk_file_set_remove(&set);
}
