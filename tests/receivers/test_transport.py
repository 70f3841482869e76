"""warpgauge's transports against real receivers.

    target/receivers/venv/bin/python tests/receivers/test_transport.py [--without collector] [TEST...]

The receivers come from install.sh; `cargo build --example send` gives the sender. A receiver that
is not installed fails its tests, unless it is left out by name.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from receivers import Collector, StrictReceiver, VictoriaMetrics, free_port, wait_for

ROOT = Path(__file__).resolve().parents[2]
DELTA, CUMULATIVE = 1, 2
HTTP, GRPC = "http/protobuf", "grpc"
SECOND = 1_000_000_000


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--receivers", type=Path, default=ROOT / "target/receivers")
    parser.add_argument("--send", type=Path, default=ROOT / "target/debug/examples/send")
    choices = ["collector", "victoriametrics"]
    parser.add_argument("--without", action="append", default=[], choices=choices)
    return parser.parse_known_args()


OPTIONS, UNITTEST_ARGUMENTS = arguments()


def add_attributes(target, attributes):
    for key, value in attributes.items():
        attribute = target.add(key=key)
        if isinstance(value, int):
            attribute.value.int_value = value
        else:
            attribute.value.string_value = value


def sample_request(end, instructions=1000, temporality=DELTA):
    """A request as warpgauge makes them: two processes, a sum and a gauge each.

    `end` is the end of the window in nanoseconds; the window is a minute long.
    """
    request = ExportMetricsServiceRequest()
    for pid in (100, 200):
        resource = request.resource_metrics.add()
        identity = {"service.name": "trainer", "process.pid": pid, "host.name": "node-1"}
        add_attributes(resource.resource.attributes, identity)
        scope = resource.scope_metrics.add()
        scope.scope.name = "warpgauge"
        counter = scope.metrics.add(name="gpu.kernel.instructions", unit="{instruction}")
        counter.description = "warp-level instructions executed"
        counter.sum.aggregation_temporality = temporality
        counter.sum.is_monotonic = True
        gauge = scope.metrics.add(name="gpu.kernel.occupancy", unit="1")
        for gpu in (0, 1):
            point = counter.sum.data_points.add(as_int=instructions + pid + gpu)
            share = gauge.gauge.data_points.add(as_double=0.25 * (gpu + 1))
            for each in (point, share):
                each.start_time_unix_nano = end - 60 * SECOND
                each.time_unix_nano = end
                add_attributes(each.attributes, {"gpu.index": gpu})
    return request


def send(request, protocol=None, endpoint=None, file=None, **variables):
    """Sends a request with the example `send`; what became of it."""
    body = request if isinstance(request, bytes) else request.SerializeToString()
    environment = {"PATH": os.environ["PATH"]}
    if protocol:
        variables |= {"PROTOCOL": protocol, "ENDPOINT": endpoint}
    for name, value in variables.items():
        environment[f"OTEL_EXPORTER_OTLP_{name}"] = value
    command = [OPTIONS.send] + ([file] if file else [])
    done = subprocess.run(command, input=body, env=environment, capture_output=True, timeout=60)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode())
    return json.loads(done.stdout)


def post(url, body, content_type):
    """A POST without warpgauge; the status."""
    request = urllib.request.Request(url, data=body, headers={"content-type": content_type})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


def now():
    """The current time in nanoseconds, to the second."""
    return int(time.time()) * SECOND


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def start(self, kind, name="receiver", **options):
        return self.enterContext(kind(OPTIONS.receivers, self.folder / name, **options))

    def by_both(self, receiver):
        return [(HTTP, receiver.http_url), (GRPC, receiver.grpc_url)]


class ToStrictReceiver(Case):
    def setUp(self):
        super().setUp()
        self.receiver = self.start(StrictReceiver)

    def test_all_points_arrive(self):
        sent = now()
        for protocol, url in self.by_both(self.receiver):
            for compression in ("gzip", "none"):
                sent += 60 * SECOND
                outcome = send(sample_request(sent), protocol, url, COMPRESSION=compression)
                self.assertEqual(outcome, {"outcome": "accepted"})
        points = self.receiver.points()
        self.assertEqual(len(points), 4 * 8)
        self.assertEqual(points[0]["resource"]["process.pid"], 100)
        self.assertEqual([point["value"] for point in points[:4]], [1100, 1101, 0.25, 0.5])

    def test_a_lost_acknowledgement_is_followed_by_the_same_bytes(self):
        request = sample_request(now())
        for fault, expected in [("close-after", "retry"), ("", "accepted")]:
            self.receiver.fault(fault)
            self.assertEqual(send(request, HTTP, self.receiver.http_url)["outcome"], expected)
        first, second = self.receiver.requests()
        for field in ("sha256", "bytes"):
            self.assertEqual(first[field], second[field])
        compressed = [each["headers"]["x-compressed-sha256"] for each in (first, second)]
        self.assertEqual(compressed[0], compressed[1])

    def test_each_fault_has_its_outcome(self):
        faults = {
            "503": "retry",
            "429": "retry",
            "502": "retry",
            "504": "retry",
            "close": "retry",
            "hang": "retry",
            "slow": "retry",
            "400": "refused",
            "413": "refused",
            "500": "refused",
            "401": "misconfigured",
            "403": "misconfigured",
            "404": "misconfigured",
            "partial": "partial",
        }
        request = sample_request(now())
        for fault, expected in faults.items():
            self.receiver.fault(fault)
            for protocol, url in self.by_both(self.receiver):
                with self.subTest(fault=fault, protocol=protocol):
                    outcome = send(request, protocol, url, TIMEOUT="2000")
                    self.assertEqual(outcome["outcome"], expected, outcome)
                    if fault == "partial":
                        self.assertEqual(outcome["rejected_points"], 4)
                        self.assertEqual(outcome["message"], "the first point of each metric")

    def test_a_refusal_says_why(self):
        request = sample_request(now())
        request.resource_metrics[0].scope_metrics[0].metrics[0].unit = ""
        for protocol, url in self.by_both(self.receiver):
            outcome = send(request, protocol, url)
            self.assertEqual(outcome["outcome"], "refused")
            self.assertIn("'gpu.kernel.instructions' has no unit", outcome["reason"])

    def test_headers_arrive(self):
        for protocol, url in self.by_both(self.receiver):
            send(sample_request(now()), protocol, url, HEADERS="api-key=a%20b,x-tenant=1")
        for request in self.receiver.requests():
            self.assertEqual(request["headers"]["api-key"], "a b")
            self.assertEqual(request["headers"]["x-tenant"], "1")
            self.assertTrue(request["headers"]["user-agent"].startswith("warpgauge/"))

    def test_the_wrong_port_is_named(self):
        outcome = send(sample_request(now()), HTTP, self.receiver.grpc_url)
        self.assertEqual(outcome["outcome"], "misconfigured", outcome)
        self.assertIn("gRPC", outcome["reason"])
        outcome = send(sample_request(now()), GRPC, self.receiver.http_url)
        self.assertEqual(outcome["outcome"], "misconfigured", outcome)
        self.assertIn("HTTP", outcome["reason"])

    def test_nobody_there(self):
        for protocol in (HTTP, GRPC):
            outcome = send(sample_request(now()), protocol, f"http://127.0.0.1:{free_port()}")
            self.assertEqual(outcome["outcome"], "retry", outcome)


class StrictReceiverItself(Case):
    """A receiver that takes everything would prove nothing."""

    def refused(self, change):
        receiver = self.start(StrictReceiver, name=f"receiver-{len(self._cleanups)}")
        request = sample_request(now())
        body = change(request) or request.SerializeToString()
        status = post(f"{receiver.http_url}/v1/metrics", body, "application/x-protobuf")
        return status == 400 and receiver.points() == []

    def test_it_refuses_what_is_not_exactly_right(self):
        def metric(request):
            return request.resource_metrics[0].scope_metrics[0].metrics[0]

        def point(request):
            return metric(request).sum.data_points[0]

        def twice(request):
            metric(request).sum.data_points.append(point(request))

        def attribute_twice(request):
            point(request).attributes.append(point(request).attributes[0])

        wrong = {
            "nothing": lambda request: b"\n\0",
            "garbage": lambda request: b"\xff\xff",
            "unknown field": lambda request: request.SerializeToString() + b"\xf8\x07\x01",
            "no name": lambda request: metric(request).ClearField("name"),
            "no unit": lambda request: metric(request).ClearField("unit"),
            "no data": lambda request: metric(request).ClearField("sum"),
            "no temporality": lambda request: metric(request).sum.ClearField(
                "aggregation_temporality"
            ),
            "no time": lambda request: point(request).ClearField("time_unix_nano"),
            "no start": lambda request: point(request).ClearField("start_time_unix_nano"),
            "no value": lambda request: point(request).ClearField("as_int"),
            "backwards": lambda request: setattr(point(request), "start_time_unix_nano", 2**63),
            "negative": lambda request: setattr(point(request), "as_int", -1),
            "point twice": twice,
            "attribute twice": attribute_twice,
        }
        for what, change in wrong.items():
            with self.subTest(what):
                self.assertTrue(self.refused(change))
        self.assertFalse(self.refused(lambda request: None), "a good request is taken")

    def test_it_compares_requests_with_those_before(self):
        receiver = self.start(StrictReceiver)
        end = now()

        def status(request):
            body = request.SerializeToString()
            return post(f"{receiver.http_url}/v1/metrics", body, "application/x-protobuf")

        self.assertEqual(status(sample_request(end)), 200)
        self.assertEqual(status(sample_request(end)), 200, "the same again")
        self.assertEqual(status(sample_request(end + 30 * SECOND)), 400, "windows overlap")
        self.assertEqual(status(sample_request(end + 60 * SECOND)), 200)
        self.assertEqual(status(sample_request(end)), 400, "time goes back")


@unittest.skipIf("collector" in OPTIONS.without, "left out by --without")
class ToCollector(Case):
    def expected(self, request, strict):
        """What a request holds, as the strict receiver reads it, in the collector's terms."""
        body = request.SerializeToString()
        post(f"{strict.http_url}/v1/metrics", body, "application/x-protobuf")
        fields = ("name", "unit", "resource", "attributes", "start", "time", "value")
        return [{field: point[field] for field in fields} for point in strict.points()]

    def received(self, collector, count):
        fields = ("name", "unit", "resource", "attributes", "start", "time", "value")
        wait_for(lambda: len(collector.points()) >= count, "the collector writes its file")
        return [{field: point[field] for field in fields} for point in collector.points()]

    def test_it_stores_what_was_sent(self):
        request = sample_request(now())
        expected = self.expected(request, self.start(StrictReceiver, "strict"))
        collector = self.start(Collector, "collector")
        for protocol, url in self.by_both(collector):
            self.assertEqual(send(request, protocol, url), {"outcome": "accepted"})
        self.assertEqual(self.received(collector, 16), expected * 2)

    def test_a_line_of_our_file_is_a_line_of_its_file(self):
        request = sample_request(now())
        collector = self.start(Collector)
        self.assertEqual(send(request, HTTP, collector.http_url), {"outcome": "accepted"})
        ours = self.folder / "ours.jsonl"
        self.assertEqual(send(request, file=ours), {"outcome": "accepted"})
        wait_for(collector.requests, "the collector writes its file")
        self.assertEqual([json.loads(line) for line in ours.open()], collector.requests())

    def test_it_reads_a_line_of_our_file(self):
        """Its JSON decoder is the one of its `otlpjsonfile` receiver."""
        collector = self.start(Collector)
        ours = self.folder / "ours.jsonl"
        self.assertEqual(send(sample_request(now()), file=ours), {"outcome": "accepted"})
        line = ours.read_bytes()
        status = post(f"{collector.http_url}/v1/metrics", line, "application/json")
        self.assertEqual(status, 200)
        wait_for(collector.requests, "the collector writes its file")
        self.assertEqual([json.loads(line)], collector.requests())

    def test_a_request_that_is_too_large_is_refused_and_not_sent_for_ever(self):
        request = sample_request(now())
        metric = request.resource_metrics[0].scope_metrics[0].metrics[0]
        metric.description = "x" * 21_000_000
        collector = self.start(Collector)
        for protocol, url in self.by_both(collector):
            with self.subTest(protocol):
                outcome = send(request, protocol, url)
                self.assertEqual(outcome["outcome"], "refused", outcome)

    def test_wrong_ports_and_paths_are_named(self):
        collector = self.start(Collector)
        for protocol, url in [
            (HTTP, collector.grpc_url),
            (GRPC, collector.http_url),
            (HTTP, f"{collector.http_url}/somewhere"),
            (HTTP, collector.http_url.replace("http:", "https:")),
            (GRPC, collector.grpc_url.replace("http:", "https:")),
        ]:
            with self.subTest(protocol=protocol, url=url):
                outcome = send(sample_request(now()), protocol, url)
                self.assertEqual(outcome["outcome"], "misconfigured", outcome)


@unittest.skipIf("victoriametrics" in OPTIONS.without, "left out by --without")
class ToVictoriaMetrics(Case):
    def setUp(self):
        super().setUp()
        self.store = self.start(VictoriaMetrics)

    def by_process(self, expression):
        """Values by pid and GPU."""
        labels_of = ("process_pid", "process.pid"), ("gpu_index", "gpu.index")
        values = {}
        for labels, value in self.store.query(expression):
            key = tuple(next(labels[name] for name in names if name in labels) for names in labels_of)
            values[key] = value
        return values

    def test_cumulative_sums_and_gauges_can_be_queried(self):
        request = sample_request(now(), temporality=CUMULATIVE)
        outcome = send(request, HTTP, self.store.http_url)
        self.assertEqual(outcome, {"outcome": "accepted"})
        sums = self.by_process("gpu_kernel_instructions_total")
        gpus = [("100", "0"), ("100", "1"), ("200", "0"), ("200", "1")]
        self.assertEqual(sums, dict(zip(gpus, [1100, 1101, 1200, 1201])))
        gauges = self.by_process("gpu_kernel_occupancy_ratio")
        self.assertEqual(gauges, dict(zip(gpus, [0.25, 0.5, 0.25, 0.5])))

    def test_delta_sums_are_taken_and_dropped(self):
        """Why `warpgauge check` warns of this pair."""
        outcome = send(sample_request(now()), HTTP, self.store.http_url)
        self.assertEqual(outcome, {"outcome": "accepted"})
        self.assertEqual(len(self.by_process("gpu_kernel_occupancy_ratio")), 4)
        self.assertEqual(self.by_process("gpu_kernel_instructions_total"), {})

    def test_a_wrong_path_is_named(self):
        outcome = send(sample_request(now()), HTTP, f"{self.store.url}/nowhere")
        self.assertEqual(outcome["outcome"], "misconfigured", outcome)

    @unittest.skipIf("collector" in OPTIONS.without, "left out by --without")
    def test_delta_sums_arrive_through_a_collector_that_adds_them_up(self):
        collector = self.start(Collector, "collector", forward_to=self.store.http_url)
        end = now() - 60 * SECOND
        for window in (0, 1):
            request = sample_request(end + window * 60 * SECOND)
            self.assertEqual(send(request, GRPC, collector.grpc_url), {"outcome": "accepted"})
        expected = {("100", "0"): 2200.0}

        def arrived():
            sums = self.by_process("gpu_kernel_instructions_total")
            return {key: sums[key] for key in expected if key in sums} == expected

        wait_for(arrived, "the sums of both windows")


if __name__ == "__main__":
    if not OPTIONS.send.exists():
        sys.exit(f"{OPTIONS.send} is not there; run `cargo build -p warpgauge --example send`")
    unittest.main(argv=sys.argv[:1] + UNITTEST_ARGUMENTS)
