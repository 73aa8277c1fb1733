#!/bin/bash
# ipuscope.py, the Python module: spans, keys, statistics of numpy's and PyTorch's arrays beside their own, a NaN in a
# gradient. With Debian's python3, python3-numpy and python3-torch; each part is left out where its package is not there.
# Usage: python_module.sh BUILD_DIR
set -eu
source=${IPUSCOPE_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
python=/usr/bin/python3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

[ -x $python ] || { echo "skipped: no $python"; exit 77; }
export IPUSCOPE_LIBRARY_DIR=$1/outfeed PYTHONPATH=$source/python PYTHONDONTWRITEBYTECODE=1
if nm -D "$IPUSCOPE_LIBRARY_DIR/libipuscope-outfeed.so" | grep '__[at]san_init' >/dev/null; then echo "skipped: built with sanitizers"; exit 77; fi
cd "$work"
$python "$source/tests/outfeed/python_calls.py"
if $python -c 'import numpy' 2>/dev/null; then $python "$source/tests/outfeed/python_numpy.py"; else echo "left out: no python3-numpy"; fi
$python -c 'import torch' 2>/dev/null || { echo "skipped: the module and numpy's arrays are right, python3-torch is not installed"; exit 77; }
$python "$source/tests/outfeed/python_torch.py"
