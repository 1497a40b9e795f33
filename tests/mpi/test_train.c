/* test_train.c - the cases of support/rank_train_cases.h, by MPI. */
#include "support/rank_train_cases.h"

int main(void)
{
    meet();
    cases_of_any_number();
    cases_of_several();
    return 0;
}
