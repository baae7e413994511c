package io.rondel.flink;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.runtime.state.KeyGroupRange;

/** A monitor of the native library. */
final class Monitor implements AutoCloseable {
    /** A verdict as the library reports it. */
    record Report(
            String property,
            String severity,
            String key,
            String explanation,
            int verdict,
            long time,
            long about,
            boolean isAfter,
            double robustness) {}

    /** A topic that the specification does not have: no index and no name. */
    static final long UNKNOWN = -1;

    private final long[] out = new long[1];
    private long handle;

    private Monitor(long handle) {
        this.handle = handle;
    }

    /** Opens a monitor before the first message. */
    static Monitor open(Specification with) {
        try (Compiled compiled = Compiled.of(with)) {
            return open(compiled);
        }
    }

    /** Opens a monitor before the first message. */
    static Monitor open(Compiled compiled) {
        return start(compiled, null, false);
    }

    /** Opens a monitor that continues from a whole snapshot, also of an edited specification. */
    static Monitor restore(Specification with, byte[] snapshot) {
        try (Compiled compiled = Compiled.of(with)) {
            return restore(compiled, snapshot);
        }
    }

    /** Opens a monitor that continues from a whole snapshot, also of an edited specification. */
    static Monitor restore(Compiled compiled, byte[] snapshot) {
        return start(compiled, new byte[][] {snapshot}, true);
    }

    /** Opens a monitor that continues from parts of monitors at one time. */
    static Monitor restore(Specification with, List<byte[]> parts) {
        try (Compiled compiled = Compiled.of(with)) {
            return start(compiled, parts.toArray(new byte[0][]), false);
        }
    }

    private static Monitor start(Compiled compiled, byte[][] saved, boolean isWhole) {
        long[] out = new long[1];
        Specification with = compiled.specification();
        int status = Native.monitorOpen(compiled.handle(), with.numbers(), with.texts(), saved, isWhole, out);
        if (status != Native.OK) {
            throw new RondelException("cannot start the monitor: " + lastError());
        }
        return new Monitor(out[0]);
    }

    static String text(byte[] bytes) {
        return bytes == null ? "" : new String(bytes, StandardCharsets.UTF_8);
    }

    static String lastError() {
        return text(Native.lastError());
    }

    private static void check(String what, int status) {
        if (status < 0) {
            throw new RondelException("cannot " + what + ": " + lastError());
        }
    }

    private static byte[] check(String what, byte[] bytes) {
        if (bytes == null) {
            throw new RondelException("cannot " + what + ": " + lastError());
        }
        return bytes;
    }

    /** Returns a topic for {@link #push}, or {@link #UNKNOWN} if the specification has none of this name. */
    long topic(String name) {
        int status = Native.monitorTopic(handle, name.getBytes(StandardCharsets.UTF_8), out);
        if (status == Native.ERROR_ARGUMENT) {
            return UNKNOWN;
        }
        check("find topic " + name, status);
        return out[0];
    }

    /** Evaluates the messages of a batch, and clears it. Returns the number of those that cannot be read. */
    long push(Batch batch) {
        if (batch.count() == 0) {
            return 0;
        }
        int status = Native.monitorPush(handle, batch.bytes(), batch.count(), out);
        if (status != Native.ERROR_MESSAGE) {
            check("evaluate messages", status);
        }
        batch.clear();
        return out[0];
    }

    /** Lets time pass up to this time in nanoseconds. */
    void advance(long time) {
        check("advance", Native.monitorAdvance(handle, time));
    }

    /** Returns the time at which the next verdict may change without a message, or {@link Message#NO_TIME}. */
    long deadline() {
        int status = Native.monitorDeadline(handle, out);
        check("find the deadline", status);
        return status == Native.END ? Message.NO_TIME : out[0];
    }

    /**
     * Checks columns against the fields of a topic that the specification reads. The error names the column.
     *
     * @param columns names and types, as {@link Columns#encoded} writes them
     */
    void checkColumns(long topic, String time, byte[] columns) {
        int status = Native.monitorCheckColumns(handle, topic, time.getBytes(StandardCharsets.UTF_8), columns);
        if (status < 0) {
            throw new RondelException(lastError());
        }
    }

    /** Ends the trace. */
    void finish() {
        check("finish", Native.monitorFinish(handle));
    }

    /** Takes the reports. */
    List<Report> reports() {
        List<Report> reports = new ArrayList<>();
        byte[] bytes = check("take verdicts", Native.monitorReports(handle));
        ByteBuffer all = ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder());
        while (all.hasRemaining()) {
            long time = all.getLong();
            long about = all.getLong();
            double robustness = all.getDouble();
            int verdict = all.getInt();
            boolean isAfter = all.get() != 0;
            String property = text(all);
            String severity = text(all);
            String key = text(all);
            String explanation = text(all);
            reports.add(
                    new Report(property, severity, key, explanation, verdict, time, about, isAfter, robustness));
        }
        return reports;
    }

    /** Takes the notices, as JSON. */
    List<String> notices() {
        List<String> notices = new ArrayList<>();
        byte[] bytes = check("take notices", Native.monitorNotices(handle));
        ByteBuffer all = ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder());
        while (all.hasRemaining()) {
            notices.add(text(all));
        }
        return notices;
    }

    static String text(ByteBuffer from) {
        int length = from.getInt();
        if (length == 0) {
            return "";
        }
        String text = new String(from.array(), from.position(), length, StandardCharsets.UTF_8);
        from.position(from.position() + length);
        return text;
    }

    /** Returns the whole state. */
    byte[] snapshot() {
        return check("save the state", Native.monitorSnapshot(handle));
    }

    /** Returns the part of each key group in a range: the instances with its hashes, and all other state. */
    List<byte[]> parts(KeyGroupRange groups, int count) {
        long[] cuts = new long[groups.getNumberOfKeyGroups() + 1];
        for (int i = 0; i < cuts.length; i++) {
            cuts[i] = KeyGroups.firstHash(groups.getStartKeyGroup() + i, count);
        }
        byte[][] parts = Native.monitorSnapshotParts(handle, cuts);
        if (parts == null) {
            throw new RondelException("cannot save the state: " + lastError());
        }
        return List.of(parts);
    }

    @Override
    public void close() {
        long own = handle;
        handle = 0;
        Native.monitorFree(own);
    }
}
