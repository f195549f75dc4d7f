#!/usr/bin/env bash
# Builds the live engine's structures with ASan and UBSan, and lets them run against plain models; an argument is the number of steps.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build/live
"${CXX:-g++}" -std=gnu++20 -O0 -g1 -Wall -Wextra -fsanitize=address,undefined -fno-sanitize-recover=all -Isrc/core tests/core/live.cpp -o build/live/live
build/live/live "$@"
