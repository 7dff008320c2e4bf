import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/** What the drafts of KIP-345 asked for, set by HTTP, under ordinary static consumers. */
final class Drafts {
    private static final List<String> ALL = List.of("a", "b", "c");
    private static final int PARTITIONS = 6;

    private final Client client;
    private final String admin;
    private final HttpClient http = HttpClient.newHttpClient();
    private final ObjectMapper json = new ObjectMapper();

    Drafts(Client client, String admin) {
        this.client = client;
        this.admin = admin;
    }

    void play() throws Exception {
        expectedInstances();
        registrationTimeout();
        targetSize();
        forcedRebalance();
    }

    /** Members that are expected wait for each other: one generation for all, and until then the group works on. */
    private void expectedInstances() throws Exception {
        try (Group g = new Group("drafts-expected", "{\"expected_instance_ids\": [\"a\", \"b\", \"c\"]}")) {
            g.open("a", 1_500_000);
            g.share("a");
            int before = g.generation();
            g.open("b", 1_500_000);
            Cases.until("b to wait", () -> g.poll() && g.picture().get("newcomers").toString().equals("[\"b\"]"));
            Cases.check(g.generation() == before && g.assigned() == PARTITIONS, "b was let in before c has come");
            g.open("c", 1_500_000);
            g.share("a", "b", "c");
            Cases.check(g.generation() == before + 1, "from generation " + before + " to " + g.generation());
        }
    }

    /** Two stop, and leave together when the registration timeout has passed: one generation for both. */
    private void registrationTimeout() throws Exception {
        try (Group g = new Group("drafts-registration", "{\"registration_timeout\": \"3s\"}")) {
            int before = g.start(6_000);
            g.close("a");
            g.close("b");
            g.share("c");
            Cases.check(g.generation() == before + 1, "from generation " + before + " to " + g.generation());
        }
    }

    /** The third of two is a hot spare, and takes over from one that stops. */
    private void targetSize() throws Exception {
        try (Group g = new Group("drafts-target", "{\"target_size\": 2, \"spare_session\": \"2s\"}")) {
            ALL.forEach(id -> g.open(id, 1_500_000));
            g.share("a", "b");
            Cases.until("c to be a spare", () -> g.poll() && g.picture().toString().contains("\"spare\""));
            int before = g.generation();
            g.close("a");
            g.share("b", "c");
            Cases.check(g.generation() == before + 1, "from generation " + before + " to " + g.generation());
        }
    }

    /** A member that is down is out after a forced rebalance, long before its session ends, in one generation. */
    private void forcedRebalance() throws Exception {
        try (Group g = new Group("drafts-forced", "{}")) {
            int before = g.start(1_500_000);
            g.close("b");
            CompletableFuture<HttpResponse<String>> forced = http.sendAsync(
                request("drafts-forced/force-rebalance", "POST", "{\"deadline\": \"3s\"}"), BodyHandlers.ofString());
            Cases.until("the generation", () -> g.poll() && forced.isDone());
            JsonNode change = read(forced.join());
            Cases.check(change.get("removed").toString().equals("[\"b\"]") && change.get("kept").toString().equals("[\"a\",\"c\"]")
                && change.get("generation_before").asInt() == before && change.get("generation_after").asInt() == before + 1, "answer " + change);
            g.share("a", "c");
            Cases.check(g.generation() == before + 1, "from generation " + before + " to " + g.generation());
        }
    }

    private HttpRequest request(String path, String method, String body) {
        return HttpRequest.newBuilder(URI.create(admin + "/admin/v1/groups/" + path)).header("Content-Type", "application/json")
            .method(method, body == null ? BodyPublishers.noBody() : BodyPublishers.ofString(body)).build();
    }

    private JsonNode read(HttpResponse<String> answer) throws Exception {
        Cases.check(answer.statusCode() == 200, answer.uri() + " answers " + answer.statusCode() + ": " + answer.body());
        return json.readTree(answer.body());
    }

    /** A group with settings of its own, its topic, and the members that run. */
    private final class Group implements AutoCloseable {
        private final String name;
        private final Map<String, KafkaConsumer<String, String>> open = new TreeMap<>();

        Group(String name, String settings) throws Exception {
            this.name = name;
            client.create(name, PARTITIONS);
            read(http.send(request(name + "/settings", "PUT", settings), BodyHandlers.ofString()));
        }

        void open(String id, int session) {
            KafkaConsumer<String, String> c = client.consumer(name, id, session);
            c.subscribe(List.of(name));
            open.put(id, c);
        }

        /** Starts all and returns their generation. */
        int start(int session) throws Exception {
            ALL.forEach(id -> open(id, session));
            share(ALL.toArray(String[]::new));
            return generation();
        }

        /** Stops a member, which stays one. */
        void close(String id) {
            open.remove(id).close();
        }

        boolean poll() {
            return Client.pollAll(open);
        }

        int assigned() {
            return open.values().stream().mapToInt(c -> c.assignment().size()).sum();
        }

        /** Waits until some share the partitions in one generation, and nobody else has any. */
        void share(String... ids) throws Exception {
            Cases.until(name + ": " + List.of(ids) + " to share the work", () -> poll()
                && List.of(ids).stream().allMatch(id -> open.get(id).assignment().size() == PARTITIONS / ids.length)
                && assigned() == PARTITIONS && open.values().stream().mapToInt(c -> c.groupMetadata().generationId()).distinct().count() == 1);
        }

        /** The generation of the first member by instance id. */
        int generation() {
            return open.values().iterator().next().groupMetadata().generationId();
        }

        /** What the coordinator knows of the group. */
        JsonNode picture() throws Exception {
            return read(http.send(request(name, "GET", null), BodyHandlers.ofString()));
        }

        @Override
        public void close() {
            open.values().forEach(KafkaConsumer::close);
        }
    }
}
