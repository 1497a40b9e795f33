/* edits.h - an input that says where to change a good file, so that most of it stays good.
 *
 *   a change is   2 bytes offset, 1 byte count N = 1..8 (modulo), N bytes
 */
#ifndef STK_FUZZ_EDITS_H
#define STK_FUZZ_EDITS_H

#include <stddef.h>
#include <stdint.h>

/* Make the changes that bytes[0..size) says to file[0..file_bytes). Offsets wrap around. */
static inline void stk_fuzz_edit(uint8_t *file, size_t file_bytes, const uint8_t *bytes,
                                 size_t size)
{
    for (size_t at = 0; at + 3 < size;) {
        const size_t offset = (size_t)(bytes[at] | bytes[at + 1] << 8);
        const size_t count = 1 + bytes[at + 2] % 8;
        at += 3;
        for (size_t i = 0; i < count && at < size; i++)
            file[(offset + i) % file_bytes] = bytes[at++];
    }
}

#endif
