"""Programs with the library injected: started, listed, and what the library published of them."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ALL_FUNCTIONS = "0,1,2,3"
INSTRUCTIONS, OCCUPANCY, COALESCENCE, DIVERGENCE, LAUNCHES = range(5)
# Of polling and of flushing, both a second: what was asked for has happened.
TWO_INTERVALS = 2.2
FLUSHED = re.compile(r": \d+ launches$")
CUPTI = "libcupti.so.13"
# The ordinary user of most systems, "nobody".
ORDINARY_USER = 65534


@dataclass
class Tools:
    """Where everything is."""

    package: Path
    """The unpacked package: the library and the programs."""
    work: Path
    """Where the kernels were compiled to, and where runs keep their folders."""
    dry_run: bool = False
    """Whether a stand-in takes the place of the driver."""

    @property
    def library(self) -> Path:
        return self.package / "libwarpgauge_instrument.so"

    @property
    def launcher(self) -> Path:
        return self.work / "launcher"

    def counts(self) -> dict[str, tuple[int, int]]:
        """What `analytic.model` says of the kernels."""
        kernels = json.loads((self.work / "kernels.json").read_text())
        return {name: (constant, per_iteration) for name, (constant, per_iteration) in kernels.items()}

    def parameter(self, wanted: int) -> int:
        """A kernel's parameter; of the stand-in's kernels it is always one."""
        return 1 if self.dry_run else wanted

    @property
    def module(self) -> Path:
        return self.work / "kernels.cubin"

    def environment(self) -> dict[str, str]:
        """That of every program, with or without the library."""
        environment = dict(os.environ)
        environment.pop("CUDA_INJECTION64_PATH", None)
        if self.dry_run:
            environment["LD_LIBRARY_PATH"] = str(self.package / "standins")
            environment["STANDIN_CUDA_SCRIPT"] = str(self.work / "device")
        elif cupti := cupti_elsewhere():
            environment["WARPGAUGE_CUPTI_PATH"] = cupti
        return environment


@cache
def cupti_elsewhere() -> str | None:
    """libcupti.so.13 where neither the loader nor the library looks for it: beside another nvcc
    than the one in /usr/local/cuda, or among Python's packages."""
    usual = ("/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64")
    known = subprocess.run(["/bin/sh", "-c", "PATH=$PATH:/sbin ldconfig -p"], capture_output=True, text=True)
    if "libcupti.so.13" in known.stdout or any(Path(folder, CUPTI).exists() for folder in usual):
        return None
    nvcc = shutil.which("nvcc")
    toolkit = Path(nvcc).resolve().parents[1] if nvcc else Path("/usr/local/cuda")
    packages = [Path(entry) / "nvidia" for entry in sys.path if entry.endswith("-packages")]
    patterns = [
        (toolkit, "extras/CUPTI/lib64"), (toolkit, "targets/*/lib"),
        (Path("/usr/local"), "cuda-*/extras/CUPTI/lib64"),
        *((folder, "*/lib") for folder in packages),
    ]
    found = (path for root, pattern in patterns for path in root.glob(f"{pattern}/{CUPTI}"))
    return next((str(path) for path in found), None)


@dataclass
class Published:
    """The measurement files of one process, added up."""

    instructions: int | None = None
    launches: int = 0
    percents: dict[int, list[float]] = field(default_factory=dict)
    files: int = 0

    def mean(self, function: int) -> float | None:
        values = self.percents.get(function)
        return sum(values) / len(values) if values else None


class Run:
    """A program and the folder in which the library works for it.

    Use it in a `with` statement: what still runs at its end is killed, by its own id.
    """

    def __init__(self, tools: Tools, command: list[str], *, inject: bool = True,
                 user: int | None = None, **environment: str) -> None:
        self.dry_run = tools.dry_run
        self.folder = Path(tempfile.mkdtemp(dir=tools.work, prefix="run-"))
        self.measurements = self.folder / "measurements"
        self.measurements.mkdir()
        for folder in (self.folder, self.measurements):
            folder.chmod(0o777)
        self.runtime_config = self.folder / "runtime.conf"
        self.runtime_config.touch(0o644)
        self.log = self.folder / "instrument.log"
        variables = tools.environment()
        if inject:
            variables |= {
                "CUDA_INJECTION64_PATH": str(tools.library),
                "WARPGAUGE_RUNTIME_CONFIG_PATH": str(self.runtime_config),
                "WARPGAUGE_RUNTIME_CONFIG_POLLING_INTERVAL": "1",
                "WARPGAUGE_MEASUREMENTS_OUTPUT_DIR": str(self.measurements),
                "WARPGAUGE_FLUSH_INTERVAL": "1",
                "WARPGAUGE_LOGFILE": str(self.log),
                "WARPGAUGE_VERBOSE": "1",
            }
        variables |= environment
        self.process = subprocess.Popen(
            command, env=variables, cwd=self.folder, text=True, user=user, group=user,
            extra_groups=[] if user is not None else None,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        self.errors: list[str] = []
        self.reader = threading.Thread(
            target=lambda: self.errors.extend(self.process.stderr or []), daemon=True
        )
        self.reader.start()

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def list_for(self, functions: str, pids: list[int] | None = None) -> None:
        """Lists the process, or others, as the extension does it: in one rename."""
        lines = [f"{pid}:{functions}\n" for pid in pids or [self.process.pid] if functions]
        new = self.runtime_config.with_suffix(".new")
        new.write_text("".join(lines))
        new.chmod(0o644)
        new.rename(self.runtime_config)

    def wait_until_ready(self) -> None:
        line = self.process.stdout.readline()
        if line.strip() != "ready":
            self.process.wait(timeout=10)
            self.reader.join(timeout=1)
            raise RuntimeError(f"said {line!r} instead of ready: {''.join(self.errors)[-500:]}")

    def go_on(self) -> None:
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def wait_until(self, condition, seconds: float) -> float | None:
        """Seconds until the condition held; None if it never did or the program ended."""
        started = time.monotonic()
        while time.monotonic() - started < seconds:
            if condition():
                return time.monotonic() - started
            if self.process.poll() is not None:
                return None
            time.sleep(0.02)
        return None

    def finish(self, seconds: float) -> dict:
        """Waits for the end and returns the last line of output, which is JSON."""
        output, _ = self.process.communicate(timeout=seconds)
        if self.process.returncode != 0:
            self.reader.join(timeout=1)
            text = "".join(self.errors)[-500:]
            raise RuntimeError(f"exit code {self.process.returncode}: {text}")
        lines = [line for line in output.splitlines() if line.startswith("{")]
        report = json.loads(lines[-1]) if lines else {}
        return as_on_the_standin(report) if self.dry_run else report

    def health(self) -> dict:
        """The health file; empty where there is none."""
        try:
            text = (self.measurements / f".{self.process.pid}.health").read_text()
            return json.loads(text)
        except (FileNotFoundError, json.JSONDecodeError):
            return {}

    def said(self, lines: int = 12) -> list[str]:
        """The library's last words, without the line of each flush."""
        try:
            said = self.log.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return []
        return [line for line in said if not FLUSHED.search(line)][-lines:]

    def files(self) -> list[Path]:
        visible = (path for path in self.measurements.iterdir() if path.name[0] != ".")
        return sorted(visible, key=lambda path: path.name.rsplit("-", 1)[1])

    def published(self, skip_files: int = 0) -> Published:
        """Everything published so far, without the first so many files."""
        sum_of_files = Published()
        for path in self.files()[skip_files:]:
            sum_of_files.files += 1
            for line in path.read_text().splitlines():
                number, value = line.split(":")
                function = int(number)
                if function == INSTRUCTIONS:
                    sum_of_files.instructions = (sum_of_files.instructions or 0) + int(value)
                elif function == LAUNCHES:
                    sum_of_files.launches += int(value)
                else:
                    sum_of_files.percents.setdefault(function, []).append(float(value))
        return sum_of_files


def as_on_the_standin(report: dict) -> dict:
    """A launcher's report with all parameters one: a stand-in kernel knows no others."""
    for shape in report.get("shapes", []):
        shape |= {"parameter": 1, "block_parameters": shape["blocks"]}
    return report


def run_listed(tools: Tools, arguments: list[str], functions: str, seconds: float = 60,
               warm_up: float = 0, **options) -> tuple[dict, Published, Run]:
    """Runs the launcher, listed from before its first launch, and returns what it and we say.

    A launch shape counts as nothing until its first window. With `warm_up`, the launcher launches
    for so many seconds before, and neither its report nor what is returned counts these launches.
    """
    command = [str(tools.launcher), str(tools.module), "--pause", *arguments]
    if warm_up:
        command[3:3] = ["--warm-up", str(warm_up)]
    with Run(tools, command, **options) as run:
        run.wait_until_ready()
        run.list_for(functions)
        if functions:
            time.sleep(TWO_INTERVALS)
        run.go_on()
        early = 0
        if warm_up:
            run.wait_until_ready()
            # What was launched is published before more is.
            time.sleep(TWO_INTERVALS)
            early = len(run.files())
            run.go_on()
        return run.finish(seconds), run.published(skip_files=early), run
