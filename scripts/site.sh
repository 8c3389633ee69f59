#!/usr/bin/env bash
# site.sh BUILD: the documentation site, BUILD/site/index.html: the documents and the READMEs of the sources, by MkDocs (mkdocs.yml). Broken links and
# headings end it with an error. MkDocs comes from PyPI into a virtual environment in BUILD the first time.
set -euo pipefail
[[ $# -eq 1 && -d $1 ]] || { sed -n '2,3s/^# //p' "$0" >&2; exit 64; }
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
tools=$build/site-tools
if [[ ! -x $tools/bin/mkdocs ]]; then
  python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check 'mkdocs==1.6.1'
fi
# The Markdown files, docs/, and every file that one of them links to, in their places.
export SITE_SOURCE=$build/site-source SITE_FOLDER=$build/site
rm -rf "$SITE_SOURCE"
mkdir -p "$SITE_SOURCE"
find . \( -path ./build\* -o -path ./.git -o -path ./.github -o -name node_modules -o -path ./tests/fuzz/corpus \) -prune -o -type f \
  \( -name '*.md' -o -path './docs/*' \) -print0 | xargs -0 cp --parents -t "$SITE_SOURCE"
python3 - "$SITE_SOURCE" <<'PYTHON'
import os, re, shutil, sys

for folder, _, names in list(os.walk(sys.argv[1])):
    for name in names:
        if not name.endswith(".md"): continue
        at = os.path.relpath(folder, sys.argv[1])
        for target in re.findall(r"\]\(<?([^)\s>#]+)", open(os.path.join(folder, name), encoding="utf-8").read()):
            path = os.path.normpath(os.path.join(at, target))
            if path.startswith("..") or not os.path.isfile(path) or os.path.exists(os.path.join(sys.argv[1], path)): continue
            os.makedirs(os.path.join(sys.argv[1], os.path.dirname(path)), exist_ok=True)
            shutil.copy(path, os.path.join(sys.argv[1], path))
PYTHON
"$tools/bin/mkdocs" build --strict >"$build/site.log" 2>&1 || { grep -E 'WARNING|ERROR|Aborted' "$build/site.log" >&2; exit 1; }
echo "$SITE_FOLDER/index.html"
