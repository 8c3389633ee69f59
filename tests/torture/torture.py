#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The torture run: scripts/torture.sh BUILD [MINUTES] [--first N] [--case N] [--kinds LIST] [--jobs N] [--keep FOLDER]

Case N is the same for the same N and build: its kind, program, managers, signal, and which call fails come from N alone (when a signal arrives is
a part of the command's usual time, so it hits another place each time). --case N does one case again and shows its commands.

  program   a random program under random managers: its values are right, and `farfault sim` gives the report of `farfault run`, byte for byte
  kill      a signal at a random time, or just before a call of the C library, to record, run, sim, advise or sweep
  fail      a call of the C library fails (fail.c), in farfault or in the program's process
  full      no room: a small file system, or a limit on the size of files

After each case: no command hung or crashed; a file that was there is what it was or whole and new; nothing that has no name of its command is left;
no process is left; after anything but SIGKILL, TMPDIR is empty; an interrupted sweep goes on to the same rows. Ends with counts and, for each loss, a
line with the case's number and command. Exit status: 1 if there were losses."""

import argparse
import concurrent.futures
import csv
import json
import math
import os
import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

WATCHDOG = 240  # seconds until a command counts as hung: far beyond what any takes on a busy machine
ORPHANS = 30    # seconds until a process that is still there counts as left behind
MANAGERS = ("copy demand replay random sequential locality oracle sl tbn uvm hmm auto ats partial-single partial-multi segments cuda6 gm200 gp100 "
            "zero-copy ideal").split()
UNPAGED = {"copy", "cuda6", "gm200", "gp100", "zero-copy", "ideal"}  # managers without parts
PARTS = ["", "", "", "+gpu-memory=50%", "+gpu-memory=75%", "+evict=lru:64K", "+evict=fifo", "+evict=random:64K", "+prefetch=tbn", "+prefetch=none", "+faults=block",
         "+faults=replay:1", "+faults=batch:16", "+write-back=overlapped", "+watermark=5%:10%", "+page=2M", "+page=4K", "+unit=64K", "+link=8", "+gpu-memory=20%", "+prefetch=density:10", "+prefetch=oracle",
         "+evict=belady", "+evict=lifo:2M"]
MACHINES = "gtx480 gtx1080ti gm200 gp100 p100 v100 rtx2080ti a40 l40 h100 h200 rtx5090 b200 gh200 h100-nvme l40s-4-nvme dgx-h100 pcie-8".split()
NEED_ALL = ("oracle", "belady")  # what knows the future has every launch timed: not with --sample
KINDS = {"program": 8, "kill": 5, "fail": 8, "full": 2}
CALLS = {"alloc": 20000, "mmap": 300, "write": 300, "open": 60, "ftruncate": 12, "thread": 12, "rename": 3, "fork": 4, "pipe": 4, "folder": 8}


class Loss(Exception):
    pass


class Result:
    def __init__(self, status, out, err, seconds):
        self.status, self.out, self.err, self.seconds = status, out, err, seconds


def stat_of(pid):
    """State, parent and session of a process; None: it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return fields[0], int(fields[1]), int(fields[3])
    except (OSError, IndexError):
        return None


def session_members(session):
    members = []
    for name in os.listdir("/proc"):
        about = name.isdigit() and stat_of(name)
        if about and about[2] == session and about[0] != "Z":
            members.append(int(name))
    return members


def name_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as f:
            return f"{pid} " + f.read().replace("\0", " ")[:120]
    except OSError:
        return str(pid)


def stacks_of(pids, where):
    """What the threads of hung processes wait for, into a file."""
    with open(where, "w") as f:
        for pid in pids:
            f.write(name_of(pid) + "\n")
            if shutil.which("gdb"):
                done = subprocess.run(["timeout", "60", "gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt"], capture_output=True, text=True)
                f.write(done.stdout[-20000:] + "\n")


class Case:
    def __init__(self, torture, number):
        self.torture, self.number, self.random = torture, number, random.Random(number)
        self.kind = torture.kind or self.random.choices(list(KINDS), list(KINDS.values()))[0]
        self.folder = os.path.join(torture.work, f"case-{number}")
        self.tmp = os.path.join(self.folder, "tmp")
        self.allowed = set()  # files that may be there in the end
        self.commands, self.signals, self.failed_calls = [], 0, 0
        self.killed, self.sent, self.no_memory = False, 0, False
        self.mounted = None

    # ---- processes ----

    def environment(self, extra):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("FARFAULT_", "TORTURE_", "LD_"))}
        kept.update(TMPDIR=self.tmp, XDG_CACHE_HOME=os.path.join(self.torture.work, "cache"), FARFAULT_CHECK="1")
        kept.update(extra or {})
        return kept

    def run(self, arguments, extra=None, disturb=None, limit=None):
        """Runs a command in a session of its own to its end. disturb(process): is called when it has begun."""
        shown = " ".join([f"{k}={shlex.quote(v)}" for k, v in (extra or {}).items()] + [shlex.quote(a) for a in arguments])
        self.commands.append(shown)
        if self.torture.verbose:
            print(f"  {shown}", file=sys.stderr)

        def before():
            if limit:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        begun = time.monotonic()
        out, err = (open(os.path.join(self.folder, name), "w+b") for name in ("out", "err"))
        process = subprocess.Popen(arguments, cwd=self.folder, env=self.environment(extra), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   start_new_session=True, preexec_fn=before)
        try:
            if disturb:
                disturb(process)
            process.wait(WATCHDOG)
        except subprocess.TimeoutExpired:
            hung = session_members(process.pid)
            kept = os.path.join(self.torture.keep, f"hang-{self.number}")
            stacks_of(hung, kept)
            self.end_all(process.pid)
            process.wait()
            raise Loss(f"hang: stacks in {kept}")
        self.wait_for_orphans(process.pid)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
            file.close()
        result = Result(process.returncode, texts[0], texts[1], time.monotonic() - begun)
        self.last_error = texts[1]
        return result

    def end_all(self, session):
        for pid in session_members(session):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass

    def wait_for_orphans(self, session):
        end = time.monotonic() + ORPHANS
        while True:
            left = session_members(session)
            if not left:
                return
            if time.monotonic() > end:
                names = "; ".join(name_of(p) for p in left)
                self.end_all(session)
                raise Loss(f"processes left: {names}")
            time.sleep(0.05)

    def farfault(self, *arguments, **more):
        return self.run([self.torture.farfault, *arguments], **more)

    def good(self, *arguments, expected=0, **more):
        result = self.farfault(*arguments, **more)
        if result.status != expected:
            raise Loss(f"status {result.status}: {result.err[-300:]}")
        return result

    # ---- files ----

    def path(self, name):
        return os.path.join(self.folder, name)

    def old_files(self, *names):
        """Files of an earlier run, that a later one may only replace."""
        for name in names:
            shutil.copy(os.path.join(self.torture.base, name), self.path(name))

    def check_file(self, name):
        """What it was, or whole and new."""
        path = self.path(name)
        try:
            with open(path, "rb") as f:
                data = f.read()
        except OSError:
            if os.path.exists(os.path.join(self.torture.base, name)):
                raise Loss(f"{name} is gone")
            return
        old = os.path.join(self.torture.base, name)
        if os.path.exists(old):
            with open(old, "rb") as f:
                if f.read() == data:
                    return
        try:
            if name.endswith((".json", ".ffr")):
                json.loads(data)
            elif name.endswith(".fft"):
                self.good("trace", "check", path)
            elif name.endswith(".csv"):
                rows = list(csv.reader(data.decode().splitlines()))
                if len(rows) < 2 or len({len(r) for r in rows}) != 1:
                    raise ValueError("rows of several lengths")
            elif name.endswith(".html") and not data.rstrip().endswith(b"</html>"):
                raise ValueError("cut off")
        except (ValueError, Loss) as error:
            raise Loss(f"{name} is neither the old one nor whole: {error}")

    def check_left(self):
        """Nothing is left but what has the name of the file that was being written (after SIGKILL), or nothing."""
        names = {"out", "err", "tmp", "log", "full"} | self.allowed
        for name in os.listdir(self.folder):
            if name in names or (name.rsplit(".", 1)[0] in names and name.rsplit(".", 1)[1].isdigit()):
                continue
            named = any(name.startswith(f + ".part-") or name.startswith(f + ".tmp-") or name in (f + "-wal", f + "-shm", f + "-lock", f + "-journal") for f in names)
            said = name in getattr(self, "last_error", "")
            if not (named and (self.killed or said or "out of memory" in getattr(self, "last_error", ""))):
                raise Loss(f"left behind: {name}")
        left = os.listdir(self.tmp)
        if left and not ((self.killed or self.no_memory) and all(n.startswith("farfault-") for n in left)):
            raise Loss(f"left in TMPDIR: {left}")

    def check_end(self, result, names):
        if result.status < 0 and -result.status != self.sent:
            raise Loss(f"farfault was ended by signal {-result.status}: {result.err[-300:]}")
        for word in ("signal 11", "signal 6 ", "signal 7 ", "Assertion", "FF_ASSERT", "stack smashing", "double free", "corrupted"):
            if word in result.err:
                raise Loss(f"crash: {result.err[-400:]}")
        if result.status and -result.status != self.sent and not result.err.strip():
            raise Loss(f"status {result.status} without a message")
        for name in names:
            self.allowed.add(name)
            self.check_file(name)
        self.check_left()

    def unmount(self):
        if self.mounted:
            subprocess.run(["umount", "-l", self.mounted], check=False)
            self.mounted = None

    # ---- kinds ----

    def managers(self, most):
        chosen = []
        for _ in range(1 + self.random.randrange(most)):
            manager, part = self.random.choice(MANAGERS), self.random.choice(PARTS)
            refused = manager in UNPAGED or (manager.startswith("partial") and part.startswith("+faults=batch"))
            chosen.append(manager + ("" if refused else part))
        return ",".join(dict.fromkeys(chosen))

    def program(self, steps=None):
        return [self.torture.program, str(self.random.randrange(1 << 40))] + ([str(steps)] if steps else [])

    def do_program(self):
        pick = self.random
        devices = pick.choice([1, 1, 1, 2, 3])
        chosen = ["--memory", self.managers(5), "--machine", pick.choice(MACHINES)]
        executed = ["--devices", str(devices), *pick.choice([[], ["--threads", "1"], ["--threads", "4"]]), "--execute", pick.choice(["auto", "interpret", "interpret", "compile"])]
        if pick.random() < 0.2:
            chosen += ["--gpu-memory", pick.choice(["40%", "70%", "6M"])]
        if pick.random() < 0.2 and devices == 1 and not any(name in chosen[1] for name in NEED_ALL):
            chosen += ["--sample", pick.choice(["2", "on"])]
        names = ["run.json", "run.fft"]
        program = self.program()
        result = self.good("run", *executed, *chosen, "--json", "run.json", "--record", "run.fft", *program)
        if not result.out.startswith("checksum "):
            raise Loss(f"no checksum: {result.out[:200]}")
        with open(self.path("run.json")) as run:
            none_ran = all(one.get("error") for one in json.load(run)["runs"])  # of `run`, the status is the program's
        self.good("sim", *chosen, "--json", "sim.json", "run.fft", expected=4 if none_ran else 0)
        with open(self.path("run.json")) as run, open(self.path("sim.json")) as sim:
            one, two = (text.read().split('\n "host": {')[0] for text in (run, sim))
        if one != two:
            lines = [(a, b) for a, b in zip(one.splitlines(), two.splitlines()) if a != b][:3]
            raise Loss(f"wrong: sim differs from run: {lines}")
        if pick.random() < 0.2:
            again = self.good("record", *executed, "-o", "again.fft", *program)
            if again.out != result.out:
                raise Loss(f"wrong: the program's values differ when recorded: {again.out} {result.out}")
            names.append("again.fft")
        if pick.random() < 0.15:  # nothing is wrong in these programs
            self.good("memcheck", "--report-api-errors", "no", "--initcheck", "global", *executed, *program)
        if pick.random() < 0.15:
            self.good("racecheck", *executed, *program)
        self.check_end(result, names + ["sim.json"])

    def commands_for(self):
        """A command that writes, and its files."""
        which = self.random.choice(["record", "run", "sim", "advise", "sweep", "sweep", "memcheck", "report"])
        steps = ["--threads", str(self.random.choice([1, 2]))]
        if which == "record":
            return which, ["record", *steps, "-o", "base.fft", *self.program(60)], ["base.fft"]
        if which == "run":
            return which, ["run", *steps, "--memory", self.managers(3), "-o", "base.ffr", "--json", "base.json", "--csv", "base.csv", *self.program(60)], ["base.ffr", "base.json", "base.csv"]
        if which == "memcheck":
            return which, ["memcheck", *steps, "--report-api-errors", "no", "--json", "base.json", *self.program(30)], ["base.json"]
        if which != "report":
            self.old_files("base.fft")
        if which == "sim":
            return which, ["sim", "--memory", self.managers(3), "-o", "base.ffr", "--json", "base.json", "--csv", "base.csv", "base.fft"], ["base.ffr", "base.json", "base.csv", "base.fft"]
        if which == "advise":
            return which, ["advise", "--quick", "-o", "base.md", "base.fft"], ["base.md", "base.fft"]
        if which == "report":
            return which, ["report", self.path("base.ffr"), "--html", "base.html", "--csv", "base.csv"], ["base.html", "base.csv", "base.ffr"]
        self.old_files("study.yaml")
        return which, ["sweep", "study.yaml", "-o", "base.db", "--jobs", "2"], ["base.fft", "study.yaml", "base.db"]

    def disturbed(self, which, arguments, names, **more):
        if which == "sweep":
            self.allowed.update(["base.db"])
            names = [n for n in names if n != "base.db"]
        else:
            self.old_files(*[n for n in names if os.path.exists(os.path.join(self.torture.base, n))])
        result = self.farfault(*arguments, **more)
        if which == "sweep":
            self.unmount()
            self.finish_sweep()
        self.check_end(result, names)
        return result

    def finish_sweep(self):
        """Goes on to the rows that a sweep gives that nothing disturbed."""
        self.good("sweep", "study.yaml", "-o", "base.db", "--jobs", "2")
        rows = self.good("results", "base.db", "--csv").out
        if rows != self.torture.rows:
            raise Loss("corrupt: an interrupted sweep has other rows than a whole one")

    def do_kill(self):
        which, arguments, names = self.commands_for()
        number = self.random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGSTOP])
        group = self.random.random() < 0.5
        after = self.random.random() * self.torture.usual.get(which, 1.0)
        self.killed, self.sent = number == signal.SIGKILL, number
        if number != signal.SIGSTOP and self.random.random() < 0.4:  # at a call, not at a time
            call = self.random.choice(["folder", "open", "write", "pipe", "fork", "rename", "unlink"])
            at = int(math.exp(self.random.random() * math.log(60)))
            self.note = f"{signal.Signals(number).name} before {call} call {at}"
            extra = {"LD_PRELOAD": self.torture.fail, "TORTURE_FAIL": f"{call}:{at}={int(number)}", "TORTURE_FAIL_LOG": self.path("log"), "TORTURE_FAIL_IN": "farfault"}
            self.disturbed(which, arguments, names, extra=extra)
            return

        def disturb(process):
            time.sleep(after)
            send = os.killpg if group else os.kill
            try:
                send(process.pid, number)
                self.signals += 1
                if number == signal.SIGSTOP:
                    time.sleep(0.3)
                    send(process.pid, signal.SIGCONT)
            except ProcessLookupError:
                pass

        self.note = f"{signal.Signals(number).name} to {'its group' if group else 'it'} after {after:.3f} s"
        result = self.disturbed(which, arguments, names, disturb=disturb)
        if number == signal.SIGSTOP and result.status:
            raise Loss(f"stopped and continued: status {result.status}: {result.err[-300:]}")

    def do_fail(self):
        which, arguments, names = self.commands_for()
        call = self.random.choice(list(CALLS) + ["alloc"] * 3)
        number = int(math.exp(self.random.random() * math.log(CALLS[call]))) or 1
        onwards = "+" if self.random.random() < 0.2 else ""
        self.no_memory = call in ("alloc", "folder") and onwards  # then not even a folder can be listed
        extra = {"LD_PRELOAD": self.torture.fail, "TORTURE_FAIL": f"{call}:{number}{onwards}", "TORTURE_FAIL_LOG": self.path("log")}
        extra["TORTURE_FAIL_IN"] = self.random.choice(["farfault", os.path.basename(self.torture.program)]) if which in ("record", "run", "memcheck") else "farfault"
        self.disturbed(which, arguments, names, extra=extra)

    def do_full(self):
        which, arguments, names = self.commands_for()
        room = int(math.exp(self.random.uniform(math.log(4096), math.log(2 << 20))))
        where = self.random.choice(["limit", "tmp", "outputs"])
        if where != "limit" and self.torture.may_mount:
            self.note = f"a file system of {room} bytes for {where}"
            place = self.tmp if where == "tmp" else self.path("full")
            os.makedirs(place, exist_ok=True)
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={room}", "none", place], check=True)
            self.mounted = place
            if where == "outputs":
                arguments = [f"full/{a}" if a in names and a not in ("base.fft", "study.yaml") or (which == "record" and a == "base.fft") else a for a in arguments]
            if which == "sweep" and where == "outputs":
                result = self.farfault(*arguments)
                for name in os.listdir(place):
                    os.unlink(os.path.join(place, name))
                names = ["base.fft", "study.yaml"]
                self.check_end(result, names)
                return
            self.disturbed(which, arguments, names)
            if where == "outputs":
                for name in os.listdir(place):
                    if name not in names and not name.startswith(tuple(n + ".part-" for n in names)):
                        raise Loss(f"left behind on a full file system: {name}")
                    if name.endswith((".json", ".ffr")):
                        with open(os.path.join(place, name)) as f:
                            json.load(f)
            return
        self.note = f"files of at most {room} bytes"
        self.disturbed(which, arguments, names, limit=room)

    def do(self):
        os.makedirs(self.tmp)
        self.note = ""
        try:
            getattr(self, "do_" + self.kind)()
            return None
        except Loss as loss:
            return str(loss)
        except Exception as error:  # a half-written file that cannot be parsed, and whatever else
            return f"{type(error).__name__}: {error}"
        finally:
            self.unmount()
            if os.path.exists(self.path("log")):
                with open(self.path("log")) as f:
                    count = len(f.readlines())
                if self.kind == "kill":
                    self.signals += count
                else:
                    self.failed_calls = count


class Torture:
    def __init__(self, arguments):
        build = os.path.abspath(arguments.build)
        self.farfault = os.path.join(build, "bin/farfault")
        self.program = os.path.join(build, "tests/torture/torture_program")
        self.fail = os.path.join(build, "tests/torture/torture_fail.so")
        self.verbose, self.kind = arguments.case is not None, arguments.kind
        self.keep = os.path.abspath(arguments.keep or os.path.join(build, "torture"))
        os.makedirs(self.keep, exist_ok=True)
        self.work = tempfile.mkdtemp(prefix="torture-")
        self.base = os.path.join(self.work, "base")
        self.usual, self.rows, self.may_mount = {}, None, False
        self.lock, self.counts, self.losses = threading.Lock(), {}, []

    def prepare(self):
        """The files that later runs find, how long each command takes, and whether this user may mount."""
        os.makedirs(os.path.join(self.base, "tmp"))
        case = Case(self, 0)
        case.folder, case.tmp = self.base, os.path.join(self.base, "tmp")
        with open(os.path.join(self.base, "study.yaml"), "w") as f:
            f.write("title: torture\ntrace: base.fft\nmachine: [gtx480, v100]\ngrids:\n  - memory: [copy, demand, ideal, tbn]\n  - memory: [uvm, auto, replay]\n    gpu-memory: [5M, 8M]\n")
        program = [self.program, "1", "60"]
        self.usual["record"] = case.good("record", "--threads", "1", "-o", "base.fft", *program).seconds
        self.usual["run"] = case.good("run", "--memory", "copy,uvm", "-o", "base.ffr", "--json", "base.json", "--csv", "base.csv", *program).seconds
        self.usual["sim"] = case.good("sim", "--memory", "copy,uvm,auto", "base.fft").seconds
        self.usual["memcheck"] = case.good("memcheck", "--report-api-errors", "no", *program).seconds
        self.usual["advise"] = case.good("advise", "--quick", "-o", "base.md", "base.fft").seconds
        self.usual["report"] = case.good("report", "base.ffr", "--html", "base.html").seconds
        self.usual["sweep"] = case.good("sweep", "study.yaml", "-o", "reference.db", "--jobs", "2").seconds
        self.rows = case.good("results", "reference.db", "--csv").out
        probe = os.path.join(self.work, "probe")
        os.makedirs(probe)
        self.may_mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", probe], capture_output=True).returncode == 0
        if self.may_mount:
            subprocess.run(["umount", probe], check=False)

    def do(self, number):
        case = Case(self, number)
        loss = case.do()
        with self.lock:
            for name, count in (("cases", 1), (case.kind, 1), ("commands", len(case.commands)), ("signals", case.signals), ("failed calls", case.failed_calls)):
                self.counts[name] = self.counts.get(name, 0) + count
            if loss:
                self.losses.append((number, case, loss))
                self.say("")
                last = case.commands[-1] if case.commands else "no command"
                print(f"LOSS in case {number} ({case.kind}{', ' + case.note if case.note else ''}): {loss}\n  {last}", flush=True)
                shutil.rmtree(os.path.join(self.keep, f"case-{number}"), ignore_errors=True)
                shutil.copytree(case.folder, os.path.join(self.keep, f"case-{number}"), symlinks=True, ignore=lambda d, n: [x for x in n if d == case.tmp])
        shutil.rmtree(case.folder, ignore_errors=True)

    def say(self, text):
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    def progress(self, end):
        c = self.counts
        self.say(f"{c.get('cases', 0)} cases, {c.get('signals', 0)} signals, {c.get('failed calls', 0)} failed calls, {len(self.losses)} losses; "
                 f"{max(0, int(end - time.monotonic())) // 60} min left")

    def run(self, first, minutes, jobs):
        end = time.monotonic() + minutes * 60
        number = first
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            running = set()
            while time.monotonic() < end:
                while len(running) < jobs:
                    running.add(pool.submit(self.do, number))
                    number += 1
                done, running = concurrent.futures.wait(running, 1, concurrent.futures.FIRST_COMPLETED)
                for future in done:
                    future.result()
                self.progress(end)
        self.say("")

    def summary(self):
        c = self.counts
        hangs = sum(loss.startswith("hang") for _, _, loss in self.losses)
        print(f"{c.get('cases', 0)} cases: {c.get('program', 0)} programs, {c.get('kill', 0)} with a signal ({c.get('signals', 0)} sent), "
              f"{c.get('fail', 0)} with a failing call ({c.get('failed calls', 0)} failed), {c.get('full', 0)} without room; {c.get('commands', 0)} commands")
        print(f"{hangs} hangs, {len(self.losses) - hangs} other losses")
        for number, case, loss in self.losses:
            print(f"  --case {number}{' --kind ' + self.kind if self.kind else ''}: {loss.splitlines()[0][:160]}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("minutes", nargs="?", type=float, default=30)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--case", type=int)
    parser.add_argument("--kind", choices=list(KINDS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep")
    arguments = parser.parse_args()
    torture = Torture(arguments)
    try:
        torture.prepare()
        if arguments.case is not None:
            torture.do(arguments.case)
        else:
            torture.run(arguments.first, arguments.minutes, arguments.jobs)
        torture.summary()
        return 1 if torture.losses else 0
    finally:
        shutil.rmtree(torture.work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
