package io.rondel.flink;

import java.io.IOException;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A fleet whose events are a function of their number: events of all vehicles in turn, 10 ms apart, with planted faults. */
final class Fleet implements Serializable {
    private static final long serialVersionUID = 1;

    static final String TEXT =
            """
            topic telemetry { vehicle: string, speed: float, brake: bool }
            @severity("high")
            property stops for each v in telemetry.vehicle =
                telemetry.speed > 30 -> eventually[0, 2 s] telemetry.brake
            property calm for each v in telemetry.vehicle = once[0, 3 s] telemetry.brake or telemetry.speed < 35
            """;

    static final int VEHICLES = 53;
    static final long STEP_MILLIS = 10;

    /** Positions within which {@link #shuffled} moves events. */
    static final int SHUFFLE = 8_192;

    /** An event. */
    record Event(long millis, String vehicle, double speed, boolean brake) {
        String payload() {
            return String.format(
                    Locale.ROOT, "{\"vehicle\":\"%s\",\"speed\":%.1f,\"brake\":%b}", vehicle, speed, brake);
        }

        String line() {
            return String.format(
                    Locale.ROOT, "{\"topic\":\"telemetry\",\"time\":%.3f,\"data\":%s}", millis / 1e3, payload());
        }

        Message message() {
            return Message.of("telemetry", payload().getBytes(StandardCharsets.UTF_8), vehicle);
        }
    }

    private final int[] order;

    Fleet() {
        Random random = new Random(7);
        order = new int[SHUFFLE];
        for (int i = 0; i < SHUFFLE; i++) {
            int other = random.nextInt(i + 1);
            order[i] = order[other];
            order[other] = i;
        }
    }

    Event event(long number) {
        long chance = (number + 1) * 0x9E37_79B9_7F4A_7C15L;
        chance = (chance ^ chance >>> 31) * 0xBF58_476D_1CE4_E5B9L;
        chance ^= chance >>> 29;
        double speed = (chance >>> 8 & 1023) / 1023.0 * 31;
        if ((chance >>> 32 & 63) == 0) {
            speed += 9;
        }
        boolean brake = (chance >>> 40 & 3) == 0;
        return new Event((number + 1) * STEP_MILLIS, "r" + number % VEHICLES, Math.round(speed * 10) / 10.0, brake);
    }

    /** Returns the number of the event at a position of the shuffled stream. */
    long shuffled(long position) {
        return position / SHUFFLE * SHUFFLE + order[(int) (position % SHUFFLE)];
    }

    /**
     * A verdict for comparison: property, key, verdict, the time that it is about and that at which it became certain. Open
     * verdicts become inconclusive at the last message, which is another one in each subtask.
     */
    private static String shown(String property, String key, String time, String about, String verdict) {
        String shown = property + key + " " + verdict;
        return verdict.equals("inconclusive") ? shown : shown + " at " + time + " about " + about;
    }

    static String shown(Verdict verdict) {
        return shown(
                verdict.property,
                verdict.key,
                Verdict.seconds(verdict.timeNanos),
                Verdict.seconds(verdict.aboutNanos),
                verdict.verdict);
    }

    /** Returns the time of a verdict that {@link #shown(Verdict)} returned; the greatest for inconclusive ones. */
    static long nanos(String shown) {
        int at = shown.indexOf(" at ");
        if (at < 0) {
            return Long.MAX_VALUE;
        }
        String seconds = shown.substring(at + " at ".length(), shown.indexOf(" about "));
        return new java.math.BigDecimal(seconds).movePointRight(9).longValueExact();
    }

    /** Asserts that verdicts are the expected ones, in any order. */
    static void assertSame(List<String> expected, List<Verdict> verdicts) {
        List<String> missing = new ArrayList<>(expected);
        List<String> surplus = new ArrayList<>();
        verdicts.stream().map(Fleet::shown).sorted().forEach(shown -> {
            if (!missing.remove(shown)) {
                surplus.add(shown);
            }
        });
        if (!missing.isEmpty() || !surplus.isEmpty()) {
            throw new AssertionError("of " + expected.size() + " verdicts, missing are " + missing.size() + ": "
                    + missing.subList(0, Math.min(9, missing.size())) + ", and surplus " + surplus.size() + ": "
                    + surplus.subList(0, Math.min(9, surplus.size())));
        }
    }

    /** The verdicts of the command over the first events in their order. */
    List<String> expected(Path folder, String text, long count) throws IOException, InterruptedException {
        List<String> lines = new ArrayList<>();
        for (long number = 0; number < count; number++) {
            lines.add(event(number).line());
        }
        return expected(folder, text, lines);
    }

    /** The verdicts of the command over lines, with further options. */
    static List<String> expected(Path folder, String text, List<String> lines, String... options)
            throws IOException, InterruptedException {
        Path specification = Files.writeString(folder.resolve("spec.rondel"), text);
        Path trace = Files.write(folder.resolve("trace.jsonl"), lines);
        Path output = folder.resolve("verdicts.jsonl");
        String program = System.getProperty("rondel.program");
        if (program == null || program.isEmpty()) {
            throw new IllegalStateException("-Drondel.program is not set: run `make test-flink`");
        }
        List<String> call = new ArrayList<>(List.of(program, "check", "--quiet", "--format", "json"));
        call.addAll(List.of(options));
        call.addAll(List.of(specification.toString(), trace.toString()));
        Process process = new ProcessBuilder(call)
                .redirectOutput(output.toFile())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        int code = process.waitFor();
        if (code > 1) {
            throw new IllegalStateException("rondel check ended with " + code);
        }
        return Files.readAllLines(output).stream().map(Fleet::ofLine).sorted().toList();
    }

    private static final Pattern LINE =
            Pattern.compile("\\{\"property\":\"(\\w+)\"(?:,\"severity\":\"\\w+\")?,\"key\":(\\{[^}]*\\}),"
                    + "\"time\":([0-9.]+)(?:,\"about\":([0-9.]+))?.*\"verdict\":\"(\\w+)\".*");

    private static String ofLine(String line) {
        Matcher found = LINE.matcher(line);
        if (!found.matches()) {
            throw new IllegalStateException(line);
        }
        String about = found.group(4) == null ? found.group(3) : found.group(4);
        return shown(found.group(1), found.group(2), found.group(3), about, found.group(5));
    }
}
