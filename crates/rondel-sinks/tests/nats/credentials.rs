//! Login by a file of credentials: a server that trusts an operator, an account and a user of it.

use nkeys::KeyPair;
use rondel_sinks::nats::{NatsOptions, NatsSink};
use rondel_testkit::Folder;
use serde_json::{Value, json};

use crate::access::expect;
use crate::server::Server;

/// Writes bytes in the base64 of addresses, without padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digits = |chunk: &[u8]| -> String {
        let number =
            (0..3).fold(0, |number, i| number << 8 | chunk.get(i).map_or(0, |&byte| usize::from(byte)));
        (0..=chunk.len()).map(|i| char::from(DIGITS[number >> (18 - 6 * i) & 63])).collect()
    };
    bytes.chunks(3).map(digits).collect()
}

/// Returns claims about `subject`, signed by `issuer`.
fn token(issuer: &KeyPair, subject: &KeyPair, nats: Value) -> String {
    let (issued_by, about) = (issuer.public_key(), subject.public_key());
    let claims =
        json!({ "jti": "test", "iat": 1, "iss": issued_by, "sub": about, "name": "test", "nats": nats });
    let header = json!({ "typ": "JWT", "alg": "ed25519-nkey" });
    let text = format!("{}.{}", base64(header.to_string().as_bytes()), base64(claims.to_string().as_bytes()));
    let signature = base64(&issuer.sign(text.as_bytes()).unwrap());
    format!("{text}.{signature}")
}

/// Writes the file of credentials of a new user of an account.
fn credentials(folder: &Folder, name: &str, account: &KeyPair) -> String {
    let user = KeyPair::new_user();
    let claims = json!({
        "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1, "type": "user", "version": 2
    });
    let text = format!(
        "-----BEGIN NATS USER JWT-----\n{}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
        token(account, &user, claims),
        user.seed().unwrap()
    );
    folder.file(name, text)
}

#[test]
fn credentials_let_the_users_of_an_account_in() {
    let (operator, account, other) =
        (KeyPair::new_operator(), KeyPair::new_account(), KeyPair::new_account());
    let started = Server::with("credentials_let_the_users_of_an_account_in", |_| {
        let limits = json!({
            "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1, "leaf": -1
        });
        let claims = json!({ "limits": limits, "type": "account", "version": 2 });
        let known = |account| {
            format!("{}: {}\n", KeyPair::public_key(account), token(&operator, account, claims.clone()))
        };
        // JetStream needs an account of the system.
        let system = KeyPair::new_account();
        format!(
            "operator: {}\nsystem_account: {}\nresolver: MEMORY\nresolver_preload: {{\n{}{}}}\n",
            token(&operator, &operator, json!({ "type": "operator", "version": 2 })),
            system.public_key(),
            known(&system),
            known(&account)
        )
    });
    let Some(server) = started else { return };
    let with = |path: String| NatsOptions { credentials: Some(path.into()), ..server.options() };
    // The error of a user who is let in: there is no stream.
    expect(
        with(credentials(&server.folder, "good.creds", &account)),
        "create one, such as by `nats stream add",
    );
    expect(with(credentials(&server.folder, "bad.creds", &other)), "refuses to let Rondel in");
    expect(server.options(), "refuses to let Rondel in");
    let error = NatsSink::new(with(server.folder.file("text.creds", "no credentials"))).err().unwrap();
    assert!(
        error.contains("text.creds as credentials of NATS") && error.contains("nsc generate creds"),
        "{error}"
    );
}
