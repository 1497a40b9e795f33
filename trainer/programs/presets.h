/* presets.h - the settings of each preset. */
#ifndef STK_PROGRAMS_PRESETS_H
#define STK_PROGRAMS_PRESETS_H

#include "trainer/programs/arguments.h"

void preset_apply(struct arguments *arguments, enum preset preset);

#endif
