//! Signatures as Standard Webhooks define them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

/// Key of the signatures of one receiver.
pub(super) struct Key(Hmac<Sha256>);

impl Key {
    /// Reads a secret: `whsec_` and base64, or any text.
    pub(super) fn parse(secret: &str) -> Result<Key, String> {
        let bytes = match secret.strip_prefix("whsec_") {
            Some(encoded) => STANDARD.decode(encoded).map_err(|error| {
                format!(
                    "the secret of the webhook begins with whsec_, and what follows is not base64: {error}; copy it again"
                )
            })?,
            None => secret.as_bytes().to_vec(),
        };
        if bytes.is_empty() {
            return Err(
                "the secret of the webhook is empty; set one of at least 24 random bytes, or remove it"
                    .to_owned(),
            );
        }
        // A key of any length is accepted.
        let key = Hmac::new_from_slice(&bytes);
        key.map(Key).map_err(|error| format!("cannot use the secret of the webhook: {error}"))
    }

    /// Signs the id, the time in seconds and the body of a request.
    pub(super) fn sign(&self, id: &str, seconds: &str, body: &[u8]) -> String {
        let mut signature = self.0.clone();
        for part in [id.as_bytes(), b".", seconds.as_bytes(), b".", body] {
            signature.update(part);
        }
        format!("v1,{}", STANDARD.encode(signature.finalize().into_bytes()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn secrets_have_two_forms() {
        let of = |secret: &str| Key::parse(secret).map(|key| key.sign("a", "1", b"{}"));
        assert_eq!(of("whsec_AAEC").unwrap(), of("\u{0}\u{1}\u{2}").unwrap());
        assert_ne!(of("whsec_AAEC").unwrap(), of("AAEC").unwrap());
        for (secret, reason) in [("", "is empty"), ("whsec_", "is empty"), ("whsec_?", "not base64")] {
            assert!(of(secret).unwrap_err().contains(reason));
        }
    }
}
