# SPDX-License-Identifier: Apache-2.0
"""What two drivers answer to the questions of driver_answers, a program beside this file.

driver_answers.py check FARFAULT PROGRAM FILE      the virtual GPU's answers, next to those that NVIDIA's documents demand
driver_answers.py compare FARFAULT PROGRAM MACHINE FOLDER [LIBRARY]
    asks the driver of this computer (or LIBRARY; `virtual` is the virtual GPU), then the virtual GPU with MACHINE and the
    other's version; FOLDER gets answers.txt, the other's, and differ.txt, a key with both answers in each three lines.
    Prints how many were asked, and how many differ.

FILE: lines `# SOURCE`, then `key = answer` as the program prints it. Exit status of `check`: 1 if an answer is another.
"""
import concurrent.futures
import os
import subprocess
import sys

LIMIT = 60  # seconds for a section


def read(lines, section):
    """The lines `key = value` of a section as a dictionary; a key that comes again gets a number; any other line is `(text)`."""
    found = {}
    for line in lines:
        key, equals, value = line.partition(" = ")
        if not equals or not key.startswith(section + "."):
            key, value = section + ".(text)", line
        name, count = key, 1
        while name in found:
            count += 1
            name = f"{key} #{count}"
        found[name] = value
    return found


def ask(command, section, environment):
    """One section's answers; what it got to say where it does not end."""
    try:
        run = subprocess.run(command + [section], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, timeout=LIMIT, check=False)
        output = run.stdout
    except subprocess.TimeoutExpired as late:
        output = late.stdout or b""
    return read(output.decode("utf-8", "replace").splitlines(), section)


def ask_all(command, sections, environment=None):
    """All answers, in the sections' order; several sections at a time."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        parts = list(pool.map(lambda section: ask(command, section, environment), sections))
    return {key: value for part in parts for key, value in part.items()}


def virtual(farfault, program, machine, version):
    return [farfault, "run", "--memory", "none", "--machine", machine] + (["--driver-version", version] if version else []) + [program]


def sections_of(program):
    return subprocess.run([program, "--list"], stdout=subprocess.PIPE, check=True).stdout.decode().split()


def check(farfault, program, path):
    with open(path, encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file if line.strip() and not line.startswith("# ")]
    demanded = [line.split(" = ", 1) for line in lines]
    sections = sections_of(program)
    asked = ask_all(virtual(farfault, program, "h200", "13.0"), sections)
    wrong = 0
    for key, value in demanded:
        if asked.get(key) != value:
            wrong += 1
            print(f"{key}\n  here       {asked.get(key)}\n  documented {value}")
    for section in sections:
        if asked.get(section + ".end") != "0":
            wrong += 1
            print(f"{section} ends with {asked.get(section + '.end')}")
    print(f"{len(asked)} answers, {len(demanded)} of them documented, {wrong} wrong")
    return 1 if wrong or not demanded else 0


def compare(farfault, program, machine, folder, library=None):
    sections = sections_of(program)
    environment = dict(os.environ)
    if library == "virtual":
        command = virtual(farfault, program, machine, None)
    else:
        command = [program]
        if library:
            environment["DRIVER_ANSWERS_LIBRARY"] = library
    theirs = ask_all(command, sections, environment)
    version = int(theirs.get("init.driver version", "0"))
    ours = ask_all(virtual(farfault, program, machine, f"{version // 1000}.{version % 1000 // 10}" if version else None), sections)
    differ = [key for key in dict.fromkeys(list(theirs) + list(ours)) if theirs.get(key) != ours.get(key)]
    with open(os.path.join(folder, "answers.txt"), "w", encoding="utf-8") as file:
        file.writelines(f"{key} = {value}\n" for key, value in theirs.items())
    with open(os.path.join(folder, "differ.txt"), "w", encoding="utf-8") as file:
        file.writelines(f"{key}\n  this driver {theirs.get(key)}\n  virtual GPU {ours.get(key)}\n" for key in differ)
    print(f"{len(theirs)} answers, {len(differ)} differ")
    return 0 if theirs.get("init.end") == "0" else 1


if __name__ == "__main__":
    command = {"check": check, "compare": compare}.get(sys.argv[1] if len(sys.argv) > 1 else "")
    sys.exit(command(*sys.argv[2:]) if command else __doc__)
