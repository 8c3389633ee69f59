#!/usr/bin/env python3
"""`farfault view`: what its server answers, to whom, and how it ends. Arguments: the program farfault, the source folder, the workloads' folder, whether the
server was built (1 or 0)."""
import http.client, json, os, shutil, signal, socket, subprocess, sys, tempfile, time

farfault, source, workloads, built = os.path.abspath(sys.argv[1]), *map(os.path.abspath, sys.argv[2:4]), sys.argv[4] == "1"
sample = os.path.join(source, "tests/unit/report/golden/sample.json")
work = tempfile.mkdtemp()
os.chdir(work)
environment = {**os.environ, "TMPDIR": work, "NO_COLOR": "1", "FARFAULT_CONFIG": "none"}
passed = failed = 0


def expect(what, got, wanted=True):
    global passed, failed
    if got == wanted:
        passed += 1
    else:
        failed += 1
        print(f"wrong: {what}: {got!r}, expected {wanted!r}")


def run(*arguments, **more):
    return subprocess.run([farfault, *arguments], env=environment, capture_output=True, text=True, timeout=60, **more)


def refused(what, status, message, *arguments):
    got = run("view", *arguments)
    expect(f"{what}: status", got.returncode, status)
    expect(f"{what}: {message!r} in {got.stderr!r}", message in got.stderr)
    expect(f"{what}: stdout", got.stdout, "")


class Server:
    """A `farfault view` that runs: .port, once it has printed its address."""

    def __init__(self, *arguments, **more):
        self.process = subprocess.Popen([farfault, "view", *arguments], env=more.pop("env", environment), stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, **more)
        self.url = self.process.stdout.readline().strip()
        self.port = int(self.url.rsplit(":", 1)[1].rstrip("/")) if self.url else 0

    def ask(self, path="/", method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, body, response

    def raw(self, text):
        """The first line of what comes back within a second."""
        answer = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
            try:
                connection.sendall(text.encode())
                while b"\n" not in answer and (part := connection.recv(65536)):
                    answer += part
            except OSError:
                pass
        return answer.decode(errors="replace").split("\r\n")[0]

    def end(self, number=signal.SIGINT):
        """(exit status, seconds it took, stdout after the address, stderr)"""
        begun = time.monotonic()
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, time.monotonic() - begun, out, err


def finish():
    left = [name for name in os.listdir(work) if name.startswith("farfault-")]
    expect("temporary files left", left, [])
    shutil.rmtree(work)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or passed < 2 else 0)


# ---- what is refused ----
open("broken.json", "w").write('{"schema": 1, ')
open("text", "w").write("hello\n")
refused("no file", 64, "", *[])
refused("a file that is not there", 2, "no.ffr", "no.ffr")
refused("a broken file", 2, "broken.json:1", "broken.json")
refused("a file of no kind", 2, "text", "text")
for port in "0", "65536", "-1", "80x", "":
    refused(f"port {port!r}", 64, "is not a port from 1 to 65535", f"--port={port}", sample)
refused("advice that is not there", 2, "--advice: no.json", "--advice", "no.json", sample)
if not built:
    refused("without the server", 1, "built without an HTTP server (libmicrohttpd-dev)", sample)
    finish()

# ---- what is served ----
expect("the page as a file", run("report", sample, "--html", "page.html").returncode, 0)
page = open("page.html", "rb").read()
server = Server(sample)
expect("the address", server.url, f"http://127.0.0.1:{server.port}/")
status, body, response = server.ask()
expect("the page", (status, body == page), (200, True))
expect("its type", response.getheader("Content-Type"), "text/html; charset=utf-8")
expect("it is not kept", response.getheader("Cache-Control"), "no-store")
expect("in no frame of another site", response.getheader("X-Frame-Options"), "SAMEORIGIN")
expect("the page with a question", server.ask("/?x=1")[0], 200)
status, body, response = server.ask(method="HEAD")
expect("HEAD", (status, body, response.getheader("Content-Length")), (200, b"", str(len(page))))
for path in "/x", "//", "/page.html", "/../etc/passwd", "/%2e%2e/etc/passwd", "/state":
    expect(f"no {path}", server.ask(path)[0], 404)
for method in "POST", "PUT", "DELETE", "OPTIONS":
    status, body, response = server.ask(method=method)
    expect(method, (status, response.getheader("Allow")), (405, "GET, HEAD"))
for host in "localhost", "LOCALHOST:9", f"127.0.0.1:{server.port}", "[::1]:80":
    expect(f"Host {host}", server.ask(Host=host)[0], 200)
for host in "evil.example", f"evil.example:{server.port}", "localhost.evil.example", "127.0.0.1.evil.example", "localhost:80@evil.example", "", "10.0.0.1":
    status, body, response = server.ask(Host=host)
    expect(f"Host {host}", (status, b"saxpy" in body), (403, False))
expect("two hosts", server.raw("GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")[:12] in ("HTTP/1.1 403", "HTTP/1.1 400"))
expect("no host", server.raw("GET / HTTP/1.0\r\n\r\n")[9:12], "403")
server.raw("\x00\x01 / HTTP/1.1\r\n\r\n")
server.raw("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + "y" * 100000 + "\r\n\r\n")
expect("after nonsense", server.ask()[0], 200)
addresses = [line.split()[1] for line in open("/proc/net/tcp") if line.split()[1].endswith(f":{server.port:04X}") and line.split()[3] == "0A"]
expect("it listens on 127.0.0.1 only", addresses, [f"0100007F:{server.port:04X}"])

# ---- one port, two servers; how it ends ----
refused("a port that is taken", 1, f"cannot listen on port {server.port}: Address already in use", "--port", str(server.port), sample)
slow = socket.create_connection(("127.0.0.1", server.port))  # a request that never comes to its end
slow.sendall(b"GET / HTTP/1.1\r\n")
status, seconds, out, err = server.end()
slow.close()
expect("Ctrl-C: status", status, 0)
expect(f"Ctrl-C: at once ({seconds:.1f} s)", seconds < 2)
expect("stdout has the address only", out, "")
expect("stderr", err, f"farfault: {sample}: its page is at {server.url} until Ctrl-C\n")
port = server.port
server = Server("--port", str(port), sample)
expect("the port that was asked for, again", server.port, port)
expect("SIGTERM", server.end(signal.SIGTERM)[0], 0)
server = Server(sample, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
server.process.send_signal(signal.SIGHUP)
time.sleep(0.2)
expect("a signal that it was started to ignore", server.process.poll(), None)
expect("and one that it was not", server.end()[0], 0)

# ---- --open ----
os.mkdir("bin")
open("bin/xdg-open", "w").write('#!/bin/sh\necho "$1" >"$TMPDIR/opened"\necho noise\nexec sleep 30\n')
os.chmod("bin/xdg-open", 0o755)
server = Server("--open", sample, env={**environment, "PATH": f"{work}/bin:{os.environ['PATH']}"})
for _ in range(100):
    if os.path.exists("opened") and open("opened").read():
        break
    time.sleep(0.05)
expect("what xdg-open was given", open("opened").read().strip(), server.url)
status, seconds, out, err = server.end()
expect("with a browser that stays", (status, seconds < 2, "noise" in out + err), (0, True, False))
server = Server("--open", sample, env={**environment, "PATH": f"{work}/empty"})
expect("served without xdg-open, too", server.ask()[0], 200)
expect("and said", "--open: cannot start xdg-open (No such file or directory)" in server.end()[3])

# ---- a sweep, a library that is not there ----
if os.access(f"{workloads}/vectoradd", os.X_OK):
    open("a.yaml", "w").write("trace: a.fft\nmachine: gtx480\nmemory: [copy, ideal]\n")
    run("record", "-o", "a.fft", "--", f"{workloads}/vectoradd", "1000")
    run("sweep", "a.yaml", "-o", "a.db")
    run("report", "a.db", "--html", "a.html")
    server = Server("a.db")
    expect("the page of a sweep", server.ask()[1], open("a.html", "rb").read())
    expect("its end", server.end()[0], 0)
    refused("advice of a sweep", 64, "--advice: it is for the page of a run", "--advice", sample, "a.db")

# ---- --live: a file that another process writes again and again ----
def until(there, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if there():
            return True
        time.sleep(0.05)
    return False


def state(server):
    return json.loads(server.ask("/state")[1])


run_of = json.load(open(sample))


def write(name, **changes):
    with open("aside", "w") as file:
        json.dump({**run_of, **changes}, file)
    os.rename("aside", name)


writer = subprocess.Popen(["sleep", "60"])
server = Server("--live", "live.ffr")
expect("a file that is not there yet", state(server), {"file": "live.ffr", "version": 0, "state": "waiting"})
expect("the frame", b'fetch(\'/state\')' in server.ask()[1])
expect("no page yet", b"There is no run yet" in server.ask("/run.html")[1])
write("live.ffr", command="./of-before")
expect("a run that has ended is shown, and the next one waited for", until(lambda: state(server)["version"] == 1 and state(server)["state"] == "waiting"))
write("live.ffr", complete=False, running=writer.pid, command="./first")
expect("a run that goes on", until(lambda: state(server)["state"] == "running"))
expect("its page", b"./first" in server.ask("/run.html")[1])
version = state(server)["version"]
time.sleep(0.7)
expect("no news", state(server)["version"], version)
write("live.ffr", complete=False, running=writer.pid, command="./second")
expect("news", until(lambda: state(server)["version"] == version + 1))
expect("and their page", b"./second" in server.ask("/run.html")[1])
write("live.ffr", command="./third")
expect("the end", until(lambda: server.process.poll() is not None or state(server)["state"] == "ended"))
time.sleep(0.7)
expect("it stays until the last page was read", server.process.poll(), None)
expect("the last page", b"./third" in server.ask("/run.html")[1])
expect("then it ends", server.process.wait(20), 0)
expect("and says so", "live.ffr: the run has ended; `farfault view live.ffr` shows it again" in server.process.stderr.read())

write("live.ffr", complete=False, running=writer.pid)
server = Server("--live", "live.ffr")
expect("running when it begins", until(lambda: state(server)["state"] == "running"))
expect("Ctrl-C while it follows", server.end()[0], 0)
server = Server("--live", "live.ffr")
time.sleep(0.7)  # no reader asks
writer.kill()
writer.wait()
expect("a writer that is gone, and no reader", server.process.wait(20), 1)
expect("is said", "the run has ended without writing its end" in server.process.stderr.read())
writer = subprocess.Popen(["sleep", "60"])
write("live.ffr", complete=False, running=writer.pid)
server = Server("--live", "live.ffr")
expect("another run that goes on", until(lambda: state(server)["state"] == "running"))
write("live.ffr", complete=False, running=1 << 40)
expect("is lost where its next contents are of no process", until(lambda: state(server)["state"] == "lost"))
server.ask("/run.html")
expect("and view ends so", server.process.wait(20), 1)
writer.kill()
writer.wait()
write("live.ffr", complete=False, running=1 << 40)
server = Server("--live", "live.ffr")
expect("a process that there cannot be", until(lambda: state(server)["version"] == 1) and state(server)["state"], "waiting")
open("aside", "w").write('{"schema": 1,')
os.rename("aside", "live.ffr")
expect("a file that breaks", server.process.wait(20), 2)
expect("has its place named", "live.ffr:1:" in server.process.stderr.read())
write("live.ffr", running="x")
refused("a process that is no number", 2, '"running"', "live.ffr")

# ---- --live of a run ----
if os.access(f"{workloads}/vectoradd", os.X_OK):
    for command in "run", "sim":
        os.path.exists("r.ffr") and os.unlink("r.ffr")
        program = ["a.fft"] if command == "sim" else ["sh", "-c", f"{workloads}/vectoradd 1000 && while ! test -e go; do sleep 0.1; done"]
        os.path.exists("go") and os.unlink("go")
        server = Server("--live", "r.ffr")
        process = subprocess.Popen([farfault, command, "--live", "-o", "r.ffr", "--memory", "copy", "--machine", "gtx480", *program], env=environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if command == "run":
            expect("a run is followed", until(lambda: state(server)["state"] == "running"))
            expect("its numbers grow", until(lambda: json.load(open("r.ffr"))["runs"][0].get("launches") == 1))  # a first one may be of nothing yet
            written = os.stat("r.ffr").st_mtime_ns
            expect("it is written again", until(lambda: os.stat("r.ffr").st_mtime_ns > written))
            middle = json.load(open("r.ffr"))
            expect("what it writes meanwhile", middle["running"], process.pid)
            expect("the page has it", until(lambda: b'"launches": 1' in server.ask("/run.html")[1]))
            report = run("report", "r.ffr")
            expect("and what its table says", "incomplete: written while the program ran" in report.stdout or middle["complete"])
            expect("its page has the data", b"vectoradd" in server.ask("/run.html")[1])
            open("go", "w")
            expect("until it ends", until(lambda: state(server)["state"] == "ended"))
            expect("the last page has the history", b'"history"' in server.ask("/run.html")[1])
            expect("then view ends", server.process.wait(20), 0)
        else:
            process.wait(60)
            server.end()
        expect(f"farfault {command}", process.wait(60), 0)
        last = json.load(open("r.ffr"))
        expect("the file at the end", ("running" in last, last["complete"], "history" in last["runs"][0]), (False, True, True))
    for what, arguments, message in (("without a file", [], "--live: into which file? -o FILE says it"),
                                     ("into a device", ["-o", "/dev/null"], "--live: /dev/null is not a file that can be replaced")):
        got = run("run", "--live", *arguments, f"{workloads}/vectoradd", "1000")
        expect(f"--live {what}", (got.returncode, message in got.stderr), (64, True))
    refused("--live of a sweep", 64, "--live: it is for the page of a run", "--live", "a.db")
os.makedirs("alone/bin")
os.makedirs("alone/share/farfault")
shutil.copy(farfault, "alone/bin/farfault")
shutil.copy("page.html", "alone/share/farfault/report.html")
built_at, farfault = farfault, os.path.abspath("alone/bin/farfault")
refused("a page that is none", 1, "is not farfault's page", sample)
shutil.copy(os.path.join(os.path.dirname(built_at), "../share/farfault/report.html"), "alone/share/farfault/report.html")
refused("without the server", 1, "built without an HTTP server (libmicrohttpd-dev)", sample)
finish()
