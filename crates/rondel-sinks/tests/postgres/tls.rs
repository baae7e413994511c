//! Encrypted connections.

use std::path::PathBuf;

use rcgen::{CertificateParams, DnType, Issuer, KeyPair};
use rondel_sinks::Truth::Violated;
use rondel_sinks::postgres::{PostgresOptions, PostgresSink};
use rondel_sinks::tls::TlsOptions;
use rondel_sinks::{Entry, FailureKind, Sink};

use crate::server::{Server, write};
use crate::support::{Folder, LIMIT, verdict};

/// Certificates in PEM form, made for one test.
struct Certificates {
    authority: String,
    server: String,
    server_key: String,
    client: String,
    client_key: String,
}

fn certificates() -> Certificates {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let of_server = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let server = server.signed_by(&of_server, &issuer).unwrap().pem();
    let of_client = KeyPair::generate().unwrap();
    let mut client = CertificateParams::new(Vec::new()).unwrap();
    client.distinguished_name.push(DnType::CommonName, "admin");
    let client = client.signed_by(&of_client, &issuer).unwrap().pem();
    Certificates {
        authority,
        server,
        server_key: of_server.serialize_pem(),
        client,
        client_key: of_client.serialize_pem(),
    }
}

fn file(folder: &Folder, name: &str, text: &str) -> PathBuf {
    let path = folder.0.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn connection_is_encrypted_and_the_server_verified() {
    let (folder, made, strange) = (Folder::new(), certificates(), certificates());
    let mut server = Server::start();
    let entries = [Entry::Verdict(verdict(1, "p", Violated, 1))];
    let options = |host: &str, tls: Option<&TlsOptions>| PostgresOptions {
        url: format!("postgresql://admin@{host}:{}/postgres", server.port()),
        tls: tls.cloned(),
        ..server.options()
    };
    let tls = TlsOptions { ca: Some(file(&folder, "ca.pem", &made.authority)), ..TlsOptions::default() };
    let refused = |options: PostgresOptions, part: &str| {
        let failure = PostgresSink::new(options).unwrap().write(&entries, LIMIT).unwrap_err();
        assert!(failure.kind == FailureKind::Unavailable && failure.message.contains(part), "{failure}");
    };
    refused(options("localhost", Some(&tls)), "leave `tls` out");
    let (plain, encrypted) = (options("localhost", None), options("localhost", Some(&tls)));
    let elsewhere = options("127.0.0.1", Some(&tls));
    let other = TlsOptions { ca: Some(file(&folder, "other.pem", &strange.authority)), ..tls.clone() };
    let other = options("localhost", Some(&other));
    let with_certificate = TlsOptions {
        certificate: Some(file(&folder, "client.pem", &made.client)),
        key: Some(file(&folder, "client-key.pem", &made.client_key)),
        ..tls.clone()
    };
    let with_certificate = options("localhost", Some(&with_certificate));

    server.stop("fast");
    server.write("ca.crt", &made.authority);
    server.write("server.crt", &made.server);
    server.write("server.key", &made.server_key);
    // Only encrypted connections; those of localhost with a password.
    let rules =
        server.write("hba", "local all all scram-sha-256\nhostssl all all 127.0.0.1/32 scram-sha-256\n");
    server.encrypt(&rules);
    server.resume();
    refused(plain, "set `tls` if the server demands encryption");
    refused(other, "`ca` of `tls` is the file of its authority");
    refused(elsewhere, "the host in the URL is a name of the server's certificate");
    let mut sink = PostgresSink::new(encrypted.clone()).unwrap();
    write(&mut sink, &entries);
    let ssl = "SELECT ssl, version FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'rondel'";
    assert_eq!(server.query(ssl), ["t,TLSv1.3"]);
    sink.close(LIMIT).unwrap();

    // A certificate instead of a password.
    server.write("hba", "local all all scram-sha-256\nhostssl all admin 127.0.0.1/32 cert\n");
    server.stop("fast");
    server.resume();
    refused(encrypted, "28000");
    let mut sink = PostgresSink::new(with_certificate).unwrap();
    assert_eq!(write(&mut sink, &entries).repeated, 1);
}
