package io.rondel.flink;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** A broker of Kafka on loopback, from the jars of {@code -Drondel.kafka}. */
final class KafkaServer implements AutoCloseable {
    private static final String CLUSTER_ID = "cm9uZGVsLXJvbmRlbC1yb25kZQ";
    private static final List<String> OPTIONS = List.of("-Xmx512m", "-XX:TieredStopAtLevel=1");

    private final String address;
    private final JavaProcess process;

    KafkaServer(Path folder) throws Exception {
        String jars = System.getProperty("rondel.kafka");
        if (jars == null || jars.isEmpty()) {
            throw new IllegalStateException("-Drondel.kafka is not set: run `make test-flink`");
        }
        int port = JavaProcess.freePort();
        int controller = JavaProcess.freePort();
        address = "127.0.0.1:" + port;
        // The times of the events are in 1970, before every retention.
        Path configuration = Files.writeString(
                folder.resolve("server.properties"),
                """
                process.roles=broker,controller
                node.id=1
                controller.quorum.voters=1@127.0.0.1:%2$d
                listeners=CLIENTS://127.0.0.1:%1$d,CONTROLLER://127.0.0.1:%2$d
                controller.listener.names=CONTROLLER
                inter.broker.listener.name=CLIENTS
                listener.security.protocol.map=CONTROLLER:PLAINTEXT,CLIENTS:PLAINTEXT
                log.dirs=%3$s
                auto.create.topics.enable=false
                log.retention.ms=-1
                offsets.topic.replication.factor=1
                transaction.state.log.replication.factor=1
                transaction.state.log.min.isr=1
                """
                        .formatted(port, controller, folder.resolve("kafka-data")));
        String classpath = Path.of(jars, "*").toString();
        List<String> format = List.of(
                "kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER_ID, "--config", configuration.toString());
        JavaProcess.start("kafka-format", folder, classpath, OPTIONS, format).finish();
        process = JavaProcess.start(
                "kafka", folder, classpath, OPTIONS, List.of("kafka.Kafka", configuration.toString()));
        process.waitForPort(port);
    }

    String address() {
        return address;
    }

    private Properties properties(Map<String, Object> more) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", address);
        properties.putAll(more);
        return properties;
    }

    void create(String topic, int partitions) throws Exception {
        try (Admin admin = Admin.create(properties(Map.of()))) {
            admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
        }
    }

    /** Returns the transactions that are not complete; records after them are not readable. */
    String openTransactions() {
        try (Admin admin = Admin.create(properties(Map.of()))) {
            return admin.listTransactions().all().get().stream()
                    .filter(one -> one.state() != TransactionState.COMPLETE_COMMIT
                            && one.state() != TransactionState.COMPLETE_ABORT
                            && one.state() != TransactionState.EMPTY)
                    .toList()
                    .toString();
        } catch (ExecutionException | InterruptedException error) {
            return error.toString();
        }
    }

    KafkaProducer<String, String> producer() {
        return new KafkaProducer<>(
                properties(Map.of("linger.ms", 5)), new StringSerializer(), new StringSerializer());
    }

    /** Reads the committed records of a topic with one partition, from the beginning, each time those that are new. */
    static final class Reader implements AutoCloseable {
        private final KafkaConsumer<String, String> consumer;
        private final List<String> values = new ArrayList<>();

        private Reader(Properties properties, String topic) {
            consumer = new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
            List<TopicPartition> partitions = List.of(new TopicPartition(topic, 0));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
        }

        /** Returns all records up to now. */
        List<String> read() {
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                values.add(record.value());
            }
            return values;
        }

        /** Describes how far it is. */
        String state() {
            TopicPartition partition = consumer.assignment().iterator().next();
            return "read " + values.size() + " records, position " + consumer.position(partition) + " of "
                    + consumer.endOffsets(List.of(partition)).values();
        }

        @Override
        public void close() {
            consumer.close();
        }
    }

    Reader reader(String topic) {
        return new Reader(properties(Map.of("isolation.level", "read_committed")), topic);
    }

    @Override
    public void close() throws IOException {
        process.close();
    }
}
