package io.rondel.flink;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Messages for one call of the native library: records of fixed size, and their payloads after the space for all records. */
final class Batch {
    private static final int RECORD = 24;
    private static final int PAYLOAD = 256;

    private final int size;
    private ByteBuffer bytes;
    private int count;
    /** The end of the last payload. */
    private int end;

    Batch(int size) {
        this.size = size;
        bytes = allocate(size * (RECORD + PAYLOAD));
        clear();
    }

    private static ByteBuffer allocate(int length) {
        return ByteBuffer.allocateDirect(length).order(ByteOrder.nativeOrder());
    }

    int count() {
        return count;
    }

    boolean isFull() {
        return count == size;
    }

    ByteBuffer bytes() {
        return bytes;
    }

    void clear() {
        count = 0;
        end = size * RECORD;
    }

    /** Adds a message; topics are those of {@link Monitor#topic}. */
    void add(long time, long topic, byte[] payload) {
        if (bytes.capacity() - end < payload.length) {
            grow(payload.length);
        }
        int at = count * RECORD;
        bytes.putLong(at, time);
        bytes.putInt(at + 8, (int) topic);
        bytes.putInt(at + 12, (int) (topic >>> 32));
        bytes.putInt(at + 16, end);
        bytes.putInt(at + 20, payload.length);
        bytes.put(end, payload);
        end += payload.length;
        count++;
    }

    private void grow(int length) {
        long wanted = Math.max((long) end + length, 2L * bytes.capacity());
        if ((long) end + length > Integer.MAX_VALUE - 8) {
            throw new RondelException("a batch of " + count + " messages is larger than 2 GiB: use smaller batches");
        }
        ByteBuffer larger = allocate((int) Math.min(wanted, Integer.MAX_VALUE - 8));
        larger.put(0, bytes, 0, end);
        bytes = larger;
    }
}
