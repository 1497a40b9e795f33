/* init.c - the exported initializers of structs with defaults: see stoker/export.h. */
#include <stoker/stoker.h>

#include "loader/base/struct_size.h"

STK_DEFINE_INIT_SIZED(stoker_array, STOKER_ARRAY_INIT, class_names)
STK_DEFINE_INIT_SIZED(stoker_arrays_options, STOKER_ARRAYS_OPTIONS_INIT, fingerprint)
STK_DEFINE_INIT_SIZED(stoker_batch, STOKER_BATCH_INIT, turn)
STK_DEFINE_INIT_SIZED(stoker_dataset_options, STOKER_DATASET_OPTIONS_INIT, cache_dir_bytes)
STK_DEFINE_INIT_SIZED(stoker_field_options, STOKER_FIELD_OPTIONS_INIT, fill_value)
STK_DEFINE_INIT_SIZED(stoker_files, STOKER_FILES_INIT, channels)
STK_DEFINE_INIT_SIZED(stoker_loader_options, STOKER_LOADER_OPTIONS_INIT, row_hook)
STK_DEFINE_INIT_SIZED(stoker_mix, STOKER_MIX_INIT, change_count)
STK_DEFINE_INIT_SIZED(stoker_order, STOKER_ORDER_INIT, fingerprint)
STK_DEFINE_INIT_SIZED(stoker_packing, STOKER_PACKING_INIT, field)
STK_DEFINE_INIT_SIZED(stoker_ranks, STOKER_RANKS_INIT, launcher)
STK_DEFINE_INIT_SIZED(stoker_split, STOKER_SPLIT_INIT, stratified)
STK_DEFINE_INIT_SIZED(stoker_stats, STOKER_STATS_INIT, share_reason)
STK_DEFINE_INIT_SIZED(stoker_trace, STOKER_TRACE_INIT, dropped)
