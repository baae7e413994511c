//! Rules for settings of librdkafka and addresses of brokers, which the network and the sink share.

/// A setting, or the begin of the names of several with a dot at its end, and the reason why it cannot be chosen.
pub type RefusedSetting = (&'static str, &'static str);

/// Settings that cannot be chosen.
const REFUSED: [RefusedSetting; 13] = [
    ("bootstrap.servers", "`brokers` names the brokers"),
    ("metadata.broker.list", "`brokers` names the brokers"),
    (
        "enable.idempotence",
        "it is always true, so that a broker stores no message twice when it is sent again",
    ),
    ("acks", ALL),
    ("request.required.acks", ALL),
    ("delivery.report.only.error", "Rondel waits for the report of each message"),
    ("transactional.id", "Rondel writes without transactions"),
    ("plugin.library.paths", "Rondel loads no libraries"),
    ("statistics.interval.ms", "`rondel` reports the state of its networks and sinks itself"),
    ("log_level", "errors are reported by Rondel"),
    ("test.mock.", "it replaces the brokers by false ones"),
    ("ssl.", NO_TLS),
    ("sasl.oauthbearer.", "this build has no OAuth; use `sasl.mechanism: PLAIN`"),
];

const ALL: &str = "it is always `all`, so that acknowledged messages survive the loss of a broker";
const NO_TLS: &str = "this build connects to Kafka without TLS; use a listener without TLS that only this machine reaches, \
                      or a local proxy that adds TLS";

/// Checks whether a setting of librdkafka can be chosen. `own` are further ones that cannot.
///
/// # Errors
/// A sentence with the setting and the reason.
///
/// ```
/// use rondel_event::kafka::check_setting;
/// assert_eq!(check_setting("linger.ms", "5", &[]), Ok(()));
/// assert!(check_setting("acks", "1", &[]).is_err_and(|why| why.contains("always `all`")));
/// ```
pub fn check_setting(name: &str, value: &str, own: &[RefusedSetting]) -> Result<(), String> {
    let wrong =
        |text: &str, reason: &str| Err(format!("the setting `{text}` of Kafka cannot be chosen: {reason}"));
    let is_refused = |refused: &str| name == refused || refused.ends_with('.') && name.starts_with(refused);
    if let Some((_, reason)) = own.iter().chain(&REFUSED).find(|(refused, _)| is_refused(refused)) {
        return wrong(name, reason);
    }
    let lower = value.to_ascii_lowercase();
    match name {
        "security.protocol" if lower.ends_with("ssl") => wrong(&format!("{name}: {value}"), NO_TLS),
        "sasl.mechanism" | "sasl.mechanisms" if lower != "plain" => {
            let reason = format!("this build knows the mechanism PLAIN only; use `{name}: PLAIN`");
            wrong(&format!("{name}: {value}"), &reason)
        }
        _ => Ok(()),
    }
}

/// Checks the addresses of brokers.
///
/// # Errors
/// A sentence with the address and the way out.
///
/// ```
/// use rondel_event::kafka::check_brokers;
/// assert_eq!(check_brokers(&["[::1]:9092".to_owned()]), Ok(()));
/// assert!(check_brokers(&["kafka://a:9092".to_owned()]).is_err_and(|why| why.contains("HOST:PORT")));
/// ```
pub fn check_brokers(brokers: &[String]) -> Result<(), String> {
    if brokers.is_empty() {
        return Err("Kafka needs the address of a broker, such as `127.0.0.1:9092`".to_owned());
    }
    match brokers.iter().find(|broker| !is_broker(broker)) {
        Some(broker) => Err(format!(
            "'{broker}' is not the address of a broker of Kafka; write HOST:PORT, such as 127.0.0.1:9092, and several as \
             a list"
        )),
        None => Ok(()),
    }
}

fn is_broker(text: &str) -> bool {
    let is_plain = !text.is_empty() && !text.contains(['/', ',', '@']) && !text.contains(char::is_whitespace);
    // An address of IPv6 has colons and brackets.
    let port = text.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).map(|(_, port)| port);
    is_plain && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_cannot_be_chosen_are_named() {
        for (name, value, reason) in [
            ("security.protocol", "SSL", "without TLS"),
            ("security.protocol", "sasl_ssl", "without TLS"),
            ("ssl.ca.location", "ca.pem", "without TLS"),
            ("sasl.mechanism", "SCRAM-SHA-256", "PLAIN only"),
            ("sasl.oauthbearer.config", "x", "no OAuth"),
            ("acks", "1", "always `all`"),
            ("enable.idempotence", "false", "always true"),
            ("bootstrap.servers", "a:1", "`brokers` names the brokers"),
            ("transactional.id", "x", "without transactions"),
            ("test.mock.num.brokers", "3", "false ones"),
            ("group.id", "x", "of its own"),
        ] {
            let error = check_setting(name, value, &[("group.id", "of its own")]).unwrap_err();
            assert!(error.contains(reason) && error.contains(name), "{error}");
        }
        for (name, value) in [
            ("group.id", "x"),
            ("linger.ms", "50"),
            ("security.protocol", "sasl_plaintext"),
            ("sasl.mechanism", "PLAIN"),
            ("client.id", "car-7"),
        ] {
            assert_eq!(check_setting(name, value, &[]), Ok(()), "{name}");
        }
    }

    #[test]
    fn addresses_of_brokers_are_checked() {
        let brokers = |text: &str| check_brokers(&[text.to_owned()]);
        for good in ["127.0.0.1:9092", "kafka.example", "[::1]:9092", "[::1]", "localhost:1"] {
            assert_eq!(brokers(good), Ok(()));
        }
        for bad in ["", "kafka://a:9092", "a:9092,b:9092", "a b", "a:port", "a:0", "a:99999", "me@a:9092"] {
            assert!(brokers(bad).unwrap_err().contains("HOST:PORT"), "{bad}");
        }
        assert!(check_brokers(&[]).unwrap_err().contains("needs the address of a broker"));
    }
}
