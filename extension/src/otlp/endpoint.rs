//! The URL that requests go to.

use std::fmt;

use http::Uri;
use http::uri::PathAndQuery;

/// The path of OTLP/HTTP metrics under a base URL (OTLP specification, "OTLP/HTTP Request").
const METRICS_PATH: &str = "/v1/metrics";

/// What to do with the path of an HTTP URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlPath {
    /// A base URL: `/v1/metrics` is appended unless the path ends so already.
    Base,
    /// The URL of metrics itself (`OTEL_EXPORTER_OTLP_METRICS_ENDPOINT`): used as it is.
    Exact,
}

/// Why a text is no endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The text does not parse as a URL, or stops short of a scheme and a host.
    #[error("`{0}` is not a complete URL")]
    NotAUrl(String),
    /// A scheme other than `http` and `https`.
    #[error("the scheme `{0}` is neither `http` nor `https`")]
    WrongScheme(String),
    /// No port can have this number.
    #[error("the port of `{0}` is not a number from 1 to 65535")]
    BadPort(String),
    /// `user:password@host`: it would show in logs and process lists.
    #[error("the URL holds a user or a password")]
    HoldsCredentials,
    /// `#...` means nothing to a server.
    #[error("the URL holds a fragment (`#`)")]
    HoldsFragment,
    /// gRPC has a path of its own.
    #[error("the URL has the path `{0}`, but gRPC takes only a host and a port")]
    PathForGrpc(String),
}

impl EndpointError {
    /// What to write instead.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::HoldsCredentials => "put the credentials into [export.headers]",
            Self::PathForGrpc(_) => {
                "remove the path, or use the protocol `http/protobuf` if the receiver has one"
            }
            Self::NotAUrl(_) | Self::WrongScheme(_) | Self::BadPort(_) | Self::HoldsFragment => {
                "write it like `https://host:port`"
            }
        }
    }
}

/// An absolute `http` or `https` URL without credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint(Uri);

impl Endpoint {
    /// Reads an OTLP/HTTP URL.
    ///
    /// # Errors
    ///
    /// When `text` is no such URL.
    pub fn http(text: &str, path: UrlPath) -> Result<Self, EndpointError> {
        let uri = parse(text)?;
        if path == UrlPath::Exact || uri.path().trim_end_matches('/').ends_with(METRICS_PATH) {
            return Ok(Self(uri));
        }
        let base = uri.path().trim_end_matches('/');
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        let mut parts = uri.clone().into_parts();
        parts.path_and_query =
            PathAndQuery::from_maybe_shared(format!("{base}{METRICS_PATH}{query}")).ok();
        Uri::from_parts(parts).map(Self).map_err(|_| EndpointError::NotAUrl(text.to_owned()))
    }

    /// Reads an OTLP/gRPC URL: `http` for plain text, `https` for TLS.
    ///
    /// # Errors
    ///
    /// When `text` is no such URL, or has a path.
    pub fn grpc(text: &str) -> Result<Self, EndpointError> {
        let uri = parse(text)?;
        match uri.path_and_query().map(PathAndQuery::as_str) {
            None | Some("" | "/") => Ok(Self(uri)),
            Some(_) => Err(EndpointError::PathForGrpc(uri.path().to_owned())),
        }
    }

    /// The whole URL. Its query may hold a secret: for sending, not for showing.
    #[must_use]
    pub fn uri(&self) -> &Uri {
        &self.0
    }

    /// The scheme is `https`.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.0.scheme_str() == Some("https")
    }

    /// Host name or address; an IPv6 address without its brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        self.0.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
    }

    /// The port, given or implied by the scheme.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.port_u16().unwrap_or(if self.is_tls() { 443 } else { 80 })
    }

    /// The path of the URL.
    #[must_use]
    pub fn path(&self) -> &str {
        self.0.path()
    }

    /// Nothing that is sent there leaves this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let host = self.host();
        host.eq_ignore_ascii_case("localhost")
            || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

/// The URL with its query hidden: some receivers take a token there.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.0.scheme_str().unwrap_or_default();
        let authority = self.0.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        write!(f, "{scheme}://{authority}{}", self.0.path())?;
        if self.0.query().is_some() { f.write_str("?[hidden]") } else { Ok(()) }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({self})")
    }
}

fn parse(text: &str) -> Result<Uri, EndpointError> {
    // Before anything else: no later error may show a password.
    let authority = text.split_once("://").map_or(text, |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(EndpointError::HoldsCredentials);
    }
    if text.contains('#') {
        return Err(EndpointError::HoldsFragment);
    }
    let shown = || text.split('?').next().unwrap_or_default().to_owned();
    // A port that is no port makes some URLs unparsable and others merely portless.
    let after_host = authority.rsplit_once(']').map_or(authority, |(_, rest)| rest);
    if let Some((_, port)) = after_host.rsplit_once(':')
        && text.contains("://")
        && !port.parse::<u16>().is_ok_and(|port| port != 0)
    {
        return Err(EndpointError::BadPort(shown()));
    }
    let uri: Uri = text.parse().map_err(|_| EndpointError::NotAUrl(shown()))?;
    let Some(scheme) = uri.scheme_str() else {
        return Err(EndpointError::NotAUrl(shown()));
    };
    if scheme != "http" && scheme != "https" {
        return Err(EndpointError::WrongScheme(scheme.to_owned()));
    }
    if uri.host().is_none_or(str::is_empty) {
        return Err(EndpointError::NotAUrl(shown()));
    }
    Ok(uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(text: &str) -> String {
        Endpoint::http(text, UrlPath::Base).unwrap().uri().to_string()
    }

    #[test]
    fn a_base_url_gets_the_path_of_metrics_once() {
        assert_eq!(base("http://h:4318"), "http://h:4318/v1/metrics");
        assert_eq!(base("http://h:4318/"), "http://h:4318/v1/metrics");
        assert_eq!(base("https://h/api/v2/otlp"), "https://h/api/v2/otlp/v1/metrics");
        assert_eq!(base("https://h/api/v2/otlp/"), "https://h/api/v2/otlp/v1/metrics");
        assert_eq!(base("http://h/v1/metrics"), "http://h/v1/metrics");
        assert_eq!(base("http://h/otlp?tenant=a"), "http://h/otlp/v1/metrics?tenant=a");
        assert_eq!(base("http://[::1]:4318"), "http://[::1]:4318/v1/metrics");
    }

    #[test]
    fn an_exact_url_stays_as_it_is() {
        let endpoint = Endpoint::http("http://h/write", UrlPath::Exact).unwrap();
        assert_eq!(endpoint.uri(), "http://h/write");
    }

    #[test]
    fn what_is_no_absolute_url_is_refused() {
        for text in ["collector:4318", "localhost", "/v1/metrics", "", "http://", "http:// h"] {
            let result = Endpoint::http(text, UrlPath::Base);
            assert!(matches!(result, Err(EndpointError::NotAUrl(_))), "{text}: {result:?}");
        }
        assert_eq!(
            Endpoint::http("ftp://h", UrlPath::Base),
            Err(EndpointError::WrongScheme("ftp".into()))
        );
        for text in ["http://h:0", "http://h:99999", "http://h:http", "http://[::1]:x"] {
            let result = Endpoint::http(text, UrlPath::Base);
            assert!(matches!(result, Err(EndpointError::BadPort(_))), "{text}: {result:?}");
        }
    }

    #[test]
    fn no_password_or_query_is_ever_shown() {
        let error = Endpoint::http("http://u:hunter2@h:0", UrlPath::Base).unwrap_err();
        assert_eq!(error, EndpointError::HoldsCredentials);
        assert!(!format!("{error} {error:?}").contains("hunter2"));
        let endpoint = Endpoint::http("http://h?key=hunter2", UrlPath::Base).unwrap();
        assert_eq!(endpoint.to_string(), "http://h/v1/metrics?[hidden]");
        assert!(!format!("{endpoint:?}").contains("hunter2"));
        let error = Endpoint::http("h?key=hunter2", UrlPath::Base).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_an_endpoint_or_an_error_and_keeps_its_secrets(
            before in "(http://|https://|ftp://|)[a-z:@/?#\\[\\]]{0,6}",
            after in "[a-z0-9:@/?#%\\[\\] ]{0,12}",
        ) {
            for secret in ["hunter22@", "?hunter22"] {
                let text = format!("{before}{secret}{after}");
                let shown = match Endpoint::http(&text, UrlPath::Base) {
                    Ok(endpoint) => format!("{endpoint} {endpoint:?}"),
                    Err(error) => format!("{error} {error:?}"),
                };
                // In a path, it is no secret.
                let start = text.split(['?', '#']).next().unwrap();
                let rest = start.split_once("://").map_or(start, |(_, rest)| rest);
                let is_path =
                    rest.split_once('/').is_some_and(|(_, path)| path.contains("hunter22"));
                proptest::prop_assert!(is_path || !shown.contains("hunter22"), "{text}: {shown}");
            }
        }
    }

    #[test]
    fn grpc_takes_no_path() {
        assert!(Endpoint::grpc("https://h:4317").unwrap().is_tls());
        assert_eq!(
            Endpoint::grpc("http://h:4317/v1/metrics"),
            Err(EndpointError::PathForGrpc("/v1/metrics".into()))
        );
    }

    #[test]
    fn loopback_is_recognised_in_all_its_spellings() {
        for host in ["127.0.0.1", "127.8.8.8", "[::1]", "localhost", "LOCALHOST"] {
            assert!(Endpoint::grpc(&format!("http://{host}:1")).unwrap().is_loopback(), "{host}");
        }
        for host in ["10.0.0.1", "localhost.example.com", "[::2]"] {
            assert!(!Endpoint::grpc(&format!("http://{host}:1")).unwrap().is_loopback(), "{host}");
        }
    }
}
