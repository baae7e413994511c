package io.rondel.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.testutils.MiniClusterResourceConfiguration;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.test.junit5.MiniClusterExtension;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/** The function RONDEL of SQL. */
@Timeout(value = 200, unit = TimeUnit.SECONDS)
class TableFunctionTest {
    @RegisterExtension
    static final MiniClusterExtension CLUSTER = new MiniClusterExtension(new MiniClusterResourceConfiguration.Builder()
            .setNumberTaskManagers(1)
            .setNumberSlotsPerTaskManager(4)
            .build());

    private static final String SLOW = "topic telemetry { vehicle: string, speed: float } "
            + "property slow for each v in telemetry.vehicle = telemetry.speed < 30";
    private static final TypeInformation<Row> TELEMETRY = Types.ROW_NAMED(
            new String[] {"vehicle", "speed", "brake", "millis"}, Types.STRING, Types.DOUBLE, Types.BOOLEAN, Types.LONG);

    private static final Queue<Row> ROWS = new ConcurrentLinkedQueue<>();

    @TempDir
    Path folder;

    private final Fleet fleet = new Fleet();

    /** Fails once, after a checkpoint. */
    static final class FailingOnce implements MapFunction<Row, Row>, CheckpointListener {
        private static final long serialVersionUID = 1;
        static final AtomicBoolean IS_PLANTED = new AtomicBoolean();

        private boolean isSaved;

        @Override
        public Row map(Row row) {
            if (isSaved && IS_PLANTED.getAndSet(false)) {
                throw new IllegalStateException("a planted failure");
            }
            return row;
        }

        @Override
        public void notifyCheckpointComplete(long checkpoint) {
            isSaved = true;
        }
    }

    /** Counts rows and checkpoints. */
    static final class Counting implements MapFunction<Row, Row>, CheckpointListener {
        private static final long serialVersionUID = 1;
        static final AtomicLong COUNT = new AtomicLong();
        static final AtomicLong CHECKPOINTS = new AtomicLong();

        @Override
        public Row map(Row row) {
            COUNT.incrementAndGet();
            return row;
        }

        @Override
        public void notifyCheckpointComplete(long checkpoint) {
            CHECKPOINTS.incrementAndGet();
        }
    }

    private static StreamTableEnvironment tables(StreamExecutionEnvironment environment) {
        StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
        tables.createTemporarySystemFunction("RONDEL", RondelTableFunction.class);
        return tables;
    }

    private static void view(StreamTableEnvironment tables, String name, DataStream<Row> rows, String delay) {
        Schema schema = Schema.newBuilder()
                .columnByExpression("sent", "TO_TIMESTAMP_LTZ(millis, 3)")
                .watermark("sent", "sent - INTERVAL " + delay + " SECOND")
                .build();
        tables.createTemporaryView(name, rows, schema);
    }

    private static StreamTableEnvironment tablesOf(Row... rows) {
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment();
        environment.setParallelism(1);
        StreamTableEnvironment tables = tables(environment);
        view(tables, "telemetry", environment.fromData(TELEMETRY, rows), "'0'");
        return tables;
    }

    private static String call(String spec, String more) {
        return "SELECT * FROM RONDEL(input => TABLE telemetry PARTITION BY vehicle, spec => '" + spec + "', " + more
                + "on_time => DESCRIPTOR(sent))";
    }

    private static List<Row> rows(StreamTableEnvironment tables, String query) throws Exception {
        List<Row> rows = new ArrayList<>();
        try (CloseableIterator<Row> all = tables.executeSql(query).collect()) {
            all.forEachRemaining(rows::add);
        }
        return rows;
    }

    private static Verdict verdict(Row row) {
        Verdict verdict = new Verdict();
        verdict.id = (String) row.getField("id");
        verdict.property = (String) row.getField("property");
        verdict.key = "{\"v\":\"" + row.getField("vehicle") + "\"}";
        verdict.verdict = (String) row.getField("verdict");
        verdict.timeNanos = nanos(row.getField("verdict_time"));
        verdict.aboutNanos = nanos(row.getField("about_time"));
        return verdict;
    }

    private static long nanos(Object time) {
        Instant instant = (Instant) time;
        return instant.getEpochSecond() * 1_000_000_000 + instant.getNano();
    }

    @Test
    void verdictsAreRows() throws Exception {
        StreamTableEnvironment tables = tablesOf(
                Row.of("r1", 31.0, false, 1_000L), Row.of("r2", 10.0, false, 1_500L), Row.of("r1", 20.0, false, 2_000L));
        List<Row> rows = rows(tables, call(SLOW, "explanations => TRUE, "));
        Row violated = rows.stream()
                .filter(row -> "violated".equals(row.getField("verdict")))
                .findFirst()
                .orElseThrow();
        assertEquals("r1", violated.getField("vehicle"));
        assertEquals("slow", violated.getField("property"));
        assertEquals(Instant.ofEpochSecond(1), violated.getField("verdict_time"));
        assertEquals("violated slow {\"v\":\"r1\"} at 1 s", violated.getField("message"));
        assertTrue(((String) violated.getField("explanation")).contains("31"), violated.toString());
        assertNull(violated.getField("robustness"));
        assertEquals(32, ((String) violated.getField("id")).length());
        assertEquals(3, rows.size(), rows.toString());
    }

    @Test
    void shuffledRowsAreThoseOfTheCommandDespiteAFailure() throws Exception {
        int count = 8_100;
        List<String> expected = fleet.expected(folder, Fleet.TEXT, count);
        List<Row> events = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            // Within a second: 100 positions.
            Fleet.Event event = fleet.event(i / 100 * 100 + (i * 37 + 11) % 100);
            events.add(Row.of(event.vehicle(), event.speed(), event.brake(), event.millis()));
        }
        Configuration configuration = new Configuration();
        configuration.setString("restart-strategy.type", "fixed-delay");
        configuration.setString("restart-strategy.fixed-delay.attempts", "2");
        configuration.setString("restart-strategy.fixed-delay.delay", "50 ms");
        configuration.setString("execution.checkpointing.dir", folder.toUri().toString());
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment(configuration);
        environment.enableCheckpointing(20);
        environment.setParallelism(2);
        FailingOnce.IS_PLANTED.set(true);
        ROWS.clear();
        StreamTableEnvironment tables = tables(environment);
        DataStream<Row> stream = environment
                .fromData(TELEMETRY, events.toArray(new Row[0]))
                .setParallelism(1)
                .map(row -> {
                    Thread.sleep(0, 100_000);
                    return row;
                })
                .setParallelism(1)
                .returns(TELEMETRY)
                .map(new FailingOnce())
                .setParallelism(1)
                .returns(TELEMETRY);
        view(tables, "telemetry", stream, "'2'");
        tables.toDataStream(tables.sqlQuery(call(Fleet.TEXT, "uid => 'rondel', ")))
                .map(row -> {
                    ROWS.add(row);
                    return row.getArity();
                })
                .returns(Types.INT)
                .setParallelism(1)
                .sinkTo(new DiscardingSink<>());
        environment.execute();
        assertTrue(!FailingOnce.IS_PLANTED.get());
        Map<String, Verdict> byId = new HashMap<>();
        ROWS.stream().map(TableFunctionTest::verdict).forEach(verdict -> byId.put(verdict.id, verdict));
        // The last obligations of a key end at the last row of its own.
        long last = (count * Fleet.STEP_MILLIS - 5_000) * 1_000_000;
        List<Verdict> before = byId.values().stream().filter(verdict -> verdict.timeNanos <= last).toList();
        Fleet.assertSame(expected.stream().filter(shown -> Fleet.nanos(shown) <= last).toList(), before);
        assertTrue(before.size() > 200, "only " + before.size());
    }

    /** Starts a job over the events in their order, of which a number may pass. */
    private JobClient start(String text, String savepoint, long count, long granted) throws Exception {
        Configuration configuration = new Configuration();
        configuration.setString("execution.checkpointing.dir", folder.toUri().toString());
        if (savepoint != null) {
            configuration.setString("execution.state-recovery.path", savepoint);
        }
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment(configuration);
        environment.enableCheckpointing(20);
        environment.setParallelism(1);
        JobTest.Gate.GRANTED.set(granted);
        Counting.COUNT.set(0);
        Counting.CHECKPOINTS.set(0);
        Fleet fleet = this.fleet;
        DataGeneratorSource<Row> source = new DataGeneratorSource<>(
                number -> {
                    Fleet.Event event = fleet.event(number);
                    return Row.of(event.vehicle(), event.speed(), event.brake(), event.millis());
                },
                count,
                JobTest.gate(),
                TELEMETRY);
        DataStream<Row> rows = environment
                .fromSource(source, WatermarkStrategy.noWatermarks(), "fleet")
                .uid("fleet")
                .map(new Counting())
                .returns(TELEMETRY)
                .uid("counting");
        StreamTableEnvironment tables = tables(environment);
        view(tables, "telemetry", rows, "'2'");
        tables.toDataStream(tables.sqlQuery(call(text, "uid => 'rondel', ")))
                .map(row -> {
                    ROWS.add(row);
                    return row.getArity();
                })
                .returns(Types.INT)
                .sinkTo(new DiscardingSink<>());
        return environment.executeAsync();
    }

    @Test
    void anEditedSpecificationContinuesFromASavepoint() throws Exception {
        int count = 3_000;
        int before = 1_500;
        List<String> expected = fleet.expected(folder, Fleet.TEXT, count);
        ROWS.clear();
        JobClient job = start(Fleet.TEXT, null, count, before);
        while (Counting.COUNT.get() < before || Counting.CHECKPOINTS.get() == 0) {
            Thread.sleep(5);
        }
        String savepoint = job.stopWithSavepoint(false, folder.toUri().toString(), SavepointFormatType.CANONICAL)
                .get(100, TimeUnit.SECONDS);
        int first = ROWS.size();
        assertTrue(first > 20, "only " + first);
        String edited = Fleet.TEXT.replace("telemetry.speed < 35", "telemetry.speed < 33");
        start(edited, savepoint, count, Long.MAX_VALUE).getJobExecutionResult().get(100, TimeUnit.SECONDS);
        // The last obligations of a key end at the last row of its own.
        long last = (count * Fleet.STEP_MILLIS - 5_000) * 1_000_000;
        List<Verdict> stops = ROWS.stream()
                .map(TableFunctionTest::verdict)
                .filter(verdict -> verdict.property.equals("stops") && verdict.timeNanos <= last)
                .toList();
        Fleet.assertSame(
                expected.stream()
                        .filter(shown -> shown.startsWith("stops") && Fleet.nanos(shown) <= last)
                        .toList(),
                stops);
    }

    @Test
    void deadlinesPassWithoutRowsOfTheKey() throws Exception {
        StreamTableEnvironment tables = tablesOf(
                Row.of("r1", 31.0, false, 1_000L), Row.of("r2", 10.0, false, 5_000L), Row.of("r2", 10.0, false, 9_000L));
        Row violated = rows(tables, call(Fleet.TEXT, "")).stream()
                .filter(row -> "violated".equals(row.getField("verdict")) && "stops".equals(row.getField("property")))
                .findFirst()
                .orElseThrow();
        assertEquals("r1", violated.getField("vehicle"));
        assertEquals(Instant.ofEpochSecond(1), violated.getField("about_time"));
        assertEquals("high", violated.getField("severity"));
    }

    @Test
    void rowsWithoutAKeyAreSkippedAndNullsAreFieldsThatAreNotThere() throws Exception {
        StreamTableEnvironment tables = tablesOf(
                Row.of(null, 31.0, false, 1_000L), Row.of("a\"\n", null, false, 2_000L), Row.of("a\"\n", 31.0, false, 3_000L));
        List<Row> violated = rows(tables, call(SLOW, "")).stream()
                .filter(row -> "violated".equals(row.getField("verdict")))
                .toList();
        assertEquals(1, violated.size(), violated.toString());
        assertEquals("a\"\n", violated.get(0).getField("vehicle"));
        assertEquals(Instant.ofEpochSecond(3), violated.get(0).getField("verdict_time"));
    }

    private static String mistake(String call) {
        StreamTableEnvironment tables = tablesOf(Row.of("r1", 31.0, false, 1_000L));
        Throwable error = assertThrows(ValidationException.class, () -> tables.sqlQuery(call));
        StringBuilder text = new StringBuilder();
        for (; error != null; error = error.getCause()) {
            text.append(error.getMessage()).append('\n');
        }
        return text.toString();
    }

    @Test
    void mistakesAreFoundByThePlanner() {
        String column = mistake(call(SLOW.replace("speed", "velocity"), ""));
        assertTrue(column.contains("the table has no column 'velocity'"), column);
        String type = mistake(call("topic telemetry { vehicle: string, brake: int } "
                + "property p for each v in telemetry.vehicle = telemetry.brake < 30", ""));
        assertTrue(type.contains("the column 'brake' has the type Boolean"), type);
        String whole = mistake(call("property p = t.x < ", ""));
        assertTrue(whole.contains("the specification has mistakes"), whole);
        String two = SLOW + " topic other { vehicle: string } property q for each v in other.vehicle = on(other)";
        String topics = mistake(call(two, ""));
        assertTrue(topics.contains("name the one of which the rows are messages"), topics);
        String unknown = mistake(call(SLOW, "topic => 'elsewhere', "));
        assertTrue(unknown.contains("the specification has no topic 'elsewhere'; it has telemetry"), unknown);
    }

    @Test
    void anotherKeyThanThatOfTheSpecificationEndsTheJob() {
        StreamTableEnvironment tables = tablesOf(Row.of("r1", 31.0, false, 1_000L));
        String call = call(SLOW, "").replace("PARTITION BY vehicle", "PARTITION BY brake");
        Throwable error = assertThrows(Exception.class, () -> rows(tables, call));
        while (error.getCause() != null) {
            error = error.getCause();
        }
        assertTrue(error.getMessage().contains("is not the key of its rows, [brake]"), error.getMessage());
    }

    @Test
    void theTopicOfSeveralIsNamed() throws Exception {
        String two = SLOW + " topic other { vehicle: string } property q for each v in other.vehicle = on(other)";
        StreamTableEnvironment tables = tablesOf(Row.of("r1", 31.0, false, 1_000L));
        List<Row> rows = rows(tables, call(two, "topic => 'telemetry', "));
        assertEquals(Set.of("slow"), new HashSet<>(rows.stream().map(row -> row.getField("property")).toList()));
    }

    @Test
    void valuesOfAllTypesAreWritten() {
        Row inner = Row.withNames();
        inner.setField("x", 1.5f);
        inner.setField("bytes", new byte[] {1});
        Row row = Row.withNames();
        row.setField("a", 7);
        row.setField("b", new BigDecimal("1.50"));
        row.setField("c", Instant.ofEpochMilli(-1_500));
        row.setField("d", new Object[] {1L, null, inner});
        row.setField("e", new double[] {Double.NaN, Double.NEGATIVE_INFINITY});
        row.setField("f", null);
        row.setField("g", "\u0001\\ü");
        assertEquals(
                "{\"a\":7,\"b\":1.50,\"c\":-1.500000000,\"d\":[1,null,{\"x\":1.5}],\"e\":[NaN,-1e999],"
                        + "\"g\":\"\\u0001\\\\ü\"}",
                new String(new RowWriter().write(row), StandardCharsets.UTF_8));
    }
}
