/* epochs.cpp - the loop of epochs.c in C++20.
 *
 * usage: epochs_cpp [SPEC]     e.g. epochs_cpp mnist:data/mnist
 */
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <stoker/stoker.hpp>
#include <string>
#include <vector>

int main(int argc, char **argv)
try {
    constexpr int epochs = 3;
    const stoker::dataset digits(argc > 1 ? argv[1] : "synth:digits?count=1000");
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    options.shuffle = true;
    options.on_lent = STOKER_ON_LENT_GROW; /* batches may be kept */
    stoker::loader loader(digits, options);

    std::vector<stoker::batch> kept; /* objects move, and are released wherever they end */
    for (int epoch = 0; epoch < epochs; epoch++) {
        std::int64_t labels = 0;
        for (stoker::batch &batch : loader.epoch()) {
            const auto classes = batch.values<std::int64_t>("label"); /* std::span, not a copy */
            labels = std::accumulate(classes.begin(), classes.end(), labels);
            if (batch->index == 0)
                kept.push_back(std::move(batch));
        }
        std::cout << "epoch " << epoch << ": labels " << labels << '\n';
    }
    for (const stoker::batch &batch : kept)
        std::cout << "kept: " << batch->count << " of epoch " << batch->epoch << '\n';
    return EXIT_SUCCESS;
} catch (const stoker::error &error) {
    std::cerr << stoker_error_name(error.cause.code) << ": " << error.what() << '\n';
    return EXIT_FAILURE;
}
