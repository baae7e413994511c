//! DDS Security: participants with certificates, without, expired, and of another authority. `make test-features` runs
//! what needs the feature `dds-security`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod support;

use support::{Folder, rondel};

#[cfg(not(feature = "dds-security"))]
#[test]
fn a_program_without_security_names_the_feature_to_build_with() {
    let folder = Folder::new();
    let text = "formula: v > 1\ndds: { security: enclave }\ntopics: { trace: dds:rt/state }\n";
    let refused = rondel(["validate", &folder.file("rondel.yaml", text)]);
    refused.expect_status(2).expect_stderr(&["rondel.yaml:2:", "--features dds-security", "libssl-dev"]);
    rondel(["run", "-f", "v > 1", "--topic", "dds:rt/state", "--dds-security", "enclave"])
        .expect_status(2)
        .expect_stderr(&["--features dds-security"]);
    // Missing files are not reported, as they could not be used.
    let empty = "formula: v > 1\ndds: { security: {} }\ntopics: { trace: dds:rt/state }\n";
    let refused = rondel(["validate", &folder.file("empty.yaml", empty)]);
    refused.expect_status(2).expect_stderr(&["empty.yaml:2:", "--features dds-security"]);
    assert!(!refused.stderr.contains("identity_ca"), "{}", refused.stderr);
    // A recording needs no network.
    let file = folder.file("rondel.yaml", text);
    rondel(["check", &file, &folder.file("t.jsonl", "{\"v\":2}\n")]).expect_status(0);
}

#[cfg(feature = "dds-security")]
mod secure {
    use std::process::Command;

    use rcgen::{CertificateParams, DistinguishedName, DnType, Issuer, KeyPair, date_time_ymd};

    use super::support::network::dds_domain;
    use super::support::start_rondel;
    use super::{Folder, rondel};
    use rondel_testkit::{LIMIT, Process};

    fn openssl(folder: &Folder, arguments: &[&str]) {
        let made = Command::new("openssl").args(arguments).current_dir(folder.as_path()).output();
        let made = made.expect("these tests need the program `openssl`");
        assert!(made.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&made.stderr));
    }

    const KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

    /// Makes an authority: `NAME.pem` and `NAME.key`.
    fn authority(folder: &Folder, name: &str) {
        let (key, pem, subject) =
            (format!("{name}.key"), format!("{name}.pem"), format!("/O=Fleet/CN={name}"));
        let own = ["-keyout", &key, "-out", &pem, "-days", "30", "-subj", &subject];
        openssl(folder, &[&["req", "-x509"], &KEY[..], &own].concat());
    }

    /// The governance document of a domain, in which everything is encrypted.
    fn governance(domain: &str) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<dds><domain_access_rules><domain_rule>\
             <domains><id>{domain}</id></domains>\
             <allow_unauthenticated_participants>false</allow_unauthenticated_participants>\
             <enable_join_access_control>true</enable_join_access_control>\
             <discovery_protection_kind>ENCRYPT</discovery_protection_kind>\
             <liveliness_protection_kind>ENCRYPT</liveliness_protection_kind>\
             <rtps_protection_kind>ENCRYPT</rtps_protection_kind><topic_access_rules><topic_rule>\
             <topic_expression>*</topic_expression>\
             <enable_discovery_protection>true</enable_discovery_protection>\
             <enable_liveliness_protection>true</enable_liveliness_protection>\
             <enable_read_access_control>true</enable_read_access_control>\
             <enable_write_access_control>true</enable_write_access_control>\
             <metadata_protection_kind>ENCRYPT</metadata_protection_kind>\
             <data_protection_kind>ENCRYPT</data_protection_kind>\
             </topic_rule></topic_access_rules></domain_rule></domain_access_rules></dds>\n"
        )
    }

    /// The permissions of a participant, who may publish and subscribe to everything until that year.
    fn permissions(name: &str, domain: &str, until: u32) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<dds><permissions><grant name=\"{name}\">\
             <subject_name>CN={name},O=Fleet</subject_name><validity><not_before>2020-01-01T00:00:00</not_before>\
             <not_after>{until}-01-01T00:00:00</not_after></validity><allow_rule>\
             <domains><id>{domain}</id></domains><publish><topics><topic>*</topic></topics></publish>\
             <subscribe><topics><topic>*</topic></topics></subscribe></allow_rule><default>DENY</default>\
             </grant></permissions></dds>\n"
        )
    }

    /// Signs a document: `FOLDER/NAME.p7s`.
    fn sign(folder: &Folder, authority: &str, to: &str, text: &str) {
        folder.file("document.xml", text);
        let (pem, key) = (format!("{authority}.pem"), format!("{authority}.key"));
        let how =
            ["smime", "-sign", "-in", "document.xml", "-text", "-out", to, "-signer", &pem, "-inkey", &key];
        openssl(folder, &how);
    }

    /// Makes a participant of an authority: the six files in the folder NAME, whose path is returned.
    fn enclave(folder: &Folder, name: &str, authority: &str, domain: &str) -> String {
        let path = folder.path(name);
        std::fs::create_dir_all(&path).unwrap();
        let inside = |file: &str| format!("{name}/{file}");
        let (key, request, subject) =
            (inside("key.pem"), format!("{name}.csr"), format!("/O=Fleet/CN={name}"));
        let own = ["-keyout", &key, "-out", &request, "-subj", &subject];
        openssl(folder, &[&["req"], &KEY[..], &own].concat());
        let pem = format!("{authority}.pem");
        certify(folder, name, authority);
        for copy in ["identity_ca.cert.pem", "permissions_ca.cert.pem"] {
            std::fs::copy(folder.path(&pem), folder.path(&inside(copy))).unwrap();
        }
        sign(folder, authority, &inside("governance.p7s"), &governance(domain));
        sign(folder, authority, &inside("permissions.p7s"), &permissions(name, domain, 2090));
        path
    }

    /// Signs the certificate of a participant.
    fn certify(folder: &Folder, name: &str, authority: &str) {
        let (request, to) = (format!("{name}.csr"), format!("{name}/cert.pem"));
        let (pem, key) = (format!("{authority}.pem"), format!("{authority}.key"));
        let own = ["x509", "-req", "-in", &request, "-CA", &pem, "-CAkey", &key, "-CAcreateserial"];
        openssl(folder, &[&own[..], &["-days", "10", "-out", &to]].concat());
    }

    /// Publishes the numbers once somebody has subscribed.
    fn publish(folder: &Folder, domain: &str, security: Option<&str>, numbers: &[u32]) -> Process {
        let text: String = numbers.iter().map(|number| format!("{{\"v\":{number}}}\n")).collect();
        let file = folder.file(&format!("{}.jsonl", numbers[0]), text);
        let own = ["publish", &file, "--to", "dds:rt/state", "--dds-domain", domain, "--dds-interface", "lo"];
        let mut arguments = own.to_vec();
        arguments.extend(["--wait", "120"]);
        if let Some(folder) = security {
            arguments.extend(["--dds-security", folder]);
        }
        start_rondel(arguments)
    }

    #[test]
    fn only_participants_of_the_same_authority_get_through() {
        let (folder, domain) = (Folder::new(), dds_domain());
        authority(&folder, "ca");
        authority(&folder, "other");
        enclave(&folder, "monitor", "ca", &domain);
        let robot = enclave(&folder, "robot", "ca", &domain);
        let stranger = enclave(&folder, "stranger", "other", &domain);
        let file = folder.file(
            "rondel.yaml",
            format!(
                "formula: v < 10\ndds: {{ domain: {domain}, interface: lo, security: monitor }}\n\
                 topics: {{ trace: dds:rt/state }}\nverdicts: {{ to: dds:rt/verdict, emit: every }}\n"
            ),
        );
        rondel(["validate", &file]).expect_status(0);
        let mut run = start_rondel(["run", &file, "--summary", "json", "--wait-subscribers", "60"]);
        let listening = run.wait_stderr("listening on dds domain");
        assert!(listening.ends_with("encrypted, authenticated"), "{listening}");
        // Verdicts come back encrypted too, and the one process both receives and publishes.
        let options = ["--dds-domain", &domain, "--dds-interface", "lo", "--dds-security", &robot];
        let mut tap = start_rondel([&["tap", "dds:rt/verdict", "--count", "2"], &options[..]].concat());
        tap.wait_stderr("dds:rt/verdict");
        run.wait_stderr("ready");
        publish(&folder, &domain, Some(&robot), &[1, 20]).finish().expect_status(0);
        let tapped = tap.finish();
        tapped.expect_status(0);
        assert!(
            tapped.stdout.contains("satisfied") && tapped.stdout.contains("violated"),
            "{}",
            tapped.stdout
        );
        // Participants without security or with another certificate authority are refused.
        let plain = publish(&folder, &domain, None, &[300]);
        run.wait_stderr("DDS Security refuses: a participant at 127.0.0.1");
        let stranger = publish(&folder, &domain, Some(&stranger), &[400]);
        // The participant that checks the certificate first refuses; the other one gets no message.
        let refused = run.wait_stderr("DDS Security refuses: ");
        let is_stranger = ["has not proven who it is", "issuer certificate; subject: /O=Fleet/CN=stranger"];
        assert!(is_stranger.iter().any(|part| refused.contains(part)), "{refused}");
        drop((plain, stranger));
        run.signal("INT");
        let output = run.finish();
        output.expect_status(0);
        let summary = output.stderr.lines().find(|line| line.starts_with('{')).unwrap();
        let summary: serde_json::Value = serde_json::from_str(summary).unwrap();
        assert_eq!(summary["received"], 2, "{summary}");
        // The stranger is counted when it has left or 5 s are over, either of which the end may overtake.
        assert!(summary["refused_participants"].as_u64() >= Some(1), "{summary}");
    }

    /// Fast DDS shares no code with the library that Rondel uses. `make test-features` builds the program of the folder
    /// peers/on-fastdds, which RONDEL_TEST_FASTDDS names.
    #[test]
    fn participants_on_fast_dds() {
        let Some(program) = std::env::var_os("RONDEL_TEST_FASTDDS") else {
            eprintln!("skipped: RONDEL_TEST_FASTDDS is not set");
            return;
        };
        let (folder, domain) = (Folder::new(), dds_domain());
        authority(&folder, "ca");
        authority(&folder, "other");
        enclave(&folder, "monitor", "ca", &domain);
        let robot = enclave(&folder, "robot", "ca", &domain);
        let stranger = enclave(&folder, "stranger", "other", &domain);
        let peer = |role: &str, enclave: &str, topic: &str, texts: &[&str]| {
            let mut command = Command::new(&program);
            command.args([role, &domain, enclave, topic]).args(texts);
            let mut peer = Process::start(command);
            peer.wait_stdout("ready");
            peer
        };
        let file = folder.file(
            "rondel.yaml",
            format!(
                "formula: v < 10\ndds: {{ domain: {domain}, interface: lo, security: monitor }}\n\
                 topics: {{ trace: dds:rt/state }}\nverdicts: {{ to: dds:rt/verdict, emit: every }}\n"
            ),
        );
        let mut run = start_rondel(["run", &file, "--summary", "json", "--wait-subscribers", "60"]);
        run.wait_stderr("encrypted, authenticated");
        let mut verdicts = peer("subscribe", &robot, "rt/verdict", &[]);
        run.wait_stderr("ready");
        // The publisher may know of a subscriber before that knows of it: what it sends then is not for that subscriber.
        verdicts.wait_stdout("matched");
        let mut publisher = peer("publish", &robot, "rt/state", &["{\"v\":1}", "{\"v\":20}", "{\"v\":3}"]);
        publisher.wait_stdout("sent");
        let read = |line: &String| {
            let verdict: serde_json::Value = serde_json::from_str(line).unwrap();
            verdict["verdict"].as_str().unwrap().to_owned()
        };
        let came: Vec<String> = (0..3).map_while(|_| verdicts.stdout_within(LIMIT)).collect();
        if came.len() < 3 {
            run.signal("INT");
            panic!("{} of 3 verdicts came; the run says:\n{}", came.len(), run.finish().stderr);
        }
        let verdicts: Vec<String> = came.iter().map(read).collect();
        assert_eq!(verdicts, ["satisfied", "violated", "satisfied"]);
        // Without security, and of another authority.
        let plain = peer("publish", "-", "rt/state", &["{\"v\":300}"]);
        run.wait_stderr("DDS Security refuses: a participant at 127.0.0.1");
        let stranger = peer("publish", &stranger, "rt/state", &["{\"v\":400}"]);
        run.wait_stderr("DDS Security refuses: ");
        drop((plain, stranger));
        run.signal("INT");
        let output = run.finish();
        let summary = output.stderr.lines().find(|line| line.starts_with('{')).unwrap();
        let summary: serde_json::Value = serde_json::from_str(summary).unwrap();
        assert_eq!(summary["received"], 3, "{summary}");
    }

    /// One participant receives and publishes: acknowledgements of verdicts wait while its queue is full.
    #[test]
    fn a_full_queue_stops_no_verdicts() {
        let (folder, domain) = (Folder::new(), dds_domain());
        authority(&folder, "ca");
        let (monitor, robot) =
            (enclave(&folder, "monitor", "ca", &domain), enclave(&folder, "robot", "ca", &domain));
        let file = folder.file(
            "rondel.yaml",
            format!(
                "formula: v < 10\nslow_consumer: {{ wait: 10 s }}\n\
                 dds: {{ domain: {domain}, interface: lo, security: {monitor}, reader_queue: 64 }}\n\
                 topics: {{ trace: dds:rt/state }}\nverdicts: {{ to: dds:rt/verdict, emit: every }}\n"
            ),
        );
        let mut run = start_rondel(["run", &file, "--count", "20000", "--wait-subscribers", "60"]);
        let options = ["--dds-domain", &domain, "--dds-interface", "lo", "--dds-security", &robot];
        let mut tap = start_rondel([&["tap", "dds:rt/verdict", "--count", "20000"], &options[..]].concat());
        tap.wait_stderr("dds:rt/verdict");
        run.wait_stderr("ready");
        let numbers: Vec<u32> = (0..20_000).map(|i| i % 20).collect();
        publish(&folder, &domain, Some(&robot), &numbers).finish().expect_status(0);
        run.finish().expect_status(0).expect_stderr(&["dropped 0, verdicts 20,000"]);
        let tapped = tap.finish();
        assert_eq!(tapped.stdout.lines().count(), 20_000, "{}", tapped.stderr);
    }

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let (folder, domain) = (Folder::new(), dds_domain());
        authority(&folder, "ca");
        authority(&folder, "other");
        let robot = enclave(&folder, "robot", "ca", &domain);
        enclave(&folder, "second", "ca", &domain);
        let deployment = |changed: &str, to: &str| {
            let mut text = format!(
                "formula: v < 10\ntopics: {{ trace: dds:rt/state }}\ndds:\n  domain: {domain}\n  security:\n    \
                 identity_ca: ca.pem\n    certificate: robot/cert.pem\n    key: robot/key.pem\n    \
                 permissions_ca: ca.pem\n    governance: robot/governance.p7s\n    \
                 permissions: robot/permissions.p7s\n"
            );
            let from = text.lines().find(|line| line.trim_start().starts_with(&format!("{changed}:")));
            if let Some(from) = from.map(str::to_owned) {
                text = text.replace(&from, &format!("    {changed}: {to}"));
            }
            folder.file("rondel.yaml", text)
        };
        let refused = |changed: &str, to: &str, said: &[&str]| {
            let validated = rondel(["validate", &deployment(changed, to)]);
            validated.expect_status(2).expect_stderr(said);
        };
        rondel(["validate", &deployment("", "")]).expect_status(0);
        refused("certificate", "gone.pem", &["rondel.yaml:7:18", "gone.pem: No such file"]);
        refused("certificate", "ca.key", &["ca.key: no certificate in PEM"]);
        refused("identity_ca", "other.pem", &["rondel.yaml:7:", "is not signed by that of `identity_ca`"]);
        refused("key", "second/key.pem", &["rondel.yaml:8:10", "it is not the key of the certificate"]);
        refused("key", "robot/cert.pem", &["no private key in PEM"]);
        refused(
            "permissions_ca",
            "other.pem",
            &["rondel.yaml:10:", "rondel.yaml:11:", "it is not signed by"],
        );
        refused("governance", "document.xml", &["no signed document"]);
        refused("governance", "", &["rondel.yaml:10:", "`governance` has no value"]);
        openssl(
            &folder,
            &["ec", "-in", "robot/key.pem", "-aes256", "-passout", "pass:x", "-out", "locked.key"],
        );
        refused("key", "locked.key", &["encrypted with a password"]);
        // A signed document that was changed afterwards.
        let signed = std::fs::read_to_string(folder.path("robot/governance.p7s")).unwrap();
        folder
            .file("open.p7s", signed.replace("<rtps_protection_kind>ENCRYPT", "<rtps_protection_kind>NONE"));
        refused("governance", "open.p7s", &["was changed after it"]);
        sign(&folder, "ca", "elsewhere.p7s", &governance("231"));
        refused("governance", "elsewhere.p7s", &["no `domain_rule` for the domain"]);
        sign(&folder, "ca", "ended.p7s", &permissions("robot", &domain, 2024));
        refused("permissions", "ended.p7s", &["rondel.yaml:11:", "the permissions ended at 2024-01-01"]);
        // Only CycloneDDS finds this error: the permissions belong to another subject.
        sign(&folder, "ca", "second.p7s", &permissions("second", &domain, 2090));
        rondel(["run", &deployment("permissions", "second.p7s")]).expect_status(5).expect_stderr(&[
            "cannot join DDS domain",
            "DDS Security",
            "`subject_name` in the permissions must be",
        ]);
        // Expired, and not valid yet.
        let said = [(2001, "the certificate of O=Fleet, CN=robot expired on"), (2090, "is not valid before")];
        for (year, said) in said {
            certify_in(&folder, "robot", "ca", year);
            refused("", "", &["rondel.yaml:7:18", said]);
            let options = ["--dds-domain", &domain, "--dds-interface", "lo", "--dds-security", &robot];
            let own = ["publish", "/dev/null", "--to", "dds:rt/state"];
            rondel([&own[..], &options].concat()).expect_status(2).expect_stderr(&[said]);
        }
    }

    /// Signs the certificate of a participant for one year, which not every `openssl x509` can.
    fn certify_in(folder: &Folder, name: &str, authority: &str, year: i32) {
        let key =
            |path: String| KeyPair::from_pem(&std::fs::read_to_string(folder.path(&path)).unwrap()).unwrap();
        let named = |name: &str| {
            let mut parameters = CertificateParams::new(Vec::new()).unwrap();
            parameters.distinguished_name = DistinguishedName::new();
            parameters.distinguished_name.push(DnType::OrganizationName, "Fleet");
            parameters.distinguished_name.push(DnType::CommonName, name);
            parameters
        };
        let issuer = Issuer::new(named(authority), key(format!("{authority}.key")));
        let mut own = named(name);
        own.not_before = date_time_ymd(year, 1, 1);
        own.not_after = date_time_ymd(year + 1, 1, 1);
        let signed = own.signed_by(&key(format!("{name}/key.pem")), &issuer).unwrap();
        folder.file(&format!("{name}/cert.pem"), signed.pem());
    }
}
