/* test_train.c - the cases of support/ranks/rank_train_cases.h, by MPI. */
#include "support/ranks/rank_train_cases.h"

int main(void)
{
    meet();
    cases_of_any_number();
    cases_of_several();
    return 0;
}
