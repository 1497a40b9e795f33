/* file_reader.c - see file_reader.h. */
#include "loader/api/choose/file_reader.h"

#include <stdio.h>
#include <string.h>

#include "loader/api/choose/sizing.h"
#include "loader/base/environment.h"
#include "loader/base/error.h"
#include "loader/base/struct_size.h"
#include "loader/reader/readers.h"
#include "loader/reader/setup.h"
#include "loader/storage/reader.h"

enum { BLOCKS_SHARE = 4 }; /* unpacked blocks may take a quarter of the memory that is left */

/* The built-in readers of files: all deliver the same bytes. */
static bool reads_descriptors(const stoker_reader *reader)
{
    return reader == &stk_reader_uring || reader == &stk_reader_pread;
}

static int check_file(const stoker_reader *reader, uint32_t number, const stoker_file *file,
                      stoker_error *error)
{
    if (file->fd >= 0 || file->storage != NULL || !reads_descriptors(reader))
        return 0;
    struct stk_place place = STK_NOWHERE;
    place.path = file->path;
    return stk_error_set(error, STOKER_ENOTSUP, STOKER_STAGE_OPTIONS, &place,
                         "file %u has no descriptor and no storage: give a reader that needs none "
                         "in options.reader",
                         number);
}

enum stk_reader_rule stk_file_reader_rule(const stoker_loader *loader)
{
    const stoker_reader *asked = loader->options.reader;
    if (loader->pipeline.reader == &loader->own_reader)
        return loader->storage_reader.files != NULL ? STK_READER_STORAGES : STK_READER_OWN;
    return asked != NULL || stk_environment("STOKER_READER") != NULL ? STK_READER_NAMED
                                                                     : STK_READER_ANY;
}

/* The caller's reader, of any version: the functions that it lacks are NULL. */
static int take_reader(stoker_loader *loader, const stoker_reader *given, stoker_error *error)
{
    const struct stk_place nowhere = STK_NOWHERE;
    if (!stk_struct_fits(given, STK_SIZE_UP_TO(stoker_reader, close), sizeof(*given)))
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                             STK_STRUCT_REFUSAL, "reader", given->struct_size, sizeof(*given),
                             "sizeof(stoker_reader)");
    stk_struct_read(&loader->own_reader, sizeof(loader->own_reader), given, given->struct_size);
    loader->pipeline.reader = &loader->own_reader;
    if (given->name == NULL || given->open == NULL || given->submit == NULL ||
        given->reap == NULL || given->close == NULL)
        return stk_error_set(error, STOKER_EINVAL, STOKER_STAGE_OPTIONS, &nowhere,
                             "reader: its name or one of its functions is NULL");
    return 0;
}

static int use_reader(stoker_loader *loader, stoker_error *error)
{
    struct stk_pipeline *pipeline = &loader->pipeline;
    if (loader->options.reader == NULL)
        return stk_reader_choose(&pipeline->reader, loader->reader_reason,
                                 sizeof(loader->reader_reason), error);
    (void)snprintf(loader->reader_reason, sizeof(loader->reader_reason), "given in the options");
    pipeline->reader = loader->options.reader; /* a built-in one is known by its address */
    return reads_descriptors(pipeline->reader) ? 0 : take_reader(loader, pipeline->reader, error);
}

static int file_failed(uint32_t number, int rc, stoker_error *error)
{
    const struct stk_place nowhere = STK_NOWHERE;
    stoker_error said;
    return stk_error_set(error, stk_callback_failed(rc, "file()", &said), STOKER_STAGE_OPTIONS,
                         &nowhere, "file %u: %s", number, said.message);
}

static int list_files(stoker_loader *loader, stoker_error *error)
{
    struct stk_pipeline *pipeline = &loader->pipeline;
    const uint32_t file_count = pipeline->dataset->info.file_count;
    loader->files = stk_calloc((size_t)file_count + 1, sizeof(loader->files[0]));
    if (loader->files == NULL)
        return STOKER_ENOMEM;
    for (uint32_t i = 0; i < file_count; i++) {
        int rc = pipeline->dataset->ops->file(pipeline->dataset->self, i, &loader->files[i]);
        if (rc != 0)
            return file_failed(i, rc, error);
        rc = check_file(pipeline->reader, i, &loader->files[i], error);
        if (rc != 0)
            return rc;
    }
    pipeline->files = loader->files;
    return 0;
}

/* Files without a descriptor are read by their storage, and a ring of blocks may replace only what
 * is below it: both stay open where another reader would take over. */
static void use_storages(stoker_loader *loader)
{
    struct stk_pipeline *pipeline = &loader->pipeline;
    const bool strict = stk_file_reader_rule(loader) == STK_READER_NAMED;
    if (!reads_descriptors(pipeline->reader))
        return;
    for (uint32_t i = 0; i < pipeline->dataset->info.file_count; i++) {
        if (pipeline->files[i].fd >= 0 && pipeline->files[i].blocks == NULL)
            continue;
        stk_storage_reader_init(&loader->storage_reader, &loader->own_reader, pipeline->reader,
                                strict ? NULL : &stk_reader_pread);
        pipeline->reader = &loader->own_reader;
        return;
    }
}

/* The null reader reads nothing that could be unpacked. */
static void use_blocks(stoker_loader *loader)
{
    const struct stk_pipeline *pipeline = &loader->pipeline;
    for (uint32_t i = 0; i < pipeline->dataset->info.file_count; i++)
        if (pipeline->files[i].blocks != NULL && loader->options.reader != &stk_reader_null) {
            loader->has_blocks = true;
            stk_block_reader_init(&loader->block_reader, &loader->own_reader);
            return;
        }
}

int stk_file_reader_make_blocks(stoker_loader *loader, stoker_error *error)
{
    const uint64_t asked = loader->options.block_memory_bytes;
    const bool given = asked != STOKER_BYTES_AUTO;
    if (!loader->has_blocks)
        return STOKER_OK;
    return stk_block_store_make(&loader->block_reader.store, loader->files,
                                loader->pipeline.dataset->info.file_count,
                                given ? asked : stk_sizing_memory_share(loader) / BLOCKS_SHARE,
                                given, loader->worker_count, error);
}

static uint32_t choose_depth(const stoker_loader *loader)
{
    const struct stk_pipeline *pipeline = &loader->pipeline;
    const uint32_t asked = loader->options.read_depth;
    const uint32_t depth = asked != 0 ? asked : stk_sizing_read_depth(pipeline->dataset);
    /* The last row that starts may exceed it by all its parts but one. */
    const bool too_deep =
        pipeline->part_count > 0 && depth > STK_READ_DEPTH_MAX - pipeline->part_count;
    return too_deep ? STK_READ_DEPTH_MAX - pipeline->part_count + 1 : depth;
}

int stk_file_reader_make(stoker_loader *loader, stoker_error *error)
{
    int rc = use_reader(loader, error);
    if (rc == 0)
        rc = list_files(loader, error);
    if (rc == 0)
        use_storages(loader);
    if (rc == 0)
        use_blocks(loader);
    if (rc == 0)
        loader->pipeline.read_depth = choose_depth(loader);
    return rc;
}
