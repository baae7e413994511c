package io.rondel.flink;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.runtime.state.KeyGroupRange;

/** Continues a monitor from the key groups of a checkpoint, also of other subtasks and of an edited specification. */
final class Restoring {
    /** Verdicts that were decided by time where monitors of different times are joined. */
    final List<Monitor.Report> reports = new ArrayList<>();

    private final Specification specification;

    Restoring(Specification specification) {
        this.specification = specification;
    }

    /** Returns what a checkpoint has of the specification beside the key groups. */
    static byte[] header(Specification specification) {
        byte[] text = specification.text().getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(text.length + 1).put((byte) (specification.explain() ? 1 : 0)).put(text).array();
    }

    /** Returns the specification of a header. */
    static String text(byte[] header) {
        return new String(header, 1, header.length - 1, StandardCharsets.UTF_8);
    }

    /** Whether violations were explained. */
    static boolean isExplained(byte[] header) {
        return header[0] != 0;
    }

    /** Returns a monitor that continues from these groups. */
    Monitor monitor(byte[] header, List<SavedGroup> groups) {
        String text = text(header);
        Specification saved = specification.asSaved(text, isExplained(header));
        Monitor joined = Monitor.restore(saved, parts(saved, groups));
        if (text.equals(specification.text()) && saved.explain() == specification.explain()) {
            return joined;
        }
        try (joined) {
            // Parts belong to one specification; a whole snapshot continues after an edit.
            return Monitor.restore(specification, joined.snapshot());
        }
    }

    /** Returns the parts, after those of monitors that were behind have advanced to the time of the others. */
    private List<byte[]> parts(Specification saved, List<SavedGroup> groups) {
        Map<Long, List<SavedGroup>> byOrigin = new LinkedHashMap<>();
        long latest = Message.NO_TIME;
        for (SavedGroup group : groups) {
            byOrigin.computeIfAbsent(group.origin(), origin -> new ArrayList<>()).add(group);
            latest = Math.max(latest, group.time());
        }
        List<byte[]> parts = new ArrayList<>();
        for (List<SavedGroup> own : byOrigin.values()) {
            List<byte[]> ofOne = own.stream().map(SavedGroup::part).toList();
            if (own.get(0).time() == latest) {
                parts.addAll(ofOne);
                continue;
            }
            try (Monitor behind = Monitor.restore(saved, ofOne)) {
                push(behind, own, latest);
                behind.advance(latest);
                reports.addAll(behind.reports());
                int first = own.stream().mapToInt(SavedGroup::group).min().orElseThrow();
                int last = own.stream().mapToInt(SavedGroup::group).max().orElseThrow();
                parts.addAll(behind.parts(new KeyGroupRange(first, last), specification.maxParallelism()));
            }
        }
        return parts;
    }

    /** Evaluates the messages that wait in key groups, up to a time. */
    private void push(Monitor behind, List<SavedGroup> groups, long until) {
        Batch batch = new Batch(specification.batch());
        List<Waiting> due = groups.stream()
                .flatMap(group -> group.waiting().stream())
                .filter(message -> message.time() <= until)
                .sorted()
                .toList();
        for (Waiting message : due) {
            long topic = behind.topic(message.topic());
            if (topic != Monitor.UNKNOWN) {
                batch.add(message.time(), topic, message.payload());
            }
            if (batch.isFull()) {
                behind.push(batch);
            }
        }
        behind.push(batch);
    }
}
