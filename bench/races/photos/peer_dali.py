#!/usr/bin/env python3
"""peer_dali.py - NVIDIA DALI's CPU pipeline: image_random_crop (a region decoder), resize, flip and normalize in one.

usage: peer_dali.py plain|antialias|png FOLDER   plain: no antialiasing, which is faster; png: digits, decoded and
normalized only; FOLDER of files or of tars
"""
import glob
import os

import turns


def main():
    arguments = turns.arguments_of(__doc__)
    dali, fn, types, plain = turns.need("nvidia.dali", "nvidia.dali.fn", "nvidia.dali.types",
                                        "nvidia.dali.plugin.base_iterator")
    del plain
    tars = sorted(glob.glob(os.path.join(arguments.folder, "*.tar")))

    @dali.pipeline_def(batch_size=arguments.batch_size, num_threads=arguments.threads or 2, device_id=None,
                       prefetch_queue_depth=2)
    def pipeline():
        if tars:
            data, label = fn.readers.webdataset(paths=tars, ext=["jpg", "cls"], random_shuffle=True,
                                                initial_fill=1000, missing_component_behavior="error")
        else:
            data, label = fn.readers.file(file_root=arguments.folder, random_shuffle=True, initial_fill=1000)
        if arguments.mode == "png":
            images = fn.decoders.image(data, device="cpu", output_type=types.GRAY)
            return fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW",
                                            mean=[255 * turns.DIGIT_MEAN], std=[255 * turns.DIGIT_STD]), label
        images = fn.decoders.image_random_crop(data, device="cpu", random_area=list(turns.AREA),
                                               random_aspect_ratio=list(turns.RATIO), num_attempts=10)
        images = fn.resize(images, size=[turns.SIDE, turns.SIDE], antialias=arguments.mode == "antialias",
                           interp_type=types.INTERP_LINEAR)
        images = fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", mean=list(turns.MEAN_255),
                                          std=list(turns.STD_255), mirror=fn.random.coin_flip())
        return images, label

    made = pipeline()
    made.build()

    def batches():
        while True:
            yield made.run()[0].as_array()  # a view, as the images lie in one block

    turns.serve(batches(), arguments.batch_size, f"DALI {dali.__version__}", 3)


if __name__ == "__main__":
    main()
