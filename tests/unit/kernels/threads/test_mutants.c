/* test_mutants.c - the tests of this folder notice every kernel that is broken in one place.
 *
 *   barriers   each is left out, or reached by half of the block only
 *   fences     each is left out
 *   shuffles   the mask of each lacks a lane
 *   bounds     each comparison with a bound includes the bound (cuda_threads/mutants.sh)
 *
 * A mutant is caught if the harness finds something or the numbers differ, in any case of any
 * kernel: a barrier that block_sum() needs between two sums is of no use to a kernel with one.
 */
#include "support/gpu/kernel_case_on_threads.h"
#include "support/gpu/transform_kernel_cases.h"

#include "support/leaks.h"

enum { MUTANTS_MAX = 512 };

struct mutant {
    struct cuda_threads_mutation mutation;
    char kernel[64]; /* the first that reached the site */
    bool caught;
};

static struct mutant mutants[MUTANTS_MAX];
static size_t mutant_count;

/* The same site, in whatever copy of a template, is one mutant. */
static struct mutant *mutant_of(const struct cuda_site *site, int how, const char *kernel)
{
    for (size_t i = 0; i < mutant_count; i++)
        if (mutants[i].mutation.site->number == site->number && (int)mutants[i].mutation.how == how)
            return &mutants[i];
    cr_assert_lt(mutant_count, (size_t)MUTANTS_MAX);
    struct mutant *mutant = &mutants[mutant_count++];
    mutant->mutation.site = site;
    (void)snprintf(mutant->kernel, sizeof(mutant->kernel), "%s", kernel);
    memcpy(&mutant->mutation.how, &how, sizeof(mutant->mutation.how));
    return mutant;
}

static void try(struct kernel_case *c, struct kernel_run run, const struct cuda_site *site, int how)
{
    static struct kernel_verdict verdict;
    struct mutant *mutant = mutant_of(site, how, c->name);
    if (mutant->caught)
        return;
    run.mutation = mutant->mutation;
    kernel_case_run(c, &run, &verdict);
    mutant->caught = verdict.report.count > 0 || verdict.differences > 0;
}

/* Breaks each site that the case reaches. */
static void break_case(struct kernel_case *c, struct kernel_run run)
{
    static struct kernel_verdict verdict;
    run.module = STOKER_TEST_MUTANTS;
    kernel_case_run(c, &run, &verdict);
    cr_assert_eq(verdict.report.count + verdict.differences, 0, "%s [%s]: %s%s", c->name, c->label,
                 verdict.report.findings[0].text, verdict.difference);
    cr_assert_lt(verdict.report.site_count, (uint32_t)CUDA_THREADS_SITES_MAX);
    for (uint32_t i = 0; i < verdict.report.site_count; i++) {
        const struct cuda_site *site = verdict.report.sites[i];
        if (site->kind == CUDA_SITE_BARRIER || site->kind == CUDA_SITE_FENCE)
            try(c, run, site, CUDA_THREADS_DROPPED);
        if (site->kind == CUDA_SITE_BARRIER)
            try(c, run, site, CUDA_THREADS_DIVERGENT);
        if (site->kind == CUDA_SITE_SHUFFLE)
            try(c, run, site, CUDA_THREADS_NARROWED);
        if (site->kind == CUDA_SITE_BOUND)
            try(c, run, site, CUDA_THREADS_WIDENED);
    }
}

/* Of each kernel the first cases, then one in SHARE. */
static void break_everywhere(struct kernel_case *c)
{
    enum { SHARE = 7, FIRST = 6 };
    const unsigned cases = ++*kernel_cases_of(c->name);
    if (cases <= FIRST || cases % SHARE == 0) {
        break_case(c, (struct kernel_run){ 0 });
        break_case(c, (struct kernel_run){ .seed = 1, .blocks_max = 2 });
    }
    kernel_case_end(c);
}

/* These two look again whether a coordinate is visible, so one beyond the last does no harm. */
static bool looks_twice(const struct mutant *mutant)
{
    return mutant->mutation.how == CUDA_THREADS_WIDENED &&
           (strcmp(mutant->kernel, "stk_taps") == 0 || strcmp(mutant->kernel, "stk_resize") == 0);
}

/* All that were tried must have been caught, but for `harmless` ones; and at least `least` of that
 * kind were tried. */
static void check_caught(int how, size_t least, size_t harmless)
{
    size_t missed = 0;
    static const char *const names[] = { "left out", "reached by half the block",
                                         "of a narrow mask", "with its bound" };
    size_t tried = 0;
    for (size_t i = 0; i < mutant_count; i++) {
        const struct cuda_site *site = mutants[i].mutation.site;
        if ((int)mutants[i].mutation.how != how)
            continue;
        tried++;
        missed += looks_twice(&mutants[i]) && !mutants[i].caught;
        cr_expect(mutants[i].caught || looks_twice(&mutants[i]), "not caught: %s:%d, site %d, %s",
                  site->file, site->line, site->number, names[how]);
    }
    cr_assert_eq(missed, harmless);
    cr_assert_geq(tried, least, "%zu mutants %s", tried, names[how]);
    printf("%zu mutants %s\n", tried, names[how]);
}

CleanTest(mutants, of_training_kernels_are_caught)
{
    each_train_case(break_everywhere);
    check_caught(CUDA_THREADS_DROPPED, 9, 0); /* seven barriers, two fences */
    check_caught(CUDA_THREADS_DIVERGENT, 7, 0);
    check_caught(CUDA_THREADS_NARROWED, 5, 0);
    check_caught(CUDA_THREADS_WIDENED, 50, 0);
}

CleanTest(mutants, of_transforms_are_caught)
{
    each_picture_case(break_everywhere);
    /* Two barriers in three kernels, three that all crops share. */
    check_caught(CUDA_THREADS_DROPPED, 9, 0);
    check_caught(CUDA_THREADS_DIVERGENT, 9, 0);
    check_caught(CUDA_THREADS_WIDENED, 25, 2);
}
