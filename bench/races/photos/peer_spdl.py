#!/usr/bin/env python3
"""peer_spdl.py - SPDL: threads that decode through FFmpeg and crop, scale and flip in its filter graph, then one conversion a batch.

usage: peer_spdl.py MODE FOLDER
"""
import random

import turns


def main():
    arguments = turns.arguments_of(__doc__)
    _, io, pipeline, torch, pil = turns.need("spdl", "spdl.io", "spdl.pipeline", "torch", "PIL.Image")
    from importlib.metadata import version
    torch.set_num_threads(1)
    sizes = {}
    for path, _ in turns.files_of(arguments.folder):
        with pil.open(path) as image:
            sizes[path] = image.size
    mean, deviation = (torch.tensor(values).view(1, 3, 1, 1) for values in (turns.MEAN_255, turns.STD_255))

    def paths():
        names = list(sizes)
        while True:
            random.shuffle(names)
            yield from names

    def decode(path):
        left, top, w, h = turns.random_box(random, *sizes[path])
        filters = f"crop={w}:{h}:{left}:{top},scale={turns.SIDE}:{turns.SIDE}:flags=bilinear"
        filters += ",hflip" if random.random() < 0.5 else ""
        return io.decode_packets(io.demux_image(path), filter_desc=filters + ",format=pix_fmts=rgb24")

    try:
        decode(next(iter(sizes)))
    except RuntimeError as error:  # without FFmpeg's libraries it imports, and fails when used
        turns.missing(error)

    def convert(frames):
        images = io.to_torch(io.convert_frames(frames))
        return images.permute(0, 3, 1, 2).float().sub_(mean).div_(deviation).contiguous()

    threads = arguments.threads or 2
    made = (pipeline.PipelineBuilder().add_source(paths()).pipe(decode, concurrency=threads)
            .aggregate(arguments.batch_size, drop_last=True).pipe(convert).add_sink(2).build(num_threads=threads + 1))

    def batches():
        with made.auto_stop():
            yield from made.get_iterator(timeout=60)

    turns.serve(batches(), arguments.batch_size, f"spdl {version('spdl')}", 8)


if __name__ == "__main__":
    main()
