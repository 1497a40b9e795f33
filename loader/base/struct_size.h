/* struct_size.h - structs of callers that were compiled with another version of the headers.
 *
 * struct_size is the first member of every struct that can grow. An older caller has a smaller one: the rest keeps
 * its defaults, and nothing is written beyond it. A newer caller has a larger one, which is refused: it may ask for
 * something that this version cannot do.
 */
#ifndef STK_STRUCT_SIZE_H
#define STK_STRUCT_SIZE_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of a struct that ends with `member`. */
#define STK_SIZE_UP_TO(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

/* Returns true if a struct of `size` bytes is at least that of the first version, and no larger than ours. */
static inline bool stk_struct_size_fits(size_t size, size_t first, size_t ours)
{
    return size >= first && size <= ours;
}

#endif
