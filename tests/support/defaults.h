/* defaults.h - structs with their defaults, but for the fields given: stk_split_of(.test = 0.4).
 *
 * C17 lets a later initializer of a field take the place of an earlier one.
 */
#ifndef STK_TEST_DEFAULTS_H
#define STK_TEST_DEFAULTS_H

#pragma GCC diagnostic ignored "-Woverride-init"

#define stk_default_options(...)                                                                   \
    ((stoker_loader_options){ STOKER_LOADER_OPTIONS_DEFAULTS __VA_ARGS__ })
#define stk_trainer_options(...)                                                                   \
    ((stoker_trainer_options){ STOKER_TRAINER_OPTIONS_DEFAULTS __VA_ARGS__ })
#define stk_order_of(...) ((stoker_order){ STOKER_ORDER_DEFAULTS __VA_ARGS__ })
#define stk_split_of(...) ((stoker_split){ STOKER_SPLIT_DEFAULTS __VA_ARGS__ })

/* What most tests begin with: two shuffled epochs of small batches, all on the CPU. */
#define stk_small_options(...)                                                                     \
    stk_default_options(.seed = 2024, .batch_size = 16, .epochs = 2, .shuffle = true,              \
                        .device = STOKER_DEVICE_CPU, .cache = STOKER_CACHE_NONE, __VA_ARGS__)

#endif
