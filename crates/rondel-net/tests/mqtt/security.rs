//! Passwords, certificates and settings that are refused.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rondel_net::adapter::{Publisher as _, Subscription as _};
use rondel_net::mqtt::{
    DeclareError, OpenError, Password, PublisherSettings, Session, Settings, SubscriptionSettings, Tls,
    Version,
};

use super::{BATCHING, LIMIT, Numbers, TOPIC, VERSIONS, publish, settings, subscribe};
use rondel_testkit::{Broker, Folder};

#[test]
fn wrong_passwords_and_unreachable_brokers_are_errors() {
    let name = "wrong_passwords_and_unreachable_brokers_are_errors";
    let guarded = Broker::with(name, |port, folder| {
        let file = folder.as_path().join("passwords");
        let mut making = std::process::Command::new("mosquitto_passwd");
        let made = making.args(["-b", "-c"]).arg(&file).args(["me", "right"]).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        format!("listener {port} 127.0.0.1\nallow_anonymous false\npassword_file {}\n", file.display())
    });
    let Some(mut broker) = guarded else { return };
    let as_me = |version, file: &str| Settings {
        version,
        user: Some("me".into()),
        password: Some(Password::File(broker.folder.file("password", file).into())),
        ..settings(broker.port)
    };
    for version in VERSIONS {
        let refused = Session::open(&as_me(version, "wrong\n")).unwrap_err();
        assert!(matches!(refused, OpenError::Refused { .. }), "{refused}");
        assert!(refused.to_string().contains("not authorized"), "{refused}");
        assert!(!refused.to_string().contains("wrong\n"));
        let refused = Session::open(&Settings { version, ..settings(broker.port) }).unwrap_err();
        assert!(matches!(refused, OpenError::Refused { .. }), "{refused}");
        Session::open(&as_me(version, "right\n")).unwrap();
    }
    let unset = Settings {
        user: Some("me".into()),
        password: Some(Password::Environment("RONDEL_NO_SUCH_VARIABLE".into())),
        ..settings(broker.port)
    };
    assert!(unset.check().is_ok(), "the variable may be set where the deployment runs");
    assert!(Session::open(&unset).unwrap_err().to_string().contains("RONDEL_NO_SUCH_VARIABLE"));
    broker.kill();
    let gone = Session::open(&settings(broker.port)).unwrap_err();
    assert!(matches!(gone, OpenError::Unreachable { .. }), "{gone}");
}

#[test]
fn invalid_topics_are_refused() {
    let Some(broker) = Broker::start("invalid_topics_are_refused") else { return };
    let session = Session::open(&settings(broker.port)).unwrap();
    let unused = Arc::new(Numbers::default());
    let filter = session.subscribe("a/#/b", SubscriptionSettings::default(), TOPIC, unused);
    assert!(matches!(filter, Err(DeclareError::Topic { .. })));
    assert!(matches!(
        session.publisher("a/+", &PublisherSettings::default()),
        Err(DeclareError::Topic { .. })
    ));
}

#[test]
fn tls_with_certificates_of_both_sides() {
    let name = "tls_with_certificates_of_both_sides";
    let (authority, stranger) = (Authority::new(), Authority::new());
    let guarded = Broker::with(name, |port, folder| {
        authority.write(folder, "ca", "broker");
        format!(
            "listener {port} 127.0.0.1\ncafile {0}/ca.pem\ncertfile {0}/broker.pem\nkeyfile {0}/broker.key\n\
             require_certificate true\nuse_identity_as_username true\n",
            folder.as_path().display()
        )
    });
    let Some(broker) = guarded else { return };
    let folder = &broker.folder;
    authority.write(folder, "ca", "me");
    stranger.write(folder, "other-ca", "other");
    let file = |name: &str| Some(folder.as_path().join(name));
    let good = Tls { ca: file("ca.pem"), certificate: file("me.pem"), key: file("me.key") };
    let with = |version, tls| Settings {
        version,
        tls: Some(tls),
        broker: format!("mqtts://localhost:{}", broker.port).parse().unwrap(),
        ..settings(broker.port)
    };
    for version in VERSIONS {
        let session = Session::open(&with(version, good.clone())).unwrap();
        let (numbers, subscription) = subscribe(&session, "test/numbers");
        let publisher = session.publisher("test/numbers", &BATCHING).unwrap();
        publish(&publisher, 0..20_000);
        assert!(publisher.flush(LIMIT));
        numbers.assert_all(20_000);
        // Larger than a TLS record.
        publisher.publish(format!("{:0>60000}", 20_000).as_bytes()).unwrap();
        assert!(publisher.flush(LIMIT));
        numbers.assert_all(20_001);
        assert!(subscription.close(LIMIT) && session.close_within(LIMIT));
    }
    for bad in [
        // An authority that did not sign the broker's certificate, an untrusted client, an anonymous one.
        Tls { ca: file("other-ca.pem"), ..good.clone() },
        Tls { certificate: file("other.pem"), key: file("other.key"), ..good.clone() },
        Tls { certificate: None, key: None, ..good.clone() },
    ] {
        let refused = Session::open(&with(Version::V5, bad)).unwrap_err();
        assert!(matches!(refused, OpenError::Refused { .. }), "{refused}");
    }
    let mixed = Tls { key: file("other.key"), ..good };
    assert!(with(Version::V5, mixed).check().is_err(), "the key belongs to another certificate");
}

/// A certificate authority.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, "an authority");
        let pem = parameters.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(parameters, key), pem }
    }

    /// Writes the authority's certificate, and a certificate for `localhost` with its key.
    fn write(&self, folder: &Folder, own: &str, name: &str) {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, name);
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        folder.file(&format!("{own}.pem"), &self.pem);
        folder.file(&format!("{name}.pem"), certificate.pem());
        folder.file(&format!("{name}.key"), key.serialize_pem());
    }
}
