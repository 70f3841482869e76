//! The files that a section names: a token, a certificate, a key.

use std::path::{Path, PathBuf};

use super::Finding;
use crate::otlp::credentials::{self, CredentialFile, Secret};
use crate::otlp::tls::Tls;

/// What is wrong with a section, and what works and yet loses or shows data.
#[derive(Debug, Default)]
pub struct Findings {
    /// The section cannot be used.
    pub faults: Vec<Finding>,
    /// It can.
    pub warnings: Vec<Finding>,
}

/// The PEM files of a section, each with the place that names it.
#[derive(Debug, Default)]
pub struct PemFiles {
    /// Whom to trust instead of the built-in roots.
    pub authorities: Option<(String, PathBuf)>,
    /// Who to be.
    pub certificate: Option<(String, PathBuf)>,
    /// The key of that certificate.
    pub private_key: Option<(String, PathBuf)>,
}

impl Findings {
    /// Notes a fault.
    pub fn fault(&mut self, key: &str, problem: impl Into<String>, remedy: impl Into<String>) {
        self.faults.push(Finding {
            key: key.to_owned(),
            problem: problem.into(),
            remedy: remedy.into(),
        });
    }

    /// The content of a credential file; `None` where a fault was noted. Certificates are public;
    /// only what `is_private` is worth a warning when others can read it.
    pub fn credential(&mut self, key: &str, path: &Path, is_private: bool) -> Option<Secret> {
        match credentials::read(path) {
            Ok(CredentialFile { secret, readable_by_others }) => {
                if is_private && readable_by_others {
                    self.warnings.push(Finding {
                        key: key.to_owned(),
                        problem: format!("{} can be read by group or others", path.display()),
                        remedy: format!("run `chmod go= {}`", path.display()),
                    });
                }
                Some(secret)
            }
            Err(error) => {
                let remedy = "name a readable text file with its full path";
                self.fault(key, error.to_string(), remedy);
                None
            }
        }
    }

    /// Whom to trust and who to be, as the PEM files of `section` say.
    pub fn tls(&mut self, section: &str, files: PemFiles) -> Tls {
        let mut tls = Tls::default();
        let authorities = self.pem(files.authorities, false);
        if let Some((key, pem)) = authorities.and_then(|(key, pem)| Some((key, pem?)))
            && let Err(error) = tls.trust(pem.expose())
        {
            self.fault(&key, error.to_string(), error.remedy());
        }
        let certificate = self.pem(files.certificate, false);
        let private_key = self.pem(files.private_key, true);
        match (certificate, private_key) {
            (Some((key, certificate)), Some((_, private_key))) => {
                if let (Some(certificate), Some(private_key)) = (certificate, private_key)
                    && let Err(error) = tls.identify(certificate.expose(), private_key)
                {
                    self.fault(&key, error.to_string(), error.remedy());
                }
            }
            (Some((key, _)), None) => self.fault(
                &key,
                "a client certificate without its private key",
                format!("give `{section}.client_key_file` as well"),
            ),
            (None, Some((key, _))) => self.fault(
                &key,
                "a private key without its certificate",
                format!("give `{section}.client_certificate_file` as well"),
            ),
            (None, None) => {}
        }
        tls
    }

    /// A PEM file, if one is named: where it is named, and its content unless there was a fault.
    fn pem(
        &mut self,
        named: Option<(String, PathBuf)>,
        is_private: bool,
    ) -> Option<(String, Option<Secret>)> {
        let (key, path) = named?;
        let content = self.credential(&key, &path, is_private);
        Some((key, content))
    }
}
