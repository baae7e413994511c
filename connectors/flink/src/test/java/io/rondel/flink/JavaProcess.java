package io.rondel.flink;

import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/** A program in Java in a process of its own, on loopback; killed at the end of a test. */
final class JavaProcess implements AutoCloseable {
    private static final long PATIENCE_SECONDS = 120;

    private final Process process;
    private final Path log;

    private JavaProcess(Process process, Path log) {
        this.process = process;
        this.log = log;
    }

    /** Starts a program; its output is appended to {@code NAME.log}. */
    static JavaProcess start(String name, Path folder, String classpath, List<String> options, List<String> call)
            throws IOException {
        Path log = folder.resolve(name + ".log");
        List<String> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString()));
        command.addAll(options);
        command.addAll(List.of("-cp", classpath));
        command.addAll(call);
        Process process = new ProcessBuilder(command)
                .directory(folder.toFile())
                .redirectInput(new File("/dev/null"))
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile()))
                .start();
        // Also when the tests are interrupted.
        Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
        return new JavaProcess(process, log);
    }

    /** Waits for the end of the program, which must be a success. */
    void finish() throws IOException, InterruptedException {
        if (!process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS) || process.exitValue() != 0) {
            throw new IllegalStateException(log());
        }
    }

    /** Waits until the program listens on a port. */
    void waitForPort(int port) throws IOException {
        waitUntil("port " + port, () -> {
            if (!process.isAlive()) {
                throw new IllegalStateException(log());
            }
            try (Socket socket = new Socket()) {
                socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 1_000);
                return true;
            } catch (IOException notYet) {
                return false;
            }
        });
    }

    /** Waits until a condition holds. */
    static void waitUntil(String what, BooleanSupplier condition) {
        waitUntil(what, condition, () -> "");
    }

    /** Waits until a condition holds; the error ends with the state. */
    static void waitUntil(String what, BooleanSupplier condition, Supplier<String> state) {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > end) {
                throw new IllegalStateException("not within " + PATIENCE_SECONDS + " s: " + what + " " + state.get());
            }
            try {
                Thread.sleep(50);
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
        }
    }

    /** Returns the output. */
    String log() {
        try {
            return Files.readString(log);
        } catch (IOException error) {
            return error.toString();
        }
    }

    /** Ends the process by SIGKILL. */
    void kill() {
        try {
            process.destroyForcibly().waitFor();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void close() {
        kill();
    }

    /** Returns a port that is free at the moment. */
    static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }
}
