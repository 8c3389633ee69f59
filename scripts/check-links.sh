#!/usr/bin/env bash
# check-links.sh [--links] [FOLDER]: what the Markdown files of these sources name is there. Offline: links to other sites are not looked at.
#   - relative links and pictures: the file, and the heading behind "#"
#   - paths in `backticks` that begin with a folder of the sources (src/..., docs/...): a file, a folder, or a pattern that something matches
#   - files that src/FOLDER/README.md names: in tables and lists in the folder of the heading above ("## host/"), in sentences anywhere below src/FOLDER
#   - the other way round: every folder below src/ is in docs/map.md, and every .c file of src/FOLDER in its README, by its name, a pattern or its header
# With --links only the first of these: of the documents of an installation, which are there without the sources.
# A path with a word of capitals (NAME) stands for many: it is not looked at. Each line says what is wrong; exit status 1 if there is any.
only=
if [[ ${1-} == --links ]]; then only=$1 && shift; fi
exec python3 - "${1:-$(dirname "$0")/..}" $only <<'PYTHON'
import fnmatch, os, re, sys

root = os.path.realpath(sys.argv[1])
only_links = "--links" in sys.argv[2:]
SKIPPED = {".git", "node_modules", "corpus"}
TOPS = "src tests docs scripts bench cmake examples include machines web workloads .github .ci".split()
wrong = []
checked = {"links": 0, "paths": 0, "files": 0}


def walk():
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in SKIPPED and not (folder == root and f.startswith("build")))
        yield folder, folders, sorted(names)


files = [os.path.relpath(os.path.join(folder, name), root) for folder, _, names in walk() for name in names]
known = set(files)
folders = {os.path.relpath(os.path.join(folder, name), root) for folder, names, _ in walk() for name in names}


def without_code(text):
    """The same lines, those of code blocks empty."""
    lines, fence = [], False
    for line in text.split("\n"):
        marker = line.lstrip().startswith("```")
        lines.append("" if fence or marker else line)
        fence ^= marker
    return lines


def slug(heading):
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")


def headings(path):
    found, counts = set(), {}
    for line in without_code(open(path, encoding="utf-8").read()):
        match = re.match(r"#+ +(.*?) *#*$", line)
        if match:
            name = slug(match[1])
            found.add(f"{name}-{counts[name]}" if name in counts else name)
            counts[name] = counts.get(name, 0) + 1
        found.update(re.findall(r'<a (?:id|name)="([^"]+)"', line))
    return found


def check_link(file, number, target):
    if re.match(r"[a-z]+:", target): return
    checked["links"] += 1
    name, _, anchor = target.partition("#")
    path = os.path.normpath(os.path.join(root, os.path.dirname(file), name)) if name else os.path.join(root, file)
    if not os.path.exists(path): wrong.append(f"{file}:{number}: the link {target} leads nowhere")
    elif anchor and path.endswith(".md") and anchor not in headings(path): wrong.append(f"{file}:{number}: {name or file} has no heading #{anchor}")


def there(path, file):
    path = path.rstrip("/")
    if "*" in path: return bool(fnmatch.filter(files, path))
    return any(os.path.exists(os.path.join(root, folder, path)) for folder in ("", os.path.dirname(file)))


def check_path(file, number, word):
    word = re.sub(r":\d+$", "", word)
    if not re.match(rf"({'|'.join(map(re.escape, TOPS))})/[\w./*+-]*$", word) or re.search(r"[A-Z]{3}", word.replace("README", "")): return
    checked["paths"] += 1
    if not there(word, file): wrong.append(f"{file}:{number}: there is no {word}")


FILE = re.compile(r"[\w./*+-]*\w\*?\.(?:c|h|def|re|map|ptx|cu|\*|isa\.c|cmake)$")


def named_files(folder, text):
    """The files that a README of src/ names: (line, name, folder). In a table's first column and in lists they lie in the folder of the heading above
    ("## host/") or in the README's own; in sentences, in backticks, anywhere below that."""
    below = folder
    for number, line in enumerate(without_code(text), 1):
        heading = re.match(r"#+ +`?(\w+)/", line)
        if line.startswith("#"): below = f"{folder}/{heading[1]}" if heading and f"{folder}/{heading[1]}" in folders else folder
        row = line.split("|")[1] if line.startswith("|") else line.split(":")[0] if line.startswith("- `") else ""
        words = [(word, True) for word in re.findall(r"[\w./*+-]+", row)]
        words += [(word, False) for word in re.findall(r"`([^`\s]+)`", line[len(row):])]
        for name, strict in words:
            name = name.replace("NAME", "*")
            if FILE.match(name) and not re.search(r"[A-Z]{3}", name): yield number, name, [f"{below}/{name}"] if strict else [f"{folder}/{name}", f"{folder}/*/{name}", f"src/{name}", name]


for file in files:
    if not file.endswith(".md"): continue
    text = open(os.path.join(root, file), encoding="utf-8").read()
    for number, line in enumerate(without_code(text), 1):
        plain = re.sub(r"`[^`]*`", "", line)
        for target in re.findall(r"\]\(<?([^)\s>]+)>?\)", plain) + re.findall(r'(?:href|src)="([^"]+)"', plain): check_link(file, number, target)
        for word in re.findall(r"`([^`\s]+)`", line):
            if not only_links: check_path(file, number, word)
    readme = re.match(r"(src/\w+)/README\.md$", file)
    if not readme or only_links: continue
    folder, named = readme[1], set()
    for number, name, paths in named_files(folder, text):
        checked["files"] += 1
        found = {path for path in paths if path in known}
        if not found: found = {other for path in paths if "*" in path for other in fnmatch.filter(files, path)}
        if not found: wrong.append(f"{file}:{number}: there is no {paths[0]}")
        named.update(found | {other[:-2] + ".c" for other in found if other.endswith(".h")})
    for source in files:
        if source.startswith(folder + "/") and source.endswith(".c") and source not in named: wrong.append(f"{file}: does not name {source}")

chart = "" if only_links else open(os.path.join(root, "docs/map.md"), encoding="utf-8").read()
for folder in () if only_links else sorted(folders):
    if re.match(r"src/\w+(/\w+)?$", folder) and f"`{folder}/`" not in chart: wrong.append(f"docs/map.md: does not name {folder}/")
for line in wrong: print(line)
print(f"{checked['links']} links, {checked['paths']} paths and {checked['files']} files of folders looked at, {len(wrong)} wrong")
sys.exit(1 if wrong or (checked["links"] if only_links else min(checked.values())) < 20 else 0)
PYTHON
