//! Errors of Kafka as sentences with the way out.

use std::time::Duration;

use rdkafka::error::RDKafkaErrorCode;

use crate::sink::Failure;

use super::Target;
use super::reports::ClientError;

/// A verdict was not delivered.
pub(super) fn undelivered(target: &Target, code: RDKafkaErrorCode, property: &str, size: usize) -> Failure {
    use RDKafkaErrorCode as Code;
    let Target { place, topic, .. } = target;
    match code {
        Code::MessageSizeTooLarge | Code::InvalidRecord => Failure::rejected(format!(
            "Kafka at {place} rejects a verdict on `{property}` of {size} bytes: {code}; raise `max.message.bytes` of the \
             topic `{topic}` and `message.max.bytes` in `settings`, or shorten explanations"
        )),
        code if is_unknown_topic(code) => Failure::unavailable(format!(
            "Kafka at {place} has no topic `{topic}`; create it, such as by `kafka-topics.sh --bootstrap-server {place} \
             --create --topic {topic}`"
        )),
        Code::TopicAuthorizationFailed => Failure::unavailable(format!(
            "Kafka at {place} does not allow the user to write to the topic `{topic}`; add an ACL for the operation Write"
        )),
        Code::ClusterAuthorizationFailed | Code::TransactionalIdAuthorizationFailed => {
            Failure::unavailable(format!(
                "Kafka at {place} does not allow the user to write once (idempotently); add an ACL for the operation \
                 IdempotentWrite on the cluster"
            ))
        }
        Code::NotEnoughReplicas | Code::NotEnoughReplicasAfterAppend => Failure::unavailable(format!(
            "Kafka at {place} has too few replicas of the topic `{topic}` now: {code}; start the brokers that are down, or \
             lower `min.insync.replicas`"
        )),
        Code::InvalidTimestamp => Failure::unavailable(format!(
            "Kafka at {place} refuses the times of verdicts: {code}; set the clock of this machine"
        )),
        code => Failure::unavailable(format!(
            "Kafka at {place} does not store verdicts in the topic `{topic}`: {code}; see the log of the broker"
        )),
    }
}

/// Whether an error means that the topic is not there.
pub(super) fn is_unknown_topic(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(
        code,
        Code::UnknownTopicOrPartition | Code::UnknownTopic | Code::UnknownPartition | Code::InvalidTopic
    )
}

/// The deliveries did not come in time.
pub(super) fn late(target: &Target, count: usize, limit: Duration) -> Failure {
    let (place, limit) = (&target.place, limit.as_secs_f64());
    Failure::unavailable(format!(
        "Kafka at {place} did not acknowledge {count} verdicts within {limit:.1} s; if this lasts, check its load, its disk, \
         and that its `advertised.listeners` can be reached from here"
    ))
}

/// The client delivers nothing any more; the next write uses a new one.
pub(super) fn fatal(target: &Target, error: &ClientError) -> Failure {
    match error.code {
        RDKafkaErrorCode::ClusterAuthorizationFailed => undelivered(target, error.code, "", 0),
        _ => Failure::unavailable(format!(
            "the client of Kafka at {} has failed: {}; it is started again, and verdicts that were on their way may come twice",
            target.place, error.reason
        )),
    }
}

/// The client reports an error.
pub(super) fn client(target: &Target, error: &ClientError) -> Failure {
    use RDKafkaErrorCode as Code;
    let (place, reason) = (&target.place, &error.reason);
    let advice = match error.code {
        Code::Authentication | Code::SaslAuthenticationFailed => {
            return Failure::unavailable(format!(
                "Kafka at {place} refuses to let Rondel in: {reason}; check `sasl.username` and `sasl.password` in `settings`"
            ));
        }
        Code::Resolve => {
            "check the name of the broker, and that its `advertised.listeners` can be resolved from here"
        }
        _ => "check the address, that the broker runs, and that it expects connections without TLS there",
    };
    Failure::unavailable(format!("cannot reach Kafka at {place}: {reason}; {advice}"))
}
