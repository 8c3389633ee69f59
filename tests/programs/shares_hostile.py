# SPDX-License-Identifier: Apache-2.0
"""shares_hostile.py SOCKET: says to a broker, one of whose shares is held, what no client says, in pieces, in a mess, or not at all; ends with an error if it
does not stand it. shares_hostile.py SOCKET few: the same for a broker that has fewer descriptors than it would need, silent clients only."""
import os
import random
import resource
import select
import signal
import socket
import struct
import sys
import time

path = sys.argv[1]


def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.connect(path)  # waits while the broker has not let in those before
    s.settimeout(5)
    return s


def frame(version, kind, payload):
    return struct.pack("<IHH", len(payload) + 4, version, kind) + payload


def answer(s):
    """All that comes until the broker closes; b"" also if it closes with our bytes unread."""
    got = b""
    try:
        while True:
            more = s.recv(4096)
            if not more:
                return got
            got += more
    except ConnectionResetError:
        return got


def kind_of(got):
    return struct.unpack("<IHH", got[:8])[1:]


def text(t):
    return struct.pack("<H", len(t)) + t


def ask(gpu=b"gpu0", gpu_sms=20, gpu_colours=8, sms=1, colours=1, step=1, timeout=0, name=b"x"):
    return text(gpu) + struct.pack("<6Q", gpu_sms, gpu_colours, sms, colours, step, timeout) + text(name)


def broker_process():
    """Who listens at the other end."""
    s = connect()
    return struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


# This script's own descriptors: as many as it may have.
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

if sys.argv[2:] == ["few"]:
    # Whom it has no descriptors for is told so at once; those it let in stay, and when they have gone there is room again.
    silent = [connect() for _ in range(100)]
    refused = [s for s in silent if select.select([s], [], [], 0.05)[0]]
    assert 60 < len(refused) < 100, len(refused)
    for s in refused:
        got = answer(s)
        assert kind_of(got) == (1, 5) and b"no file descriptors left" in got, got
    for s in silent:
        s.close()
    s = connect()
    s.sendall(frame(1, 1, ask()))
    assert kind_of(s.recv(4096)) == (1, 3)
    print("the broker refuses whom it has no descriptors for")
    sys.exit(0)

# A version that is not its own: refused, with its own version in the head (kind 5).
s = connect()
s.sendall(frame(999, 1, b"whatever that is"))
got = answer(s)
assert kind_of(got) == (1, 5) and b"version 999 is asked for" in got, got
print("the broker answers a foreign version with a refusal")

# What is no message ends the connection, without an answer.
for bad in [b"\0" * 64, b"\xff" * 2000, b"GET / HTTP/1.1\r\n\r\n", frame(1, 99, b""), frame(1, 2, b"more"), frame(1, 1, ask()[:-1]), frame(1, 1, ask() + b"x"),
            frame(1, 1, ask(gpu=b"g\0u")), frame(1, 1, ask(gpu=b"g\x1b[2J")), frame(1, 1, ask(name=b"n" * 64)), frame(1, 1, ask(gpu_sms=1025)),
            frame(1, 1, ask(gpu_colours=2**64 - 1)), frame(1, 3, struct.pack("<3Q", 2000, 0, 0))]:
    s = connect()
    try:
        s.sendall(bad)
    except (BrokenPipeError, ConnectionResetError):
        pass
    got = answer(s)
    assert got == b"", (bad, got)

# Messages that cannot be met, or that only a broker sends: refused.
for odd in [frame(1, 1, ask(sms=0)), frame(1, 1, ask(sms=21)), frame(1, 1, ask(gpu=b"other")), frame(1, 1, ask(colours=9)), frame(1, 1, ask(gpu_sms=0)),
            frame(1, 3, struct.pack("<3Q", 0, 1, 1)), frame(1, 8, b"")]:
    s = connect()
    s.sendall(odd)
    assert kind_of(answer(s)) == (1, 5), odd

# Byte by byte is as good as at once; a second request on a connection that holds a share ends it.
s = connect()
for byte in frame(1, 1, ask(sms=2)):
    s.sendall(bytes([byte]))
assert kind_of(s.recv(4096)) == (1, 3)
s.sendall(frame(1, 1, ask()))
assert kind_of(answer(s)) == (1, 5)

# Any bytes at all, the same in each run.
random.seed(7)
for _ in range(300):
    s = connect()
    good = bytearray(frame(1, random.choice([1, 1, 1, 2]), ask()))
    for _ in range(random.randrange(4)):
        good[random.randrange(len(good))] = random.randrange(256)
    try:
        s.sendall(good[: random.randrange(len(good) + 1)])
        s.close()
    except (BrokenPipeError, ConnectionResetError):
        pass

# 256 clients are there, all but the holder silent, the last five of them come while the broker sleeps and 20 others come and go: clients that have gone take
# no place. One more is told that there are too many.
broker = broker_process()
silent = [connect() for _ in range(250)]
s = connect()
s.sendall(frame(1, 2, b""))
assert answer(s)  # so those before have been let in, and the next 25 do not wait for it to wake up
os.kill(broker, signal.SIGSTOP)
for _ in range(20):
    connect().close()
silent += [connect() for _ in range(5)]
os.kill(broker, signal.SIGCONT)
time.sleep(0.1)  # it is awake again
told = connect()
got = answer(told)
assert kind_of(got) == (1, 5) and b"256 processes" in got, got
assert not select.select(silent, [], [], 0)[0]
for s in silent:
    s.close()
