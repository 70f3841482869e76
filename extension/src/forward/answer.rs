//! What a backend's answer means for the lines of a request.
//!
//! | answer | verdict |
//! |---|---|
//! | 2xx, whatever its body says | accepted |
//! | 408, 429, 5xx | retry, after the time of `Retry-After` |
//! | 1xx, 3xx, 401, 407, 421, 426 | misconfigured: about the way, not the line |
//! | 403 | refused, if another line fares better; else misconfigured |
//! | any other 4xx | refused |
//!
//! A redirect is not followed: the token is for the backend that was named.

use std::time::{Duration, SystemTime};

use http::header::LOCATION;

use crate::otlp::http::answer::{retry_after, speaks_of_tls, words};
use crate::otlp::http::post::Reply;
use crate::otlp::network::quote;

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The backend has it.
    Accepted,
    /// The backend will never take it.
    Refused {
        /// The HTTP status.
        status: u16,
        /// The backend's words.
        words: String,
    },
    /// The backend did not answer, or is not ready.
    Retry {
        /// What happened.
        reason: String,
        /// How long the backend asks to be left alone.
        after: Option<Duration>,
    },
    /// The request was never judged, for the way there is wrong.
    Misconfigured {
        /// What is wrong and what to do.
        reason: String,
    },
}

/// What `reply`, received at `now`, means.
pub(super) fn judge(reply: &Reply, now: SystemTime) -> Verdict {
    let (status, words) = (reply.status, words(reply));
    let said =
        if words.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status}: {words}") };
    let misconfigured =
        |advice: &str| Verdict::Misconfigured { reason: format!("{said}; {advice}") };
    match status.as_u16() {
        200..=299 => Verdict::Accepted,
        408 | 429 | 500.. => {
            Verdict::Retry { reason: said, after: retry_after(&reply.headers, now) }
        }
        300..=399 => {
            let target = reply.headers.get(LOCATION).map(|target| quote(target.as_bytes()));
            misconfigured(&match target {
                Some(target) => format!(
                    "redirected to `{target}`, which is not followed: name the backend itself"
                ),
                None => "name the backend itself".to_owned(),
            })
        }
        401 | 407 => misconfigured("check forward.token"),
        421 | 426 => misconfigured("check host and port of forward.backend_url"),
        400 if speaks_of_tls(&words) => {
            misconfigured("check https:// and the client certificate of [forward]")
        }
        400..=499 => Verdict::Refused { status: status.as_u16(), words: said },
        _ => misconfigured("is this an HTTP/1.1 server?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::RETRY_AFTER;
    use http::{HeaderMap, HeaderValue, StatusCode};

    fn answer(
        status: u16,
        header: Option<(http::HeaderName, &'static str)>,
        body: &str,
    ) -> Verdict {
        let headers = header.map(|(name, value)| (name, HeaderValue::from_static(value)));
        let reply = Reply {
            status: StatusCode::from_u16(status).unwrap(),
            headers: headers.into_iter().collect::<HeaderMap>(),
            body: body.into(),
        };
        judge(&reply, SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn a_success_is_one_whatever_its_body_says() {
        for status in [200, 201, 202, 204] {
            assert_eq!(answer(status, None, r#"{"error":"dropped"}"#), Verdict::Accepted);
        }
    }

    #[test]
    fn who_is_not_ready_is_asked_again_when_it_says() {
        for status in [408, 429, 500, 502, 503, 504, 507] {
            let Verdict::Retry { after, .. } = answer(status, Some((RETRY_AFTER, "7")), "") else {
                panic!("{status}");
            };
            assert_eq!(after, Some(Duration::from_secs(7)), "{status}");
        }
    }

    #[test]
    fn a_refusal_is_about_the_line_and_carries_the_backends_words() {
        for status in [400, 403, 404, 405, 409, 410, 413, 415, 422] {
            let verdict = answer(status, None, "no such column");
            let Verdict::Refused { status: found, words } = verdict else { panic!("{status}") };
            assert_eq!(found, status);
            assert!(words.ends_with(": no such column"), "{words}");
        }
    }

    #[test]
    fn a_wrong_way_does_not_condemn_the_line() {
        for status in [301, 302, 307, 308, 401, 407, 421, 426] {
            let verdict = answer(status, None, "");
            assert!(matches!(verdict, Verdict::Misconfigured { .. }), "{status}: {verdict:?}");
        }
        let verdict = answer(308, Some((LOCATION, "https://elsewhere/")), "");
        assert!(format!("{verdict:?}").contains("https://elsewhere/"), "{verdict:?}");
    }
}
