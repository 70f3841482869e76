//! What a request to the backend is made of.
//!
//! ```text
//! raw       POST ${backend_url}/${type}
//!           the line
//! wrapped   POST ${backend_url}/api/v1/events/${type}
//!           {"agentSendingTime":1706800123456,"data":"the line","type":"init","hostname":"gpu7","ipAddr":"10.0.0.7"}
//! ```
//!
//! Several lines of one type, where the receiver takes that, are the same lines or wrappers with a
//! newline behind each (`application/x-ndjson`).

use bytes::Bytes;
use http::{HeaderValue, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use super::line::Event;
use super::settings::Speaker;
use crate::config::forward::Form;
use crate::otlp::endpoint::Endpoint;

/// What a URL's path holds as it is (RFC 3986, section 2.3).
const ESCAPED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Where the wrapped form is received.
const EVENTS_PATH: &str = "/api/v1/events";

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const NDJSON: HeaderValue = HeaderValue::from_static("application/x-ndjson");

/// Lines of one type, ready to go; the same bytes at each attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    /// The type of its lines.
    pub(super) kind: String,
    /// Its body before compression.
    pub(super) body: Bytes,
    /// The body's media type.
    pub(super) content_type: HeaderValue,
}

/// The wrapper, with the names that its receiver knows.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wrapper<'a> {
    /// Milliseconds since the epoch.
    agent_sending_time: u64,
    data: &'a str,
    r#type: &'a str,
    hostname: &'a str,
    ip_addr: &'a str,
}

impl Request {
    /// A request of these events, which are of one type; sent at `now_ms`, milliseconds since the
    /// epoch. A single line goes without a newline unless batches were asked for.
    ///
    /// # Errors
    /// None in practice: every part of a wrapper has a JSON form.
    pub(super) fn new(
        events: &[Event<'_>],
        form: Form,
        is_batch: bool,
        speaker: &Speaker,
        now_ms: u64,
    ) -> serde_json::Result<Self> {
        let mut body = Vec::new();
        for event in events {
            match form {
                Form::Raw => body.extend_from_slice(event.text.as_bytes()),
                Form::Wrapped => serde_json::to_writer(
                    &mut body,
                    &Wrapper {
                        agent_sending_time: now_ms,
                        data: event.text,
                        r#type: &event.kind,
                        hostname: &speaker.hostname,
                        ip_addr: &speaker.ip_addr,
                    },
                )?,
            }
            if is_batch {
                body.push(b'\n');
            }
        }
        let kind = events.first().map(|event| event.kind.to_string()).unwrap_or_default();
        let content_type = if is_batch { NDJSON } else { JSON };
        Ok(Self { kind, body: body.into(), content_type })
    }
}

/// Where lines of type `kind` go. The path of the wrapped form is appended once, however much of it
/// the URL already has; a query stays.
///
/// # Errors
/// None in practice: what is appended is escaped.
pub(super) fn url(backend: &Endpoint, form: Form, kind: &str) -> Result<Uri, http::Error> {
    let base = backend.path().trim_end_matches('/');
    let events = match form {
        Form::Wrapped if !base.ends_with(EVENTS_PATH) => EVENTS_PATH,
        _ => "",
    };
    let kind = utf8_percent_encode(kind, &ESCAPED);
    let query = backend.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
    let authority = backend.uri().authority().map(http::uri::Authority::as_str);
    Uri::builder()
        .scheme(backend.uri().scheme_str().unwrap_or("http"))
        .authority(authority.unwrap_or_default())
        .path_and_query(format!("{base}{events}/{kind}{query}"))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::endpoint::UrlPath;

    fn speaker() -> Speaker {
        Speaker { hostname: "gpu7".into(), ip_addr: "10.0.0.7".into() }
    }

    fn event(text: &str) -> Event<'_> {
        super::super::line::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_raw_line_travels_byte_for_byte() {
        let line = r#"{ "type":"init", "app":"caf\u00e9", "x":1.0e5 }"#;
        let request = Request::new(&[event(line)], Form::Raw, false, &speaker(), 1).unwrap();
        assert_eq!((request.kind.as_str(), &*request.body), ("init", line.as_bytes()));
        assert_eq!(request.content_type, "application/json");
    }

    #[test]
    fn a_wrapped_line_comes_out_of_its_wrapper_byte_for_byte() {
        let line = "{\"type\":\"init\",\"app\":\"a\\\"b\\\\\",\"name\":\"caf\u{e9}\t\"}"
            .replace('\t', "\\t");
        let request =
            Request::new(&[event(&line)], Form::Wrapped, false, &speaker(), 1_706_800_123_456)
                .unwrap();
        let wrapper: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(
            wrapper,
            serde_json::json!({
                "agentSendingTime": 1_706_800_123_456_u64,
                "data": line,
                "type": "init",
                "hostname": "gpu7",
                "ipAddr": "10.0.0.7",
            })
        );
    }

    #[test]
    fn a_batch_is_one_line_each_even_when_there_is_only_one() {
        let lines = [event(r#"{"type":"a","n":1}"#), event(r#"{"type":"a","n":2}"#)];
        let request = Request::new(&lines, Form::Raw, true, &speaker(), 1).unwrap();
        assert_eq!(&*request.body, b"{\"type\":\"a\",\"n\":1}\n{\"type\":\"a\",\"n\":2}\n");
        assert_eq!(request.content_type, "application/x-ndjson");
        let request = Request::new(&lines[..1], Form::Wrapped, true, &speaker(), 1).unwrap();
        assert_eq!(request.body.last(), Some(&b'\n'));
    }

    #[test]
    fn the_type_ends_the_url_and_leads_nowhere_else() {
        let url = |base: &str, form, kind: &str| {
            let backend = Endpoint::http(base, UrlPath::Exact).unwrap();
            super::url(&backend, form, kind).unwrap().to_string()
        };
        assert_eq!(url("http://h:1", Form::Raw, "init"), "http://h:1/init");
        assert_eq!(url("http://h/in/", Form::Raw, "init"), "http://h/in/init");
        assert_eq!(url("https://h", Form::Wrapped, "init"), "https://h/api/v1/events/init");
        assert_eq!(
            url("https://h/api/v1/events/", Form::Wrapped, "init"),
            "https://h/api/v1/events/init"
        );
        assert_eq!(url("http://h?key=1", Form::Raw, "a b"), "http://h/a%20b?key=1");
        assert_eq!(url("http://h", Form::Raw, "../x?y#z\r\n"), "http://h/..%2Fx%3Fy%23z%0D%0A");
    }
}
