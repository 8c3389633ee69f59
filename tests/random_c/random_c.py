#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/random-c.sh BUILD [--count N] [--first N] [--keep FOLDER]

Random C programs as Csmith writes them (https://github.com/csmith-project/csmith, the Debian package csmith), made into CUDA kernels, compiled by
nvcc and run on the virtual GPU, interpreted and compiled. Each of 96 threads runs the whole program on variables of its own, some of which begin
with other values than its neighbours': threads part at nearly every branch. The same source compiled for the host says what each must give.

Program N is the same for the same N and version of Csmith. nvcc optimises every third program as usual, little, and not at all (-G); the variables lie
in the thread's local memory or in global memory. Programs that Csmith has not written within two minutes, those that the host has not done within
two seconds, and those that nvcc does not compile (it knows no initial values of bit-fields in unions), are left out and counted. One that the
virtual GPU has not done within ten minutes counts as one that differs. Ends with the counts and a line per program whose values differ, which
stays in FOLDER (BUILD/random_c). Exit status: 1 if there was one, 77 without Csmith or nvcc, or if all were left out."""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys

SIGNED = [("int8_t", 8), ("int16_t", 16), ("int32_t", 32), ("int64_t", 64)]
OPTIMISED = [["-G"], [], ["-Xcicc", "-O1"]]
NVCC = ["nvidia-cuda-nvcc==13.0.88", "nvidia-cuda-crt==13.0.88", "nvidia-nvvm==13.0.88", "nvidia-cuda-runtime==13.0.96", "nvidia-cuda-cccl==13.0.85"]


def safe_functions():
    """Csmith's wrappers, which give every operation of two numbers a value: where C has none, the first number."""
    lines = []
    for name, bits in SIGNED + [("u" + name, bits) for name, bits in SIGNED]:
        signed = name[0] == "i"
        letter, wide, plain = "s" if signed else "u", f"uint{max(bits, 32)}_t", f"uint{bits}_t"
        both = f"{name} a, {name} b"

        def add(function, arguments, value):
            lines.append(f"HD inline {name} safe_{function}({arguments}) {{ return {value}; }}")

        add(f"unary_minus_func_{name}_{letter}", f"{name} a", f"({name})(0 - ({wide})a)")
        for function, sign in (("add", "+"), ("sub", "-"), ("mul", "*")):
            add(f"{function}_func_{name}_{letter}_{letter}", both, f"({name})(({wide})a {sign} ({wide})b)")
        undefined = f"b == 0 || (b == -1 && a == ({name})(({plain})1 << {bits - 1}))" if signed else "b == 0"
        for function, sign in (("div", "/"), ("mod", "%")):
            add(f"{function}_func_{name}_{letter}_{letter}", both, f"({undefined}) ? a : ({name})(a {sign} b)")
        for other, count in (("s", "int"), ("u", "unsigned int")):
            far = f"(int)b < 0 || (int)b >= {bits}"
            add(f"lshift_func_{name}_{letter}_{other}", f"{name} a, {count} b", f"({far}) ? a : ({name})(({wide})a << (int)b)")
            add(f"rshift_func_{name}_{letter}_{other}", f"{name} a, {count} b", f"({far}) ? a : ({name})(a >> (int)b)")
    return "\n".join(lines)


HEAD = """#include <cstdint>
#include <cstdio>
#include <new>
#define HD __host__ __device__
HD inline void add(uint64_t &sum, uint64_t value) {
  sum = (sum ^ value) * 0x9E3779B97F4A7C15ull;
  sum ^= sum >> 29;
}
"""
TAIL = """
__global__ void kernel(Program *pool, uint64_t *out, uint32_t n) {
  uint32_t tid = blockIdx.x * blockDim.x + threadIdx.x;
  if (tid >= n) return;
  if (IN_LOCAL) {
    Program program;
    out[tid] = program.run(tid);
  } else {
    out[tid] = (new (pool + tid) Program)->run(tid);
  }
}

int main(int argc, char **) {
  const uint32_t n = 96;
  uint64_t *out, want[n];
  Program *pool;
  for (uint32_t i = 0; i < n; i++) {
    Program *program = new Program;
    want[i] = program->run(i);
    delete program;
  }
  if (argc > 1) return 0;
  cudaDeviceSetLimit(cudaLimitStackSize, 65536);
  cudaMalloc(&pool, n * sizeof(Program));
  cudaMallocManaged(&out, n * sizeof *out);
  kernel<<<2, 64>>>(pool, out, n);
  cudaError_t error = cudaDeviceSynchronize();
  if (error) {
    printf("error: %s\\n", cudaGetErrorString(error));
    return 2;
  }
  uint32_t differ = 0;
  for (uint32_t i = 0; i < n; i++) differ += out[i] != want[i];
  printf("threads: %u of %u differ\\n", differ, n);
  return differ != 0;
}
"""


def choose(rnd):
    """Csmith's options for one program."""
    options = ["--no-volatiles", "--no-argc", "--quiet", "--concise", "--lang-cpp", "--cpp11"]
    options += rnd.choice([["--no-packed-struct"], []])
    options += rnd.choice([["--no-bitfields"], ["--bitfields"]])
    options += rnd.choice([[], ["--no-jumps"], ["--no-jumps"]])
    return options + ["--max-funcs", str(rnd.choice([3, 6, 10])), "--max-block-size", str(rnd.choice([3, 4, 6]))]


def members(lines, rnd):
    """Variables and functions as members of one struct; also the statements that give a thread values of its own."""
    out, inputs = [], []
    for line in lines:
        scalar = re.match(r"static (u?int\d+_t) (g_\d+) = [^;{&]*;$", line)
        if scalar and rnd.random() < 0.5:
            kind, name = scalar.groups()
            if rnd.random() < 0.5:
                inputs.append(f"    if (tid % {rnd.choice([1, 2, 3, 5])} == 0) {name} ^= ({kind})(tid * {rnd.getrandbits(32) | 1}u);")
            else:
                inputs.append(f"    {name} += ({kind})(tid & {rnd.choice([1, 3, 7, 255])});")
        line = re.sub(r"^static ", "", line)
        if re.match(r"[\w \*]*\bfunc_\d+\(", line):
            if line.endswith(";"):
                continue  # a declaration: members need none
            line = "HD " + line
        out.append(line)
    return out, inputs


def summing(lines):
    """Csmith's main as a member that returns the sum of all variables."""
    out = []
    for line in lines[1:]:
        if re.search(r"platform_main_begin|crc32_gentab|print_hash_value = |int print_hash_value|return 0;", line):
            continue
        line = re.sub(r"if \(print_hash_value\) printf\(.*\);", ";", line)
        line = re.sub(r'transparent_crc\((.*), "(.*)", print_hash_value\)', r"add(sum, (uint64_t)(\1))", line)
        out.append("    return sum;" if "platform_main_end" in line else line)
    return out


def cuda_program(seed, folder):
    """Program `seed` as a .cu file's text. Csmith leaves a file of its own (platform.info) in `folder`."""
    rnd = random.Random(seed)
    command = ["csmith", "-s", str(seed)] + choose(rnd)
    made = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=120, check=True).stdout.split("\n")
    main = next(n for n, line in enumerate(made) if line.startswith("int main"))
    body = [line for line in made[:main] if not line.startswith("#include") and "__undefined" not in line]
    first = next(n for n, line in enumerate(body) if line.startswith("static "))  # before it: types
    inside, inputs = members(body[first:], rnd)
    run = "\n".join(summing(made[main:])).replace("{", "{\n    uint64_t sum = 0;\n" + "\n".join(inputs), 1)
    where = f"#define IN_LOCAL {int(rnd.random() < 1 / 3)}"
    return "\n".join([HEAD, safe_functions(), *body[:first], "struct Program {", *inside, "HD uint64_t run(uint32_t tid)", run, "};", where, TAIL])


class Check:
    def __init__(self, arguments):
        self.build = os.path.abspath(arguments.build)
        self.folder = os.path.abspath(arguments.keep or os.path.join(self.build, "random_c"))
        self.cuda = os.environ.get("CUDA_HOME") or self.packages()
        os.makedirs(self.folder, exist_ok=True)
        self.link = os.path.join(self.folder, "link")  # nvcc asks for libcudart.so, the package has libcudart.so.13
        os.makedirs(self.link, exist_ok=True)
        if not os.path.lexists(os.path.join(self.link, "libcudart.so")):
            os.symlink(os.path.join(self.cuda, "lib", "libcudart.so.13"), os.path.join(self.link, "libcudart.so"))

    def packages(self):
        script = os.path.join(os.path.dirname(__file__), "..", "..", "scripts", "cuda-packages.sh")
        found = subprocess.run([script, self.build] + NVCC, stdout=subprocess.PIPE, text=True)
        if found.returncode:
            sys.exit(found.returncode)
        return os.path.join(found.stdout.strip(), "nvidia", "cu13")

    def compile(self, seed, source, program):
        command = [os.path.join(self.cuda, "bin", "nvcc"), "-std=c++17", "-arch=compute_80", "-w", *OPTIMISED[seed % 3], "-cudart", "shared", f"-L{self.link}",
                   f"-L{self.cuda}/lib", "-Xcompiler=-O1,-fno-strict-aliasing,-fwrapv,-Wno-narrowing,-fpermissive,-w", source, "-o", program]
        try:
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=600)
        except subprocess.TimeoutExpired:
            return "not compiled within ten minutes"
        return None if not done.returncode else "not compiled: " + next((line for line in done.stderr.split("\n") if "error" in line), "")

    def host_fails(self, program):
        """Why it is of no use; None: the host does it in time."""
        environment = dict(os.environ, LD_LIBRARY_PATH=os.path.join(self.build, "lib", "farfault"))
        try:
            status = subprocess.run([program, "host"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=2).returncode
        except subprocess.TimeoutExpired:
            return "the host takes longer than two seconds"
        return f"status {status} on the host" if status else None

    def run(self, seed):
        """What came of program `seed`: 'same', 'left out: ...' or 'differs: ...'."""
        source, program = (os.path.join(self.folder, f"{seed}{end}") for end in (".cu", ""))
        try:
            text = cuda_program(seed, self.folder)
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
            return f"left out: not written: {error}"
        with open(source, "w") as f:
            f.write(text)
        outcome = self.compile(seed, source, program) or self.host_fails(program)
        if outcome:
            outcome = "left out: " + outcome
        else:
            for how in ("interpret", "compile"):
                command = [os.path.join(self.build, "bin", "farfault"), "run", "--memory", "none", "--execute", how, program]
                try:
                    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
                except subprocess.TimeoutExpired:
                    return f"differs: {' '.join(command)}: not done within ten minutes"
                if "threads: 0 of 96 differ" not in done.stdout.split("\n"):
                    last = (done.stdout + done.stderr).strip().split("\n")
                    return f"differs: {' '.join(command)}: {next((line for line in last if line.startswith(('threads:', 'error:'))), last[-1])}"
            outcome = "same"
        for file in (source, program):
            if os.path.exists(file):
                os.remove(file)
        return outcome


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--keep")
    arguments = parser.parse_args()
    if not shutil.which("csmith"):
        print("random-c.sh: missing: csmith (Debian package csmith)", file=sys.stderr)
        return 77
    check, same, left_out, differ = Check(arguments), 0, [], []
    for seed in range(arguments.first, arguments.first + arguments.count):
        if sys.stderr.isatty():
            print(f"\r\033[Kprogram {seed}: {same} the same, {len(differ)} differ, {len(left_out)} left out", end="", file=sys.stderr, flush=True)
        outcome = check.run(seed)
        same += outcome == "same"
        for word, kept in (("left out", left_out), ("differs", differ)):
            if outcome.startswith(word):
                kept.append(f"{seed}: {outcome}")
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    print(f"{arguments.count} programs: {same} the same, {len(differ)} differ, {len(left_out)} left out")
    for line in differ + left_out:
        print(f"  {line}")
    return 1 if differ else 0 if same else 77


if __name__ == "__main__":
    sys.exit(main())
