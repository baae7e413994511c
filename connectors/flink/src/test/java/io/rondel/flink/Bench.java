package io.rondel.flink;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Locale;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.state.storage.JobManagerCheckpointStorage;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.util.KeyedOneInputStreamOperatorTestHarness;

/**
 * Measures the operator in one thread: the time of an event, compared with an operator that does nothing and with the library
 * alone; size and time of a snapshot of a million keys. Prints a table.
 */
public final class Bench {
    private static final int BATCH = 1_024;
    private static final int BATCHES = 2_000;
    private static final int ROUNDS = 7;
    private static final int KEYS = 1_000_000;
    private static final int GROUPS = 128;
    private static final String CALM =
            """
            topic telemetry { vehicle: string, speed: float, brake: bool }
            property calm for each v in telemetry.vehicle = once[0, 3 s] telemetry.brake or telemetry.speed < 35
            """;
    private static final Specification SPECIFICATION =
            Specification.of(CALM).withBatch(BATCH).withFlushAfter(Duration.ZERO).withMaxParallelism(GROUPS);

    private static int events;

    private Bench() {}

    /** Forwards nothing. */
    private static final class Empty extends AbstractStreamOperator<Verdict>
            implements OneInputStreamOperator<Message, Verdict> {
        private static final long serialVersionUID = 1;

        @Override
        public void setKeyContextElement1(StreamRecord record) {}

        @Override
        public void processElement(StreamRecord<Message> record) {}
    }

    private static KeyedOneInputStreamOperatorTestHarness<Integer, Message, Verdict> harness(
            OneInputStreamOperator<Message, Verdict> operator) throws Exception {
        var harness = new KeyedOneInputStreamOperatorTestHarness<>(
                operator, new KeyGroups(GROUPS), Types.INT, GROUPS, 1, 0);
        harness.setCheckpointStorage(new JobManagerCheckpointStorage(Integer.MAX_VALUE));
        harness.open();
        return harness;
    }

    private static Message message(int vehicle, double speed, boolean brake) {
        String name = "r" + vehicle;
        String payload =
                String.format(Locale.ROOT, "{\"vehicle\":\"%s\",\"speed\":%.1f,\"brake\":%b}", name, speed, brake);
        return Message.of("telemetry", payload.getBytes(StandardCharsets.UTF_8), name);
    }

    /** Messages of a thousand vehicles without violations. */
    private static Message[] messages() {
        Message[] messages = new Message[64 * BATCH];
        for (int i = 0; i < messages.length; i++) {
            messages[i] = message(i % 1_000, i % 29 + 0.5, i % 4 == 0);
        }
        return messages;
    }

    /** Returns the nanoseconds of an event in an operator, a watermark after each batch. */
    private static double ofOperator(OneInputStreamOperator<Message, Verdict> operator, Message[] messages) throws Exception {
        try (var harness = harness(operator)) {
            StreamRecord<Message> record = new StreamRecord<>(null);
            double best = Double.MAX_VALUE;
            long at = 0;
            for (int round = 0; round < ROUNDS; round++) {
                long start = System.nanoTime();
                for (int i = 0; i < events; i++) {
                    record.replace(messages[i % messages.length], ++at);
                    harness.processElement(record);
                    if (at % BATCH == 0) {
                        harness.processWatermark(at);
                    }
                }
                best = Math.min(best, (System.nanoTime() - start) / (double) events);
                harness.getOutput().clear();
            }
            return best;
        }
    }

    /** Returns the nanoseconds of an event in the library, in batches as the operator calls it. */
    private static double ofLibrary(Message[] messages) {
        NativeLibrary.load();
        try (Monitor monitor = Monitor.open(SPECIFICATION)) {
            Batch batch = new Batch(BATCH);
            long topic = monitor.topic("telemetry");
            double best = Double.MAX_VALUE;
            long at = 0;
            for (int round = 0; round < ROUNDS; round++) {
                long start = System.nanoTime();
                for (int i = 0; i < events; i++) {
                    batch.add(++at * Waiting.MILLISECOND, topic, messages[i % messages.length].payload);
                    if (batch.isFull()) {
                        monitor.push(batch);
                        monitor.reports();
                    }
                }
                best = Math.min(best, (System.nanoTime() - start) / (double) events);
            }
            return best;
        }
    }

    private static void snapshots() throws Exception {
        MonitorOperator operator = new MonitorOperator(SPECIFICATION);
        try (var harness = harness(operator)) {
            for (int i = 0; i < KEYS; i++) {
                harness.processElement(message(i, i % 29 + 0.5, true), 1 + i / BATCH);
                if (i % BATCH == BATCH - 1) {
                    harness.processWatermark(1 + i / BATCH);
                    harness.getOutput().clear();
                }
            }
            harness.processWatermark(KEYS);
            for (boolean isCompressed : new boolean[] {false, true}) {
                harness.getExecutionConfig().setUseSnapshotCompression(isCompressed);
                long[] nanos = new long[ROUNDS];
                for (int round = 0; round < ROUNDS; round++) {
                    long start = System.nanoTime();
                    harness.snapshot(round, round);
                    nanos[round] = System.nanoTime() - start;
                }
                Arrays.sort(nanos);
                System.out.printf(
                        Locale.ROOT,
                        "state of %,d keys%s: %.1f MB, snapshot: median %.0f ms, best %.0f ms%n",
                        KEYS,
                        isCompressed ? ", compressed" : "",
                        operator.count("snapshotBytes") / 1e6,
                        nanos[ROUNDS / 2] / 1e6,
                        nanos[0] / 1e6);
            }
        }
    }

    /** Runs all measurements; the argument is the number of batches of a round, 2,000 by default. */
    public static void main(String[] arguments) throws Exception {
        events = (arguments.length > 0 ? Integer.parseInt(arguments[0]) : BATCHES) * BATCH;
        Message[] messages = messages();
        double empty = ofOperator(new Empty(), messages);
        double library = ofLibrary(messages);
        double operator = ofOperator(new MonitorOperator(SPECIFICATION), messages);
        System.out.printf(
                Locale.ROOT,
                "an event in batches of %,d: empty operator %.0f ns, library %.0f ns, operator %.0f ns; over the empty operator "
                        + "%.0f ns, over both %.0f ns%n",
                BATCH,
                empty,
                library,
                operator,
                operator - empty,
                operator - library - empty);
        snapshots();
    }
}
