#!/usr/bin/env python3
"""check_hf.py - hf:// against a server that answers as the Hub does: pages of the tree API, and files that another host delivers.

usage: check_hf.py REMOTE_OBJECTS FIELD_HASHES

The answers have the shape that the Hub's API documents: entries with oid and lfs.oid, `Link: <...>; rel="next"`, X-Linked-Etag and
X-Linked-Size beside a redirect.
"""
import hashlib
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
TOKEN = "hf_secret"
objects, hashes = (os.path.abspath(word) for word in sys.argv[1:3])
failures, files, leaked, asked, uses = [], {}, [], [], {}


def check(condition, *what):
    if not condition:
        failures.append(what)
        print("check_hf:", *what, file=sys.stderr)


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm = "HTTP/1.1", True

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def answer_bytes(self, body, etag):
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if wanted is None:
            return self.answer(200, body, ETag=etag)
        first, last = int(wanted[1]), min(int(wanted[2]), len(body) - 1)
        self.answer(206, body[first:last + 1], ETag=etag, Content_Range=f"bytes {first}-{last}/{len(body)}")

    def do_HEAD(self):
        self.do_GET()

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except ConnectionError:  # a request that was given up
            pass


class Elsewhere(Answers):
    """Delivers bytes by URLs that hold for GET alone and 150 times, under an ETag of its own."""

    def do_GET(self):
        leaked.extend(value for name, value in self.headers.items() if TOKEN in value)
        path, _, number = self.path[1:].partition("?")
        uses[number] = uses.get(number, 0) + 1
        if self.command == "HEAD" or uses[number] > 150:
            return self.answer(403)
        self.answer_bytes(files[urllib.parse.unquote(path)], '"of-the-cdn"')


def oid(name):
    return hashlib.sha256(files[name]).hexdigest() if name.endswith(".tar") else hashlib.sha1(files[name]).hexdigest()


class Hub(Answers):
    """datasets/owner/name at `main`: .tar files are in LFS. Two entries a page."""

    def tree(self, folder, query):
        prefix = folder + "/" if folder else ""
        entries = []
        for name in sorted({name[len(prefix):].partition("/")[0] for name in files if name.startswith(prefix)}):
            path = prefix + name
            if path not in files:
                entries.append({"type": "directory", "oid": "d" * 40, "size": 0, "path": path})
                continue
            entry = {"type": "file", "oid": oid(path), "size": len(files[path]), "path": path}
            if path.endswith(".tar"):
                entry.update(oid="a" * 40, lfs={"oid": oid(path), "size": len(files[path]), "pointerSize": 134}, xetHash="c" * 64)
            entries.append(entry)
        begin = int(query.get("cursor", ["0"])[0])
        link = {"Link": f'<{endpoint}{self.path.partition("?")[0]}?limit=2&cursor={begin + 2}>; rel="next"'} if begin + 2 < len(entries) else {}
        self.answer(200, json.dumps(entries[begin:begin + 2]).encode(), **link)

    def do_GET(self):
        asked.append(f"{self.command} {self.path}")
        path, _, query = self.path.partition("?")
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.answer(401, b'{"error":"Invalid username or password."}', X_Error_Code="GatedRepo")
        found = re.fullmatch(r"(/api)?/datasets/owner/name/(tree|resolve)/main/?(.*)", path)
        name = urllib.parse.unquote(found[3]) if found else ""
        if found and found[2] == "tree":
            return self.tree(name, urllib.parse.parse_qs(query))
        if name not in files:
            return self.answer(404, b'{"error":"Entry not found"}', X_Error_Code="EntryNotFound")
        if name.endswith(".tar"):
            return self.answer(302, b"Found", Location=f"{elsewhere}/{urllib.parse.quote(name)}?{len(asked)}", X_Linked_Etag=f'"{oid(name)}"',
                               X_Linked_Size=str(len(files[name])), X_Repo_Commit="b" * 40)
        self.answer_bytes(files[name], f'"{oid(name)}"')


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # a connection beyond it waits for seconds


def serve(handler):
    server = Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def run(*words, token=TOKEN):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "HF_"))}
    clean.update(HF_ENDPOINT=endpoint, HF_HOME="/nonexistent", NO_PROXY="*", no_proxy="*", **({"HF_TOKEN": token} if token else {}))
    done = subprocess.run(words, env=clean, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


endpoint, elsewhere = serve(Hub), serve(Elsewhere)
with tempfile.TemporaryDirectory() as root:
    subprocess.run([sys.executable, os.path.join(HERE, "make_fields.py"), root, "60"], check=True)
    with open(root + "/fields.tar", "rb") as file:
        files["data/a b.tar"] = files["data/b.tar"] = file.read()
    for name in ("data/c.txt", "data/sub/d.txt", "data/e.txt", "README.md"):
        files[name] = name.encode()
    query = "?fields=png,caption.txt"
    local = run(hashes, f"tar:{root}/fields.tar{query}", "padded", "2", "cpu")
    check(local[0] == 0 and local[1], local[2])
    for path in ("data/a b.tar", "data/b*.tar"):
        asked.clear()
        got = run(hashes, f"tar:hf://datasets/owner/name/{path}{query}", "padded", "2", "cpu")
        check(got == local, path, got[2])
        resolved = [request for request in asked if request.startswith("GET") and "/resolve/" in request]
        reads = sum(uses.values())
        check(0 < len(resolved) < reads // 2, "asked where the file is:", len(resolved), "times for reads:", reads)
        uses.clear()

asked.clear()
status, out, error = run(objects, "hf://datasets/owner/name/data/")
check(status == 0 and out.splitlines()[:-1] == [f"a b.tar 1 {len(files['data/b.tar'])}", f"b.tar 1 {len(files['data/b.tar'])}", "c.txt 1 10",
                                                "e.txt 1 10", "sub 2 0"], out, error)
check(sum("/tree/" in request for request in asked) == 3, "pages:", asked)
status, out, error = run(objects, "hf://datasets/owner/name/data/c")
check(status == 0 and out.splitlines()[0] == "c.txt 1 10", out, error)
for token in (None, "hf_wrong"):
    status, out, error = run(objects, "hf://datasets/owner/name/data/", token=token)
    check(status != 0 and "401" in error and "set HF_TOKEN" in error and "hf_" not in error, token, error)
status, out, error = run(hashes, "tar:hf://datasets/owner/name/data/none.tar", "padded", "0", "cpu")
check(status != 0 and "404" in error and TOKEN not in error, error)
check(not leaked, "the token went elsewhere")
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
