/* fields.c - see fields.h.
 *
 *   ids ─▶ a team of threads: read, keep or encode each part ─▶ shard, in the order of ids
 *
 * Image files are kept byte by byte with --codec keep; every other part is stored as its field's elements.
 */
#include "datasets/pack/fields.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "datasets/pack/lock.h"
#include "datasets/pack/output.h"
#include "datasets/pack/pixels.h"
#include "datasets/pack/progress.h"
#include "datasets/pack/shard_files.h"
#include "datasets/shards/fields_layout.h"
#include "loader/base/crc32c.h"
#include "loader/base/thread_team.h"

enum { TOGETHER = 64, ALIGNMENT = 8 };

/* One part of a sample, to be stored. */
struct piece {
    struct pack_room room; /* file or compressed bytes */
    const uint8_t *bytes;
    size_t size;
    uint32_t codec;
};

/* One sample on its way. */
struct item {
    uint64_t id;
    stoker_row rows[STOKER_FIELDS_MAX]; /* decoded fields */
    struct piece pieces[STOKER_FIELDS_MAX];
    stoker_label label;
    bool bad;
    char failed[256]; /* why packing must end; "" = it need not */
    stoker_error error;
};

struct packing {
    const struct pack_plan *plan;
    struct stk_fields_field fields[STOKER_FIELDS_MAX];
    struct stk_fields_header header; /* what is known of the shard at hand */
    struct item *items;              /* [TOGETHER] */
    uint32_t item_count;
    atomic_uint next;
    int folder; /* locked; -1 = not open */
    struct pack_output output;
    struct pack_room entries;
    struct pack_room labels;
    struct pack_room names;
    uint64_t at; /* bytes written to the shard */
    struct pack_tally *tally;
};

/* ---- what is packed ------------------------------------------------------------- */

static bool is_label(const stoker_field_info *field)
{
    return strcmp(field->name, "label") == 0 && field->part == STOKER_NO_PART && field->rank == 0 &&
           (field->dtype == STOKER_DTYPE_INT64 || field->dtype == STOKER_DTYPE_FLOAT32);
}

bool pack_fields_needed(const struct pack_plan *plan)
{
    const stoker_field_info *first = stoker_dataset_field(plan->source, 0);
    const uint32_t count = plan->info->field_count;
    const bool two = count == 2 && is_label(stoker_dataset_field(plan->source, 1));
    return first->varies || first->kind == STOKER_FIELD_MASK || (count > 1 && !two) ||
           (first->sizes_differ && plan->arguments->codec == PACK_KEEP);
}

/* Fields as they will be stored: one part each, but the label. */
static void describe_fields(struct packing *packing)
{
    const struct pack_plan *plan = packing->plan;
    struct stk_fields_header *header = &packing->header;
    header->field_count = plan->info->field_count;
    for (uint32_t i = 0; i < header->field_count; i++) {
        const stoker_field_info *from = stoker_dataset_field(plan->source, i);
        struct stk_fields_field *field = &packing->fields[i];
        *field = (struct stk_fields_field){ .kind = from->kind,
                                            .dtype = from->dtype,
                                            .rank = from->rank,
                                            .varies = from->varies,
                                            .sizes_differ = from->sizes_differ,
                                            .class_count = from->class_count,
                                            .part = is_label(from) ? STOKER_NO_PART
                                                                   : header->part_count++ };
        memcpy(field->shape, from->shape, from->rank * sizeof(field->shape[0]));
        (void)snprintf(field->name, sizeof(field->name), "%s", from->name);
    }
}

static const char *unsuitable(const struct packing *packing)
{
    const enum pack_codec codec = packing->plan->arguments->codec;
    if (codec == PACK_PNG || codec == PACK_JPEG)
        return "fields are packed with --codec keep, raw, lz4 or zstd";
    if (codec == PACK_LZ4 && !pack_lz4_present())
        return "this stoker-pack was built without liblz4";
    if (codec == PACK_ZSTD && !pack_zstd_present())
        return "this stoker-pack was built without libzstd";
    for (uint32_t i = 0; i < packing->header.field_count; i++) {
        if (stk_fields_bytes(&packing->fields[i]) == 0)
            return "a field has more than 1 GiB";
        if (packing->fields[i].sizes_differ && codec != PACK_KEEP)
            return "images of several sizes: --codec keep stores them as they are";
    }
    return packing->header.part_count == 0 ? "a label alone" : NULL;
}

/* ---- one sample ----------------------------------------------------------------- */

static uint32_t codec_of_file(const struct piece *piece)
{
    static const uint8_t png[8] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n' };
    static const uint8_t jpeg[3] = { 0xFF, 0xD8, 0xFF };
    if (piece->size >= sizeof(png) && memcmp(piece->bytes, png, sizeof(png)) == 0)
        return STK_SHARD_PNG;
    if (piece->size >= sizeof(jpeg) && memcmp(piece->bytes, jpeg, sizeof(jpeg)) == 0)
        return STK_SHARD_JPEG;
    return piece->size >= 12 && memcmp(piece->bytes, "RIFF", 4) == 0 &&
                   memcmp(piece->bytes + 8, "WEBP", 4) == 0
               ? STK_SHARD_WEBP
               : STK_SHARD_RAW;
}

/* Returns true if the part is an image file: its codec says so, for a row of pixels may begin as a file does. */
static bool is_file(const struct packing *packing, uint32_t field, const stoker_part *part)
{
    const stoker_field_kind kind = packing->fields[field].kind;
    return packing->plan->arguments->codec == PACK_KEEP && part->codec != NULL &&
           (kind == STOKER_FIELD_IMAGE || kind == STOKER_FIELD_MASK) &&
           (strcmp(part->codec->name, "image") == 0 || strcmp(part->codec->name, "png") == 0 ||
            strcmp(part->codec->name, "jpeg") == 0);
}

/* Verify the checksum of a file that has one: it is not decoded. */
static bool is_whole(struct item *item, const stoker_part *part, const struct piece *piece)
{
    stoker_error said = { .message = "" };
    const stoker_encoded in = {
        .bytes = piece->bytes, .size = piece->size, .sample = item->id, .tag = part->tag
    };
    if (part->codec->verify == NULL ||
        part->codec->verify(part->codec->self, &in, &said) == STOKER_OK)
        return true;
    (void)snprintf(item->error.message, sizeof(item->error.message), "sample %" PRIu64 ": %.200s",
                   item->id, said.message);
    return false;
}

/* Keep a file. False: it cannot be read, or is of no known kind. */
static bool keep(const struct packing *packing, struct item *item, uint32_t field,
                 const stoker_part *parts)
{
    const uint32_t source_part = stoker_dataset_field(packing->plan->source, field)->part;
    struct piece *piece = &item->pieces[packing->fields[field].part];
    const size_t bytes_max = (size_t)parts[source_part].extent.bytes + 1;
    piece->room.used = 0;
    if (!pack_room_for(&piece->room, bytes_max))
        return false;
    if (stoker_dataset_read_part(packing->plan->source, item->id, source_part, piece->room.at,
                                 bytes_max, &piece->size, &item->error) != STOKER_OK)
        return false;
    piece->bytes = piece->room.at;
    if (!is_whole(item, &parts[source_part], piece))
        return false;
    piece->codec = codec_of_file(piece);
    if (piece->codec != STK_SHARD_RAW)
        return true;
    (void)snprintf(item->error.message, sizeof(item->error.message),
                   "sample %" PRIu64 ": field \"%s\" is neither PNG nor JPEG nor WebP", item->id,
                   packing->fields[field].name);
    return false;
}

/* Store decoded elements, compressed if that is asked for and smaller. */
static void encode(const struct packing *packing, struct item *item, uint32_t number)
{
    const struct pack_arguments *arguments = packing->plan->arguments;
    const struct stk_fields_field *field = &packing->fields[number];
    struct piece *piece = &item->pieces[field->part];
    const stoker_row *row = &item->rows[number];
    const char *why = NULL;
    piece->bytes = row->data;
    piece->size = field->varies ? (size_t)(row->length * stk_fields_entry_bytes(field))
                                : (size_t)stk_fields_bytes(field);
    piece->codec = STK_SHARD_RAW;
    if (field->varies || (arguments->codec != PACK_LZ4 && arguments->codec != PACK_ZSTD))
        return;
    piece->room.used = 0;
    why = arguments->codec == PACK_LZ4
              ? pack_lz4(piece->bytes, piece->size, arguments->level, &piece->room)
              : pack_zstd(piece->bytes, piece->size, arguments->level, &piece->room);
    if (why != NULL)
        (void)snprintf(item->failed, sizeof(item->failed), "field \"%s\": %s", field->name, why);
    else if (piece->room.used < piece->size) {
        piece->bytes = piece->room.at;
        piece->size = piece->room.used;
        piece->codec = arguments->codec == PACK_LZ4 ? STK_SHARD_LZ4 : STK_SHARD_ZSTD;
    }
}

static void read_item(const struct packing *packing, struct item *item)
{
    const stoker_dataset *source = packing->plan->source;
    stoker_part parts[STOKER_FIELDS_MAX] = { 0 };
    stoker_row rows[STOKER_FIELDS_MAX];
    item->error.message[0] = item->failed[0] = '\0';
    item->bad = stoker_dataset_locate(source, item->id, parts, &item->error) != STOKER_OK;
    for (uint32_t i = 0; !item->bad && i < packing->header.field_count; i++) {
        const stoker_field_info *field = stoker_dataset_field(source, i);
        rows[i] = item->rows[i];
        if (field->part == STOKER_NO_PART || !is_file(packing, i, &parts[field->part]))
            continue;
        rows[i].data = NULL; /* kept as it is: not decoded */
        item->bad = !keep(packing, item, i, parts);
    }
    item->bad =
        item->bad || stoker_dataset_read_fields(source, item->id, rows, &item->error) != STOKER_OK;
    for (uint32_t i = 0; !item->bad && i < packing->header.field_count; i++) {
        item->rows[i].length = rows[i].length;
        if (packing->fields[i].part == STOKER_NO_PART) {
            item->label.index = 0;
            memcpy(&item->label, rows[i].data, (size_t)stk_fields_bytes(&packing->fields[i]));
        } else if (rows[i].data != NULL) {
            encode(packing, item, i);
        }
    }
}

static void read_items(void *argument, uint32_t thread)
{
    struct packing *packing = argument;
    (void)thread;
    for (;;) {
        const uint32_t at = atomic_fetch_add_explicit(&packing->next, 1, memory_order_relaxed);
        if (at >= packing->item_count)
            return;
        read_item(packing, &packing->items[at]);
    }
}

/* ---- shards --------------------------------------------------------------------- */

static uint64_t file_bytes_with(const struct packing *packing, uint64_t end, uint64_t count)
{
    struct stk_fields_header header = packing->header;
    uint64_t index_bytes = 0;
    header.count = count;
    header.names_bytes = (uint32_t)packing->names.used;
    (void)stk_fields_index_bytes(&header, &index_bytes);
    return stk_shard_align(end, STK_SHARD_BLOCK_BYTES) + index_bytes;
}

static bool begin_shard(struct packing *packing, struct pack_failure *failure)
{
    char name[PACK_SHARD_NAME_BYTES];
    struct stk_fields_header *header = &packing->header;
    header->needs = 0;
    header->count = 0;
    header->longest_bytes = 1;
    packing->entries.used = packing->labels.used = 0;
    packing->at = STK_SHARD_BLOCK_BYTES;
    return pack_output_begin(&packing->output, packing->plan->arguments->target,
                             pack_shard_name(name, header->number), failure) &&
           pack_output_zeros(&packing->output, STK_SHARD_BLOCK_BYTES, failure);
}

/* Write the index, then the header at the start, then rename. */
static bool end_shard(struct packing *packing, bool last, struct pack_failure *failure)
{
    uint8_t block[STK_SHARD_BLOCK_BYTES] = { 0 };
    uint8_t fields[STOKER_FIELDS_MAX * STK_SHARD_FIELD_BYTES];
    struct stk_fields_header *header = &packing->header;
    struct pack_output *output = &packing->output;
    const size_t fields_bytes = header->field_count * (size_t)STK_SHARD_FIELD_BYTES;
    for (uint32_t i = 0; i < header->field_count; i++)
        stk_fields_field_store(fields + (size_t)i * STK_SHARD_FIELD_BYTES, &packing->fields[i]);
    header->names_bytes = (uint32_t)packing->names.used;
    header->alignment = ALIGNMENT;
    header->index_at = stk_shard_align(packing->at, STK_SHARD_BLOCK_BYTES);
    header->file_bytes = file_bytes_with(packing, packing->at, header->count);
    header->flags = last ? STK_SHARD_LAST : 0;
    const uint64_t used =
        fields_bytes + packing->entries.used + packing->labels.used + packing->names.used;
    const uint64_t rest = header->file_bytes - header->index_at - used;
    uint32_t sum = stk_crc32c(0, fields, fields_bytes);
    sum = stk_crc32c(sum, packing->entries.at, packing->entries.used);
    sum = stk_crc32c(sum, packing->labels.at, packing->labels.used);
    sum = stk_crc32c(sum, packing->names.at, packing->names.used);
    header->index_sum = stk_crc32c(sum, block, (size_t)rest);
    stk_fields_header_store(block, header);
    if (!pack_output_zeros(output, header->index_at - packing->at, failure) ||
        !pack_output_write(output, fields, fields_bytes, failure) ||
        !pack_output_write(output, packing->entries.at, packing->entries.used, failure) ||
        !pack_output_write(output, packing->labels.at, packing->labels.used, failure) ||
        !pack_output_write(output, packing->names.at, packing->names.used, failure) ||
        !pack_output_zeros(output, rest, failure) || !pack_output_rewind(output, failure) ||
        !pack_output_write(output, block, sizeof(block), failure) ||
        !pack_output_commit(output, true, failure))
        return false;
    packing->tally->bytes += header->file_bytes;
    packing->tally->files++;
    header->first += header->count;
    header->source_first += header->source_count;
    header->source_count = 0;
    header->number++;
    return true;
}

static bool add_piece(struct packing *packing, const struct piece *piece,
                      struct pack_failure *failure)
{
    struct stk_fields_header *header = &packing->header;
    const uint64_t offset = stk_shard_align(packing->at, ALIGNMENT);
    const struct stk_fields_part part = { .offset = offset,
                                          .bytes = (uint32_t)piece->size,
                                          .sum = stk_crc32c(0, piece->bytes, piece->size),
                                          .codec = piece->codec };
    if (!pack_room_for(&packing->entries, STK_SHARD_PART_BYTES))
        return pack_fail(failure, packing->output.path, ENOMEM, "the index");
    if (!pack_output_zeros(&packing->output, offset - packing->at, failure) ||
        !pack_output_write(&packing->output, piece->bytes, piece->size, failure))
        return false;
    stk_fields_part_store(packing->entries.at + packing->entries.used, &part);
    packing->entries.used += STK_SHARD_PART_BYTES;
    packing->at = offset + piece->size;
    header->needs |= 1U << piece->codec;
    header->longest_bytes = part.bytes > header->longest_bytes ? part.bytes : header->longest_bytes;
    return true;
}

static bool add_label(struct packing *packing, const struct item *item,
                      struct pack_failure *failure)
{
    uint64_t bits = 0;
    memcpy(&bits, &item->label, sizeof(item->label));
    if (!pack_room_for(&packing->labels, STK_SHARD_LABEL_BYTES))
        return pack_fail(failure, packing->output.path, ENOMEM, "the labels");
    for (int i = 0; i < STK_SHARD_LABEL_BYTES; i++)
        packing->labels.at[packing->labels.used++] = (uint8_t)(bits >> (8 * i));
    return true;
}

/* Add a good sample, in a new shard if it does not fit. */
static bool add_item(struct packing *packing, const struct item *item, struct pack_failure *failure)
{
    struct stk_fields_header *header = &packing->header;
    uint64_t end = packing->output.file == NULL ? STK_SHARD_BLOCK_BYTES : packing->at;
    for (uint32_t p = 0; p < header->part_count; p++)
        end = stk_shard_align(end, ALIGNMENT) + item->pieces[p].size;
    if (packing->output.file != NULL && header->count > 0 &&
        file_bytes_with(packing, end, header->count + 1) > packing->plan->arguments->shard_bytes &&
        !end_shard(packing, false, failure))
        return false;
    if (packing->output.file == NULL && !begin_shard(packing, failure))
        return false;
    for (uint32_t p = 0; p < header->part_count; p++)
        if (!add_piece(packing, &item->pieces[p], failure))
            return false;
    header->count++;
    packing->tally->samples++;
    return add_label(packing, item, failure);
}

/* ---- an earlier run ------------------------------------------------------------- */

/* Skip finished shards of the same packing; *finished: all are there. */
static bool skip_finished(struct packing *packing, bool *finished, struct pack_failure *failure)
{
    struct stk_fields_header *due = &packing->header;
    while (!*finished) {
        char name[PACK_SHARD_NAME_BYTES];
        uint8_t block[STK_SHARD_BLOCK_BYTES] = { 0 };
        struct stk_fields_header found = { 0 };
        struct stat status = { 0 };
        const char *what = "it cannot be read";
        const int fd =
            openat(packing->folder, pack_shard_name(name, due->number), O_RDONLY | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
            return true;
        if (fd >= 0 && fstat(fd, &status) == 0 && pack_read_at(fd, block, sizeof(block), 0) &&
            stk_fields_header_load(&found, block, (uint64_t)status.st_size, &what) == STOKER_OK)
            what = found.set_id != due->set_id || found.number != due->number ||
                           found.first != due->first || found.source_first != due->source_first
                       ? "it is of another packing"
                   : pack_index_is_whole(fd, found.index_at, found.file_bytes, found.index_sum)
                       ? NULL
                       : "its index is damaged";
        if (fd >= 0)
            close(fd);
        if (what != NULL)
            return pack_fail(failure, name, 0, "%s; remove it, or pack elsewhere", what);
        due->number++;
        due->first += found.count;
        due->source_first += found.source_count;
        packing->tally->samples += found.count;
        packing->tally->bytes += found.file_bytes;
        packing->tally->files++;
        *finished = (found.flags & STK_SHARD_LAST) != 0;
    }
    return true;
}

/* ---- all of it ------------------------------------------------------------------ */

static bool take_items(struct packing *packing)
{
    packing->items = calloc(TOGETHER, sizeof(*packing->items));
    if (packing->items == NULL)
        return false;
    for (uint32_t i = 0; i < TOGETHER; i++)
        for (uint32_t f = 0; f < packing->header.field_count; f++) {
            const size_t bytes = stoker_dataset_field_bytes(packing->plan->source, f);
            packing->items[i].rows[f] = (stoker_row){ .data = malloc(bytes), .bytes_max = bytes };
            if (packing->items[i].rows[f].data == NULL)
                return false;
        }
    return true;
}

static void close_packing(struct packing *packing)
{
    for (uint32_t i = 0; packing->items != NULL && i < TOGETHER; i++)
        for (uint32_t f = 0; f < STOKER_FIELDS_MAX; f++) {
            free(packing->items[i].rows[f].data);
            pack_room_free(&packing->items[i].pieces[f].room);
        }
    free(packing->items);
    pack_output_drop(&packing->output);
    pack_room_free(&packing->entries);
    pack_room_free(&packing->labels);
    pack_room_free(&packing->names);
    if (packing->folder >= 0)
        close(packing->folder);
}

static bool add_items(struct packing *packing, struct pack_failure *failure)
{
    for (uint32_t i = 0; i < packing->item_count; i++) {
        const struct item *item = &packing->items[i];
        if (item->failed[0] != '\0')
            return pack_fail(failure, packing->plan->arguments->source, 0, "sample %" PRIu64 ": %s",
                             item->id, item->failed);
        if (item->bad)
            (void)fprintf(stderr, "stoker-pack: left out: %s\n", item->error.message);
        else if (!add_item(packing, item, failure))
            return false;
        packing->header.source_count++;
    }
    return true;
}

static bool pack_samples(struct packing *packing, struct stk_thread_team *team,
                         struct pack_failure *failure)
{
    const uint64_t count = packing->plan->info->count;
    struct pack_progress progress = pack_progress_begin("packed", packing->header.source_first,
                                                        count, packing->plan->arguments->quiet);
    bool good = true;
    for (uint64_t id = packing->header.source_first; good && id < count;
         id += packing->item_count) {
        packing->item_count = count - id < TOGETHER ? (uint32_t)(count - id) : TOGETHER;
        for (uint32_t i = 0; i < packing->item_count; i++)
            packing->items[i].id = id + i;
        atomic_store_explicit(&packing->next, 0, memory_order_relaxed); /* published by the run */
        stk_thread_team_run(team, read_items, packing);
        good = add_items(packing, failure);
        pack_progress_show(&progress, id + packing->item_count);
    }
    cli_progress_line_wipe(&progress.line);
    if (good && packing->output.file == NULL)
        return pack_fail(failure, packing->plan->arguments->target, 0,
                         "all samples behind the shards that are there are bad");
    return good && end_shard(packing, true, failure);
}

static bool pack_all(struct packing *packing, uint32_t threads, struct pack_failure *failure)
{
    const char *target = packing->plan->arguments->target;
    const char *why = unsuitable(packing);
    struct stk_thread_team *team = NULL;
    bool finished = false;
    if (why != NULL)
        return pack_fail(failure, packing->plan->arguments->source, 0, "%s", why);
    if (!pack_class_names(packing->plan, &packing->names) || !take_items(packing))
        return pack_fail(failure, target, ENOMEM, "the samples");
    packing->folder = pack_lock_folder(target, failure);
    if (packing->folder < 0 || !skip_finished(packing, &finished, failure) ||
        !pack_shards_alone(target, packing->header.number, failure))
        return false;
    packing->tally->kept_samples = packing->tally->samples;
    if (finished)
        return true;
    if (stk_thread_team_create(&team, "stoker-pack",
                               threads > STK_THREAD_TEAM_MAX ? STK_THREAD_TEAM_MAX : threads) !=
        STOKER_OK)
        return pack_fail(failure, target, 0, "a thread could not be started");
    const bool good = pack_samples(packing, team, failure);
    stk_thread_team_destroy(team);
    return good;
}

bool pack_fields_run(const struct pack_plan *plan, uint32_t threads, struct pack_tally *tally,
                     struct pack_failure *failure)
{
    struct packing packing = { .plan = plan,
                               .folder = -1,
                               .tally = tally,
                               .header = { .set_id = plan->set_id, .alignment = ALIGNMENT } };
    if (plan->arguments->form != PACK_SHARDS)
        return pack_fail(failure, plan->arguments->source, 0,
                         "samples of several fields go into shards:DIR only");
    describe_fields(&packing);
    const bool good = pack_all(&packing, threads, failure);
    close_packing(&packing);
    return good;
}
