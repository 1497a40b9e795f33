/* colour_avx2.c - colour steps, eight pixels at once. */
#define COLOUR_NAME(name) name##_avx2
#include "kernels/transform/colour_body.h"
