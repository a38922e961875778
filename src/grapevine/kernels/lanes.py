"""Eight values at once, for compiled code alone: what numba's loops over bits and answers do not become by themselves.

An answer about eight values is a mask, an integer whose bit i speaks of value i. LLVM makes of these what the processor
has: with AVX-512 two instructions for a comparison of eight, without it a few more; results are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from grapevine.kernels.rng import FIRST_FACTOR, GAMMA, SECOND_FACTOR

LANES = 8
WIDE = 16  # so many int32 take the room of eight words
Int = int | np.integer[Any]
Words = NDArray[np.int64]
_WORD, _HALF, _BIT = ir.IntType(64), ir.IntType(32), ir.IntType(1)
_LINE = ir.VectorType(_WORD, LANES)
_NOTHING = ir.Constant(_LINE, None)
_HALVES, _WIDE_LINE = ir.VectorType(_HALF, LANES), ir.VectorType(_HALF, WIDE)
_PAIR = ir.VectorType(_WORD, 2)
_ADDRESSES = ir.VectorType(_WORD.as_pointer(), LANES)
_LOWER = 2**32 - 1


class _Code:
    """Builds the instructions of one intrinsic."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self._context, self.make, self._types, self.given = context, builder, signature.args, arguments

    def address(self, which: int, index: Any, kind: Any) -> Any:
        """Where an element of the array among the arguments lies, as a pointer to this kind."""
        data = self._context.make_array(self._types[which])(self._context, self.make, self.given[which]).data
        return self.make.bitcast(self.make.gep(data, [index]), kind.as_pointer())

    def load(self, which: int, index: Any) -> Any:
        """Eight words of the array from the index on."""
        return self.make.load(self.address(which, index, _LINE), align=8)

    def all(self, value: Any) -> Any:
        """The same word in all lanes."""
        one = self.make.insert_element(_NOTHING, value, _HALF(0))
        return self.make.shuffle_vector(one, _NOTHING, _lanes([0] * LANES, _HALF))

    def mask(self, flags: Any) -> Any:
        """Eight flags as an integer."""
        return self.make.zext(self.make.bitcast(flags, ir.IntType(8)), _WORD)

    def call(self, name: str, result: Any, arguments: Sequence[Any]) -> Any:
        """One of LLVM's own functions."""
        kind = ir.FunctionType(result, [each.type for each in arguments])
        return self.make.call(self.make.module.declare_intrinsic(name, (), kind), arguments)

    def store_together(self, values: Any, flags: Any, where: Any, *, bits: int) -> None:
        """Store eight values of so many bits, those with a flag first. All eight are written: what fewer wrote could
        not be read again at once."""
        name, rest = f"llvm.experimental.vector.compress.v8i{bits}", ir.Constant(values.type, None)
        self.make.store(self.call(name, values.type, [values, flags, rest]), where, align=bits // 8)

    def all_wide(self, value: Any) -> Any:
        """The lower half of a word in sixteen lanes."""
        none = ir.Constant(_WIDE_LINE, None)
        one = self.make.insert_element(none, self.make.trunc(value, _HALF), _HALF(0))
        return self.make.shuffle_vector(one, none, _lanes([0] * WIDE, _HALF))

    def load_wide(self, which: int, index: Any, count: Any) -> Any:
        """So many int32 of the array from the index on, sixteen at the most; -1 in the other lanes."""
        there = self.make.icmp_signed("<", _lanes(range(WIDE), _HALF), self.all_wide(count))
        where, missing = self.address(which, index, _WIDE_LINE), _lanes([-1] * WIDE, _HALF)
        return self.call("llvm.masked.load.v16i32.p0", _WIDE_LINE, [where, _HALF(4), there, missing])

    def nothing(self) -> Any:
        """What a function returns that returns nothing."""
        return self._context.get_dummy_value()


def _lanes(values: Sequence[int], kind: Any) -> Any:
    return ir.Constant(ir.VectorType(kind, len(values)), [ir.Constant(kind, value) for value in values])


def _side_by_side(make: Any, vectors: Sequence[Any]) -> Any:
    """Equally long vectors as one, in this order; their number is a power of two."""
    while len(vectors) > 1:
        lanes = _lanes(range(2 * vectors[0].type.count), _HALF)
        vectors = [make.shuffle_vector(a, b, lanes) for a, b in zip(vectors[::2], vectors[1::2], strict=True)]
    return vectors[0]


@intrinsic
def _count_common(_: Any, lines: Any, mine: Any, others: Any, at: Any, words: Any, counts: Any, tails: Any) -> Any:
    def generate(*given: Any) -> Any:
        code = _Code(*given)
        make, (_, mine, _, at, words, _, _) = code.make, code.given
        counted = make.icmp_unsigned("<", _lanes(range(LANES), _WORD), code.all(words))
        own = make.select(counted, code.load(0, mine), _NOTHING)
        sums, starts = [], []
        for i in range(LANES):
            other = make.load(code.address(2, make.add(at, _WORD(i)), _HALF))
            starts.append(make.shl(make.zext(other, _WORD), _WORD(3)))
            theirs = code.load(0, starts[-1])
            sums.append(code.call("llvm.ctpop.v8i64", _LINE, [make.and_(own, theirs)]))
        for apart in (1, 2, 4):  # neighbouring lanes are added while pairs of vectors become one: a sum a lane is left
            even = _lanes([(i & ~apart) | (LANES if i & apart else 0) for i in range(LANES)], _HALF)
            odd = _lanes([(i | apart) | (LANES if i & apart else 0) for i in range(LANES)], _HALF)
            pairs = zip(sums[::2], sums[1::2], strict=True)
            sums = [make.add(make.shuffle_vector(a, b, even), make.shuffle_vector(a, b, odd)) for a, b in pairs]
        make.store(sums[0], code.address(5, _WORD(0), _LINE), align=8)
        # Whole vectors are stored: eight words that are stored one by one cannot be read together at once.
        ends = [make.load(code.address(0, make.or_(start, _WORD(6)), _PAIR), align=8) for start in starts]
        for k in range(2):
            which = _lanes(range(k, 2 * LANES, 2), _HALF)
            last = make.shuffle_vector(_side_by_side(make, ends[:4]), _side_by_side(make, ends[4:]), which)
            make.store(last, code.address(6, _WORD(LANES * k), _LINE), align=8)
        return code.nothing()

    return types.void(lines, types.intp, others, types.intp, types.intp, counts, tails), generate


@intrinsic
def _keep_fresh(_: Any, nodes: Any, stamps: Any, at: Any, count: Any, least: Any, but: Any, into: Any, to: Any) -> Any:
    def generate(*given: Any) -> Any:
        code = _Code(*given)
        make, (_, _, at, count, least, but, _, to) = code.make, code.given

        def all_lanes(value: Any) -> Any:
            one = make.insert_element(ir.Constant(_HALVES, None), make.trunc(value, _HALF), _HALF(0))
            return make.shuffle_vector(one, ir.Constant(_HALVES, None), _lanes([0] * LANES, _HALF))

        there = make.icmp_signed("<", _lanes(range(LANES), _WORD), code.all(count))

        def load(which: int) -> Any:
            where = code.address(which, at, _HALVES)
            name, missing = "llvm.masked.load.v8i32.p0", ir.Constant(_HALVES, None)
            return code.call(name, _HALVES, [where, _HALF(4), there, missing])

        found = load(0)
        kept = make.and_(there, make.icmp_signed(">=", found, ir.Constant(_HALVES, None)))
        kept = make.and_(kept, make.icmp_signed("!=", found, all_lanes(but)))
        kept = make.and_(kept, make.icmp_signed(">=", load(1), all_lanes(least)))
        code.store_together(found, kept, code.address(6, to, _HALVES), bits=32)
        return make.add(to, make.ctpop(code.mask(kept)))

    arguments = types.intp, types.intp, types.int64, types.int64
    return types.int64(nodes, stamps, *arguments, into, types.intp), generate


@intrinsic
def _within(_: Any, points: Any, at: Any, centre: Any, after: Any, before: Any) -> Any:
    def generate(*given: Any) -> Any:
        code = _Code(*given)
        make, there, middle = code.make, code.load(0, code.given[1]), code.all(code.given[2])
        ahead = make.icmp_unsigned("<", make.sub(there, middle), code.all(code.given[3]))
        behind = make.icmp_unsigned("<", make.sub(middle, there), code.all(code.given[4]))
        return code.mask(make.or_(ahead, behind))

    return types.int64(points, types.intp, types.uint64, types.uint64, types.uint64), generate


@intrinsic
def _add_smaller(_: Any, counts: Any, words: Any, at: Any, mine: Any, lower: Any, most: Any) -> Any:
    def generate(*given: Any) -> Any:
        code = _Code(*given)
        make, (_, _, at, mine, lower, most) = code.make, code.given
        low = code.all(make.sub(make.shl(_WORD(1), lower), _WORD(1)))
        theirs, own = make.and_(code.load(1, at), low), make.and_(code.all(mine), low)
        sums = make.add(code.load(0, _WORD(0)), make.select(make.icmp_signed("<", theirs, own), theirs, own))
        limit = code.all(most)
        sums = make.select(make.icmp_signed("<", sums, limit), sums, limit)
        make.store(sums, code.address(0, _WORD(0), _LINE), align=8)
        return code.nothing()

    return types.void(counts, words, types.intp, types.int64, types.int64, types.int64), generate


@intrinsic
def _reach(_: Any, counts: Any, words: Any, at: Any, mine: Any, lower: Any, share: Any) -> Any:
    floats = ir.VectorType(ir.DoubleType(), LANES)

    def generate(*given: Any) -> Any:
        code = _Code(*given)
        make, (_, _, at, mine, lower, share) = code.make, code.given
        upper = make.add(make.ashr(code.load(1, at), code.all(lower)), code.all(make.ashr(mine, lower)))
        one = make.insert_element(ir.Constant(floats, None), share, _HALF(0))
        shares = make.shuffle_vector(one, ir.Constant(floats, None), _lanes([0] * LANES, _HALF))
        needed = make.fmul(shares, make.sitofp(upper, floats))
        return code.mask(make.fcmp_ordered(">=", make.sitofp(code.load(0, _WORD(0)), floats), needed))

    return types.int64(counts, words, types.intp, types.int64, types.int64, types.float64), generate


@intrinsic
def _count_above(_: Any, keys: Any, at: Any, key: Any) -> Any:
    def generate(*given: Any) -> Any:
        code = _Code(*given)
        above = code.make.icmp_signed(">", code.load(0, code.given[1]), code.all(code.given[2]))
        return code.make.ctpop(code.mask(above))

    return types.int64(keys, types.intp, types.int64), generate


@intrinsic
def _compress(_: Any, mask: Any, source: Any, at: Any, target: Any, to: Any) -> Any:
    bits = source.dtype.bitwidth

    def generate(*given: Any) -> Any:
        code = _Code(*given)
        make, kind = code.make, ir.VectorType(ir.IntType(bits), LANES)
        there = make.load(code.address(1, code.given[2], kind), align=bits // 8)
        flags = make.bitcast(make.trunc(code.given[0], ir.IntType(8)), ir.VectorType(_BIT, LANES))
        code.store_together(there, flags, code.address(3, code.given[4], kind), bits=bits)
        return code.nothing()

    return types.void(types.int64, source, types.intp, target, types.intp), generate


@intrinsic
def _join_alike(_: Any, lower: Any, upper: Any, at: Any, count: Any, value: Any, into: Any, to: Any) -> Any:
    def generate(*given: Any) -> Any:
        code = _Code(*given)
        make, (_, _, at, count, value, _, to) = code.make, code.given
        some, nothing = code.load_wide(0, at, count), ir.Constant(_WIDE_LINE, None)
        alike = make.icmp_signed("==", code.load_wide(1, at, count), code.all_wide(value))
        alike = make.and_(alike, make.icmp_signed(">=", some, nothing))
        above = code.all(make.shl(value, _WORD(32)))
        for first in (0, LANES):
            part = make.shuffle_vector(some, nothing, _lanes(range(first, first + LANES), _HALF))
            where = code.address(5, make.add(to, _WORD(first)), _LINE)
            make.store(make.or_(make.zext(part, _LINE), above), where, align=8)
        return make.ctpop(make.zext(make.bitcast(alike, ir.IntType(16)), _WORD))

    return types.int64(lower, upper, types.intp, types.intp, types.int64, into, types.intp), generate


@intrinsic
def _take_apart(_: Any, words: Any, at: Any, count: Any, lower: Any, upper: Any, to: Any) -> Any:
    def generate(*given: Any) -> Any:
        code = _Code(*given)
        make, (_, at, count, _, _, to) = code.make, code.given
        there, both = make.icmp_signed("<", _lanes(range(LANES), _WORD), code.all(count)), code.load(0, at)
        for which, part in ((3, both), (4, make.lshr(both, code.all(_WORD(32))))):
            stored = [make.trunc(part, _HALVES), code.address(which, to, _HALVES), _HALF(4), there]
            code.call("llvm.masked.store.v8i32.p0", ir.VoidType(), stored)
        return code.nothing()

    return types.void(words, types.intp, types.intp, lower, upper, types.intp), generate


@intrinsic
def _draw_keys(_: Any, state: Any, words: Any, at: Any, last: Any, keys: Any, to: Any) -> Any:
    def generate(*given: Any) -> Any:
        code = _Code(*given)
        make, (state, _, at, last, _, to) = code.make, code.given

        def folded(word: Any, shift: int) -> Any:
            return make.xor(word, make.lshr(word, code.all(_WORD(shift))))

        word = make.xor(make.and_(code.load(1, at), code.all(_WORD(_LOWER))), code.all(state))
        word = make.add(word, code.all(_WORD(int(GAMMA))))
        word = make.mul(folded(word, 30), code.all(_WORD(int(FIRST_FACTOR))))
        word = folded(make.mul(folded(word, 27), code.all(_WORD(int(SECOND_FACTOR)))), 31)
        hashed = make.shl(make.lshr(word, code.all(_WORD(33))), code.all(_WORD(32)))
        left = make.sub(code.all(make.sub(last, at)), _lanes(range(LANES), _WORD))
        key = make.select(make.icmp_signed(">", left, _NOTHING), make.or_(hashed, left), _NOTHING)
        make.store(key, code.address(4, to, _LINE), align=8)
        return code.nothing()

    return types.void(types.uint64, words, types.intp, types.intp, keys, types.intp), generate


@intrinsic
def _put_in_order(_: Any, keys: Any, at: Any, count: Any, words: Any, first: Any, most: Any, into: Any) -> Any:
    def generate(*given: Any) -> Any:
        code = _Code(*given)
        make, (_, at, count, _, first, most, _) = code.make, code.given
        mine, larger = code.load(0, at), cgutils.alloca_once_value(make, _NOTHING)
        with cgutils.for_range_slice(make, _WORD(0), count, _WORD(LANES), inc=True) as (begin, _):
            so_far = make.load(larger)
            for i in range(LANES):
                other = make.load(code.address(0, make.add(begin, _WORD(i)), _WORD))
                so_far = make.sub(so_far, make.sext(make.icmp_signed("<", mine, code.all(other)), _LINE))
            make.store(so_far, larger)
        place = make.load(larger)
        start = code.all(make.ptrtoint(code.address(6, _WORD(0), _WORD), _WORD))
        where = make.inttoptr(make.add(start, make.shl(place, code.all(_WORD(3)))), _ADDRESSES)
        there = make.icmp_signed("<", place, code.all(most))
        there = make.and_(there, make.icmp_signed(">", mine, _NOTHING))
        some = code.load(3, make.add(first, at))
        code.call("llvm.masked.scatter.v8i64.v8p0", ir.VoidType(), [some, where, _HALF(8), there])
        return code.nothing()

    return types.void(keys, types.intp, types.intp, words, types.intp, types.intp, into), generate


# keep_fresh(nodes, stamps, at, count, least, but, into, to): of so many entries from `at` on, eight at the most, write
# those that are not negative (nobody) nor `but`, and whose stamps are not below the least, one after the other into a
# list from `to` on, where there must be room for eight; returns where the list ends then.
keep_fresh = cast(
    Callable[[NDArray[np.int32], NDArray[np.int32], Int, Int, Int, Int, NDArray[np.int32], Int], int], _keep_fresh
)

# count_common(lines, mine, others, at, words, counts, tails) compares a line of eight words with eight others: `lines`
# is a contiguous array of 64-bit words, `mine` the index of a line's first word, `others` has the numbers of lines from
# `at` on. How many bits are set in both, of the first so many `words` of a line, goes into `counts`; the last words but
# one of the eight lines, then their last words, into `tails`, which has room for 16. Adding up eight lines together
# takes a third of the instructions that one after the other does.
count_common = cast(
    Callable[[NDArray[np.uint64], Int, NDArray[np.int32], Int, Int, NDArray[np.int64], NDArray[np.uint64]], None],
    _count_common,
)

# within(points, at, centre, after, before): which of eight ring ids lie less than `after` steps clockwise from the
# centre, or less than `before` counter-clockwise.
within = cast(Callable[[NDArray[np.uint64], Int, np.uint64, np.uint64, np.uint64], int], _within)

# A word may hold two numbers, of which one has the `lower` bits; `words` has eight of them from `at` on, `mine` is
# another. add_smaller(counts, words, at, mine, lower, most) adds the smaller of the two lower numbers to each of eight
# counts, and lets none exceed the most.
add_smaller = cast(Callable[[NDArray[np.int64], NDArray[np.uint64], Int, Int, Int, Int], None], _add_smaller)

# reach(counts, words, at, mine, lower, share): which of eight counts are at least this share of the two upper numbers
# together.
reach = cast(Callable[[NDArray[np.int64], NDArray[np.uint64], Int, Int, Int, float], int], _reach)

# count_above(keys, at, key): how many of eight keys from `at` on are larger than the key.
count_above = cast(Callable[[NDArray[np.int64], Int, Int], int], _count_above)

# compress(mask, source, at, target, to): write those of eight values of the source that the mask names into the target,
# one after the other, where there must be room for eight. They may be one array: what is read is read before anything
# is written.
compress = cast(Callable[[int, NDArray[Any], Int, NDArray[Any], Int], None], _compress)

# A word may also join two int32 that are not negative, a lower and an upper half. join_alike(lower, upper, at, count,
# value, into, to): so many pairs from `at` on, sixteen at the most, begin with those whose upper number is the value;
# write words of these into a list from `to` on, where there must be room for sixteen, and return how many they are. A
# negative lower number is nobody's, nor are those that follow it.
join_alike = cast(Callable[[NDArray[np.int32], NDArray[np.int32], Int, Int, Int, Words, Int], int], _join_alike)

# take_apart(words, at, count, lower, upper, to): write the halves of so many words from `at` on, eight at the most, to
# two lists from `to` on, and nothing behind them. Eight words are read.
take_apart = cast(Callable[[Words, Int, Int, NDArray[np.int32], NDArray[np.int32], Int], None], _take_apart)

# draw_keys(state, words, at, last, keys, to): the keys of eight words from `at` on, all different: 31 bits of the hash
# (`rng`) of the state and the lower half, then how many words there are up to `last`. 0 for those from `last` on.
draw_keys = cast(Callable[[np.uint64, Words, Int, Int, Words, Int], None], _draw_keys)

# put_in_order(keys, at, count, words, first, most, into): so many different keys above 0 belong to the words from
# `first` on; what follows them up to a multiple of eight is 0. The words of the eight keys from `at` on go where they
# stand among all by descending keys, unless that is behind so many.
put_in_order = cast(Callable[[Words, Int, Int, Words, Int, Int, Words], None], _put_in_order)
