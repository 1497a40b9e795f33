/* train.cu - all kernels of a training step, in one fat binary. */
#include "kernels/train/batch_norm.cu"
#include "kernels/train/channel_sums.cu"
#include "kernels/train/dropout.cu"
#include "kernels/train/elementwise.cu"
#include "kernels/train/loss.cu"
#include "kernels/train/pool.cu"
#include "kernels/train/update.cu"
