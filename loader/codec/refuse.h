/* refuse.h - set error->message and return a code.
 *
 * Reports of bad samples keep 63 characters, so messages are short.
 */
#ifndef STK_CODEC_REFUSE_H
#define STK_CODEC_REFUSE_H

#include <stdio.h>
#include <stoker/error.h>

#define stk_refuse(error, code, ...)                                                               \
    ((error) == NULL                                                                               \
         ? (code)                                                                                  \
         : ((void)snprintf((error)->message, sizeof((error)->message), __VA_ARGS__), (code)))

#endif
