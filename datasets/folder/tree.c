/* tree.c - the memory of a tree: see tree.h. */
#include "datasets/folder/tree.h"

uint64_t stk_folder_tree_bytes(const struct stk_folder_tree *tree)
{
    const uint64_t counts[4] = { tree->directory_count, tree->class_count, tree->file_count,
                                 tree->name_bytes };
    const uint64_t sizes[4] = { sizeof(tree->directories[0]), sizeof(tree->classes[0]),
                                sizeof(tree->files[0]), 1 };
    uint64_t total = 0;
    for (int i = 0; i < 4; i++) {
        uint64_t part;
        if (__builtin_mul_overflow(counts[i], sizes[i], &part) ||
            __builtin_add_overflow(total, part, &total))
            return UINT64_MAX;
    }
    return total;
}

/* Point the parts into memory that begins with them. */
static void point_into(struct stk_folder_tree *tree, const void *memory)
{
    tree->directories = memory;
    tree->classes = (const void *)(tree->directories + tree->directory_count);
    tree->files = (const void *)(tree->classes + tree->class_count);
    tree->names = (const void *)(tree->files + tree->file_count);
}

int stk_folder_tree_map(struct stk_folder_tree *tree)
{
    const uint64_t bytes = stk_folder_tree_bytes(tree);
    if (bytes == UINT64_MAX)
        return STOKER_ENOMEM;
    int rc = stk_region_map(&tree->memory, (size_t)bytes);
    if (rc == STOKER_OK)
        point_into(tree, tree->memory.base);
    return rc;
}

void stk_folder_tree_free(struct stk_folder_tree *tree)
{
    stk_region_unmap(&tree->memory);
    *tree = (struct stk_folder_tree){ 0 };
}
