/* test_packed.c - packed rows: every document is in them once, from its first token to its last,
 * and the other fields say where.
 *
 * Method: each token of a document says which it is, so a row is compared with the documents that
 * the table names, and the table is checked to name every piece once. All kinds of data sets are
 * packed: files, memory, codecs, made ones.
 */
#include "datasets/views/packed/packed.h"
#include "loader/base/rng.h"
#include "loader/dataset/dataset.h"
#include "support/runs/opened_loader.h"
#include "support/sets/document_set.h"
#include "support/sets/read_row.h"
#include "support/sets/refused_specs.h"
#include "support/sweep.h"

enum { DOCUMENTS = 300, LENGTH = 64 };

static void draw_lengths(uint64_t lengths[DOCUMENTS], uint64_t most)
{
    for (uint64_t i = 0; i < DOCUMENTS; i++)
        lengths[i] = i == 7 ? 0 : stk_mix64(i) % most + (i == 8 ? most : 1);
}

static stoker_dataset *pack_of(stoker_dataset *documents, const stoker_packing *packing)
{
    stoker_error error = { .message = "" };
    stoker_dataset *packed = NULL;
    cr_assert_eq(stoker_dataset_pack(&packed, documents, packing, &error), STOKER_OK, "%s",
                 error.message);
    return packed;
}

static stoker_packing packing_of(uint64_t length)
{
    stoker_packing packing = STOKER_PACKING_INIT;
    packing.length = length;
    return packing;
}

/* ---- what rows must be ------------------------------------------------------------------- */

struct row {
    int32_t tokens[LENGTH], inputs[LENGTH], targets[LENGTH], positions[LENGTH], documents[LENGTH];
    int32_t starts[LENGTH + 1];
    int32_t longest;
    uint64_t starts_count;
};

static void read_row(const stoker_dataset *packed, uint64_t id, struct row *row)
{
    stoker_error error = { .message = "" };
    memset(row, 0xee, sizeof(*row));
    stoker_row rows[7] = { { row->tokens, sizeof(row->tokens), 0, 0 },
                           { row->inputs, sizeof(row->inputs), 0, 0 },
                           { row->targets, sizeof(row->targets), 0, 0 },
                           { row->positions, sizeof(row->positions), 0, 0 },
                           { row->documents, sizeof(row->documents), 0, 0 },
                           { row->starts, sizeof(row->starts), 0, 0 },
                           { &row->longest, sizeof(row->longest), 0, 0 } };
    cr_assert_eq(stoker_dataset_read(packed, id, rows, &error), STOKER_OK, "%s", error.message);
    row->starts_count = rows[5].length;
}

/* One document of a row, `count` tokens from token `first` on. */
static void expect_document(const struct row *row, uint32_t index, uint64_t document,
                            uint64_t first, uint64_t count)
{
    const int32_t begin = row->starts[index];
    cr_assert_eq((uint64_t)(row->starts[index + 1] - begin), count);
    for (uint64_t t = 0; t < count; t++) {
        const int32_t at = begin + (int32_t)t;
        cr_assert_eq(row->tokens[at], stk_document_token(document, first + t));
        cr_assert_eq(row->inputs[at], row->tokens[at]);
        cr_assert_eq(row->targets[at], t + 1 < count ? row->tokens[at + 1] : -100);
        cr_assert_eq(row->positions[at], (int32_t)t);
        cr_assert_eq(row->documents[at], (int32_t)index);
    }
}

static void expect_row(const stoker_dataset *packed, uint64_t id, const uint64_t *lengths,
                       uint64_t *seen)
{
    const struct stk_packed *self = packed->self;
    const uint64_t begin = self->rows.first[id];
    const uint32_t count = (uint32_t)(self->rows.first[id + 1] - begin);
    struct row row;
    int32_t longest = 0;
    read_row(packed, id, &row);
    cr_assert_eq(row.starts_count, count + 1);
    cr_assert_eq(row.starts[0], 0);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t document = self->rows.document[begin + i];
        const uint64_t first =
            self->rows.piece == NULL ? 0 : self->rows.piece[begin + i] * (uint64_t)LENGTH;
        const uint64_t left = lengths[document] - first;
        expect_document(&row, i, document, first, left < LENGTH ? left : LENGTH);
        seen[document] += (uint64_t)(row.starts[i + 1] - row.starts[i]) << 32 | 1;
        longest = row.starts[i + 1] - row.starts[i] > longest ? row.starts[i + 1] - row.starts[i]
                                                              : longest;
    }
    cr_assert_eq(row.longest, longest);
    for (int32_t at = row.starts[count]; at < LENGTH; at++) {
        cr_assert_eq(row.tokens[at], 9);
        cr_assert_eq(row.targets[at], -100);
        cr_assert_eq(row.positions[at], 0);
        cr_assert_eq(row.documents[at], -1);
    }
}

/* All rows; each document's tokens and pieces are counted: the pieces are distinct, since the table
 * names each once. */
static void expect_all(enum stk_document_kind kind, stoker_long_documents how, uint64_t most)
{
    uint64_t lengths[DOCUMENTS];
    uint64_t seen[DOCUMENTS] = { 0 };
    draw_lengths(lengths, most);
    stoker_dataset *documents = stk_documents_of(kind, lengths, DOCUMENTS);
    stoker_packing packing = packing_of(LENGTH);
    packing.block = 100;
    packing.fields = 127;
    packing.dtype = STOKER_DTYPE_INT32;
    packing.padding = 9;
    packing.long_documents = how;
    stoker_dataset *packed = pack_of(documents, &packing);
    stoker_dataset_close(&documents);
    for (uint64_t id = 0; id < stoker_dataset_get_info(packed)->count; id++)
        expect_row(packed, id, lengths, seen);
    for (uint64_t i = 0; i < DOCUMENTS; i++) {
        const uint64_t kept =
            how == STOKER_PACKING_LONG_CROP && lengths[i] > LENGTH ? LENGTH : lengths[i];
        cr_assert_eq(seen[i] >> 32, kept, "document %llu", (unsigned long long)i);
        cr_assert_eq(seen[i] & 0xffffffff, (kept + LENGTH - 1) / LENGTH);
    }
    stoker_dataset_close(&packed);
}

CleanTest(packed, rows_hold_every_document_once)
{
    for (int kind = 0; kind < STK_DOCUMENT_KINDS; kind++)
        expect_all((enum stk_document_kind)kind, STOKER_PACKING_LONG_REFUSE, LENGTH / 2);
}

CleanTest(packed, longer_documents_are_split_without_loss)
{
    for (int kind = 0; kind < STK_DOCUMENT_KINDS; kind++)
        expect_all((enum stk_document_kind)kind, STOKER_PACKING_LONG_SPLIT, 3 * LENGTH);
}

CleanTest(packed, longer_documents_are_cropped_if_asked)
{
    for (int kind = 0; kind < STK_DOCUMENT_KINDS; kind++)
        expect_all((enum stk_document_kind)kind, STOKER_PACKING_LONG_CROP, 3 * LENGTH);
}

CleanTest(packed, as_stored_by_default)
{
    uint64_t lengths[DOCUMENTS];
    draw_lengths(lengths, LENGTH / 2);
    stoker_dataset *documents = stk_documents_of(STK_DOCUMENTS_FILE, lengths, DOCUMENTS);
    stoker_packing packing = packing_of(LENGTH);
    stoker_dataset *packed = pack_of(documents, &packing);
    cr_assert_eq(stoker_dataset_get_info(packed)->field_count, 2);
    const stoker_field_info *tokens = stoker_dataset_field(packed, 0);
    const stoker_field_info *starts = stoker_dataset_field(packed, 1);
    cr_assert_str_eq(tokens->name, "tokens");
    cr_assert_eq(tokens->dtype, STOKER_DTYPE_UINT16);
    cr_assert_eq(tokens->shape[0], LENGTH);
    cr_assert_str_eq(starts->name, "cu_seqlens");
    cr_assert(starts->varies);
    cr_assert_not_null(strstr(stoker_dataset_get_info(packed)->description, "300 documents"));
    cr_assert_not_null(strstr(stoker_dataset_get_info(packed)->description, ", 1 empty"));
    /* The lengths of cu_seqlens are known without reading. */
    for (uint64_t id = 0; id < stoker_dataset_get_info(packed)->count; id++) {
        int32_t at[LENGTH + 1];
        stoker_row rows[2] = { { .data = NULL }, { .data = at, .bytes_max = sizeof(at) } };
        uint64_t length = 0;
        cr_assert_eq(stoker_dataset_read(packed, id, rows, NULL), STOKER_OK);
        cr_assert_eq(stoker_dataset_lengths(packed, 1, &id, 1, &length, NULL), STOKER_OK);
        cr_assert_eq(length, rows[1].length);
        cr_assert_leq(length, starts->shape[0]);
    }
    stoker_dataset_close(&documents);
    stoker_dataset_close(&packed);
}

/* Another block size is another data set; the same packing is the same, so a state can be
 * resumed. */
CleanTest(packed, fingerprints_differ_with_the_packing)
{
    uint64_t lengths[DOCUMENTS];
    draw_lengths(lengths, LENGTH / 2);
    stoker_dataset *documents = stk_documents_of(STK_DOCUMENTS_MEMORY, lengths, DOCUMENTS);
    stoker_packing packing = packing_of(LENGTH);
    stoker_dataset *a = pack_of(documents, &packing);
    stoker_dataset *b = pack_of(documents, &packing);
    packing.block = 50;
    stoker_dataset *c = pack_of(documents, &packing);
    cr_assert_eq(stoker_dataset_fingerprint(a), stoker_dataset_fingerprint(b));
    cr_assert_neq(stoker_dataset_fingerprint(a), stoker_dataset_fingerprint(c));
    stoker_dataset_close(&documents);
    stoker_dataset_close(&a);
    stoker_dataset_close(&b);
    stoker_dataset_close(&c);
}

/* ---- through a loader ------------------------------------------------------------------------ */

CleanTest(packed, a_loader_delivers_each_row_once)
{
    uint64_t lengths[DOCUMENTS];
    draw_lengths(lengths, LENGTH / 2);
    stoker_dataset *documents = stk_documents_of(STK_DOCUMENTS_FILE, lengths, DOCUMENTS);
    stoker_packing packing = packing_of(LENGTH);
    stoker_dataset *packed = pack_of(documents, &packing);
    stoker_loader_options options =
        stk_default_options(.batch_size = 8, .shuffle = true, .num_workers = 2,
                            .device = STOKER_DEVICE_CPU, .epochs = 1);
    stoker_loader *loader = loader_of(packed, &options);
    const uint64_t count = stoker_dataset_get_info(packed)->count;
    uint8_t *visits = calloc(count, 1);
    uint64_t rows = 0;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_error error = { .message = "" };
    int rc;
    while ((rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK) {
        for (uint32_t i = 0; i < batch.count; i++, rows++) {
            uint16_t row[LENGTH];
            cr_assert_eq(visits[batch.ids[i]]++, 0);
            cr_assert_eq(stk_read_row(packed, batch.ids[i], row, sizeof(row), NULL, &error),
                         STOKER_OK);
            cr_assert_arr_eq((const uint16_t *)batch.fields[0].values.data + i * LENGTH, row,
                             sizeof(row));
        }
        stoker_batch_release(&batch);
    }
    cr_assert_eq(rc, STOKER_EPOCH_END);
    cr_assert_eq(rows, count);
    free(visits);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&documents);
    stoker_dataset_close(&packed);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void expect_refusal(stoker_dataset *documents, const stoker_packing *packing, int code,
                           const char *says)
{
    stoker_error error = { .message = "" };
    stoker_dataset *packed = NULL;
    cr_assert_eq(stoker_dataset_pack(&packed, documents, packing, &error), code, "%s",
                 error.message);
    cr_assert_not_null(strstr(error.message, says), "%s", error.message);
    cr_assert_null(packed);
}

CleanTest(packed, refuses_what_cannot_be_packed)
{
    static const uint64_t lengths[] = { 3, 70, 0 };
    stoker_dataset *documents = stk_documents_of(STK_DOCUMENTS_MEMORY, lengths, 3);
    stoker_dataset *empty = stk_documents_of(STK_DOCUMENTS_MEMORY, &lengths[2], 1);
    stoker_packing packing = packing_of(LENGTH);
    expect_refusal(documents, &packing, STOKER_ELIMIT, "sample 1");
    expect_refusal(empty, &packing, STOKER_EEMPTY, "empty");
    packing.long_documents = (stoker_long_documents)3;
    expect_refusal(documents, &packing, STOKER_EINVAL, "long_documents");
    packing = packing_of(0);
    expect_refusal(documents, &packing, STOKER_EINVAL, "length");
    packing = packing_of((UINT64_C(1) << 23) + 1);
    expect_refusal(documents, &packing, STOKER_EINVAL, "length");
    packing = packing_of(100);
    packing.field = "words";
    expect_refusal(documents, &packing, STOKER_EINVAL, "\"words\"");
    packing = packing_of(100);
    packing.padding = -1;
    expect_refusal(documents, &packing, STOKER_EINVAL, "padding");
    packing = packing_of(100);
    packing.fields = STOKER_PACKED_POSITIONS;
    expect_refusal(documents, &packing, STOKER_EINVAL, "fields");
    packing.fields = STOKER_PACKED_TOKENS | STOKER_PACKED_TARGETS;
    expect_refusal(documents, &packing, STOKER_EINVAL, "dtype=int32");
    packing.dtype = STOKER_DTYPE_FLOAT32;
    expect_refusal(documents, &packing, STOKER_ETYPE, "float32");
    packing = packing_of(100);
    packing.struct_size = 8;
    expect_refusal(documents, &packing, STOKER_EINVAL, "STOKER_PACKING_INIT");
    stoker_dataset *digits = dataset_of("synth:digits?count=10");
    packing = packing_of(100);
    expect_refusal(digits, &packing, STOKER_ETYPE, "varies");
    stoker_dataset_close(&digits);
    stoker_dataset_close(&documents);
    stoker_dataset_close(&empty);
}

CleanTest(packed, refuses_specs_that_are_none)
{
    static const struct stk_refused_spec rows[] = {
        { "packed:", NULL, STOKER_ESPEC, "packed:LENGTH" },
        { "packed:(synth:digits)", NULL, STOKER_ESPEC, "packed:LENGTH" },
        { "packed:0:(synth:digits)", NULL, STOKER_ESPEC, "packed:LENGTH" },
        { "packed:8:synth:digits", NULL, STOKER_ESPEC, "packed:LENGTH" },
        { "packed:8x:(synth:digits)", NULL, STOKER_ESPEC, "packed:LENGTH" },
        { "packed:99999999999999999999999:(synth:digits)", NULL, STOKER_ESPEC, "packed:LENGTH" },
        { "packed:8:(synth:digits)x", NULL, STOKER_ESPEC, "packed:LENGTH" },
        { "packed:8:(synth:digits", NULL, STOKER_ESPEC, "packed:LENGTH" },
        { "packed:8:(nosuch:x)", NULL, STOKER_ESPEC, NULL },
        { "packed:8:(synth:digits)", NULL, STOKER_ETYPE, "varies" },
        { "packed:8:(synth:digits)?long=cut", NULL, STOKER_ESPEC, "refuse, split or crop" },
        { "packed:8:(synth:digits)?fields=tokens,word", NULL, STOKER_ESPEC, "cu_seqlens" },
        { "packed:8:(synth:digits)?fields=tokens,", NULL, STOKER_ESPEC, "cu_seqlens" },
        { "packed:8:(synth:digits)?padding=1.5", NULL, STOKER_ESPEC, "padding" },
        { "packed:8:(synth:digits)?ignored=-", NULL, STOKER_ESPEC, "ignored" },
        { "packed:8:(synth:digits)?block=4294967296", NULL, STOKER_EINVAL, "block" },
        { "packed:8:(synth:digits)?blocks=1", NULL, STOKER_ESPEC, "block" },
        { "packed:8:(synth:digits)?field=x", NULL, STOKER_EINVAL, "\"x\"" },
    };
    stk_expect_refused(rows, sizeof(rows) / sizeof(rows[0]));
}

/* ---- lengths --------------------------------------------------------------------------------- */

CleanTest(packed, lengths_are_known_without_reading)
{
    uint64_t lengths[DOCUMENTS];
    uint64_t ids[DOCUMENTS];
    uint64_t found[DOCUMENTS];
    stoker_error error = { .message = "" };
    draw_lengths(lengths, LENGTH);
    for (uint64_t i = 0; i < DOCUMENTS; i++)
        ids[i] = DOCUMENTS - 1 - i;
    for (int kind = 0; kind < STK_DOCUMENT_KINDS; kind++) {
        stoker_dataset *documents =
            stk_documents_of((enum stk_document_kind)kind, lengths, DOCUMENTS);
        stoker_dataset *view = NULL;
        cr_assert_eq(stoker_dataset_select(&view, documents, ids, DOCUMENTS, &error), STOKER_OK);
        cr_assert_eq(stoker_dataset_lengths(view, 0, ids, DOCUMENTS, found, &error), STOKER_OK,
                     "%s", error.message);
        cr_assert_arr_eq(found, lengths, sizeof(found));
        cr_assert_eq(stoker_dataset_lengths(view, 1, ids, 1, found, &error), STOKER_EINVAL);
        cr_assert_eq(stoker_dataset_lengths(view, 0, &(uint64_t){ DOCUMENTS }, 1, found, &error),
                     STOKER_EINVAL);
        stoker_dataset_close(&documents);
        stoker_dataset_close(&view);
    }
    stoker_dataset *digits = dataset_of("synth:digits?count=10");
    cr_assert_eq(stoker_dataset_lengths(digits, 0, ids + DOCUMENTS - 1, 1, found, &error),
                 STOKER_OK);
    cr_assert_eq(found[0], 28);
    stoker_dataset_close(&digits);
}

/* ---- failures -------------------------------------------------------------------------------- */

CleanTest(packed, opening_survives_each_allocation_failure)
{
    uint64_t lengths[DOCUMENTS];
    draw_lengths(lengths, 3 * LENGTH);
    stoker_dataset *documents = stk_documents_of(STK_DOCUMENTS_CODED, lengths, DOCUMENTS);
    const int64_t live = stk_fault_live_bytes();
    stoker_packing packing = packing_of(LENGTH);
    packing.block = 20;
    packing.long_documents = STOKER_PACKING_LONG_SPLIT;
    stoker_dataset *packed = NULL;
    struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
    while (stk_sweep_next(&sweep))
        sweep.rc = stoker_dataset_pack(&packed, documents, &packing, &sweep.error);
    stoker_dataset_close(&packed);
    cr_assert_eq(stk_fault_live_bytes(), live);
    stoker_dataset_close(&documents);
}

CleanTest(packed, reading_survives_each_allocation_failure)
{
    uint64_t lengths[DOCUMENTS];
    draw_lengths(lengths, LENGTH);
    stoker_dataset *documents = stk_documents_of(STK_DOCUMENTS_CODED, lengths, DOCUMENTS);
    stoker_packing packing = packing_of(2 * LENGTH);
    stoker_dataset *packed = pack_of(documents, &packing);
    uint16_t row[2 * LENGTH];
    struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
    while (stk_sweep_next(&sweep))
        sweep.rc = stk_read_row(packed, 0, row, sizeof(row), NULL, &sweep.error);
    stoker_dataset_close(&documents);
    stoker_dataset_close(&packed);
}

/* A file that was cut, and one that was written to: the row fails, and names the file. */
CleanTest(packed, a_file_that_changed_is_noticed)
{
    uint64_t lengths[DOCUMENTS];
    uint16_t row[LENGTH];
    stoker_error error = { .message = "" };
    draw_lengths(lengths, LENGTH / 2);
    stoker_dataset *documents = stk_documents_of(STK_DOCUMENTS_FILE, lengths, DOCUMENTS);
    const struct stk_document_set *set = documents->self;
    stoker_packing packing = packing_of(LENGTH);
    stoker_dataset *packed = pack_of(documents, &packing);
    cr_assert_eq(truncate(set->path, 2), 0);
    cr_assert_eq(stk_read_row(packed, 0, row, sizeof(row), NULL, &error), STOKER_ETRUNCATED);
    cr_assert_not_null(strstr(error.message, set->path), "%s", error.message);
    const off_t end = (off_t)(2 * set->starts[DOCUMENTS] + 2);
    cr_assert_eq(truncate(set->path, end), 0);
    cr_assert_eq(stk_read_row(packed, 0, row, sizeof(row), NULL, &error), STOKER_ECHANGED);
    stoker_dataset_close(&documents);
    stoker_dataset_close(&packed);
}
