package io.rondel.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.LongStream;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.source.SourceSplit;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiter;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.Gauge;
import org.apache.flink.runtime.testutils.InMemoryReporter;
import org.apache.flink.runtime.testutils.MiniClusterResourceConfiguration;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.test.junit5.MiniClusterExtension;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/** Whole jobs over shuffled events, with failures, savepoints and other parallelisms. */
@Timeout(value = 400, unit = TimeUnit.SECONDS)
class JobTest {
    private static final int COUNT = 3 * Fleet.SHUFFLE;
    /** Events between two savepoints. */
    private static final int EVENTS = 7_000;

    private static final Specification FLEET = Specification.of(Fleet.TEXT).withBatch(256);

    private static final InMemoryReporter METRICS = InMemoryReporter.createWithRetainedMetrics();

    @RegisterExtension
    static final MiniClusterExtension CLUSTER = new MiniClusterExtension(new MiniClusterResourceConfiguration.Builder()
            .setConfiguration(METRICS.addToConfiguration(new Configuration()))
            .setNumberTaskManagers(1)
            .setNumberSlotsPerTaskManager(4)
            .build());

    private static final Queue<Verdict> VERDICTS = new ConcurrentLinkedQueue<>();

    @TempDir
    Path folder;

    private final Fleet fleet = new Fleet();

    /** Lets a number of events of each attempt pass, so that a test does not depend on the speed of the machine. */
    static final class Gate<S extends SourceSplit> implements RateLimiter<S> {
        /** The events of an attempt that may pass. */
        static final AtomicLong GRANTED = new AtomicLong();

        private long passed;

        @Override
        public CompletionStage<Void> acquire(int count) {
            passed += count;
            return granted(passed);
        }

        private static CompletionStage<Void> granted(long until) {
            if (until <= GRANTED.get()) {
                return CompletableFuture.completedFuture(null);
            }
            Executor later = CompletableFuture.delayedExecutor(2, TimeUnit.MILLISECONDS);
            return CompletableFuture.runAsync(() -> {}, later).thenCompose(nothing -> granted(until));
        }
    }

    /** Fails some times, each after a checkpoint of its own, and grants further events after each. */
    static final class Failing implements MapFunction<Message, Message>, CheckpointListener {
        private static final long serialVersionUID = 1;
        static final AtomicInteger FAILURES = new AtomicInteger();
        /** The number of events that a checkpoint grants. */
        static final AtomicLong GRANT = new AtomicLong();
        /** The number of events and of checkpoints since the test has reset them. */
        static final AtomicLong COUNT = new AtomicLong();

        static final AtomicLong CHECKPOINTS = new AtomicLong();

        private boolean isSaved;
        private int since;

        @Override
        public Message map(Message message) {
            COUNT.incrementAndGet();
            if (isSaved && ++since > 500 && FAILURES.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
                throw new IllegalStateException("a planted failure");
            }
            return message;
        }

        @Override
        public void notifyCheckpointComplete(long checkpoint) {
            isSaved = true;
            CHECKPOINTS.incrementAndGet();
            Gate.GRANTED.addAndGet(GRANT.get());
        }
    }

    @BeforeEach
    void clear() {
        VERDICTS.clear();
        Failing.FAILURES.set(0);
        Failing.GRANT.set(0);
    }

    private StreamExecutionEnvironment environment(String savepoint) {
        Configuration configuration = new Configuration();
        configuration.setString("restart-strategy.type", "fixed-delay");
        configuration.setString("restart-strategy.fixed-delay.attempts", "5");
        configuration.setString("restart-strategy.fixed-delay.delay", "50 ms");
        configuration.setString("execution.checkpointing.dir", folder.toUri().toString());
        if (savepoint != null) {
            configuration.setString("execution.state-recovery.path", savepoint);
        }
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment(configuration);
        environment.enableCheckpointing(50);
        environment.getConfig().setAutoWatermarkInterval(20);
        return environment;
    }

    static <S extends SourceSplit> RateLimiterStrategy<S> gate() {
        return parallelism -> new Gate<>();
    }

    private void build(StreamExecutionEnvironment environment, Specification specification, int parallelism) {
        Fleet fleet = this.fleet;
        DataGeneratorSource<Message> source = new DataGeneratorSource<>(
                position -> {
                    Fleet.Event event = fleet.event(fleet.shuffled(position));
                    return event.message().at(event.millis() * 1_000_000);
                },
                COUNT,
                JobTest.gate(),
                TypeInformation.of(Message.class));
        WatermarkStrategy<Message> watermarks = WatermarkStrategy.<Message>forBoundedOutOfOrderness(
                        Duration.ofMillis(Fleet.SHUFFLE * Fleet.STEP_MILLIS))
                .withTimestampAssigner((message, before) -> message.nanos / 1_000_000);
        DataStream<Message> messages = environment
                .fromSource(source, watermarks, "fleet")
                .setParallelism(1)
                .uid("fleet")
                .map(new Failing())
                .setParallelism(1)
                .uid("failing");
        RondelFunctions.check(messages, specification)
                .setParallelism(parallelism)
                .uid("rondel")
                .map(verdict -> {
                    VERDICTS.add(verdict);
                    return verdict;
                })
                .returns(Verdict.class)
                .setParallelism(1)
                .sinkTo(new DiscardingSink<>());
    }

    /** The verdicts with different ids, in the order of their ids. */
    private static List<Verdict> distinct() {
        Map<String, Verdict> byId = new HashMap<>();
        for (Verdict verdict : VERDICTS) {
            Verdict before = byId.putIfAbsent(verdict.id, verdict);
            assertTrue(before == null || Fleet.shown(before).equals(Fleet.shown(verdict)), verdict.id);
        }
        return new ArrayList<>(byId.values());
    }

    private static long violations(List<String> verdicts) {
        return verdicts.stream().filter(verdict -> verdict.contains("violated")).count();
    }

    @Test
    void failuresLoseAndDoubleNothing() throws Exception {
        List<String> expected = fleet.expected(folder, Fleet.TEXT, COUNT);
        Failing.FAILURES.set(3);
        Failing.GRANT.set(2_000);
        Gate.GRANTED.set(2_000);
        StreamExecutionEnvironment environment = environment(null);
        build(environment, FLEET, 2);
        environment.execute();
        assertEquals(0, Failing.FAILURES.get());
        List<Verdict> distinct = distinct();
        Fleet.assertSame(expected, distinct);
        assertEquals(violations(expected), distinct.stream().filter(Verdict::isViolated).count());
        assertTrue(violations(expected) > 100, "only " + violations(expected));
    }

    /** Evaluates a number of events, and stops with a savepoint. */
    private String untilSavepoint(Specification specification, int parallelism, String savepoint) throws Exception {
        Gate.GRANTED.set(EVENTS);
        Failing.COUNT.set(0);
        Failing.CHECKPOINTS.set(0);
        StreamExecutionEnvironment environment = environment(savepoint);
        build(environment, specification, parallelism);
        JobClient job = environment.executeAsync();
        // A checkpoint completes once all tasks run.
        while (Failing.COUNT.get() < EVENTS || Failing.CHECKPOINTS.get() == 0) {
            Thread.sleep(5);
        }
        return job.stopWithSavepoint(false, folder.toUri().toString(), SavepointFormatType.CANONICAL)
                .get(100, TimeUnit.SECONDS);
    }

    private void untilEnd(Specification specification, int parallelism, String savepoint) throws Exception {
        Gate.GRANTED.set(Long.MAX_VALUE);
        StreamExecutionEnvironment environment = environment(savepoint);
        build(environment, specification, parallelism);
        environment.execute();
    }

    @Test
    void anEditedSpecificationContinuesFromASavepoint() throws Exception {
        String edited = Fleet.TEXT.replace("telemetry.speed < 35", "telemetry.speed < 33");
        List<String> expected = fleet.expected(folder, Fleet.TEXT, COUNT).stream()
                .filter(verdict -> verdict.startsWith("stops"))
                .toList();
        // The first half waits for its watermark in the first savepoint.
        String savepoint = untilSavepoint(FLEET, 2, untilSavepoint(FLEET, 2, null));
        untilEnd(FLEET.withText(edited), 2, savepoint);
        List<Verdict> stops =
                distinct().stream().filter(verdict -> verdict.property.equals("stops")).toList();
        Fleet.assertSame(expected, stops);
    }

    /** The sum of a counter over all subtasks of a job. */
    private static long counted(JobID job, String name) {
        return METRICS.findMetrics(job, "rondel." + name).values().stream()
                .mapToLong(metric -> ((Counter) metric).getCount())
                .sum();
    }

    @Test
    void metricsAreThoseOfFlink() throws Exception {
        Gate.GRANTED.set(Long.MAX_VALUE);
        StreamExecutionEnvironment environment = environment(null);
        build(environment, FLEET, 2);
        JobID job = environment.execute().getJobID();
        assertEquals(COUNT, counted(job, "messages"));
        assertEquals(VERDICTS.size(), counted(job, "verdicts"));
        assertEquals(VERDICTS.stream().filter(Verdict::isViolated).count(), counted(job, "violations"));
        assertTrue(counted(job, "batches") >= COUNT / 256);
        for (String name : List.of("undecodable", "late", "refused")) {
            assertEquals(2, METRICS.findMetrics(job, "rondel." + name).size(), name);
            assertEquals(0, counted(job, name), name);
        }
        for (String name : List.of("waiting", "snapshotBytes", "snapshotMillis")) {
            var gauges = METRICS.findMetrics(job, "rondel." + name);
            assertEquals(2, gauges.size(), name);
            gauges.values().forEach(gauge -> assertTrue(((Gauge<?>) gauge).getValue() instanceof Number, name));
        }
    }

    @Test
    void theCommandContinuesFromASavepoint() throws Exception {
        List<String> expected = fleet.expected(folder, Fleet.TEXT, COUNT);
        String path = untilSavepoint(FLEET, 2, untilSavepoint(FLEET, 2, null));
        Path exported = folder.resolve("exported");
        Savepoint.main(new String[] {path, exported.toString(), "rondel"});
        String text = Files.readString(exported.resolve("specification.rondel"));
        assertEquals(Fleet.TEXT, text);
        Savepoint savepoint = Savepoint.read(path, null);
        assertTrue(savepoint.time() > 0 && savepoint.waiting() > 0, savepoint.time() + ", " + savepoint.waiting());
        List<String> rest = LongStream.range(0, COUNT)
                .mapToObj(fleet::event)
                .filter(event -> event.millis() * 1_000_000 > savepoint.time())
                .map(Fleet.Event::line)
                .toList();
        List<String> all = new ArrayList<>(distinct().stream().map(Fleet::shown).toList());
        assertTrue(all.size() > 100, "only " + all.size());
        String snapshot = exported.resolve("monitor.snapshot").toString();
        all.addAll(Fleet.expected(folder, text, rest, "--resume", snapshot));
        assertEquals(expected, all.stream().sorted().toList());
        RondelException elsewhere = assertThrows(RondelException.class, () -> Savepoint.read(path, "elsewhere"));
        assertTrue(elsewhere.getMessage().contains("with the uid 'elsewhere'; those of Rondel are: [rondel]"));
    }

    @Test
    void aJobIsRescaledBySavepoints() throws Exception {
        List<String> expected = fleet.expected(folder, Fleet.TEXT, COUNT);
        String savepoint = null;
        for (int parallelism : new int[] {1, 2, 3}) {
            savepoint = untilSavepoint(FLEET, parallelism, savepoint);
        }
        untilEnd(FLEET, 1, savepoint);
        Fleet.assertSame(expected, distinct());
    }
}
