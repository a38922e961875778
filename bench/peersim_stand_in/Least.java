/** The positions of the smallest keys that were offered since `clear`, in ascending order; a fixed number at most. */
final class Least {
    final int[] positions;
    final long[] keys;
    int found;
    long limit;

    Least(int most) {
        positions = new int[most];
        keys = new long[most];
    }

    void clear() {
        found = 0;
        limit = Long.MAX_VALUE;
    }

    void offer(int position, long key) {
        if (key >= limit) return;
        int at = found < keys.length ? found++ : found - 1;
        for (; at > 0 && keys[at - 1] > key; at--) {
            keys[at] = keys[at - 1];
            positions[at] = positions[at - 1];
        }
        keys[at] = key;
        positions[at] = position;
        if (found == keys.length) limit = keys[found - 1];
    }

    /** The position of the i-th smallest key, NOBODY when there were fewer. */
    int get(int i) {
        return i < found ? positions[i] : Network.NOBODY;
    }
}
