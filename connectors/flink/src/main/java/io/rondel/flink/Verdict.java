package io.rondel.flink;

import java.io.Serializable;
import java.math.BigDecimal;

/** A verdict on a property. */
public class Verdict implements Serializable {
    private static final long serialVersionUID = 1;

    /** Names of the verdicts, by the constants of the C interface. */
    private static final String[] NAMES = {"satisfied", "violated", "inconclusive"};

    /**
     * The id, the same in every run over the same messages: a sink that keeps one verdict for each id has none twice after a
     * restore. It does not depend on the parallelism, apart from inconclusive verdicts at the end of the input.
     */
    public String id;

    /** The name of the property. */
    public String property;

    /** The value of {@code @severity}; empty without it. */
    public String severity;

    /** The parameters of {@code for each} as a JSON object; empty without any. */
    public String key;

    /** {@code satisfied}, {@code violated} or {@code inconclusive}. */
    public String verdict;

    /** The time in nanoseconds at which the verdict became certain. */
    public long timeNanos;

    /** The time in nanoseconds that the verdict is about. */
    public long aboutNanos;

    /** Whether the verdict is about the open interval after {@link #aboutNanos}. */
    public boolean isAfter;

    /** The robustness with {@code @robust}; otherwise NaN. */
    public double robustness;

    /** The explanation of a violation as JSON; empty unless {@link Specification#withExplanations} was called. */
    public String explanation;

    /** Returns the verdict that the library reported. */
    static Verdict of(Monitor.Report report, String id) {
        Verdict verdict = new Verdict();
        verdict.id = id;
        verdict.property = report.property();
        verdict.severity = report.severity();
        verdict.key = report.key();
        verdict.verdict = name(report.verdict());
        verdict.timeNanos = report.time();
        verdict.aboutNanos = report.about();
        verdict.isAfter = report.isAfter();
        verdict.robustness = report.robustness();
        verdict.explanation = report.explanation();
        return verdict;
    }

    /** Whether the property is violated. */
    public boolean isViolated() {
        return NAMES[1].equals(verdict);
    }

    private static String name(int constant) {
        return constant >= 0 && constant < NAMES.length ? NAMES[constant] : "unknown";
    }

    @Override
    public String toString() {
        return verdict + " " + property + (key.isEmpty() ? "" : " " + key) + " at " + seconds(timeNanos) + " s";
    }

    /** Returns nanoseconds as seconds, without trailing zeros. */
    static String seconds(long nanos) {
        return BigDecimal.valueOf(nanos, 9).stripTrailingZeros().toPlainString();
    }
}
