//! `google.rpc.Status`, in which receivers say why they refuse: the body of an OTLP/HTTP failure,
//! and `grpc-status-details-bin` of a gRPC one. Only the fields that are read.

use std::time::Duration;

use prost::Message;

/// The `type_url` of the one detail that OTLP gives a meaning to ("OTLP/gRPC Throttling").
const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RpcStatus {
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
    #[prost(string, tag = "2")]
    pub(super) message: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) details: Vec<Detail>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Detail {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<Delay>,
}

/// `google.protobuf.Duration`.
#[derive(Clone, PartialEq, Message)]
struct Delay {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

impl RpcStatus {
    /// How long the receiver asks to be left alone; zero where it asks for a retry without
    /// saying when.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        let detail = self.details.iter().find(|detail| detail.type_url == RETRY_INFO)?;
        let delay = RetryInfo::decode(detail.value.as_slice()).ok()?.retry_delay;
        let (seconds, nanos) = delay.map_or((0, 0), |delay| (delay.seconds, delay.nanos));
        let nanos = u32::try_from(nanos).ok().filter(|nanos| *nanos < 1_000_000_000);
        Some(Duration::new(u64::try_from(seconds).unwrap_or(0), nanos.unwrap_or(0)))
    }
}

#[cfg(test)]
pub(super) fn with_retry_info(seconds: i64, nanos: i32) -> Vec<u8> {
    let info = RetryInfo { retry_delay: Some(Delay { seconds, nanos }) };
    let detail = Detail { type_url: RETRY_INFO.into(), value: info.encode_to_vec() };
    RpcStatus { code: 8, message: "busy".into(), details: vec![detail] }.encode_to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_may_ask_for_time() {
        let status = RpcStatus::decode(with_retry_info(2, 500_000_000).as_slice()).unwrap();
        assert_eq!(status.retry_after(), Some(Duration::from_millis(2500)));
        let status = RpcStatus { code: 8, message: String::new(), details: vec![] };
        assert_eq!(status.retry_after(), None);
    }

    #[test]
    fn an_impossible_delay_is_none_at_all() {
        let status = RpcStatus::decode(with_retry_info(-1, -1).as_slice()).unwrap();
        assert_eq!(status.retry_after(), Some(Duration::ZERO));
    }
}
