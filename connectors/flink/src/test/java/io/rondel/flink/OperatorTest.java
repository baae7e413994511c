package io.rondel.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.util.AbstractStreamOperatorTestHarness;
import org.apache.flink.streaming.util.KeyedOneInputStreamOperatorTestHarness;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** One subtask or several, driven by the test. */
class OperatorTest {
    private static final int GROUPS = 16;
    private static final Specification FLEET =
            Specification.of(Fleet.TEXT).withMaxParallelism(GROUPS).withFlushAfter(Duration.ZERO).withBatch(64);

    @TempDir
    Path folder;

    private final Fleet fleet = new Fleet();

    /** A subtask. */
    static final class Subtask extends KeyedOneInputStreamOperatorTestHarness<Integer, Message, Verdict> {
        Subtask(Specification specification, int parallelism, int index) throws Exception {
            super(
                    new MonitorOperator(specification),
                    new KeyGroups(specification.maxParallelism()),
                    Types.INT,
                    specification.maxParallelism(),
                    parallelism,
                    index);
        }

        static Subtask opened(Specification specification) throws Exception {
            Subtask subtask = new Subtask(specification, 1, 0);
            subtask.open();
            return subtask;
        }

        void push(long millis, Message message) throws Exception {
            processElement(new StreamRecord<>(message, millis));
        }

        List<Verdict> verdicts() {
            return extractOutputValues();
        }

        long metric(String name) {
            MonitorOperator operator = (MonitorOperator) getOperator();
            return operator.count(name);
        }
    }

    private static Message telemetry(String payload, String vehicle) {
        return Message.of("telemetry", payload.getBytes(StandardCharsets.UTF_8), vehicle);
    }

    @Test
    void verdictsAreThoseOfTheCommand() throws Exception {
        List<String> expected = fleet.expected(folder, Fleet.TEXT, 5_000);
        for (int batch : new int[] {1, 64, 1_024}) {
            try (Subtask subtask = Subtask.opened(FLEET.withBatch(batch))) {
                for (int i = 0; i < 5_000; i++) {
                    Fleet.Event event = fleet.event(i);
                    subtask.push(event.millis(), event.message());
                    if (i % 100 == 99) {
                        subtask.processWatermark(event.millis() - 500);
                    }
                }
                subtask.processWatermark(Long.MAX_VALUE);
                subtask.endInput();
                Fleet.assertSame(expected, subtask.verdicts());
                assertTrue(expected.size() > 150, "only " + expected.size());
                assertEquals(5_000, subtask.metric("messages"));
            }
        }
    }

    @Test
    void shuffledMessagesAreSorted() throws Exception {
        int count = 2 * Fleet.SHUFFLE;
        List<String> expected = fleet.expected(folder, Fleet.TEXT, count);
        try (Subtask subtask = Subtask.opened(FLEET.withBatch(1_024))) {
            long latest = 0;
            for (int i = 0; i < count; i++) {
                Fleet.Event event = fleet.event(fleet.shuffled(i));
                subtask.push(event.millis(), event.message());
                latest = Math.max(latest, event.millis());
                if (i % 256 == 0) {
                    subtask.processWatermark(latest - Fleet.SHUFFLE * Fleet.STEP_MILLIS - 1);
                }
            }
            subtask.processWatermark(Long.MAX_VALUE);
            subtask.endInput();
            Fleet.assertSame(expected, subtask.verdicts());
            assertEquals(0, subtask.metric("late"));
        }
    }

    @Test
    void lateMessagesGoToTheirSideOutput() throws Exception {
        try (Subtask subtask = Subtask.opened(FLEET)) {
            subtask.push(1_000, fleet.event(0).message());
            subtask.processWatermark(2_000);
            subtask.push(2_000, fleet.event(1).message());
            subtask.push(1_500, fleet.event(2).message());
            subtask.push(2_001, fleet.event(3).message());
            subtask.processWatermark(3_000);
            assertEquals(2, subtask.getSideOutput(RondelFunctions.LATE).size());
            assertEquals(2, subtask.metric("late"));
            assertEquals(2, subtask.metric("messages"));
        }
    }

    @Test
    void messagesThatCannotBeReadAreCountedAndTheRestIsEvaluated() throws Exception {
        String text = "topic telemetry { vehicle: string, speed: float } "
                + "property slow for each v in telemetry.vehicle = telemetry.speed < 30";
        try (Subtask subtask = Subtask.opened(FLEET.withText(text))) {
            subtask.push(10, telemetry("{\"vehicle\":\"a\",\"speed\":31}", "a"));
            subtask.push(11, telemetry("{\"vehicle\":\"a\",\"spe", "a"));
            subtask.push(12, telemetry("", "a"));
            subtask.push(13, Message.of("elsewhere", new byte[0], "a"));
            subtask.processElement(new StreamRecord<>(telemetry("{}", "a")));
            subtask.push(13, Message.of("telemetry", null, "a"));
            subtask.push(14, telemetry("{\"vehicle\":\"b\",\"speed\":32}", "b"));
            subtask.processWatermark(20);
            List<String> violated = subtask.verdicts().stream().filter(Verdict::isViolated).map(v -> v.key).toList();
            assertEquals(List.of("{\"v\":\"a\"}", "{\"v\":\"b\"}"), violated);
            assertEquals(2, subtask.metric("undecodable"));
            assertEquals(3, subtask.getSideOutput(RondelFunctions.REFUSED).size());
            assertTrue(subtask.getSideOutput(RondelFunctions.NOTICES).stream()
                    .anyMatch(notice -> notice.getValue().contains("undecodable")));
        }
    }

    @Test
    void aKeyThatIsNotThatOfTheInstanceIsRefused() throws Exception {
        try (Subtask subtask = new Subtask(FLEET, 2, 0)) {
            subtask.open();
            int i = 0;
            while (KeyGroups.of(KeyHash.of("r" + i), GROUPS) < GROUPS / 2) {
                i++;
            }
            Message wrong = telemetry("{\"vehicle\":\"r" + i + "\",\"speed\":1,\"brake\":true}", "r" + i);
            wrong.keyHash = 0;
            subtask.push(10, wrong);
            RondelException error = assertThrows(RondelException.class, () -> subtask.processWatermark(20));
            assertTrue(error.getMessage().contains("not the key of its messages"), error.getMessage());
        }
        String whole = "topic telemetry { speed: float } property slow = telemetry.speed < 30";
        try (Subtask subtask = Subtask.opened(FLEET.withText(whole))) {
            subtask.push(10, telemetry("{\"speed\":31}", "a"));
            RondelException error = assertThrows(RondelException.class, () -> subtask.processWatermark(20));
            assertTrue(error.getMessage().contains("has no `for each`"), error.getMessage());
        }
        try (Subtask subtask = Subtask.opened(FLEET.withText(whole).withMaxParallelism(1))) {
            subtask.push(10, telemetry("{\"speed\":31}", "a"));
            subtask.processWatermark(20);
            assertEquals(1, subtask.verdicts().size());
        }
    }

    @Test
    void mistakesAreSentences() throws Exception {
        RondelException mistake =
                assertThrows(RondelException.class, () -> Subtask.opened(FLEET.withText("property p = t.x < ")));
        assertTrue(mistake.getMessage().contains("the specification has mistakes"), mistake.getMessage());
        RondelException missing =
                assertThrows(RondelException.class, () -> NativeLibrary.load(NativeLibrary.platform("Linux", "riscv64")));
        assertTrue(missing.getMessage().contains("no native library of Rondel for linux-riscv64"), missing.getMessage());
        assertThrows(IllegalArgumentException.class, () -> FLEET.withBatch(0));
        assertThrows(IllegalArgumentException.class, () -> FLEET.withMaxParallelism(0));
    }

    @Test
    void aBatchIsFlushedByTime() throws Exception {
        try (Subtask subtask = Subtask.opened(FLEET.withFlushAfter(Duration.ofMillis(5)))) {
            subtask.setProcessingTime(100);
            subtask.push(10, fleet.event(0).message());
            subtask.processWatermark(20);
            assertTrue(subtask.getOutput().isEmpty());
            subtask.setProcessingTime(104);
            assertTrue(subtask.getOutput().isEmpty());
            subtask.setProcessingTime(105);
            assertTrue(subtask.verdicts().size() > 0);
            for (int i = 1; i < 129; i++) {
                subtask.push(30, fleet.event(i).message());
            }
            subtask.processWatermark(40);
            assertEquals(129, subtask.metric("messages"));
            assertEquals(3, subtask.metric("batches"));
        }
    }

    /** Events from `from` to below `until`, to the subtasks of their keys, with watermarks of all. */
    private void run(List<Subtask> subtasks, long from, long until) throws Exception {
        for (long i = from; i < until; i++) {
            Fleet.Event event = fleet.event(i);
            Message message = event.message();
            int group = KeyGroups.of(message.keyHash, GROUPS);
            subtasks.get(group * subtasks.size() / GROUPS).push(event.millis(), message);
            if (i % 50 == 49) {
                for (Subtask subtask : subtasks) {
                    subtask.processWatermark(event.millis() - 100);
                }
            }
        }
    }

    /** Continues from a checkpoint with another parallelism. */
    private static List<Subtask> start(Specification specification, int parallelism, OperatorSubtaskState state, int before)
            throws Exception {
        return start(specification, parallelism, state, before, false);
    }

    private static List<Subtask> start(
            Specification specification, int parallelism, OperatorSubtaskState state, int before, boolean isCompressed)
            throws Exception {
        List<Subtask> subtasks = new ArrayList<>();
        for (int index = 0; index < parallelism; index++) {
            Subtask subtask = new Subtask(specification, parallelism, index);
            subtask.getExecutionConfig().setUseSnapshotCompression(isCompressed);
            if (state != null) {
                subtask.initializeState(AbstractStreamOperatorTestHarness.repartitionOperatorState(
                        state, GROUPS, before, parallelism, index));
            }
            subtask.open();
            subtasks.add(subtask);
        }
        return subtasks;
    }

    private static OperatorSubtaskState saved(List<Subtask> subtasks, long checkpoint, List<Verdict> verdicts)
            throws Exception {
        OperatorSubtaskState[] states = new OperatorSubtaskState[subtasks.size()];
        for (int i = 0; i < states.length; i++) {
            subtasks.get(i).prepareSnapshotPreBarrier(checkpoint);
            states[i] = subtasks.get(i).snapshot(checkpoint, checkpoint);
            verdicts.addAll(subtasks.get(i).verdicts());
            subtasks.get(i).close();
        }
        return AbstractStreamOperatorTestHarness.repackageState(states);
    }

    private static List<Verdict> ended(List<Subtask> subtasks) throws Exception {
        List<Verdict> verdicts = new ArrayList<>();
        for (Subtask subtask : subtasks) {
            subtask.processWatermark(Long.MAX_VALUE);
            subtask.endInput();
            verdicts.addAll(subtask.verdicts());
            subtask.close();
        }
        return verdicts;
    }

    /** Runs with a checkpoint between two phases, each with one of these numbers of subtasks. */
    private void compareRescaled(int... parallelism) throws Exception {
        int phase = 1_234;
        List<String> expected = fleet.expected(folder, Fleet.TEXT, (long) phase * parallelism.length);
        List<Verdict> verdicts = new ArrayList<>();
        OperatorSubtaskState state = null;
        for (int i = 0; i < parallelism.length; i++) {
            int before = i == 0 ? 1 : parallelism[i - 1];
            List<Subtask> subtasks = start(FLEET, parallelism[i], state, before);
            run(subtasks, (long) i * phase, (i + 1L) * phase);
            if (i + 1 < parallelism.length) {
                state = saved(subtasks, i, verdicts);
            } else {
                verdicts.addAll(ended(subtasks));
            }
        }
        Fleet.assertSame(expected, verdicts);
        Set<String> ids = new HashSet<>();
        verdicts.forEach(verdict -> ids.add(verdict.id));
        assertEquals(verdicts.size(), ids.size());
    }

    @Test
    void aRestoredMonitorContinues() throws Exception {
        compareRescaled(1, 1, 1);
        compareRescaled(3, 3);
    }

    @Test
    void moreSubtasksContinueAParallelism() throws Exception {
        compareRescaled(1, 2);
        compareRescaled(1, 5);
    }

    @Test
    void subtasksAreJoinedAndDividedAgain() throws Exception {
        compareRescaled(1, 2, 3, 1);
        compareRescaled(4, 2, 8, 1);
    }

    @Test
    void checkpointsAreCompressedAsFlinkIsConfigured() throws Exception {
        List<String> expected = fleet.expected(folder, Fleet.TEXT, 3_000);
        List<Verdict> verdicts = new ArrayList<>();
        OperatorSubtaskState state = null;
        long[] sizes = new long[3];
        for (int i = 0; i < sizes.length; i++) {
            List<Subtask> subtasks = start(FLEET, 1, state, 1, i == 1);
            run(subtasks, i * 1_000L, (i + 1) * 1_000L);
            if (i == 2) {
                verdicts.addAll(ended(subtasks));
            } else {
                state = saved(subtasks, i, verdicts);
                sizes[i] = subtasks.get(0).metric("snapshotBytes");
            }
        }
        Fleet.assertSame(expected, verdicts);
        assertTrue(sizes[1] > 0 && sizes[1] < sizes[0] * 3 / 4, sizes[0] + " bytes, compressed " + sizes[1]);
    }

    @Test
    void monitorsOfDifferentTimesAreJoined() throws Exception {
        List<String> expected = fleet.expected(folder, Fleet.TEXT, 2_000);
        List<Verdict> verdicts = new ArrayList<>();
        List<Subtask> two = start(FLEET, 2, null, 1);
        run(two, 0, 1_000);
        two.get(0).processWatermark(fleet.event(999).millis());
        OperatorSubtaskState state = saved(two, 1, verdicts);
        List<Subtask> one = start(FLEET, 1, state, 2);
        run(one, 1_000, 2_000);
        verdicts.addAll(ended(one));
        Fleet.assertSame(expected, verdicts);
    }

    @Test
    void monitorsAreJoinedAfterTheEnd() throws Exception {
        List<Subtask> two = start(FLEET, 2, null, 1);
        run(two, 0, 1_000);
        for (Subtask subtask : two) {
            subtask.processWatermark(Long.MAX_VALUE);
            subtask.endInput();
        }
        OperatorSubtaskState state = saved(two, 1, new ArrayList<>());
        List<Subtask> one = start(FLEET, 1, state, 2);
        run(one, 1_000, 1_100);
        assertEquals(0, one.get(0).metric("late"));
        assertTrue(ended(one).size() > 0);
    }

    @Test
    void unchangedPropertiesContinueAfterAnEdit() throws Exception {
        String edited = Fleet.TEXT.replace("telemetry.speed < 35", "telemetry.speed < 33")
                + "property fast for each v in telemetry.vehicle = telemetry.speed < 20";
        List<String> expected = fleet.expected(folder, Fleet.TEXT, 2_000).stream()
                .filter(verdict -> verdict.startsWith("stops"))
                .toList();
        List<Verdict> verdicts = new ArrayList<>();
        List<Subtask> subtasks = start(FLEET, 1, null, 1);
        run(subtasks, 0, 1_000);
        OperatorSubtaskState state = saved(subtasks, 1, verdicts);
        subtasks = start(FLEET.withText(edited), 1, state, 1);
        run(subtasks, 1_000, 2_000);
        Subtask only = subtasks.get(0);
        List<Verdict> after = ended(subtasks);
        assertTrue(after.stream().anyMatch(verdict -> verdict.property.equals("fast")));
        verdicts.addAll(after);
        assertEquals(
                expected,
                verdicts.stream().map(Fleet::shown).filter(verdict -> verdict.startsWith("stops")).sorted().toList());
        assertTrue(only.getSideOutput(RondelFunctions.NOTICES).size() > 0);
    }

    @Test
    void messagesOfATopicThatAnEditRemovesAreRefused() throws Exception {
        String before = Fleet.TEXT + "topic other { vehicle: string } property p for each v in other.vehicle = on(other)";
        List<Subtask> subtasks = start(FLEET.withText(before), 1, null, 1);
        subtasks.get(0).push(10, fleet.event(0).message());
        subtasks.get(0).push(20, Message.of("other", "{\"vehicle\":\"r0\"}".getBytes(StandardCharsets.UTF_8), "r0"));
        OperatorSubtaskState state = saved(subtasks, 1, new ArrayList<>());
        Subtask edited = start(FLEET, 1, state, 1).get(0);
        edited.processWatermark(30);
        assertEquals(1, edited.metric("messages"));
        assertEquals(1, edited.getSideOutput(RondelFunctions.REFUSED).size());
        edited.close();
    }

    @Test
    void aCheckpointAfterTheEndHasTheStateBeforeIt() throws Exception {
        List<Verdict> verdicts = new ArrayList<>();
        List<Subtask> subtasks = start(FLEET, 1, null, 1);
        run(subtasks, 0, 1_000);
        subtasks.get(0).processWatermark(Long.MAX_VALUE);
        subtasks.get(0).endInput();
        OperatorSubtaskState state = saved(subtasks, 1, verdicts);
        List<Subtask> continued = start(FLEET, 1, state, 1);
        run(continued, 1_000, 1_100);
        assertTrue(ended(continued).size() > 0);
    }
}
