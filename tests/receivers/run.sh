#!/bin/sh
# warpgauge against real receivers: prepares them where they are missing, builds, and runs every test.
#
# Usage: run.sh [--without collector] [--without victoriametrics]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
"$here/install.sh" "$root/target/receivers"
cd "$root"
cargo build --quiet --locked --workspace --examples --bins --lib
python=target/receivers/venv/bin/python
"$python" "$here/test_transport.py" "$@"
"$python" "$here/test_pass.py" "$@"
