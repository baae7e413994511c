package io.rondel.flink;

/** The verdicts that are emitted. */
public enum Emit {
    /** A verdict that differs from the one before it, and the first of each instance. */
    CHANGE,
    /** A verdict for every message and property. */
    EVERY,
    /** A verdict that becomes violated. */
    VIOLATIONS
}
