package io.rondel.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * A job between topics of a real Kafka, on a cluster whose parts are processes: each is killed once, and the job continues with
 * other parallelisms and an edited specification. The planted violations are found, each once.
 */
@Tag("cluster")
@Timeout(value = 600, unit = TimeUnit.SECONDS)
class ClusterTest {
    private static final int PARTITIONS = 3;
    /** The events of a phase, from one savepoint to the next. */
    private static final int PHASE = 4 * Fleet.SHUFFLE;

    private static final int PHASES = 4;
    /** The event beside which a message cannot be read, and the time around it in which verdicts may be unknown. */
    private static final int POISONED = PHASE / 2;

    private static final long UNKNOWN_NANOS = 6_000_000_000L;
    private static final String EDITED = Fleet.TEXT.replace("telemetry.speed < 35", "telemetry.speed < 33");
    private static final Specification FLEET = Specification.of(Fleet.TEXT).withBatch(256);

    @TempDir
    Path folder;

    private final Fleet fleet = new Fleet();
    private final Set<String> found = new HashSet<>();
    private KafkaServer kafka;
    private KafkaServer.Reader verdicts;
    private KafkaProducer<String, String> producer;
    private List<String> planted;
    private int produced;

    private void send(Long millis, String key, String payload) {
        Integer partition = produced % PARTITIONS;
        producer.send(new ProducerRecord<>(FleetJob.TELEMETRY, partition, millis, key, payload));
    }

    /** Produces events up to a position of the shuffled stream. */
    private void produce(int until) {
        for (; produced < until; produced++) {
            Fleet.Event event = fleet.event(fleet.shuffled(produced));
            String key = FleetJob.key("telemetry", event.vehicle());
            send(event.millis(), key, event.payload());
            if (produced == POISONED) {
                send(event.millis(), key, event.payload().substring(0, 20));
                send(event.millis(), key, null);
                send(event.millis(), FleetJob.key("elsewhere", "r0"), "{}");
            }
        }
        producer.flush();
    }

    /** Whether the test compares a verdict: violations, apart from those near the message that cannot be read. */
    private boolean isCompared(String shown) {
        long nanos = Fleet.nanos(shown);
        long poisoned = fleet.event(fleet.shuffled(POISONED)).millis() * 1_000_000;
        boolean isOfEdit = !shown.startsWith("stops") && nanos > nanosOf((PHASES - 1) * PHASE - Fleet.SHUFFLE);
        return shown.contains(" violated ") && Math.abs(nanos - poisoned) > UNKNOWN_NANOS && !isOfEdit;
    }

    private static long nanosOf(int events) {
        return events * Fleet.STEP_MILLIS * 1_000_000;
    }

    /** Waits until the sink has all planted violations up to the watermark of a number of events. */
    private void waitForVerdicts(int events) {
        // The watermark of each partition lags behind by the bound, and by the events of the other ones.
        long until = nanosOf(events - Fleet.SHUFFLE - 10 * PARTITIONS);
        Set<String> wanted = new HashSet<>(planted.stream().filter(shown -> Fleet.nanos(shown) <= until).toList());
        JavaProcess.waitUntil(
                "verdicts of " + events + " events",
                () -> {
                    verdicts.read().forEach(line -> found.add(line.substring(line.indexOf(' ') + 1)));
                    return found.containsAll(wanted);
                },
                () -> "of " + wanted.size() + ", " + wanted.stream().filter(found::contains).count() + " are there; "
                        + verdicts.state() + ", open transactions: " + kafka.openTransactions());
    }

    /** Runs a phase with a failure in its middle, and returns a savepoint. */
    private String phase(FlinkCluster cluster, Specification with, int phase, int parallelism, String savepoint, Failure failure)
            throws Exception {
        FleetJob job = new FleetJob(with, kafka.address(), folder.resolve("checkpoints").toUri().toString());
        JobClient client = job.start(cluster, parallelism, savepoint);
        int from = phase * PHASE;
        produce(from + PHASE / 2);
        waitForVerdicts(from + PHASE / 2);
        produce(from + 3 * PHASE / 4);
        failure.happen();
        produce(from + PHASE);
        waitForVerdicts(from + PHASE);
        String folder = this.folder.resolve("savepoints").toUri().toString();
        return client.stopWithSavepoint(false, folder, SavepointFormatType.CANONICAL).get(120, TimeUnit.SECONDS);
    }

    /** The end of a process. */
    private interface Failure {
        void happen() throws Exception;
    }

    @Test
    void plantedViolationsAreFoundOnceThroughTheEndOfEachProcess() throws Exception {
        planted = fleet.expected(folder, Fleet.TEXT, (long) PHASE * PHASES).stream().filter(this::isCompared).toList();
        try (KafkaServer server = new KafkaServer(folder)) {
            kafka = server;
            kafka.create(FleetJob.TELEMETRY, PARTITIONS);
            kafka.create(FleetJob.VERDICTS, 1);
            kafka.create(FleetJob.NOTICES, 1);
            kafka.create(FleetJob.NOTICES + "-refused", 1);
            try (KafkaProducer<String, String> ofEvents = kafka.producer();
                    KafkaServer.Reader ofVerdicts = kafka.reader(FleetJob.VERDICTS);
                    FlinkCluster cluster = new FlinkCluster(folder)) {
                producer = ofEvents;
                verdicts = ofVerdicts;
                run(cluster);
            } catch (Throwable error) {
                keepLogs();
                throw error;
            }
            compare();
        }
    }

    private void run(FlinkCluster cluster) throws Exception {
        String savepoint = phase(cluster, FLEET, 0, 1, null, () -> {
            // The task is on one of them.
            for (int i = 0; i < FlinkCluster.TASK_MANAGERS; i++) {
                cluster.killTaskManager(i);
                cluster.startTaskManager(i);
                Thread.sleep(2_000);
            }
        });
        savepoint = phase(cluster, FLEET, 1, 2, savepoint, () -> {
            cluster.killJobManager();
            cluster.startJobManager();
        });
        savepoint = phase(cluster, FLEET, 2, 3, savepoint, () -> {
            cluster.killTaskManager(0);
            cluster.startTaskManager(0);
        });
        phase(cluster, FLEET.withText(EDITED), 3, 1, savepoint, () -> {});
    }

    private void compare() {
        List<String> lines = new ArrayList<>();
        try (KafkaServer.Reader all = kafka.reader(FleetJob.VERDICTS)) {
            JavaProcess.waitUntil("all verdicts", () -> all.read().size() >= found.size(), all::state);
            for (int i = 0; i < 10; i++) {
                all.read();
            }
            lines.addAll(all.read());
        }
        assertEquals(lines.size(), new HashSet<>(lines).size(), "verdicts that are there twice");
        long last = nanosOf(PHASE * PHASES - Fleet.SHUFFLE - 10 * PARTITIONS);
        List<String> violations = lines.stream()
                .map(line -> line.substring(line.indexOf(' ') + 1))
                .filter(this::isCompared)
                .filter(shown -> Fleet.nanos(shown) <= last)
                .sorted()
                .toList();
        assertEquals(planted.stream().filter(shown -> Fleet.nanos(shown) <= last).sorted().toList(), violations);
        assertTrue(violations.size() > 300, "only " + violations.size());
        System.out.println("planted = found = distinct: " + violations.size() + " violations in " + produced + " events");
        try (KafkaServer.Reader notices = kafka.reader(FleetJob.NOTICES);
                KafkaServer.Reader refused = kafka.reader(FleetJob.NOTICES + "-refused")) {
            JavaProcess.waitUntil("notices", () -> notices.read().stream().anyMatch(line -> line.contains("undecodable")));
            JavaProcess.waitUntil("refused messages", () -> refused.read().size() == 2);
        }
    }

    /** Copies the logs of all processes to a folder that outlives the test. */
    private void keepLogs() throws Exception {
        Path kept = Files.createDirectories(Path.of("target", "cluster-logs"));
        try (var files = Files.list(folder)) {
            for (Path log : files.filter(path -> path.toString().endsWith(".log"))
                    .sorted(Comparator.naturalOrder())
                    .toList()) {
                Files.copy(log, kept.resolve(log.getFileName()), java.nio.file.StandardCopyOption.REPLACE_EXISTING);
            }
        }
        System.err.println("logs of all processes: " + kept.toAbsolutePath());
    }
}
