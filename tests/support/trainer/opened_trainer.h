/* opened_trainer.h - a trainer that is made or refused as it should be, or the test fails and says
 * why. */
#ifndef STK_TEST_OPENED_TRAINER_H
#define STK_TEST_OPENED_TRAINER_H

#include <criterion/criterion.h>
#include <stoker/trainer.h>
#include <string.h>

static inline stoker_trainer *trainer_of(const stoker_model *model, stoker_trainer_options options)
{
    stoker_trainer *trainer = NULL;
    stoker_error error = { .code = 0 };
    cr_assert_eq(stoker_trainer_create(&trainer, model, &options, &error), STOKER_OK, "%s",
                 error.message);
    return trainer;
}

/* It is made on this back end, and is not kept. */
static inline void expect_taken(const stoker_model *model, stoker_trainer_options options,
                                const char *backend)
{
    stoker_trainer *trainer = trainer_of(model, options);
    cr_assert_str_eq(stoker_trainer_backend(trainer), backend);
    stoker_trainer_destroy(&trainer);
}

/* The message has these words. */
static inline void expect_refused(const stoker_model *model, stoker_trainer_options options,
                                  int code, const char *words)
{
    stoker_trainer *trainer = NULL;
    stoker_error error = { .code = 0 };
    cr_assert_eq(stoker_trainer_create(&trainer, model, &options, &error), code, "%s",
                 error.message);
    cr_assert_null(trainer);
    cr_assert_not_null(strstr(error.message, words), "%s", error.message);
}

#endif
