"""What a strict receiver demands of OTLP metrics, beyond that they decode.

Of each request: no unknown fields; no metric without name, unit, data or points; attribute keys
that are there once and have a value; times in order; a temporality and a start where there must be
one; monotonic sums that are not negative; finite gauges; histograms that add up; and no two points
of the same series at the same time.

Across requests: windows of a delta series do not overlap, and a cumulative monotonic series does
not fall. A request that comes again with the same points is fine.
"""

import math

from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality

DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
TEMPORALITY = {DELTA: "delta", CUMULATIVE: "cumulative"}


class Violation(Exception):
    """A request that a strict receiver refuses."""


class Strictness:
    """Checks requests, and remembers the last point of each series."""

    def __init__(self):
        self.last = {}

    def points(self, request):
        """The data points of a request as plain records.

        A record says in `first` whether it is the first of its metric.
        """
        size = request.ByteSize()
        request.DiscardUnknownFields()
        demand(size == request.ByteSize(), "there are unknown fields")
        records = []
        for resource in request.resource_metrics:
            attributes = read_attributes(resource.resource.attributes, "resource")
            for scope in resource.scope_metrics:
                names = [metric.name for metric in scope.metrics]
                demand(len(names) == len(set(names)), f"a metric twice in one scope: {names}")
                for metric in scope.metrics:
                    base = {"resource": attributes, "scope": scope.scope.name}
                    records.extend(metric_points(base, metric))
        demand(records, "there are no points")
        self.compare(records)
        return records

    def compare(self, records):
        """Compares the points with each other and with what came before."""
        seen = set()
        for record in records:
            identity = repr([record[key] for key in ("resource", "scope", "name", "attributes")])
            where = f"{record['name']} {record['attributes']}"
            demand((identity, record["time"]) not in seen, f"{where}: the same point twice")
            seen.add((identity, record["time"]))
            before = self.last.get(identity)
            if before is not None and not is_repetition(before, record):
                demand(record["time"] > before["time"], f"{where}: time does not advance")
                if record["temporality"] == "delta":
                    demand(record["start"] >= before["time"], f"{where}: windows overlap")
                same_start = record["start"] == before["start"]
                if record["temporality"] == "cumulative" and record["monotonic"] and same_start:
                    demand(record["value"] >= before["value"], f"{where}: the sum falls")
        for record in records:
            identity = repr([record[key] for key in ("resource", "scope", "name", "attributes")])
            self.last[identity] = record


def is_repetition(before, record):
    return all(before[key] == record[key] for key in ("start", "time", "value"))


def demand(condition, otherwise):
    if not condition:
        raise Violation(otherwise)


def metric_points(base, metric):
    where = f"metric {metric.name!r}"
    demand(metric.name, "a metric has no name")
    demand(metric.unit, f"{where} has no unit")
    kind = metric.WhichOneof("data")
    demand(kind, f"{where} has no data")
    data = getattr(metric, kind)
    demand(data.data_points, f"{where} has no points")
    temporality = None
    if kind in ("sum", "histogram", "exponential_histogram"):
        temporality = TEMPORALITY.get(data.aggregation_temporality)
        demand(temporality, f"{where} has no temporality")
    monotonic = kind == "sum" and data.is_monotonic
    for index, point in enumerate(data.data_points):
        attributes = read_attributes(point.attributes, where)
        start, end = point.start_time_unix_nano, point.time_unix_nano
        demand(end > 0, f"{where}: a point has no time")
        demand(start <= end, f"{where}: a point starts after its time")
        demand(start > 0 or temporality is None, f"{where}: a point has no start")
        yield base | {
            "name": metric.name,
            "unit": metric.unit,
            "kind": kind,
            "temporality": temporality,
            "monotonic": monotonic,
            "attributes": attributes,
            "start": start,
            "time": end,
            "value": point_value(where, kind, monotonic, point),
            "first": index == 0,
        }


def point_value(where, kind, monotonic, point):
    """The number of a point, or the fields of a histogram."""
    if kind in ("sum", "gauge"):
        field = point.WhichOneof("value")
        demand(field, f"{where}: a point has no value")
        value = getattr(point, field)
        demand(math.isfinite(value), f"{where}: a value is not finite")
        demand(value >= 0 or not monotonic, f"{where}: a monotonic sum is negative")
        return value
    if kind == "histogram":
        counts, bounds = list(point.bucket_counts), list(point.explicit_bounds)
        demand(sum(counts) == point.count, f"{where}: buckets and count differ")
        demand(len(counts) == len(bounds) + 1, f"{where}: buckets and bounds do not match")
        demand(bounds == sorted(set(bounds)), f"{where}: bounds do not ascend")
        return {"count": point.count, "sum": point.sum, "counts": counts, "bounds": bounds}
    if kind == "exponential_histogram":
        counts = list(point.positive.bucket_counts) + list(point.negative.bucket_counts)
        total = sum(counts) + point.zero_count
        demand(total == point.count, f"{where}: buckets and count differ")
        return {"count": point.count, "sum": point.sum, "scale": point.scale}
    raise Violation(f"{where}: a {kind} is not expected of warpgauge")


def read_attributes(attributes, where):
    """Attributes as a dictionary, sorted by key."""
    read = {}
    for attribute in attributes:
        demand(attribute.key, f"{where}: an attribute has no key")
        demand(attribute.key not in read, f"{where}: the attribute {attribute.key} twice")
        field = attribute.value.WhichOneof("value")
        demand(field, f"{where}: the attribute {attribute.key} has no value")
        value = getattr(attribute.value, field)
        if field not in ("string_value", "int_value", "double_value", "bool_value"):
            value = str(value)
        read[attribute.key] = value
    return dict(sorted(read.items()))
