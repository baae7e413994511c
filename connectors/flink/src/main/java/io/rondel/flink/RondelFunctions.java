package io.rondel.flink;

import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.util.OutputTag;

/** Functions over streams of messages. */
public final class RondelFunctions {
    /** Side output of messages that came after the watermark of their time; they are not evaluated. */
    public static final OutputTag<Message> LATE = new OutputTag<>("rondel-late", TypeInformation.of(Message.class));

    /** Side output of messages on topics that the specification does not have, and of those without a payload or a time. */
    public static final OutputTag<Message> REFUSED =
            new OutputTag<>("rondel-refused", TypeInformation.of(Message.class));

    /** Side output of notices as JSON: messages that cannot be read, limits, an edited specification. */
    public static final OutputTag<String> NOTICES = new OutputTag<>("rondel-notices", Types.STRING);

    private RondelFunctions() {}

    /**
     * Checks messages against a specification. Messages need timestamps and watermarks, and are evaluated in the order of
     * their times once the watermark has passed them.
     */
    public static SingleOutputStreamOperator<Verdict> check(DataStream<Message> messages, Specification specification) {
        int groups = specification.maxParallelism();
        SingleOutputStreamOperator<Verdict> verdicts =
                messages.keyBy(new KeyGroups(groups), Types.INT)
                        .transform("Rondel", TypeInformation.of(Verdict.class), new MonitorOperator(specification));
        verdicts.setMaxParallelism(groups);
        return verdicts;
    }

    /** Checks messages against a specification with the default options. */
    public static SingleOutputStreamOperator<Verdict> check(DataStream<Message> messages, String specification) {
        return check(messages, Specification.of(specification));
    }
}
