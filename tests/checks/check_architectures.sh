#!/usr/bin/env bash
# check_architectures.sh - the GPUs that CMake chooses for versions of nvcc, which are scripts here.
#
# usage: check_architectures.sh CMAKE
set -euo pipefail
cmake=${1:?usage: check_architectures.sh CMAKE}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/checks/scratch.sh

# nvcc_of VERSION STATUS NUMBER...: an nvcc of that version whose compilations end with the status.
nvcc_of() {
    local version=$1 status=$2
    shift 2
    cat >"$scratch/nvcc" <<SH
#!/bin/sh
case \$1 in
--version) echo "Cuda compilation tools, release $version, V$version.88" ;;
--list-gpu-arch) printf 'compute_%s\\n' $* ;;
*) [ $status = 0 ] || echo "host_config.h:143:2: error: unsupported GNU version!" >&2; exit $status ;;
esac
SH
    chmod +x "$scratch/nvcc"
}

# gives ARCHITECTURES EXPECTED [OPTION]: EXPECTED is the start of a line of the output.
gives() {
    local found
    found=$(cd "$scratch" && "$cmake" -DSTOKER_NVCC="$scratch/nvcc" "-DSTOKER_CUDA_ARCHITECTURES=$1" \
        "${3:--DSTOKER_NVIDIA_SMI=$scratch/none}" \
        -P "$OLDPWD/tests/checks/print_architectures.cmake" 2>&1) || true
    grep -qF -- "$2" <<<"$found" || fail "$1: want \"$2\", got: $found"
}

nvcc_of 13.0 0 75 80 86 87 88 89 90 100 110 103 120 121
gives all '7.5 8.0 8.6 8.9 9.0 10.0 12.0 PTX 9.0 | '
gives all ';arch=compute_90,code=[sm_90,compute_90];'
gives all 'STK_FATBIN_TOOLKIT=13000;STK_FATBIN_TARGETS="7.5 '
gives '120;80-real;90-virtual' '8.0 12.0 PTX 9.0 12.0 | '
gives '75-virtual' 'PTX 7.5 | -Xfatbin=-compress-all;-gencode;arch=compute_75,code=[compute_75] |'
gives native 'unused: nvidia-smi names no GPU'
printf '#!/bin/sh\necho 8.6\necho 12.0\necho 8.6\n' >"$scratch/nvidia-smi"
chmod +x "$scratch/nvidia-smi"
gives native '8.6 12.0 PTX 8.6 12.0 | ' "-DSTOKER_NVIDIA_SMI=$scratch/nvidia-smi"
gives '70;80' 'has 70, which nvcc 13.0 does not'
gives 'sm_80' 'use native, all, or a list'
nvcc_of 12.4 0 50 52 53 60 61 62 70 72 75 80 86 87 89 90
gives all '7.5 8.0 8.6 8.9 9.0 PTX 9.0 | '
gives all 'STK_FATBIN_TOOLKIT=12040;'
gives '70-real;90' '7.0 9.0 PTX 9.0 | '
nvcc_of 11.8 0 35 80 90
gives all 'unused: needs nvcc of CUDA 12.0'
nvcc_of 12.0 1 75 80 90
gives all 'unused: host_config.h:143:2: error: unsupported GNU version!'
verdict
