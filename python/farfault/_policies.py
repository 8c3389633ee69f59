# SPDX-License-Identifier: Apache-2.0
"""Paging policies in Python: prefetchers and evictors for trying ideas.

farfault loads a plug-in (src/bridge/), which asks this process over a socket, once for each call of include/farfault/policy.h:

    the plug-in: CALL, what the view shows -->  this process: methods of a Policy, which may ask more:
                                            <-- ASK_... (a block, an allocation, a last use)
                 ANSWER                     -->
                                            <-- DONE, what is proposed

A message is two 32-bit words, its kind and how many 64-bit words follow. Each simulation has a connection, a thread and a Policy of its own.
"""

from __future__ import annotations

import os
import secrets
import socket
import struct
import threading
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from . import _library

PAGE_BYTES = 4096
GROUP_BYTES = 65536
BLOCK_BYTES = 2097152

_VERSION = 1
# kinds of messages, as in src/bridge/policy_bridge.c
(_HELLO, _READY, _REFUSED, _DONE, _ANSWER, _FAULTED, _IDLE, _EVICT, _CLEAN, _ARRIVED, _LEFT, _SETTLED, _LAUNCHING, _REACHED, _HOST_FAULTED,
 _ASK_BLOCK, _ASK_ALLOCATION, _ASK_NEXT_ALLOCATION, _ASK_LAST_USE, _ASK_BLANK, _ASK_RANDOM) = range(1, 22)
_METHODS = {_FAULTED: "faulted", _IDLE: "idle", _EVICT: "evict", _CLEAN: "clean", _ARRIVED: "arrived", _LEFT: "left", _SETTLED: "settled",
            _LAUNCHING: "launching", _REACHED: "reached", _HOST_FAULTED: "host_faulted"}
_VIEW_WORDS = 10
_WORDS_MAX = 1 << 20
_PATIENCE = 2.0  # seconds


class Fault(NamedTuple):
    """A far-fault that is being served."""

    address: int
    time: int
    sm: int


class Allocation(NamedTuple):
    """An allocation of the program's; number: from 1, in the order in which it made them."""

    address: int
    bytes: int
    number: int


class Block(NamedTuple):
    """A block of 2 MiB as the pager sees it: each set of pages is an int, bit i is page i of 512. `moving` is a part of `valid`."""

    address: int
    mapped: int
    valid: int
    moving: int
    dirty: int


class View:
    """What a policy may ask, during a call. Times are picoseconds, sizes bytes."""

    def __init__(self, connection: "_Connection", words: Sequence[int]) -> None:
        self._connection = connection
        self._proposed: List[int] = []
        (self.now, self.unit_bytes, self.capacity, self.free_bytes, self.running_first, self.running_last, self.queued, self.group_time,
         self.service_bytes, by_host) = words
        self.by_host = bool(by_host)

    def propose(self, address: int, bytes: int) -> None:
        """Proposes to move what the range holds (in `evict`: out). Carried out when the method has returned, in order, as far as possible."""
        self._proposed += (address, bytes)

    def block(self, address: int) -> Block:
        """The block around the address."""
        words = self._connection.ask(_ASK_BLOCK, [address], 33)
        pages = [sum(word << 64 * i for i, word in enumerate(words[k:k + 8])) for k in (1, 9, 17, 25)]
        return Block(words[0], *pages)

    def allocation(self, address: int) -> Optional[Allocation]:
        """The allocation that has the address; None: there is none."""
        found, *words = self._connection.ask(_ASK_ALLOCATION, [address], 4)
        return Allocation(*words) if found else None

    def next_allocation(self, address: int) -> Optional[Allocation]:
        """The first that begins at the address or above; None: there is none."""
        found, *words = self._connection.ask(_ASK_NEXT_ALLOCATION, [address], 4)
        return Allocation(*words) if found else None

    def last_use(self, address: int, bytes: int) -> int:
        """Of the range, by the GPU; 0: never."""
        return self._connection.ask(_ASK_LAST_USE, [address, bytes], 1)[0]

    def blank_bytes(self, address: int, bytes: int) -> int:
        """Of what is absent of the range, the bytes that need no transfer to come."""
        return self._connection.ask(_ASK_BLANK, [address, bytes], 1)[0]

    def random(self) -> int:
        """64 bits; the same sequence in every run."""
        return self._connection.ask(_ASK_RANDOM, [], 1)[0]


class Policy:
    """A prefetcher or an evictor: make a class of it, with some of these methods, and give the class as `prefetch` or `evict`.

    include/farfault/policy.h says when each is called and what it may propose. A prefetcher has faulted or idle, an evictor has evict. An object
    is made for every simulation (and some only to see that it can be), and keeps what it needs to remember in itself. The same calls must get the
    same answers: chance is view.random(). A class given as prefetch and as evict has one object for both.
    """

    def faulted(self, view: View, faults: List[Fault]) -> None:
        """Far-faults are about to be served: propose what comes with them."""

    def idle(self, view: View) -> None:
        """The link to the GPU has nothing to do: propose a piece, or nothing."""

    def evict(self, view: View, bytes: int) -> None:
        """So many bytes must go at least: propose which."""

    def clean(self, view: View) -> None:
        """The link to the host has nothing to do: propose what is copied out and stays."""

    def arrived(self, view: View, address: int, bytes: int) -> None:
        """Pages have come."""

    def left(self, view: View, address: int, bytes: int) -> None:
        """Pages have gone."""

    def settled(self, view: View, address: int, bytes: int) -> None:
        """Pages that were moving can be evicted from now on."""

    def launching(self, view: View, declared: List[Allocation]) -> None:
        """A launch is about to begin, whose arguments point into these."""

    def reached(self, view: View, group: int, bytes: int) -> None:
        """So much of a group of 64 KiB was reached over the link."""

    def host_faulted(self, view: View, address: int, there: int) -> None:
        """The program's own access has faulted; there: the pages of the block that the host has, a bit each."""


class _Connection:
    """One simulation's policy."""

    def __init__(self, connection: socket.socket, makers: Dict[str, Callable[[], Policy]]) -> None:
        self._socket = connection
        self._makers = makers
        self._policy: Optional[Policy] = None

    def serve(self) -> None:
        while True:
            message = self._receive()
            if message is None:
                return
            self._answer(*message)

    def ask(self, kind: int, words: List[int], count: int) -> Tuple[int, ...]:
        self._send(kind, words)
        message = self._receive()
        if message is None or message[0] != _ANSWER or len(message[1]) != count:
            raise _library.FailedError("the simulation ended while its policy asked it something")
        return message[1]

    def _answer(self, kind: int, words: Tuple[int, ...]) -> None:
        if kind == _HELLO:
            self._make(words)
            return
        view = View(self, words[:_VIEW_WORDS])
        rest = words[_VIEW_WORDS:]
        policy = self._policy
        assert policy is not None
        triples = list(zip(rest[::3], rest[1::3], rest[2::3]))
        if kind == _FAULTED:
            policy.faulted(view, [Fault(*each) for each in triples])
        elif kind == _LAUNCHING:
            policy.launching(view, [Allocation(*each) for each in triples])
        elif kind == _HOST_FAULTED:
            policy.host_faulted(view, rest[0], sum(word << 64 * i for i, word in enumerate(rest[1:9])))
        else:
            getattr(policy, _METHODS[kind])(view, *rest)
        proposed = [word if 0 <= word < 1 << 64 else 0 for word in view._proposed]
        self._send(_DONE, proposed)

    def _make(self, words: Tuple[int, ...]) -> None:
        name = struct.pack(f"<{len(words) - 1}Q", *words[1:]).rstrip(b"\0").decode("utf-8", "replace")
        maker = self._makers.get(name)
        if words[0] != _VERSION or maker is None:
            text = f"there is no policy {name} here" if maker is None else f"the plug-in is of version {words[0]}, not {_VERSION}"
            padded = text.encode()[:200] + b"\0" * 8
            padded = padded[:len(padded) // 8 * 8]
            self._send(_REFUSED, struct.unpack(f"<{len(padded) // 8}Q", padded))
            return
        self._policy = maker()
        # what is not said by the class need not be asked
        own = [kind for kind, method in _METHODS.items() if getattr(type(self._policy), method, None) is not getattr(Policy, method)]
        self._send(_READY, [sum(1 << kind for kind in own)])

    def _send(self, kind: int, words: Sequence[int]) -> None:
        self._socket.sendall(struct.pack(f"<II{len(words)}Q", kind, len(words), *words))

    def _receive(self) -> Optional[Tuple[int, Tuple[int, ...]]]:
        head = self._exactly(8)
        if head is None:
            return None
        kind, count = struct.unpack("<II", head)
        body = self._exactly(8 * count) if count <= _WORDS_MAX else None
        return None if body is None else (kind, struct.unpack(f"<{count}Q", body))

    def _exactly(self, count: int) -> Optional[bytes]:
        parts = []
        while count:
            part = self._socket.recv(count)
            if not part:
                return None
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


class PolicyServer:
    """Answers for the policies of one call, from `with` to its end. Without a policy it does nothing."""

    def __init__(self) -> None:
        self._makers: Dict[str, Callable[[], Policy]] = {}
        self._address = f"farfault-policies-{os.getpid()}-{secrets.token_hex(8)}"
        self._listener: Optional[socket.socket] = None
        self._threads: List[threading.Thread] = []
        self._open: Set[socket.socket] = set()
        self._lock = threading.Lock()
        self._exception: Optional[BaseException] = None
        self._closing = False

    def name_of(self, maker: Callable[[], Policy]) -> str:
        """What the command is given for the policy: the plug-in with the policy's name as its argument."""
        plugin = _library.library_file().parent / "farfault" / "policies" / "python.so"
        if not plugin.exists():
            raise _library.NotInstalledError(f"{plugin}: is not there: policies in Python need it")
        base = "".join(c if c.isalnum() and c.isascii() else "_" for c in getattr(maker, "__name__", type(maker).__name__))
        name, number = base, 1
        while self._makers.get(name, maker) is not maker:
            number += 1
            name = f"{base}_{number}"
        self._makers[name] = maker
        return f"{plugin}:{name}"

    def variables(self) -> Dict[str, str]:
        return {"FARFAULT_POLICIES": self._address} if self._makers else {}

    def failed(self) -> bool:
        """A policy has raised an exception."""
        return self._exception is not None

    def check(self) -> None:
        """Raises what a policy has raised."""
        if self._exception is not None:
            raise self._exception

    def __enter__(self) -> "PolicyServer":
        if self._makers:
            self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._listener.bind(b"\0" + self._address.encode())  # a name that is no file: nothing to remove
            self._listener.listen(64)
            self._start(self._accept)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._listener is None:
            return
        with self._lock:
            self._closing = True
            for each in self._open:
                each.shutdown(socket.SHUT_RDWR)
        try:
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept
        except OSError:
            pass
        for thread in list(self._threads):
            thread.join(_PATIENCE)  # a policy that never returns is left behind
        self._listener.close()

    def _start(self, target: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=target, args=arguments, name="farfault policy", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        assert self._listener is not None
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            user = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
            with self._lock:
                if self._closing or user != os.getuid():
                    connection.close()
                    continue
                self._open.add(connection)
                self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        try:
            _Connection(connection, self._makers).serve()
        except ConnectionError:
            pass  # the simulation has ended
        except BaseException as error:  # of a policy: raised where it was asked for
            if not self._closing and self._exception is None:
                self._exception = error
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()
