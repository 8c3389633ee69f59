#!/usr/bin/env bash
# The Debian package: made by cpack, looked into, unpacked somewhere, and its farfault runs an installed program from there. $3: the build folder.
source "$(dirname "$0")/common.sh"
export SOURCE_DATE_EPOCH=1795276800 # the same files make the same package
for needed in cpack dpkg-deb dpkg-shlibdeps gzip; do
  command -v $needed >/dev/null || { echo "no $needed here: no Debian package to test"; echo "1 passed, 0 failed"; exit 0; }
done

# `make` makes all that is installed; what is not made by a compiler is there when cmake has run.
if [[ -e $3/build.ninja ]] && command -v ninja >/dev/null; then
  ninja -C "$3" -t commands product >made_by_product
  grep -hoE "\"$3/[^\"]*\"" "$3/cmake_install.cmake" | tr -d '"' | grep -vE '/CMakeFiles/|\.cmake$|\.pc$|\$' | sort -u >installed_files
  expect test "$(wc -l <installed_files)" -gt 30
  while read -r file; do [[ -d $file ]] || expect grep -qF -- "${file#"$3"/}" made_by_product; done <installed_files
fi

run cpack --config "$3/CPackConfig.cmake" -G DEB -B "$work/made"
expect_status 0
version=$(sed -n 's/^project(farfault VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
package=$(echo "$work"/made/farfault_"$version"_*.deb)
expect test -f "$package"

run dpkg-deb -I "$package"
expect_status 0
for field in "Package: farfault" "Version: $version" "Section: science" "Maintainer: " "Description: where every page" \
  "libfyaml0 (" "libjansson4 (" "libzstd1 (" "libc6 ("; do expect_out "$field"; done
expect_out triggers
expect test "$(grep -c '^ Depends: .*mpi' out)" -eq 0 # is opened if it is there
[[ ! -e $3/lib/farfault/libfarfault-mpi.so ]] || expect grep -q '^ Suggests: clang.*mpi' out
expect test "$(grep -c '^ Recommends: .*mpi' out)" -eq 0 # it brings much with it
[[ ! -e $3/lib/farfault/libfarfault-http.so ]] || expect grep -q '^ Recommends: .*libmicrohttpd12' out
expect test "$(grep '^ Depends: ' out | grep -c 'libcuda\|libfarfault')" -eq 0 # what it brings itself is no dependency

run dpkg-deb -c "$package"
expect_status 0
for file in bin/farfault lib/farfault/libfarfault-gpu.so lib/farfault/libcudart.so.12 lib/farfault/libcuda.so.1 include/farfault/policy.h \
  lib/pkgconfig/farfault-simulate.pc include/farfault/simulate.h lib/libfarfault-simulate.so.1 lib/farfault/policies/python.so lib/python3/dist-packages/farfault/__init__.py \
  lib/pkgconfig/farfault.pc include/farfault/farfault.h lib/libfarfault.so.1 lib/libfarfault.a lib/cmake/farfault/farfaultConfig.cmake share/farfault/machines/h200.yaml share/farfault/workloads.tsv share/man/man1/farfault.1.gz share/man/man1/farfault-run.1.gz \
  share/bash-completion/completions/farfault share/zsh/vendor-completions/_farfault share/fish/vendor_completions.d/farfault.fish \
  share/doc/farfault/docs/usage.md share/doc/farfault/copyright share/doc/farfault/changelog.gz; do expect_out " ./usr/$file"; done
expect test "$(grep -c ' \./usr/' out)" -eq "$(grep -vc ' \./$' out)" # nothing elsewhere
expect test "$(awk '{print $2}' out | sort -u)" = root/root
expect test -z "$(awk '$1 ~ /^-/ && $1 ~ /w..$|w....$/' out)" # only root writes
if command -v lintian >/dev/null; then
  run lintian --fail-on error "$package"
  expect_status 0
fi

dpkg-deb -x "$package" "$work/root"
run "$source/scripts/check-links.sh" --links "$work/root/usr/share/doc/farfault"
expect_status 0
installed=$work/root/usr/bin/farfault
if command -v pkg-config >/dev/null; then # with the package alone, without what other packages are made from
  for name in farfault farfault-simulate farfault-trace; do
    run env PKG_CONFIG_LIBDIR="$work/root/usr/lib/pkgconfig" pkg-config --cflags --libs $name
    expect_status 0
    expect_out "-l$name"
  done
fi
expect test "$(zcat "$work/root/usr/share/doc/farfault/changelog.gz" | head -1)" = "farfault ($version) unstable; urgency=medium"
run "$installed" list machines
expect_out "$(realpath "$work/root")/usr/share/farfault/machines/v100.yaml"
if [[ -x $work/root/usr/lib/farfault/workloads/vectoradd ]]; then
  run "$installed" run --memory copy,uvm "$work/root/usr/lib/farfault/workloads/vectoradd" 10000
  expect_status 0
  expect_out PASSED
  expect_err "on h200"
  expect_err "uvm "
fi
if command -v python3 >/dev/null && [[ -x $work/root/usr/lib/farfault/workloads/vectoradd ]]; then # the package finds what it is installed with
  code='import farfault as f; print(f.library_file()); print(f.run([f.workload("vectoradd"), "1000"], memory=["copy", f.manager("replay", prefetch=f.Policy)]))'
  run env -u FARFAULT_LIBRARY PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$work/root/usr/lib/python3/dist-packages" python3 -c "$code"
  expect_status 0
  expect_out "$(realpath "$work/root")/usr/lib/libfarfault-simulate.so.1"
  expect_out "python.so:Policy"
fi
if command -v man >/dev/null && man --version >/dev/null 2>&1; then
  run man --warnings -M "$work/root/usr/share/man" farfault-sim
  expect_status 0
  expect_no_err
  expect_out "farfault sim"
fi
finish
