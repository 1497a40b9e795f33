/* test_checkpoint.c - a checkpoint is the old one or the new one, whole, though a call of the
 * system fails, a process is killed, or two save at once. A damaged one is refused, and changes
 * nothing.
 *
 * Method: fsync(), renameat(), linkat() and writev() of this program fail where they are scripted
 * to. No power is cut. */
#include "support/trainer/plan_models.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "support/leaks.h"
#include "support/trainer/opened_trainer.h"
#include "trainer/api/trainer.h"

enum { FEATURES = 3, OUTPUTS = 2, BATCH = 2, FILE_BYTES_MAX = 8192 };

/* ---- calls that fail ------------------------------------------------------------- */

static int calls_left = -1; /* until one fails; -1: none does */

static bool fails(void)
{
    if (calls_left < 0 || calls_left-- != 0)
        return false;
    errno = EIO;
    return true;
}

int fsync(int fd)
{
    return fails() ? -1 : (int)syscall(SYS_fsync, fd);
}

int renameat(int from, const char *name, int to, const char *new_name)
{
    return fails() ? -1 : (int)syscall(SYS_renameat2, from, name, to, new_name, 0);
}

int linkat(int from, const char *name, int to, const char *new_name, int flags)
{
    return fails() ? -1 : (int)syscall(SYS_linkat, from, name, to, new_name, flags);
}

ssize_t writev(int fd, const struct iovec *pieces, int count)
{
    return fails() ? -1 : syscall(SYS_writev, fd, pieces, count);
}

/* ---- a trainer and its file ------------------------------------------------------ */

static stoker_model *model;
static char folder[64], path[96];

static void begin(void)
{
    (void)strcpy(folder, "stoker-checkpoint-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/m.safetensors", folder);
    cr_assert_eq(stoker_model_create(&model, (uint32_t[]){ FEATURES }, 1, NULL), STOKER_OK);
    (void)stoker_model_batch_norm(model, "bn", NULL);
    (void)stoker_model_linear(model, "fc", &(stoker_linear){ .features = OUTPUTS });
    cr_assert_eq(stoker_model_mse(model), STOKER_OK);
}

/* Nothing but the checkpoint is left in its folder. */
static void finish(void)
{
    (void)unlink(path);
    cr_assert_eq(rmdir(folder), 0, "%s", strerror(errno));
    stoker_model_destroy(&model);
}

static stoker_trainer *small(uint32_t steps)
{
    float samples[BATCH * FEATURES] = { 1, 2, 3, 4, 5, 6 };
    float labels[BATCH * OUTPUTS] = { 1, 2, 3, 4 };
    stoker_trainer_options options =
        stk_trainer_options(.backend = "ref", .batch_size = BATCH,
                            .optimizer = STOKER_OPTIMIZER_ADAM, .ema_decay = 0.5F);
    stoker_trainer *const trainer = trainer_of(model, options);
    const stoker_batch batch = { .struct_size = sizeof(stoker_batch),
                                 .images = { .data = samples,
                                             .dtype = STOKER_DTYPE_FLOAT32,
                                             .rank = 2,
                                             .shape = { BATCH, FEATURES } },
                                 .labels = { .data = labels,
                                             .dtype = STOKER_DTYPE_FLOAT32,
                                             .rank = 2,
                                             .shape = { BATCH, OUTPUTS } },
                                 .count = BATCH };
    for (uint32_t i = 0; i < steps; i++)
        cr_assert_eq(stoker_trainer_step(trainer, &batch, NULL), STOKER_OK);
    return trainer;
}

static bool same(const stoker_trainer *a, const stoker_trainer *b)
{
    const size_t bytes = a->model->parameter_floats * sizeof(float);
    return memcmp(a->stage[0]->arenas.parameters, b->stage[0]->arenas.parameters, bytes) == 0 &&
           memcmp(a->stage[0]->ema, b->stage[0]->ema, bytes) == 0 &&
           memcmp(a->stage[0]->state[0], b->stage[0]->state[0], bytes) == 0 &&
           a->progress.updates == b->progress.updates;
}

static int save(stoker_trainer *trainer, stoker_error *error)
{
    return stoker_trainer_save(trainer, path, NULL, 0, error);
}

static int load(stoker_trainer *trainer, stoker_error *error)
{
    return stoker_trainer_load(trainer, path, NULL, 0, NULL, error);
}

/* The updates of the checkpoint, which must be whole. */
static uint64_t updates_in_file(void)
{
    stoker_error error = { .message = "" };
    stoker_trainer *trainer = small(0);
    cr_assert_eq(load(trainer, &error), STOKER_OK, "%s", error.message);
    const uint64_t updates = stoker_trainer_updates(trainer);
    stoker_trainer *expected = small((uint32_t)updates);
    cr_assert(same(trainer, expected));
    stoker_trainer_destroy(&trainer);
    stoker_trainer_destroy(&expected);
    return updates;
}

/* ---- saving ---------------------------------------------------------------------- */

CleanTest(checkpoint, each_call_of_the_system_may_fail)
{
    begin();
    stoker_trainer *old = small(1);
    stoker_trainer *new = small(2);
    int calls = 0;
    for (int rc = STOKER_EIO; rc != STOKER_OK; calls++) {
        stoker_error error = { .message = "" };
        cr_assert_eq(save(old, &error), STOKER_OK, "%s", error.message);
        calls_left = calls;
        rc = save(new, &error);
        const bool failed = calls_left < 0 && rc != STOKER_OK;
        calls_left = -1;
        cr_assert(rc == STOKER_OK || failed);
        cr_assert(rc == STOKER_OK || (rc == STOKER_EIO && error.os_errno == EIO));
        const uint64_t updates = updates_in_file();
        cr_assert(updates == 2 || (updates == 1 && rc != STOKER_OK));
        cr_assert_lt(calls, 20);
    }
    cr_assert_gt(calls, 3);
    stoker_trainer_destroy(&old);
    stoker_trainer_destroy(&new);
    finish();
}

CleanTest(checkpoint, a_full_disk_leaves_the_old_one)
{
    begin();
    stoker_error error = { .message = "" };
    stoker_trainer *old = small(1);
    stoker_trainer *new = small(2);
    cr_assert_eq(save(old, NULL), STOKER_OK);
    struct rlimit limit;
    (void)signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = 700;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cr_assert_eq(save(new, &error), STOKER_EIO);
    cr_assert_eq(error.os_errno, EFBIG);
    limit.rlim_cur = before;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cr_assert_eq(updates_in_file(), 1);
    stoker_trainer_destroy(&old);
    stoker_trainer_destroy(&new);
    finish();
}

/* Two processes save to one path without end, until both are killed; a third reads. */
CleanTest(checkpoint, killed_and_contended_saves_leave_a_whole_one)
{
    begin();
    enum { SAVERS = 2, READS = 60 };
    pid_t savers[SAVERS];
    char command[128];
    stoker_trainer *trainer = small(SAVERS + 1);
    cr_assert_eq(save(trainer, NULL), STOKER_OK);
    for (uint32_t s = 0; s < SAVERS; s++) {
        savers[s] = fork();
        cr_assert_geq(savers[s], 0);
        if (savers[s] == 0) {
            stoker_trainer *mine = small(s + 1);
            while (save(mine, NULL) == STOKER_OK) {
            }
            _exit(1);
        }
    }
    for (int i = 0; i < READS; i++) {
        const uint64_t updates = updates_in_file();
        cr_assert(updates >= 1 && updates <= SAVERS + 1);
        (void)usleep(5000);
    }
    for (uint32_t s = 0; s < SAVERS; s++) {
        int status = 0;
        cr_assert_eq(kill(savers[s], SIGKILL), 0);
        cr_assert_eq(waitpid(savers[s], &status, 0), savers[s]);
        cr_assert(WIFSIGNALED(status), "a save failed");
    }
    (void)updates_in_file();
    (void)snprintf(command, sizeof(command), "rm -f %s/.m.safetensors.tmp-*", folder);
    cr_assert_eq(system(command), 0);
    stoker_trainer_destroy(&trainer);
    finish();
}

CleanTest(checkpoint, only_a_regular_file_is_replaced)
{
    begin();
    char other[96];
    struct stat status;
    stoker_error error = { .message = "" };
    stoker_trainer *trainer = small(1);
    (void)snprintf(other, sizeof(other), "%s/other", folder);
    cr_assert_eq(mkfifo(other, 0600), 0);
    cr_assert_eq(stoker_trainer_save(trainer, other, NULL, 0, &error), STOKER_EINVAL);
    cr_assert_not_null(strstr(error.message, "regular file"), "%s", error.message);
    cr_assert_eq(unlink(other), 0);
    cr_assert_eq(stoker_trainer_save(trainer, folder, NULL, 0, &error), STOKER_EISDIR);
    cr_assert_eq(stoker_trainer_save(trainer, "/nowhere/m", NULL, 0, &error), STOKER_ENOENT);
    cr_assert_eq(symlink("m.safetensors", other), 0); /* its target is replaced */
    cr_assert_eq(stoker_trainer_save(trainer, other, NULL, 0, &error), STOKER_OK);
    cr_assert_eq(lstat(other, &status), 0);
    cr_assert(S_ISLNK(status.st_mode));
    cr_assert_eq(updates_in_file(), 1);
    cr_assert_eq(unlink(other), 0);
    stoker_trainer_destroy(&trainer);
    finish();
}

/* ---- loading --------------------------------------------------------------------- */

static void put_file(const uint8_t *bytes, size_t size)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, bytes, size), (ssize_t)size);
    (void)close(fd);
}

static void is_refused(stoker_trainer *trainer, const stoker_trainer *untouched, size_t at)
{
    stoker_error error = { .message = "" };
    cr_assert_lt(load(trainer, &error), 0, "%zu", at);
    cr_assert_neq(error.message[0], '\0');
    if (at % 16 == 0) {
        cr_assert_lt(stoker_trainer_load_weights(trainer, path, NULL), 0, "%zu", at);
        cr_assert_lt(stoker_trainer_load_averages(trainer, path, NULL), 0, "%zu", at);
    }
    cr_assert(same(trainer, untouched));
}

/* Each beginning of a checkpoint, and bits all over it. */
CleanTest(checkpoint, a_damaged_one_is_refused_and_changes_nothing)
{
    begin();
    static uint8_t bytes[FILE_BYTES_MAX];
    stoker_trainer *saved = small(2);
    stoker_trainer *trainer = small(1);
    stoker_trainer *untouched = small(1);
    cr_assert_eq(stoker_trainer_save(saved, path, "loader", 6, NULL), STOKER_OK);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = read(fd, bytes, sizeof(bytes));
    cr_assert(got > 1000 && got < FILE_BYTES_MAX);
    const size_t size = (size_t)got;
    (void)close(fd);
    for (size_t prefix = 0; prefix < size; prefix++) {
        put_file(bytes, prefix);
        is_refused(trainer, untouched, prefix);
    }
    bytes[size] = 0;
    put_file(bytes, size + 1);
    is_refused(trainer, untouched, size + 1);
    for (size_t bit = 0; bit < size * 8; bit += 29) {
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        put_file(bytes, size);
        is_refused(trainer, untouched, bit);
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    put_file(bytes, size);
    cr_assert_eq(load(trainer, NULL), STOKER_OK);
    cr_assert(same(trainer, saved));
    stoker_trainer_destroy(&saved);
    stoker_trainer_destroy(&trainer);
    stoker_trainer_destroy(&untouched);
    finish();
}
