/* test_rules.c - ThreadSanitizer would notice if a rule of the transfer were broken.
 *
 *   slot     a slot is refilled only after its copy is done
 *   buffer   a buffer in GPU memory is refilled only after the consumer's event
 *   kernels  kernels change a batch only after its copy, which is on another stream
 *
 * The loader keeps a rule by asking the runtime. So a runtime that lies breaks it: one that calls
 * every event done, one whose streams, or the kernels' alone, forget what they wait for. The
 * program runs itself with each of them and expects the report of a data race; and with the honest
 * one, and expects silence.
 */
#include <fcntl.h>
#include <sys/wait.h>

#include "support/gpu/cuda_kernels.h"
#include "support/gpu/cuda_run.h"
#include "support/thread_check.h"

#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif

enum { SAMPLES = 400, RACE = 66, REPORT_BYTES = 65536 };

static struct stk_cuda_consumer consumer;
static struct stk_run run;

/* The consumer's stream is made before the lie, so that it waits for the copies in any case. */
static int load(enum standin_cuda_lie lie)
{
    struct stk_file_set set;
    stoker_loader *loader = NULL;
    stoker_loader_options options =
        stk_small_options(.device = STOKER_DEVICE_CUDA, .pin_memory = STOKER_SWITCH_ON,
                          .num_workers = 2, .prefetch_batches = 2);
    standin_cuda_reset(1);
    standin_cuda_use_kernels();
    if (lie == STANDIN_CUDA_URGENT_FORGET_WAITS) {
        options.dtype = STOKER_DTYPE_FLOAT32;
        options.convert_on_device = STOKER_SWITCH_ON;
    }
    standin_cuda_delay(lie == STANDIN_CUDA_SAYS_DONE ? 5000 : 500);
    CHECK(stk_file_set_make(&set, SAMPLES, 8, 8, 0));
    CHECK(stk_cuda_consumer_init(&consumer, lie == STANDIN_CUDA_FORGETS_WAITS ? 5000 : 500));
    standin_cuda_lie(lie);
    CHECK(stoker_loader_create(&loader, set.dataset, &options, NULL) == STOKER_OK);
    stk_cuda_run_on(loader, &consumer, &run, 40);
    stoker_loader_destroy(&loader);
    stk_cuda_consumer_destroy(&consumer);
    stk_file_set_remove(&set);
    return 0;
}

#ifdef UNDER_TSAN
/* Run this program with one lie; its exit status, and in `report` what it wrote to stderr. */
static int run_self(const char *lie, char *report)
{
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        (void)setenv("TSAN_OPTIONS", "halt_on_error=1:exitcode=66", 1);
        execl("/proc/self/exe", "thread_cuda_rules", lie, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    size_t used = 0;
    ssize_t got;
    while ((got = read(ends[0], report + used, REPORT_BYTES - 1 - used)) > 0)
        used += (size_t)got;
    report[used] = '\0';
    close(ends[0]);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int judge(void)
{
    static char report[REPORT_BYTES];
    CHECK(run_self("honest", report) == 0);
    CHECK(run_self("slot", report) == RACE);
    CHECK(strstr(report, "data race") != NULL);
    CHECK(strstr(report, "stk_row_") != NULL || strstr(report, "stk_convert") != NULL ||
          strstr(report, "worker") != NULL);
    CHECK(run_self("buffer", report) == RACE);
    CHECK(strstr(report, "data race") != NULL);
    CHECK(strstr(report, "stk_cuda_run_kernel") != NULL);
    if (!stk_cuda_kernels_built())
        return 0;
    CHECK(run_self("kernels", report) == RACE);
    CHECK(strstr(report, "data race") != NULL);
    CHECK(strstr(report, "stk_crop_") != NULL);
    return 0;
}
#else
static int judge(void)
{
    printf("only ThreadSanitizer can judge: the honest run alone\n");
    return load(STANDIN_CUDA_HONEST);
}
#endif

int main(int count, char **words)
{
    if (count < 2)
        return judge();
    return load(strcmp(words[1], "slot") == 0      ? STANDIN_CUDA_SAYS_DONE
                : strcmp(words[1], "kernels") == 0 ? STANDIN_CUDA_URGENT_FORGET_WAITS
                : strcmp(words[1], "buffer") == 0  ? STANDIN_CUDA_FORGETS_WAITS
                                                   : STANDIN_CUDA_HONEST);
}
