/* choose_backend.c - see choose_backend.h. */
#include "trainer/stage/choose_backend.h"

#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"

bool stk_backend_lacks(const struct stk_backend_ops *ops, const struct stk_backend_options *asked,
                       char text[STK_LACK_BYTES])
{
    const bool wrong_type = (ops->storages >> asked->storage & 1) == 0;
    const char *const lack = wrong_type         ? "computes in float32 and bfloat16 only"
                             : ops->has_engines ? NULL
                             : asked->benchmark ? "has no algorithms to choose from"
                             : asked->tf32      ? "rounds no factors"
                                                : NULL;
    const char *const option = wrong_type ? "precision " : asked->benchmark ? "benchmark" : "tf32";
    (void)snprintf(text, STK_LACK_BYTES, "%s%s: back end %s %s", option,
                   wrong_type ? stoker_dtype_name(asked->storage) : "", ops->name,
                   lack == NULL ? "" : lack);
    return lack != NULL;
}

/* Length of an error's message without the generic text of its code. */
static int said_length(const stoker_error *cause)
{
    const char *const words = stoker_strerror(cause->code);
    size_t said = strlen(cause->message);
    if (said > strlen(words) + 2 && strcmp(cause->message + said - strlen(words), words) == 0)
        said -= strlen(words) + 2;
    return (int)said;
}

/* Only a GPU supports this, and there is none. The generic text of the code is not repeated. */
static int needs_gpu(const char *lack, const struct stk_backend_options *asked, int rc,
                     const stoker_error *cause, stoker_error *error)
{
    char other[STK_LACK_BYTES];
    return stk_refuse_option(error, rc, "%s (leave it out%s), and no GPU is available: %.*s", lack,
                             stk_backend_lacks(&stk_backend_ref, asked, other)
                                 ? ""
                                 : ", or choose back end ref, which is slow",
                             said_length(cause), cause->message);
}

/* There is no GPU, for this cause. If the CPU lacks instructions, the message has both reasons. */
static int create_on_cpu(struct stk_backend **out, const struct stk_backend_ops *ops,
                         const struct stk_backend_options *options, const stoker_error *no_gpu,
                         stoker_error *error)
{
    stoker_error own = { .message = "" };
    const int rc = ops->create(out, options, &own);
    if (rc == STOKER_OK)
        return rc;
    if (rc != STOKER_ENOTSUP) {
        if (error != NULL)
            *error = own;
        return rc;
    }
    return stk_refuse_option(error, rc, "%.*s; and no GPU is available: %.*s", said_length(&own),
                             own.message, said_length(no_gpu), no_gpu->message);
}

int stk_backend_open(struct stk_backend **out, const struct stk_backend_ops **ops,
                     const struct stk_trainer_settings *settings, stoker_error *error)
{
    stoker_error cause = { .message = "" };
    char lack[STK_LACK_BYTES];
    const struct stk_backend_options *const options = &settings->backend;
    *ops = settings->automatic ? &stk_backend_cuda : settings->ops;
    int rc = (*ops)->create(out, options, settings->automatic ? &cause : error);
    if (rc != STOKER_OK && settings->automatic) {
        *ops = settings->ops;
        if (stk_backend_lacks(*ops, options, lack))
            return needs_gpu(lack, options, rc, &cause, error);
        rc = create_on_cpu(out, *ops, options, &cause, error);
    }
    return rc;
}
