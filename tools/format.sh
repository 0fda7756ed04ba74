#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Formats every C, C++ and proto file, or with --check names those that are not formatted and fails.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=(-i)
case ${1:-} in
  '') ;;
  --check) mode=(--dry-run --Werror) ;;
  *) echo "usage: tools/format.sh [--check]" >&2; exit 2 ;;
esac
find bpf userspace tools tests bench -name node_modules -prune -o \
  \( -name '*.c' -o -name '*.h' -o -name '*.cc' \) -print0 |
  xargs -0 clang-format --style=file "${mode[@]}"
