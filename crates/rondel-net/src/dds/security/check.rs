//! Checks the files of DDS Security before a participant is created, to report all mistakes at once. CycloneDDS checks
//! them again and decides.

use std::io::Read;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use openssl::asn1::Asn1Time;
use openssl::error::ErrorStack;
use openssl::pkcs7::{Pkcs7, Pkcs7Flags};
use openssl::pkey::{PKey, Private};
use openssl::stack::Stack;
use openssl::x509::store::X509StoreBuilder;
use openssl::x509::{X509, X509NameRef, X509StoreContext};

use super::document::{Governance, end};
use super::{Protection, Security, SecurityError};

/// Maximum size of a file, in bytes.
const LARGEST: u64 = 4 << 20;

/// Mistakes found so far.
#[derive(Default)]
struct Mistakes(Vec<SecurityError>);

impl Mistakes {
    /// Adds a mistake in the file of a setting.
    fn add(&mut self, setting: &'static str, path: &Path, reason: impl std::fmt::Display) {
        let reason = format!("{}: {reason}", path.display());
        self.0.push(SecurityError { setting, reason });
    }
}

/// Reads a file and converts its content.
fn read<T>(
    setting: &'static str,
    path: &Path,
    mistakes: &mut Mistakes,
    made: impl FnOnce(&[u8]) -> Result<T, String>,
) -> Option<T> {
    let bytes = std::fs::File::open(path).and_then(|file| {
        let mut bytes = Vec::new();
        file.take(LARGEST + 1).read_to_end(&mut bytes).map(|_| bytes)
    });
    let made = match bytes {
        Ok(bytes) if bytes.len() as u64 > LARGEST => Err("it has more than 4 MiB".to_owned()),
        Ok(bytes) => made(&bytes),
        Err(error) => Err(error.to_string()),
    };
    made.map_err(|reason| mistakes.add(setting, path, reason)).ok()
}

/// Checks all files.
pub(super) fn check(files: &Security, domain: u32) -> Result<Protection, Vec<SecurityError>> {
    let mut mistakes = Mistakes::default();
    let authority = read("identity_ca", &files.identity_ca, &mut mistakes, certificate);
    let own = read("certificate", &files.certificate, &mut mistakes, certificate);
    let key = read("key", &files.key, &mut mistakes, private_key);
    if let Some((authority, own)) = authority.zip(own.as_ref())
        && let Err(reason) = is_signed(own, &authority)
    {
        mistakes.add("certificate", &files.certificate, reason);
    }
    let mut ends = own.as_ref().and_then(end_of);
    if let Some((own, key)) = own.zip(key)
        && !own.public_key().is_ok_and(|public| public.public_eq(&key))
    {
        mistakes.add("key", &files.key, "it is not the key of the certificate");
    }
    let signer = read("permissions_ca", &files.permissions_ca, &mut mistakes, certificate);
    let mut document = |setting, path: &Path| {
        read(setting, path, &mut mistakes, |bytes| match &signer {
            Some(signer) => content(bytes, signer).map(Some),
            // A document without a valid signature is not read.
            None => Ok(None),
        })
        .flatten()
    };
    let governance = document("governance", &files.governance);
    let permissions = document("permissions", &files.permissions);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    match permissions.map(|text| end(&text, now)) {
        Some(Ok(end)) => ends = ends.map(|of| of.min(end)),
        Some(Err(reason)) => mistakes.add("permissions", &files.permissions, reason),
        None => {}
    }
    let protection = governance.map(|text| Governance::parse(&text).and_then(|of| of.protection(domain)));
    let protection = protection.and_then(|protection| {
        protection.map_err(|reason| mistakes.add("governance", &files.governance, reason)).ok()
    });
    match protection {
        Some(protection) if mistakes.0.is_empty() => Ok(Protection { ends, ..protection }),
        _ => Err(mistakes.0),
    }
}

/// Returns the reason of OpenSSL, without its file names.
fn reason(error: &ErrorStack) -> String {
    let first = error.errors().last().and_then(|error| error.reason());
    first.unwrap_or("OpenSSL does not say why").to_owned()
}

/// Parses a certificate and checks that it is valid now.
fn certificate(pem: &[u8]) -> Result<X509, String> {
    let certificate =
        X509::from_pem(pem).map_err(|error| format!("no certificate in PEM: {}", reason(&error)))?;
    let now = Asn1Time::days_from_now(0).map_err(|error| reason(&error))?;
    let subject = name(certificate.subject_name());
    if certificate.not_after() < now {
        return Err(format!("the certificate of {subject} expired on {}", certificate.not_after()));
    }
    if certificate.not_before() > now {
        return Err(format!("the certificate of {subject} is not valid before {}", certificate.not_before()));
    }
    Ok(certificate)
}

/// Returns the expiry of a certificate, in seconds since the Unix epoch.
fn end_of(certificate: &X509) -> Option<i64> {
    let epoch = Asn1Time::from_unix(0).ok()?;
    let since = epoch.diff(certificate.not_after()).ok()?;
    Some(i64::from(since.days) * 86_400 + i64::from(since.secs))
}

fn private_key(pem: &[u8]) -> Result<PKey<Private>, String> {
    let mut is_encrypted = false;
    let key = PKey::private_key_from_pem_callback(pem, |_| {
        is_encrypted = true;
        Ok(0)
    });
    key.map_err(|error| match is_encrypted {
        true => {
            "the key is encrypted with a password; `openssl pkey -in FILE -out FILE` decrypts it".to_owned()
        }
        false => format!("no private key in PEM: {}", reason(&error)),
    })
}

/// Checks that an authority has signed a certificate.
fn is_signed(certificate: &X509, authority: &X509) -> Result<(), String> {
    let failed = |error: ErrorStack| reason(&error);
    let mut store = X509StoreBuilder::new().map_err(failed)?;
    store.add_cert(authority.clone()).map_err(failed)?;
    let (store, chain) = (store.build(), Stack::new().map_err(failed)?);
    let mut context = X509StoreContext::new().map_err(failed)?;
    let verified = context.init(&store, certificate, &chain, |context| {
        Ok(if context.verify_cert()? { None } else { Some(context.error().error_string()) })
    });
    match verified.map_err(failed)? {
        None => Ok(()),
        Some(reason) => Err(format!(
            "the certificate is not signed by that of `identity_ca`, {}: {reason}",
            name(authority.subject_name())
        )),
    }
}

/// Returns the text of a document signed by an authority.
fn content(document: &[u8], authority: &X509) -> Result<String, String> {
    let failed = |error: ErrorStack| reason(&error);
    let (signed, inner) = Pkcs7::from_smime(document)
        .map_err(|error| format!("no signed document (`openssl smime -sign -text`): {}", reason(&error)))?;
    let mut signers = Stack::new().map_err(failed)?;
    signers.push(authority.clone()).map_err(failed)?;
    let no_authority = X509StoreBuilder::new().map_err(failed)?.build();
    let mut text = Vec::new();
    // As by CycloneDDS: only the signature of this very certificate counts.
    let flags = Pkcs7Flags::TEXT | Pkcs7Flags::NOVERIFY | Pkcs7Flags::NOINTERN;
    signed.verify(&signers, &no_authority, inner.as_deref(), Some(&mut text), flags).map_err(|error| {
        let by = name(authority.subject_name());
        format!("it is not signed by `permissions_ca`, {by}, or was changed after it: {}", reason(&error))
    })?;
    String::from_utf8(text).map_err(|_| "it is not text in UTF-8".to_owned())
}

/// Returns a name such as `CN=monitor, O=Fleet`.
fn name(name: &X509NameRef) -> String {
    let one = |entry: &openssl::x509::X509NameEntryRef| {
        let key = entry.object().nid().short_name().unwrap_or("?").to_owned();
        format!("{key}={}", String::from_utf8_lossy(entry.data().as_slice()))
    };
    let parts: Vec<String> = name.entries().map(one).collect();
    if parts.is_empty() { "(no name)".to_owned() } else { parts.join(", ") }
}
