/* http.c - see http.h. */
#include "loader/storage/remote/http.h"

#include <errno.h>
#include <stoker/version.h>
#include <string.h>

#include "loader/base/environment.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/base/struct_size.h"
#include "loader/storage/remote/hf_list.h"
#include "loader/storage/remote/ring.h"
#include "loader/storage/remote/s3_list.h"
#include "loader/storage/remote/transfer.h"
#include "loader/storage/remote/url.h"
#include "loader/storage/storage.h"

STK_DEFINE_INIT_SIZED(stoker_remote_options, STOKER_REMOTE_OPTIONS_INIT, token)

/* Bytes that a look reads where HEAD is refused; the rest of the answer says the size. */
enum { LOOK_BYTES = 1 };

/* ---- requests ------------------------------------------------------------------- */

/* Explain why a transfer failed. */
static int failed(const struct stk_transfer *transfer, stoker_error *error)
{
    char reason[STK_LINE_BYTES];
    const int os_errno = stk_transfer_reason(transfer, reason, sizeof(reason));
    return stk_refuse_spec(error, stk_error_from_errno(os_errno), "%s", reason);
}

static void drop(void *context, const uint8_t *bytes, size_t count)
{
    (void)context;
    (void)bytes;
    (void)count;
}

/* Run one request of a look. *size: the object's, or STK_UNKNOWN. */
static int look_by(struct stk_transfer *transfer, const char *name, uint64_t *size,
                   stoker_error *error)
{
    const int rc = stk_transfer_run(transfer, name, NULL, error);
    const struct stk_answer *answer = &transfer->answer;
    *size = STK_UNKNOWN;
    if (rc == STOKER_OK && transfer->verdict == STK_VERDICT_END)
        *size = answer->total;
    else if (rc == STOKER_OK && transfer->verdict == STK_VERDICT_TAKE)
        *size = answer->linked_size > 0 ? answer->linked_size
                : answer->has_range     ? answer->total
                                        : answer->length;
    stk_transfer_end(transfer);
    return rc;
}

static bool head_is_refused(const struct stk_transfer *transfer)
{
    return transfer->answer.status != 0 &&
           (transfer->verdict == STK_VERDICT_TAKE || transfer->verdict == STK_VERDICT_DENIED ||
            transfer->verdict == STK_VERDICT_FAIL);
}

/* HEAD; a server that refuses it, or says no length, is asked for the first byte. */
static int remote_look(void *self, const char *name, stoker_object *out, stoker_error *error)
{
    uint64_t size;
    struct stk_transfer transfer = { .remote = self,
                                     .method = STK_REMOTE_HEAD,
                                     .wanted = { .size = STK_UNKNOWN } };
    int rc = stk_remote_ready(self, error);
    if (rc == STOKER_OK)
        rc = look_by(&transfer, name, &size, error);
    if (rc != STOKER_OK)
        return rc;
    if (size == STK_UNKNOWN && head_is_refused(&transfer)) {
        transfer = (struct stk_transfer){ .remote = self,
                                          .wanted = { .bytes = LOOK_BYTES, .size = STK_UNKNOWN },
                                          .take = drop };
        rc = look_by(&transfer, name, &size, error);
    }
    if (rc != STOKER_OK)
        return rc;
    if (transfer.verdict == STK_VERDICT_TAKE && size == STK_UNKNOWN)
        return stk_refuse_spec(error, STOKER_ENOTSUP, "the server does not say its size");
    if (size == STK_UNKNOWN)
        return failed(&transfer, error);
    out->kind = STOKER_OBJECT_KIND_FILE;
    out->size = size;
    out->version = stk_answer_version(&transfer.answer, size);
    return STOKER_OK;
}

static int remote_list(void *self, const char *prefix, stoker_object_found *found, void *context,
                       stoker_error *error)
{
    struct stk_remote *remote = self;
    const int rc = stk_remote_ready(remote, error);
    if (rc != STOKER_OK)
        return rc;
    switch (stk_remote_scheme_of(prefix)) {
    case STK_REMOTE_S3:
        return stk_s3_list(&remote->s3, remote, prefix, found, context, error);
    case STK_REMOTE_HF:
        return stk_hf_list(&remote->hf, remote, prefix, found, context, error);
    case STK_REMOTE_HTTP:
    case STK_REMOTE_NONE:
        break;
    }
    return stk_refuse_spec(error, STOKER_ENOTSUP,
                           "web servers list no folders: name each file, as in {000..099}");
}

static void copy_bytes(void *context, const uint8_t *bytes, size_t count)
{
    uint8_t **to = context;
    memcpy(*to, bytes, count);
    *to += count;
}

static int64_t remote_read(void *self, const char *name, uint64_t version, uint64_t offset,
                           void *buffer, uint64_t bytes, stoker_error *error)
{
    uint8_t *to = buffer;
    struct stk_transfer transfer = {
        .remote = self,
        .wanted = { .offset = offset, .bytes = bytes, .size = STK_UNKNOWN, .version = version },
        .take = copy_bytes,
        .context = &to,
    };
    int64_t result = -EIO;
    if (stk_remote_ready(self, error) == STOKER_OK &&
        stk_transfer_run(&transfer, name, NULL, error) == STOKER_OK) {
        const bool good =
            transfer.verdict == STK_VERDICT_TAKE || transfer.verdict == STK_VERDICT_END;
        result = good ? to - (uint8_t *)buffer
                      : -stk_transfer_reason(&transfer, error->message, sizeof(error->message));
    }
    stk_transfer_end(&transfer);
    return result;
}

/* ---- life ----------------------------------------------------------------------- */

static void remote_destroy(void *self)
{
    struct stk_remote *remote = self;
    for (uint32_t i = 0; i < remote->idle_count; i++)
        remote->curl->easy_cleanup(remote->idle[i]);
    pthread_mutex_destroy(&remote->lock);
    stk_s3_destroy(&remote->s3);
    stk_hf_destroy(&remote->hf);
    stk_free(remote->texts);
    stk_free(remote);
}

static int check_options(const stoker_remote_options *options, stoker_error *error)
{
    const struct {
        const char *name;
        uint32_t value, least, most;
    } ranges[] = {
        { "connections", options->connections, 0, STOKER_REMOTE_CONNECTIONS_MAX },
        { "retries", options->retries, 0, STOKER_REMOTE_RETRIES_MAX },
        { "connect_timeout_ms", options->connect_timeout_ms, 1, STOKER_REMOTE_TIMEOUT_MAX_MS },
        { "stall_timeout_ms", options->stall_timeout_ms, 1000, STOKER_REMOTE_TIMEOUT_MAX_MS },
        { "request_timeout_ms", options->request_timeout_ms, 1, STOKER_REMOTE_TIMEOUT_MAX_MS },
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (ranges[i].value < ranges[i].least || ranges[i].value > ranges[i].most)
            return stk_refuse_option(error, STOKER_EINVAL, "%s %u is not in %u..%u", ranges[i].name,
                                     ranges[i].value, ranges[i].least, ranges[i].most);
    return STOKER_OK;
}

/* Make the texts of the options our own. */
static bool copy_texts(struct stk_remote *remote)
{
    stoker_remote_options *options = &remote->options;
    const char **const texts[] = { &options->ca_file, &options->user_agent };
    size_t bytes = 1;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        bytes += *texts[i] == NULL ? 0 : strlen(*texts[i]) + 1;
    char *to = remote->texts = stk_calloc(1, bytes);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) && to != NULL; i++)
        if (*texts[i] != NULL) {
            const size_t length = strlen(*texts[i]) + 1;
            *texts[i] = memcpy(to, *texts[i], length);
            to += length;
        }
    return remote->texts != NULL;
}

static struct stk_remote *make_remote(const stoker_remote_options *options)
{
    struct stk_remote *remote = stk_calloc(1, sizeof(*remote));
    if (remote == NULL)
        return NULL;
    remote->options = *options;
    remote->options.endpoint = remote->options.region = remote->options.profile = NULL;
    remote->options.token = NULL;
    if (remote->options.user_agent == NULL)
        remote->options.user_agent = "stoker/" STOKER_VERSION_STRING;
    if (remote->options.ca_file == NULL)
        remote->options.ca_file = stk_environment("CURL_CA_BUNDLE");
    if (remote->options.ca_file == NULL)
        remote->options.ca_file = stk_environment("SSL_CERT_FILE");
    if (!copy_texts(remote) || pthread_mutex_init(&remote->lock, NULL) != 0) {
        stk_free(remote->texts);
        stk_free(remote);
        return NULL;
    }
    stk_remote_reader_init(remote);
    return remote;
}

int stoker_storage_remote_create(stoker_storage **out, const stoker_remote_options *options,
                                 stoker_error *error)
{
    stoker_remote_options asked = STOKER_REMOTE_OPTIONS_INIT;
    if (options != NULL &&
        !stk_struct_fits(options, STK_SIZE_UP_TO(stoker_remote_options, token), sizeof(*options)))
        return stk_refuse_option(error, STOKER_EINVAL, STK_STRUCT_REFUSAL, "stoker_remote_options",
                                 options->struct_size, sizeof(*options),
                                 "STOKER_REMOTE_OPTIONS_INIT");
    if (options != NULL)
        stk_struct_read(&asked, sizeof(asked), options, options->struct_size);
    int rc = check_options(&asked, error);
    if (rc != STOKER_OK)
        return rc;
    struct stk_remote *remote = make_remote(&asked);
    if (remote == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "a storage");
    rc = stk_s3_init(&remote->s3, &asked, error);
    const int hf_rc = stk_hf_init(&remote->hf, &asked, rc == STOKER_OK ? error : NULL);
    const stoker_storage_ops ops = { .struct_size = sizeof(ops),
                                     .name = "remote",
                                     .look = remote_look,
                                     .list = remote_list,
                                     .read = remote_read,
                                     .reader = &remote->reader,
                                     .destroy = remote_destroy };
    rc = rc == STOKER_OK ? hf_rc : rc;
    if (rc == STOKER_OK)
        rc = stoker_storage_create(out, &ops, remote, error);
    if (rc != STOKER_OK)
        remote_destroy(remote);
    else
        (*out)->urls_only = true;
    return rc;
}

static stoker_storage *standard;

static void make_standard(void)
{
    (void)stoker_storage_remote_create(&standard, NULL, NULL);
}

stoker_storage *stk_remote_default(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, make_standard);
    return standard;
}
