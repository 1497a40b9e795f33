"""Images from tar files in S3, or in a store that speaks it: an epoch in three lines.

    AWS_PROFILE=mine python object_storage.py 'tar:s3://bucket/{000..099}.tar'
    AWS_ENDPOINT_URL=https://minio.example:9000 python object_storage.py 'tar:s3://bucket/train/*.tar'
    python object_storage.py 'tar:https://example.org/{000..099}.tar'

Credentials are found as AWS's own tools find them: in the environment, then in the profile.
"""
import argparse

import stoker


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    options = parser.parse_args(arguments)
    seen, brightness = {}, 0.0

    loader = stoker.DataLoader(options.data, batch_size=32, shuffle=True, output="numpy")
    for images, labels in loader:
        brightness += float(images.sum(dtype="float64")) / images[0].size
        for label in labels.tolist():
            seen[label] = seen.get(label, 0) + 1

    samples = sum(seen.values())
    print(f"{samples} images of {len(seen)} classes, mean {brightness / samples:.2f}")
    return seen, brightness / samples


if __name__ == "__main__":
    main()
