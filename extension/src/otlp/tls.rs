//! TLS: whom to trust, who to be, and what a failed handshake means.

use std::error::Error;
use std::io;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{AlertDescription, CertificateError, ClientConfig, RootCertStore};

use super::credentials::Secret;

/// Certificates in PEM form, each checked when it was taken in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    authorities: Option<String>,
    identity: Option<Identity>,
}

/// A client certificate chain and its private key, in PEM form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) certificates: String,
    pub(super) private_key: Secret,
}

/// Why a PEM text is of no use.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// No `BEGIN CERTIFICATE` in it.
    #[error("the file holds no PEM certificate")]
    NoCertificate,
    /// The PEM armour is broken.
    #[error("the PEM text is broken: {0}")]
    Pem(rustls::pki_types::pem::Error),
    /// The content of the armour is no X.509 certificate.
    #[error("a certificate in the file cannot be used: {0}")]
    Certificate(rustls::Error),
    /// No private key in it.
    #[error("the key file holds no usable PEM private key")]
    NoKey,
    /// The private key is another certificate's.
    #[error("certificate and private key do not belong together: {0}")]
    Mismatch(rustls::Error),
}

impl TlsError {
    /// What to do.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NoCertificate | Self::Pem(_) | Self::Certificate(_) => {
                "give X.509 certificates between `BEGIN CERTIFICATE` and `END CERTIFICATE` lines"
            }
            Self::NoKey => "give an unencrypted PKCS#8, PKCS#1 or SEC1 key in PEM form",
            Self::Mismatch(_) => "give the key with which this certificate was requested",
        }
    }
}

impl Tls {
    /// Trusts these PEM certificates instead of the built-in roots.
    ///
    /// # Errors
    ///
    /// When there is none, or one is broken.
    pub fn trust(&mut self, pem: &str) -> Result<(), TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(pem)? {
            roots.add(certificate).map_err(TlsError::Certificate)?;
        }
        self.authorities = Some(pem.to_owned());
        Ok(())
    }

    /// Presents this PEM chain to a server that asks for one.
    ///
    /// # Errors
    ///
    /// When chain or key is broken, or one is not the other's.
    pub fn identify(&mut self, chain: &str, private_key: Secret) -> Result<(), TlsError> {
        let key = PrivateKeyDer::from_pem_slice(private_key.expose().as_bytes())
            .map_err(|_| TlsError::NoKey)?;
        let provider = rustls::crypto::ring::default_provider();
        rustls::sign::CertifiedKey::from_der(certificates(chain)?, key, &provider)
            .map_err(TlsError::Mismatch)?;
        self.identity = Some(Identity { certificates: chain.to_owned(), private_key });
        Ok(())
    }

    /// Nothing was configured.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The same as a configuration of rustls. `None` is impossible after the checks above.
    pub(super) fn client_config(&self) -> Option<ClientConfig> {
        let mut roots = RootCertStore::empty();
        match &self.authorities {
            Some(authorities) => {
                roots.add_parsable_certificates(certificates(authorities).ok()?);
            }
            None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .ok()?
            .with_root_certificates(roots);
        match &self.identity {
            None => Some(builder.with_no_client_auth()),
            Some(identity) => {
                let chain = certificates(&identity.certificates).ok()?;
                let key = identity.private_key.expose().as_bytes();
                builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key).ok()?).ok()
            }
        }
    }

    pub(super) fn authorities(&self) -> Option<&str> {
        self.authorities.as_deref()
    }

    pub(super) fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(TlsError::Pem)?;
    if certificates.is_empty() { Err(TlsError::NoCertificate) } else { Ok(certificates) }
}

/// What in a chain of errors is a TLS failure that only a person can mend, in that person's
/// words. `None` where TLS is not to blame, or where the next try may fare better.
pub(super) fn misconfiguration(error: &(dyn Error + 'static)) -> Option<String> {
    let error = find_rustls_error(error)?;
    let cause = match error {
        rustls::Error::InvalidMessage(_) => {
            "the receiver does not speak TLS on this port; use http:// or the port for TLS".into()
        }
        rustls::Error::InvalidCertificate(error) => certificate_cause(error),
        rustls::Error::NoCertificatesPresented => "the receiver presented no certificate".into(),
        rustls::Error::PeerIncompatible(why) => {
            format!("no TLS version or cipher in common: {why:?}")
        }
        rustls::Error::AlertReceived(alert) => alert_cause(*alert)?,
        _ => return None,
    };
    Some(cause)
}

fn certificate_cause(error: &CertificateError) -> String {
    match error {
        // A signature is bad, too, where another authority bears the same name.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "nobody whom ca_file (or, without it, the built-in list) trusts has signed \
             the receiver's certificate"
                .into()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the receiver's certificate has expired; renew it, or set this machine's clock".into()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the receiver's certificate is not valid yet; is this machine's clock right?".into()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("the receiver's certificate is for another host: {error}")
        }
        other => format!("the receiver's certificate is not acceptable: {other}"),
    }
}

/// Alerts with which a server turns down this client; others may be accidents.
fn alert_cause(alert: AlertDescription) -> Option<String> {
    use AlertDescription as A;
    let cause = match alert {
        A::CertificateRequired => {
            "the receiver demands a client certificate; set client_certificate_file and \
             client_key_file"
        }
        A::BadCertificate
        | A::UnsupportedCertificate
        | A::CertificateRevoked
        | A::CertificateExpired
        | A::CertificateUnknown
        | A::UnknownCA
        | A::DecryptError
        | A::AccessDenied => "the receiver does not accept our client certificate",
        A::HandshakeFailure | A::ProtocolVersion | A::InsufficientSecurity => {
            "no TLS version or cipher in common, or a client certificate is missing"
        }
        A::UnrecognisedName => "the receiver does not serve this host name",
        A::NoApplicationProtocol => "the receiver does not speak the protocol asked for",
        _ => return None,
    };
    Some(format!("{cause} (TLS alert {alert:?})"))
}

/// `io::Error` hides what it wraps from `source`, so both ways inward are tried.
fn find_rustls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<rustls::Error>() {
            return Some(found);
        }
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_a_certificate_is_refused() {
        let error = Tls::default().trust("no certificate").unwrap_err();
        assert!(matches!(error, TlsError::NoCertificate));
        let hollow = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let error = Tls::default().trust(hollow).unwrap_err();
        assert!(matches!(error, TlsError::Certificate(_)), "{error}");
        let error = Tls::default().identify(hollow, Secret::new("no key".into())).unwrap_err();
        assert!(matches!(error, TlsError::NoKey), "{error}");
    }

    #[test]
    fn a_tls_failure_is_found_however_deep_it_is_wrapped() {
        let failure = rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType);
        let wrapped = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, failure));
        let cause = misconfiguration(&wrapped).unwrap();
        assert!(cause.contains("does not speak TLS"), "{cause}");
    }

    #[test]
    fn an_accident_on_the_line_is_no_misconfiguration() {
        assert_eq!(misconfiguration(&io::Error::from(io::ErrorKind::ConnectionReset)), None);
        let alert = rustls::Error::AlertReceived(AlertDescription::InternalError);
        assert_eq!(misconfiguration(&io::Error::other(alert)), None);
    }
}
