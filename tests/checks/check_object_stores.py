#!/usr/bin/env python3
"""check_object_stores.py - every format read over HTTP, HTTPS with HTTP/2 and S3 delivers the bytes of local files, whatever the servers do.

usage: check_object_stores.py FIELD_HASHES STOKER_PACK [WORD...]     with words, only lines of the report that have one of them

1. faults.py makes each of its faults, as a client without Stoker sees it.
2. The formats from local files, nginx, rclone's and moto's S3: the same hashes of all batches.
3. Faults in 1 and 10 % of the requests, a server that is killed and started again, and answers that are all wrong: the same hashes, or an
   error that names host and object, and in bounded time.

77 = no nginx, rclone, moto or openssl (`./run setup test` installs them), or libcurl is missing.
"""
import concurrent.futures
import contextlib
import http.client
import os
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(TESTS, "support", "servers")]
import servers

RUN_SECONDS = 120  # a run that takes longer hangs
READY_SECONDS = 60  # for an answer that comes
STALL_MS, REQUEST_MS = 1000, 3000

# ---- the data set in every format -------------------------------------------------------------------------------

# {} is the place of the bucket. A folder needs a list of its files, which plain HTTP does not have.
FORMATS = {
    "mnist": "mnist:{}/mnist",
    "tar": "tar:{}/tar/{{0..2}}.tar",
    "shards": "shards:{}/shards",
    "tokens": "tokens:{}/tokens.bin?length=64",
    "npy": "npy:{}/x.npy,{}/y.npy",
    "npz": "npz:{}/set.npz",
    "csv": "csv:{}/table.csv?label=label",
    "folder": "folder:{}/folder",
    "packed": "packed:128:(documents:{}/tokens.bin?eos=7)?long=split",
}
LISTED = ("folder",)
ON_MOTO = ("npy", "shards", "folder")  # it is slow


def npy(descr, shape, elements):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(10 + len(text) + 1) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + elements


def make_sets(pack, bucket):
    def write(name, *pieces):
        path = os.path.join(bucket, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"".join(pieces))

    def packed(target, count, seed, *how):
        source = f"synth:digits?count={count}&seed={seed}&size=48"
        os.makedirs(os.path.dirname(os.path.join(bucket, target.partition(":")[2])), exist_ok=True)
        subprocess.run([pack, "--quiet", *how, source, target.replace(":", f":{bucket}/", 1)], check=True, stdout=subprocess.DEVNULL)

    for n in range(3):
        packed(f"tar:tar/{n}.tar", 50, n)
    packed("shards:shards", 200, 5, "--shard-samples", "80")
    packed("folder:folder", 60, 6)
    numbers = [n * 2654435761 % 65536 for n in range(120000)]
    values = struct.pack("<120000H", *numbers)
    write("tokens.bin", struct.pack("<256i", 20240520, 1, 20000, *([0] * 253)), struct.pack("<20000H", *(n % 50 for n in numbers[:20000])))
    write("x.npy", npy("<u2", "(2000, 6, 10)", values))
    write("y.npy", npy("<i4", "(2000,)", struct.pack("<2000i", *(n % 7 for n in range(2000)))))
    with zipfile.ZipFile(os.path.join(bucket, "set.npz"), "w") as archive:
        archive.writestr("x.npy", npy("<u2", "(2000, 6, 10)", values))
        archive.writestr("y.npy", npy("<i4", "(2000,)", struct.pack("<2000i", *range(2000))))
    rows = (f"{n % 100},{number / 7:.3f},{n % 3}\n" for n, number in enumerate(numbers[:1000]))
    write("table.csv", "a,b,label\n".encode(), "".join(rows).encode())
    for part, count in (("train", 1000), ("t10k", 100)):
        write(f"mnist/{part}-images-idx3-ubyte", struct.pack(">IIII", 0x803, count, 10, 12), values[:120 * count])
        write(f"mnist/{part}-labels-idx1-ubyte", struct.pack(">II", 0x801, count), bytes(n % 10 for n in range(count)))


# ---- the check --------------------------------------------------------------------------------------------------


class Check:
    def __init__(self, words):
        self.words, self.failures, self.passed, self.begin = words, 0, 0, time.monotonic()

    def wanted(self, *name):
        return not self.words or any(word in name for word in self.words)

    def that(self, name, right, why=""):
        if right:
            self.passed += 1
        else:
            self.failures += 1
            print(f"check_object_stores: {name}: {why}", file=sys.stderr, flush=True)
        print(f"{time.monotonic() - self.begin:6.1f} s {name}", flush=True)


class Reader:
    """field_hashes, over a place where the bucket lies."""

    def __init__(self, program):
        self.program, self.due = program, {}

    def start(self, format, place, environment=(), retries=8):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith("AWS_") and not name.lower().endswith("_proxy")}
        limits = [str(number) for number in (retries, STALL_MS, REQUEST_MS, 0)] if "://" in place else []
        spec = FORMATS[format].replace("{}", place).replace("{{", "{").replace("}}", "}")
        return subprocess.Popen([self.program, spec, "packed", "2", "cpu", *limits], env={**clean, **dict(environment)},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self, process):
        """The hashes, and the message if there is one."""
        try:
            hashes, message = process.communicate(timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return "", "it hangs"
        return (hashes, "") if process.returncode == 0 else ("", message.strip()[-700:] or f"status {process.returncode}")

    def run(self, *where, **how):
        return self.end(self.start(*where, **how))


# What a client of the proxy sees that asks for bytes 5 to 99 of an object of 1000: status, fields, how the body ends.
SEEN = {
    "": "206, right",
    "503": "503, other bytes",
    "503-later": "503 Retry-After, other bytes",
    "429": "429 Retry-After, other bytes",
    "500": "500, other bytes",
    "expired": "403, other bytes",
    "reset": "ConnectionResetError",
    "mute": "TimeoutError",
    "loop": "302 Location, no bytes",
    "not-http": "BadStatusLine",
    "etag": "206 other ETag, right",
    "reset-body": "206, ConnectionResetError",
    "stall": "206, TimeoutError",
    "truncate": "206, IncompleteRead",
    "short": "206, 47 bytes",
    "long": "206, 195 bytes",
    "endless": "206, endless",
    "drip": "206, TimeoutError",
    "flip": "206, other bytes",
    "bomb": "206 Content-Encoding, other bytes",
    "whole": "200, 1000 bytes",
    "shifted": "206 bytes 6-100/1001, right",
}


def seen(port, due, etag, patience_seconds):
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=patience_seconds)
    text = ""
    try:
        client.request("GET", "/bucket/thousand", headers={"Range": "bytes=5-99"})
        answer = client.getresponse()
        text = str(answer.status)
        text += "".join(f" {name}" for name in ("Retry-After", "Location", "Content-Encoding") if answer.headers[name])
        if answer.status < 300 and answer.headers["ETag"] != etag:
            text += " other ETag"
        if answer.headers["Content-Range"] not in (None, "bytes 5-99/1000"):
            text += " " + answer.headers["Content-Range"]
        begin, body = time.monotonic(), b""
        while time.monotonic() < begin + patience_seconds and len(body) < 1 << 22:
            piece = answer.read1()
            if not piece:
                if answer.length:
                    raise http.client.IncompleteRead(body)
                break
            body += piece
        else:
            raise TimeoutError if len(body) < 1 << 20 else OverflowError
        end = "right" if body == due else "no bytes" if not body else f"{len(body)} bytes" if len(body) in (47, 195, 1000) else "other bytes"
    except (OSError, http.client.HTTPException, OverflowError) as error:
        end = {"timeout": "TimeoutError", "OverflowError": "endless"}.get(type(error).__name__, type(error).__name__)
    finally:
        client.close()
    return f"{text}, {end}" if text else end


def check_faults(check, web, bucket):
    due = bytes(n % 251 for n in range(1000))
    with open(os.path.join(bucket, "thousand"), "wb") as file:
        file.write(due)
    with servers.Faults(web.url) as proxy:
        client = http.client.HTTPConnection("127.0.0.1", proxy.ports[0])
        client.request("HEAD", "/bucket/thousand")
        etag = client.getresponse().headers["ETag"]
        client.close()
        for fault, text in SEEN.items():
            proxy.plan(faults={fault: 1} if fault else {})
            found = seen(proxy.ports[0], due[5:100], etag, 0.3 if fault == "mute" else 1 if "TimeoutError" in text else READY_SECONDS)
            check.that(f"faults.py {fault}", found == text, f"seen {found}, not {text}")
            counts = proxy.counts()
            check.that(f"faults.py {fault}", counts["requests"] == 1 and counts["faults"] == ({fault: 1} if fault else {}), counts)
        proxy.plan(latency_ms=100)
        begin = time.monotonic()
        seen(proxy.ports[0], due[5:100], etag, READY_SECONDS)
        check.that("faults.py latency", time.monotonic() - begin >= 0.1, "an answer within 100 ms")


def check_places(check, reader, places):
    for format in FORMATS:
        for name, (place, environment) in places.items():
            unlisted = format in LISTED and place.startswith("http")
            if unlisted or (name == "moto" and format not in ON_MOTO) or not check.wanted(format, name, "places"):
                continue
            hashes, message = reader.run(format, place, environment)
            check.that(f"{format} from {name}", hashes == reader.due[format] != "", message or "other bytes")


# Faults that pass if they are tried again, and answers that must not be believed. Shares of all requests.
PASSING = ("503", "503-later", "429", "500", "reset", "reset-body", "mute", "stall", "truncate")
HOSTILE = ("loop", "not-http", "short", "long", "endless", "drip", "bomb", "whole", "shifted", "expired", "etag")


class Run:
    """An epoch behind faults.py. A run with passing faults must succeed; any other may end with an error that names host and object."""

    def __init__(self, format, place, share, *faults):
        self.format, self.place, self.share, self.faults = format, place, share, faults
        self.name = f"{format} from {place}, {100 * share:g} % {faults[0] if len(faults) == 1 else 'passing faults'}"

    def end(self, check, reader, server, place):
        with servers.Faults(server.url, server.environment) as proxy:
            proxy.plan(seed=len(self.name), path="/bucket", faults={fault: self.share / len(self.faults) for fault in self.faults})
            place = place.replace(server.url, proxy.url)
            passing = self.faults == PASSING
            hashes, message = reader.run(self.format, place, proxy.environment, retries=8 if passing else 1)
            met = sum(proxy.counts()["faults"].values())
            if passing or hashes:
                right, why = hashes == reader.due[self.format], message or "WRONG BYTES"
            else:
                # A wrong byte is found by the checksum of a record, which names the file alone.
                named = [".stk"] if self.faults == ("flip",) else [".npy", proxy.url.rpartition("/")[2]]
                right, why = all(each in message for each in named), f"the message does not name {named}: {message}"
            check.that(self.name, right and (met > 0 or self.share < 0.1), why if met else "no fault was met")
            check.that(self.name + ", secret", servers.SECRET not in message, "a secret in the message")


RUNS = [Run(format, place, share, *PASSING) for share in (0.01, 0.1)
        for format, place in (("tar", "nginx"), ("npy", "nginx"), ("shards", "nginx"), ("shards", "rclone"), ("folder", "rclone"))]
RUNS += [Run("npy", "nginx", share, fault) for fault in HOSTILE for share in (0.1, 1)]
RUNS += [Run("npy", "rclone", 1, fault) for fault in ("loop", "mute", "whole", "expired")]
RUNS += [Run("shards", "rclone", 0.1, "flip")]


def check_restart(check, name, reader, server, place):
    """The server dies in the middle of an epoch, and comes back."""
    with servers.Faults(server.url, server.environment) as proxy:
        proxy.plan(latency_ms=20)
        process = reader.start("tar", place.replace(server.url, proxy.url), proxy.environment)
        while process.poll() is None and proxy.counts()["requests"] < 30:
            time.sleep(0.005)
        running = process.poll() is None
        proxy.kill()
        proxy.start()
        hashes, message = reader.end(process)
        check.that(f"tar from {name}, killed and started again", running and hashes == reader.due["tar"], message or "other bytes, or too fast")


def main():
    program, pack = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    check, reader = Check(sys.argv[3:]), Reader(program)
    with contextlib.ExitStack() as stack:
        root = stack.enter_context(tempfile.TemporaryDirectory())
        bucket = os.path.join(root, "bucket")
        make_sets(pack, bucket)
        try:
            web, store = stack.enter_context(servers.Nginx(root)), stack.enter_context(servers.Rclone(root))
            moto = stack.enter_context(servers.Moto(root))
        except servers.Missing as why:
            print(f"SKIPPED: {why}")
            return 77
        for format in FORMATS:
            reader.due[format], message = reader.run(format, bucket)
            check.that(f"{format} from local files", reader.due[format], message)
        check_faults(check, web, bucket)
        message = reader.run("npy", web.url + "/bucket", web.environment)[1]
        if "libcurl" in message:
            print(f"SKIPPED: {message}")
            return 77
        check_places(check, reader, {"nginx": (web.url + "/bucket", web.environment), "nginx with TLS": (web.https + "/bucket", web.environment),
                                     "rclone": ("s3://bucket", store.environment), "moto": ("s3://bucket", moto.environment)})
        if check.wanted("places"):
            check.that("HTTP/2", any(line.startswith("HTTP/2") for line in web.requests()), "no request of HTTP/2")
        # Most of the time they wait.
        at = {"nginx": (web, web.url + "/bucket"), "rclone": (store, "s3://bucket")}
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            jobs = [pool.submit(run.end, check, reader, *at[run.place]) for run in RUNS if check.wanted(run.format, run.place, "faults", *run.faults)]
            jobs += [pool.submit(check_restart, check, name, reader, *at[name]) for name in at if check.wanted("restart", name)]
            for job in jobs:
                job.result()
    print(f"{check.passed} passed, {check.failures} failed")
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
