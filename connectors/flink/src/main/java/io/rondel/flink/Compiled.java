package io.rondel.flink;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** A specification compiled by the native library, from which monitors are opened. */
final class Compiled implements AutoCloseable {
    private final Specification specification;
    private long handle;

    private Compiled(Specification specification, long handle) {
        this.specification = specification;
        this.handle = handle;
    }

    /** Compiles a specification. The error has its diagnostics. */
    static Compiled of(Specification specification) {
        long[] out = new long[1];
        int status = Native.specificationCompile(specification.text().getBytes(StandardCharsets.UTF_8), out);
        Compiled compiled = new Compiled(specification, out[0]);
        if (status == Native.OK) {
            return compiled;
        }
        try (compiled) {
            String rendered = out[0] == 0 ? "" : Monitor.text(Native.specificationRendered(out[0]));
            throw new RondelException(
                    "the specification has mistakes:\n" + (rendered.isEmpty() ? Monitor.lastError() : rendered));
        }
    }

    Specification specification() {
        return specification;
    }

    long handle() {
        return handle;
    }

    /** Returns the names of the topics. */
    List<String> topics() {
        List<String> topics = new ArrayList<>();
        ByteBuffer all = ByteBuffer.wrap(Native.specificationTopics(handle)).order(ByteOrder.nativeOrder());
        while (all.hasRemaining()) {
            topics.add(Monitor.text(all));
        }
        return topics;
    }

    @Override
    public void close() {
        long own = handle;
        handle = 0;
        Native.specificationFree(own);
    }
}
