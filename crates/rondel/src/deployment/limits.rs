//! The section `limits:` of a deployment.

use rondel_net::zenoh::RESEND;
use rondel_runtime::alignment::WAITING;
use rondel_runtime::{INSTANCE_BYTES, LARGEST_MESSAGE};

use super::yaml::{Item, Mistakes, Synonyms};

/// Names that people write for limits.
const SYNONYMS: Synonyms = &[
    (&["payload", "message_size", "max_message", "max_message_size", "packet"], "write `message`"),
    (&["cache", "history", "recovery"], "write `resend`"),
    (&["ahead", "behind", "queue"], "write it in the section `alignment:`"),
];

/// Requirement on a limit, for messages.
const SIZE: &str = "a whole number with a unit (B, kB, MB, GB, KiB, MiB, GiB), from 1 B to 4 GiB";

/// The section `limits:`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest payload of a message, in bytes.
    pub message: usize,
    /// Published messages that are kept for subscribers that missed them, in bytes.
    pub resend: usize,
    /// The instances of each division by parameter, in bytes.
    pub instances: usize,
    /// The messages that wait to be put in order, of each alignment group, in bytes.
    pub waiting: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { message: LARGEST_MESSAGE, resend: RESEND, instances: INSTANCE_BYTES, waiting: WAITING }
    }
}

/// Reads the section.
pub(super) fn limits(item: Item<'_>, mistakes: &mut Mistakes) -> Limits {
    let mut limits = Limits::default();
    let mut members = item.members("limits", mistakes);
    let Limits { message, instances, waiting, .. } = &mut limits;
    for (name, limit) in [("message", message), ("instances", instances), ("waiting", waiting)] {
        if let Some(item) = members.get(name)
            && let Some(text) = item.text(name, mistakes)
        {
            match bytes(&text) {
                Some(bytes) => *limit = bytes,
                None => mistakes.at(item, format!("`{name}` must be {SIZE}, such as 16 MiB")),
            }
        }
    }
    if let Some(item) = members.get("resend")
        && let Some(text) = item.text("resend", mistakes)
    {
        match resend(&text) {
            Ok(bytes) => limits.resend = bytes,
            Err(error) => mistakes.at(item, format!("`resend` {error}")),
        }
    }
    members.finish(SYNONYMS, mistakes);
    limits
}

/// Reads the size of the published messages that are kept, in bytes.
///
/// # Errors
/// The requirement on the value.
pub fn resend(text: &str) -> Result<usize, &'static str> {
    let bytes = if text == "0" { Some(0) } else { bytes(text) };
    bytes.ok_or("must be a whole number with a unit, up to 4 GiB, such as 64 MB, or 0 to keep nothing")
}

/// Reads `16 MiB`, `64kB` and the like, up to 4 GiB.
pub fn bytes(text: &str) -> Option<usize> {
    bytes_up_to(text, 4 << 30)
}

/// Like [`bytes`], up to another size.
pub fn bytes_up_to(text: &str, most: usize) -> Option<usize> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor: usize = match unit.trim() {
        "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    let bytes = number.parse::<usize>().ok()?.checked_mul(factor)?;
    (1..=most).contains(&bytes).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{bytes, bytes_up_to};

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("16 MiB"), Some(16 << 20));
        assert_eq!(bytes("64kB"), Some(64_000));
        assert_eq!(bytes("1 B"), Some(1));
        assert_eq!((bytes_up_to("8 GiB", 8 << 30), bytes_up_to("9 GiB", 8 << 30)), (Some(8 << 30), None));
        for wrong in ["", "16", "MiB", "-1 B", "0 B", "1.5 MiB", "5 GiB", "99999999999999999999 GiB", "1 TB"]
        {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }
}
