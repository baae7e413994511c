package io.rondel.flink;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.functions.TableSemantics;
import org.apache.flink.table.types.inference.CallContext;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.utils.LogicalTypeChecks;
import org.apache.flink.types.Row;

/**
 * A call of {@link RondelTableFunction}, as the planner knows it.
 *
 * @param specification the specification with its options
 * @param topic the topic of which the rows are messages
 * @param keyColumns the names of the columns of {@code PARTITION BY}
 */
record TableCall(Specification specification, String topic, List<String> keyColumns) implements Serializable {
    private static final int INPUT = 0;
    private static final int SPEC = 1;
    private static final int TOPIC = 2;
    private static final int EXPLANATIONS = 3;

    /** Checks the specification and the columns. */
    static void check(CallContext context) {
        try {
            of(context);
        } catch (RondelException error) {
            throw new ValidationException("RONDEL: " + error.getMessage(), error);
        }
    }

    /** Reads a call, and checks it. */
    static TableCall of(CallContext context) {
        String text = context.getArgumentValue(SPEC, String.class)
                .orElseThrow(() -> new RondelException("`spec` must be a text in quotes, known before the job starts"));
        Specification specification = Specification.of(text);
        if (context.getArgumentValue(EXPLANATIONS, Boolean.class).orElse(false)) {
            specification = specification.withExplanations();
        }
        TableSemantics table = context.getTableSemantics(INPUT)
                .orElseThrow(() -> new RondelException("`input` must be a table"));
        RowType row = (RowType) table.dataType().getLogicalType();
        NativeLibrary.load();
        String topic;
        try (Compiled compiled = Compiled.of(specification);
                Monitor monitor = Monitor.open(compiled)) {
            topic = topic(compiled, context.getArgumentValue(TOPIC, String.class).orElse(null));
            long found = monitor.topic(topic);
            if (found == Monitor.UNKNOWN) {
                throw new RondelException("the specification has no topic '" + topic + "'; it has "
                        + String.join(", ", compiled.topics()));
            }
            monitor.checkColumns(found, timeColumn(row), Columns.encoded(row));
        }
        List<String> key = new ArrayList<>();
        for (int column : table.partitionByColumns()) {
            key.add(row.getFieldNames().get(column));
        }
        return new TableCall(specification, topic, key);
    }

    private static String topic(Compiled compiled, String named) {
        if (named != null) {
            return named;
        }
        List<String> topics = compiled.topics();
        if (topics.size() != 1) {
            throw new RondelException("the specification has the topics " + String.join(", ", topics)
                    + ": name the one of which the rows are messages, as in topic => '"
                    + (topics.isEmpty() ? "telemetry" : topics.get(0)) + "'");
        }
        return topics.get(0);
    }

    /** Returns the first column with the table's time; {@code on_time} selects the one that is used. */
    private static String timeColumn(RowType row) {
        return row.getFields().stream()
                .filter(field -> LogicalTypeChecks.isTimeAttribute(field.getType()))
                .map(RowType.RowField::getName)
                .findFirst()
                .orElseThrow(() -> new RondelException("the table has no column with a watermark, which on_time needs"));
    }

    /** Whether a row has all values of its key. */
    boolean hasKey(Row row) {
        return keyColumns.stream().allMatch(column -> row.getField(column) != null);
    }

    /** Returns the hash of the key of a row. */
    long keyHash(Row row) {
        return KeyHash.of(keyColumns.stream().map(row::getField).toList());
    }
}
