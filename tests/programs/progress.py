# SPDX-License-Identifier: Apache-2.0
# progress.py FARFAULT PRETENDER: the progress line beside a program that writes to the same terminal. A terminal of 10 rows is
# played here, with what a line of ours needs of one: what it shows while the program runs, at its end, after Ctrl-C and after Ctrl-Z.
import fcntl, os, pty, re, select, signal, struct, sys, termios, time

ROWS, COLUMNS = 10, 80


class Terminal:
    """The rows of a terminal, its cursor, and the region that scrolls; what left it at the top is in `gone`."""

    def __init__(self):
        self.rows = [[" "] * COLUMNS for _ in range(ROWS)]
        self.row = self.column = 0
        self.top, self.bottom = 0, ROWS - 1
        self.saved, self.gone, self.rest = (0, 0), [], ""

    def index(self):
        if self.row == self.bottom:
            self.gone.append("".join(self.rows.pop(self.top)).rstrip())
            self.rows.insert(self.bottom, [" "] * COLUMNS)
        elif self.row < ROWS - 1:
            self.row += 1

    def control(self, numbers, what):
        n = [int(x) for x in numbers.split(";") if x]
        if what == "K":
            first = 0 if n == [2] else self.column
            self.rows[self.row][first:] = [" "] * (COLUMNS - first)
        elif what == "H":
            self.row, self.column = (n + [1, 1])[0] - 1, (n + [1, 1])[1] - 1
        elif what == "A":
            self.row = max(self.row - (n or [1])[0], 0)
        elif what == "r":
            self.top, self.bottom = (n[0] - 1, n[1] - 1) if n else (0, ROWS - 1)
            self.row = self.column = 0
        elif what not in "m":
            raise SystemExit(f"an escape that this terminal does not know: [{numbers}{what}")

    def feed(self, text):
        text = self.rest + text
        self.rest = ""
        at = 0
        while at < len(text):
            escape = re.compile(r"\033(?:\[([0-9;?]*)([A-Za-z])|([78DM]))").match(text, at)
            if escape:
                if escape[2]: self.control(escape[1], escape[2])
                elif escape[3] == "7": self.saved = (self.row, self.column)
                elif escape[3] == "8": self.row, self.column = self.saved
                elif escape[3] == "D": self.index()
                at = escape.end()
                continue
            c = text[at]
            if c == "\033":
                self.rest = text[at:]
                return
            at += 1
            if c == "\n": self.index()
            elif c == "\r": self.column = 0
            elif c >= " " and self.column < COLUMNS:
                self.rows[self.row][self.column] = c
                self.column += 1

    def shown(self):
        return ["".join(row).rstrip() for row in self.rows]


def failed(what, terminal):
    sys.exit(f"progress.py: {what}; the terminal shows\n" + "\n".join(f"|{row}" for row in terminal.gone + terminal.shown()))


class Run:
    def __init__(self, program):
        self.terminal, self.bytes = Terminal(), b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            os.environ["TERM"] = "xterm"
            os.environ.pop("COLUMNS", None)
            os.execv(sys.argv[1], [sys.argv[1], "run", program])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))

    def read(self, until, limit=30):
        """Until that holds of the terminal; False: until the end."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            if until and until(self.terminal): return True
            if select.select([self.fd], [], [], 0.1)[0]:
                try: more = os.read(self.fd, 65536)
                except OSError: more = b""
                if not more: return not until
                self.bytes += more
                self.terminal.feed(more.decode())
        return False

    def status(self):
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def has_line(terminal): return terminal.shown()[-1].startswith("farfault: launch 1 saxpy: 50 % of 10 blocks")


def program(name, what):
    with open(name, "w") as file:
        file.write(f"""#!/bin/sh
# launches, blocks done, blocks in all, instructions, simulated time, done; the kernel's name
{{ printf '\\001\\0\\0\\0\\0\\0\\0\\0\\005\\0\\0\\0\\0\\0\\0\\0\\012\\0\\0\\0\\0\\0\\0\\0'; head -c 24 /dev/zero; printf 'saxpy'; }} |
  dd of="$FARFAULT_PROGRESS" conv=notrunc 2>/dev/null
{what}
""")
    os.chmod(name, 0o755)
    return "./" + name


# What the program writes, in pieces of lines and more lines than the terminal has, stays as it wrote it.
lines = [f"row {i} of the program's" for i in range(1, 15)]
run = Run(program("writes", f"""printf 'a begin, '; sleep 2; echo 'and its end'
i=1; while [ $i -le 14 ]; do echo "row $i of the program's"; sleep 0.05; i=$((i + 1)); done
printf 'no line end'; sleep 1; echo; exec '{sys.argv[2]}' 'sleep 0.1'"""))
if not run.read(has_line): failed("no progress line in the last row", run.terminal)
if run.terminal.shown()[0] != "a begin,": failed("the program's line is not as it was", run.terminal)
if not run.read(lambda t: "no line end" in t.shown()[ROWS - 2]): failed("the program's rows do not end above the line", run.terminal)
if not run.read(has_line, 2): failed("the progress line is gone", run.terminal)
if not run.read(None): failed("no end", run.terminal)
whole = run.terminal.gone + run.terminal.shown()
if whole[:17] != ["a begin, and its end"] + lines + ["no line end"] + whole[16:17]: failed("what the program wrote is not whole", run.terminal)
if any("launch 1" in row for row in whole): failed("the progress line stayed", run.terminal)
if (run.terminal.top, run.terminal.bottom) != (0, ROWS - 1): failed("the terminal scrolls a part only", run.terminal)
if run.status(): failed("a failure", run.terminal)

# Ctrl-C ends both; nothing of the line stays, and the next prompt is behind what the program wrote last.
run = Run(program("waits", "echo waiting; exec sleep 60"))
if not run.read(has_line): failed("no progress line", run.terminal)
os.write(run.fd, b"\x03")
run.read(None)
shown = run.terminal.shown()
if any("launch 1" in row for row in shown) or run.terminal.bottom != ROWS - 1: failed("Ctrl-C leaves the line", run.terminal)
if shown[0] != "waiting" or any(shown[3:]) or (run.terminal.row, run.terminal.column) != (3, 0): failed("the cursor is not where the next prompt belongs", run.terminal)
if run.status() == 0: failed("Ctrl-C is no success", run.terminal)

# Ctrl-Z gives the whole terminal back; with fg the line comes again.
run = Run(program("stops", "echo stopping; exec sleep 60"))
if not run.read(has_line): failed("no progress line", run.terminal)
os.kill(run.pid, signal.SIGTSTP)
if not run.read(lambda t: t.bottom == ROWS - 1 and not any("launch 1" in row for row in t.shown())): failed("Ctrl-Z leaves the line", run.terminal)
os.waitpid(run.pid, os.WUNTRACED)
os.killpg(os.getpgid(run.pid), signal.SIGCONT)
if not run.read(has_line): failed("after fg there is no line", run.terminal)
os.write(run.fd, b"\x03")
run.read(None)
if run.terminal.bottom != ROWS - 1: failed("the terminal scrolls a part only", run.terminal)
run.status()
print("progress.py: all good")
