package io.rondel.flink;

/** A message that waits for the watermark; sorted by time, then by arrival. */
record Waiting(long time, long sequence, String topic, byte[] payload, long keyHash) implements Comparable<Waiting> {
    /** Nanoseconds of a millisecond. */
    static final long MILLISECOND = 1_000_000;

    @Override
    public int compareTo(Waiting other) {
        int byTime = Long.compare(time, other.time);
        return byTime != 0 ? byTime : Long.compare(sequence, other.sequence);
    }

    /** The message that came. */
    Message message() {
        return new Message(topic, payload, keyHash, time);
    }

    /** The time as Flink has it. */
    long millis() {
        return Math.floorDiv(time, MILLISECOND);
    }
}
