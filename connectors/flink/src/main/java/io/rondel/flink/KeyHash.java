package io.rondel.flink;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/** The hash of the parameters of an instance, as {@code key_hash} of the engine defines it for every release. */
final class KeyHash {
    /** All hashes are below it. */
    static final long HASHES = 1L << 32;

    private static final long OFFSET = 0xcbf29ce484222325L;
    private static final long PRIME = 0x100000001b3L;

    private KeyHash() {}

    static long of(Object... parameters) {
        return of(Arrays.asList(parameters));
    }

    static long of(List<?> parameters) {
        long hash = OFFSET;
        for (Object value : parameters) {
            if (value instanceof CharSequence text) {
                byte[] bytes = text.toString().getBytes(StandardCharsets.UTF_8);
                hash = add(hash, bytes.length);
                for (byte one : bytes) {
                    hash = (hash ^ (one & 0xff)) * PRIME;
                }
            } else {
                hash = add(hash, number(value));
            }
        }
        return ((hash ^ hash >>> 32) * 0x9E37_79B9_7F4A_7C15L) >>> 32;
    }

    private static long number(Object value) {
        if (value instanceof Boolean flag) {
            return flag ? 1 : 0;
        }
        if (value instanceof Double || value instanceof Float) {
            return Double.doubleToRawLongBits(((Number) value).doubleValue());
        }
        if (value instanceof Long || value instanceof Integer || value instanceof Short || value instanceof Byte) {
            return ((Number) value).longValue();
        }
        throw new RondelException("a key has " + (value == null ? "null" : "a value of " + value.getClass())
                + ": use texts, integers, floats and booleans");
    }

    private static long add(long hash, long number) {
        for (int i = 0; i < 64; i += 8) {
            hash = (hash ^ (number >>> i & 0xff)) * PRIME;
        }
        return hash;
    }
}
