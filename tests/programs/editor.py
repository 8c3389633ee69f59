#!/usr/bin/env python3
"""What editors read: CMakePresets.json, .vscode/, .clangd. They parse, name what there is, and the preset with checks is the second build of scripts/test.sh.
Arguments: the source folder, cmake."""
import json, os, re, shlex, subprocess, sys

source, cmake = os.path.abspath(sys.argv[1]), sys.argv[2]
os.chdir(source)
passed = failed = 0


def expect(what, good):
    global passed, failed
    if good:
        passed += 1
    else:
        failed += 1
        print(f"wrong: {what}")


def read(path):
    with open(path) as file:
        return json.load(file)


presets, tasks, launch, settings, extensions = map(read, ("CMakePresets.json", ".vscode/tasks.json", ".vscode/launch.json", ".vscode/settings.json",
                                                          ".vscode/extensions.json"))
listed = subprocess.run([cmake, "--list-presets=all"], capture_output=True, text=True)
expect(f"cmake --list-presets: {listed.stderr}", listed.returncode == 0)
known = {kind: {preset["name"]: preset for preset in presets[kind]} for kind in ("configurePresets", "buildPresets", "testPresets")}
for kind, named in known.items():
    for name in named:
        expect(f"{name} of {kind} is listed", f'"{name}"' in listed.stdout)

# A preset that cmake takes may still set what no CMakeLists.txt reads.
options = set(re.findall(r"option\((FARFAULT_\w+)|set\((FARFAULT_\w+)", open("CMakeLists.txt").read() + open("cmake/farfault.cmake").read()))
options = {name for pair in options for name in pair if name}
for name, preset in known["configurePresets"].items():
    for variable in preset.get("cacheVariables", {}):
        expect(f"{name}: {variable} is an option", variable in options or variable.startswith("CMAKE_"))

# The same build as that of `make test`, and the same environment.
script = open("scripts/test.sh").read()
line = re.search(r'CC=(\w+) cmake -S \. -B "\$check" (.*?)>', script, re.S)
given = dict(word[2:].split("=", 1) for word in shlex.split(line[2]) if word.startswith("-D"))
given.pop("FARFAULT_WERROR")
given["FARFAULT_COVERAGE"] = re.search(r"^  test\) .*\bcoverage=(\w+)", script, re.M)[1]
given["FARFAULT_SANITIZE_WITHOUT"] = re.search(r"^  test\) .*\bwithout=([\w,]+)", script, re.M)[1]
given["FARFAULT_ISAS"] = re.search(r"^  test\) .*\bisas=([\w,]+)", script, re.M)[1]
checks = known["configurePresets"]["checks"]
expect(f"checks: the options are those of scripts/test.sh: {given}", checks["cacheVariables"] == given)
expect("checks: so is the compiler", checks["environment"] == {"CC": line[1]})
for name, value in known["testPresets"]["checks"]["environment"].items():
    expect(f"checks: {name}", f"{name}={value}" in script or name == "LLVM_PROFILE_FILE")

# Tasks run what there is.
targets = set(re.findall(r"^([a-z][a-z-]*(?: [a-z-]+)*):", open("Makefile").read(), re.M))
targets = {word for group in targets for word in group.split()}
labels = [task["label"] for task in tasks["tasks"]]
expect("labels differ", len(set(labels)) == len(labels))
for wanted in "build", "quick tests", "one test", "debug build", "checks build":
    expect(f"a task '{wanted}'", wanted in labels)
for task in tasks["tasks"]:
    words = task["command"].split() + task.get("args", [])
    at = f"task '{task['label']}'"
    if words[0] == "make":
        expect(f"{at}: make {words[1]}", words[1] in targets)
    elif "--preset" not in words:
        expect(f"{at}: {words[0]} can be executed", os.access(words[0], os.X_OK))
    for i, word in enumerate(words):
        if word == "--preset":
            kind = "buildPresets" if words[i - 1] == "--build" else "testPresets" if words[i - 1] == "ctest" else "configurePresets"
            expect(f"{at}: preset {words[i + 1]}", words[i + 1] in known[kind])
    expect(f"{at}: depends on a task", task.get("dependsOn", "build") in labels)
inputs = {"tasks": {one["id"] for one in tasks["inputs"]}, "launch": {one["id"] for one in launch["inputs"]}}
for name, text in ("tasks", json.dumps(tasks)), ("launch", json.dumps(launch)):
    for used in re.findall(r"\$\{input:(\w+)\}", text):
        expect(f"{name}: input {used}", used in inputs[name])
for one in launch["configurations"]:
    expect(f"'{one['name']}': its task", one["preLaunchTask"] in labels)
    expect(f"'{one['name']}': is in the debug build", one["program"].startswith("${workspaceFolder}/build-debug/"))
expect("recommended extensions", "llvm-vs-code-extensions.vscode-clangd" in extensions["recommendations"])
expect("settings: cmake reads the presets", settings["cmake.useCMakePresets"] == "always")
folder = re.search(r"^  CompilationDatabase: (\S+)$", open(".clangd").read(), re.M)
default = known["configurePresets"]["default"]["binaryDir"]
expect("clangd reads the default build", folder and default == "${sourceDir}/" + folder[1])
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed or passed < 2 else 0)
