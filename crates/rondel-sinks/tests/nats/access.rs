//! Users, tokens, permissions, TLS.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rondel_sinks::nats::{NatsOptions, NatsSink};
use rondel_sinks::tls::TlsOptions;
use rondel_sinks::{Failure, FailureKind, Sink, Written};
use rondel_testkit::Folder;

use crate::messages::{LIMIT, Sample, entries};
use crate::server::{STREAM, Server};

fn write(options: NatsOptions) -> Result<Written, Failure> {
    NatsSink::new(options).unwrap().write(&entries(&Sample::all(0..1)), LIMIT)
}

#[track_caller]
pub(crate) fn expect(options: NatsOptions, reason: &str) {
    let failure = write(options).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unavailable, "{failure}");
    assert!(failure.message.contains(reason) && !failure.message.contains("secret"), "{failure}");
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn user_needs_the_right_password_and_permissions() {
    let users = r#"authorization { users: [
        {user: me, password: secret}
        {user: reader, password: secret, permissions: {publish: "other.>"}}
        {user: deaf, password: secret, permissions: {publish: "rondel.>", subscribe: "none"}}
    ] }"#;
    let started = Server::with("user_needs_the_right_password_and_permissions", |_| users.to_owned());
    let Some(server) = started else { return };
    let login = |user: &str, password: &str| NatsOptions {
        user: some(user),
        password: some(password),
        ..server.options()
    };
    server.client("me:secret@", "create", STREAM);
    expect(server.options(), "refuses to let Rondel in; check the user and its password");
    expect(login("me", "secret2"), "refuses to let Rondel in; check the user and its password");
    expect(login("reader", "secret"), "allow the user to publish to `rondel.*`");
    expect(login("deaf", "secret"), "to subscribe to `_INBOX.>`");
    // The verdict of the user who could not hear the acknowledgement was stored.
    assert_eq!(write(login("me", "secret")).unwrap(), Written { stored: 0, repeated: 1 });
}

#[test]
fn token_is_checked() {
    let started = Server::with("token_is_checked", |_| "authorization { token: secret }\n".to_owned());
    let Some(server) = started else { return };
    server.client("secret@", "create", STREAM);
    expect(
        NatsOptions { token: some("secret2"), ..server.options() },
        "check the user and its password, the token",
    );
    assert_eq!(write(NatsOptions { token: some("secret"), ..server.options() }).unwrap().stored, 1);
}

/// Certificates of a test.
struct Certificates {
    ca: PathBuf,
    other_ca: PathBuf,
    client: PathBuf,
    client_key: PathBuf,
}

impl Certificates {
    /// Writes them, with those of the server in `server.pem` and `server-key.pem`.
    fn write(folder: &Folder) -> Certificates {
        let authority = || {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::default();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let pem = params.self_signed(&key).unwrap().pem();
            (pem, Issuer::new(params, key))
        };
        let (ca, issuer) = authority();
        let (other_ca, _) = authority();
        let signed = |name: &str| {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new([name.to_owned()]).unwrap();
            (params.signed_by(&key, &issuer).unwrap().pem(), key.serialize_pem())
        };
        let ((server, server_key), (client, client_key)) = (signed("127.0.0.1"), signed("rondel"));
        folder.file("server.pem", server);
        folder.file("server-key.pem", server_key);
        Certificates {
            ca: folder.file("ca.pem", ca).into(),
            other_ca: folder.file("other.pem", other_ca).into(),
            client: folder.file("client.pem", client).into(),
            client_key: folder.file("client-key.pem", client_key).into(),
        }
    }
}

#[test]
fn tls_verifies_the_server_and_shows_a_certificate() {
    let mut written = None;
    let started = Server::with("tls_verifies_the_server_and_shows_a_certificate", |folder| {
        let certificates = written.insert(Certificates::write(folder));
        let path = |name: &str| folder.path(name);
        format!(
            "tls {{ cert_file: {:?}, key_file: {:?}, ca_file: {:?}, verify: true }}\n",
            path("server.pem"),
            path("server-key.pem"),
            certificates.ca
        )
    });
    let (Some(server), Some(certificates)) = (started, written) else { return };
    let tls = |ca: Option<&PathBuf>, shows: bool| NatsOptions {
        tls: Some(TlsOptions {
            ca: ca.cloned(),
            certificate: shows.then(|| certificates.client.clone()),
            key: shows.then(|| certificates.client_key.clone()),
        }),
        ..server.options()
    };
    // The server demands TLS also where the options do not.
    expect(server.options(), "that `ca` names the certificate of its issuer");
    expect(tls(Some(&certificates.other_ca), true), "that `ca` names the certificate of its issuer");
    expect(tls(None, true), "that `ca` names the certificate of its issuer");
    expect(tls(Some(&certificates.ca), false), "certificate");
    expect(tls(Some(&certificates.ca), true), "create one, such as by `nats stream add");
    // Another name than that of the certificate.
    let other = NatsOptions {
        servers: vec![format!("tls://localhost:{}", server.port)],
        ..tls(Some(&certificates.ca), true)
    };
    expect(other, "that the certificate is for this name");
}

#[test]
fn server_without_tls_is_refused_where_it_is_demanded() {
    let Some(server) = Server::start("server_without_tls_is_refused_where_it_is_demanded") else { return };
    let certificates = Certificates::write(&server.folder);
    let tls = TlsOptions { ca: Some(certificates.ca), certificate: None, key: None };
    expect(NatsOptions { tls: Some(tls), ..server.options() }, "check that the server offers TLS");
}
