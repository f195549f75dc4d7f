#!/usr/bin/env bash
# Builds the wheel's writer and readers with ThreadSanitizer, and lets them run: a data race or a wrong answer fails.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build/tsan
"${CXX:-g++}" -std=gnu++20 -O1 -g -Wall -Wextra -fsanitize=thread -Isrc/core tests/core/wheel_threads.cpp -o build/tsan/wheel_threads -pthread
TSAN_OPTIONS=halt_on_error=1:exitcode=66 build/tsan/wheel_threads "$@"
