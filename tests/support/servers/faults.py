#!/usr/bin/env python3
"""faults.py - a proxy between a client and an HTTP server that delays requests and answers some of them wrongly.

usage: faults.py PORT UPSTREAM_HOST:PORT

It is controlled over HTTP, under a path that no object has (servers.py: FaultProxy):

    PUT /-/plan     {"seed": 1, "latency_ms": 50, "path": "/bucket/", "faults": {"503": 0.01, "reset": 0.02}}
    GET /-/counts   {"requests": 812, "bytes": 1048576, "connections": 16, "at_once": 16, "faults": {"503": 8}}

A plan draws a fault for each request of a path from (seed, number of the request), and starts the counts anew. latency_ms delays the
request, not the bytes of the answer, so it does not limit the throughput. FAULTS lists what can go wrong. One that does not fit the
request, such as an ignored range where none was asked for, is not applied, and not counted.

HTTP/1.1 without TLS; a thread per connection.
"""
import gzip
import json
import random
import re
import select
import socket
import struct
import sys
import threading
import time

PIECE_BYTES = 1 << 18
LINE_BYTES = 1 << 16

# Does the fault need an answer with a body, or a request of a range?
FAULTS = {
    "503": "",  # "slow down"
    "503-later": "",  # with Retry-After: 1
    "429": "",  # with Retry-After: 1
    "500": "",
    "expired": "",  # 403, S3's ExpiredToken
    "reset": "",  # the connection, before the answer
    "mute": "",  # no answer
    "loop": "",  # a redirect to a redirect, without end
    "not-http": "",
    "etag": "",  # of another version
    "reset-body": "body",  # the connection, within the body
    "stall": "body",  # within the body
    "truncate": "body",  # the connection is closed within the body
    "short": "body",  # Content-Length, and body, of half the bytes; Content-Range as it was
    "long": "body",  # Content-Length, and body, of 100 more bytes
    "endless": "body",  # chunks that never end
    "drip": "body",  # a byte in 100 ms
    "flip": "body",  # a wrong byte; only a checksum shows it
    "bomb": "body",  # Content-Encoding: gzip, which nobody asked for, of many zeros
    "whole": "range",  # 200 and the object from its first byte
    "shifted": "range",  # Content-Range one byte further
}


class Closed(Exception):
    """The connection to the client is of no more use."""


class Head:
    """The first line and the fields of a request or an answer."""

    def __init__(self, reader):
        self.first = reader.readline(LINE_BYTES).decode("latin-1").rstrip("\r\n")
        self.fields = []
        while self.first:
            name, colon, value = reader.readline(LINE_BYTES).decode("latin-1").partition(":")
            if not colon:
                break
            self.fields.append((name, value.strip()))

    def get(self, name):
        return next((value for field, value in self.fields if field.lower() == name), "")

    def put(self, name, value=None):
        """Replace a field; without a value, remove it."""
        self.fields = [field for field in self.fields if field[0].lower() != name.lower()]
        if value is not None:
            self.fields.append((name, str(value)))

    def send(self, to):
        lines = [self.first] + [f"{name}: {value}" for name, value in self.fields]
        to.sendall("\r\n".join(lines + ["", ""]).encode("latin-1"))


class Counts:
    def __init__(self):
        self.lock = threading.Lock()
        self.requests = self.bytes = self.connections = self.at_once = self.pending = 0
        self.faults = {}

    def add(self, **amounts):
        with self.lock:
            for name, amount in amounts.items():
                setattr(self, name, getattr(self, name) + amount)
            self.at_once = max(self.at_once, self.pending)

    def applied(self, fault):
        with self.lock:
            self.faults[fault] = self.faults.get(fault, 0) + 1

    def report(self):
        names = ("requests", "bytes", "connections", "at_once", "faults")
        with self.lock:
            return {name: getattr(self, name) for name in names}


class Plan:
    def __init__(self, seed=0, latency_ms=0, path="/", faults=()):
        unknown = set(faults) - set(FAULTS)
        if unknown:
            raise ValueError(f"unknown faults: {sorted(unknown)}")
        self.seed, self.latency_ms, self.path, self.faults = seed, latency_ms, path, dict(faults)
        self.lock, self.number = threading.Lock(), 0

    def draw(self, target):
        """The fault of the next request, or None."""
        if not target.startswith(self.path):
            return None
        with self.lock:
            self.number += 1
            at = random.Random(f"{self.seed} {self.number}").random()
        for fault, share in self.faults.items():
            at -= share
            if at < 0:
                return fault
        return None


class Proxy:
    def __init__(self, upstream):
        self.upstream, self.plan, self.counts = upstream, Plan(), Counts()

    def control(self, client, target, body):
        answer, status = b"", "200 OK"
        if target == "/-/plan":
            try:
                self.plan, self.counts = Plan(**json.loads(body)), Counts()
            except (TypeError, ValueError) as error:
                answer, status = str(error).encode(), "400 Bad Request"
        elif target == "/-/counts":
            answer = json.dumps(self.counts.report()).encode()
        else:
            status = "404 Not Found"
        send_plain(client, status, answer)


def send_plain(client, status, body, *fields):
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *fields, "", ""]
    client.sendall("\r\n".join(lines).encode("latin-1") + body)


class Connection:
    """Of one client. Its requests go over one connection to the upstream."""

    def __init__(self, proxy, client):
        self.proxy, self.client, self.server = proxy, client, None
        self.reader, self.from_server = client.makefile("rb"), None
        self.buffer = memoryview(bytearray(PIECE_BYTES))

    def run(self):
        self.proxy.counts.add(connections=1)
        try:
            while self.serve():
                pass
        except (OSError, Closed, ValueError):
            pass
        finally:
            for end in (self.from_server, self.server, self.reader, self.client):
                if end is not None:
                    end.close()

    def serve(self):
        request = Head(self.reader)
        if not request.first:
            return False
        method, target, _ = request.first.split(" ", 2)
        length = int(request.get("content-length") or 0)
        if request.get("transfer-encoding"):
            send_plain(self.client, "411 Length Required", b"")
            return False
        if request.get("expect"):
            self.client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.put("Expect")
        if target.startswith("/-/loop/"):
            self.redirect(int(target[len("/-/loop/"):]) + 1)
        elif target.startswith("/-/"):
            self.proxy.control(self.client, target, self.reader.read(length))
        else:
            counts = self.proxy.counts
            counts.add(requests=1, pending=1)
            try:
                self.forward(request, method, target, length)
            finally:
                counts.add(pending=-1)
        return True

    def forward(self, request, method, target, length):
        plan = self.proxy.plan
        fault = plan.draw(target)
        if FAULTS.get(fault) == "range" and not request.get("range"):
            fault = None
        if plan.latency_ms:
            time.sleep(plan.latency_ms / 1000)
        if fault is not None and FAULTS[fault] == "" and fault != "etag":
            self.proxy.counts.applied(fault)
            self.reader.read(length)
            self.refuse(fault)
            return
        if fault == "whole":
            request.put("Range")
        if self.server is None:
            self.server = socket.create_connection(self.proxy.upstream)
            self.server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.from_server = self.server.makefile("rb")
        request.send(self.server)
        self.relay(self.reader, self.server, length)
        answer = Head(self.from_server)
        while answer.first.split(" ")[1:2] == ["100"]:
            answer = Head(self.from_server)
        if not answer.first:
            raise Closed
        self.answer(fault, method, answer)

    def answer(self, fault, method, answer):
        status = answer.first.split(" ")[1]
        body = None  # read beforehand if its length is not known
        if method == "HEAD" or status in ("204", "304"):
            length = 0
        elif answer.get("content-length"):
            length = int(answer.get("content-length"))
        else:
            body = self.read_chunks() if answer.get("transfer-encoding") else self.from_server.read()
            length = len(body)
            answer.put("Transfer-Encoding")
            answer.put("Content-Length", length)
        if fault is not None and (length > 1 or FAULTS[fault] == "") and status in ("200", "206"):
            self.proxy.counts.applied(fault)
            self.spoil(fault, answer, body if body is not None else self.from_server.read(length))
            return
        answer.send(self.client)
        if body is None:
            self.relay(self.from_server, self.client, length)
        else:
            self.client.sendall(body)
        self.proxy.counts.add(bytes=length)
        if answer.get("connection").lower() == "close":
            raise Closed

    def read_chunks(self):
        body = b""
        while True:
            size = int(self.from_server.readline(LINE_BYTES).split(b";")[0], 16)
            body += self.from_server.read(size)
            self.from_server.readline(LINE_BYTES)
            if size == 0:
                return body

    def relay(self, source, to, count):
        while count > 0:
            got = source.readinto1(self.buffer[:min(count, PIECE_BYTES)])
            if got == 0:
                raise Closed
            to.sendall(self.buffer[:got])
            count -= got

    def refuse(self, fault):
        """A fault in place of the answer."""
        if fault == "expired":
            send_plain(self.client, "403 Forbidden", b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>ExpiredToken</Code>'
                       b"<Message>The provided token has expired.</Message></Error>", "Content-Type: application/xml")
        elif fault[0].isdigit():
            number, later, _ = fault.partition("-")
            later = later or number == "429"
            reason = {"503": "Slow Down", "429": "Too Many Requests", "500": "Internal Server Error"}[number]
            send_plain(self.client, f"{number} {reason}", b"later\n", *(["Retry-After: 1"] if later else []))
        elif fault == "reset":
            self.reset()
        elif fault == "mute":
            self.wait_for_the_client()
        elif fault == "loop":
            self.redirect(1)
        else:
            self.client.sendall(b"\0\1\2 this is no HTTP\n\n" * 100)
            raise Closed

    def spoil(self, fault, answer, body):
        """The answer with a fault within."""
        half = body[:len(body) // 2]
        if fault == "etag":
            answer.put("ETag", f'"{random.getrandbits(64):016x}"')
            answer.put("Last-Modified", "Thu, 01 Jan 1970 00:00:00 GMT")
        elif fault == "short":
            body = half
        elif fault == "long":
            body += bytes(100)
        elif fault == "flip":
            body = half + bytes([body[len(half)] ^ 0xFF]) + body[len(half) + 1:]
        elif fault == "bomb":
            answer.put("Content-Encoding", "gzip")
            body = 16 * gzip.compress(bytes(4 << 20))
        elif fault == "shifted":
            first, last, size = map(int, re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", answer.get("content-range")).groups())
            answer.put("Content-Range", f"bytes {first + 1}-{last + 1}/{size + 1}")
        if answer.get("content-length") and body:
            answer.put("Content-Length", len(body))
        if fault == "endless":
            answer.put("Content-Length")
            answer.put("Transfer-Encoding", "chunked")
        answer.send(self.client)
        if fault == "endless":
            self.client.sendall(b"%x\r\n%b\r\n" % (len(body), body))
            while True:
                self.client.sendall(b"%x\r\n%b\r\n" % (1 << 16, bytes(1 << 16)))
                time.sleep(0.001)
        elif fault == "drip":
            for byte in body:
                self.client.sendall(bytes([byte]))
                time.sleep(0.1)
        elif fault in ("truncate", "stall", "reset-body"):
            self.client.sendall(half)
            if fault == "stall":
                self.wait_for_the_client()
            elif fault == "reset-body":
                self.reset()
            raise Closed
        else:
            self.client.sendall(body)
            self.proxy.counts.add(bytes=len(body))

    def redirect(self, number):
        send_plain(self.client, "302 Found", b"", f"Location: /-/loop/{number}")

    def reset(self):
        self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.reader.close()  # it shares the descriptor
        self.client.close()
        raise Closed

    def wait_for_the_client(self):
        """Say nothing until the client gives up."""
        select.select([self.client], [], [])
        raise Closed


def main():
    host, port = sys.argv[2].rsplit(":", 1)
    proxy = Proxy((host, int(port)))
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=1024)
    while True:
        client, _ = listener.accept()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=Connection(proxy, client).run, daemon=True).start()


if __name__ == "__main__":
    main()
