package io.rondel.flink;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * The state of a key group.
 *
 * @param group the number of the key group
 * @param origin identifies the monitor and the checkpoint: parts with the same one fit together as they are
 * @param time the time up to which the monitor had advanced, or {@link Message#NO_TIME}
 * @param part the part of the snapshot
 * @param waiting messages that wait for the watermark
 */
record SavedGroup(int group, long origin, long time, byte[] part, List<Waiting> waiting) {
    private static final int VERSION = 1;

    /** Writes the group. The stream of a key group has no end of its own, so that every length is written. */
    void write(OutputStream to) throws IOException {
        DataOutputStream out = new DataOutputStream(to);
        out.writeInt(VERSION);
        out.writeLong(origin);
        out.writeLong(time);
        out.writeInt(part.length);
        out.write(part);
        out.writeInt(waiting.size());
        for (Waiting message : waiting) {
            out.writeLong(message.time());
            out.writeLong(message.keyHash());
            byte[] topic = message.topic().getBytes(StandardCharsets.UTF_8);
            out.writeInt(topic.length);
            out.write(topic);
            out.writeInt(message.payload().length);
            out.write(message.payload());
        }
        out.flush();
    }

    /** Reads a group; its messages are numbered from {@code sequence}. */
    static SavedGroup read(int group, InputStream from, long sequence) throws IOException {
        DataInputStream in = new DataInputStream(from);
        int version = in.readInt();
        if (version != VERSION) {
            throw new RondelException("the state has version " + version + ", and this connector reads " + VERSION);
        }
        long origin = in.readLong();
        long time = in.readLong();
        byte[] part = bytes(in);
        int count = in.readInt();
        List<Waiting> waiting = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            long at = in.readLong();
            long keyHash = in.readLong();
            String topic = new String(bytes(in), StandardCharsets.UTF_8);
            waiting.add(new Waiting(at, sequence + i, topic, bytes(in), keyHash));
        }
        return new SavedGroup(group, origin, time, part, waiting);
    }

    private static byte[] bytes(DataInputStream in) throws IOException {
        byte[] bytes = new byte[in.readInt()];
        in.readFully(bytes);
        return bytes;
    }
}
