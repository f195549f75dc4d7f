#!/usr/bin/env bash
# Builds a wheel's writer and readers, and windows and keyed wheels in many threads, with ThreadSanitizer, and lets them run: a data race
# or a wrong answer fails. An argument is the number of steps.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build/tsan
for what in wheel_threads window_threads; do
  "${CXX:-g++}" -std=gnu++20 -O1 -g -Wall -Wextra -fsanitize=thread -Isrc/core "tests/core/$what.cpp" -o "build/tsan/$what" -pthread
  TSAN_OPTIONS=halt_on_error=1:exitcode=66 "build/tsan/$what" "$@"
done
