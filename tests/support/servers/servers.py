"""servers.py - object storage on loopback for tests and races: nginx, the S3 of rclone and of moto, and faults.py before one of them.

    with servers.Nginx(root) as web, servers.Faults(web.http) as proxy:
        proxy.plan(latency_ms=20, faults={"503": 0.01})
        ...                     # read proxy.url + "/bucket/object"
        print(proxy.counts())

ROOT holds a folder per bucket; all of them serve http://.../BUCKET/OBJECT. A server has `url`, and `environment`: what a client needs in
its environment to find it and to be let in. It ends with its `with`, and when the thread that made it ends, however that ends. kill() and
start() interrupt it; the port remains.

Only the standard library. `./run setup test` installs nginx in build/nginx and the others in build/servers-env; Missing says what is not
there.
"""
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..", "..")
READY_SECONDS = 60  # on a busy machine
KEY, SECRET, REGION = "STOKERKEY", "stoker/secret+key", "us-east-1"
DIRECT = {"NO_PROXY": "*", "no_proxy": "*"}  # whatever this machine reaches the network by


class Missing(Exception):
    """A program that is not installed."""


def program(name, *folders):
    found = shutil.which(name, path=os.pathsep.join([*(os.path.join(TOP, folder) for folder in folders), os.environ.get("PATH", ""), "/usr/sbin"]))
    if found is None:
        raise Missing(f"no {name}; ./run setup test installs it")
    return found


def free_ports(count):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


def end_with_parent(number):
    parent, prctl = os.getpid(), ctypes.CDLL(None).prctl

    def bind():
        prctl(1, number, 0, 0, 0)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)

    return bind


def send(method, url, body=None):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    wanted = urllib.request.Request(url, body, {"Content-Type": "application/octet-stream"}, method=method)
    with opener.open(wanted, timeout=READY_SECONDS) as answer:
        return answer.read()


class Server:
    """A process that answers on its ports. Another process may take a port before it: then it is tried with others."""

    ports_needed, ends_by = 1, signal.SIGKILL

    def __init__(self):
        self.folder, self.process, self.environment = tempfile.mkdtemp(prefix="servers-"), None, dict(DIRECT)

    def __enter__(self):
        for attempt in range(3):
            self.ports = free_ports(self.ports_needed)
            self.url = f"http://127.0.0.1:{self.ports[0]}"
            try:
                return self.start()
            except BaseException as error:
                if attempt == 2 or not isinstance(error, ChildProcessError):
                    self.__exit__()
                    raise

    def __exit__(self, *_):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        words = self.command()
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                                            env=dict(os.environ, HOME=self.folder), preexec_fn=end_with_parent(self.ends_by))
        end = time.monotonic() + READY_SECONDS
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                self.kill()
                raise ChildProcessError(f"{words[0]} does not start: {self.log()[-500:]}")
            time.sleep(0.02)
        return self

    def answers(self):
        for port in self.ports:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                return False
        return self.process.poll() is None

    def kill(self):
        """End it at once; its connections are lost."""
        if self.process is not None:
            self.process.send_signal(self.ends_by)
            self.process.wait()
            self.process = None

    def log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as file:
            return file.read()


def certify(folder):
    """A private CA, ca.pem, and the certificate that it gives to localhost and 127.0.0.1: server.pem, server.key."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    with open(os.path.join(folder, "names"), "w", encoding="ascii") as file:
        file.write("subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=critical,CA:FALSE\n")
    for words in (["req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=CA of Stoker's tests"],
                  ["req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost"],
                  ["x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                   "-extfile", "names", "-out", "server.pem"]):
        subprocess.run([program("openssl"), *words], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


class Nginx(Server):
    """Plain HTTP at `url`; TLS with HTTP/2 at `https`. rate_bytes: bytes per second of each connection."""

    ports_needed, ends_by = 2, signal.SIGTERM  # its workers end with it

    def __init__(self, root, rate_bytes=0, workers=1, log_requests=True):
        super().__init__()
        self.root, self.rate_bytes, self.workers, self.log_requests = os.path.abspath(root), rate_bytes, workers, log_requests
        self.program = program("nginx", "build/nginx/usr/sbin")
        certify(self.folder)
        self.environment.update(CURL_CA_BUNDLE=self.path("ca.pem"), SSL_CERT_FILE=self.path("ca.pem"), AWS_CA_BUNDLE=self.path("ca.pem"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def command(self):
        self.https = f"https://localhost:{self.ports[1]}"
        common = f"root {self.root}; limit_rate {self.rate_bytes}; default_type application/octet-stream;"
        temporary = " ".join(f"{kind}_temp_path {kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        access = "requests served" if self.log_requests else "off"
        with open(self.path("nginx.conf"), "w", encoding="utf-8") as file:
            file.write(f"""daemon off; pid nginx.pid; worker_processes {self.workers};
{"user root;" if os.geteuid() == 0 else ""}
events {{ worker_connections 4096; }}
http {{
    log_format served '$server_protocol $request_method $request_uri $status $body_bytes_sent $http_range';
    access_log {access}; {temporary} sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 1000000;
    server {{ listen 127.0.0.1:{self.ports[0]} backlog=1024; {common} }}
    server {{ listen 127.0.0.1:{self.ports[1]} ssl http2; ssl_certificate server.pem; ssl_certificate_key server.key; {common} }}
}}
""")
        return [self.program, "-p", self.folder, "-c", "nginx.conf", "-e", "log"]

    def requests(self):
        """A line per request: protocol, method, path, status, bytes, range."""
        with open(self.path("requests"), encoding="utf-8") as file:
            return file.read().splitlines()


class ObjectStore(Server):
    """Speaks S3 at `url`."""

    def start(self):
        self.environment.update(AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET, AWS_REGION=REGION, AWS_DEFAULT_REGION=REGION,
                                AWS_ENDPOINT_URL=self.url, AWS_EC2_METADATA_DISABLED="true")
        return super().start()


class Rclone(ObjectStore):
    """It checks signatures."""

    def __init__(self, root):
        super().__init__()
        self.root, self.program = os.path.abspath(root), program("rclone", "build/servers-env/bin")

    def command(self):
        return [self.program, "serve", "s3", "--config", os.path.join(self.folder, "none"), "--auth-key", f"{KEY},{SECRET}", "--dir-cache-time", "1s",
                "--addr", f"127.0.0.1:{self.ports[0]}", self.root]


class Moto(ObjectStore):
    """Keeps objects in memory: it gets those of ROOT when it starts."""

    def __init__(self, root):
        super().__init__()
        self.root, self.program = os.path.abspath(root), program("moto_server", "build/servers-env/bin")

    def command(self):
        return [self.program, "-H", "127.0.0.1", "-p", str(self.ports[0])]

    def start(self):
        super().start()
        for bucket in os.listdir(self.root):
            self.put(bucket)
            for folder, _, files in os.walk(os.path.join(self.root, bucket)):
                for name in files:
                    path = os.path.join(folder, name)
                    with open(path, "rb") as file:
                        self.put(os.path.relpath(path, self.root), file.read())
        return self

    def put(self, path, body=None):
        send("PUT", f"{self.url}/{urllib.parse.quote(path)}", body)


class Faults(Server):
    """faults.py between a client and `upstream`, the URL of another server. `environment` is that of an object store behind it."""

    def __init__(self, upstream, environment=()):
        super().__init__()
        self.upstream = upstream.rpartition("/")[2]
        self.environment.update(environment)

    def command(self):
        if "AWS_ENDPOINT_URL" in self.environment:
            self.environment["AWS_ENDPOINT_URL"] = self.url
        return [sys.executable, os.path.join(HERE, "faults.py"), str(self.ports[0]), self.upstream]

    def plan(self, **plan):
        send("PUT", self.url + "/-/plan", json.dumps(plan).encode())

    def counts(self):
        return json.loads(send("GET", self.url + "/-/counts"))
