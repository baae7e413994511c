//! The setting `registry` of a topic: where the schemas of its messages come from.

use std::sync::Arc;

use rondel_decode::MessageType;

use super::yaml::{Item, Mistakes, Synonyms};

/// Names that people write for settings of a registry.
const REGISTRY: Synonyms = &[
    (&["address", "source", "host", "server"], "write `url`"),
    (&["username", "name"], "write `user`"),
    (&["password"], "a password does not belong in this file: write `password_env: VARIABLE`"),
    (&["tls", "ssl", "ca"], "schema registries are queried without TLS: use a local proxy that adds TLS"),
];

/// Reads `registry: URL`, or a mapping with `url`, `user` and `password_env`.
pub(super) fn registry(item: Item<'_>, mistakes: &mut Mistakes) -> Option<Arc<MessageType>> {
    let (mut url, mut user, mut password) = (Some(item), None, None);
    if item.is_mapping() {
        let mut members = item.members("registry", mistakes);
        (url, user, password) = (members.get("url"), members.get("user"), members.get("password_env"));
        members.finish(REGISTRY, mistakes);
    }
    let Some(url) = url else {
        mistakes.at(item, "`registry` needs `url`, such as `url: http://127.0.0.1:8081`");
        return None;
    };
    if user.is_some() != password.is_some() {
        mistakes.at(item, "`user` and `password_env` of a registry belong together");
        return None;
    }
    let text = url.text("url", mistakes)?;
    let user = user.map(|item| item.text("user", mistakes));
    let password = password.map(|item| item.text("password_env", mistakes));
    create(&text, user.flatten().zip(password.flatten())).map_err(|why| mistakes.at(url, why)).ok()
}

#[cfg(feature = "registry")]
fn create(url: &str, user: Option<(String, String)>) -> Result<Arc<MessageType>, String> {
    use crate::schemas::registry::{Registry, User, check_url};
    check_url(url).map_err(|why| format!("`registry`: {why}"))?;
    let user = user.map(|(name, password_env)| User { name, password_env });
    Ok(Arc::new(MessageType::Registered(Registry::at(url, user))))
}

#[cfg(not(feature = "registry"))]
fn create(_url: &str, _user: Option<(String, String)>) -> Result<Arc<MessageType>, String> {
    Err("this Rondel is built without schema registries: build it with the feature `registry`".to_owned())
}
