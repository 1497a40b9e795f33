/* transform_ranges.h - the ranges of STOKER_TRANSFORM_INIT, for transforms that are written as one
 * literal: a literal that began with the macro would set some members twice. */
#ifndef STK_TEST_TRANSFORM_RANGES_H
#define STK_TEST_TRANSFORM_RANGES_H

#define STK_USUAL_AREA  .area_min = 0.08F, .area_max = 1.0F
#define STK_USUAL_RATIO .ratio_min = 3.0F / 4.0F, .ratio_max = 4.0F / 3.0F
#define STK_USUAL_SIGMA .sigma_min = 0.1F, .sigma_max = 2.0F

#endif
