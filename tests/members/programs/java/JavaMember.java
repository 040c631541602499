import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A member of a group in Kafka's own Java client; calls come in as lines of JSON, answers go out likewise. */
public final class JavaMember implements ConsumerRebalanceListener {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Duration POLL = Duration.ofMillis(50);
  private static final Map<String, String> ASSIGNORS =
      Map.of(
          "range", "org.apache.kafka.clients.consumer.RangeAssignor",
          "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

  private final KafkaConsumer<byte[], byte[]> consumer;
  private final LinkedBlockingQueue<FutureTask<Object>> calls = new LinkedBlockingQueue<>();
  private volatile List<List<Object>> owned = List.of();
  private volatile int assignments = 0;
  private volatile String error = null;
  private volatile boolean closed = false;

  private JavaMember(String address, JsonNode options) {
    Properties settings = new Properties();
    settings.put("bootstrap.servers", address);
    settings.put("client.id", options.get("client_id").asText());
    settings.put("group.id", options.get("group").asText());
    String protocol = options.get("protocol").asText();
    settings.put("group.protocol", protocol);
    if (protocol.equals("classic")) {
      // The newer protocol leaves these to the broker.
      settings.put("partition.assignment.strategy", ASSIGNORS.get(options.get("assignor").asText()));
      settings.put("session.timeout.ms", options.get("session_ms").asInt());
      settings.put("heartbeat.interval.ms", options.get("heartbeat_ms").asInt());
    }
    settings.put("enable.auto.commit", false);
    settings.put("fetch.max.wait.ms", 100);
    settings.put("enable.metrics.push", false);
    settings.put("auto.offset.reset", "earliest");
    if (!options.get("instance").isNull()) {
      settings.put("group.instance.id", options.get("instance").asText());
    }
    consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    List<String> topics = new ArrayList<>();
    options.get("topics").forEach(topic -> topics.add(topic.asText()));
    consumer.subscribe(topics, this);
  }

  @Override
  public void onPartitionsRevoked(Collection<TopicPartition> revoked) {}

  @Override
  public void onPartitionsAssigned(Collection<TopicPartition> assigned) {
    assignments++;
  }

  /** Polls as an application does, and between two polls does what it is told. */
  private void run() {
    while (!closed) {
      try {
        if (error == null) {
          consumer.poll(POLL);
          owned = rows(consumer.assignment());
        }
      } catch (RuntimeException failure) {
        error = words(failure);
      }
      try {
        FutureTask<Object> call = error == null ? calls.poll() : calls.take();
        if (call != null) {
          call.run();
        }
      } catch (InterruptedException stopped) {
        return;
      }
    }
  }

  private Object call(Callable<Object> work) throws Exception {
    FutureTask<Object> task = new FutureTask<>(work);
    calls.put(task);
    return task.get();
  }

  private Object look() {
    Map<String, Object> answer = new HashMap<>();
    answer.put("owned", owned);
    answer.put("assignments", assignments);
    answer.put("error", error);
    return answer;
  }

  private Object commit(JsonNode rows) throws Exception {
    Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
    rows.forEach(row -> offsets.put(place(row), new OffsetAndMetadata(row.get(2).asLong())));
    return call(
        () -> {
          consumer.commitSync(offsets);
          return null;
        });
  }

  private Object committed(JsonNode rows) throws Exception {
    List<TopicPartition> places = new ArrayList<>();
    rows.forEach(row -> places.add(place(row)));
    return call(
        () -> {
          Map<TopicPartition, OffsetAndMetadata> found = consumer.committed(Set.copyOf(places));
          List<List<Object>> answer = new ArrayList<>();
          for (TopicPartition place : places) {
            OffsetAndMetadata one = found.get(place);
            List<Object> row = new ArrayList<>(List.of(place.topic(), place.partition()));
            row.add(one == null ? null : one.offset());
            answer.add(row);
          }
          return answer;
        });
  }

  private Object close() throws Exception {
    return call(
        () -> {
          closed = true;
          consumer.close();
          return null;
        });
  }

  private Object answer(String method, JsonNode arguments) throws Exception {
    return switch (method) {
      case "look" -> look();
      case "commit" -> commit(arguments.get(0));
      case "committed" -> committed(arguments.get(0));
      default -> throw new IllegalArgumentException(method);
    };
  }

  private static TopicPartition place(JsonNode row) {
    return new TopicPartition(row.get(0).asText(), row.get(1).asInt());
  }

  private static List<List<Object>> rows(Set<TopicPartition> places) {
    return places.stream().map(place -> List.<Object>of(place.topic(), place.partition())).toList();
  }

  private static String words(Throwable failure) {
    return failure.getClass().getSimpleName() + ": " + failure.getMessage();
  }

  public static void main(String[] arguments) throws Exception {
    JavaMember member = new JavaMember(arguments[0], JSON.readTree(arguments[1]));
    Thread polling = new Thread(member::run);
    polling.start();
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    String line;
    while ((line = lines.readLine()) != null) {
      JsonNode called = JSON.readTree(line);
      Map<String, Object> answer = new HashMap<>();
      try {
        answer.put("result", member.answer(called.get(0).asText(), called.get(1)));
      } catch (ExecutionException failure) {
        answer.put("error", words(failure.getCause()));
      }
      System.out.println(JSON.writeValueAsString(answer));
    }
    member.close();
    polling.join();
  }
}
