#!/bin/sh
# Puts NVTX, for Python and as a header, into a virtual environment where it is missing:
#
# Usage: install.sh [FOLDER]     FOLDER is target/scopes unless given.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/../../target/scopes}
[ -e "$folder/venv/.complete" ] && exit 0
fail() { echo "scopes: $*" >&2; exit 1; }
command -v python3 >/dev/null || fail "no python3 in PATH"
command -v cc >/dev/null || fail "no C compiler in PATH (Debian: apt-get install gcc libc6-dev)"
command -v c++ >/dev/null || fail "no C++ compiler in PATH (Debian: apt-get install g++)"
mkdir -p "$folder"
rm -rf "$folder/venv"
python3 -m venv "$folder/venv" ||
    fail "cannot make a virtual environment (Debian: apt-get install python3-venv)"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt" ||
    fail "cannot install requirements.txt"
touch "$folder/venv/.complete"
echo "scopes: NVTX is ready in $folder/venv"
