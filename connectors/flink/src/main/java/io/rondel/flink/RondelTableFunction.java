package io.rondel.flink;

import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.table.annotation.ArgumentHint;
import org.apache.flink.table.annotation.ArgumentTrait;
import org.apache.flink.table.annotation.DataTypeHint;
import org.apache.flink.table.annotation.FunctionHint;
import org.apache.flink.table.annotation.StateHint;
import org.apache.flink.table.api.dataview.MapView;
import org.apache.flink.table.catalog.DataTypeFactory;
import org.apache.flink.table.functions.FunctionContext;
import org.apache.flink.table.functions.ProcessTableFunction;
import org.apache.flink.table.functions.SpecializedFunction;
import org.apache.flink.table.functions.UserDefinedFunction;
import org.apache.flink.table.types.inference.TypeInference;
import org.apache.flink.types.Row;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The function {@code RONDEL} of SQL: checks the rows of a table against a specification, each row a message of a topic.
 *
 * <p>A process table function has neither raw state nor a hook before checkpoints, so that it has no monitor over all keys as
 * {@link MonitorOperator} has, but the state of one monitor for each key, as bytes. Rows wait for the watermark; a timer
 * evaluates those that are due and lets deadlines pass.
 */
@FunctionHint(output = @DataTypeHint(RondelTableFunction.OUTPUT))
public class RondelTableFunction extends ProcessTableFunction<Row> implements SpecializedFunction {
    private static final long serialVersionUID = 1;
    private static final Logger LOG = LoggerFactory.getLogger(RondelTableFunction.class);

    /** The columns of a verdict, between those of the key and {@code rowtime}. */
    static final String OUTPUT = "ROW<property STRING, verdict STRING, severity STRING, verdict_time TIMESTAMP_LTZ(9), "
            + "about_time TIMESTAMP_LTZ(9), is_after BOOLEAN, robustness DOUBLE, explanation STRING, id STRING, "
            + "message STRING>";

    private static final String DUE = "due";
    private static final String END = "end";
    private static final long NONE = Long.MIN_VALUE;
    private static final long SECOND = 1_000_000_000;

    /** The state of a key. */
    public static class KeyState {
        /** The monitor, as a snapshot; null before the first evaluation. */
        public byte[] monitor;
        /** The hash of the values of the key. */
        public Long keyHash;
        /** The watermark to which the monitor has advanced. */
        public Long advanced;
        /** The time of the timer. */
        public Long due;
    }

    /** Options, and what the planner knows of the table; null before {@link #specialize}. */
    private final TableCall call;

    private transient Compiled compiled;
    private transient Batch batch;
    private transient VerdictIds ids;
    private transient RowWriter writer;
    private transient Counters counters;

    /** Creates the function for {@code CREATE FUNCTION}. */
    public RondelTableFunction() {
        this(null);
    }

    private RondelTableFunction(TableCall call) {
        this.call = call;
    }

    @Override
    public TypeInference getTypeInference(DataTypeFactory types) {
        TypeInference extracted = super.getTypeInference(types);
        return TypeInference.newBuilder()
                .staticArguments(extracted.getStaticArguments().orElseThrow())
                .stateTypeStrategies(extracted.getStateTypeStrategies())
                .inputTypeStrategy(extracted.getInputTypeStrategy())
                .outputTypeStrategy(context -> {
                    TableCall.check(context);
                    return extracted.getOutputTypeStrategy().inferType(context);
                })
                .build();
    }

    @Override
    public UserDefinedFunction specialize(SpecializedContext context) {
        return new RondelTableFunction(TableCall.of(context.getCallContext()));
    }

    @Override
    public void open(FunctionContext context) {
        NativeLibrary.load();
        compiled = Compiled.of(call.specification());
        batch = new Batch(call.specification().batch());
        ids = new VerdictIds();
        writer = new RowWriter();
        counters = new Counters(context.getMetricGroup().addGroup("rondel"));
    }

    /** Keeps a row until the watermark. The scalar arguments are read by the planner, in {@link TableCall}. */
    public void eval(
            Context context,
            @StateHint KeyState state,
            @StateHint MapView<Long, byte[]> waiting,
            @ArgumentHint(
                            name = "input",
                            value = {ArgumentTrait.SET_SEMANTIC_TABLE, ArgumentTrait.REQUIRE_ON_TIME})
                    Row input,
            @ArgumentHint(name = "spec") String spec,
            @ArgumentHint(name = "topic", isOptional = true) String topic,
            @ArgumentHint(name = "explanations", isOptional = true) Boolean explanations)
            throws Exception {
        TimeContext<Long> time = context.timeContext(Long.class);
        Long at = time.time();
        if (at == null || !call.hasKey(input)) {
            counters.refused.inc();
            return;
        }
        Long watermark = time.currentWatermark();
        if (watermark != null && at <= watermark || state.advanced != null && at <= state.advanced) {
            counters.late.inc();
            return;
        }
        if (state.keyHash == null) {
            state.keyHash = call.keyHash(input);
            time.registerOnTime(END, Long.MAX_VALUE);
        }
        waiting.put(at, joined(waiting.get(at), writer.write(input)));
        if (state.due == null || at < state.due) {
            state.due = at;
            time.registerOnTime(DUE, at);
        }
    }

    /** Returns the payloads of one time with another one, each after its length. */
    private static byte[] joined(byte[] before, byte[] payload) {
        int length = before == null ? 0 : before.length;
        ByteBuffer all = ByteBuffer.allocate(length + Integer.BYTES + payload.length);
        if (before != null) {
            all.put(before);
        }
        return all.putInt(payload.length).put(payload).array();
    }

    /** Evaluates the rows of a key that the watermark has passed, and its deadlines; ends its trace after the last one. */
    public void onTimer(OnTimerContext context, KeyState state, MapView<Long, byte[]> waiting) throws Exception {
        TimeContext<Long> time = context.timeContext(Long.class);
        long watermark = time.currentWatermark();
        boolean isEnd = END.equals(context.currentTimer());
        state.due = null;
        try (Monitor monitor =
                state.monitor == null ? Monitor.open(compiled) : Monitor.restore(compiled, state.monitor)) {
            long next = push(monitor, waiting, watermark);
            if (watermark != Long.MAX_VALUE) {
                monitor.advance((watermark + 1) * Waiting.MILLISECOND - 1);
                state.advanced = watermark;
            }
            if (isEnd) {
                // Checkpoints have the state before it, so that a job can continue from them.
                monitor.finish();
            } else {
                state.monitor = monitor.snapshot();
            }
            emit(monitor, state);
            // The last watermark is followed by the timer of the end.
            if (watermark != Long.MAX_VALUE) {
                plan(time, state, next, monitor.deadline());
            }
        }
    }

    /** Evaluates the rows up to the watermark. Returns the time of the first one after it, or {@link #NONE}. */
    private long push(Monitor monitor, MapView<Long, byte[]> waiting, long watermark) throws Exception {
        TreeMap<Long, byte[]> due = new TreeMap<>();
        long next = NONE;
        for (Map.Entry<Long, byte[]> entry : waiting.entries()) {
            long at = entry.getKey();
            if (at <= watermark) {
                due.put(at, entry.getValue());
            } else if (next == NONE || at < next) {
                next = at;
            }
        }
        long topic = monitor.topic(call.topic());
        for (Map.Entry<Long, byte[]> entry : due.entrySet()) {
            ByteBuffer payloads = ByteBuffer.wrap(entry.getValue());
            while (payloads.hasRemaining()) {
                byte[] payload = new byte[payloads.getInt()];
                payloads.get(payload);
                batch.add(entry.getKey() * Waiting.MILLISECOND, topic, payload);
                counters.messages.inc();
                if (batch.isFull()) {
                    counters.undecodable.inc(monitor.push(batch));
                }
            }
            waiting.remove(entry.getKey());
        }
        counters.undecodable.inc(monitor.push(batch));
        return next;
    }

    /** Sets the timer to the next row or deadline. */
    private static void plan(TimeContext<Long> time, KeyState state, long next, long deadline) {
        long due = next;
        if (deadline != Message.NO_TIME) {
            long millis = Math.max(Math.floorDiv(deadline, Waiting.MILLISECOND), time.currentWatermark() + 1);
            due = next == NONE ? millis : Math.min(next, millis);
        }
        if (due != NONE) {
            state.due = due;
            time.registerOnTime(DUE, due);
        }
    }

    private void emit(Monitor monitor, KeyState state) {
        for (Monitor.Report report : monitor.reports()) {
            checkKey(report, state.keyHash);
            Verdict verdict = Verdict.of(report, ids.of(report));
            counters.verdicts.inc();
            if (verdict.isViolated()) {
                counters.violations.inc();
            }
            collect(Row.of(
                    verdict.property,
                    verdict.verdict,
                    verdict.severity,
                    instant(verdict.timeNanos),
                    instant(verdict.aboutNanos),
                    verdict.isAfter,
                    Double.isNaN(verdict.robustness) ? null : verdict.robustness,
                    verdict.explanation,
                    verdict.id,
                    verdict.toString()));
        }
        ids.clear();
        for (String notice : monitor.notices()) {
            LOG.warn("{}", notice);
        }
    }

    private static Instant instant(long nanos) {
        return Instant.ofEpochSecond(Math.floorDiv(nanos, SECOND), Math.floorMod(nanos, SECOND));
    }

    /** Refuses instances with another key than that of the rows: another key's rows would belong to them as well. */
    private void checkKey(Monitor.Report report, long keyHash) {
        if (report.key().isEmpty()) {
            throw new RondelException("property '" + report.property() + "' has no `for each`: write one over the columns "
                    + "of PARTITION BY");
        }
        List<Object> parameters = Parameters.of(report.key());
        if (KeyHash.of(parameters) != keyHash) {
            throw new RondelException("property '" + report.property() + "' has an instance " + report.key()
                    + " that is not the key of its rows, " + call.keyColumns() + ": PARTITION BY needs the fields of "
                    + "`for each`, all of them, in their order");
        }
    }

    @Override
    public void close() {
        if (compiled != null) {
            compiled.close();
            compiled = null;
        }
    }
}
