package io.rondel.flink;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.runtime.state.SnappyStreamCompressionDecorator;

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
    /** Versions of the form: as it is, and compressed. */
    private static final int PLAIN = 1;

    private static final int COMPRESSED = 2;

    /** Writes the group, and returns the number of bytes. Its stream has no end of its own, so that every length is written. */
    long write(OutputStream to, boolean isCompressed) throws IOException {
        DataOutputStream out = new DataOutputStream(to);
        out.writeInt(isCompressed ? COMPRESSED : PLAIN);
        if (isCompressed) {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            try (OutputStream compressing = SnappyStreamCompressionDecorator.INSTANCE.decorateWithCompression(bytes)) {
                writeContent(new DataOutputStream(compressing));
            }
            out.writeInt(bytes.size());
            bytes.writeTo(out);
        } else {
            writeContent(out);
        }
        out.flush();
        return out.size();
    }

    private void writeContent(DataOutputStream out) throws IOException {
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
        if (version != PLAIN && version != COMPRESSED) {
            throw new RondelException("the state has version " + version + ", and this connector reads " + PLAIN + " and "
                    + COMPRESSED);
        }
        if (version == PLAIN) {
            return readContent(group, in, sequence);
        }
        InputStream bytes = new ByteArrayInputStream(bytes(in));
        try (InputStream content = SnappyStreamCompressionDecorator.INSTANCE.decorateWithCompression(bytes)) {
            return readContent(group, new DataInputStream(content), sequence);
        }
    }

    private static SavedGroup readContent(int group, DataInputStream in, long sequence) throws IOException {
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
