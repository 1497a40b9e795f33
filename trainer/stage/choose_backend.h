/* choose_backend.h - which back end a stage runs on. */
#ifndef STK_TRAINER_CHOOSE_BACKEND_H
#define STK_TRAINER_CHOOSE_BACKEND_H

#include "trainer/stage/settings.h"

/* Returns true if the back end cannot do all that is asked for. text: the first such option, and
 * why, as in "benchmark: back end cpu has no algorithms to choose from". */
enum { STK_LACK_BYTES = 96 };
bool stk_backend_lacks(const struct stk_backend_ops *ops, const struct stk_backend_options *asked,
                       char text[STK_LACK_BYTES]);

/* Opens the back end of the settings. If it is left to us, that is a GPU's, else the CPU's, unless
 * the options ask for what the CPU cannot do. */
int stk_backend_open(struct stk_backend **out, const struct stk_backend_ops **ops,
                     const struct stk_trainer_settings *settings, stoker_error *error);

#endif
