"""Whole passes of warpgauge against real receivers: what was measured is what is stored.

    target/receivers/venv/bin/python tests/receivers/test_pass.py [--without collector] [TEST...]

Host programs run under the stand-in driver with the instrument injected; `warpgauge run` lists
them, collects what they publish and exports it. Then the receivers are asked what they have.
The receivers come from install.sh; `cargo build --workspace` gives the rest.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from receivers import Collector, StrictReceiver, VictoriaMetrics, wait_for

ROOT = Path(__file__).resolve().parents[2]
HTTP, GRPC = "http/protobuf", "grpc"
DELTA, CUMULATIVE = 1, 2
LAUNCHES = 1000
# What the calculator gives the stand-in's kernels on its device: 100 % for saxpy with 256 threads
# and 32 registers, 50 % for register_heavy with 64.
SAXPY, REGISTER_HEAVY = "saxpy=108:256", "register_heavy=108:512"
OCCUPANCY = {SAXPY: 1.0, REGISTER_HEAVY: 0.5}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--receivers", type=Path, default=ROOT / "target/receivers")
    parser.add_argument("--built", type=Path, default=ROOT / "target/debug")
    choices = ["collector", "victoriametrics"]
    parser.add_argument("--without", action="append", default=[], choices=choices)
    return parser.parse_known_args()


OPTIONS, UNITTEST_ARGUMENTS = arguments()


class World:
    """A folder with a configuration, and host programs that belong to the group `trainer`."""

    def __init__(self, folder):
        self.folder = folder
        self.hosts = []
        self.instructions = 0
        (folder / "lib").mkdir()
        (folder / "lib/libcuda.so.1").symlink_to(OPTIONS.built / "libstandin_cuda.so")
        (folder / "lib/libcupti.so.13").symlink_to(OPTIONS.built / "libstandin_cupti.so")

    def configure(self, protocol, endpoint, *export, metrics=""):
        lines = [
            'monitored_pg_names = ["trainer"]',
            "[paths]",
            f'runtime_config = "{self.folder}/runtime.conf"',
            f'measurements = "{self.folder}/measurements"',
            f'state = "{self.folder}/state"',
            "[[process_group]]",
            'name = "trainer"',
            f'env = {{ WORLD = "{self.folder}" }}',
            "[export]",
            f'protocol = "{protocol}"',
            f'endpoint = "{endpoint}"',
            'timeout = "1s"',
            'budget = "3s"',
            *export,
            "[metrics]",
            metrics,
        ]
        (self.folder / "warpgauge.toml").write_text("\n".join(lines))

    def start_host(self, kernel):
        """A host program that waits to be told to go on."""
        environment = {
            "LD_LIBRARY_PATH": f"{self.folder}/lib",
            "CUDA_INJECTION64_PATH": f"{OPTIONS.built}/libwarpgauge_instrument.so",
            "WARPGAUGE_RUNTIME_CONFIG_PATH": f"{self.folder}/runtime.conf",
            "WARPGAUGE_MEASUREMENTS_OUTPUT_DIR": f"{self.folder}/measurements",
            "WORLD": str(self.folder),
        }
        command = [OPTIONS.built / "warpgauge-host", "--kernel", kernel]
        command += ["--launches", str(LAUNCHES), "--pause-before", "init"]
        pipe = subprocess.PIPE
        host = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)
        self.hosts.append(host)
        assert host.stdout.readline() == "ready\n"
        return host.pid

    def finish_hosts(self):
        """Lets every host program launch and end."""
        for host in self.hosts:
            output, _ = host.communicate("\n", timeout=60)
            assert host.returncode == 0, output
        self.hosts.clear()

    def publish_instructions(self, pid, count):
        """A measurement of id 0, as a library publishes it, for a process that is listed."""
        name = f"{pid}-{pid}-{time.time_ns()}"
        hidden = self.folder / "measurements" / f".{name}"
        hidden.write_text(f"0:{count}\n")
        hidden.rename(hidden.with_name(name))

    def run(self):
        """One pass: its exit code and its report."""
        command = [OPTIONS.built / "warpgauge", "run", "--json"]
        command += ["--config", self.folder / "warpgauge.toml"]
        environment = {"PATH": os.environ["PATH"]}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        return done.returncode, json.loads(done.stdout)

    def measure(self, instructions):
        """One minute of the product's life: hosts of both kernels, listed, launching, collected.

        Gives what was measured, by kernel: pid, launches and instructions.
        """
        pids = {kernel: self.start_host(kernel) for kernel in OCCUPANCY}
        code, report = self.run()
        assert (code, report["listed"]) == (0, 2), (code, report)
        for kernel, pid in pids.items():
            self.publish_instructions(pid, instructions[kernel])
        self.finish_hosts()
        return pids

    def close(self):
        for host in self.hosts:
            host.kill()
            host.communicate()


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        (Path(folder.name) / "world").mkdir()
        self.folder = Path(folder.name)
        self.world = World(self.folder / "world")
        self.addCleanup(self.world.close)

    def start(self, kind, name="receiver", **options):
        return self.enterContext(kind(OPTIONS.receivers, self.folder / name, **options))

    def check_points(self, points, pids, instructions, temporality):
        """That these are what was measured, for each process and for the roll-up."""

        def value(name, **resource):
            found = [
                point["value"]
                for point in points
                if point["name"] == name
                and all(point["resource"].get(key) == wanted for key, wanted in resource.items())
            ]
            self.assertEqual(len(found), 1, (name, resource, found))
            return found[0]

        for kernel, pid in pids.items():
            of_process = {"process.pid": pid}
            self.assertEqual(value("gpu.kernel.instructions", **of_process), instructions[kernel])
            self.assertEqual(value("gpu.kernel.launches", **of_process), LAUNCHES)
            self.assertEqual(value("gpu.kernel.occupancy", **of_process), OCCUPANCY[kernel])
        of_group = {"warpgauge.roll_up": "group", "service.name": "trainer"}
        self.assertEqual(value("gpu.kernel.launches", **of_group), 2 * LAUNCHES)
        self.assertEqual(value("gpu.kernel.instructions", **of_group), sum(instructions.values()))
        self.assertEqual(value("gpu.kernel.occupancy", **of_group), 0.75)
        for point in points:
            self.assertLessEqual(point["start"], point["time"])
            if point["name"] == "gpu.kernel.launches":
                self.assertEqual(point["temporality"], temporality)


class ToStrictReceiver(Case):
    def setUp(self):
        super().setUp()
        self.receiver = self.start(StrictReceiver)

    def urls(self):
        return {HTTP: self.receiver.http_url, GRPC: self.receiver.grpc_url}

    def test_every_form_of_export_is_exactly_right(self):
        for protocol, url in self.urls().items():
            for temporality in ("delta", "cumulative"):
                for distributions in ("off", "explicit", "exponential"):
                    with self.subTest(f"{protocol} {temporality} {distributions}"):
                        world = World(self.new_folder())
                        self.addCleanup(world.close)
                        world.configure(
                            protocol,
                            url,
                            f'temporality = "{temporality}"',
                            metrics=f'distributions = "{distributions}"',
                        )
                        for _ in range(2):
                            world.measure({SAXPY: 7, REGISTER_HEAVY: 8})
                            code, report = world.run()
                            self.assertEqual(code, 0, report)
                            self.assertEqual(report["delivery"]["waiting_requests"], 0)

    def new_folder(self):
        return Path(tempfile.mkdtemp(dir=self.folder))

    def test_each_fault_ends_a_pass_as_designed_and_loses_nothing(self):
        faults = {"503": 75, "429": 75, "close": 75, "hang": 75, "slow": 75, "401": 78, "404": 78}
        for protocol, url in self.urls().items():
            for fault, expected in faults.items():
                with self.subTest(f"{protocol} {fault}"):
                    world = World(self.new_folder())
                    self.addCleanup(world.close)
                    world.configure(protocol, url)
                    world.measure({SAXPY: 7, REGISTER_HEAVY: 8})
                    before = len(self.receiver.points())
                    self.receiver.fault(fault)
                    code, report = world.run()
                    self.assertEqual(code, expected, report)
                    self.assertEqual(report["delivery"]["waiting_requests"], 1)
                    self.receiver.fault()
                    code, report = world.run()
                    self.assertEqual(code, 0, report)
                    # A slow receiver has stored what it did not acknowledge in time, so it gets
                    # the same points again.
                    launches = {
                        (point["resource"]["process.pid"], point["start"], point["time"]): point["value"]
                        for point in self.receiver.points()[before:]
                        if point["name"] == "gpu.kernel.launches" and "process.pid" in point["resource"]
                    }
                    self.assertEqual(list(launches.values()), 2 * [LAUNCHES])

    def test_what_is_refused_is_set_aside_and_what_is_refused_in_part_is_told(self):
        for protocol, url in self.urls().items():
            for fault, expected in {"400": 65, "partial": 4}.items():
                with self.subTest(f"{protocol} {fault}"):
                    world = World(self.new_folder())
                    self.addCleanup(world.close)
                    world.configure(protocol, url)
                    world.measure({SAXPY: 7, REGISTER_HEAVY: 8})
                    self.receiver.fault(fault)
                    code, report = world.run()
                    self.assertEqual(code, expected, report)
                    delivery = report["delivery"]
                    lost = delivery["refused_points"] + delivery["rejected_points"]
                    self.assertGreater(lost, 0)
                    self.assertEqual(delivery["waiting_requests"], 0)
                    set_aside = list((world.folder / "state/rejected").glob("*.otlp"))
                    self.assertEqual(len(set_aside), 1 if fault == "400" else 0)
                    self.receiver.fault()
                    code, report = world.run()
                    self.assertEqual(code, 0, report)
                    told = [
                        point["value"]
                        for point in self.receiver.points()
                        if point["name"] == "warpgauge.export.rejected_points"
                    ]
                    self.assertEqual(told[-1], lost)

    def test_nobody_there_means_try_again(self):
        receiver = self.start(StrictReceiver, "gone")
        urls = {HTTP: receiver.http_url, GRPC: receiver.grpc_url}
        receiver.process.terminate()
        receiver.process.wait(10)
        for protocol, url in urls.items():
            with self.subTest(protocol):
                world = World(self.new_folder())
                world.configure(protocol, url)
                code, report = world.run()
                self.assertEqual(code, 75, report)
                self.assertIn("refused", report["delivery"]["waits_for"])


@unittest.skipIf("collector" in OPTIONS.without, "left out by --without")
class ToCollector(Case):
    def test_it_stores_what_was_measured(self):
        collector = self.start(Collector)
        for protocol, url in {HTTP: collector.http_url, GRPC: collector.grpc_url}.items():
            with self.subTest(protocol):
                self.world.configure(protocol, url, 'preset = "collector"')
                instructions = {SAXPY: 12_345_678_901, REGISTER_HEAVY: 22}
                pids = self.world.measure(instructions)
                code, report = self.world.run()
                self.assertEqual(code, 0, report)

                def of_these_processes():
                    points = [
                        point
                        for point in collector.points()
                        if point["resource"].get("process.pid") in pids.values()
                    ]
                    return points and max(point["time"] for point in points)

                window = wait_for(of_these_processes, "the collector writes its file")
                points = [point for point in collector.points() if point["time"] == window]
                self.check_points(points, pids, instructions, DELTA)


@unittest.skipIf("victoriametrics" in OPTIONS.without, "left out by --without")
class ToVictoriaMetrics(Case):
    def setUp(self):
        super().setUp()
        self.store = self.start(VictoriaMetrics)

    def by_label(self, expression, *names):
        """The stored value by one label, whichever of its spellings the store uses."""
        found = {}
        for labels, value in self.store.query(expression):
            for name in names:
                if name in labels:
                    found[labels[name]] = value
        return found

    def stored(self, name, label, wanted):
        """The values of these label values, once the store shows them all."""
        wanted = set(wanted)

        def all_there():
            found = self.by_label(name, *label)
            return wanted <= found.keys() and {key: found[key] for key in wanted}

        return wait_for(all_there, f"{name} of every process")

    def test_totals_over_several_passes_can_be_queried(self):
        self.world.configure(HTTP, self.store.http_url, 'preset = "victoriametrics"')
        instructions = {SAXPY: 12_345_678_901, REGISTER_HEAVY: 22}
        for round in (1, 2):
            pids = self.world.measure(instructions)
            code, report = self.world.run()
            self.assertEqual(code, 0, report)
            pid_names = ("process_pid", "process.pid")
            expected = {
                "gpu_kernel_launches_total": {kernel: LAUNCHES for kernel in pids},
                "gpu_kernel_instructions_total": instructions,
                "gpu_kernel_occupancy_ratio": OCCUPANCY,
            }
            for name, values in expected.items():
                stored = self.stored(name, pid_names, map(str, pids.values()))
                self.assertEqual(stored, {str(pid): values[kernel] for kernel, pid in pids.items()})
            # The group goes on from round to round, its processes do not.
            roll_up = ("warpgauge_roll_up", "warpgauge.roll_up")
            wait_for(
                lambda: self.by_label("gpu_kernel_launches_total", *roll_up)
                == {"group": round * 2 * LAUNCHES},
                f"the group's total after round {round}",
            )

    @unittest.skipIf("collector" in OPTIONS.without, "left out by --without")
    def test_deltas_arrive_through_a_collector_that_adds_them_up(self):
        collector = self.start(Collector, "collector", forward_to=self.store.http_url)
        self.world.configure(GRPC, collector.grpc_url, 'preset = "collector"')
        for _ in range(2):
            self.world.measure({SAXPY: 7, REGISTER_HEAVY: 8})
            code, report = self.world.run()
            self.assertEqual(code, 0, report)

        def arrived():
            roll_up = ("warpgauge_roll_up", "warpgauge.roll_up")
            totals = self.by_label("gpu_kernel_instructions_total", *roll_up)
            return totals == {"group": 30}

        wait_for(arrived, "the sums of both passes")


if __name__ == "__main__":
    if not (OPTIONS.built / "warpgauge").exists():
        sys.exit(f"{OPTIONS.built}/warpgauge is not there; run `cargo build --workspace`")
    unittest.main(argv=sys.argv[:1] + UNITTEST_ARGUMENTS)
