/* writable.c - see writable.h. */
#include "trainer/programs/writable.h"

#include <errno.h>
#include <stdio.h>

#include "loader/base/io/output_file.h"

static int refuse(const char *path, int code, int os_errno, const char *why, stoker_error *error)
{
    *error = (stoker_error){ .code = code, .os_errno = os_errno };
    (void)snprintf(error->message, sizeof(error->message), "%.400s: cannot be written: %s", path,
                   why);
    return code;
}

int writable_check_checkpoint(const char *path, stoker_error *error)
{
    if (path != NULL && stk_output_is_in_place(path))
        return refuse(path, STOKER_EINVAL, 0,
                      "it is not a regular file, which a checkpoint must be", error);
    const int os_errno = path == NULL ? 0 : stk_output_check(path);
    return os_errno == 0 ? STOKER_OK
                         : refuse(path, STOKER_EIO, os_errno, stk_output_reason(os_errno), error);
}
