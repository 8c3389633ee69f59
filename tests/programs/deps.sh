#!/usr/bin/env bash
# scripts/install-deps.sh, and the commands of the Makefile that call it, with a dpkg-query and an apt-get that only pretend: what it asks for, and what it does without.
source "$(dirname "$0")/common.sh"
script=$source/scripts/install-deps.sh

mkdir bin
export LOG=$work/log
for tool in bash env grep cat rm; do ln -s "$(command -v $tool)" bin/; done
cat >bin/dpkg-query <<'X'
#!/bin/sh
for package; do :; done
case " $MISSING " in *" $package "*) exit 1 ;; esac
case " $REMOVED " in *" $package "*) echo "deinstall ok config-files" ;; *) echo "${SELECTION:-install} ok installed" ;; esac
X
cat >bin/apt-get <<'X'
#!/bin/sh
echo "$DEBIAN_FRONTEND apt-get $*" >>"$LOG"
case " $FAILING " in *" $1 "*) echo "E: $1" >&2; exit 100 ;; esac
X
printf '#!/bin/sh\necho ${USER_NUMBER:-0}\n' >bin/id
ln -s "$(command -v sh)" bin/
chmod +x bin/dpkg-query bin/apt-get bin/id
deps() { # deps VARIABLE=VALUE...
  : >log
  run env -u DEBIAN_FRONTEND PATH="$work/bin" "$@" "$script"
}
deps A=1
expect_status 0
expect_no_out
expect_no_err
expect test ! -s log
deps SELECTION=hold
expect_status 0
expect test ! -s log
deps MISSING="re2c" REMOVED="clang"
expect_status 0
expect_err "farfault: installing re2c clang"
expect grep -q '^ apt-get update' log
expect grep -q '^noninteractive apt-get install -y .*--no-install-recommends re2c clang$' log
run env PATH="$work/bin" MISSING="re2c clang" "$script" --missing
expect_out "re2c clang"
run env PATH="$work/bin" MISSING="re2c clang" "$script" --hint
expect_status 0
expect_err "\`make deps\` installs: re2c clang"
run env PATH="$work/bin" "$script" --missing
expect_no_out
deps MISSING=llvm FAILING=update
expect_status 0
expect_err "could not be updated"
expect grep -q 'install .* llvm$' log
deps MISSING=llvm FAILING="update install"
expect_status 1
expect_err "could not install llvm"
deps MISSING="llvm cmake" USER_NUMBER=1000
expect_status 1
expect_err "root (or sudo) is needed to install: cmake llvm"
expect test ! -s log
printf '#!/bin/sh\necho as root >>"$LOG"\nexec "$@"\n' >bin/sudo
chmod +x bin/sudo
deps MISSING=cmake USER_NUMBER=1000
expect_status 0
expect test "$(grep -c 'as root' log)" -eq 2
expect grep -q '^noninteractive apt-get install .* cmake$' log
deps MISSING="nodejs npm chromium"
expect grep -q 'install .* chromium nodejs npm$' log
for tool in node npm; do printf '#!/bin/sh\n' >bin/$tool && chmod +x bin/$tool; done # others than Debian's
deps MISSING="nodejs npm"
expect_status 0
expect test ! -s log
# `make` says what is missing and installs nothing; the two commands of the README install. A build folder elsewhere, and a cmake that finds nothing.
printf '#!/bin/sh\necho "re2c: not found" >&2\nexit 1\n' >bin/cmake
chmod +x bin/cmake
: >log
run env PATH="$work/bin" MISSING=re2c "$(command -v make)" -C "$source" BUILD="$work/build" JOBS=1
expect_status 2
expect_err "re2c: not found"
expect_err "\`make deps\` installs: re2c"
expect test ! -s log
for command in deps demo test check-all; do
  : >log
  run env PATH="$work/bin" MISSING=re2c "$(command -v make)" -C "$source" BUILD="$work/build" JOBS=1 $command
  expect grep -q 'apt-get install .* re2c$' log
done
rm bin/dpkg-query
deps A=1
expect_status 0
expect_err "this is not Debian"
# Whatever library the build looks for comes from a package that is named.
for word in $(sed -n 's/^pkg_check_modules(\([A-Z0-9]*\) .*/\1/p' "$source/CMakeLists.txt" "$source/tests/CMakeLists.txt" | tr 'A-Z' 'a-z'); do
  expect grep -qE "lib${word}[0-9]*-dev" "$script"
done
finish
