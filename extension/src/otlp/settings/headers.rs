//! Request headers: from the environment as a list, from the file as a table.

use std::path::Path;

use http::{HeaderName, HeaderValue};

use super::Resolver;
use crate::config::export::Protocol;
use crate::otlp::attribute_list;
use crate::otlp::credentials::{Headers, Secret};

/// What a request says about itself; another value here would garble it.
const SET_BY_THE_PROTOCOL: [&str; 10] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl Resolver<'_> {
    /// The environment's headers, and over them those of the file, name by name.
    pub(super) fn headers(&mut self, protocol: Option<Protocol>) -> Headers {
        let mut headers = Headers::default();
        if let Some((variable, list)) = self.environment.find("HEADERS") {
            for (index, item) in list.split(',').enumerate() {
                if item.trim().is_empty() {
                    continue;
                }
                match attribute_list::parse_item(item) {
                    Some((name, value)) => {
                        let value = Secret::new(value);
                        self.header(&variable, &name, value, protocol, &mut headers);
                    }
                    None => self.fault(
                        &variable,
                        format!("entry {} is not `name=value`", index + 1),
                        "write `name=value,name=value`, with `%2C` for a comma in a value",
                    ),
                }
            }
        }
        let export = self.export;
        for (name, text) in &export.headers {
            let key = format!("export.headers.{name}");
            let value = match text.strip_prefix("file:") {
                Some(path) => self.findings.credential(&key, Path::new(path), true),
                None => Some(Secret::new(text.clone())),
            };
            if let Some(value) = value {
                self.header(&key, name, value, protocol, &mut headers);
            }
        }
        headers
    }

    fn header(
        &mut self,
        key: &str,
        name: &str,
        value: Secret,
        protocol: Option<Protocol>,
        headers: &mut Headers,
    ) {
        let mut fault = |problem: String, remedy: &str| {
            self.findings.fault(key, problem, remedy);
        };
        let Ok(header) = HeaderName::from_bytes(name.as_bytes()) else {
            fault(
                format!("`{}` is not a header name", name.escape_debug()),
                "use letters, digits and `-`",
            );
            return;
        };
        let name = header.as_str();
        if SET_BY_THE_PROTOCOL.contains(&name) {
            fault(format!("`{name}` is set by the protocol itself"), "remove it");
        } else if protocol == Some(Protocol::Grpc)
            && (name.starts_with("grpc-") || name.ends_with("-bin"))
        {
            fault(format!("gRPC keeps names like `{name}` for itself"), "remove it");
        } else if HeaderValue::from_str(value.expose()).is_err() {
            fault(
                format!("the value of `{name}` holds a control character or a line break"),
                "keep it to one line",
            );
        } else {
            headers.set(header, value);
        }
    }
}
