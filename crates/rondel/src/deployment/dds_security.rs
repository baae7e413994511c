//! The section `security:` of `dds:` in a deployment.

use std::path::{Path, PathBuf};

use rondel_net::dds::Security;

use super::yaml::{Item, Mistakes, Synonyms};

/// Names that people write for files of DDS Security.
const SECURITY: Synonyms = &[
    (&["ca", "identity_certificate_authority", "identity_ca_cert"], "write `identity_ca`"),
    (&["cert", "identity_certificate", "certfile", "cert_file"], "write `certificate`"),
    (&["private_key", "keyfile", "key_file"], "write `key`"),
    (&["permission", "permissions_document"], "write `permissions`"),
    (&["permissions_ca_cert"], "write `permissions_ca`"),
    (&["governance_document"], "write `governance`"),
    (
        &["password", "key_password"],
        "the key must have no password; `openssl pkey -in FILE -out FILE` removes it",
    ),
];

/// Reads the section: six files, or a folder that has them.
pub(super) fn security<'y>(item: Item<'y>, folder: &Path, mistakes: &mut Mistakes) -> Option<Files<'y>> {
    if !item.is_mapping() {
        let text = item.text("security", mistakes)?;
        let security = Security::in_folder(&folder.join(text));
        return Some(Files { security, item, items: Vec::new() });
    }
    let before = mistakes.errors.len();
    let mut members = item.members("security", mistakes);
    let mut items = Vec::new();
    let mut file = |name: &'static str| {
        let Some(item) = members.get(name) else {
            mistakes.at(item, format!("`security` needs `{name}`, the name of a file"));
            return PathBuf::new();
        };
        items.push((name, item));
        item.text(name, mistakes).map(|text| folder.join(text)).unwrap_or_default()
    };
    let security = Security {
        identity_ca: file("identity_ca"),
        certificate: file("certificate"),
        key: file("key"),
        permissions_ca: file("permissions_ca"),
        governance: file("governance"),
        permissions: file("permissions"),
    };
    members.finish(SECURITY, mistakes);
    (mistakes.errors.len() == before).then_some(Files { security, item, items })
}

/// The files, and where the deployment names them.
pub(super) struct Files<'y> {
    /// The files.
    pub(super) security: Security,
    item: Item<'y>,
    items: Vec<(&'static str, Item<'y>)>,
}

impl Files<'_> {
    /// Checks the files for a participant in this domain.
    pub(super) fn check(&self, domain: u32, mistakes: &mut Mistakes) {
        for error in self.security.check(domain).err().unwrap_or_default() {
            let place = self.items.iter().find(|(name, _)| *name == error.setting);
            mistakes.at(place.map_or(self.item, |(_, item)| *item), error.to_string());
        }
    }
}
