#!/usr/bin/env bash
# Builds the core with ASan and UBSan beside the ordinary one, and runs the state machines on it.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/sanitize
python=$PWD/.venv/bin/python
PATH=$PWD/.venv/bin:$PATH cmake -S . -B "$build" -G Ninja -DPython_EXECUTABLE="$python" -DSASH_SANITIZE=address,undefined >/dev/null
PATH=$PWD/.venv/bin:$PATH cmake --build "$build" -j 2
rm -rf "$build/site" && mkdir -p "$build/site" && cp -r src/sash "$build/site/" && cp "$build"/_core*.so "$build/site/sash/"
export PYTHONPATH=$PWD/$build/site PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libubsan.so) $(g++ -print-file-name=libstdc++.so)" \
  "$python" -m pytest -m "not stress and not spark" tests/swag tests/wheel tests/engine tests/truth tests/golden tests/test_agg.py tests/test_arrays.py tests/test_compiled.py tests/test_catalogue.py tests/test_sketches.py --timeout 3000 "$@"
