/* test_data_parallel.c - stoker-mnist --data-parallel from its command line to its exit, while a
 * thread start or an allocation fails: the program ends, says why, and frees everything; no rank
 * waits for another that does not exist.
 *
 * --peer-timeout is far beyond the time limit of a test. */
#include "loader/base/fault.h"
#include "support/thread_check.h"
#include "trainer/programs/program.h"

enum { ARGUMENTS_MAX = 32, NTH_MAX = 20000 };

#ifdef STK_TEST_TSAN
enum { STRIDE = 31 }; /* allocations apart */
#else
enum { STRIDE = 3 };
#endif

static uint32_t reports;

static void count_report(const struct console *console, const char *of,
                         const stoker_evaluation *test)
{
    (void)of;
    if (!console->mute) /* rank 0's alone */
        reports += test->count > 0 ? 1 : 0;
}

static int mnist(const char *words)
{
    static const struct program_kind kind = { .name = "stoker-mnist",
                                              .program = PROGRAM_MNIST,
                                              .classes = true,
                                              .open = data_open_images,
                                              .report = count_report };
    char line[1000];
    char *argv[ARGUMENTS_MAX] = { NULL };
    int argc = 0;
    char *rest = NULL;
    (void)snprintf(line, sizeof(line),
                   "mnist --quiet --data synth:digits?count=12 --steps 2 --threads 1 --workers 1 "
                   "--peer-timeout 1000 %s",
                   words);
    for (char *word = strtok_r(line, " ", &rest); word != NULL && argc + 1 < ARGUMENTS_MAX;
         word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    reports = 0;
    return program_run(&kind, argc, argv);
}

/* Each kind of failure in turn, every stride-th. Returns how many ended the program. */
static uint32_t sweep(const char *words, unsigned kinds, uint64_t stride)
{
    uint32_t failed = 0;
    bool reached = true;
    for (uint64_t nth = 1; reached; nth += stride) {
        const int64_t live = stk_fault_live_bytes();
        stk_fault_arm(kinds, nth);
        const int status = mnist(words);
        reached = stk_fault_disarm();
        CHECK(status == EXIT_DONE || (reached && status == EXIT_FAILED));
        CHECK(stk_fault_live_bytes() == live);
        CHECK(status != EXIT_DONE || reports == 1);
        failed += status == EXIT_FAILED ? 1 : 0;
        CHECK(nth < NTH_MAX);
    }
    return failed;
}

int main(void)
{
    static const char words[] = "--device cpu,cpu,cpu --data-parallel --batch-size 2";
    CHECK(freopen("/dev/null", "w", stderr) != NULL);
    CHECK(freopen("/dev/null", "w", stdout) != NULL);
    CHECK(mnist(words) == EXIT_DONE);
    CHECK(reports == 1);
    CHECK(mnist("--device cpu --data-parallel --batch-size 6") == EXIT_DONE);
    CHECK(sweep(words, STK_FAULT_THREAD, 1) >= 3); /* two ranks, and what they start */
    CHECK(sweep(words, STK_FAULT_MEMORY, STRIDE) > 3);
    return 0;
}
