/* test_output_file.c - output files: regular ones are replaced whole, nothing else is ever
 * replaced.
 *
 * Method: FIFOs stand for devices, which only root can make; check_outputs.sh uses a device as well
 * where it may. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "loader/base/io/output_file.h"
#include "loader/base/io/write_all.h"
#include "support/files/dataset_files.h"
#include "support/leaks.h"

static struct stk_directory directory;
static char path[600];

static void enter(void)
{
    directory = stk_directory_make();
    (void)snprintf(path, sizeof(path), "%s/out", directory.path);
    cr_assert_eq(chdir(directory.path), 0);
}

/* Leaves the folder and removes it; fails if a file of an unknown name is still in it. */
static void leave(void)
{
    static const char *const known[] = { "out",    "link",     "second", "fifo",
                                         "socket", "sub/file", "sub" };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        (void)remove(known[i]);
    cr_assert_eq(chdir("/"), 0);
    cr_assert_eq(rmdir(directory.path), 0, "something was left behind");
    stk_test_check_leaks();
}

static int write_to(const char *name, const char *text)
{
    struct stk_output output;
    const int rc = stk_output_open(&output, name);
    if (rc != 0)
        return rc;
    cr_assert(stk_write_all(output.fd, text, strlen(text)));
    return stk_output_commit(&output);
}

static void expect(const char *name, const char *text)
{
    char bytes[64] = "";
    FILE *file = fopen(name, "r");
    cr_assert_not_null(file);
    bytes[fread(bytes, 1, sizeof(bytes) - 1, file)] = '\0';
    fclose(file);
    cr_assert_str_eq(bytes, text);
}

static mode_t mode_of(const char *name)
{
    struct stat about;
    cr_assert_eq(lstat(name, &about), 0);
    return about.st_mode;
}

Test(output_file, a_file_is_there_when_it_is_complete)
{
    enter();
    struct stk_output output;
    cr_assert_eq(stk_output_open(&output, path), 0);
    fputs("whole", stk_output_stream(&output));
    cr_assert_neq(access("out", F_OK), 0);
    cr_assert_eq(stk_output_commit(&output), 0);
    expect("out", "whole");

    cr_assert_eq(stk_output_open(&output, path), 0);
    fputs("half", stk_output_stream(&output));
    stk_output_drop(&output);
    stk_output_drop(&output); /* twice is allowed */
    expect("out", "whole");
    cr_assert_eq(write_to("out", "new"), 0); /* a name without a folder */
    expect("out", "new");
    leave();
}

Test(output_file, a_file_that_is_replaced_keeps_its_mode)
{
    enter();
    cr_assert_eq(write_to("out", "old"), 0);
    cr_assert_eq(chmod("out", 0640), 0);
    cr_assert_eq(write_to("out", "new"), 0);
    cr_assert_eq(mode_of("out") & 07777, 0640);
    expect("out", "new");
    leave();
}

Test(output_file, a_link_stays_and_its_target_is_replaced)
{
    enter();
    cr_assert_eq(mkdir("sub", 0755), 0);
    cr_assert_eq(symlink("sub/file", "second"), 0);
    cr_assert_eq(symlink("second", "link"), 0);
    for (int round = 0; round < 2; round++) { /* at first it dangles */
        cr_assert_eq(write_to("link", round == 0 ? "one" : "two"), 0);
        cr_assert(S_ISLNK(mode_of("link")) && S_ISLNK(mode_of("second")));
        cr_assert(S_ISREG(mode_of("sub/file")));
        expect("sub/file", round == 0 ? "one" : "two");
    }
    cr_assert_eq(unlink("second"), 0);
    cr_assert_eq(symlink("link", "second"), 0);
    cr_assert_eq(write_to("link", "never"), ELOOP);
    leave();
}

Test(output_file, a_fifo_is_written_to_and_stays)
{
    enter();
    char bytes[16] = "";
    cr_assert_eq(mkfifo("fifo", 0600), 0);
    cr_assert_eq(symlink("fifo", "link"), 0);
    cr_assert(stk_output_is_in_place("link"));
    cr_assert_eq(write_to("fifo", "x"), ENXIO, "without a reader it must not wait");
    const int reader = open("fifo", O_RDONLY | O_NONBLOCK);
    cr_assert_eq(write_to("fifo", "one"), 0);
    cr_assert_eq(write_to("link", "two"), 0);
    cr_assert_eq(read(reader, bytes, sizeof(bytes)), 6);
    cr_assert_str_eq(bytes, "onetwo");
    close(reader);
    cr_assert(S_ISFIFO(mode_of("fifo")));
    cr_assert(S_ISLNK(mode_of("link")));
    leave();
}

Test(output_file, what_cannot_be_written_is_refused_and_stays)
{
    enter();
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "socket" };
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    cr_assert_eq(write_to("socket", "x"), ENXIO);
    cr_assert(S_ISSOCK(mode_of("socket")));
    close(fd);
    cr_assert_eq(mkdir("sub", 0755), 0);
    cr_assert_eq(write_to("sub", "x"), EISDIR);
    cr_assert_eq(write_to("sub/", "x"), EISDIR);
    cr_assert_eq(write_to("missing/x", "x"), ENOENT);
    cr_assert_eq(write_to("", "x"), ENOENT);
    cr_assert_eq(stk_output_check("sub"), EISDIR);
    cr_assert_eq(stk_output_check("missing/x"), ENOENT);
    cr_assert_eq(stk_output_check("sub/new"), 0);
    leave();
}

/* Somebody else's names in a sticky folder: each is a trap for root. */
Test(output_file, what_others_left_in_a_sticky_folder_is_not_used)
{
    enum { NOBODY = 65534 };
    if (geteuid() != 0)
        cr_skip_test("NOT TESTED: only root can become somebody else");
    enter();
    cr_assert_eq(write_to("second", "victim"), 0);
    cr_assert_eq(chmod(directory.path, 01777), 0);
    cr_assert_eq(seteuid(NOBODY), 0);
    cr_assert_eq(symlink("second", "link"), 0);
    cr_assert_eq(mkfifo("fifo", 0666), 0);
    cr_assert_eq(write_to("out", "theirs"), 0);
    cr_assert_eq(chmod("out", 0666), 0);
    cr_assert_eq(seteuid(0), 0);
    const int reader = open("fifo", O_RDONLY | O_NONBLOCK);
    const char *const refused[] = { "link", "fifo" };
    for (size_t i = 0; i < 2; i++) {
        char resolved[PATH_MAX];
        cr_assert_eq(write_to(refused[i], "x"), EPERM, "%s", refused[i]);
        cr_assert_eq(stk_output_check(refused[i]), EPERM);
        cr_assert_eq(stk_output_resolve(refused[i], resolved), EPERM);
        cr_assert_eq(stk_output_open_in_place(refused[i]), -EPERM);
    }
    cr_assert(stk_output_is_in_place("fifo"));
    expect("second", "victim");
    cr_assert_eq(stk_output_create("out", O_WRONLY | O_TRUNC, 0644), -1);
    cr_assert_eq(errno, EPERM);
    expect("out", "theirs");
    cr_assert_eq(write_to("out", "ours"), 0);
    struct stat about;
    cr_assert_eq(stat("out", &about), 0);
    cr_assert_eq(about.st_uid, 0);
    cr_assert_eq(about.st_mode & 0022, 0);

    /* Where others cannot plant names, root gives a file back to its owner and follows all
     * links. */
    cr_assert_eq(chmod(directory.path, 0755), 0);
    cr_assert_eq(chown("out", NOBODY, NOBODY), 0);
    cr_assert_eq(write_to("out", "again"), 0);
    cr_assert_eq(stat("out", &about), 0);
    cr_assert_eq(about.st_uid, NOBODY);
    cr_assert_eq(write_to("link", "new"), 0);
    expect("second", "new");
    close(reader);
    leave();
}

Test(output_file, a_descriptor_by_name_is_written_to)
{
    enter();
    char name[32];
    const int fd = open("out", O_RDWR | O_CREAT | O_TRUNC, 0600);
    (void)snprintf(name, sizeof(name), "/dev/fd/%d", fd);
    cr_assert_eq(symlink(name, "link"), 0);
    cr_assert(stk_write_all(fd, "a", 1));
    cr_assert_eq(write_to(name, "b"), 0);
    cr_assert_eq(write_to("link", "c"), 0);
    cr_assert(stk_write_all(fd, "d", 1));
    expect("out", "abcd"); /* one file, one position */
    close(fd);
    cr_assert_eq(write_to(name, "x"), EBADF);
    cr_assert_eq(stk_output_check(name), EBADF);
    leave();
}

Test(output_file, a_full_device_is_reported)
{
    enter();
    struct stk_output output;
    if (access("/dev/full", W_OK) != 0)
        return;
    cr_assert(stk_output_is_in_place("/dev/full"));
    cr_assert_eq(stk_output_open(&output, "/dev/full"), 0);
    fputs("x", stk_output_stream(&output));
    cr_assert_eq(stk_output_commit(&output), ENOSPC);
    cr_assert(S_ISCHR(mode_of("/dev/full")));
    leave();
}

Test(output_file, the_longest_name_fits)
{
    enter();
    char longest[NAME_MAX + 1];
    memset(longest, 'a', NAME_MAX);
    longest[NAME_MAX] = '\0';
    cr_assert_eq(write_to(longest, "fits"), 0);
    cr_assert_eq(unlink(longest), 0);
    leave();
}
