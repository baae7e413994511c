//! URLs of servers, as far as a deployment can be wrong about them.

use super::super::yaml::{Item, Mistakes};

/// A URL with its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Url {
    /// All of it.
    pub(super) text: String,
    /// Hosts with their ports.
    pub(super) host: String,
    /// Text after the hosts, without query and fragment.
    pub(super) path: String,
}

/// Reads a URL with one of these schemes. `secret` is the setting for its password.
pub(super) fn url(
    setting: &str,
    item: Item<'_>,
    schemes: &[&str],
    secret: &str,
    mistakes: &mut Mistakes,
) -> Option<Url> {
    let text = item.text(setting, mistakes)?;
    parse(&text, schemes, secret).map_err(|why| mistakes.at(item, format!("`{setting}` {why}"))).ok()
}

/// Parses a URL. The reason why it cannot be used does not repeat it, since it may have a password.
fn parse(text: &str, schemes: &[&str], secret: &str) -> Result<Url, String> {
    let schemes_text = schemes.iter().map(|scheme| format!("{scheme}://")).collect::<Vec<_>>().join(" or ");
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(format!("must be a URL that begins with {schemes_text}"));
    };
    if !schemes.contains(&scheme) {
        return Err(format!("must begin with {schemes_text}, not with {scheme}://"));
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("must be a URL without spaces".to_owned());
    }
    let (authority, after) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if user.contains(':') || after.to_ascii_lowercase().contains("password=") {
        return Err(format!(
            "has a password, which does not belong in this file: remove it, and name an environment variable with \
             `{secret}`"
        ));
    }
    // A socket of PostgreSQL is in the query.
    if host.is_empty() && !after.contains("host=") {
        return Err("names no host".to_owned());
    }
    for one in host.split(',').filter(|one| !one.is_empty()) {
        check_port(one)?;
    }
    let path = after.split(['?', '#']).next().unwrap_or_default();
    Ok(Url { text: text.to_owned(), host: host.to_owned(), path: path.to_owned() })
}

/// Checks the port of a host, if it has one. A host in brackets is an IPv6 address.
pub(super) fn check_port(host: &str) -> Result<(), String> {
    let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
    match after.rsplit_once(':') {
        Some((_, port)) if !port.parse::<u16>().is_ok_and(|port| port > 0) => {
            Err(format!("has '{port}' as its port, which must be a number from 1 to 65535"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_parts() {
        let parse = |text: &str| parse(text, &["postgresql", "postgres"], "password_env");
        let url = parse("postgresql://rondel@db.example:5432/verdicts?sslmode=require").unwrap();
        assert_eq!((url.host.as_str(), url.path.as_str()), ("db.example:5432", "/verdicts"));
        assert_eq!(parse("postgres://[::1]:5432").unwrap().host, "[::1]:5432");
        assert!(parse("postgresql:///verdicts?host=/run/postgresql").is_ok());
        for (wrong, words) in [
            ("db.example", "begins with postgresql:// or postgres://"),
            ("http://db.example", "not with http://"),
            ("postgres://a b", "without spaces"),
            ("postgres://u:secret@db", "`password_env`"),
            ("postgres://u@db/x?password=secret", "`password_env`"),
            ("postgres://", "names no host"),
            ("postgres:///x", "names no host"),
            ("postgres://db:70000/x", "from 1 to 65535"),
            ("postgres://a,b:x/y", "'x' as its port"),
        ] {
            let why = parse(wrong).unwrap_err();
            assert!(why.contains(words) && !why.contains("secret@") && !why.contains("=secret"), "{why}");
        }
    }
}
