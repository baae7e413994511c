package io.rondel.flink;

import java.io.DataInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.flink.api.common.ExecutionConfig;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.GlobalConfiguration;
import org.apache.flink.core.fs.CloseableRegistry;
import org.apache.flink.core.fs.FSDataInputStream;
import org.apache.flink.core.fs.FileSystem;
import org.apache.flink.core.plugin.PluginUtils;
import org.apache.flink.runtime.checkpoint.Checkpoints;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.runtime.state.DefaultOperatorStateBackendBuilder;
import org.apache.flink.runtime.state.KeyGroupsStateHandle;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.OperatorStateBackend;
import org.apache.flink.runtime.state.OperatorStateHandle;
import org.apache.flink.runtime.state.filesystem.AbstractFsCheckpointStorageAccess;

/**
 * The state of {@link RondelFunctions#check} in a savepoint or a retained checkpoint, which becomes a snapshot of the command
 * without a cluster: {@code rondel check --resume} continues from it.
 */
public final class Savepoint {
    private final byte[] header;
    private final List<SavedGroup> groups;
    private final int maxParallelism;

    private Savepoint(byte[] header, List<SavedGroup> groups, int maxParallelism) {
        this.header = header;
        this.groups = groups;
        this.maxParallelism = maxParallelism;
    }

    /**
     * Reads a savepoint.
     *
     * @param path its folder, as Flink prints it
     * @param uid the uid of the operator, or null if the job has only one of Rondel
     */
    public static Savepoint read(String path, String uid) throws Exception {
        List<OperatorState> found = new ArrayList<>();
        List<String> names = new ArrayList<>();
        for (OperatorState state : metadata(path).getOperatorStates()) {
            if (header(state) == null) {
                continue;
            }
            String own = state.getOperatorUid().orElse(state.getOperatorID().toHexString());
            names.add(own);
            if (uid == null || uid.equals(own)) {
                found.add(state);
            }
        }
        if (found.size() != 1) {
            String which = uid == null ? "" : " with the uid '" + uid + "'";
            throw new RondelException("the savepoint has " + (found.isEmpty() ? "no operator" : "several operators")
                    + " of Rondel" + which + "; those of Rondel are: " + names);
        }
        OperatorState state = found.get(0);
        return new Savepoint(content(header(state)), groups(state), state.getMaxParallelism());
    }

    private static CheckpointMetadata metadata(String path) throws IOException {
        var location = AbstractFsCheckpointStorageAccess.resolveCheckpointPointer(path);
        try (DataInputStream in = new DataInputStream(location.getMetadataHandle().openInputStream())) {
            return Checkpoints.loadCheckpointMetadata(in, Savepoint.class.getClassLoader(), path);
        }
    }

    /** Returns the state of an operator that has the specification, or null. */
    private static OperatorStateHandle header(OperatorState state) {
        for (OperatorSubtaskState subtask : state.getStates()) {
            for (OperatorStateHandle handle : subtask.getManagedOperatorState()) {
                if (handle.getStateNameToPartitionOffsets().containsKey(MonitorOperator.HEADER.getName())) {
                    return handle;
                }
            }
        }
        return null;
    }

    private static byte[] content(OperatorStateHandle header) throws Exception {
        try (CloseableRegistry registry = new CloseableRegistry();
                OperatorStateBackend states = new DefaultOperatorStateBackendBuilder(
                                Savepoint.class.getClassLoader(), new ExecutionConfig(), false, List.of(header), registry)
                        .build()) {
            return states.getUnionListState(MonitorOperator.HEADER).get().iterator().next();
        }
    }

    private static List<SavedGroup> groups(OperatorState state) throws IOException {
        List<SavedGroup> groups = new ArrayList<>();
        for (OperatorSubtaskState subtask : state.getStates()) {
            for (KeyedStateHandle handle : subtask.getRawKeyedState()) {
                KeyGroupsStateHandle all = (KeyGroupsStateHandle) handle;
                try (FSDataInputStream in = all.openInputStream()) {
                    for (int group : all.getKeyGroupRange()) {
                        in.seek(all.getOffsetForKeyGroup(group));
                        groups.add(SavedGroup.read(group, in, 0));
                    }
                }
            }
        }
        groups.sort(Comparator.comparingInt(SavedGroup::group));
        return groups;
    }

    /** Returns the text of the specification with which the state was saved. */
    public String specification() {
        return Restoring.text(header);
    }

    /** Whether violations were explained: the command then needs {@code --explain}. */
    public boolean isExplained() {
        return Restoring.isExplained(header);
    }

    /** Returns the time in nanoseconds up to which messages and deadlines are part of the state. */
    public long time() {
        return groups.stream().mapToLong(SavedGroup::time).max().orElse(Message.NO_TIME);
    }

    /** Returns the number of later messages, which wait for the watermark. They are not part of the snapshot. */
    public long waiting() {
        return groups.stream()
                .flatMap(group -> group.waiting().stream())
                .filter(message -> message.time() > time())
                .count();
    }

    /**
     * Returns the state as a snapshot.
     *
     * @param options the encodings of topics; the text is that of the savepoint
     */
    public byte[] snapshot(Specification options) {
        NativeLibrary.load();
        Specification saved =
                options.asSaved(specification(), isExplained()).withMaxParallelism(maxParallelism);
        try (Monitor monitor = new Restoring(saved).monitor(header, groups)) {
            return monitor.snapshot();
        }
    }

    /**
     * Writes {@code monitor.snapshot} and {@code specification.rondel}: {@code SAVEPOINT FOLDER [UID]}. Reads the
     * configuration of Flink, for other file systems than local ones.
     */
    public static void main(String[] arguments) throws Exception {
        if (arguments.length < 2 || arguments.length > 3) {
            throw new IllegalArgumentException("arguments: SAVEPOINT FOLDER [UID]");
        }
        Configuration configuration = GlobalConfiguration.loadConfiguration();
        FileSystem.initialize(configuration, PluginUtils.createPluginManagerFromRootFolder(configuration));
        Savepoint savepoint = read(arguments[0], arguments.length == 3 ? arguments[2] : null);
        Path folder = Files.createDirectories(Path.of(arguments[1]));
        Files.write(folder.resolve("monitor.snapshot"), savepoint.snapshot(Specification.of("")));
        Files.writeString(folder.resolve("specification.rondel"), savepoint.specification());
        boolean isNew = savepoint.time() == Message.NO_TIME;
        System.out.println("monitor.snapshot: the state "
                + (isNew ? "before the first message" : "up to " + Verdict.seconds(savepoint.time()) + " s")
                + "; " + savepoint.waiting() + " later messages waited for the watermark and are not part of it"
                + (savepoint.isExplained() ? "; continue with --explain" : ""));
    }
}
