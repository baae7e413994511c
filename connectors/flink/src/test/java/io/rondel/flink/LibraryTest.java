package io.rondel.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import org.junit.jupiter.api.Test;

/** The native library in class loaders of their own, as a session cluster has one for each job. */
class LibraryTest {
    private static URLClassLoader job() {
        URL classes = NativeLibrary.class.getProtectionDomain().getCodeSource().getLocation();
        return new URLClassLoader(new URL[] {classes}, ClassLoader.getPlatformClassLoader());
    }

    private static Object call(ClassLoader loader, String type, String name) throws Exception {
        Method method = Class.forName("io.rondel.flink." + type, true, loader).getDeclaredMethod(name);
        method.setAccessible(true);
        return method.invoke(null);
    }

    @Test
    void severalClassLoadersLoadIt() throws Exception {
        NativeLibrary.load();
        try (URLClassLoader first = job(); URLClassLoader second = job()) {
            for (ClassLoader loader : new ClassLoader[] {first, second, first}) {
                call(loader, "NativeLibrary", "load");
                assertEquals(Native.ABI_VERSION, call(loader, "Native", "abiVersion"));
            }
        }
    }

    @Test
    void aProcessorWithoutALibraryIsASentence() throws Exception {
        String processor = System.setProperty("os.arch", "riscv64");
        try (URLClassLoader loader = job()) {
            for (int attempt = 0; attempt < 2; attempt++) {
                InvocationTargetException thrown = assertThrows(
                        InvocationTargetException.class, () -> call(loader, "NativeLibrary", "load"));
                String text = thrown.getCause().getMessage();
                assertTrue(text.contains("no native library of Rondel for linux-riscv64"), text);
            }
        } finally {
            System.setProperty("os.arch", processor);
        }
    }
}
