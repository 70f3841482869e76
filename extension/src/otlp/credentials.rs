//! Secrets: read from bounded, regular files, and never shown.

use std::fmt;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use http::{HeaderName, HeaderValue};

/// The largest credential file that is read, in bytes. A token has hundreds; a bundle of every
/// public certificate authority has about 250 kB.
const LARGEST_FILE: u64 = 1024 * 1024;

/// Text that must not be seen: a token, a private key. It has no `Display`, and its `Debug` says
/// `[hidden]`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes `text` into hiding.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

/// Why a credential file could not be read. The text holds its path and never its content.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// The path is not absolute, and a scheduler's working folder is nobody's intention.
    #[error("`{}` is not an absolute path", .0.display())]
    Relative(PathBuf),
    /// Opening or reading failed.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A folder, a pipe or a device.
    #[error("{} is not a regular file", .0.display())]
    NotRegular(PathBuf),
    /// Larger than any credential is.
    #[error("{} has more than {LARGEST_FILE} bytes", .0.display())]
    TooLarge(PathBuf),
    /// Not UTF-8.
    #[error("{} is not text", .0.display())]
    NotText(PathBuf),
    /// Nothing in it.
    #[error("{} is empty", .0.display())]
    Empty(PathBuf),
}

/// A credential file's content, and who else can read it.
#[derive(Debug)]
pub struct CredentialFile {
    /// The content, without the line end that editors and `echo` leave behind it.
    pub secret: Secret,
    /// Group or others may read the file.
    pub readable_by_others: bool,
}

/// Reads a credential file: a regular one, at most 1 MiB, text, and not empty.
///
/// # Errors
///
/// Every way in which `path` is not such a file.
pub fn read(path: &Path) -> Result<CredentialFile, CredentialError> {
    if !path.is_absolute() {
        return Err(CredentialError::Relative(path.to_owned()));
    }
    let unreadable = |source| CredentialError::Unreadable { path: path.to_owned(), source };
    // Without O_NONBLOCK, opening a pipe waits for its writer.
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits())
        .open(path)
        .map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(CredentialError::NotRegular(path.to_owned()));
    }
    let mut content = Vec::new();
    file.by_ref().take(LARGEST_FILE + 1).read_to_end(&mut content).map_err(unreadable)?;
    if content.len() as u64 > LARGEST_FILE {
        return Err(CredentialError::TooLarge(path.to_owned()));
    }
    let text = String::from_utf8(content).map_err(|_| CredentialError::NotText(path.to_owned()))?;
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() {
        return Err(CredentialError::Empty(path.to_owned()));
    }
    Ok(CredentialFile {
        secret: Secret::new(text.to_owned()),
        readable_by_others: metadata.permissions().mode() & 0o044 != 0,
    })
}

/// The request headers of the settings: at most one value for each name, every value a secret.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<(HeaderName, Secret)>);

impl Headers {
    /// Adds a header; one of the same name gives way.
    pub(crate) fn set(&mut self, name: HeaderName, value: Secret) {
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, value));
    }

    /// The names, in the order in which they were set.
    pub fn names(&self) -> impl Iterator<Item = &HeaderName> {
        self.0.iter().map(|(name, _)| name)
    }

    /// The value of a header.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Secret> {
        self.0.iter().find(|(known, _)| known.as_str() == name).map(|(_, value)| value)
    }

    /// Names and values ready to send, the values marked as sensitive: HTTP libraries neither log
    /// them nor keep them in a compression table.
    pub(crate) fn to_send(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        self.0.iter().filter_map(|(name, value)| {
            let mut value = HeaderValue::from_str(value.expose()).ok()?;
            value.set_sensitive(true);
            Some((name.clone(), value))
        })
    }

    /// Blots the values out of `text`, should a receiver echo one. A value of the form
    /// `Bearer <token>` is recognised by its token alone as well.
    pub(crate) fn redact(&self, text: &str) -> String {
        let secrets = self.0.iter().flat_map(|(_, value)| {
            let whole = value.expose();
            [Some(whole), whole.rsplit_once(' ').map(|(_, token)| token)].into_iter().flatten()
        });
        // Blotting out every "1" of a header `X-Scope-OrgID: 1` would only make a riddle.
        secrets
            .filter(|secret| secret.len() >= 6)
            .fold(text.to_owned(), |text, secret| text.replace(secret, "[hidden]"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file_with(content: &[u8], mode: u32) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(content).unwrap();
        file.as_file().set_permissions(std::fs::Permissions::from_mode(mode)).unwrap();
        file
    }

    #[test]
    fn a_secret_never_shows_its_text() {
        let secret = Secret::new("dt0c01.token".to_owned());
        assert_eq!(format!("{secret:?}"), "[hidden]");
        let file = CredentialFile { secret, readable_by_others: false };
        assert!(!format!("{file:?}").contains("token"));
    }

    #[test]
    fn the_line_end_of_a_token_file_is_not_part_of_the_token() {
        for content in ["Api-Token x", "Api-Token x\n", "Api-Token x\r\n"] {
            let file = file_with(content.as_bytes(), 0o600);
            assert_eq!(read(file.path()).unwrap().secret.expose(), "Api-Token x");
        }
    }

    #[test]
    fn a_file_that_group_or_others_can_read_is_noticed() {
        for (mode, readable) in [(0o600, false), (0o400, false), (0o640, true), (0o604, true)] {
            let file = file_with(b"token", mode);
            assert_eq!(read(file.path()).unwrap().readable_by_others, readable, "{mode:o}");
        }
    }

    #[test]
    fn what_is_no_credential_file_is_named_and_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRUSR).unwrap();
        assert!(matches!(read(&pipe), Err(CredentialError::NotRegular(_))));
        assert!(matches!(read(folder.path()), Err(CredentialError::NotRegular(_))));
        assert!(matches!(read(Path::new("token")), Err(CredentialError::Relative(_))));
        let absent = folder.path().join("absent");
        assert!(matches!(read(&absent), Err(CredentialError::Unreadable { .. })));
        let empty = file_with(b"\n", 0o600);
        assert!(matches!(read(empty.path()), Err(CredentialError::Empty(_))));
        let binary = file_with(&[0xff, 0xfe], 0o600);
        assert!(matches!(read(binary.path()), Err(CredentialError::NotText(_))));
        let large = file_with(&vec![b'x'; 1024 * 1024 + 1], 0o600);
        let error = read(large.path()).unwrap_err();
        assert!(matches!(error, CredentialError::TooLarge(_)));
        assert!(!error.to_string().contains("xxx"));
    }

    #[test]
    fn an_echoed_token_is_blotted_out() {
        let mut headers = Headers::default();
        headers.set(HeaderName::from_static("authorization"), Secret::new("Bearer s3cr3t".into()));
        headers.set(HeaderName::from_static("x-scope-orgid"), Secret::new("1".into()));
        assert_eq!(
            headers.redact("token s3cr3t of `Bearer s3cr3t` has 1 fault"),
            "token [hidden] of `[hidden]` has 1 fault"
        );
    }

    #[test]
    fn a_later_header_of_the_same_name_wins() {
        let mut headers = Headers::default();
        let name = HeaderName::from_static("api-key");
        headers.set(name.clone(), Secret::new("old".into()));
        headers.set(name, Secret::new("new".into()));
        assert_eq!(headers.get("api-key").unwrap().expose(), "new");
        assert_eq!(headers.names().count(), 1);
    }
}
