"""Programs that say what they do, and what the event log says of them.

Each test starts one program with the library named by NVTX_INJECTION64_PATH, lists it, and reads the
log when it has ended. None of them uses CUDA.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "scopes"
BUILT = ROOT / "target" / "scopes"
CARGO = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug"
LIBRARY = CARGO / "libwarpgauge_instrument.so"
PATIENCE_S = 60


def header_folder():
    """The folder of NVTX's header in the virtual environment."""
    found = list((BUILT / "venv").glob("lib/python*/site-packages/**/nvtx3/nvToolsExt.h"))
    return found[0].parents[1]


def compile_(name, sources, *options):
    """Compiles a program with every warning as an error, and gives its path."""
    (BUILT / "programs").mkdir(parents=True, exist_ok=True)
    program = BUILT / "programs" / name
    is_cpp = sources[0].endswith(".cpp")
    command = ["c++" if is_cpp else "cc", "-O2", "-Wall", "-Wextra", "-Werror"]
    command += ["-isystem", str(header_folder()), "-I", str(ROOT / "instrument" / "include")]
    command += [*options, *(str(HERE / "programs" / source) for source in sources)]
    command += ["-o", str(program), "-pthread", "-ldl"]
    subprocess.run(command, check=True, timeout=PATIENCE_S)
    return program


class World:
    """Folders of one test, and the environment of its programs."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        (self.path / "events").mkdir()
        (self.path / "measurements").mkdir()
        self.runtime_config = self.path / "runtime.conf"
        self.runtime_config.touch()
        self.environment = {
            "PATH": os.environ["PATH"],
            "NVTX_INJECTION64_PATH": str(LIBRARY),
            "WARPGAUGE_EVENTS": "gpumon",
            "WARPGAUGE_EVENTS_FOLDER": str(self.path / "events"),
            "WARPGAUGE_LOGFILE": str(self.path / "log"),
            "WARPGAUGE_MEASUREMENTS_OUTPUT_DIR": str(self.path / "measurements"),
            "WARPGAUGE_RUNTIME_CONFIG_PATH": str(self.runtime_config),
        }

    def run(self, *words, without=(), **more):
        """Runs a program that is listed from its first moment on, and gives what it printed."""

        def list_itself():
            with open(self.runtime_config, "w", encoding="ascii") as file:
                file.write(f"{os.getpid()}:1\n")

        environment = {**self.environment, **more}
        for name in without:
            environment.pop(name, None)
        done = subprocess.run(
            [str(word) for word in words],
            env=environment,
            preexec_fn=list_itself,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=PATIENCE_S,
        )
        assert (done.returncode, done.stderr) == (0, b""), done
        return done.stdout.decode()

    def logs(self):
        """The events of each log, by the name of its file."""
        return {
            path.name: [json.loads(line) for line in path.read_text("utf-8").splitlines()]
            for path in sorted((self.path / "events").iterdir())
        }

    def events(self):
        """The events of the only log, without its first and last line."""
        (events,) = self.logs().values()
        assert (events[0]["type"], events[-1]["type"]) == ("init", "shutdown"), events
        assert events[-1]["lost"] == 0, events[-1]
        return events[1:-1]

    def said(self):
        """What the library's log says was not recorded as it was said: reason and count."""
        log = (self.path / "log").read_text("utf-8")
        said = re.search(r"scopes: not recorded as they were said: (.*)", log)
        pairs = said.group(1).split(", ") if said else []
        return {name: int(count) for name, count in (pair.split(" ") for pair in pairs)}


def short(event):
    """Type, name and domain of an event."""
    return (event["type"].removeprefix("scope_"), event["name"], event.get("tag"))


def scope(name, *within, domain=None):
    """The events of a scope with others within it."""
    events = [("begin", name, domain)]
    for inner in within:
        events += inner
    return [*events, ("end", name, domain)]


class Nvtx(unittest.TestCase):
    """Programs that know nothing of us."""

    @classmethod
    def setUpClass(cls):
        cls.c = compile_("nvtx_c", ["nvtx.c"], "-std=c11", "-Wpedantic")
        cls.cpp = compile_("nvtx_cpp", ["nvtx.cpp"], "-std=c++17")

    def setUp(self):
        self.world = World()
        self.addCleanup(self.world.folder.cleanup)

    def shorts(self):
        return [short(event) for event in self.world.events()]

    def test_levels_are_answered_and_scopes_lie_within_each_other(self):
        self.assertEqual(self.world.run(self.c, "levels"), "0 1 1 0\n")
        self.assertEqual(
            self.shorts(), [*scope("outer", scope("d\u00e9j\u00e0 vu")), *scope("mark")]
        )
        for event in self.world.events():
            if event["type"] == "scope_end":
                self.assertEqual(event["ts_end_ns"] - event["ts_start_ns"], event["duration_ns"])

    def test_ranges_overlap_and_end_on_other_threads(self):
        self.world.run(self.c, "ranges")
        self.assertEqual(
            self.shorts(),
            [("begin", "first", None), ("begin", "second", None), ("end", "first", None),
             ("end", "second", None)],
        )
        self.assertEqual(self.world.said(), {"end_without_begin": 2})

    def test_domains_and_registered_names(self):
        self.world.run(self.c, "domains")
        # Neither format has a place for categories, colours and payloads.
        self.assertIn("scope attributes 3", (self.world.path / "log").read_text("utf-8"))
        self.assertEqual(
            self.shorts(),
            [("begin", "step", "training"), ("begin", "of no domain", None),
             ("end", "step", "training"), ("end", "of no domain", None),
             *scope("wide step", domain="training"), *scope("wide step", domain="training")],
        )

    def test_whatever_a_program_does_wrong_it_goes_on_and_it_is_counted(self):
        self.world.run(self.c, "wrong")
        (events,) = self.world.logs().values()
        recorded = len(events) - 2 + events[-1]["lost"]
        # 5 nameless scopes, 3 nameless marks, the long name, 128 deep ones, 5,000 domains' and the
        # last one, each with its end; 4,096 ranges that have none.
        self.assertEqual(recorded, 2 * (5 + 3 + 1 + 128 + 5000 + 1) + 4096)
        names = {event["name"] for event in events if "name" in event}
        if events[-1]["lost"] == 0:
            self.assertIn("still alive", names)
            self.assertIn("x" * 4096, names)
        self.assertEqual(
            self.world.said(),
            {"end_without_begin": 1 + 5 + 100, "too_deep": 372, "too_many_ranges": 10_000 - 4096,
             "long_name": 1, "malformed": 13, "unknown_payload": 1},
        )

    def test_eight_threads_lose_nothing(self):
        self.world.run(self.c, "threads")
        expected = {
            ("begin", name, None): 1600 for name in ("outer of a thread", "inner of a thread")
        } | {("end", name, None): 1600 for name in ("outer of a thread", "inner of a thread")}
        counts = {}
        for event in self.shorts():
            counts[event] = counts.get(event, 0) + 1
        self.assertEqual(counts, expected)

    def test_a_forked_child_says_nothing_and_exits_as_it_would(self):
        self.assertEqual(self.world.run(self.c, "forks"), "3\n")
        self.assertEqual(self.shorts(), scope("parent"))

    def test_a_child_that_becomes_another_program_has_its_own_log(self):
        self.world.run(self.c, "executes")
        logs = [[short(event) for event in log[1:-1]] for log in self.world.logs().values()]
        child = [*scope("outer", scope("d\u00e9j\u00e0 vu")), *scope("mark")]
        self.assertCountEqual(logs, [scope("before the child"), child])

    def test_a_signal_handler_that_says_something_harms_nothing(self):
        self.assertEqual(self.world.run(self.c, "signals"), "done\n")
        (events,) = self.world.logs().values()
        depth = {}
        for event in events[1:-1]:
            depth.setdefault(event["name"], 0)
            depth[event["name"]] += {"scope_begin": 1, "scope_end": -1}[event["type"]]
        if events[-1]["lost"] == 0:
            self.assertEqual(set(depth.values()), {0})
        self.assertLessEqual(set(self.world.said()), {"interrupted", "end_without_begin"})

    def test_the_header_of_cpp(self):
        self.world.run(self.cpp)
        events = self.shorts()
        step = scope(
            "registered step", scope("function", domain="training"), domain="training"
        )
        self.assertEqual(events[:-1], [
            ("begin", "whole", None), *step, *scope("moved to another thread"), *scope("done"),
        ])
        self.assertEqual(events[-1], ("end", "whole", None))

    def test_python(self):
        self.world.run(BUILT / "venv" / "bin" / "python", HERE / "programs" / "nvtx_.py")
        # A domain of its own where the program names none.
        self.assertEqual(
            self.shorts(),
            [*scope("function", scope("within", domain="training")),
             *scope("pushed", domain="training"), *scope("range", domain="training"),
             *scope("d\u00e9j\u00e0 vu")],
        )
        self.assertEqual(self.world.said(), {})

    def test_columnar_batches_tell_the_same(self):
        self.world.run(self.c, "threads", WARPGAUGE_EVENTS="gpu-flight")
        (path,) = (self.world.path / "events").glob("*.scope.*")
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        batches = [line for line in lines if line["type"] == "scope_event_batch"]
        self.assertEqual(sum(len(batch["rows"]) for batch in batches), 4 * 1600)

    def test_without_an_event_log_nvtx_is_as_without_a_tool(self):
        answer = self.world.run(self.c, "levels", WARPGAUGE_EVENTS="off")
        self.assertEqual(answer, "-2 -2 -2 -2\n")
        self.assertEqual(self.world.logs(), {})
        self.assertFalse((self.world.path / "log").exists())

    def test_a_program_that_is_not_listed_is_not_heard(self):
        self.world.run("/bin/sh", "-c", f"{self.c} levels; true")
        self.assertEqual(self.world.logs(), {})


class Own(unittest.TestCase):
    """Programs that call us."""

    C = [
        *scope(
            "outer",
            scope("function", scope("second in a block")),
            scope("function", scope("second in a block", scope("not early"))),
            scope("in another file"),
            scope("range"),
        ),
        *scope("(name unknown)"),
    ]

    def setUp(self):
        self.world = World()
        self.addCleanup(self.world.folder.cleanup)

    def check(self, expected):
        events = self.world.events()
        self.assertEqual([short(event)[:2] for event in events], [event[:2] for event in expected])
        self.assertEqual({event["tag"] for event in events}, {"warpgauge"})

    def test_c_in_every_standard(self):
        for standard in ("c99", "c11", "c17"):
            program = compile_(
                "own_c", ["own.c", "own_other.c"], f"-std={standard}", "-Wpedantic"
            )
        self.assertEqual(self.world.run(program), "1\n")
        self.check(self.C)
        self.assertEqual(self.world.said(), {"end_without_begin": 1, "malformed": 1})

    def test_cpp_in_every_standard(self):
        for standard in ("c++11", "c++14", "c++17", "c++20"):
            program = compile_("own_cpp", ["own.cpp"], f"-std={standard}", "-Wpedantic")
        self.world.run(program)
        self.check(scope("whole", scope("left by an exception"), scope("caught")))

    def test_python(self):
        program = HERE / "programs" / "own.py"
        printed = self.world.run(sys.executable, program, PYTHONPATH=str(ROOT / "res" / "python"))
        self.assertEqual(printed, "True\n")
        self.check([
            *scope("outer", scope("function"), scope("left by an exception"),
                   scope("d\u00e9j\u00e0 vu"), scope("a zero \\0 in it")),
            *scope("range"),
        ])

    def test_rust(self):
        self.assertEqual(self.world.run(CARGO / "examples" / "speak"), "true true\n")
        device = scope("device 1")
        self.check([
            ("begin", "whole"), *scope("block", scope("mark")), ("begin", "range"), *device,
            ("end", "range"), ("end", "whole"),
        ])

    def test_the_library_is_found_where_another_variable_names_it(self):
        variables = {"CUDA_INJECTION64_PATH": str(LIBRARY)}
        program = compile_("own_c", ["own.c", "own_other.c"])
        printed = self.world.run(program, without=["NVTX_INJECTION64_PATH"], **variables)
        self.assertEqual(printed, "1\n")
        self.check(self.C)

    def test_where_the_library_is_absent_or_writes_no_log_nothing_happens(self):
        own_c = compile_("own_c", ["own.c", "own_other.c"])
        python = [sys.executable, HERE / "programs" / "own.py"]
        path = {"PYTHONPATH": str(ROOT / "res" / "python")}
        for absence in (
            {"NVTX_INJECTION64_PATH": ""},
            {"NVTX_INJECTION64_PATH": "/nowhere/libwarpgauge_instrument.so"},
            {"NVTX_INJECTION64_PATH": "/usr/lib/another_tool.so"},
            {"WARPGAUGE_EVENTS": "off"},
        ):
            self.assertEqual(self.world.run(own_c, **absence), "0\n")
            self.assertEqual(self.world.run(*python, **absence, **path), "False\n")
            speak = self.world.run(CARGO / "examples" / "speak", **absence)
            self.assertEqual(speak, "false true\n")
            self.assertEqual(self.world.logs(), {})

    def test_a_program_is_measured_though_its_first_scope_came_before_cuda(self):
        libraries = self.world.path / "lib"
        libraries.mkdir()
        shutil.copy(CARGO / "libstandin_cuda.so", libraries / "libcuda.so.1")
        shutil.copy(CARGO / "libstandin_cupti.so", libraries / "libcupti.so.13")
        printed = self.world.run(
            sys.executable,
            HERE / "programs" / "before_cuda.py",
            PYTHONPATH=str(ROOT / "res" / "python"),
            LD_LIBRARY_PATH=str(libraries),
            CUDA_INJECTION64_PATH=str(LIBRARY),
        )
        self.assertEqual(printed, "0\n")
        self.check([*scope("before"), *scope("with CUDA")])
        log = (self.world.path / "log").read_text("utf-8")
        self.assertIn("measuring through", log)

    def test_scopes_are_heard_from_when_the_program_is_listed(self):
        self.world.run(
            sys.executable,
            HERE / "programs" / "listed_late.py",
            PYTHONPATH=str(ROOT / "res" / "python"),
            WARPGAUGE_RUNTIME_CONFIG_POLLING_INTERVAL="1",
        )
        names = {event["name"] for event in self.world.events()}
        self.assertNotIn("before", names)
        self.assertLessEqual({"after"}, names)


if __name__ == "__main__":
    unittest.main(verbosity=2)
