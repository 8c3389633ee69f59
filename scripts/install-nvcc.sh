#!/usr/bin/env bash
# install-nvcc.sh PYTHON CUDA FOLDER: puts nvcc with the headers of CUDA (12.4) from PyPI into FOLDER, by that Python's pip: FOLDER/bin/nvcc. PyPI
# has no nvcc before CUDA 13: the one of 13.0 compiles with the older headers. Exit status: 1: something cannot be installed; 64: wrong arguments.
set -uo pipefail
[[ $# -eq 3 && $2 =~ ^[0-9]+\.[0-9]+ ]] || { sed -n '2,3s/^# //p' "$0" >&2; exit 64; }
python=$1 cuda=$2 compiler=$3 new=$3.new suffix="-cu${2%%.*}" nvcc=13.0.88
pip() { "$python" -m pip install -q --disable-pip-version-check --no-deps --target "$@"; }

rm -rf "$new" && mkdir -p "$new/bin" "$new/include" || exit 1
[[ ${cuda%%.*} -lt 13 ]] || { suffix=''; nvcc="$cuda.*"; }
echo "installing nvcc $nvcc and the headers of CUDA $cuda" >&2
pip "$new/tools" "nvidia-cuda-nvcc==$nvcc" "nvidia-cuda-crt==$nvcc" "nvidia-nvvm==$nvcc" || exit 1
pip "$new/headers" "nvidia-cuda-runtime$suffix==$cuda.*" "nvidia-cuda-cccl$suffix==$cuda.*" || exit 1
if [[ -n $suffix ]]; then # the headers that belong to the compiler, as that CUDA has them
  pip "$new/crt" "nvidia-cuda-nvcc$suffix==$cuda.*" || exit 1
fi
cp -r "$new"/tools/nvidia/cu13/{bin,nvvm} "$new/" || exit 1
for from in "$new"/crt/nvidia/*/include "$new"/headers/nvidia/*/include "$new"/headers/nvidia/*/include/cccl; do
  [[ ! -d $from ]] || cp -r "$from/." "$new/include/"
done
[[ -n $suffix ]] || cp -r "$new"/tools/nvidia/cu13/include/. "$new/include/"
if [[ ! -e $new/include/nv/target ]]; then # some packages of CUDA 12 lack the headers without an extension
  pip "$new/cccl" "nvidia-cuda-cccl$suffix==12.6.77" || exit 1
  cp -r "$new"/cccl/nvidia/cuda_cccl/include/{nv,cuda} "$new/include/" || exit 1
fi
sed -i -e "s#^INCLUDES .*#INCLUDES += \"-I\$(TOP)/include\" \$(_SPACE_)#" -e '/^SYSTEM_INCLUDES/d' "$new/bin/nvcc.profile"
rm -rf "$new"/{tools,headers,crt,cccl} "$compiler" && mv -T "$new" "$compiler"
