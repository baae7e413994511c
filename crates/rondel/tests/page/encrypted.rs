//! The page with TLS: certificates of the server and of clients, and clients that do not keep to it.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rondel_sinks::tls::TlsOptions;
use rondel_testkit::{LIMIT, Process};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::support::{Folder, rondel, start_rondel};
use crate::{Answer, SPECIFICATION, TRACE};

/// An authority, and its certificate.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = parameters.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(parameters, key), pem }
    }

    /// Writes a certificate of this machine, which is valid in these years, with its key.
    fn write(&self, folder: &Folder, name: &str, years: (i32, i32)) {
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut parameters = CertificateParams::new(names).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.not_before = date_time_ymd(years.0, 1, 1);
        parameters.not_after = date_time_ymd(years.1, 1, 1);
        folder.file(&format!("{name}.pem"), parameters.signed_by(&key, &self.issuer).unwrap().pem());
        folder.file(&format!("{name}.key"), key.serialize_pem());
    }
}

/// Years in which the tests run.
const NOW: (i32, i32) = (2001, 2099);

/// A folder with certificates of an authority for the server and for clients, and with those of another one.
fn certificates() -> Folder {
    let (folder, own, other) = (Folder::new(), Authority::new(), Authority::new());
    folder.file("ca.pem", &own.pem);
    folder.file("other-ca.pem", &other.pem);
    for (name, years) in [("server", NOW), ("client", NOW), ("old", (2001, 2002)), ("new", (2098, 2099))] {
        own.write(&folder, name, years);
    }
    other.write(&folder, "stranger", NOW);
    folder
}

/// Serves a store with TLS. Returns the process, and its port.
fn serve(folder: &Folder, listen: &str, more: &[&str]) -> (Process, String) {
    let (spec, trace) = (folder.file("p.rondel", SPECIFICATION), folder.file("t.jsonl", TRACE));
    let store = folder.path("verdicts.db");
    rondel(["check", "-q", "--store", &store, &spec, &trace]).expect_status(1);
    let (certificate, key) = (folder.path("server.pem"), folder.path("server.key"));
    let own = ["page", &store, "--listen", listen, "--tls-certificate", &certificate, "--tls-key", &key];
    let mut page = start_rondel([&own[..], more].concat());
    let line = page.wait_stderr("listening on page https://");
    let (_, rest) = line.split_once("https://").unwrap();
    let (place, security) = rest.split_once('/').unwrap();
    assert!(security.starts_with(": encrypted, "), "{line}");
    let port = place.rsplit_once(':').unwrap().1.to_owned();
    (page, port)
}

/// The configuration of a client that trusts an authority, and may have a certificate.
fn client(folder: &Folder, ca: &str, certificate: Option<&str>) -> Arc<ClientConfig> {
    let file = |name: String| PathBuf::from(folder.path(&name));
    let options = TlsOptions {
        ca: Some(file(ca.to_owned())),
        certificate: certificate.map(|name| file(format!("{name}.pem"))),
        key: certificate.map(|name| file(format!("{name}.key"))),
    };
    Arc::new(options.client_config().unwrap())
}

/// Opens a connection, and sends a request.
fn send(
    port: &str,
    path: &str,
    config: &Arc<ClientConfig>,
    more: &str,
) -> Result<StreamOwned<ClientConnection, TcpStream>, String> {
    let stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::clone(config), name).unwrap();
    let mut stream = StreamOwned::new(connection, stream);
    let text = format!("GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\n{more}\r\n");
    stream.write_all(text.as_bytes()).map_err(|error| error.to_string())?;
    Ok(stream)
}

/// Sends a request with TLS, and reads until the server closes the connection; the reason if there is no answer.
fn get(port: &str, path: &str, config: &Arc<ClientConfig>, more: &str) -> Result<Answer, String> {
    let mut stream = send(port, path, config, &format!("Connection: close\r\n{more}"))?;
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes);
    match (bytes.is_empty(), read) {
        (true, Err(error)) => Err(error.to_string()),
        (true, Ok(_)) => Err("closed".to_owned()),
        (false, _) => Ok(Answer::of(&bytes)),
    }
}

const STATE: &str = "/api/v1/state";

#[test]
fn only_clients_with_a_certificate_of_the_authority_are_served() {
    let folder = certificates();
    let ca = folder.path("ca.pem");
    // No token, although others can connect.
    let (mut page, port) = serve(&folder, "0.0.0.0:0", &["--tls-client-ca", &ca]);
    let mut plain = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    plain.set_read_timeout(Some(LIMIT)).unwrap();
    plain.write_all(b"GET /api/v1/state HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    // The server may reset the connection.
    let _ = plain.read_to_end(&mut bytes);
    assert!(!bytes.starts_with(b"HTTP/"), "{}", String::from_utf8_lossy(&bytes));
    let line = page.wait_stderr("the page refused a connection from 127.0.0.1:");
    assert!(line.contains("addresses of this server begin with https://"), "{line}");
    for (ca, certificate, is_served) in [
        ("ca.pem", Some("client"), true),
        ("ca.pem", None, false),
        ("ca.pem", Some("stranger"), false),
        ("ca.pem", Some("old"), false),
        ("ca.pem", Some("new"), false),
        ("other-ca.pem", Some("client"), false),
        ("ca.pem", Some("client"), true),
    ] {
        let config = client(&folder, ca, certificate);
        // A session that was resumed would not be verified again.
        for _ in 0..2 {
            let status = get(&port, STATE, &config, "").map(|answer| answer.status);
            assert_eq!(status.is_ok(), is_served, "{ca}, {certificate:?}: {status:?}");
            assert!(status.is_err() || status == Ok(200), "{status:?}");
        }
    }
    let error = get(&port, STATE, &client(&folder, "other-ca.pem", None), "").err().unwrap();
    assert!(error.contains("certificate"), "{error}");
    page.terminate();
    let finished = page.finish();
    finished.expect_status(0);
    let reports = finished.stderr.matches("the page refused").count();
    assert!(reports < 9, "the rate is limited: {}", finished.stderr);
}

#[test]
fn without_an_authority_of_clients_a_token_is_needed() {
    let folder = certificates();
    let token = folder.file("page.token", "0123456789abcdef\n");
    let (page, port) = serve(&folder, "0.0.0.0:0", &["--token-file", &token]);
    let config = client(&folder, "ca.pem", None);
    for (headers, expected) in [
        ("", 401),
        ("Authorization: Bearer 0123456789abcdeX\r\n", 401),
        ("Authorization: Bearer 0123456789abcdef\r\n", 200),
    ] {
        assert_eq!(get(&port, STATE, &config, headers).unwrap().status, expected, "{headers}");
    }
    let origin = format!("Origin: https://localhost:{port}\r\n");
    let index = get(&port, "/", &config, &origin).unwrap();
    assert_eq!(index.status, 200);
    assert!(index.headers.contains("content-security-policy: default-src 'none'"), "{}", index.headers);
    page.terminate();
    page.finish().expect_status(0);
}

#[test]
fn silent_clients_hold_up_no_others() {
    let folder = certificates();
    let (page, port) = serve(&folder, "127.0.0.1:0", &[]);
    let address = format!("127.0.0.1:{port}");
    // More than the server begins handshakes with at once.
    let mut silent: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let config = client(&folder, "ca.pem", None);
    let began = Instant::now();
    assert_eq!(get(&port, STATE, &config, "").map(|answer| answer.status), Ok(200));
    assert!(began.elapsed() < Duration::from_secs(4), "served before the others are cut off");
    for stream in &mut silent {
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        match stream.read(&mut [0; 100]) {
            Ok(count) => assert_eq!(count, 0, "nothing is sent"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
        }
    }
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    // One that stops in the middle of the handshake: the header of a record.
    let mut halted = TcpStream::connect(&address).unwrap();
    halted.set_read_timeout(Some(LIMIT)).unwrap();
    halted.write_all(&[22, 3, 1, 2, 0, 1]).unwrap();
    assert_eq!(get(&port, STATE, &config, "").map(|answer| answer.status), Ok(200));
    let mut rest = Vec::new();
    match halted.read_to_end(&mut rest) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
    }
    page.terminate();
    page.finish().expect_status(0);
}

#[test]
fn events_are_sent_over_tls_until_the_end() {
    let folder = certificates();
    let (page, port) = serve(&folder, "127.0.0.1:0", &[]);
    let mut viewer = send(&port, "/api/v1/events", &client(&folder, "ca.pem", None), "").unwrap();
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    let mut wait = |part: &str| {
        while !text.contains(part) {
            let count = viewer.read(&mut buffer).unwrap();
            assert!(count > 0, "no {part:?} in {text}");
            text += &String::from_utf8_lossy(&buffer[..count]);
        }
    };
    wait("event: hello");
    page.terminate();
    wait("event: end");
    page.finish().expect_status(0);
}

#[cfg(feature = "top")]
#[test]
fn top_shows_a_page_with_tls() {
    let folder = certificates();
    let ca = folder.path("ca.pem");
    let (page, port) = serve(&folder, "127.0.0.1:0", &["--tls-client-ca", &ca]);
    let (certificate, key) = (folder.path("client.pem"), folder.path("client.key"));
    let (other, address) = (folder.path("other-ca.pem"), format!("https://127.0.0.1:{port}/"));
    let (ca, other, certificate) = (ca.as_str(), other.as_str(), certificate.as_str());
    let top = ["top", &address, "--once", "--tls-ca"];
    let own = ["--tls-certificate", certificate, "--tls-key", &key];
    let shown = rondel([&top[..], &[ca], &own[..]].concat());
    shown.expect_status(0);
    assert!(shown.stdout.contains("mine"), "{}", shown.stdout);
    rondel([&top[..], &[ca]].concat()).expect_status(5);
    rondel([&top[..], &[other], &own[..]].concat())
        .expect_status(5)
        .expect_stderr(&["certificate", "--tls-ca, --tls-certificate and --tls-key"]);
    rondel([&top[..], &[ca, "--tls-certificate", certificate]].concat()).expect_status(2);
    let plain = format!("127.0.0.1:{port}");
    rondel(["top", &plain, "--once"]).expect_status(5).expect_stderr(&["address begins with https://"]);
    page.terminate();
    page.finish().expect_status(0);
}

#[test]
fn files_of_a_deployment_are_checked() {
    let folder = certificates();
    let write = |page: &str| {
        let text = format!("formula: v\ntopics: {{ trace: zenoh:t }}\npage: {page}\n");
        folder.file("rondel.yaml", text)
    };
    let whole = "certificate: server.pem, key: server.key";
    let mutual = format!("{{ listen: \"0.0.0.0:8443\", tls: {{ {whole}, client_ca: ca.pem }} }}");
    let validated = rondel(["validate", &write(&mutual)]);
    validated.expect_status(0);
    assert!(validated.stdout.contains("https://0.0.0.0:8443/"), "{}", validated.stdout);
    let beyond = format!("{{ listen: \"0.0.0.0:8443\", tls: {{ {whole} }} }}");
    rondel(["validate", &write(&beyond)]).expect_status(2).expect_stderr(&["add a token", "`client_ca`"]);
    let page = |tls: &str| format!("{{ listen: \"127.0.0.1:0\", tls: {tls} }}");
    for (tls, said) in [
        ("{ certificate: server.pem }", "needs `certificate` and `key`"),
        ("{ key: server.key, client_ca: ca.pem }", "needs `certificate` and `key`"),
        ("{ certificate: none.pem, key: server.key }", "none.pem, which does not exist"),
        (
            "{ certificate: server.pem, key: server.key, client_ca: none.pem }",
            "none.pem, which does not exist",
        ),
        ("{ certificate: server.pem, key: server.key, ca: ca.pem }", "write `client_ca`"),
        ("true", "must be a mapping"),
    ] {
        rondel(["validate", &write(&page(tls))]).expect_status(2).expect_stderr(&[said]);
    }
    folder.file("text.pem", "no certificate");
    for (tls, said) in [
        ("{ certificate: server.pem, key: client.key }", "client.key for TLS: it is not the key of"),
        ("{ certificate: server.pem, key: text.pem }", "cannot use"),
        ("{ certificate: text.pem, key: server.key }", "no certificate in PEM form"),
        ("{ certificate: server.pem, key: server.key, client_ca: text.pem }", "no certificate in PEM form"),
    ] {
        let finished = rondel(["run", &write(&page(tls))]);
        finished.expect_status(2).expect_stderr(&["cannot serve the page", said]);
    }
    rondel(["page", "verdicts.db", "--tls-certificate", "server.pem"])
        .expect_status(2)
        .expect_stderr(&["--tls-key"]);
    let own = ["--tls-certificate", "server.pem", "--tls-key", "server.key"];
    rondel([&["page", "verdicts.db", "--listen", "0.0.0.0:0"][..], &own].concat())
        .expect_status(2)
        .expect_stderr(&["--listen: others can connect", "--token-file", "--tls-client-ca"]);
}
