package io.rondel.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.junit.jupiter.api.Test;

class HashTest {
    @Test
    void hashesAreThoseOfTheEngine() {
        NativeLibrary.load();
        String[] arrays = {"[7]", "[\"r7\"]", "[-1,true,2.5]", "[\"ü😀\\n\",false]", "[9223372036854775807]", "[7.0]"};
        Object[][] values = {{7}, {"r7"}, {-1L, true, 2.5}, {"ü😀\n", false}, {Long.MAX_VALUE}, {7.0}};
        for (int i = 0; i < arrays.length; i++) {
            long[] out = new long[1];
            assertEquals(Native.OK, Native.keyHash(arrays[i].getBytes(StandardCharsets.UTF_8), out));
            assertEquals(out[0], KeyHash.of(values[i]), arrays[i]);
        }
        assertThrows(RondelException.class, () -> KeyHash.of((Object) List.of()));
        assertThrows(RondelException.class, () -> KeyHash.of('x'));
        assertThrows(RondelException.class, () -> KeyHash.of("a", null));
    }

    @Test
    void eachHashIsInTheRangeOfItsGroup() {
        for (int count : new int[] {1, 2, 3, 128, 1000, 32768}) {
            assertEquals(0, KeyGroups.firstHash(0, count));
            assertEquals(KeyHash.HASHES, KeyGroups.firstHash(count, count));
            for (int group = 0; group < count; group++) {
                long first = KeyGroups.firstHash(group, count);
                assertEquals(group, KeyGroups.of(first, count));
                assertTrue(group == 0 || KeyGroups.of(first - 1, count) == group - 1);
            }
        }
    }

    @Test
    void flinkAssignsMessagesToTheGroupOfTheirHash() {
        KeyGroups groups = new KeyGroups(128);
        for (int i = 0; i < 1000; i++) {
            Message message = Message.of("t", new byte[0], "r" + i);
            int group = KeyGroupRangeAssignment.assignToKeyGroup(groups.getKey(message), 128);
            assertEquals(KeyGroups.of(message.keyHash, 128), group);
        }
    }

    @Test
    void keysOfVerdictsAreRead() {
        assertEquals(List.of(), Parameters.of("{}"));
        assertEquals(
                List.of(7L, "a\"b,}:\\\u0001é", 2.5, true, -1e30),
                Parameters.of("{\"a\":7,\"b\":\"a\\\"b,}:\\\\\\u0001é\",\"c\":2.5,\"d\":true,\"e\":-1e+30}"));
    }
}
