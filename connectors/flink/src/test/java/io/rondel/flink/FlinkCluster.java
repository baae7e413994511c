package io.rondel.flink;

import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.stream.Stream;

/**
 * A cluster of Flink on loopback, each part a process: ZooKeeper, a JobManager with high availability, and TaskManagers. Their
 * classes are those of the tests without the connectors, which are in the jars of a job, as in a session cluster.
 */
final class FlinkCluster implements AutoCloseable {
    static final int TASK_MANAGERS = 2;

    private static final int SLOTS = 2;
    private static final String[] OPENED = {
        "java.base/java.lang", "java.base/java.lang.reflect", "java.base/java.net", "java.base/java.io",
        "java.base/java.nio", "java.base/sun.nio.ch", "java.base/java.text", "java.base/java.time",
        "java.base/java.util", "java.base/java.util.concurrent", "java.base/java.util.concurrent.atomic",
        "java.base/java.util.concurrent.locks"
    };

    private final Path folder;
    private final String classpath;
    private final int restPort = JavaProcess.freePort();
    private final JavaProcess[] taskManagers = new JavaProcess[TASK_MANAGERS];
    private JavaProcess zookeeper;
    private JavaProcess jobManager;

    FlinkCluster(Path folder) throws IOException {
        this.folder = folder;
        classpath = String.join(File.pathSeparator, classpath().filter(path -> !isOfJob(path)).toList());
        try {
            startAll();
        } catch (IOException | RuntimeException error) {
            close();
            throw error;
        }
    }

    private void startAll() throws IOException {
        int zookeeperPort = JavaProcess.freePort();
        // A single server does not use the two ports of its quorum.
        Path zoo = Files.writeString(
                folder.resolve("zoo.cfg"),
                "tickTime=500\ndataDir=" + folder.resolve("zookeeper") + "\nclientPort=" + zookeeperPort
                        + "\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\nserver.1=127.0.0.1:2888:3888\n");
        Files.createDirectories(folder.resolve("zookeeper"));
        Files.writeString(folder.resolve("config.yaml"), configuration(zookeeperPort));
        Files.writeString(
                folder.resolve("log4j2.properties"),
                "rootLogger.level=info\nrootLogger.appenderRef.out.ref=out\nappender.out.name=out\n"
                        + "appender.out.type=CONSOLE\nappender.out.layout.type=PatternLayout\n"
                        + "appender.out.layout.pattern=%d %p %c{1} %m%n\n");
        zookeeper = start(
                "zookeeper",
                "-Xmx128m",
                List.of(
                        "org.apache.flink.runtime.zookeeper.FlinkZooKeeperQuorumPeer",
                        "--zkConfigFile",
                        zoo.toString(),
                        "--peerId",
                        "1"));
        zookeeper.waitForPort(zookeeperPort);
        startJobManager();
        for (int i = 0; i < TASK_MANAGERS; i++) {
            startTaskManager(i);
        }
    }

    private String configuration(int zookeeperPort) throws IOException {
        return """
                jobmanager.rpc.address: 127.0.0.1
                jobmanager.rpc.port: %1$d
                jobmanager.bind-host: 127.0.0.1
                rest.address: 127.0.0.1
                rest.bind-address: 127.0.0.1
                rest.port: %2$d
                taskmanager.host: 127.0.0.1
                taskmanager.bind-host: 127.0.0.1
                taskmanager.numberOfTaskSlots: %3$d
                taskmanager.cpu.cores: 1.0
                taskmanager.memory.framework.heap.size: 128m
                taskmanager.memory.task.heap.size: 384m
                taskmanager.memory.framework.off-heap.size: 64m
                taskmanager.memory.task.off-heap.size: 64m
                taskmanager.memory.network.min: 64m
                taskmanager.memory.network.max: 64m
                taskmanager.memory.managed.size: 32m
                taskmanager.memory.jvm-metaspace.size: 128m
                taskmanager.memory.jvm-overhead.min: 64m
                taskmanager.memory.jvm-overhead.max: 64m
                io.tmp.dirs: %6$s
                heartbeat.interval: 500
                heartbeat.timeout: 3000
                high-availability.type: zookeeper
                high-availability.zookeeper.quorum: 127.0.0.1:%4$d
                high-availability.zookeeper.client.session-timeout: 4000
                high-availability.storageDir: %5$s
                restart-strategy.type: fixed-delay
                restart-strategy.fixed-delay.attempts: 1000
                restart-strategy.fixed-delay.delay: 200 ms
                """
                .formatted(
                        JavaProcess.freePort(), restPort, SLOTS, zookeeperPort, folder.resolve("ha").toUri(), folder);
    }

    private static Stream<String> classpath() {
        // Surefire puts all classes behind one jar.
        String all = System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
        return Arrays.stream(all.split(File.pathSeparator));
    }

    private static boolean isOfJob(String path) {
        String name = Path.of(path).getFileName().toString();
        return Files.isDirectory(Path.of(path)) || name.startsWith("flink-connector-kafka") || name.startsWith("kafka-clients");
    }

    private JavaProcess start(String name, String heap, List<String> call) throws IOException {
        List<String> options = new ArrayList<>(List.of(heap, "-XX:TieredStopAtLevel=1"));
        options.add("-Dlog4j.configurationFile=" + folder.resolve("log4j2.properties"));
        for (String opened : OPENED) {
            options.add("--add-opens=" + opened + "=ALL-UNNAMED");
        }
        return JavaProcess.start(name, folder, classpath, options, call);
    }

    /** Starts the JobManager, again after its end. */
    void startJobManager() throws IOException {
        jobManager = start(
                "jobmanager",
                "-Xmx512m",
                List.of(
                        "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint",
                        "--configDir",
                        folder.toString(),
                        "--host",
                        "127.0.0.1"));
        jobManager.waitForPort(restPort);
    }

    /** Starts a TaskManager, again after its end. */
    void startTaskManager(int index) throws IOException {
        taskManagers[index] = start(
                "taskmanager-" + index,
                "-Xmx512m",
                List.of("org.apache.flink.runtime.taskexecutor.TaskManagerRunner", "--configDir", folder.toString()));
    }

    void killJobManager() {
        jobManager.kill();
    }

    void killTaskManager(int index) {
        taskManagers[index].kill();
    }

    int restPort() {
        return restPort;
    }

    /** Returns the jars of a job: the classes of the connector and of the tests, and the connector for Kafka. */
    List<String> jars() throws IOException {
        List<String> jars = new ArrayList<>();
        for (String path : classpath().filter(FlinkCluster::isOfJob).toList()) {
            if (!Files.isDirectory(Path.of(path))) {
                jars.add(path);
                continue;
            }
            Path jar = folder.resolve(Path.of(path).getFileName() + ".jar");
            try (OutputStream file = Files.newOutputStream(jar);
                    JarOutputStream out = new JarOutputStream(file);
                    Stream<Path> files = Files.walk(Path.of(path))) {
                for (Path one : files.filter(Files::isRegularFile).toList()) {
                    out.putNextEntry(new JarEntry(Path.of(path).relativize(one).toString()));
                    Files.copy(one, out);
                }
            }
            jars.add(jar.toString());
        }
        return jars;
    }

    @Override
    public void close() {
        Stream.concat(Arrays.stream(taskManagers), Arrays.stream(new JavaProcess[] {jobManager, zookeeper}))
                .filter(Objects::nonNull)
                .forEach(JavaProcess::close);
    }
}
