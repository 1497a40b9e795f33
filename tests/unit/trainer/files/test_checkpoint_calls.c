/* test_checkpoint_calls.c - what a checkpoint asks of the system, and when: bytes lie on
 * the disk before a name leads to them, and a reader during a save gets one of the two.
 *
 * Method: fsync(), renameat(), open() and readdir() of this program note the call, fail where they
 * are scripted to, or let another save happen first. No power is cut: the order is all that is seen. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "support/dataset_files.h"
#include "support/leaks.h"
#include "trainer/files/checkpoint.h"

enum { NEVER = -1, CALLS_MAX = 32 };

static char calls[CALLS_MAX + 1]; /* f = fsync of a file, d = of a directory, r = renameat */
static int call_count;
static int failing = NEVER;  /* number of the call that fails */
static bool late;            /* ... after it took effect, if it is a renameat */
static int listings = NEVER; /* how often readdir still succeeds */
static int saves_between;    /* how many more saves happen as a state is opened */
static bool weights_too;     /* ... each after one of weights alone */
static char saved_path[512];
static int64_t last_value;

static void forget_calls(void)
{
    memset(calls, 0, sizeof(calls));
    call_count = 0;
    failing = NEVER;
}

/* Note it; true = it is to fail. */
static bool called(char what)
{
    const int number = call_count++;
    if (number < CALLS_MAX)
        calls[number] = what;
    return number == failing;
}

static int save(int64_t value, bool with_state, stoker_error *error)
{
    const struct stk_named_tensor weight = {
        .name = "w", .dtype = STK_FILE_I64, .rank = 1, .shape = { 1 }, .data = &value
    };
    const struct stk_named_tensor moment = {
        .name = "m", .dtype = STK_FILE_I64, .rank = 1, .shape = { 1 }, .data = &value
    };
    const struct stk_tensor_set weights = { .tensors = &weight, .tensor_count = 1 };
    const struct stk_tensor_set state = { .tensors = &moment, .tensor_count = 1 };
    return stk_checkpoint_save(saved_path, &weights, NULL, with_state ? &state : NULL, error);
}

/* ---- the calls ------------------------------------------------------------------ */

int fsync(int fd)
{
    struct stat about;
    const bool folder = fstat(fd, &about) == 0 && S_ISDIR(about.st_mode);
    if (called(folder ? 'd' : 'f')) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    if (called('r')) {
        if (late)
            (void)syscall(SYS_renameat2, from_fd, from, to_fd, to, 0);
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, 0);
}

int open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    const unsigned mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(list, unsigned) : 0;
    va_end(list);
    if (saves_between > 0 && strstr(path, ".state") != NULL) {
        saves_between--;
        if (weights_too)
            (void)save(++last_value, false, NULL);
        (void)save(++last_value, true, NULL);
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

struct dirent *readdir(DIR *stream)
{
    static struct dirent *(*next)(DIR *);
    if (next == NULL)
        *(void **)&next = dlsym(RTLD_NEXT, "readdir");
    if (listings == NEVER || listings-- > 0)
        return next(stream);
    listings = NEVER;
    errno = EIO;
    return NULL;
}

/* ---- what is seen --------------------------------------------------------------- */

static int64_t value_of(const struct stk_tensor_set *set, const char *name)
{
    int64_t value = 0;
    const struct stk_named_tensor *tensor = stk_tensor_find(set, name);
    cr_assert_not_null(tensor);
    memcpy(&value, tensor->data, sizeof(value));
    return value;
}

/* It must be whole, and have a state. */
static int64_t load(void)
{
    struct stk_checkpoint checkpoint;
    stoker_error error = { .message = "" };
    cr_assert_eq(stk_checkpoint_open(&checkpoint, saved_path, STK_CHECKPOINT_WHOLE, &error),
                 STOKER_OK, "%s", error.message);
    cr_assert(checkpoint.has_state);
    const int64_t value = value_of(&checkpoint.weights.set, "w");
    cr_assert_eq(value_of(&checkpoint.state.set, "m"), value);
    stk_checkpoint_close(&checkpoint);
    return value;
}

static struct stk_directory make(void)
{
    const struct stk_directory directory = stk_directory_make();
    stk_path_in(saved_path, &directory, "m.safetensors");
    return directory;
}

static bool is_there(const struct stk_directory *directory, const char *name)
{
    char path[512];
    return access(stk_path_in(path, directory, name), F_OK) == 0;
}

static void put_file(const struct stk_directory *directory, const char *name)
{
    char path[512];
    FILE *file = fopen(stk_path_in(path, directory, name), "we");
    cr_assert_not_null(file);
    cr_assert_eq(fclose(file), 0);
}

CleanTest(checkpoint_calls, bytes_are_on_the_disk_before_their_name)
{
    struct stk_directory directory = make();
    cr_assert_eq(save(1, true, NULL), STOKER_OK);
    cr_assert_str_eq(calls, "frdfrd"); /* the state, whose name is safe before the weights' is */
    forget_calls();
    cr_assert_eq(save(2, false, NULL), STOKER_OK);
    cr_assert_str_eq(calls, "frd");
    stk_directory_remove(&directory);
}

CleanTest(checkpoint_calls, each_call_may_fail)
{
    enum { CALLS = 6, COMMITTED = 5 }; /* the last call: the weights have their name */
    struct stk_directory directory = make();
    int64_t value = 1;
    cr_assert_eq(save(value, true, NULL), STOKER_OK);
    for (int call = 0; call < CALLS; call++) {
        stoker_error error = { .message = "" };
        forget_calls();
        failing = call;
        cr_assert_eq(save(value + 1, true, &error), STOKER_EIO, "call %d", call);
        cr_assert_eq(error.os_errno, EIO);
        failing = NEVER;
        value += call == COMMITTED;
        cr_assert_eq(load(), value, "call %d", call);
    }
    cr_assert_eq(save(++value, true, NULL), STOKER_OK);
    cr_assert_eq(load(), value);
    stk_directory_remove(&directory);
}

/* As a network file system may do: the rename is made, and its answer is lost. */
CleanTest(checkpoint_calls, a_rename_that_fails_after_it_took_effect_is_a_save)
{
    enum { OF_STATE = 1, OF_WEIGHTS = 4 };
    struct stk_directory directory = make();
    cr_assert_eq(save(1, true, NULL), STOKER_OK);
    late = true;
    forget_calls();
    failing = OF_STATE;
    cr_assert_eq(save(2, true, NULL), STOKER_EIO);
    cr_assert_eq(load(), 1);
    forget_calls();
    failing = OF_WEIGHTS;
    cr_assert_eq(save(3, true, NULL), STOKER_OK);
    cr_assert_eq(load(), 3);
    late = false;
    forget_calls();
    cr_assert_eq(save(4, true, NULL), STOKER_OK);
    cr_assert_eq(load(), 4);
    stk_directory_remove(&directory);
}

/* Names that were not all seen: the state of the checkpoint that is may be among them. */
CleanTest(checkpoint_calls, a_listing_that_fails_is_no_short_one)
{
    struct stk_directory directory = make();
    cr_assert_eq(save(1, true, NULL), STOKER_OK);
    for (int seen = 0; seen < 4; seen++) {
        stoker_error error = { .message = "" };
        forget_calls();
        listings = seen;
        cr_assert_eq(save(2, true, &error), STOKER_EIO, "%d names", seen);
        cr_assert_str_eq(calls, "");
        listings = NEVER;
        cr_assert_eq(load(), 1);
    }
    stk_directory_remove(&directory);
}

/* A state file of a number that no save gives is another's; one of the last number ends it. */
CleanTest(checkpoint_calls, numbers_that_are_too_long_are_not_ours)
{
    static const char longer[] = "m.1000000000000000000.state.safetensors";
    struct stk_directory directory = make();
    put_file(&directory, longer);
    cr_assert_eq(save(1, true, NULL), STOKER_OK);
    cr_assert_eq(save(2, true, NULL), STOKER_OK);
    cr_assert(is_there(&directory, longer));
    cr_assert_eq(load(), 2);
    put_file(&directory, "m.999999999999999999.state.safetensors");
    cr_assert_eq(save(3, true, NULL), STOKER_ELIMIT);
    cr_assert_eq(load(), 2);
    stk_directory_remove(&directory);
}

/* Others save between the open of the weights and that of their state, which is gone then, or
 * another's of the same name: weights alone leave no state from which numbering could continue. */
CleanTest(checkpoint_calls, an_overtaken_reader_reads_again)
{
    for (int alone = 0; alone < 2; alone++) {
        struct stk_directory directory = make();
        last_value = 1;
        weights_too = alone != 0;
        cr_assert_eq(save(last_value, true, NULL), STOKER_OK);
        for (int between = 1; between < 8; between++) {
            saves_between = between;
            cr_assert_eq(load(), last_value);
            cr_assert_eq(saves_between, 0);
        }
        saves_between = 1000;
        struct stk_checkpoint checkpoint;
        cr_assert_eq(stk_checkpoint_open(&checkpoint, saved_path, STK_CHECKPOINT_WHOLE, NULL),
                     STOKER_ECHANGED);
        saves_between = 0;
        stk_directory_remove(&directory);
    }
}
