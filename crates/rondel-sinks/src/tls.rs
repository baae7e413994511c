//! TLS of connections to servers, and of those to a server of our own: rustls with ring as its cryptography, TLS 1.2 and
//! 1.3.
//!
//! The provider is passed explicitly, and never installed for the process: other libraries of a program keep theirs.

mod validity;

use std::fmt::Display;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rondel_event::Timestamp;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// Options of TLS of a client. The server's certificate and its name are always verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// PEM file of the certificates that are trusted; `None`: those of the system.
    pub ca: Option<PathBuf>,
    /// PEM file of the client's certificate, followed by those between it and its root.
    pub certificate: Option<PathBuf>,
    /// PEM file of the private key of the client's certificate.
    pub key: Option<PathBuf>,
}

/// Options of TLS of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTlsOptions {
    /// PEM file of the server's certificate, followed by those between it and its root.
    pub certificate: PathBuf,
    /// PEM file of the private key of the server's certificate.
    pub key: PathBuf,
    /// PEM file of the authorities one of which has signed the certificate of each client; `None`: clients need no
    /// certificate.
    pub client_ca: Option<PathBuf>,
}

/// Largest file of certificates or of a key, in bytes.
const LARGEST: u64 = 1 << 20;

/// A server with TLS, as its files are now.
#[derive(Debug)]
pub struct ServerTls {
    /// The configuration.
    pub config: ServerConfig,
    /// The certificate, followed by those between it and its root, in DER.
    pub chain: Vec<CertificateDer<'static>>,
    /// The certificates of the authorities of clients, in DER.
    pub client_ca: Vec<CertificateDer<'static>>,
    /// The first and the last time at which the certificate is valid; `None` if they cannot be read.
    pub validity: Option<(Timestamp, Timestamp)>,
}

/// Certificate with its key.
pub(crate) struct Identity {
    /// The certificate, followed by those between it and its root.
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

impl TlsOptions {
    /// Reads the files and returns the configuration of a client.
    ///
    /// # Errors
    /// A sentence with the file and the way out.
    pub fn client_config(&self) -> Result<ClientConfig, String> {
        let mut roots = RootCertStore::empty();
        for certificate in self.roots()? {
            match (roots.add(certificate), &self.ca) {
                (Err(error), Some(path)) => return Err(unusable(path, &error)),
                // The system's trust store may contain certificates that rustls does not accept; the others suffice.
                (Err(_), None) | (Ok(()), _) => {}
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("cannot configure TLS: {error}"))?
            .with_root_certificates(roots);
        match (self.identity()?, &self.certificate) {
            (Some(Identity { chain, key }), Some(path)) => {
                config.with_client_auth_cert(chain, key).map_err(|error| unusable(path, &error))
            }
            _ => Ok(config.with_no_client_auth()),
        }
    }

    /// Reads the certificates that are trusted.
    pub(crate) fn roots(&self) -> Result<Vec<CertificateDer<'static>>, String> {
        match &self.ca {
            Some(path) => certificates(path),
            None => {
                let found = rustls_native_certs::load_native_certs();
                if found.certs.is_empty() {
                    let reasons: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
                    let reasons =
                        if reasons.is_empty() { "it is empty".to_owned() } else { reasons.join(", ") };
                    return Err(format!(
                        "cannot use the system's trust store for TLS: {reasons}; install the package ca-certificates, or \
                         name a file of certificates by `ca`"
                    ));
                }
                Ok(found.certs)
            }
        }
    }

    /// Reads the certificate of the client, if there is one.
    pub(crate) fn identity(&self) -> Result<Option<Identity>, String> {
        match (&self.certificate, &self.key) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => Identity::read(certificate, key).map(Some),
            _ => Err("a client's certificate needs its key, and a key its certificate: set both `certificate` and `key`, \
                      or neither"
                .to_owned()),
        }
    }
}

impl ServerTlsOptions {
    /// Reads the files and returns the server. It resumes no sessions: the certificate of a client is
    /// verified for each connection.
    ///
    /// # Errors
    /// A sentence with the file and the way out.
    pub fn server(&self) -> Result<ServerTls, String> {
        let Identity { chain, key } = Identity::read(&self.certificate, &self.key)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("cannot configure TLS: {error}"))?;
        let client_ca = self.client_ca.as_deref().map(certificates).transpose()?.unwrap_or_default();
        let config = match &self.client_ca {
            None => config.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for certificate in &client_ca {
                    roots.add(certificate.clone()).map_err(|error| unusable(path, &error))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                config.with_client_cert_verifier(verifier.map_err(|error| unusable(path, &error))?)
            }
        };
        let mut config = config.with_single_cert(chain.clone(), key).map_err(|error| self.unfit(&error))?;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        let validity = chain.first().and_then(|certificate| validity::validity(certificate));
        Ok(ServerTls { config, chain, client_ca, validity })
    }

    /// The message about a certificate and a key that cannot be used together.
    fn unfit(&self, error: &rustls::Error) -> String {
        match error {
            rustls::Error::InconsistentKeys(_) => {
                unusable(&self.key, &format!("it is not the key of {}", self.certificate.display()))
            }
            _ => unusable(&self.certificate, &format!("with the key {}: {error}", self.key.display())),
        }
    }
}

impl Identity {
    /// Reads a certificate and its key.
    fn read(certificate: &Path, key: &Path) -> Result<Identity, String> {
        let chain = certificates(certificate)?;
        Ok(Identity { chain, key: private_key(key)? })
    }
}

/// Reads a private key that can be used.
fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let bytes = read(path)?;
    let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    if !has("-----BEGIN ") {
        return Err(unusable(path, &"it is not in PEM form; `openssl pkey -in FILE -out NEW` converts it"));
    }
    if has("ENCRYPTED") {
        return Err(unusable(
            path,
            &"the key is encrypted with a password; `openssl pkey -in FILE -out NEW` writes it without one",
        ));
    }
    let key = PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| match error {
        rustls::pki_types::pem::Error::NoItemsFound => unusable(path, &"it contains no private key"),
        error => unusable(path, &error),
    })?;
    if any_supported_type(&key).is_err() {
        return Err(unusable(
            path,
            &"the type of the key is not supported, or the key is damaged; keys are RSA with 2,048 to 8,192 bits, ECDSA \
              on the curves P-256 and P-384, or Ed25519",
        ));
    }
    Ok(key)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(path)?).collect();
    let found = found.map_err(|error| unusable(path, &error))?;
    if found.is_empty() {
        return Err(unusable(path, &"it contains no certificate in PEM form"));
    }
    Ok(found)
}

/// Reads a regular file of limited size: a pipe would have to be waited for.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: io::Error| {
        format!("cannot read {} for TLS: {error}; check its path and its permissions", path.display())
    };
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(unusable(path, &"it is not a regular file"));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    match bytes.len() as u64 > LARGEST {
        true => Err(unusable(path, &"it is larger than 1 MiB")),
        false => Ok(bytes),
    }
}

fn unusable(path: &Path, reason: &dyn Display) -> String {
    format!("cannot use {} for TLS: {reason}", path.display())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_and_errors_name_them() {
        let folder = rondel_testkit::Folder::new();
        let write = |name: &str, text: &str| PathBuf::from(folder.file(name, text));
        let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let ca = write("ca.pem", &own.cert.pem());
        let key = write("key.pem", &own.signing_key.serialize_pem());
        let strange = write("other.pem", &other.signing_key.serialize_pem());
        let text = write("text.pem", "no certificate");
        let none = folder.as_path().join("none.pem");
        let full = TlsOptions { ca: Some(ca.clone()), certificate: Some(ca), key: Some(key) };
        let config = full.client_config().unwrap();
        assert!(config.client_auth_cert_resolver.has_certs());
        assert!(
            !TlsOptions { certificate: None, key: None, ..full.clone() }
                .client_config()
                .unwrap()
                .client_auth_cert_resolver
                .has_certs()
        );
        let cases = [
            (TlsOptions { ca: Some(none.clone()), ..full.clone() }, "none.pem", "check its path"),
            (TlsOptions { ca: Some(text.clone()), ..full.clone() }, "text.pem", "no certificate in PEM form"),
            (TlsOptions { key: None, ..full.clone() }, "a client's certificate", "or neither"),
            (TlsOptions { certificate: None, ..full.clone() }, "a client's certificate", "or neither"),
            (TlsOptions { key: Some(text), ..full.clone() }, "text.pem", "cannot use"),
            (TlsOptions { key: Some(strange), ..full }, "ca.pem", "cannot use"),
        ];
        for (options, place, reason) in cases {
            let error = options.client_config().unwrap_err();
            assert!(error.contains(place) && error.contains(reason), "{error}");
        }
    }

    #[test]
    fn files_of_a_server_are_read_and_errors_name_them() {
        let folder = rondel_testkit::Folder::new();
        let write = |name: &str, text: &str| PathBuf::from(folder.file(name, text));
        let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = write("own.pem", &own.cert.pem());
        let client_ca = Some(write("clients.pem", &other.cert.pem()));
        let key = write("own.key", &own.signing_key.serialize_pem());
        let strange = write("other.key", &other.signing_key.serialize_pem());
        let text = write("text.pem", "no certificate");
        let none = folder.as_path().join("none.pem");
        let full = ServerTlsOptions { certificate, key, client_ca };
        let server = full.server().unwrap();
        assert_eq!((server.config.send_tls13_tickets, server.client_ca.len()), (0, 1));
        assert!(server.validity.is_some_and(|(first, last)| first < last));
        assert!(ServerTlsOptions { client_ca: None, ..full.clone() }.server().is_ok());
        let encrypted = write("encrypted.key", "-----BEGIN ENCRYPTED PRIVATE KEY-----\n");
        let huge = write("huge.pem", &" ".repeat(1 << 21));
        let binary = write("binary.key", "\u{30}\u{1}");
        let curve = write("curve.key", "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n");
        let cases = [
            (ServerTlsOptions { certificate: none.clone(), ..full.clone() }, "none.pem", "check its path"),
            (ServerTlsOptions { certificate: text.clone(), ..full.clone() }, "text.pem", "no certificate"),
            (ServerTlsOptions { key: none.clone(), ..full.clone() }, "none.pem", "check its path"),
            (ServerTlsOptions { key: text.clone(), ..full.clone() }, "text.pem", "cannot use"),
            (ServerTlsOptions { key: strange, ..full.clone() }, "other.key", "not the key of"),
            (ServerTlsOptions { key: encrypted, ..full.clone() }, "encrypted.key", "with a password"),
            (ServerTlsOptions { key: binary, ..full.clone() }, "binary.key", "not in PEM form"),
            (ServerTlsOptions { key: curve, ..full.clone() }, "curve.key", "P-256 and P-384"),
            (ServerTlsOptions { certificate: huge, ..full.clone() }, "huge.pem", "larger than 1 MiB"),
            (
                ServerTlsOptions { certificate: folder.as_path().to_owned(), ..full.clone() },
                "cannot use",
                "not a regular file",
            ),
            (ServerTlsOptions { client_ca: Some(none), ..full.clone() }, "none.pem", "check its path"),
            (ServerTlsOptions { client_ca: Some(text), ..full }, "text.pem", "no certificate"),
        ];
        for (options, place, reason) in cases {
            let error = options.server().unwrap_err();
            assert!(error.contains(place) && error.contains(reason), "{error}");
        }
    }
}
