//! Addresses with https.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;

use rondel_sinks::Sink;
use rondel_sinks::tls::TlsOptions;
use rondel_sinks::webhook::{WebhookOptions, WebhookSink};
use rondel_testkit::Folder;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::support::{LIMIT, violated};

/// Accepts one connection, and answers one request. Returns whether it got so far.
fn serve(listener: &TcpListener, certificate: &str, key: &str) -> bool {
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let connection = rustls::ServerConnection::new(Arc::new(config)).unwrap();
    let mut stream = rustls::StreamOwned::new(connection, stream);
    let mut request = Vec::new();
    let mut piece = [0; 1000];
    while !request.ends_with(b"\"number\":1}") {
        match stream.read(&mut piece) {
            Ok(count @ 1..) => request.extend_from_slice(&piece[..count]),
            _ => return false,
        }
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").is_ok()
}

#[test]
fn certificate_is_verified() {
    let folder = Folder::new();
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (own.cert.pem(), own.signing_key.serialize_pem());
    let cases = [
        ("localhost", &certificate, ""),
        ("localhost", &other.cert.pem(), "certificate"),
        // The certificate is for another name.
        ("127.0.0.1", &certificate, "certificate"),
    ];
    for (host, ca, reason) in cases {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let ca = folder.file("ca.pem", ca);
        let tls = Some(TlsOptions { ca: Some(ca.into()), ..TlsOptions::default() });
        let url = format!("https://{host}:{port}/");
        let mut sink = WebhookSink::new(WebhookOptions { url, tls, ..WebhookOptions::default() }).unwrap();
        std::thread::scope(|scope| {
            let server = scope.spawn(|| serve(&listener, &certificate, &key));
            let result = sink.write(&violated(1..2), LIMIT);
            assert_eq!(server.join().unwrap(), reason.is_empty());
            match result {
                Ok(written) => assert!(reason.is_empty() && written.stored == 1),
                Err(failure) => assert!(!reason.is_empty() && failure.message.contains(reason), "{failure}"),
            }
        });
    }
}
