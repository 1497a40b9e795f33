/* registered.h - the memory that a ring has page-locked. */
#ifndef STK_READER_REGISTERED_H
#define STK_READER_REGISTERED_H

#include <stdint.h>

/* Returns the bytes of the buffer at `base` if a ring of the io_uring reader has registered it with
 * the kernel, which locks them; 0 if not, or if the library is built without liburing. */
uint64_t stk_uring_registered_bytes(const void *ring, const void *base);

#endif
