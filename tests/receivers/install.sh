#!/bin/sh
# Prepares the receivers that warpgauge is tested against, each where it is missing:
#
#   python           a virtual environment with opentelemetry-proto and grpcio, for strict_receiver.py
#   collector        the OpenTelemetry Collector, built from its Go modules (needs Go)
#   victoriametrics  VictoriaMetrics from Debian trixie (needs apt-get; changes nothing of the system)
#
# Usage: install.sh [FOLDER [STEP...]]     FOLDER is target/receivers unless given.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/../../target/receivers}
[ $# -gt 0 ] && shift
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

builder_version=v0.155.0
victoriametrics_version='1.112.*'

say() { echo "receivers: $*"; }
fail() { echo "receivers: $*" >&2; return 1; }

install_python() {
    [ -e "$folder/venv/.complete" ] && { say "python is there"; return 0; }
    command -v python3 >/dev/null || { fail "python: no python3 in PATH"; return 1; }
    rm -rf "$folder/venv"
    python3 -m venv "$folder/venv" ||
        { fail "python: cannot make a virtual environment (Debian: apt-get install python3-venv)"; return 1; }
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt" ||
        { fail "python: cannot install requirements.txt"; return 1; }
    touch "$folder/venv/.complete"
    say "python is ready: $folder/venv"
}

install_collector() {
    [ -x "$folder/otelcol" ] && { say "collector is there"; return 0; }
    command -v go >/dev/null || { fail "collector: no go in PATH (1.25 or later)"; return 1; }
    work=$folder/collector-build
    rm -rf "$work"
    mkdir -p "$work"
    cp "$here/collector.yaml" "$work"
    say "collector: generating its sources"
    # The builder writes the sources and then tidies their modules, for which it wants even the
    # modules of the components' own tests. It may fail at that; `go build` wants less.
    (cd "$work" && go run "go.opentelemetry.io/collector/cmd/builder@$builder_version" \
        --config collector.yaml --skip-compilation) >"$work/builder.log" 2>&1 || true
    [ -e "$work/generated/go.mod" ] ||
        { fail "collector: the builder wrote no sources; see $work/builder.log"; return 1; }
    say "collector: building (about a minute)"
    (cd "$work/generated" && CGO_ENABLED=0 go build -mod=mod -trimpath -ldflags='-s -w' \
        -o "$folder/otelcol.new" .) >"$work/build.log" 2>&1 ||
        { fail "collector: does not build; see $work/build.log"; return 1; }
    mv "$folder/otelcol.new" "$folder/otelcol"
    rm -rf "$work"
    say "collector is ready: $folder/otelcol"
}

install_victoriametrics() {
    [ -x "$folder/victoria-metrics" ] && { say "victoriametrics is there"; return 0; }
    for tool in apt-get dpkg; do
        command -v $tool >/dev/null ||
            { fail "victoriametrics: no $tool; put a victoria-metrics binary (1.112) into $folder"; return 1; }
    done
    # The system's own mirror, with another release, in an apt world of its own.
    mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' \
        'Created-By: Packages' 'Label: Debian' | head -n 1)}
    [ -n "$mirror" ] ||
        { fail "victoriametrics: apt knows no Debian mirror; set DEBIAN_MIRROR"; return 1; }
    apt=$folder/apt
    rm -rf "$apt"
    mkdir -p "$apt/etc/preferences.d" "$apt/state/lists/partial" "$apt/cache/archives/partial"
    : >"$apt/state/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" \
        >"$apt/etc/sources.list"
    cat >"$apt/apt.conf" <<END
Dir "$apt";
Dir::Etc "$apt/etc";
Dir::Etc::SourceList "$apt/etc/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Parts "/dev/null";
Dir::State "$apt/state";
Dir::State::status "$apt/state/status";
Dir::Cache "$apt/cache";
APT::Sandbox::User "";
Acquire::Languages "none";
END
    say "victoriametrics: fetching its package (40 MB)"
    (cd "$apt" && export APT_CONFIG="$apt/apt.conf" && apt-get update &&
        apt-get download "victoria-metrics=$victoriametrics_version") >"$apt/apt.log" 2>&1 ||
        { fail "victoriametrics: cannot be had from $mirror; see $apt/apt.log"; return 1; }
    dpkg -x "$apt"/victoria-metrics_*.deb "$apt/package"
    mv "$apt/package/usr/bin/victoria-metrics" "$folder/victoria-metrics"
    rm -rf "$apt"
    say "victoriametrics is ready: $folder/victoria-metrics"
}

failed=0
for step in ${*:-python collector victoriametrics}; do
    case $step in
    python | collector | victoriametrics) "install_$step" || failed=1 ;;
    *) fail "there is no step $step: python, collector, victoriametrics" || failed=2 ;;
    esac
done
exit $failed
