#!/usr/bin/env python3
"""check_s3.py - s3:// against rclone's server, which checks signatures, against moto, and against a server that ends sessions.

usage: check_s3.py REMOTE_OBJECTS FIELD_HASHES STOKER_PACK
Skips (77) if the servers are not installed.
"""
import http.server
import os
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support/servers"))
import servers  # noqa: E402

objects, hashes, pack = (os.path.abspath(word) for word in sys.argv[1:4])
failures = []


def run(*words, environment=None, **more):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "HF_"))}
    done = subprocess.run(words, env={**clean, **(environment or {}), **more}, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def check(condition, *what):
    if not condition:
        failures.append(what)
        print("check_s3:", *what, file=sys.stderr)


def same_batches(root, environment):
    for kind, path in (("tar", "part=1/a+b c.tar"), ("shards", "shards"), ("folder", "photos"), ("tar", "part=1/a*.tar")):
        query = "?fields=png,caption.txt" if kind == "tar" else ""
        expected = run(hashes, f"{kind}:{root}/bucket/{path}{query}", "padded", "2", "cpu")
        got = run(hashes, f"{kind}:s3://bucket/{path}{query}", "padded", "2", "cpu", environment=environment)
        check(expected[0] == 0 and expected[1], kind, "local:", expected[2])
        check(got == expected, kind, path, got[2])


def lists(root, environment, folder):
    names = sorted(os.listdir(os.path.join(root, "bucket", folder)))
    expected = []
    for name in names:
        path = os.path.join(root, "bucket", folder, name)
        expected.append(f"{name} 2 0" if os.path.isdir(path) else f"{name} 1 {os.path.getsize(path)}")
    status, out, error = run(objects, f"s3://bucket/{folder}/", environment=environment)
    check(status == 0 and sorted(out.splitlines()[:-1]) == sorted(expected), folder, error, out[:300])


def refusals(environment, signatures=True):
    secret = environment["AWS_SECRET_ACCESS_KEY"]
    wrong = {**environment, "AWS_SECRET_ACCESS_KEY": secret + "x"}
    cases = [((objects, "s3://no-such-bucket/"), environment, "404 Not Found: NoSuchBucket: there is no such bucket"),
             ((hashes, "tar:s3://bucket/none.tar", "padded", "0", "cpu"), environment, "404 Not Found"),
             ((hashes, "tar:s3://no-such-bucket/a.tar", "padded", "0", "cpu"), environment, "404 Not Found")]
    if signatures:
        says = "403 Forbidden: SignatureDoesNotMatch: the secret key is wrong"
        cases += [((objects, "s3://bucket/"), wrong, says), ((hashes, "tar:s3://bucket/part=1/a+b c.tar", "padded", "0", "cpu"), wrong, says)]
    for words, given, says in cases:
        status, _, error = run(*words, environment=given)
        check(status == 1 and says in error and secret not in error, words[1], error)


class Sessions(http.server.BaseHTTPRequestHandler):
    """Two objects, for those with a session token from `least` on; and their list, with one from `least_list` on."""

    protocol_version, disable_nagle_algorithm, region = "HTTP/1.1", True, "us-east-1"
    least, least_list, denied = 1, 1, 0

    def answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        token = self.headers.get("x-amz-security-token", "token-0")
        if int(token.partition("-")[2]) < (Sessions.least_list if "list-type" in self.path else Sessions.least):
            Sessions.denied += 1
            self.answer(400, b"<Error><Code>ExpiredToken</Code><Message>token-1 SECRET</Message></Error>")
        elif f"/{Sessions.region}/s3/" not in self.headers["Authorization"]:
            Sessions.denied += 1
            if Sessions.denied % 2:
                self.answer(400, f"<Error><Code>AuthorizationHeaderMalformed</Code><Region>{Sessions.region}</Region></Error>".encode())
            else:
                self.answer(301, b"<Error><Code>PermanentRedirect</Code></Error>", x_amz_bucket_region=Sessions.region)
        elif "list-type" in self.path:
            entries = b"".join(b"<Contents><Key>%d</Key><Size>1</Size><ETag>&quot;e&quot;</ETag></Contents>" % number for number in range(2))
            self.answer(200, b"<ListBucketResult>" + entries + b"</ListBucketResult>")
        else:
            self.answer(200, b"x", ETag='"e"')

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


def sessions():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sessions)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = {**servers.DIRECT, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}"}
    for least_list, least, status, calls in ((1, 1, 0, 1), (2, 2, 0, 2), (1, 2, 0, 2), (99, 99, 1, None)):
        Sessions.least_list, Sessions.least, Sessions.denied = least_list, least, 0
        got, out, error = run(objects, "s3://bucket/", "tokens", environment=endpoint)
        check(got == status and (calls is None or f"{calls} calls" in out), "sessions from", least_list, least, out, error)
        check("SECRET" not in error and "token-" not in error, "a secret:", error)
        check(status == 0 or ("ExpiredToken: the session token has expired" in error and Sessions.denied == 2), Sessions.denied, error)
    Sessions.region, Sessions.least, Sessions.least_list = "eu-west-1", 1, 1
    for denied in 0, 1:  # says where it is in the answer's text, or in a header
        Sessions.denied = denied
        got, out, error = run(objects, "s3://bucket/", "tokens", environment=endpoint)
        check(got == 0 and Sessions.denied == denied + 1, "another region:", Sessions.denied, out, error)
        Sessions.denied = denied
        got, out, error = run(hashes, "tar:s3://bucket/0", "padded", "0", "cpu", environment=endpoint, AWS_ACCESS_KEY_ID="KEY", AWS_SECRET_ACCESS_KEY="SECRET",
                              AWS_SESSION_TOKEN="token-1", AWS_REGION="us-west-2")
        check("storage remote" not in error and "blocks of zeros" in error, "another region, without a list:", error)
    server.shutdown()


def main():
    with tempfile.TemporaryDirectory() as root:
        bucket = os.path.join(root, "bucket")
        os.makedirs(os.path.join(bucket, "part=1"))
        os.makedirs(root + "/made")
        subprocess.run([sys.executable, os.path.join(HERE, "make_fields.py"), root + "/made", "100"], check=True)
        os.rename(root + "/made/fields.tar", bucket + "/part=1/a+b c.tar")
        os.makedirs(bucket + "/photos")
        os.rename(root + "/made/image", bucket + "/photos/a b")
        os.rename(root + "/made/mask", bucket + "/photos/mask=1")
        for name in ("part=1/ä&<'.txt", "part=1/%41"):
            with open(os.path.join(bucket, name), "w", encoding="ascii") as file:
                file.write(name[-4:])
        subprocess.run([pack, "--shard-samples", "30", f"tar:{bucket}/part=1/a+b c.tar?fields=png,caption.txt", f"shards:{bucket}/shards"], check=True,
                       stdout=subprocess.DEVNULL)
        with servers.Moto(root) as store:
            same_batches(root, store.environment)
            lists(root, store.environment, "part=1")
            refusals(store.environment, signatures=False)
        os.makedirs(os.path.join(bucket, "many"))
        for number in range(10000):
            with open(f"{bucket}/many/{number:05}", "wb") as file:
                file.write(b"x")
        with servers.Rclone(root) as store, servers.Faults(store.url, store.environment) as proxy:
            same_batches(root, store.environment)
            lists(root, store.environment, "part=1")
            refusals(store.environment)
            lists(root, proxy.environment, "many")
            requests = proxy.counts()
            check(requests.get("requests") == 10, "10,000 objects:", requests)
    sessions()
    print(f"{len(failures)} failures")
    return 1 if failures else 0


try:
    sys.exit(main())
except servers.Missing as missing:
    print("SKIPPED:", missing)
    sys.exit(77)
