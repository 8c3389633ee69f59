#!/usr/bin/env bash
# pytorch-kernels.sh [OPTION...] FOLDER: compiles the CUDA kernels of an installed PyTorch from its sources to PTX, into FOLDER, for
# `farfault run --kernels FOLDER`. One PTX per source file; what is up to date is left alone, so a run that was stopped goes on where it was.
#   --python PYTHON    the Python that imports this PyTorch (default: python3)
#   --source DIR       PyTorch's sources of the same release (default: the release's archive from GitHub, kept in FOLDER/build)
#   --only NAME,...    these source files: FillKernel, sparse/cuda/SoftMax (default: what common training needs)
#   --operators        also what PyTorch's own samples of its operators need
#   --all              every source file with kernels; attention by CUTLASS is left out
#   --missing FILE     what `farfault run --missing FILE` has written
#   --list             say which files would be compiled, and whether they are up to date
#   --arch N           compute_N (default: 80)
#   -j N               so many compilers at once (default: as many as processors)
# The compiler (nvcc) comes from PyPI, with the headers of the CUDA version that PyTorch was built with. PyPI has no nvcc before CUDA 13: the
# one of 13.0 compiles with the older headers. Exit status: 1: a file could not be compiled; 64: wrong arguments; 77: something is missing.
set -uo pipefail

common=(
  FillKernel Copy UfuncCUDA_add BinaryMulKernel ReduceSumProdKernel ReduceMomentKernel RangeFactories DistributionNormal DistributionUniform
  BinaryDivTrueKernel ActivationThresholdKernel SoftMax NLLLoss2d Loss layer_norm_kernel ActivationGeluKernel Dropout Embedding
  EmbeddingBackwardKernel IndexKernel Shape ForeachBinaryOpScalar ForeachBinaryOpList ForeachPointwiseOp ForeachUnaryOp ForeachTernaryOp
  AmpKernels PointwiseOpsKernel BinaryMiscOpsKernels BinaryMiscBackwardOpsKernels DilatedMaxPool2d Normalization DistributionBernoulli
  PowKernel CompareEQKernel CompareKernels TensorCompare AbsKernel UnarySignKernels UnaryOpsKernel UnaryFractionKernels TriangularOps
  ReduceMaxValuesKernel ReduceLogicKernel ForeachBinaryOpScalarList ForeachBinaryOpScalarTensor ForeachReduceOp FusedAdamKernel
  fused_adam_impl FusedSgdKernel AdaptiveAveragePooling UnaryLogKernels UnarySpecialOpsKernel UnaryGeometricTanhKernel ReduceMinValuesKernel
  ReduceArgMaxKernel ReduceNormKernel DistributionRandomKernel Indexing ScatterGatherKernel TensorFactories Nonzero cub
  BinaryBitwiseOpsKernels BinaryLogicalOpsKernels MaxMinElementwiseKernel ActivationSiluKernel UnaryGeometricSinKernel
  UnaryGeometricCosKernel Lerp Sort SortStable SortImpl CumsumKernel LogcumsumexpKernel CumprodKernel UniqueCub TensorTopK TensorTransformations
  TensorShape Repeat cub-RadixSortPairs cub-RadixSortKeys
)
operators=(
  ActivationEluKernel ActivationGluKernel ActivationHardshrinkKernel ActivationHardsigmoidKernel ActivationHardswishKernel ActivationHardtanhKernel
  ActivationLeakyReluKernel ActivationLogSigmoidKernel ActivationMishKernel ActivationPreluKernel ActivationSoftplusKernel
  ActivationSoftshrinkKernel AdaptiveAveragePooling3d AdaptiveMaxPooling2d AdaptiveMaxPooling3d AveragePool2d AveragePool3d BinaryDivFloorKernel
  BinaryDivTruncKernel BinaryGeometricKernels BinaryRemainderKernel BinaryShiftOpsKernels Bucketization Col2Im ComplexKernel CopysignKernel CrossKernel
  CumminmaxKernel DilatedMaxPool3d DistanceKernel EmbeddingBag FunctionOfAMatrixUtilsKernel GcdLcmKernel GridSampler IGammaKernel Im2Col
  LinearAlgebra LogAddExpKernel LossCTC MaxUnpooling MultiLabelMarginCriterion MultiMarginLoss NaiveDilatedConvolution ReduceAMinMaxKernel
  ReduceArgMinKernel ReflectionPad RenormKernel ReplicationPadding SegmentReduce Sorting SpectralOps StepKernel SummaryOps TensorModeKernel
  UnaryComplexKernels UnaryGammaKernels UnaryGeometricAcosKernel UnaryGeometricAcoshKernel UnaryGeometricAsinKernel UnaryGeometricAsinhKernel
  UnaryGeometricAtanKernel UnaryGeometricAtanhKernel UnaryGeometricCoshKernel UnaryGeometricSinhKernel UnaryGeometricTanKernel UnfoldBackwardKernel
  Unique UpSampleBicubic2d UpSampleBilinear2d UpSampleLinear1d UpSampleNearest1d UpSampleNearest2d UpSampleNearest3d UpSampleTrilinear3d
  WeightNorm ZetaKernel group_norm_kernel sparse/cuda/SparseCUDATensor sparse/cuda/SparseCUDATensorMath sparse/cuda/SparseCsrTensorMath
)

usage() { sed -n '2,15s/^# //p' "$0" >&2; exit 64; }
missing() { echo "pytorch-kernels.sh: $*" >&2; exit 77; }

python=python3 source='' only='' all='' wanted='' list='' arch=80 jobs=$(nproc) folder=''
while [[ $# -gt 0 ]]; do
  case $1 in
    --python | --source | --only | --missing | --arch | -j)
      [[ $# -ge 2 ]] || usage
      case $1 in
        --python) python=$2 ;;
        --source) source=$2 ;;
        --only) only=$2 ;;
        --missing) wanted=$2 ;;
        --arch) arch=$2 ;;
        -j) jobs=$2 ;;
      esac
      shift 2
      ;;
    --all) all=1; shift ;;
    --operators) common+=("${operators[@]}"); shift ;;
    --list) list=1; shift ;;
    -*) usage ;;
    *) [[ -z $folder ]] || usage; folder=$1; shift ;;
  esac
done
[[ -n $folder && $arch =~ ^[0-9]+$ && $jobs =~ ^[1-9][0-9]*$ ]] || usage
mkdir -p "$folder/build/made" || exit 1
folder=$(cd "$folder" && pwd)
build=$folder/build
python=$(command -v "$python") && [[ $python == /* ]] || python=$PWD/$python
[[ -z $source ]] || source=$(cd "$source" && pwd) || exit 64

# ---- the PyTorch that is installed ----

facts=$("$python" - <<'END'
import importlib.util, os, runpy
found = importlib.util.find_spec("torch")
if found:
    place = os.path.dirname(found.origin)
    version = runpy.run_path(os.path.join(place, "version.py"))
    print(place, version["__version__"].split("+")[0], version["cuda"], sep="\t")
END
) || missing "missing: $python"
IFS=$'\t' read -r torch release cuda <<<"$facts"
[[ -n ${release:-} ]] || missing "missing: PyTorch: $python cannot import torch"
[[ $cuda =~ ^[0-9]+\.[0-9]+ ]] || missing "missing: PyTorch with CUDA: $torch is for '$cuda'"
site=$(dirname "$torch")

# ---- its sources ----

if [[ -z $source ]]; then
  source=$build/pytorch-$release
  if [[ ! -e $source/version.txt ]]; then
    echo "fetching the sources of PyTorch $release" >&2
    mkdir -p "$build/new" && curl -fsSL "https://github.com/pytorch/pytorch/archive/refs/tags/v$release.tar.gz" | tar xz -C "$build/new" &&
      mv -T "$build/new/pytorch-$release" "$source" || missing "missing: the sources of PyTorch $release: give them with --source DIR"
  fi
fi
kernels=$source/aten/src/ATen
[[ -d $kernels/native/cuda ]] || missing "missing: $kernels/native/cuda: $source has no sources of PyTorch"
source_release=$(head -c 32 "$source/version.txt" 2>/dev/null)
[[ ${source_release%%[^0-9.]*} == "$release" ]] ||
  missing "$source is PyTorch ${source_release:-of an unknown release}, $torch is $release: kernels would not have the same names"

# ---- the compiler, with the headers of PyTorch's CUDA ----

compiler=$build/cuda-$cuda
[[ -n $list || -x $compiler/bin/nvcc ]] || "$(dirname "$0")/install-nvcc.sh" "$python" "$cuda" "$compiler" || missing "missing: nvcc and the headers of CUDA $cuda: pip cannot install them from PyPI"
command -v g++ >/dev/null || missing "missing: g++"

# ---- what torchgen writes ----

generated=$build/generated-$release
if [[ ! -e $generated/done ]]; then
  "$python" -c 'import yaml' 2>/dev/null || missing "missing: PyYAML ($python -m pip install pyyaml), which torchgen needs"
  rm -rf "$generated" && mkdir -p "$generated/ATen" &&
    (cd "$generated" && "$python" -m torchgen.gen --source-path "$kernels" --install_dir "$generated/ATen" --per-operator-headers \
      --generate sources >"$build/torchgen.log" 2>&1) || missing "torchgen failed: $build/torchgen.log"
  touch "$generated/done"
fi

# ---- which files ----

everything() { # the .cu files that become a part of libtorch_cuda
  find "$kernels/native" "$kernels/cuda" "$source/c10/cuda" "$generated/ATen" -name '*.cu' ! -path '*/cutlass*' ! -path '*/flash_attn/*' \
    ! -path '*/mem_eff_attention/*' ! -path '*/ck_*' ! -path '*/hip/*' ! -path '*/test/*' | sort
}
named() { # named NAME: its files
  local name=${1%.cu}
  everything | grep -E "/${name//./\\.}(\.cu)?\.cu$" || { echo "pytorch-kernels.sh: there is no $name.cu" >&2; return 1; }
}
files=()
if [[ -n $all ]]; then mapfile -t files < <(everything)
elif [[ -n $wanted ]]; then
  [[ -r $wanted ]] || missing "missing: $wanted"
  names=$(cut -f1 "$wanted" | grep -E '\.cu$' | sort -u)
  for name in $names; do mapfile -t -O ${#files[@]} files < <(named "$name"); done
else
  [[ -z $only ]] || IFS=, read -ra common <<<"$only"
  for name in "${common[@]}"; do
    found=$(named "$name") || { [[ -n $only ]] && exit 64; continue; }
    [[ -n $only || $name == */* ]] || found=$(grep -E '/native/cuda/|/generated|/ATen/cuda/' <<<"$found")
    mapfile -t -O ${#files[@]} files <<<"$found"
  done
fi
[[ ${#files[@]} -gt 0 ]] || { echo "nothing to compile" >&2; exit 0; }

# ---- compiling ----

# The result's name: FillKernel; files of other folders than native/cuda have the folder in front.
result_name() {
  local file=${1%.cu} below
  case $file in
    "$kernels"/native/cuda/* | "$generated"/*) basename "$file" ;;
    "$kernels"/*) below=${file#"$kernels"/}; below=${below#native/}; echo "${below//\//-}" ;;
    *) below=${file#"$source"/}; echo "${below//\//-}" ;;
  esac
}
# What the result depends on, headers of the installed PyTorch by their release.
stamp() { echo "torch $release cuda $cuda compute_$arch options 1 $(cksum <"$1")"; }
compile() {
  local file=$1 name log start=$SECONDS part
  name=$(result_name "$file")
  if [[ -e $folder/$name.ptx && $(cat "$build/made/$name" 2>/dev/null) == "$(stamp "$file")" ]]; then
    [[ -z $list ]] || printf 'up to date  %s\n' "$name"
    return 0
  fi
  [[ -z $list ]] || { printf 'to compile  %s\n' "$name"; return 0; }
  log=$build/$name.log
  local includes=(-I"$torch/include" -I"$torch/include/torch/csrc/api/include" -I"$kernels/.." -I"$kernels" -I"$source" -I"$generated")
  for part in "$site"/nvidia/*/include; do [[ $part == */cuda_runtime/* ]] || includes+=(-I"$part"); done
  [[ ! -d $source/third_party/cutlass ]] || includes+=(-I"$source/third_party/cutlass/include")
  if "$compiler/bin/nvcc" -std=c++17 --ptx -arch="compute_$arch" --expt-relaxed-constexpr --expt-extended-lambda -w \
    -D_GLIBCXX_USE_CXX11_ABI=0 -DNDEBUG -DUSE_CUDA -DTORCH_CUDA_BUILD_MAIN_LIB -DAT_PER_OPERATOR_HEADERS -DCUB_WRAPPED_NAMESPACE=at_cuda_detail \
    -DCUDA_HAS_FP16=1 -D__CUDA_NO_HALF_OPERATORS__ -D__CUDA_NO_HALF_CONVERSIONS__ -D__CUDA_NO_HALF2_OPERATORS__ \
    -D__CUDA_NO_BFLOAT16_CONVERSIONS__ "${includes[@]}" "$file" -o "$build/$name.part" >"$log" 2>&1; then
    mv "$build/$name.part" "$folder/$name.ptx" && stamp "$file" >"$build/made/$name" && rm -f "$log"
    printf '%5d s  %s\n' $((SECONDS - start)) "$name"
  else
    rm -f "$build/$name.part"
    printf 'failed   %s: %s: %s\n' "$name" "$log" "$(grep -m1 -E 'error' "$log")"
    return 1
  fi
}
export -f compile result_name stamp
export folder build torch site source kernels generated compiler release cuda arch list
printf '%s\0' "${files[@]}" | xargs -0 -P "$jobs" -n1 bash -c 'compile "$1"' compile
[[ $? -eq 0 ]]
