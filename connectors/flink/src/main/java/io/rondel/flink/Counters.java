package io.rondel.flink;

import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.MetricGroup;

/** The counters of messages and verdicts, in the group {@code rondel} of an operator or a function. */
class Counters {
    /** Evaluated messages, also those that cannot be read. */
    final Counter messages;
    /** Messages whose payload cannot be read. */
    final Counter undecodable;
    /** Messages that came after the watermark of their time. */
    final Counter late;
    /** Messages on unknown topics, or without a payload, a key or a time. */
    final Counter refused;

    final Counter verdicts;
    final Counter violations;

    Counters(MetricGroup group) {
        messages = group.counter("messages");
        undecodable = group.counter("undecodable");
        late = group.counter("late");
        refused = group.counter("refused");
        verdicts = group.counter("verdicts");
        violations = group.counter("violations");
    }
}
