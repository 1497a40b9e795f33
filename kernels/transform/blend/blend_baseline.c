/* blend_baseline.c - mixup for any CPU. */
#define MIX_NAME(name) name##_baseline
#include "kernels/transform/blend/blend_body.h"
