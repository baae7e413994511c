package io.rondel.flink;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** A specification with the options of its evaluation. Immutable: the methods return changed copies. */
public final class Specification implements Serializable {
    private static final long serialVersionUID = 1;

    /** The smallest and the largest number of messages that are evaluated together. */
    static final int LEAST_BATCH = 1;

    static final int GREATEST_BATCH = 65_536;

    /** A topic with an encoding or a type of its own. */
    private record Input(String topic, Encoding encoding, String type, byte[] definition) implements Serializable {}

    private final String text;
    private final List<Input> inputs = new ArrayList<>();
    private Encoding encoding = Encoding.JSON;
    private Emit emit = Emit.CHANGE;
    private boolean explain;
    private long instanceBytes;
    private int batch = 1_024;
    private Duration flushAfter = Duration.ofMillis(5);
    private int maxParallelism = 128;

    private Specification(String text) {
        this.text = text;
    }

    /** Returns a specification of this text, in which each property has {@code for each} over the key of the messages. */
    public static Specification of(String text) {
        return new Specification(text);
    }

    private Specification copy() {
        return withText(text);
    }

    /** Returns a specification with another text and the same options. */
    Specification withText(String text) {
        Specification copy = new Specification(text);
        copy.inputs.addAll(inputs);
        copy.encoding = encoding;
        copy.emit = emit;
        copy.explain = explain;
        copy.instanceBytes = instanceBytes;
        copy.batch = batch;
        copy.flushAfter = flushAfter;
        copy.maxParallelism = maxParallelism;
        return copy;
    }

    /** Sets the encoding of topics without one of their own: JSON by default. */
    public Specification withEncoding(Encoding encoding) {
        Specification copy = copy();
        copy.encoding = encoding;
        return copy;
    }

    /**
     * Sets the encoding of a topic.
     *
     * @param type the name of the message type, for CDR, Protobuf and FlatBuffers; otherwise empty
     * @param definition IDL, a FileDescriptorSet or a binary schema; null for common types of ROS 2
     */
    public Specification withInput(String topic, Encoding encoding, String type, byte[] definition) {
        Specification copy = copy();
        copy.inputs.add(new Input(topic, encoding, type, definition));
        return copy;
    }

    /** Sets which verdicts are emitted: changes by default. */
    public Specification withEmit(Emit emit) {
        Specification copy = copy();
        copy.emit = emit;
        return copy;
    }

    /** Explains violations. */
    public Specification withExplanations() {
        Specification copy = copy();
        copy.explain = true;
        return copy;
    }

    /** Limits the memory of the instances of a subtask, in bytes. */
    public Specification withInstanceBytes(long bytes) {
        Specification copy = copy();
        copy.instanceBytes = bytes;
        return copy;
    }

    /** Sets how many messages are evaluated together: 1,024 by default. */
    public Specification withBatch(int messages) {
        if (messages < LEAST_BATCH || messages > GREATEST_BATCH) {
            throw new IllegalArgumentException(
                    "a batch of " + messages + " messages: use " + LEAST_BATCH + " to " + GREATEST_BATCH);
        }
        Specification copy = copy();
        copy.batch = messages;
        return copy;
    }

    /** Sets how long messages that are due wait for others of their batch: 5 ms by default. With zero, they never do. */
    public Specification withFlushAfter(Duration time) {
        if (time.isNegative()) {
            throw new IllegalArgumentException("a flush after " + time + ": use zero or more");
        }
        Specification copy = copy();
        copy.flushAfter = time;
        return copy;
    }

    /** Sets the greatest parallelism of the job's life, which is the number of parts of its state: 128 by default. */
    public Specification withMaxParallelism(int subtasks) {
        if (subtasks < 1 || subtasks > 1 << 15) {
            throw new IllegalArgumentException("a maximum parallelism of " + subtasks + ": use 1 to 32768");
        }
        Specification copy = copy();
        copy.maxParallelism = subtasks;
        return copy;
    }

    String text() {
        return text;
    }

    Emit emit() {
        return emit;
    }

    boolean explain() {
        return explain;
    }

    int batch() {
        return batch;
    }

    long flushAfterMillis() {
        return flushAfter.toMillis();
    }

    int maxParallelism() {
        return maxParallelism;
    }

    /** The options that are numbers, as the native methods take them. Violations are selected in Java. */
    long[] numbers() {
        long[] numbers = new long[4 + inputs.size()];
        numbers[0] = emit == Emit.EVERY ? 1 : 0;
        numbers[1] = encoding.ordinal();
        numbers[2] = explain ? 1 : 0;
        numbers[3] = instanceBytes;
        for (int i = 0; i < inputs.size(); i++) {
            numbers[4 + i] = inputs.get(i).encoding().ordinal();
        }
        return numbers;
    }

    /** The options that are texts: topic, type and definition of each input. */
    byte[][] texts() {
        byte[][] texts = new byte[3 * inputs.size()][];
        for (int i = 0; i < inputs.size(); i++) {
            Input input = inputs.get(i);
            texts[3 * i] = input.topic().getBytes(StandardCharsets.UTF_8);
            texts[3 * i + 1] = (input.type() == null ? "" : input.type()).getBytes(StandardCharsets.UTF_8);
            texts[3 * i + 2] = input.definition();
        }
        return texts;
    }

    /** Returns the specification that a snapshot was written with. */
    Specification asSaved(String text, boolean explain) {
        Specification saved = withText(text);
        saved.explain = explain;
        return saved;
    }
}
