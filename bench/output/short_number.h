/* short_number.h - a number with three digits and k, M, G or T. */
#ifndef BENCH_OUTPUT_SHORT_NUMBER_H
#define BENCH_OUTPUT_SHORT_NUMBER_H

/* 3741000 -> "3.74 M", NaN -> "-". Returns out. */
const char *bench_short_number(char out[16], double value);

#endif
