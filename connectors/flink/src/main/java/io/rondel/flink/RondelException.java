package io.rondel.flink;

/** An error of a specification, a snapshot or the native library, in a sentence. */
public class RondelException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** Creates an exception with a sentence. */
    public RondelException(String message) {
        super(message);
    }

    /** Creates an exception with a sentence and a cause. */
    public RondelException(String message, Throwable cause) {
        super(message, cause);
    }
}
