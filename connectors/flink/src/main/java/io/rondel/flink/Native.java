package io.rondel.flink;

import java.nio.ByteBuffer;

/** The functions of {@code rondel.h}: see {@code src/main/c/rondel_jni.c}. */
final class Native {
    /** The version of the C interface that this class is written for. */
    static final int ABI_VERSION = 1;

    static final int OK = 0;
    static final int END = 1;
    static final int ERROR_ARGUMENT = -1;
    static final int ERROR_MESSAGE = -3;

    private Native() {}

    static native int abiVersion();

    static native byte[] lastError();

    static native int keyHash(byte[] parameters, long[] out);

    static native int specificationCompile(byte[] source, long[] out);

    static native byte[] specificationRendered(long specification);

    static native byte[] specificationTopics(long specification);

    static native void specificationFree(long specification);

    /** Opens a monitor: from the beginning if {@code saved} is null, else from one whole snapshot or from parts. */
    static native int monitorOpen(
            long specification, long[] numbers, byte[][] texts, byte[][] saved, boolean isWhole, long[] out);

    static native void monitorFree(long monitor);

    static native int monitorTopic(long monitor, byte[] name, long[] out);

    static native int monitorPush(long monitor, ByteBuffer direct, int count, long[] out);

    static native int monitorAdvance(long monitor, long time);

    static native int monitorDeadline(long monitor, long[] out);

    static native int monitorCheckColumns(long monitor, long topic, byte[] time, byte[] columns);

    static native int monitorFinish(long monitor);

    static native byte[] monitorReports(long monitor);

    static native byte[] monitorNotices(long monitor);

    static native byte[] monitorSnapshot(long monitor);

    static native byte[][] monitorSnapshotParts(long monitor, long[] cuts);
}
