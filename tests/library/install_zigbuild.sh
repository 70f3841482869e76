#!/usr/bin/env bash
# Installs cargo-zigbuild and zig into a virtual environment where they are missing:
# install_zigbuild.sh FOLDER
#
# Both come as wheels. The versions are pinned together: a newer zig may lay out its libraries in a
# way that this cargo-zigbuild does not know.
set -euo pipefail
folder=$1
[ -e "$folder/.complete" ] && exit 0
rm -rf "$folder"
if ! python3 -m venv "$folder" 2>/dev/null; then
    rm -rf "$folder"
    apt-get update -qq && apt-get install -y -qq python3-venv
    python3 -m venv "$folder"
fi
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check \
    'cargo-zigbuild==0.20.1' 'ziglang==0.17.1'
touch "$folder/.complete"
