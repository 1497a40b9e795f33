/* options.h - a caller's stoker_trainer_options, checked and resolved to settings. */
#ifndef STK_TRAINER_OPTIONS_H
#define STK_TRAINER_OPTIONS_H

#include <stoker/trainer.h>

#include "trainer/stage/settings.h"

enum { STK_METRICS_INTERVAL_MAX = 1 << 20 };

/* Copies the options of a caller compiled with this version, an older one (its struct is smaller;
 * missing fields get their defaults) or a newer one (larger; what lies beyond ours must be 0).
 * STOKER_EINVAL. */
int stk_trainer_options_copy(stoker_trainer_options *out, const stoker_trainer_options *given,
                             stoker_error *error);

/* STOKER_EINVAL; STOKER_EDEVICE: no such back end. On failure *out is partly filled. */
int stk_trainer_settings_read(struct stk_trainer_settings *out, const stoker_trainer_options *given,
                              stoker_error *error);

/* Sets ops, automatic and backend.device from a name: "cuda:1" is "cuda" and device 1; "auto" is
 * "cpu" if no GPU can be opened. STOKER_EDEVICE: no such name. */
int stk_trainer_read_backend(struct stk_trainer_settings *out, const char *given,
                             stoker_error *error);

#endif
