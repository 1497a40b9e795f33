/* item.c - see item.h. */
#include "datasets/pack/item.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/pack/encode/npy.h"
#include "datasets/pack/encode/pixels.h"

/* Returns true if the part is an image file: its codec says so, for a row of pixels may begin as a
 * file does. */
static bool is_file(const struct pack_plan *plan, uint32_t field, const stoker_part *part)
{
    return plan->arguments->codec == PACK_KEEP && part->codec != NULL &&
           stk_shard_is_pixels(&plan->fields[field]) && stk_kind_names_image(part->codec->name);
}

/* Verify the checksum of a file that has one: it is not decoded. */
static bool is_whole(struct pack_item *item, const stoker_part *part,
                     const struct pack_piece *piece)
{
    stoker_error said = { .message = "" };
    const stoker_encoded in = {
        .bytes = piece->bytes, .size = piece->size, .sample = item->id, .tag = part->tag
    };
    if (part->codec->verify == NULL ||
        part->codec->verify(part->codec->self, &in, NULL, &said) == STOKER_OK)
        return true;
    (void)snprintf(item->error.message, sizeof(item->error.message), "sample %" PRIu64 ": %.200s",
                   item->id, said.message);
    return false;
}

/* Write a JPEG file as a baseline one, if it is another. False: packing must end. */
static bool make_baseline(struct pack_item *item, const struct stk_shard_field *field,
                          struct pack_piece *piece)
{
    struct pack_room made = { 0 };
    const char *why = pack_jpeg_baseline(piece->bytes, piece->size, &made);
    if (why != NULL)
        (void)snprintf(item->failed, sizeof(item->failed), "field \"%s\": %s", field->name, why);
    if (made.used == 0) {
        pack_room_free(&made);
        return why == NULL;
    }
    pack_room_free(&piece->room);
    piece->room = made;
    piece->bytes = made.at;
    piece->size = made.used;
    return true;
}

/* Keep a file. False: it cannot be read, or is of no known kind. */
static bool keep_file(const struct pack_plan *plan, struct pack_item *item, uint32_t field,
                      const stoker_part *parts)
{
    const uint32_t source_part = stoker_dataset_field(plan->source, field)->part;
    struct pack_piece *piece = &item->pieces[plan->fields[field].part];
    const size_t bytes_max = (size_t)parts[source_part].extent.bytes + 1;
    piece->room.used = 0;
    if (!pack_room_for(&piece->room, bytes_max))
        return false;
    if (stoker_dataset_read_stored(plan->source, item->id, source_part, piece->room.at, bytes_max,
                                   &piece->size, &item->error) != STOKER_OK)
        return false;
    piece->bytes = piece->room.at;
    if (!is_whole(item, &parts[source_part], piece))
        return false;
    piece->codec = stk_kind_of_bytes(piece->bytes, piece->size);
    if (piece->codec == STK_SHARD_JPEG && plan->arguments->baseline)
        return make_baseline(item, &plan->fields[field], piece);
    if (piece->codec != STK_SHARD_RAW)
        return true;
    char known[64];
    stk_kind_list_extensions(',', known, sizeof(known));
    (void)snprintf(item->error.message, sizeof(item->error.message),
                   "sample %" PRIu64 ": field \"%s\" is no image file of a known kind (%s)",
                   item->id, plan->fields[field].name, known);
    return false;
}

/* Store decoded elements, compressed if that is asked for and smaller. */
static const char *encode_elements(const struct pack_arguments *arguments, bool varies,
                                   struct pack_piece *piece)
{
    if (varies || arguments->block_bytes > 0 || /* which are compressed as a whole */
        (arguments->codec != PACK_LZ4 && arguments->codec != PACK_ZSTD))
        return NULL;
    const char *why = arguments->codec == PACK_LZ4
                          ? pack_lz4(piece->bytes, piece->size, arguments->level, &piece->room)
                          : pack_zstd(piece->bytes, piece->size, arguments->level, &piece->room);
    if (why == NULL && piece->room.used < piece->size) {
        piece->bytes = piece->room.at;
        piece->size = piece->room.used;
        piece->codec = arguments->codec == PACK_LZ4 ? STK_SHARD_LZ4 : STK_SHARD_ZSTD;
    }
    return why;
}

/* Store decoded pixels as a file. A mask is never a JPEG file, which would change its values. */
static const char *encode_pixels(const struct pack_arguments *arguments,
                                 const struct stk_shard_field *field, struct pack_piece *piece)
{
    const struct pack_pixels pixels = { .height = (uint32_t)field->shape[0],
                                        .width = (uint32_t)field->shape[1],
                                        .channels = (uint32_t)field->shape[2] };
    const bool jpeg = arguments->codec == PACK_JPEG && field->kind == STOKER_FIELD_KIND_IMAGE;
    const char *why = jpeg ? pack_jpeg(&pixels, arguments->quality, piece->bytes, &piece->room)
                           : pack_png(&pixels, piece->bytes, &piece->room);
    piece->bytes = piece->room.at;
    piece->size = piece->room.used;
    piece->codec = jpeg ? STK_SHARD_JPEG : STK_SHARD_PNG;
    return why;
}

/* Encode a decoded field as the target stores it. */
static void encode(const struct pack_plan *plan, struct pack_item *item, uint32_t number)
{
    const struct pack_arguments *arguments = plan->arguments;
    const struct stk_shard_field *field = &plan->fields[number];
    struct pack_piece *piece = &item->pieces[field->part];
    const stoker_row *row = &item->rows[number];
    const bool shards = arguments->form == PACK_SHARDS;
    const bool asked = arguments->codec == PACK_PNG || arguments->codec == PACK_JPEG;
    const char *why = NULL;
    piece->bytes = row->data;
    piece->size = field->varies ? (size_t)(row->length * stk_shard_entry_bytes(field))
                                : (size_t)stk_shard_value_bytes(field);
    piece->codec = STK_SHARD_RAW;
    piece->room.used = 0;
    if (stk_shard_is_pixels(field) && (asked || !shards))
        why = encode_pixels(arguments, field, piece);
    else if (shards)
        why = encode_elements(arguments, field->varies, piece);
    else if (field->kind == STOKER_FIELD_KIND_ARRAY)
        why = pack_npy(field, row->length, piece);
    if (why != NULL)
        (void)snprintf(item->failed, sizeof(item->failed), "field \"%s\": %s", field->name, why);
}

/* Image files that are kept are decoded, too, to find damage; those of several sizes have no row to
 * be decoded into. */
void pack_item_read(const struct pack_plan *plan, struct pack_item *item)
{
    const stoker_dataset *source = plan->source;
    stoker_part parts[STOKER_FIELDS_MAX] = { 0 };
    stoker_row rows[STOKER_FIELDS_MAX];
    bool kept[STOKER_FIELDS_MAX] = { false };
    item->error.message[0] = item->failed[0] = '\0';
    item->bad = stoker_dataset_locate(source, item->id, parts, &item->error) != STOKER_OK;
    for (uint32_t i = 0; !item->bad && i < plan->info->field_count; i++) {
        const stoker_field_info *field = stoker_dataset_field(source, i);
        rows[i] = item->rows[i];
        if (field->part == STOKER_NO_PART || !is_file(plan, i, &parts[field->part]))
            continue;
        kept[i] = true;
        item->bad = !keep_file(plan, item, i, parts);
        if (field->sizes_differ)
            rows[i].data = NULL;
    }
    item->bad = item->bad || stoker_dataset_read(source, item->id, rows, &item->error) != STOKER_OK;
    for (uint32_t i = 0; !item->bad && i < plan->info->field_count; i++) {
        item->rows[i].length = rows[i].length;
        if (!kept[i] && plan->fields[i].part != STOKER_NO_PART)
            encode(plan, item, i);
    }
}

/* ---- memory --------------------------------------------------------------------- */

bool pack_item_make(struct pack_item *item, const struct pack_plan *plan)
{
    for (uint32_t f = 0; f < plan->info->field_count; f++) {
        const size_t bytes = stoker_dataset_field_bytes(plan->source, f);
        item->rows[f] = (stoker_row){ .data = malloc(bytes), .bytes_max = bytes };
        if (item->rows[f].data == NULL)
            return false;
    }
    return true;
}

void pack_item_free(struct pack_item *item)
{
    for (uint32_t f = 0; f < STOKER_FIELDS_MAX; f++) {
        free(item->rows[f].data);
        pack_room_free(&item->pieces[f].room);
    }
}
