#!/usr/bin/env python3
"""check_remote.py - data sets from web servers on loopback: the right bytes, or a clear error, within a bounded time.

usage: check_remote.py FIELD_HASHES

Behind nginx, behind a proxy that answers some requests wrongly, and behind a server that answers as the tables here say.
Skips (77) without nginx or libcurl.
"""
import hashlib
import http.server
import os
import random
import re
import socketserver
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support", "servers"))
try:
    import faults
    import servers
except ImportError:
    print("tests/support/servers is not there")
    sys.exit(77)

ROWS, ROW_BYTES, LONGEST_SECONDS = 2000, 1024, 90
SHORT = ("4", "1000", "2500", "0")  # retries, stall, request, pause
failures = 0


def write_npy(path, seed):
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (%d, 8, %d), }" % (ROWS, ROW_BYTES // 8)
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.ljust(117) + b"\n" + random.Random(seed).randbytes(ROWS * ROW_BYTES))


def epoch(spec, *how, workers=2, environment=()):
    """A hash of what field_hashes prints of two epochs, or its error; it must end in time."""
    words = [sys.argv[1], spec, "packed", str(workers), "cpu", *how]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=LONGEST_SECONDS,
                              env={**os.environ, **servers.DIRECT, **dict(environment)})
    except subprocess.TimeoutExpired:
        return "HANGS"
    if done.returncode == 1:
        return done.stderr.strip().removeprefix("field_hashes: ")
    if done.returncode != 0:
        return f"ended with {done.returncode}: {done.stderr[-500:]}"
    return f"{done.stdout.count(chr(10))} batches, {hashlib.sha256(done.stdout.encode()).hexdigest()}"


def expect(name, shown, pattern):
    global failures
    good = re.fullmatch(pattern, shown) is not None
    failures += not good
    print(f"{'ok  ' if good else 'BAD '} {name}: {shown[:400]}" + ("" if good else f"\n     expected {pattern}"), flush=True)


def check_nginx(web, good):
    """Plain and TLS, specs of every form."""
    url, ca = web.url + "/b/x.npy", web.environment
    expect("plain", epoch("npy:" + url), good)
    expect("recognized", epoch(url), good)
    expect("no workers", epoch("npy:" + url, workers=0), good)
    expect("views", epoch(f"concat:(npy:{url}?test=0.5&split=train)+(npy:{url}?test=0.5&split=test)"), r"126 batches.*")
    expect("mix", epoch(f"mix:0.5*(npy:{url})+0.5*(npy:{url})?epoch_samples=2000"), r"126 batches.*")
    expect("escaped", epoch("npy:" + web.url + "/b/%78.npy"), good)
    expect("space", epoch("npy:" + web.url + "/b/a b.npy"), good)
    expect("query", epoch("npy:" + url + "%3Ftoken=SECRETWORD&part=1"), good)
    expect("braces", epoch("tar:" + web.url + "/b/{0..3}.tar"), r"STOKER_ENOENT: http://127.*/b/[0-3].tar: storage remote: look\(\): 404 Not Found")
    expect("absent", epoch("npy:" + web.url + "/b/no.npy"), r"STOKER_ENOENT: http.*/b/no.npy: storage remote: look\(\): 404 Not Found")
    expect("absent, plain", epoch(web.url + "/b/no.npy"), r"STOKER_ENOENT: http.*/b/no.npy: storage remote: look\(\): 404 Not Found")
    expect("list", epoch("folder:" + web.url + "/b"), r"STOKER_ENOTSUP: .*web servers list no folders.*")
    expect("no libcurl", epoch("npy:" + url, environment={"STOKER_CURL": "/none"}), r"STOKER_ENOTSUP: http.*remote names need libcurl.*/none.*")
    expect("no CA", epoch("npy:" + web.https + "/b/x.npy"), r"STOKER_EIO: https.*[Cc]ertificate.*")
    expect("TLS", epoch("npy:" + web.https + "/b/x.npy", environment=ca), good)
    expect("secrets", epoch("npy:http://me:SECRETWORD@127.0.0.1:1/x.npy%3FX-Amz-Signature=SECRETWORD&sas_token=SECRETWORD", *SHORT),
           r"(?!.*SECRETWORD)STOKER_EIO: http://\*\*\*@127.0.0.1:1/x.npy%3FX-Amz-Signature=\*\*\*&sas_token=\*\*\*: storage remote: .*, after 5 attempts in .*")
    expect("no host", epoch("npy:http://no-such-host.invalid/x.npy", *SHORT), r"STOKER_EIO: .*resolve.*after 5 attempts.*")
    expect("h2", " ".join(sorted({line.split()[0] for line in web.requests()})), r"HTTP/1.1 HTTP/2.0")


ERRORS = {"etag": r"STOKER_ECHANGED: .*another version.*", "expired": r"STOKER_EACCES: .*403 Forbidden.*",
          "loop": r"STOKER_EIO: .*more than 5 redirects.*", "endless": r"STOKER_EIO: .*longer than was asked for.*",
          "bomb": r"STOKER_EIO: .*Content-Encoding.*", "shifted": r"STOKER_ECHANGED: .*size.*", "not-http": r"STOKER_EIO: .*HTTP/0.9.*"}


def check_faults(web, good):
    with servers.Faults(web.url) as proxy:
        url = "npy:" + proxy.url + "/b/x.npy"
        for fault in faults.FAULTS:
            if fault == "flip":  # nothing shows a wrong byte
                continue
            proxy.plan(seed=3, faults={fault: 0.02})
            pattern = ERRORS.get(fault)
            expect(f"2 % {fault}", epoch(url, *SHORT), good if pattern is None else f"{pattern}|{good}")
            if fault in ("503", "reset", "stall", "truncate"):
                proxy.plan(seed=4, faults={fault: 0.1})
                expect(f"10 % {fault}", epoch(url, "9", *SHORT[1:]), good)
        proxy.plan(seed=3, faults={"503": 1})
        expect("all 503", epoch(url, *SHORT), r"STOKER_EIO: http.*: 503 Service Unavailable, after 5 attempts in [0-9.]+ s")
        proxy.plan(seed=3, faults={"drip": 1})
        expect("all drip", epoch(url, *SHORT), r"STOKER_EIO: .*after 5 attempts.*")


def check_interrupted(web, good):
    """The server is killed and restarted; the worker pauses longer than a server would wait."""
    url = "npy:" + web.url + "/b/x.npy"
    shown = []
    reader = threading.Thread(target=lambda: shown.append(epoch(url, "9", "1000", "2500", "1500")))
    reader.start()
    time.sleep(0.6)
    web.kill()
    time.sleep(1.5)
    web.start()  # in this thread: it ends with the one that starts it
    reader.join()
    expect("killed and restarted", shown[0], good)
    expect("long pause", epoch(url, "0", "1000", "1500", "4000"), good)


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers by the first folder of the path."""

    protocol_version = "HTTP/1.1"
    other, content, etag, seen, broken = "", b"", '"1"', [], 0

    def log_message(self, *_):
        pass

    def send(self, status, body=b"", **fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in fields:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        kind = self.path.split("/")[1]
        Answers.seen.append((kind, self.headers.get("Host"), self.headers.get("Authorization")))
        size = len(self.content)
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        first, last = (int(found[1]), min(int(found[2]), size - 1)) if found else (0, size - 1)
        body, total = self.content[first:last + 1], f"bytes {first}-{last}/{size}"
        if kind == "redirect":
            self.send(302, Location="/plain/x.npy")
        elif kind == "elsewhere":
            self.send(307, Location=self.other + "/plain/x.npy")
        elif kind == "weak":
            self.send(206 if found else 200, body, ETag='W/"1"', **({"Content_Range": total} if found else {}))
        elif kind == "whole" or not found:
            self.send(200, self.content, ETag=self.etag)
        elif kind == "rclone":
            self.send(200, body, Content_Range=total, ETag=self.etag)
        elif kind == "no-head" and self.command == "HEAD":
            self.send(403)
        elif kind == "no-range":
            self.send(206, body, ETag=self.etag)
        elif kind == "total":
            self.send(206, body, Content_Range=total + "1", ETag=self.etag)
        elif kind == "unknown-total":
            self.send(206, body, Content_Range=f"bytes {first}-{last}/*", ETag=self.etag)
        elif kind == "negative":
            self.send(206, body, Content_Range=total, Content_Length="-5", ETag=self.etag)
        elif kind == "headers":
            self.send(206, body, Content_Range=total, **{f"X{i}": "y" * 8000 for i in range(20)})
        elif kind == "changes" and first > 1000000:
            self.send(206, body, Content_Range=total, ETag='"2"')
        elif kind == "teapot" and first > 0:
            self.send(418)
        else:
            self.send(206, body, Content_Range=total, ETag=self.etag)


TABLE = {  # path: what is expected; None = the right bytes
    "plain": None, "redirect": None, "elsewhere": None, "rclone": None, "no-head": None, "weak": None, "unknown-total": None,
    "whole": r"STOKER_EIO: .*ignores the range.*", "no-range": r"STOKER_EIO: .*206 without a Content-Range.*",
    "total": r"STOKER_ECHANGED: .*size.*", "negative": r"STOKER_EIO: .*", "headers": r"STOKER_EIO: .*(malformed headers|[Hh]eader).*",
    "changes": r"STOKER_ECHANGED: .*another version.*", "teapot": r"STOKER_EIO: .*HTTP status 418.*",
}


class Threaded(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads, request_queue_size = True, 256

    def handle_error(self, *_):
        """The client has ended a connection: after a wrong answer, or as another one was faster."""
        Answers.broken += 1


def check_answers(root, web, good):
    with open(os.path.join(root, "b", "x.npy"), "rb") as file:
        Answers.content = file.read()
    with Threaded(("127.0.0.1", 0), Answers) as server, Threaded(("127.0.0.1", 0), Answers) as other:
        for each in (server, other):
            threading.Thread(target=each.serve_forever, daemon=True).start()
        host, Answers.other = f"127.0.0.1:{server.server_port}", f"http://127.0.0.1:{other.server_port}"
        for kind, pattern in TABLE.items():
            expect(kind, epoch(f"npy:http://{host}/{kind}/x.npy", "2", *SHORT[1:]), good if pattern is None else pattern)
        Answers.seen.clear()
        expect("user", epoch(f"npy:http://me:SECRETWORD@{host}/redirect/x.npy", "2", *SHORT[1:]), good)
        expect("user goes along to the same host", str(all(who is not None for kind, _, who in Answers.seen if kind in ("redirect", "plain"))), "True")
        Answers.seen.clear()
        expect("user elsewhere", epoch(f"npy:http://me:SECRETWORD@{host}/elsewhere/x.npy", "2", *SHORT[1:]), good)
        leaked = [who for _, at, who in Answers.seen if at != host and who is not None]
        expect("the other host sees no user", f"{len(leaked)} of {sum(at != host for _, at, _ in Answers.seen) > 0}", "0 of True")
        for each in (server, other):
            each.shutdown()


def main():
    with tempfile.TemporaryDirectory() as root:
        os.mkdir(os.path.join(root, "b"))
        for name in ("x.npy", "a b.npy"):
            write_npy(os.path.join(root, "b", name), 1)
        local = epoch("npy:" + os.path.join(root, "b", "x.npy"))
        expect("local", local, r"126 batches, [0-9a-f]+")
        try:
            with servers.Nginx(root) as web:
                if "need libcurl" in epoch(web.url):
                    print("no libcurl")
                    sys.exit(77)
                good = re.escape(local)
                check_nginx(web, good)
                check_answers(root, web, good)
                check_faults(web, good)
                check_interrupted(web, good)
        except servers.Missing as missing:
            print(missing)
            sys.exit(77)
    print(f"{failures} failures")
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
