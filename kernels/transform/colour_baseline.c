/* colour_baseline.c - colour steps for any CPU. */
#define COLOUR_NAME(name) name##_baseline
#include "kernels/transform/colour_body.h"
