package io.rondel.flink;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;

/**
 * Ids of verdicts, from what all runs over the same messages have in common: the property, the key, the times, the verdict.
 * Messages of one key at one time may decide the same verdict several times; these are numbered. They are evaluated
 * under one watermark, so that the numbers begin again with each.
 */
final class VerdictIds {
    private static final int LENGTH = 16;

    private final MessageDigest digest;
    private final ByteBuffer numbers = ByteBuffer.allocate(3 * Long.BYTES);
    private final Map<ByteBuffer, Integer> seen = new HashMap<>();

    VerdictIds() {
        try {
            digest = MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException error) {
            throw new RondelException("this Java has no SHA-256", error);
        }
    }

    /** Begins a watermark. */
    void clear() {
        seen.clear();
    }

    String of(Monitor.Report report) {
        add(report.property());
        add(report.key());
        numbers.clear();
        numbers.putLong(report.time()).putLong(report.about()).putLong(report.verdict() * 2L + (report.isAfter() ? 1 : 0));
        digest.update(numbers.array());
        byte[] id = digest.digest();
        int before = seen.merge(ByteBuffer.wrap(id), 1, Integer::sum) - 1;
        if (before > 0) {
            digest.update(id);
            digest.update(ByteBuffer.allocate(Integer.BYTES).putInt(before).array());
            id = digest.digest();
        }
        return HexFormat.of().formatHex(id, 0, LENGTH);
    }

    private void add(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        digest.update(ByteBuffer.allocate(Integer.BYTES).putInt(bytes.length).array());
        digest.update(bytes);
    }
}
