/* notes.h - strings that a program saves with its weights for the run that continues. */
#ifndef STK_TRAINER_NOTES_H
#define STK_TRAINER_NOTES_H

#include "trainer/files/tensors.h"

enum { STK_TRAINER_NOTES_MAX = 32, STK_NOTE_KEY_MAX = 63, STK_NOTE_VALUE_MAX = 8191 };

/* All zero is empty. The strings are owned. */
struct stk_notes {
    struct stk_note note[STK_TRAINER_NOTES_MAX];
    uint32_t count;
};

void stk_notes_free(struct stk_notes *notes);

#endif
