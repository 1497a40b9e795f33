/* huffman.c - see huffman.h.
 *
 *   file     [codes, FF 00 for FF][RSTn][codes][RSTn] ... [EOI]
 *                 |  a piece at a time, FF for FF 00, up to the marker
 *   window   [codes                   ][zeros: slack]
 *                 |  word: 56 bits and more
 *   entry    bits used | run + 1 | value       or what a longer code needs
 */
#ifdef STOKER_HAVE_JPEG
#include "loader/codec/jpeg/huffman.h"

#include <dlfcn.h>
#include <string.h>

#include "loader/base/bytes.h"
#include "loader/base/cpu/cpu_features.h"
#include "loader/codec/jpeg/memory.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    LOOK = STK_JPEG_LOOK_BITS,
    ZEROS = 16,           /* behind the window: a word loads them */
    SYMBOL_BITS_MAX = 31, /* 16 of a code and 15 of its value */
    LAST = DCTSIZE2 - 1,
    /* Entry: bits used in 0..4, run + 1 in 8..12, flags, value in 16..31. */
    ENTRY_BITS = 31,
    ENTRY_RUN_AT = 8,
    ENTRY_RUN = 31,
    ENTRY_VALUE =
        1 << 13, /* else only the code is known: its symbol lies in 16..23; 0 = a longer one */
    ENTRY_VALUE_AT = 16
};

/* The members of libjpeg-turbo's struct jpeg_entropy_decoder that are used here. */
struct entropy_methods {
    void (*start_pass)(j_decompress_ptr decompress);
    boolean (*decode_mcu)(j_decompress_ptr decompress, JBLOCKROW *blocks);
};

/* From the order of the file to rows; a run may lead up to 16 beyond the end. */
static const uint8_t natural_order[DCTSIZE2 + 16] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33,
    40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36,
    29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54,
    47, 55, 62, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63
};

/* ---- codes ---- */

/* A value of `bits` bits: those with a leading 0 are negative. */
INLINE int32_t extended(uint32_t value, uint32_t bits)
{
    return (int32_t)value - (value < 1U << (bits - 1) ? (1 << bits) - 1 : 0);
}

/* Fill the entries of all words that begin with a code. */
static void put_code(uint32_t *entries, uint32_t code, uint32_t length, uint32_t symbol)
{
    const uint32_t size = symbol & 15, run = symbol >> 4;
    const uint32_t rest = LOOK - length;
    uint32_t *at = entries + (code << rest);
    if (size == 0 || size > rest) {
        for (uint32_t i = 0; i < 1U << rest; i++)
            at[i] = length | symbol << ENTRY_VALUE_AT;
        return;
    }
    for (uint32_t value = 0; value < 1U << size; value++) {
        const uint32_t entry = (length + size) | ENTRY_VALUE | (run + 1) << ENTRY_RUN_AT |
                               (uint32_t)extended(value, size) << ENTRY_VALUE_AT;
        for (uint32_t i = 0; i < 1U << (rest - size); i++)
            *at++ = entry;
    }
}

/* libjpeg has checked the table. */
static void make_code(struct stk_jpeg_code *code, const JHUFF_TBL *table)
{
    if (code->is_made && memcmp(code->bits, table->bits, sizeof(code->bits)) == 0 &&
        memcmp(code->symbols, table->huffval, sizeof(code->symbols)) == 0)
        return;
    code->is_made = true;
    memcpy(code->bits, table->bits, sizeof(code->bits));
    memcpy(code->symbols, table->huffval, sizeof(code->symbols));
    memset(code->entries, 0, sizeof(code->entries));
    uint32_t next = 0, symbol = 0;
    for (uint32_t length = 1; length <= 16; length++, next *= 2) {
        code->symbol_at[length] = (int32_t)symbol - (int32_t)next;
        for (uint32_t i = 0; i < table->bits[length]; i++, next++, symbol++)
            if (length <= LOOK)
                put_code(code->entries, next, length, code->symbols[symbol]);
        code->code_end[length] = (int32_t)(next << (16 - length));
    }
}

/* ---- bits ---- */

INLINE void fill(struct stk_jpeg_bits *b)
{
    b->word |= stk_load_be64(b->next) >> b->count;
    b->next += (63 - b->count) >> 3;
    b->count |= 56;
}

INLINE void drop(struct stk_jpeg_bits *b, uint32_t bits)
{
    b->word <<= bits;
    b->count -= bits;
}

INLINE uint32_t take(struct stk_jpeg_bits *b, uint32_t bits)
{
    const uint32_t value = (uint32_t)(b->word >> (64 - bits));
    drop(b, bits);
    return value;
}

/* Bits that were read beyond the window's end if > 0, bits left if < 0. */
static int64_t overrun(const struct stk_jpeg_huffman *h)
{
    return 8 * (h->bits.next - (h->window + h->window_bytes)) - (int64_t)h->bits.count;
}

/* Returns the byte of the window that holds the next bit. */
INLINE const uint8_t *next_byte(const struct stk_jpeg_huffman *h)
{
    return h->bits.next - ((h->bits.count + 7) >> 3);
}

/* Returns where a byte of the window lies in the file, from the byte that was found before. */
static const uint8_t *find_raw(struct stk_jpeg_huffman *h, const uint8_t *byte)
{
    size_t left = (size_t)(byte - h->noted);
    h->noted = byte;
    while (left > 0) {
        const uint8_t *escape = memchr(h->noted_raw, 0xFF, left);
        const size_t plain = escape == NULL ? left : (size_t)(escape - h->noted_raw) + 1;
        h->noted_raw += plain + (escape != NULL);
        left -= plain;
    }
    return h->noted_raw;
}

/* Move what is left of the window to its start, and append from the file up to a marker. */
static void refill_window(struct stk_jpeg_huffman *h)
{
    const uint8_t *from = next_byte(h);
    const uint32_t bit = -h->bits.count & 7;
    const size_t left = (size_t)(h->window + h->window_bytes - from);
    if (h->noting != NULL)
        (void)find_raw(h, from);
    h->noted = h->window;
    memmove(h->window, from, left);
    uint8_t *to = h->window + left;
    uint8_t *const end = h->window + STK_JPEG_WINDOW_BYTES;
    while (to < end && !h->at_marker) {
        size_t bytes = (size_t)(end - to);
        if (bytes > (size_t)(h->raw_limit - h->raw))
            bytes = (size_t)(h->raw_limit - h->raw);
        const uint8_t *escape = memchr(h->raw, 0xFF, bytes);
        const size_t plain = escape == NULL ? bytes : (size_t)(escape - h->raw);
        memcpy(to, h->raw, plain);
        to += plain;
        h->raw += plain;
        if (h->raw_limit - h->raw < 2 || (escape != NULL && h->raw[1] != 0)) {
            h->at_marker = true;
        } else if (escape != NULL) {
            *to++ = 0xFF;
            h->raw += 2;
        }
    }
    memset(to, 0, ZEROS);
    h->window_bytes = (size_t)(to - h->window);
    h->bits = (struct stk_jpeg_bits){ .next = h->window };
    fill(&h->bits);
    drop(&h->bits, bit);
}

/* Begin to read codes at h->raw. */
static void begin_segment(struct stk_jpeg_huffman *h)
{
    h->bits = (struct stk_jpeg_bits){ .next = h->window };
    h->window_bytes = 0;
    h->noted = h->window;
    h->noted_raw = h->raw;
    h->at_marker = false;
    memset(h->last_dc, 0, sizeof(h->last_dc));
    refill_window(h);
}

/* Returns true if all codes up to a marker were read: less than a byte is left. */
static bool is_at_end(struct stk_jpeg_huffman *h)
{
    if (!h->at_marker)
        refill_window(h); /* the window may end right before the marker */
    return h->at_marker && overrun(h) > -8;
}

/* ---- blocks ---- */

/* The length of the code that begins these 16 bits, which has more than LOOK, and its symbol above;
 * 0 = there is none. */
static uint32_t find_long_code(const struct stk_jpeg_code *code, int32_t look)
{
    for (uint32_t length = LOOK + 1; length <= 16; length++)
        if (look < code->code_end[length]) {
            const int32_t at = (look >> (16 - length)) + code->symbol_at[length];
            return length | (uint32_t)code->symbols[at] << ENTRY_VALUE_AT;
        }
    return 0;
}

/* The entry of the next code, with its symbol if the table has none; 0 = a bad code. */
INLINE uint32_t find_symbol(const struct stk_jpeg_bits *b, const struct stk_jpeg_code *code,
                            uint32_t entry)
{
    return entry != 0 ? entry : find_long_code(code, (int32_t)(b->word >> 48));
}

INLINE bool has_value(uint32_t entry)
{
    return (entry & ENTRY_VALUE) != 0;
}

INLINE bool take_dc(struct stk_jpeg_bits *b, const struct stk_jpeg_code *code, int32_t *last)
{
    fill(b);
    uint32_t entry = code->entries[b->word >> (64 - LOOK)];
    int32_t difference = (int32_t)entry >> ENTRY_VALUE_AT;
    if (has_value(entry)) {
        drop(b, entry & ENTRY_BITS);
    } else {
        entry = find_symbol(b, code, entry);
        const uint32_t size = entry >> ENTRY_VALUE_AT;
        if (entry == 0 || size > 15)
            return false;
        drop(b, entry & ENTRY_BITS);
        difference = size > 0 ? extended(take(b, size), size) : 0;
    }
    *last = (int32_t)((uint32_t)*last + (uint32_t)difference);
    return true;
}

/* Read the other coefficients of a block, and store them if they are needed. Returns false at a bad
 * code. */
INLINE bool take_ac(struct stk_jpeg_bits *b, const struct stk_jpeg_code *code, JCOEF *to,
                    bool keeps)
{
    uint32_t k = 0;
    while (k < LAST) {
        if (b->count < SYMBOL_BITS_MAX)
            fill(b);
        uint32_t entry = code->entries[b->word >> (64 - LOOK)];
        int32_t value = (int32_t)entry >> ENTRY_VALUE_AT;
        if (has_value(entry)) {
            drop(b, entry & ENTRY_BITS);
            k += entry >> ENTRY_RUN_AT & ENTRY_RUN;
        } else {
            entry = find_symbol(b, code, entry);
            if (entry == 0)
                return false;
            drop(b, entry & ENTRY_BITS);
            const uint32_t size = entry >> ENTRY_VALUE_AT & 15, run = entry >> ENTRY_VALUE_AT >> 4;
            if (size == 0 && run != 15)
                return true;
            k += run + 1;
            if (size == 0)
                continue;
            value = extended(take(b, size), size);
        }
        if (keeps)
            to[natural_order[k]] = (JCOEF)value;
    }
    return k == LAST;
}

/* The bits are copied, so that they stay in registers. */
INLINE bool take_blocks(struct stk_jpeg_huffman *h, JBLOCKROW *blocks)
{
    struct stk_jpeg_bits bits = h->bits;
    for (uint32_t i = 0; i < h->blocks; i++) {
        int32_t *last = &h->last_dc[h->block[i].component];
        if (!take_dc(&bits, h->block[i].dc, last))
            return false;
        const bool keeps = blocks != NULL && !h->block[i].dc_only;
        if (blocks != NULL)
            (*blocks[i])[0] = (JCOEF)*last;
        if (!(keeps ? take_ac(&bits, h->block[i].ac, *blocks[i], true)
                    : take_ac(&bits, h->block[i].ac, NULL, false)))
            return false;
    }
    h->bits = bits;
    return true;
}

static bool take_mcu(struct stk_jpeg_huffman *h, JBLOCKROW *blocks)
{
    return take_blocks(h, blocks);
}

#if defined(__x86_64__)
__attribute__((target("bmi2"))) static bool take_mcu_bmi2(struct stk_jpeg_huffman *h,
                                                          JBLOCKROW *blocks)
{
    return take_blocks(h, blocks);
}
#endif

static bool take_mcu_best(struct stk_jpeg_huffman *h, JBLOCKROW *blocks)
{
#if defined(__x86_64__)
    if (stk_cpu_has(STK_CPU_BMI2))
        return take_mcu_bmi2(h, blocks);
#endif
    return take_mcu(h, blocks);
}

/* ---- images ---- */

static bool take_restart(struct stk_jpeg_huffman *h)
{
    if (!is_at_end(h) || h->raw_end - h->raw < 2 || h->raw[1] != 0xD0 + h->restart_number)
        return false;
    h->raw += 2;
    h->restart_number = (h->restart_number + 1) & 7;
    h->restarts_to_go = h->restart_interval;
    begin_segment(h);
    return true;
}

/* libjpeg continues at the marker behind the last code. */
static bool end_scan(struct stk_jpeg_huffman *h)
{
    if (!is_at_end(h))
        return false;
    h->source.next_input_byte = h->raw;
    h->source.bytes_in_buffer = (size_t)(h->raw_end - h->raw);
    return true;
}

/* Note where the next codes begin. */
static void note_place(struct stk_jpeg_huffman *h)
{
    struct stk_jpeg_places *places = h->noting;
    struct stk_jpeg_place *place =
        &places->place[(size_t)h->row * places->across + h->column / places->step];
    const uint8_t *raw = find_raw(h, next_byte(h));
    place->at = 8 * (uint32_t)(raw - h->file) + (-h->bits.count & 7);
    for (uint32_t c = 0; c < 4; c++)
        place->dc[c] = (int16_t)h->last_dc[c];
}

/* Read the next codes; blocks NULL: skip them. */
static bool take_codes(struct stk_jpeg_huffman *h, JBLOCKROW *blocks)
{
    if (h->restart_interval != 0 && h->restarts_to_go-- == 0) {
        if (!take_restart(h))
            return false;
        h->restarts_to_go--;
    }
    if (!h->at_marker && h->window + h->window_bytes - h->bits.next < STK_JPEG_MCU_BYTES_MAX)
        refill_window(h);
    if (h->noting != NULL && h->column % h->noting->step == 0)
        note_place(h);
    return take_mcu_best(h, blocks) && overrun(h) <= 0;
}

/* Go to the first needed column of the row, from the last place before it. Nothing is read beyond
 * the first place behind the needed columns. Places are not trusted. */
static bool go_to_row(struct stk_jpeg_huffman *h)
{
    const struct stk_jpeg_places *places = h->known;
    const size_t first = (size_t)h->row * places->across;
    const size_t behind = first + h->last_column / places->step + 1;
    const struct stk_jpeg_place *place = &places->place[first + h->first_column / places->step];
    size_t limit = (size_t)(h->raw_end - h->file);
    if (behind < (size_t)places->across * places->rows &&
        limit > (size_t)places->place[behind].at / 8 + 2)
        limit = (size_t)places->place[behind].at / 8 + 2;
    if (place->at / 8 > limit)
        return false;
    h->raw = h->file + place->at / 8;
    h->raw_limit = h->file + limit;
    begin_segment(h);
    drop(&h->bits, place->at & 7);
    for (uint32_t c = 0; c < 4; c++)
        h->last_dc[c] = place->dc[c];
    uint32_t column = h->first_column / places->step * places->step;
    if (h->restart_interval != 0) {
        const uint64_t mcu = (uint64_t)h->row * h->columns + column;
        h->restarts_to_go = h->restart_interval - (uint32_t)(mcu % h->restart_interval);
        h->restart_number = (uint8_t)(mcu / h->restart_interval & 7);
    }
    for (; column < h->first_column; column++)
        if (!take_codes(h, NULL))
            return false;
    return true;
}

/* Read the codes that libjpeg asks for next, or step over them. */
static bool take_next(struct stk_jpeg_huffman *h, JBLOCKROW *blocks)
{
    const bool is_needed =
        blocks != NULL && h->column >= h->first_column && h->column <= h->last_column;
    if (h->known == NULL) {
        if (!take_codes(h, is_needed ? blocks : NULL))
            return false;
    } else if (is_needed) {
        if ((h->column == h->first_column && !go_to_row(h)) || !take_codes(h, blocks))
            return false;
    }
    if (++h->column < h->columns)
        return true;
    h->column = 0;
    return ++h->row < h->rows || h->known != NULL || end_scan(h);
}

static boolean decode_mcu(j_decompress_ptr decompress, JBLOCKROW *blocks)
{
    struct stk_jpeg_huffman *h = (struct stk_jpeg_huffman *)(void *)decompress->src;
    if (!take_next(h, blocks))
        h->decline(decompress);
    return TRUE;
}

/* ---- a library that is not trusted yet ---- */

/* Returns true for memory that libjpeg has allocated for this image: all of that is in the
 * arena. */
static bool is_allocated(j_decompress_ptr decompress, const void *at, size_t bytes)
{
    const struct stk_jpeg_arena *arena = decompress->client_data;
    const uintptr_t offset = (uintptr_t)at - (uintptr_t)arena->base;
    return offset <= arena->used && bytes <= arena->used - offset && offset % sizeof(void *) == 0;
}

/* Returns where the library with that function begins; NULL if it is in none. */
static const void *library_of(const void *function_pointer)
{
    void *function;
    Dl_info found;
    memcpy(&function, function_pointer, sizeof(function));
    return dladdr(function, &found) != 0 ? found.dli_fbase : NULL;
}

/* Returns true if the two members hold functions of the library that also has reset_error_mgr(). */
static bool has_methods(j_decompress_ptr decompress)
{
    const struct entropy_methods *methods = (const void *)decompress->entropy;
    const void *own = library_of(&decompress->err->reset_error_mgr);
    return is_allocated(decompress, methods, sizeof(*methods)) && own != NULL &&
           own == library_of(&methods->start_pass) && own == library_of(&methods->decode_mcu);
}

/* Check the arguments before they are used. */
static boolean try_mcu(j_decompress_ptr decompress, JBLOCKROW *blocks)
{
    struct stk_jpeg_huffman *h = (struct stk_jpeg_huffman *)(void *)decompress->src;
    bool is_right = is_allocated(decompress, blocks, h->blocks * sizeof(*blocks));
    for (uint32_t b = 0; is_right && b < h->blocks; b++)
        is_right = is_allocated(decompress, blocks[b], sizeof(*blocks[b]));
    if (!is_right)
        h->decline(decompress);
    return decode_mcu(decompress, blocks);
}

#if JPEG_LIB_VERSION >= 70
#define SCALED_SIZE(component) ((component)->DCT_h_scaled_size)
#else
#define SCALED_SIZE(component) ((component)->DCT_scaled_size)
#endif

static void make_blocks(struct stk_jpeg_huffman *h, j_decompress_ptr decompress)
{
    h->blocks = (uint32_t)decompress->blocks_in_MCU;
    for (uint32_t b = 0; b < h->blocks; b++) {
        const int member = decompress->MCU_membership[b];
        const jpeg_component_info *component = decompress->cur_comp_info[member];
        struct stk_jpeg_code *dc = &h->dc[component->dc_tbl_no];
        struct stk_jpeg_code *ac = &h->ac[component->ac_tbl_no];
        make_code(dc, decompress->dc_huff_tbl_ptrs[component->dc_tbl_no]);
        make_code(ac, decompress->ac_huff_tbl_ptrs[component->ac_tbl_no]);
        h->block[b].dc = dc;
        h->block[b].ac = ac;
        h->block[b].component = (uint8_t)member;
        h->block[b].dc_only = SCALED_SIZE(component) == 1;
    }
}

bool stk_jpeg_huffman_begin(struct stk_jpeg_huffman *huffman, j_decompress_ptr decompress)
{
    if (decompress->progressive_mode || decompress->arith_code ||
        jpeg_has_multiple_scans(decompress) || (!huffman->is_trusted && !has_methods(decompress)))
        return false;
    make_blocks(huffman, decompress);
    huffman->columns = decompress->MCUs_per_row;
    huffman->rows = decompress->MCU_rows_in_scan;
    huffman->column = huffman->row = huffman->first_column = 0;
    huffman->last_column = huffman->columns - 1;
    if (huffman->known != NULL &&
        (huffman->known->columns != huffman->columns || huffman->known->rows != huffman->rows))
        huffman->known = NULL;
    if (huffman->noting != NULL &&
        !stk_jpeg_places_begin(huffman->noting, huffman->noting_bytes, huffman->file_bytes,
                               huffman->columns, huffman->rows))
        huffman->noting = NULL;
    huffman->restart_interval = huffman->restarts_to_go = decompress->restart_interval;
    huffman->restart_number = 0;
    huffman->raw = huffman->source.next_input_byte;
    huffman->raw_end = huffman->raw_limit = huffman->raw + huffman->source.bytes_in_buffer;
    begin_segment(huffman);
    ((struct entropy_methods *)(void *)decompress->entropy)->decode_mcu =
        huffman->is_trusted ? decode_mcu : try_mcu;
    return true;
}

void stk_jpeg_huffman_need(struct stk_jpeg_huffman *huffman, uint32_t first, uint32_t last)
{
    huffman->first_column = first;
    huffman->last_column = last;
}
#else
typedef int stk_jpeg_huffman_is_not_built; /* C requires a declaration */
#endif
