package io.rondel.flink;

import java.time.Duration;
import java.util.Properties;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.sink.TransactionNamingStrategy;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** A job from telemetry in Kafka to verdicts and notices in Kafka, each record once. */
final class FleetJob {
    static final String TELEMETRY = "telemetry";
    static final String VERDICTS = "verdicts";
    static final String NOTICES = "notices";
    /** The topic in Kafka has the messages of several topics by their keys, such as {@code telemetry r7}. */
    private static final char SEPARATOR = ' ';

    private final Specification specification;
    private final String broker;
    private final String checkpoints;

    FleetJob(Specification specification, String broker, String checkpoints) {
        this.specification = specification;
        this.broker = broker;
        this.checkpoints = checkpoints;
    }

    /** Messages from records whose key is the topic and the vehicle. */
    static final class Decoder implements KafkaRecordDeserializationSchema<Message> {
        private static final long serialVersionUID = 1;

        @Override
        public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<Message> out) {
            String key = new String(record.key(), java.nio.charset.StandardCharsets.UTF_8);
            int at = key.indexOf(SEPARATOR);
            out.collect(Message.of(key.substring(0, at), record.value(), key.substring(at + 1)));
        }

        @Override
        public TypeInformation<Message> getProducedType() {
            return TypeInformation.of(Message.class);
        }
    }

    static String key(String topic, String vehicle) {
        return topic + SEPARATOR + vehicle;
    }

    /** Starts the job on a cluster, from a savepoint if it is not null. */
    JobClient start(FlinkCluster cluster, int parallelism, String savepoint) throws Exception {
        Configuration configuration = new Configuration();
        configuration.setString("execution.checkpointing.dir", checkpoints);
        configuration.setString("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
        if (savepoint != null) {
            configuration.setString("execution.state-recovery.path", savepoint);
        }
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createRemoteEnvironment(
                "127.0.0.1", cluster.restPort(), configuration, cluster.jars().toArray(new String[0]));
        environment.enableCheckpointing(500);
        environment.setParallelism(parallelism);
        environment.getConfig().setAutoWatermarkInterval(50);
        build(environment);
        return environment.executeAsync("fleet");
    }

    private void build(StreamExecutionEnvironment environment) {
        KafkaSource<Message> source = KafkaSource.<Message>builder()
                .setBootstrapServers(broker)
                .setTopics(TELEMETRY)
                .setGroupId("fleet")
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setDeserializer(new Decoder())
                .build();
        // Kafka's timestamps of records, within the span in which they are shuffled.
        DataStream<Message> messages = environment
                .fromSource(
                        source,
                        WatermarkStrategy.forBoundedOutOfOrderness(
                                Duration.ofMillis(Fleet.SHUFFLE * Fleet.STEP_MILLIS)),
                        "telemetry")
                .uid("telemetry");
        SingleOutputStreamOperator<Verdict> verdicts =
                RondelFunctions.check(messages, specification).uid("rondel");
        sink(verdicts.map(verdict -> verdict.id + SEPARATOR + Fleet.shown(verdict)), VERDICTS);
        sink(verdicts.getSideOutput(RondelFunctions.NOTICES), NOTICES);
        sink(verdicts.getSideOutput(RondelFunctions.REFUSED).map(message -> "refused: " + message), NOTICES + "-refused");
    }

    private void sink(DataStream<String> lines, String topic) {
        Properties properties = new Properties();
        // The broker allows 15 minutes; the sink's default is an hour.
        properties.put("transaction.timeout.ms", "600000");
        KafkaSink<String> sink = KafkaSink.<String>builder()
                .setBootstrapServers(broker)
                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .setTransactionalIdPrefix(topic)
                // Asks the broker for the transactions that a killed process left open.
                .setTransactionNamingStrategy(TransactionNamingStrategy.POOLING)
                .setKafkaProducerConfig(properties)
                .setRecordSerializer(KafkaRecordSerializationSchema.<String>builder()
                        .setTopic(topic)
                        .setValueSerializationSchema(new SimpleStringSchema())
                        .build())
                .build();
        lines.sinkTo(sink).uid(topic);
    }
}
