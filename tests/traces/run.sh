#!/bin/sh
# Converted traces, judged by software that is not ours. Prepares the judges where they are missing,
# builds, and makes a session's log to draw.
#
# Usage: run.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
"$here/install.sh" "$root/target/traces"
cd "$root"
cargo build --quiet --locked -p warpgauge-formats --example convert_trace
python3 tests/fixtures/gpuflight/generate_session.py --out target/traces/session \
    --kernels 500 --names 20 --samples 50 --scopes 100 --pcs 500 --memcpy 100 >/dev/null
target/traces/venv/bin/python "$here/judge" target/debug/examples/convert_trace \
    target/traces/trace_processor target/traces/session
cargo build --quiet --locked -p warpgauge --bin warpgauge
traces=$(ls tests/fixtures/kineto/*.json* | grep -v invalid)
# shellcheck disable=SC2086 # names of fixtures hold no spaces
target/traces/venv/bin/python "$here/statistics.py" target/debug/warpgauge $traces
