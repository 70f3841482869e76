#!/bin/sh
# Programs that say what they do, through NVTX and through our own functions, and what the event log
# says of them. Installs NVTX where it is missing, builds, and runs every test.
#
# Usage: run.sh [NAME_OF_A_TEST...]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
"$here/install.sh" "$root/target/scopes"
cd "$root"
cargo build --quiet --locked -p warpgauge-instrument -p warpgauge-scope -p standin-cuda -p standin-cupti --lib --examples
exec target/scopes/venv/bin/python "$here/test_scopes.py" "$@"
