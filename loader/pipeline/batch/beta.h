/* beta.h - numbers from Beta(alpha, alpha), with the same bits on every machine. */
#ifndef STK_PIPELINE_BETA_H
#define STK_PIPELINE_BETA_H

#include <stoker/rng.h>

/* Returns a number in 0..1; alpha 0.01..100. Draws two numbers or more. alpha <= 1: Jöhnk,
 * "Erzeugung von betaverteilten und gammaverteilten Zufallszahlen", Metrika 8, 1964. alpha > 1: two
 * numbers from the gamma distribution by Marsaglia and Tsang, "A simple method for generating gamma
 * variables", ACM TOMS 26, 2000. */
double stk_beta(stoker_rng *rng, double alpha);

#endif
