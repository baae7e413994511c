//! Sockets of a monitor: it listens only where the deployment says so, and informs a service manager. The tests read the
//! sockets of the process.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod service;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rondel_testkit::Process;
use support::network::{dds_domain, free_endpoint, router};
use support::{Folder, rondel, start_rondel};

/// The sockets of a process that others can reach: `tcp 127.0.0.1:7447`, with the port only where one was given.
fn listening(process: &Process) -> BTreeSet<String> {
    let folder = format!("/proc/{}/fd", process.id());
    let inodes: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let mut found = BTreeSet::new();
    for (table, listens) in [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")] {
        let table_path = format!("/proc/{}/net/{table}", process.id());
        // Without IPv6 there is no table of it.
        let Ok(text) = std::fs::read_to_string(table_path) else { continue };
        for line in text.lines().skip(1) {
            let columns: Vec<&str> = line.split_whitespace().collect();
            if columns[3] != listens || !inodes.contains(columns[9]) {
                continue;
            }
            let (address, port) = columns[1].split_once(':').unwrap();
            let port = u16::from_str_radix(port, 16).unwrap();
            let address = match address {
                "0100007F" => "loopback".to_owned(),
                "00000000000000000000000001000000" => "loopback".to_owned(),
                all if all.bytes().all(|byte| byte == b'0') => "any".to_owned(),
                other => other.to_owned(),
            };
            found.insert(format!("{} {address}:{port}", table.trim_end_matches('6')));
        }
    }
    found
}

/// Starts a monitor of `demo/state` on Zenoh, and waits until it is ready; what it printed so far.
fn monitor(arguments: &[&str]) -> (Process, String) {
    let own = ["run", "-f", "v", "--topic", "zenoh:demo/state"];
    let mut process = start_rondel(own.iter().chain(arguments));
    process.wait_stderr("ready");
    let printed = process.all_stderr_so_far();
    (process, printed)
}

fn port(endpoint: &str) -> &str {
    endpoint.rsplit_once(':').unwrap().1
}

/// Writes the certificate of an authority, and those of a monitor and of a vehicle.
fn certificates(folder: &Folder) {
    let key = KeyPair::generate().unwrap();
    let mut parameters = CertificateParams::new(Vec::new()).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    folder.file("ca.pem", parameters.self_signed(&key).unwrap().pem());
    let issuer = Issuer::new(parameters, key);
    for name in ["monitor", "vehicle"] {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, name);
        folder.file(&format!("{name}.pem"), parameters.signed_by(&key, &issuer).unwrap().pem());
        folder.file(&format!("{name}.key"), key.serialize_pem());
    }
}

/// A configuration of Zenoh with mutual TLS and further members.
fn mutual(folder: &Folder, name: &str, side: &str, further: &str) -> String {
    let path = |file: String| folder.path(&file);
    let (ca, key, pem) = (path("ca.pem".into()), path(format!("{name}.key")), path(format!("{name}.pem")));
    folder.file(
        &format!("{name}.json5"),
        format!(
            "{{ {further} transport: {{ link: {{ tls: {{ root_ca_certificate: '{ca}', enable_mtls: true, \
             {side}_private_key: '{key}', {side}_certificate: '{pem}' }} }} }} }}"
        ),
    )
}

#[test]
fn a_peer_that_connects_listens_on_nothing() {
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    let (process, printed) = monitor(&["--zenoh-connect", &endpoint]);
    assert_eq!(listening(&process), BTreeSet::new());
    assert!(!printed.contains("listening on"), "{printed}");
}

#[test]
fn an_endpoint_to_listen_on_is_the_only_one() {
    let endpoint = free_endpoint();
    let (process, printed) = monitor(&["--zenoh-listen", &endpoint]);
    assert_eq!(listening(&process), BTreeSet::from([format!("tcp loopback:{}", port(&endpoint))]));
    let line = format!("listening on zenoh {endpoint}: not encrypted, not authenticated");
    assert!(printed.contains(&line), "{printed}");
}

#[test]
fn a_peer_without_endpoints_reports_its_sockets() {
    let (process, printed) = monitor(&[]);
    let listening = listening(&process);
    assert!(listening.iter().any(|socket| socket.starts_with("tcp any:")), "{listening:?}");
    assert!(listening.iter().any(|socket| socket.starts_with("udp")), "{listening:?}");
    assert!(!printed.contains("tcp/[::]:0:"), "{printed}");
    for line in [
        "listening on zenoh tcp/[::]:",
        "listening on zenoh udp/224.0.0.224:7446 (multicast, to be discovered): not encrypted, not authenticated",
    ] {
        assert!(printed.contains(line), "{line:?} is not in\n{printed}");
    }
}

#[test]
fn mutual_tls_leaves_no_other_door_open() {
    let folder = Folder::new();
    certificates(&folder);
    let free = free_endpoint();
    let endpoint = format!("tls/localhost:{}", port(&free));
    let listen = format!("mode: 'router', listen: {{ endpoints: ['{endpoint}'] }},");
    let server = mutual(&folder, "monitor", "listen", &listen);
    let (router, printed) = monitor(&["--zenoh-config", &server]);
    assert_eq!(listening(&router), BTreeSet::from([format!("tcp loopback:{}", port(&free))]));
    let line = format!("listening on zenoh {endpoint}: encrypted, authenticated");
    assert!(printed.contains(&line), "{printed}");

    // A peer that only connects: no listener without TLS, and nothing is scouted.
    let connect = format!("mode: 'peer', connect: {{ endpoints: ['{endpoint}'] }},");
    let client = mutual(&folder, "vehicle", "connect", &connect);
    let (peer, printed) = monitor(&["--zenoh-config", &client]);
    assert_eq!(listening(&peer), BTreeSet::new());
    assert!(!printed.contains("listening on"), "{printed}");
}

#[test]
fn plaintext_is_refused_beside_tls_and_credentials() {
    let folder = Folder::new();
    certificates(&folder);
    let run = ["run", "-f", "v", "--topic", "zenoh:demo/state", "--zenoh-config"];
    let config = mutual(&folder, "monitor", "listen", "");
    for (further, words) in [
        (vec![], "TLS is configured, but without `listen` the mode peer listens on tcp/[::]:0"),
        (vec!["--zenoh-mode", "router"], "the mode router listens on tcp/[::]:7447"),
        (vec!["--zenoh-listen", "tcp/127.0.0.1:1"], "the session listens on tcp/127.0.0.1:1"),
        (vec!["--zenoh-connect", "tcp/127.0.0.1:1"], "the session connects to tcp/127.0.0.1:1"),
        (
            vec!["--zenoh-listen", "tls/127.0.0.1:1", "--zenoh-connect", "udp/127.0.0.1:1"],
            "TLS is configured, but the session connects to udp/127.0.0.1:1, which is not encrypted; write tls/HOST:PORT",
        ),
    ] {
        let finished = rondel([&run[..], &[&config], &further].concat());
        finished.expect_status(2).expect_stderr(&[words]);
    }
    let users = folder.file(
        "users.json5",
        "{ connect: { endpoints: ['tcp/127.0.0.1:1'] }, transport: { auth: { usrpwd: { user: 'a', password: 'b' } } } }",
    );
    rondel([&run[..], &[&users]].concat())
        .expect_status(2)
        .expect_stderr(&["authentication is configured, but the session connects to tcp/127.0.0.1:1"]);
    let deployment = folder.file(
        "rondel.yaml",
        "formula: v\ntopics: { trace: zenoh:a }\nzenoh: { config: monitor.json5, listen: tcp/127.0.0.1:1 }\n",
    );
    rondel(["validate", &deployment]).expect_status(2).expect_stderr(&["3:8", "which is not encrypted"]);
}

#[test]
fn a_client_that_only_listens_is_refused() {
    let run = ["run", "-f", "v", "--topic", "zenoh:a", "--zenoh-mode", "client", "--zenoh-listen"];
    rondel([&run[..], &["tcp/127.0.0.1:1"]].concat())
        .expect_status(2)
        .expect_stderr(&["the mode client only connects, and cannot wait for others on tcp/127.0.0.1:1"]);
}

/// CycloneDDS receives on all interfaces, which its source fixes, and sends from the chosen one: what cannot be closed is
/// reported.
#[test]
fn dds_warns_that_it_receives_on_all_interfaces() {
    let domain = dds_domain();
    let mut process = start_rondel([
        "run",
        "-f",
        "v",
        "--topic",
        "dds:state",
        "--dds-domain",
        &domain,
        "--dds-interface",
        "lo",
    ]);
    process.wait_stderr("ready");
    let listening = listening(&process);
    // Unicast and multicast of discovery and of data; two sockets of multicast have the same address.
    let count = |address: &str| listening.iter().filter(|socket| socket.starts_with(address)).count();
    assert!(count("udp any:") >= 3, "{listening:?}");
    assert_eq!((count("udp loopback:"), count("udp")), (1, listening.len()), "{listening:?}");
    let printed = process.all_stderr_so_far();
    let line = format!(
        "listening on dds domain {domain} on UDP ports of all interfaces and multicast, announced on lo only: not \
         encrypted, not authenticated"
    );
    assert!(printed.contains(&line), "{printed}");
}
