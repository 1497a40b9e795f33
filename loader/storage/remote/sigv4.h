/* sigv4.h - AWS Signature Version 4 of a request without a body.
 *
 * libcurl's own (CURLOPT_AWS_SIGV4) is not used: what it signs differs between versions. 7.88 signs
 * path and query as they are given, 8.8 leaves '=' in the path as it is, later versions encode once
 * more what is encoded; and only some send x-amz-content-sha256.
 */
#ifndef STK_STORAGE_REMOTE_SIGV4_H
#define STK_STORAGE_REMOTE_SIGV4_H

#include <stdbool.h>
#include <stddef.h>
#include <stoker/remote.h>
#include <time.h>

#include "loader/storage/remote/url.h"

struct stk_signed {
    const char *method; /* "GET" */
    const char *host;   /* as in the Host header: with a port that is not the scheme's */
    const char *path;   /* encoded once, beginning with '/' */
    const char *query;  /* encoded, sorted by name; "" = none */
    const char *region;
    const char *service; /* "s3" */
};

/* Add the headers that sign the request, each line ended by "\n": Authorization, x-amz-date,
 * x-amz-content-sha256 and, with a session token, x-amz-security-token. Other headers, such as
 * Range, may be added to the request unsigned. */
void stk_sigv4_sign(struct stk_text *headers, const struct stk_signed *request,
                    const stoker_remote_credentials *credentials, time_t now);

#endif
