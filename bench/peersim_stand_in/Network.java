import java.util.Arrays;
import java.util.stream.IntStream;

/**
 * All nodes over flat arrays, and what they do in their turns.
 *
 * In a round every node takes a turn, in a shuffled order, and what a turn changes the next one sees, as PeerSim's
 * cycle-driven mode has it. There is no code of PeerSim here, and nothing of what costs time there beside protocols:
 * objects per node, a configuration, observers. Nobody joins or leaves, so nobody is asked whether it is alive, which
 * our engine does. Rules and sizes are those of grapevine's `vitis` (src/grapevine/blocks/sampling.py, exchange.py,
 * small_world.py, systems/vitis/rules.py); random choices are its own. Nothing is remembered of a round but the views,
 * so every candidate is scored anew.
 */
final class Network {
    static final int NOBODY = -1, CACHE = 20, TABLE = 15, STRUCTURED = 3, BACKUPS = 4, RING = 2 * BACKUPS, MAX_AGE = 3;
    static final int POOL = 2 * (1 + TABLE + CACHE + RING), MOST_TOPICS = 1 << 16, LINE = 32; // topics in 64 bytes
    static final double HALF_RING = 0x1p63;
    /** 1 for the topics of the node that chooses, all 0 between calls. A char is an index of it: no range checks. */
    static final byte[] MINE = new byte[MOST_TOPICS];

    final int nodes;
    final int[] starts; // node → its topics
    final char[] topics; // ascending in a row
    final long[] ids; // unsigned: points on the ring
    final int[] cache, cacheHeard; // CACHE samples a node, the freshest first, and the round of their last sign of life
    final int[] links, heard; // TABLE slots a node: successor, predecessor, long link, friends
    final int[] backups; // RING a node: the next clockwise, then the next counter-clockwise
    final int[] order; // of turns
    int now;
    long random = 0x9E3779B97F4A7C15L;

    // Scratch of one exchange.
    final long[] places; // node → high half: the exchange that met it last; low half: its position in the pool
    long met, touched; // the number of this exchange, in the high half; a sum that nobody reads
    final int[] pool = new int[POOL], poolHeard = new int[POOL];
    final long[] poolIds = new long[POOL];
    int size;
    final Least ahead = new Least(BACKUPS), behind = new Least(BACKUPS), friends = new Least(TABLE - STRUCTURED);

    /** Nodes with these rows of topics and these ring ids. */
    Network(int[] starts, char[] topics, long[] ids) {
        this.starts = starts;
        this.topics = topics;
        this.ids = ids;
        nodes = ids.length;
        cache = new int[nodes * CACHE];
        cacheHeard = new int[nodes * CACHE];
        links = new int[nodes * TABLE];
        heard = new int[nodes * TABLE];
        backups = new int[nodes * RING];
        order = IntStream.range(0, nodes).toArray();
        places = new long[nodes];
        restart();
    }

    /** Everybody knows random others, no one twice, and has no links. */
    void restart() {
        now = 0;
        Arrays.fill(links, NOBODY);
        Arrays.fill(backups, NOBODY);
        Arrays.fill(cacheHeard, 0);
        for (int p = 0; p < nodes; p++) {
            meet(p, p);
            for (int i = 0; i < CACHE; ) {
                int q = below(nodes);
                if (places[q] < met) cache[p * CACHE + i++] = q;
                places[q] = met;
            }
        }
    }

    /** A new exchange, in which so far these two are met. */
    void meet(int p, int q) {
        met += 1L << 32;
        places[p] = places[q] = met;
    }

    long next() { // xorshift64*
        random ^= random >>> 12;
        random ^= random << 25;
        random ^= random >>> 27;
        return random * 0x2545F4914F6CDD1DL;
    }

    int below(int bound) {
        return (int) ((next() >>> 32) * bound >>> 32);
    }

    void round(boolean everything) {
        now++;
        for (int i = nodes - 1; i > 0; i--) {
            int j = below(i + 1), p = order[i];
            order[i] = order[j];
            order[j] = p;
        }
        for (int p : order) {
            sample(p);
            if (everything) exchange(p);
        }
    }

    /** Newscast: p and a random member of its cache keep the freshest of both caches, and a new descriptor of each. */
    void sample(int p) {
        int q = cache[p * CACHE + below(CACHE)], a = p * CACHE, b = q * CACHE, lastA = a + CACHE, lastB = b + CACHE;
        long coins = next(); // one for every tie between the two caches
        meet(p, q);
        for (int kept = 1; kept < CACHE; coins >>>= 1) { // p's cache alone has so many who are not q
            int by = a == lastA ? -1 : b == lastB ? 1 : cacheHeard[a] - cacheHeard[b];
            int from = by > 0 || by == 0 && (coins & 1) == 0 ? a++ : b++, node = cache[from];
            if (places[node] >= met) continue;
            places[node] = met;
            pool[kept] = node;
            poolHeard[kept++] = cacheHeard[from];
        }
        poolHeard[0] = now;
        keepSamples(p, q);
        keepSamples(q, p);
    }

    void keepSamples(int p, int other) {
        pool[0] = other;
        System.arraycopy(pool, 0, cache, p * CACHE, CACHE);
        System.arraycopy(poolHeard, 0, cacheHeard, p * CACHE, CACHE);
    }

    /** T-Man: p and a neighbour pool what they know, and both choose their links from it. Then p hears from its own. */
    void exchange(int p) {
        int q = partner(p);
        meet(p, p);
        size = 0;
        pool[size++] = p;
        poolHeard[0] = now;
        offer(q, now);
        for (int i = 0; i < TABLE; i++) offer(links[p * TABLE + i], heard[p * TABLE + i]);
        for (int i = 0; i < CACHE; i++) offer(cache[p * CACHE + i], cacheHeard[p * CACHE + i]);
        for (int i = 0; i < TABLE; i++) offer(links[q * TABLE + i], heard[q * TABLE + i]);
        for (int i = 0; i < CACHE; i++) offer(cache[q * CACHE + i], cacheHeard[q * CACHE + i]);
        int end = size; // what comes from backups serves the ring alone
        for (int i = 0; i < RING; i++) offer(backups[p * RING + i], now - 1);
        for (int i = 0; i < RING; i++) offer(backups[q * RING + i], now - 1);
        for (int i = 0; i < size; i++) poolIds[i] = ids[pool[i]];
        for (int i = 0; i < end; i++) // touch all profiles before they are needed: less waiting in large networks
            for (int at = starts[pool[i]], last = starts[pool[i] + 1]; at < last; at += LINE) touched += topics[at];
        select(p, 0, end);
        select(q, 1, end);
        Arrays.fill(heard, p * TABLE, p * TABLE + TABLE, now);
    }

    /** A random neighbour, every other round one of the ring; without links one of the samples. */
    int partner(int p) {
        int q = links[p * TABLE + below(now % 2 == 1 ? 2 : TABLE)];
        for (int tries = 0; q == NOBODY && tries < TABLE; tries++) q = links[p * TABLE + below(TABLE)];
        return q == NOBODY ? cache[p * CACHE + below(CACHE)] : q;
    }

    void offer(int node, int when) {
        if (node == NOBODY || when < now - MAX_AGE) return;
        long place = places[node];
        if (place >= met) {
            poolHeard[(int) place] = Math.max(poolHeard[(int) place], when);
        } else {
            places[node] = met | size;
            pool[size] = node;
            poolHeard[size++] = when;
        }
    }

    /** New backups and links of p, who is at position `self` of the pool; long link and friends from before `end`. */
    void select(int p, int self, int end) {
        chooseRing(p, self);
        int next = ahead.get(0), previous = behind.get(0) == next ? NOBODY : behind.get(0);
        int far = previous == NOBODY ? NOBODY : chooseLong(p, self, end, next, previous);
        mark(p, 1);
        friends.clear();
        for (int i = 0; i < end; i++) {
            if (i == self || i == next || i == previous || i == far) continue;
            long tie = (p * 0x9E3779B97F4A7C15L ^ pool[i]) * 0xD6E8FEB86659FD93L >>> 33;
            friends.offer(i, -((long) (utility(p, pool[i]) * 0x1p31) << 31 | tie));
        }
        mark(p, 0);
        for (int i = 0; i < TABLE; i++) {
            int pick = i == 0 ? next : i == 1 ? previous : i == 2 ? far : friends.get(i - STRUCTURED);
            links[p * TABLE + i] = pick == NOBODY ? NOBODY : pool[pick];
            heard[p * TABLE + i] = pick == NOBODY ? 0 : poolHeard[pick];
        }
    }

    void mark(int p, int value) {
        for (int at = starts[p]; at < starts[p + 1]; at++) MINE[topics[at]] = (byte) value;
    }

    /** Eq. 1 for p, who is marked, and q. All topics have one rate. */
    double utility(int p, int q) {
        int common = 0, first = starts[q], last = starts[q + 1];
        for (int at = first; at < last; at++) common += MINE[topics[at]];
        int union = starts[p + 1] - starts[p] + last - first - common;
        return union == 0 ? 0 : (double) common / union;
    }

    /** The nearest in both directions, into `ahead`, `behind` and p's backups; from the whole pool. */
    void chooseRing(int p, int self) {
        ahead.clear();
        behind.clear();
        for (int i = 0; i < size; i++) {
            if (i == self) continue;
            long steps = poolIds[i] - ids[p];
            ahead.offer(i, steps ^ Long.MIN_VALUE); // the order of unsigned numbers, as signed ones
            behind.offer(i, -steps ^ Long.MIN_VALUE);
        }
        for (int i = 0; i < RING; i++) {
            int pick = i < BACKUPS ? ahead.get(i) : behind.get(i - BACKUPS);
            backups[p * RING + i] = pick == NOBODY ? NOBODY : pool[pick];
        }
    }

    /** Symphony: the free candidate nearest to a point at a harmonic distance, by a hash of p. */
    int chooseLong(int p, int self, int end, int next, int previous) {
        long bits = (p + 1) * 0x9E3779B97F4A7C15L;
        bits = (bits ^ bits >>> 30) * 0xBF58476D1CE4E5B9L;
        bits ^= bits >>> 31;
        double shrink = Math.log(Math.max(poolIds[next] - poolIds[previous] >>> 1, 1) / HALF_RING);
        long steps = (long) (Math.min(Math.exp(shrink * (bits >>> 11) * 0x1p-53), 1 - 1e-9) * HALF_RING);
        long target = (bits & 1) == 1 ? ids[p] + steps : ids[p] - steps, least = Long.MAX_VALUE;
        int best = NOBODY;
        for (int i = 0; i < end; i++) {
            long away = poolIds[i] - target;
            away ^= away >> 63; // the shorter way round
            if (away < least && i != self && i != next && i != previous) {
                best = i;
                least = away;
            }
        }
        return best;
    }
}
