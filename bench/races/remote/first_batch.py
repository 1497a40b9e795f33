#!/usr/bin/env python3
"""first_batch.py - seconds from opening many objects in S3 to the first batch of them.

usage: first_batch.py [--objects 10000] [--latency-ms 0,50] [--rounds 5]

A folder of digits of 28 x 28 as PNG files, and the same from rclone's S3 behind faults.py, which delays and counts the requests: the
list has a page per 1,000 objects. A process for each round; its imports do not count.

STOKER_BUILD is a build with the Python package (-DSTOKER_BUILD_PYTHON=ON; build/release). 77 = no server.
"""
import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "..", "tests", "support", "servers")]
import servers

BUILD = os.path.abspath(os.environ.get("STOKER_BUILD", "build/release"))
ROUND = """
import sys, time
import stoker
begin = time.perf_counter()
batch = next(iter(stoker.DataLoader(sys.argv[1], batch_size=64, shuffle=True, output="dlpack")))
print(time.perf_counter() - begin, len(batch.ids))
"""


def seconds(spec, environment=()):
    done = subprocess.run([sys.executable, "-c", ROUND, spec], env={**os.environ, "PYTHONPATH": os.path.join(BUILD, "python"), **dict(environment)},
                          stdout=subprocess.PIPE, text=True, check=True)
    spent, count = done.stdout.split()
    assert int(count) == 64
    return float(spent)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--objects", type=int, default=10000)
    parser.add_argument("--latency-ms", type=lambda text: [float(word) for word in text.split(",")], default=[0, 50])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        root = stack.enter_context(tempfile.TemporaryDirectory())
        bucket = os.path.join(root, "bucket")
        os.mkdir(bucket)
        subprocess.run([os.path.join(BUILD, "datasets/pack/stoker-pack"), "--quiet", f"synth:digits?count={options.objects}", f"folder:{bucket}/files"],
                       check=True, stdout=subprocess.DEVNULL)
        try:
            store = stack.enter_context(servers.Rclone(root))
        except servers.Missing as why:
            print(f"SKIPPED: {why}")
            return 77
        proxy = stack.enter_context(servers.Faults(store.url, store.environment))
        print(f"local files: {statistics.median(seconds(f'folder:{bucket}/files') for _ in range(options.rounds)):.3f} s")
        for latency in options.latency_ms:
            found = []
            for _ in range(options.rounds):
                proxy.plan(latency_ms=latency)
                found.append((seconds("folder:s3://bucket/files", proxy.environment), proxy.counts()["requests"]))
            spent, requests = map(statistics.median, zip(*found))
            print(f"S3, {latency:g} ms: {spent:.3f} s, {requests:.0f} requests")
    return 0


if __name__ == "__main__":
    sys.exit(main())
