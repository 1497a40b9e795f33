#!/usr/bin/env python3
"""peer_tf.py - tf.data: read, decode_and_crop_jpeg, resize (bilinear, no antialiasing, as usual there), flip, normalize.

Batches stay in its own layout (NHWC): a transposition would only cost it time. usage: peer_tf.py jpeg|png FOLDER
"""
import os

import turns

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""


def main():
    arguments = turns.arguments_of(__doc__)
    (tf,) = turns.need("tensorflow")
    auto = tf.data.AUTOTUNE
    threads = arguments.threads or auto
    files = turns.files_of(arguments.folder)
    whole = tf.constant([0.0, 0.0, 1.0, 1.0], shape=[1, 1, 4])
    mean, deviation = tf.constant(turns.MEAN_255), tf.constant(turns.STD_255)

    def load(path, label):
        data = tf.io.read_file(path)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.image.extract_jpeg_shape(data), bounding_boxes=whole, area_range=turns.AREA,
            aspect_ratio_range=turns.RATIO, max_attempts=10, use_image_if_no_bounding_boxes=True)
        window = tf.stack([begin[0], begin[1], size[0], size[1]])
        image = tf.io.decode_and_crop_jpeg(data, window, channels=3)
        image = tf.image.resize(image, (turns.SIDE, turns.SIDE), antialias=False)
        image = tf.image.random_flip_left_right(image)
        return (image - mean) / deviation, label

    def load_digit(path, label):
        image = tf.io.decode_png(tf.io.read_file(path), channels=1)
        return (tf.cast(image, tf.float32) - 255 * turns.DIGIT_MEAN) / (255 * turns.DIGIT_STD), label

    if arguments.mode == "png":
        load = load_digit
    data = tf.data.Dataset.from_tensor_slices(([path for path, _ in files], [label for _, label in files]))
    data = data.shuffle(len(files)).repeat().map(load, num_parallel_calls=threads)
    data = data.batch(arguments.batch_size, drop_remainder=True).prefetch(2)
    options = tf.data.Options()
    options.deterministic = False
    options.experimental_optimization.apply_default_optimizations = True
    if arguments.threads:
        options.threading.private_threadpool_size = arguments.threads
    batches = (images.numpy() for images, _ in data.with_options(options))
    turns.serve(batches, arguments.batch_size, f"tensorflow {tf.__version__}", 4)


if __name__ == "__main__":
    main()
