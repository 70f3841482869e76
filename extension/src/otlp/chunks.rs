//! Cuts a window into requests that every receiver takes.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::{ResourceMetrics, metric::Data};
use prost::Message;

/// Points in one request at most: Dynatrace refuses a whole request above 15,000.
pub const MAX_POINTS: usize = 10_000;

/// Bytes of one request at most, uncompressed: Dynatrace refuses a whole request above 4 MB.
pub const MAX_BYTES: usize = 3_000_000;

/// One encoded request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// `ExportMetricsServiceRequest`, protobuf.
    pub request: Vec<u8>,
    /// The data points in it.
    pub points: usize,
}

/// Packs resources into chunks, in order. A resource is never split: one has at most some dozens of
/// points.
#[must_use]
pub fn pack(resources: Vec<ResourceMetrics>) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let mut open = ExportMetricsServiceRequest::default();
    let (mut points, mut bytes) = (0, 0);
    for resource in resources {
        let (more_points, more_bytes) = (points_in(&resource), resource.encoded_len());
        let full = points + more_points > MAX_POINTS || bytes + more_bytes > MAX_BYTES;
        if full && points > 0 {
            chunks.push(Chunk { request: open.encode_to_vec(), points });
            open.resource_metrics.clear();
            (points, bytes) = (0, 0);
        }
        // The tag and length before each resource take up to 6 bytes.
        (points, bytes) = (points + more_points, bytes + more_bytes + 6);
        open.resource_metrics.push(resource);
    }
    if points > 0 {
        chunks.push(Chunk { request: open.encode_to_vec(), points });
    }
    chunks
}

/// The data points of an encoded request; 0 when it cannot be decoded.
#[must_use]
pub fn points_of(request: &[u8]) -> usize {
    let request = ExportMetricsServiceRequest::decode(request).unwrap_or_default();
    request.resource_metrics.iter().map(points_in).sum()
}

fn points_in(resource: &ResourceMetrics) -> usize {
    let metrics = resource.scope_metrics.iter().flat_map(|scope| &scope.metrics);
    metrics
        .map(|metric| match &metric.data {
            Some(Data::Gauge(gauge)) => gauge.data_points.len(),
            Some(Data::Sum(sum)) => sum.data_points.len(),
            Some(Data::Histogram(histogram)) => histogram.data_points.len(),
            Some(Data::ExponentialHistogram(histogram)) => histogram.data_points.len(),
            Some(Data::Summary(summary)) => summary.data_points.len(),
            None => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::resource::v1::Resource;

    use super::super::mapping::{Number, Window, number, resource_metrics};
    use super::super::resource::text;
    use super::*;
    use crate::metrics::LAUNCHES;

    fn resource(points: usize, padding: usize) -> ResourceMetrics {
        let window = Window { start_ns: 0, end_ns: 1 };
        let resource = Resource {
            attributes: vec![text("padding", "x".repeat(padding))],
            ..Resource::default()
        };
        let metrics = (0..points).map(|_| number(LAUNCHES, Number::Int(1), Vec::new(), window));
        resource_metrics(resource, metrics.collect())
    }

    #[test]
    fn no_chunk_exceeds_what_receivers_take_and_no_point_is_lost() {
        let chunks = pack((0..5_100).map(|_| resource(5, 0)).collect());
        assert!(chunks.iter().all(|chunk| chunk.points <= MAX_POINTS));
        assert_eq!(chunks.iter().map(|chunk| chunk.points).sum::<usize>(), 25_500);
        assert!(chunks.iter().all(|chunk| points_of(&chunk.request) == chunk.points));
        let chunks = pack((0..100).map(|_| resource(1, 100_000)).collect());
        assert!(chunks.iter().all(|chunk| chunk.request.len() <= MAX_BYTES));
        assert_eq!(chunks.iter().map(|chunk| chunk.points).sum::<usize>(), 100);
    }

    #[test]
    fn nothing_makes_no_request() {
        assert_eq!(pack(Vec::new()), []);
        assert_eq!(pack(vec![resource(0, 0)]), []);
    }
}
