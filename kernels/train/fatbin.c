/* fatbin.c - the training kernels that nvcc compiled, as bytes in the library. */
#include "kernels/fatbin.h"
#include "kernels/train/train.h"

#ifdef STK_TRAIN_FATBIN
STK_EMBED_FATBIN(stk_train_fatbin, STK_TRAIN_FATBIN)
#else
STK_NO_FATBIN(stk_train_fatbin)
#endif
STK_DESCRIBE_FATBIN(stk_train_targets)
