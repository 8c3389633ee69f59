# SPDX-License-Identifier: Apache-2.0
# on_terminal.py COLUMNS COMMAND...: runs the command on a terminal of so many columns and prints what that shows.
import fcntl, os, pty, struct, sys, termios
columns = int(sys.argv[1])
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    os.environ.pop("COLUMNS", None)
    os.execvp(sys.argv[2], sys.argv[2:])
out = b""
while True:
    try: b = os.read(fd, 65536)
    except OSError: break
    if not b: break
    out += b
sys.stdout.write(out.decode().replace("\r\n", "\n"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
