#!/usr/bin/env bash
# Builds exact sums, and windows whose steps break off, with ASan and UBSan, and runs them: no report, and nothing lost.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build/asan
"${CXX:-g++}" -std=gnu++20 -O1 -g1 -Wall -Wextra -fsanitize=address,undefined -fno-sanitize-recover=undefined -Isrc/core tests/core/steps.cpp -o build/asan/steps
build/asan/steps "$@"
