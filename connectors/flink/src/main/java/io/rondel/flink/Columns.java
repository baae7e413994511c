package io.rondel.flink;

import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.flink.table.types.logical.ArrayType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.RowType;

/** Types of a table's columns as formats of the Arrow C data interface, by which the library checks them. */
final class Columns {
    private static final String STRUCTURE = "+s";
    private static final String LIST = "+l";
    /** The format of bytes stands for every type without a form in a message. */
    private static final String OTHER = "z";

    private final StringBuilder text = new StringBuilder();

    private Columns() {}

    /** Returns the columns of a row, as {@code columns.h} describes them. */
    static byte[] encoded(RowType row) {
        Columns columns = new Columns();
        columns.add("", row);
        return columns.text.toString().getBytes(StandardCharsets.UTF_8);
    }

    private void add(String name, LogicalType type) {
        if (type instanceof RowType row) {
            begin(STRUCTURE, name, row.getFieldCount());
            List<RowType.RowField> fields = row.getFields();
            fields.forEach(field -> add(field.getName(), field.getType()));
        } else if (type instanceof ArrayType array) {
            begin(LIST, name, 1);
            add("item", array.getElementType());
        } else {
            begin(format(type), name, 0);
        }
    }

    private void begin(String format, String name, int children) {
        // A name with a NUL would end there.
        text.append(format).append('\0').append(name.replace('\0', ' ')).append('\0').append(children).append('\0');
    }

    private static String format(LogicalType type) {
        return switch (type.getTypeRoot()) {
            case BOOLEAN -> "b";
            case TINYINT -> "c";
            case SMALLINT -> "s";
            case INTEGER -> "i";
            case BIGINT -> "l";
            case FLOAT -> "f";
            case DOUBLE, DECIMAL -> "g";
            case CHAR, VARCHAR -> "u";
            case TIMESTAMP_WITHOUT_TIME_ZONE, TIMESTAMP_WITH_LOCAL_TIME_ZONE -> "tsn:";
            default -> OTHER;
        };
    }
}
