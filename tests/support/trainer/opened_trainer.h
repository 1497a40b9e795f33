/* opened_trainer.h - a trainer that is made, or the test fails and says why. */
#ifndef STK_TEST_OPENED_TRAINER_H
#define STK_TEST_OPENED_TRAINER_H

#include <criterion/criterion.h>
#include <stoker/trainer.h>

static inline stoker_trainer *trainer_of(const stoker_model *model, stoker_trainer_options options)
{
    stoker_trainer *trainer = NULL;
    stoker_error error = { .code = 0 };
    cr_assert_eq(stoker_trainer_create(&trainer, model, &options, &error), STOKER_OK, "%s",
                 error.message);
    return trainer;
}

#endif
