package io.rondel.flink;

import java.util.function.IntSupplier;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.Gauge;
import org.apache.flink.metrics.MetricGroup;

/** The metrics of a subtask, in the group {@code rondel} of the operator. */
final class Metrics extends Counters {
    final Counter batches;

    private long snapshotBytes;
    private long snapshotMillis;

    Metrics(MetricGroup group, IntSupplier waiting) {
        super(group);
        batches = group.counter("batches");
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
