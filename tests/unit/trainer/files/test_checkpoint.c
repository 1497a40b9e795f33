/* test_checkpoint.c - a checkpoint is the old one or the new one, whole.
 *
 * A checkpoint of value v has v in every element of both files, so that a half can be seen. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "loader/base/clock.h"
#include "loader/base/fault.h"
#include "loader/base/rng.h"
#include "support/dataset_files.h"
#include "support/leaks.h"
#include "trainer/files/checkpoint.h"

enum { WEIGHTS = 40000, STATE = 9000 };
static int64_t weight_values[WEIGHTS], state_values[STATE];

static int save(const char *path, int64_t value, bool with_state, stoker_error *error)
{
    for (int i = 0; i < WEIGHTS; i++)
        weight_values[i] = value;
    for (int i = 0; i < STATE; i++)
        state_values[i] = value;
    const struct stk_named_tensor weight = {
        .name = "w", .dtype = STK_FILE_I64, .rank = 1, .shape = { WEIGHTS }, .data = weight_values
    };
    const struct stk_named_tensor moment = {
        .name = "m", .dtype = STK_FILE_I64, .rank = 1, .shape = { STATE }, .data = state_values
    };
    const struct stk_note format = { "format", "pt" };
    const struct stk_note step = { "step", "12" };
    const struct stk_tensor_set weights = { &weight, 1, &format, 1 };
    const struct stk_tensor_set state = { &moment, 1, &step, 1 };
    return stk_checkpoint_save(path, &weights, NULL, with_state ? &state : NULL, error);
}

/* The one value of all elements of the tensor. */
static int64_t value_of(const struct stk_tensor_set *set, const char *name)
{
    const struct stk_named_tensor *tensor = stk_tensor_find(set, name);
    cr_assert_not_null(tensor);
    int64_t first;
    memcpy(&first, tensor->data, sizeof(first));
    for (uint64_t at = 0; at < tensor->bytes; at += 8) {
        int64_t value;
        memcpy(&value, (const uint8_t *)tensor->data + at, sizeof(value));
        cr_assert_eq(value, first);
    }
    return first;
}

static int64_t load(const char *path, bool *has_state)
{
    struct stk_checkpoint checkpoint;
    stoker_error error = { 0 };
    cr_assert_eq(stk_checkpoint_open(&checkpoint, path, STK_CHECKPOINT_WHOLE, &error), STOKER_OK,
                 "%s", error.message);
    const int64_t value = value_of(&checkpoint.weights.set, "w");
    cr_assert_str_eq(stk_note_find(&checkpoint.weights.set, "format"), "pt");
    if (checkpoint.has_state) {
        cr_assert_eq(value_of(&checkpoint.state.set, "m"), value);
        cr_assert_str_eq(stk_note_find(&checkpoint.state.set, "step"), "12");
    }
    *has_state = checkpoint.has_state;
    stk_checkpoint_close(&checkpoint);
    return value;
}

static int files_in(const struct stk_directory *directory)
{
    DIR *names = opendir(directory->path);
    cr_assert_not_null(names);
    int count = -2; /* . and .. */
    while (readdir(names) != NULL)
        count++;
    closedir(names);
    return count;
}

CleanTest(checkpoint, saved_again_and_again_leaves_two_files)
{
    struct stk_directory directory = stk_directory_make();
    char path[512];
    stoker_error error = { 0 };
    bool has_state;
    stk_path_in(path, &directory, "m.safetensors");
    for (int64_t value = 1; value <= 4; value++) {
        cr_assert_eq(save(path, value, true, &error), STOKER_OK, "%s", error.message);
        cr_assert_eq(load(path, &has_state), value);
        cr_assert(has_state);
        cr_assert_eq(files_in(&directory), 2);
    }
    cr_assert_eq(save(path, 5, false, &error), STOKER_OK);
    cr_assert_eq(load(path, &has_state), 5);
    cr_assert_not(has_state);
    cr_assert_eq(files_in(&directory), 1);
    stk_directory_remove(&directory);
}

/* Two checkpoints in one directory, of names that begin alike, do not touch each other. */
CleanTest(checkpoint, neighbours_are_left_alone)
{
    static const char *const names[] = { "m", "m.safetensors", "m.2", "m.2.safetensors",
                                         "m.2.state.x" };
    enum { NAMES = sizeof(names) / sizeof(names[0]) };
    struct stk_directory directory = stk_directory_make();
    stoker_error error = { 0 };
    char path[512];
    bool has_state;
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < NAMES; i++)
            cr_assert_eq(
                save(stk_path_in(path, &directory, names[i]), 10 * round + i, true, &error), 0);
    for (int i = 0; i < NAMES; i++) {
        cr_assert_eq(load(stk_path_in(path, &directory, names[i]), &has_state), 20 + i);
        cr_assert(has_state);
    }
    cr_assert_eq(files_in(&directory), 2 * NAMES);
    stk_directory_remove(&directory);
}

static int save_averages(const char *path, int64_t value, stoker_error *error)
{
    const struct stk_named_tensor weight = {
        .name = "w", .dtype = STK_FILE_I64, .rank = 1, .shape = { 1 }, .data = &value
    };
    const struct stk_tensor_set set = { .tensors = &weight, .tensor_count = 1 };
    return stk_checkpoint_save(path, &set, &set, &set, error);
}

/* Averages lie beside the weights while there are some, and replace nothing else. */
CleanTest(checkpoint, averages_come_and_go_with_their_weights)
{
    struct stk_directory directory = stk_directory_make();
    char path[512], averages[512];
    struct stk_safetensors file;
    stoker_error error = { 0 };
    stk_path_in(path, &directory, "m.safetensors");
    stk_path_in(averages, &directory, "m.ema.safetensors");
    for (int64_t value = 1; value <= 2; value++) {
        cr_assert_eq(save_averages(path, value, &error), STOKER_OK, "%s", error.message);
        cr_assert_eq(files_in(&directory), 3);
        cr_assert_eq(stk_safetensors_open(&file, averages, &error), STOKER_OK);
        cr_assert_eq(value_of(&file.set, "w"), value);
        stk_safetensors_close(&file);
    }
    cr_assert_eq(save(path, 3, true, &error), STOKER_OK);
    cr_assert_eq(files_in(&directory), 2);
    cr_assert_eq(save(averages, 4, false, &error), STOKER_OK); /* a checkpoint of that name */
    cr_assert_eq(save_averages(path, 5, &error), STOKER_EMISMATCH);
    cr_assert_not_null(strstr(error.message, ".ema"), "%s", error.message);
    bool has_state;
    cr_assert_eq(load(path, &has_state), 3);
    cr_assert_eq(load(averages, &has_state), 4);
    cr_assert_eq(save(path, 6, true, &error), STOKER_OK);
    cr_assert_eq(load(averages, &has_state), 4);
    stk_directory_remove(&directory);
}

CleanTest(checkpoint, a_weights_file_of_another_program_is_a_checkpoint_without_state)
{
    static const char header[] =
        "{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}      ";
    struct stk_directory directory = stk_directory_make();
    struct stk_bytes bytes = { 0 };
    uint8_t length[8];
    char path[512];
    stk_store_le64(length, sizeof(header) - 1);
    stk_put(&bytes, length, 8);
    stk_put(&bytes, header, sizeof(header) - 1);
    stk_put(&bytes, "\0\0\0", 4);
    stk_file_write(&directory, "pt.safetensors", bytes.at, bytes.size);
    struct stk_checkpoint checkpoint;
    stoker_error error = { 0 };
    cr_assert_eq(stk_checkpoint_open(&checkpoint, stk_path_in(path, &directory, "pt.safetensors"),
                                     STK_CHECKPOINT_WHOLE, &error),
                 STOKER_OK, "%s", error.message);
    cr_assert_not(checkpoint.has_state);
    cr_assert_eq(checkpoint.generation, 0);
    stk_checkpoint_close(&checkpoint);
    stk_directory_remove(&directory);
}

CleanTest(checkpoint, halves_that_do_not_belong_together_are_refused)
{
    struct stk_directory directory = stk_directory_make();
    char path[512], state[512], other[512];
    stoker_error error = { 0 };
    struct stk_checkpoint checkpoint;
    stk_path_in(path, &directory, "a.safetensors");
    cr_assert_eq(save(path, 1, true, &error), 0);
    cr_assert_eq(save(stk_path_in(other, &directory, "b.safetensors"), 2, true, &error), 0);
    stk_path_in(state, &directory, "a.1.state.safetensors");
    cr_assert_eq(rename(stk_path_in(other, &directory, "b.1.state.safetensors"), state), 0);
    cr_assert_eq(stk_checkpoint_open(&checkpoint, path, STK_CHECKPOINT_WHOLE, &error),
                 STOKER_EMISMATCH);
    cr_assert_not_null(strstr(error.message, "a.1.state.safetensors"));
    cr_assert_eq(unlink(state), 0);
    cr_assert_eq(stk_checkpoint_open(&checkpoint, path, STK_CHECKPOINT_WHOLE, &error),
                 STOKER_ENOENT);
    cr_assert_not_null(strstr(error.message, "a.1.state.safetensors"));
    cr_assert_eq(stk_checkpoint_open(&checkpoint, path, STK_CHECKPOINT_WEIGHTS_ONLY, &error), 0);
    stk_checkpoint_close(&checkpoint);
    stk_directory_remove(&directory);
}

CleanTest(checkpoint, a_link_stays_a_link)
{
    struct stk_directory directory = stk_directory_make();
    char path[512], target[512];
    stoker_error error = { 0 };
    bool has_state;
    cr_assert_eq(mkdir(stk_path_in(path, &directory, "far"), 0700), 0);
    cr_assert_eq(save(stk_path_in(target, &directory, "far/m.safetensors"), 1, true, &error), 0);
    cr_assert_eq(symlink("far/m.safetensors", stk_path_in(path, &directory, "last")), 0);
    cr_assert_eq(load(path, &has_state), 1);
    cr_assert_eq(save(path, 2, true, &error), 0);
    cr_assert_eq(load(target, &has_state), 2);
    struct stat status;
    cr_assert_eq(lstat(path, &status), 0);
    cr_assert(S_ISLNK(status.st_mode));
    stk_directory_remove(&directory);
}

CleanTest(checkpoint, what_cannot_be_saved_is_refused)
{
    struct stk_directory directory = stk_directory_make();
    char path[512];
    stoker_error error = { 0 };
    cr_assert_eq(save(stk_path_in(path, &directory, "none/m"), 1, true, &error), STOKER_ENOENT);
    cr_assert_eq(save(stk_path_in(path, &directory, "m.3.state"), 1, true, &error), STOKER_EINVAL);
    cr_assert_eq(save(stk_path_in(path, &directory, "m.3.state.safetensors"), 1, true, &error),
                 STOKER_EINVAL);
    cr_assert_eq(save("", 1, true, &error), STOKER_EINVAL);
    cr_assert_eq(mkdir(stk_path_in(path, &directory, "folder"), 0700), 0);
    cr_assert_eq(save(path, 1, true, &error), STOKER_EISDIR);
    const struct stk_note ours = { "stoker.state", "x" };
    const struct stk_tensor_set set = { .notes = &ours, .note_count = 1 };
    cr_assert_eq(stk_checkpoint_save(stk_path_in(path, &directory, "m"), &set, NULL, NULL, &error),
                 STOKER_EINVAL);
    cr_assert_eq(files_in(&directory), 1);
    stk_directory_remove(&directory);
}

/* The file size limit simulates a full disk: the write of either file fails half-way. */
CleanTest(checkpoint, a_failed_write_leaves_the_old_one)
{
    static const rlim_t limits[] = { 0, 1, 100, 4096, 8 * STATE, 8 * STATE + 2000, 8 * WEIGHTS };
    struct stk_directory directory = stk_directory_make();
    char path[512];
    stoker_error error = { 0 };
    bool has_state;
    cr_assert_eq(save(stk_path_in(path, &directory, "m.safetensors"), 1, true, &error), 0);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit usual;
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &usual), 0);
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        const struct rlimit tight = { limits[i], usual.rlim_max };
        cr_assert_eq(setrlimit(RLIMIT_FSIZE, &tight), 0);
        const int rc = save(path, 2, true, &error);
        cr_assert_eq(setrlimit(RLIMIT_FSIZE, &usual), 0); /* before a report is written */
        cr_assert_eq(rc, STOKER_EIO, "limit %zu: %d", i, rc);
        cr_assert_eq(error.os_errno, EFBIG);
        cr_assert_eq(files_in(&directory), 2);
        cr_assert_eq(load(path, &has_state), 1);
        cr_assert(has_state);
    }
    cr_assert_eq(save(path, 3, true, &error), 0);
    cr_assert_eq(load(path, &has_state), 3);
    stk_directory_remove(&directory);
}

CleanTest(checkpoint, a_directory_that_may_not_be_written_keeps_the_old_one)
{
    struct stk_directory directory = stk_directory_make();
    char path[512];
    stoker_error error = { 0 };
    bool has_state;
    cr_assert_eq(save(stk_path_in(path, &directory, "m.safetensors"), 1, true, &error), 0);
    cr_assert_eq(chmod(directory.path, 0555), 0);
    const bool root = geteuid() == 0;
    cr_assert(!root || seteuid(65534) == 0);
    const int rc = save(path, 2, true, &error);
    cr_assert(!root || seteuid(0) == 0);
    cr_assert_eq(chmod(directory.path, 0700), 0);
    cr_assert_eq(rc, STOKER_EACCES);
    cr_assert_eq(files_in(&directory), 2);
    cr_assert_eq(load(path, &has_state), 1);
    stk_directory_remove(&directory);
}

CleanTest(checkpoint, each_allocation_may_fail)
{
    struct stk_directory directory = stk_directory_make();
    char path[512];
    stoker_error error = { 0 };
    bool has_state;
    cr_assert_eq(save(stk_path_in(path, &directory, "m.safetensors"), 1, true, &error), 0);
    int rc = STOKER_ENOMEM;
    for (uint64_t nth = 1; rc == STOKER_ENOMEM; nth++) {
        cr_assert_lt(nth, 100);
        stk_fault_arm(STK_FAULT_ANY, nth);
        rc = save(path, 2, true, &error);
        cr_assert_eq(stk_fault_disarm(), rc == STOKER_ENOMEM);
        cr_assert_eq(stk_fault_live_bytes(), 0);
        cr_assert_eq(files_in(&directory), 2);
        cr_assert_eq(load(path, &has_state), rc == STOKER_OK ? 2 : 1);
    }
    cr_assert_eq(rc, STOKER_OK);
    rc = STOKER_ENOMEM;
    for (uint64_t nth = 1; rc == STOKER_ENOMEM; nth++) {
        struct stk_checkpoint checkpoint;
        stk_fault_arm(STK_FAULT_ANY, nth);
        rc = stk_checkpoint_open(&checkpoint, path, STK_CHECKPOINT_WHOLE, &error);
        cr_assert_eq(stk_fault_disarm(), rc == STOKER_ENOMEM);
        stk_checkpoint_close(&checkpoint);
        cr_assert_eq(stk_fault_live_bytes(), 0);
    }
    cr_assert_eq(rc, STOKER_OK);
    stk_directory_remove(&directory);
}

/* ---- killed --------------------------------------------------------------------- */

static void save_until_killed(const char *path, int64_t value)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails must not leave us saving for ever */
    while (save(path, ++value, true, NULL) == STOKER_OK) {
    }
    _exit(1);
}

CleanTest(checkpoint, killed_at_any_moment)
{
    enum { KILLS_MAX = 150, SECONDS = 3, SECONDS_MAX = 40, DELAY_NS = 12000000 };
    struct stk_directory directory = stk_directory_make();
    char path[512];
    stoker_error error = { 0 };
    bool has_state;
    int64_t value = 1;
    unsigned strays = 0, moved = 0;
    cr_assert_eq(save(stk_path_in(path, &directory, "m.safetensors"), value, true, &error), 0);
    const uint64_t begin_ns = stk_now_ns();
    const uint64_t end_ns = begin_ns + SECONDS * UINT64_C(1000000000);
    const uint64_t last_ns = begin_ns + SECONDS_MAX * UINT64_C(1000000000);
    uint64_t delay_ns = DELAY_NS; /* longer and longer while a busy machine lets no save end */
    for (uint64_t kill_count = 0; (kill_count < KILLS_MAX && stk_now_ns() < end_ns) ||
                                  ((moved == 0 || strays == 0) && stk_now_ns() < last_ns);
         kill_count++) {
        const pid_t child = fork();
        cr_assert_geq(child, 0);
        if (child == 0)
            save_until_killed(path, value);
        if (kill_count % 16 == 15 && moved == 0 && delay_ns < UINT64_C(400000000))
            delay_ns *= 2;
        const struct timespec delay = { .tv_nsec =
                                            (long)(stk_mix64(kill_count) % delay_ns) + 500000 };
        nanosleep(&delay, NULL);
        cr_assert_eq(kill(child, SIGKILL), 0);
        int status;
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert(WIFSIGNALED(status), "the save failed in the child");
        const int64_t found = load(path, &has_state);
        cr_assert(has_state);
        cr_assert_geq(found, value);
        moved += found > value;
        strays += files_in(&directory) > 2;
        value = found;
    }
    cr_assert_gt(moved, 0);  /* some saves were committed ... */
    cr_assert_gt(strays, 0); /* ... and some were cut */
    cr_assert_eq(save(path, value + 1, true, &error), 0);
    cr_assert_eq(files_in(&directory), 2); /* what was left is swept away */
    cr_assert_eq(load(path, &has_state), value + 1);
    stk_directory_remove(&directory);
}

/* Two processes save, a third reads: each load is one checkpoint, whole. */
CleanTest(checkpoint, savers_take_turns_and_readers_see_one)
{
    enum { LOADS = 60, SAVERS = 2 };
    struct stk_directory directory = stk_directory_make();
    char path[512];
    bool has_state;
    stoker_error error = { 0 };
    cr_assert_eq(save(stk_path_in(path, &directory, "m.safetensors"), 0, true, &error), 0);
    pid_t savers[SAVERS];
    for (int i = 0; i < SAVERS; i++) {
        savers[i] = fork();
        cr_assert_geq(savers[i], 0);
        if (savers[i] == 0)
            save_until_killed(path, 1000000 * i);
    }
    for (int i = 0; i < LOADS; i++) {
        (void)load(path, &has_state);
        cr_assert(has_state);
    }
    for (int i = 0; i < SAVERS; i++) {
        int status;
        cr_assert_eq(kill(savers[i], SIGKILL), 0);
        cr_assert_eq(waitpid(savers[i], &status, 0), savers[i]);
        cr_assert(WIFSIGNALED(status), "the save failed in the child");
    }
    cr_assert_eq(save(path, 7, true, &error), 0);
    cr_assert_eq(files_in(&directory), 2);
    stk_directory_remove(&directory);
}

CleanTest(trainer_checkpoint, what_is_not_a_file_is_refused_and_stays)
{
    char path[512];
    struct stat about;
    stoker_error error;
    const struct stk_directory directory = stk_directory_make();
    const int64_t value = 1;
    const struct stk_named_tensor tensor = {
        .name = "w", .dtype = STK_FILE_I64, .rank = 1, .shape = { 1 }, .data = &value
    };
    const struct stk_tensor_set set = { .tensors = &tensor, .tensor_count = 1 };
    (void)stk_path_in(path, &directory, "fifo");
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_assert_eq(stk_checkpoint_save(path, &set, NULL, &set, &error), STOKER_EINVAL);
    cr_assert_not_null(strstr(error.message, "not a regular file"), "%s", error.message);
    cr_assert(stat(path, &about) == 0 && S_ISFIFO(about.st_mode));
    stk_directory_remove(&directory);
}
