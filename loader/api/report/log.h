/* log.h - messages for options.on_log: what create chose, and problems that do not end the run.
 *
 * Consumer's thread, which is create's until the loader is made. Nothing here happens without
 * on_log. */
#ifndef STK_API_LOG_H
#define STK_API_LOG_H

#include <stoker/loader.h>

/* What was said last, so that it is said once. */
struct stk_log {
    uint64_t bad_samples;      /* skipped, substituted or failed so far */
    uint64_t bad_samples_next; /* the next one that is reported */
    uint32_t pread_workers;
    uint32_t kept_limit; /* enum stk_kept_limit */
    bool cache_paused;
    bool cache_spoilt; /* once is enough: more blocks may follow */
};

/* Pass one line to on_log, made printable. */
void stk_log_say(const stoker_loader *loader, stoker_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The loader is made: report what it chose, and what it could not have. */
void stk_log_choices(stoker_loader *loader);

/* A sample was skipped or substituted. The first ten are reported, then the 20th, the 40th and so
 * on. */
void stk_log_bad_sample(stoker_loader *loader, const stoker_error *report);

/* At the end of next(): report what has changed, and what workers say. */
void stk_log_update(stoker_loader *loader);

#endif
