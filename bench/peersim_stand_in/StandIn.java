import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.stream.IntStream;

/**
 * A stand-in for PeerSim's cycle-driven mode: Newscast and Vitis' exchange of views (Network.java) on one thread.
 *
 * java StandIn FILE reads a workload, little-endian: nodes and topics, the starts of the nodes' rows, all rows of
 * topics (32 bits each), and the nodes' ring ids (64 bits each). Then it obeys lines of standard input until its end:
 *
 * sample N, round N: N rounds of Newscast alone, or of everything; prints a line for each, the word and the CPU and
 * wall nanoseconds of the thread. restart: forget everything but the compiled code. state: print the mean utility of
 * the links of the first 1,000 nodes, and the share of nodes with their true ring neighbours. views FILE: write the
 * tables, the caches of samples, the rounds in which these were last heard, and the ring backups, 32 bits each, and
 * print the word.
 */
final class StandIn {
    static final int FEWEST_NODES = 2 * Network.CACHE, MEASURED = 1000;

    public static void main(String[] arguments) throws IOException {
        Network network = read(Path.of(arguments[0]));
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = orders.readLine()) != null; ) {
            String[] words = line.split(" ", 2);
            switch (words[0]) {
                case "sample", "round" -> play(network, words[0], Integer.parseInt(words[1]));
                case "restart" -> network.restart();
                case "state" -> System.out.println("state " + meanUtility(network) + " " + ringCorrectness(network));
                case "views" -> {
                    write(Path.of(words[1]), network.links, network.cache, network.cacheHeard, network.backups);
                    System.out.println("views");
                }
                default -> throw new IllegalArgumentException("orders are sample, round, restart, state and views");
            }
        }
    }

    static Network read(Path path) throws IOException {
        ByteBuffer file = ByteBuffer.wrap(Files.readAllBytes(path)).order(ByteOrder.LITTLE_ENDIAN);
        int nodes = file.getInt(), topicCount = file.getInt();
        if (nodes < FEWEST_NODES || topicCount > Network.MOST_TOPICS)
            throw new IllegalArgumentException("the stand-in needs 40 nodes at least, and 65,536 topics at most");
        int[] starts = IntStream.range(0, nodes + 1).map(i -> file.getInt()).toArray();
        char[] topics = new char[starts[nodes]];
        for (int i = 0; i < topics.length; i++) topics[i] = (char) file.getInt();
        return new Network(starts, topics, IntStream.range(0, nodes).mapToLong(i -> file.getLong()).toArray());
    }

    static void write(Path path, int[]... arrays) throws IOException {
        ByteBuffer out = ByteBuffer.allocate(4 * Arrays.stream(arrays).mapToInt(array -> array.length).sum());
        out.order(ByteOrder.LITTLE_ENDIAN);
        for (int[] array : arrays) for (int number : array) out.putInt(number);
        Files.write(path, out.array());
    }

    static void play(Network network, String what, int rounds) {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        for (int i = 0; i < rounds; i++) {
            long cpu = threads.getCurrentThreadCpuTime(), wall = System.nanoTime();
            network.round(what.equals("round"));
            wall = System.nanoTime() - wall;
            System.out.println(what + " " + (threads.getCurrentThreadCpuTime() - cpu) + " " + wall);
        }
    }

    static double meanUtility(Network network) {
        double total = 0;
        int count = 0;
        for (int p = 0; p < Math.min(network.nodes, MEASURED); p++) {
            network.mark(p, 1);
            for (int slot = p * Network.TABLE; slot < (p + 1) * Network.TABLE; slot++) {
                if (network.links[slot] == Network.NOBODY) continue;
                total += network.utility(p, network.links[slot]);
                count++;
            }
            network.mark(p, 0);
        }
        return total / Math.max(count, 1);
    }

    static double ringCorrectness(Network network) {
        int nodes = network.nodes;
        int[] ring = IntStream.range(0, nodes).boxed()
            .sorted((p, q) -> Long.compareUnsigned(network.ids[p], network.ids[q])).mapToInt(p -> p).toArray();
        long right = IntStream.range(0, nodes).filter(i -> {
            int slot = ring[i] * Network.TABLE;
            return network.links[slot] == ring[(i + 1) % nodes]
                && network.links[slot + 1] == ring[(i + nodes - 1) % nodes];
        }).count();
        return (double) right / nodes;
    }
}
