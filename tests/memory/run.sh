#!/usr/bin/env bash
# Looks for wrong memory accesses and data races in the injected library: run.sh [STEP...]
#
#   address   the library's own tests under AddressSanitizer and LeakSanitizer, with the compiler
#             that builds it
#   valgrind  host programs with the library injected and the stand-ins for NVIDIA's libraries,
#             under valgrind's memcheck: real calls across the foreign interfaces. --quick: some
#   miri      what runs without foreign libraries, interpreted: aliasing, provenance, validity
#   thread    the library's own tests and the host programs under ThreadSanitizer
#   quick     address, valgrind --quick: what every change has to pass, within a minute and a half
#   all       every step (default)
#
# miri and thread need a nightly toolchain (rustup toolchain install nightly --component
# miri,rust-src). A step whose tool is not here says so and is left out. valgrind's helgrind and drd
# are of no use: they do not know that Rust's mutexes, which are futexes, and its atomics order
# anything, and report every one of them.
set -euo pipefail
cd "$(dirname "$0")/../.."
memory=$PWD/tests/memory
built=$(realpath -m "${CARGO_TARGET_DIR:-target}")/memory
triple=x86_64-unknown-linux-gnu
export CARGO_TERM_COLOR=never RUST_BACKTRACE=0

say() { printf -- '-- %s (%ss)\n' "$*" "$SECONDS"; }
nightly_has() { rustup +nightly component list 2>/dev/null | grep -qE "^$1.*installed"; }

address() {
    # A stable compiler has the sanitizer and hides its switch.
    RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address \
        LSAN_OPTIONS="suppressions=$memory/leaks.supp:print_suppressions=0" \
        cargo test --quiet --locked -p warpgauge-wire -p warpgauge-instrument --lib \
        --test foreign_structures --test scopes --test steady_state \
        --target "$triple" --target-dir "$built/address"
}

valgrind_is_here() {
    command -v valgrind >/dev/null && return
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return
    apt-get update -qq && apt-get install -y -qq valgrind >/dev/null
}

# Host programs under memcheck: cases LEAKS FILE... -- WORDS. The log goes to the program's standard
# error, which the cases expect to be empty, and an error changes its exit code, which they expect
# to be its own.
cases() {
    local under="valgrind --quiet --error-exitcode=99 --fair-sched=yes --leak-check=$1" files=()
    [ "$1" = no ] || under+=" --show-leak-kinds=definite --errors-for-leak-kinds=definite"
    shift
    while [ "$1" != -- ]; do files+=("--test=instrument_$1") && shift; done
    WARPGAUGE_TESTS_RUN_UNDER=$under cargo test --quiet --locked --no-fail-fast -p warpgauge-tests \
        "${files[@]}" "$@"
}

valgrind_() {
    valgrind_is_here || { say "valgrind is not here and cannot be installed: left out"; return; }
    if [ "${1:-}" = --quick ]; then
        cases no ends -- launches_are_published_when_another_thread_calls_exit_at_once a_forked_child
        cases full graphs launches sampling -- every_kernel_of_a_graph a_launch_in_clusters \
            many_threads_lose_no_launch constant_kernels_are_counted_without_an_error \
            a_kernel_that_gets_the_handle_of_an_unloaded_one
        return
    fi
    # Of a forked child's memory, what belonged to threads that it does not have counts as lost.
    # Left out: a program that replaces itself, because /proc/self/exe is valgrind here; and
    # three whose programs run for a second or two, which here is over before they are measured.
    cases no ends -- --skip a_program_that_replaces_itself
    cases full graphs launches listing faults sampling -- \
        --skip a_window_that_another_thread_launched_into \
        --skip a_failing_call_of_the_sass_metrics --skip patches_that_work_only_eagerly
}

miri() {
    nightly_has miri || { say "no nightly toolchain with miri: left out"; return; }
    # Left out: what opens files with flags that the interpreter does not know or asks the loader,
    # and what would take it hours. Leaks are looked for in step address, with the one on purpose.
    local flags="-Zmiri-disable-isolation -Zmiri-permissive-provenance -Zmiri-ignore-leaks"
    PROPTEST_CASES=4 MIRIFLAGS=$flags \
        cargo +nightly miri test --quiet --locked -p warpgauge-instrument --lib \
        --target-dir "$built/miri" -- \
        contexts::tests guard::tests lifecycle::tests meter::tests probes:: window::tests
    MIRIFLAGS=-Zmiri-permissive-provenance \
        cargo +nightly miri test --quiet --locked -p warpgauge-instrument \
        --test foreign_structures --target-dir "$built/miri" -- --skip callbacks_and_the_worker
}

thread() {
    nightly_has rust-src || { say "no nightly toolchain with rust-src: left out"; return; }
    # The standard library is built along, or its own synchronisation would not be seen. A library
    # finds the sanitizer in the program that loads it, which has to export it.
    export RUSTFLAGS="-Zsanitizer=thread -Clink-arg=-rdynamic" CARGO_UNSTABLE_BUILD_STD=std \
        CARGO_BUILD_TARGET=$triple CARGO_TARGET_DIR=$built/thread
    cargo +nightly test --quiet --locked -p warpgauge-instrument --lib --test foreign_structures
    # Left out: a case that wants every one of four threads' kernels measured in two seconds.
    cargo +nightly test --quiet --locked --no-fail-fast -p warpgauge-tests \
        --test instrument_launches --test instrument_sampling --test instrument_listing -- \
        --skip a_window_that_another_thread_launched_into
}

step() {
    say "$@"
    # In a shell of its own: what a step exports is its own.
    case $1 in
    address | miri | thread) ("$1") ;;
    valgrind) (valgrind_ "${2:-}") ;;
    *) say "there is no step $1" && return 2 ;;
    esac
}

[ $# -gt 0 ] || set -- all
case $1 in
quick) step address && step valgrind --quick ;;
all) step address && step valgrind && step miri && step thread ;;
*) step "$@" ;;
esac
say "done"
