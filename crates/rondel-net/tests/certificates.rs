//! Certificates that are expired, not valid yet, or signed by another authority, on Zenoh and MQTT.

#![cfg(all(feature = "mqtt", feature = "zenoh"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rondel_net::{mqtt, zenoh};
use rondel_testkit::{Broker, Folder, free_port};

/// An authority and the folder of its certificates.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// Validity of a certificate.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Valid {
    Now,
    Before,
    Later,
}

impl Authority {
    fn new() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = parameters.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(parameters, key), pem }
    }

    /// Writes a certificate for `localhost` with its key.
    fn write(&self, folder: &Folder, name: &str, valid: Valid) {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, name);
        match valid {
            Valid::Now => {}
            Valid::Before => {
                parameters.not_before = date_time_ymd(2001, 1, 1);
                parameters.not_after = date_time_ymd(2002, 1, 1);
            }
            Valid::Later => {
                parameters.not_before = date_time_ymd(2090, 1, 1);
                parameters.not_after = date_time_ymd(2099, 1, 1);
            }
        }
        folder.file(&format!("{name}.pem"), parameters.signed_by(&key, &self.issuer).unwrap().pem());
        folder.file(&format!("{name}.key"), key.serialize_pem());
    }
}

/// Settings of a session of Zenoh with mutual TLS.
fn zenoh_settings(folder: &Folder, name: &str, side: &str, ca: &str) -> zenoh::Settings {
    let path = |file: String| folder.as_path().join(file).display().to_string();
    let (ca, key, pem) = (path(ca.to_owned()), path(format!("{name}.key")), path(format!("{name}.pem")));
    let text = format!(
        "{{ transport: {{ link: {{ tls: {{ root_ca_certificate: '{ca}', enable_mtls: true, {side}_private_key: \
         '{key}', {side}_certificate: '{pem}' }} }} }} }}"
    );
    let config_file = Some(folder.file(&format!("{name}-{side}.json5"), text).into());
    zenoh::Settings { config_file, ..zenoh::Settings::default() }
}

/// Whether a client with this certificate connects to a server with that one.
fn zenoh_connects(folder: &Folder, server: &str, client: &str, ca: &str) -> bool {
    let endpoint = format!("tls/localhost:{}", free_port());
    let server = zenoh::Settings {
        mode: Some(zenoh::Mode::Router),
        listen: vec![endpoint.clone()],
        ..zenoh_settings(folder, server, "listen", "ca.pem")
    };
    let server = zenoh::Session::open(&server).unwrap();
    let client = zenoh::Settings {
        mode: Some(zenoh::Mode::Client),
        connect: vec![endpoint],
        ..zenoh_settings(folder, client, "connect", ca)
    };
    let connected = match zenoh::Session::open(&client) {
        Ok(client) => client.wait_connected(Duration::from_secs(5)),
        Err(zenoh::OpenError::Unreachable { .. }) => false,
        Err(other) => panic!("{other}"),
    };
    server.close().unwrap();
    connected
}

/// Whether they connect at last: an attempt lasts a second, which a busy machine may need for more than a handshake.
fn zenoh_connects_at_last(folder: &Folder, name: &str) -> bool {
    (0..20).any(|_| zenoh_connects(folder, name, name, "ca.pem"))
}

#[test]
fn zenoh_refuses_certificates_that_are_not_valid() {
    let (folder, authority) = (Folder::new(), Authority::new());
    folder.file("ca.pem", &authority.pem);
    for (name, valid) in [("good", Valid::Now), ("old", Valid::Before), ("new", Valid::Later)] {
        authority.write(&folder, name, valid);
    }
    assert!(zenoh_connects_at_last(&folder, "good"));
    for bad in ["old", "new"] {
        assert!(!zenoh_connects(&folder, "good", bad, "ca.pem"), "a client whose certificate is {bad}");
        assert!(!zenoh_connects(&folder, bad, "good", "ca.pem"), "a server whose certificate is {bad}");
    }
    // The file of the authority is replaced: the next session trusts only the new one.
    let other = Authority::new();
    folder.file("other.pem", &other.pem);
    other.write(&folder, "stranger", Valid::Now);
    assert!(!zenoh_connects(&folder, "good", "good", "other.pem"));
    assert!(!zenoh_connects(&folder, "good", "stranger", "ca.pem"));
    folder.file("ca.pem", &other.pem);
    assert!(!zenoh_connects(&folder, "good", "good", "ca.pem"));
    assert!(zenoh_connects_at_last(&folder, "stranger"));
}

#[test]
fn mqtt_refuses_certificates_that_are_not_valid() {
    let authority = Authority::new();
    for valid in [Valid::Now, Valid::Before, Valid::Later] {
        let configure = |port: u16, folder: &Folder| {
            folder.file("ca.pem", &authority.pem);
            authority.write(folder, "broker", valid);
            authority.write(folder, "good", Valid::Now);
            authority.write(folder, "old", Valid::Before);
            authority.write(folder, "new", Valid::Later);
            let file = |name: &str| folder.as_path().join(name).display().to_string();
            format!(
                "listener {port} 127.0.0.1\ncafile {}\ncertfile {}\nkeyfile {}\nrequire_certificate true\n\
                 allow_anonymous true\n",
                file("ca.pem"),
                file("broker.pem"),
                file("broker.key")
            )
        };
        let Some(broker) = Broker::with("mqtt_refuses_certificates_that_are_not_valid", configure) else {
            return;
        };
        let open = |client: &str| {
            let file = |name: String| Some(broker.folder.as_path().join(name));
            mqtt::Session::open(&mqtt::Settings {
                broker: format!("mqtts://localhost:{}", broker.port).parse().unwrap(),
                tls: Some(mqtt::Tls {
                    ca: file("ca.pem".to_owned()),
                    certificate: file(format!("{client}.pem")),
                    key: file(format!("{client}.key")),
                }),
                ..mqtt::Settings::default()
            })
            .map(drop)
        };
        if valid == Valid::Now {
            open("good").unwrap();
            for bad in ["old", "new"] {
                // The reaction of a broker to a bad certificate varies; it never accepts the connection.
                let error = open(bad).unwrap_err();
                assert!(!matches!(error, mqtt::OpenError::Setting(_)), "{bad}: {error}");
            }
            // The file of the authority is replaced: the next connection trusts only the new one.
            broker.folder.file("ca.pem", Authority::new().pem);
            let error = open("good").unwrap_err().to_string();
            assert!(error.contains("UnknownIssuer") || error.contains("BadSignature"), "{error}");
        } else {
            let error = open("good").unwrap_err();
            let words = if valid == Valid::Before { "xpired" } else { "not valid yet" };
            assert!(matches!(error, mqtt::OpenError::Refused { .. }), "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
