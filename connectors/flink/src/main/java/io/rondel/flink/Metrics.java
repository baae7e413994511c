package io.rondel.flink;

import java.util.function.IntSupplier;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.Gauge;
import org.apache.flink.metrics.MetricGroup;

/** The metrics of a subtask, in the group {@code rondel} of the operator. */
final class Metrics {
    /** Evaluated messages, also those that cannot be read. */
    final Counter messages;
    /** Messages whose payload cannot be read. */
    final Counter undecodable;
    /** Messages that came after the watermark of their time. */
    final Counter late;
    /** Messages on unknown topics, or without a payload or a time. */
    final Counter refused;

    final Counter batches;
    final Counter verdicts;
    final Counter violations;

    private long snapshotBytes;
    private long snapshotMillis;

    Metrics(MetricGroup group, IntSupplier waiting) {
        messages = group.counter("messages");
        undecodable = group.counter("undecodable");
        late = group.counter("late");
        refused = group.counter("refused");
        batches = group.counter("batches");
        verdicts = group.counter("verdicts");
        violations = group.counter("violations");
        group.gauge("waiting", (Gauge<Integer>) waiting::getAsInt);
        group.gauge("snapshotBytes", (Gauge<Long>) () -> snapshotBytes);
        group.gauge("snapshotMillis", (Gauge<Long>) () -> snapshotMillis);
    }

    /** Returns a counter by its name, or the size of the last snapshot. */
    long count(String name) {
        if (name.equals("snapshotBytes")) {
            return snapshotBytes;
        }
        Counter counter =
                switch (name) {
                    case "messages" -> messages;
                    case "undecodable" -> undecodable;
                    case "late" -> late;
                    case "refused" -> refused;
                    case "batches" -> batches;
                    case "verdicts" -> verdicts;
                    case "violations" -> violations;
                    default -> throw new IllegalArgumentException(name);
                };
        return counter.getCount();
    }

    /** Notes a snapshot. */
    void saved(long bytes, long nanos) {
        snapshotBytes = bytes;
        snapshotMillis = nanos / 1_000_000;
    }
}
