package io.rondel.flink;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeutils.base.array.BytePrimitiveArraySerializer;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.runtime.state.KeyGroupStatePartitionStreamProvider;
import org.apache.flink.runtime.state.KeyedStateCheckpointOutputStream;
import org.apache.flink.runtime.state.StateInitializationContext;
import org.apache.flink.runtime.state.StateSnapshotContext;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.BoundedOneInput;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;

/**
 * One monitor over all key groups of a subtask.
 *
 * <p>Messages wait in the order of their times until the watermark has passed them. Then they are evaluated in batches: when
 * one is full, when its time is over, and before a checkpoint. The watermark goes on after the verdicts that it decides.
 */
final class MonitorOperator extends AbstractStreamOperator<Verdict>
        implements OneInputStreamOperator<Message, Verdict>, BoundedOneInput {
    private static final long serialVersionUID = 1;

    /** Topics by their names that are kept; beyond, all are searched again. */
    private static final int NAMES = 65_536;

    /** The state that has the specification. */
    static final ListStateDescriptor<byte[]> HEADER =
            new ListStateDescriptor<>("rondel-specification", BytePrimitiveArraySerializer.INSTANCE);

    private final Specification specification;

    private transient Monitor monitor;
    private transient PriorityQueue<Waiting> waiting;
    private transient long sequence;
    private transient Map<String, Long> topics;
    private transient Batch batch;
    private transient VerdictIds ids;
    private transient Metrics figures;
    private transient KeyGroupRange groups;
    private transient ListState<byte[]> header;
    /** The last watermark that came, and the last one that went on. */
    private transient long watermark;

    private transient long forwarded;
    /** The time of the last message for the monitor, and the time up to which it has advanced. */
    private transient long evaluated;

    private transient long advanced;

    private transient boolean isFlushPlanned;
    /** The parts of the state before the end of the trace, once it has ended. */
    private transient List<byte[]> last;
    /** Verdicts from restoring, until the first flush. */
    private transient List<Monitor.Report> early;

    MonitorOperator(Specification specification) {
        this.specification = specification;
    }

    @Override
    protected boolean isUsingCustomRawKeyedState() {
        return true;
    }

    /** Keeps no key: all state is that of the monitor. */
    @Override
    public void setKeyContextElement1(StreamRecord record) {}

    @Override
    public void initializeState(StateInitializationContext context) throws Exception {
        super.initializeState(context);
        NativeLibrary.load();
        int count = getRuntimeContext().getTaskInfo().getMaxNumberOfParallelSubtasks();
        if (count != specification.maxParallelism()) {
            throw new RondelException("the operator has the maximum parallelism " + count + ", and its specification "
                    + specification.maxParallelism() + ": set it by Specification.withMaxParallelism only");
        }
        groups = KeyGroupRangeAssignment.computeKeyGroupRangeForOperatorIndex(
                count,
                getRuntimeContext().getTaskInfo().getNumberOfParallelSubtasks(),
                getRuntimeContext().getTaskInfo().getIndexOfThisSubtask());
        waiting = new PriorityQueue<>();
        topics = new HashMap<>();
        batch = new Batch(specification.batch());
        ids = new VerdictIds();
        watermark = Long.MIN_VALUE;
        forwarded = Long.MIN_VALUE;
        evaluated = Message.NO_TIME;
        advanced = Message.NO_TIME;
        early = List.of();
        figures = new Metrics(getMetricGroup().addGroup("rondel"), waiting::size);
        header = context.getOperatorStateStore().getUnionListState(HEADER);
        monitor = context.isRestored() ? restored(context) : null;
        if (monitor == null) {
            monitor = Monitor.open(specification);
        }
    }

    /** Continues from a checkpoint. Returns null if it has no state of this operator. */
    private Monitor restored(StateInitializationContext context) throws Exception {
        List<SavedGroup> saved = new ArrayList<>();
        for (KeyGroupStatePartitionStreamProvider group : context.getRawKeyedStateInputs()) {
            SavedGroup read = SavedGroup.read(group.getKeyGroupId(), group.getStream(), sequence);
            sequence += read.waiting().size();
            advanced = Math.max(advanced, read.time());
            saved.add(read);
        }
        for (SavedGroup group : saved) {
            // Earlier ones are evaluated where monitors of different times are joined.
            group.waiting().stream().filter(message -> message.time() > advanced).forEach(waiting::add);
        }
        var headers = header.get().iterator();
        if (saved.isEmpty() || !headers.hasNext()) {
            return null;
        }
        Restoring restoring = new Restoring(specification);
        Monitor continued = restoring.monitor(headers.next(), saved);
        early = restoring.reports;
        return continued;
    }

    @Override
    public void processElement(StreamRecord<Message> record) {
        Message message = record.getValue();
        boolean hasTime = message.nanos != Message.NO_TIME || record.hasTimestamp();
        if (message.topic == null || message.payload == null || !hasTime) {
            refuse(record);
            return;
        }
        long time = message.nanos != Message.NO_TIME ? message.nanos : nanos(record.getTimestamp());
        if (Math.floorDiv(time, Waiting.MILLISECOND) <= watermark || time <= advanced && advanced != Message.NO_TIME) {
            figures.late.inc();
            output.collect(RondelFunctions.LATE, record);
        } else if (topic(message.topic) == Monitor.UNKNOWN) {
            refuse(record);
        } else {
            waiting.add(new Waiting(time, sequence++, message.topic, message.payload, message.keyHash));
        }
    }

    /** The time in nanoseconds; times that these cannot express are the nearest ones, more than 290 years away. */
    private static long nanos(long millis) {
        long most = Long.MAX_VALUE / Waiting.MILLISECOND;
        return Math.max(-most, Math.min(most, millis)) * Waiting.MILLISECOND;
    }

    private void refuse(StreamRecord<Message> record) {
        figures.refused.inc();
        output.collect(RondelFunctions.REFUSED, record);
    }

    private long topic(String name) {
        Long known = topics.get(name);
        if (known == null) {
            if (topics.size() >= NAMES) {
                topics.clear();
            }
            known = monitor.topic(name);
            topics.put(name, known);
        }
        return known;
    }

    @Override
    public void processWatermark(Watermark mark) throws Exception {
        watermark = mark.getTimestamp();
        while (!waiting.isEmpty() && waiting.peek().millis() <= watermark) {
            Waiting next = waiting.poll();
            long topic = topic(next.topic());
            if (topic == Monitor.UNKNOWN) {
                // It waited while the specification was edited.
                refuse(new StreamRecord<>(next.message(), next.millis()));
                continue;
            }
            batch.add(next.time(), topic, next.payload());
            evaluated = next.time();
            if (batch.isFull()) {
                push();
            }
        }
        if (specification.flushAfterMillis() == 0 || watermark == Long.MAX_VALUE) {
            flush();
        } else if (!isFlushPlanned) {
            isFlushPlanned = true;
            long at = getProcessingTimeService().getCurrentProcessingTime() + specification.flushAfterMillis();
            getProcessingTimeService().registerTimer(at, time -> {
                isFlushPlanned = false;
                flush();
            });
        }
    }

    /** Evaluates the batch. */
    private void push() {
        if (batch.count() == 0) {
            return;
        }
        figures.messages.inc(batch.count());
        figures.undecodable.inc(monitor.push(batch));
        figures.batches.inc();
        emit(monitor.reports());
    }

    /** Evaluates the batch and the watermark, and lets it go on; the last one goes on at the end of the input. */
    private void flush() throws Exception {
        if (last != null) {
            return;
        }
        emit(early);
        early = List.of();
        push();
        // After the last watermark, each monitor is at the time of its own last message.
        advanced = Math.max(advanced, evaluated);
        if (watermark > forwarded && watermark != Long.MAX_VALUE) {
            advance();
            forwarded = watermark;
            super.processWatermark(new Watermark(watermark));
        }
        ids.clear();
        for (String notice : monitor.notices()) {
            output.collect(RondelFunctions.NOTICES, new StreamRecord<>(notice));
        }
    }

    /** Advances the monitor to the last nanosecond of the watermark, if nanoseconds can express it. */
    private void advance() {
        long most = Long.MAX_VALUE / Waiting.MILLISECOND - 1;
        if (watermark < -most || watermark > most) {
            return;
        }
        long until = (watermark + 1) * Waiting.MILLISECOND - 1;
        if (advanced == Message.NO_TIME || until > advanced) {
            monitor.advance(until);
            advanced = until;
            emit(monitor.reports());
        }
    }

    private void emit(List<Monitor.Report> reports) {
        for (Monitor.Report report : reports) {
            checkKey(report);
            Verdict verdict = Verdict.of(report, ids.of(report));
            figures.verdicts.inc();
            if (verdict.isViolated()) {
                figures.violations.inc();
            } else if (specification.emit() == Emit.VIOLATIONS) {
                continue;
            }
            long millis = Math.floorDiv(report.time(), Waiting.MILLISECOND);
            output.collect(new StreamRecord<>(verdict, millis));
        }
    }

    /** Refuses instances whose state would not follow the messages of their key to another subtask. */
    private void checkKey(Monitor.Report report) {
        int count = specification.maxParallelism();
        if (count == 1) {
            return;
        }
        if (report.key().isEmpty()) {
            throw new RondelException("property '" + report.property() + "' has no `for each`: a fleet is divided by key. "
                    + "Check it in a job of its own, by Specification.withMaxParallelism(1)");
        }
        int group = KeyGroups.of(KeyHash.of(Parameters.of(report.key())), count);
        if (!groups.contains(group)) {
            throw new RondelException("property '" + report.property() + "' has an instance " + report.key()
                    + " that is not the key of its messages: give Message.of the values of `for each`, all of them, in "
                    + "their order and of their types (7 is no 7.0)");
        }
    }

    @Override
    public void prepareSnapshotPreBarrier(long checkpoint) throws Exception {
        super.prepareSnapshotPreBarrier(checkpoint);
        flush();
    }

    @Override
    public void snapshotState(StateSnapshotContext context) throws Exception {
        super.snapshotState(context);
        long start = System.nanoTime();
        header.update(List.of(Restoring.header(specification)));
        List<byte[]> parts = last != null ? last : monitor.parts(groups, specification.maxParallelism());
        Map<Integer, List<Waiting>> byGroup = new HashMap<>();
        waiting.stream().sorted().forEach(message -> byGroup
                .computeIfAbsent(
                        KeyGroups.of(message.keyHash(), specification.maxParallelism()), group -> new ArrayList<>())
                .add(message));
        boolean isCompressed = getExecutionConfig().isUseSnapshotCompression();
        long origin = ThreadLocalRandom.current().nextLong();
        long bytes = 0;
        KeyedStateCheckpointOutputStream out = context.getRawKeyedOperatorStateOutput();
        for (int group : groups) {
            out.startNewKeyGroup(group);
            byte[] part = parts.get(group - groups.getStartKeyGroup());
            List<Waiting> own = byGroup.getOrDefault(group, List.of());
            bytes += new SavedGroup(group, origin, advanced, part, own).write(out, isCompressed);
        }
        figures.saved(bytes, System.nanoTime() - start);
    }

    /** Ends the trace. Checkpoints after it have the state before it, so that a job can continue from them. */
    @Override
    public void endInput() throws Exception {
        flush();
        last = monitor.parts(groups, specification.maxParallelism());
        monitor.finish();
        emit(monitor.reports());
        ids.clear();
        if (watermark > forwarded) {
            forwarded = watermark;
            super.processWatermark(new Watermark(watermark));
        }
    }

    /** Returns a counter, for tests. */
    long count(String name) {
        return figures.count(name);
    }

    @Override
    public void close() throws Exception {
        if (monitor != null) {
            monitor.close();
            monitor = null;
        }
        super.close();
    }
}
