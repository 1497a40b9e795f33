/* places.c - see places.h. */
#include "loader/codec/jpeg/places.h"

#include "loader/base/crc32c/crc32c.h"

enum { STEP_MIN = 2 };

static size_t bytes_of(const struct stk_jpeg_places *places)
{
    return sizeof(*places) + (size_t)places->across * places->rows * sizeof(places->place[0]);
}

bool stk_jpeg_places_begin(struct stk_jpeg_places *places, size_t room_bytes, size_t file_bytes,
                           uint32_t columns, uint32_t rows)
{
    if (room_bytes < sizeof(*places) || file_bytes > UINT32_MAX / 8)
        return false;
    *places = (struct stk_jpeg_places){ .columns = (uint16_t)columns, .rows = (uint16_t)rows };
    for (uint32_t step = STEP_MIN; step < 2 * columns; step *= 2) {
        places->step = (uint16_t)step;
        places->across = (uint16_t)((columns + step - 1) / step);
        if (bytes_of(places) <= room_bytes)
            return true;
    }
    return false;
}

size_t stk_jpeg_places_end(struct stk_jpeg_places *places, const uint8_t *file, size_t file_bytes)
{
    places->sum = stk_crc32c(0, file, file_bytes);
    places->file_bytes = (uint32_t)file_bytes;
    return bytes_of(places);
}

bool stk_jpeg_places_fit(const struct stk_jpeg_places *places, size_t table_bytes,
                         const uint8_t *file, size_t file_bytes)
{
    return table_bytes >= sizeof(*places) && places->step > 0 &&
           places->across == (places->columns + places->step - 1) / places->step &&
           table_bytes >= bytes_of(places) && file_bytes == places->file_bytes &&
           stk_crc32c(0, file, file_bytes) == places->sum;
}
