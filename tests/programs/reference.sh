#!/usr/bin/env bash
# The reference of libfarfault: doxygen warns of nothing, every function and every member of the header is in it; what is undocumented, or
# documented wrongly, is refused. $3: the build folder, $4: doxygen.
source "$(dirname "$0")/common.sh"
doxygen=$4
sed "s#^OUTPUT_DIRECTORY .*#OUTPUT_DIRECTORY = $work/api#" "$3/Doxyfile" >Doxyfile
run "$doxygen" Doxyfile
expect_status 0
expect_no_err
expect test -s api/html/index.html
for function in $(sed -n 's/^FF_API [^(]*[ *]\(ff_[a-z_]*\)(.*/\1/p' "$source/include/farfault/farfault.h"); do
  expect grep -q "<name>$function</name>" api/xml/farfault_8h.xml
done
expect test "$(grep -c '^FF_API ' "$source/include/farfault/farfault.h")" -eq "$(grep -c 'kind="function"' api/xml/farfault_8h.xml)"

# The check can fail.
cp "$source/include/farfault/farfault.h" broken.h
echo 'FF_API ff_result ff_undocumented(ff_gpu *gpu);' >>broken.h
sed "s#^INPUT .*#INPUT = $work/broken.h#" Doxyfile >Broken
run "$doxygen" Broken
expect test "$status" -ne 0
expect_err "ff_undocumented"
finish
