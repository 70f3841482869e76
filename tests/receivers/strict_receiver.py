"""A strict OTLP metrics receiver for tests, over HTTP and gRPC, with faults on demand.

    strict_receiver.py --out FOLDER [--limit SECONDS]

It listens on two loopback ports that the system picks and says which in one line of JSON on
standard output: {"http": 40001, "grpc": 40002}. In FOLDER it writes

    requests.jsonl   one line for each request that was read: how, headers, size, SHA-256, verdict
    points.jsonl     one line for each data point that was accepted

and reads, at each request, the file `fault`: the first word there is the fault to act out.

    503, 400, ...    answer with this HTTP status, or the gRPC status that stands for it
    partial          reject the first point of each metric, accept the rest
    hang             say nothing
    slow             answer one byte each second (gRPC: after five seconds)
    close            close the connection without an answer, having stored nothing
    close-after      the same, having stored everything: an acknowledgement that is lost

What it refuses, see `strictness.py`. It ends when its standard input closes, or after SECONDS.
"""

import argparse
import gzip
import hashlib
import json
import os
import sys
import threading
import time
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import grpc
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

from strictness import Strictness, Violation

EXPORT_SERVICE = "opentelemetry.proto.collector.metrics.v1.MetricsService"
PROTOBUF = "application/x-protobuf"
# The gRPC status that stands for an HTTP status (OTLP specification, both "Response" sections).
GRPC_STATUS = {
    "400": grpc.StatusCode.INVALID_ARGUMENT,
    "401": grpc.StatusCode.UNAUTHENTICATED,
    "403": grpc.StatusCode.PERMISSION_DENIED,
    "404": grpc.StatusCode.UNIMPLEMENTED,
    "413": grpc.StatusCode.INVALID_ARGUMENT,
    "429": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "500": grpc.StatusCode.INTERNAL,
    "502": grpc.StatusCode.UNAVAILABLE,
    "503": grpc.StatusCode.UNAVAILABLE,
    "504": grpc.StatusCode.DEADLINE_EXCEEDED,
}


class Receiver:
    """Judges and stores requests, however they came."""

    def __init__(self, folder, limit):
        self.folder = folder
        self.limit = limit
        self.strictness = Strictness()
        self.lock = threading.Lock()

    def fault(self):
        try:
            words = (self.folder / "fault").read_text().split()
        except FileNotFoundError:
            words = []
        return words[0] if words else ""

    def receive(self, how, headers, body, fault):
        """Stores the points of an encoded request and gives the response.

        Raises Violation where the request is not one that a strict receiver takes.
        """
        with self.lock:
            verdict = "accepted"
            try:
                if fault.isdigit() or fault in ("hang", "close"):
                    verdict = fault
                    return ExportMetricsServiceResponse()
                points = self.read(body)
                response = ExportMetricsServiceResponse()
                if fault == "partial":
                    verdict = "partial"
                    rejected = [point for point in points if point["first"]]
                    points = [point for point in points if not point["first"]]
                    response.partial_success.rejected_data_points = len(rejected)
                    response.partial_success.error_message = "the first point of each metric"
                self.append("points.jsonl", points)
                return response
            except Violation as violation:
                verdict = f"violation: {violation}"
                raise
            finally:
                request = {
                    "how": how,
                    "headers": headers,
                    "bytes": len(body),
                    "sha256": hashlib.sha256(body).hexdigest(),
                    "verdict": verdict,
                }
                self.append("requests.jsonl", [request])

    def read(self, body):
        try:
            request = ExportMetricsServiceRequest.FromString(body)
        except DecodeError as error:
            raise Violation(f"not protobuf: {error}") from error
        return self.strictness.points(request)

    def append(self, name, records):
        with open(self.folder / name, "a", encoding="utf-8") as file:
            for record in records:
                record.pop("first", None)
                file.write(json.dumps(record) + "\n")


def http_handler(receiver):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.body()
            fault = receiver.fault()
            headers = {name.lower(): value for name, value in self.headers.items()}
            try:
                response = self.judge(headers, body, fault)
            except Violation as violation:
                self.answer(400, rpc_status(str(violation)))
                return
            if fault == "hang":
                time.sleep(receiver.limit)
            elif fault in ("close", "close-after"):
                self.close_connection = True
            elif fault.isdigit():
                self.answer(int(fault), rpc_status(f"fault {fault} was asked for"))
            else:
                self.answer(200, response.SerializeToString(), pause=fault == "slow")

        def judge(self, headers, body, fault):
            if self.path != "/v1/metrics":
                raise Violation(f"the path is {self.path}")
            if headers.get("content-type") != PROTOBUF:
                raise Violation(f"the content type is {headers.get('content-type')}")
            encoding = headers.get("content-encoding", "identity")
            if encoding == "gzip":
                # The hash is of what travelled: the same request must be the same bytes.
                headers["x-compressed-sha256"] = hashlib.sha256(body).hexdigest()
                body = gzip.decompress(body)
            elif encoding != "identity":
                raise Violation(f"the content encoding is {encoding}")
            return receiver.receive("http", headers, body, fault)

        def body(self):
            if "chunked" not in self.headers.get("transfer-encoding", ""):
                return self.rfile.read(int(self.headers.get("content-length", 0)))
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def answer(self, status, body, pause=False):
            self.send_response(status)
            self.send_header("content-type", PROTOBUF)
            self.send_header("content-length", str(len(body)))
            if not pause:
                self.end_headers()
                self.wfile.write(body)
                return
            head = b"".join(self._headers_buffer) + b"\r\n"
            self._headers_buffer = []
            for byte in head + body:
                time.sleep(1)
                self.wfile.write(bytes([byte]))

        def log_message(self, *_):
            pass

    return Handler


def rpc_status(message):
    """google.rpc.Status with code 3 and a message, by hand: code is field 1, message field 2."""
    text = message.encode()[:2000]
    length, varint = len(text), b""
    while length > 0x7F:
        varint += bytes([length & 0x7F | 0x80])
        length >>= 7
    return b"\x08\x03\x12" + varint + bytes([length]) + text


def grpc_handler(receiver):
    def export(body, context):
        fault = receiver.fault()
        headers = dict(context.invocation_metadata())
        try:
            response = receiver.receive("grpc", headers, body, fault)
        except Violation as violation:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(violation))
        if fault.isdigit():
            code = GRPC_STATUS.get(fault, grpc.StatusCode.UNKNOWN)
            context.abort(code, f"fault {fault} was asked for")
        if fault in ("close", "close-after"):
            context.abort(grpc.StatusCode.UNAVAILABLE, "closing was asked for")
        if fault in ("hang", "slow"):
            time.sleep(5 if fault == "slow" else receiver.limit)
        return response.SerializeToString()

    # Bytes in, bytes out: decoding is the receiver's, for both protocols alike.
    return grpc.method_handlers_generic_handler(
        EXPORT_SERVICE, {"Export": grpc.unary_unary_rpc_method_handler(export)}
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("--limit", type=float, default=300, help="seconds to live")
    arguments = parser.parse_args()

    receiver = Receiver(arguments.out, arguments.limit)
    http_server = ThreadingHTTPServer(("127.0.0.1", 0), http_handler(receiver))
    http_server.daemon_threads = True
    threading.Thread(target=http_server.serve_forever, daemon=True).start()

    grpc_server = grpc.server(futures.ThreadPoolExecutor(4))
    grpc_server.add_generic_rpc_handlers((grpc_handler(receiver),))
    grpc_port = grpc_server.add_insecure_port("127.0.0.1:0")
    grpc_server.start()

    print(json.dumps({"http": http_server.server_port, "grpc": grpc_port}), flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    time.sleep(arguments.limit)
    # Not sys.exit: it would wait for calls that hang.
    os._exit(3)


if __name__ == "__main__":
    main()
