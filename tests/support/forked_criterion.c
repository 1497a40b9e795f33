/* forked_criterion.c - runs Criterion tests without Criterion's library: the same headers, another
 * runner.
 *
 * Criterion starts the program again for each test, which an emulator without the kernel's help
 * (binfmt_misc) cannot, and its packages for two architectures cannot be installed together. Here
 * each test is a fork of a process that has run nothing else:
 *
 *   main ─▶ for each test: fork ─▶ suite's init, test's init, test, test's fini, suite's fini ─▶ exit
 *                └─ wait: exit status, signal, and what the shared memory counted
 *
 * What tests here use of Criterion is here, and no more. Time limits of single tests are ignored:
 * an emulator is slow, and ctest limits the program. A failed assertion in a .fini counts, as the
 * ctest rule for Criterion demands.
 */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <criterion/options.h>
#include <criterion/redirect.h>
#include <fnmatch.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The linker makes the bounds of a section; a program without TestSuite() has no cr_sts. */
extern struct criterion_test *__start_cr_tst[], *__stop_cr_tst[];
extern struct criterion_suite *__start_cr_sts[] __attribute__((weak));
extern struct criterion_suite *__stop_cr_sts[] __attribute__((weak));

struct criterion_options criterion_options;

/* What a test's process reports, in memory that it shares with main. */
struct report {
    unsigned failed; /* assertions */
    bool skipped;
    bool ended; /* the process reached its end */
};

static struct report *report;
static const struct criterion_test *current;
static const struct criterion_suite *current_suite;
static jmp_buf leave; /* the test's body */
static pthread_t test_thread;

/* ---- what assertions call ------------------------------------------------------- */

int cr_asprintf(char **text, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    const int count = vasprintf(text, format, values);
    va_end(values);
    return count;
}

void cr_asprintf_free(char *text)
{
    free(text);
}

char *cr_translate_assert_msg(int message, ...)
{
    static const char *const texts[] = {
        [CRITERION_ASSERT_MSG_FAIL] = "The conditions for this assertion were not met.",
        [CRITERION_ASSERT_MSG_EXPR_FALSE] = "The expression %s is false.",
        [CRITERION_ASSERT_MSG_EXPR_AS_STRINGS_FALSE] = "The expression (as strings) %s is false.",
        [CRITERION_ASSERT_MSG_IS_NULL] = "%s is null.",
        [CRITERION_ASSERT_MSG_IS_NOT_NULL] = "%s is not null.",
        [CRITERION_ASSERT_MSG_IS_EMPTY] = "%s is empty.",
        [CRITERION_ASSERT_MSG_IS_NOT_EMPTY] = "%s is not empty.",
        [CRITERION_ASSERT_MSG_FILE_STR_MATCH] = "The file contents of %s do not match the string.",
        [CRITERION_ASSERT_MSG_FILE_MATCH] = "The file contents of %s do not match those of %s.",
    };
    const char *text =
        message >= 0 && (size_t)message < sizeof(texts) / sizeof(texts[0]) ? texts[message] : NULL;
    char *translated = NULL;
    va_list values;
    va_start(values, message); /* Criterion puts an empty text before the values */
    if (vasprintf(&translated, text != NULL ? text : "assertion failed", values) < 0)
        translated = NULL;
    va_end(values);
    return translated;
}

void cri_asserts_passed_incr(void)
{
}

void criterion_send_assert(struct criterion_assert_stats *stats)
{
    if (stats->passed)
        return;
    __atomic_fetch_add(&report->failed, 1, __ATOMIC_RELAXED); /* any thread; read after the end */
    fprintf(stderr, "[----] %s:%u: Assertion Failed\n[----]   %s/%s: %s\n", stats->file,
            stats->line, current->category, current->name,
            stats->message != NULL ? stats->message : "");
}

/* A jump out of the test's body must not leave another thread's stack. */
static void leave_test(void)
{
    if (!pthread_equal(pthread_self(), test_thread))
        _exit(EXIT_FAILURE);
    longjmp(leave, 1);
}

void criterion_abort_test(void)
{
    leave_test();
    abort(); /* not reached: the declaration promises no return */
}

void criterion_continue_test(void)
{
}

void criterion_skip_test(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    fprintf(stderr, "[SKIP] %s/%s: ", current->category, current->name);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    report->skipped = true;
    leave_test();
    abort();
}

void cr_log(enum criterion_severity severity, const char *message, ...)
{
    (void)severity;
    va_list values;
    va_start(values, message);
    vfprintf(stderr, message, values);
    fputc('\n', stderr);
    va_end(values);
}

/* ---- redirected output ---------------------------------------------------------- */

static FILE *redirected[3];

static void redirect(int fd)
{
    FILE *file = tmpfile();
    if (file == NULL || fflush(NULL) != 0 || dup2(fileno(file), fd) < 0)
        abort();
    redirected[fd] = file;
}

void cr_redirect_stdout(void)
{
    redirect(STDOUT_FILENO);
}

void cr_redirect_stderr(void)
{
    redirect(STDERR_FILENO);
}

FILE *cr_get_redirected_stderr(void)
{
    FILE *file = redirected[STDERR_FILENO];
    (void)fflush(stderr);
    rewind(file);
    return file;
}

/* ---- one test, in its process --------------------------------------------------- */

void criterion_internal_test_setup(void)
{
    if (current_suite != NULL && current_suite->data->init != NULL)
        current_suite->data->init();
    if (current->data->init != NULL)
        current->data->init();
}

void criterion_internal_test_main(void (*body)(void))
{
    body();
}

void criterion_internal_test_teardown(void)
{
    if (current->data->fini != NULL)
        current->data->fini();
    if (current_suite != NULL && current_suite->data->fini != NULL)
        current_suite->data->fini();
}

static _Noreturn void run_in_child(pid_t parent)
{
    /* main's death ends the test; it may have died before the call. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_FAILURE);
    (void)setpgid(0, 0);
    test_thread = pthread_self();
    if (setjmp(leave) == 0)
        current->test(); /* setup, body and teardown */
    else if (setjmp(leave) == 0)
        criterion_internal_test_teardown();
    report->ended = true;
    exit(EXIT_SUCCESS);
}

/* ---- all tests ------------------------------------------------------------------ */

enum { ALL_SKIPPED = 77 }; /* ctest's exit status of a skipped test */

enum result { PASSED, FAILED, CRASHED, SKIPPED, RESULTS };

static const struct criterion_suite *suite_named(const char *name)
{
    if (__start_cr_sts == NULL)
        return NULL;
    for (struct criterion_suite **suite = __start_cr_sts; suite < __stop_cr_sts; suite++)
        if (*suite != NULL && strcmp((*suite)->name, name) == 0)
            return *suite;
    return NULL;
}

static enum result judge(int status)
{
    const int expected = current->data->signal;
    if (report->failed > 0)
        return FAILED;
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == expected ? PASSED : CRASHED;
    if (expected != 0)
        return FAILED;
    if (report->skipped)
        return SKIPPED;
    return WEXITSTATUS(status) == current->data->exit_code ? PASSED : FAILED;
}

static enum result run_test(void)
{
    if (current->data->disabled || (current_suite != NULL && current_suite->data->disabled))
        return SKIPPED;
    *report = (struct report){ 0 };
    const pid_t parent = getpid();
    if (fflush(NULL) != 0)
        abort();
    const pid_t child = fork();
    if (child < 0)
        abort();
    if (child == 0)
        run_in_child(parent);
    int status = 0;
    while (waitpid(child, &status, 0) != child)
        ;
    (void)kill(-child, SIGKILL); /* what it started and did not end */
    const enum result result = judge(status);
    if (result == FAILED || result == CRASHED)
        fprintf(stderr, "[%s] %s/%s: wait status 0x%x%s\n", result == FAILED ? "FAIL" : "CRASH",
                current->category, current->name, (unsigned)status,
                report->ended ? "" : ", before its end");
    return result;
}

static bool is_wanted(const struct criterion_test *test, const char *filter)
{
    char name[512];
    (void)snprintf(name, sizeof(name), "%s/%s", test->category, test->name);
    return filter == NULL || fnmatch(filter, name, FNM_EXTMATCH) == 0;
}

/* Returns the --filter, or NULL. -jN is accepted: here one test runs at a time. */
static const char *filter_of(int count, char **arguments)
{
    const char *filter = NULL;
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--filter") == 0 && i + 1 < count) {
            filter = arguments[++i];
        } else if (strncmp(arguments[i], "-j", 2) != 0) {
            fprintf(stderr, "%s: unknown argument: %s\n", arguments[0], arguments[i]);
            exit(EXIT_FAILURE);
        }
    }
    return filter;
}

int main(int count, char **arguments)
{
    const char *filter = filter_of(count, arguments);
    unsigned results[RESULTS] = { 0 };
    report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED)
        return EXIT_FAILURE;
    for (struct criterion_test **test = __start_cr_tst; test < __stop_cr_tst; test++) {
        if (*test == NULL || !is_wanted(*test, filter))
            continue;
        current = *test;
        current_suite = suite_named(current->category);
        results[run_test()]++;
    }
    const unsigned failing = results[FAILED] + results[CRASHED];
    const bool all_skipped = failing == 0 && results[PASSED] == 0 && results[SKIPPED] > 0;
    fprintf(stderr, "[====] Tested: %u | Passing: %u | Failing: %u | Crashing: %u | Skipped: %u\n",
            results[PASSED] + failing + results[SKIPPED], results[PASSED], results[FAILED],
            results[CRASHED], results[SKIPPED]);
    return all_skipped ? ALL_SKIPPED : failing == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
