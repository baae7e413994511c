package io.rondel.flink;

import java.util.ArrayList;
import java.util.List;

/** The values of the parameters of a verdict, read from its key, a flat JSON object that the library writes. */
final class Parameters {
    private final String json;
    private int at;

    private Parameters(String json) {
        this.json = json;
    }

    /** Returns the values in the order of {@code for each}. */
    static List<Object> of(String json) {
        return new Parameters(json).read();
    }

    private List<Object> read() {
        List<Object> values = new ArrayList<>();
        at = 1;
        while (json.charAt(at) != '}') {
            text();
            at++; // the colon
            values.add(value());
            at += json.charAt(at) == ',' ? 1 : 0;
        }
        return values;
    }

    private Object value() {
        if (json.charAt(at) == '"') {
            return text();
        }
        int start = at;
        while (json.charAt(at) != ',' && json.charAt(at) != '}') {
            at++;
        }
        String word = json.substring(start, at);
        if (word.equals("true") || word.equals("false")) {
            return word.equals("true");
        }
        boolean isFloat = word.contains(".") || word.contains("e") || word.contains("E");
        return isFloat ? (Object) Double.valueOf(word) : (Object) Long.valueOf(word);
    }

    private String text() {
        StringBuilder text = new StringBuilder();
        at++;
        while (json.charAt(at) != '"') {
            char next = json.charAt(at++);
            if (next != '\\') {
                text.append(next);
                continue;
            }
            char escaped = json.charAt(at++);
            switch (escaped) {
                case 'b' -> text.append('\b');
                case 'f' -> text.append('\f');
                case 'n' -> text.append('\n');
                case 'r' -> text.append('\r');
                case 't' -> text.append('\t');
                case 'u' -> {
                    text.append((char) Integer.parseInt(json.substring(at, at + 4), 16));
                    at += 4;
                }
                default -> text.append(escaped);
            }
        }
        at++;
        return text.toString();
    }
}
