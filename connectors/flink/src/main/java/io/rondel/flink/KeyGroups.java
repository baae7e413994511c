package io.rondel.flink;

import java.util.HashMap;
import java.util.Map;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;

/**
 * Key groups of Flink as ranges of hashes of Rondel: group {@code g} of {@code n} has the hashes from {@code g / n} of all to
 * below {@code (g + 1) / n}, so that the state of a group is one part of a snapshot. Flink hashes keys itself, so the key of
 * a message is a number that Flink assigns to its group.
 */
final class KeyGroups implements KeySelector<Message, Integer> {
    private static final long serialVersionUID = 1;

    /** The key of each group. */
    private final int[] keys;

    KeyGroups(int count) {
        keys = new int[count];
        Map<Integer, Integer> found = new HashMap<>();
        for (int key = 0; found.size() < count; key++) {
            found.putIfAbsent(KeyGroupRangeAssignment.assignToKeyGroup(key, count), key);
        }
        found.forEach((group, key) -> keys[group] = key);
    }

    @Override
    public Integer getKey(Message message) {
        return keys[of(message.keyHash, keys.length)];
    }

    /** Returns the group of a hash. */
    static int of(long hash, int count) {
        return (int) (hash * count >>> 32);
    }

    /** Returns the first hash of a group; of the number of groups, the number of hashes. */
    static long firstHash(int group, int count) {
        return (KeyHash.HASHES * group + count - 1) / count;
    }
}
