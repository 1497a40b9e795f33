/* error.c - the texts and names of stoker/error.h. Apart from base/, which the trainer links
 * a copy of: these are exported by libstoker alone. */
#include <stoker/error.h>

#define TEXT_OF_ERROR(name, value, text)                                                           \
    case name:                                                                                     \
        return text;
#define NAME_OF_ERROR(name, value, text)                                                           \
    case name:                                                                                     \
        return #name;

const char *stoker_strerror(int code)
{
    switch (code) {
        STOKER_ERRORS(TEXT_OF_ERROR)
    case STOKER_OK:
        return "success";
    case STOKER_EPOCH_END:
        return "the epoch is over";
    case STOKER_FINISHED:
        return "every epoch is over";
    case STOKER_INTERRUPTED:
        return "interrupted";
    case STOKER_TIMEOUT:
        return "no batch became ready in time";
    case STOKER_BUSY:
        return "the next slot is still lent: release its batch first";
    default:
        return "unknown error code";
    }
}

const char *stoker_error_name(int code)
{
    switch (code) {
        STOKER_ERRORS(NAME_OF_ERROR)
    case STOKER_OK:
        return "STOKER_OK";
    case STOKER_EPOCH_END:
        return "STOKER_EPOCH_END";
    case STOKER_FINISHED:
        return "STOKER_FINISHED";
    case STOKER_INTERRUPTED:
        return "STOKER_INTERRUPTED";
    case STOKER_TIMEOUT:
        return "STOKER_TIMEOUT";
    case STOKER_BUSY:
        return "STOKER_BUSY";
    default:
        return "STOKER_UNKNOWN";
    }
}

const char *stoker_stage_name(stoker_stage stage)
{
    static const char *const names[] = { "options", "open",     "locate", "read",
                                         "decode",  "transfer", "wait",   "hook" };
    return (unsigned)stage < sizeof(names) / sizeof(names[0]) ? names[stage] : "unknown";
}
