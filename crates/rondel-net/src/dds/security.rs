//! DDS Security: the files of a participant, and the resulting protection.

use std::path::{Path, PathBuf};

#[cfg(feature = "dds-security")]
mod check;
#[cfg(feature = "dds-security")]
mod document;

/// The files by which a participant authenticates itself and others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Security {
    /// The certificate (PEM) of the authority that signs the certificates of participants.
    pub identity_ca: PathBuf,
    /// The certificate (PEM) of this participant.
    pub certificate: PathBuf,
    /// Its private key (PEM), without a password.
    pub key: PathBuf,
    /// The certificate (PEM) of the authority that signs the two documents.
    pub permissions_ca: PathBuf,
    /// The document with the rules of encryption, signed (S/MIME).
    pub governance: PathBuf,
    /// The document with the rights to publish and subscribe, signed (S/MIME).
    pub permissions: PathBuf,
}

/// A file of DDS Security that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("DDS Security: {reason}")]
pub struct SecurityError {
    /// The field of [`Security`], or `security` if it is none of them.
    pub setting: &'static str,
    /// The file, and the mistake.
    pub reason: String,
}

/// Protection of a domain, by the governance document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    /// Whether all data is encrypted.
    pub encrypted: bool,
    /// Whether participants that do not authenticate receive nothing.
    pub authenticated: bool,
    /// Expiry of the certificate or the permissions, in seconds since the Unix epoch. CycloneDDS then leaves the
    /// domain.
    pub ends: Option<i64>,
}

/// Instructions to build this program with DDS Security.
#[cfg(not(feature = "dds-security"))]
const NOT_BUILT: &str = "this program is built without it; with OpenSSL (Debian: libssl-dev) `cargo build --release \
                         --package rondel --features dds-security` builds one that has it";

impl Security {
    /// Returns the files of a folder, by the names of SROS 2: `identity_ca.cert.pem`, `cert.pem`, `key.pem`,
    /// `permissions_ca.cert.pem`, `governance.p7s` and `permissions.p7s`.
    pub fn in_folder(folder: &Path) -> Security {
        Security {
            identity_ca: folder.join("identity_ca.cert.pem"),
            certificate: folder.join("cert.pem"),
            key: folder.join("key.pem"),
            permissions_ca: folder.join("permissions_ca.cert.pem"),
            governance: folder.join("governance.p7s"),
            permissions: folder.join("permissions.p7s"),
        }
    }

    /// Checks the files for a participant in this domain.
    ///
    /// # Errors
    /// Every file that is missing or unreadable, not valid today, not signed by its authority, or does not fit the others;
    /// also if this program is built without DDS Security.
    #[cfg(feature = "dds-security")]
    pub fn check(&self, domain: u32) -> Result<Protection, Vec<SecurityError>> {
        check::check(self, domain)
    }

    /// Fails: this program is built without DDS Security.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(feature = "dds-security"))]
    pub fn check(&self, _domain: u32) -> Result<Protection, Vec<SecurityError>> {
        Err(Security::missing().into_iter().collect())
    }

    /// Returns an error if this program is built without DDS Security.
    pub fn missing() -> Option<SecurityError> {
        #[cfg(not(feature = "dds-security"))]
        return Some(SecurityError { setting: "security", reason: NOT_BUILT.to_owned() });
        #[cfg(feature = "dds-security")]
        None
    }

    /// Returns the properties of the participant, by their names in the specification of DDS Security; the libraries
    /// are those built into CycloneDDS.
    pub(super) fn properties(&self) -> Vec<(&'static str, String)> {
        let file = |path: &Path| format!("file:{}", path.display());
        let constant = |text: &str| text.to_owned();
        vec![
            ("dds.sec.auth.library.path", constant("dds_security_auth")),
            ("dds.sec.auth.library.init", constant("init_authentication")),
            ("dds.sec.auth.library.finalize", constant("finalize_authentication")),
            ("dds.sec.auth.identity_ca", file(&self.identity_ca)),
            ("dds.sec.auth.identity_certificate", file(&self.certificate)),
            ("dds.sec.auth.private_key", file(&self.key)),
            ("dds.sec.crypto.library.path", constant("dds_security_crypto")),
            ("dds.sec.crypto.library.init", constant("init_crypto")),
            ("dds.sec.crypto.library.finalize", constant("finalize_crypto")),
            ("dds.sec.access.library.path", constant("dds_security_ac")),
            ("dds.sec.access.library.init", constant("init_access_control")),
            ("dds.sec.access.library.finalize", constant("finalize_access_control")),
            ("dds.sec.access.permissions_ca", file(&self.permissions_ca)),
            ("dds.sec.access.governance", file(&self.governance)),
            ("dds.sec.access.permissions", file(&self.permissions)),
        ]
    }
}
