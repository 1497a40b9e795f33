/* struct_size.h - structs of callers that were compiled with another version of the headers.
 *
 * struct_size is the first member of every struct that can grow, and new members come last. An
 * older caller's struct is smaller: what it lacks keeps its default, and nothing is written beyond
 * it. A newer caller's is larger: it is taken if all bytes that this version does not know are 0,
 * else refused, since they ask for something that it cannot do.
 */
#ifndef STK_STRUCT_SIZE_H
#define STK_STRUCT_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* More is no size but an uninitialized struct. */
enum { STK_STRUCT_BYTES_MAX = 4096 };

/* Bytes of a struct that ends with `member`. */
#define STK_SIZE_UP_TO(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

/* Returns true if a struct that the library fills in has at least the members of version 1.0. */
static inline bool stk_struct_size_fits(size_t size, size_t first)
{
    return size >= first && size <= STK_STRUCT_BYTES_MAX;
}

/* Returns true if a struct that the caller has filled in, whose first member is its size, can be
 * read. */
static inline bool stk_struct_fits(const void *given, size_t first, size_t ours)
{
    const unsigned char *bytes = given;
    size_t size;
    memcpy(&size, given, sizeof(size));
    if (!stk_struct_size_fits(size, first))
        return false;
    for (size_t at = ours; at < size; at++)
        if (bytes[at] != 0)
            return false;
    return true;
}

/* Copy what both versions know, `size` bytes at most; struct_size becomes ours. */
static inline void stk_struct_read(void *ours, size_t our_size, const void *given, size_t size)
{
    memcpy(ours, given, size < our_size ? size : our_size);
    memcpy(ours, &our_size, sizeof(our_size));
}

/* Fill in a caller's struct of `size` bytes: members that this version lacks become 0. */
static inline void stk_struct_write(void *given, size_t size, const void *ours, size_t our_size)
{
    memcpy(given, ours, size < our_size ? size : our_size);
    if (size > our_size)
        memset((char *)given + our_size, 0, size - our_size);
    memcpy(given, &size, sizeof(size));
}

/* Define stoker_NAME_init_sized(); `last` is the last member of the first version. Beside a library
 * that knows struct_size (stoker/export.h). */
#define STK_DEFINE_INIT_SIZED(type, initializer, last)                                             \
    int type##_init_sized(type *out, size_t struct_size)                                           \
    {                                                                                              \
        static const type standard = initializer;                                                  \
        if (out == NULL || !stk_struct_size_fits(struct_size, STK_SIZE_UP_TO(type, last)))         \
            return STOKER_EINVAL;                                                                  \
        stk_struct_write(out, struct_size, &standard, sizeof(standard));                           \
        return STOKER_OK;                                                                          \
    }

/* Room for a struct of any version that the caller's code fills in, all zero but for its size. */
union stk_room {
    size_t size; /* first member of the struct */
    max_align_t aligned;
    unsigned char bytes[STK_STRUCT_BYTES_MAX];
};

static inline void stk_room_init(union stk_room *room, size_t size)
{
    memset(room, 0, sizeof(*room));
    room->size = size;
}

/* Returns true if what the caller's code filled in can be read. It may have left out its size,
 * since `*out = (type){ ... }` does: then all of the room is looked at. */
static inline bool stk_room_fits(union stk_room *room, size_t first, size_t ours)
{
    if (room->size == 0)
        room->size = sizeof(*room);
    return stk_struct_fits(room, first, ours);
}

/* The message that names a struct which does not fit: its name, its size, its struct_size, its INIT
 * macro. */
#define STK_STRUCT_REFUSAL                                                                         \
    "%s: struct_size %zu: this version has %zu bytes, and what lies beyond them must be 0; start " \
    "from %s"

#endif
