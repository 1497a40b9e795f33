#!/usr/bin/env python3
"""race.py - bytes per second from an object store on loopback: Stoker beside curl and other loaders, in turn.

usage: race.py FOLDER [--objects 64] [--object-bytes 8388608] [--connections 16] [--workers 2,4,8] [--latency-ms 0] [--rounds 5]
               [--sides curl,stoker,...] [--output FILE]

FOLDER gets tar files of samples of 128 KiB, and the same samples in the formats of MosaicML Streaming and LitData; at the first run. nginx
serves them all: over HTTP, and to clients of S3, whose signatures it ignores. With --latency-ms each request goes through faults.py,
which delays it.

A turn is a process that reads every sample once; nothing is cached. First each side is tried with each number of workers, and its samples are
compared by the sum of their CRC-32; then the best of each take turns, --rounds times, in another order each time. A rate is the median of the
turns; CPU seconds per GB are the client's, with its children. curl --parallel reads whole objects to /dev/null: what the connections
can do.

STOKER_BUILD is a build with the Python package (-DSTOKER_BUILD_PYTHON=ON; build/release), STOKER_PEERS the environments of
bench/races/peers/environments.sh (build/peers).
Exit status: 0 measured, 1 one of ours failed, 77 no server.
"""
import argparse
import contextlib
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tarfile
import time
import zlib
from io import BytesIO

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "..", "tests", "support", "servers")]
import servers

BUILD = os.path.abspath(os.environ.get("STOKER_BUILD", "build/release"))
PEERS = os.path.abspath(os.environ.get("STOKER_PEERS", "build/peers"))
SAMPLE_BYTES = 1 << 17
TURN_SECONDS = 600
SIDES = {"curl": "curl --parallel", "stoker": "Stoker, tar, shuffled", "stoker_order": "Stoker, tar, in order",
         "stoker_s3": "Stoker, tar, shuffled, s3", "webdataset": "WebDataset, pipe:curl", "s3torchconnector": "s3torchconnector, tar", "obstore": "obstore, tar", "mosaic": "MosaicML Streaming, its own files",
         "litdata": "LitData, its own files"}


def prepare(options):
    """Returns the sum of the CRC-32 of all samples, and their bytes."""
    at, known = os.path.join(options.folder, "bucket", "tar"), os.path.join(options.folder, "known.json")
    each = options.object_bytes // (SAMPLE_BYTES + 512)
    if not os.path.exists(known):
        os.makedirs(at, exist_ok=True)
        draw, total = random.Random(1), 0
        for number in range(options.objects):
            with tarfile.open(os.path.join(at, f"{number:03}.tar"), "w") as tar:
                for sample in range(each):
                    data = draw.randbytes(SAMPLE_BYTES)
                    total += zlib.crc32(data)
                    member = tarfile.TarInfo(f"{number:03}{sample:06}.bin")
                    member.size = len(data)
                    tar.addfile(member, BytesIO(data))
        done = subprocess.run([python(), os.path.join(HERE, "peer.py"), "prepare", options.folder], stdout=subprocess.DEVNULL)
        if done.returncode != 0:
            print("the formats of MosaicML Streaming and LitData were not written", file=sys.stderr)
        with open(known, "w", encoding="ascii") as file:
            json.dump({"sum": total, "bytes": options.objects * each * SAMPLE_BYTES}, file)
    with open(known, encoding="ascii") as file:
        return json.load(file)


def python():
    found = os.path.join(PEERS, "tokens", "bin", "python")
    return found if os.path.exists(found) else sys.executable


def turn(side, options, url, environment, workers, mode="run"):
    """What a process of the side reports, or its reason for failing."""
    if side == "curl":
        words = ["curl", "--parallel", "--parallel-immediate", "--parallel-max", str(options.connections), "--silent", "--show-error", "--fail",
                 "--config", os.path.join(options.folder, "curl.conf")]
        with open(words[-1], "w", encoding="utf-8") as file:
            for name in sorted(os.listdir(os.path.join(options.folder, "bucket", "tar"))):
                file.write(f'url = "{url}/tar/{name}"\noutput = /dev/null\n')
    else:
        words = [python(), os.path.join(HERE, "peer.py"), side, options.folder, url, str(options.connections), str(workers), mode]
    environment = {**os.environ, **environment, "PYTHONPATH": os.path.join(BUILD, "python"), "AWS_ACCESS_KEY_ID": "id",
                   "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1",
                   "AWS_ENDPOINT_URL": url.rpartition("/")[0], "AWS_EC2_METADATA_DISABLED": "true"}
    begin = time.perf_counter()
    with open(os.path.join(options.folder, side + ".log"), "w", encoding="utf-8") as log:
        process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
                                   start_new_session=True)
        line = process.stdout.readline()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    cpu_seconds = used.ru_utime + used.ru_stime
    if side == "curl" and process.returncode == 0:
        return {"bytes": options.known["bytes"], "seconds": time.perf_counter() - begin, "cpu_seconds": cpu_seconds, "version": ""}
    if process.returncode != 0 or not line:
        with open(os.path.join(options.folder, side + ".log"), encoding="utf-8", errors="replace") as log:
            lines = log.read().strip().splitlines() or [f"status {process.returncode}"]
        return {"why": lines[-1][:160]}
    found = json.loads(line)
    return {**found, "cpu_seconds": cpu_seconds - found["cpu_before"]}


def tried(side, options, url, environment):
    """The best number of workers, or why there is none."""
    best, why = None, ""
    for workers in options.workers if side not in ("curl", "obstore") else [0]:
        found = turn(side, options, url, environment, workers, "check")
        wrong = found.get("bytes") != options.known["bytes"] or found.get("sum", options.known["sum"]) != options.known["sum"]
        if "why" in found or wrong:
            why = found.get("why") or f"other samples: {found['bytes']} bytes"
        elif best is None or found["seconds"] < best[1]:
            best = (workers, found["seconds"])
    return (best[0], "") if best else (None, why)


def race(options, url, environment):
    chosen = {side: tried(side, options, url, environment) for side in options.sides}
    running = [side for side, (workers, _) in chosen.items() if workers is not None]
    turns = {side: [] for side in running}
    for number in range(options.rounds):
        for side in running[number % len(running):] + running[:number % len(running)]:
            found = turn(side, options, url, environment, chosen[side][0])
            if "why" in found:
                chosen[side] = (None, found["why"])
            else:
                turns[side].append(found)
    return chosen, turns


def report(options, chosen, turns):
    rows, rate = [], lambda found: found["bytes"] / found["seconds"]
    print(f"{'side':35} {'workers':>7} {'MB/s':>8} {'CPU s/GB':>9} {'of curl':>8}")
    for side, (workers, why) in chosen.items():
        row = {"kind": "race", "job": "remote", "name": SIDES[side], "latency_ms": options.latency_ms, "connections": options.connections,
               "threads": workers, "rates": [], "cpu_s_per_gb": [], "why": why}
        rows.append(row)
        if why:
            print(f"{SIDES[side]:35} {why}")
            continue
        found = turns[side]
        row.update(version=found[0]["version"], rates=[rate(one) for one in found], cpu_s_per_gb=[one["cpu_seconds"] / one["bytes"] * 1e9 for one in found])
        share = statistics.median([rate(one) / rate(curl) for one, curl in zip(found, turns.get("curl", []))] or [0])
        row["share"] = share
        print(f"{SIDES[side]:35} {workers:7} {statistics.median(row['rates']) / 1e6:8.1f} {statistics.median(row['cpu_s_per_gb']):9.2f} {share:8.3f}")
    return rows


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder", type=os.path.abspath)
    parser.add_argument("--objects", type=int, default=64)
    parser.add_argument("--object-bytes", type=int, default=8 << 20)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--workers", type=lambda text: [int(word) for word in text.split(",")], default=[2, 4, 8])
    parser.add_argument("--latency-ms", type=float, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sides", type=lambda text: text.split(","), default=list(SIDES))
    parser.add_argument("--output")
    options = parser.parse_args()
    options.known = prepare(options)
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(servers.Nginx(options.folder, log_requests=False))
        except servers.Missing as why:
            print(f"SKIPPED: {why}")
            return 77
        if options.latency_ms:
            server = stack.enter_context(servers.Faults(server.url))
            server.plan(latency_ms=options.latency_ms)
        chosen, turns = race(options, server.url + "/bucket", servers.DIRECT)
    print(f"# {platform.node()}, {os.cpu_count()} CPUs, {options.rounds} rounds, {options.connections} connections, "
          f"{options.known['bytes'] / 1e6:.0f} MB in {options.objects} objects, latency {options.latency_ms:g} ms")
    rows = report(options, chosen, turns)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(row) + "\n")
    return 1 if any(row["why"] for row in rows if row["name"].startswith("Stoker")) else 0


if __name__ == "__main__":
    sys.exit(main())
