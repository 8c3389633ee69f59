# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's NCCL over 2 and 4 virtual GPUs, against what each collective is defined to give: in one process by groups, with a thread per GPU,
and with a process per GPU.

    check_nccl.py                    all checks
    check_nccl.py member R N FILE    rank R of N of such a process; FILE has the identifier
    check_nccl.py traffic N          one all-reduce of 16 MiB, for a simulation
    check_nccl.py compare N WAY JSON what that moved over the links, against the closed form; WAY is peers or host
"""
import ctypes
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

from check import check

FOLDER = list(importlib.util.find_spec("nvidia.nccl").submodule_search_locations)[0]
nccl = ctypes.CDLL(os.path.join(FOLDER, "lib", "libnccl.so.2"))
cuda = ctypes.CDLL("libcudart.so.13")
nccl.ncclGetErrorString.restype = nccl.ncclGetLastError.restype = cuda.cudaGetErrorString.restype = ctypes.c_char_p
COUNT = 1003
SUM, PROD, MAX, MIN, AVG = range(5)
OPERATIONS = {"sum": SUM, "prod": PROD, "max": MAX, "min": MIN, "avg": AVG}
TYPES = {"int8": 0, "uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5, "float16": 6, "float32": 7, "float64": 8, "bfloat16": 9}


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, UniqueId, ctypes.c_int]


def ask(function, *arguments):
    result = getattr(nccl, function)(*arguments)
    if result:
        raise RuntimeError(f"{function}: {nccl.ncclGetErrorString(result).decode()}: {nccl.ncclGetLastError(None).decode()}")


def run(function, *arguments):
    result = getattr(cuda, function)(*arguments)
    if result:
        raise RuntimeError(f"{function}: {cuda.cudaGetErrorString(result).decode()}")


def pack(values, name):
    """The bytes of a type; bfloat16 is the upper half of float32, and all values here have room in it."""
    if name == "bfloat16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(name)


def unpack(array, name):
    return (array.astype(np.uint32) << 16).view(np.float32) if name == "bfloat16" else array


class Rank:
    """A GPU with its communicator, a stream, and memory for two arrays."""

    def __init__(self, device, communicator=None):
        self.device, self.communicator, self.stream = device, communicator, ctypes.c_void_p()
        self.memory = []
        run("cudaSetDevice", device)
        run("cudaStreamCreateWithFlags", ctypes.byref(self.stream), 1)

    def room(self, size):
        pointer = ctypes.c_void_p()
        run("cudaSetDevice", self.device)
        run("cudaMalloc", ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)))
        self.memory.append(pointer)
        return pointer

    def put(self, array):
        pointer = self.room(array.nbytes)
        run("cudaMemcpy", pointer, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes), 1)
        return pointer

    def get(self, pointer, like):
        array = np.empty_like(like)
        run("cudaSetDevice", self.device)
        run("cudaStreamSynchronize", self.stream)
        run("cudaMemcpy", ctypes.c_void_p(array.ctypes.data), pointer, ctypes.c_size_t(array.nbytes), 2)
        return array

    def clear(self):
        run("cudaSetDevice", self.device)
        for pointer in self.memory:
            run("cudaFree", pointer)
        self.memory = []

    def end(self):
        ask("ncclCommDestroy", self.communicator)


def values_of(rank, count=COUNT, name="float32"):
    return pack((np.arange(count) * 7 + rank * 3) % 4 + 1, name)


def together(parts, name, operation):
    """What a reduction of these arrays is."""
    values = [unpack(part, name).astype(np.float64) for part in parts]
    by = {SUM: np.add, PROD: np.multiply, MAX: np.maximum, MIN: np.minimum, AVG: np.add}[operation]
    result = values[0]
    for value in values[1:]:
        result = by(result, value)
    if operation == AVG:
        result = result / len(parts)
        result = np.trunc(result) if "int" in name else result
    if name in ("int8", "uint8"):
        result = result.astype(np.int64).astype(name)
    return pack(result, name)


# Each collective: (what rank `me` of `ranks` calls, what it must get). Both are given the rank objects of this process.
def all_reduce(me, ranks, rank, name, operation):
    given = values_of(me, name=name)
    send, receive = rank.put(given), rank.room(given.nbytes)
    ask("ncclAllReduce", send, receive, ctypes.c_size_t(COUNT), TYPES[name], operation, rank.communicator, rank.stream)
    return receive, together([values_of(r, name=name) for r in range(ranks)], name, operation)


def reduce(me, ranks, rank):
    given, root = values_of(me), ranks - 1
    send, receive = rank.put(given), rank.put(np.zeros_like(given))
    ask("ncclReduce", send, receive, ctypes.c_size_t(COUNT), TYPES["float32"], SUM, root, rank.communicator, rank.stream)
    return receive, together([values_of(r) for r in range(ranks)], "float32", SUM) if me == root else np.zeros_like(given)


def broadcast(me, ranks, rank):
    root = ranks // 2
    send, receive = rank.put(values_of(me)), rank.room(4 * COUNT)
    ask("ncclBroadcast", send, receive, ctypes.c_size_t(COUNT), TYPES["float32"], root, rank.communicator, rank.stream)
    return receive, values_of(root)


def all_gather(me, ranks, rank):
    send, receive = rank.put(values_of(me)), rank.room(4 * COUNT * ranks)
    ask("ncclAllGather", send, receive, ctypes.c_size_t(COUNT), TYPES["float32"], rank.communicator, rank.stream)
    return receive, np.concatenate([values_of(r) for r in range(ranks)])


def reduce_scatter(me, ranks, rank):
    send, receive = rank.put(values_of(me, COUNT * ranks)), rank.room(4 * COUNT)
    ask("ncclReduceScatter", send, receive, ctypes.c_size_t(COUNT), TYPES["float32"], SUM, rank.communicator, rank.stream)
    whole = together([values_of(r, COUNT * ranks) for r in range(ranks)], "float32", SUM)
    return receive, whole[me * COUNT:(me + 1) * COUNT]


def send_receive(me, ranks, rank):
    """To the next, from the one before."""
    send, receive = rank.put(values_of(me)), rank.room(4 * COUNT)
    ask("ncclGroupStart")
    ask("ncclSend", send, ctypes.c_size_t(COUNT), TYPES["float32"], (me + 1) % ranks, rank.communicator, rank.stream)
    ask("ncclRecv", receive, ctypes.c_size_t(COUNT), TYPES["float32"], (me - 1) % ranks, rank.communicator, rank.stream)
    ask("ncclGroupEnd")
    return receive, values_of((me - 1) % ranks)


def all_to_all(me, ranks, rank):
    send, receive = rank.put(values_of(me, COUNT * ranks)), rank.room(4 * COUNT * ranks)
    at = lambda pointer, other: ctypes.c_void_p(pointer.value + 4 * COUNT * other)
    ask("ncclGroupStart")
    for other in range(ranks):
        ask("ncclSend", at(send, other), ctypes.c_size_t(COUNT), TYPES["float32"], other, rank.communicator, rank.stream)
        ask("ncclRecv", at(receive, other), ctypes.c_size_t(COUNT), TYPES["float32"], other, rank.communicator, rank.stream)
    ask("ncclGroupEnd")
    return receive, np.concatenate([values_of(r, COUNT * ranks)[me * COUNT:(me + 1) * COUNT] for r in range(ranks)])


OTHERS = (reduce, broadcast, all_gather, reduce_scatter, send_receive, all_to_all)


def in_group(members, collective, *arguments):
    """All ranks of this process by one thread."""
    ask("ncclGroupStart")
    asked = []
    for me, rank in enumerate(members):
        run("cudaSetDevice", rank.device)
        asked.append(collective(me, len(members), rank, *arguments))
    ask("ncclGroupEnd")
    right = all(np.array_equal(rank.get(receive, expected), expected) for rank, (receive, expected) in zip(members, asked))
    for rank in members:
        rank.clear()
    return right


def alone(me, ranks, rank, collective, *arguments):
    run("cudaSetDevice", rank.device)
    receive, expected = collective(me, ranks, rank, *arguments)
    right = np.array_equal(rank.get(receive, expected), expected)
    rank.clear()
    return right


def by_threads(ranks):
    unique, outcomes = UniqueId(), [False] * ranks
    ask("ncclGetUniqueId", ctypes.byref(unique))

    def member(me):
        rank = Rank(me, ctypes.c_void_p())
        ask("ncclCommInitRank", ctypes.byref(rank.communicator), ranks, unique, me)
        outcomes[me] = alone(me, ranks, rank, all_reduce, "float32", SUM) and alone(me, ranks, rank, all_gather)
        rank.end()

    threads = [threading.Thread(target=member, args=(me,)) for me in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return all(outcomes)


def member_process(me, ranks, path):
    unique = UniqueId()
    if me == 0:
        ask("ncclGetUniqueId", ctypes.byref(unique))
        with open(path + ".new", "wb") as file:
            file.write(bytes(unique))
        os.rename(path + ".new", path)
    while not os.path.exists(path):
        time.sleep(0.05)
    ctypes.memmove(ctypes.byref(unique), open(path, "rb").read(), 128)
    rank = Rank(me, ctypes.c_void_p())
    ask("ncclCommInitRank", ctypes.byref(rank.communicator), ranks, unique, me)
    right = all(alone(me, ranks, rank, all_reduce, name, SUM) for name in ("float32", "float16", "int64"))
    right = right and all(alone(me, ranks, rank, collective) for collective in OTHERS)
    rank.end()
    return 0 if right else 1


def by_processes(ranks):
    with tempfile.TemporaryDirectory() as folder:
        members = [subprocess.Popen([sys.executable, __file__, "member", str(me), str(ranks), os.path.join(folder, "id")], stdout=sys.stderr)
                   for me in range(ranks)]
        return all([member.wait() == 0 for member in members])


def room_for(processes):
    """Each process has NCCL's PTX by itself, some 0.8 GB."""
    with open("/proc/meminfo") as file:
        available = next(int(line.split()[1]) for line in file if line.startswith("MemAvailable"))
    return available << 10 > processes << 30


def main():
    for ranks in (2, 4):
        if ranks == 2 or room_for(ranks):
            check(f"processes {ranks}", lambda: by_processes(ranks))
        else:
            print(f"skipped: processes {ranks}: too little memory", file=sys.stderr)
    for ranks in (2, 4):
        communicators = (ctypes.c_void_p * ranks)()
        ask("ncclCommInitAll", communicators, ranks, None)
        members = [Rank(device, ctypes.c_void_p(communicators[device])) for device in range(ranks)]
        for name in TYPES:
            for title, operation in OPERATIONS.items():
                check(f"all-reduce {ranks} {name} {title}", lambda: in_group(members, all_reduce, name, operation))
        for collective in OTHERS:
            check(f"{collective.__name__} {ranks}", lambda: in_group(members, collective))
        for rank in members:
            rank.end()
        check(f"threads {ranks}", lambda: by_threads(ranks))


TRAFFIC = 16 << 20
LINK_BYTES_PER_US = 55e3  # of the machine h200, each way


def traffic(ranks):
    communicators = (ctypes.c_void_p * ranks)()
    ask("ncclCommInitAll", communicators, ranks, None)
    members = [Rank(device, ctypes.c_void_p(communicators[device])) for device in range(ranks)]
    pointers = [(rank.room(TRAFFIC), rank.room(TRAFFIC)) for rank in members]
    ask("ncclGroupStart")
    for rank, (send, receive) in zip(members, pointers):
        ask("ncclAllReduce", send, receive, ctypes.c_size_t(TRAFFIC // 4), TYPES["float32"], SUM, rank.communicator, rank.stream)
    ask("ncclGroupEnd")
    for rank in members:
        run("cudaSetDevice", rank.device)
        run("cudaStreamSynchronize", rank.stream)
        rank.end()


def compare(ranks, way, path):
    """In a ring each of n GPUs sends 2(n-1)/n of the bytes to the next one, and some flags: into the other's memory, or into the host's, from
    where the other one gets them over its own link. A kernel cannot take less time than its link needs for what it sends, and with nothing
    but the link in its way it takes little more."""
    right = 2 * (ranks - 1) * TRAFFIC / ranks * {"peers": 1, "host": 2}[way]
    runs = json.load(open(path))["runs"]
    moved = [run["remote_bytes"] for run in runs]
    print(f"all-reduce of 16 MiB on {ranks} by {way}: over the links {moved}, by the closed form {right:.0f} each; "
          f"kernels {[run['kernel_us'] for run in runs]} us", file=sys.stderr)
    least_us = 2 * (ranks - 1) * TRAFFIC / ranks / LINK_BYTES_PER_US
    # Of two GPUs what four SMs can have under way is less than the link; and the kernels spill, by our estimate.
    most = 2 if way == "host" else 1.6 if ranks == 2 else 1.4
    in_time = all(least_us <= run["kernel_us"] <= most * least_us for run in runs)
    return len(moved) == ranks and all(right <= bytes <= 1.001 * right for bytes in moved) and in_time


COMMANDS = {
    "member": lambda me, ranks, path: sys.exit(member_process(int(me), int(ranks), path)),
    "traffic": lambda ranks: traffic(int(ranks)),
    "compare": lambda ranks, way, path: check(f"traffic {ranks} {way}", lambda: compare(int(ranks), way, path)),
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:]) if len(sys.argv) > 1 else main()
