import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/** What both Java programs need to play the cases of the client matrix. */
final class Cases {
    private static final Duration LIMIT = Duration.ofSeconds(120);

    private Cases() {}

    interface Case {
        void run() throws Exception;
    }

    interface Condition {
        boolean holds() throws Exception;
    }

    /** Plays the cases and prints one JSON line for each. */
    static void play(Map<String, Case> cases) throws Exception {
        for (Map.Entry<String, Case> e : cases.entrySet()) {
            Map<String, Object> line = new LinkedHashMap<>();
            line.put("case", e.getKey());
            try {
                e.getValue().run();
                line.put("ok", true);
            } catch (Exception | AssertionError failure) {
                failure.printStackTrace();
                line.put("error", failure.toString());
            }
            System.out.println(new ObjectMapper().writeValueAsString(line));
        }
    }

    static void until(String what, Condition condition) throws Exception {
        long end = System.nanoTime() + LIMIT.toNanos();
        while (!condition.holds()) {
            check(System.nanoTime() < end, "waited in vain for " + what);
            Thread.onSpinWait();
        }
    }

    static void check(boolean holds, String otherwise) {
        if (!holds) {
            throw new AssertionError(otherwise);
        }
    }
}
