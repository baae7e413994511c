//! Users and permissions.

use rondel_sinks::{FailureKind, Sink};

use crate::messages::{LIMIT, Sample, entries};
use crate::server::{Server, WITH_USERS};

#[test]
fn user_needs_the_right_password_and_permissions() {
    let Some(server) = Server::start("user_needs_the_right_password_and_permissions", WITH_USERS) else {
        return;
    };
    server.create("verdicts", &[]);
    let samples = Sample::all(0..10);
    let login = |user, password| {
        let protocol = [("security.protocol", "sasl_plaintext"), ("sasl.mechanism", "PLAIN")];
        server.sink(
            "verdicts",
            &[&protocol[..], &[("sasl.username", user), ("sasl.password", password)]].concat(),
        )
    };
    let cases = [
        (login("admin", "secret2"), "check `sasl.username` and `sasl.password`"),
        (login("reader", "secret"), "add an ACL for the operation"),
        (server.sink("verdicts", &[]), "check the address"),
    ];
    for (mut sink, reason) in cases {
        let failure = sink.write(&entries(&samples), LIMIT).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Unavailable);
        assert!(failure.message.contains(reason) && !failure.message.contains("secret2"), "{failure}");
    }
    assert_eq!(login("admin", "secret").write(&entries(&samples), LIMIT).unwrap().stored, 10);
    assert_eq!(server.records("verdicts").len(), 10);
}
