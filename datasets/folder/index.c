/* index.c - see index.h. */
#include "datasets/folder/index.h"

#include <errno.h>
#include <string.h>

#include "datasets/folder/list.h"
#include "datasets/source.h"
#include "loader/base/io/output_file.h"
#include "loader/base/io/write_all.h"
#include "loader/base/rng.h"

#define INDEX_MAGIC UINT64_C(0x58444E49524C4F46) /* "FOLRINDX" on a little-endian machine */

enum { INDEX_VERSION = 1 };
#define TICK_NS INT64_C(2000000000)

struct header {
    uint64_t magic;
    uint64_t version;
    uint64_t wish; /* hash of the extensions */
    uint64_t directory_count;
    uint64_t class_count;
    uint64_t file_count;
    uint64_t name_bytes;
    uint64_t checksum; /* the whole file's, with 0 here */
};

_Static_assert(sizeof(struct header) == 64, "an index has no gaps");
_Static_assert(sizeof(struct stk_folder_directory) == 32, "an index has no gaps");
_Static_assert(sizeof(struct stk_folder_file) == 16, "an index has no gaps");

/* Each step is a bijection: any one word that differs makes a sum that differs. */
static uint64_t sum(uint64_t hash, const void *bytes, uint64_t count)
{
    const uint8_t *at = bytes;
    uint64_t word;
    for (; count >= sizeof(word); count -= sizeof(word), at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        hash = stk_mix64(hash ^ word);
    }
    word = 0;
    memcpy(&word, at, count);
    return stk_mix64(stk_mix64(hash ^ word) ^ count);
}

static uint64_t checksum_of(struct header header, const void *body, uint64_t bytes)
{
    header.checksum = 0;
    return sum(sum(0, &header, sizeof(header)), body, bytes);
}

static uint64_t hash_of(const struct stk_folder_wish *wish)
{
    return sum(1, wish->extensions, strlen(wish->extensions));
}

/* ---- is it sound? --------------------------------------------------------------- */

static bool header_is_sound(const struct header *header, const struct stk_folder_wish *wish,
                            uint64_t file_bytes)
{
    const struct stk_folder_tree tree = { .directory_count = header->directory_count,
                                          .class_count = header->class_count,
                                          .file_count = header->file_count,
                                          .name_bytes = header->name_bytes };
    return header->magic == INDEX_MAGIC && header->version == INDEX_VERSION &&
           header->wish == hash_of(wish) && header->file_count > 0 && header->class_count > 0 &&
           header->class_count <= STK_FOLDER_CLASSES_MAX && header->name_bytes > 0 &&
           stk_folder_tree_bytes(&tree) == file_bytes - sizeof(*header);
}

static bool tree_is_sound(const struct stk_folder_tree *tree)
{
    bool sound = tree->names[tree->name_bytes - 1] == '\0';
    for (uint64_t i = 0; i < tree->directory_count; i++)
        sound = sound && tree->directories[i].path < tree->name_bytes;
    for (uint64_t i = 0; i < tree->class_count; i++)
        sound = sound && tree->classes[i] < tree->name_bytes;
    for (uint64_t i = 0; i < tree->file_count; i++)
        sound = sound && tree->files[i].path < tree->name_bytes &&
                stk_folder_label(&tree->files[i]) < tree->class_count;
    return sound;
}

/* ---- is it still true? ---------------------------------------------------------- */

static bool classes_are_the_same(const struct stk_folder_tree *tree,
                                 const struct stk_folder_wish *wish)
{
    char *names = NULL;
    uint64_t name_bytes = 0;
    uint64_t count = 0;
    if (stk_folder_classes(wish, &names, &name_bytes, &count, NULL) != STOKER_OK)
        return false;
    bool same = count == tree->class_count;
    const char *at = names;
    for (uint64_t i = 0; same && i < count; at += strlen(at) + 1, i++)
        same = strcmp(at, tree->names + tree->classes[i]) == 0;
    stk_free(names);
    return same;
}

static bool folders_are_the_same(const struct stk_folder_tree *tree,
                                 const struct stk_folder_wish *wish)
{
    for (uint64_t i = 0; i < tree->directory_count; i++) {
        const struct stk_folder_directory *then = &tree->directories[i];
        struct stk_folder_directory now;
        if (stk_folder_stamp(wish->root->fd, tree->names + then->path, &now) != 0 ||
            now.inode != then->inode || now.modified_ns != then->modified_ns ||
            now.changed_ns != then->changed_ns)
            return false;
    }
    return true;
}

/* ---- load ----------------------------------------------------------------------- */

static bool take_tree(struct stk_folder_tree *tree, const struct stk_folder_wish *wish,
                      const struct stk_source *source)
{
    struct header header;
    if (source->size <= sizeof(header) || source->size > wish->bytes_max ||
        stk_source_read(source, &header, sizeof(header), 0, NULL) != STOKER_OK ||
        !header_is_sound(&header, wish, source->size))
        return false;
    const uint64_t bytes = source->size - sizeof(header);
    tree->directory_count = header.directory_count;
    tree->class_count = header.class_count;
    tree->file_count = header.file_count;
    tree->name_bytes = header.name_bytes;
    return stk_folder_tree_map(tree) == STOKER_OK &&
           stk_source_read(source, tree->memory.base, (size_t)bytes, sizeof(header), NULL) ==
               STOKER_OK &&
           header.checksum == checksum_of(header, tree->memory.base, bytes) &&
           tree_is_sound(tree) && classes_are_the_same(tree, wish) &&
           folders_are_the_same(tree, wish);
}

bool stk_folder_index_load(struct stk_folder_tree *tree, const struct stk_folder_wish *wish,
                           const char *path)
{
    struct stk_source source;
    *tree = (struct stk_folder_tree){ 0 };
    if (stk_source_open(&source, &stk_storage_local, path, NULL) != STOKER_OK)
        return false;
    const bool taken = take_tree(tree, wish, &source);
    stk_source_close(&source);
    if (!taken)
        stk_folder_tree_free(tree);
    return taken;
}

/* ---- save ----------------------------------------------------------------------- */

static void distrust_fresh_folders(struct stk_folder_tree *tree)
{
    struct stk_folder_directory *directories = (void *)tree->directories;
    for (uint64_t i = 0; i < tree->directory_count; i++)
        if (directories[i].changed_ns > tree->scan_ns - TICK_NS)
            directories[i].changed_ns = 0;
}

/* Returns 0 or an errno. */
static int write_file(const char *path, const struct header *header, const void *body,
                      uint64_t bytes)
{
    struct stk_output output;
    const int os_errno = stk_output_open(&output, path);
    if (os_errno != 0)
        return os_errno;
    if (stk_write_all(output.fd, header, sizeof(*header)) && stk_write_all(output.fd, body, bytes))
        return stk_output_commit(&output);
    const int write_errno = errno;
    stk_output_drop(&output);
    return write_errno;
}

int stk_folder_index_save(struct stk_folder_tree *tree, const struct stk_folder_wish *wish,
                          const char *path, stoker_error *error)
{
    const uint64_t bytes = stk_folder_tree_bytes(tree);
    distrust_fresh_folders(tree);
    struct header header = { .magic = INDEX_MAGIC,
                             .version = INDEX_VERSION,
                             .wish = hash_of(wish),
                             .directory_count = tree->directory_count,
                             .class_count = tree->class_count,
                             .file_count = tree->file_count,
                             .name_bytes = tree->name_bytes };
    header.checksum = checksum_of(header, tree->memory.base, bytes);
    const int os_errno = write_file(path, &header, tree->memory.base, bytes);
    if (os_errno == 0)
        return STOKER_OK;
    struct stk_place place = stk_at(path, STOKER_NO_OFFSET);
    place.os_errno = os_errno;
    return stk_error_set(error, stk_error_from_errno(os_errno), STOKER_STAGE_OPEN, &place,
                         "folder: the index cannot be written");
}
