package io.rondel.flink;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;

/**
 * Loads the native library from the jar. Java loads a file into one class loader only, and a session cluster has one class
 * loader for each job, so each copies the library to a path of its own.
 */
final class NativeLibrary {
    private static RondelException failure;
    private static boolean isLoaded;

    private NativeLibrary() {}

    /** Loads the library once for this class loader. */
    static synchronized void load() {
        if (isLoaded) {
            return;
        }
        if (failure != null) {
            throw new RondelException(failure.getMessage(), failure);
        }
        try {
            load(platform(System.getProperty("os.name"), System.getProperty("os.arch")));
            isLoaded = true;
        } catch (RondelException error) {
            failure = error;
            throw error;
        }
    }

    /** Returns the folder of a platform in the jar, such as {@code linux-x86_64}. */
    static String platform(String system, String processor) {
        String name =
                switch (processor) {
                    case "amd64" -> "x86_64";
                    case "arm64" -> "aarch64";
                    default -> processor;
                };
        return system.toLowerCase(Locale.ROOT).replace(' ', '-') + "-" + name;
    }

    /** Loads the library of a platform. */
    static void load(String platform) {
        String resource = "native/" + platform + "/librondel_flink.so";
        try (InputStream library = NativeLibrary.class.getResourceAsStream(resource)) {
            if (library == null) {
                throw new RondelException("this jar has no native library of Rondel for " + platform
                        + ": build one by connectors/flink/build-native on such a machine, or run the job on another one");
            }
            Path folder = Files.createTempDirectory("rondel-flink-");
            Path file = folder.resolve("librondel_flink.so");
            try {
                Files.copy(library, file);
                System.load(file.toString());
            } finally {
                // Linux keeps the contents while they are mapped.
                Files.deleteIfExists(file);
                Files.deleteIfExists(folder);
            }
        } catch (IOException error) {
            throw new RondelException("cannot copy the native library of Rondel to the temporary folder: " + error, error);
        } catch (UnsatisfiedLinkError error) {
            throw new RondelException("cannot load the native library of Rondel: " + error.getMessage(), error);
        }
        int version = Native.abiVersion();
        if (version != Native.ABI_VERSION) {
            throw new RondelException("the native library of Rondel has version " + version
                    + " of the C interface, and this connector needs " + Native.ABI_VERSION);
        }
    }
}
