/* stoker/remote.h - read data sets from http, https, S3 and Hugging Face.
 *
 *   stoker_dataset_open(&set, "tar:https://host/{000..099}.tar", NULL, &error)
 *
 * Names that begin with http://, https://, s3:// or hf:// need nothing of this header: without a
 * storage of the caller's, they are read with the defaults below. Make a storage to change them:
 *
 *   stoker_remote_options remote = STOKER_REMOTE_OPTIONS_INIT;
 *   remote.ca_file = "company.pem";
 *   stoker_storage_remote_create(&options.storage, &remote, &error);
 *
 * Names that are no URLs stay local files. Proxies follow libcurl's conventions (http_proxy,
 * https_proxy, no_proxy). Certificates are always verified. Secrets appear in no message.
 */
#ifndef STOKER_REMOTE_H
#define STOKER_REMOTE_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/export.h>
#include <stoker/storage.h>

STOKER_BEGIN_DECLS

enum {
    STOKER_REMOTE_CONNECTIONS_MAX = 256,
    STOKER_REMOTE_RETRIES_MAX = 100,
    STOKER_REMOTE_TIMEOUT_MAX_MS = 24 * 60 * 60 * 1000
};

/* Credentials for S3. Its size never changes: new members replace reserved bytes. */
typedef struct stoker_remote_credentials {
    char access_key[256];
    char secret_key[256];
    char session_token[8192]; /* "" = none */
    uint64_t expires_unix_s;  /* asked again a little earlier; 0 = not known */
    uint64_t reserved[4];     /* 0 */
} stoker_remote_credentials;

/* How to reach servers. Texts are copied. Start from STOKER_REMOTE_OPTIONS_INIT. */
typedef struct stoker_remote_options {
    size_t struct_size; /* set by STOKER_REMOTE_OPTIONS_INIT */
    /* Requests in flight per worker, 0..256. Default 0 = the read depth, at most 64. */
    uint32_t connections;
    /* Further attempts after the first one fails in a way that may pass, 0..100. Default 5. */
    uint32_t retries;
    uint32_t connect_timeout_ms; /* to reach a server, TLS included; 1..1 day; default 10,000 */
    uint32_t stall_timeout_ms;   /* with less than 1 KiB/s; 1,000..1 day; default 10,000 */
    /* For one attempt, 1..1 day; one more second for each further 64 KiB. Default 60,000. */
    uint32_t request_timeout_ms;
    /* File of trusted certificates, PEM. Default NULL = what the environment variable
     * CURL_CA_BUNDLE or SSL_CERT_FILE names, else libcurl's. */
    const char *ca_file;
    const char *user_agent; /* default NULL = "stoker/VERSION" */

    /* ---- S3 ---- */

    const char *endpoint; /* "https://minio.example:9000"; default NULL = the environment's */
    const char *region;   /* default NULL = the environment's or the profile's */
    const char *profile;  /* in the credentials file; default NULL = the environment's */
    /* Called for the first request, and when the credentials have expired or are refused; any
     * thread, one at a time. Fill *out, which is zeroed. Returns 0 or a stoker_err < 0. Default
     * NULL = the environment, then the credentials file. */
    int (*credentials)(void *self, stoker_remote_credentials *out, stoker_error *error);
    void *credentials_self; /* must outlive the storage */

    /* ---- Hugging Face ---- */

    const char *token; /* default NULL = the environment's, then the file that its login writes */
} stoker_remote_options;

#define STOKER_REMOTE_OPTIONS_DEFAULTS                                                             \
    STOKER_DEFAULT(struct_size, sizeof(stoker_remote_options))                                     \
    STOKER_DEFAULT(retries, 5)                                                                     \
    STOKER_DEFAULT(connect_timeout_ms, 10000)                                                      \
    STOKER_DEFAULT(stall_timeout_ms, 10000)                                                        \
    STOKER_DEFAULT(request_timeout_ms, 60000)

STOKER_MAKER(stoker_remote_options, STOKER_REMOTE_OPTIONS_DEFAULTS)
#define STOKER_REMOTE_OPTIONS_INIT                                                                 \
    STOKER_INITIALIZER(stoker_remote_options, STOKER_REMOTE_OPTIONS_DEFAULTS)
STOKER_API int stoker_remote_options_init_sized(stoker_remote_options *out, size_t struct_size);

/* Make a storage of URLs for stoker_dataset_options.storage; options NULL = the defaults. Close it
 * with stoker_storage_close(). On failure *out is untouched, and *error has the cause; error may be
 * NULL. Any thread. Errors: STOKER_EINVAL, STOKER_ENOMEM. Without libcurl, opening a data set
 * fails with STOKER_ENOTSUP. */
STOKER_API int stoker_storage_remote_create(stoker_storage **out,
                                            const stoker_remote_options *options,
                                            stoker_error *error);

STOKER_END_DECLS
#endif
