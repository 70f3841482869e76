"""The receivers that warpgauge is tested against, started and stopped.

Each is a context manager: it starts on loopback ports, waits until it is ready (for at most half a
minute), and is stopped by its process id, whatever happens. `timeout` bounds its life besides.

    with Collector(installed, folder) as collector:
        ...send to collector.http_url or collector.grpc_url...
        collector.points()
"""

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

READY_WITHIN = 30
LIFE = 600


class NotInstalled(Exception):
    """A receiver that install.sh has not prepared."""


def wait_for(condition, what, seconds=READY_WITHIN):
    """Waits until `condition()` is true, and gives what it gave."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if result := condition():
            return result
        time.sleep(0.05)
    raise TimeoutError(f"{what}: not within {seconds} s")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(url):
    """The body of a GET, or None where nobody answers 200."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.read()
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return None


def json_lines(path):
    """The complete lines of a file that may still be written."""
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


class Process:
    """A child process with its output in a file."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log = self.folder / "output.log"
        self.process = None

    def command(self):
        raise NotImplementedError

    def wait_until_ready(self):
        raise NotImplementedError

    def __enter__(self):
        command = [str(part) for part in self.command()]
        if not Path(command[0]).exists():
            raise NotInstalled(f"{command[0]} is not there; run tests/receivers/install.sh")
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                ["timeout", str(LIFE), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if self.speaks else log,
                stderr=log,
            )
        try:
            self.wait_until_ready()
        except BaseException:
            self.stop()
            raise
        return self

    # Whether it says its ports on standard output.
    speaks = False

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdin.close()
        if self.process.stdout:
            self.process.stdout.close()

    def check_alive(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"ended with {self.process.returncode}: {self.log.read_text()}")


class StrictReceiver(Process):
    """strict_receiver.py: refuses what is not exactly right, and has faults on demand."""

    speaks = True

    def __init__(self, installed, folder):
        super().__init__(folder)
        self.python = Path(installed) / "venv/bin/python"

    def command(self):
        script = Path(__file__).with_name("strict_receiver.py")
        return [self.python, script, "--out", self.folder, "--limit", LIFE]

    def wait_until_ready(self):
        line = self.process.stdout.readline()
        self.check_alive() if not line else None
        ports = json.loads(line)
        self.http_url = f"http://127.0.0.1:{ports['http']}"
        self.grpc_url = f"http://127.0.0.1:{ports['grpc']}"

    def fault(self, name=""):
        """Acts out a fault from now on; none without a name."""
        (self.folder / "fault").write_text(name)

    def points(self):
        return json_lines(self.folder / "points.jsonl")

    def requests(self):
        return json_lines(self.folder / "requests.jsonl")


class Collector(Process):
    """The OpenTelemetry Collector, writing what it receives to a file.

    With `forward_to`, an OTLP/HTTP base URL, it turns delta into cumulative sums and sends them on
    as well.
    """

    def __init__(self, installed, folder, forward_to=None):
        super().__init__(folder)
        self.binary = Path(installed) / "otelcol"
        self.received = self.folder / "received.jsonl"
        http, grpc = free_port(), free_port()
        self.http_url = f"http://127.0.0.1:{http}"
        self.grpc_url = f"http://127.0.0.1:{grpc}"
        # JSON is YAML.
        pipelines = {"metrics": {"receivers": ["otlp"], "exporters": ["file", "debug"]}}
        exporters = {
            "file": {"path": str(self.received), "flush_interval": "100ms"},
            "debug": {"verbosity": "detailed"},
        }
        if forward_to:
            exporters["otlphttp"] = {"endpoint": forward_to, "tls": {"insecure": True}}
            pipelines["metrics/forward"] = {
                "receivers": ["otlp"],
                "processors": ["deltatocumulative"],
                "exporters": ["otlphttp"],
            }
        protocols = {
            "http": {"endpoint": f"127.0.0.1:{http}"},
            "grpc": {"endpoint": f"127.0.0.1:{grpc}"},
        }
        config = {
            "receivers": {"otlp": {"protocols": protocols}},
            "processors": {"deltatocumulative": {}} if forward_to else {},
            "exporters": exporters,
            # Its own metrics would want a port that others have.
            "service": {"pipelines": pipelines, "telemetry": {"metrics": {"level": "none"}}},
        }
        self.config = self.folder / "collector.yaml"
        self.config.write_text(json.dumps(config, indent=2))

    def command(self):
        return [self.binary, "--config", self.config]

    def wait_until_ready(self):
        def ready():
            self.check_alive()
            return "Everything is ready" in self.log.read_text()

        wait_for(ready, "the collector starts")

    def requests(self):
        """What it has written so far: one OTLP JSON object for each request."""
        return json_lines(self.received)

    def points(self):
        """Every number point so far: name, resource, attributes, start, time and value."""
        points = []
        for request in self.requests():
            for resource in request["resourceMetrics"]:
                of_resource = plain(resource.get("resource", {}).get("attributes", []))
                for scope in resource["scopeMetrics"]:
                    for metric in scope["metrics"]:
                        data = metric.get("sum") or metric.get("gauge") or {}
                        for point in data.get("dataPoints", []):
                            points.append(
                                {
                                    "name": metric["name"],
                                    "unit": metric.get("unit"),
                                    "temporality": data.get("aggregationTemporality"),
                                    "resource": of_resource,
                                    "attributes": plain(point.get("attributes", [])),
                                    "start": int(point.get("startTimeUnixNano", 0)),
                                    "time": int(point["timeUnixNano"]),
                                    "value": int(point["asInt"])
                                    if "asInt" in point
                                    else point["asDouble"],
                                }
                            )
        return points


def plain(attributes):
    """OTLP JSON attributes as a dictionary."""
    read = {}
    for attribute in attributes:
        [(kind, value)] = attribute["value"].items()
        read[attribute["key"]] = int(value) if kind == "intValue" else value
    return read


class VictoriaMetrics(Process):
    """VictoriaMetrics: a store with a query language, by Prometheus's names."""

    def __init__(self, installed, folder):
        super().__init__(folder)
        self.binary = Path(installed) / "victoria-metrics"
        self.url = f"http://127.0.0.1:{free_port()}"
        # The base URL; `/v1/metrics` follows.
        self.http_url = f"{self.url}/opentelemetry"

    def command(self):
        return [
            self.binary,
            f"-httpListenAddr={self.url.removeprefix('http://')}",
            f"-storageDataPath={self.folder / 'data'}",
            "-opentelemetry.usePrometheusNaming",
            # Times that a test has fixed are not too old,
            "-retentionPeriod=10y",
            # and the present is not too new: by default the last 30 s are not shown.
            "-search.latencyOffset=0s",
            "-search.disableCache",
        ]

    def wait_until_ready(self):
        def ready():
            self.check_alive()
            return get(f"{self.url}/health") == b"OK"

        wait_for(ready, "VictoriaMetrics starts")

    def query(self, expression, at=None):
        """An instant query: a list of (labels, value).

        `at` is in seconds since 1970; without it, now.
        """
        get(f"{self.url}/internal/force_flush")
        parameters = {"query": expression} | ({"time": at} if at else {})
        body = get(f"{self.url}/api/v1/query?{urllib.parse.urlencode(parameters)}")
        if body is None:
            raise RuntimeError(f"no answer to the query {expression}")
        result = json.loads(body)["data"]["result"]
        return [(series["metric"], float(series["value"][1])) for series in result]


if __name__ == "__main__":
    sys.exit("this is a module; run test_transport.py")
