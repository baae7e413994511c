package io.rondel.flink;

import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.Set;
import org.apache.flink.types.Row;

/**
 * Writes rows as messages in JSON: a value that is null is a field that is not there, a point in time is seconds since 1970, and
 * values of types without a form in a message are left out.
 */
final class RowWriter {
    private static final int NANOSECOND_DIGITS = 9;

    private final StringBuilder text = new StringBuilder();

    /** Returns a row as a message. */
    byte[] write(Row row) {
        text.setLength(0);
        object(row);
        return text.toString().getBytes(StandardCharsets.UTF_8);
    }

    private void object(Row row) {
        text.append('{');
        int begin = text.length();
        Set<String> names = row.getFieldNames(true);
        for (String name : names) {
            Object value = row.getField(name);
            if (value == null || !hasForm(value)) {
                continue;
            }
            if (text.length() > begin) {
                text.append(',');
            }
            quoted(name);
            text.append(':');
            value(value);
        }
        text.append('}');
    }

    private static boolean hasForm(Object value) {
        return value instanceof Boolean
                || value instanceof Number
                || value instanceof CharSequence
                || value instanceof Instant
                || value instanceof LocalDateTime
                || value instanceof Row
                || value.getClass().isArray() && !(value instanceof byte[]);
    }

    private void value(Object value) {
        if (value == null || !hasForm(value)) {
            text.append("null");
        } else if (value instanceof Double || value instanceof Float) {
            number(((Number) value).doubleValue());
        } else if (value instanceof BigDecimal number) {
            text.append(number.toPlainString());
        } else if (value instanceof Boolean || value instanceof Number) {
            text.append(value);
        } else if (value instanceof Instant time) {
            seconds(time);
        } else if (value instanceof LocalDateTime time) {
            seconds(time.toInstant(ZoneOffset.UTC));
        } else if (value instanceof Row row) {
            object(row);
        } else if (value instanceof CharSequence characters) {
            quoted(characters);
        } else {
            list(value);
        }
    }

    private void list(Object array) {
        text.append('[');
        int length = java.lang.reflect.Array.getLength(array);
        for (int i = 0; i < length; i++) {
            if (i > 0) {
                text.append(',');
            }
            value(java.lang.reflect.Array.get(array, i));
        }
        text.append(']');
    }

    private void number(double number) {
        if (Double.isInfinite(number)) {
            // The nearest text that is read as infinity.
            text.append(number > 0 ? "1e999" : "-1e999");
        } else {
            text.append(number);
        }
    }

    private void seconds(Instant time) {
        BigDecimal nanos = BigDecimal.valueOf(time.getNano(), NANOSECOND_DIGITS);
        text.append(BigDecimal.valueOf(time.getEpochSecond()).add(nanos).toPlainString());
    }

    private void quoted(CharSequence characters) {
        text.append('"');
        for (int i = 0; i < characters.length(); i++) {
            char one = characters.charAt(i);
            if (one == '"' || one == '\\') {
                text.append('\\').append(one);
            } else if (one < ' ') {
                text.append(String.format("\\u%04x", (int) one));
            } else {
                text.append(one);
            }
        }
        text.append('"');
    }
}
