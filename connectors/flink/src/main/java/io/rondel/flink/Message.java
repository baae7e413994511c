package io.rondel.flink;

import java.io.Serializable;

/** A message for {@link RondelFunctions#check}: a topic of the specification, a payload, and the hash of its key. */
public class Message implements Serializable {
    private static final long serialVersionUID = 1;

    /** {@link #nanos} of a message whose time is Flink's timestamp of the record. */
    public static final long NO_TIME = Long.MIN_VALUE;

    /** The name of the topic in the specification, or a name that matches its address. */
    public String topic;

    /** The payload, in the encoding of the topic. */
    public byte[] payload;

    /** The hash of the parameters of {@code for each}. */
    public long keyHash;

    /** The time in nanoseconds, or {@link #NO_TIME}. */
    public long nanos = NO_TIME;

    /** Creates an empty message, for Flink's serialisers. */
    public Message() {}

    Message(String topic, byte[] payload, long keyHash, long nanos) {
        this.topic = topic;
        this.payload = payload;
        this.keyHash = keyHash;
        this.nanos = nanos;
    }

    /**
     * Returns a message whose time is Flink's timestamp of the record.
     *
     * @param key the values of the parameters of {@code for each}, in their order: texts, integers, floats, booleans
     */
    public static Message of(String topic, byte[] payload, Object... key) {
        return new Message(topic, payload, KeyHash.of(key), NO_TIME);
    }

    /** Returns the message with a time of its own; in milliseconds, it must be Flink's timestamp of the record. */
    public Message at(long nanos) {
        return new Message(topic, payload, keyHash, nanos);
    }

    @Override
    public String toString() {
        return "Message on " + topic + ", " + (payload == null ? 0 : payload.length) + " bytes";
    }
}
