/* crc32c.h - CRC-32C (Castagnoli, reflected polynomial 0x82F63B78), as in RFC 3720. */
#ifndef STK_TRAINER_CRC32C_H
#define STK_TRAINER_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The checksum of bytes that follow others whose checksum is crc; 0 to begin. */
uint32_t stk_crc32c(uint32_t crc, const void *bytes, size_t count);

/* The two ways to work it out; stk_crc32c() takes the second where the processor has it. */
uint32_t stk_crc32c_table(uint32_t crc, const void *bytes, size_t count);
bool stk_crc32c_has_instruction(void);
uint32_t stk_crc32c_instruction(uint32_t crc, const void *bytes, size_t count);

#endif
