#!/usr/bin/env bash
# onnxruntime-kernels.sh [OPTION...] FOLDER: compiles the CUDA kernels of an installed ONNX Runtime from its sources to PTX, into FOLDER, for
# `farfault run --kernels FOLDER`, where its wheel has none (docs/frameworks.md). One PTX per source file; what is there already is left alone.
#   --python PYTHON    the Python that imports this ONNX Runtime (default: python3)
#   --source DIR       its sources of the same release (default: the release's archive from GitHub, kept in FOLDER/build)
#   --include DIR      where headers are that it needs: Abseil's, GSL's, SafeInt.hpp, Boost's mp11, NVIDIA's libraries'; may be repeated
#   --only NAME,...    these source files: gather_impl, bert/fast_gelu_impl (default: what small networks need)
#   --all              every source file with kernels; attention by CUTLASS is left out
#   --arch N           compute_N (default: 80)
#   -j N               so many compilers at once (default: as many as processors)
# Without --include the headers are fetched from where the sources say (cmake/deps.txt); those of NVIDIA's libraries are taken from the packages
# beside ONNX Runtime. Exit status: 1: a file could not be compiled; 64: wrong arguments; 77: something is missing.
set -uo pipefail

common=(
  cuda_utils activations_impl binary_elementwise_ops_impl unary_elementwise_ops_impl softmax_impl layer_norm_impl transpose_impl concat_impl
  gather_impl split_impl expand_impl slice_impl where_impl gelu_impl cast_op max_pool_with_index reduction_functions bias_gelu_impl
  bias_softmax_impl skip_layer_norm_impl
)
usage() { sed -n '2,13s/^# //p' "$0" >&2; exit 64; }
missing() { echo "onnxruntime-kernels.sh: $*" >&2; exit 77; }

python=python3 source='' only='' all='' arch=80 jobs=$(nproc) folder='' includes=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --python | --source | --include | --only | --arch | -j)
      [[ $# -ge 2 ]] || usage
      case $1 in
        --python) python=$2 ;;
        --source) source=$2 ;;
        --include) includes+=("-I$(cd "$2" && pwd)") || usage ;;
        --only) only=$2 ;;
        --arch) arch=$2 ;;
        -j) jobs=$2 ;;
      esac
      shift 2
      ;;
    --all) all=1; shift ;;
    -*) usage ;;
    *) [[ -z $folder ]] || usage; folder=$1; shift ;;
  esac
done
[[ -n $folder && $arch =~ ^[0-9]+$ && $jobs =~ ^[1-9][0-9]*$ ]] || usage
mkdir -p "$folder/build/include" || exit 1
folder=$(cd "$folder" && pwd)
build=$folder/build
python=$(command -v "$python") && [[ $python == /* ]] || python=$PWD/$python
[[ -z $source ]] || source=$(cd "$source" && pwd) || exit 64

# ---- the ONNX Runtime that is installed, its sources, and what they include ----

facts=$("$python" - <<'END'
import importlib.util, os, runpy
found = importlib.util.find_spec("onnxruntime")
if found:
    place = os.path.dirname(found.origin)
    about = runpy.run_path(os.path.join(place, "capi", "build_and_package_info.py"))
    print(os.path.dirname(place), about["__version__"], about.get("cuda_version", "none"), sep="\t")
END
) || missing "missing: $python"
IFS=$'\t' read -r site release cuda <<<"$facts"
[[ -n ${release:-} ]] || missing "missing: ONNX Runtime: $python cannot import onnxruntime"
[[ $cuda =~ ^[0-9]+\.[0-9]+ ]] || missing "missing: ONNX Runtime with CUDA (onnxruntime-gpu): the one in $site is for '$cuda'"

fetch() { # fetch URL NAME: unpacks an archive into $build/NAME
  [[ ! -e $build/$2 ]] || return 0
  rm -rf "$build/new" && mkdir -p "$build/new" && curl -fsSL "$1" -o "$build/new.archive" || return 1
  "$python" -c 'import shutil, sys; shutil.unpack_archive(*sys.argv[1:])' "$build/new.archive" "$build/new" "${3:-zip}" && rm "$build/new.archive" &&
    mv -T "$build"/new/* "$build/$2"
}
if [[ -z $source ]]; then
  source=$build/onnxruntime-$release
  fetch "https://github.com/microsoft/onnxruntime/archive/refs/tags/v$release.tar.gz" "onnxruntime-$release" gztar ||
    missing "missing: the sources of ONNX Runtime $release: give them with --source DIR"
fi
[[ -d $source/onnxruntime/core/providers/cuda ]] || missing "missing: $source/onnxruntime/core/providers/cuda: $source has no sources of ONNX Runtime"
source_release=$(head -c 32 "$source/VERSION_NUMBER" 2>/dev/null)
[[ ${source_release%%[^0-9.]*} == "$release" ]] ||
  missing "$source is ONNX Runtime ${source_release:-of an unknown release}, that of $site is $release: kernels would not have the same names"
if [[ ${#includes[@]} -eq 0 ]]; then
  for name in abseil_cpp microsoft_gsl safeint mp11; do
    url=$(awk -F';' -v name="$name" '$1 == name { print $2 }' "$source/cmake/deps.txt")
    fetch "$url" "$name" || missing "missing: the headers of $name ($url): give them with --include DIR"
    includes+=("-I$build/$name" "-I$build/$name/include")
  done
fi
touch "$build/include/onnxruntime_config.h" # its build writes one about the host's compiler
includes+=("-I$build/include" "-I$source/onnxruntime" "-I$source/include/onnxruntime" "-I$source/include/onnxruntime/core/session")
for part in "$site"/nvidia/*/include; do [[ $part == */cuda_runtime/* || ! -d $part ]] || includes+=("-I$part"); done

compiler=$build/cuda-$cuda
[[ -x $compiler/bin/nvcc ]] || "$(dirname "$0")/install-nvcc.sh" "$python" "$cuda" "$compiler" ||
  missing "missing: nvcc and the headers of CUDA $cuda: pip cannot install them from PyPI"
command -v g++ >/dev/null || missing "missing: g++"

# ---- which files ----

everything() {
  find "$source"/onnxruntime/{core/providers,contrib_ops}/cuda -name '*.cu' ! -path '*/cutlass*' ! -path '*/flash_attention/*' ! -path '*/test/*' |
    grep -vE 'fmha_|/moe/|/llm/' | sort
}
files=()
if [[ -n $all ]]; then mapfile -t files < <(everything)
else
  [[ -z $only ]] || IFS=, read -ra common <<<"$only"
  for name in "${common[@]}"; do
    found=$(everything | grep -E "/${name%.cu}\.cu$") || { echo "onnxruntime-kernels.sh: there is no $name.cu" >&2; [[ -z $only ]] || exit 64; continue; }
    mapfile -t -O ${#files[@]} files <<<"$found"
  done
fi

# ---- compiling ----

compile() {
  local file=$1 name log start=$SECONDS includes
  name=${file#"$source"/onnxruntime/} name=${name%.cu} name=${name//\//-}
  local made=$build/$name.made stamp
  stamp="onnxruntime $release cuda $cuda compute_$arch options 1 $(cksum <"$file")"
  [[ ! -e $folder/$name.ptx || $(cat "$made" 2>/dev/null) != "$stamp" ]] || return 0
  log=$build/$name.log
  mapfile -t includes <"$build/includes"
  if "$compiler/bin/nvcc" -std=c++17 --ptx -arch="compute_$arch" --expt-relaxed-constexpr -w -DNDEBUG -DSHARED_PROVIDER -DUSE_CUDA=1 \
    -DENABLE_CUDA_NHWC_OPS -DUSE_FLASH_ATTENTION=1 -DUSE_MEMORY_EFFICIENT_ATTENTION=1 -DONNX_NAMESPACE=onnx -DONNX_ML=1 -DEIGEN_USE_THREADS \
    "${includes[@]}" "$file" -o "$build/$name.part" >"$log" 2>&1; then
    mv "$build/$name.part" "$folder/$name.ptx" && echo "$stamp" >"$made" && rm -f "$log"
    printf '%5d s  %s\n' $((SECONDS - start)) "$name"
  else
    rm -f "$build/$name.part"
    printf 'failed   %s: %s: %s\n' "$name" "$log" "$(grep -m1 -E 'error' "$log")"
    return 1
  fi
}
export -f compile
export folder build source compiler release cuda arch
printf '%s\n' "${includes[@]}" >"$build/includes"
printf '%s\0' "${files[@]}" | xargs -0 -P "$jobs" -n1 bash -c 'compile "$1"' compile
[[ $? -eq 0 ]]
